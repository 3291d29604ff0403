"""Eigenvalues and eigenvectors of a symmetric matrix: Householder's reflections to three diagonals, then implicit QL.

No library is used, so that the bits are the same compiled, interpreted, and on every machine. Lengths are square roots
of sums, not math.hypot, whose last bit Python rounds differently from compiled code.
"""

from __future__ import annotations

import math

from driftwise.kernels import routine
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.point import Floats

SWEEPS = 60
EPSILON = 2.220446049250313e-16


@routine
def eigen_(A: Matrix, values: Vector, rows: Matrix, beside: Vector) -> bool:
    """A = rows' diag(values) rows, one eigenvector per row; A is overwritten. False if it does not converge."""
    d = values.size
    scale = 0.0
    for i in range(d):
        for j in range(i + 1):
            scale = max(scale, abs(A[i, j]))
    if not scale < math.inf:
        return False
    for i in range(d):
        for j in range(d):
            rows[i, j] = 1.0 if i == j else 0.0
    if scale == 0.0:
        for i in range(d):
            values[i] = 0.0
        return True
    for i in range(d):
        for j in range(d):
            A[i, j] /= scale
    reduce_(A, values, rows, beside)
    done = ql_(values, rows, beside)
    for i in range(d):
        values[i] *= scale
    return done


@routine
def reduce_(A: Floats, values: Floats, rows: Floats, beside: Floats) -> None:
    """A tridiagonal matrix with A's eigenvalues: values, and beside, whose last place is unused; rows turn A to it."""
    d = values.size
    tridiagonalise_(A, values, beside)
    for k in range(d - 3, -1, -1):
        half = values[k]
        if half != 0.0:
            for j in range(k + 1, d):
                reflect_(A, k, k + 1, half, rows, j)
    for k in range(d):
        values[k] = A[k, k]


@routine
def tridiagonalise_(A: Floats, halves: Floats, beside: Floats) -> None:
    """A, symmetric and full, to its diagonal and beside; after its diagonal row k keeps the normal of a reflection, and
    halves its 2/‖normal‖², 0 if there is none."""
    d = A.shape[0]
    for k in range(d - 2):
        beside[k], halves[k] = normal_(A, k, k + 1)
        if halves[k] != 0.0:
            reflect_both_(A, A, k, k + 1, halves[k], beside)
    if d > 1:
        beside[d - 2] = A[d - 2, d - 1]
    beside[d - 1] = 0.0


@routine
def normal_(u: Floats, row: int, first: int) -> tuple[float, float]:
    """u[row, first:] becomes the normal of the reflection that brings it to its first coordinate; returns the value
    there and 2/‖normal‖², or 0 if it is there already."""
    square, head = 0.0, u[row, first]
    for i in range(first + 1, u.shape[1]):
        square += u[row, i] * u[row, i]
    if square == 0.0:
        return head, 0.0
    length = math.sqrt(head * head + square)
    if head > 0.0:
        length = -length
    u[row, first] = head - length
    return length, 2.0 / (square + u[row, first] * u[row, first])


@routine
def reflect_both_(A: Floats, u: Floats, row: int, first: int, half: float, beside: Floats) -> None:
    """A from index first on, between two reflections at the normal u[row, first:]; beside is overwritten from there.

    A is kept full, although it is symmetric, so that all loops run along rows.
    """
    d = A.shape[0]
    for i in range(first, d):
        beside[i] = 0.0
    for k in range(first, d):
        t = half * u[row, k]
        for i in range(first, d):
            beside[i] += t * A[k, i]
    across = 0.0
    for i in range(first, d):
        across += beside[i] * u[row, i]
    across *= 0.5 * half
    for i in range(first, d):
        beside[i] -= across * u[row, i]
    for i in range(first, d):
        v, p = u[row, i], beside[i]
        for j in range(first, d):
            A[i, j] -= v * beside[j] + p * u[row, j]


@routine
def reflect_(u: Floats, row: int, first: int, half: float, y: Floats, at: int) -> None:
    """y[at, first:] reflected at the normal u[row, first:]."""
    along = 0.0
    for i in range(first, u.shape[1]):
        along += u[row, i] * y[at, i]
    along *= half
    for i in range(first, u.shape[1]):
        y[at, i] -= along * u[row, i]


@routine
def ql_(values: Floats, rows: Floats, beside: Floats) -> bool:
    """Implicit QL with Wilkinson's shift until nothing is left beside the diagonal."""
    d = values.size
    for first in range(d):
        for attempt in range(SWEEPS + 1):
            last = first
            while last < d - 1 and abs(beside[last]) > EPSILON * (abs(values[last]) + abs(values[last + 1])):
                last += 1
            if last == first:
                break
            if attempt == SWEEPS:
                return False
            g = (values[first + 1] - values[first]) / (2.0 * beside[first])
            r = math.sqrt(g * g + 1.0)
            g = values[last] - values[first] + beside[first] / (g + (r if g >= 0.0 else -r))
            ql_rotate_(first, last, g, values, rows, beside)
    return True


@routine
def ql_rotate_(first: int, last: int, g: float, values: Floats, rows: Floats, beside: Floats) -> None:
    """One sweep of rotations from the bottom of an unreduced block to its top."""
    s, c, p = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = s * beside[i], c * beside[i]
        r = math.sqrt(f * f + g * g)
        beside[i + 1] = r
        if r == 0.0:
            values[i + 1] -= p
            beside[last] = 0.0
            return
        s, c = f / r, g / r
        g = values[i + 1] - p
        r = (values[i] - g) * s + 2.0 * c * b
        p = s * r
        values[i + 1] = g + p
        g = c * r - b
        for k in range(rows.shape[1]):
            f = rows[i + 1, k]
            rows[i + 1, k] = s * rows[i, k] + c * f
            rows[i, k] = c * rows[i, k] - s * f
    values[first] -= p
    beside[first] = g
    beside[last] = 0.0
