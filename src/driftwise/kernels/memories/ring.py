"""Single observations, for a memory that removes them one by one or changes their weights.

The ring is sorted by age. `ring_of` makes the pieces of a memory from its weight, with atoms if the family has them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from driftwise.kernels import piece, routine
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories.atoms import find_in_ring, leave_atom_
from driftwise.kernels.memories.phases import Absorb, Weight
from driftwise.kernels.memories.sums import scale_
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    DROPPED,
    HEAD,
    REMOVED,
    SIZE,
    SQUARES,
    USED,
    WEIGHT,
    Floats,
    Lesson,
    Point,
)


class InRing(Protocol):
    """What is done to the ring and the sums of a lane."""

    def __call__(self, point: Point, row: int, lane: int, sums: Sums, history: History) -> None: ...


class Ring(NamedTuple):
    """Pieces of a memory with single observations: compute the sums again from the ring, and the atoms; remove the
    oldest observation; add one."""

    rebuild_: InRing
    recount_: InRing
    forget_oldest_: InRing
    absorb_: Absorb


@piece
def age_at(lane: int, place: int, sums: Sums, history: History) -> float:
    """The age of the observation at a place."""
    return float(sums.counters[lane, CLOCK] - history.ring[place, history.ring.shape[1] - 1])


@piece
def has_place(lane: int, age: float, sums: Sums, history: History) -> bool:
    """Whether there is a place for an observation of this age: in a full ring it must be younger than the oldest."""
    ring, cursor, born = history.ring, history.cursor, sums.counters[lane, CLOCK] - age
    return not (cursor[SIZE] == ring.shape[0] and born <= ring[cursor[HEAD], ring.shape[1] - 1])


@routine
def move_(lane: int, weight: float, square: float, place: int, sums: Sums, ring: Floats) -> None:
    """Add the observation at a place with this weight and its square; negative values remove it."""
    d = sums.b.shape[1]
    for i in range(d):
        xi = weight * ring[place, i]
        sums.b[lane, i] += xi * ring[place, d]
        for j in range(i + 1):
            sums.G[lane, i, j] += xi * ring[place, j]
    if sums.twin.shape[0] > 0:
        for i in range(d):
            xi = square * ring[place, i]
            for j in range(i + 1):
                sums.twin[lane, i, j] += xi * ring[place, j]


@routine
def remember_(lane: int, weight: float, lesson: Lesson, sums: Sums, history: History) -> None:
    """Insert an observation into a ring with a free place, in the order of age."""
    d = sums.b.shape[1]
    ring, cursor, born = history.ring, history.cursor, sums.counters[lane, CLOCK] - lesson.age
    capacity = ring.shape[0]
    p = cursor[SIZE]
    place = (cursor[HEAD] + p) % capacity
    while p > 0:
        before = (cursor[HEAD] + p - 1) % capacity
        if ring[before, d + 1] <= born:
            break
        for i in range(d + 2):
            ring[place, i] = ring[before, i]
        place = before
        p -= 1
    for i in range(d):
        ring[place, i] = lesson.X[lesson.at, i, lesson.arm]
    ring[place, d] = lesson.reward
    ring[place, d + 1] = born
    cursor[SIZE] += 1
    move_(lane, weight, weight * weight, place, sums, ring)


@piece
def _no_atom_leaves(lane: int, weight: float, place: int, history: History) -> None: ...


@piece
def _no_atoms(point: Point, row: int, lane: int, sums: Sums, history: History) -> None: ...


def ring_of(weight: Weight, with_atoms: bool) -> Ring:
    """The pieces for a memory with this weight, with atoms or without."""
    leave_ = leave_atom_ if with_atoms else _no_atom_leaves

    @routine
    def rebuild_(point: Point, row: int, lane: int, sums: Sums, history: History) -> None:
        """Compute the sums again from the ring, which removes the rounding errors of many removals."""
        count, cursor = sums.counters, history.cursor
        scale_(lane, 0.0, sums)
        count[lane, WEIGHT] = 0.0
        count[lane, SQUARES] = 0.0
        for p in range(cursor[SIZE]):
            place = (cursor[HEAD] + p) % history.ring.shape[0]
            w = weight(point, row, age_at(lane, place, sums, history))
            move_(lane, w, w * w, place, sums, history.ring)
            count[lane, WEIGHT] += w
            count[lane, SQUARES] += w * w
        cursor[REMOVED] = 0

    @routine
    def recount_(point: Point, row: int, lane: int, sums: Sums, history: History) -> None:
        """Compute the atoms again from the ring."""
        weights, targets, cursor = history.weights, history.targets, history.cursor
        for a in range(cursor[USED]):
            weights[lane, a] = 0.0
            targets[lane, a] = 0.0
        for p in range(cursor[SIZE]):
            place = (cursor[HEAD] + p) % history.ring.shape[0]
            a = find_in_ring(place, history)
            if a >= 0:
                w = weight(point, row, age_at(lane, place, sums, history))
                weights[lane, a] += w
                targets[lane, a] += w * history.ring[place, history.ring.shape[1] - 2]

    @routine
    def forget_oldest_(point: Point, row: int, lane: int, sums: Sums, history: History) -> None:
        """Remove the oldest observation; rebuild when as many were removed as are left."""
        count, cursor = sums.counters, history.cursor
        w = weight(point, row, age_at(lane, cursor[HEAD], sums, history))
        leave_(lane, w, cursor[HEAD], history)
        move_(lane, -w, -w * w, cursor[HEAD], sums, history.ring)
        cursor[HEAD] = (cursor[HEAD] + 1) % history.ring.shape[0]
        cursor[SIZE] -= 1
        cursor[REMOVED] += 1
        count[lane, COUNT] -= 1.0
        count[lane, WEIGHT] -= w
        count[lane, SQUARES] -= w * w
        if cursor[REMOVED] >= cursor[SIZE]:
            rebuild_(point, row, lane, sums, history)

    @piece
    def absorb_(
        point: Point, row: int, lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums, history: History
    ) -> None:
        """Add an observation; in a full ring the oldest is dropped and counted."""
        if history.cursor[SIZE] == history.ring.shape[0]:
            sums.counters[lane, DROPPED] += 1.0
            forget_oldest_(point, row, lane, sums, history)
        remember_(lane, weight, lesson, sums, history)

    return Ring(rebuild_, recount_ if with_atoms else _no_atoms, forget_oldest_, absorb_)
