"""Window: weight 1 while an observation is younger than the length; it is then taken out of the sums again."""

from __future__ import annotations

from driftwise.kernels import piece
from driftwise.kernels.memories.ring import absorb_, forget_oldest_, has_place, recount_
from driftwise.kernels.point import CLOCK, HEAD, LENGTH, REMOVED, SIZE, WINDOW, History, Point, Sums

__all__ = ["CODE", "absorb_", "accepts", "run_"]

CODE = WINDOW


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Time passes; observations that have reached the length go."""
    cursor = history.cursor
    sums.counters[lane, CLOCK] += ticks
    oldest = sums.counters[lane, CLOCK] - point.table[row, LENGTH]
    while cursor[SIZE] > 0 and history.ring[cursor[HEAD], history.ring.shape[1] - 1] <= oldest:
        forget_oldest_(point, row, lane, sums, history)
        if cursor[REMOVED] == 0:
            recount_(point, row, lane, sums, history)
    return 1.0


@piece
def accepts(point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool:
    """Whether an observation is in the window and finds a place there."""
    return bool(age < point.table[row, LENGTH] and has_place(lane, age, sums, history))
