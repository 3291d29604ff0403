"""Sums of products and linear systems in NumPy, computed in a fixed order.

BLAS and LAPACK run different code on different processors, and so give different bits. NumPy's +, *, / and its sums
along an axis round in the same order on every processor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def dot(x: Floats, y: Floats) -> float:
    """x'y."""
    return float((x * y).sum())


def length(x: Floats) -> float:
    """‖x‖."""
    return math.sqrt(dot(x, x))


def times(A: Floats, x: Floats) -> Floats:
    """A x, or A X' for X with one vector per row."""
    if x.ndim == 1:
        return np.asarray((A * x).sum(axis=1))
    return np.stack([times(A, one) for one in x], axis=1) if len(x) else np.zeros((len(A), 0))


def factor(V: Floats) -> Floats:
    """The lower triangle with low low' = V; LinAlgError where V is not positive definite."""
    low = np.zeros_like(V)
    for j in range(len(V)):
        column = V[j:, j] - times(low[j:, :j], low[j, :j])
        if not 0.0 < column[0] < math.inf:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        low[j:, j] = column / math.sqrt(column[0])
    return low


def solved(A: Floats, b: Floats) -> Floats:
    """A⁻¹ b for a vector or a matrix b, by Gaussian elimination with row pivots; LinAlgError where A is singular."""
    left = np.array(A, dtype=np.float64)
    right = np.array(b, dtype=np.float64).reshape(len(left), -1)
    for k in range(len(left)):
        best = k + int(np.abs(left[k:, k]).argmax())
        if left[best, k] == 0.0:
            raise np.linalg.LinAlgError("the matrix is singular")
        for side in (left, right):
            side[[k, best]] = side[[best, k]]
        share = (left[k + 1 :, k] / left[k, k])[:, None]
        left[k + 1 :] -= share * left[k]
        right[k + 1 :] -= share * right[k]
    for k in range(len(left) - 1, -1, -1):
        right[k] = (right[k] - (left[k, k + 1 :, None] * right[k + 1 :]).sum(axis=0)) / left[k, k]
    shape: Any = np.shape(b)
    return right.reshape(shape)
