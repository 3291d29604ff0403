"""Forecasts of a reward by eight memories at once, one memory per lane.

The factorisation and the solutions are one loop: vectors to be solved for are appended below the rows of a matrix, and
are replaced by their solutions. Every lane does the operations of kernels/algebra.py in the same order, and so has the
same bits. The rows of a column are independent of each other.
"""

from __future__ import annotations

from typing import NamedTuple

from driftwise.kernels import formula, piece
from driftwise.kernels.lanes import Lanes, load, roots, store_, where_above
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import EIGHT, Shapes, carved_from


class LaneScratch(NamedTuple):
    """Scratch of eight memories, one slot each. rows: a matrix, b and an arm. who: the lane in each slot. Then their
    ridges, and the predicted values and squared lengths."""

    rows: Floats
    who: Floats
    ridge: Floats
    value: Floats
    square: Floats


@formula
def lane_shapes(d: int) -> Shapes:
    """The shapes of its fields."""
    return (d + 2, d, EIGHT), (EIGHT,), (EIGHT,), (EIGHT,), (EIGHT,)


lane_scratch_size, lane_scratch_of = carved_from(LaneScratch, lane_shapes)


@piece
def four_less(
    rows: Floats, i: int, j: int, A: Floats, base: int, n: int
) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Column j of rows i to i + 3, less the products of their n numbers in A with those of row j."""
    v0, v1, v2, v3 = load(rows, (i, j)), load(rows, (i + 1, j)), load(rows, (i + 2, j)), load(rows, (i + 3, j))
    at = base + i
    for k in range(n):
        c = load(A, (base + j, k))
        v0 -= load(A, (at, k)) * c
        v1 -= load(A, (at + 1, k)) * c
        v2 -= load(A, (at + 2, k)) * c
        v3 -= load(A, (at + 3, k)) * c
    return v0, v1, v2, v3


@piece
def one_less(rows: Floats, i: int, j: int, A: Floats, base: int, n: int) -> Lanes:
    """The same for row i alone."""
    v = load(rows, (i, j))
    for k in range(n):
        v -= load(A, (base + i, k)) * load(A, (base + j, k))
    return v


@piece
def factor_and_solve_(rows: Floats, ridge: Floats) -> None:
    """Replace the first d rows, a matrix without its ridge (8,), by their factor, and the rows below by solutions. The
    ridge bounds pivots."""
    count, d, least = rows.shape[0], rows.shape[1], load(ridge, 0)
    for j in range(d):
        store_(rows, (j, j), load(rows, (j, j)) + least)
        v = one_less(rows, j, j, rows, 0, j)
        pivot = 1.0 / roots(where_above(least, v, least, v))
        whole = count - (count - j - 1) % 4
        for i in range(j + 1, whole, 4):
            v0, v1, v2, v3 = four_less(rows, i, j, rows, 0, j)
            store_(rows, (i, j), v0 * pivot)
            store_(rows, (i + 1, j), v1 * pivot)
            store_(rows, (i + 2, j), v2 * pivot)
            store_(rows, (i + 3, j), v3 * pivot)
        for i in range(whole, count):
            store_(rows, (i, j), one_less(rows, i, j, rows, 0, j) * pivot)


@piece
def fill_slots_(X: Floats, at: int, arm: int, G: Floats, b: Floats, slots: LaneScratch) -> None:
    """Copy the lanes in `who` to the slots. Value and square become those of an unknown arm."""
    rows, d = slots.rows, b.shape[1]
    for slot in range(slots.who.size):  # not a number, for which the compiler would write all of this eight times
        lane = int(slots.who[slot])
        for i in range(d):
            for j in range(i + 1):
                rows[i, j, slot] = G[lane, i, j]
            rows[d, i, slot] = b[lane, i]
            rows[d + 1, i, slot] = X[at, i, arm]
        slots.value[slot] = 0.0
        slots.square[slot] = 0.0


@piece
def foretell_eight_(slots: LaneScratch) -> None:
    """Add the predicted value and squared length of the arm by each of the eight to those in the slots."""
    rows, d = slots.rows, slots.rows.shape[1]
    factor_and_solve_(rows, slots.ridge)
    value, square = load(slots.value, 0), load(slots.square, 0)
    for i in range(d):
        y = load(rows, (d + 1, i))
        value += y * load(rows, (d, i))
        square += y * y
    store_(slots.value, 0, value)
    store_(slots.square, 0, square)
