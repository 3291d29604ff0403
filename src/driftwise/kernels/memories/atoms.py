"""Weighted atoms of a lane: the distinct vectors played, with Σw and Σwr of each.

Columns 0..cursor[USED]-1 are in use. A vector is identified by its value (-0 is 0), so fixed, duplicate, vanishing and
fresh arms are one structure. A look-up compares first coordinates, which costs little compared with the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from driftwise.kernels import piece
from driftwise.kernels.groups import History
from driftwise.kernels.point import LOST, USED, Floats, Lesson

Vector = TypeVar("Vector", Lesson, int)


def finding(coordinate: Callable[[Vector, History, int], float]) -> Callable[[Vector, History], int]:
    """The piece that looks a vector up; `coordinate` reads one of its coordinates."""

    @piece
    def find(given: Vector, history: History) -> int:
        """The column of a vector, or -1."""
        atoms = history.atoms
        for a in range(history.cursor[USED]):
            same = True
            for i in range(atoms.shape[0]):
                if atoms[i, a] != coordinate(given, history, i):
                    same = False
                    break
            if same:
                return a
        return -1

    return find


@piece
def _of_lesson(lesson: Lesson, history: History, i: int) -> float:
    return lesson.X[lesson.at, i, lesson.arm]  # type: ignore[no-any-return]


@piece
def _of_place(place: int, history: History, i: int) -> float:
    return history.ring[place, i]  # type: ignore[no-any-return]


# Of a lesson's vector, and of the vector at a place of the ring.
find_atom, find_in_ring = finding(_of_lesson), finding(_of_place)


@piece
def drop_atom_(a: int, history: History) -> None:
    """Free a column; the last one in use moves there."""
    atoms, weights, targets = history.atoms, history.weights, history.targets
    last = history.cursor[USED] - 1
    for i in range(atoms.shape[0]):
        atoms[i, a] = atoms[i, last]
    for k in range(weights.shape[0]):
        weights[k, a] = weights[k, last]
        targets[k, a] = targets[k, last]
        weights[k, last] = 0.0
        targets[k, last] = 0.0
    history.cursor[USED] = last


@piece
def lightest_atom(weights: Floats, used: int) -> int:
    """The column with the smallest weight over all lanes."""
    least, place = math.inf, 0
    for a in range(used):
        total = 0.0
        for k in range(weights.shape[0]):
            total += weights[k, a]
        if total < least:
            least, place = total, a
    return place


@piece
def place_atom_(lesson: Lesson, count: Floats, history: History) -> int:
    """The column of a lesson's vector, made if necessary. A full table drops its lightest atom and counts its
    weight."""
    a = find_atom(lesson, history)
    if a >= 0:
        return a
    atoms, weights, cursor = history.atoms, history.weights, history.cursor
    if cursor[USED] == atoms.shape[1]:
        a = lightest_atom(weights, cursor[USED])
        for k in range(weights.shape[0]):
            count[k, LOST] += weights[k, a]
        drop_atom_(a, history)
    a = int(cursor[USED])
    for i in range(atoms.shape[0]):
        atoms[i, a] = lesson.X[lesson.at, i, lesson.arm] + 0.0  # -0 becomes 0
    cursor[USED] = a + 1
    return a


@piece
def fade_atoms_(lane: int, factor: float, count: Floats, history: History) -> None:
    """Multiply all weights of a lane by factor; lost weight fades too."""
    for a in range(history.cursor[USED]):
        history.weights[lane, a] *= factor
        history.targets[lane, a] *= factor
    count[lane, LOST] *= factor


@piece
def clear_atoms_(lane: int, count: Floats, history: History) -> None:
    """Clear a lane, and free the columns that no lane needs."""
    fade_atoms_(lane, 0.0, count, history)
    a = history.cursor[USED] - 1
    while a >= 0:
        needed = False
        for k in range(history.weights.shape[0]):
            if history.weights[k, a] != 0.0:
                needed = True
        if not needed:
            drop_atom_(a, history)
        a -= 1


@piece
def leave_atom_(lane: int, weight: float, place: int, history: History) -> None:
    """Remove the observation at a place of the ring, the lightest there, from its atom; an empty atom is freed.

    Another observation of the same vector weighs at least as much; what remains by rounding weighs less.
    """
    a = find_in_ring(place, history)
    if a >= 0:
        history.weights[lane, a] -= weight
        history.targets[lane, a] -= weight * history.ring[place, history.atoms.shape[0]]
        if history.weights[lane, a] < 0.5 * weight:
            drop_atom_(a, history)
