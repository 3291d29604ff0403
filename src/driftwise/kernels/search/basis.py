"""The eigenbasis for the search of an index over a ball, and the curve on which all maximisers lie.

With m the eigenvalues of A, c = u'θ and M the largest m, that curve is y_i ∝ c_i/(δ + M - m_i) for δ in (0, ∞): from
the direction that is known least to that of θ. If c has no part along the first, the curve has a corner there (the hard
case of Moré and Sorensen 1983). Then c is changed by 1e-14 of the index along it, with a fixed sign, which changes no
index by more than that and removes the special case.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece, routine
from driftwise.kernels.point import Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.index_form import FOUND, SHIFT, THETA, TILT, TOP, IndexForm
from driftwise.kernels.solvers.eigen import eigen_

NUDGE = 1e-14
NEWTON, HALVINGS = 60, 200

# The rows of vec here: gaps of eigenvalues to the largest, c, y and b in the eigenbasis, and eigenvalues.
GAPS, ALONG, TURNED, TILTED, VALUES = page.FIRST, page.SECOND, page.THIRD, page.FOURTH, page.FIFTH


@piece
def row_dot(u: Floats, a: int, v: Floats, b: int) -> float:
    """u[a]'v[b]."""
    total = 0.0
    for i in range(v.shape[1]):
        total += u[a, i] * v[b, i]
    return total


@piece
def largest_eigenvalue(vec: Floats) -> float:
    """M, the largest eigenvalue."""
    most = 0.0
    for i in range(vec.shape[1]):
        most = max(most, vec[VALUES, i])
    return most


@routine
def eigenbasis_(form: IndexForm) -> bool:
    """Eigenvectors in rows, each with its first largest coordinate positive; their values, gaps, c and b."""
    vec, rows, d = form.vec, form.rows, form.vec.shape[1]
    for i in range(d):
        for j in range(d):
            form.work[i, j] = form.A[i, j]
    if not eigen_(form.work, vec[VALUES], rows, vec[TURNED]):
        return False
    for k in range(d):
        vec[VALUES, k] = max(vec[VALUES, k], 0.0)
        widest, at = 0.0, 0
        for i in range(d):
            if abs(rows[k, i]) > (1.0 + 1e-9) * widest:
                widest, at = abs(rows[k, i]), i
        if rows[k, at] < 0.0:
            for i in range(d):
                rows[k, i] = -rows[k, i]
    most = largest_eigenvalue(vec)
    for k in range(d):
        vec[GAPS, k] = most - vec[VALUES, k]
        vec[ALONG, k] = row_dot(rows, k, vec, int(THETA))
        vec[TILTED, k] = row_dot(rows, k, vec, int(TILT))
    return True


@routine
def nudge_(vec: Floats, row: int, unit: float) -> None:
    """vec[row] gets a part along the first eigenvector of the largest value if it has none, small beside it or unit."""
    first, along = -1, 0.0
    for i in range(vec.shape[1]):
        if vec[GAPS, i] <= 1e-15 * vec[VALUES, i]:
            along += vec[row, i] * vec[row, i]
            if first < 0:
                first = i
    floor = NUDGE * max(math.sqrt(row_dot(vec, row, vec, row)), unit)
    if not along > floor * floor:
        vec[row, first] = floor if vec[row, first] >= 0.0 else -floor


@routine
def shift_of(vec: Floats, row: int, weighted: bool, level: float) -> float:
    """δ with Σ c²(m)/(δ + gap)² = level², m where weighted: Newton's method on 1/norm, which rises to it from below."""
    under, over = 0.0, 0.0
    for i in range(vec.shape[1]):
        part = vec[row, i] * vec[row, i] * (vec[VALUES, i] if weighted else 1.0)
        over += part
        if vec[GAPS, i] <= 1e-15 * vec[VALUES, i]:
            under += part
    delta, over = math.sqrt(under) / level, math.sqrt(over) / level
    for _ in range(NEWTON):
        norm, fall = 0.0, 0.0
        for i in range(vec.shape[1]):
            below = 1.0 / (delta + vec[GAPS, i])
            part = vec[row, i] * below
            part = part * part * (vec[VALUES, i] if weighted else 1.0)
            norm += part
            fall += part * below
        if not fall > 0.0:
            break
        step = (norm / fall) * (math.sqrt(norm) / level - 1.0)
        following = min(max(delta + step, 0.5 * delta), over)
        if not abs(following - delta) > 1e-16 * delta:
            break
        delta = following
    return delta


@routine
def place_(vec: Floats, row: int, delta: float) -> float:
    """vec[TURNED] = y(δ) of norm 1; t with y_i = t c_i/(δ + gap)."""
    total = 0.0
    for i in range(vec.shape[1]):
        vec[TURNED, i] = vec[row, i] / (delta + vec[GAPS, i])
        total += vec[TURNED, i] * vec[TURNED, i]
    t = 1.0 / math.sqrt(total)
    for i in range(vec.shape[1]):
        vec[TURNED, i] *= t
    return t


@routine
def from_basis_(form: IndexForm, to: int) -> None:
    """vec[to] = the point whose coordinates in the eigenbasis are vec[TURNED]."""
    vec = form.vec
    for i in range(vec.shape[1]):
        t = 0.0
        for k in range(vec.shape[1]):
            t += vec[TURNED, k] * form.rows[k, i]
        vec[to, i] = t


@piece
def width_of(vec: Floats) -> float:
    """√(y'Ay) of vec[TURNED]."""
    total = 0.0
    for i in range(vec.shape[1]):
        total += vec[VALUES, i] * vec[TURNED, i] * vec[TURNED, i]
    return math.sqrt(total)


@routine
def along_theta_(form: IndexForm) -> None:
    """The search if only θ matters: its direction, or the first coordinate if θ = 0."""
    vec = form.vec
    length = math.sqrt(row_dot(vec, int(THETA), vec, int(THETA)))
    for i in range(vec.shape[1]):
        vec[FOUND, i] = vec[THETA, i] / length if length > 0.0 else 1.0 if i == 0 else 0.0
    form.numbers[TOP] = form.numbers[SHIFT] + length
