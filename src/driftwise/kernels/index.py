"""Indices of all arms at once. The arms are the contiguous axis, so that loops over them vectorise."""

from __future__ import annotations

import math

from driftwise.kernels import kernel
from driftwise.kernels.point import Floats


@kernel
def whiten_(low: Floats, pivot: Floats, X: Floats, at: int, Y: Floats) -> None:
    """Y = low⁻¹ X[at]: forward substitution for every arm, four rows a pass to spare loads and stores."""
    d, n = Y.shape
    for i in range(d):
        for a in range(n):
            Y[i, a] = X[at, i, a]
        whole = i - i % 4
        for k in range(0, whole, 4):
            l0, l1, l2, l3 = low[i, k], low[i, k + 1], low[i, k + 2], low[i, k + 3]
            for a in range(n):
                Y[i, a] = Y[i, a] - l0 * Y[k, a] - l1 * Y[k + 1, a] - l2 * Y[k + 2, a] - l3 * Y[k + 3, a]
        for k in range(whole, i):
            l0 = low[i, k]
            for a in range(n):
                Y[i, a] -= l0 * Y[k, a]
        w = pivot[i]
        for a in range(n):
            Y[i, a] *= w


@kernel
def project_(z: Floats, Y: Floats, mean: Floats) -> None:
    """mean = Y'z: with z = low⁻¹b and Y = low⁻¹X this is X'V⁻¹b."""
    for a in range(mean.size):
        mean[a] = 0.0
    for i in range(z.size):
        zi = z[i]
        for a in range(mean.size):
            mean[a] += zi * Y[i, a]


@kernel
def lengths_(Y: Floats, scale: float, bonus: Floats) -> None:
    """bonus = scale·‖Y‖, column by column."""
    for a in range(bonus.size):
        bonus[a] = 0.0
    for i in range(Y.shape[0]):
        for a in range(bonus.size):
            bonus[a] += Y[i, a] * Y[i, a]
    for a in range(bonus.size):
        bonus[a] = scale * math.sqrt(bonus[a])


@kernel
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


@kernel
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
