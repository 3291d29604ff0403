"""What a policy is: immutable numbers, a state of plain arrays, and start, choose, learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from driftwise.border import array, keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels.index import board_size, columns_, scores_on
from driftwise.kernels.links import LinkRow
from driftwise.kernels.point import ATOMS, CURSORS, USED, Floats, Point
from driftwise.policies.arms import NORM_SLACK, ROWS, Arms, ArmSet, Choice, Scores
from driftwise.policies.memory import checked_memory
from driftwise.policies.state import Layout, State


@runtime_checkable
class Policy(Protocol):
    """All that `simulate` asks of a policy."""

    def start(self, seed: int = 0) -> Any: ...
    def choose(self, state: Any, arms: Any) -> Any: ...
    def learn(self, state: Any, arms: Any, arm: int, reward: float) -> None: ...


class Entries(NamedTuple):
    """The compiled entries of a family. `learn` with arm -1 lets time pass without an observation."""

    scores: Callable[..., Any]
    learn: Callable[..., Any]
    play: Callable[..., Any]


class Compiled:
    """What all built-in policies share: the border, and calls into the entries of their family."""

    dim: int
    L: float
    entries: ClassVar[Entries]
    # Whether equal states and arms give equal choices whatever the key.
    deterministic: ClassVar[bool] = True

    @property
    def point(self) -> Point:
        """The policy as flags and a table."""
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """The groups of its states."""
        raise NotImplementedError

    @property
    def model(self) -> LinkRow:
        """What it takes a reward for."""
        raise NotImplementedError

    @property
    def link_name(self) -> str | None:
        """The link in the table that rewards must have, None where any will do."""
        return None

    @property
    def largest_reward(self) -> float:
        """m, where rewards are known to lie in [0, m]."""
        return math.inf

    def start(self, seed: int = 0) -> State:
        """A fresh state."""
        return self.layout.start(seed)

    def _own(self, state: State) -> State:
        """A state this policy could have started, or the one sentence: compiled code does not check bounds."""
        if not isinstance(state, State):
            raise BadInput("state", state, "a state", "pass what start() gave")
        layout = self.layout
        if state.layout is not layout and not np.array_equal(state.layout.flags, layout.flags):
            mine, other = ({n: g.shape for gs in one.groups.values() for n, g in gs.items()}
                           for one in (layout, state.layout))
            name = next(name for name in {**mine, **other} if mine.get(name) != other.get(name))
            wanted = f"a state of this policy, with {name} of shape {mine.get(name, 'none')}"
            raise BadInput("state", f"{name} of shape {other.get(name, 'none')}", wanted, "pass what its start() gave")
        return state

    def choose(self, state: State, arms: Arms) -> Choice:
        """The arm of largest score, the first of them in a tie. Changes nothing."""
        return self.scores(state, arms).best()

    def scores(self, state: State, arms: Arms) -> Scores:
        """Mean and bonus of every arm. Changes nothing."""
        X = self._columns(arms)
        self._own(state)
        n = X.shape[2]
        scratch = np.empty(board_size(self.dim, n))
        self.entries.scores(*self.point, state.floats, state.ints, scratch, X)
        return Scores(*scores_on(scratch, n))

    def learn(
        self, state: State, arms: Arms, arm: int, reward: float, ticks: float = 1.0, age: float = 0.0
    ) -> None:
        """Let `ticks` of time pass, then take in a reward of a choice made `age` ago. Only the state changes."""
        x, reward, ticks, age = self._checked(state, arms, arm, reward, ticks, age)
        self._lesson(state, x, 0, reward, ticks, age, *self._beside(state, arms))
        self._after(state, (x, reward, age), ticks)
        self._settle(state)

    def advance(self, state: State, ticks: float = 1.0) -> None:
        """Let time pass without an observation. Only the state changes."""
        self._own(state)
        ticks = real("ticks", ticks, 0.0, way_out="time does not run backwards")
        self._lesson(state, np.empty((1, self.dim, 1)), -1, 0.0, ticks, 0.0, *self._beside(state, None))
        self._after(state, None, ticks)
        self._settle(state)

    def play(self, state: State, *rounds: Any) -> Any:
        """Compiled rounds against a tape (see `simulate`); returns the row of the table that acted in each."""
        used = np.empty(len(rounds[1]), dtype=np.int64)
        board = board_size(self.dim, rounds[0].shape[2])
        scratch = _on_a_line(board + self._scratch(int(self.layout.flags[ATOMS])))
        self.entries.play(*self.point, state.floats, state.ints, scratch, *rounds, used, *self._tests())
        self._settle(state)
        return used

    def _lesson(
        self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float, *beside: Any
    ) -> None:
        scratch = np.zeros(self._scratch(int(state.cursor[USED]) if self.layout.flags[CURSORS] else 0))
        self.entries.learn(*self.point, state.floats, state.ints, scratch, x, 0, arm, reward, ticks, age, *beside)

    def _scratch(self, used: int) -> int:
        """The numbers a lesson scribbles on, with so many atoms in use."""
        return 0

    def _tests(self) -> tuple[Any, ...]:
        """What the entries of its family take besides point, state and rounds."""
        return ()

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        """What a lesson takes besides point, state and observation."""
        return ()

    @property
    def stepped(self) -> bool:
        """Whether the policy can only be run a call at a time."""
        return False

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        """What is left to do in Python after a lesson (x, reward, age), or after time has passed."""

    def _settle(self, state: State) -> None:
        """Raise if a solver failed."""

    def _checked(
        self, state: State, arms: Arms, arm: int, reward: float, ticks: float, age: float
    ) -> tuple[Floats, float, float, float]:
        """What a lesson is given, in the form used inside."""
        self._own(state)
        x = self._vector(arms, arm)
        reward = self._reward(reward)
        ticks = real("ticks", ticks, 0.0, way_out="time does not run backwards")
        age = real("age", age, 0.0, way_out="a reward is never older than its choice: pass now - decided")
        return x, reward, ticks, age

    def _reward(self, reward: float) -> float:
        return real("reward", reward, -math.inf, way_out="leave the round out if its reward is lost")

    def _columns(self, arms: Arms) -> Floats:
        prepared = arms if isinstance(arms, ArmSet) else ArmSet(arms)
        if prepared.dim != self.dim:
            raise BadInput("arms", f"dimension {prepared.dim}", f"dimension {self.dim}", "match policy and arms")
        self._check_norm(prepared.longest)
        return prepared.columns

    def _vector(self, arms: Arms, arm: int) -> Floats:
        """The arm's vector as (1, d, 1), which is how entries take an observation."""
        if isinstance(arms, ArmSet):
            rows = arms.columns[0].T
        else:
            numbers = isinstance(arms, np.ndarray) and arms.dtype.kind in "fiu" and arms.ndim == 2 and len(arms) > 0
            rows = arms if numbers else array("arms", arms, (None, None), ROWS)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise BadInput("arms", f"shape {rows.shape}", f"an array of shape (n, {self.dim})", ROWS)
        good = isinstance(arm, (int, np.integer)) and not isinstance(arm, bool)
        if not good or not 0 <= arm < len(rows):
            raise BadInput("arm", arm, f"a whole number from 0 to {len(rows) - 1}", "pass the arm that choose gave")
        x = np.empty((1, self.dim, 1))
        self._check_norm(columns_(np.ascontiguousarray(rows[arm : arm + 1], dtype=np.float64), x))
        return x

    def _check_norm(self, norm: float) -> None:
        if not norm <= self.L * (1.0 + NORM_SLACK):
            wanted = f"finite arms with norms of at most L = {self.L:g}"
            raise BadInput("arms", f"norm {norm:g}", wanted, "rescale the arms or pass a larger L")


def _on_a_line(size: int) -> Floats:
    """So many zeros that begin on a cache line."""
    raw = np.zeros(size + 8)
    start = -(raw.ctypes.data // 8) % 8
    return raw[start : start + size]


def check_index(policy: Any) -> None:
    """The numbers that every index shares: dim, memory, lam, delta, S, L, exploration."""
    keep_whole(policy, "dim", 1, "pass the number of features of an arm")
    checked_memory(policy.memory)
    real("lam", policy.lam, 0.0, low_open=True, way_out="pass a positive ridge; dim is Theorem 1's")
    if policy.delta is not None:
        real("delta", policy.delta, 0.0, 1.0, low_open=True, high_open=True, way_out="pass delta=1/horizon")
    for name in ("S", "L"):
        real(name, getattr(policy, name), 0.0, low_open=True, way_out="pass the largest norm of θ (S) and x (L)")
    real("exploration", policy.exploration, 0.0, way_out="pass 1 for the theorem's bonus, less for a bolder policy")
