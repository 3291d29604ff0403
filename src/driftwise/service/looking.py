"""What the dashboard shows of a stream: numbers of its last rewards and decisions, and of its state now."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from driftwise.agent.explain import effective_of, estimate, remembered
from driftwise.policies.state import State
from driftwise.service.engine import BUCKETS, Engine
from driftwise.service.protocol import StreamAnswer
from driftwise.service.sqlite import SQLiteStore
from driftwise.service.stream import Stream

WINDOW = 10_000  # the last rewards and decisions that are looked at
_SHOWN = 8  # coefficients and arms, the largest
_HISTORY = 240


class Mean(NamedTuple):
    """A mean with its 95% interval."""

    n: int
    mean: float
    error: float

    @property
    def low(self) -> float:
        return self.mean - 1.96 * self.error

    @property
    def high(self) -> float:
        return self.mean + 1.96 * self.error


@dataclass(frozen=True)
class Look:
    """One stream at one moment. `lift` is live above baseline, `level` and `evidence` of policies that tell levels."""

    answer: StreamAnswer
    cohorts: dict[str, Mean]
    lift: Mean | None
    shares: list[tuple[str, float]]
    delays: tuple[float, float] | None  # median and nine tenths, in seconds
    memory: float
    worth: float
    theta: list[tuple[str, float]]
    drift: dict[str, float]
    history: list[tuple[float, list[float]]] = field(default_factory=list)


class Past:
    """Coefficients of a stream over time, as long as the server runs."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, Any]] = deque(maxlen=_HISTORY)

    def note(self, stream: Stream) -> None:
        """Keep them, where something was learned since."""
        if not self._seen or self._seen[-1][1] != stream.fold.seq:
            theta, _ = estimate(stream.setup.policy, stream.fold.states.front)
            self._seen.append((time.time(), stream.fold.seq, theta))

    def of(self, places: list[int]) -> list[tuple[float, list[float]]]:
        """Times, and these coefficients then."""
        width = max(places, default=-1)
        return [(at, [float(theta[i]) for i in places]) for at, _, theta in self._seen if theta.size > width]


class Seen(NamedTuple):
    """What is read of a stream's state on the event loop, where nobody changes it."""

    answer: StreamAnswer
    state: State


def state_of(stream: Stream) -> Seen:
    """A copy to be looked at elsewhere."""
    return Seen(stream.answer(), stream.fold.states.front.copy())


def look(reader: SQLiteStore, stream: Stream, seen: Seen, past: Past) -> Look:
    """All of it; `reader` is a view of the file of its own."""
    number, policy, state = stream.row.id, stream.setup.policy, seen.state
    since = max(0, seen.answer.state_seq - WINDOW)
    rows = reader.run(
        "SELECT d.cohort, r.value, r.at - d.at FROM reward r JOIN decision d ON d.stream = r.stream AND "
        "d.event_id = r.event_id WHERE r.stream = ? AND r.seq > ? AND r.verdict = 'learned'", values=(number, since),
    ).fetchall()  # fmt: skip
    cohorts = {name: _mean([row[1] for row in rows if row[0] == name]) for name in sorted({row[0] for row in rows})}
    lift = None
    if {"live", "baseline"} <= set(cohorts):
        ours, theirs = cohorts["live"], cohorts["baseline"]
        lift = Mean(ours.n + theirs.n, ours.mean - theirs.mean, math.hypot(ours.error, theirs.error))
    waits = [row[2] for row in rows]
    delays = (float(np.quantile(waits, 0.5)), float(np.quantile(waits, 0.9))) if waits else None
    theta, lane = estimate(policy, state)
    places = [int(i) for i in np.argsort(-np.abs(theta), kind="stable")[:_SHOWN]]
    features = stream.setup.features
    names = features.names if features is not None else [f"x{i}" for i in range(theta.size)]
    report = getattr(policy, "report", None)
    return Look(
        seen.answer, cohorts, lift, _shares(reader, number, seen.answer.seq), delays, remembered(policy, state),
        effective_of(state, lane), [(names[i], float(theta[i])) for i in places],
        {name: float(value) for name, value in report(state).items()} if report is not None else {}, past.of(places),
    )  # fmt: skip


def _mean(values: list[float]) -> Mean:
    n = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Mean(n, float(np.mean(values)), error)


def _shares(reader: SQLiteStore, stream: int, seq: int) -> list[tuple[str, float]]:
    """How often each item, or arm, was played lately."""
    rows = reader.run(
        "SELECT coalesce(item, 'arm ' || arm), count(*) FROM decision WHERE stream = ? AND seq > ? GROUP BY 1 "
        "ORDER BY 2 DESC", values=(stream, max(0, seq - WINDOW)),
    ).fetchall()  # fmt: skip
    total = sum(count for _, count in rows)
    shown = [(str(name), count / total) for name, count in rows[:_SHOWN]]
    rest = total - sum(count for _, count in rows[:_SHOWN])
    return [*shown, ("others", rest / total)] if rest else shown


def slowest(engine: Engine) -> str:
    """The 99th of a hundred commits, as far as buckets tell."""
    total, seen = sum(engine.commits), 0
    for place, count in enumerate(engine.commits):
        seen += count
        if total and seen >= 0.99 * total:
            return f"≤ {BUCKETS[place] * 1e3:g} ms" if place < len(BUCKETS) else f"> {BUCKETS[-1] * 1e3:g} ms"
    return "none yet"
