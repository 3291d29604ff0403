"""A lesson is run, absorb, turn: these phases, bound to the pieces of one memory or to those that branch on the
flag."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from driftwise.kernels import piece
from driftwise.kernels.binding import bind, unbound
from driftwise.kernels.groups import History, Sums
from driftwise.kernels.memories import keep, ring
from driftwise.kernels.memories.sums import scale_
from driftwise.kernels.point import COUNT, DROPPED, SQUARES, WEIGHT, Lesson, Point

run_ = unbound("run_", "lets time pass")
accepts = unbound("accepts", "says whether an observation of an age still counts")
weight = unbound("weight", "gives the weight of an observation of an age")
absorb_ = unbound("absorb_", "takes an observation into the sums")
turn_ = unbound("turn_", "does what is due exactly now")
take_ = unbound("take_", "takes an observation in if it still counts")


class Phases(NamedTuple):
    """The pieces of a memory's lesson. The last two are made of the others."""

    name: str
    run_: Callable[..., Any]
    accepts: Callable[..., Any]
    weight: Callable[..., Any]
    absorb_: Callable[..., Any]
    turn_: Callable[..., Any]
    take_: Callable[..., Any]
    learn_: Callable[..., Any]

    @property
    def pieces(self) -> dict[str, Callable[..., Any]]:
        """All of them by their names."""
        return {one: getattr(self, one) for one in self._fields[1:]}


PIECES = Phases._fields[1:6]


def _take(point: Point, row: int, lane: int, factor: float, lesson: Lesson, sums: Sums, history: History) -> bool:
    """Phase two: fade by factor and add one observation of this age with its weight; or neither.

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


def _learn(point: Point, row: int, lane: int, lesson: Lesson, sums: Sums, history: History) -> None:
    """Run, absorb, turn."""
    factor = run_(point, row, lane, lesson.ticks, sums, history)
    taken = False
    if lesson.arm >= 0:
        taken = take_(point, row, lane, factor, lesson, sums, history)
    if not taken and factor != 1.0:
        scale_(lane, factor, sums)
    turn_(point, row, lane, sums)


def pieces_of(memory: ModuleType, atoms: bool = False) -> dict[str, Callable[..., Any]]:
    """The pieces of one memory, for sums only or for sums and atoms; those that its file does not define are Keep's."""
    found: dict[str, Any] = {one: getattr(memory, one, getattr(keep, one)) for one in PIECES}
    name = memory.__name__.rpartition(".")[2] + ("_atoms" if atoms else "")
    kept = ring.ring_pieces(name, found["weight"], atoms)
    for one, plain in found.items():
        named = {key: kept[key] for key in getattr(plain, "py_func", plain).__code__.co_names if key in kept}
        if named:
            found[one] = piece(bind(plain, f"{one}{name}", **named))
    return found


def phases_of(memory: ModuleType, atoms: bool = False) -> Phases:
    """The phases of one memory."""
    return made_of(memory.__name__.rpartition(".")[2], pieces_of(memory, atoms))


def made_of(name: str, own: dict[str, Callable[..., Any]]) -> Phases:
    """The phases made of these pieces."""
    take = piece(bind(_take, f"take_{name}", **{one: own[one] for one in ("accepts", "weight", "absorb_")}))
    learn = piece(bind(_learn, f"learn_{name}", run_=own["run_"], take_=take, turn_=own["turn_"]))
    return Phases(name, **own, take_=take, learn_=learn)
