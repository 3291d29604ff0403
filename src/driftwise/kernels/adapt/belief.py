"""The compiled entries of policies that believe: alone, or in a bank of memories, some with a trend.

They serve what the entries of kernels/linear.py do not: noise and scale that are learned, trends, and clicks in a bank
of such lanes (docs/math.md#auto).
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, Protocol

from driftwise.kernels import entry, formula, part, piece, routine
from driftwise.kernels.adapt.bank import bank_of, bank_pay_, bank_wake_
from driftwise.kernels.adapt.book import sound_marks
from driftwise.kernels.adapt.lane import Lane
from driftwise.kernels.adapt.lesson import acting_lane, lesson_under, who_acts
from driftwise.kernels.adapt.levels import (
    BELIEVED,
    LEVEL_SHARE,
    awake,
    level_lane,
    longest_awake,
    may_follow,
    weigh_family_,
)
from driftwise.kernels.algebra import forward_one_
from driftwise.kernels.belief import (
    DOUBT,
    GAUGE,
    NEGLIGIBLE,
    Gauge,
    Prior,
    belief_scores_,
    believe_,
    bend_of,
    doubt_,
    first_units_,
    gauge_,
    gauge_of,
    learns_units,
    per_unit,
    prior_of,
    square_length,
    strange_,
    surprise_of,
    trace_of,
    widths_,
)
from driftwise.kernels.chance import uniform
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.foretell import LaneScratch, fill_slopes_, fill_slots_, foretell_eight_, lane_shapes
from driftwise.kernels.index import ScoreScratch, first_less, score_scratch_of
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.level import (
    LevelForecast,
    Levels,
    age_preferences_,
    center_,
    contrast_of,
    filter_,
    foretell_levels_,
    guess_of,
    level_decay,
    level_forecast_of,
    level_scores_,
    levels_of,
    take_preferences_,
)
from driftwise.kernels.links import IDENTITY, slope
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memories.any import lessons_of, trends
from driftwise.kernels.memories.fade import weight as weight_of
from driftwise.kernels.memories.phases import Learn, Phases
from driftwise.kernels.memories.sums import blend_, blend_lags_, follow_, scale_
from driftwise.kernels.memories.trend import run_, sloped
from driftwise.kernels.point import (
    ADAPT,
    AUDIT,
    AUDIT_LANE,
    BANK,
    CLOCK,
    COUNT,
    DAMAGED,
    FILTERS,
    KEY_HIGH,
    KEY_LOW,
    LEVELS,
    LINK,
    MEMORY,
    ONLY,
    SQUARES,
    STIFFNESS,
    WAKES,
    WEIGHT,
    Adapting,
    Floats,
    History,
    Ints,
    Lesson,
    Point,
    Sums,
    adapting_of,
    history_of,
    sound_cursor,
    sums_of,
)
from driftwise.kernels.rounds import Family, Teaches
from driftwise.kernels.scratch import Shapes, carved_from
from driftwise.kernels.solvers.one_pass import root

LEAST_SLOPE = 1e-300
# Of more features than these, memories foretell one reward in so many; conjugate gradients between these.
FEATURES, GRADIENTS = 32, 12
# What tells the draws of audits from others by the same key.
AUDITS = 1
# The part of looks that are made where no arm is hidden.
SELDOM = 0.125
# An arm is worth a look as if it lost no less than the root of so many variances; doubts below this are none.
NEAR, LEAST_DOUBT = 0.01, 0.05
# What a decision is for: the lane that acts plays it; it tries what would be played without a level; it looks at an arm
# that is not played, by the draw of number LOOK - purpose.
ACTING, TRIAL, LOOK = -1, -3, -4
# Nats of evidence for a level at which a quarter of decisions would be trials.
TRIALS = 0.7


class Foretold(NamedTuple):
    """x'θ was believed to be `value`, with variance R²·square, if it was `asked`."""

    value: float
    square: float
    asked: bool


class Click(NamedTuple):
    """A lesson whose reward is a click's log odds, and the weight they have."""

    lesson: Lesson
    bend: float


class Forecast(NamedTuple):
    """Scratch of a lane that believes, every lane's surprise and the value and squared length of what it foretold; for
    those of a bank also slots for eight of them."""

    low: Floats
    other: Floats
    pivot: Floats
    z: Floats
    y: Floats
    surprise: Floats
    value: Floats
    square: Floats
    slots: LaneScratch


@formula
def forecast_shapes(d: int, lanes: int) -> Shapes:
    """The shapes of its fields. One lane alone needs no slots, and of many features none has a trend."""
    slots = lane_shapes(d if lanes > 1 else 0, 1 if d <= FEATURES else 0)
    return (d, d), (d, d), (d,), (d,), (d,), (lanes,), (lanes,), (lanes,), slots


forecast_size, forecast_of = carved_from(Forecast, forecast_shapes)


@piece
def foretell_(
    point: Point, row: int, lane: int, ridge: float, lesson: Lesson, gauge: Gauge, sums: Sums, forecast: Forecast
) -> Foretold:
    """What a lane believes of a lesson's x'θ."""
    low, pivot, z, y = forecast.low, forecast.pivot, forecast.z, forecast.y
    believe_(point, row, lane, ridge, gauge, sums, low, forecast.other, pivot, z)
    value, square = 0.0, 0.0
    for i in range(y.size):
        y[i] = lesson.X[lesson.at, i, lesson.arm]
    forward_one_(low, pivot, y, lane, y)
    for i in range(y.size):
        value += y[i] * z[i]
        square += y[i] * y[i]
    return Foretold(value, square, True)


@piece
def click_of(link: int, value: float, square: float, lesson: Lesson) -> Click:
    """A click where log odds `value` with variance `square` were foretold: z + (r - μ)/μ' with weight μ', at the z that
    Newton's step leads to."""
    z = root(link, value, square, lesson.reward)
    bend = max(slope(link, z), LEAST_SLOPE)
    odds = z + (lesson.reward - link_mean(link, z)) / bend
    return Click(Lesson(lesson.X, lesson.at, lesson.arm, odds, lesson.ticks, lesson.age), bend)


@piece
def take_in_(
    point: Point, row: int, lane: int, factor: float, bend: float, lesson: Lesson, sums: Sums
) -> None:
    """The sums of a lane fade by factor; then a reward of variance R²/bend enters."""
    weight = weight_of(point, row, lesson.age)
    blend_(lane, factor, weight * bend, lesson, sums)
    if lesson.age > 0.0 and sloped(point, row):
        blend_lags_(lane, weight * bend, lesson, sums)
    sums.counters[lane, COUNT] += 1.0
    sums.counters[lane, WEIGHT] += weight
    sums.counters[lane, SQUARES] += weight * weight


@piece
def foretells_next(sums: Sums) -> bool:
    """Whether memories foretell the next reward: of many features they do for one reward in so many, since a forecast
    takes d³ steps and a lesson d²."""
    every = (sums.b.shape[1] + FEATURES - 1) // FEATURES
    return bool(int(sums.counters[0, COUNT]) % every == 0)


@part
def solve_one_(
    lane: int, ridge: float, gauge: Gauge, sums: Sums, x: Floats, forecast: Forecast
) -> Foretold:
    """x'V⁻¹b and x'V⁻¹x of a lane without a slope by a few conjugate gradients, x in units of the features."""
    d, G = x.size, sums.G
    y, r, p, q = forecast.other[0], forecast.other[1], forecast.other[2], forecast.other[3]
    inverse, fit = forecast.pivot, 0.0
    ridge = max(ridge, NEGLIGIBLE * trace_of(G, lane, gauge))
    for i in range(d):
        v = per_unit(gauge, i)
        inverse[i] = 1.0 / (G[lane, i, i] * v * v + ridge)
        y[i], r[i], p[i] = 0.0, x[i], x[i] * inverse[i]
        fit += r[i] * p[i]
    for _ in range(GRADIENTS):
        if not fit > 0.0:
            break
        for i in range(d):
            q[i] = ridge * p[i]
        for i in range(d):
            v = per_unit(gauge, i)
            total, pi = 0.0, p[i]
            for j in range(i):
                g = G[lane, i, j] * (v * per_unit(gauge, j))
                total += g * p[j]
                q[j] += g * pi
            q[i] += total + G[lane, i, i] * v * v * pi
        bent = 0.0
        for i in range(d):
            bent += p[i] * q[i]
        step, before, fit = fit / bent, fit, 0.0
        for i in range(d):
            y[i] += step * p[i]
            r[i] -= step * q[i]
            fit += r[i] * r[i] * inverse[i]
        for i in range(d):
            p[i] = r[i] * inverse[i] + fit / before * p[i]
    value, square = 0.0, 0.0
    for i in range(d):
        value += y[i] * sums.b[lane, i] * per_unit(gauge, i)
        square += y[i] * x[i]
    return Foretold(value, max(square, 0.0), True)


@piece
def foretell_all_(
    point: Point, slopes: bool, ridge: float, lesson: Lesson, gauge: Gauge, sums: Sums, forecast: Forecast
) -> None:
    """What all memories that are awake foretell, of those with slopes or those without; empty slots go to the last."""
    slots, lanes, filled = forecast.slots, sums.G.shape[0], 0
    for k in range(lanes):
        if sloped(point, k) == slopes and awake(point, k, sums):
            for slot in range(filled, slots.who.size):
                slots.who[slot] = k
            slots.ridge[filled] = max(ridge, NEGLIGIBLE * trace_of(sums.G, k, gauge))
            if slopes:
                stiff = slots.ridge[filled] * point.table[k, STIFFNESS]
                slots.stiff[filled] = max(stiff, NEGLIGIBLE * trace_of(sums.lag_square, k, gauge))
            filled += 1
        if filled == slots.who.size or (filled > 0 and k == lanes - 1):
            for slot in range(filled, slots.who.size):
                slots.ridge[slot], slots.stiff[slot] = slots.ridge[filled - 1], slots.stiff[filled - 1]
            fill_slots_(lesson.X, lesson.at, lesson.arm, gauge, sums.G, sums.b, slots)
            if slopes:
                fill_slopes_(gauge, sums.lag, sums.lag_square, sums.lag_reward, slots)
            foretell_eight_(slots, slopes, slopes)
            for slot in range(filled):
                lane = int(slots.who[slot])
                forecast.value[lane], forecast.square[lane] = slots.value[slot], slots.square[slot]
            filled = 0


@part
def bank_foretell_(point: Point, lesson: Lesson, prior: Prior, gauge: Gauge, sums: Sums, forecast: Forecast) -> None:
    """What every memory that is awake foretells, and how surprised it is."""
    foretell_all_(point, False, prior.ridge, lesson, gauge, sums, forecast)
    foretell_all_(point, True, prior.ridge, lesson, gauge, sums, forecast)
    for k in range(sums.G.shape[0]):
        forecast.surprise[k] = math.inf
        if awake(point, k, sums):
            value, square = forecast.value[k], forecast.square[k]
            forecast.surprise[k] = surprise_of(point, k, prior, gauge, lesson.reward, value, square)


@piece
def center_all_(point: Point, guess: float, ticks: float, filters: Floats, by_level: LevelForecast) -> None:
    """What every filter believes of the level, `ticks` from now."""
    rows = point.table.shape[0] - by_level.value.size
    for f in range(filters.shape[0]):
        level = center_(point, rows + f, guess, filters, f, ticks, by_level.center, f)
        by_level.reward[f], by_level.spread[f] = level.reward, level.spread


@piece
def level_pay_(
    point: Point, lesson: Lesson, prior: Prior, gauge: Gauge, levels: Levels, plain: float, by_level: LevelForecast,
    slots: LaneScratch,
) -> None:
    """All lanes with a level are paid; the family is held against the plain one, whose density is e^plain."""
    lanes = levels.weights.size
    rows = point.table.shape[0] - lanes
    for first in range(0, lanes, EIGHT):
        foretell_levels_(first, prior.ridge, lesson, gauge, levels.sums, by_level, slots)
    for k in range(lanes):
        value, square = by_level.value[k], by_level.square[k]
        by_level.surprise[k] = surprise_of(point, rows + k, prior, gauge, lesson.reward, value, square)
    nats = bank_pay_(levels.weights, by_level.surprise, LEVEL_SHARE) - plain
    timely = level_decay(point, rows, lesson.age)  # a late reward tells of the level of its own day
    weigh_family_(levels.evidence, nats, timely * contrast_of(lesson, gauge, by_level.center))


@part
def level_lesson_(
    point: Point, lesson: Lesson, asked: bool, prior: Prior, gauge: Gauge, levels: Levels, plain: float,
    by_level: LevelForecast, slots: LaneScratch,
) -> None:
    """All lanes with a level are paid for a value if they were asked for it, and learn it."""
    lanes, filters, sums = levels.weights.size, levels.filters, levels.sums
    rows = point.table.shape[0] - lanes
    center_all_(point, guess_of(prior, gauge, by_level.center.shape[1]), lesson.ticks, filters, by_level)
    if lesson.arm >= 0 and asked and not prior.blind:
        level_pay_(point, lesson, prior, gauge, levels, plain, by_level, slots)
    for k in range(lanes):
        factor = age_preferences_(point, rows + k, k, lesson.ticks, sums)
        if lesson.arm >= 0:
            bend = 1.0 / prior.spread
            if asked and not prior.blind:
                bend = bend_of(prior, lesson.reward, by_level.value[k], by_level.square[k])
            take_preferences_(point, rows + k, k, factor, bend, 1.0, lesson, by_level, sums)
        else:
            scale_(k, factor, sums)
    last = lanes - filters.shape[0]  # a filter's own lane is the one with the longest memory of preferences
    for f in range(filters.shape[0]):
        bend = 1.0 / prior.spread
        if lesson.arm >= 0 and asked and not prior.blind:
            bend = bend_of(prior, lesson.reward, by_level.value[last + f], by_level.square[last + f])
        filter_(point, rows + f, filters, f, bend, lesson)


@routine
def level_clicks_(
    point: Point, lesson: Lesson, prior: Prior, gauge: Gauge, levels: Levels, plain: float, by_level: LevelForecast,
    slots: LaneScratch,
) -> None:
    """All lanes with a level are paid for a click once time has passed, and each learns what it makes of it."""
    lanes, filters, sums = levels.weights.size, levels.filters, levels.sums
    rows = point.table.shape[0] - lanes
    center_all_(point, guess_of(prior, gauge, by_level.center.shape[1]), lesson.ticks, filters, by_level)
    for k in range(lanes):
        factor = age_preferences_(point, rows + k, k, lesson.ticks, sums)
        if factor != 1.0:
            scale_(k, factor, sums)
    if lesson.arm < 0:
        for f in range(lanes):
            filter_(point, rows + f, filters, f, 1.0, lesson)
        return
    level_pay_(point, lesson, prior, gauge, levels, plain, by_level, slots)
    for k in range(lanes):  # each has a filter of its own
        contrast = weight_of(point, rows + k, lesson.age) * (by_level.square[k] - by_level.spread[k])
        click = click_of(point.flags[LINK], by_level.value[k], by_level.spread[k] + contrast, lesson)
        take_preferences_(point, rows + k, k, 1.0, click.bend, click.bend, click.lesson, by_level, sums)
        filter_(point, rows + k, filters, k, click.bend, click.lesson)


@piece
def clicks_age_(point: Point, lesson: Lesson, sums: Sums, history: History, forecast: Forecast) -> None:
    """Time passes for every memory awake."""
    for k in range(sums.G.shape[0]):
        forecast.surprise[k] = math.inf
        if awake(point, k, sums):
            factor = run_(point, k, k, lesson.ticks, sums, history)
            if factor != 1.0:
                scale_(k, factor, sums)


@routine
def clicks_learn_(
    point: Point, lesson: Lesson, prior: Prior, gauge: Gauge, sums: Sums, forecast: Forecast
) -> None:
    """Every memory awake is as surprised by a click as the chance says that it gave it, and learns what it makes of
    it."""
    foretell_all_(point, False, prior.ridge, lesson, gauge, sums, forecast)
    foretell_all_(point, True, prior.ridge, lesson, gauge, sums, forecast)
    for k in range(sums.G.shape[0]):
        if awake(point, k, sums):
            value, square = forecast.value[k], forecast.square[k]
            forecast.surprise[k] = surprise_of(point, k, prior, gauge, lesson.reward, value, square)
            click = click_of(point.flags[LINK], value, weight_of(point, k, lesson.age) * square, lesson)
            take_in_(point, k, k, 1.0, click.bend, click.lesson, sums)


@routine
def click_for_all_(
    point: Point, lesson: Lesson, acting: int, prior: Prior, gauge: Gauge, sums: Sums, forecast: Forecast
) -> None:
    """Every memory awake learns what the one that acts makes of a click."""
    for i in range(forecast.y.size):
        forecast.y[i] = lesson.X[lesson.at, i, lesson.arm] * per_unit(gauge, i)
    seen = solve_one_(acting, prior.ridge, gauge, sums, forecast.y, forecast)
    forecast.value[0], forecast.square[0] = seen.value, seen.square
    click = click_of(point.flags[LINK], seen.value, seen.square, lesson)
    for k in range(sums.G.shape[0]):
        if awake(point, k, sums):
            take_in_(point, k, k, 1.0, click.bend, click.lesson, sums)


@routine
def level_click_(
    point: Point, lesson: Lesson, prior: Prior, gauge: Gauge, levels: Levels, forecast: Forecast,
    by_level: LevelForecast,
) -> None:
    """The same for lanes with a level."""
    filters, sums = levels.filters, levels.sums
    rows = point.table.shape[0] - levels.weights.size
    center_all_(point, guess_of(prior, gauge, by_level.center.shape[1]), lesson.ticks, filters, by_level)
    click = click_of(point.flags[LINK], forecast.value[0], forecast.square[0], lesson)
    for k in range(levels.weights.size):
        factor = age_preferences_(point, rows + k, k, lesson.ticks, sums)
        take_preferences_(point, rows + k, k, factor, click.bend, click.bend, click.lesson, by_level, sums)
        filter_(point, rows + k, filters, k, click.bend, click.lesson)


class Belief(NamedTuple):
    """A state of lanes that believe: sums, the bank's weights, lanes with a level, and what is known of the noise."""

    point: Point
    sums: Sums
    history: History
    own: Adapting
    levels: Levels
    gauge: Gauge


class BeliefScratch(NamedTuple):
    """Scratch of a lesson."""

    forecast: Forecast
    by_level: LevelForecast


class Lanes(NamedTuple):
    """Lanes that believe, those with a level apart beside them, scratch of their lessons, and whether they are asked
    what they foretell."""

    sums: Sums
    history: History
    levels: Levels
    prior: Prior
    gauge: Gauge
    forecast: Forecast
    by_level: LevelForecast
    surprise: Floats
    asked: bool


@part
def values_foretell_(point: Point, lesson: Lesson, lanes: Lanes, own: Adapting) -> bool:
    """How surprised every memory awake is by a value, once it is known how large values are."""
    if lesson.arm < 0 or lanes.prior.blind or not lanes.asked:
        return False
    bank_foretell_(point, lesson, lanes.prior, lanes.gauge, lanes.sums, lanes.forecast)
    return True


@part
def clicks_foretell_(point: Point, lesson: Lesson, lanes: Lanes, own: Adapting) -> bool:
    """How surprised every memory awake is by a click, which it learns at the same time."""
    clicks_age_(point, lesson, lanes.sums, lanes.history, lanes.forecast)
    if lesson.arm < 0:
        return False
    if lanes.asked:
        clicks_learn_(point, lesson, lanes.prior, lanes.gauge, lanes.sums, lanes.forecast)
    else:
        click_for_all_(point, lesson, acting_lane(point, own), lanes.prior, lanes.gauge, lanes.sums, lanes.forecast)
    return lanes.asked


@part
def lane_foretell_(point: Point, lesson: Lesson, lanes: Lanes, own: Adapting) -> bool:
    """Either, by the link."""
    if point.flags[LINK] != IDENTITY:
        return clicks_foretell_(point, lesson, lanes, own)
    return values_foretell_(point, lesson, lanes, own)


@part
def values_paid_(point: Point, lesson: Lesson, density: float, lanes: Lanes) -> None:
    """Lanes with a level are paid and learn: what the plain ones gave is what they are held against."""
    if lanes.levels.weights.size > 0:
        slots = lanes.forecast.slots
        level_lesson_(
            point, lesson, lanes.asked, lanes.prior, lanes.gauge, lanes.levels, density, lanes.by_level, slots
        )


@part
def clicks_paid_(point: Point, lesson: Lesson, density: float, lanes: Lanes) -> None:
    """The same for a click."""
    if lanes.levels.weights.size == 0:
        return
    if lanes.asked or lesson.arm < 0:
        slots = lanes.forecast.slots
        level_clicks_(point, lesson, lanes.prior, lanes.gauge, lanes.levels, density, lanes.by_level, slots)
    else:
        level_click_(point, lesson, lanes.prior, lanes.gauge, lanes.levels, lanes.forecast, lanes.by_level)


@part
def lane_paid_(point: Point, lesson: Lesson, density: float, lanes: Lanes) -> None:
    """Either, by the link."""
    if point.flags[LINK] != IDENTITY:
        clicks_paid_(point, lesson, density, lanes)
    else:
        values_paid_(point, lesson, density, lanes)


@part
def values_learn_(point: Point, row: int, lane: int, lesson: Lesson, lanes: Lanes) -> None:
    """A memory awake learns a value, the less the louder the noise of now is."""
    if awake(point, lane, lanes.sums):
        factor = run_(point, row, lane, lesson.ticks, lanes.sums, lanes.history)
        if lesson.arm >= 0:
            bend = 1.0 / lanes.prior.spread
            if lanes.asked and not lanes.prior.blind:
                value, square = lanes.forecast.value[lane], lanes.forecast.square[lane]
                bend = bend_of(lanes.prior, lesson.reward, value, square)
            take_in_(point, row, lane, factor, bend, lesson, lanes.sums)
        elif factor != 1.0:
            scale_(lane, factor, lanes.sums)


@part
def clicks_learned_(point: Point, row: int, lane: int, lesson: Lesson, lanes: Lanes) -> None:
    """Every memory has learned a click already."""


@part
def lane_learn_(point: Point, row: int, lane: int, lesson: Lesson, lanes: Lanes) -> None:
    """Either, by the link."""
    if point.flags[LINK] == IDENTITY:
        values_learn_(point, row, lane, lesson, lanes)


@part
def lane_may_follow(point: Point, lane: int, other: int, lanes: Lanes) -> bool:
    """Whether a memory is awake and can begin as another."""
    return bool(awake(point, lane, lanes.sums) and may_follow(point, lane, other))


@part
def lane_follow_(lane: int, other: int, lanes: Lanes) -> None:
    """A memory takes over another's data."""
    follow_(lane, other, lanes.sums)


@part
def lane_wake_(point: Point, lesson: Lesson, lanes: Lanes, own: Adapting) -> None:
    """Memories whose time has come wake; time passes for those that sleep."""
    sums = lanes.sums
    for k in range(sums.G.shape[0]):
        if not awake(point, k, sums):
            if sums.counters[k, CLOCK] + lesson.ticks >= point.table[k, WAKES]:
                source = longest_awake(point, k, sums)
                follow_(k, source, sums)
                bank_wake_(point, own, k, source)
            sums.counters[k, CLOCK] += lesson.ticks


LANE: Lane[Lanes] = Lane(
    lane_learn_, lane_foretell_, lane_follow_, paid_=lane_paid_, may_follow=lane_may_follow, wake_=lane_wake_
)
# Lanes of which all learn values, or all clicks.
VALUES = LANE._replace(foretell_=values_foretell_, paid_=values_paid_, learn_=values_learn_)
CLICKS = LANE._replace(foretell_=clicks_foretell_, paid_=clicks_paid_, learn_=clicks_learned_)


@part
def shown_of(point: Point, lesson: Lesson, acting: int, with_level: int, lanes: Lanes) -> Foretold:
    """What the lane that acted had foretold, which the gauge compares with the reward."""
    values = point.flags[LINK] == IDENTITY
    if lesson.arm < 0 or (values and (lanes.prior.blind or not lanes.asked)):
        return Foretold(0.0, 0.0, False)
    if with_level >= 0 and lanes.asked:
        return Foretold(lanes.by_level.value[with_level], lanes.by_level.square[with_level], True)
    lane = acting if lanes.asked else 0
    return Foretold(lanes.forecast.value[lane], lanes.forecast.square[lane], True)


@part
def doubt_of_(point: Point, lesson: Lesson, shown: Foretold, lanes: Lanes) -> None:
    """What a reward says of an arm that is hardly known, by its value or by the chance of a click."""
    short = lanes.forecast.square[int(point.table[0, AUDIT_LANE])]
    length = square_length(lesson.X, lesson.at, lesson.arm, lanes.gauge)
    link, noise = point.flags[LINK], lanes.prior.noise
    if link == IDENTITY:
        variance = noise * noise * (lanes.prior.spread + shown.square)
        doubt_(lesson.reward - shown.value, variance, short, 1.0, length, lanes.gauge)
    else:
        chance = link_mean(link, shown.value)
        error, variance = lesson.reward - chance, chance * (1.0 - chance)
        doubt_(error, variance, short, slope(link, shown.value), length, lanes.gauge)


class TaughtAll(Protocol):
    """A lesson of all lanes that learn; what the one that acted had foretold."""

    def __call__(
        self, point: Point, rho: Floats, lesson: Lesson, acting: int, row: int, prior: Prior, view: Belief,
        work: BeliefScratch,
    ) -> Foretold: ...


def bank_taught(lane: Lane[Lanes]) -> TaughtAll:
    """All lanes of a bank learn."""
    bank_lesson_ = lesson_under(bank_of(lane), lane)

    @part
    def taught_(
        point: Point, rho: Floats, lesson: Lesson, acting: int, row: int, prior: Prior, view: Belief,
        work: BeliefScratch,
    ) -> Foretold:
        levels, forecast = view.levels, work.forecast
        with_level = level_lane(levels.weights, levels.evidence)
        due = foretells_next(view.sums)
        lanes = Lanes(
            view.sums, view.history, levels, prior, view.gauge, forecast, work.by_level, forecast.surprise, due
        )
        bank_lesson_(point, rho, lesson, 0.0, lanes, view.own)
        shown = shown_of(point, lesson, acting, with_level, lanes)
        if shown.asked and due:
            doubt_of_(point, lesson, shown, lanes)
        return shown

    return taught_


def alone_taught(learn_: Learn) -> TaughtAll:
    """The one lane learns; it foretells where a gauge compares."""

    @part
    def taught_(
        point: Point, rho: Floats, lesson: Lesson, acting: int, row: int, prior: Prior, view: Belief,
        work: BeliefScratch,
    ) -> Foretold:
        shown = Foretold(0.0, 0.0, False)
        if lesson.arm >= 0 and view.gauge.known.size > 0:
            shown = foretell_(point, row, acting, prior.ridge, lesson, view.gauge, view.sums, work.forecast)
        learn_(point, row, acting, lesson, view.sums, view.history)
        return shown

    return taught_


bank_taught_, alone_taught_ = bank_taught(LANE), alone_taught(trends.learn_)


@part
def any_taught_(
    point: Point, rho: Floats, lesson: Lesson, acting: int, row: int, prior: Prior, view: Belief, work: BeliefScratch
) -> Foretold:
    """Either, by the adaptation."""
    if point.flags[ADAPT] == BANK:
        return bank_taught_(point, rho, lesson, acting, row, prior, view, work)
    return alone_taught_(point, rho, lesson, acting, row, prior, view, work)


@piece
def bank_scores_(
    point: Point, X: Floats, at: int, sums: Sums, own: Adapting, levels: Levels, gauge: Gauge, seen: ScoreScratch
) -> int:
    """Mean and bonus of every arm by the lane that acts; the row of the table it acts by."""
    with_level = level_lane(levels.weights, levels.evidence)
    if with_level >= 0:
        row = int(point.table.shape[0] - levels.weights.size + with_level)
        level_scores_(point, row, with_level, X, at, levels, gauge, seen)
        return row
    lane, row = who_acts(point, own)
    belief_scores_(point, row, lane, X, at, sums, gauge, seen)
    return row


@piece
def audit_chance(point: Point, known: Vector, count: float) -> float:
    """How likely a decision is a look: min(1, a/√t) for the t-th reward to come, and more after a look that found an
    arm better than foretold."""
    audit = float(point.table[0, AUDIT])
    again = float(known[DOUBT]) if known.size > GAUGE and audit > 0.0 else 0.0
    return min(1.0, max(audit / math.sqrt(count + 1.0), again if again > LEAST_DOUBT else 0.0))


@piece
def trial_chance(point: Point, known: Vector, evidence: Vector, count: float) -> float:
    """How likely a decision is a trial of what would be played without a level: the less, the surer the level is."""
    if point.table[0, AUDIT] == 0.0 or evidence.size == 0 or evidence[0] <= BELIEVED:
        return 0.0
    doubt = TRIALS / (TRIALS + float(evidence[0]))
    return (1.0 - audit_chance(point, known, count)) * doubt * doubt


@piece
def purpose_of(
    point: Point, own: Adapting, known: Vector, evidence: Vector, number: int, count: float
) -> int:
    """What decision `number` is for, after so many rewards: a look, a trial or neither, by a draw of the key's."""
    look, trial = audit_chance(point, known, count), trial_chance(point, known, evidence, count)
    if look + trial == 0.0:
        return ACTING
    drawn = uniform(own.key[KEY_LOW], own.key[KEY_HIGH], number, AUDITS, 0)
    return LOOK - number if drawn < look else TRIAL if drawn < look + trial else ACTING


@piece
def less_(costs: Floats, mean: Floats) -> None:
    """Subtract the costs of arms, if there are any, from their means."""
    for a in range(costs.size):
        mean[a] -= costs[a]


@piece
def look_(view: Belief, X: Floats, at: int, number: int, costs: Floats, scores: ScoreScratch) -> int:
    """The arm that decision `number` looks at; `proposed` is the chance of every arm.

    An arm is drawn by what a short memory does not know of it beside what it seems to lose, by that memory or by the
    one that acts: s²/(gap² + s²/100). What an arm costs is lost too; there may be no costs. The arm that would be
    played anyway is not looked at. Where no arm is hidden, seven of eight looks play that arm: others are known as
    well as it is.
    """
    point, own, mean, width, chance = view.point, view.own, scores.mean, scores.bonus, scores.proposed
    bank_scores_(point, X, at, view.sums, own, view.levels, view.gauge, scores)
    acting, best, total = first_less(mean, width, costs), -math.inf, 0.0
    less_(costs, mean)
    for a in range(chance.size):
        chance[a] = mean[a]
        best = max(best, mean[a])
    hidden = widths_(point, int(point.table[0, AUDIT_LANE]), X, at, acting, view.sums, view.gauge, scores)
    less_(costs, mean)
    for a in range(chance.size):
        gap, square = max(best - max(chance[a], mean[a]), 0.0), width[a] * width[a]
        mean[a] = chance[a]
        chance[a] = 1e-300
        if a != acting and width[a] > 0.0:
            chance[a] += square / (gap * gap + NEAR * square)
        total += chance[a]
    if not hidden:
        chance[acting] += (1.0 / SELDOM - 1.0) * total
        total = total / SELDOM
    drawn = total * uniform(own.key[KEY_LOW], own.key[KEY_HIGH], number, AUDITS, 1)
    arm, below = acting, 0.0
    for a in range(chance.size):
        if drawn >= below and chance[a] > 0.0:
            arm = a
        below += chance[a]
        chance[a] /= total
    return arm


@piece
def without_level_(view: Belief, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the lane that would act without a level; its row."""
    lane, row = who_acts(view.point, view.own)
    belief_scores_(view.point, row, lane, X, at, view.sums, view.gauge, scores)
    return row


# ------------------------------------------------------------------------------------------ the family


@piece
def belief_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> Belief:
    """A packed state as the family sees it."""
    sums, history, own = sums_of(flags, floats), history_of(flags, floats, ints), adapting_of(flags, floats, ints)
    return Belief(Point(flags, table), sums, history, own, levels_of(flags, floats), gauge_of(flags, floats))


@piece
def belief_sound(view: Belief) -> bool:
    """Whether cursor and marks lie in range."""
    return sound_cursor(view.history) and sound_marks(view.point, view.own)


@piece
def bank_score_(view: Belief, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the lane that acts; the row that acted. Who decides calls for audits itself."""
    return bank_scores_(view.point, X, at, view.sums, view.own, view.levels, view.gauge, scores)


@piece
def belief_score_(view: Belief, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm, the arm of a look alone with one where a look is due; the row that acted."""
    count = view.sums.counters[0, COUNT]
    purpose = purpose_of(view.point, view.own, view.gauge.known, view.levels.evidence, int(count) + 1, count)
    if purpose == TRIAL:
        return without_level_(view, X, at, scores)
    if purpose <= LOOK:
        arm = look_(view, X, at, int(count) + 1, scores.mean[:0], scores)
        for a in range(scores.bonus.size):
            if a != arm:
                scores.bonus[a] = -math.inf
        return int(view.point.table[0, AUDIT_LANE])
    return bank_score_(view, X, at, scores)


@piece
def alone_score_(view: Belief, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the one lane, which neither has a level nor is audited; the row that acted."""
    lane = int(ONLY)
    belief_scores_(view.point, lane, lane, X, at, view.sums, view.gauge, scores)
    return lane


@piece
def belief_scratch(view: Belief, scratch: Floats, start: int, d: int) -> BeliefScratch:
    """Scratch of a lesson from a place of scratch on."""
    flags, lanes = view.point.flags, view.sums.G.shape[0]
    forecast = forecast_of(scratch, start, d, lanes)
    behind = start + forecast_size(d, lanes)
    by_level = level_forecast_of(scratch, behind, d, flags[LEVELS], flags[FILTERS])
    return BeliefScratch(forecast, by_level)


def belief_lesson(taught_: TaughtAll) -> Teaches[Belief, BeliefScratch]:
    """All lanes learn, then the gauge."""

    @piece
    def lesson_(view: Belief, work: BeliefScratch, rho: Floats, largest: float, lesson: Lesson) -> None:
        point, gauge = view.point, view.gauge
        lane, row = who_acts(point, view.own)
        prior = prior_of(point, row, gauge, view.sums.b.shape[1])
        arm = -1 if strange_(point, row, lesson, gauge) else lesson.arm
        taken = Lesson(lesson.X, lesson.at, arm, lesson.reward, lesson.ticks, lesson.age)
        if arm >= 0 and learns_units(point, row, gauge):
            first_units_(taken, gauge)
        shown = taught_(point, rho, taken, lane, row, prior, view, work)
        if arm >= 0:
            gauge_(point, row, taken, prior, shown.asked, shown.value, shown.square, gauge)

    return lesson_


def belief_bound(family: Family[Belief, BeliefScratch], flags: Ints) -> Family[Belief, BeliefScratch]:
    """The family with the lessons of a policy's memory, link and adaptation, and no others."""
    if flags[ADAPT] == BANK:
        values = bool(flags[LINK] == IDENTITY)
        return _bank(family, "bank_of_values" if values else "bank_of_clicks", VALUES if values else CLICKS)
    return _alone(family, lessons_of(int(flags[MEMORY])))


@cache
def _alone(family: Family[Belief, BeliefScratch], lessons: Phases) -> Family[Belief, BeliefScratch]:
    lesson = belief_lesson(alone_taught(lessons.learn_))
    return family._replace(
        name=f"{family.name}_alone_{lessons.memory.name}", score_=alone_score_, lesson_=lesson
    )


@cache
def _bank(family: Family[Belief, BeliefScratch], name: str, lane: Lane[Lanes]) -> Family[Belief, BeliefScratch]:
    return family._replace(name=f"{family.name}_{name}", lesson_=belief_lesson(bank_taught(lane)))


BELIEF: Family[Belief, BeliefScratch] = Family(
    "belief", belief_view, belief_sound, belief_score_, belief_scratch, belief_lesson(any_taught_), bound=belief_bound
)


# ------------------------------------------------------------------------------------------ entries


@entry
def audit_belief_(
    flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack, purpose: int, costs: Vector
) -> int:
    """The arm of a look, beside the chance of every arm, or the best one without a level, all less costs if there are
    any; DAMAGED, or that arm."""
    view, first = belief_view(flags, table, floats, ints), int(ONLY)
    if not belief_sound(view):
        return DAMAGED
    scores = score_scratch_of(scratch, X.shape[1], X.shape[2])
    if purpose <= LOOK:
        return look_(view, X, first, LOOK - purpose, costs, scores)
    without_level_(view, X, first, scores)
    return first_less(scores.mean, scores.bonus, costs)
