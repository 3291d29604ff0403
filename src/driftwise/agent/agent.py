"""The agent: any policy, for a product whose rewards come late, out of order or never (docs/contract.md#ticks).

There are two locks, taken in this order. `learning` is held by a thread that changes what is known. `choosing` is
held by a thread that decides and, for the moment of the swap (states.py), by a thread that learns. MASTER and BOB play
one decision at a time and take both locks to decide, because a round without a reward must end before the next choice.
The file is long because it is the whole interface of an agent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import real, whole
from driftwise.agent.choosing import (
    Chooser,
    allowed_places,
    check_set,
    checked_price,
    checked_range,
    checksum,
    density_of,
    named,
    same_arms,
    unknown,
)
from driftwise.agent.clock import Kind, check_meaning, clock_for, in_ticks
from driftwise.agent.drift import Drift, drift
from driftwise.agent.encoding import encoded, encoder_for
from driftwise.agent.parts import AgentParts
from driftwise.agent.record import (
    Book,
    Decision,
    Entry,
    Item,
    Shown,
    Taught,
    automatic_id,
    check_not_automatic,
    checked_id,
)
from driftwise.agent.states import start_clock
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.ledger import Conflict, Verdict, settle, terms_of
from driftwise.policies.arms import ActionSet, Arms, action_set
from driftwise.policies.own import asked
from driftwise.policies.questions import Policy

if TYPE_CHECKING:
    from driftwise.agent.explain import Explanation
    from driftwise.agent.writing import AgentLog
    from driftwise.tables.features import Features


class Agent:
    """A policy in live use: `decide` among arms, `reward` when it is known, `save` and `load` across restarts.

    rewards: the smallest and the largest possible reward. clock: the unit of time, "rounds" (decisions), "wall" (ticks
    of the wall clock, `tick` seconds or a time such as "20m") or "rewards" (rewards learned). The default is "wall" if
    any setting is a time or a tick is given, and "rounds" otherwise. half_life: the half-life of the memory, in ticks
    or as a time; the policy must have memory=Keep(). epsilon: the share of decisions that are drawn uniformly.
    expire_after: the largest age, in ticks or as a time, at which a reward is learned; an older decision is closed,
    with `default_reward` if there is one. max_open: the number of open decisions that are kept; the oldest is dropped
    first. remember: the number of closed decisions that are known by their ids. features: how a context and items
    become arms.
    """

    def __init__(
        self, policy: Policy, *, rewards: tuple[float, float], clock: Kind | None = None,
        half_life: float | str | None = None, tick: float | str | None = None, epsilon: float = 0.0, seed: int = 0,
        expire_after: float | str | None = None, default_reward: float | None = None, max_open: int = 100_000,
        remember: int = 100_000, features: Features | None = None, now: Callable[[], float] = time.time,
    ) -> None:
        about = asked(policy)
        ticks = clock_for(clock, tick, half_life, about, expire_after)
        played: Any = in_ticks(about, half_life, ticks)
        check_meaning(played, ticks)
        low, high = checked_range(played, rewards)
        epsilon = real("epsilon", epsilon, 0.0, 1.0, way_out="pass the share of decisions to draw, e.g. 0.05")
        seed = checked_seed(seed)
        terms = terms_of(low, high, None if expire_after is None else ticks.span("expire_after", expire_after),
                         default_reward)  # fmt: skip
        max_open, book = whole("max_open", max_open, 1), Book(whole("remember", remember, 0))
        if not callable(now):
            raise BadInput("now", now, "a function that gives seconds", "pass time.time")
        encoder = None if features is None else encoder_for(features, played)
        self._parts = AgentParts(
            played, ticks, terms, book, encoder, now, epsilon=epsilon, seed=seed, max_open=max_open
        )
        self._chooser = Chooser(played, epsilon, seed)
        self._weighs, self._lent = played.weighs, played.taught_with_arms
        self._taught: Entry | None = None  # the decision whose reward is being learned
        self._unheard: set[str] = set()  # of rewards whose calls have not returned: a retry is no duplicate

    # ---------------------------------------------------------------------------------------- ready-made

    @classmethod
    def for_clicks(
        cls, dim: int, half_life: float | str | None = None, click_rate: float | tuple[float, float] | None = None,
        *, L: float | None = None, **options: Any,
    ) -> Agent:
        """An agent for clicks. It plays Auto, or with a half-life one memory of that length.

        A half-life that is a number counts decisions; "14d" is a time. click_rate is the share that is clicked, or the
        smallest and the largest share, if it is known. Arms longer than L are refused if L is given.
        """
        from driftwise.agent.presets import clicks

        policy, more = clicks(dim, half_life, click_rate, L, options)
        return cls(policy, rewards=(0.0, 1.0), **more)

    @classmethod
    def for_values(
        cls, dim: int, low: float, high: float, half_life: float | str | None = None, *, L: float | None = None,
        **options: Any,
    ) -> Agent:
        """An agent for rewards from low to high. It plays Auto, or with a half-life one memory of that length."""
        from driftwise.agent.presets import values

        policy, more = values(dim, low, high, half_life, L, options)
        return cls(policy, rewards=(low, high), **more)

    # ---------------------------------------------------------------------------------------- what it is

    @property
    def policy(self) -> Any:
        """The policy that the agent plays, with half-life and times in ticks."""
        return self._parts.policy.given

    @property
    def features(self) -> Features | None:
        """How a context and items become arms; None if the agent has no features."""
        return self._parts.features

    @property
    def counts(self) -> dict[str, int]:
        """How often each event happened, how many decisions are open, and how many rows the log could not hold
        (`unlogged`, since the process began)."""
        return self._parts.counts

    @property
    def state(self) -> Any:
        """A copy of the policy's state."""
        parts = self._parts
        with parts.turn(parts.choosing):
            return parts.policy.seen(parts.states.front.copy())

    def __repr__(self) -> str:
        parts = self._parts
        from driftwise.policies.names import called

        counts = parts.book.counts
        return (
            f"<Agent {called(self.policy)}, clock={parts.clock.kind!r}: {counts['decided']} decided, "
            f"{parts.book.lessons} learned, {len(parts.book.open)} open>"
        )

    # ---------------------------------------------------------------------------------------- decide

    def decide(
        self, arms: Arms | None = None, items: Sequence[Item] | Mapping[Any, Any] | None = None, *,
        context: Mapping[str, Any] | None = None, id: str | None = None, allowed: npt.ArrayLike | None = None,
        cost: npt.ArrayLike | None = None, now: float | None = None, jump: bool = False,
    ) -> Decision:
        """Choose one of the arms (n, d), or a vector of a continuous set such as dw.Ball(2). A repeated call with the
        same id and arms returns the same decision.

        items are the names of the arms. allowed is booleans (n,) or the indices of the arms that may be played. cost
        (n,) is subtracted from the scores. With features a context may replace the arms; items are then names of items,
        or their rows by name, which the agent keeps. On the wall clock a `now` that is more than 40 half-lives
        and more than 1,000 times the longest silence after the last time is refused unless jump=True.
        """
        parts = self._parts
        parts.turn(parts.choosing)
        told = None
        if arms is None or context is not None:
            arms, items, told = encoded(parts, arms, items, context)
        prepared = action_set(arms)
        if not prepared.listed:
            check_set(parts.policy, prepared, items, allowed, cost)
        name = None if items is None else named(items, prepared.count)  # type: ignore[arg-type]
        places = None if allowed is None else allowed_places(allowed, prepared.count)
        price = None if cost is None else checked_price(parts.policy, cost, prepared.count)
        if id is not None:
            id = checked_id(id)
            prepared.crc  # noqa: B018 - taken before others have to wait
        at = parts.at(now, jump)
        learning: Any = parts.learning
        if parts.terms.expire_after is not None and not learning._is_owned() and not parts.busy.locked():
            with learning, parts.busy:
                parts.book.told_at = at
                with parts.choosing:
                    tick = parts.clock.read(at, parts.states.tick)
                self._expire(tick)
        if parts.alone:
            with parts.turn(learning), parts.busy:
                self._let_rounds_pass()
                with parts.choosing:
                    made = self._decide(prepared, name, id, places, price, at, told)
        else:
            with parts.choosing:
                made = self._decide(prepared, name, id, places, price, at, told)
        if now is not None and (parts.driven is None or at > parts.driven):
            parts.driven = at
        return made

    def decide_many(
        self, many: Iterable[Arms], *, ids: Sequence[str | None] | None = None, now: float | None = None,
        jump: bool = False,
    ) -> list[Decision | BadInput]:
        """A decision for each set of arms, in order. A refused call gives its BadInput in its place; the others are
        carried out."""
        sets = list(many)
        names = [None] * len(sets) if ids is None else list(ids)
        if len(names) != len(sets):
            raise BadInput("ids", f"{len(names)} ids", f"one for each of {len(sets)} sets of arms", "or leave them out")
        made: list[Decision | BadInput] = []
        for arms, id in zip(sets, names, strict=True):
            try:
                made.append(self.decide(arms, id=id, now=now, jump=jump))
            except BadInput as refusal:
                made.append(refusal)
        return made

    def _decide(
        self, prepared: ActionSet, items: Sequence[Item] | None, id: str | None, places: Ints | None,
        price: Floats | None, at: float, told: dict[str, Any] | None,
    ) -> Decision:
        """Make the decision, while no other is being made. A refused call changes nothing."""
        parts, book = self._parts, self._parts.book
        if id is not None:
            known = book.find(id)
            if known is not None:
                return self._again(known, same_arms(known.mark, prepared, places, price))
            check_not_automatic(id)
        if parts.alone and book.open:
            wanted = f"the reward of {next(iter(book.open))!r} first: {type(self.policy).__name__} plays by rounds"
            raise BadInput("decide", "a second open decision", wanted, "reward it or cancel it")
        born, upon = parts.clock.born(at, parts.states.tick)
        offered = prepared if places is None else prepared.arms.only(places)
        costs = price if price is None or places is None else price[places]
        seq = parts.seq + 1
        try:
            found, propensity, draws, explored = self._chooser.choose(parts.states.at(upon), offered, costs, seq)
        except BaseException:
            parts.states.unlock()
            raise
        place, score, mean, bonus = found[:4]
        x = parts.policy.lesson_of(offered, found)
        arm = place if places is None else int(places[place])
        mark = None if id is None else checksum(prepared, places, price)
        decision = Decision(
            automatic_id(seq, parts.process) if id is None else id, seq, arm, None if items is None else items[arm],
            score, mean, bonus, propensity, explored, born, at, offered.count, parts.digest, draws, found.x,
            found.number, density_of(offered, explored),
        )  # fmt: skip
        if len(book.open) >= parts.max_open:
            self._crowd_out(parts.max_open - 1)
        shown = None if book.log is None else book.log.shown(offered, place, items, places, told, decision.measure)
        entry, newest = Entry(decision, x, mark, shown), max(born, parts.clock.newest)
        if offered.listed:  # of a decision that is not made after all nobody asks
            parts.shown.add(Shown(decision.id, offered.arms, items, places, place, costs))
        # No function is called from here on, so that Ctrl-C cannot interrupt in between.
        book.open[decision.id] = entry
        parts.seq, parts.clock.newest = seq, newest
        book.counts["decided"] += 1
        if explored:
            book.counts["explored"] += 1
        return decision

    def _crowd_out(self, room: int) -> None:
        """Close the oldest open decisions until there are at most `room`.

        A decision whose reward is being learned does not count: it is about to close, and must not be counted as
        expired.
        """
        book, taught = self._parts.book, self._taught
        busy = taught is not None and taught.verdict is Verdict.OPEN
        while len(book.open) - busy > room:
            oldest = book.oldest(besides=taught)
            assert oldest is not None
            book.close(oldest, self._parts.terms.unanswered(learned=False), crowded=1)

    def _again(self, known: Entry, same: bool) -> Decision:
        """The decision that an id already has."""
        if not same:
            id = known.decision.id
            self._parts.book.counts["conflicting"] += 1
            raise BadInput("id", f"{id!r} with other arms", "an id for each decision", "pass a new id for new arms")
        self._parts.book.counts["repeated"] += 1
        return known.decision

    def _let_rounds_pass(self) -> None:
        """For MASTER and BOB: end rounds without a reward before the next round begins."""
        parts = self._parts
        missed = parts.clock.newest - parts.states.tick
        if missed > 0 and not parts.book.open:
            newest, policy = parts.clock.newest, parts.policy
            parts.lesson(lambda state: policy.advance(state, float(missed)), newest, lambda: None, lambda: False)

    # ---------------------------------------------------------------------------------------- reward

    def reward(self, id: str, value: float, now: float | None = None, *, jump: bool = False) -> Verdict:
        """Learn the reward of a decision. Returns "learned", "duplicate" or "late". An impossible reward is refused,
        and so is a `now` far ahead without `jump` (see `decide`)."""
        verdict = self._rewarded(id, value, now, jump)
        self._unheard -= {id}  # calls nothing, so Ctrl-C cannot come between it and the answer
        return verdict

    def _rewarded(self, id: str, value: float, now: float | None, jump: bool) -> Verdict:
        """The verdict on a reward, which is unheard until the caller has it."""
        parts = self._parts
        try:
            value = parts.terms.checked(value)
        except BadInput:
            parts.count("out_of_range")
            raise
        at = parts.at(now, jump)
        try:
            with parts.turn(parts.learning), parts.busy:
                parts.book.told_at = at
                with parts.choosing:
                    tick = parts.clock.read(at, parts.states.tick)
                if parts.terms.expire_after is not None:
                    self._expire(tick)
                verdict = self._settled(id, value, tick)
            if now is not None and (parts.driven is None or at > parts.driven):
                parts.driven = at
        except Exception:
            if isinstance(id, str):
                self._unheard.discard(id)
            raise
        return verdict

    def reward_many(
        self, rewards: Iterable[tuple[str, float]], now: float | None = None, *, jump: bool = False
    ) -> list[Verdict | BadInput]:
        """A verdict for each (id, value), in order. A refused call gives its BadInput in its place; the others are
        carried out."""
        verdicts: list[Verdict | BadInput] = []
        heard: set[str] = set()
        for pair in list(rewards):
            try:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise BadInput("rewards", pair, "pairs of an id and a value", 'pass [("order 7", 1.0)], say')
                id, value = pair
                if isinstance(id, str):
                    self._unheard -= heard & {id}  # the second of two in one call is a duplicate
                    heard.add(id)
                verdicts.append(self._rewarded(id, value, now, jump))
            except BadInput as refusal:
                verdicts.append(refusal)
        self._unheard -= heard  # calls nothing, so Ctrl-C cannot come between it and the answer
        return verdicts

    def cancel(self, id: str) -> Verdict:
        """Close a decision that was never carried out. Nothing is learned for it, and no default."""
        parts = self._parts
        with parts.turn(parts.learning):
            entry = parts.book.find(id) if isinstance(id, str) else None
            if entry is None:
                parts.count("unknown")
                raise unknown(id)
            self._close(entry, Verdict.CANCELLED)
            if entry.verdict is not Verdict.CANCELLED:
                got = f"{id!r}, which is {entry.verdict.value}"
                raise BadInput("id", got, "an open decision", "what was learned stays learned")
        return Verdict.CANCELLED

    def _settled(self, id: object, value: float, tick: int) -> Verdict:
        """The verdict on a reward, which is learned if that is its verdict. Overdue decisions are closed by then."""
        parts = self._parts
        entry = parts.book.find(id) if isinstance(id, str) else None
        if entry is None:
            parts.count("unknown")
            raise unknown(id)
        found = settle(entry.verdict, entry.value, value)
        if found is Verdict.LEARNED:
            self._unheard.add(entry.decision.id)
            if self._learn(entry, value, tick, found):
                return found
        found = settle(entry.verdict, entry.value, value)  # it may have been evicted a moment ago
        if found is Verdict.DUPLICATE and id in self._unheard:
            return found
        parts.count("conflicting" if isinstance(found, Conflict) else found.value)
        if found is Conflict.CANCELLED:
            raise BadInput("id", f"{id!r}, which was cancelled", "a decision that was carried out", "drop the reward")
        if found is Conflict.OTHER:
            wanted = f"{entry.value!r}, the reward that {id!r} already has"
            raise BadInput("value", value, wanted, "the first reward stands")
        return found

    def _expire(self, tick: int) -> None:
        """Close overdue decisions, the oldest first."""
        entry, terms = self._oldest(), self._parts.terms
        while entry is not None and terms.overdue(entry.decision.born, tick):
            try:
                if terms.default is not None:
                    self._learn(entry, terms.default, tick, terms.unanswered())
            except Exception:  # counted in counts["failed"]: the current caller did nothing wrong
                pass
            self._close(entry, terms.unanswered(learned=False))  # unless its default was learned
            entry = self._oldest()

    def _oldest(self) -> Entry | None:
        with self._parts.choosing:
            return self._parts.book.oldest()

    def _close(self, entry: Entry, verdict: Verdict) -> None:
        with self._parts.choosing:
            if entry.verdict is Verdict.OPEN:
                self._parts.book.close(entry, verdict)

    def _learn(self, entry: Entry, value: float, tick: int, verdict: Verdict) -> bool:
        """Learn a reward: advance the state to this tick, then learn the reward of an earlier decision. False if the
        decision was evicted a moment ago."""
        parts, states, policy, meter = self._parts, self._parts.states, self._parts.policy, self._parts.meter
        if parts.clock.kind == "rewards":
            tick = states.tick + 1
        x, born, first = entry.x, entry.decision.born, states.zero is None
        ticks, age = float(tick - (born if first else states.tick)), float(tick - born)

        def lesson(state: Any) -> None:
            if first:
                start_clock(policy, state, born)
            policy.take(state, x, value, ticks, age)

        def learned() -> None:
            weighed = meter.weighed(tick, policy.weights(states.front)) if self._weighs else None
            taught = Taught(meter, ((tick, born, x.column if self._lent else x, value),), weighed)
            parts.book.close(entry, verdict, value, taught)

        try:
            with parts.choosing:
                if entry.verdict is not Verdict.OPEN:
                    return False
                self._taught = entry  # it must not be evicted now: book and state must agree
            states.learn(lesson, tick, learned, lambda: entry.verdict is not Verdict.OPEN, born)
        except BaseException as error:
            with parts.choosing:
                self._taught = None
                parts.book.counts["failed"] += isinstance(error, Exception) and entry.verdict is Verdict.OPEN
                self._crowd_out(parts.max_open)
            raise
        self._taught = None
        return True

    # ---------------------------------------------------------------------------------------- logs

    def log_to(
        self, path: str | Path, *, arms: bool = False, format: str | None = None, rows: int = 50_000,
        seconds: float = 60.0,
    ) -> AgentLog:
        """Write a row for every decision when it closes, as parts in a folder. Call flush() and close() on the result.

        A part is written when `rows` rows have gathered or `seconds` have passed, and is whole or absent. arms: log all
        arms, which evaluation needs. format: "parquet", the default if pyarrow is installed, or "jsonl".
        """
        from driftwise.agent.writing import log_to

        return log_to(self._parts, path, arms, format=format, rows=rows, seconds=seconds)

    def learn_log(self, log: Any, *, gaps: bool = False, progress: bool | None = False) -> int:
        """Learn the rewards of a log that come after those already learned. Returns their number.

        The state is then, bit for bit, that of the agent that wrote the log. A log with missing rewards is refused
        unless gaps=True. A log with a bad row changes nothing. progress: a bar on stderr; by default for a long log in
        a terminal.
        """
        from driftwise.agent.folding import learn_log

        return learn_log(self._parts, log, gaps, progress)

    # ---------------------------------------------------------------------------------------- asking

    def explain(
        self, what: Decision | str | Arms, arms: Arms | None = None, *, items: Sequence[Item] | None = None,
        features: Sequence[str] | None = None, cost: npt.ArrayLike | None = None, now: float | None = None,
    ) -> Explanation:
        """Explain a choice: estimate, bonus, cost and score of every arm, and what moved the choice most.

        For arms it explains what would be chosen now. For a decision it explains the arms it was chosen from, on the
        state as it is now. The agent keeps the arms of the last decisions; for others pass `arms`; of an open decision
        it has at least the vector played. An agent that is driven by now= is explained at the newest time it was given,
        unless `now` is given here.
        """
        from driftwise.agent.explain import explain

        return explain(self._parts, what, arms, items, features, self._parts.asked_at(now), cost)

    def drift(self) -> Drift:
        """How long the agent remembers, and whether a shorter or longer memory would have predicted better."""
        return drift(self._parts)

    # ---------------------------------------------------------------------------------------- keeping

    def __reduce_ex__(self, protocol: object) -> Any:
        """Refuse copy and pickle: a copy would share the book, and a pickle would contain a lock."""
        wanted = "dw.Agent.from_bytes(agent.to_bytes())"
        raise BadInput("agent", "copy or pickle", wanted, "use save and load for files")

    def to_bytes(self) -> bytes:
        """The whole agent, open decisions included, as one container."""
        parts = self._parts
        from driftwise.agent.snapshot import write_snapshot

        with parts.turn(parts.learning), parts.busy, parts.choosing:
            return write_snapshot(parts)

    @classmethod
    def from_bytes(
        cls, data: bytes, *, policy: Policy | None = None, now: Callable[[], float] = time.time
    ) -> Agent:
        """The agent that `to_bytes` wrote; it continues bit for bit. Pass a policy of your own, or one with a link of
        your own, again."""
        from driftwise.agent.snapshot import read_snapshot

        return read_snapshot(cls, data, policy, now)

    def save(self, path: str | Path) -> None:
        """Write the agent to a file. The file is whole or absent, and on disk when this returns."""
        from driftwise._internal.files import keep_durably

        data, log = self.to_bytes(), self._parts.book.log
        if log is not None:
            log.flush()  # a snapshot must not know of lessons that its log lost
        keep_durably(Path(path), data)

    @classmethod
    def load(
        cls, path: str | Path, *, policy: Policy | None = None, now: Callable[[], float] = time.time
    ) -> Agent:
        """The agent that `save` wrote."""
        return cls.from_bytes(Path(path).read_bytes(), policy=policy, now=now)

    def merge(self, other: Agent) -> None:
        """Add everything that another agent with the same policy has learned from its own rewards."""
        from driftwise.agent.folding import merge

        if type(other) is not type(self) or other is self:
            raise BadInput("other", other, "another agent", "pass the result of Agent.load")
        merge(self._parts, other._parts)
