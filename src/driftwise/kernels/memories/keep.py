"""Keep: weight 1 at every age. The pieces that another memory does not define are these."""

from __future__ import annotations

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories.phases import Kind, MemoryPieces
from driftwise.kernels.memories.sums import blend_
from driftwise.kernels.point import CLOCK, KEEP, Lesson, Point


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Time passes."""
    sums.counters[lane, CLOCK] += ticks
    return 1.0


@piece
def accepts(point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool:
    """Every observation counts."""
    return True


@piece
def weight(point: Point, row: int, age: float) -> float:
    """1."""
    return 1.0


@piece
def absorb_(
    point: Point, row: int, lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums, history: History
) -> None:
    """The sums fade by factor, and an observation is added with this weight."""
    blend_(lane, factor, weight, lesson, sums)


@piece
def turn_(point: Point, row: int, lane: int, sums: Sums) -> None:
    """Nothing to do."""


KIND = Kind(KEEP, MemoryPieces("keep", run_, accepts, weight, absorb_, turn_))
