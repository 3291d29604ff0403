"""Bookkeeping of the adaptations to unknown drift: their marks and notes.

This module does not depend on the content of a lane. A turn sets a mark if the caller must clear a lane. Draws are pure
functions of the state's key and of counters (kernels/chance.py), so a schedule can be recomputed, and stepped, compiled
and resumed runs agree. Settings are columns of the table, the same in every row.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import ADAPT, BOB, MASTER, Point

# Marks: rounds done, the lane that acts, the row of the table it acts by.
ROUND, ACTIVE, ROW = 0, 1, 2
# MASTER: first round of the block, its order, blocks begun, firings of its two tests, restarts they caused.
BLOCK, ORDER, BLOCKS, FIRED_ONE, FIRED_TWO, RESTARTS = 3, 4, 5, 6, 7, 8
# The bank: the number of lanes that took over the data of a shorter one.
TAKEN_OVER = 9
LANE_MARKS = 10  # from here, 3 numbers per lane: first round of its instance (-1: none), its end, whether to clear it
PER_LANE = 3

# Notes: time in ticks. MASTER: least index of the block, sum of index - reward, rewards so far (and in `before`, those
# before each instance). BOB: rewards of the block (and in `scores`, the log score of every row; for the bank, weights).
TICK, LEAST, EXCESS, REWARDS, PAYOFF = 0, 1, 2, 3, 4
NOTE_PLACES = 5

LATEST = 1 << 53  # rounds: clocks count in doubles

# The values that stand for a lane if a lesson goes to all lanes or to none.
ALL, NONE = -1, -2


@piece
def sound_marks(point: Point, own: Adapting) -> bool:
    """Whether marks name existing lanes, rows and rounds: compiled code does not check bounds."""
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
    """Whether a lane must be cleared. Reading the mark resets it."""
    at = LANE_MARKS + PER_LANE * lane + 2
    due = own.marks[at] != 0
    own.marks[at] = 0
    return bool(due)


@piece
def pass_time_(own: Adapting, ticks: float) -> int:
    """Let time pass. Returns how many rounds end."""
    before = math.floor(own.notes[TICK])
    own.notes[TICK] += ticks
    return int(math.floor(own.notes[TICK]) - before)
