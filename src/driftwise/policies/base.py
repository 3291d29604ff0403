"""What a policy is: immutable numbers, a state of plain arrays, and start, choose, learn."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from driftwise.border import array, keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels.index import columns_
from driftwise.kernels.point import CLOCK, COUNT, COUNTERS, CURSOR, DROPPED, LOST, SINCE, SQUARES, Floats, Ints, Point
from driftwise.policies.memory import checked_memory
from driftwise.rng import checked_seed

# Arms rescaled to norm L come out a rounding error longer; that is no reason to refuse them.
NORM_SLACK = 1e-9


class Choice(NamedTuple):
    """The arm to play, with its optimistic score = mean + bonus."""

    arm: int
    score: float
    mean: float
    bonus: float


class Scores(NamedTuple):
    """Mean and bonus of every arm."""

    mean: Floats
    bonus: Floats

    @property
    def score(self) -> Floats:
        return self.mean + self.bonus


class State(NamedTuple):
    """What a policy remembers: K lanes of sums, changed in place and never rebound (DESIGN.md).

    G (K, d, d) and its twin hold weighted sums of x x' and their squared-weight twins in the lower triangle,
    b (K, d) the weighted sum of rewards, counters (K, 7) clock, observations, squared weights, last restart, and what
    was dropped, lost or failed; ring and cursor hold the observations of a window. Generalized linear policies add the
    history as atoms (d, capacity) with weights and targets (K, capacity), the estimate theta, the point of the ball
    shown to the rule, and its Hessian H; those that adapt add integers (marks) and floats (notes) of their own.
    """

    G: Floats
    twin: Floats
    b: Floats
    counters: Floats
    ring: Floats
    cursor: Ints
    atoms: Floats
    weights: Floats
    targets: Floats
    theta: Floats
    shown: Floats
    H: Floats
    marks: Ints
    notes: Floats

    @property
    def clock(self) -> float:
        """Time in ticks; a policy that adapts keeps it apart from the clocks of its lanes."""
        return float(self.notes[-1] if self.notes.size else self.counters[0, CLOCK])

    @property
    def observations(self) -> int:
        """Observations the estimate rests on, whatever their weight."""
        return int(self.counters[0, COUNT])

    @property
    def squares(self) -> float:
        """Sum of squared weights, E."""
        return float(self.counters[0, SQUARES])

    @property
    def dropped(self) -> int:
        """Observations that came too late to count, or found no place."""
        return int(self.counters[0, DROPPED])

    @property
    def lost(self) -> float:
        """Weight of the history that found no place among the atoms, faded like the rest."""
        return float(self.counters[0, LOST])

    def copy(self) -> State:
        """An independent copy."""
        return State(*(field.copy() for field in self))  # type: ignore[arg-type]

    def to_bytes(self) -> bytes:
        """The whole state as one npz archive of plain arrays."""
        out = io.BytesIO()
        arrays: dict[str, Any] = self._asdict()
        np.savez(out, **arrays)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """The state that `to_bytes` wrote, bit for bit."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return cls(*(arrays[name] for name in cls._fields))
        except (KeyError, ValueError, OSError, EOFError, BadZipFile) as error:
            got = f"{len(data)} bytes ({error})"
            raise BadInput("data", got, "what State.to_bytes wrote", "save the state anew") from None


_ROWS = "pass an array (n, d) with one arm a row"


def _numeric(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "fiu"


class ArmSet:
    """Arms checked and laid out once, for use in many rounds: `columns` is (1, d, n), an arm a column."""

    def __init__(self, arms: npt.ArrayLike) -> None:
        rows = np.ascontiguousarray(arms, dtype=np.float64) if _numeric(arms) else None
        if rows is None or rows.ndim != 2 or 0 in rows.shape:
            rows = array("arms", arms, (None, None), _ROWS)
        self.columns = np.empty((1, rows.shape[1], rows.shape[0]))
        self.longest = columns_(rows, self.columns)
        if not math.isfinite(self.longest):
            array("arms", rows, (None, None), _ROWS)
            raise BadInput("arms", "norms that overflow", "norms of at most 1e150", "rescale the arms")

    @property
    def dim(self) -> int:
        return int(self.columns.shape[1])

    def __len__(self) -> int:
        return int(self.columns.shape[2])


Arms: TypeAlias = ArmSet | npt.ArrayLike


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

    @property
    def point(self) -> Point:
        """The policy as flags and a table."""
        raise NotImplementedError

    def start(self, seed: int = 0) -> State:
        """A fresh state."""
        raise NotImplementedError

    def _reading(self, state: State) -> tuple[Any, ...]:
        """The arrays that a choice reads."""
        raise NotImplementedError

    def _writing(self, state: State) -> tuple[Any, ...]:
        """The arrays that a lesson changes."""
        raise NotImplementedError

    def _own(self, state: State) -> State:
        """A state this policy could have started, or the one sentence: compiled code does not check bounds."""
        if not isinstance(state, State):
            raise BadInput("state", state, "a state", "pass what start() gave")
        if tuple([array.shape for array in state]) != self._shapes:
            pairs = zip(State._fields, state, self._shapes, strict=True)
            name, array, shape = next(row for row in pairs if row[1].shape != row[2])
            wanted = f"a state of this policy, with {name} of shape {shape}"
            raise BadInput("state", f"{name} of shape {array.shape}", wanted, "pass what its start() gave")
        return state

    @cached_property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(array.shape for array in self.start())

    def choose(self, state: State, arms: Arms) -> Choice:
        """The arm of largest score, the first of them in a tie. Changes nothing."""
        mean, bonus = self.scores(state, arms)
        arm = int((mean + bonus).argmax())
        return Choice(arm, float(mean[arm] + bonus[arm]), float(mean[arm]), float(bonus[arm]))

    def scores(self, state: State, arms: Arms) -> Scores:
        """Mean and bonus of every arm. Changes nothing."""
        return Scores(*self.entries.scores(*self.point, self._columns(arms), *self._reading(self._own(state))))

    def learn(
        self, state: State, arms: Arms, arm: int, reward: float, ticks: float = 1.0, age: float = 0.0
    ) -> None:
        """Let `ticks` of time pass, then take in a reward of a choice made `age` ago. Only the state changes."""
        x, reward, ticks, age = self._checked(state, arms, arm, reward, ticks, age)
        self._lesson(state, x, 0, reward, ticks, age)
        self._after(state, (x, reward, age), ticks)
        self._settle(state)

    def advance(self, state: State, ticks: float = 1.0) -> None:
        """Let time pass without an observation. Only the state changes."""
        self._own(state)
        ticks = real("ticks", ticks, 0.0, way_out="time does not run backwards")
        self._lesson(state, np.empty((1, self.dim, 1)), -1, 0.0, ticks, 0.0)
        self._after(state, None, ticks)
        self._settle(state)

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

    def _lesson(self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float) -> None:
        arrays = (*self._writing(state), *self._scratch(state))
        self.entries.learn(*self.point, 0, 0, x, 0, arm, reward, ticks, age, *arrays)

    def play(self, state: State, *rounds: Any) -> Any:
        """Compiled rounds against a tape; see `simulate`. A policy that adapts returns the rows it played by."""
        self.entries.play(*self.point, *self._writing(state), *rounds)
        self._settle(state)

    @property
    def stepped(self) -> bool:
        """Whether the policy can only be run a call at a time."""
        return False

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        """What is left to do in Python after a lesson (x, reward, age), or after time has passed."""

    def _scratch(self, state: State) -> tuple[Any, ...]:
        """The arrays that a lesson works with."""
        return ()

    def _settle(self, state: State) -> None:
        """Raise if a solver failed."""

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
            rows = arms if numbers else array("arms", arms, (None, None), _ROWS)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise BadInput("arms", f"shape {rows.shape}", f"an array of shape (n, {self.dim})", _ROWS)
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


def empty_state(
    dim: int, lanes: int, *, twin: bool, capacity: int, seed: int, atoms: int = 0, estimate: bool = False,
    scoring: bool = False, marks: int = 0, notes: int = 0,
) -> State:
    """Lanes with nothing in them. The clock stands at 0 and no restart has been."""
    checked_seed(seed)
    counters = np.zeros((lanes, COUNTERS))
    counters[:, SINCE] = -math.inf
    solved = lanes if estimate else 0
    both = 2 * solved if scoring else solved  # the second half scores, the first is played
    return State(
        G=np.zeros((lanes, dim, dim)),
        twin=np.zeros((lanes if twin else 0, dim, dim)),
        b=np.zeros((lanes, dim)),
        counters=counters,
        ring=np.zeros((capacity, dim + 2)),
        cursor=np.zeros(CURSOR, dtype=np.int64),
        atoms=np.zeros((dim, atoms)),
        weights=np.zeros((solved, atoms)),
        targets=np.zeros((solved, atoms)),
        theta=np.zeros((both, dim)),
        shown=np.zeros((solved, dim)),
        H=np.zeros((both, dim, dim)),
        marks=np.zeros(marks, dtype=np.int64),
        notes=np.zeros(notes),
    )
