"""The drift meter: how long an agent remembers, and whether another memory would have predicted better.

For a bank the meter shows the weights of its memories over time. Another policy has one memory. For it the meter
predicts the last rewards (1024 at most) again with a quarter, half, once, twice and four times that memory
(replay.py), each time it is read. The memory of a policy of the user's own is unknown. For it the meter compares a few
memories with one that forgets nothing.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise.agent.replay import Lesson, replayed
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.questions import Asked

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts

# The number of lessons that the meter keeps, and of points of its history.
RECENT, HISTORY = 1024, 512
# The memories that are compared with one that forgets nothing.
SHORTER = (32.0, 128.0, 512.0)


class Meter:
    """The data of the meter: the last rewards (tick, born, x, reward), and weights of a bank's memories over time."""

    __slots__ = ("history", "recent", "stride", "waited")

    def __init__(self, recent: Iterable[Lesson] = (), history: Iterable[tuple[int, Floats]] = ()) -> None:
        self.recent: deque[Lesson] = deque(recent, maxlen=RECENT)
        self.history = list(history)
        self.stride, self.waited = 1, 0

    def weigh(self, tick: int, weights: Floats | None) -> None:
        """Record the weights of memories every k rewards; k doubles whenever the history is full."""
        self.history, self.stride, self.waited = self.weighed(tick, weights)

    def weighed(self, tick: int, weights: Floats | None) -> tuple[list[tuple[int, Floats]], int, int]:
        """History, stride and wait after the weights at a tick. Nothing changes."""
        if weights is None:
            return self.history, self.stride, self.waited
        if self.waited + 1 < self.stride:
            return self.history, self.stride, self.waited + 1
        history = [*self.history, (tick, weights.copy())]
        full = len(history) >= HISTORY
        return (history[1::2], 2 * self.stride, 0) if full else (history, self.stride, 0)


@dataclass(frozen=True)
class LevelDrift:
    """What is known about a common level of all arms, apart from preferences among them.

    `evidence` is the log-likelihood, fading with time, by which estimates with a level predicted rewards better. If it
    `moves`, these estimates are played. `level` is how long the likeliest of them remembers the level, in ticks, and
    `preferences` how long it remembers preferences.
    """

    evidence: float
    moves: bool
    level: float
    preferences: float

    def __str__(self) -> str:
        if not self.moves:
            return f"no common level moves apart from preferences (log evidence {self.evidence:+.1f})"
        return (
            f"a common level moves: remembered for {self.level:g} ticks, preferences for "
            f"{self.preferences:g} (log evidence {self.evidence:+.1f})"
        )


@dataclass(frozen=True)
class Drift:
    """The result of `Agent.drift`.

    `memories` are in ticks. `at` are ticks, and `weights` (len(at), len(memories)) the weight of each memory at these
    ticks. `advantage` is the log score (log-likelihood of a reward) that each memory gained over the one played now, or
    over one that forgets nothing where the memory played is unknown (None for a bank, which has weights). `remembers`
    is the memory played, in ticks, or NaN where it is unknown; `days` is the same where the clock measures time.
    `level` describes a common level of all arms, where the policy has one; `memories` are then those without a level.
    """

    memories: tuple[float, ...]
    at: Ints
    weights: Floats
    advantage: Floats | None
    remembers: float
    days: float | None
    level: LevelDrift | None = None

    @property
    def best(self) -> float:
        """The memory that predicts best, in ticks."""
        if not len(self.at):
            return self.remembers
        return self.memories[int(np.argmax(self.weights[-1]))]

    @property
    def now(self) -> Floats:
        """The weights at the end; before the first reward all memories have the same weight."""
        return self.weights[-1] if len(self.at) else np.full(len(self.memories), 1.0 / len(self.memories))

    @property
    def summary(self) -> str:
        """One line: the memory in use and the one that predicts best."""
        days = "" if self.days is None else f" ({self.days:.3g} days)"
        known = "" if math.isnan(self.remembers) else f"remembers {self.remembers:g} ticks{days}; "
        return f"{known}{self.best:g} predicts best"

    def __str__(self) -> str:
        lines = [self.summary]
        lines.append(f"{'memory':>12}{'weight':>10}" + ("" if self.advantage is None else f"{'log score':>14}"))
        for place, memory in enumerate(self.memories):
            more = "" if self.advantage is None else f"{self.advantage[place]:>+14.4f}"
            lines.append(f"{memory:>12g}{self.now[place]:>10.3f}{more}")
        if self.level is not None:
            lines.append(str(self.level))
        return "\n".join(lines)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows of a table: one memory per row, with its weight now."""
        columns = ["memory in ticks", "weight now", *([] if self.advantage is None else ["log score a reward"])]
        more = [[]] * len(self.memories) if self.advantage is None else [[f"{nats:+.4f}"] for nats in self.advantage]
        cells = zip(self.memories, self.now, more, strict=True)
        return columns, [[f"{memory:g}", f"{weight:.3f}", *rest] for memory, weight, rest in cells]

    def draw(self, path: str | Path, size: tuple[float, float] = (9.0, 4.0)) -> None:
        """Draw the weights of the memories over time, as a figure (.png or .svg) of this size in inches."""
        from driftwise.draw.picture import picture
        from driftwise.draw.plots import pyplot

        names = [f"{memory:g}" for memory in self.memories]
        with picture(path, size) as all_axes:
            axes = all_axes[0, 0]
            colours = pyplot().get_cmap("viridis")(np.linspace(0.95, 0.1, len(names)))
            if len(self.at):
                axes.stackplot(self.at, self.weights.T, labels=names, colors=colours)
            axes.set_xlabel("tick")
            axes.set_ylabel("weight of a memory")
            axes.set_ylim(0.0, 1.0)
            if len(self.at):
                axes.legend(title="memory", fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def drift(parts: AgentParts) -> Drift:
    """See `Agent.drift`."""
    with parts.turn(parts.learning):
        meter, front = copy.copy(parts.meter), parts.states.front.copy()
        meter.history, meter.recent = list(meter.history), meter.recent.copy()
    return reading(parts.policy, front, meter, parts.terms[:2], parts.clock.days, progress=None)


def reading(
    policy: Asked, front: Any, meter: Meter, rewards: tuple[float, float], in_days: Callable[[float], float | None],
    progress: bool | None = False,
) -> Drift:
    """The reading of the meter for a policy in this state, with rewards in this range. progress: see `bar`."""
    history, recent = meter.history, list(meter.recent)
    now = policy.remembered(front)
    days = in_days(now)
    current = policy.weights(front)
    if current is not None:
        at = np.array([tick for tick, _ in history], dtype=np.int64)
        rounds, weights = policy.weighed(np.array([row for _, row in history]).reshape(len(at), len(current)))
        level = policy.level(front)
        return Drift(rounds, at, weights, None, now, days, None if level is None else LevelDrift(*level))
    memories = _memories(now)
    at = np.array([tick for tick, *_ in recent], dtype=np.int64)
    if not recent:
        return Drift(memories, at, np.zeros((0, len(memories))), np.zeros(len(memories)), now, days)
    nats = np.cumsum(replayed(policy, recent, memories, rewards, progress), axis=0)
    shares = np.exp(nats - nats.max(axis=1, keepdims=True))
    base = len(memories) - 1 if math.isnan(now) else memories.index(now)
    advantage = (nats[-1] - nats[-1, base]) / len(recent)
    return Drift(memories, at, shares / shares.sum(axis=1, keepdims=True), advantage, now, days)


def _memories(now: float) -> tuple[float, ...]:
    """Shorter and longer memories around the one in use."""
    if not math.isfinite(now):
        return (*SHORTER, math.inf)
    return tuple(sorted({max(1.5, now / 4.0), max(1.5, now / 2.0), now, 2.0 * now, 4.0 * now}))
