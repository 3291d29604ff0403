"""The compiled entries of policies that believe: alone, or in a bank of memories, some with a trend.

They serve what the entries of kernels/linear.py do not: noise and scale that are learned, trends, and clicks in a bank
of such lanes (MATH.md 8).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import part, piece, routine
from driftwise.kernels.adapt.book import (
    acting_lane,
    acting_row,
    awake,
    bank_behind,
    bank_best,
    bank_pay_,
    bank_return_,
    bank_wake_,
    longest_awake,
    may_follow,
    pass_time_,
    sound_marks,
)
from driftwise.kernels.belief import (
    Gauge,
    Prior,
    belief_scores_,
    believe_,
    gauge_,
    gauge_of,
    prior_of,
    surprise_of,
)
from driftwise.kernels.chance import Record, Rounds, reward_, set_of
from driftwise.kernels.cut import cut
from driftwise.kernels.index import board_of, board_size, first_best
from driftwise.kernels.links import IDENTITY, slope
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memory import blend_, blend_lags_, follow_, learn_, run_, scale_, sloped, weight_of
from driftwise.kernels.point import (
    ADAPT,
    BANK,
    CLOCK,
    COUNT,
    DAMAGED,
    FINE,
    LINK,
    SHARE,
    SQUARES,
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
from driftwise.kernels.solvers.one_pass import root

LEAST_SLOPE = 1e-300


class Foretold(NamedTuple):
    """x'θ was believed to be `value`, with variance R²·square."""

    value: float
    square: float


class Forecast(NamedTuple):
    """Scratch to foretell a reward with: factors low and other (d, d), pivot, z and y (d,), every lane's surprise."""

    low: Floats
    other: Floats
    pivot: Floats
    z: Floats
    y: Floats
    surprise: Floats


@piece
def forecast_size(d: int, lanes: int) -> int:
    """The numbers of a forecast."""
    return 2 * d * d + 3 * d + lanes


@piece
def forecast_of(scratch: Floats, d: int, lanes: int) -> Forecast:
    """A forecast cut from the beginning of scratch."""
    pivot = 2 * d * d
    return Forecast(
        cut(scratch, 0, (d, d)),
        cut(scratch, d * d, (d, d)),
        cut(scratch, pivot, (d,)),
        cut(scratch, pivot + d, (d,)),
        cut(scratch, pivot + 2 * d, (d,)),
        cut(scratch, pivot + 3 * d, (lanes,)),
    )


@piece
def foretell_(
    point: Point, row: int, lane: int, ridge: float, lesson: Lesson, sums: Sums, told: Forecast
) -> Foretold:
    """What a lane believes of a lesson's x'θ."""
    low, pivot, z, y = told.low, told.pivot, told.z, told.y
    believe_(point, row, lane, ridge, sums, low, told.other, pivot, z)
    value, square = 0.0, 0.0
    for i in range(y.size):
        v = lesson.X[lesson.at, i, lesson.arm]
        for j in range(i):
            v -= low[i, j] * y[j]
        y[i] = v * pivot[i]
        value += y[i] * z[i]
        square += y[i] * y[i]
    return Foretold(value, square)


@part
def click_lane_(
    point: Point, row: int, lane: int, ridge: float, lesson: Lesson, sums: Sums, history: History, told: Forecast
) -> Foretold:
    """A lane learns a click: time passes, then it enters as Newton's step would have it, log odds z + (r - μ)/μ' with
    weight μ', at the z that the step leads to. What the lane had foretold by then."""
    factor = run_(point, row, lane, lesson.ticks, sums, history)
    if factor != 1.0:
        scale_(lane, factor, sums)
    if lesson.arm < 0:
        return Foretold(0.0, 0.0)
    link, weight = point.flags[LINK], weight_of(point, row, lesson.age)
    seen = foretell_(point, row, lane, ridge, lesson, sums, told)
    z = root(link, seen.value, weight * seen.square, lesson.reward)
    bend = max(slope(link, z), LEAST_SLOPE)
    value = z + (lesson.reward - link_mean(link, z)) / bend
    taken = Lesson(lesson.X, lesson.at, lesson.arm, value, lesson.ticks, lesson.age)
    blend_(lane, 1.0, weight * bend, taken, sums)
    if lesson.age > 0.0 and sloped(point, row):
        blend_lags_(lane, weight * bend, taken, sums)
    sums.counters[lane, COUNT] += 1.0
    sums.counters[lane, WEIGHT] += weight
    sums.counters[lane, SQUARES] += weight * weight
    return seen


@part
def clicks_learn_(
    point: Point, lesson: Lesson, acting: int, prior: Prior, gauge: Gauge, sums: Sums, history: History,
    own: Adapting, told: Forecast,
) -> Foretold:
    """Every memory awake learns a click and is paid for the chance it gave it once time had passed: one factor does for
    both. What the acting one had foretold."""
    shown = Foretold(0.0, 0.0)
    for k in range(sums.G.shape[0]):
        told.surprise[k] = math.inf
        if awake(point, k, sums):
            seen = click_lane_(point, k, k, prior.ridge, lesson, sums, history, told)
            told.surprise[k] = surprise_of(point, k, prior, gauge, lesson.reward, seen.value, seen.square)
            if k == acting:
                shown = seen
    if lesson.arm >= 0:
        bank_pay_(own.scores, told.surprise, point.table[0, SHARE])
    return shown


@part
def bank_weigh_(
    point: Point, lesson: Lesson, acting: int, prior: Prior, gauge: Gauge, sums: Sums, own: Adapting, told: Forecast
) -> Foretold:
    """Every memory that is awake is paid for the density it gave the reward; what the acting one had foretold."""
    shown = Foretold(0.0, 0.0)
    for k in range(sums.G.shape[0]):
        told.surprise[k] = math.inf
        if awake(point, k, sums):
            seen = foretell_(point, k, k, prior.ridge, lesson, sums, told)
            told.surprise[k] = surprise_of(point, k, prior, gauge, lesson.reward, seen.value, seen.square)
            if k == acting:
                shown = seen
    bank_pay_(own.scores, told.surprise, point.table[0, SHARE])
    return shown


@part
def bank_follow_(point: Point, sums: Sums, own: Adapting) -> None:
    """A longer memory far behind the best one takes over its data."""
    best = bank_best(own.scores)
    behind = bank_behind(point, own, best)
    for k in range(best + 1, sums.G.shape[0]):
        if awake(point, k, sums) and own.scores[k] < behind and may_follow(point, k, best):
            follow_(k, best, sums)
            bank_return_(point, own, k, best)


@part
def bank_lesson_(
    point: Point, lesson: Lesson, acting: int, prior: Prior, gauge: Gauge, sums: Sums, history: History,
    own: Adapting, told: Forecast,
) -> Foretold:
    """All memories awake are paid and learn; those far behind follow the best; those whose time has come wake."""
    shown = Foretold(0.0, 0.0)
    if point.flags[LINK] != IDENTITY:
        shown = clicks_learn_(point, lesson, acting, prior, gauge, sums, history, own, told)
    else:
        if lesson.arm >= 0 and not prior.blind:
            shown = bank_weigh_(point, lesson, acting, prior, gauge, sums, own, told)
        for k in range(sums.G.shape[0]):
            if awake(point, k, sums):
                learn_(point, k, k, lesson, sums, history)
    bank_follow_(point, sums, own)
    for k in range(sums.G.shape[0]):
        if not awake(point, k, sums):
            if sums.counters[k, CLOCK] + lesson.ticks >= point.table[k, WAKES]:
                source = longest_awake(point, k, sums)
                follow_(k, source, sums)
                bank_wake_(point, own, k, source)
            sums.counters[k, CLOCK] += lesson.ticks
    return shown


@piece
def believer_learns_(
    point: Point, lesson: Lesson, sums: Sums, history: History, own: Adapting, gauge: Gauge, told: Forecast
) -> None:
    """A lesson for all lanes, then for the gauge."""
    acting = acting_lane(point, own)
    row = acting_row(point, own, acting)
    prior = prior_of(point, row, gauge, sums.b.shape[1])
    shown = Foretold(0.0, 0.0)
    if point.flags[ADAPT] == BANK:
        pass_time_(own, lesson.ticks)
        shown = bank_lesson_(point, lesson, acting, prior, gauge, sums, history, own, told)
    else:
        if lesson.arm >= 0 and gauge.known.size > 0:
            shown = foretell_(point, row, acting, prior.ridge, lesson, sums, told)
        learn_(point, row, acting, lesson, sums, history)
    if lesson.arm >= 0:
        gauge_(point, row, lesson, prior.blind, shown.value, shown.square, gauge)


# ------------------------------------------------------------------------------------------ entries


@routine
def score_belief_(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats) -> int:
    """Mean and bonus of every arm of X (1, d, n) by the lane that acts; the best arm, or DAMAGED."""
    point, own = Point(flags, table), adapting_of(flags, floats, ints)
    if not sound_marks(point, own):
        return DAMAGED
    first = X.size - X.size  # 0, but not a literal, for which everything below would be compiled again
    lane = acting_lane(point, own)
    seen = board_of(scratch, X.shape[1], X.shape[2])
    row = acting_row(point, own, lane)
    belief_scores_(point, row, lane, X, first, sums_of(flags, floats), gauge_of(flags, floats), seen)
    return first_best(seen.mean, seen.bonus)


@routine
def learn_belief_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, at: int, arm: int,
    reward: float, ticks: float, age: float, rho: Floats, largest: float,
) -> int:
    """A lesson; arm < 0 lets time pass without an observation. FINE, or why nothing was done."""
    point, sums = Point(flags, table), sums_of(flags, floats)
    history, own = history_of(flags, floats, ints), adapting_of(flags, floats, ints)
    if not (sound_cursor(history) and sound_marks(point, own)):
        return DAMAGED
    lesson, told = Lesson(X, at, arm, reward, ticks, age), forecast_of(scratch, X.shape[1], sums.G.shape[0])
    believer_learns_(point, lesson, sums, history, own, gauge_of(flags, floats), told)
    return FINE


@routine
def play_belief_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints, rho: Floats,
) -> int:
    """Play len(path) rounds; regret is cumulative and starts from total; used says which row acted."""
    rounds, record = Rounds(arms, path, draws, best, link, kind, noise), Record(chosen, regret, used)
    point, own, gauge = Point(flags, table), adapting_of(flags, floats, ints), gauge_of(flags, floats)
    sums, history = sums_of(flags, floats), history_of(flags, floats, ints)
    if not (sound_cursor(history) and sound_marks(point, own)):
        return DAMAGED
    d, n = arms.shape[1], arms.shape[2]
    seen, told = board_of(scratch, d, n), forecast_of(scratch[board_size(d, n) :], d, sums.G.shape[0])
    for t in range(path.shape[0]):
        at = set_of(rounds, t)
        lane = acting_lane(point, own)
        row = acting_row(point, own, lane)
        belief_scores_(point, row, lane, arms, at, sums, gauge, seen)
        arm = first_best(seen.mean, seen.bonus)
        reward = reward_(rounds, t, arm, total, record)
        total = regret[t]
        used[t] = row
        believer_learns_(point, Lesson(arms, at, arm, reward, 1.0, 0.0), sums, history, own, gauge, told)
    return FINE
