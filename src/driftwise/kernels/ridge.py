"""Ridge regression for policies that run call by call: the index of all arms from the sums of one model."""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import entry
from driftwise.kernels.algebra import factor_, forward_
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.point import Floats


@entry
def ridge_scores_(V: Stack, at: int, b: Matrix, X: Matrix, low: Matrix, rows: Matrix, out: Matrix) -> None:
    """out (2, n) <- x'θ̂ and ‖x‖ in V[at]⁻¹ of every row of X (n, d), with θ̂ = V[at]⁻¹ b[at]; low (d, d) and rows
    (3, d) are scratch."""
    pivot, z, y = rows[0], rows[1], rows[2]
    factor_(V, at, 0.0, low, pivot)
    forward_(low, pivot, b, at, z)
    for a in range(X.shape[0]):
        forward_(low, pivot, X, a, y)
        mean, square = 0.0, 0.0
        for i in range(X.shape[1]):
            mean += y[i] * z[i]
            square += y[i] * y[i]
        out[0, a] = mean
        out[1, a] = math.sqrt(square)


def ridge_scores(V: Floats, at: int, b: Floats, X: Floats) -> tuple[Floats, Floats]:
    """x'θ̂ and ‖x‖ in V[at]⁻¹ of every row of X (n, d)."""
    n, d = X.shape
    out = np.zeros((2, n))
    ridge_scores_(V, at, b, X, np.zeros((d, d)), np.zeros((3, d)), out)
    return out[0], out[1]


@entry
def ridge_take_(V: Stack, at: int, b: Matrix, x: Vector, reward: float, weight: float) -> None:
    """V[at] += weight·xx' and b[at] += weight·reward·x."""
    for i in range(x.size):
        b[at, i] += weight * reward * x[i]
        for j in range(x.size):
            V[at, i, j] += weight * x[i] * x[j]
