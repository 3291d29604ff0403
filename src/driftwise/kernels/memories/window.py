"""Window: weight 1 while an observation is younger than the length; then it is removed from the sums."""

from __future__ import annotations

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import keep
from driftwise.kernels.memories.phases import Kind, MemoryPieces
from driftwise.kernels.memories.ring import has_place, ring_of
from driftwise.kernels.point import CLOCK, HEAD, LENGTH, REMOVED, SIZE, WINDOW, Point


@piece
def accepts(point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool:
    """Whether an observation is in the window and there is a place for it."""
    return bool(age < point.table[row, LENGTH] and has_place(lane, age, sums, history))


def window_of(name: str, with_atoms: bool) -> MemoryPieces:
    """The memory, with atoms or without."""
    keeps = keep.KIND.sums
    ring = ring_of(keeps.weight, with_atoms)
    recount_, forget_oldest_ = ring.recount_, ring.forget_oldest_

    @piece
    def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
        """Time passes; observations that reach the length are removed."""
        cursor = history.cursor
        sums.counters[lane, CLOCK] += ticks
        oldest = sums.counters[lane, CLOCK] - point.table[row, LENGTH]
        while cursor[SIZE] > 0 and history.ring[cursor[HEAD], history.ring.shape[1] - 1] <= oldest:
            forget_oldest_(point, row, lane, sums, history)
            if cursor[REMOVED] == 0:
                recount_(point, row, lane, sums, history)
        return 1.0

    return keeps._replace(name=name, run_=run_, accepts=accepts, absorb_=ring.absorb_)


KIND = Kind(WINDOW, window_of("window", with_atoms=False), window_of("window_atoms", with_atoms=True))
