"""A stream's fallback while it is paused, and the step of its ramp, computed from its events. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from driftwise._internal.rng import key
from driftwise.lift import Guardrail, Ramp, RampVerdict
from driftwise.service.core.setup import Setup
from driftwise.service.stores.records import EraRow, EventRow
from driftwise.service.wire.protocol import StreamBody


class Steps(NamedTuple):
    """`held` is the share of units that is held back. The comparison of this step is about decisions after number
    `after` and rewards after number `begun_at`."""

    held: float
    after: int
    begun_at: int
    place: int = 0
    stopped: bool = False
    fallback: int | str | None = None
    paused: bool = False


def hashed_unit(seed: int, unit: str) -> int:
    """The stored form of a unit: a keyed hash, as a signed integer for SQLite."""
    return key(seed, "holdback", unit) - 2**63


def imported_seeds(events: Sequence[EventRow]) -> tuple[int, set[int]]:
    """The number of the last imported decision, and the seeds by which units up to it may be hashed, beside those of
    the eras."""
    told = [(one.decided, msgspec.json.decode(one.body)) for one in events if one.kind == "imported"]
    return max((last for last, _ in told), default=0), {seed for _, body in told for seed in body.get("seeds", ())}


def ramp_of(body: StreamBody) -> Ramp | None:
    """The ramp of a stream; None if it has none."""
    if body.ramp is None:
        return None
    rails = {name: Guardrail(one.margin, one.better) for name, one in (body.guardrails or {}).items()}
    return Ramp(tuple(body.ramp), body.margin, rails)


def steps_of(events: Sequence[EventRow], era: EraRow, made: Setup) -> Steps:
    """What the events of a stream come to. A ramp starts again with each generation."""
    ramp = ramp_of(made.body)
    found = Steps(_held(made.body, ramp, 0), era.after, era.begun_at)
    for event in events:
        told = msgspec.json.decode(event.body)
        if event.kind == "paused":
            found = found._replace(fallback=told.get("fallback"), paused=True)
        elif event.kind == "resumed":
            found = found._replace(fallback=None, paused=False)
        elif event.kind == "imported":  # a comparison begins after it: another stream drew the cohorts
            found = found._replace(
                after=max(found.after, event.decided), begun_at=max(found.begun_at, event.rewarded)
            )
        elif event.kind == "ramp" and told["era"] == era.number and ramp is not None:
            stopped = told["step"] == "stopped"
            place = found.place + (not stopped)
            held = 1.0 if stopped else _held(made.body, ramp, place)
            found = Steps(held, event.decided, event.rewarded, place, stopped, found.fallback, found.paused)
    return found


def _held(body: StreamBody, ramp: Ramp | None, place: int) -> float:
    return body.holdback if ramp is None else max(1.0 - ramp.shares[place], body.holdback)


def told_of(era: int, upto: int, found: RampVerdict) -> dict[str, Any]:
    """The body of the event of a ramp's step: enough to recompute it."""

    def ends(one: Sequence[float]) -> list[float | None]:
        return [None if value != value else value for value in one]

    return {
        "era": era, "step": found.step, "reason": found.reason, "upto": upto, "reward": ends(found.reward),
        "harms": {name: ends(harm) for name, harm in found.harms.items()},
    }  # fmt: skip
