"""Ridge regression for policies that run a call at a time: index of all arms by the sums of one model."""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import kernel
from driftwise.kernels.algebra import factor_, forward_
from driftwise.kernels.point import Floats


@kernel
def ridge_scores(V: Floats, at: int, b: Floats, X: Floats) -> tuple[Floats, Floats]:
    """x'θ̂ and ‖x‖ in V[at]⁻¹ of every row of X (n, d), with θ̂ = V[at]⁻¹ b[at]."""
    n, d = X.shape
    low, pivot, z, y = np.zeros((d, d)), np.zeros(d), np.zeros(d), np.zeros(d)
    mean, width = np.zeros(n), np.zeros(n)
    factor_(V, at, 0.0, low, pivot)
    forward_(low, pivot, b, at, z)
    for a in range(n):
        forward_(low, pivot, X, a, y)
        square = 0.0
        for i in range(d):
            mean[a] += y[i] * z[i]
            square += y[i] * y[i]
        width[a] = math.sqrt(square)
    return mean, width


@kernel
def ridge_take_(V: Floats, at: int, b: Floats, x: Floats, reward: float, weight: float) -> None:
    """V[at] += weight·xx' and b[at] += weight·reward·x."""
    for i in range(x.size):
        b[at, i] += weight * reward * x[i]
        for j in range(x.size):
            V[at, i, j] += weight * x[i] * x[j]
