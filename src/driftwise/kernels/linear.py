"""The linear family: scores, a lesson, and whole stretches of rounds (MATH.md 1).

`play_linear_` makes its choices and learns by the same kernels as live use; that is why both play the same arms.
"""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import entry, kernel, piece
from driftwise.kernels.algebra import divide_, factor_, forward_
from driftwise.kernels.chance import Record, Rounds, reward_, set_of
from driftwise.kernels.index import Board, board_of, first_best, roots_, shape_, squares_, whiten_
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memory import learn_
from driftwise.kernels.point import (
    BETA,
    CLOCK,
    CONSTANT,
    DAMAGED,
    EXPLORE,
    FINE,
    LAM,
    LOG_DELTA,
    RADIUS,
    RULE,
    SQUARES,
    TWO_AS_PUBLISHED,
    TWO_MATRIX,
    WEIGHTED,
    Floats,
    Ints,
    L,
    Lesson,
    Point,
    R,
    S,
    Sums,
    history_of,
    sound_cursor,
    sums_of,
)
from driftwise.theory.radius import lb_radius


@piece
def confidence(table: Floats, row: int, clock: float) -> float:
    """log(1/δ); below 0 in the table means δ = 1/max(2, t) at round t, for a horizon nobody knows."""
    fixed = table[row, LOG_DELTA]
    return float(fixed) if fixed >= 0.0 else math.log(max(2.0, clock + 1.0))


@piece
def linear_radius(point: Point, row: int, squares: float, clock: float, d: int) -> float:
    """The multiplier of the bonus: β of MATH.md 1 times the exploration factor."""
    table = point.table
    beta = math.nan
    if point.flags[RADIUS] == CONSTANT:
        beta = table[row, BETA]
    elif point.flags[RADIUS] == WEIGHTED:
        log_delta = confidence(table, row, clock)
        beta = lb_radius(
            squares, float(d), table[row, LAM], log_delta, table[row, S], table[row, L], table[row, R]
        )
    return float(table[row, EXPLORE] * beta)


@piece
def linear_scale(point: Point, row: int, lane: int, sums: Sums, pivot: Floats) -> float:
    """What an arm's width is multiplied by: the radius of what the sums hold. 1/pivot is the diagonal of V's factor."""
    count = sums.counters
    return linear_radius(point, row, count[lane, SQUARES], count[lane, CLOCK], sums.b.shape[1])


@piece
def two_matrices(point: Point) -> bool:
    """Whether widths are measured by two matrices."""
    return bool(point.flags[RULE] == TWO_MATRIX or point.flags[RULE] == TWO_AS_PUBLISHED)


@piece
def linear_factors_(
    point: Point, row: int, lane: int, sums: Sums, low: Floats, other: Floats, pivot: Floats, z: Floats
) -> None:
    """V = low low', z = low⁻¹b, and for two matrices other = low⁻¹M with Ṽ = MM': ‖x‖ = ‖other' low⁻¹x‖."""
    lam = point.table[row, LAM]
    if two_matrices(point):
        factor_(sums.twin, lane, lam, other, pivot)
    factor_(sums.G, lane, lam, low, pivot)
    forward_(low, pivot, sums.b, lane, z)
    if two_matrices(point):
        divide_(low, pivot, other, other)


@piece
def linear_index_(point: Point, scale: float, X: Floats, at: int, board: Board) -> None:
    """Mean and bonus of every arm by the factors on the board: x'V⁻¹b and scale·‖x‖ in the norm of V⁻¹, or of V⁻¹ṼV⁻¹
    for two matrices."""
    whiten_(board, X, at)
    if two_matrices(point):
        shape_(board.other, board.Y)
        squares_(board.Y, board.bonus)
    roots_(scale, board.bonus)


@piece
def linear_scores_(point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, board: Board) -> None:
    """Mean and bonus of every arm."""
    linear_factors_(point, row, lane, sums, board.low, board.other, board.pivot, board.z)
    linear_index_(point, linear_scale(point, row, lane, sums, board.pivot), X, at, board)


# ------------------------------------------------------------------------------------------ entries


@entry
def score_linear_(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats) -> int:
    """Mean and bonus of every arm of X (1, d, n), on the board that scratch begins with; the best arm."""
    first = X.size - X.size  # 0, but not a literal, for which everything below would be compiled again
    seen = board_of(scratch, X.shape[1], X.shape[2])
    linear_scores_(Point(flags, table), first, first, X, first, sums_of(flags, floats), seen)
    return first_best(seen.mean, seen.bonus)


@entry
def learn_linear_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, at: int, arm: int,
    reward: float, ticks: float, age: float,
) -> int:
    """A lesson; arm < 0 lets time pass without an observation. FINE, or why nothing was done."""
    first, history = X.size - X.size, history_of(flags, floats, ints)
    if not sound_cursor(history):
        return DAMAGED
    learn_(Point(flags, table), first, first, Lesson(X, at, arm, reward, ticks, age), sums_of(flags, floats), history)
    return FINE


@entry
def play_linear_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints,
) -> int:
    """Play len(path) rounds; regret is cumulative and starts from total. FINE, or why nothing was done."""
    rounds, record = Rounds(arms, path, draws, best, link, kind, noise), Record(chosen, regret, used)
    point, sums, history = Point(flags, table), sums_of(flags, floats), history_of(flags, floats, ints)
    if not sound_cursor(history):
        return DAMAGED
    seen = board_of(scratch, arms.shape[1], arms.shape[2])
    lane = chosen.size - chosen.size
    for t in range(path.shape[0]):
        at = set_of(rounds, t)
        linear_scores_(point, lane, lane, arms, at, sums, seen)
        arm = first_best(seen.mean, seen.bonus)
        reward = reward_(rounds, t, arm, total, record)
        total = regret[t]
        used[t] = lane
        learn_(point, lane, lane, Lesson(arms, at, arm, reward, 1.0, 0.0), sums, history)
    return FINE


@entry
def fold_linear_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, rewards: Floats,
    ticks: Floats, ages: Floats,
) -> int:
    """The lessons of `learn_linear_` one after the other, lesson t on X[t] (d, 1). FINE, or why nothing was done."""
    first, history = X.size - X.size, history_of(flags, floats, ints)
    point, sums = Point(flags, table), sums_of(flags, floats)
    if not sound_cursor(history):
        return DAMAGED
    for t in range(rewards.shape[0]):
        learn_(point, first, first, Lesson(X, t, first, rewards[t], ticks[t], ages[t]), sums, history)
    return FINE


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
