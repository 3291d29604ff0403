"""What a webhook tells of: drift, a lift that is certain, and stops. Each is an event of its stream, so that it is told
once, whoever serves, and `verify` computes it again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from driftwise.errors import DriftwiseError
from driftwise.lift import Interval, Look
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.following import Following, comparable, following
from driftwise.service.core.setup import Setup
from driftwise.service.core.steps import Steps, steps_of
from driftwise.service.core.stream import Stream
from driftwise.service.stores.records import EraRow, EventRow
from driftwise.service.stores.store import Store

if TYPE_CHECKING:
    from driftwise.service.core.serving import Service

_LIVED = 200  # ticks that a policy has learned for before its memory says something
_KINDS = {"ramp": "lift", "lift": "lift", "drift": "drift", "paused": "stop"}


def notice_of(stream: str, event: EventRow) -> str | None:
    """What is sent of an event; None where nothing is. It has no context, no id of a decision and no item."""
    kind, facts = _KINDS.get(event.kind), msgspec.json.decode(event.body)
    if kind is None:
        return None
    if facts.get("step") == "stopped":
        kind = "stop"
    facts.pop("fallback", None)
    told = {"kind": kind, "stream": stream, "event": event.seq, "at": event.at, "what": event.kind, "facts": facts}
    return msgspec.json.encode(told).decode()


def drift_of(fold: Fold, last: float | None) -> dict[str, Any] | None:
    """The memory that a bank weighs most, where it has become another: shorter than half of what the bank learned for,
    or half or twice as long as was told last. None stands for a memory of everything."""
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
    """A difference of mean rewards whose sign is certain."""
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
    """What was last told of a comparison."""
    found = [body for body in _told(events, "lift", era) if body["after"] == steps.after]
    return str(found[-1]["policy"]) if found else ""


class Telling:
    """Looks at the streams of a service that has a webhook; `look` is asked every few seconds."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._following: dict[int, tuple[Steps, Following]] = {}

    async def look(self) -> None:
        """Write the events that are due."""
        for stream in list(self.service.engine.streams.values()):
            with suppress(DriftwiseError):  # there is a next time
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
        """In the thread."""
        known = self._following.get(era.stream)
        if known is None or known[0] != steps or known[1].era != era.number:
            known = self._following[era.stream] = steps, following(era, made, steps)
        known[1].follow(store, upto)
        return lift_of(known[1].lift.look()), known[1].seq


def check_signs(store: Store, events: Sequence[EventRow], era: EraRow, made: Setup) -> list[str]:
    """What is wrong with the events of drift and lift of an era, each computed again from the log."""
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
            with suppress(Unlike):  # which is told of the era itself
                again = drift_of(resume(store, era, made, upto=told["upto"]), last)
            again = again and {"era": era.number, "before": last, **again}
        if again != told:
            wrong.append(f"event {event.seq}, {event.kind}, does not come out again")
    return wrong
