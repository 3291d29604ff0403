"""The pieces of a memory, and a lesson made of them: run, absorb, turn."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from driftwise.kernels import piece
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories.sums import scale_
from driftwise.kernels.point import COUNT, DROPPED, SQUARES, WEIGHT, Lesson, Point


class Run(Protocol):
    """Phase one: time passes, and old observations leave. Returns the factor by which the sums still fade."""

    def __call__(
        self, point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History
    ) -> float: ...


class Accepts(Protocol):
    """Whether an observation of this age still counts."""

    def __call__(self, point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool: ...


class Weight(Protocol):
    """The weight with which an accepted observation enters."""

    def __call__(self, point: Point, row: int, age: float) -> float: ...


class Absorb(Protocol):
    """Phase two: the sums fade by that factor, and one observation is added with its weight."""

    def __call__(
        self, point: Point, row: int, lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums,
        history: History,
    ) -> None: ...


class TurnNow(Protocol):
    """Phase three: what is due at this tick."""

    def __call__(self, point: Point, row: int, lane: int, sums: Sums) -> None: ...


class Take(Protocol):
    """Phase two as a whole: an observation is added if it still counts. Returns whether it was."""

    def __call__(
        self, point: Point, row: int, lane: int, factor: float, lesson: Lesson, sums: Sums, history: History
    ) -> bool: ...


class Learn(Protocol):
    """A whole lesson of a lane."""

    def __call__(self, point: Point, row: int, lane: int, lesson: Lesson, sums: Sums, history: History) -> None: ...


class MemoryPieces(NamedTuple):
    """The pieces of a memory. `name` is part of the name of what is made of them."""

    name: str
    run_: Run
    accepts: Accepts
    weight: Weight
    absorb_: Absorb
    turn_: TurnNow


class Kind(NamedTuple):
    """A memory by its flag: its pieces for sums alone, and those for sums and atoms if they differ."""

    code: int
    sums: MemoryPieces
    atoms: MemoryPieces | None = None


class Phases(NamedTuple):
    """A memory, and what is made of its pieces."""

    memory: MemoryPieces
    take_: Take
    learn_: Learn


def phases_of(memory: MemoryPieces) -> Phases:
    """The phases made of a memory's pieces."""
    run_, accepts, weight = memory.run_, memory.accepts, memory.weight
    absorb_, turn_ = memory.absorb_, memory.turn_

    @piece
    def take_(
        point: Point, row: int, lane: int, factor: float, lesson: Lesson, sums: Sums, history: History
    ) -> bool:
        """Fade by factor and add one observation of this age with its weight; or neither.

        Returns whether it was added; if not, the caller fades.
        """
        count = sums.counters
        if not accepts(point, row, lane, lesson.age, sums, history):
            count[lane, DROPPED] += 1.0
            return False
        w = weight(point, row, lesson.age)
        absorb_(point, row, lane, factor, w, lesson, sums, history)
        count[lane, COUNT] += 1.0
        count[lane, WEIGHT] += w
        count[lane, SQUARES] += w * w
        return True

    @piece
    def learn_(point: Point, row: int, lane: int, lesson: Lesson, sums: Sums, history: History) -> None:
        """Run, absorb, turn."""
        factor = run_(point, row, lane, lesson.ticks, sums, history)
        taken = False
        if lesson.arm >= 0:
            taken = take_(point, row, lane, factor, lesson, sums, history)
        if not taken and factor != 1.0:
            scale_(lane, factor, sums)
        turn_(point, row, lane, sums)

    return Phases(memory, take_, learn_)
