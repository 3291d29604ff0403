"""A stream: decisions and rewards of a group become rows, which are visible only when the group is on disk.

`write` passes the rows to the store; `publish` and `undo` report whether they were committed. `peers` answers what
depends on other servers that write to the same stream.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from driftwise._internal.rng import key
from driftwise.agent.record import automatic_id, check_not_automatic, checked_id, new_process
from driftwise.errors import BadInput, DriftwiseError
from driftwise.kernels.chance import WORD, uniform
from driftwise.kernels.point import Floats
from driftwise.ledger import LESSONS, NOT_SENT, Conflict, Verdict, settle
from driftwise.service.core.fold import EVERY, Fold
from driftwise.service.core.offers import FREE, Offer, Offers, stored_arms
from driftwise.service.core.peers import Alone, Peers
from driftwise.service.core.setup import Setup
from driftwise.service.core.steps import hashed_unit, steps_of
from driftwise.service.stores.records import (
    DecisionRow,
    DetailRow,
    EraRow,
    Failed,
    GuardrailRow,
    RewardRow,
    StreamRow,
)
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import (
    Counts,
    DecideBody,
    Decided,
    RampAnswer,
    Refusal,
    RewardBody,
    Rewarded,
    StreamAnswer,
)

SNAPSHOT_EVERY = 10_000  # rewards
_MOST_METRIC = 1e15  # of which intervals take fourth powers
_KEPT = 20_000  # decisions in memory, which are found without reading the store
_TEXT = msgspec.json.Encoder().encode
_NO_LIMITS: tuple[bytes | None, bytes | None] = (None, None)
_ID, _ARM_SET = (DecisionRow._fields.index(name) for name in ("id", "arm_set"))


class KnownDecision:
    """A decision in memory: its answer, the sha256 of its arms, the vector for learning, and its reward.

    `items` and `context` are hashes of the texts of its row, which may be long. `limits` is a hash of the limits that
    are stored beside the row; None if they were not read yet.
    """

    __slots__ = ("answer", "born", "context", "items", "limits", "number", "sha256", "unit", "value", "verdict", "x")

    def __init__(
        self, answer: Decided, sha256: bytes | None, born: int, x: Floats | None, items: str | None,
        context: str | None, unit: int | None, limits: int | None = None,
    ) -> None:  # fmt: skip
        self.answer, self.sha256, self.born, self.x, self.unit, self.limits = answer, sha256, born, x, unit, limits
        self.items, self.context = hash(items), hash(context)
        self.value, self.verdict, self.number = 0.0, Verdict.OPEN, 0  # of its reward

    def settle(self, value: float, verdict: str, number: int) -> None:
        """Note its reward, sent or default, with the number of the reward."""
        self.value, self.verdict, self.number = value, Verdict(verdict), number


class Stream:
    """One stream. `seq`, `rewarded` and `learned` include what the current group will write."""

    kept: tuple[int, int, int]  # seq, rewarded and learned as they are on disk
    defaults: dict[str, int]  # numbers of rewards on disk that are defaults, by verdict
    imported: int  # the number of the last imported decision
    skipped: int  # numbers up to it that no decision has

    def __init__(
        self, row: StreamRow, setup: Setup, fold: Fold, store: Store, peers_of: Callable[[Stream], Peers] = Alone
    ) -> None:
        self.row, self.setup, self.fold, self.store = row, setup, fold, store
        self.paused = row.paused
        self.gone = False  # whether it was deleted; requests that waited meanwhile are refused
        self.metrics: set[str] = set()  # the guardrails that it has or had
        self.clock = setup.clock()
        last = store.last_decision(row.id)
        self.seq, self.clock.newest = (0, 0) if last is None else (last.seq, last.born)
        self.duplicates = 0  # rewards that were sent again, since this process started
        self.overtime = 0  # rewards that came after their decision got its default, since then; no row records them
        self.process = new_process()
        self.known: OrderedDict[str, KnownDecision] = OrderedDict()
        self.begin_era(setup, fold)
        self._decided: list[tuple[list[Any], Offer]] = []
        self._ahead = 0  # how many of these are in the transaction
        self._rewarded: list[RewardRow] = []
        self._digests: list[Any] = []
        self._snapshot: Any = None
        self._guardrails: list[GuardrailRow] = []
        self._details: list[DetailRow] = []
        self.stand()
        self.peers = peers_of(self)

    def stand(self) -> None:
        """Continue where the state ends."""
        self.rewarded, self.learned = self.fold.seq, 0
        for row in self.store.rewards(self.row.id, self.rewarded - 1, self.rewarded):
            self.learned, self.clock.newest = row.learned, max(self.clock.newest, row.tick)
        self.kept = (self.seq, self.rewarded, self.learned)
        self.defaults = self._defaults_upto(self.rewarded)

    def begin_era(self, setup: Setup, fold: Fold) -> None:
        """Decide with another state from now on."""
        self.setup, self.fold = setup, fold
        self.metrics |= set(setup.body.guardrails or ())
        self.read_steps()
        self.offers = Offers(setup.policy, setup.encoder())
        drawn = key(setup.body.seed, "baseline")
        self._draw = (drawn & WORD, (drawn >> 32) & WORD)

    def read_steps(self) -> None:
        """Read its pause, fallback and ramp step from its events."""
        self.steps = steps_of(self.store.events(self.row.id), self.fold.era, self.setup)

    @property
    def era(self) -> EraRow:
        return self.fold.era

    # ---------------------------------------------------------------------------------------- decide

    def decide(self, asked: DecideBody, offer: Offer, at: float, trace: str | None = None) -> Decided:
        """Make a decision, or return the one that this id already has."""
        self.check_there()
        stored = _NO_LIMITS if offer.limits is FREE else offer.limits.stored(offer.arms.count)
        found = None if asked.id is None else self.find(checked_id(asked.id))
        if found is None:
            try:
                return self._decide(asked, offer, at, trace, stored)
            except Failed:
                raise
            except DriftwiseError:  # another replica may have made the decision of an id that was assumed to be new
                found = None if asked.id is None else self.find(asked.id, surely=True)
                if found is None:
                    raise
        if found.limits is None:
            detail = self.store.detail(self.row.id, found.answer.seq)
            found.limits = hash(_NO_LIMITS if detail is None else (detail.allowed, detail.cost))
        _check_same(found, asked, offer, hash(stored), found.answer.seq <= self.imported)
        return found.answer

    def _decide(
        self, asked: DecideBody, offer: Offer, at: float, trace: str | None, stored: tuple[bytes | None, bytes | None]
    ) -> Decided:
        if asked.id is not None:
            check_not_automatic(asked.id)
        if self.paused and self.steps.fallback is None:
            raise Refusal("stream_paused")
        seq, arms, fold = self.peers.number(), offer.arms, self.fold
        born, upon = self.clock.born(at, fold.tick)
        choice, share, draws, explored = fold.choose(arms, upon, seq, offer.limits)
        if not (isfinite(choice.score) and isfinite(choice.mean) and isfinite(choice.bonus)):
            got = f"score {choice.score}, mean {choice.mean}"
            raise BadInput("policy", got, "finite scores", "PUT …/policy with numbers of another size, or reset")
        id = automatic_id(seq, self.process) if asked.id is None else asked.id
        arm, propensity, cohort, unit = self._played(asked, choice.arm, share, offer, seq)
        item = None if offer.items is None else offer.items[arm]
        score, mean, bonus = choice.score + 0.0, choice.mean + 0.0, choice.bonus + 0.0
        answer = Decided(
            id=id, arm=arm, item=item, score=score, mean=mean, bonus=bonus, propensity=propensity,
            explored=explored, seq=seq, state_seq=fold.seq, cohort=cohort,  # type: ignore[arg-type]
            proposed=None if cohort == "live" else choice.arm,
        )  # fmt: skip
        items = _items_text(offer)
        self._decided.append(([  # a DecisionRow whose arm_set gets its number when it is written
            self.row.id, seq, id, fold.era.number, fold.seq, born, at, None, arms.count, arm, item, propensity,
            choice.arm, share, score, mean, bonus, int(explored), draws, cohort, unit, offer.context, items,
        ], offer))  # fmt: skip
        self.seq, self.clock.newest = seq, max(born, self.clock.newest)
        x = arms.columns[:, :, arm : arm + 1].copy()
        self.known[id] = KnownDecision(answer, offer.sha256, born, x, items, offer.context, unit, hash(stored))
        if trace is not None or stored is not _NO_LIMITS:
            self._details.append(DetailRow(self.row.id, seq, *stored, trace, None))
        return answer

    def _played(
        self, asked: DecideBody, arm: int, share: float, offer: Offer, seq: int
    ) -> tuple[int, float | None, str, int | None]:
        """The arm that is played, its propensity, the cohort, and the unit to which it is counted."""
        body, limits, count, unit = self.setup.body, offer.limits, offer.arms.count, asked.unit
        if body.mode == "holdback" and unit is None:
            unit = asked.id
        hashed = None if unit is None else hashed_unit(body.seed, unit)
        if body.mode == "shadow":  # a fallback cannot change what the caller plays
            if asked.action is None or asked.action >= count:
                raise Refusal("missing_action", f"a shadow stream needs action: the arm played, 0 to {count - 1}")
            if limits.place(asked.action) is None:
                raise BadInput("action", asked.action, "an arm that is allowed", "leave allowed out, or add the action")
            return asked.action, asked.propensity, "shadow", hashed
        if asked.action is not None or asked.propensity is not None:
            raise Refusal("unexpected_action")
        if self.paused:
            return _fallback(self.steps.fallback, offer), 1.0, "fallback", hashed
        if body.mode == "holdback":
            if hashed is None:
                raise Refusal("missing_unit")
            if hashed + 2**63 < self.steps.held * 2.0**64:
                if body.baseline == "first":
                    return limits.arm(0), 1.0, "baseline", hashed
                count = count if limits.places is None else len(limits.places)
                place = min(int(uniform(*self._draw, seq, 0, 0) * count), count - 1)
                return limits.arm(place), 1.0 / count, "baseline", hashed
        return arm, share, "live", hashed

    # ---------------------------------------------------------------------------------------- reward

    def reward(self, asked: RewardBody, at: float) -> Rewarded:
        """Learn the reward of a decision once."""
        self.check_there()
        terms = self.setup.terms
        try:
            value = terms.checked(asked.value) + 0.0
            metrics = [(name, self._metric(name, one)) for name, one in sorted((asked.metrics or {}).items())]
        except BadInput:  # it may have been learned by a policy with another range or other guardrails
            known = self.find(checked_id(asked.id), surely=True)
            if known is None or known.verdict is Verdict.OPEN or known.value != asked.value:
                raise
            return self._again(known)
        self.peers.lead()
        known = self.find(checked_id(asked.id))
        if known is None:
            raise Refusal("unknown_decision")
        self.clock.newest = max(self.clock.newest, known.born)  # another replica's clock may be ahead
        overdue = terms.overdue(known.born, self.clock.read(at, self.learned))
        if terms.default is not None:
            self.peers.expire(at)
            if overdue:  # more may be due than are learned per group
                self.default(asked.id, at)
        verdict = settle(known.verdict, known.value, value, overdue, self._kept_out(known))
        if isinstance(verdict, Conflict):
            raise Refusal("other_reward", f"this decision has the reward {known.value!r}")
        if known.verdict is not Verdict.OPEN:
            return self._again(known)
        if known.x is None:
            raise Refusal("forgotten_decision")
        if verdict is Verdict.LEARNED:
            if known.x.shape[1] != self.setup.policy.dim:
                raise Refusal("other_dimension")
            self._lesson(known, value, at)
        self._record(asked.id, known, value, at, verdict)
        self._guardrails += [GuardrailRow(self.row.id, self.rewarded, *one) for one in metrics]
        return Rewarded(verdict=verdict.value, seq=self.rewarded)  # type: ignore[arg-type]

    def check_there(self) -> None:
        """Refuse what waited while the stream was deleted."""
        if self.gone:
            raise Refusal("stream_deleted")

    def _metric(self, name: str, value: float) -> float:
        """The value of a metric. A stream with guardrails knows their names, so that no ramp waits for a misspelt
        one."""
        if self.setup.body.guardrails and name not in self.metrics:
            wanted = f"a guardrail of the stream: {', '.join(sorted(self.metrics))}"
            raise BadInput("metrics", name, wanted, "correct the name, or declare it with PUT …/policy")
        if not abs(value) <= _MOST_METRIC:
            wanted = f"a number from -{_MOST_METRIC:g} to {_MOST_METRIC:g}"
            raise BadInput(f"metrics.{name}", value, wanted, "leave it out")
        return value

    def limit(self, at: float) -> float:
        """The tick before which a decision must be created for its time to be over now."""
        return self.setup.terms.limit(self.clock.read(at, self.learned))

    def default(self, id: str, at: float) -> None:
        """Learn the stream's default for a decision whose time is over, if it is open."""
        known, terms = self.find(id), self.setup.terms
        if known is None or known.verdict is not Verdict.OPEN:
            return
        assert terms.default is not None, "called only if the stream has a default"
        learned = known.x is not None and known.x.shape[1] == self.setup.policy.dim and not self._kept_out(known)
        try:
            if learned:
                self._lesson(known, terms.default, at)
        except DriftwiseError:  # the request that runs now did not cause this
            learned = False
        self._record(id, known, terms.default, at, terms.unanswered(learned))

    def _kept_out(self, known: KnownDecision) -> bool:
        """Whether a decision is not learned: a fallback, or a unit of the analysis cohort."""
        if known.answer.cohort == "fallback":
            return True
        share, unit = self.setup.body.keep_out, known.unit
        return bool(share) and unit is not None and key(self.setup.body.seed, "kept out", str(unit)) < share * 2.0**64

    def _lesson(self, known: KnownDecision, value: float, at: float) -> None:
        assert known.x is not None, "called only if the arms are known"
        self.fold.lesson(known.x, value, self.clock.read(at, self.learned), known.born)
        self.learned += 1

    def _record(self, id: str, known: KnownDecision, value: float, at: float, verdict: Verdict) -> None:
        """Add the row of a reward, with the digest and the snapshot that are due."""
        self.rewarded += 1
        self.fold.newest = self.rewarded
        lesson = verdict in LESSONS
        tick = self.clock.read(at, self.learned - lesson)  # the tick of this reward, which `learned` already counts
        self._rewarded.append(RewardRow(
            self.row.id, self.rewarded, id, value, tick, at, verdict.value, self.learned, known.born,
            None if known.x is None else known.x.tobytes(),
        ))  # fmt: skip
        known.settle(value, verdict, self.rewarded)
        if self.rewarded % EVERY == 0:
            self._digests.append(self.fold.digest_behind())
            if self.rewarded % SNAPSHOT_EVERY == 0:
                self._snapshot = self.fold.snapshot_behind()

    def _again(self, known: KnownDecision) -> Rewarded:
        """Count a reward for a decision that already has one. The first reward, or the default, stays."""
        if known.verdict in NOT_SENT:
            self.overtime += 1
        else:
            self.duplicates += 1
        verdict = settle(known.verdict, known.value, known.value)
        return Rewarded(verdict=verdict.value, seq=known.number)  # type: ignore[arg-type]

    # ---------------------------------------------------------------------------------------- the group

    @property
    def touched(self) -> bool:
        """Whether the group has rows of this stream."""
        return bool(self._decided or self._rewarded)

    def write(self) -> None:
        """Write the group's rows into the store's transaction."""
        store = self.store
        self.write_decisions()
        if self._rewarded:
            store.add_rewards(self._rewarded)
        if self._digests:
            store.add_digests(self._digests)
        if self._snapshot is not None:
            store.add_snapshot(self._snapshot)
        if self._guardrails:
            store.add_guardrails(self._guardrails)

    def write_decisions(self) -> None:
        """Write the decisions of the group that are not in the transaction yet."""
        decided, self._ahead = self._decided[self._ahead :], len(self._decided)
        if decided:
            sets = self.store.arm_sets([(offer.sha256, offer.arms.count, offer.data) for _, offer in decided])
            for (row, _), number in zip(decided, sets, strict=True):
                row[_ARM_SET] = number
            self.store.add_decisions([row for row, _ in decided])
        if self._details:
            self.store.add_details(self._details)
            self._details = []

    def publish(self) -> None:
        """The group was committed."""
        self.fold.publish()
        for reward in self._rewarded:
            self.count_default(reward.verdict)
        self.kept = (self.seq, self.rewarded, self.learned)
        self.peers.publish(len(self._decided))
        self._clear()

    def undo(self) -> None:
        """The transaction failed; roll back. The ids of the group are looked up again when they are sent again.
        Automatic ids get another suffix, so that an id that the store rejected is not tried twice."""
        self.fold.drop()
        for reward in self._rewarded:
            self.known.pop(reward.id, None)
        for row, _ in self._decided:
            self.known.pop(row[_ID], None)
        self.peers.undo()
        self.seq, self.rewarded, self.learned = self.kept
        self.process = new_process()
        self._clear()

    def _clear(self) -> None:
        """Prepare for the next group. Decisions may be evicted only now, because those of a group are only in
        memory."""
        self._decided, self._rewarded, self._digests, self._snapshot, self._ahead = [], [], [], None, 0
        self._guardrails, self._details = [], []
        while len(self.known) > _KEPT:
            self.known.popitem(last=False)

    # ---------------------------------------------------------------------------------------- asking

    def find(self, id: str, surely: bool = False) -> KnownDecision | None:
        """A decision by its id, from memory or from the store. `surely`: also one of another replica."""
        known = self.known.get(id)
        if known is not None:
            return known
        row = None if not surely and self.peers.is_new(id) else self.store.decision(self.row.id, id)
        if row is None:
            return None
        found = stored_arms(self.store, row)
        x = sha256 = None
        if found is not None:
            sha256, rows = found
            x = rows[row.arm].reshape(1, -1, 1).copy()
        known = KnownDecision(decided(row), sha256, row.born, x, row.candidates, row.context, row.unit)
        reward = self.store.reward(self.row.id, id)
        if reward is not None:
            known.settle(reward.value, reward.verdict, reward.seq)
        self.known[id] = known
        return known

    def answer(self) -> StreamAnswer:
        """The state of the stream as it is on disk."""
        seq, body = self.kept[0], self.setup.body
        return StreamAnswer(
            stream=self.row.name, mode=body.mode, clock=body.clock, policy=self.setup.policy.digest,
            era=self.era.number, paused=self.paused, seq=seq, state_seq=self.fold.seq, digest=self.fold.digest(),
            counts=self.counts, ramp=self._ramp(),
        )  # fmt: skip

    def _ramp(self) -> RampAnswer | None:
        if self.setup.body.ramp is None:
            return None
        return RampAnswer(place=self.steps.place, share=1.0 - self.steps.held, stopped=self.steps.stopped)

    @property
    def counts(self) -> Counts:
        """Counts of decisions and rewards by outcome, with the agent's names (see `Counts`)."""
        decided, (_, rewarded, learned) = self.peers.decided, self.kept
        defaulted, expired, kept = (self.defaults[name] for name in ("defaulted", "expired", "kept"))
        return Counts(
            decided=decided, learned=learned - defaulted, late=rewarded - learned - expired - kept + self.overtime,
            open=decided - rewarded, defaulted=defaulted, kept=kept,
        )

    def _defaults_upto(self, rewarded: int) -> dict[str, int]:
        """Defaults among the rewards up to a number, by verdict. Queried only if a policy of the stream ever had a
        default, because the store scans all rewards for them."""
        made = {"defaulted": 0, "expired": 0, "kept": 0}
        eras = self.store.eras(self.row.id)
        bodies, events = [msgspec.json.decode(era.body) for era in eras], self.store.events(self.row.id)
        imports = [one for one in events if one.kind == "imported"]  # at most one: a stream that decided takes no log
        self.imported = sum(one.decided for one in imports)
        self.skipped = self.imported - sum(msgspec.json.decode(one.body)["decisions"] for one in imports)
        self.metrics |= {name for body in bodies for name in body.get("guardrails") or ()}
        told = any(event.kind in ("paused", "imported") for event in events)
        if told or any(body.get("default_reward") is not None or body.get("keep_out") for body in bodies):
            made |= self.store.defaults(self.row.id, rewarded)
        return made

    def count_default(self, verdict: str) -> None:
        """Count a reward on disk if it is a default."""
        if verdict in self.defaults:
            self.defaults[verdict] += 1


def _fallback(fallback: int | str | None, offer: Offer) -> int:
    """The arm of the fallback."""
    arm = fallback
    if isinstance(fallback, str):
        arm = offer.items.index(fallback) if offer.items is not None and fallback in offer.items else None
    if isinstance(arm, int) and arm < offer.arms.count and offer.limits.place(arm) is not None:
        return arm
    raise Refusal("fallback_not_offered")


def _items_text(offer: Offer) -> str | None:
    """The names of an offer as its row stores them."""
    return None if offer.items is None else _TEXT(offer.items).decode()


def _check_same(found: KnownDecision, asked: DecideBody, offer: Offer, limits: int, imported: bool) -> None:
    """Refuse an id that comes again with another request: the old decision would not answer it. If the arms were
    forgotten there is nothing to compare, not even a digest, because a digest would reveal them.

    Items in a context are compared by name, because their registered rows may have changed since. An imported decision
    of another policy counts as a caller's and may have been asked for without an action.
    """
    answer, other = found.answer, ""
    played = (answer.arm, answer.propensity) if answer.cohort == "shadow" else (None, None)
    optional = answer.cohort == "shadow" and imported
    if found.sha256 is None:
        raise Refusal("forgotten_decision")
    named = found.items == hash(_items_text(offer))
    encoded = offer.context is not None and found.context == hash(offer.context)
    if found.sha256 != offer.sha256 and not (named and encoded):
        other = "arms"
    elif not named:
        other = "items"
    elif found.limits != limits:
        other = "allowed or cost"
    elif asked.action != played[0] and not (optional and asked.action is None):
        other = "action"
    elif asked.propensity != played[1] and not (optional and asked.propensity is None):
        other = "propensity"
    if other:
        raise Refusal("other_decision", f"this id was decided with another request: other {other}")


def decided(row: DecisionRow) -> Decided:
    """The answer that was given for a row."""
    return Decided(
        id=row.id, arm=row.arm, item=row.item, score=row.score, mean=row.mean, bonus=row.bonus,
        propensity=row.propensity, explored=bool(row.explored), seq=row.seq, state_seq=row.state_seq,
        cohort=row.cohort, proposed=None if row.cohort == "live" else row.proposed,  # type: ignore[arg-type]
    )  # fmt: skip
