"""Rules that sample: θ, or one multiplier of all bonuses, is drawn for every choice (docs/math.md#sampling).

A draw is a number, the state's key and an attempt: normal number b of attempt k is `normal(*key, draw, b, 2k)`. Choices
use attempt 0; the others serve to count how often an arm is played. Lessons are those of the rules with the same
estimates, kernels/linear.py and kernels/adapt/glm.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import erfc
from driftwise.kernels import entry, piece
from driftwise.kernels.adapt.glm import GLM, Generalized
from driftwise.kernels.chance import normal
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.glm import predict_
from driftwise.kernels.groups import History, Sums, adapting_of, estimate_of, sums_of
from driftwise.kernels.index import ScoreScratch, first_above, first_best, score_scratch_of
from driftwise.kernels.linear import (
    linear_bound,
    linear_learn_,
    linear_lesson,
    linear_scale,
    linear_scores_,
    linear_sound,
    linear_view,
    no_lesson_scratch,
)
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import (
    CLOCK,
    DRAWN,
    EXPLORE,
    FINE,
    KEY_HIGH,
    KEY_LOW,
    LINK,
    ONLY,
    THETA,
    UPWARD,
    Floats,
    Ints,
    Point,
)
from driftwise.kernels.rounds import Family

# The draw if none is given: the number of the round, so that simulated rounds, rounds call by call and the decisions of
# an agent draw alike.
BY_ROUND = -1


@piece
def round_of(sums: Sums) -> int:
    """The round of the choice: the first after the whole ticks that have passed."""
    return int(sums.counters[0, CLOCK]) + 1


@piece
def add_normal_(scale: float, key: Ints, draw: int, attempt: int, scores: ScoreScratch) -> None:
    """bonus = scale·Y'z, z normal: the difference x'θ̃ - x'θ̂, where Y'Y = X'ΣX and θ̃ ~ N(θ̂, scale²Σ)."""
    Y, bonus = scores.Y, scores.bonus
    for a in range(bonus.size):
        bonus[a] = 0.0
    for i in range(Y.shape[0]):
        z = scale * normal(key[KEY_LOW], key[KEY_HIGH], draw, i, 2 * attempt)
        for a in range(bonus.size):
            bonus[a] += z * Y[i, a]


@piece
def multiply_bonuses_(upward: bool, key: Ints, draw: int, first: int, scores: ScoreScratch) -> int:
    """Multiply all bonuses by one normal number, or by its absolute value; the best arm."""
    z = normal(key[KEY_LOW], key[KEY_HIGH], draw, first, first)
    if upward:
        z = abs(z)
    arm = first_above(z, scores.mean, scores.bonus)
    for a in range(scores.bonus.size):
        scores.bonus[a] *= z
    return arm


@piece
def link_draw_(link: int, scores: ScoreScratch) -> None:
    """From proposed = x'θ̂ and bonus = x'(θ̃ - θ̂) to mean = μ(x'θ̂) and bonus = μ(x'θ̃) - μ(x'θ̂)."""
    mean, bonus, value = scores.mean, scores.bonus, scores.proposed
    for a in range(mean.size):
        mean[a] = link_mean(link, value[a])
        bonus[a] = link_mean(link, value[a] + bonus[a]) - mean[a]


@piece
def sampled_(link: int, scale: float, key: Ints, draw: int, attempt: int, scores: ScoreScratch) -> None:
    """Mean and bonus of every arm by θ̃."""
    add_normal_(scale, key, draw, attempt, scores)
    if link != IDENTITY:
        link_draw_(link, scores)


@piece
def count_(link: int, scale: float, key: Ints, draw: int, tries: int, scores: ScoreScratch, shares: Floats) -> None:
    """How often each arm is played by θ̃ in `tries` attempts, of which the first is the one that chooses."""
    for a in range(shares.size):
        shares[a] = 0.0
    for attempt in range(tries):
        sampled_(link, scale, key, draw, attempt, scores)
        shares[first_best(scores.mean, scores.bonus)] += 1.0
    for a in range(shares.size):
        shares[a] /= float(tries)


@piece
def between(low: float, high: float, upward: bool) -> float:
    """The probability that the multiplier is between two numbers, from the tail to which both are nearer."""
    if upward:
        low, high = max(low, 0.0), max(high, 0.0)
    sides = 2.0 if upward else 1.0
    if low > 0.0:
        low, high = -high, -low
    return max(0.0, sides * 0.5 * (erfc(-high / math.sqrt(2.0)) - erfc(-low / math.sqrt(2.0))))


@piece
def envelope_(upward: bool, scores: ScoreScratch, shares: Floats) -> None:
    """How often each arm is played if scores are mean + Z·bonus: the probability of the Z for which its score is
    largest.

    This is the lines' upper envelope, from left to right: an arm is on top until the first steeper line crosses it, and
    the steepest of those that cross there follows. Of equal lines the first counts.
    """
    mean, width, n = scores.mean, scores.bonus, scores.mean.size
    for a in range(n):
        shares[a] = 0.0
    left = 0.0 if upward else -math.inf
    arm = 0
    for a in range(1, n):  # who is on top at the left end, and just right of it
        if upward:
            ahead = mean[a] > mean[arm] or (mean[a] == mean[arm] and width[a] > width[arm])
        else:
            ahead = width[a] < width[arm] or (width[a] == width[arm] and mean[a] > mean[arm])
        if ahead:
            arm = a
    for _ in range(n):
        right, following = math.inf, -1
        for a in range(n):
            if width[a] > width[arm]:
                z = max(left, (mean[arm] - mean[a]) / (width[a] - width[arm]))
                steeper = following >= 0 and z == right and (
                    width[a] > width[following] or (width[a] == width[following] and mean[a] > mean[following])
                )
                if z < right or steeper:
                    right, following = z, a
        shares[arm] = between(left, right, upward)
        if following < 0:
            break
        left, arm = right, following


@piece
def linear_sample_(point: Point, X: Floats, at: int, sums: Sums, key: Ints, draw: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm of a draw, and the best arm; linear_scores_ leaves Y with Y'Y = X'V⁻¹ṼV⁻¹X, or
    X'V⁻¹X."""
    first = int(ONLY)
    linear_scores_(point, first, first, X, at, sums, scores)
    if point.flags[DRAWN] == THETA:
        sampled_(point.flags[LINK], linear_scale(point, first, first, sums, scores.pivot), key, draw, first, scores)
        return first_best(scores.mean, scores.bonus)
    return multiply_bonuses_(point.flags[DRAWN] == UPWARD, key, draw, first, scores)


@piece
def glm_sample_(point: Point, X: Floats, at: int, floats: Floats, key: Ints, draw: int, scores: ScoreScratch) -> None:
    """Mean and bonus of every arm of a draw of θ̃ ~ N(θ̂, exploration²H⁻¹)."""
    first = int(ONLY)
    estimate = estimate_of(point.flags, floats)
    predict_(estimate.H, first, 0.0, estimate.theta, X, at, scores)
    for a in range(scores.mean.size):
        scores.proposed[a] = scores.mean[a]
    sampled_(point.flags[LINK], point.table[0, EXPLORE], key, draw, first, scores)


# ------------------------------------------------------------------------------------------ the families


class SampledLinear(NamedTuple):
    """A linear state and its key for draws."""

    point: Point
    sums: Sums
    history: History
    lane: int
    key: Ints


@piece
def sampled_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> SampledLinear:
    """A packed state as the family sees it."""
    view = linear_view(flags, table, floats, ints)
    return SampledLinear(view.point, view.sums, view.history, view.lane, adapting_of(flags, floats, ints).key)


@piece
def sampled_linear_score_(view: SampledLinear, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm by the draw of the round, the best arm of a multiplier alone with a bonus; the row
    that acted."""
    arm = linear_sample_(view.point, X, at, view.sums, view.key, round_of(view.sums), scores)
    if view.point.flags[DRAWN] != THETA:
        for a in range(scores.bonus.size):
            if a != arm:
                scores.bonus[a] = -math.inf
    return view.lane


@piece
def sampled_glm_score_(view: Generalized, X: Floats, at: int, scores: ScoreScratch) -> int:
    """The same by the Laplace posterior."""
    glm_sample_(view.point, X, at, view.floats, view.own.key, round_of(view.sums), scores)
    return 0


SAMPLED_LINEAR: Family[SampledLinear, int] = Family(
    "sampled_linear", sampled_view, linear_sound, sampled_linear_score_, no_lesson_scratch,
    linear_lesson(linear_learn_), bound=linear_bound,
)  # fmt: skip
SAMPLED_GLM = GLM._replace(name="sampled_glm", score_=sampled_glm_score_)


# ------------------------------------------------------------------------------------------ entries


@entry
def sample_linear_(
    flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack, draw: int, tries: int,
    shares: Vector,
) -> int:
    """Mean and bonus of every arm of X (1, d, n) by a draw; returns the best arm. shares, unless empty, becomes how
    often each arm is played: counted in `tries` attempts if θ is drawn, exact for a multiplier."""
    first = int(ONLY)
    point, sums, key = Point(flags, table), sums_of(flags, floats), adapting_of(flags, floats, ints).key
    seen, number = score_scratch_of(scratch, X.shape[1], X.shape[2]), round_of(sums) if draw == BY_ROUND else draw
    if shares.size > 0:
        linear_scores_(point, first, first, X, first, sums, seen)
        if flags[DRAWN] == THETA:
            count_(flags[LINK], linear_scale(point, first, first, sums, seen.pivot), key, number, tries, seen, shares)
        else:
            envelope_(flags[DRAWN] == UPWARD, seen, shares)
        return FINE
    return linear_sample_(point, X, first, sums, key, number, seen)


@entry
def sample_glm_(
    flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack, draw: int, tries: int,
    shares: Vector,
) -> int:
    """As sample_linear_, by the Laplace posterior of a generalized linear estimate."""
    point, sums, key = Point(flags, table), sums_of(flags, floats), adapting_of(flags, floats, ints).key
    seen, number = score_scratch_of(scratch, X.shape[1], X.shape[2]), round_of(sums) if draw == BY_ROUND else draw
    glm_sample_(point, X, int(ONLY), floats, key, number, seen)
    if shares.size > 0:
        count_(flags[LINK], table[0, EXPLORE], key, number, tries, seen, shares)
        return FINE
    return first_best(seen.mean, seen.bonus)
