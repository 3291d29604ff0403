"""The compiled entries of linear policies that believe: alone, or in a bank of memories, some with a trend.

They serve what the entries of kernels/linear.py do not: noise and scale that are learned, and trends (MATH.md 8).
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
from driftwise.kernels.memory import follow_, learn_
from driftwise.kernels.point import (
    ADAPT,
    BANK,
    CLOCK,
    DAMAGED,
    FINE,
    SHARE,
    WAKES,
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
    point: Point, row: int, lane: int, prior: Prior, lesson: Lesson, sums: Sums, told: Forecast
) -> tuple[float, float]:
    """The squared residual of a reward by a lane's belief, and ‖x‖²: it had variance R²(1 + ‖x‖²)."""
    low, pivot, z, y = told.low, told.pivot, told.z, told.y
    believe_(point, row, lane, prior.ridge, sums, low, told.other, pivot, z)
    value, square = 0.0, 0.0
    for i in range(y.size):
        v = lesson.X[lesson.at, i, lesson.arm]
        for j in range(i):
            v -= low[i, j] * y[j]
        y[i] = v * pivot[i]
        value += y[i] * z[i]
        square += y[i] * y[i]
    error = lesson.reward - value
    return error * error, square


@part
def bank_weigh_(
    point: Point, lesson: Lesson, acting: int, prior: Prior, gauge: Gauge, sums: Sums, own: Adapting, told: Forecast
) -> float:
    """Every memory that is awake is paid for the density it gave the reward; the acting one's share in the noise."""
    share = 0.0
    for k in range(sums.G.shape[0]):
        told.surprise[k] = math.inf
        if awake(point, k, sums):
            error, square = foretell_(point, k, k, prior, lesson, sums, told)
            told.surprise[k] = surprise_of(point, k, prior, gauge, error, square)
            if k == acting:
                share = error / (1.0 + square)
    bank_pay_(own.scores, told.surprise, point.table[0, SHARE])
    return share


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
) -> float:
    """All memories awake are paid and learn; those far behind follow the best; those whose time has come wake."""
    error = 0.0
    if lesson.arm >= 0 and not prior.blind:
        error = bank_weigh_(point, lesson, acting, prior, gauge, sums, own, told)
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
    return error


@piece
def believer_learns_(
    point: Point, lesson: Lesson, sums: Sums, history: History, own: Adapting, gauge: Gauge, told: Forecast
) -> None:
    """A lesson for all lanes, then for the gauge."""
    banked = point.flags[ADAPT] == BANK
    acting = acting_lane(point, own)
    row = acting_row(point, own, acting)
    prior = prior_of(point, row, gauge, sums.b.shape[1])
    error = 0.0
    if banked:
        pass_time_(own, lesson.ticks)
        error = bank_lesson_(point, lesson, acting, prior, gauge, sums, history, own, told)
    else:
        if lesson.arm >= 0 and gauge.known.size > 0:
            squared, square = foretell_(point, row, acting, prior, lesson, sums, told)
            error = squared / (1.0 + square)
        learn_(point, row, acting, lesson, sums, history)
    if lesson.arm >= 0:
        gauge_(point, row, lesson, prior.blind, error, gauge)


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
