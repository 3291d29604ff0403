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
from driftwise.kernels import formula, piece
from driftwise.kernels.algebra import factor_late_, factor_one_, forward_one_
from driftwise.kernels.cut import Vector, cut
from driftwise.kernels.groups import AT_GAUGE, shapes_of
from driftwise.kernels.index import ScoreScratch, lift_, roots_, whiten_
from driftwise.kernels.links import IDENTITY, widening
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memories.trend import sloped
from driftwise.kernels.point import (
    EXPLORE,
    GAMMA,
    LAM,
    LEARNS,
    LEVEL_GAMMA,
    LINK,
    STIFFNESS,
    WEIGHT,
    WIDENS,
    Floats,
    Ints,
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
# A bank that grows also has the errors of the last rewards, the nats by which these foretell better than all errors
# do, rewards in a row that were too strange to be learned, how likely the next decision looks again at an arm
# that was better than foretold, a fading sum and weight of how little a short memory knows of the arms that are
# played, and fading sums of what heavy tails take from errors above and below 0. Behind these, for every feature: the
# sum of squares, how many values were not 0, and 1 over the unit: the largest root mean square that those have had,
# since arms that are played all the time come to be alike.
NOW_ERRORS, NOW_WEIGHT, NOW_NATS, STRANGE, DOUBT, UNKNOWN, UNKNOWN_WEIGHT, ABOVE_0, BELOW_0 = range(6, 15)
UNITS = 15
# Rewards that the noise of now is learned from, how many of the usual noise it begins with, rewards that its nats last
# for, those from which it is believed, and how far it may be from the usual one.
NOW_ROUNDS, NOW_GUESS, NATS_ROUNDS, NOW_BELIEVED, MOST_SPREAD = 40.0, 4.0, 200.0, 8.0, 1e4
# Degrees of freedom of a bank's densities, at most: rewards with heavy tails decide nothing alone.
FREEDOM = 8.0
# An error beyond so many standard deviations counts as one of these, and so many that do not lean come before all.
# Errors lean to one side if it has more of what heavy tails take than the other: such a part of both, and so many
# standard deviations besides, since the first loud errors of symmetric noise may lie on one side by chance.
FARTHEST, UPRIGHT, ONE_SIDED, BY_CHANCE = 10.0, 200.0, 0.5, 5.0
# An arm that a short memory has this variance of, in R², is hardly known; a reward of it that lies so many standard
# deviations above what was foretold makes the next decisions look again, each so much less likely than the one before.
HARDLY_KNOWN, ABOVE, AGAIN = 0.125, 1.5, 0.8
# An arm is hidden if a short memory knows so many times less of it than of the arms played in so many rewards. Where
# features are fresh in every round such a memory knows little of any arm, and none is hidden.
HIDDEN, PLAYED_ROUNDS, MOST_UNKNOWN = 4.0, 64.0, 1e200
# A feature or a reward so many units large is strange, once enough was seen; so many in a row are believed.
STRANGELY, ENOUGH, BELIEVED_STRANGE = 1e4, 10.0, 8.0

# How many rewards the first guess of the noise counts for, and what part of a root mean square of rewards it is where
# nobody made one: too small an R sticks before it has grown, too large a one explores for long.
GUESS_WEIGHT, FAINT = 10.0, 0.5
# Where S is not told it is so many root mean squares of what rewards are besides noise, which is no less than such a
# part of them (docs/math.md#learned-scale). Too small an S hurts most; an S of noise alone makes changes cost more. Of
# many features a value has the variance S²/d, which is next to nothing: the memory of a bank that keeps everything
# plays as if S were √d root mean squares. Memories that forget would explore all of them again and again.
REACH, LEAST_SIGNAL = 2.5, 0.3
# A ridge that is a smaller part of the sums than this is lost in their rounding, and directions that were never played
# would be anything; where rewards have no noise, a learned one gets there.
NEGLIGIBLE = 1e-12
# Of a state that says that rewards or arms are beyond all measure.
LEAST_RIDGE = 1e-250
# Of features that are all but 0.
LEAST_UNIT = 1e-150
# The bonus is this many standard deviations at exploration 1, or √(1 + widens·log(1 + Σw)) where that is to grow: by a
# constant number one trial in a hundred sticks to a wrong arm for ever.
QUANTILE = 2.0


# Log odds are believed to be of this size before anything is seen, and later no less than so many root mean squares of
# those foretold.
ODDS, ODDS_REACH = 3.0, 1.5
MOST_ODDS = 20.0


class Prior(NamedTuple):
    """The noise R, the ridge ρ₀ in units of the features, the ridge that the row plays by, the variance of the noise of
    now over R², and how far errors lean to one side; `blind`: no reward but 0 has been seen, so that nothing has a
    scale yet."""

    noise: float
    ridge: float
    played: float
    spread: float
    lean: float
    blind: bool


class Gauge(NamedTuple):
    """What is known of noise and scale; nothing where both are told."""

    known: Vector


@piece
def gauge_of(flags: Ints, floats: Floats) -> Gauge:
    """Cut from a packed state."""
    return Gauge(cut(floats, flags[AT_GAUGE], shapes_of(flags).gauge))


@formula
def gauge_size(d: int) -> int:
    """The length of the gauge of a bank that grows."""
    return UNITS + 3 * d


@piece
def grows(gauge: Gauge) -> bool:
    """Whether the gauge is that of a bank that grows."""
    return bool(gauge.known.size > GAUGE)


@piece
def per_unit(gauge: Gauge, i: int) -> float:
    """1 over the unit of a feature."""
    known = gauge.known
    return float(known[UNITS + 2 * ((known.size - UNITS) // 3) + i]) if known.size > GAUGE else 1.0


@piece
def spread_of(noise: float, gauge: Gauge) -> float:
    """The variance of the noise of now over that of the usual noise."""
    known = gauge.known
    usual = noise * noise
    now = (known[NOW_ERRORS] + NOW_GUESS * usual) / (known[NOW_WEIGHT] + NOW_GUESS)
    return float(min(max(now / usual, 1.0 / MOST_SPREAD), MOST_SPREAD)) if usual > 0.0 else 1.0


@piece
def lean_of(gauge: Gauge) -> float:
    """What a density with heavy tails takes from an error, in the mean, in standard deviations: 0 of symmetric ones."""
    known = gauge.known
    return float((known[ABOVE_0] - known[BELOW_0]) / (known[ERROR_WEIGHT] + UPRIGHT)) if grows(gauge) else 0.0


@piece
def one_sided(gauge: Gauge) -> bool:
    """Whether errors lean to one side. Of purchases of 0 or 1 they do, and there the variance follows the mean: quiet
    rewards are those of an arm that pays little, and say nothing of the noise of an arm that pays more."""
    above, below = gauge.known[ABOVE_0], gauge.known[BELOW_0]
    return bool(abs(above - below) > BY_CHANCE + ONE_SIDED * (above + below))


@piece
def learns_units(point: Point, row: int, gauge: Gauge) -> bool:
    """Whether units of features are learned: no scale was given."""
    return bool(grows(gauge) and point.table[row, S] == 0.0 and point.table[row, LAM] == 0.0)


@piece
def prior_of(point: Point, row: int, gauge: Gauge, d: int) -> Prior:
    """Noise and ridge as they are told, or as far as they are known."""
    table, known = point.table, gauge.known
    if table[row, LAM] > 0.0:
        return Prior(table[row, R], table[row, LAM], table[row, LAM], 1.0, lean_of(gauge), False)
    if point.flags[LINK] != IDENTITY:
        norm = known[NORM_SQUARES] / known[SEEN] if known[NORM_SQUARES] > 0.0 else 1.0
        odds = known[REWARD_SQUARES] / known[SEEN] if known[SEEN] > 0.0 else 0.0
        given = table[row, S] * table[row, S] if table[row, S] > 0.0 else ODDS * ODDS / norm
        ridge = d / max(given, ODDS_REACH * ODDS_REACH * odds / norm)
        return Prior(1.0, ridge, ridge, 1.0, 0.0, False)
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
    ridge = min(max(d * noise * noise / reach, LEAST_RIDGE), 1.0 / LEAST_RIDGE)
    now = learns and grows(gauge) and known[NOW_NATS] > NOW_BELIEVED and not one_sided(gauge)
    spread = spread_of(noise, gauge) if now else 1.0
    played = ridge
    if learns_units(point, row, gauge) and table[row, GAMMA] == 1.0 and table[row, LEVEL_GAMMA] == 0.0:
        played = min(1.0, REACH * REACH / d) * ridge
    return Prior(noise, ridge, played, spread, lean_of(gauge), blind)


@piece
def deviations(error: float, variance: float) -> float:
    """An error in standard deviations, of which there are not too many."""
    return float(min(max(error / math.sqrt(variance), -FARTHEST), FARTHEST))


@piece
def surprise_of(
    point: Point, row: int, prior: Prior, gauge: Gauge, reward: float, value: float, square: float
) -> float:
    """-log p(r) up to a constant where x'θ was believed to be `value` with variance R²·square.

    Normal, or Student's where R is learned, with as many degrees of freedom as residuals have told of it; of a click by
    the chance μ(z/√(1 + a s²)). Student's with few degrees is highest at the mean of symmetric noise only. Of other
    noise that memory would win which shrinks its forecasts most. A tilt by how far errors lean mends this.
    """
    link = point.flags[LINK]
    if link != IDENTITY:
        chance = link_mean(link, value / math.sqrt(1.0 + widening(link) * square))
        chance = min(max(chance, 1e-12), 1.0 - 1e-12)
        return float(-(reward * log(chance) + (1.0 - reward) * log1p(-chance)))
    error, square = reward - value, square + (prior.spread - 1.0)
    ratio = float(error * error / (prior.noise * prior.noise * (1.0 + square)))
    if point.table[row, LEARNS] == 0.0:
        return 0.5 * (log1p(square) + ratio)
    freedom = 1.0 + float(gauge.known[ERROR_WEIGHT])
    tilt = 0.0
    if grows(gauge):
        freedom = min(freedom, FREEDOM)
        tilt = prior.lean * deviations(error, prior.noise * prior.noise * (1.0 + square))
    return 0.5 * (log1p(square) + (freedom + 1.0) * log1p(ratio / freedom)) + tilt


@piece
def bend_of(prior: Prior, reward: float, value: float, square: float) -> float:
    """1 over the variance of a reward in R²; where noise is low now, one far from what was foretold may be the first
    of louder ones, and counts as Student's density has it."""
    if prior.spread >= 1.0:
        return 1.0 / prior.spread
    error = reward - value
    ratio = error * error / (prior.noise * prior.noise * (prior.spread + square))
    return min(1.0, (FREEDOM + 1.0) / (FREEDOM + ratio)) / prior.spread


@piece
def square_length(X: Floats, at: int, arm: int, gauge: Gauge) -> float:
    """The squared length of an arm in units of the features."""
    total = 0.0
    for i in range(X.shape[1]):
        x = X[at, i, arm] * per_unit(gauge, i)
        total += x * x
    return total


@piece
def is_hidden(square: float, length: float, gauge: Gauge) -> bool:
    """Whether a short memory, with variance `square` of an arm, knows less of it than of arms that are played."""
    known = gauge.known
    return bool(square * known[UNKNOWN_WEIGHT] > HIDDEN * known[UNKNOWN] * length)


@piece
def doubt_(error: float, variance: float, short: float, bend: float, length: float, gauge: Gauge) -> None:
    """An arm of which a short memory has the variance R²·short paid so much more than was foretold; `bend` is 1 over
    the variance of its reward in R²."""
    known = gauge.known
    if grows(gauge):
        above = error > 0.0 and error * error > ABOVE * ABOVE * variance
        unknown = short * bend > HARDLY_KNOWN and is_hidden(short, length, gauge)
        known[DOUBT] = AGAIN if above and unknown else AGAIN * known[DOUBT]
        keep = 1.0 - 1.0 / PLAYED_ROUNDS
        known[UNKNOWN] = keep * known[UNKNOWN] + (min(short / length, MOST_UNKNOWN) if length > 0.0 else 0.0)
        known[UNKNOWN_WEIGHT] = keep * known[UNKNOWN_WEIGHT] + 1.0


@piece
def gauge_now_(square: float, usual: float, gauge: Gauge) -> None:
    """A squared error is held against the noise of now and the usual variance, and joins the former."""
    known = gauge.known
    now = usual * spread_of(math.sqrt(usual), gauge)
    if now > 0.0 and usual > 0.0:
        tails = log1p(square / (FREEDOM * usual)) - log1p(square / (FREEDOM * now))
        nats = 0.5 * (log(usual / now) + (FREEDOM + 1.0) * tails)
        known[NOW_NATS] = max(0.0, (1.0 - 1.0 / NATS_ROUNDS) * known[NOW_NATS] + min(max(nats, -1.0), 1.0))
    known[NOW_ERRORS] = (1.0 - 1.0 / NOW_ROUNDS) * known[NOW_ERRORS] + square
    known[NOW_WEIGHT] = (1.0 - 1.0 / NOW_ROUNDS) * known[NOW_WEIGHT] + 1.0


@piece
def lean_(error: float, variance: float, keep: float, gauge: Gauge) -> None:
    """What a density with heavy tails takes from an error of u standard deviations, u - (ν + 1)u/(ν + u²), joins the
    sum of its side."""
    known, taken = gauge.known, 0.0
    if variance > 0.0:
        u = deviations(error, variance)
        taken = u * (u * u - 1.0) / (FREEDOM + u * u)
    known[ABOVE_0] = keep * known[ABOVE_0] + max(taken, 0.0)
    known[BELOW_0] = keep * known[BELOW_0] + max(-taken, 0.0)


@piece
def strange_(point: Point, row: int, lesson: Lesson, gauge: Gauge) -> bool:
    """Whether a reward or its arm is too strange to be learned from: out of all measure, and not the last of many."""
    known, d = gauge.known, lesson.X.shape[1]
    if known.size <= GAUGE or lesson.arm < 0 or known[SEEN] < ENOUGH:
        return False
    strange = False
    if point.flags[LINK] == IDENTITY and known[REWARD_SQUARES] > 0.0:
        most = STRANGELY * STRANGELY * known[REWARD_SQUARES] / known[SEEN]
        strange = lesson.reward * lesson.reward > most
    for i in range(d):
        if known[UNITS + d + i] > 0.0:
            strange = strange or abs(lesson.X[lesson.at, i, lesson.arm]) * per_unit(gauge, i) > STRANGELY
    if not strange or known[STRANGE] >= BELIEVED_STRANGE:
        known[STRANGE] = 0.0
        return False
    known[STRANGE] += 1.0
    return True


@piece
def first_units_(lesson: Lesson, gauge: Gauge) -> None:
    """A feature that no arm had before has its size in this one for a unit."""
    known, d = gauge.known, lesson.X.shape[1]
    for i in range(d):
        x = lesson.X[lesson.at, i, lesson.arm]
        if x != 0.0 and known[UNITS + d + i] == 0.0:
            known[UNITS + 2 * d + i] = 1.0 / max(abs(x), LEAST_UNIT)


@piece
def units_(lesson: Lesson, gauge: Gauge) -> None:
    """An arm's share in the units of its features."""
    known, d = gauge.known, lesson.X.shape[1]
    for i in range(d):
        x = lesson.X[lesson.at, i, lesson.arm]
        if x != 0.0:
            squares, count = UNITS + i, UNITS + d + i
            known[squares] += x * x
            known[count] += 1.0
            known[NORM_SQUARES] += 1.0
            per = 1.0 / max(math.sqrt(known[squares] / known[count]), LEAST_UNIT)
            inverse = UNITS + 2 * d + i
            known[inverse] = min(known[inverse], per) if known[count] > ENOUGH else per


@piece
def gauge_(
    point: Point, row: int, lesson: Lesson, prior: Prior, asked: bool, value: float, square: float, gauge: Gauge
) -> None:
    """A reward's share in what is known of noise and scale, by what the lane played had foretold; a residual says
    nothing while there is no scale."""
    known, table = gauge.known, point.table
    told = table[row, LEARNS] == 0.0 and table[row, R] > 0.0 and table[row, S] > 0.0
    if known.size == 0 or (told and point.flags[LINK] == IDENTITY):
        return
    size = lesson.reward
    if point.flags[LINK] != IDENTITY:
        size = min(abs(value), MOST_ODDS)
    elif asked and not prior.blind:
        keep, error = 1.0 - point.table[row, LEARNS], lesson.reward - value
        if grows(gauge):  # of an error's variance, R²(spread + square), the part that is noise
            part = error * error * prior.spread / (prior.spread + square)
            if keep < 1.0:
                usual = prior.noise * prior.noise
                gauge_now_(part, usual, gauge)
                lean_(error, usual * (prior.spread + square), keep, gauge)
        else:
            part = error * error / (1.0 + square)
        known[GUESSED] *= keep
        known[ERRORS] = keep * known[ERRORS] + part
        known[ERROR_WEIGHT] = keep * known[ERROR_WEIGHT] + 1.0
    known[SEEN] += 1.0
    known[REWARD_SQUARES] += size * size
    if learns_units(point, row, gauge):
        units_(lesson, gauge)
        return
    for i in range(lesson.X.shape[1]):
        x = lesson.X[lesson.at, i, lesson.arm]
        known[NORM_SQUARES] += x * x


@piece
def trace_of(G: Floats, lane: int, gauge: Gauge) -> float:
    """The sum of the diagonal of G[lane], in units of the features."""
    total = 0.0
    for i in range(G.shape[1]):
        v = per_unit(gauge, i)
        total += G[lane, i, i] * v * v
    return total


@piece
def in_units_(A: Floats, b: Floats, lane: int, gauge: Gauge, to: Floats, z: Floats) -> None:
    """to = A[lane], its lower triangle, and z = b[lane], in units of the features."""
    for i in range(z.size):
        v = per_unit(gauge, i)
        z[i] = b[lane, i] * v
        for j in range(i + 1):
            to[i, j] = A[lane, i, j] * (v * per_unit(gauge, j))


@piece
def out_of_units_(gauge: Gauge, low: Floats, pivot: Floats) -> None:
    """A factor in units of the features becomes that of arms as they come."""
    for i in range(pivot.size):
        v = per_unit(gauge, i)
        pivot[i] *= v
        for j in range(i + 1):
            low[i, j] /= v


@piece
def believe_(
    point: Point, row: int, lane: int, ridge: float, gauge: Gauge, sums: Sums, low: Floats, other: Floats,
    pivot: Floats, z: Floats,
) -> None:
    """low low' is the precision of θ over 1/R², z = low⁻¹b: an arm's mean is (low⁻¹x)'z, its variance R²‖low⁻¹x‖².

    The ridge is that of features in their units, so that it means the same for each of them.
    """
    ridge = max(ridge, NEGLIGIBLE * trace_of(sums.G, lane, gauge))
    if sloped(point, row):
        stiff = max(ridge * point.table[row, STIFFNESS], NEGLIGIBLE * trace_of(sums.lag_square, lane, gauge))
        believe_sloped_(lane, ridge, stiff, gauge, sums, low, other, pivot, z)
    else:
        in_units_(sums.G, sums.b, lane, gauge, low, z)
        factor_one_(low, lane, ridge, low, pivot)
        forward_one_(low, pivot, z, lane, z)
    out_of_units_(gauge, low, pivot)


@piece
def believe_sloped_(
    lane: int, ridge: float, stiff: float, gauge: Gauge, sums: Sums, low: Floats, other: Floats, pivot: Floats,
    z: Floats,
) -> None:
    """The same for a lane with a trend, θ + lag·u: u is eliminated from its normal equations, θ is what is left."""
    d = z.size
    G, lag = sums.G, sums.lag
    in_units_(sums.lag_square, sums.lag_reward, lane, gauge, other, z)
    factor_one_(other, lane, stiff, other, pivot)
    forward_one_(other, pivot, z, lane, z)
    for i in range(d):  # M = lag·other⁻ᵀ, in low
        for j in range(d):
            low[i, j] = lag[lane, max(i, j), min(i, j)] * (per_unit(gauge, max(i, j)) * per_unit(gauge, min(i, j)))
        forward_one_(other, pivot, low[i], lane, low[i])
    for i in range(d):
        v = sums.b[lane, i] * per_unit(gauge, i)
        for k in range(d):
            v -= low[i, k] * z[k]
        pivot[i] = v
    for i in range(d):
        z[i] = pivot[i]
        for j in range(i + 1):
            v = G[lane, i, j] * (per_unit(gauge, i) * per_unit(gauge, j))
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
    believe_(point, row, lane, prior.played, gauge, sums, scores.low, scores.other, scores.pivot, scores.z)
    whiten_(scores, X, at)
    quantile = quantile_of(point, row, sums.counters[lane, WEIGHT])
    if point.flags[LINK] != IDENTITY:
        lift_(point.flags[LINK], quantile * point.table[row, EXPLORE], scores.mean, scores.bonus)
    else:
        roots_(quantile * point.table[row, EXPLORE] * prior.noise, scores.bonus)


@piece
def widths_(
    point: Point, lane: int, X: Floats, at: int, acting: int, sums: Sums, gauge: Gauge, scores: ScoreScratch
) -> bool:
    """bonus = a standard deviation of every arm's value, or of the chance of a click, as a lane believes; whether one
    of them, other than the arm that acts, is hidden."""
    prior, hidden = prior_of(point, lane, gauge, scores.z.size), False
    believe_(point, lane, lane, prior.ridge, gauge, sums, scores.low, scores.other, scores.pivot, scores.z)
    whiten_(scores, X, at)
    for a in range(scores.bonus.size):
        hidden = hidden or (a != acting and is_hidden(scores.bonus[a], square_length(X, at, a, gauge), gauge))
    if point.flags[LINK] != IDENTITY:
        lift_(point.flags[LINK], 1.0, scores.mean, scores.bonus)
    else:
        roots_(prior.noise, scores.bonus)
    return hidden
