"""MASTER over any lane: instances on many scales, tests for a change, and a schedule that can be recomputed.

A lane is given by its pieces (lane.py). The instance that chose learns; the others do not change, except for their
clocks.
"""

from __future__ import annotations

import math

from driftwise._internal.elementary import LN2, exp
from driftwise.kernels import part, piece
from driftwise.kernels.adapt.book import (
    ACTIVE,
    BLOCK,
    BLOCKS,
    EXCESS,
    FIRED_ONE,
    FIRED_TWO,
    LANE_MARKS,
    LEAST,
    NONE,
    ORDER,
    PER_LANE,
    RESTARTS,
    REWARDS,
    ROUND,
    TICK,
    pass_time_,
    to_clear_,
)
from driftwise.kernels.adapt.lane import Adaptation, Given, Lane
from driftwise.kernels.chance import uniform
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import (
    CLOCK,
    DROPPED,
    FIRST_ORDER,
    KEY_HIGH,
    KEY_LOW,
    LAST_ORDER,
    TEST_SCALE,
    Floats,
    Lesson,
    Point,
)


@piece
def schedule_(own: Adapting) -> None:
    """At the start of a round: begin instances as the draws say; the shortest one that covers the round acts.

    At offset τ of a block of order n, an instance of order m < n with 2^m | τ begins with probability 2^{-(n-m)/2};
    that of order n begins with the block. Equal orders never overlap, so each has one lane.
    """
    key, marks = own.key, own.marks
    offset = marks[ROUND] - marks[BLOCK]
    order = marks[ORDER]
    size = 1
    for m in range(order + 1):
        if offset % size != 0:  # nor is it a multiple of any larger power
            break
        at = LANE_MARKS + PER_LANE * m
        begins = offset == 0
        if m < order:
            chance = exp(-0.5 * (order - m) * LN2)
            begins = uniform(key[KEY_LOW], key[KEY_HIGH], marks[BLOCK], offset, m) < chance
        if begins:
            marks[at] = marks[ROUND]
            marks[at + 1] = marks[ROUND] + size
            marks[at + 2] = 1
            own.before[m] = own.notes[REWARDS]
        size *= 2
    for m in range(order + 1):
        if marks[LANE_MARKS + PER_LANE * m + 1] > marks[ROUND]:
            marks[ACTIVE] = m
            return


@piece
def master_lane(own: Adapting, born_in: int) -> int:
    """The lane that acted in a round of the current block, if its instance still exists; otherwise -1.

    The schedule is recomputed from the key, so that a late reward finds the instance that chose.
    """
    key, marks = own.key, own.marks
    offset = born_in - marks[BLOCK]
    if offset < 0:
        return -1
    order = marks[ORDER]
    size = 1
    for m in range(order + 1):
        start = offset - offset % size
        begun = m == order
        if not begun:
            chance = exp(-0.5 * (order - m) * LN2)
            begun = uniform(key[KEY_LOW], key[KEY_HIGH], marks[BLOCK], start, m) < chance
        if begun:
            return m if marks[LANE_MARKS + PER_LANE * m] == marks[BLOCK] + start else -1
        size *= 2
    return -1


@piece
def begin_block_(own: Adapting, order: int) -> None:
    """Begin a block at the next round. The instances of the last block end."""
    marks = own.marks
    marks[BLOCK] = marks[ROUND]
    marks[ORDER] = order
    marks[BLOCKS] += 1
    own.notes[LEAST] = math.inf
    own.notes[EXCESS] = 0.0
    for m in range(own.before.size):
        marks[LANE_MARKS + PER_LANE * m] = -1
        marks[LANE_MARKS + PER_LANE * m + 1] = -1


@piece
def master_test_(point: Point, own: Adapting, largest: float, reward: float, rho: Floats) -> bool:
    """After the reward of a round with largest index `largest`: whether one of the tests fires.

    rho[t] is ρ̂(t). Test 1, for each instance that ends now: its mean reward ≥ U + 9ρ̂(2^m); Test 2: the mean of
    index - reward over the block ≥ 3ρ̂(rounds so far).
    """
    marks, notes, scale = own.marks, own.notes, point.table[0, TEST_SCALE]
    notes[LEAST] = min(notes[LEAST], largest)
    notes[EXCESS] += largest - reward
    notes[REWARDS] += reward
    if scale == math.inf:
        return False
    done = marks[ROUND] + 1
    fired = False
    for m in range(marks[ORDER] + 1):
        at = LANE_MARKS + PER_LANE * m
        if marks[at + 1] == done:
            size = marks[at + 1] - marks[at]
            average = (notes[REWARDS] - own.before[m]) / size
            if average >= notes[LEAST] + 9.0 * scale * rho[min(size, rho.size - 1)]:
                marks[FIRED_ONE] += 1
                fired = True
    so_far = done - marks[BLOCK]
    if notes[EXCESS] / so_far >= 3.0 * scale * rho[min(so_far, rho.size - 1)]:
        marks[FIRED_TWO] += 1
        fired = True
    return fired


@piece
def master_turn_(point: Point, own: Adapting, fired: bool) -> None:
    """At the end of a round: after a test a new block of the first order begins, after a block's end one of the next
    order.
    """
    marks, table = own.marks, point.table
    marks[ROUND] += 1
    length = 1 << int(marks[ORDER])
    if fired:
        marks[RESTARTS] += 1
        begin_block_(own, int(table[0, FIRST_ORDER]))
    elif marks[ROUND] - marks[BLOCK] >= length:
        begin_block_(own, min(int(table[0, LAST_ORDER]), marks[ORDER] + 1))
    schedule_(own)


@piece
def master_taker(own: Adapting, lesson: Lesson) -> int:
    """The lane that learns: the active one or, for a late reward, the one that chose; -1 if that no longer exists."""
    if lesson.arm >= 0 and lesson.age > 0.0:
        return master_lane(own, math.ceil(own.notes[TICK] - lesson.age) - 1)
    return int(own.marks[ACTIVE])


def master_of(lane: Lane[Given]) -> Adaptation[Given]:
    """MASTER over the lanes of a family."""
    fresh_ = lane.fresh_

    @part
    def before_(point: Point, lesson: Lesson, lanes: Given, own: Adapting) -> tuple[int, int, int]:
        """The lane that learns, none if its instance no longer exists; the arm; how many rounds end."""
        turns = pass_time_(own, lesson.ticks)
        taker = master_taker(own, lesson)
        if taker < 0:
            lanes.sums.counters[0, DROPPED] += 1.0
            taker = NONE
        return taker, lesson.arm, turns

    @part
    def after_(
        point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Given, own: Adapting
    ) -> None:
        """Tests, then the schedule. Instances that begin are cleared and keep the time."""
        count, fired = lanes.sums.counters, False
        if lesson.arm >= 0:
            fired = master_test_(point, own, largest, lesson.reward, rho)
        for turn in range(turns):
            master_turn_(point, own, fired and turn == 0)
            for k in range(count.shape[0]):
                if to_clear_(own, k):
                    ticked = count[k, CLOCK]
                    fresh_(point, k, lanes)
                    count[k, CLOCK] = ticked

    return Adaptation(before_, after_)
