"""Eigenvalues and eigenvectors of a symmetric matrix: Householder's reflections to three diagonals, then implicit QL.

No library is asked, so that the same bits come of it compiled, interpreted, and on every machine with the same C
library. Lengths are square roots of sums, not math.hypot, whose last bit Python rounds otherwise than compiled code.
"""

from __future__ import annotations

import math

from driftwise.kernels import routine
from driftwise.kernels.point import Floats

SWEEPS = 60
EPSILON = 2.220446049250313e-16


@routine
def eigen_(A: Floats, values: Floats, rows: Floats, beside: Floats) -> bool:
    """A = rows' diag(values) rows, an eigenvector a row; A is scribbled over. False where it does not converge."""
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
    reflect_(A, values, rows, beside)
    done = sweep_(values, rows, beside)
    for i in range(d):
        values[i] *= scale
    return done


@routine
def reflect_(A: Floats, values: Floats, rows: Floats, beside: Floats) -> None:
    """Three diagonals that have A's eigenvalues: values, and beside with its last place unused; rows turn A to them."""
    d = values.size
    for k in range(d - 2):
        square = 0.0
        for i in range(k + 2, d):
            square += A[i, k] * A[i, k]
        first = A[k + 1, k]
        beside[k] = first
        values[k] = 0.0  # twice over the squared length of the reflection's normal, which is kept in A's column
        if square == 0.0:
            continue
        length = math.sqrt(first * first + square)
        if first > 0.0:
            length = -length
        beside[k] = length
        A[k + 1, k] = first - length
        half = 2.0 / (square + A[k + 1, k] * A[k + 1, k])
        values[k] = half
        fold_(A, k, half, rows)
    for k in range(d - 3, -1, -1):
        half = values[k]
        if half != 0.0:
            for j in range(k + 1, d):
                along = 0.0
                for i in range(k + 1, d):
                    along += A[i, k] * rows[j, i]
                along *= half
                for i in range(k + 1, d):
                    rows[j, i] -= along * A[i, k]
    for k in range(d):
        values[k] = A[k, k]
    if d > 1:
        beside[d - 2] = A[d - 1, d - 2]
    beside[d - 1] = 0.0


@routine
def fold_(A: Floats, k: int, half: float, rows: Floats) -> None:
    """The rest of A between two reflections at the normal v in column k; row 0 of rows is scratch and put back."""
    d = A.shape[0]
    across = 0.0
    for i in range(k + 1, d):
        total = 0.0
        for j in range(k + 1, d):
            total += A[max(i, j), min(i, j)] * A[j, k]
        rows[0, i] = half * total
        across += rows[0, i] * A[i, k]
    for i in range(k + 1, d):
        rows[0, i] -= 0.5 * half * across * A[i, k]
    for i in range(k + 1, d):
        for j in range(k + 1, i + 1):
            A[i, j] -= A[i, k] * rows[0, j] + rows[0, i] * A[j, k]
    for i in range(k + 1, d):
        rows[0, i] = 0.0


@routine
def sweep_(values: Floats, rows: Floats, beside: Floats) -> bool:
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
            chase_(first, last, g, values, rows, beside)
    return True


@routine
def chase_(first: int, last: int, g: float, values: Floats, rows: Floats, beside: Floats) -> None:
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
