"""The linear family on a ball or an ellipsoid in one call: from sums to the best point, its score and a bound.

Between three calls, a sheet, a search and a score, Python took longer than the arithmetic.
"""

from __future__ import annotations

import math

from driftwise.kernels import entry, routine
from driftwise.kernels.adapt.book import acting_lane, acting_row, sound_marks
from driftwise.kernels.point import (
    DAMAGED,
    FINE,
    RULE,
    TWO_AS_PUBLISHED,
    TWO_MATRIX,
    Floats,
    Ints,
    Point,
    adapting_of,
    sums_of,
)
from driftwise.kernels.region.ball import outward_, plain_summit_, through_
from driftwise.kernels.region.families import linear_sheet_
from driftwise.kernels.region.sheet import BONUS, FIRST, MEAN, PIVOT, WEIGHT, WHITE, Sheet, sheet_of

# What a search reports whose matrix has no eigenvalues.
NO_ROOT = 1


@routine
def score_of_(sheet: Sheet, two: bool, x: Floats) -> None:
    """Mean and bonus of x by the factors on the sheet: what linear_scores_ makes of a list of one, to the last bit."""
    low, other, vec, numbers, d = sheet.low, sheet.other, sheet.vec, sheet.numbers, x.size
    mean, square = 0.0, 0.0
    for i in range(d):
        y = x[i]
        for k in range(i):
            y -= low[i, k] * vec[FIRST, k]
        y *= vec[PIVOT, i]
        vec[FIRST, i] = y
        mean += vec[WHITE, i] * y
        square += y * y
    if two:
        square = 0.0
        for i in range(d):
            y = vec[FIRST, i] * other[i, i]
            for k in range(i + 1, d):
                y += other[k, i] * vec[FIRST, k]
            square += y * y
    numbers[MEAN], numbers[BONUS] = mean, numbers[WEIGHT] * math.sqrt(square)


@entry
def best_linear_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, F: Floats, straight: bool, out: Floats
) -> int:
    """out <- the x = Fy, ‖y‖ ≤ 1, of largest index, alone or adapting; numbers have its mean and bonus and TOP, the
    bound. FINE, NO_ROOT or DAMAGED."""
    point, own = Point(flags, table), adapting_of(flags, floats, ints)
    if not sound_marks(point, own):
        return DAMAGED
    lane, sheet = acting_lane(point, own), sheet_of(scratch, out.size)
    linear_sheet_(point, acting_row(point, own, lane), lane, sums_of(flags, floats), sheet)
    through_(sheet, F, straight)
    if not plain_summit_(sheet):
        return NO_ROOT
    outward_(sheet, F, straight, out)
    score_of_(sheet, flags[RULE] == TWO_MATRIX or flags[RULE] == TWO_AS_PUBLISHED, out)
    return FINE
