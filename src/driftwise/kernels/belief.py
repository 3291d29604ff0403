"""What a lane believes: θ is normal about an estimate, plain or with a trend, its noise and scale told or learned.

The prior is θ ~ N(0, S²/d) and the noise R, so the ridge is ρ₀ = R²d/S² and an arm's value has variance R²‖x‖² in the
inverse of G + ρ₀I (docs/math.md#posterior-radius). A lane with a trend models r as x'(θ - lag·v), v ~ N(0, S²/(dN²)).
Eliminating v leaves the precision of θ alone.

The gauge holds what is learned about noise and scale. Neither enters the sums, so both may change at any time.

A click is learned as the value and with the weight that Newton's step of the log likelihood gives (the one-pass
estimate of docs/math.md#estimates, with the ridge outside the sums). The same formulas then hold for clicks, with
R = 1 and x'θ in log odds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import log, log1p
from driftwise.kernels import piece
from driftwise.kernels.algebra import factor_, factor_late_, forward_, forward_one_
from driftwise.kernels.groups import bundle_of
from driftwise.kernels.index import ScoreScratch, lift_, roots_, whiten_
from driftwise.kernels.links import IDENTITY, widening
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memories.trend import sloped
from driftwise.kernels.point import (
    COUNT,
    EXPLORE,
    LAM,
    LEARNS,
    LINK,
    STIFFNESS,
    WEIGHT,
    WIDENS,
    Floats,
    Lesson,
    Point,
    R,
    S,
    Sums,
)

# Places of the gauge: the weight left to the first guess of the noise, fading sums of squared errors and of ones;
# rewards that set the scale, their squares and those of the norms of their arms.
GUESSED, ERRORS, ERROR_WEIGHT, SEEN, REWARD_SQUARES, NORM_SQUARES = 0, 1, 2, 3, 4, 5
GAUGE = 6

# How many rewards the first guess of the noise counts for, and what part of a root mean square of rewards it is where
# nobody made one: too small an R sticks before it has grown, too large a one explores for long.
GUESS_WEIGHT, FAINT = 10.0, 0.5
# Where S is not told it is so many root mean squares of what rewards are besides noise, which is no less than such a
# part of them (docs/math.md#learned-scale). Too small an S hurts most; an S of noise alone makes changes cost more.
REACH, LEAST_SIGNAL = 2.5, 0.3
# A ridge that is a smaller part of the sums than this is lost in their rounding, and directions that were never played
# would be anything; where rewards have no noise, a learned one gets there.
NEGLIGIBLE = 1e-12
# Of a state that says that rewards or arms are beyond all measure.
LEAST_RIDGE = 1e-250
# The bonus is this many standard deviations at exploration 1, or √(1 + widens·log(1 + Σw)) where that is to grow: by a
# constant number one trial in a hundred sticks to a wrong arm for ever.
QUANTILE = 2.0


# Log odds are believed to be of this size before anything is seen, and later no less than so many root mean squares of
# those foretold.
ODDS, ODDS_REACH = 3.0, 1.5
MOST_ODDS = 20.0


class Prior(NamedTuple):
    """The noise R and the ridge ρ₀; `blind`: no reward but 0 has been seen, so that neither has a scale yet."""

    noise: float
    ridge: float
    blind: bool


class Gauge(NamedTuple):
    """What is known of noise and scale; nothing where both are told."""

    known: Floats


gauge_of = bundle_of(Gauge, "floats", known="gauge")


@piece
def prior_of(point: Point, row: int, gauge: Gauge, d: int) -> Prior:
    """Noise and ridge as they are told, or as far as they are known."""
    table, known = point.table, gauge.known
    if table[row, LAM] > 0.0:
        return Prior(table[row, R], table[row, LAM], False)
    if point.flags[LINK] != IDENTITY:
        norm = known[NORM_SQUARES] / known[SEEN] if known[NORM_SQUARES] > 0.0 else 1.0
        odds = known[REWARD_SQUARES] / known[SEEN] if known[SEEN] > 0.0 else 0.0
        given = table[row, S] * table[row, S] if table[row, S] > 0.0 else ODDS * ODDS / norm
        return Prior(1.0, d / max(given, ODDS_REACH * ODDS_REACH * odds / norm), False)
    noise, reach, blind = table[row, R], table[row, S] * table[row, S], False
    learns = table[row, LEARNS] > 0.0
    if learns or noise == 0.0 or reach == 0.0:  # the rewards seen set the scale, or say that it is larger than told
        norm = known[NORM_SQUARES] / known[SEEN] if known[NORM_SQUARES] > 0.0 else 1.0
        value = known[REWARD_SQUARES] / known[SEEN] if known[REWARD_SQUARES] > 0.0 else 0.0
        blind = value == 0.0 and (noise == 0.0 or reach == 0.0)
        if blind:  # in units of what is told; where nothing is, any will do
            value = noise * noise / (FAINT * FAINT) if noise > 0.0 else reach * norm if reach > 0.0 else 1.0
        if noise == 0.0:
            noise = FAINT * math.sqrt(value)
        elif learns and value > 0.0 and not blind:  # a guess: no noise is larger than the rewards it is in
            noise = min(noise, math.sqrt(value))
        if learns and known[GUESSED] + known[ERROR_WEIGHT] > 0.0:
            squares = known[GUESSED] * noise * noise + known[ERRORS]
            noise = math.sqrt(squares / (known[GUESSED] + known[ERROR_WEIGHT]))
        signal = max(value - noise * noise, LEAST_SIGNAL * LEAST_SIGNAL * value)
        reach = max(reach, REACH * REACH * signal / norm)
    return Prior(noise, min(max(d * noise * noise / reach, LEAST_RIDGE), 1.0 / LEAST_RIDGE), blind)


@piece
def surprise_of(
    point: Point, row: int, prior: Prior, gauge: Gauge, reward: float, value: float, square: float
) -> float:
    """-log p(r) up to a constant where x'θ was believed to be `value` with variance R²·square.

    Normal, or Student's where R is learned, with as many degrees of freedom as residuals have told of it; of a click by
    the chance μ(z/√(1 + a s²)).
    """
    link = point.flags[LINK]
    if link != IDENTITY:
        chance = link_mean(link, value / math.sqrt(1.0 + widening(link) * square))
        chance = min(max(chance, 1e-12), 1.0 - 1e-12)
        return float(-(reward * log(chance) + (1.0 - reward) * log1p(-chance)))
    error = reward - value
    ratio = float(error * error / (prior.noise * prior.noise * (1.0 + square)))
    if point.table[row, LEARNS] == 0.0:
        return 0.5 * (log1p(square) + ratio)
    freedom = 1.0 + float(gauge.known[ERROR_WEIGHT])
    return 0.5 * (log1p(square) + (freedom + 1.0) * log1p(ratio / freedom))


@piece
def gauge_(
    point: Point, row: int, lesson: Lesson, blind: bool, value: float, square: float, gauge: Gauge
) -> None:
    """A reward's share in what is known of noise and scale, by what the lane played had foretold; a residual says
    nothing while there is no scale."""
    known = gauge.known
    if known.size == 0:
        return
    size = lesson.reward
    if point.flags[LINK] != IDENTITY:
        size = min(abs(value), MOST_ODDS)
    elif not blind:
        keep, error = 1.0 - point.table[row, LEARNS], lesson.reward - value
        known[GUESSED] *= keep
        known[ERRORS] = keep * known[ERRORS] + error * error / (1.0 + square)
        known[ERROR_WEIGHT] = keep * known[ERROR_WEIGHT] + 1.0
    known[SEEN] += 1.0
    known[REWARD_SQUARES] += size * size
    for i in range(lesson.X.shape[1]):
        x = lesson.X[lesson.at, i, lesson.arm]
        known[NORM_SQUARES] += x * x


@piece
def trace_of(G: Floats, lane: int) -> float:
    """The sum of the diagonal of G[lane]."""
    total = 0.0
    for i in range(G.shape[1]):
        total += G[lane, i, i]
    return total


@piece
def believe_(
    point: Point, row: int, lane: int, ridge: float, sums: Sums, low: Floats, other: Floats, pivot: Floats, z: Floats
) -> None:
    """low low' is the precision of θ over 1/R², z = low⁻¹b: an arm's mean is (low⁻¹x)'z, its variance R²‖low⁻¹x‖²."""
    ridge = max(ridge, NEGLIGIBLE * trace_of(sums.G, lane))
    if sloped(point, row):
        stiff = max(ridge * point.table[row, STIFFNESS], NEGLIGIBLE * trace_of(sums.lag_square, lane))
        believe_sloped_(lane, ridge, stiff, sums, low, other, pivot, z)
    else:
        factor_(sums.G, lane, ridge, low, pivot)
        forward_(low, pivot, sums.b, lane, z)


@piece
def believe_sloped_(
    lane: int, ridge: float, stiff: float, sums: Sums, low: Floats, other: Floats, pivot: Floats, z: Floats
) -> None:
    """The same for a lane with a trend, θ + lag·u: u is eliminated from its normal equations, θ is what is left."""
    d = z.size
    G, lag = sums.G, sums.lag
    factor_(sums.lag_square, lane, stiff, other, pivot)
    forward_(other, pivot, sums.lag_reward, lane, z)
    for i in range(d):  # M = lag·other⁻ᵀ, in low
        for j in range(d):
            low[i, j] = lag[lane, max(i, j), min(i, j)]
        forward_one_(other, pivot, low[i], lane, low[i])
    for i in range(d):
        v = sums.b[lane, i]
        for k in range(d):
            v -= low[i, k] * z[k]
        pivot[i] = v
    for i in range(d):
        z[i] = pivot[i]
        for j in range(i + 1):
            v = G[lane, i, j]
            for k in range(d):
                v -= low[i, k] * low[j, k]
            other[i, j] = v
    factor_late_(other, lane, ridge, low, pivot)  # of G + ridge·I - MM'
    forward_one_(low, pivot, z, lane, z)


@piece
def quantile_of(point: Point, row: int, weight: float) -> float:
    """Standard deviations in the bonus of a lane that has seen so much."""
    widens = point.table[row, WIDENS]
    return math.sqrt(1.0 + widens * log1p(weight)) if widens > 0.0 else QUANTILE


@piece
def belief_scores_(
    point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, gauge: Gauge, scores: ScoreScratch
) -> None:
    """Mean and bonus of every arm: x'θ̂ and a quantile's R‖x‖ times the exploration factor."""
    prior = prior_of(point, row, gauge, sums.b.shape[1])
    believe_(point, row, lane, prior.ridge, sums, scores.low, scores.other, scores.pivot, scores.z)
    whiten_(scores, X, at)
    quantile = quantile_of(point, row, sums.counters[lane, WEIGHT])
    if point.flags[LINK] != IDENTITY:
        lift_(point.flags[LINK], quantile * point.table[row, EXPLORE], scores.mean, scores.bonus)
    else:
        roots_(quantile * point.table[row, EXPLORE] * prior.noise, scores.bonus)


@piece
def audit_scores_(point: Point, lane: int, X: Floats, at: int, sums: Sums, gauge: Gauge, scores: ScoreScratch) -> None:
    """Mean and bonus of every arm by a theorem's radius with δ = 1/t and the ridge ρ₀ (docs/math.md#audits):
    R(√d + √(2 log t + d log(1 + tr G/(ρ₀d)))), in whose first part √ρ₀S = R√d."""
    d = scores.z.size
    prior = prior_of(point, lane, gauge, d)
    believe_(point, lane, lane, prior.ridge, sums, scores.low, scores.other, scores.pivot, scores.z)
    whiten_(scores, X, at)
    grown = d * log1p(trace_of(sums.G, lane) / (prior.ridge * d))
    radius = math.sqrt(d) + math.sqrt(2.0 * log(max(2.0, sums.counters[lane, COUNT])) + grown)
    if point.flags[LINK] != IDENTITY:
        lift_(point.flags[LINK], radius, scores.mean, scores.bonus)
    else:
        roots_(radius * prior.noise, scores.bonus)
