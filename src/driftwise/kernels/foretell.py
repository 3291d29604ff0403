"""Forecasts of a reward by eight memories at once, one memory per lane.

The factorisation, the solutions and the elimination of a slope are one loop: vectors to be solved for are appended
below the rows of a matrix, and are replaced by their solutions. Every lane does the operations of kernels/algebra.py
and kernels/belief.py in the same order, and so has the same bits. The rows of a column are independent of each other.
"""

from __future__ import annotations

from typing import NamedTuple

from driftwise.kernels import formula, piece
from driftwise.kernels.belief import Gauge, per_unit
from driftwise.kernels.lanes import Lanes, load, roots, store_, where_above
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import EIGHT, Shapes, carved_from


class LaneScratch(NamedTuple):
    """Scratch of eight memories, one slot each. rows: a matrix, b and an arm. slopes: those of memories that follow a
    trend; empty if `sloped` is 0 and not 1. who: the lane in each slot. Then their ridges, the ridges of their slopes,
    and the predicted values and squared lengths."""

    rows: Floats
    slopes: Floats
    who: Floats
    ridge: Floats
    stiff: Floats
    value: Floats
    square: Floats


@formula
def lane_shapes(d: int, sloped: int) -> Shapes:
    """The shapes of its fields."""
    slopes = sloped * (2 * d + 1), d, EIGHT
    return (d + 2, d, EIGHT), slopes, (EIGHT,), (EIGHT,), (EIGHT,), (EIGHT,), (EIGHT,)


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
def factor_and_solve_(rows: Floats, ridge: Floats, late: bool) -> None:
    """Replace the first d rows, a matrix without its ridge (8,), by their factor, and the rows below by solutions.

    The ridge is added to the diagonal first or, with `late`, after everything else was subtracted. It bounds pivots.
    """
    count, d, least = rows.shape[0], rows.shape[1], load(ridge, 0)
    for j in range(d):
        if not late:
            store_(rows, (j, j), load(rows, (j, j)) + least)
        v = one_less(rows, j, j, rows, 0, j)
        if late:
            v += least
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
def eliminate_slope_(rows: Floats, slopes: Floats) -> None:
    """Subtract the part of a slope, MM' from G and Mz from b. M and z are the solutions below the slope's factor."""
    d = rows.shape[1]
    for j in range(d):
        whole = d + 1 - (d + 1 - j) % 4
        for i in range(j, whole, 4):
            v0, v1, v2, v3 = four_less(rows, i, j, slopes, d, d)
            store_(rows, (i, j), v0)
            store_(rows, (i + 1, j), v1)
            store_(rows, (i + 2, j), v2)
            store_(rows, (i + 3, j), v3)
        for i in range(whole, d + 1):
            store_(rows, (i, j), one_less(rows, i, j, slopes, d, d))


@piece
def fill_slots_(X: Floats, at: int, arm: int, gauge: Gauge, G: Floats, b: Floats, slots: LaneScratch) -> None:
    """Copy the lanes in `who` to the slots, without slopes and in units of the features. Value and square become those
    of an unknown arm."""
    rows, d = slots.rows, b.shape[1]
    for slot in range(slots.who.size):  # not a number, for which the compiler would write all of this eight times
        lane = int(slots.who[slot])
        for i in range(d):
            v = per_unit(gauge, i)
            for j in range(i + 1):
                rows[i, j, slot] = G[lane, i, j] * (v * per_unit(gauge, j))
            rows[d, i, slot] = b[lane, i] * v
            rows[d + 1, i, slot] = X[at, i, arm] * v
        slots.value[slot] = 0.0
        slots.square[slot] = 0.0


@piece
def fill_slopes_(gauge: Gauge, lag: Floats, lag_square: Floats, lag_reward: Floats, slots: LaneScratch) -> None:
    """Copy the slopes of the lanes in `who` to the slots."""
    slopes, d = slots.slopes, lag_reward.shape[1]
    for slot in range(slots.who.size):
        lane = int(slots.who[slot])
        for i in range(d):
            v = per_unit(gauge, i)
            for j in range(i + 1):
                both = v * per_unit(gauge, j)
                slopes[i, j, slot] = lag_square[lane, i, j] * both
                slopes[d + i, j, slot] = lag[lane, i, j] * both
                slopes[d + j, i, slot] = lag[lane, i, j] * both
            slopes[2 * d, i, slot] = lag_reward[lane, i] * v


@piece
def foretell_eight_(slots: LaneScratch, sloped: bool, late: bool) -> None:
    """Add the predicted value and squared length of the arm by each of the eight to those in the slots."""
    rows, d = slots.rows, slots.rows.shape[1]
    if sloped:
        factor_and_solve_(slots.slopes, slots.stiff, False)
        eliminate_slope_(rows, slots.slopes)
    factor_and_solve_(rows, slots.ridge, late)
    value, square = load(slots.value, 0), load(slots.square, 0)
    for i in range(d):
        y = load(rows, (d + 1, i))
        value += y * load(rows, (d, i))
        square += y * y
    store_(slots.value, 0, value)
    store_(slots.square, 0, square)
