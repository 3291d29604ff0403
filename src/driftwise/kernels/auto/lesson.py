"""A lesson of Auto: every lane foretells the reward, learns it and is weighed by it; then what is known of noise."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import exp, log, log1p
from driftwise.kernels import entry, formula, piece, routine
from driftwise.kernels.auto.choice import acting, is_look, look_chance, looked_at, weigh_arms_
from driftwise.kernels.auto.gauge import (
    BESIDES,
    ERROR_WEIGHT,
    EVIDENCE,
    FARTHEST,
    FREEDOM,
    LEANS,
    SEEN,
    TURN,
    UNKNOWN,
    UPRIGHT,
    Gauge,
    Scale,
    contrast_,
    count_reward_,
    gauge_of,
    hear_,
    is_strange,
    scale_of,
    unit_over,
    usual_length,
)
from driftwise.kernels.auto.lane import (
    Beliefs,
    Forecast,
    LaneSteps,
    cell,
    coordinates,
    foretell_,
    is_level,
    meet_feature_,
    pass_,
    settle_features_,
    take_value_,
    times_packed_,
)
from driftwise.kernels.cut import Matrix, Stack, Vector, cut
from driftwise.kernels.groups import AT_COUNTERS, AT_KEY, AT_MEAN, AT_SPREAD, AT_TRUST, shapes_of
from driftwise.kernels.index import ScoreScratch, first_less, score_scratch_of
from driftwise.kernels.links import IDENTITY, slope, widening
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import (
    BELIEFS,
    CLOCK,
    COUNT,
    DAMAGED,
    LINK,
    LOG_GAMMA,
    ONLY,
    SHORT,
    SQUARES,
    WEIGHT,
    Floats,
    Ints,
    Lesson,
    Point,
)
from driftwise.kernels.rounds import Family
from driftwise.kernels.scratch import Shapes, carved_from
from driftwise.kernels.solvers.one_pass import root

# The part of a family's weights that is spread anew each reward, so that a lane that was wrong for long can recover.
SHARE = 1e-3
# The rewards for which evidence for levels is remembered.
EVIDENCE_ROUNDS = 4000.0
# The rewards over which what is not known of arms played is averaged: those of the memory that looks ask.
PLAYED = 128.0
# The log of the most by which lateness makes a reward noisier.
MOST_LATE = 14.0


class AutoView(NamedTuple):
    """A packed state as the family sees it."""

    point: Point
    gauge: Gauge
    beliefs: Beliefs
    counters: Floats
    key: Ints


class AutoScratch(NamedTuple):
    """LaneSteps of a lane, and the log density and a work number of every lane."""

    steps: LaneSteps
    score: Floats
    weight: Floats


@formula
def steps_shapes(d: int) -> Shapes:
    """The shapes of LaneSteps."""
    return (2 * d + 1,), (2 * d + 1,), (2 * d + 1,)


@formula
def auto_shapes(d: int, lanes: int) -> Shapes:
    """The shapes of a lesson's scratch."""
    return steps_shapes(d), (lanes,), (lanes,)


auto_scratch_size, auto_scratch_of = carved_from(AutoScratch, auto_shapes)


@piece
def auto_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> AutoView:
    """A packed state as the family sees it."""
    shape = shapes_of(flags)
    beliefs = Beliefs(
        cut(floats, flags[AT_MEAN], shape.mean), cut(floats, flags[AT_SPREAD], shape.spread),
        cut(floats, flags[AT_TRUST], shape.trust),
    )  # fmt: skip
    counters, key = cut(floats, flags[AT_COUNTERS], shape.counters), cut(ints, flags[AT_KEY], shape.key)
    return AutoView(Point(flags, table), gauge_of(flags, floats), beliefs, counters, key)


@piece
def auto_sound(view: AutoView) -> bool:
    """Whether whose turn it is lies in range."""
    turn = view.gauge.known[TURN]
    return bool(turn >= 0.0 and turn < view.gauge.counts.size)


# ------------------------------------------------------------------------------------------ one lane


class Told(NamedTuple):
    """What a reward tells a lane: its log density, the error of the value that it stands for, and that value's variance
    over noise; and what a density with heavy tails takes from the error, in deviations."""

    nats: float
    error: float
    variance: float
    taken: float


@piece
def value_told(scale: Scale, gauge: Gauge, seen: Forecast, late: float, reward: float) -> Told:
    """A value: Student's density, which is highest at the mean of symmetric noise only. Of other noise that lane would
    win which shrinks its forecasts most, so it is tilted by the lean of errors. Where noise is low now, a value far
    from what was foretold may be the first of louder ones, and counts as that density has it."""
    known = gauge.known
    error, variance, freedom = reward - seen.value, scale.now / scale.noise, min(FREEDOM, 1.0 + known[ERROR_WEIGHT])
    ratio = error * error / (scale.noise * (variance + seen.square))
    u = min(max(error / math.sqrt(scale.noise * (variance + seen.square)), -FARTHEST), FARTHEST)
    nats = -0.5 * (log(variance + seen.square) + (freedom + 1.0) * log1p(ratio / freedom))
    nats -= known[LEANS] / (known[ERROR_WEIGHT] + UPRIGHT) * u
    if scale.now < scale.noise:
        variance = max(variance, variance * (FREEDOM + ratio) / (FREEDOM + 1.0))
    return Told(nats, error, variance * late, u * (u * u - 1.0) / (FREEDOM + u * u))


@piece
def click_told(link: int, seen: Forecast, late: float, reward: float) -> Told:
    """A click, as log odds of the variance 1/μ' at the mode of what is then believed of the arm."""
    chance = link_mean(link, seen.value / math.sqrt(1.0 + widening(link) * seen.square))
    chance = min(max(chance, 1e-12), 1.0 - 1e-12)
    nats = reward * log(chance) + (1.0 - reward) * log1p(-chance)
    z = root(link, seen.value, seen.square / late, reward)
    bend = max(slope(link, z), 1e-8)
    return Told(nats, z + (reward - link_mean(link, z)) / bend - seen.value, late / bend, 0.0)


@piece
def lateness(point: Point, k: int, age: float) -> float:
    """By how much an old choice's reward is noisier to a lane: 1/γ a tick, so that it weighs what it would weigh had it
    come in time."""
    return exp(min(-age * point.table[k, LOG_GAMMA], MOST_LATE)) if age > 0.0 else 1.0


@piece
def unknown_(first: int, square: float, length: float, gauge: Gauge, beliefs: Beliefs, v: Floats, y: Floats) -> None:
    """What a short memory did not know of the arm played joins the mean of the last 128."""
    D, cross, known = gauge.bar.size, 0.0, gauge.known
    variance = max(times_packed_(first, D, D, beliefs.spread, gauge.bar, y), 1e-300)
    for i in range(D):
        cross += y[i] * v[i]
    new = max(square - cross * cross / variance, 0.0) / length if length > 0.0 else 0.0
    known[UNKNOWN] += (new - known[UNKNOWN]) / min(known[SEEN], PLAYED)


# ------------------------------------------------------------------------------------------ weights


@piece
def paid_(point: Point, level: bool, beliefs: Beliefs, work: AutoScratch) -> float:
    """The log density of a reward by a family; -inf if it has no lanes. weight = the log weights of its lanes."""
    top, total = -math.inf, 0.0
    for k in range(beliefs.trust.size):
        if is_level(point, k) == level:
            work.weight[k] = log(max(beliefs.trust[k], 1e-300))
            top = max(top, work.weight[k] + work.score[k])
    for k in range(beliefs.trust.size):
        if is_level(point, k) == level:
            total += exp(work.weight[k] + work.score[k] - top)
    return top + log(total) if total > 0.0 else -math.inf


@piece
def weigh_family_(point: Point, level: bool, part: float, beliefs: Beliefs, work: AutoScratch) -> None:
    """A family's weights grow by what its lanes foretold; a little of them is spread anew."""
    weight, lanes, top, total, many = work.weight, beliefs.trust.size, -math.inf, 0.0, 0.0
    for k in range(lanes):
        if is_level(point, k) == level:
            weight[k] += part * work.score[k]
            top, many = max(top, weight[k]), many + 1.0
    for k in range(lanes):
        if is_level(point, k) == level:
            beliefs.trust[k] = exp(weight[k] - top)
            total += beliefs.trust[k]
    for k in range(lanes):
        if is_level(point, k) == level:
            beliefs.trust[k] = (1.0 - SHARE) * beliefs.trust[k] / total + SHARE / many


@piece
def weigh_lanes_(point: Point, h: float, gauge: Gauge, beliefs: Beliefs, work: AutoScratch) -> None:
    """Both families; evidence says which one foretold better."""
    known, first = gauge.known, gauge.known[SEEN] <= 1.0
    plain = paid_(point, False, beliefs, work)
    weigh_family_(point, False, 0.0 if first else 1.0, beliefs, work)
    level = paid_(point, True, beliefs, work)
    if level > -math.inf:
        weigh_family_(point, True, 0.0 if first else h, beliefs, work)
        nats = 0.0 if first else h * (level - plain)
        known[EVIDENCE] = (1.0 - 1.0 / EVIDENCE_ROUNDS) * known[EVIDENCE] + nats


# ------------------------------------------------------------------------------------------ a lesson


@piece
def see_arm_(point: Point, lesson: Lesson, gauge: Gauge, prior: float, beliefs: Beliefs, v: Floats) -> None:
    """v = an arm in units of the features, and 1 for the offset; features seen for the first time get their prior."""
    d = gauge.counts.size
    for i in range(d):
        x = lesson.X[lesson.at, i, lesson.arm]
        if x != 0.0 and gauge.counts[i] == 0.0:
            gauge.inverse[i] = unit_over(x)
        v[i] = x * gauge.inverse[i]
        if x != 0.0:
            gauge.squares[i] += v[i] * v[i]
            gauge.counts[i] += 1.0
            if gauge.counts[i] == 1.0:
                first = 0
                for k in range(beliefs.trust.size):
                    meet_feature_(point, k, first, i, v[i], prior, beliefs)
                    first += cell(coordinates(point, k, d), 0)
    v[d] = 1.0


@routine
def learn_reward_(view: AutoView, work: AutoScratch, lesson: Lesson) -> None:
    """Every lane foretells a reward and learns it; then weights, noise and evidence."""
    point, gauge, beliefs, steps = view.point, view.gauge, view.beliefs, work.steps
    link, d, known = point.flags[LINK], gauge.counts.size, gauge.known
    count_reward_(lesson, gauge)
    scale, v = scale_of(link, gauge), steps.v
    see_arm_(point, lesson, gauge, scale.prior, beliefs, v)
    k0, short, first = acting(point, gauge, beliefs), int(point.table[0, SHORT]), 0
    fit, heard, part, taken = 0.0, scale.now / scale.noise, 0.0, 0.0
    for k in range(beliefs.trust.size):
        settle_features_(point, k, first, scale.prior, gauge, beliefs)
        seen = foretell_(point, k, first, scale.prior, lesson, gauge, beliefs, steps)
        late = lateness(point, k, lesson.age)
        if link == IDENTITY:
            told = value_told(scale, gauge, seen, late, lesson.reward)
        else:
            told = click_told(link, seen, late, lesson.reward)
        work.score[k] = told.nats
        if k == k0:
            fit = seen.value - beliefs.mean[k, d]
            part, taken = told.error * told.error * heard / (heard + seen.square), told.taken
        if k == short:
            unknown_(first, seen.square, usual_length(v, gauge), gauge, beliefs, v, steps.grow)
        take_value_(first, coordinates(point, k, d), k, told.error, told.variance + seen.square, beliefs, steps.y)
        first += cell(coordinates(point, k, d), 0)
    if link == IDENTITY:
        fit = lesson.reward - (beliefs.mean[k0, d] if known[SEEN] > 1.0 else 0.0)
        hear_(part, taken, scale, gauge)
    known[BESIDES] += fit * fit
    h = contrast_(v, gauge)
    for i in range(d + 1):
        gauge.bar[i] = v[i]
    weigh_lanes_(point, h, gauge, beliefs, work)


@piece
def auto_lesson_(view: AutoView, work: AutoScratch, rho: Floats, largest: float, lesson: Lesson) -> None:
    """Time passes for every lane, then a reward is learned unless it is a strange one."""
    point, gauge, beliefs, counters = view.point, view.gauge, view.beliefs, view.counters
    d, first = gauge.counts.size, 0
    prior = scale_of(point.flags[LINK], gauge).prior
    if lesson.ticks > 0.0:
        for k in range(beliefs.trust.size):
            pass_(point, k, first, lesson.ticks, prior, gauge, beliefs, work.steps)
            first += cell(coordinates(point, k, d), 0)
        gauge.known[TURN] = float((int(gauge.known[TURN]) + 1) % d)
        counters[0, CLOCK] += lesson.ticks
    strange = is_strange(point.flags[LINK], lesson, gauge)
    if lesson.arm >= 0 and not strange:
        learn_reward_(view, work, lesson)
        for column in (COUNT, WEIGHT, SQUARES):
            counters[0, column] += 1.0


# ------------------------------------------------------------------------------------------ the family


@piece
def auto_scores_(view: AutoView, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the lane that acts; its row."""
    return weigh_arms_(view.point, X, at, view.gauge, view.beliefs, scores.mean[:0], scores)


@piece
def auto_score_(view: AutoView, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm, the arm of a look alone with one where a look is due; the row that acted."""
    lane, number = auto_scores_(view, X, at, scores), int(view.gauge.known[SEEN]) + 1
    if is_look(view.key, look_chance(view.point, view.gauge.known), number):
        arm = looked_at(view.key, number, scores.proposed)
        if arm >= 0:
            for a in range(scores.bonus.size):
                if a != arm:
                    scores.bonus[a] = -math.inf
    return lane


@piece
def auto_scratch(view: AutoView, scratch: Floats, start: int, d: int) -> AutoScratch:
    """Scratch of a lesson from a place of scratch on."""
    return auto_scratch_of(scratch, start, d, view.point.flags[BELIEFS])


AUTO: Family[AutoView, AutoScratch] = Family(
    "auto", auto_view, auto_sound, auto_score_, auto_scratch, auto_lesson_
)


@entry
def weigh_auto_(
    flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack, costs: Vector
) -> int:
    """Mean and bonus of every arm, and the share of each in a look, all less costs if there are any; the best arm, or
    DAMAGED."""
    view = auto_view(flags, table, floats, ints)
    if not auto_sound(view):
        return DAMAGED
    scores = score_scratch_of(scratch, X.shape[1], X.shape[2])
    weigh_arms_(view.point, X, int(ONLY), view.gauge, view.beliefs, costs, scores)
    return first_less(scores.mean, scores.bonus, costs)
