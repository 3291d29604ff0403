"""A lesson under an adaptation, over any lane: the lane that learns, its lesson, and the turn of the adaptation.

An adaptation is a file with two pieces. `before_` returns which lane learns, with which arm, and how many rounds end;
`after_` runs when the lanes have learned. A family supplies what they and the loop here need of a lane (lane.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from driftwise.kernels import part, piece
from driftwise.kernels.adapt import alone, bank, bob, master
from driftwise.kernels.adapt.bank import bank_pick
from driftwise.kernels.adapt.book import ACTIVE, ALL, ROW
from driftwise.kernels.adapt.lane import lane_learn_
from driftwise.kernels.binding import bind_named, unbound
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import ADAPT, ALONE, BANK, BOB, CLOCK, MARGIN, MASTER, Floats, Lesson, Point

FILES = {ALONE: alone, MASTER: master, BOB: bob, BANK: bank}
KINDS = {kind: file.__name__.rpartition(".")[2] for kind, file in FILES.items()}

before_ = unbound("before_", "says who takes a lesson, with which arm, and how many rounds end")
after_ = unbound("after_", "is the adaptation's turn")
before_alone_ = before_master_ = before_bob_ = before_bank_ = before_
after_master_ = after_bob_ = after_bank_ = after_


@piece
def acting_lane(point: Point, own: Adapting) -> int:
    """The lane whose index is played: the only one, the active instance, or the selected memory."""
    adaptation = point.flags[ADAPT]
    if adaptation == MASTER:
        return int(own.marks[ACTIVE])
    if adaptation == BANK:
        return bank_pick(own.scores, point.table[0, MARGIN])
    return 0


@piece
def acting_row(point: Point, own: Adapting, lane: int) -> int:
    """The row of the table for it: the only one, the drawn one, or its own."""
    adaptation = point.flags[ADAPT]
    if adaptation == BOB:
        return int(own.marks[ROW])
    if adaptation == BANK:
        return lane
    return 0


@piece
def who_acts(point: Point, own: Adapting) -> tuple[int, int]:
    """The lane whose index is played, and the row of the table for it."""
    lane = acting_lane(point, own)
    return lane, acting_row(point, own, lane)


@part
def _not_noted(point: Point, lesson: Lesson, density: float, lanes: Any) -> None: ...


@part
def _always(point: Point, lane: int, other: int, lanes: Any) -> bool:
    return True


@part
def _none_sleeps(point: Point, lesson: Lesson, lanes: Any, own: Adapting) -> None: ...


# The pieces of lanes of a bank that differ only in the length of their memory.
ALIKE: dict[str, Callable[..., Any]] = {
    "lane_paid_": _not_noted, "lane_may_follow": _always, "lane_wake_": _none_sleeps
}  # fmt: skip


def alike(*pieces: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The pieces of a lane by name: its own, and `ALIKE`."""
    return {**ALIKE, **{one.__name__: one for one in pieces}}


def _lesson(point: Point, rho: Floats, lesson: Lesson, largest: float, lanes: Any, own: Adapting) -> None:
    """A lesson for the lanes that learn, then the adaptation's turn; `largest` is the index of the choice."""
    taker, arm, turns = before_(point, lesson, lanes, own)
    taken = Lesson(lesson.X, lesson.at, arm, lesson.reward, lesson.ticks, lesson.age)
    for k in range(lanes.sums.counters.shape[0]):
        if taker == ALL or k == taker:
            lane_learn_(point, acting_row(point, own, k), k, taken, lanes)
        else:
            lanes.sums.counters[k, CLOCK] += lesson.ticks  # frozen otherwise
    after_(point, rho, lesson, largest, turns, lanes, own)


def _before_any(point: Point, lesson: Lesson, lanes: Any, own: Adapting) -> Any:
    adaptation = point.flags[ADAPT]
    if adaptation == MASTER:
        return before_master_(point, lesson, lanes, own)
    if adaptation == BOB:
        return before_bob_(point, lesson, lanes, own)
    if adaptation == BANK:
        return before_bank_(point, lesson, lanes, own)
    return before_alone_(point, lesson, lanes, own)


def _after_any(
    point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Any, own: Adapting
) -> None:
    adaptation = point.flags[ADAPT]
    if adaptation == MASTER:
        after_master_(point, rho, lesson, largest, turns, lanes, own)
    elif adaptation == BOB:
        after_bob_(point, rho, lesson, largest, turns, lanes, own)
    elif adaptation == BANK:
        after_bank_(point, rho, lesson, largest, turns, lanes, own)


def lesson_of(name: str, lane: Mapping[str, Callable[..., Any]], kind: int | None = None) -> Callable[..., Any]:
    """The lesson of a family's lanes under one adaptation, or under the one in the flags."""
    kinds = FILES if kind is None else {kind: FILES[kind]}
    turns: dict[str, Callable[..., Any]] = {}
    for code, file in kinds.items():
        for one in ("before_", "after_"):
            word = f"{one}{KINDS[code]}_"
            turns[word] = part(bind_named(getattr(file, one), f"{word}{name}", **lane))
    if kind is None:
        turns = {
            "before_": part(bind_named(_before_any, f"before_any_{name}", **turns)),
            "after_": part(bind_named(_after_any, f"after_any_{name}", **turns)),
        }
    else:
        turns = dict(zip(("before_", "after_"), turns.values(), strict=True))
    return part(bind_named(_lesson, f"adaptive_lesson_{name}", **turns, **lane))
