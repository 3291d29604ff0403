"""Engines of the linear family that score arms by tiles: the arms, means and bonuses of kernels/linear.py, faster.

They are in a separate module, because a policy with few arms should not wait for their compilation. One covariance
only.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from driftwise.kernels import entry, piece
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.groups import sums_of
from driftwise.kernels.lazy import Lazy, Trust, begin_lazy_, choose_lazily_, forget_widths_, lazy_of, nothing_known
from driftwise.kernels.linear import Linear, linear_scale
from driftwise.kernels.point import FADE, GAMMA, LAM, MEMORY, ONLY, SINCE, Floats, Ints, Lesson, Point
from driftwise.kernels.rounds import Family, Pieces
from driftwise.kernels.tiles import Tiles, believe_small_, believe_tiles_, believe_wide_, best_tiled_, pack_, tiles_of

LinearFamily = Family[Linear, int]


@entry
def score_tiled_(flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack) -> int:
    """`score_linear_`: mean and bonus of every arm, and the best arm."""
    first, sums = int(ONLY), sums_of(flags, floats)
    tiles = tiles_of(scratch, X.shape[1], X.shape[2])
    believe_tiles_(sums.G, sums.b, first, table[first, LAM], tiles)
    scale = linear_scale(Point(flags, table), first, first, sums, tiles.pivot)
    return best_tiled_(tiles, X, first, False, scale, True)


# ------------------------------------------------------------------------------------------ tiles as an engine

class Believes(Protocol):
    """Writes the factor of the sums and what it makes of b to tiles."""

    def __call__(self, G: Floats, b: Floats, lane: int, ridge: float, tiles: Tiles) -> None: ...


class Tiled(NamedTuple):
    """A linear state and tiles; `packed`: the arms stay, and were packed when rounds began."""

    state: Linear
    tiles: Tiles
    packed: bool


@piece
def tiled_begin_(view: Linear, scratch: Floats, arms: Floats) -> tuple[Tiled, int]:
    """Tiles cut from scratch; arms that stay are packed once."""
    first, tiles, packed = view.lane, tiles_of(scratch, arms.shape[1], arms.shape[2]), arms.shape[0] == 1
    if packed:
        pack_(arms, first, first, tiles.arms.shape[0], tiles.arms)
    return Tiled(view, tiles, packed), first


def _tiled(family: LinearFamily, believe_: Believes) -> Pieces[Linear, Tiled, int]:
    lesson_ = family.lesson_

    @piece
    def choose_(own: Tiled, kept: int, arms: Floats, at: int) -> tuple[int, int, int]:
        """The best arm by tiles."""
        point, sums, lane = own.state.point, own.state.sums, own.state.lane
        believe_(sums.G, sums.b, lane, point.table[lane, LAM], own.tiles)
        scale = linear_scale(point, lane, lane, sums, own.tiles.pivot)
        return best_tiled_(own.tiles, arms, at, own.packed, scale, False), lane, kept

    @piece
    def learn_(own: Tiled, kept: int, rho: Floats, lesson: Lesson) -> int:
        lesson_(own.state, kept, rho, 0.0, lesson)
        return kept

    return Pieces(family.view_of, family.sound_view, tiled_begin_, choose_, learn_)


def tiled(family: LinearFamily) -> Pieces[Linear, Tiled, int]:
    """The pieces with which tiles play the linear family, one covariance, few features."""
    return _tiled(family, believe_small_)


def tiled_wide(family: LinearFamily) -> Pieces[Linear, Tiled, int]:
    """The same for many features: the factor uses tiles too."""
    return _tiled(family, believe_wide_)


# ------------------------------------------------------------------------------------------ the lazy engine


class Lazily(NamedTuple):
    """A linear state, tiles, widths, and what stays as it is: how weights fade, the ridge, the longest squared norm."""

    state: Linear
    tiles: Tiles
    lazy: Lazy
    gamma: float
    ridge: float
    longest: float
    arms: int


class Known(NamedTuple):
    """What a lazy round passes to the next: what is known of V, and the last restart."""

    trust: Trust
    since: float


@piece
def lazy_begin_(view: Linear, scratch: Floats, arms: Floats) -> tuple[Lazily, Known]:
    """Fixed arms, packed once, and memories that remove nothing except by a restart: Keep, Fade, Restart."""
    d, n, lane, table = arms.shape[1], arms.shape[2], view.lane, view.point.table
    tiles, lazy = tiles_of(scratch, d, n), lazy_of(scratch, d, n)
    gamma = table[lane, GAMMA] if view.point.flags[MEMORY] == FADE else 1.0
    pack_(arms, lane, lane, tiles.arms.shape[0], tiles.arms)
    longest = begin_lazy_(arms, table[lane, LAM], lazy)
    own = Lazily(view, tiles, lazy, gamma, table[lane, LAM], longest, n)
    return own, Known(nothing_known(), view.sums.counters[lane, SINCE])


@piece
def lazy_choose_(own: Lazily, kept: Known, arms: Floats, at: int) -> tuple[int, int, Known]:
    """The best of the arms that can win."""
    sums, lane = own.state.sums, own.state.lane
    point, tiles = own.state.point, own.tiles
    arm, trust = choose_lazily_(
        point, own.gamma, own.ridge, own.longest, lane, own.arms, kept.trust, sums, tiles, own.lazy
    )
    return arm, lane, Known(trust, kept.since)


def lazy(family: LinearFamily) -> Pieces[Linear, Lazily, Known]:
    """The pieces that score only arms that can win."""
    lesson_ = family.lesson_

    @piece
    def learn_(own: Lazily, kept: Known, rho: Floats, lesson: Lesson) -> Known:
        lesson_(own.state, own.arms, rho, 0.0, lesson)
        since = own.state.sums.counters[own.state.lane, SINCE]
        if since == kept.since:
            return kept
        forget_widths_(own.arms, own.lazy)
        return Known(nothing_known(), since)

    return Pieces(family.view_of, family.sound_view, lazy_begin_, lazy_choose_, learn_)
