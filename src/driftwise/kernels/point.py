"""What a policy compiles to, what a state is made of, and the bundles of arrays that kernels hand on.

A policy is a vector of flags and a table of numbers, a row per lane. A state is two packed arrays, floats and ints, cut
into named groups; the flags say how large each group is and where it begins, so that a compiled entry takes a policy
and a state as four arrays, scratch as a fifth, and cuts them into bundles just inside. Entries allocate nothing, and so
count no references, which would cost both them and the compiler.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driftwise.kernels import piece
from driftwise.kernels.groups import COUNTERS as COUNTERS
from driftwise.kernels.groups import KEY, LAST_GROUP, SIZE_AT, bundle_of
from driftwise.kernels.groups import MOMENTS as MOMENTS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# ------------------------------------------------------------------------------------------ the vector of flags

# What the policy is.
MEMORY, RULE, RADIUS, LINK, ESTIMATE, SOLVER, ADAPT, TIE = 0, 1, 2, 3, 4, 5, 6, 7
# How large its state is, and where its groups begin (kernels/groups.py).
(
    DIM, LANES, TWINS, ROOM, ATOMS, PLAYED, ESTIMATES, SCORES, BEFORE, LIMITS, NOTES, CURSORS, MARKS, LAGS, GAUGES,
    LEVELS, FILTERS,
) = SIZE_AT.values()  # fmt: skip
# What a rule that samples draws.
DRAWN = LAST_GROUP + 1
FLAGS = LAST_GROUP + 2

# Memories.
KEEP, FADE, WINDOW, RESTART, TREND = 0, 1, 2, 3, 4
# At listed times; 5 and 6 are those of the recipes in docs/extending.md and tests/extending_power.md.
RESTART_AT = 7
# Linear rules: one covariance, two, and two with the slip of the published code.
ONE_MATRIX, TWO_MATRIX, TWO_AS_PUBLISHED = 0, 1, 2
# Generalized linear rules: GLB (V⁻¹ projection), SCB (H(θ)⁻¹ projection), SC-D-GLUCB (none), posterior (none).
GLB, SCB, SC_D, POSTERIOR = 3, 4, 5, 6
# Estimates from the history, or without one.
EXACT, ONE_PASS = 0, 1
# Who solves for the estimate: the compiled lesson, or the policy's owner afterwards.
INSIDE, OUTSIDE = 0, 1
# What is drawn: θ itself, one multiplier of all bonuses, or its absolute value.
THETA, MULTIPLIER, UPWARD = 0, 1, 2
# Adaptations.
ALONE, MASTER, BOB, BANK = 0, 1, 2, 3

# ------------------------------------------------------------------------------------------ the table

# Columns of a lane.
GAMMA, LOG_GAMMA, LENGTH, LAM, LOG_DELTA, S, L, R, EXPLORE, BETA = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
FORGET, REG, SLOPE_MOST, SLOPE_LEAST, RANGE, HORIZON = 10, 11, 12, 13, 14, 15
# Columns of an adaptation, the same in every row. MASTER: first and last order, scale of its tests.
FIRST_ORDER, LAST_ORDER, TEST_SCALE = 16, 17, 18
# BOB: its rounds and those of a block, payoff = base + scale·rewards, share of exploration.
END, BLOCK_LENGTH, PAY_BASE, PAY_SCALE, MIX = 19, 20, 21, 22, 23
# The bank: ridge and noise of the scores, share, margin, gap, where to return, the judge's κ.
SCORE_RIDGE, SCORE_NOISE, SHARE, MARGIN, GAP, BACK, KAPPA = 24, 25, 26, 27, 28, 29, 30
# A lane again: the ridge of its slope in ridges of θ (0: it has no slope), the clock it wakes at, how fast the noise is
# learned (0: it is told), and how the posterior quantile widens with what the lane has seen (0: it does not).
STIFFNESS, WAKES, LEARNS, WIDENS = 31, 32, 33, 34
# A lane with a level apart: how the level fades, and the ridge of its slope in those of the level (0: it has none).
LEVEL_GAMMA, LEVEL_LOG_GAMMA, LEVEL_STIFFNESS = 35, 36, 37
# Audits, the same in every row: their probability times √t, and the lane whose arms are looked at.
AUDIT, AUDIT_LANE = 38, 39
# The ball that a generalized linear estimate is brought into: S, or infinite.
BALL = 40
# Columns behind these are the times that a memory lists.
COLUMNS = 41

# ------------------------------------------------------------------------------------------ groups of a state

# Columns of a lane's counters: time, observations, sums of weights and of squared weights, last restart, observations
# dropped, weight lost with atoms that found no place, solver's failures.
CLOCK, COUNT, WEIGHT, SQUARES, SINCE, DROPPED, LOST, FAILED = range(COUNTERS)

# A level's filter: what is left of the first guess, with its lags and their squares; the same of what was seen; and
# behind these moments the sums of (x, r), without and with lags. A lag is counted as a time, below 0.
GUESS, GUESS_TIME, GUESS_SQUARE, MASS, TIME, TIME_SQUARE = range(MOMENTS)

# Places in the cursor: of the ring, oldest, how many, removals since the sums were rebuilt; atoms in use.
HEAD, SIZE, REMOVED, USED = 0, 1, 2, 3
CURSOR = 4

# Places in the key.
KEY_LOW, KEY_HIGH = range(KEY)


class Point(NamedTuple):
    """A policy as the kernels see it."""

    flags: Ints
    table: Floats


class Sums(NamedTuple):
    """Weighted sums: G (K, d, d) and its twin of squared weights (lower triangles), b (K, d), counters (K, 8).

    A memory that follows a trend has them a second and a third time, every weight times the lag and its square.
    """

    G: Floats
    twin: Floats
    b: Floats
    counters: Floats
    lag: Floats
    lag_square: Floats
    lag_reward: Floats


class History(NamedTuple):
    """Observations one by one, and as atoms.

    ring (capacity, d+2) holds x, reward and birth; atoms (d, capacity) the distinct vectors, weights and targets
    (K, capacity) their Σw and Σwr.
    """

    ring: Floats
    cursor: Ints
    atoms: Floats
    weights: Floats
    targets: Floats


class Estimate(NamedTuple):
    """theta (K, d) is θ̂, shown (K, d) the point the rule plays with, H (K, d, d) the Hessian."""

    theta: Floats
    shown: Floats
    H: Floats


class Adapting(NamedTuple):
    """What an adaptation keeps: a key to draw with, whole numbers and others, a score per memory, MASTER's `before`."""

    key: Ints
    marks: Ints
    notes: Floats
    scores: Floats
    before: Floats


class Lesson(NamedTuple):
    """Time passes by `ticks`, then a reward comes for column `arm` of X[at], chosen `age` ago; none if arm < 0."""

    X: Floats
    at: int
    arm: int
    reward: float
    ticks: float
    age: float


# What an entry reports by value: all is well, or a cursor or mark of the state lies out of range. An entry that finds
# the best arm reports that, and DAMAGED.
FINE, DAMAGED = 0, -1


@piece
def sound_cursor(history: History) -> bool:
    """Whether a cursor points into its ring and its atoms: compiled code does not check bounds."""
    cursor, room = history.cursor, history.ring.shape[0]
    if cursor.size == 0:
        return True
    good = cursor[SIZE] >= 0 and cursor[SIZE] <= room and cursor[HEAD] >= 0 and cursor[HEAD] < max(room, 1)
    return bool(good and cursor[USED] >= 0 and cursor[USED] <= history.atoms.shape[1])


sums_of = bundle_of(Sums, "floats")
history_of = bundle_of(History, "floats, ints")
estimate_of = bundle_of(Estimate, "floats")
adapting_of = bundle_of(Adapting, "floats, ints")
