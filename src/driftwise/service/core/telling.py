"""The events that a webhook reports: drift, a certain lift, and stops. Each is an event of its stream, so that it is
reported once for all servers, and `verify` recomputes it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from driftwise.lift import Interval, Look
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.following import Looking, comparable, following
from driftwise.service.core.setup import Setup
from driftwise.service.core.steps import Steps, steps_of
from driftwise.service.core.stream import Stream
from driftwise.service.stores.records import EraRow, EventRow
from driftwise.service.stores.store import Store

_LIVED = 200  # ticks of learning before a policy's memory is meaningful
_KINDS = {"ramp": "lift", "lift": "lift", "drift": "drift", "paused": "stop"}


def notice_of(stream: str, event: EventRow) -> str | None:
    """The message about an event; None if nothing is sent. It has no context, no id of a decision and no item."""
    kind, facts = _KINDS.get(event.kind), msgspec.json.decode(event.body)
    if kind is None:
        return None
    if facts.get("step") == "stopped":
        kind = "stop"
    facts.pop("fallback", None)
    told = {"kind": kind, "stream": stream, "event": event.seq, "at": event.at, "what": event.kind, "facts": facts}
    return msgspec.json.encode(told).decode()


def drift_of(fold: Fold, last: float | None) -> dict[str, Any] | None:
    """The memory with the largest weight of a bank, if it has changed: shorter than half the time of learning, or half
    or twice the last reported length. None if nothing changed; inside the result, None stands for a memory that keeps
    all."""
    policy, zero = fold.policy, fold.states.zero
    weights = policy.weights(fold.states.front)
    if weights is None or zero is None:
        return None
    memories, shares = policy.weighed(weights[None])
    memory, lived = float(memories[int(np.argmax(shares[-1]))]), float(fold.tick - zero)
    if last is None:
        moved = lived >= _LIVED and memory <= 0.5 * lived
    else:
        moved = memory <= 0.5 * last or memory >= 2.0 * last
    return {"upto": fold.seq, "memory": memory if memory < lived else None, "lived": lived} if moved else None


def lift_of(look: Look) -> dict[str, Any] | None:
    """A difference of mean rewards whose sign is certain; None if it is not."""
    found: Interval = look.difference
    if not look.split_holds or not (found.low > 0.0 or found.high < 0.0):
        return None
    return {"policy": "better" if found.low > 0.0 else "worse", "difference": [found.value, found.low, found.high]}


def _told(events: Sequence[EventRow], kind: str, era: int) -> list[dict[str, Any]]:
    bodies = (msgspec.json.decode(event.body) for event in events if event.kind == kind)
    return [body for body in bodies if body["era"] == era]


def _last_memory(events: Sequence[EventRow], era: int) -> float | None:
    found = _told(events, "drift", era)
    return found[-1]["memory"] if found else None


def _lift_told(events: Sequence[EventRow], era: int, steps: Steps) -> str:
    """The last report on a comparison."""
    found = [body for body in _told(events, "lift", era) if body["after"] == steps.after]
    return str(found[-1]["policy"]) if found else ""


class Telling(Looking):
    """Watches the streams of a service that has a webhook."""

    async def look_at(self, stream: Stream) -> None:
        """Write the events that are due."""
        await self._drift(stream)
        await self._lift(stream)

    async def _drift(self, stream: Stream) -> None:
        service, era = self.service, stream.era

        def write() -> None:
            last = _last_memory(service.store.events(stream.row.id), era.number)
            found = drift_of(stream.fold, last) if stream.era == era else None
            if found is not None:
                service.event(stream, "drift", era=era.number, before=last, **found)

        if stream.fold.policy.weighs:
            await service.written(write, lambda: None, stream)

    async def _lift(self, stream: Stream) -> None:
        service, era, made, steps, upto = self.service, stream.era, stream.setup, stream.steps, stream.fold.seq
        if made.body.mode != "holdback" or not comparable(steps):
            return
        looked, seq = await service.aside(self._looked, era, made, steps, upto)
        if looked is None:
            return
        found = looked

        def write() -> None:
            events = service.store.events(stream.row.id)
            same = stream.era == era and steps_of(events, era, made) == steps
            if same and found["policy"] != _lift_told(events, era.number, steps):
                service.event(stream, "lift", era=era.number, after=steps.after, upto=seq, **found)

        await service.written(write, lambda: None, stream)

    def _looked(
        self, store: Store, era: EraRow, made: Setup, steps: Steps, upto: int
    ) -> tuple[dict[str, Any] | None, int]:
        """Runs in the thread."""
        followed = self.compared.followed(store, era, made, steps, upto)
        return lift_of(followed.lift.look()), followed.seq


def check_signs(store: Store, events: Sequence[EventRow], era: EraRow, made: Setup) -> list[str]:
    """The errors in a generation's events of drift and lift, each of which is recomputed from the log."""
    wrong = []
    for place, event in enumerate(events):
        told = msgspec.json.decode(event.body)
        if event.kind not in ("drift", "lift") or told["era"] != era.number:
            continue
        before, again = events[:place], None
        steps = steps_of(before, era, made)
        if era.base > (told["upto"] if event.kind == "drift" else steps.begun_at):
            continue  # rewards or units were forgotten
        if event.kind == "lift" and comparable(steps):
            followed = following(era, made, steps)
            followed.follow(store, told["upto"], most=2**62)
            found = lift_of(followed.lift.look())
            again = found and {"era": era.number, "after": steps.after, "upto": told["upto"], **found}
        elif event.kind == "drift":
            last = _last_memory(before, era.number)
            with suppress(Unlike):  # this is reported for the era itself
                again = drift_of(resume(store, era, made, upto=told["upto"]), last)
            again = again and {"era": era.number, "before": last, **again}
        if again != told:
            wrong.append(f"event {event.seq}, {event.kind}, differs when it is recomputed")
    return wrong
