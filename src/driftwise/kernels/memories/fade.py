"""Fade: weight γ^age. All weights change by one factor, so sums need no single observations."""

from __future__ import annotations

from driftwise._internal.elementary import exp
from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import keep
from driftwise.kernels.memories.phases import Kind
from driftwise.kernels.point import CLOCK, FADE, GAMMA, LOG_GAMMA, SQUARES, WEIGHT, Floats, Point


@piece
def decay(table: Floats, row: int, ticks: float) -> float:
    """γ^ticks, and γ itself at one tick."""
    if ticks == 1.0:
        return float(table[row, GAMMA])
    return exp(ticks * table[row, LOG_GAMMA])


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Time passes; returns the factor by which G, b and atoms fade."""
    factor = decay(point.table, row, ticks)
    sums.counters[lane, CLOCK] += ticks
    sums.counters[lane, WEIGHT] *= factor
    sums.counters[lane, SQUARES] *= factor * factor
    return factor


@piece
def weight(point: Point, row: int, age: float) -> float:
    """γ^age."""
    return decay(point.table, row, age) if age > 0.0 else 1.0


KIND = Kind(FADE, keep.KIND.sums._replace(name="fade", run_=run_, weight=weight))
