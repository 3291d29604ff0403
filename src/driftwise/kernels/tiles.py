"""Arms packed by eights and scored four rows at a time in registers, with the bits of `whiten_` and `first_best`.

A tile is (d, 8): eight arms side by side, one feature per row. Every lane does what the loops of index.py and
algebra.py do for its arm, in the same order; the gain is that sums stay in registers until they are complete. The
factor is kept as U = low' with rows of whole eights: entries right of the diagonal's column are low's, those left of it
are never read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import formula, piece
from driftwise.kernels.algebra import factor_, forward_
from driftwise.kernels.index import bonuses_of
from driftwise.kernels.lanes import EIGHT, Lanes, eight, load, store_, where_above
from driftwise.kernels.point import ONLY, Floats
from driftwise.kernels.scratch import Shapes, carved, line

# The number of tiles that are packed at a time if they are packed in every round, in cache lines per feature.
PANEL = 32
# From this number of features on, the tiled factor is faster.
WORTH_TILES = 12


class Tiles(NamedTuple):
    """Scratch for n arms by eights: means and bonuses at the places of a ScoreScratch, arms by tiles, the factor by
    rows and U = low' by columns, what a tile becomes, and the best of every lane."""

    mean: Floats
    bonus: Floats
    arms: Floats
    low: Floats
    U: Floats
    pivot: Floats
    z: Floats
    Y: Floats
    column: Floats
    top: Floats
    who: Floats


@formula
def tiles_shapes(d: int, n: int) -> Shapes:
    """The shapes of its fields."""
    all_n, all_d = line(n), line(d)
    arms, column = (all_n // EIGHT, d, EIGHT), (all_d, EIGHT)
    return (all_n,), (all_n,), arms, (d, d), (d, all_d), (all_d,), (all_d,), column, column, (EIGHT,), (EIGHT,)


tiles_size, tiles_of = carved(Tiles, tiles_shapes)


@piece
def pack_(X: Floats, at: int, first: int, count: int, arms: Floats) -> None:
    """arms[0:count] = the arms of X[at] from the first on, by eights; the last arm fills what is left of a tile.

    A copy of an arm scores as it does and comes after it, so it is never the first of the best.
    """
    d, n = X.shape[1], X.shape[2]
    for i in range(d):  # features without, so that memory is read line after line
        for t in range(count):
            start = first + t * EIGHT
            if start + EIGHT <= n:
                store_(arms, (t, i), load(X, (at, i, start)))
            else:
                for a in range(EIGHT):
                    arms[t, i, a] = X[at, i, min(start + a, n - 1)]


# ------------------------------------------------------------------------------------------ the factor


@piece
def less_above(
    A: Floats, c: int, solved: Floats, count: int, rows: tuple[Lanes, Lanes, Lanes, Lanes]
) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Four rows minus the contribution of the first solved rows: row k times A[k, c] to A[k, c + 3]."""
    y0, y1, y2, y3 = rows
    for k in range(count):
        y = load(solved, k)
        y0 = y0 - A[k, c] * y
        y1 = y1 - A[k, c + 1] * y
        y2 = y2 - A[k, c + 2] * y
        y3 = y3 - A[k, c + 3] * y
    return y0, y1, y2, y3


@piece
def solve_four_(
    U: Floats, pivot: Floats, i: int, rows: tuple[Lanes, Lanes, Lanes, Lanes], solved: Floats
) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Rows i to i + 3 of low⁻¹ times a tile, from its rows there and the rows above as they are solved; kept there."""
    y0, y1, y2, y3 = less_above(U, i, solved, i, rows)
    y0 = y0 * pivot[i]
    y1 = (y1 - U[i, i + 1] * y0) * pivot[i + 1]
    y2 = (y2 - U[i, i + 2] * y0 - U[i + 1, i + 2] * y1) * pivot[i + 2]
    y3 = (y3 - U[i, i + 3] * y0 - U[i + 1, i + 3] * y1 - U[i + 2, i + 3] * y2) * pivot[i + 3]
    store_(solved, i, y0)
    store_(solved, i + 1, y1)
    store_(solved, i + 2, y2)
    store_(solved, i + 3, y3)
    return y0, y1, y2, y3


@piece
def solve_tile_(U: Floats, pivot: Floats, rows: int, tile: Floats) -> None:
    """The first rows of tile <- those of low⁻¹ tile, in place; so many rows, a multiple of eight."""
    for i in range(0, rows, 4):
        four = load(tile, i), load(tile, i + 1), load(tile, i + 2), load(tile, i + 3)
        solve_four_(U, pivot, i, four, tile)


@piece
def reduce_block_(start: int, stop: int, column: Floats) -> None:
    """Rows of a diagonal block minus the contribution of the rows above it, four per pass."""
    for i in range(start, stop, 4):
        rows = load(column, i), load(column, i + 1), load(column, i + 2), load(column, i + 3)
        y0, y1, y2, y3 = less_above(column, i - start, column, start, rows)
        store_(column, i, y0)
        store_(column, i + 1, y1)
        store_(column, i + 2, y2)
        store_(column, i + 3, y3)


@piece
def lay_(G: Floats, b: Floats, lane: int, ridge: float, start: int, width: int, column: Floats) -> None:
    """Eight columns of G[lane] + ridge·I down to the diagonal's block; after the last of all b[lane], and 0."""
    if width < EIGHT:
        for k in range(column.shape[0]):
            store_(column, k, eight(0.0))
        for k in range(start + width):
            column[k, width] = b[lane, k]
    for c in range(width):
        for k in range(start + c + 1):
            column[k, c] = G[lane, start + c, k]
        column[start + c, c] += ridge


@piece
def factor_tiles_(
    G: Floats, b: Floats, lane: int, ridge: float, U: Floats, pivot: Floats, z: Floats, column: Floats
) -> float:
    """`factor_` with U = low', eight columns at a time: above its block on the diagonal a tile is solved like arms.

    b[lane] is one more column, and what is solved for it is z: `forward_`. Returns by how much pivots were raised to
    the ridge, in all.
    """
    d, raised = U.shape[0], 0.0
    for start in range(0, d + 1, EIGHT):
        width = min(EIGHT, d - start)
        lay_(G, b, lane, ridge, start, width, column)
        solve_tile_(U, pivot, start, column)
        if start > 0:
            reduce_block_(start, start + width, column)
        for c in range(width):
            y = load(column, start + c)
            for k in range(c):
                y = y - column[start + k, c] * load(column, start + k)
            store_(column, start + c, y)
            square = column[start + c, c]
            raised += max(ridge - square, 0.0)
            inverse = 1.0 / math.sqrt(max(square, ridge))
            pivot[start + c] = inverse
            store_(column, start + c, y * inverse)
        if width < EIGHT:
            for k in range(d):
                z[k], column[k, width] = column[k, width], 0.0
        if width > 0:
            for k in range(start + width):
                store_(U, (k, start), load(column, k))
    return raised


# ------------------------------------------------------------------------------------------ scores


@piece
def weigh(tiles: Tiles, arms: Floats, t: int) -> tuple[Lanes, Lanes]:
    """z'low⁻¹x and ‖low⁻¹x‖² of the arms of a tile."""
    U, pivot, z, Y = tiles.U, tiles.pivot, tiles.z, tiles.Y
    d = U.shape[0]
    mean, square = eight(-0.0), eight(-0.0)  # -0 + x is x for every x; 0 + -0 would be 0
    whole = d - d % 4
    for i in range(0, whole, 4):
        rows = load(arms, (t, i)), load(arms, (t, i + 1)), load(arms, (t, i + 2)), load(arms, (t, i + 3))
        y0, y1, y2, y3 = solve_four_(U, pivot, i, rows, Y)
        mean = mean + z[i] * y0 + z[i + 1] * y1 + z[i + 2] * y2 + z[i + 3] * y3
        square = square + y0 * y0 + y1 * y1 + y2 * y2 + y3 * y3
    if d - whole >= 2:
        i = whole
        y0, y1 = load(arms, (t, i)), load(arms, (t, i + 1))
        for k in range(i):
            y = load(Y, k)
            y0 = y0 - U[k, i] * y
            y1 = y1 - U[k, i + 1] * y
        y0 = y0 * pivot[i]
        y1 = (y1 - U[i, i + 1] * y0) * pivot[i + 1]
        store_(Y, i, y0)
        store_(Y, i + 1, y1)
        mean = mean + z[i] * y0 + z[i + 1] * y1
        square = square + y0 * y0 + y1 * y1
    if d % 2 == 1:
        i = d - 1
        y0 = load(arms, (t, i))
        for k in range(i):
            y0 = y0 - U[k, i] * load(Y, k)
        y0 = y0 * pivot[i]
        mean = mean + z[i] * y0
        square = square + y0 * y0
    return mean, square


@piece
def first_top(top: Floats, who: Floats) -> int:
    """The arm with the largest score, the first one of a tie, from the best tile of every lane."""
    best = top[0]
    for a in range(1, EIGHT):
        best = max(best, top[a])
    arm = math.inf
    for a in range(EIGHT):  # without branches, which could not be predicted
        arm = min(arm, who[a] * EIGHT + a if top[a] == best else math.inf)
    return int(arm)


@piece
def believe_small_(G: Floats, b: Floats, lane: int, ridge: float, tiles: Tiles) -> None:
    """`factor_` and `forward_` by rows, which is faster than into U at once, and U from them."""
    low = tiles.low
    factor_(G, lane, ridge, low, tiles.pivot)
    forward_(low, tiles.pivot, b, lane, tiles.z)
    for i in range(low.shape[0]):
        for k in range(i):
            tiles.U[k, i] = low[i, k]


@piece
def believe_wide_(G: Floats, b: Floats, lane: int, ridge: float, tiles: Tiles) -> None:
    """U, pivot and z of the sums, by tiles."""
    factor_tiles_(G, b, lane, ridge, tiles.U, tiles.pivot, tiles.z, tiles.column)


@piece
def believe_tiles_(G: Floats, b: Floats, lane: int, ridge: float, tiles: Tiles) -> None:
    """Either, whichever is faster."""
    if tiles.U.shape[0] >= WORTH_TILES:
        believe_wide_(G, b, lane, ridge, tiles)
    else:
        believe_small_(G, b, lane, ridge, tiles)


@piece
def best_tiled_(tiles: Tiles, X: Floats, at: int, packed: bool, radius: float, write: bool) -> int:
    """The best arm of X[at], and if these are to be written, mean and bonus of every arm.

    Arms that were not packed before are packed one panel at a time.
    """
    count, first = tiles.arms.shape[0], int(ONLY)
    top, who = eight(-math.inf), eight(0.0)
    for start in range(first, count, PANEL):
        size, offset = min(PANEL, count - start), start
        if not packed:
            pack_(X, at, start * EIGHT, size, tiles.arms)
            offset = first
        for t in range(size):
            mean, square = weigh(tiles, tiles.arms, offset + t)
            bonus = bonuses_of(radius, square)
            if write:
                store_(tiles.mean, (start + t) * EIGHT, mean)
                store_(tiles.bonus, (start + t) * EIGHT, bonus)
            score = mean + bonus
            who = where_above(score, top, float(start + t), who)
            top = where_above(score, top, score, top)
    store_(tiles.top, first, top)
    store_(tiles.who, first, who)
    return first_top(tiles.top, tiles.who)
