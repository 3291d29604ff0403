"""What a policy is: immutable numbers, a state of plain arrays, and start, choose, learn."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwise._internal.validate import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels.index import board_size, line
from driftwise.kernels.memory import renew_
from driftwise.kernels.point import ATOMS, CURSORS, DAMAGED, DROPPED, FINE, ROOM, USED, Floats, Point
from driftwise.kernels.region.families import ACTING
from driftwise.kernels.rounds import Family
from driftwise.policies.answers import MOST_REWARD, Answers
from driftwise.policies.arms import Arms, ArmSet, Choice, Scores, action_set, observed_arm
from driftwise.policies.engines import Engine, Sizes, bound, engine_of
from driftwise.policies.memory import checked_memory
from driftwise.policies.plain import policy_digest
from driftwise.policies.state import NO_BOARD, Layout, State
from driftwise.policies.vetting import LATEST, vet

# ρ̂ of a policy that tests nothing: its family's entries serve MASTER too.
NO_TESTS = np.zeros(0)


class Entries(NamedTuple):
    """The compiled entries of a family. `learn` with arm -1 lets time pass without an observation."""

    scores: Callable[..., Any]
    learn: Callable[..., Any]
    family: Family  # what rounds are bound to
    fold: Callable[..., Any] | None = None  # many lessons in one call
    sheet: Callable[..., Any] | None = None  # the index as a function of any x
    ball: Callable[..., Any] | None = None  # its largest point on a ball or an ellipsoid, in one call


class Live(NamedTuple):
    """What a live call needs of a policy; `plain`: nothing but the compiled lesson is to be done."""

    scores: Callable[..., int]
    learn: Callable[..., int]
    point: Point
    layout: Layout
    dim: int
    L: float
    low: float
    high: float
    plain: bool
    many: float  # from so many arms on they are scored by another entry, to the same bits
    score_many: Callable[..., int]
    sheet: Callable[..., int] | None
    ball: Callable[..., int] | None
    judged: bool


class Compiled(Answers):
    """What all built-in policies share: the border, and calls into the entries of their family."""

    entries: ClassVar[Entries]

    @property
    def point(self) -> Point:
        """The policy as flags and a table."""
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """The groups of its states."""
        raise NotImplementedError

    @cached_property
    def _live(self) -> Live:
        """What live calls look up, at hand."""
        windowed = bool(self.layout.flags[ROOM])
        plain = not self.can_fail and not self._tests()
        low, high = self.reward_range
        return Live(
            self.entries.scores, self.entries.learn, self.point, self.layout, self.dim, self.reach, low, high,
            plain and not windowed and not self.stepped, *self._many(), self.sheet, self.entries.ball,
            self.judged,
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """What the policy is known by, in its states and elsewhere."""
        return policy_digest(self)

    def start(self, seed: int = 0) -> State:
        """A fresh state. One thread at a time may use it."""
        self.point  # noqa: B018 - raises where a memory was given in time, before room is made for it
        return self.layout.start(seed, self.digest)

    def _enter(self, state: State) -> None:
        """Take a state this policy could have started into use, or the one sentence; whoever enters releases in_use.

        Compiled code does not check bounds, so a state that was loaded is proven in range when it is first used, and a
        second thread is refused.
        """
        if not isinstance(state, State):
            raise BadInput("state", state, "a state", "pass what start() gave")
        if state.layout is not self.layout:
            self._check_layout(state)
        if not state.in_use.acquire(blocking=False):
            wanted = "a state that no other thread is using"
            raise BadInput("state", "one in use", wanted, "give each thread its own copy(), or put a lock around it")
        if not state.vetted:
            try:
                self._vet(state)
            except BaseException:
                state.in_use.release()
                raise

    def _read(self, state: State) -> State:
        """A state of this policy, for its numbers to be read."""
        self._enter(state)
        state.in_use.release()
        return state

    def _vet(self, state: State) -> None:
        """The numbers of a state that was loaded, against this policy."""
        if state.owner != self.digest:
            got = f"a state of another policy ({state.owner})"
            raise BadInput("state", got, f"a state of this one ({self.digest})", "use the policy that saved it")
        vet(state, self.reach, self.reward_range)
        state.vetted = True

    def _check_layout(self, state: State) -> None:
        layout = self.layout
        if not np.array_equal(state.layout.flags, layout.flags):
            mine, other = ({n: g.shape for gs in one.groups.values() for n, g in gs.items()}
                           for one in (layout, state.layout))
            name = next(name for name in {**mine, **other} if mine.get(name) != other.get(name))
            wanted = f"a state of this policy, with {name} of shape {mine.get(name, 'none')}"
            raise BadInput("state", f"{name} of shape {other.get(name, 'none')}", wanted, "pass what its start() gave")

    def choose(self, state: State, arms: Arms, draw: int | None = None) -> Choice:
        """The arm of largest score, the first of them in a tie. Changes nothing.

        `draw` is the number that a rule which samples draws by (policies/sampling.py); others do not look at it.
        """
        live, prepared = self._live, arms if type(arms) is ArmSet else action_set(arms)
        if type(prepared) is not ArmSet or prepared.dim != live.dim or not prepared.shortest_reach <= live.L:
            prepared.check_for(self)
        number = self._number(state, draw)
        known = type(state) is State and state.layout is live.layout and state.vetted
        if not (known and state.in_use.acquire(False)):
            self._enter(state)
        try:
            return prepared.best(self, state, number)
        finally:
            state.in_use.release()

    def _number(self, state: State, draw: int | None) -> int:
        """Whose index a choice is made by (kernels/region/families.py), or the number of its draw."""
        return ACTING

    def scores(self, state: State, arms: Arms, draw: int | None = None) -> Scores:
        """Mean and bonus of every arm, those of a rule that samples by the draw of this number. Changes nothing."""
        X = self._columns(arms)
        self._enter(state)
        try:
            return self._scores(state, X)
        finally:
            state.in_use.release()

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        """The best of a list X (1, d, n) that was checked, by the index of this number; the state is held."""
        arm, scratch, second = self._score(state, X)
        mean, bonus = scratch.item(arm), scratch.item(second + arm)
        # Choice(…) itself takes 0.1 µs longer
        return tuple.__new__(Choice, (arm, mean + bonus, mean, bonus))

    @property
    def sheet(self) -> Callable[..., Any] | None:
        """The entry that writes the index as a function of any x; None where there is none."""
        return self.entries.sheet

    def _scores(self, state: State, X: Floats) -> Scores:
        _, scratch, second = self._score(state, X)
        n = X.shape[2]
        return Scores(scratch[:n].copy(), scratch[second : second + n].copy())

    def _score(self, state: State, X: Floats) -> tuple[int, Floats, int]:
        """The best arm, and a board with means at its beginning and bonuses from a second place on."""
        n = X.shape[2]
        scratch, second = self._board(state, n)
        live = self._live
        scores = live.scores if n < live.many else live.score_many
        arm = scores(*live.point, state.floats, state.ints, scratch, X)
        if arm < 0:
            report(arm)
        return arm, scratch, second

    def _board(self, state: State, n: int) -> tuple[Floats, int]:
        """Scratch for so many arms, kept with the state, and where bonuses begin."""
        arms, scratch, second = state.board
        if arms != n:
            scratch, second = on_a_line(board_size(self.dim, n)), line(n)
            state.board = n, scratch, second
        return scratch, second

    def learn(
        self, state: State, arms: Arms, arm: Any, reward: float, ticks: float = 1.0, age: float = 0.0
    ) -> None:
        """Let `ticks` of time pass, then take in a reward of a choice made `age` ago. Only the state changes.

        `arm` is its place in a list; of a set that is no list the vector x, or the number on a curve.
        """
        live = self._live
        if (
            live.plain and type(ticks) is type(age) is type(reward) is float and ticks == 1.0 and age == 0.0
            and live.low <= reward <= live.high
            and type(arms) is ArmSet and arms.dim == live.dim and arms.shortest_reach <= live.L
            and type(arm) is int and 0 <= arm < arms.count
            and type(state) is State and state.layout is live.layout and state.vetted and state.in_use.acquire(False)
        ):  # fmt: skip
            try:  # nothing is left to check, and nothing to do in Python
                floats, ints = state.floats, state.ints
                if live.learn(*live.point, floats, ints, NO_BOARD, arms.columns, 0, arm, reward, 1.0, 0.0) == FINE:
                    return
            finally:
                state.in_use.release()
        x = observed_arm(arms, arm, self)
        reward, ticks = self._reward(reward), _ticks(ticks)
        age = real("age", age, 0.0, way_out="a reward is never older than its choice: pass now - decided")
        self._enter(state)
        try:
            beside = self._beside(state, arms)
            self._take(state, x, 0, reward, ticks, age, beside)
        finally:
            state.in_use.release()

    def take(self, state: State, x: Floats, reward: float, ticks: float, age: float) -> None:
        """`learn` for those who kept the vector (1, d, 1) of a choice and nothing else, and have checked all of it."""
        live = self._live
        known = type(state) is State and state.layout is live.layout and state.vetted
        if not (known and state.in_use.acquire(False)):
            self._enter(state)
        try:
            if live.plain and ticks <= 1e6:
                report(live.learn(*live.point, state.floats, state.ints, NO_BOARD, x, 0, 0, reward, ticks, age))
            else:
                self._take(state, x, 0, reward, ticks, age, self._beside(state, x[0].T))
        finally:
            state.in_use.release()

    @property
    def many_arms(self) -> float:
        """From so many arms on another entry scores them."""
        return self._live.many

    @property
    def folds(self) -> bool:
        """Whether `fold` takes many lessons in one call."""
        return self._live.plain and self.entries.fold is not None

    def fold(self, state: State, rows: Floats, rewards: Floats, ticks: Floats, ages: Floats) -> None:
        """`take` for the vectors rows (lessons, d) one after the other, by the same kernel."""
        live, fold = self._live, self.entries.fold
        assert live.plain and fold is not None
        X = rows.reshape(len(rows), self.dim, 1)
        self._enter(state)
        try:
            report(fold(*live.point, state.floats, state.ints, NO_BOARD, X, rewards, ticks, ages))
        finally:
            state.in_use.release()

    def advance(self, state: State, ticks: float = 1.0) -> None:
        """Let time pass without an observation. Only the state changes."""
        ticks = _ticks(ticks)
        self._enter(state)
        try:
            self._take(state, np.zeros((1, self.dim, 1)), -1, 0.0, ticks, 0.0, self._beside(state, None))
        finally:
            state.in_use.release()

    def _take(
        self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float, beside: tuple[Any, ...]
    ) -> None:
        """One lesson; where its solver fails, the state is left as it was."""
        if not state.clock + ticks <= LATEST:
            raise BadInput("ticks", ticks, "a clock that stays below 2^53 ticks", "count time in larger ticks")
        if self.can_fail:
            self._remember(state)
        room = int(self.layout.flags[ROOM])
        before = state.counters[0, DROPPED] if room else 0.0
        try:
            self._lesson(state, x, arm, reward, ticks, age, *beside)
            self._after(state, (x, reward, age) if arm >= 0 else None, ticks)
            self._settle(state)
        except BaseException:
            if self.can_fail and state.spare is not None:
                state.become(state.spare)
            raise
        if room and not state.told and arm >= 0 and age < self.window_length and state.counters[0, DROPPED] > before:
            state.told = True
            tell(
                f"a window with room for {room} observations is full and drops some that are younger than its length: "
                "pass capacity= to Window, the rewards that come in one length"
            )

    @property
    def window_length(self) -> float:
        """The age at which a window lets go."""
        return float(self.memory.length)

    def _remember(self, state: State) -> None:
        """Keep what a failed lesson is taken back to."""
        if state.spare is None:
            state.spare = state.copy()
        else:
            self.renew(state.spare, state)

    def renew(self, copy: State, state: State) -> None:
        """A state that was a copy of another becomes one again, at the cost of what is used and not of all the room."""
        report(renew_(self.point.flags, state.floats, state.ints, copy.floats, copy.ints))

    def play(self, state: State, *rounds: Any) -> Any:
        """Compiled rounds against a tape (see `simulate`); returns the row of the table that acted in each."""
        used = np.empty(len(rounds[1]), dtype=np.int64)
        board = board_size(self.dim, rounds[0].shape[2])
        scratch = on_a_line(board + self._scratch(int(self.layout.flags[ATOMS])))
        rho = (*self._tests(), NO_TESTS)[0]
        self._enter(state)
        try:
            sets, dim, arms = rounds[0].shape
            entry = bound(self.engine(Sizes(sets, dim, arms, len(used))), self.entries.family, self.point)
            report(entry(*self.point, state.floats, state.ints, scratch, *rounds, used, rho))
            self._settle(state)
        finally:
            state.in_use.release()
        return used

    def engine(self, sizes: Sizes) -> Engine:
        """The engine that plays rounds of these sizes."""
        return engine_of(self.entries.family, self.point, sizes)

    def _many(self) -> tuple[float, Callable[..., int]]:
        """From how many arms on they are scored by another entry, and which."""
        return math.inf, self.entries.scores

    def _lesson(
        self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float, *beside: Any
    ) -> None:
        scratch = np.zeros(self._scratch(self._atoms_used(state)))
        status = self.entries.learn(
            *self.point, state.floats, state.ints, scratch, x, 0, arm, reward, ticks, age, *beside
        )
        report(status)

    def _atoms_used(self, state: State) -> int:
        """Atoms in use, for scratch to be sized by: asked only while the state is held, and never trusted."""
        if not self.layout.flags[CURSORS]:
            return 0
        return min(max(0, int(state.cursor[USED])), int(self.layout.flags[ATOMS]))

    def _scratch(self, used: int) -> int:
        """The numbers a lesson scribbles on, with so many atoms in use."""
        return 0

    def _tests(self) -> tuple[Any, ...]:
        """What the entries of its family take besides point, state and rounds."""
        return ()

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        """What a lesson takes besides point, state and observation."""
        return ()

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        """What is left to do in Python after a lesson (x, reward, age), or after time has passed."""

    def _settle(self, state: State) -> None:
        """Raise if a solver failed."""

    def _reward(self, reward: float) -> float:
        """A reward as a float; a click may be a boolean."""
        low, high = self.reward_range
        way_out = "rescale it, or pass the largest reward as m" if high < MOST_REWARD else "leave out a lost reward"
        return real("reward", float(reward) if isinstance(reward, (bool, np.bool_)) else reward, low, high,
                    way_out=way_out)

    def _columns(self, arms: Arms) -> Floats:
        """The columns of a list that the policy takes."""
        prepared = action_set(arms).arms
        prepared.check_for(self)
        return prepared.columns


def tell(message: str) -> None:
    """A warning at the place of the caller's that called in."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("driftwise."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)


def _ticks(ticks: float) -> float:
    return real("ticks", ticks, 0.0, LATEST, way_out="time does not run backwards, nor past 2^53 ticks")


def report(status: int) -> None:
    """What an entry reported by value."""
    if status == DAMAGED:
        wanted = "a state as start() or from_bytes() gave it, changed by its policy alone"
        raise BadInput("state", "a cursor or a mark out of range", wanted, "go on from the last one saved")


def on_a_line(size: int) -> Floats:
    """So many zeros that begin on a cache line."""
    raw = np.zeros(size + 8)
    start = -(raw.ctypes.data // 8) % 8
    return raw[start : start + size]


def check_index(policy: Any, untold: tuple[str, ...] = ()) -> None:
    """The numbers that every index shares: dim, memory, lam, delta, S, L, exploration; some may be left untold."""
    keep_whole(policy, "dim", 1, "pass the number of features of an arm")
    checked_memory(policy.memory)
    if not ("lam" in untold and policy.lam is None):
        real("lam", policy.lam, 0.0, low_open=True, way_out="pass a positive ridge; dim is Theorem 1's")
    if policy.delta is not None:
        real("delta", policy.delta, 0.0, 1.0, low_open=True, high_open=True, way_out="pass delta=1/horizon")
    for name in ("S", "L"):
        if name in untold and getattr(policy, name) is None:
            continue
        real(name, getattr(policy, name), 0.0, low_open=True, way_out="pass the largest norm of θ (S) and x (L)")
    real("exploration", policy.exploration, 0.0, way_out="pass 1 for the theorem's bonus, less for a bolder policy")
