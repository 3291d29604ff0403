"""The base of policies: immutable numbers, a state of plain arrays, and start, choose, learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftwise._internal.compiling import Kernel, at_hand
from driftwise._internal.shipped import buffer_of
from driftwise.kernels.chance import Record, Rounds
from driftwise.kernels.point import ATOMS, CURSORS, DROPPED, FINE, LANES, ROOM, USED, Floats, Ints, Lesson
from driftwise.kernels.renew import renew_
from driftwise.kernels.search.families import ACTING
from driftwise.policies import engines
from driftwise.policies.answers import Answers
from driftwise.policies.arms import ActionSet, Arms, ArmSet, Choice, Scores, action_set, observed_arm
from driftwise.policies.border import check_clock, checked_age, checked_reward, checked_ticks, tell
from driftwise.policies.engines import Engine, Sizes, bound, engine_of, setting
from driftwise.policies.live import NO_TESTS, Entries, Hold, LiveCalls, Ready, for_rounds, for_scores, report
from driftwise.policies.memory import Memory
from driftwise.policies.plain import policy_digest
from driftwise.policies.state import NO_SCRATCH, State

# At most so many ticks pass in one call of an entry without a check of the clock.
MOST_TICKS = 1e6


class Compiled(Answers):
    """The base of all built-in policies: checks of arguments, and calls of the entries of their family."""

    entries: ClassVar[Entries]
    # Whether its index on a continuous set is another one than that of a list.
    own_form: ClassVar[bool] = False

    @cached_property
    def _live(self) -> LiveCalls:
        """What live calls look up, cached."""
        windowed = bool(self.layout.flags[ROOM])
        plain = not self.can_fail and not self._tests()
        low, high = self.reward_range
        entries, many = self.entries, math.inf
        if entries.score_many is not None:
            many = engines.many(entries.family, self.point, self.dim)
        return LiveCalls(
            at_hand(entries.scores), at_hand(entries.learn), (buffer_of(self.point.flags), buffer_of(self.point.table)),
            self.layout, self.dim, self.reach, low, high,
            type(self).best_of is Compiled.best_of and type(self)._number is Compiled._number,
            plain and not windowed and not self.stepped, many, at_hand(entries.score_many or entries.scores), self.form,
            entries.ball, self.judged, buffer_of(NO_SCRATCH),
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """The pickled part: without the arrays and functions that are of this process."""
        return {name: value for name, value in vars(self).items() if name not in ("_live", "_loops", "_rooms")}

    @cached_property
    def digest(self) -> str:
        """The digest that identifies the policy, in its states and elsewhere."""
        return policy_digest(self)

    def start(self, seed: int = 0) -> State:
        """A new state. Only one thread may use it at a time."""
        self.point  # noqa: B018 - raises where a memory was given in time, before room is made for it
        return self.layout.start(seed, self.digest)

    @cached_property
    def hold(self) -> Hold:
        """The check of its states, and how they are taken into use."""
        return Hold(self.layout, self.digest, self.reach, self.reward_range)

    def choose(self, state: State, arms: Arms, draw: int | None = None) -> Choice:
        """The arm with the largest score; the first one of a tie. Nothing is changed.

        `draw` is the number of the draw of a rule that samples (policies/sampling.py); other rules ignore it.
        """
        live = self._live
        number = ACTING if live.straight else self._number(state, draw)
        ready = state.ready if type(state) is State else None
        if (
            type(ready) is not Ready or ready.arms is not arms or ready.live is not live
            or ready.packed is not state.packed or not ready.acquire(False)
        ):  # fmt: skip
            ready = self._held_with(state, action_set(arms))
        try:
            if ready.scores is None:
                best: Choice = ready.arms.best(self, state, number)
                return best
            arm = ready.scores()
            if arm < 0:
                report(arm)
            mean, bonus = ready.view[arm], ready.view[ready.second + arm]
            found: Choice = tuple.__new__(Choice, (arm, mean + bonus, mean, bonus))  # Choice(…) takes 0.1 µs longer
            return found
        finally:
            ready.release()

    def _held_with(self, state: State, arms: ActionSet) -> Ready:
        """A state and arms, checked, with all that calls need. The state is held, and keeps this for its next call."""
        live = self._live
        if type(arms) is not ArmSet or arms.dim != live.dim or not arms.shortest_reach <= live.L:
            arms.check_for(self)
        self.hold.enter(state)
        try:
            state.ready = ready = Ready(self, state, arms)
        except BaseException:
            state.in_use.release()
            raise
        return ready

    def _number(self, state: State, draw: int | None) -> int:
        """The number of the index for a choice (kernels/search/families.py), or of its draw."""
        return ACTING

    def scores(self, state: State, arms: Arms, draw: int | None = None) -> Scores:
        """Mean and bonus of every arm; for a rule that samples, by the draw of this number. Nothing is changed."""
        X = self._columns(arms)
        with self.hold(state):
            return self._scores(state, X)

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        """The best arm of a checked list X (1, d, n), by the index of this number; the state is held."""
        arm, scratch, second = self._score(state, X)
        mean, bonus = scratch.item(arm), scratch.item(second + arm)
        return tuple.__new__(Choice, (arm, mean + bonus, mean, bonus))

    @property
    def form(self) -> Callable[..., Any] | None:
        """The entry that writes the index as a function of any x; None if there is none."""
        return self.entries.form

    def _scores(self, state: State, X: Floats) -> Scores:
        _, scratch, second = self._score(state, X)
        n = X.shape[2]
        return Scores(scratch[:n].copy(), scratch[second : second + n].copy())

    def _score(self, state: State, X: Floats) -> tuple[int, Floats, int]:
        """The best arm, and scratch with means at its beginning and bonuses from a second offset."""
        n = X.shape[2]
        scratch, second, taken = self.scoring_scratch(state, n)
        live = self._live
        scores = live.scores if n < live.many else live.score_many
        arm = scores(*live.point, *state.packed, taken, X)
        if arm < 0:
            report(arm)
        return arm, scratch, second

    def scoring_scratch(self, state: State, n: int) -> tuple[Floats, int, Any]:
        """Scratch for n arms, kept with the state; the offset of the bonuses; and the scratch as entries take it."""
        arms, scratch, second, taken = state.scratch
        if arms != n:
            scratch, second = for_scores(self.dim, n)
            taken = buffer_of(scratch)
            state.scratch = n, scratch, second, taken
        return scratch, second, taken

    def learn(
        self, state: State, arms: Arms, arm: Any, reward: float, ticks: float = 1.0, age: float = 0.0
    ) -> None:
        """Let `ticks` of time pass, then learn the reward of a choice made `age` ago. Only the state changes.

        `arm` is the index in a list; for a continuous set it is the vector x, or the number on a curve.
        """
        live = self._live
        plain = type(ticks) is type(age) is type(reward) is float and ticks == 1.0 and age == 0.0
        if not plain or not live.low <= reward <= live.high:
            reward, ticks, age = checked_reward(reward, live.low, live.high), checked_ticks(ticks), checked_age(age)
        if type(arms) is not ArmSet or type(arm) is not int or not 0 <= arm < arms.count:
            x = observed_arm(arms, arm, self)  # of a list that was not prepared only this row is read
            return self.take(state, x, reward, ticks, age, arms)
        ready = state.ready if type(state) is State else None
        if (
            type(ready) is not Ready or ready.arms is not arms or ready.live is not live
            or ready.packed is not state.packed or not ready.acquire(False)
        ):  # fmt: skip
            ready = self._held_with(state, arms)
        try:
            if ready.learn is not None and ticks <= MOST_TICKS:
                report(ready.learn(arm, reward, ticks, age))
            else:
                x = arms.columns[:, :, arm : arm + 1].copy()
                self._take(state, x, 0, reward, ticks, age, self._beside(state, arms))
        finally:
            ready.release()

    def take(
        self, state: State, x: Floats, reward: float, ticks: float, age: float, arms: Arms | None = None
    ) -> None:
        """`learn` for callers that kept only the vector (1, d, 1) of a choice, and have checked everything."""
        live = self._live
        self.hold.enter(state)
        try:
            if live.plain and ticks <= MOST_TICKS:
                status = live.learn(*live.point, *state.packed, live.nothing, x, 0, reward, ticks, age)
                if status != FINE:
                    report(status)
            else:
                self._take(state, x, 0, reward, ticks, age, self._beside(state, x[0].T if arms is None else arms))
        finally:
            state.in_use.release()

    @property
    def many_arms(self) -> float:
        """From this number of arms on, another entry scores them."""
        return self._live.many

    @property
    def folds(self) -> bool:
        """Whether `fold` takes many updates in one call."""
        return self._live.plain and self.entries.fold is not None

    def fold(self, state: State, rows: Floats, rewards: Floats, ticks: Floats, ages: Floats) -> None:
        """`take` for the vectors rows (updates, d) in order, with the same kernel."""
        live, fold = self._live, self.entries.fold
        assert live.plain and fold is not None
        # Arrow's columns are read-only, which is another signature for numba and which machine code refuses.
        taken = [np.require(one, np.float64, ["C", "A", "W"]) for one in (rows, rewards, ticks, ages)]
        X = taken[0].reshape(len(rows), self.dim, 1)
        with self.hold(state):
            report(fold(*live.point, *state.packed, NO_SCRATCH, X, *taken[1:]))

    def advance(self, state: State, ticks: float = 1.0) -> None:
        """Let time pass without an observation. Only the state changes."""
        ticks = checked_ticks(ticks)
        with self.hold(state):
            self._take(state, np.zeros((1, self.dim, 1)), -1, 0.0, ticks, 0.0, self._beside(state, None))

    def _take(
        self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float, beside: tuple[Any, ...]
    ) -> None:
        """One update. If its solver fails, the state stays as it was."""
        check_clock(state.clock, ticks)
        if self.can_fail:
            if state.spare is None:
                state.spare = state.copy()
            else:
                self.renew(state.spare, state)
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
        if room and not state.warned and arm >= 0 and state.counters[0, DROPPED] > before:
            state.warned = age < max(memory.length for memory in self._held())  # older observations leave anyway
            if state.warned:
                tell(max(self._held(), key=lambda memory: memory.room()).full())

    def _held(self) -> tuple[Memory, ...]:
        """The memories of its lanes or rows."""
        return (self.memory,)

    def renew(self, copy: State, state: State) -> None:
        """Make a former copy of a state a copy again, at the cost of what is used and not of the whole capacity."""
        report(renew_(self.point.flags, state.floats, state.ints, copy.floats, copy.ints))

    def play(
        self, state: State, rounds: Rounds, total: float, chosen: Ints, regret: Floats, as_python: bool = False
    ) -> Any:
        """Play rounds on a tape (see `simulate`) in compiled code, or as Python, where their bits are the same.

        Returns the row of the table that acted in each round.
        """
        used = np.empty(len(rounds.path), dtype=np.int64)
        scratch = for_rounds(self.dim, rounds.arms.shape[2], self._scratch(int(self.layout.flags[ATOMS])))
        rho = (*self._tests(), NO_TESTS)[0]
        with self.hold(state):
            sets, dim, arms = rounds.arms.shape
            loop = self._loop(Sizes(sets, dim, arms, len(used)))
            record = Record(chosen, regret, used)
            given = (*self.point, state.floats, state.ints, scratch, rounds, total, record, rho)
            done, status = loop.run_as_python(given) if as_python else (False, FINE)
            report(status if done else loop(*given))
            self._settle(state)
        return used

    def _loop(self, sizes: Sizes) -> Any:
        """The loop for rounds of these sizes. It is kept: every trial asks again."""
        asked = sizes, setting()
        if asked not in self._loops:
            self._loops[asked] = bound(self.engine(sizes), self.entries.family, self.point)
        return self._loops[asked]

    @cached_property
    def _rooms(self) -> dict[int, int]:
        """The size of an update's scratch by the number of atoms in use: it takes longer to say than a lesson takes."""
        return {}

    @cached_property
    def _loops(self) -> dict[Any, Any]:
        return {}

    def is_brief(self, sizes: Sizes) -> bool:
        """Whether so many rounds take less time as Python than compiling their loop takes."""
        loop = self._loop(sizes._replace(trials=1))
        return isinstance(loop, Kernel) and loop.is_early(sizes.trials * self._steps(sizes))

    def _steps(self, sizes: Sizes) -> int:
        """About how many steps of Python a trial of these sizes takes: operations on a number of an array."""
        flags, d = self.layout.flags, sizes.dim
        atoms, lanes = min(int(flags[ATOMS]), sizes.rounds), int(flags[LANES])
        return sizes.rounds * (sizes.arms * d * (d + 6) + lanes * 20 * d * (d + 6) + atoms * 5 * (d + 4))

    def engine(self, sizes: Sizes) -> Engine:
        """The engine that plays rounds of these sizes."""
        return engine_of(self.entries.family, self.point, sizes)

    def plays_eight(self, sizes: Sizes) -> bool:
        """Whether several trials of these sizes are played together."""
        return self.engine(sizes).plays_eight

    def _lesson(
        self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float, *beside: Any
    ) -> None:
        # The number of atoms in use is read while the state is held; its value is not trusted.
        used = int(state.cursor[USED]) if self.layout.flags[CURSORS] else 0
        used = min(max(0, used), int(self.layout.flags[ATOMS]))
        if used not in self._rooms:
            self._rooms[used] = self._scratch(used)
        scratch = np.zeros(self._rooms[used])
        lesson = Lesson(x, 0, arm, reward, ticks, age)
        told = (lesson, *beside) if beside else (x, *lesson[2:])
        report(self.entries.learn(*self.point, state.floats, state.ints, scratch, *told))

    def _scratch(self, used: int) -> int:
        """The size of an update's scratch with `used` atoms in use."""
        return 0

    def _tests(self) -> tuple[Any, ...]:
        """Further arguments of its family's entries, beside point, state and rounds."""
        return ()

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        """Further arguments of an update, beside point, state and observation."""
        return ()

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        """What Python has to do after an update (x, reward, age), or after time has passed."""

    def _settle(self, state: State) -> None:
        """Raise if a solver failed."""

    def _columns(self, arms: Arms) -> Floats:
        """The columns of a list that the policy accepts."""
        prepared = action_set(arms).arms
        prepared.check_for(self)
        return prepared.columns
