"""The compiled entries of a family, and what a live call looks up of its policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftwise._internal.compiling import late
from driftwise._internal.shipped import buffer_of
from driftwise.errors import BadInput
from driftwise.kernels.entries import LIST
from driftwise.kernels.point import DAMAGED
from driftwise.kernels.rounds import AnyFamily
from driftwise.policies.state import Layout, State

if TYPE_CHECKING:
    from driftwise.policies.base import Compiled

# ρ̂ of a policy without tests: the entries of its family are also MASTER's.
NO_TESTS = np.zeros(0)

for _name, _one in LIST.items():
    if not _name.startswith("play_"):  # `simulate` decides about loops: it knows how many rounds will come
        late(_one.call)


class Entries(NamedTuple):
    """The compiled entries of a family. `learn` with arm -1 lets time pass without an observation."""

    scores: Callable[..., Any]
    learn: Callable[..., Any]
    family: AnyFamily  # the family to which rounds are bound
    fold: Callable[..., Any] | None = None  # many lessons in one call
    form: Callable[..., Any] | None = None  # the index as a function of any x
    ball: Callable[..., Any] | None = None  # the point of largest index on a ball or an ellipsoid, in one call
    score_many: Callable[..., Any] | None = None  # scores of many arms, with the same bits


@dataclass(frozen=True, slots=True)
class LiveCalls:
    """What a live call needs of a policy, in slots, which are faster to read than a tuple's fields.

    `straight`: a choice is the best of a list by one entry. `plain`: an update is one entry and nothing else.
    """

    scores: Callable[..., int]
    learn: Callable[..., int]
    point: tuple[Any, Any]  # flags and table of the policy's point, as entries take them
    layout: Layout
    dim: int
    L: float
    low: float
    high: float
    straight: bool
    plain: bool
    many: float  # from this number of arms on, another entry scores them, with the same bits
    score_many: Callable[..., int]
    form: Callable[..., int] | None
    ball: Callable[..., int] | None
    judged: bool
    nothing: Any  # empty scratch, as entries take it


class Ready:
    """A state and arms that were checked, and calls of entries with all that these need. The state keeps it, because
    the same arms often come again.

    A policy that cannot choose or learn by one entry has no call for it.
    """

    __slots__ = ("acquire", "arms", "learn", "live", "packed", "release", "scores", "second", "view")

    def __init__(self, policy: Compiled, state: State, arms: Any) -> None:
        self.live = live = policy._live
        self.arms, self.packed = arms, state.packed
        self.acquire, self.release = state.in_use.acquire, state.in_use.release
        self.scores: Any = None
        self.learn: Any = None
        if arms.listed:
            before, X = (*live.point, *state.packed), buffer_of(arms.columns)
            if live.straight:
                scratch, self.second, taken = policy.scoring_scratch(state, arms.count)
                self.view = scratch.data
                self.scores = partial(live.scores if arms.count < live.many else live.score_many, *before, taken, X)
            if live.plain:
                self.learn = partial(live.learn, *before, live.nothing, X, 0)


def report(status: int) -> None:
    """Raise an error for a status that an entry returned."""
    if status == DAMAGED:
        wanted = "a state as start() or from_bytes() gave it, changed by its policy alone"
        raise BadInput("state", "a cursor or a mark out of range", wanted, "go on from the last one saved")
