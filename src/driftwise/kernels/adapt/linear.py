"""The compiled entries of linear policies that adapt: MASTER, BOB and the bank over lanes of the linear family."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from driftwise._internal.elementary import log1p
from driftwise.kernels import formula, part, piece
from driftwise.kernels.adapt.book import sound_marks
from driftwise.kernels.adapt.lane import Lane
from driftwise.kernels.adapt.lesson import KINDS, LessonOfLanes, adaptation_of, any_of, lesson_under, who_acts
from driftwise.kernels.foretell import LaneScratch, fill_slots_, foretell_eight_, lane_shapes
from driftwise.kernels.groups import Adapting, History, Sums, adapting_of, history_of, sums_of
from driftwise.kernels.index import ScoreScratch
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.linear import learning_of, linear_learn_, linear_scores_
from driftwise.kernels.memories.phases import Learn
from driftwise.kernels.memories.sums import follow_, fresh_lane_
from driftwise.kernels.point import (
    ADAPT,
    MEMORY,
    RULE,
    SCORE_NOISE,
    SCORE_RIDGE,
    Floats,
    Ints,
    Lesson,
    Point,
    sound_cursor,
)
from driftwise.kernels.rounds import Family, Teaches
from driftwise.kernels.scratch import Shapes, carved_from


class BankScratch(NamedTuple):
    """Scratch for weighing memories: slots for eight of them, and every lane's surprise."""

    slots: LaneScratch
    surprise: Floats


@formula
def bank_shapes(d: int, lanes: int) -> Shapes:
    """The shapes of its fields."""
    return lane_shapes(d), (lanes,)


bank_scratch_size, bank_scratch_of = carved_from(BankScratch, bank_shapes)


class Lanes(NamedTuple):
    """Lanes of the linear family, and scratch for weighing memories."""

    sums: Sums
    history: History
    surprise: Floats
    slots: LaneScratch


@part
def lane_fresh_(point: Point, lane: int, lanes: Lanes) -> None:
    """Clear a lane."""
    fresh_lane_(lane, lanes.sums, lanes.history)


@part
def lane_foretell_(point: Point, lesson: Lesson, lanes: Lanes, own: Adapting) -> bool:
    """The surprise of every memory: -log N(r; x'θ, R²(1 + ‖x‖²)) up to a constant, θ and ‖x‖ by G + ridge·I.

    Eight at a time; if fewer are left, the last one fills their slots. A single memory is not weighed.
    """
    slots, sums, count = lanes.slots, lanes.sums, lanes.sums.G.shape[0]
    if lesson.arm < 0 or count == 1:
        return False
    noise, ridge = point.table[0, SCORE_NOISE], point.table[0, SCORE_RIDGE]
    for first in range(0, count, EIGHT):
        for slot in range(EIGHT):
            slots.who[slot] = min(first + slot, count - 1)
            slots.ridge[slot] = ridge
        fill_slots_(lesson.X, lesson.at, lesson.arm, sums.G, sums.b, slots)
        foretell_eight_(slots)
        for slot in range(min(EIGHT, count - first)):
            error, square = (lesson.reward - slots.value[slot]) / noise, slots.square[slot]
            lanes.surprise[first + slot] = 0.5 * (log1p(square) + error * error / (1.0 + square))
    return True


@part
def lane_follow_(lane: int, other: int, lanes: Lanes) -> None:
    """Replace the observations of a lane by those of another."""
    follow_(lane, other, lanes.sums)


def linear_lane_of(learn_: Learn) -> Lane[Lanes]:
    """A lane that learns like this."""

    @part
    def lane_learn_(point: Point, row: int, lane: int, lesson: Lesson, lanes: Lanes) -> None:
        learn_(point, row, lane, lesson, lanes.sums, lanes.history)

    return Lane(lane_learn_, lane_foretell_, lane_follow_, lane_fresh_)


# ------------------------------------------------------------------------------------------ the family


class AdaptiveLinear(NamedTuple):
    """A state with lanes, and the data of the adaptation."""

    point: Point
    sums: Sums
    history: History
    own: Adapting


@piece
def adaptive_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> AdaptiveLinear:
    """A packed state as the family sees it."""
    own = adapting_of(flags, floats, ints)
    return AdaptiveLinear(Point(flags, table), sums_of(flags, floats), history_of(flags, floats, ints), own)


@piece
def adaptive_sound(view: AdaptiveLinear) -> bool:
    """Whether cursor and marks lie in range."""
    return sound_cursor(view.history) and sound_marks(view.point, view.own)


@piece
def adaptive_score_(view: AdaptiveLinear, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the lane that acts; the row that acted."""
    lane, row = who_acts(view.point, view.own)
    linear_scores_(view.point, row, lane, X, at, view.sums, scores)
    return row


@piece
def adaptive_scratch(view: AdaptiveLinear, scratch: Floats, start: int, d: int) -> BankScratch:
    """Scratch of the bank from an offset on."""
    return bank_scratch_of(scratch, start, d, view.sums.G.shape[0])


def adaptive_lesson(lesson_of_lanes_: LessonOfLanes[Lanes]) -> Teaches[AdaptiveLinear, BankScratch]:
    """The lanes learn, then the adaptation has its turn."""

    @piece
    def lesson_(view: AdaptiveLinear, work: BankScratch, rho: Floats, largest: float, lesson: Lesson) -> None:
        lanes = Lanes(view.sums, view.history, work.surprise, work.slots)
        lesson_of_lanes_(view.point, rho, lesson, largest, lanes, view.own)

    return lesson_


def adaptive_bound(
    family: Family[AdaptiveLinear, BankScratch], flags: Ints
) -> Family[AdaptiveLinear, BankScratch]:
    """The family with only a policy's adaptation and the lessons of its memory."""
    name, lesson_ = _lesson_of(int(flags[ADAPT]), int(flags[MEMORY]), int(flags[RULE]))
    return family._replace(name=f"{family.name}_{name}", lesson_=lesson_)


@cache
def _lesson_of(kind: int, memory: int, rule: int) -> tuple[str, Teaches[AdaptiveLinear, BankScratch]]:
    name, learn_ = learning_of(memory, rule)
    lane = linear_lane_of(learn_)
    return f"{KINDS[kind]}_{name}", adaptive_lesson(lesson_under(adaptation_of(kind, lane), lane))


_LANE = linear_lane_of(linear_learn_)
ADAPTIVE_LINEAR: Family[AdaptiveLinear, BankScratch] = Family(
    "adaptive_linear", adaptive_view, adaptive_sound, adaptive_score_, adaptive_scratch,
    adaptive_lesson(lesson_under(any_of(_LANE), _LANE)), bound=adaptive_bound,
)  # fmt: skip
