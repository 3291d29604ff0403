"""BOB over any lane: one lane, cleared at every block, is played with a row of the table that is drawn for the
block."""

from __future__ import annotations

import math

from driftwise._internal.elementary import exp
from driftwise.kernels import part, piece
from driftwise.kernels.adapt.book import ALL, LANE_MARKS, PAYOFF, ROUND, ROW, pass_time_, to_clear_
from driftwise.kernels.adapt.lane import Adaptation, Given, Lane
from driftwise.kernels.chance import uniform
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import (
    BLOCK_LENGTH,
    CLOCK,
    DROPPED,
    END,
    KEY_HIGH,
    KEY_LOW,
    MIX,
    PAY_BASE,
    PAY_SCALE,
    Floats,
    Lesson,
    Point,
)


@piece
def bob_probability(scores: Floats, row: int, mix: float) -> float:
    """p_j = (1-g) s_j/Σs + g/K. Scores are stored as logarithms."""
    rows = scores.size
    top = -math.inf
    for j in range(rows):
        top = max(top, scores[j])
    total = 0.0
    for j in range(rows):
        total += exp(scores[j] - top)
    return (1.0 - mix) * exp(scores[row] - top) / total + mix / rows


@piece
def bob_draw_(point: Point, own: Adapting, block: int) -> None:
    """At the start of a block: draw the row to play. The lane is cleared."""
    rows, mix = own.scores.size, point.table[0, MIX]
    u = uniform(own.key[KEY_LOW], own.key[KEY_HIGH], block, 0, 0)
    total = 0.0
    own.marks[ROW] = rows - 1
    for j in range(rows):
        total += bob_probability(own.scores, j, mix)
        if u < total:
            own.marks[ROW] = j
            break
    own.notes[PAYOFF] = 0.0
    own.marks[LANE_MARKS + 2] = 1


@piece
def bob_turn_(point: Point, own: Adapting) -> None:
    """At the end of a round: at a block's end pay the row played and draw the next. The last block pays nothing."""
    marks, table = own.marks, point.table
    marks[ROUND] += 1
    block = int(table[0, BLOCK_LENGTH])
    if marks[ROUND] % block == 0 and marks[ROUND] < table[0, END]:
        payoff = table[0, PAY_BASE] + own.notes[PAYOFF] * table[0, PAY_SCALE]
        p = bob_probability(own.scores, marks[ROW], table[0, MIX])
        own.scores[marks[ROW]] += table[0, MIX] * payoff / (own.scores.size * p)
        bob_draw_(point, own, marks[ROUND] // block)


@piece
def bob_refuses(own: Adapting, clock: float, lesson: Lesson) -> bool:
    """Whether a late reward belongs to a choice before the current block. clock is the lane's, before time passes."""
    late = lesson.arm >= 0 and lesson.age > 0.0 and clock + lesson.ticks - lesson.age <= 0.0
    return bool(late and own.marks[ROUND] > 0)


def bob_of(lane: Lane[Given]) -> Adaptation[Given]:
    """BOB over the lane of a family."""
    fresh_ = lane.fresh_

    @part
    def before_(point: Point, lesson: Lesson, lanes: Given, own: Adapting) -> tuple[int, int, int]:
        """The lane learns, unless the reward belongs to an earlier block. Returns how many rounds end."""
        turns, arm = pass_time_(own, lesson.ticks), lesson.arm
        if bob_refuses(own, lanes.sums.counters[0, CLOCK], lesson):
            lanes.sums.counters[0, DROPPED] += 1.0
            arm = -1
        return ALL, arm, turns

    @part
    def after_(
        point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Given, own: Adapting
    ) -> None:
        """Add a reward to the block in which it comes, whether a round ends with it or not; then end blocks."""
        if lesson.arm >= 0:
            own.notes[PAYOFF] += lesson.reward
        for _ in range(turns):
            bob_turn_(point, own)
            for k in range(lanes.sums.counters.shape[0]):
                if to_clear_(own, k):
                    fresh_(point, k, lanes)

    return Adaptation(before_, after_)
