"""A lane that tells a level from preferences: r = a_t + x'θ, the level a_t forgotten at one pace, θ at another.

A filter of the level takes the same fading mean of arms and of rewards, x̄ and r̄. The differences x - x̄ and r - r̄ have
no level in them, and θ is regressed on these (docs/math.md#levels: least squares for a level that walks at random).
Lanes come in fours by the memory of θ; the j-th of every four has the same memory of the level. For values these share
a filter: lane j has filter j % 4. For clicks every lane has a filter of its own, because each lane turns a click into
log odds and a weight by its own Newton step (kernels/belief.py).

The first guess of a level, 0 with the weight R²/S², is kept apart from the data: R and S may change at any time.
A filter's time stops once all but a millionth has faded, so that the numbers stay in range.
"""

from __future__ import annotations

from typing import NamedTuple

from driftwise._internal.elementary import exp, log
from driftwise.kernels import formula, piece
from driftwise.kernels.algebra import factor_one_, forward_one_
from driftwise.kernels.belief import (
    NEGLIGIBLE,
    NORM_SQUARES,
    SEEN,
    Gauge,
    Prior,
    in_units_,
    out_of_units_,
    per_unit,
    prior_of,
    quantile_of,
    trace_of,
)
from driftwise.kernels.cut import cut
from driftwise.kernels.foretell import LaneScratch, fill_slots_, foretell_eight_
from driftwise.kernels.groups import (
    AT_EVIDENCE,
    AT_FILTERS,
    AT_LEVEL_B,
    AT_LEVEL_COUNTERS,
    AT_LEVEL_G,
    AT_LEVEL_SCORES,
    shapes_of,
)
from driftwise.kernels.index import ScoreScratch, lift_, roots_, whiten_
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.memories.fade import decay
from driftwise.kernels.memories.fade import weight as weight_of
from driftwise.kernels.memories.sums import blend_offset_
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    DIM,
    EXPLORE,
    GUESS,
    GUESS_SQUARE,
    GUESS_TIME,
    LEVEL_GAMMA,
    LEVEL_LOG_GAMMA,
    LEVEL_STIFFNESS,
    LINK,
    MASS,
    MOMENTS,
    ONLY,
    SQUARES,
    TIME,
    TIME_SQUARE,
    WEIGHT,
    Floats,
    Ints,
    Lesson,
    Point,
    Sums,
)
from driftwise.kernels.scratch import Shapes, carved_from

# Lanes come in fours, one with each memory of the level.
FOUR = 4
# An arm tells in full from a distance of half its length on.
CONTRAST = 4.0
# What is left of a filter when its time stands still.
FAINTEST = 1e-6


class Levels(NamedTuple):
    """Lanes with a level apart: their sums, filters of the level, weights within the family, the evidence for it."""

    sums: Sums
    filters: Floats
    weights: Floats
    evidence: Floats


class LevelForecast(NamedTuple):
    """Scratch of the lanes with a level: every filter's x̄, r̄ and spread; every lane's value, square and surprise."""

    center: Floats
    reward: Floats
    spread: Floats
    value: Floats
    square: Floats
    surprise: Floats


@formula
def level_shapes(d: int, levels: int, filters: int) -> Shapes:
    """The shapes of its fields."""
    return (filters, d), (filters,), (filters,), (levels,), (levels,), (levels,)


level_forecast_size, level_forecast_of = carved_from(LevelForecast, level_shapes)


class Level(NamedTuple):
    """The level is believed to be r̄ - x̄'θ, with variance R²·spread; x̄ is in a row of some scratch."""

    reward: float
    spread: float


@piece
def levels_of(flags: Ints, floats: Floats) -> Levels:
    """Cut from a packed state. They have no lags and no twins."""
    shape, none = shapes_of(flags), int(ONLY)
    d = flags[DIM]
    nothing, no_rows = cut(floats, none, (none, d, d)), cut(floats, none, (none, d))
    G, b = cut(floats, flags[AT_LEVEL_G], shape.level_G), cut(floats, flags[AT_LEVEL_B], shape.level_b)
    counters = cut(floats, flags[AT_LEVEL_COUNTERS], shape.level_counters)
    return Levels(
        Sums(G, nothing, b, counters, nothing, nothing, no_rows),
        cut(floats, flags[AT_FILTERS], shape.filters),
        cut(floats, flags[AT_LEVEL_SCORES], shape.level_scores),
        cut(floats, flags[AT_EVIDENCE], shape.evidence),
    )


@piece
def passing(point: Point, row: int, filters: Floats, f: int, ticks: float) -> float:
    """How much time passes for a filter."""
    mass = filters[f, GUESS] + filters[f, MASS]
    if mass * level_decay(point, row, ticks) >= FAINTEST:
        return ticks
    most = log(FAINTEST / mass) / point.table[row, LEVEL_LOG_GAMMA]
    return min(ticks, max(float(most), 0.0))


@piece
def level_decay(point: Point, row: int, ticks: float) -> float:
    """g^ticks, and g itself at one tick."""
    if ticks == 1.0:
        return float(point.table[row, LEVEL_GAMMA])
    return exp(ticks * point.table[row, LEVEL_LOG_GAMMA])


@piece
def guess_of(prior: Prior, gauge: Gauge, d: int) -> float:
    """The weight of the first guess of a level, R²/S² for arms of length 1, or of the length they are seen to have."""
    known = gauge.known
    norm = known[NORM_SQUARES] / known[SEEN] if known.size > 0 and known[NORM_SQUARES] > 0.0 else 1.0
    return float(prior.ridge / (d * norm))


@piece
def center_(
    point: Point, row: int, guess: float, filters: Floats, f: int, ticks: float, center: Floats, at: int
) -> Level:
    """center[at] = x̄, and the level, `ticks` from now: the value that the weighted line or constant has there."""
    d, stiff = center.shape[1], point.table[row, LEVEL_STIFFNESS]
    passed = passing(point, row, filters, f, ticks)
    fade = level_decay(point, row, passed)
    mass = guess * filters[f, GUESS] + filters[f, MASS]
    if stiff == 0.0:
        for i in range(d):
            center[at, i] = filters[f, MOMENTS + i] / mass
        return Level(filters[f, MOMENTS + d] / mass, 1.0 / (fade * mass))
    time = guess * filters[f, GUESS_TIME] + filters[f, TIME]
    square = guess * filters[f, GUESS_SQUARE] + filters[f, TIME_SQUARE]
    square = fade * (square - 2.0 * passed * time + passed * passed * mass) + stiff
    time = fade * (time - passed * mass)
    mass *= fade
    det = mass * square - time * time
    sums, lagged = MOMENTS, MOMENTS + d + 1
    for i in range(d):
        u = filters[f, sums + i]
        center[at, i] = fade * (square * u - time * (filters[f, lagged + i] - passed * u)) / det
    u = filters[f, sums + d]
    return Level(fade * (square * u - time * (filters[f, lagged + d] - passed * u)) / det, square / det)


@piece
def filter_(point: Point, row: int, filters: Floats, f: int, bend: float, lesson: Lesson) -> None:
    """Time passes for a filter; then it takes an arm and its reward for those of now, however late they are. The reward
    has the variance R²/bend."""
    d = (filters.shape[1] - MOMENTS) // 2 - 1
    sums, lagged = MOMENTS, MOMENTS + d + 1
    passed = passing(point, row, filters, f, lesson.ticks)
    fade = level_decay(point, row, passed)
    if point.table[row, LEVEL_STIFFNESS] > 0.0:
        for k in range(GUESS, MOMENTS, 3):
            mass, time = filters[f, k], filters[f, k + 1]
            filters[f, k + 2] = fade * (filters[f, k + 2] - 2.0 * passed * time + passed * passed * mass)
            filters[f, k + 1] = fade * (time - passed * mass)
        for i in range(d + 1):
            filters[f, lagged + i] = fade * (filters[f, lagged + i] - passed * filters[f, sums + i])
    filters[f, GUESS] *= fade
    filters[f, MASS] *= fade
    for i in range(d + 1):
        filters[f, sums + i] *= fade
    if lesson.arm >= 0:
        filters[f, MASS] += bend
        filters[f, sums + d] += bend * lesson.reward
        for i in range(d):
            filters[f, sums + i] += bend * lesson.X[lesson.at, i, lesson.arm]


@piece
def contrast_of(lesson: Lesson, gauge: Gauge, center: Floats) -> float:
    """How much a reward can tell of a level and preferences apart, from 0 to 1: how far its arm is from the last few.

    While one arm is played both explain all there is, and the level, which has fewer numbers, follows it better even
    where preferences turn; to believe in it then is to stay with that arm.
    """
    far, square = 0.0, 0.0
    for i in range(center.shape[1]):
        v = per_unit(gauge, i)
        x, middle = v * lesson.X[lesson.at, i, lesson.arm], v * center[0, i]
        far += (x - middle) * (x - middle)
        square += x * x
    return min(1.0, CONTRAST * far / square) if square > 0.0 else 0.0


@piece
def believe_preferences_(
    lane: int, ridge: float, gauge: Gauge, sums: Sums, low: Floats, pivot: Floats, z: Floats
) -> None:
    """low low' is the precision of θ over 1/R², z = low⁻¹b."""
    in_units_(sums.G, sums.b, lane, gauge, low, z)
    factor_one_(low, lane, max(ridge, NEGLIGIBLE * trace_of(sums.G, lane, gauge)), low, pivot)
    forward_one_(low, pivot, z, lane, z)
    out_of_units_(gauge, low, pivot)


@piece
def foretell_levels_(
    first: int, ridge: float, lesson: Lesson, gauge: Gauge, sums: Sums, by_level: LevelForecast, slots: LaneScratch
) -> None:
    """What eight lanes believe of a lesson's reward, R²·square its variance: that of the level is in it. Slots beyond
    the lanes there are go to the last."""
    center = by_level.center
    d, lanes = center.shape[1], by_level.value.size
    for slot in range(EIGHT):
        slots.who[slot] = min(first + slot, lanes - 1)
    fill_slots_(lesson.X, lesson.at, lesson.arm, gauge, sums.G, sums.b, slots)
    for slot in range(slots.who.size):
        lane = min(first + slot, lanes - 1)
        own = lane % center.shape[0]
        slots.ridge[slot] = max(ridge, NEGLIGIBLE * trace_of(sums.G, lane, gauge))
        slots.value[slot], slots.square[slot] = by_level.reward[own], by_level.spread[own]
        for i in range(d):
            slots.rows[d + 1, i, slot] = (lesson.X[lesson.at, i, lesson.arm] - center[own, i]) * per_unit(gauge, i)
    foretell_eight_(slots, False, True)
    for slot in range(min(EIGHT, lanes - first)):
        by_level.value[first + slot], by_level.square[first + slot] = slots.value[slot], slots.square[slot]


@piece
def age_preferences_(point: Point, row: int, lane: int, ticks: float, sums: Sums) -> float:
    """Time passes for θ; by what its sums have yet to fade."""
    factor, counters = decay(point.table, row, ticks), sums.counters
    counters[lane, CLOCK] += ticks
    counters[lane, WEIGHT] *= factor
    counters[lane, SQUARES] *= factor * factor
    return factor


@piece
def take_preferences_(
    point: Point, row: int, lane: int, factor: float, bend: float, usual: float, lesson: Lesson,
    by_level: LevelForecast, sums: Sums,
) -> None:
    """The sums of θ fade by factor; then what x̄ and r̄ missed enters, the less the less they were known. The reward has
    the variance R²/bend, and so what was missed R²(1/bend + spread); counters take it as if that were R²/usual."""
    counters, f = sums.counters, lane % by_level.center.shape[0]
    age = weight_of(point, row, lesson.age)
    weight = bend * age / (1.0 + bend * by_level.spread[f])
    blend_offset_(lane, factor, weight, lesson, by_level.center, f, by_level.reward[f], sums)
    weight = usual * age / (1.0 + usual * by_level.spread[f])
    counters[lane, COUNT] += 1.0
    counters[lane, WEIGHT] += weight
    counters[lane, SQUARES] += weight * weight


@piece
def center_arms_(
    point: Point, row: int, lane: int, ridge: float, guess: float, X: Floats, at: int, levels: Levels, gauge: Gauge,
    scores: ScoreScratch,
) -> None:
    """mean = r̄ + (x - x̄)'θ̂ and bonus = ‖x - x̄‖² of every arm, by one lane."""
    center, first = scores.other, int(ONLY)
    own = lane % levels.filters.shape[0]
    level = center_(point, row, guess, levels.filters, own, 0.0, center, first)
    low, pivot, z, Y, square = scores.low, scores.pivot, scores.z, scores.Y, scores.bonus
    believe_preferences_(lane, ridge, gauge, levels.sums, low, pivot, z)
    shift = level.reward
    forward_one_(low, pivot, center[first], first, center[first])  # x̄ as whiten_ has the arms
    for i in range(z.size):
        shift -= center[first, i] * z[i]
    whiten_(scores, X, at)
    for a in range(square.size):
        square[a] = 0.0
        scores.mean[a] += shift
    for i in range(z.size):
        u = center[first, i]
        for a in range(square.size):
            y = Y[i, a] - u
            square[a] += y * y


@piece
def level_scores_(
    point: Point, row: int, lane: int, X: Floats, at: int, levels: Levels, gauge: Gauge, scores: ScoreScratch
) -> None:
    """Mean and bonus of every arm: r̄ + (x - x̄)'θ̂ and a quantile's R‖x - x̄‖, for all arms share the level; of clicks,
    what the link makes of them.

    While one arm is played nothing tells how long preferences last: what is unknown of them is that of all memories of
    preferences together, as they are weighed, and so arms that only the longest is sure of are looked at again.
    """
    d, f, sums = scores.z.size, lane % FOUR, levels.sums
    prior, square, total = prior_of(point, row, gauge, d), scores.proposed, 0.0
    guess = guess_of(prior, gauge, d)
    for a in range(square.size):
        square[a] = 0.0
    for k in range(f, levels.weights.size, FOUR):
        if k != lane:
            center_arms_(point, row, k, prior.ridge, guess, X, at, levels, gauge, scores)
            for a in range(square.size):
                square[a] += levels.weights[k] * scores.bonus[a]
        total += levels.weights[k]
    center_arms_(point, row, lane, prior.ridge, guess, X, at, levels, gauge, scores)
    for a in range(square.size):
        scores.bonus[a] = (square[a] + levels.weights[lane] * scores.bonus[a]) / total
    quantile = quantile_of(point, row, sums.counters[lane, WEIGHT])
    if point.flags[LINK] != IDENTITY:
        lift_(point.flags[LINK], quantile * point.table[row, EXPLORE], scores.mean, scores.bonus)
    else:
        roots_(quantile * point.table[row, EXPLORE] * prior.noise, scores.bonus)
