"""Indices of all arms at once. The arms are the contiguous axis, so that loops over them vectorise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from driftwise.kernels import formula, kernel, loop, piece
from driftwise.kernels.cut import Matrix, Stack
from driftwise.kernels.lanes import Lanes, roots
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import Shapes, carved


class ScoreScratch(NamedTuple):
    """Scratch for the indices of n arms: their means, bonuses and proposals, factors, Y = low⁻¹X; three more numbers of
    every arm, and a coordinate more than there are features."""

    mean: Floats
    bonus: Floats
    proposed: Floats
    low: Floats
    other: Floats
    pivot: Floats
    z: Floats
    Y: Floats
    more: Floats
    column: Floats


@formula
def score_shapes(d: int, n: int) -> Shapes:
    """The shapes of its fields."""
    return (n,), (n,), (n,), (d, d), (d, d), (d,), (d,), (d, n), (3, n), (d + 1,)


score_scratch_size, score_scratch_of = carved(ScoreScratch, score_shapes)


@loop
def whiten_(scores: ScoreScratch, X: Floats, at: int) -> None:
    """Y = low⁻¹ X[at], mean = Y'z, bonus = ‖Y‖², arm by arm: with z = low⁻¹b that is X'V⁻¹b and X'V⁻¹X.

    Forward substitution with four rows per pass, the last one together with the sums, to save loads and stores.
    """
    low, pivot, z, Y, mean, square = scores.low, scores.pivot, scores.z, scores.Y, scores.mean, scores.bonus
    d, n = Y.shape
    w, zi = pivot[0], z[0]
    for a in range(n):
        y = X[at, 0, a] * w
        Y[0, a] = y
        mean[a] = zi * y
        square[a] = y * y
    for i in range(1, d):
        for a in range(n):
            Y[i, a] = X[at, i, a]
        whole = (i - 1) - (i - 1) % 4
        for k in range(0, whole, 4):
            l0, l1, l2, l3 = low[i, k], low[i, k + 1], low[i, k + 2], low[i, k + 3]
            for a in range(n):
                Y[i, a] = Y[i, a] - l0 * Y[k, a] - l1 * Y[k + 1, a] - l2 * Y[k + 2, a] - l3 * Y[k + 3, a]
        for k in range(whole, i - 1):
            l0 = low[i, k]
            for a in range(n):
                Y[i, a] -= l0 * Y[k, a]
        l0, w, zi = low[i, i - 1], pivot[i], z[i]
        for a in range(n):
            y = (Y[i, a] - l0 * Y[i - 1, a]) * w
            Y[i, a] = y
            mean[a] += zi * y
            square[a] += y * y


@piece
def squares_(Y: Floats, square: Floats) -> None:
    """square = ‖Y‖², column by column."""
    for a in range(square.size):
        square[a] = 0.0
    for i in range(Y.shape[0]):
        for a in range(square.size):
            square[a] += Y[i, a] * Y[i, a]


def rooting(root: Callable[[Lanes], Lanes]) -> Callable[[float, Lanes], Lanes]:
    """The bonus of an arm by its squared width, of one or of eight: `root` is the square root."""

    @piece
    def bonus(scale: float, square: Lanes) -> Lanes:
        """The bonus of an arm with this squared width."""
        return scale * root(square)

    return bonus


bonus_of, bonuses_of = rooting(math.sqrt), rooting(roots)


@piece
def roots_(scale: float, square: Floats) -> None:
    """Turn squared widths into bonuses."""
    for a in range(square.size):
        square[a] = bonus_of(scale, square[a])


@piece
def lift_(link: int, quantile: float, mean: Floats, bonus: Floats) -> None:
    """From x'θ and ‖x‖² to μ(x'θ) and the difference μ(x'θ + quantile·‖x‖) - μ(x'θ)."""
    for a in range(mean.size):
        top = link_mean(link, mean[a] + bonus_of(quantile, bonus[a]))
        mean[a] = link_mean(link, mean[a])
        bonus[a] = top - mean[a]


@piece
def shape_(M: Floats, Y: Floats) -> None:
    """Y <- M'Y for a lower triangular M, in place from the top."""
    d, n = Y.shape
    for i in range(d):
        m = M[i, i]
        for a in range(n):
            Y[i, a] *= m
        for k in range(i + 1, d):
            m = M[k, i]
            for a in range(n):
                Y[i, a] += m * Y[k, a]


@piece
def first_best(mean: Floats, bonus: Floats) -> int:
    """The arm with the largest mean + bonus; ties go to the first."""
    arm = 0
    best = -math.inf
    for a in range(mean.size):
        score = mean[a] + bonus[a]
        if score > best:
            best = score
            arm = a
    return arm


@piece
def first_above(z: float, mean: Floats, width: Floats) -> int:
    """The arm with the largest mean + z·width in exact arithmetic; of equal lines the first.

    Sums that are rounded tie where lines nearly do, and a tie goes to the first arm, however they cross. Here the place
    of z beside a crossing decides, as it does for the probabilities of arms (kernels/sampling.py).
    """
    arm = 0
    for a in range(1, mean.size):
        steeper, below = width[a] - width[arm], mean[arm] - mean[a]
        if steeper > 0.0:
            above = z >= below / steeper
        elif steeper < 0.0:
            above = z < below / steeper
        else:
            above = below < 0.0
        if above:
            arm = a
    return arm


@piece
def first_less(mean: Floats, bonus: Floats, costs: Floats) -> int:
    """The arm with the largest mean + bonus - cost; ties go to the first. No costs are none."""
    if costs.size == 0:
        return first_best(mean, bonus)
    arm = 0
    best = -math.inf
    for a in range(mean.size):
        score = mean[a] + bonus[a] - costs[a]
        if score > best:
            best = score
            arm = a
    return arm


@kernel
def columns_(rows: Matrix, columns: Stack) -> float:
    """columns (1, d, n) <- rows (n, d) transposed; returns the largest norm, not finite if any entry is not."""
    longest, total = 0.0, 0.0
    for a in range(rows.shape[0]):
        square = 0.0
        for i in range(rows.shape[1]):
            columns[0, i, a] = rows[a, i]
            square += rows[a, i] * rows[a, i]
        longest = max(longest, square)
        total += square
    return math.sqrt(longest) if math.isfinite(total) else math.inf
