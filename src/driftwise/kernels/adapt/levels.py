"""Lanes of Auto: memories that sleep until they have a past, and a family of lanes with a level apart."""

from __future__ import annotations

from driftwise._internal.elementary import exp
from driftwise.kernels import piece
from driftwise.kernels.level import FOUR
from driftwise.kernels.memories.trend import sloped
from driftwise.kernels.point import CLOCK, GAMMA, WAKES, Floats, Point, Sums

# Two families of lanes, with a level apart and without: evidence for the first is remembered for so many rewards, each
# of which adds at most a nat (or a level would swallow jumps of preferences), and more than a nat of it is believed.
EVIDENCE_ROUNDS, MOST_EVIDENCE, BELIEVED = 4000.0, 1.0, 1.0
# Within the first: the longest memory of preferences within so many nats of the best, levels summed over.
LEVEL_MARGIN = 0.3
# What is shared there a reward: while one arm is played nothing tells these memories apart, and what was known of them
# must not be shared away.
LEVEL_SHARE = 1e-5


@piece
def weigh_family_(evidence: Floats, nats: float, contrast: float) -> None:
    """A reward that the lanes with a level foretold by so many nats better, of an arm so unlike those before it."""
    added = contrast * min(max(nats, -MOST_EVIDENCE), MOST_EVIDENCE)
    evidence[0] = (1.0 - 1.0 / EVIDENCE_ROUNDS) * evidence[0] + added


@piece
def level_pick(weights: Floats) -> int:
    """The longest memory of preferences whose weight, summed over levels, is near the best; its likeliest level."""
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
def level_lane(weights: Floats, evidence: Floats) -> int:
    """The lane with a level that acts; -1 where no level is believed in."""
    if weights.size == 0 or evidence[0] <= BELIEVED:
        return -1
    return level_pick(weights)


@piece
def awake(point: Point, lane: int, sums: Sums) -> bool:
    """Whether a memory is in use: one that is too long for the past sleeps, for it has nothing of its own to say."""
    return bool(sums.counters[lane, CLOCK] >= point.table[lane, WAKES])


@piece
def longest_awake(point: Point, lane: int, sums: Sums) -> int:
    """The longest memory awake of a waking one's kind, with a slope or without, that is shorter: what it begins as."""
    kind, longest = sloped(point, lane), lane
    for k in range(lane):
        if sloped(point, k) == kind and awake(point, k, sums):
            longest = k
    return longest


@piece
def may_follow(point: Point, lane: int, other: int) -> bool:
    """Whether a memory is longer than another and can begin as it: one without a slope cannot as one with."""
    longer = point.table[lane, GAMMA] > point.table[other, GAMMA]
    return bool(longer and (sloped(point, lane) or not sloped(point, other)))
