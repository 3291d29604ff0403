"""A history as weighted atoms: the distinct vectors played, with weights and weighted reward sums for every lane.

atoms (d, capacity) holds a vector a column, weights and targets (K, capacity) its Σw and Σwr; columns
0..cursor[USED]-1 are in use. A vector is known by its value (-0 is 0), so fixed, duplicate, vanishing and fresh arms
are one structure. Looking one up is a walk over the first coordinates, which is little beside the estimate, whose
cost is a walk over everything.
"""

from __future__ import annotations

import math

from driftwise.kernels import kernel, piece
from driftwise.kernels.point import HEAD, LOST, SIZE, USED, Floats, Ints


@piece
def find_atom(atoms: Floats, used: int, X: Floats, at: int, arm: int) -> int:
    """The column of a vector, or -1."""
    first = X[at, 0, arm]
    for a in range(used):
        if atoms[0, a] == first:
            same = True
            for i in range(1, atoms.shape[0]):
                if atoms[i, a] != X[at, i, arm]:
                    same = False
                    break
            if same:
                return a
    return -1


@piece
def drop_atom_(a: int, atoms: Floats, weights: Floats, targets: Floats, cursor: Ints) -> None:
    """Free a column; the last one in use moves there."""
    last = cursor[USED] - 1
    for i in range(atoms.shape[0]):
        atoms[i, a] = atoms[i, last]
    for k in range(weights.shape[0]):
        weights[k, a] = weights[k, last]
        targets[k, a] = targets[k, last]
        weights[k, last] = 0.0
        targets[k, last] = 0.0
    cursor[USED] = last


@piece
def lightest_atom(weights: Floats, used: int) -> int:
    """The column with the least weight over all lanes."""
    least, place = math.inf, 0
    for a in range(used):
        total = 0.0
        for k in range(weights.shape[0]):
            total += weights[k, a]
        if total < least:
            least, place = total, a
    return place


@piece
def place_atom_(
    X: Floats, at: int, arm: int, atoms: Floats, weights: Floats, targets: Floats, count: Floats, cursor: Ints
) -> int:
    """The column of a vector, made if need be; a full table loses its lightest atom and accounts for it."""
    a = find_atom(atoms, cursor[USED], X, at, arm)
    if a >= 0:
        return a
    if cursor[USED] == atoms.shape[1]:
        a = lightest_atom(weights, cursor[USED])
        for k in range(weights.shape[0]):
            count[k, LOST] += weights[k, a]
        drop_atom_(a, atoms, weights, targets, cursor)
    a = int(cursor[USED])
    for i in range(atoms.shape[0]):
        atoms[i, a] = X[at, i, arm] + 0.0  # -0 becomes 0
    cursor[USED] = a + 1
    return a


@piece
def fade_atoms_(lane: int, factor: float, weights: Floats, targets: Floats, count: Floats, cursor: Ints) -> None:
    """All weights of a lane times factor; what was lost fades too."""
    for a in range(cursor[USED]):
        weights[lane, a] *= factor
        targets[lane, a] *= factor
    count[lane, LOST] *= factor


@piece
def clear_atoms_(lane: int, atoms: Floats, weights: Floats, targets: Floats, count: Floats, cursor: Ints) -> None:
    """A lane forgets everything; columns that no lane needs any more are freed."""
    fade_atoms_(lane, 0.0, weights, targets, count, cursor)
    a = cursor[USED] - 1
    while a >= 0:
        needed = False
        for k in range(weights.shape[0]):
            if weights[k, a] != 0.0:
                needed = True
        if not needed:
            drop_atom_(a, atoms, weights, targets, cursor)
        a -= 1


@kernel
def recount_atoms_(lane: int, ring: Floats, atoms: Floats, weights: Floats, targets: Floats, cursor: Ints) -> None:
    """The sums of the atoms anew from the ring: what rounding left behind after many removals goes."""
    d = atoms.shape[0]
    for a in range(cursor[USED]):
        weights[lane, a] = 0.0
        targets[lane, a] = 0.0
    for p in range(cursor[SIZE]):
        place = (cursor[HEAD] + p) % ring.shape[0]
        for a in range(cursor[USED]):
            same = True
            for i in range(d):
                if atoms[i, a] != ring[place, i]:
                    same = False
                    break
            if same:
                weights[lane, a] += 1.0
                targets[lane, a] += ring[place, d]
                break


@piece
def leave_atom_(
    lane: int, ring: Floats, place: int, atoms: Floats, weights: Floats, targets: Floats, cursor: Ints
) -> None:
    """Take the observation at a place of the ring out of its atom; an atom without observations goes."""
    d = atoms.shape[0]
    for a in range(cursor[USED]):
        same = True
        for i in range(d):
            if atoms[i, a] != ring[place, i]:
                same = False
                break
        if same:
            weights[lane, a] -= 1.0
            targets[lane, a] -= ring[place, d]
            if weights[lane, a] < 0.5:
                drop_atom_(a, atoms, weights, targets, cursor)
            return
