"""Memories by their flag, and the phases that branch at run time on the memory, for live entries and adaptations.

`sums` is for linear lanes, `atoms` for generalized linear ones, whose history is atoms as well.
"""

from __future__ import annotations

from functools import cache

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import fade, keep, restart, restart_at, window
from driftwise.kernels.memories.phases import MemoryPieces, Phases, phases_of
from driftwise.kernels.point import MEMORY, Lesson, Point

# Every memory. A new one is a file and a line here.
KINDS = (
    keep.KIND,
    fade.KIND,
    window.KIND,
    restart.KIND,
    restart_at.KIND,
)
MEMORIES = {kind.code: kind for kind in KINDS}


def either(code: int, own: MemoryPieces, other: MemoryPieces) -> MemoryPieces:
    """A memory that at run time is `own` where the flag says so, and `other` elsewhere. Pieces that are Keep's need no
    branch."""
    own_run_, other_run_ = own.run_, other.run_
    own_accepts, other_accepts = own.accepts, other.accepts
    own_weight, other_weight = own.weight, other.weight
    own_absorb_, other_absorb_ = own.absorb_, other.absorb_
    own_turn_, other_turn_ = own.turn_, other.turn_

    @piece
    def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
        if point.flags[MEMORY] == code:
            return own_run_(point, row, lane, ticks, sums, history)
        return other_run_(point, row, lane, ticks, sums, history)

    @piece
    def accepts(point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool:
        if point.flags[MEMORY] == code:
            return own_accepts(point, row, lane, age, sums, history)
        return other_accepts(point, row, lane, age, sums, history)

    @piece
    def weight(point: Point, row: int, age: float) -> float:
        return own_weight(point, row, age) if point.flags[MEMORY] == code else other_weight(point, row, age)

    @piece
    def absorb_(
        point: Point, row: int, lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums, history: History
    ) -> None:
        if point.flags[MEMORY] == code:
            own_absorb_(point, row, lane, factor, weight, lesson, sums, history)
        else:
            other_absorb_(point, row, lane, factor, weight, lesson, sums, history)

    @piece
    def turn_(point: Point, row: int, lane: int, sums: Sums) -> None:
        if point.flags[MEMORY] == code:
            own_turn_(point, row, lane, sums)
        else:
            other_turn_(point, row, lane, sums)

    keeps = keep.KIND.sums
    return MemoryPieces(
        other.name,
        other_run_ if own_run_ is keeps.run_ else run_,
        other_accepts if own_accepts is keeps.accepts else accepts,
        other_weight if own_weight is keeps.weight else weight,
        other_absorb_ if own_absorb_ is keeps.absorb_ else absorb_,
        other_turn_ if own_turn_ is keeps.turn_ else turn_,
    )


def _any(name: str, with_atoms: bool) -> Phases:
    """The phases of the memory in the flag."""
    made = keep.KIND.sums._replace(name=name)
    for kind in reversed(MEMORIES.values()):
        made = either(kind.code, (with_atoms and kind.atoms) or kind.sums, made)
    return phases_of(made)


@cache
def lessons_of(code: int, with_atoms: bool = False) -> Phases:
    """The phases of the one memory with this code, for rounds that use no other."""
    kind = MEMORIES[code]
    return phases_of((with_atoms and kind.atoms) or kind.sums)


sums = _any("any", with_atoms=False)
atoms = _any("any_atoms", with_atoms=True)
