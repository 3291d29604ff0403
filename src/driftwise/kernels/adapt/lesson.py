"""A lesson under an adaptation, over any lane: the lane that learns, its lesson, and the turn of the adaptation.

An adaptation is a file that makes two pieces from those of a lane (lane.py). `before_` returns which lane learns, with
which arm, and how many rounds end; `after_` runs when the lanes have learned.
"""

from __future__ import annotations

from typing import Protocol

from driftwise.kernels import part, piece
from driftwise.kernels.adapt.alone import stand_alone
from driftwise.kernels.adapt.bank import bank_of, bank_pick
from driftwise.kernels.adapt.bob import bob_of
from driftwise.kernels.adapt.book import ACTIVE, ALL, ROW
from driftwise.kernels.adapt.lane import Adaptation, Given, GivenIn, Lane
from driftwise.kernels.adapt.master import master_of
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import ADAPT, ALONE, BANK, BOB, CLOCK, MARGIN, MASTER, Floats, Lesson, Point

KINDS = {ALONE: "alone", MASTER: "master", BOB: "bob", BANK: "bank"}


@piece
def acting_lane(point: Point, own: Adapting) -> int:
    """The lane whose index is played: the only one, the active instance, or the selected memory."""
    adaptation = point.flags[ADAPT]
    if adaptation == MASTER:
        return int(own.marks[ACTIVE])
    if adaptation == BANK:
        return bank_pick(own.scores, point.table[0, MARGIN])
    return 0


@piece
def acting_row(point: Point, own: Adapting, lane: int) -> int:
    """The row of the table for it: the only one, the drawn one, or its own."""
    adaptation = point.flags[ADAPT]
    if adaptation == BOB:
        return int(own.marks[ROW])
    if adaptation == BANK:
        return lane
    return 0


@piece
def who_acts(point: Point, own: Adapting) -> tuple[int, int]:
    """The lane whose index is played, and the row of the table for it."""
    lane = acting_lane(point, own)
    return lane, acting_row(point, own, lane)


class LessonOfLanes(Protocol[GivenIn]):
    """A lesson for the lanes that learn, then the adaptation's turn; `largest` is the index of the choice."""

    def __call__(
        self, point: Point, rho: Floats, lesson: Lesson, largest: float, lanes: GivenIn, own: Adapting
    ) -> None: ...


def lesson_under(adaptation: Adaptation[Given], lane: Lane[Given]) -> LessonOfLanes[Given]:
    """The lesson of a family's lanes under an adaptation."""
    before_, after_, learn_ = adaptation.before_, adaptation.after_, lane.learn_

    @part
    def lesson_(point: Point, rho: Floats, lesson: Lesson, largest: float, lanes: Given, own: Adapting) -> None:
        taker, arm, turns = before_(point, lesson, lanes, own)
        taken = Lesson(lesson.X, lesson.at, arm, lesson.reward, lesson.ticks, lesson.age)
        for k in range(lanes.sums.counters.shape[0]):
            if taker == ALL or k == taker:
                learn_(point, acting_row(point, own, k), k, taken, lanes)
            else:
                lanes.sums.counters[k, CLOCK] += lesson.ticks  # frozen otherwise
        after_(point, rho, lesson, largest, turns, lanes, own)

    return lesson_


def any_of(lane: Lane[Given]) -> Adaptation[Given]:
    """The adaptation in the flags."""
    alone_before_, _ = stand_alone(lane)
    master_before_, master_after_ = master_of(lane)
    bob_before_, bob_after_ = bob_of(lane)
    bank_before_, bank_after_ = bank_of(lane)

    @part
    def before_(point: Point, lesson: Lesson, lanes: Given, own: Adapting) -> tuple[int, int, int]:
        adaptation = point.flags[ADAPT]
        if adaptation == MASTER:
            return master_before_(point, lesson, lanes, own)
        if adaptation == BOB:
            return bob_before_(point, lesson, lanes, own)
        if adaptation == BANK:
            return bank_before_(point, lesson, lanes, own)
        return alone_before_(point, lesson, lanes, own)

    @part
    def after_(
        point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Given, own: Adapting
    ) -> None:
        adaptation = point.flags[ADAPT]
        if adaptation == MASTER:
            master_after_(point, rho, lesson, largest, turns, lanes, own)
        elif adaptation == BOB:
            bob_after_(point, rho, lesson, largest, turns, lanes, own)
        elif adaptation == BANK:
            bank_after_(point, rho, lesson, largest, turns, lanes, own)

    return Adaptation(before_, after_)


def adaptation_of(kind: int, lane: Lane[Given]) -> Adaptation[Given]:
    """The adaptation of this kind."""
    if kind == MASTER:
        return master_of(lane)
    if kind == BOB:
        return bob_of(lane)
    return bank_of(lane) if kind == BANK else stand_alone(lane)
