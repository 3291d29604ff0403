"""The weighted atoms of a lane and their equation, and the sums over them that every solver uses.

Four sums at a time, added in a fixed order: loops vectorise, and bits do not depend on the vector length.
"""

from __future__ import annotations

from typing import NamedTuple

from driftwise.kernels import piece
from driftwise.kernels.cut import Matrix
from driftwise.kernels.point import Floats


class Atoms(NamedTuple):
    """reg·θ + Σ (w_a μ(x_a'θ) - s_a) x_a = 0 in the ball of radius S.

    The x_a are the columns 0..used-1 of A (d, capacity); w and s (lanes, capacity) hold their weights and weighted
    reward sums, those of one lane in a row.
    """

    link: int
    A: Matrix
    w: Matrix
    s: Matrix
    lane: int
    used: int
    reg: float
    S: float


@piece
def linear_predictor_(p: Atoms, theta: Floats, k: int, z: Floats) -> None:
    """z_a = x_a'θ_k."""
    A = p.A
    t = theta[k, 0]
    for a in range(p.used):
        z[a] = t * A[0, a]
    for i in range(1, A.shape[0]):
        t = theta[k, i]
        for a in range(p.used):
            z[a] += t * A[i, a]


@piece
def along(p: Atoms, i: int, c: Floats) -> float:
    """Σ c_a x_ai."""
    A, used = p.A, p.used
    whole = used - used % 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for a in range(0, whole, 4):
        s0 += c[a] * A[i, a]
        s1 += c[a + 1] * A[i, a + 1]
        s2 += c[a + 2] * A[i, a + 2]
        s3 += c[a + 3] * A[i, a + 3]
    for a in range(whole, used):
        s0 += c[a] * A[i, a]
    return (s0 + s1) + (s2 + s3)


@piece
def spread(p: Atoms, i: int, j: int, h: Floats) -> float:
    """Σ h_a x_ai x_aj."""
    A, used = p.A, p.used
    whole = used - used % 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for a in range(0, whole, 4):
        s0 += h[a] * A[i, a] * A[j, a]
        s1 += h[a + 1] * A[i, a + 1] * A[j, a + 1]
        s2 += h[a + 2] * A[i, a + 2] * A[j, a + 2]
        s3 += h[a + 3] * A[i, a + 3] * A[j, a + 3]
    for a in range(whole, used):
        s0 += h[a] * A[i, a] * A[j, a]
    return (s0 + s1) + (s2 + s3)
