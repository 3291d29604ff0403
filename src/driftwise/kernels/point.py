"""What a policy compiles to: a vector of flags and a table of numbers, a row per lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Places in the vector of flags.
MEMORY, RULE, RADIUS, LINK, ESTIMATE, ADAPT, TIE = 0, 1, 2, 3, 4, 5, 6
FLAGS = 8

# Memories.
KEEP, FADE, WINDOW, RESTART = 0, 1, 2, 3
# Linear rules.
ONE_MATRIX, TWO_MATRIX, TWO_AS_PUBLISHED = 0, 1, 2
# Generalized linear rules: GLB (V⁻¹ projection), SCB (H(θ)⁻¹ projection), SC-D-GLUCB (none).
GLB, SCB, SC_D = 3, 4, 5
# Estimates.
EXACT, ONE_PASS = 0, 1
# Radii.
WEIGHTED, CONSTANT = 0, 1

# Columns of the table.
GAMMA, LOG_GAMMA, LENGTH, LAM, LOG_DELTA, S, L, R, EXPLORE, BETA = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
FORGET, REG, SLOPE_MOST, SLOPE_LEAST, RANGE, HORIZON = 10, 11, 12, 13, 14, 15
COLUMNS = 16

# Columns of a lane's counters: time, observations, sum of squared weights, last restart, observations dropped,
# weight lost with atoms that found no place, solver's failures.
CLOCK, COUNT, SQUARES, SINCE, DROPPED, LOST, FAILED = 0, 1, 2, 3, 4, 5, 6
COUNTERS = 7

# Places in the cursor: of the ring, oldest, how many, removals since the sums were rebuilt; atoms in use.
HEAD, SIZE, REMOVED, USED = 0, 1, 2, 3
CURSOR = 4


class Point(NamedTuple):
    """A policy as the kernels see it."""

    flags: Ints
    table: Floats
