"""The compiled entries of a family, what a live call looks up of its policy, and states in use.

Compiled code does not check bounds. So a loaded state is checked when it is first used, and a second thread is refused.
Scratch that Python passes to kernels has the lengths that they declare (kernels/scratch.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftwise._internal.compiling import late
from driftwise._internal.shipped import buffer_of
from driftwise.errors import BadInput
from driftwise.kernels.entries import LIST
from driftwise.kernels.index import score_scratch_size
from driftwise.kernels.lazy import lazy_size
from driftwise.kernels.point import DAMAGED, Floats
from driftwise.kernels.rounds import AnyFamily
from driftwise.kernels.scratch import EIGHT, line
from driftwise.policies.plain import check_revision
from driftwise.policies.state import Layout, State
from driftwise.policies.vetting import vet

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
                self.learn = partial(live.learn, *before, live.nothing, X)


def report(status: int) -> None:
    """Raise an error for a status that an entry returned."""
    if status == DAMAGED:
        wanted = "a state as start() or from_bytes() gave it, changed by its policy alone"
        raise BadInput("state", "a cursor or a mark out of range", wanted, "go on from the last one saved")


class Hold:
    """The requirements on a state for a policy: its layout and owner, arms up to `reach`, rewards in a range.

    `with hold(state):` holds it for a block; `enter` takes it into use for callers that release `in_use` themselves.
    """

    __slots__ = ("layout", "owner", "reach", "rewards")

    def __init__(self, layout: Layout, owner: str, reach: float, rewards: tuple[float, float]) -> None:
        self.layout, self.owner, self.reach, self.rewards = layout, owner, reach, rewards

    def __call__(self, state: State) -> _Held:
        return _Held(self, state)

    def enter(self, state: State) -> None:
        """Take a state of the policy into use, or raise BadInput."""
        if not isinstance(state, State):
            raise BadInput("state", state, "a state", "pass what start() gave")
        if state.layout is not self.layout:
            self.check_layout(state)
        if not state.in_use.acquire(blocking=False):
            wanted = "a state that no other thread is using"
            raise BadInput("state", "one in use", wanted, "give each thread its own copy(), or put a lock around it")
        if not state.vetted:
            try:
                self.vet(state)
            except BaseException:
                state.in_use.release()
                raise

    def read(self, state: State) -> State:
        """A state of the policy, to read its numbers."""
        with self(state):
            return state

    def vet(self, state: State) -> None:
        """Check the numbers of a loaded state against its policy."""
        if state.owner != self.owner:
            check_revision(state.owner, self.owner)
            got = f"a state of another policy ({state.owner})"
            raise BadInput("state", got, f"a state of this one ({self.owner})", "use the policy that saved it")
        vet(state, self.reach, self.rewards)
        state.vetted = True

    def check_layout(self, state: State) -> None:
        """Refuse a state with other groups, or of another revision, which may have others."""
        check_revision(state.owner, self.owner)
        if not np.array_equal(state.layout.flags, self.layout.flags):
            mine, other = ({n: g.shape for gs in one.groups.values() for n, g in gs.items()}
                           for one in (self.layout, state.layout))
            name = next(name for name in {**mine, **other} if mine.get(name) != other.get(name))
            wanted = f"a state of this policy, with {name} of shape {mine.get(name, 'none')}"
            raise BadInput("state", f"{name} of shape {other.get(name, 'none')}", wanted, "pass what its start() gave")


class _Held:
    """A state that is held for a block."""

    __slots__ = ("hold", "state")

    def __init__(self, hold: Hold, state: State) -> None:
        self.hold, self.state = hold, state

    def __enter__(self) -> State:
        self.hold.enter(self.state)
        return self.state

    def __exit__(self, kind: type[BaseException] | None, slip: BaseException | None, at: TracebackType | None) -> None:
        self.state.in_use.release()


def on_a_line(size: int) -> Floats:
    """`size` zeros that begin on a cache line."""
    raw = np.zeros(size + EIGHT)
    start = -(raw.__array_interface__["data"][0] // 8) % EIGHT
    return raw[start : start + size]


@lru_cache(1000)
def _rooms(dim: int, n: int) -> tuple[int, int, int]:
    """The sizes of scratch for n arms, of plain and of lazy rounds, and the offset of the bonuses: kept, since Python
    takes longer to say them than a choice takes."""
    return score_scratch_size(dim, n), lazy_size(dim, n), line(n)


def for_scores(dim: int, n: int) -> tuple[Floats, int]:
    """Scratch for the scores of n arms by any engine: means at its beginning, and the offset of the bonuses."""
    plain, lazy, second = _rooms(dim, n)
    return on_a_line(max(plain, lazy)), second


def proposed(scratch: Floats, dim: int, n: int) -> Floats:
    """What is proposed of n arms, in scratch for their scores."""
    at = 2 * line(n)  # behind means and bonuses
    return scratch[at : at + n]


def for_rounds(dim: int, n: int, lesson: int) -> Floats:
    """Scratch for rounds with n arms by any engine, whose updates use `lesson` numbers."""
    plain, lazy, _ = _rooms(dim, n)
    return on_a_line(max(plain + lesson, lazy))
