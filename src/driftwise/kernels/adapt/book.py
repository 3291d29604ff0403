"""Bookkeeping of the adaptations to unknown drift: the marks and notes they keep.

Nothing here knows what a lane holds. A turn leaves in a lane's marks whether the caller has to clear it. Draws are pure
functions of the state's key and of counters (kernels/chance.py), so that a schedule can be recomputed and stepped,
compiled and resumed runs agree. Settings are columns of the table, the same in every row.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.binding import unbound
from driftwise.kernels.point import ADAPT, BOB, MASTER, Adapting, Point

# Marks: rounds done, the lane that acts, the row of the table it acts by.
ROUND, ACTIVE, ROW = 0, 1, 2
# MASTER: first round of the block, its order, blocks begun, firings of its two tests, restarts they caused.
BLOCK, ORDER, BLOCKS, FIRED_ONE, FIRED_TWO, RESTARTS = 3, 4, 5, 6, 7, 8
# The bank: lanes that took over a shorter one's data.
TAKEN_OVER = 9
LANE_MARKS = 10  # from here on, 3 numbers a lane: first round of its instance (-1: none), its end, whether to clear it
PER_LANE = 3

# Notes: time in ticks. MASTER: least index of the block, sum of index - reward, rewards so far (and in `before`, those
# before each instance). BOB: rewards of the block (and in `scores`, the log score of every row; for the bank, weights).
TICK, LEAST, EXCESS, REWARDS, PAYOFF = 0, 1, 2, 3, 4
NOTE_PLACES = 5

LATEST = 1 << 53  # rounds: clocks count in doubles

# Who takes a lesson, where it is not one lane.
ALL, NONE = -1, -2

lane_fresh_ = unbound("lane_fresh_", "lets a lane begin anew, its clock included")


@piece
def sound_marks(point: Point, own: Adapting) -> bool:
    """Whether marks name lanes, rows and rounds that there are: compiled code does not check bounds."""
    marks, adaptation = own.marks, point.flags[ADAPT]
    if adaptation == BOB:
        return bool(marks[ROUND] >= 0 and marks[ROW] >= 0 and marks[ROW] < own.scores.size)
    if adaptation != MASTER:
        return True
    lanes = own.before.size
    good = marks[ACTIVE] >= 0 and marks[ACTIVE] < lanes and marks[ORDER] >= 0 and marks[ORDER] < min(lanes, 62)
    good = good and marks[BLOCK] >= 0 and marks[BLOCK] <= marks[ROUND] and marks[ROUND] < LATEST
    for m in range(lanes):
        first, end = marks[LANE_MARKS + PER_LANE * m], marks[LANE_MARKS + PER_LANE * m + 1]
        good = good and first >= -1 and first <= end and end < LATEST
    return bool(good)


@piece
def to_clear_(own: Adapting, lane: int) -> bool:
    """Whether a lane has to be cleared; asking takes the note down."""
    at = LANE_MARKS + PER_LANE * lane + 2
    due = own.marks[at] != 0
    own.marks[at] = 0
    return bool(due)


@piece
def pass_time_(own: Adapting, ticks: float) -> int:
    """Time passes; how many rounds end with it."""
    before = math.floor(own.notes[TICK])
    own.notes[TICK] += ticks
    return int(math.floor(own.notes[TICK]) - before)
