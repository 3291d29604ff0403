"""The compiled entries of linear policies that adapt: MASTER, BOB and the bank over lanes of the linear family."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import part, piece
from driftwise.kernels.adapt.book import (
    PAYOFF,
    acting_lane,
    acting_row,
    bank_behind,
    bank_best,
    bank_pay_,
    bank_return_,
    bob_refuses,
    bob_turn_,
    master_taker,
    master_test_,
    master_turn_,
    pass_time_,
    sound_marks,
    to_clear_,
)
from driftwise.kernels.foretell import Bench, foretell_eight_, seat_
from driftwise.kernels.index import Board
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.linear import linear_scores_
from driftwise.kernels.memory import clear_, follow_, fresh_lane_, learn_
from driftwise.kernels.point import (
    ADAPT,
    BANK,
    BOB,
    CLOCK,
    DROPPED,
    MASTER,
    SCORE_NOISE,
    SCORE_RIDGE,
    SHARE,
    Adapting,
    Floats,
    History,
    Ints,
    Lesson,
    Point,
    Sums,
    adapting_of,
    history_of,
    sound_cursor,
    sums_of,
)
from driftwise.kernels.rounds import Family
from driftwise.kernels.scratch import carved


class Scales(NamedTuple):
    """Scratch to weigh memories with: a bench for eight of them, and every lane's surprise."""

    bench: Bench
    surprise: Floats


scales_size, scales_of = carved(Scales, "start, d, lanes", bench="d, 0", surprise="lanes")


@part
def weigh_lanes_(point: Point, lesson: Lesson, sums: Sums, scales: Scales) -> None:
    """How surprised every memory is: -log N(r; x'θ, R²(1 + ‖x‖²)) up to a constant, θ and ‖x‖ by G + ridge·I.

    Eight at a time; where fewer are left, the last takes their seats.
    """
    bench, lanes = scales.bench, sums.G.shape[0]
    noise, ridge = point.table[0, SCORE_NOISE], point.table[0, SCORE_RIDGE]
    for first in range(0, lanes, EIGHT):
        for slot in range(EIGHT):
            bench.who[slot] = min(first + slot, lanes - 1)
            bench.ridge[slot] = ridge
        seat_(lesson.X, lesson.at, lesson.arm, sums.G, sums.b, bench)
        foretell_eight_(bench, False, False)
        for slot in range(min(EIGHT, lanes - first)):
            error, square = (lesson.reward - bench.value[slot]) / noise, bench.square[slot]
            scales.surprise[first + slot] = 0.5 * (math.log1p(square) + error * error / (1.0 + square))


@part
def master_learn_(
    point: Point, rho: Floats, lesson: Lesson, largest: float, sums: Sums, history: History, own: Adapting, turns: int
) -> None:
    """The instance that chose learns, the others stand frozen; then tests and the schedule."""
    lanes = sums.G.shape[0]
    taker = master_taker(own, lesson)
    for k in range(lanes):
        if k != taker:
            sums.counters[k, CLOCK] += lesson.ticks
    if taker >= 0:
        learn_(point, acting_row(point, own, taker), taker, lesson, sums, history)
    fired = False
    if lesson.arm >= 0:
        fired = master_test_(point, own, largest, lesson.reward, rho)
        if taker < 0:
            sums.counters[0, DROPPED] += 1.0
    for turn in range(turns):
        master_turn_(point, own, fired and turn == 0)
        for k in range(lanes):
            if to_clear_(own, k):
                clear_(k, sums)


@part
def bob_learn_(point: Point, lesson: Lesson, sums: Sums, history: History, own: Adapting, turns: int) -> None:
    """The one lane learns by the row drawn, unless the reward belongs to a block that is over."""
    arm, lane = lesson.arm, acting_lane(point, own)
    if bob_refuses(own, sums.counters[lane, CLOCK], lesson):
        sums.counters[lane, DROPPED] += 1.0
        arm = -1
    taken = Lesson(lesson.X, lesson.at, arm, lesson.reward, lesson.ticks, lesson.age)
    learn_(point, acting_row(point, own, lane), lane, taken, sums, history)
    if lesson.arm >= 0:  # a reward is paid to the block it comes in, whether a round ends with it or not
        own.notes[PAYOFF] += lesson.reward
    for _ in range(turns):
        bob_turn_(point, own)
        if to_clear_(own, lane):
            fresh_lane_(lane, sums, history)


@part
def bank_learn_(
    point: Point, lesson: Lesson, sums: Sums, history: History, own: Adapting, scales: Scales
) -> None:
    """Every memory is paid for the density it gave the reward, then learns it; those far behind follow the best."""
    lanes = sums.G.shape[0]
    if lesson.arm >= 0 and lanes > 1:
        weigh_lanes_(point, lesson, sums, scales)
        bank_pay_(own.scores, scales.surprise, point.table[0, SHARE])
    for k in range(lanes):
        learn_(point, k, k, lesson, sums, history)
    best = bank_best(own.scores)
    behind = bank_behind(point, own, best)
    for k in range(best + 1, lanes):
        if own.scores[k] < behind:
            follow_(k, best, sums)
            bank_return_(point, own, k, best)


@piece
def adaptive_learn_(
    point: Point, rho: Floats, lesson: Lesson, largest: float, sums: Sums, history: History, own: Adapting,
    scales: Scales,
) -> None:
    """A lesson for the lanes that take it, then the adaptation's turn; `largest` is the index the choice had."""
    turns = pass_time_(own, lesson.ticks)
    if point.flags[ADAPT] == MASTER:
        master_learn_(point, rho, lesson, largest, sums, history, own, turns)
    elif point.flags[ADAPT] == BOB:
        bob_learn_(point, lesson, sums, history, own, turns)
    elif point.flags[ADAPT] == BANK:
        bank_learn_(point, lesson, sums, history, own, scales)


# ------------------------------------------------------------------------------------------ the family


class AdaptiveLinear(NamedTuple):
    """A state with lanes, and what the adaptation keeps."""

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
def adaptive_score_(view: AdaptiveLinear, X: Floats, at: int, board: Board) -> int:
    """Mean and bonus of every arm by the lane that acts; the row that acted."""
    lane = acting_lane(view.point, view.own)
    row = acting_row(view.point, view.own, lane)
    linear_scores_(view.point, row, lane, X, at, view.sums, board)
    return row


@piece
def adaptive_desk(view: AdaptiveLinear, scratch: Floats, start: int, d: int) -> Scales:
    """Scales cut from a place of scratch on."""
    return scales_of(scratch, start, d, view.sums.G.shape[0])


@piece
def adaptive_lesson_(view: AdaptiveLinear, desk: Scales, rho: Floats, largest: float, lesson: Lesson) -> None:
    """The lanes that take it learn, then the adaptation has its turn."""
    adaptive_learn_(view.point, rho, lesson, largest, view.sums, view.history, view.own, desk)


ADAPTIVE_LINEAR = Family(
    "adaptive_linear", adaptive_view, adaptive_sound, adaptive_score_, adaptive_desk, adaptive_lesson_
)


# ------------------------------------------------------------------------------------------ entries
