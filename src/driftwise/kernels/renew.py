"""Copies one packed state to another, at the cost of what is used and not of the whole capacity."""

from __future__ import annotations

from driftwise.kernels import entry
from driftwise.kernels.cut import Vector
from driftwise.kernels.groups import AT_RING, AT_THETA, history_of
from driftwise.kernels.point import DAMAGED, FINE, HEAD, SIZE, USED, Ints, sound_cursor


@entry
def renew_(flags: Ints, floats: Vector, ints: Ints, to_floats: Vector, to_ints: Ints) -> int:
    """Copy one packed state to the other: everything that a lesson reads or may have written, not the unused space."""
    history, other = history_of(flags, floats, ints), history_of(flags, to_floats, to_ints)
    if not (sound_cursor(history) and sound_cursor(other)):
        return DAMAGED
    ring, cursor, d = history.ring, history.cursor, history.atoms.shape[0]
    if cursor.size > 0:
        for k in range(history.weights.shape[0]):  # an atom is added to a place that holds no weight
            for a in range(cursor[USED], other.cursor[USED]):
                other.weights[k, a] = 0.0
                other.targets[k, a] = 0.0
    for i in range(flags[AT_RING]):  # what has unused space is from here
        to_floats[i] = floats[i]
    for i in range(flags[AT_THETA], floats.size):  # to here
        to_floats[i] = floats[i]
    for i in range(ints.size):
        to_ints[i] = ints[i]
    if cursor.size > 0:
        for p in range(min(cursor[SIZE] + 1, ring.shape[0])):
            place = (cursor[HEAD] + p) % ring.shape[0]
            for i in range(ring.shape[1]):
                other.ring[place, i] = ring[place, i]
        used = min(cursor[USED] + 1, history.atoms.shape[1])
        for i in range(d):
            for a in range(used):
                other.atoms[i, a] = history.atoms[i, a]
        for k in range(history.weights.shape[0]):
            for a in range(used):
                other.weights[k, a] = history.weights[k, a]
                other.targets[k, a] = history.targets[k, a]
    return FINE

