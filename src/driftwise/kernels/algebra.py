"""Factors of symmetric matrices and solutions with them, written once for one number or eight.

Variants differ in three ways. An entry is a number, or eight lanes side by side (kernels/lanes.py). A row is multiplied
by 1/pivot, which is kept, or divided by the pivot: the bits differ. A pivot that is too small is raised to the ridge,
raised to what rounding leaves of its row and counted, or refused.

Two factorisations are not here, because their loops differ: kernels/tiles.py has eight columns of one matrix in
registers, and kernels/foretell.py solves for the rows below a matrix in the same pass in which it factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from driftwise.kernels import piece
from driftwise.kernels.lanes import Lanes, load, roots, store_, where_above
from driftwise.kernels.point import Floats

ROUNDING = 2.220446049250313e-16

# One number, or eight side by side.
Value = Lanes
Place = int | tuple[int, int]

# ------------------------------------------------------------------------------------------ what variants differ in


class Cells(NamedTuple):
    """How an entry of a factor is read, written, and divided by a pivot."""

    get: Callable[[Floats, Place], Value]
    put_: Callable[[Floats, Place, Value], None]
    over: Callable[[Value, Floats, Floats, int], Value]


class Pivots(NamedTuple):
    """The first value of a pivot's square, from a diagonal entry of the matrix and the ridge; what it is raised to, or
    a negative number that refuses it; whether it is refused; how many were raised; and how a pivot is stored."""

    begin: Callable[[Value, Value], Value]
    admit: Callable[[Value, Value, Value], Value]
    refused: Callable[[Value], bool]
    lifted: Callable[[Value, Value], int]
    put_: Callable[[Floats, Floats, int, Value], None]


class Solution(NamedTuple):
    """How a solution is read and written, what it is the solution for, and its first row that is not 0."""

    take: Callable[[Floats, int, int], Value]
    get: Callable[[Floats, int, int], Value]
    put_: Callable[[Floats, int, int, Value], None]
    first_row: Callable[[int], int]


Factor = Callable[[Floats, int, Value, Floats, Floats], int]
Forward = Callable[[Floats, Floats, Floats, int, Floats], None]
Backward = Callable[[Floats, Floats, Floats], None]
Divide = Callable[[Floats, Floats, Floats, Floats], None]
Multiply = Callable[[Floats, Floats, Floats], None]


def factoring(cells: Cells, take: Callable[[Floats, int, int, int], Value], pivots: Pivots) -> Factor:
    """The piece that factors; `take` reads an entry of the matrix."""
    get, put_, over = cells.get, cells.put_, cells.over
    begin, admit, refused = pivots.begin, pivots.admit, pivots.refused
    lifted, put_pivot_ = pivots.lifted, pivots.put_

    @piece
    def factor_(G: Floats, at: int, ridge: Value, low: Floats, pivot: Floats) -> int:
        """low low' = G[at] + ridge·I, lower triangles; returns the number of raised pivots, or -1 if one is refused.

        The kinds for a single matrix (d, d) do not read `at`. low may be the matrix.
        """
        raised = 0
        for i in range(low.shape[0]):
            for j in range(i):
                v = take(G, at, i, j)
                for k in range(j):
                    v -= get(low, (i, k)) * get(low, (j, k))
                put_(low, (i, j), over(v, low, pivot, j))
            diagonal = take(G, at, i, i)
            v = begin(diagonal, ridge)
            for k in range(i):
                v -= get(low, (i, k)) * get(low, (i, k))
            square = admit(v, diagonal, ridge)
            if refused(square):
                return -1
            raised += lifted(v, square)
            put_pivot_(low, pivot, i, square)
        return raised

    return factor_


def going_forward(cells: Cells, solution: Solution) -> Forward:
    """The piece that solves with a factor."""
    get, over, take = cells.get, cells.over, solution.take
    get_at, put_at_, first_row = solution.get, solution.put_, solution.first_row

    @piece
    def forward_(low: Floats, pivot: Floats, b: Floats, at: int, out: Floats) -> None:
        """out = low⁻¹ b[at]; the kinds for a single vector do not read `at`, and out may be that vector."""
        for i in range(first_row(at), low.shape[0]):
            v = take(b, at, i)
            for k in range(first_row(at), i):
                v -= get(low, (i, k)) * get_at(out, at, k)
            put_at_(out, at, i, over(v, low, pivot, i))

    return forward_


def going_backward(cells: Cells) -> Backward:
    """The piece that solves with a factor turned over."""
    get, put_, over = cells.get, cells.put_, cells.over

    @piece
    def backward_(low: Floats, pivot: Floats, out: Floats) -> None:
        """out <- low⁻ᵀ out."""
        for i in range(low.shape[0] - 1, -1, -1):
            v = get(out, i)
            for k in range(i + 1, low.shape[0]):
                v -= get(low, (k, i)) * get(out, k)
            put_(out, i, over(v, low, pivot, i))

    return backward_


def dividing(column_: Forward) -> Divide:
    """The piece that solves for all columns, by one that solves for a column."""

    @piece
    def divide_(low: Floats, pivot: Floats, M: Floats, to: Floats) -> None:
        """to = low⁻¹ M, column by column; to may be M."""
        for j in range(M.shape[1]):
            column_(low, pivot, M, j, to)

    return divide_


def multiplying(left: Callable[[Floats, int, int], float], first_term: Callable[[int, int], int]) -> Multiply:
    """The piece that multiplies: `left` reads the first factor, `first_term` is the first term that is not 0."""

    @piece
    def multiply_(A: Floats, B: Floats, out: Floats) -> None:
        """out = A B."""
        for i in range(out.shape[0]):
            for j in range(out.shape[0]):
                t = 0.0
                for k in range(first_term(i, j), out.shape[0]):
                    t += left(A, i, k) * B[k, j]
                out[i, j] = t

    return multiply_


# ------------------------------------------------------------------------------------------ pieces


@piece
def _get(A: Floats, index: Place) -> float:
    return A[index]  # type: ignore[no-any-return]


@piece
def _put_(A: Floats, index: Place, v: float) -> None:
    A[index] = v


@piece
def _of_many(G: Floats, at: int, i: int, j: int) -> float:
    return G[at, i, j]  # type: ignore[no-any-return]


@piece
def _of_one(G: Floats, at: int, i: int, j: int) -> float:
    return G[i, j]  # type: ignore[no-any-return]


@piece
def _eight_of_one(G: Floats, at: int, i: int, j: int) -> Lanes:
    return load(G, (i, j))


@piece
def _row_of_many(b: Floats, at: int, i: int) -> float:
    return b[at, i]  # type: ignore[no-any-return]


@piece
def _row_of_one(b: Floats, at: int, i: int) -> float:
    return b[i]  # type: ignore[no-any-return]


@piece
def _eight_rows_of_one(b: Floats, at: int, i: int) -> Lanes:
    return load(b, i)


@piece
def _in_column(M: Floats, j: int, i: int) -> float:
    return M[i, j]  # type: ignore[no-any-return]


@piece
def _eight_in_column(M: Floats, j: int, i: int) -> Lanes:
    return load(M, (i, j))


@piece
def _row_(out: Floats, at: int, i: int, v: float) -> None:
    out[i] = v


@piece
def _eight_rows_(out: Floats, at: int, i: int, v: Lanes) -> None:
    store_(out, i, v)


@piece
def _into_column_(M: Floats, j: int, i: int, v: float) -> None:
    M[i, j] = v


@piece
def _eight_into_column_(M: Floats, j: int, i: int, v: Lanes) -> None:
    store_(M, (i, j), v)


@piece
def _times_inverse(v: float, low: Floats, pivot: Floats, i: int) -> float:
    return v * pivot[i]  # type: ignore[no-any-return]


@piece
def _eight_times_inverse(v: Lanes, low: Floats, pivot: Floats, i: int) -> Lanes:
    return v * load(pivot, i)


@piece
def _divided(v: float, low: Floats, pivot: Floats, i: int) -> float:
    return v / low[i, i]  # type: ignore[no-any-return]


@piece
def _with_ridge(diagonal: Value, ridge: Value) -> Value:
    return diagonal + ridge


@piece
def _alone(diagonal: float, ridge: float) -> float:
    return diagonal


@piece
def _no_less(v: float, diagonal: float, ridge: float) -> float:
    return max(v, ridge)


@piece
def _no_less_late(v: float, diagonal: float, ridge: float) -> float:
    return max(v + ridge, ridge)


@piece
def _eight_no_less(v: Lanes, diagonal: Lanes, ridge: Lanes) -> Lanes:
    return where_above(ridge, v, ridge, v)


@piece
def _no_less_than_rounding(v: float, diagonal: float, least: float) -> float:
    floor = max(least, 4.0 * ROUNDING * diagonal)
    return floor if v < floor else v


@piece
def _above_a_share(v: float, diagonal: float, ridge: float) -> float:
    return v if v > 1e-15 * (abs(diagonal) + ridge) else -1.0


@piece
def _above_rounding(v: float, diagonal: float, ridge: float) -> float:
    return v if v > 8.0 * ROUNDING * abs(diagonal) else -1.0


@piece
def _never(square: Value) -> bool:
    return False


@piece
def _unless_positive(square: float) -> bool:
    return not (square > 0.0 and square < math.inf)


@piece
def _uncounted(v: Value, square: Value) -> int:
    return 0


@piece
def _counted(v: float, square: float) -> int:
    return 1 if square > v else 0


@piece
def _pivot_and_inverse_(low: Floats, pivot: Floats, i: int, square: float) -> None:
    root = math.sqrt(square)
    low[i, i] = root
    pivot[i] = 1.0 / root


@piece
def _eight_pivots_and_inverses_(low: Floats, pivot: Floats, i: int, square: Lanes) -> None:
    root = roots(square)
    store_(low, (i, i), root)
    store_(pivot, i, 1.0 / root)


@piece
def _pivot_alone_(low: Floats, pivot: Floats, i: int, square: float) -> None:
    low[i, i] = math.sqrt(square)


@piece
def _from_the_diagonal(j: int) -> int:
    return j


@piece
def _from_the_top(j: int) -> int:
    return 0


@piece
def _in_row(A: Floats, i: int, k: int) -> float:
    return A[i, k]  # type: ignore[no-any-return]


@piece
def _transposed(A: Floats, i: int, k: int) -> float:
    return A[k, i]  # type: ignore[no-any-return]


@piece
def _from_the_first(i: int, j: int) -> int:
    return 0


@piece
def _from_the_row(i: int, j: int) -> int:
    return i


@piece
def _from_the_column(i: int, j: int) -> int:
    return j


# ------------------------------------------------------------------------------------------ variants

_NUMBER = Cells(_get, _put_, _times_inverse)
_EIGHT = Cells(load, store_, _eight_times_inverse)
_DIVIDED = Cells(_get, _put_, _divided)
_ROW = Solution(_row_of_one, _row_of_one, _row_, _from_the_top)
_COLUMN = Solution(_in_column, _in_column, _into_column_, _from_the_diagonal)

# 1/pivot is kept; no exact pivot lies below the ridge, and one that rounding pushed there is raised to it, so that
# nothing becomes NaN. The late one adds the ridge to a pivot after everything else was subtracted.
_KEPT = Pivots(_with_ridge, _no_less, _never, _uncounted, _pivot_and_inverse_)
factor_ = factoring(_NUMBER, _of_many, _KEPT)
factor_one_ = factoring(_NUMBER, _of_one, _KEPT)
factor_late_ = factoring(_NUMBER, _of_one, _KEPT._replace(begin=_alone, admit=_no_less_late))
factor_eight_ = factoring(
    _EIGHT, _eight_of_one, _KEPT._replace(admit=_eight_no_less, put_=_eight_pivots_and_inverses_)
)
forward_ = going_forward(_NUMBER, _ROW._replace(take=_row_of_many))
forward_one_ = going_forward(_NUMBER, _ROW)
forward_eight_ = going_forward(_EIGHT, Solution(_eight_rows_of_one, _eight_rows_of_one, _eight_rows_, _from_the_top))
backward_ = going_backward(_NUMBER)
divide_ = dividing(going_forward(_NUMBER, _COLUMN))  # M is lower triangular
divide_eight_ = dividing(
    going_forward(_EIGHT, Solution(_eight_in_column, _eight_in_column, _eight_into_column_, _from_the_diagonal))
)

# Divided by pivots. The first adds no ridge: no pivot can lie below the least eigenvalue (its `ridge` is a bound), nor
# is one below the rounding errors of its own row worth anything; such are raised and counted, which changes the matrix
# by no more than rounding already has. The others refuse, for their callers shift the matrix and try again.
_TESTED = Pivots(_alone, _no_less_than_rounding, _unless_positive, _counted, _pivot_alone_)
factor_raised_ = factoring(_DIVIDED, _of_one, _TESTED)
factor_definite_ = factoring(_DIVIDED, _of_one, _TESTED._replace(admit=_above_rounding))
factor_shifted_ = factoring(_DIVIDED, _of_one, _TESTED._replace(begin=_with_ridge, admit=_above_a_share))
forward_divided_ = going_forward(_DIVIDED, _ROW)
backward_divided_ = going_backward(_DIVIDED)
divide_divided_ = dividing(going_forward(_DIVIDED, _COLUMN._replace(first_row=_from_the_top)))

# Products of square matrices: A B, A'B, A B of a lower triangular B, A'B of a lower triangular A.
multiply_ = multiplying(_in_row, _from_the_first)
multiply_turned_ = multiplying(_transposed, _from_the_first)
multiply_lower_ = multiplying(_in_row, _from_the_column)
multiply_turned_lower_ = multiplying(_transposed, _from_the_row)
