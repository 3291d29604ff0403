"""Factors of G + ridge·I, computed from the sum whenever they are asked for; no inverse is ever carried.

There are four factorisations here, and they differ in what a bad pivot gets: this one raises it to the ridge, below
which no exact pivot lies; newton.py's raises it to a bound or to rounding and counts; secular.py's and project.py's
refuse, the first by a relative, the second by a rounding test, for their callers shift the matrix and try again.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.point import Floats


@piece
def factor_(G: Floats, lane: int, ridge: float, low: Floats, pivot: Floats) -> None:
    """low low' = G[lane] + ridge·I, lower triangle; pivot[i] = 1/low[i, i].

    No exact pivot lies below the ridge; one that rounding pushed there is raised to it, so nothing becomes NaN.
    """
    for i in range(low.shape[0]):
        for j in range(i):
            z = G[lane, i, j]
            for k in range(j):
                z -= low[i, k] * low[j, k]
            low[i, j] = z * pivot[j]
        z = G[lane, i, i] + ridge
        for k in range(i):
            z -= low[i, k] * low[i, k]
        root = math.sqrt(max(z, ridge))
        low[i, i] = root
        pivot[i] = 1.0 / root


@piece
def forward_(low: Floats, pivot: Floats, b: Floats, lane: int, out: Floats) -> None:
    """out = low⁻¹ b[lane]."""
    for i in range(out.size):
        z = b[lane, i]
        for k in range(i):
            z -= low[i, k] * out[k]
        out[i] = z * pivot[i]


@piece
def backward_(low: Floats, pivot: Floats, out: Floats) -> None:
    """out <- low⁻ᵀ out."""
    for i in range(out.size - 1, -1, -1):
        z = out[i]
        for k in range(i + 1, out.size):
            z -= low[k, i] * out[k]
        out[i] = z * pivot[i]


@piece
def divide_(low: Floats, pivot: Floats, M: Floats) -> None:
    """M <- low⁻¹ M for a lower triangular M; the result is lower triangular too."""
    d = low.shape[0]
    for j in range(d):
        for i in range(j, d):
            z = M[i, j]
            for k in range(j, i):
                z -= low[i, k] * M[k, j]
            M[i, j] = z * pivot[i]
