"""The compiled entries of the linear family: scores, a choice, a lesson, and whole stretches of rounds.

`play_linear_` calls the same choose and learn as live use; that is why both play the same arms.
"""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import kernel, piece
from driftwise.kernels.chance import mean_of, reward_of
from driftwise.kernels.cholesky import divide_, factor_, forward_
from driftwise.kernels.gram import learn_
from driftwise.kernels.index import first_best, roots_, shape_, squares_, whiten_
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import (
    BETA,
    CLOCK,
    CONSTANT,
    EXPLORE,
    LAM,
    LOG_DELTA,
    ONE_MATRIX,
    RADIUS,
    RULE,
    SQUARES,
    Floats,
    Ints,
    L,
    R,
    S,
)
from driftwise.theory.radius import lb_radius


@piece
def confidence(table: Floats, row: int, clock: float) -> float:
    """log(1/δ); below 0 in the table means δ = 1/max(2, t) at round t, for a horizon nobody knows."""
    fixed = table[row, LOG_DELTA]
    return float(fixed) if fixed >= 0.0 else math.log(max(2.0, clock + 1.0))


@piece
def linear_radius(flags: Ints, table: Floats, row: int, squares: float, clock: float, d: int) -> float:
    """The multiplier of the bonus: β of MATH.md 1 times the exploration factor."""
    if flags[RADIUS] == CONSTANT:
        return float(table[row, EXPLORE] * table[row, BETA])
    beta = lb_radius(
        squares, float(d), table[row, LAM], confidence(table, row, clock), table[row, S], table[row, L], table[row, R]
    )
    return float(table[row, EXPLORE] * beta)


@piece
def linear_scores_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, G: Floats, twin: Floats, b: Floats,
    count: Floats, low: Floats, other: Floats, pivot: Floats, z: Floats, Y: Floats, mean: Floats, bonus: Floats,
) -> None:
    """Mean and bonus of every arm: x'V⁻¹b and β‖x‖ in the norm of V⁻¹, or of V⁻¹ṼV⁻¹ for two matrices."""
    if flags[RULE] != ONE_MATRIX:
        factor_(twin, lane, table[row, LAM], other, pivot)
    factor_(G, lane, table[row, LAM], low, pivot)
    forward_(low, pivot, b, lane, z)
    whiten_(low, pivot, z, X, at, Y, mean, bonus)
    if flags[RULE] != ONE_MATRIX:
        divide_(low, pivot, other)  # with V = LL' and Ṽ = MM': ‖x‖ = ‖(L⁻¹M)' L⁻¹x‖
        shape_(other, Y)
        squares_(Y, bonus)
    roots_(linear_radius(flags, table, row, count[lane, SQUARES], count[lane, CLOCK], b.shape[1]), bonus)


@kernel
def linear_scores(
    flags: Ints, table: Floats, X: Floats, G: Floats, twin: Floats, b: Floats, count: Floats
) -> tuple[Floats, Floats]:
    """Mean and bonus of every arm of X (1, d, n)."""
    d, n = X.shape[1], X.shape[2]
    mean, bonus = np.empty(n), np.empty(n)
    first = n - n  # 0, but not a literal, for which everything below would be compiled again
    linear_scores_(
        flags, table, first, first, X, first, G, twin, b, count, np.empty((d, d)), np.empty((d, d)), np.empty(d),
        np.empty(d), np.empty((d, n)), mean, bonus,
    )  # fmt: skip
    return mean, bonus


@kernel
def play_linear_(
    flags: Ints, table: Floats, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints,
    arms: Floats, theta: Floats, draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float,
    chosen: Ints, regret: Floats,
) -> None:
    """Play len(theta) rounds; regret is cumulative and starts from total. arms has one set, or one a round."""
    d, n = arms.shape[1], arms.shape[2]
    low, other, pivot, z = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d)
    Y, mean, bonus = np.empty((d, n)), np.empty(n), np.empty(n)
    fresh = arms.shape[0] > 1
    lane = chosen.size - chosen.size  # 0, but not a literal, for which everything below would be compiled again
    for t in range(theta.shape[0]):
        at = t if fresh else 0
        linear_scores_(
            flags, table, lane, lane, arms, at, G, twin, b, count, low, other, pivot, z, Y, mean, bonus
        )
        arm = first_best(mean, bonus)
        value = mean_of(link, arms, at, arm, theta, t)
        total += best[t] - value
        chosen[t] = arm
        regret[t] = total
        reward = reward_of(kind, value, noise, draws[t])
        learn_(flags, table, lane, lane, arms, at, arm, reward, 1.0, 0.0, G, twin, b, count, ring, cursor)


@kernel
def best_means_(arms: Floats, theta: Floats, link: int, best: Floats) -> None:
    """The mean of the best arm of every round, from the same sums as the arm played."""
    d, n = arms.shape[1], arms.shape[2]
    value = np.empty(n)
    fresh = arms.shape[0] > 1
    for t in range(theta.shape[0]):
        at = t if fresh else 0
        for a in range(n):
            value[a] = 0.0
        for i in range(d):
            h = theta[t, i]
            for a in range(n):
                value[a] += arms[at, i, a] * h
        top = value[0]
        for a in range(1, n):
            if value[a] > top:
                top = value[a]
        best[t] = link_mean(link, top)
