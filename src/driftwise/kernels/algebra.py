"""Factors of symmetric matrices and solutions with them, written once for one number or eight, and bound to variants.

Variants differ in three ways. An entry is a number, or eight lanes side by side (kernels/lanes.py). A row is multiplied
by 1/pivot, which is kept, or divided by the pivot: the bits differ. A pivot that is too small is raised to the ridge,
raised to what rounding leaves of its row and counted, or refused.

Two factorisations are not here, because their loops differ: kernels/tiles.py has eight columns of one matrix in
registers, and kernels/foretell.py solves for the rows below a matrix in the same pass in which it factors.
"""

from __future__ import annotations

import math
from typing import Any

from driftwise.kernels import piece
from driftwise.kernels.binding import bind, unbound
from driftwise.kernels.lanes import Lanes, load, roots, store_, where_above
from driftwise.kernels.point import Floats

ROUNDING = 2.220446049250313e-16

get = unbound("get", "reads an entry of a factor")
put_ = unbound("put_", "writes an entry of a factor")
take = unbound("take", "reads an entry of the matrix or the vector given")
over = unbound("over", "divides by a pivot")
begin = unbound("begin", "makes a diagonal entry of the matrix the first value of a pivot's square")
admit = unbound("admit", "raises a pivot's square, or makes it negative to refuse it")
refused = unbound("refused", "says whether a pivot's square is refused")
lifted = unbound("lifted", "counts a pivot that was raised")
put_pivot_ = unbound("put_pivot_", "stores a pivot from its square")
get_at = unbound("get_at", "reads an entry of the solution")
put_at_ = unbound("put_at_", "writes an entry of the solution")
first_row = unbound("first_row", "is the first row that is not 0")
column_ = unbound("column_", "solves for a column")
left = unbound("left", "reads an entry of the first factor of a product")
first_term = unbound("first_term", "is the first term of a product's entry that is not 0")


def _factor(G: Floats, at: int, ridge: Any, low: Floats, pivot: Floats) -> int:
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


def _forward(low: Floats, pivot: Floats, b: Floats, at: int, out: Floats) -> None:
    """out = low⁻¹ b[at]; the kinds for a single vector do not read `at`, and out may be that vector."""
    for i in range(first_row(at), low.shape[0]):
        v = take(b, at, i)
        for k in range(first_row(at), i):
            v -= get(low, (i, k)) * get_at(out, at, k)
        put_at_(out, at, i, over(v, low, pivot, i))


def _backward(low: Floats, pivot: Floats, out: Floats) -> None:
    """out <- low⁻ᵀ out."""
    for i in range(low.shape[0] - 1, -1, -1):
        v = get(out, i)
        for k in range(i + 1, low.shape[0]):
            v -= get(low, (k, i)) * get(out, k)
        put_(out, i, over(v, low, pivot, i))


def _divide(low: Floats, pivot: Floats, M: Floats, to: Floats) -> None:
    """to = low⁻¹ M, column by column; to may be M."""
    for j in range(M.shape[1]):
        column_(low, pivot, M, j, to)


def _multiply(A: Floats, B: Floats, out: Floats) -> None:
    """out = A B."""
    for i in range(out.shape[0]):
        for j in range(out.shape[0]):
            t = 0.0
            for k in range(first_term(i, j), out.shape[0]):
                t += left(A, i, k) * B[k, j]
            out[i, j] = t


# ------------------------------------------------------------------------------------------ pieces


@piece
def _get(A: Floats, index: Any) -> float:
    return A[index]  # type: ignore[no-any-return]


@piece
def _put_(A: Floats, index: Any, v: float) -> None:
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
def _with_ridge(diagonal: Any, ridge: Any) -> Any:
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
def _never(square: Any) -> bool:
    return False


@piece
def _unless_positive(square: float) -> bool:
    return not (square > 0.0 and square < math.inf)


@piece
def _uncounted(v: Any, square: Any) -> int:
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

_NUMBER = {"get": _get, "put_": _put_, "over": _times_inverse}
_EIGHT = {"get": load, "put_": store_, "over": _eight_times_inverse}
_DIVIDED = {"get": _get, "put_": _put_, "over": _divided}
_SOLVE = {
    "get": _get, "over": _times_inverse, "get_at": _row_of_one, "put_at_": _row_, "first_row": _from_the_top,
}  # fmt: skip
_SOLVE_EIGHT = {
    "get": load, "over": _eight_times_inverse, "take": _eight_rows_of_one, "get_at": _eight_rows_of_one,
    "put_at_": _eight_rows_, "first_row": _from_the_top,
}  # fmt: skip
_COLUMN = {"get": _get, "take": _in_column, "get_at": _in_column, "put_at_": _into_column_}
_COLUMN_EIGHT = {
    "get": load, "over": _eight_times_inverse, "take": _eight_in_column, "get_at": _eight_in_column,
    "put_at_": _eight_into_column_, "first_row": _from_the_diagonal,
}  # fmt: skip
_RAISED = {"refused": _never, "lifted": _uncounted}
_KEPT = {**_NUMBER, **_RAISED, "put_pivot_": _pivot_and_inverse_}
_TESTED = {**_DIVIDED, "take": _of_one, "refused": _unless_positive, "lifted": _counted, "put_pivot_": _pivot_alone_}

# 1/pivot is kept; no exact pivot lies below the ridge, and one that rounding pushed there is raised to it, so that
# nothing becomes NaN. The late one adds the ridge to a pivot after everything else was subtracted.
factor_ = piece(bind(_factor, "factor_", **_KEPT, take=_of_many, begin=_with_ridge, admit=_no_less))
factor_one_ = piece(bind(_factor, "factor_one_", **_KEPT, take=_of_one, begin=_with_ridge, admit=_no_less))
factor_late_ = piece(bind(_factor, "factor_late_", **_KEPT, take=_of_one, begin=_alone, admit=_no_less_late))
factor_eight_ = piece(bind(
    _factor, "factor_eight_", **_EIGHT, **_RAISED, take=_eight_of_one, begin=_with_ridge, admit=_eight_no_less,
    put_pivot_=_eight_pivots_and_inverses_,
))  # fmt: skip
forward_ = piece(bind(_forward, "forward_", **_SOLVE, take=_row_of_many))
forward_one_ = piece(bind(_forward, "forward_one_", **_SOLVE, take=_row_of_one))
forward_eight_ = piece(bind(_forward, "forward_eight_", **_SOLVE_EIGHT))
backward_ = piece(bind(_backward, "backward_", **_NUMBER))
_column_ = piece(bind(_forward, "_column_", **_COLUMN, over=_times_inverse, first_row=_from_the_diagonal))
_eight_columns_ = piece(bind(_forward, "_eight_columns_", **_COLUMN_EIGHT))
divide_ = piece(bind(_divide, "divide_", column_=_column_))  # M is lower triangular
divide_eight_ = piece(bind(_divide, "divide_eight_", column_=_eight_columns_))

# Divided by pivots. The first adds no ridge: no pivot can lie below the least eigenvalue (its `ridge` is a bound), nor
# is one below the rounding errors of its own row worth anything; such are raised and counted, which changes the matrix
# by no more than rounding already has. The others refuse, for their callers shift the matrix and try again.
factor_raised_ = piece(bind(_factor, "factor_raised_", **_TESTED, begin=_alone, admit=_no_less_than_rounding))
factor_definite_ = piece(bind(_factor, "factor_definite_", **_TESTED, begin=_alone, admit=_above_rounding))
factor_shifted_ = piece(bind(_factor, "factor_shifted_", **_TESTED, begin=_with_ridge, admit=_above_a_share))
forward_divided_ = piece(bind(_forward, "forward_divided_", **{**_SOLVE, "over": _divided}, take=_row_of_one))
backward_divided_ = piece(bind(_backward, "backward_divided_", **_DIVIDED))
_column_divided_ = piece(bind(_forward, "_column_divided_", **_COLUMN, over=_divided, first_row=_from_the_top))
divide_divided_ = piece(bind(_divide, "divide_divided_", column_=_column_divided_))

# Products of square matrices: A B, A'B, A B of a lower triangular B, A'B of a lower triangular A.
multiply_ = piece(bind(_multiply, "multiply_", left=_in_row, first_term=_from_the_first))
multiply_turned_ = piece(bind(_multiply, "multiply_turned_", left=_transposed, first_term=_from_the_first))
multiply_lower_ = piece(bind(_multiply, "multiply_lower_", left=_in_row, first_term=_from_the_column))
multiply_turned_lower_ = piece(bind(_multiply, "multiply_turned_lower_", left=_transposed, first_term=_from_the_row))
