"""Trend: weight γ^age, with θ assumed to move in a line. A lane has the sums with lags as well."""

from __future__ import annotations

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import fade
from driftwise.kernels.memories.phases import Kind
from driftwise.kernels.memories.sums import blend_, blend_lags_, shift_lags_
from driftwise.kernels.point import MEMORY, STIFFNESS, TREND, Lesson, Point

fade_ = fade.run_


@piece
def sloped(point: Point, row: int) -> bool:
    """Whether a lane follows a trend."""
    return bool(point.flags[MEMORY] == TREND and point.table[row, STIFFNESS] > 0.0)


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Time passes; every lag grows."""
    factor = fade_(point, row, lane, ticks, sums, history)
    if sloped(point, row):
        shift_lags_(lane, factor, ticks, sums)
    return factor


@piece
def absorb_(
    point: Point, row: int, lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums, history: History
) -> None:
    """Add an observation to the sums, and a late one also to those with lags."""
    blend_(lane, factor, weight, lesson, sums)
    if lesson.age > 0.0 and sloped(point, row):
        blend_lags_(lane, weight, lesson, sums)


KIND = Kind(TREND, fade.KIND.sums._replace(name="trend", run_=run_, absorb_=absorb_), still=False)
