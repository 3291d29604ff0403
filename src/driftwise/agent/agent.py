"""The agent: any policy, for a product whose rewards come late, out of order or never (PRODUCT.md 1-4).

Two locks, taken in this order: `_learning` by whoever changes what is known, `_choosing` by whoever decides and, for
the moment of the swap (states.py), by a learner. The file is long because it is the whole surface of an agent.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftwise.agent.asked import allowed_places, checked_range, fingerprint, named, unknown
from driftwise.agent.clock import (
    Kind,
    ages,
    check_meaning,
    clock_for,
    moment,
    one_at_a_time,
    ranks_by_score,
    with_half_life,
)
from driftwise.agent.drift import Drift, Meter, drift
from driftwise.agent.record import Book, Decision, Entry, Item, Verdict, checked_id
from driftwise.agent.states import States
from driftwise.border import array, real, whole
from driftwise.errors import BadInput
from driftwise.kernels.chance import WORD, uniform
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.adapt import FadeBank
from driftwise.policies.arms import Arms, ArmSet, Choice
from driftwise.policies.base import Compiled
from driftwise.policies.state import State
from driftwise.rng import checked_seed, key

if TYPE_CHECKING:
    from driftwise.agent.explain import Explanation

# Draws from which the propensity of a rule that samples is counted.
DRAWS = 1000


# Agents of this process, for whom a fork is a new process: their ids must not meet.
_LIVING: weakref.WeakSet[Agent] = weakref.WeakSet()


def _renew_names() -> None:
    for agent in list(_LIVING):
        agent._process = os.urandom(4).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_names)


class Agent:
    """A policy in live use: `decide` among arms, `reward` when it is known, `save` and `load` across restarts.

    rewards: the least and the largest a reward may be. clock: what time is counted in, "rounds" (decisions), "wall"
    (ticks of the wall clock, `tick` seconds or a span such as "20m") or "rewards" (rewards learned). half_life: over a
    policy with memory=Keep(), in ticks or as time on the wall clock. epsilon: the share of decisions drawn uniformly.
    expire_after: how old, in ticks or as time, a decision may be when its reward comes; then it is closed, with
    `default_reward` if there is one. max_open: open decisions kept, the oldest going first; remember: closed ones.
    """

    def __init__(
        self, policy: Compiled, *, rewards: tuple[float, float], clock: Kind = "rounds",
        half_life: float | str | None = None, tick: float | str | None = None, epsilon: float = 0.0, seed: int = 0,
        expire_after: float | str | None = None, default_reward: float | None = None, max_open: int = 100_000,
        remember: int = 100_000, now: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(policy, Compiled):
            raise BadInput("policy", policy, "a built-in policy", 'pass dw.make("Bank+LB-WeightUCB", dim=10), say')
        self._clock = clock_for(clock, tick, half_life, policy)
        self._policy = with_half_life(policy, half_life, self._clock)
        check_meaning(self._policy, self._clock)
        self._low, self._high = checked_range(self._policy, rewards)
        self._epsilon = real("epsilon", epsilon, 0.0, 1.0, way_out="pass the share of decisions to draw, e.g. 0.05")
        self._seed = checked_seed(seed)
        self._expire_after = None if expire_after is None else self._clock.span("expire_after", expire_after)
        if default_reward is not None:
            if expire_after is None:
                raise BadInput("default_reward", default_reward, "expire_after= with it", "say when it is due")
            default_reward = real("default_reward", default_reward, self._low, self._high)
        self._default = default_reward
        self._max_open = whole("max_open", max_open, 1)
        self._book = Book(whole("remember", remember, 0))
        if not callable(now):
            raise BadInput("now", now, "a function that gives seconds", "pass time.time")
        self._now = now
        self._process = os.urandom(4).hex()
        _LIVING.add(self)
        self._origin = os.urandom(8).hex()
        self._sources = {self._origin}
        self._begin(self._policy.start(self._seed))

    def _begin(self, state: State) -> None:
        """All that follows from the policy and a state."""
        policy, draws = self._policy, key(self._seed, "explore")
        self._key = draws & WORD, (draws >> 32) & WORD
        self._alone, self._ranked = one_at_a_time(policy), ranks_by_score(policy)
        self._digest = policy.digest
        self._states, self._meter = States(policy, state, ages(policy)), Meter()
        self._seq = 0
        self._choosing, self._learning = self._states.choosing, threading.Lock()

    # ---------------------------------------------------------------------------------------- ready-made

    @classmethod
    def for_clicks(
        cls, dim: int, half_life: float | str | None = None, click_rate: float | tuple[float, float] | None = None,
        *, L: float = 1.0, **options: Any,
    ) -> Agent:
        """An agent for clicks: a bank of memories, or with a half-life the one memory it means.

        A half-life that is a number counts decisions; "14d" is time. click_rate is what share is clicked, or the least
        and the largest share; without it arms may have any from 5% to 95%. L is the largest norm of an arm.
        """
        from driftwise.agent.presets import clicks

        policy, more = clicks(dim, half_life, click_rate, L, options)
        return cls(policy, rewards=(0.0, 1.0), **more)

    @classmethod
    def for_values(
        cls, dim: int, low: float, high: float, half_life: float | str | None = None, *, L: float = 1.0, **options: Any,
    ) -> Agent:
        """An agent for rewards from low to high: a bank of memories, or with a half-life the one memory it means."""
        from driftwise.agent.presets import values

        policy, more = values(dim, low, high, half_life, L, options)
        return cls(policy, rewards=(low, high), **more)

    # ---------------------------------------------------------------------------------------- what it is

    @property
    def policy(self) -> Compiled:
        """The policy it plays, a half-life included."""
        return self._policy

    @property
    def counts(self) -> dict[str, int]:
        """How often each event happened, and how many decisions are open now."""
        return {**self._book.counts, "open": len(self._book.open)}

    @property
    def state(self) -> State:
        """A copy of what the policy remembers."""
        with self._choosing:
            return self._states.front.copy()

    def __repr__(self) -> str:
        counts = self._book.counts
        return (
            f"<Agent {type(self._policy).__name__}, clock={self._clock.kind!r}: {counts['decided']} decided, "
            f"{counts['learned'] + counts['defaulted']} learned, {len(self._book.open)} open>"
        )

    # ---------------------------------------------------------------------------------------- decide

    def decide(
        self, arms: Arms, items: Sequence[Item] | None = None, *, id: str | None = None,
        allowed: npt.ArrayLike | None = None, cost: npt.ArrayLike | None = None, now: float | None = None,
    ) -> Decision:
        """Choose one of the arms (n, d). The same id and arms again: the same decision again.

        items are names of the arms; allowed is booleans (n,) or the indices of arms that may be played; cost (n,) is
        taken off their scores.
        """
        prepared = arms if isinstance(arms, ArmSet) else ArmSet(arms)
        at = self._now() if now is None else moment("now", now)
        name = None if items is None else named(items, prepared.count)
        places = None if allowed is None else allowed_places(allowed, prepared.count)
        price = None if cost is None else self._price(cost, prepared.count)
        mark = None if id is None else fingerprint(prepared, places, price)
        if id is not None:
            id = checked_id(id)
        if self._expire_after is not None and self._learning.acquire(blocking=False):
            try:
                self._expire(self._read(at))
            finally:
                self._learning.release()
        if self._alone:
            with self._learning:
                self._let_rounds_pass()
                with self._choosing:
                    return self._decide(prepared, name, id, mark, places, price, at)
        with self._choosing:
            return self._decide(prepared, name, id, mark, places, price, at)

    def decide_many(
        self, many: Iterable[Arms], *, ids: Sequence[str | None] | None = None, now: float | None = None
    ) -> list[Decision]:
        """A decision for each set of arms, in order."""
        sets = list(many)
        names = [None] * len(sets) if ids is None else list(ids)
        if len(names) != len(sets):
            raise BadInput("ids", f"{len(names)} ids", f"one for each of {len(sets)} sets of arms", "or leave them out")
        return [self.decide(arms, id=id, now=now) for arms, id in zip(sets, names, strict=True)]

    def _decide(
        self, prepared: ArmSet, items: Sequence[Item] | None, id: str | None, mark: str | None, places: Ints | None,
        price: Floats | None, at: float,
    ) -> Decision:
        """The decision itself, while no other is being made. What is refused changes nothing."""
        book = self._book
        if id is not None:
            known = book.find(id)
            if known is not None:
                return self._again(known, mark)
        if self._alone and book.open:
            wanted = f"the reward of {next(iter(book.open))!r} first: {type(self._policy).__name__} plays by rounds"
            raise BadInput("decide", "a second open decision", wanted, "reward it or cancel it")
        born, upon = self._clock.born(at, self._states.tick)
        state = self._states.at(upon)
        offered = prepared if places is None else ArmSet(np.ascontiguousarray(prepared.columns[0].T[places]))
        costs = price if price is None or places is None else price[places]
        seq = self._seq + 1
        choice, propensity, explored = self._choose(state, offered, costs, seq)
        arm = choice.arm
        x = offered.columns[:, :, arm : arm + 1].copy()
        if places is not None:
            arm = int(places[arm])
        if len(book.open) >= self._max_open:
            oldest = book.oldest()
            assert oldest is not None
            book.close(oldest, Verdict.EXPIRED)
            book.counts["crowded_out"] += 1
        decision = Decision(
            f"{seq:x}.{self._process}" if id is None else id, seq, arm, None if items is None else items[arm],
            choice.score, choice.mean, choice.bonus, propensity, explored, born, at, offered.count, self._digest,
        )  # fmt: skip
        self._seq, self._clock.newest = seq, max(born, self._clock.newest)
        book.open[decision.id] = Entry(decision, x, mark)
        book.counts["decided"] += 1
        return decision

    def _again(self, known: Entry, mark: str | None) -> Decision:
        """The decision that an id already has."""
        if known.mark != mark:
            id = known.decision.id
            self._book.counts["conflicting"] += 1
            raise BadInput("id", f"{id!r} with other arms", "an id for each decision", "pass a new id for new arms")
        self._book.counts["repeated"] += 1
        return known.decision

    def _choose(self, state: State, arms: ArmSet, costs: Floats | None, seq: int) -> tuple[Choice, float, bool]:
        """The choice, its propensity, and whether it was drawn for exploration."""
        policy, count, epsilon = self._policy, arms.count, self._epsilon
        draw = None if policy.deterministic else seq
        explored = epsilon > 0.0 and uniform(*self._key, seq, 0, 0) < epsilon
        if costs is None:
            best = policy.choose(state, arms, draw)
            if epsilon == 0.0 and draw is None:
                return best, 1.0, False
            if not explored:
                return best, epsilon / count + (1.0 - epsilon) * self._share(state, arms, best.arm, draw), False
        scores = policy.scores(state, arms)
        totals = scores.score if costs is None else scores.score - costs
        top = best.arm if costs is None else int(totals.argmax())
        arm = top
        if explored:
            arm = min(int(uniform(*self._key, seq, 1, 0) * count), count - 1)
            self._book.counts["explored"] += 1
        share = self._share(state, arms, arm, draw) if draw is not None else float(arm == top)
        found = Choice(arm, float(totals[arm]), float(scores.mean[arm]), float(scores.bonus[arm]))
        if found.bonus < 0.0:  # a bank for clicks gives arms that no memory proposes no bonus
            found = Choice(arm, found.mean, found.mean, 0.0)
        return found, epsilon / count + (1.0 - epsilon) * share, explored

    def _share(self, state: State, arms: ArmSet, arm: int, draw: int | None) -> float:
        """How often the policy plays an arm; of a rule that samples, counted over draws of their own."""
        if draw is None:
            return 1.0
        others = (key(self._seed, "propensity", draw, number) >> 1 for number in range(DRAWS))
        return sum(self._policy.choose(state, arms, other).arm == arm for other in others) / DRAWS

    def _let_rounds_pass(self) -> None:
        """Rounds without a reward end for MASTER and BOB before the next begins."""
        missed = self._clock.newest - self._states.tick
        if missed > 0 and not self._book.open:
            self._lesson(lambda state: self._policy.advance(state, float(missed)), self._clock.newest, lambda: None)

    def _price(self, cost: npt.ArrayLike, count: int) -> Floats:
        if not self._ranked:
            wanted = "a policy that ranks arms by score, which click banks, MASTER, BOB and rules that sample do not"
            raise BadInput("cost", type(self._policy).__name__, wanted, "take the cost off the reward instead")
        return array("cost", cost, (count,), "pass a number for each arm")

    # ---------------------------------------------------------------------------------------- reward

    def reward(self, id: str, value: float, now: float | None = None) -> Verdict:
        """Learn what a decision brought: "learned", "duplicate" or "late"; what cannot be true is refused."""
        at = self._now() if now is None else moment("now", now)
        if type(value) is not float or not self._low <= value <= self._high:
            value = self._value(value)
        with self._learning:
            tick = self._read(at)
            if self._expire_after is not None:
                self._expire(tick)
            entry = self._book.open.get(id)
            if entry is None:
                return self._settled(id, value)
            return self._learn(entry, value, tick, Verdict.LEARNED)

    def reward_many(self, rewards: Iterable[tuple[str, float]], now: float | None = None) -> list[Verdict | BadInput]:
        """A verdict for each (id, value), in order; one that is refused gives its sentence and stops nobody."""
        verdicts: list[Verdict | BadInput] = []
        for id, value in rewards:
            try:
                verdicts.append(self.reward(id, value, now))
            except BadInput as refusal:
                verdicts.append(refusal)
        return verdicts

    def cancel(self, id: str) -> Verdict:
        """Close a decision that was never carried out: no reward will come, and nothing is learned."""
        with self._learning:
            entry = self._book.find(id) if isinstance(id, str) else None
            if entry is None:
                self._book.counts["unknown"] += 1
                raise unknown(id)
            self._close(entry, Verdict.CANCELLED)
            if entry.verdict is not Verdict.CANCELLED:
                got = f"{id!r}, which is {entry.verdict.value}"
                raise BadInput("id", got, "an open decision", "what was learned stays learned")
        return Verdict.CANCELLED

    def _value(self, value: object) -> float:
        try:
            number = float(value) if isinstance(value, (bool, np.bool_)) else value
            return real("value", number, self._low, self._high, way_out="leave it out, or declare other rewards=")
        except BadInput:
            self._book.counts["out_of_range"] += 1
            raise

    def _settled(self, id: object, value: float) -> Verdict:
        """What a reward for a decision that is not open gets."""
        book = self._book
        entry = book.closed.get(id) if isinstance(id, str) else None
        if entry is None:
            book.counts["unknown"] += 1
            raise unknown(id)
        if entry.verdict is Verdict.CANCELLED:
            book.counts["conflicting"] += 1
            raise BadInput("id", f"{id!r}, which was cancelled", "a decision that was carried out", "drop the reward")
        if entry.verdict is not Verdict.LEARNED:
            book.counts["late"] += 1
            return Verdict.LATE
        if entry.value != value:
            book.counts["conflicting"] += 1
            wanted = f"{entry.value:g}, the reward that {id!r} already has"
            raise BadInput("value", value, wanted, "the first reward stands")
        book.counts["duplicate"] += 1
        return Verdict.DUPLICATE

    def _read(self, at: float) -> int:
        with self._choosing:
            return self._clock.read(at, self._states.tick)

    def _expire(self, tick: int) -> None:
        """Close what is overdue, the oldest first."""
        from driftwise.errors import NumericalError

        assert self._expire_after is not None
        entry = self._oldest()
        while entry is not None and tick - entry.decision.born > self._expire_after:
            if self._default is not None:
                try:
                    self._learn(entry, self._default, tick, Verdict.DEFAULTED)
                except NumericalError:  # said in counts["failed"]: whoever happens to call now did nothing wrong
                    self._close(entry, Verdict.EXPIRED)
            else:
                self._close(entry, Verdict.EXPIRED)
            entry = self._oldest()

    def _oldest(self) -> Entry | None:
        with self._choosing:
            return self._book.oldest()

    def _close(self, entry: Entry, verdict: Verdict) -> None:
        with self._choosing:
            if entry.verdict is Verdict.OPEN:
                self._book.close(entry, verdict)

    def _learn(self, entry: Entry, value: float, tick: int, verdict: Verdict) -> Verdict:
        """A lesson: time passes to this tick, then the reward of a decision born before it."""
        if self._clock.kind == "rewards":
            tick = self._states.tick + 1
        decision, x = entry.decision, entry.x
        if x is None:  # crowded out a moment ago
            self._book.counts["late"] += 1
            return Verdict.LATE
        ticks, age = float(tick - self._states.tick), float(tick - decision.born)

        def close() -> None:
            if entry.verdict is Verdict.OPEN:
                self._book.close(entry, verdict, value)

        self._lesson(lambda state: self._policy.take(state, x, value, ticks, age), tick, close)
        self._meter.note(tick, decision.born, x, value)
        if isinstance(self._policy, FadeBank):
            self._meter.weigh(tick, self._states.front.scores)
        return verdict

    def _lesson(self, lesson: Callable[[State], None], tick: int, then: Callable[[], None]) -> None:
        """See `States.learn`; one that fails is counted."""
        try:
            self._states.learn(lesson, tick, then)
        except BaseException:
            self._book.counts["failed"] += 1
            raise

    # ---------------------------------------------------------------------------------------- asking

    def explain(
        self, what: Decision | str | Arms, arms: Arms | None = None, *, items: Sequence[Item] | None = None,
        features: Sequence[str] | None = None, now: float | None = None,
    ) -> Explanation:
        """Why: every arm's estimate, bonus and score, and the features that moved the choice most.

        Of arms, what would be chosen now; of an open decision, its own vector, or with `arms` all it was chosen from.
        """
        from driftwise.agent.explain import explain

        return explain(self, what, arms, items, features, self._now() if now is None else moment("now", now))

    def drift(self) -> Drift:
        """How long it remembers, and whether a shorter or longer memory would have predicted better."""
        return drift(self)

    # ---------------------------------------------------------------------------------------- keeping

    def to_bytes(self) -> bytes:
        """The whole agent, open decisions included, as one container."""
        from driftwise.agent.snapshot import written

        with self._learning, self._choosing:
            return written(self)

    @classmethod
    def from_bytes(
        cls, data: bytes, *, policy: Compiled | None = None, now: Callable[[], float] = time.time
    ) -> Agent:
        """The agent that `to_bytes` wrote; it goes on bit for bit. `policy` is for those with a link of your own."""
        from driftwise.agent.snapshot import read

        return read(cls, data, policy, now)

    def save(self, path: str | Path) -> None:
        """Write it to a file, which is there whole or not at all, and on disk when this returns."""
        from driftwise.files import keep_durably

        keep_durably(Path(path), self.to_bytes())

    @classmethod
    def load(
        cls, path: str | Path, *, policy: Compiled | None = None, now: Callable[[], float] = time.time
    ) -> Agent:
        """The agent that `save` wrote."""
        return cls.from_bytes(Path(path).read_bytes(), policy=policy, now=now)

    def merge(self, other: Agent) -> None:
        """Take in all that another agent of the same policy has learned from rewards of its own."""
        from driftwise.agent.merge import merge

        merge(self, other)
