"""A lane of Auto: recursive least squares in the coordinates of an arm, an offset and, with a trend, velocities.

Coordinates are θ in units of the features, the offset, which is the same for all arms, and the velocity of each
coordinate of θ. The covariance C, in units of the noise, is kept as packed rows of its lower triangle. Everything a
reward or a tick does takes d² steps: C grows by 1/γ a tick, and one coordinate a tick is shown its prior.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import exp
from driftwise.kernels import formula, loop, piece, routine
from driftwise.kernels.auto.gauge import TURN, Gauge, usual_of
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import (
    GAMMA,
    LEVEL,
    LINK,
    LOG_GAMMA,
    LOG_OFFSET,
    SLOPED,
    Floats,
    Lesson,
    Point,
)

# Prior variance of the offset, over the noise of values, and of log odds.
WIDE, WIDE_ODDS = 1e4, 4.0
# A coordinate whose variance is so many times its prior's is too wide.
LARGER = 16.0
# A lane that keeps less than this of what it knew over a pause begins anew.
KEPT = 0.125


class Beliefs(NamedTuple):
    """The lanes' means (K, 2d + 1), rows of covariances one after the other, and weights."""

    mean: Floats
    spread: Floats
    trust: Floats


class LaneSteps(NamedTuple):
    """Scratch: an arm as coordinates, C times it, factors of growth."""

    v: Floats
    y: Floats
    grow: Floats


@formula
def cell(i: int, j: int) -> int:
    """Where a covariance is among packed rows, j ≤ i."""
    return i * (i + 1) // 2 + j


@piece
def coordinates(point: Point, k: int, d: int) -> int:
    """How many a lane has."""
    return 2 * d + 1 if point.table[k, SLOPED] > 0.0 else d + 1


@piece
def begin_of(point: Point, k: int, d: int) -> int:
    """Where the covariance of a lane begins."""
    at = 0
    for lane in range(k):
        at += cell(coordinates(point, lane, d), 0)
    return at


@piece
def rounds_of(point: Point, k: int) -> float:
    """How long a lane remembers."""
    return 1.0 / (1.0 - point.table[k, GAMMA]) if point.table[k, GAMMA] < 1.0 else math.inf


@piece
def offset_prior(point: Point) -> float:
    """The prior variance of the offset, over noise."""
    return WIDE if point.flags[LINK] == IDENTITY else WIDE_ODDS


@piece
def prior_of(i: int, prior: float, gauge: Gauge) -> float:
    """The prior variance of a coordinate of θ, over noise; 0 before its feature was seen."""
    return prior / usual_of(i, gauge) if gauge.counts[i] > 0.0 else 0.0


@piece
def renew_lane_(point: Point, k: int, first: int, prior: float, gauge: Gauge, beliefs: Beliefs) -> None:
    """A lane's θ and its velocity are as before any reward; what it knows of the offset stays."""
    C, d, E = beliefs.spread, gauge.counts.size, coordinates(point, k, gauge.counts.size)
    known, slow = C[first + cell(d, d)], (1.0 - point.table[k, GAMMA]) * (1.0 - point.table[k, GAMMA])
    for at in range(first, first + cell(E, 0)):
        C[at] = 0.0
    C[first + cell(d, d)] = known
    for i in range(d):
        C[first + cell(i, i)] = prior_of(i, prior, gauge)
        beliefs.mean[k, i] = 0.0
    for i in range(d + 1, E):
        C[first + cell(i, i)] = prior_of(i - d - 1, prior, gauge) * slow
        beliefs.mean[k, i] = 0.0


@piece
def growth(keep: float, variance: float, most: float) -> float:
    """The root of how much a variance grows, to no more than its prior; one of 0 stays, after any time."""
    if variance <= 0.0:
        return 1.0
    factor = 1.0 / max(keep, 1e-300)
    if variance * factor > most:
        factor = max(1.0, most / variance)
    return math.sqrt(factor)


@loop
def scale_rows_(first: int, E: int, C: Floats, grow: Floats) -> None:
    """C <- SCS, S diagonal."""
    for i in range(E):
        row, gi = first + cell(i, 0), grow[i]
        for j in range(i + 1):
            C[row + j] *= gi * grow[j]


@loop
def less_square_(first: int, E: int, f: float, C: Floats, y: Floats) -> None:
    """C <- C - f yy'."""
    for i in range(E):
        row, yi = first + cell(i, 0), y[i] * f
        for j in range(i + 1):
            C[row + j] -= yi * y[j]


@piece
def show_(first: int, E: int, k: int, i: int, variance: float, beliefs: Beliefs, y: Floats) -> None:
    """A lane sees coordinate i as 0 with this variance."""
    C, m = beliefs.spread, beliefs.mean
    for j in range(E):
        y[j] = C[first + cell(max(i, j), min(i, j))]
    f = 1.0 / (y[i] + variance)
    e = -m[k, i] * f
    for a in range(E):
        m[k, a] += y[a] * e
    less_square_(first, E, f, C, y)


@piece
def drift_(first: int, k: int, d: int, ticks: float, beliefs: Beliefs) -> None:
    """θ moves by its velocity."""
    C, m, D = beliefs.spread, beliefs.mean, d + 1
    for i in range(d):
        m[k, i] += ticks * m[k, D + i]
        for j in range(i + 1):
            here, there = C[first + cell(D + i, j)], C[first + cell(D + j, i)]
            C[first + cell(i, j)] += ticks * (here + there + ticks * C[first + cell(D + i, D + j)])
        C[first + cell(d, i)] += ticks * C[first + cell(D + i, d)]
    for i in range(d):
        for j in range(d):
            C[first + cell(D + i, j)] += ticks * C[first + cell(D + max(i, j), D + min(i, j))]


@routine
def pass_(
    point: Point, k: int, first: int, ticks: float, prior: float, gauge: Gauge, beliefs: Beliefs, steps: LaneSteps
) -> None:
    """Time passes for a lane: it forgets, θ moves by its velocity, and one coordinate is shown its prior."""
    C, table, d, grow = beliefs.spread, point.table, gauge.counts.size, steps.grow
    E, keep = coordinates(point, k, d), exp(ticks * table[k, LOG_GAMMA])
    held = exp(ticks * table[k, LOG_OFFSET])
    slow = (1.0 - table[k, GAMMA]) * (1.0 - table[k, GAMMA])
    if keep < KEPT:
        renew_lane_(point, k, first, prior, gauge, beliefs)
    if keep < 1.0 or held < 1.0:
        for i in range(E):
            of = i if i < d else i - d - 1
            variance, most = C[first + cell(i, i)], prior_of(max(of, 0), prior, gauge)
            if i == d:
                grow[i] = growth(held, variance, offset_prior(point))
            else:
                grow[i] = growth(keep, variance, most if i < d else most * slow)
        scale_rows_(first, E, C, grow)
    if E > d + 1 and keep >= KEPT:
        drift_(first, k, d, ticks, beliefs)
    i = int(gauge.known[TURN])
    if keep < 1.0 and gauge.counts[i] > 0.0:
        variance = prior_of(i, prior, gauge) / (d * (1.0 - keep))
        show_(first, E, k, i, variance, beliefs, steps.y)
        if E > d + 1:
            show_(first, E, k, d + 1 + i, variance * slow, beliefs, steps.y)


class Forecast(NamedTuple):
    """What a lane believes of an arm: the mean of its value, and the variance over noise."""

    value: float
    square: float


@piece
def product_of(row: int, n: int, C: Floats, v: Floats) -> float:
    """The product of the first n numbers of a row with v, in four sums that do not wait for each other."""
    a, b, c, e, whole = 0.0, 0.0, 0.0, 0.0, n - n % 4
    for j in range(0, whole, 4):
        a += C[row + j] * v[j]
        b += C[row + j + 1] * v[j + 1]
        c += C[row + j + 2] * v[j + 2]
        e += C[row + j + 3] * v[j + 3]
    for j in range(whole, n):
        a += C[row + j] * v[j]
    return (a + b) + (c + e)


@loop
def times_packed_(first: int, E: int, used: int, C: Floats, v: Floats, y: Floats) -> float:
    """y = Cv for a v that is 0 from `used` on; v'Cv."""
    total = 0.0
    for i in range(used):
        row, vi = first + cell(i, 0), v[i]
        y[i] = product_of(row, i, C, v) + C[row + i] * vi
        for j in range(i):
            y[j] += C[row + j] * vi
    for i in range(used, E):
        y[i] = product_of(first + cell(i, 0), used, C, v)
    for i in range(used):
        total += v[i] * y[i]
    return total


@piece
def foretell_(
    point: Point, k: int, first: int, prior: float, lesson: Lesson, gauge: Gauge, beliefs: Beliefs, steps: LaneSteps
) -> Forecast:
    """What a lane believes of the arm in v, which was chosen `age` ago, beside y = Cv. A covariance that rounding has
    spoilt begins anew."""
    d, v, y, mean = gauge.counts.size, steps.v, steps.y, beliefs.mean
    E = coordinates(point, k, d)
    used = E if lesson.age > 0.0 else d + 1
    for i in range(d + 1, E):
        v[i] = -lesson.age * v[i - d - 1]
    square = times_packed_(first, E, used, beliefs.spread, v, y)
    if square < 0.0:
        renew_lane_(point, k, first, prior, gauge, beliefs)
        square = max(times_packed_(first, E, used, beliefs.spread, v, y), 0.0)
    value = 0.0
    for i in range(used):
        value += mean[k, i] * v[i]
    return Forecast(value, square)


@piece
def take_value_(first: int, E: int, k: int, error: float, variance: float, beliefs: Beliefs, y: Floats) -> None:
    """A lane learns a value that was foretold with this error; its variance, over noise, is that of both."""
    C, m = beliefs.spread, beliefs.mean
    f = 1.0 / variance
    e = error * f
    for i in range(E):
        m[k, i] += y[i] * e
    less_square_(first, E, f, C, y)


@piece
def meet_feature_(point: Point, k: int, first: int, i: int, x: float, prior: float, beliefs: Beliefs) -> None:
    """A feature is seen for the first time, as x in its unit."""
    slow = (1.0 - point.table[k, GAMMA]) * (1.0 - point.table[k, GAMMA])
    d = beliefs.mean.shape[1] // 2
    beliefs.spread[first + cell(i, i)] = prior / (x * x)
    if point.table[k, SLOPED] > 0.0:
        beliefs.spread[first + cell(d + 1 + i, d + 1 + i)] = prior / (x * x) * slow


@piece
def scale_one_(first: int, E: int, k: int, i: int, f: float, beliefs: Beliefs) -> None:
    """A coordinate counts in larger units."""
    C = beliefs.spread
    beliefs.mean[k, i] *= f
    for j in range(E):
        C[first + cell(max(i, j), min(i, j))] *= f
    C[first + cell(i, i)] *= f


@piece
def settle_features_(point: Point, k: int, first: int, prior: float, gauge: Gauge, beliefs: Beliefs) -> None:
    """A feature that turns out to be far larger than it was at first (a sine of 10⁻¹⁶, say) has the prior of its size:
    in units in which it is small, rounding would spoil a covariance."""
    d = gauge.counts.size
    E = coordinates(point, k, d)
    for i in range(d):
        variance, most = beliefs.spread[first + cell(i, i)], prior_of(i, prior, gauge)
        if variance > LARGER * most and most > 0.0:
            f = math.sqrt(most / variance)
            scale_one_(first, E, k, i, f, beliefs)
            if E > d + 1:
                scale_one_(first, E, k, d + 1 + i, f, beliefs)


@piece
def is_level(point: Point, k: int) -> bool:
    """Whether a lane is of the family whose offset moves."""
    return bool(point.table[k, LEVEL] > 0.0)
