"""Restart(at=…): everything is forgotten when the clock passes one of the listed times."""

from __future__ import annotations

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import restart
from driftwise.kernels.memories.phases import Kind
from driftwise.kernels.memories.restart import restart_
from driftwise.kernels.point import CLOCK, COLUMNS, RESTART_AT, Floats, Point


@piece
def last_listed(table: Floats, row: int, clock: float, now: bool) -> float:
    """The last listed time before the clock, or with `now` up to it; 0 if there is none."""
    last = 0.0
    for place in range(COLUMNS, table.shape[1]):
        time = table[row, place]
        if time < clock or (now and time == clock):
            last = time
    return last


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Time passes; observations before a restart are dropped."""
    sums.counters[lane, CLOCK] += ticks
    restart_(lane, last_listed(point.table, row, sums.counters[lane, CLOCK], False), sums)
    return 1.0


@piece
def turn_(point: Point, row: int, lane: int, sums: Sums) -> None:
    """A restart that is due now, before the next choice."""
    restart_(lane, last_listed(point.table, row, sums.counters[lane, CLOCK], True), sums)


KIND = Kind(RESTART_AT, restart.KIND.sums._replace(name="restart_at", run_=run_, turn_=turn_))
