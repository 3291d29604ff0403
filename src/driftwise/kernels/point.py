"""The compiled form of a policy, and the meaning of the numbers of a state.

A policy is a vector of flags and a table of numbers, one row per lane. A state is two packed arrays, floats and ints,
cut into named groups. The flags have the size and offset of each group, so that a compiled entry takes a policy and a
state as four arrays, scratch as a fifth, and cuts them into bundles inside. Entries allocate nothing and so count no
references, which would slow down both them and the compiler.
"""

from __future__ import annotations

from typing import NamedTuple

from driftwise.kernels import piece
from driftwise.kernels.cut import Floats as Floats
from driftwise.kernels.cut import Ints as Ints
from driftwise.kernels.cut import Matrix, Stack
from driftwise.kernels.groups import COUNTERS as COUNTERS
from driftwise.kernels.groups import FIRST_GROUP, FIRST_SIZE, KEY, LAST_GROUP
from driftwise.kernels.groups import Adapting as Adapting
from driftwise.kernels.groups import EstimateBundle as EstimateBundle
from driftwise.kernels.groups import History as History
from driftwise.kernels.groups import Sums as Sums
from driftwise.kernels.groups import adapting_of as adapting_of
from driftwise.kernels.groups import estimate_of as estimate_of
from driftwise.kernels.groups import history_of as history_of
from driftwise.kernels.groups import sums_of as sums_of

# ------------------------------------------------------------------------------------------ the vector of flags

# The kinds of its pieces.
MEMORY, RULE, RADIUS, LINK, ESTIMATE, SOLVER, ADAPT, TIE = 0, 1, 2, 3, 4, 5, 6, 7
# The sizes and offsets of its state's groups (kernels/groups.py).
(
    DIM, LANES, TWINS, ROOM, ATOMS, PLAYED, ESTIMATES, SCORES, BEFORE, LIMITS, NOTES, CURSORS, MARKS, BELIEFS, SPREADS,
    GAUGES,
) = range(FIRST_SIZE, FIRST_GROUP)  # fmt: skip
# What a rule that samples draws.
DRAWN = LAST_GROUP + 1
FLAGS = LAST_GROUP + 2

# Memories.
KEEP, FADE, WINDOW, RESTART = 0, 1, 2, 3
# At listed times; 5 and 6 are those of the recipes in docs/extending.md and tests/extending_power.md.
RESTART_AT = 7
# Linear rules: one covariance, two, and two with the error of the published code.
ONE_MATRIX, TWO_MATRIX, TWO_AS_PUBLISHED = 0, 1, 2
# Generalized linear rules: GLB (V⁻¹ projection), SCB (H(θ)⁻¹ projection), SC-D-GLUCB (none), posterior (none).
GLB, SCB, SC_D, POSTERIOR = 3, 4, 5, 6
# Estimates from the history, or without one.
EXACT, ONE_PASS = 0, 1
# Where the estimate is solved: in the compiled lesson, or in Python after it.
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
# The ball that a generalized linear estimate is brought into: S, or infinite.
BALL = 31
# A lane of Auto: how its offset fades, whether θ has a velocity, whether it tells levels apart, and the offset before
# any reward. The same in every row: the chance of a look times √t, and the lane that looks ask.
OFFSET, LOG_OFFSET, SLOPED, LEVEL, START, LOOKS, SHORT = 32, 33, 34, 35, 36, 37, 38
# Columns behind these are the times that a memory lists.
COLUMNS = 39

# ------------------------------------------------------------------------------------------ groups of a state

# Columns of a lane's counters: time, observations, sums of weights and of squared weights, last restart, observations
# dropped, weight lost with atoms that had no place, failures of the solver.
CLOCK, COUNT, WEIGHT, SQUARES, SINCE, DROPPED, LOST, FAILED = range(COUNTERS)

# Places in the cursor: of the ring, oldest, how many, removals since the sums were rebuilt; atoms in use.
HEAD, SIZE, REMOVED, USED = 0, 1, 2, 3
CURSOR = 4

# Places in the key.
KEY_LOW, KEY_HIGH = range(KEY)


class Point(NamedTuple):
    """A policy as the kernels see it."""

    flags: Ints
    table: Matrix


class Lesson(NamedTuple):
    """`ticks` of time pass, then a reward comes for column `arm` of X[at], chosen `age` ago; no reward if arm < 0."""

    X: Stack
    at: int
    arm: int
    reward: float
    ticks: float
    age: float


# The one lane, row or place of what has one. `int(ONLY)` is a zero that is no literal, for which everything that is
# called with it would be compiled again.
ONLY = 0

# The status of an entry: fine, or a cursor or mark of the state is out of range. An entry that finds the best arm
# returns that, or DAMAGED.
FINE, DAMAGED = 0, -1


@piece
def sound_cursor(history: History) -> bool:
    """Whether a cursor points into its ring and its atoms: compiled code does not check bounds."""
    cursor, room = history.cursor, history.ring.shape[0]
    if cursor.size == 0:
        return True
    good = cursor[SIZE] >= 0 and cursor[SIZE] <= room and cursor[HEAD] >= 0 and cursor[HEAD] < max(room, 1)
    return bool(good and cursor[USED] >= 0 and cursor[USED] <= history.atoms.shape[1])

