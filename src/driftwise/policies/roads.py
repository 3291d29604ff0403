"""By which compiled entry a linear policy plays: all give the same bits, and sizes say which is the fastest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from driftwise.kernels import point, tiled
from driftwise.kernels.point import Floats, Point

# Arms from which a round goes by tiles; features and multiply-adds n·d² from which it is lazy where it can be.
TILED_ARMS = 8
LAZY_DIM, LAZY_WORK = 12, 20_000
# Rounds below which carrying widths does not pay; a stretch of none is what has an entry compiled.
LAZY_ROUNDS = 16
# Those from which a live choice goes by tiles: below, what it spares is little beside the call.
TILED_WORK = 20_000
# Beyond these docs/lazy.md proves nothing: a smaller ridge or weight, longer arms.
LEAST_RIDGE, LEAST_GAMMA, MOST_LENGTH = 1e-100, 1e-6, 1e70

_forced: str | None = None


@contextmanager
def forced(road: str | None) -> Iterator[None]:
    """For those who compare: plain, tiled or lazy wherever it can be, whatever the size."""
    global _forced
    before, _forced = _forced, road
    try:
        yield
    finally:
        _forced = before


def _carries(at: Point) -> bool:
    """Whether widths can be carried: memories that take observations back one by one leave no bound."""
    memory, row = at.flags[point.MEMORY], at.table[0]
    fades = row[point.GAMMA] >= LEAST_GAMMA if memory == point.FADE else memory in (point.KEEP, point.RESTART)
    return bool(fades and row[point.LAM] >= LEAST_RIDGE and row[point.L] <= MOST_LENGTH)


def _known(at: Point) -> bool:
    """Whether tiles know the rule: one covariance, and a radius that asks for counters alone."""
    return bool(at.flags[point.RULE] == point.ONE_MATRIX and at.flags[point.RADIUS] in (point.WEIGHTED, point.CONSTANT))


def playing(at: Point, plain: Callable[..., Any], X: Floats, rounds: int) -> Callable[..., Any]:
    """The entry that plays so many rounds with arms X, one set or one a round."""
    sets, dim, arms = X.shape
    if not _known(at) or _forced == "plain" or (arms < TILED_ARMS and _forced is None):
        return plain
    many = dim >= LAZY_DIM and arms * dim**2 >= LAZY_WORK and not 0 < rounds < LAZY_ROUNDS
    large = _forced == "lazy" or (_forced is None and many)
    return tiled.play_lazily_ if large and sets == 1 and _carries(at) else tiled.play_tiled_


def many(at: Point, dim: int) -> float:
    """The arms from which a live choice goes by tiles."""
    return max(TILED_ARMS, TILED_WORK / dim**2) if _known(at) else math.inf
