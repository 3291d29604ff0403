"""An index as a function of any x: the form of the families' scores of a list of arms, in its own scratch.

All indices of this library but those of set rules are one of two kinds. With z = shift + x'θ and
spread = weight·√(x'Ax - 2x'b + c), an index RISES with z + spread (it is that, or μ of that), or it is the SUM
μ(z) + spread. b and c are 0 except for lanes with a separate level, whose arms are relative to a centre.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import entry, formula, piece, routine
from driftwise.kernels.algebra import divide_
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import Shapes, carved, views

# Kinds of an index.
RISES, SUM = 0, 1
# Places of numbers: kind and link, shift, weight and c of the index; the upper bound that a search has proven, and
# steps; mean and bonus of the point found, if they are requested.
KIND, LINK_CODE, SHIFT, WEIGHT, CONSTANT_PART, TOP, STEPS, MEAN, BONUS = 0, 1, 2, 3, 4, 5, 6, 7, 8
NUMBERS = 9
# Rows of vec: θ and b; the point found; 1/diagonal of a factor of V and its solution for b; then scratch of searches.
THETA, TILT, FOUND, PIVOT, WHITE, FIRST, SECOND, THIRD, FOURTH, FIFTH = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
VECTORS = 10
# The largest number of intervals that a search has postponed: each is half of the one before.
DEEP = 256


class IndexForm(NamedTuple):
    """numbers and vec by the names above, A, four more matrices and a stack as scratch."""

    numbers: Floats
    vec: Floats
    A: Floats
    low: Floats
    other: Floats
    rows: Floats
    work: Floats
    stack: Floats


@formula
def form_shapes(d: int) -> Shapes:
    """The shapes of its fields."""
    return (NUMBERS,), (VECTORS, d), (d, d), (d, d), (d, d), (d, d), (d, d), (2, DEEP)


index_form_size, index_form_of = carved(IndexForm, form_shapes)
index_form_views = views(index_form_of)


@piece
def plain_(form: IndexForm, kind: int, link: int, weight: float) -> None:
    """An index without a centre."""
    numbers = form.numbers
    numbers[KIND], numbers[LINK_CODE], numbers[WEIGHT] = float(kind), float(link), weight
    numbers[SHIFT], numbers[CONSTANT_PART] = 0.0, 0.0
    for i in range(form.vec.shape[1]):
        form.vec[TILT, i] = 0.0


@piece
def set_to_zero_(A: Floats) -> None:
    """A <- 0."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.0


@routine
def invert_(low: Floats, pivot: Floats, work: Floats) -> None:
    """work = low⁻¹, lower triangular; above the diagonal it is 0."""
    set_to_zero_(work)
    for i in range(work.shape[0]):
        work[i, i] = 1.0
    divide_(low, pivot, work, work)


@routine
def add_square_(share: float, work: Floats, A: Floats) -> None:
    """A += share·work'work for a lower triangular work."""
    d = A.shape[0]
    for k in range(d):
        for i in range(k + 1):
            t = share * work[k, i]
            for j in range(k + 1):
                A[i, j] += t * work[k, j]


@routine
def square_at(form: IndexForm, x: Floats, row: int) -> float:
    """x'Ax - 2x'b + c of x[row], never below 0."""
    A, tilt, total = form.A, form.vec, form.numbers[CONSTANT_PART]
    for i in range(A.shape[0]):
        t = -2.0 * tilt[TILT, i]
        for j in range(A.shape[0]):
            t += A[i, j] * x[row, j]
        total += t * x[row, i]
    return max(float(total), 0.0)


@routine
def value_at(form: IndexForm, x: Floats, row: int) -> float:
    """The index of x[row]; for one that rises, z + spread."""
    numbers = form.numbers
    z = numbers[SHIFT]
    for i in range(x.shape[1]):
        z += x[row, i] * form.vec[THETA, i]
    spread = numbers[WEIGHT] * math.sqrt(square_at(form, x, row))
    if numbers[KIND] == SUM:
        return float(link_mean(int(numbers[LINK_CODE]), z) + spread)
    return float(z + spread)


@entry
def values_(scratch: Vector, X: Matrix, out: Vector) -> None:
    """The index of every row of X (n, d); for one that rises, z + spread."""
    form = index_form_of(scratch, X.shape[1])
    for a in range(X.shape[0]):
        out[a] = value_at(form, X, a)


@entry
def score_of(link: int, kind: int, value: float) -> float:
    """From z + spread to the score of an index that rises; a sum is its own score."""
    return link_mean(link, value) if kind == RISES else value
