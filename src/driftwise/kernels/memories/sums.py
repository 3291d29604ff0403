"""Weighted sums of a lane: faded, added to, cleared, copied.

G = Σ w x x' (lower triangle), twin = Σ w² x x' if a rule needs it, b = Σ w r x; the ridge is never inside. An
observation is passed as column `arm` of X[at], so that nothing is copied.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.point import CLOCK, COUNT, HEAD, REMOVED, SINCE, SIZE, SQUARES, WEIGHT, Lesson


@piece
def scale_(lane: int, factor: float, sums: Sums) -> None:
    """All weights times factor; the twin, a sum of squares, times its square."""
    square = factor * factor
    for i in range(sums.b.shape[1]):
        sums.b[lane, i] *= factor
        for j in range(i + 1):
            sums.G[lane, i, j] *= factor
    if sums.twin.shape[0] > 0:
        for i in range(sums.b.shape[1]):
            for j in range(i + 1):
                sums.twin[lane, i, j] *= square


@piece
def blend_(lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums) -> None:
    """Multiply all weights by factor, then add one observation: the two steps of a round in one pass over the sums."""
    X, at, arm = lesson.X, lesson.at, lesson.arm
    for i in range(sums.b.shape[1]):
        xi = weight * X[at, i, arm]
        sums.b[lane, i] = factor * sums.b[lane, i] + lesson.reward * xi
        for j in range(i + 1):
            sums.G[lane, i, j] = factor * sums.G[lane, i, j] + xi * X[at, j, arm]
    if sums.twin.shape[0] > 0:
        square = factor * factor
        for i in range(sums.b.shape[1]):
            xi = weight * weight * X[at, i, arm]
            for j in range(i + 1):
                sums.twin[lane, i, j] = square * sums.twin[lane, i, j] + xi * X[at, j, arm]


@piece
def clear_(lane: int, sums: Sums) -> None:
    """Forget every observation of a lane; the clock continues."""
    scale_(lane, 0.0, sums)
    sums.counters[lane, COUNT] = 0.0
    sums.counters[lane, WEIGHT] = 0.0
    sums.counters[lane, SQUARES] = 0.0


@piece
def fresh_lane_(lane: int, sums: Sums, history: History) -> None:
    """Clear a lane, including its clock."""
    clear_(lane, sums)
    sums.counters[lane, CLOCK] = 0.0
    sums.counters[lane, SINCE] = -math.inf
    if history.ring.shape[0] > 0:
        history.cursor[HEAD] = 0
        history.cursor[SIZE] = 0
        history.cursor[REMOVED] = 0


@piece
def follow_(lane: int, other: int, sums: Sums) -> None:
    """Replace the observations of a lane by those of another."""
    for i in range(sums.b.shape[1]):
        sums.b[lane, i] = sums.b[other, i]
        for j in range(i + 1):
            sums.G[lane, i, j] = sums.G[other, i, j]
            if sums.twin.shape[0] > 0:
                sums.twin[lane, i, j] = sums.twin[other, i, j]
    sums.counters[lane, COUNT] = sums.counters[other, COUNT]
    sums.counters[lane, WEIGHT] = sums.counters[other, WEIGHT]
    sums.counters[lane, SQUARES] = sums.counters[other, SQUARES]
