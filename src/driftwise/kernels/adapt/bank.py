"""A bank over any lane: every memory is paid for the density it gave a reward, then learns it.

A memory far behind the best one takes its data over. A lane is known by its pieces (lane.py).
"""

from __future__ import annotations

import math

from driftwise._internal.elementary import exp
from driftwise.kernels import part, piece
from driftwise.kernels.adapt.book import ALL, TAKEN_OVER, pass_time_
from driftwise.kernels.adapt.lane import Adaptation, Given, Lane
from driftwise.kernels.cut import Vector
from driftwise.kernels.point import BACK, GAP, SHARE, Adapting, Floats, Lesson, Point


@piece
def bank_pick(weights: Vector, margin: float) -> int:
    """The longest memory whose weight is within a factor e^-margin of the best (lanes are sorted by memory)."""
    top = 0.0
    for k in range(weights.size):
        top = max(top, weights[k])
    least = top * exp(-margin)
    for k in range(weights.size - 1, -1, -1):
        if weights[k] >= least:
            return k
    return 0


@piece
def bank_best(weights: Vector) -> int:
    """The memory of largest weight, the longer one in a tie."""
    best = 0
    for k in range(1, weights.size):
        if weights[k] >= weights[best]:
            best = k
    return best


@piece
def bank_pay_(weights: Floats, surprise: Floats, share: float) -> None:
    """weight·e^-surprise, normalised, then mixed with the uniform: a memory that was wrong for long can recover."""
    lanes, least, total = weights.size, math.inf, 0.0
    for k in range(lanes):
        least = min(least, surprise[k])
    for k in range(lanes):
        weights[k] *= exp(least - surprise[k])
        total += weights[k]
    keep = (1.0 - share) / total if total > 0.0 else 0.0
    for k in range(lanes):
        weights[k] = keep * weights[k] + share / lanes


@piece
def bank_behind(point: Point, own: Adapting, best: int) -> float:
    """The weight below which a memory longer than the best one takes over the best one's data."""
    return float(own.scores[best] * exp(-point.table[0, GAP]))


@piece
def bank_return_(point: Point, own: Adapting, lane: int, best: int) -> None:
    """A memory that took over the best one's data starts again a little below it: after a jump all of them start from
    data that are still valid."""
    own.scores[lane] = own.scores[best] * exp(-point.table[0, BACK])
    own.marks[TAKEN_OVER] += 1


def bank_of(lane: Lane[Given]) -> Adaptation[Given]:
    """A bank over the lanes of a family."""
    foretell_, follow_ = lane.foretell_, lane.follow_

    @part
    def before_(point: Point, lesson: Lesson, lanes: Given, own: Adapting) -> tuple[int, int, int]:
        """All memories are paid and learn."""
        turns = pass_time_(own, lesson.ticks)
        if foretell_(point, lesson, lanes, own):
            bank_pay_(own.scores, lanes.surprise, point.table[0, SHARE])
        return ALL, lesson.arm, turns

    @part
    def after_(
        point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Given, own: Adapting
    ) -> None:
        """A longer memory far behind the best one takes over the best one's data."""
        best = bank_best(own.scores)
        behind = bank_behind(point, own, best)
        for k in range(best + 1, lanes.sums.counters.shape[0]):
            if own.scores[k] < behind:
                follow_(k, best, lanes)
                bank_return_(point, own, k, best)

    return Adaptation(before_, after_)
