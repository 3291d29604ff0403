"""Bookkeeping of the adaptations to unknown drift: which lane acts, which are cleared, how lanes are weighed.

Nothing here knows what a lane holds. A turn leaves in a lane's marks whether the caller has to clear it. Draws are pure
functions of the state's key and of counters (kernels/chance.py), so that a schedule can be recomputed and stepped,
compiled and resumed runs agree. Settings are columns of the table, the same in every row.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.chance import uniform
from driftwise.kernels.level import FOUR
from driftwise.kernels.memory import sloped
from driftwise.kernels.point import (
    ADAPT,
    BACK,
    BANK,
    BLOCK_LENGTH,
    BOB,
    CLOCK,
    END,
    FIRST_ORDER,
    GAMMA,
    GAP,
    KEY_HIGH,
    KEY_LOW,
    LAST_ORDER,
    MARGIN,
    MASTER,
    MIX,
    PAY_BASE,
    PAY_SCALE,
    TEST_SCALE,
    WAKES,
    Adapting,
    Floats,
    Lesson,
    Point,
    Sums,
)

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

# Two families of lanes, with a level apart and without: evidence for the first is remembered for so many rewards, each
# of which adds at most a nat (or a level would swallow jumps of preferences), and more than a nat of it is believed.
EVIDENCE_ROUNDS, MOST_EVIDENCE, BELIEVED = 4000.0, 1.0, 1.0
# Within the first: the longest memory of preferences within so many nats of the best, levels summed over.
LEVEL_MARGIN = 1.0
# What is shared there a reward: while one arm is played nothing tells these memories apart, and what was known of them
# must not be shared away.
LEVEL_SHARE = 1e-5
# The least part of its best memory's density that a bank can have given.
LEAST_DENSITY = 1e-300


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
def schedule_(own: Adapting) -> None:
    """MASTER at the start of a round: fresh instances where the draws say so; the shortest one covering it acts.

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
            chance = math.exp(-0.5 * (order - m) * math.log(2.0))
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
    """The lane that acted in a round of the current block, if its instance is still there; -1 if not.

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
            chance = math.exp(-0.5 * (order - m) * math.log(2.0))
            begun = uniform(key[KEY_LOW], key[KEY_HIGH], marks[BLOCK], start, m) < chance
        if begun:
            return m if marks[LANE_MARKS + PER_LANE * m] == marks[BLOCK] + start else -1
        size *= 2
    return -1


@piece
def begin_block_(own: Adapting, order: int) -> None:
    """A block of MASTER begins at the coming round; instances of the last one are over."""
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
    """After the reward of a round with largest index `largest`: whether either test calls for a restart.

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
    """The round is over: a block begins anew at the first order after a test, at the next after its end."""
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
def bob_probability(scores: Floats, row: int, mix: float) -> float:
    """p_j = (1-g) s_j/Σs + g/K, the scores kept as logarithms."""
    rows = scores.size
    top = -math.inf
    for j in range(rows):
        top = max(top, scores[j])
    total = 0.0
    for j in range(rows):
        total += math.exp(scores[j] - top)
    return (1.0 - mix) * math.exp(scores[row] - top) / total + mix / rows


@piece
def bob_draw_(point: Point, own: Adapting, block: int) -> None:
    """At a block's start: draw the row to play by; the lane is cleared."""
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
    """The round is over: at a block's end the row played is paid and the next drawn; the last block pays nothing."""
    marks, table = own.marks, point.table
    marks[ROUND] += 1
    block = int(table[0, BLOCK_LENGTH])
    if marks[ROUND] % block == 0 and marks[ROUND] < table[0, END]:
        payoff = table[0, PAY_BASE] + own.notes[PAYOFF] * table[0, PAY_SCALE]
        p = bob_probability(own.scores, marks[ROW], table[0, MIX])
        own.scores[marks[ROW]] += table[0, MIX] * payoff / (own.scores.size * p)
        bob_draw_(point, own, marks[ROUND] // block)


@piece
def bank_pick(weights: Floats, margin: float) -> int:
    """The longest memory whose weight is within a factor e^-margin of the best (lanes are sorted by memory)."""
    top = 0.0
    for k in range(weights.size):
        top = max(top, weights[k])
    least = top * math.exp(-margin)
    for k in range(weights.size - 1, -1, -1):
        if weights[k] >= least:
            return k
    return 0


@piece
def bank_pay_(weights: Floats, surprise: Floats, share: float) -> float:
    """weight·e^-surprise, normalised, then mixed with the uniform: a memory that was wrong for long can come back.

    A memory that still sleeps is infinitely surprised and has no weight. Returns the log of the density that all of
    them together, as they were weighed, had given.
    """
    lanes, awake = weights.size, 0
    least = math.inf
    for k in range(lanes):
        least = min(least, surprise[k])
        awake += 1 if surprise[k] < math.inf else 0
    before, total = 0.0, 0.0
    for k in range(lanes):
        before += weights[k]
        weights[k] *= math.exp(least - surprise[k])
        total += weights[k]
    keep = (1.0 - share) / total if total > 0.0 else 0.0
    for k in range(lanes):
        weights[k] = keep * weights[k] + (share / awake if surprise[k] < math.inf else 0.0)
    return math.log(max(total / before, LEAST_DENSITY)) - least


@piece
def weigh_family_(evidence: Floats, nats: float, contrast: float) -> None:
    """A reward that the lanes with a level foretold by so many nats better, of an arm so unlike those before it."""
    told = contrast * min(max(nats, -MOST_EVIDENCE), MOST_EVIDENCE)
    evidence[0] = (1.0 - 1.0 / EVIDENCE_ROUNDS) * evidence[0] + told


@piece
def level_pick(weights: Floats) -> int:
    """The longest memory of preferences whose weight, summed over levels, is near the best; its likeliest level."""
    top = 0.0
    for first in range(0, weights.size, FOUR):
        top = max(top, weights[first] + weights[first + 1] + weights[first + 2] + weights[first + 3])
    for first in range(weights.size - FOUR, -1, -FOUR):
        total, likeliest = 0.0, first
        for k in range(first, first + FOUR):
            total += weights[k]
            if weights[k] > weights[likeliest]:
                likeliest = k
        if total >= top * math.exp(-LEVEL_MARGIN):
            return likeliest
    return 0


@piece
def level_seat(weights: Floats, evidence: Floats) -> int:
    """The lane with a level that acts; -1 where no level is believed in."""
    if weights.size == 0 or evidence[0] <= BELIEVED:
        return -1
    return level_pick(weights)


@piece
def awake(point: Point, lane: int, sums: Sums) -> bool:
    """Whether a memory is in use: one that is too long for the past sleeps, for it has nothing of its own to say."""
    return bool(sums.counters[lane, CLOCK] >= point.table[lane, WAKES])


@piece
def longest_awake(point: Point, lane: int, sums: Sums) -> int:
    """The longest memory awake of a waking one's kind, with a slope or without, that is shorter: what it begins as."""
    kind, longest = sloped(point, lane), lane
    for k in range(lane):
        if sloped(point, k) == kind and awake(point, k, sums):
            longest = k
    return longest


@piece
def may_follow(point: Point, lane: int, other: int) -> bool:
    """Whether a memory is longer than another and can begin as it: one without a slope cannot as one with."""
    longer = point.table[lane, GAMMA] > point.table[other, GAMMA]
    return bool(longer and (sloped(point, lane) or not sloped(point, other)))


@piece
def bank_wake_(point: Point, own: Adapting, lane: int, source: int) -> None:
    """A memory that wakes starts like one that took data over."""
    own.scores[lane] = own.scores[source] * math.exp(-point.table[0, BACK])


@piece
def bank_best(weights: Floats) -> int:
    """The memory of largest weight, the longer one in a tie."""
    best = 0
    for k in range(1, weights.size):
        if weights[k] >= weights[best]:
            best = k
    return best


@piece
def bank_behind(point: Point, own: Adapting, best: int) -> float:
    """The weight below which a memory longer than the best one drops its data for that one's."""
    return float(own.scores[best] * math.exp(-point.table[0, GAP]))


@piece
def bank_return_(point: Point, own: Adapting, lane: int, best: int) -> None:
    """A memory that took the best one's data over starts again a little below it: after a jump all start from what
    holds."""
    own.scores[lane] = own.scores[best] * math.exp(-point.table[0, BACK])
    own.marks[TAKEN_OVER] += 1


@piece
def acting_lane(point: Point, own: Adapting) -> int:
    """The lane whose index is played: the only one, the instance on duty, the memory picked."""
    adaptation = point.flags[ADAPT]
    if adaptation == MASTER:
        return int(own.marks[ACTIVE])
    if adaptation == BANK:
        return bank_pick(own.scores, point.table[0, MARGIN])
    return 0


@piece
def acting_row(point: Point, own: Adapting, lane: int) -> int:
    """The row of the table it plays by: the only one, the one drawn, its own."""
    adaptation = point.flags[ADAPT]
    if adaptation == BOB:
        return int(own.marks[ROW])
    if adaptation == BANK:
        return lane
    return 0


@piece
def pass_time_(own: Adapting, ticks: float) -> int:
    """Time passes; how many rounds end with it."""
    before = math.floor(own.notes[TICK])
    own.notes[TICK] += ticks
    return int(math.floor(own.notes[TICK]) - before)


@piece
def master_taker(own: Adapting, lesson: Lesson) -> int:
    """The lane that takes a lesson: the active one, or for a late reward the one that chose; -1 if that is gone."""
    if lesson.arm >= 0 and lesson.age > 0.0:
        return master_lane(own, math.ceil(own.notes[TICK] - lesson.age) - 1)
    return int(own.marks[ACTIVE])


@piece
def bob_refuses(own: Adapting, clock: float, lesson: Lesson) -> bool:
    """Whether a late reward was chosen before the block that now runs; clock is the lane's, before time passes."""
    late = lesson.arm >= 0 and lesson.age > 0.0 and clock + lesson.ticks - lesson.age <= 0.0
    return bool(late and own.marks[ROUND] > 0)
