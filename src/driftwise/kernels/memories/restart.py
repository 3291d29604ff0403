"""Restart: everything is forgotten whenever the clock passes a multiple of the period."""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import keep
from driftwise.kernels.memories.phases import Kind
from driftwise.kernels.memories.sums import clear_
from driftwise.kernels.point import CLOCK, LENGTH, RESTART, SINCE, Point


@piece
def last_before(clock: float, period: float) -> float:
    """The last multiple of the period before the clock."""
    return period * (math.ceil(clock / period) - 1.0)


@piece
def last_until(clock: float, period: float) -> float:
    """The last multiple of the period up to the clock."""
    return period * math.floor(clock / period)


@piece
def restart_(lane: int, boundary: float, sums: Sums) -> None:
    """Clear if a multiple of the period lies between the last restart and this boundary."""
    if boundary > 0.0 and boundary > sums.counters[lane, SINCE]:
        clear_(lane, sums)
        sums.counters[lane, SINCE] = boundary


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Time passes; observations before a restart are dropped."""
    sums.counters[lane, CLOCK] += ticks
    restart_(lane, last_before(sums.counters[lane, CLOCK], point.table[row, LENGTH]), sums)
    return 1.0


@piece
def accepts(point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool:
    """Whether an observation was born after the last restart."""
    return bool(sums.counters[lane, CLOCK] - age > sums.counters[lane, SINCE])


@piece
def turn_(point: Point, row: int, lane: int, sums: Sums) -> None:
    """A restart that is due now, before the next choice."""
    restart_(lane, last_until(sums.counters[lane, CLOCK], point.table[row, LENGTH]), sums)


KIND = Kind(RESTART, keep.KIND.sums._replace(name="restart", run_=run_, accepts=accepts, turn_=turn_))
