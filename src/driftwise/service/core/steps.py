"""Where a stream stands by its events: its fallback while it is paused, and the step of its ramp. Pure."""

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
    """What is kept of a unit: a keyed hash, in the integers of SQLite, which have a sign."""
    return key(seed, "holdback", unit) - 2**63


def ramp_of(body: StreamBody) -> Ramp | None:
    """The ramp of a stream that has one."""
    if body.ramp is None:
        return None
    rails = {name: Guardrail(one.margin, one.better) for name, one in (body.guardrails or {}).items()}
    return Ramp(tuple(body.ramp), body.margin, rails)


def steps_of(events: Sequence[EventRow], era: EraRow, made: Setup) -> Steps:
    """The fold of a stream's events: a ramp begins anew with each era."""
    ramp = ramp_of(made.body)
    found = Steps(_held(made.body, ramp, 0), era.after, era.begun_at)
    for event in events:
        told = msgspec.json.decode(event.body)
        if event.kind == "paused":
            found = found._replace(fallback=told.get("fallback"), paused=True)
        elif event.kind == "resumed":
            found = found._replace(fallback=None, paused=False)
        elif event.kind == "ramp" and told["era"] == era.number and ramp is not None:
            stopped = told["step"] == "stopped"
            place = found.place + (not stopped)
            held = 1.0 if stopped else _held(made.body, ramp, place)
            found = Steps(held, event.decided, event.rewarded, place, stopped, found.fallback, found.paused)
    return found


def _held(body: StreamBody, ramp: Ramp | None, place: int) -> float:
    return body.holdback if ramp is None else max(1.0 - ramp.shares[place], body.holdback)


def told_of(era: int, upto: int, found: RampVerdict) -> dict[str, Any]:
    """A step of a ramp as its event has it: enough to compute it again."""

    def ends(one: Sequence[float]) -> list[float | None]:
        return [None if value != value else value for value in one]

    return {
        "era": era, "step": found.step, "reason": found.reason, "upto": upto, "reward": ends(found.reward),
        "harms": {name: ends(harm) for name, harm in found.harms.items()},
    }  # fmt: skip
