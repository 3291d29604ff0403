"""The compiled entries of generalized linear policies, alone or adapting: scores, a lesson, whole stretches of rounds.

One set of entries serves a policy without an adaptation, which uses its one lane directly, and MASTER, BOB and the bank
over it: the cost is in the estimate below them, and compiling that once is enough.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, Protocol

from driftwise._internal.elementary import log, log1p
from driftwise.kernels import part, piece, routine
from driftwise.kernels.adapt.bank import bank_best
from driftwise.kernels.adapt.book import sound_marks
from driftwise.kernels.adapt.lane import Lane, LaneLearn
from driftwise.kernels.adapt.lesson import any_of, lesson_under, who_acts
from driftwise.kernels.algebra import factor_, forward_one_
from driftwise.kernels.cut import cut
from driftwise.kernels.glm import (
    Lanes,
    LessonScratch,
    estimating,
    forget_,
    glm_lane_,
    glm_lane_of,
    glm_scores_,
    lesson_scratch_of,
    optimistic_scores_,
    posterior_scores_,
    predict_,
)
from driftwise.kernels.groups import (
    Adapting,
    EstimateBundle,
    History,
    Sums,
    adapting_of,
    estimate_of,
    history_of,
    sums_of,
)
from driftwise.kernels.index import ScoreScratch, lift_
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.links import widening
from driftwise.kernels.memories.any import lessons_of
from driftwise.kernels.memories.fade import decay
from driftwise.kernels.memories.sums import follow_, fresh_lane_
from driftwise.kernels.point import (
    ADAPT,
    ALONE,
    BANK,
    DAMAGED,
    ESTIMATE,
    EXACT,
    EXPLORE,
    FAILED,
    FINE,
    GLB,
    KAPPA,
    LINK,
    MEMORY,
    ONE_PASS,
    ONLY,
    POSTERIOR,
    REG,
    RULE,
    SC_D,
    SCB,
    SCORE_RIDGE,
    USED,
    Floats,
    Ints,
    Lesson,
    Point,
    sound_cursor,
)
from driftwise.kernels.rounds import Family, ScoresArms, Teaches
from driftwise.kernels.solvers.one_pass import one_pass_, one_pass_fade_

# ------------------------------------------------------------------------------------------ indices


@piece
def judged(lanes: int, estimate: EstimateBundle) -> bool:
    """Whether memories are scored by separate estimates, or by those that are played."""
    return bool(estimate.theta.shape[0] > lanes)


@piece
def bank_scores_(
    point: Point, X: Floats, at: int, sums: Sums, estimate: EstimateBundle, judge: int, scores: ScoreScratch
) -> None:
    """The bank's choice: every memory proposes arms by its own index, the best-weighted one judges the proposals.

    A memory proposes at the explorations e, 1 and e² (one arm where they agree). The judge's score of a proposal is
    μ(x'θ + κ‖x‖) by its scoring estimate. An arm that no memory proposes has bonus -1, which puts it below all others.
    """
    mean, bonus, proposed, n = scores.mean, scores.bonus, scores.proposed, scores.mean.size
    for a in range(n):
        proposed[a] = 0.0
    for k in range(sums.G.shape[0]):
        glm_scores_(point, k, k, X, at, sums, estimate, scores)
        e = point.table[k, EXPLORE]
        for attempt in range(3 if e != 1.0 else 1):
            factor = 1.0
            if attempt == 1:
                factor = 1.0 / e if e > 0.0 else 1.0
            elif attempt == 2:
                factor = e
            top, arm = -math.inf, 0
            for a in range(n):
                score = mean[a] + factor * bonus[a]
                if score > top:
                    top, arm = score, a
            proposed[arm] = 1.0
    predict_(estimate.H, judge, 0.0, estimate.theta, X, at, scores)
    lift_(point.flags[LINK], point.table[0, KAPPA], mean, bonus)
    for a in range(n):
        if proposed[a] == 0.0:
            bonus[a] = -1.0


@piece
def glm_index_(
    point: Point, X: Floats, at: int, sums: Sums, estimate: EstimateBundle, own: Adapting, scores: ScoreScratch
) -> int:
    """Mean and bonus of every arm by the acting lane, or by the judge of a bank; returns the row that acted."""
    lanes = sums.G.shape[0]
    if point.flags[ADAPT] == BANK and lanes > 1 and judged(lanes, estimate):
        best = bank_best(own.scores)
        bank_scores_(point, X, at, sums, estimate, lanes + best, scores)
        return best
    lane, row = who_acts(point, own)
    glm_scores_(point, row, lane, X, at, sums, estimate, scores)
    return row


# ------------------------------------------------------------------------------------------ lessons


@part
def bank_surprise_(point: Point, lesson: Lesson, sums: Sums, estimate: EstimateBundle, work: LessonScratch) -> None:
    """-log p(r) of every memory by its scoring estimate, where z = x'θ has variance s²: p = μ(z/√(1 + a s²))."""
    low, pivot, z, link, lanes = work.low, work.pivot, work.z, point.flags[LINK], sums.G.shape[0]
    scoring = lanes if judged(lanes, estimate) else 0
    for k in range(lanes):
        factor_(estimate.H, scoring + k, 0.0, low, pivot)
        value, square = 0.0, 0.0
        for i in range(z.size):
            z[i] = lesson.X[lesson.at, i, lesson.arm]
            value += z[i] * estimate.theta[scoring + k, i]
        forward_one_(low, pivot, z, k, z)
        for i in range(z.size):
            square += z[i] * z[i]
        chance = link_mean(link, value / math.sqrt(1.0 + widening(link) * square))
        chance = min(max(chance, 1e-12), 1.0 - 1e-12)
        work.surprise[k] = -(lesson.reward * log(chance) + (1.0 - lesson.reward) * log1p(-chance))


@part
def lane_foretell_(point: Point, lesson: Lesson, lanes: Lanes, own: Adapting) -> bool:
    """The surprise of every memory; then separate scoring estimates learn the reward."""
    table, theta, H, count = point.table, lanes.estimate.theta, lanes.estimate.H, lanes.sums.G.shape[0]
    newton, x, ridge = lanes.work.newton, lanes.work.z, table[0, SCORE_RIDGE]
    if count == 1:
        return False
    if lesson.arm >= 0:
        bank_surprise_(point, lesson, lanes.sums, lanes.estimate, lanes.work)
    if judged(count, lanes.estimate):
        if lesson.arm >= 0:
            for i in range(x.size):
                x[i] = lesson.X[lesson.at, i, lesson.arm]
        for k in range(count):
            factor = decay(table, k, lesson.ticks)
            if lesson.arm >= 0:
                weight = decay(table, k, lesson.age) if lesson.age > 0.0 else 1.0
                one_pass_(point.flags[LINK], H, theta, count + k, x, lesson.reward, factor, weight, ridge, newton)
            else:
                one_pass_fade_(H, theta, count + k, factor, ridge, newton.M)
    return bool(lesson.arm >= 0)


@part
def begin_as_(lane: int, other: int, sums: Sums, history: History, estimate: EstimateBundle) -> None:
    """Replace the data of a memory by another's, including the estimates."""
    lanes, d = sums.b.shape
    theta, shown, H = estimate.theta, estimate.shown, estimate.H
    for half in range(2 if judged(lanes, estimate) else 1):  # the estimate played, and the one that scores
        source, target = other + half * lanes, lane + half * lanes
        for i in range(d):
            theta[target, i] = theta[source, i]
            for j in range(d):
                H[target, i, j] = H[source, i, j]
    for i in range(d):
        shown[lane, i] = shown[other, i]
    for a in range(history.cursor[USED]):
        history.weights[lane, a] = history.weights[other, a]
        history.targets[lane, a] = history.targets[other, a]
    follow_(lane, other, sums)


@part
def lane_follow_(lane: int, other: int, lanes: Lanes) -> None:
    """Replace the data of a memory by another's."""
    begin_as_(lane, other, lanes.sums, lanes.history, lanes.estimate)


@part
def lane_fresh_(point: Point, lane: int, lanes: Lanes) -> None:
    """Clear a lane."""
    fresh_lane_(lane, lanes.sums, lanes.history)
    forget_(lane, point.table[0, REG], lanes.sums.counters, lanes.history, lanes.estimate)
    for i in range(lanes.sums.b.shape[1]):
        lanes.estimate.shown[lane, i] = 0.0


_LANE: Lane[Lanes] = Lane(glm_lane_, lane_foretell_, lane_follow_, lane_fresh_)
lesson_of_lanes_ = lesson_under(any_of(_LANE), _LANE)


# ------------------------------------------------------------------------------------------ entries


@routine
def lesson_glm_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, lesson: Lesson, rho: Floats, largest: float
) -> int:
    """A lesson; arm < 0 lets time pass without an observation. Without an adaptation it is a lesson of the one lane.

    Returns FINE, or why nothing was done.
    """
    point, sums, history = Point(flags, table), sums_of(flags, floats), history_of(flags, floats, ints)
    estimate, own = estimate_of(flags, floats), adapting_of(flags, floats, ints)
    if not (sound_cursor(history) and sound_marks(point, own)):
        return DAMAGED
    work = lesson_scratch_of(scratch, lesson.X.shape[1], history.cursor[USED] + 1, sums.G.shape[0])
    lanes = Lanes(sums, history, estimate, work, work.surprise)
    lesson_of_lanes_(point, rho, lesson, largest, lanes, own)
    return FINE


# ------------------------------------------------------------------------------------------ the family


class Generalized(NamedTuple):
    """A state with lanes and estimates, and its packed arrays, which a lesson cuts again."""

    point: Point
    sums: Sums
    history: History
    estimate: EstimateBundle
    own: Adapting
    floats: Floats
    ints: Ints


@piece
def glm_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> Generalized:
    """A packed state as the family sees it."""
    sums, history, own = sums_of(flags, floats), history_of(flags, floats, ints), adapting_of(flags, floats, ints)
    return Generalized(Point(flags, table), sums, history, estimate_of(flags, floats), own, floats, ints)


@piece
def glm_sound(view: Generalized) -> bool:
    """Whether cursor and marks lie in range."""
    return sound_cursor(view.history) and sound_marks(view.point, view.own)


@piece
def glm_score_(view: Generalized, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the lane that acts, or by a bank's judge; the row that acted."""
    return glm_index_(view.point, X, at, view.sums, view.estimate, view.own, scores)


class Rest(NamedTuple):
    """The rest of scratch: a lesson cuts it by the atoms in use."""

    scratch: Floats


@piece
def glm_scratch(view: Generalized, scratch: Floats, start: int, d: int) -> Rest:
    """Scratch from an offset on."""
    return Rest(cut(scratch, start, (scratch.size - start,)))


@piece
def glm_lesson_(view: Generalized, work: Rest, rho: Floats, largest: float, lesson: Lesson) -> None:
    """The live lesson itself. Its cuts cost nothing compared with an estimate, and its inside would have to be
    optimised again."""
    flags, table = view.point
    lesson_glm_(flags, table, view.floats, view.ints, work.scratch, lesson, rho, largest)


@piece
def glm_failed(view: Generalized) -> bool:
    """Whether the estimate of a lane did not converge."""
    for k in range(view.sums.G.shape[0]):
        if view.sums.counters[k, FAILED] > 0.0:
            return True
    return False


# ------------------------------------------------------------------------------------------ a policy that stands alone


class PackedLesson(Protocol):
    """Takes a lesson into a packed state that is known to be sound, without an adaptation."""

    def __call__(
        self, flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, lesson: Lesson, /
    ) -> int: ...


class ScoreLane(Protocol):
    """Writes mean and bonus of every arm by a lane to scratch."""

    def __call__(
        self, point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, estimate: EstimateBundle,
        scores: ScoreScratch,
    ) -> None: ...


def packed_alone(lane_: LaneLearn[Lanes]) -> PackedLesson:
    """lesson_glm_ of one lane."""

    @routine
    def lesson_(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, lesson: Lesson) -> int:
        lane, sums, history = int(ONLY), sums_of(flags, floats), history_of(flags, floats, ints)
        work = lesson_scratch_of(scratch, lesson.X.shape[1], history.cursor[USED] + 1, sums.G.shape[0])
        lanes = Lanes(sums, history, estimate_of(flags, floats), work, work.surprise)
        lane_(Point(flags, table), lane, lane, lesson, lanes)
        return FINE

    return lesson_


def lesson_alone(packed_: PackedLesson) -> Teaches[Generalized, Rest]:
    """The live lesson of a policy without an adaptation."""

    @piece
    def lesson_(view: Generalized, work: Rest, rho: Floats, largest: float, lesson: Lesson) -> None:
        flags, table = view.point
        packed_(flags, table, view.floats, view.ints, work.scratch, lesson)

    return lesson_


def score_alone(score_lane_: ScoreLane) -> ScoresArms[Generalized]:
    """Mean and bonus of every arm by the one lane."""

    @piece
    def score_(view: Generalized, X: Floats, at: int, scores: ScoreScratch) -> int:
        lane = int(ONLY)
        score_lane_(view.point, lane, lane, X, at, view.sums, view.estimate, scores)
        return lane

    return score_


@piece
def alone_sound(view: Generalized) -> bool:
    """Whether the cursor lies in range."""
    return sound_cursor(view.history)


@piece
def alone_failed(view: Generalized) -> bool:
    """Whether the estimate did not converge."""
    return bool(view.sums.counters[0, FAILED] > 0.0)


RULES = {GLB: "glb", SCB: "scb", SC_D: "sc_d", POSTERIOR: "posterior"}
ESTIMATES = {EXACT: "exact", ONE_PASS: "one_pass"}


def glm_bound(family: Family[Generalized, Rest], flags: Ints) -> Family[Generalized, Rest]:
    """The family with only the pieces that a policy's flags name; an adaptation branches on the flags."""
    if flags[ADAPT] != ALONE:
        return family
    return _alone(family, int(flags[RULE]), int(flags[ESTIMATE]), int(flags[MEMORY]))


@cache
def _alone(family: Family[Generalized, Rest], rule: int, estimate: int, memory: int) -> Family[Generalized, Rest]:
    lessons = lessons_of(memory, with_atoms=True)
    score = posterior_scores_ if rule == POSTERIOR else optimistic_scores_ if rule in RULES else glm_scores_
    return family._replace(
        name=f"{family.name}_{RULES.get(rule, 'any')}_{ESTIMATES.get(estimate, 'any')}_{lessons.memory.name}",
        sound_view=alone_sound,
        score_=score_alone(score) if family is GLM else family.score_,
        lesson_=lesson_alone(packed_alone(glm_lane_of(lessons, estimating(rule, estimate)))),
        failed_view=alone_failed,
    )


GLM: Family[Generalized, Rest] = Family(
    "glm", glm_view, glm_sound, glm_score_, glm_scratch, glm_lesson_, glm_failed, glm_bound
)
