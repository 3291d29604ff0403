"""Lanes of Auto: memories that sleep until there are enough rewards, and a family of lanes with a separate level."""

from __future__ import annotations

from driftwise._internal.elementary import exp
from driftwise.kernels import piece
from driftwise.kernels.cut import Vector
from driftwise.kernels.level import FOUR
from driftwise.kernels.memories.trend import sloped
from driftwise.kernels.point import CLOCK, GAMMA, WAKES, Floats, Point, Sums

# There are two families of lanes, with a separate level and without. Evidence for the first is remembered for so many
# rewards. A reward adds at most a nat; with more, a level would absorb jumps of preferences. More than a nat of it is
# believed.
EVIDENCE_ROUNDS, MOST_EVIDENCE, BELIEVED = 4000.0, 1.0, 1.0
# Within the first family the longest memory of preferences is played whose weight, summed over levels, is within so
# many nats of the best.
LEVEL_MARGIN = 0.3
# The share of weights that is spread over these memories per reward. It is small: while one arm is played, no reward
# distinguishes them, and their weights must last.
LEVEL_SHARE = 1e-5


@piece
def weigh_family_(evidence: Floats, nats: float, contrast: float) -> None:
    """Add the evidence of a reward that lanes with a level predicted better by `nats`; `contrast` is how much its arm
    differs from the last ones."""
    added = contrast * min(max(nats, -MOST_EVIDENCE), MOST_EVIDENCE)
    evidence[0] = (1.0 - 1.0 / EVIDENCE_ROUNDS) * evidence[0] + added


@piece
def level_pick(weights: Vector) -> int:
    """The likeliest lane of the longest memory of preferences whose weight, summed over levels, is near the best."""
    top = 0.0
    for first in range(0, weights.size, FOUR):
        top = max(top, weights[first] + weights[first + 1] + weights[first + 2] + weights[first + 3])
    for first in range(weights.size - FOUR, -1, -FOUR):
        total, likeliest = 0.0, first
        for k in range(first, first + FOUR):
            total += weights[k]
            if weights[k] > weights[likeliest]:
                likeliest = k
        if total >= top * exp(-LEVEL_MARGIN):
            return likeliest
    return 0


@piece
def level_lane(weights: Vector, evidence: Vector) -> int:
    """The lane with a level that acts; -1 if no level is believed in."""
    if weights.size == 0 or evidence[0] <= BELIEVED:
        return -1
    return level_pick(weights)


@piece
def awake(point: Point, lane: int, sums: Sums) -> bool:
    """Whether a memory is in use. One that is longer than the past sleeps, because it equals a shorter one."""
    return bool(sums.counters[lane, CLOCK] >= point.table[lane, WAKES])


@piece
def longest_awake(point: Point, lane: int, sums: Sums) -> int:
    """The memory whose data a waking one takes over: the longest one awake that is shorter and of the same kind, with a
    slope or without."""
    kind, longest = sloped(point, lane), lane
    for k in range(lane):
        if sloped(point, k) == kind and awake(point, k, sums):
            longest = k
    return longest


@piece
def may_follow(point: Point, lane: int, other: int) -> bool:
    """Whether a memory is longer than another and can take over its data. One without a slope cannot take over from one
    with a slope."""
    longer = point.table[lane, GAMMA] > point.table[other, GAMMA]
    return bool(longer and (sloped(point, lane) or not sloped(point, other)))
