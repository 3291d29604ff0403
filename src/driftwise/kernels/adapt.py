"""Bookkeeping of the adaptations to unknown drift: which lane acts, which are cleared, how lanes are weighed.

Nothing here knows what a lane holds. `marks` are integers and `notes` floats of the state; a turn leaves in
marks[CLEAR + k] whether the caller has to clear lane k. Draws are pure functions of a key and counters
(kernels/chance.py), so that a schedule can be recomputed and stepped, compiled and resumed runs agree.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.chance import uniform
from driftwise.kernels.point import ADAPT, Floats, Ints

# Adaptations.
ALONE, MASTER, BOB, BANK = 0, 1, 2, 3

# Marks that all share: the key in two halves, rounds done, the lane that acts, the row of the table it acts by.
KEY_LOW, KEY_HIGH, ROUND, ACTIVE, ROW = 0, 1, 2, 3, 4
# MASTER: first round of the block, its order, blocks begun, firings of its two tests, restarts they caused.
BLOCK, ORDER, BLOCKS, FIRED_ONE, FIRED_TWO, RESTARTS = 5, 6, 7, 8, 9, 10
# The bank: lanes that took over a shorter one's data.
TAKEN_OVER = 5
LANES = 11  # from here on, 3 numbers a lane: first round of its instance (-1: none), its end, whether to clear it
PER_LANE = 3

# Notes of MASTER: least index of the block, sum of index - reward, rewards so far; then rewards before each instance.
LEAST, EXCESS, REWARDS, BEFORE = 0, 1, 2, 3
# Notes of BOB: rewards of the block; then the log score of every row. Of the bank: the weights.
PAYOFF, SCORES = 0, 1

# An adaptation's settings. MASTER: first and last order, scale of its tests. BOB: horizon, length of a block, payoff
# = base + scale·rewards, share of exploration. Bank: ridge of the scoring estimate, share,
# margin, gap, where to return, noise of the scores (linear), the judge's κ (generalized linear).
FIRST_, LAST_, TEST_ = 0, 1, 2
HORIZON_, LENGTH_, LOW_, SCALE_, MIX_ = 0, 1, 2, 3, 4
RIDGE_, SHARE_, MARGIN_, GAP_, RETURN_, NOISE_, KAPPA_ = 0, 1, 2, 3, 4, 5, 6
SETTINGS = 7


@piece
def to_clear_(marks: Ints, lane: int) -> bool:
    """Whether a lane has to be cleared; asking takes the note down."""
    at = LANES + PER_LANE * lane + 2
    due = marks[at] != 0
    marks[at] = 0
    return bool(due)


@piece
def schedule_(marks: Ints, notes: Floats) -> None:
    """MASTER at the start of a round: fresh instances where the draws say so; the shortest one covering it acts.

    At offset τ of a block of order n, an instance of order m < n with 2^m | τ begins with probability 2^{-(n-m)/2};
    that of order n begins with the block. Equal orders never overlap, so each has one lane.
    """
    offset = marks[ROUND] - marks[BLOCK]
    order = marks[ORDER]
    size = 1
    for m in range(order + 1):
        if offset % size != 0:  # nor is it a multiple of any larger power
            break
        at = LANES + PER_LANE * m
        begins = offset == 0
        if m < order:
            chance = math.exp(-0.5 * (order - m) * math.log(2.0))
            begins = uniform(marks[KEY_LOW], marks[KEY_HIGH], marks[BLOCK], offset, m) < chance
        if begins:
            marks[at] = marks[ROUND]
            marks[at + 1] = marks[ROUND] + size
            marks[at + 2] = 1
            notes[BEFORE + m] = notes[REWARDS]
        size *= 2
    for m in range(order + 1):
        if marks[LANES + PER_LANE * m + 1] > marks[ROUND]:
            marks[ACTIVE] = m
            return


@piece
def master_lane(marks: Ints, born_in: int) -> int:
    """The lane that acted in a round of the current block, if its instance is still there; -1 if not.

    The schedule is recomputed from the key, so that a late reward finds the instance that chose.
    """
    offset = born_in - marks[BLOCK]
    if offset < 0:
        return -1
    order = marks[ORDER]
    size = 1
    for m in range(order + 1):
        start = offset - offset % size
        begun = m == order
        if not begun:
            chance = math.exp(-0.5 * (order - m) * math.log(2.0))
            begun = uniform(marks[KEY_LOW], marks[KEY_HIGH], marks[BLOCK], start, m) < chance
        if begun:
            return m if marks[LANES + PER_LANE * m] == marks[BLOCK] + start else -1
        size *= 2
    return -1


@piece
def begin_block_(marks: Ints, notes: Floats, order: int) -> None:
    """A block of MASTER begins at the coming round; instances of the last one are over."""
    marks[BLOCK] = marks[ROUND]
    marks[ORDER] = order
    marks[BLOCKS] += 1
    notes[LEAST] = math.inf
    notes[EXCESS] = 0.0
    lanes = (marks.size - LANES) // PER_LANE
    for m in range(lanes):
        marks[LANES + PER_LANE * m] = -1
        marks[LANES + PER_LANE * m + 1] = -1


@piece
def master_test_(marks: Ints, notes: Floats, largest: float, reward: float, rho: Floats, scale: float) -> bool:
    """After the reward of a round with largest index `largest`: whether either test calls for a restart.

    rho[t] is ρ̂(t). Test 1, for each instance that ends now: its mean reward ≥ U + 9ρ̂(2^m); Test 2: the mean of
    index - reward over the block ≥ 3ρ̂(rounds so far).
    """
    notes[LEAST] = min(notes[LEAST], largest)
    notes[EXCESS] += largest - reward
    notes[REWARDS] += reward
    if scale == math.inf:
        return False
    done = marks[ROUND] + 1
    fired = False
    for m in range(marks[ORDER] + 1):
        at = LANES + PER_LANE * m
        if marks[at + 1] == done:
            size = marks[at + 1] - marks[at]
            average = (notes[REWARDS] - notes[BEFORE + m]) / size
            if average >= notes[LEAST] + 9.0 * scale * rho[min(size, rho.size - 1)]:
                marks[FIRED_ONE] += 1
                fired = True
    so_far = done - marks[BLOCK]
    if notes[EXCESS] / so_far >= 3.0 * scale * rho[min(so_far, rho.size - 1)]:
        marks[FIRED_TWO] += 1
        fired = True
    return fired


@piece
def master_turn_(marks: Ints, notes: Floats, fired: bool, first: int, last: int) -> None:
    """The round is over: a block begins anew at order `first` after a test, at the next order after its end."""
    marks[ROUND] += 1
    length = 1 << int(marks[ORDER])
    if fired:
        marks[RESTARTS] += 1
        begin_block_(marks, notes, first)
    elif marks[ROUND] - marks[BLOCK] >= length:
        begin_block_(marks, notes, min(last, marks[ORDER] + 1))
    schedule_(marks, notes)


@piece
def bob_probability(notes: Floats, row: int, rows: int, mix: float) -> float:
    """p_j = (1-g) s_j/Σs + g/K, the scores kept as logarithms."""
    top = -math.inf
    for j in range(rows):
        top = max(top, notes[SCORES + j])
    total = 0.0
    for j in range(rows):
        total += math.exp(notes[SCORES + j] - top)
    return (1.0 - mix) * math.exp(notes[SCORES + row] - top) / total + mix / rows


@piece
def bob_draw_(marks: Ints, notes: Floats, rows: int, mix: float, block: int) -> None:
    """At a block's start: draw the row to play by; the lane is cleared."""
    u = uniform(marks[KEY_LOW], marks[KEY_HIGH], block, 0, 0)
    total = 0.0
    marks[ROW] = rows - 1
    for j in range(rows):
        total += bob_probability(notes, j, rows, mix)
        if u < total:
            marks[ROW] = j
            break
    notes[PAYOFF] = 0.0
    marks[LANES + 2] = 1


@piece
def bob_turn_(marks: Ints, notes: Floats, reward: float, rows: int, settings: Floats) -> None:
    """The round is over: at a block's end the row played is paid and the next drawn; the last block pays nothing."""
    notes[PAYOFF] += reward
    marks[ROUND] += 1
    block = int(settings[LENGTH_])
    if marks[ROUND] % block == 0 and marks[ROUND] < settings[HORIZON_]:
        payoff = settings[LOW_] + notes[PAYOFF] * settings[SCALE_]
        p = bob_probability(notes, marks[ROW], rows, settings[MIX_])
        notes[SCORES + marks[ROW]] += settings[MIX_] * payoff / (rows * p)
        bob_draw_(marks, notes, rows, settings[MIX_], marks[ROUND] // block)


@piece
def bank_pick(notes: Floats, lanes: int, margin: float) -> int:
    """The longest memory whose weight is within a factor e^-margin of the best (lanes are sorted by memory)."""
    top = 0.0
    for k in range(lanes):
        top = max(top, notes[SCORES + k])
    least = top * math.exp(-margin)
    for k in range(lanes - 1, -1, -1):
        if notes[SCORES + k] >= least:
            return k
    return 0


@piece
def bank_pay_(notes: Floats, lanes: int, surprise: Floats, share: float) -> None:
    """weight·e^-surprise, normalised, then mixed with the uniform: a memory that was wrong for long can come back."""
    least = math.inf
    for k in range(lanes):
        least = min(least, surprise[k])
    total = 0.0
    for k in range(lanes):
        notes[SCORES + k] *= math.exp(least - surprise[k])
        total += notes[SCORES + k]
    keep = (1.0 - share) / total
    for k in range(lanes):
        notes[SCORES + k] = keep * notes[SCORES + k] + share / lanes


@piece
def bank_best(notes: Floats, lanes: int) -> int:
    """The memory of largest weight, the longer one in a tie."""
    best = 0
    for k in range(1, lanes):
        if notes[SCORES + k] >= notes[SCORES + best]:
            best = k
    return best


@piece
def acting_lane(flags: Ints, marks: Ints, notes: Floats, settings: Floats, lanes: int) -> int:
    """The lane whose index is played."""
    if flags[ADAPT] == MASTER:
        return int(marks[ACTIVE])
    if flags[ADAPT] == BOB or flags[ADAPT] == ALONE:
        return 0
    return bank_pick(notes, lanes, settings[MARGIN_])


@piece
def acting_row(flags: Ints, marks: Ints, lane: int) -> int:
    """The row of the table it plays by: the only one, the one drawn, its own."""
    if flags[ADAPT] == MASTER or flags[ADAPT] == ALONE:
        return 0
    if flags[ADAPT] == BOB:
        return int(marks[ROW])
    return lane
