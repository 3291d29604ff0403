"""Steps of ramps: judged in a thread, written as events, and recomputed by `verify`."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from driftwise.lift import RampVerdict
from driftwise.service.core.following import Looking, cohort_of, comparable, following
from driftwise.service.core.setup import Setup
from driftwise.service.core.steps import Steps, ramp_of, steps_of, told_of
from driftwise.service.core.stream import Stream
from driftwise.service.stores.records import DecisionRow, EraRow, EventRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import Stale

_CLOSE = 1e-9  # the relative difference allowed between interval ends of two machines


class Ramping(Looking):
    """Judges the ramps of a service."""

    async def look_at(self, stream: Stream) -> None:
        """Judge its ramp, and take the step that is due."""
        era, made, steps, upto = stream.era, stream.setup, stream.steps, stream.fold.seq
        if ramp_of(made.body) is None or steps.stopped or not comparable(steps):
            return
        found, seq = await self.service.aside(self._judge, era, made, steps, upto)
        if found.step is not None:
            await self.service.changed(self._step, stream, era, steps, found, seq)

    def _judge(self, store: Store, era: EraRow, made: Setup, steps: Steps, upto: int) -> tuple[RampVerdict, int]:
        """Runs in the thread."""
        followed, ramp = self.compared.followed(store, era, made, steps, upto), ramp_of(made.body)
        assert ramp is not None, "called only for streams with a ramp"
        return ramp.judge(followed.lift, steps.place), followed.seq

    async def _step(self, stream: Stream, era: EraRow, steps: Steps, found: RampVerdict, upto: int) -> None:
        service = self.service

        def write() -> None:
            if stream.era != era or steps_of(service.store.events(stream.row.id), era, stream.setup) != steps:
                raise Stale
            service.event(stream, "ramp", **told_of(era.number, upto, found))

        await service.written(write, stream.read_steps, stream)


def check_steps(store: Store, events: list[EventRow], era: EraRow, made: Setup) -> list[str]:
    """The errors in the steps of a generation's ramp, each of which is judged again from the log."""
    ramp, wrong = ramp_of(made.body), []
    for place, event in enumerate(events):
        told = msgspec.json.decode(event.body)
        if event.kind != "ramp" or told["era"] != era.number:
            continue
        steps = steps_of(events[:place], era, made)
        if ramp is None or steps.stopped or not comparable(steps):
            wrong.append(f"event {event.seq} is a step of a ramp, but the stream has no ramp")
            continue
        if era.base > steps.begun_at:
            continue  # units were forgotten
        followed = following(era, made, steps)
        followed.follow(store, told["upto"], most=2**62)
        again = told_of(era.number, told["upto"], ramp.judge(followed.lift, steps.place))
        if not _same(again, told):
            wrong.append(f"event {event.seq}, the step {told['step']!r} of the ramp, differs when it is recomputed")
    return wrong


class Standing:
    """The pause, fallback and ramp step of a stream of one server at each decision, by its events."""

    def __init__(self, events: list[EventRow], era: EraRow, made: Setup) -> None:
        self.mode = made.body.mode
        places = [place for place, event in enumerate(events) if event.kind in ("paused", "resumed", "ramp")]
        self._after = [events[place].decided for place in places]
        self._steps = [steps_of(events[:place], era, made) for place in (0, *(place + 1 for place in places))]
        imports = [event for event in events if event.kind == "imported"]
        self.imported = max((event.decided for event in imports), default=0)  # the number of the last such decision

    def wrong(self, row: DecisionRow) -> str:
        """What is wrong with the cohort or arm of a decision; "" if nothing is."""
        if row.seq <= self.imported:
            return ""  # another server made it
        steps = self._steps[bisect_left(self._after, row.seq)]
        if steps.paused and steps.fallback is None:
            return "was made while the stream was paused"
        if row.cohort == "shadow":
            return ""  # the caller played it
        if (row.cohort == "fallback") != steps.paused:
            return "was played by a fallback" if row.cohort == "fallback" else "was not played by the fallback"
        if steps.paused:
            unnamed = row.arm_set is None and isinstance(steps.fallback, str)  # its item was forgotten
            return "" if unnamed or steps.fallback in (row.arm, row.item) else "is not the fallback"
        if self.mode == "holdback" and row.unit is not None and row.cohort != cohort_of(row.unit, steps.held):
            return "is of another cohort than its unit"
        return ""


def _same(one: object, other: object) -> bool:
    """Whether two bodies are equal up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return abs(one - other) <= _CLOSE * max(1.0, abs(other))
    return one == other
