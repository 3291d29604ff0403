"""`driftwise import`: a log (docs/contract.md#logs) becomes the rows of a stream, as if the stream had made them.

The import is one transaction: if the log has an error or the process is killed, nothing is imported. Rewards are
learned in their order, and digests and snapshots are written where a server writes them. Then every decision is made
again: the policy's own choices must agree with the log to the last bit. Choices of others (a baseline, a shadow's
caller) are taken from the log, and the policy's proposal is computed.
"""

from __future__ import annotations

import math
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from driftwise._internal.container import canonical
from driftwise._internal.progress import bar
from driftwise._internal.validate import one_of
from driftwise.agent.choosing import checked_price
from driftwise.errors import BadInput
from driftwise.policies.plain import revision_in
from driftwise.service.core.fold import EVERY, Fold
from driftwise.service.core.offers import limits_of
from driftwise.service.core.origin import check_machine
from driftwise.service.core.recompute import again, arms_of, eras_of, same, upon
from driftwise.service.core.setup import Era
from driftwise.service.core.stream import SNAPSHOT_EVERY
from driftwise.service.core.verify import Found, Refolding
from driftwise.service.stores.opening import check_there, written_alone
from driftwise.service.stores.records import DecisionRow, DetailRow, DigestRow, EventRow, RewardRow
from driftwise.service.stores.store import seal
from driftwise.tables.check import check_log
from driftwise.tables.logs import Log
from driftwise.tables.schema import Batch

_NEEDED = ("seq", "decision_id", "at", "born", "arm", "x", "propensity", "score", "mean", "bonus", "policy",
           "state_seq", "reward", "reward_at", "reward_tick", "reward_seq", "verdict", "arms")  # fmt: skip
_MORE = ("item", "explored", "context", "candidates", "cohort", "upon", "draws", "trace", "stream", "reward_sent",
         "unit_hash", "unit_seeds", "costs")  # fmt: skip
_ROWS = 2_000  # rows of the log that are written at a time
_TEXT = msgspec.json.Encoder().encode
_SLACK = 61.0  # seconds that a server's clock may be held back
_FILL = ("UPDATE decision SET proposed = ?, share = ?, score = ?, mean = ?, bonus = ?, explored = ?, draws = ?, "
         "seal = ? WHERE stream = ? AND seq = ?")  # fmt: skip


class Imported(NamedTuple):
    """The numbers of written decisions and rewards, and the digest of the state."""

    decisions: int
    rewards: int
    digest: str


def import_log(path: str | Path, stream: str, source: Any, progress: bool | None = None) -> Imported:
    """Write a log into a stream without decisions, in a database that no server has open."""
    check_there(path)
    log = check_log(source)
    log.require(_NEEDED, "which the rows of a service need")
    with written_alone(path) as store:
        rows = {row.name: row.id for row in store.streams()}
        one_of("stream", stream, list(rows))
        if store.shared:
            store.lock(rows[stream], 2**62)
        if store.last_decision(rows[stream]) is not None:
            wanted = "a stream without decisions, whose state is the log's"
            raise BadInput("stream", f"{stream}, which has decisions", wanted, "PUT a new stream with the same body")
        era = eras_of(store, rows[stream])[-1]
        check_machine(store.path, stream, era)
        with bar("rows", 2 * log.rows, progress) as advance:
            return _Importing(store, era, log, advance)()


class _Importing:
    """The import of a log into a stream, in the current transaction."""

    def __init__(self, store: Any, era: Era, log: Log, advance: Any) -> None:
        self.store, self.setup, self.log, self.advance = store, era.setup, log, advance
        self.era, self.fold = era.row, Fold(era.row, era.setup)
        self.seen = self.rewarded = self.last = 0  # decisions, rewards, and the largest number of a decision
        self.lessons = [0]  # numbers of the rewards that were learned
        self.tick: int | None = None  # of the last reward
        self.newest = (-math.inf, "", 0)  # the time of the newest decision, its policy and its number
        self.ahead = (math.inf, 0)  # the fewest ticks by which a row is ahead of its time, and its decision's number
        self.seeds: set[int] = set()  # by which units were hashed in the log, beside the stream's own
        self.waiting: list[RewardRow] = []  # rewards that are not folded yet
        self.mode = era.setup.body.mode

    def __call__(self) -> Imported:
        columns = [*_NEEDED, *(name for name in _MORE if name in self.log.columns)]
        for batch in self.log.batches(columns, _ROWS):
            self._write(batch)
            self.advance(batch.rows)
        self._learn()
        self._check_ticks()
        _, theirs, seq = self.newest
        if self.mode != "shadow" and theirs != self.era.policy:
            got, own = f"{theirs[:12]}…, revision {revision_in(theirs)}", self.era.policy
            wanted = f"a log whose newest decision the stream's policy made, {own[:12]}…, revision {revision_in(own)}"
            raise self._bad(seq, "policy", got, wanted, "make the stream by that policy, or as a shadow")
        store, stream = self.store, self.era.stream
        store.skip_numbers(stream, self.last)
        self._decide_again()
        if self.fold.seq % SNAPSHOT_EVERY:
            store.add_snapshot(self.fold.snapshot_behind())
        told = {"decisions": self.seen, "parts": [part.digest() for part in self.log.parts]}
        told |= {"seeds": sorted(self.seeds)} if self.seeds else {}
        at = next((row.at for row in store.rewards(stream, self.rewarded - 1)), 0.0)
        number = len(store.events(stream)) + 1
        store.add_events([EventRow(stream, number, at, "imported", self.last, self.rewarded, canonical(told).decode())])
        return Imported(self.seen, self.rewarded, self.fold.digest())

    # ------------------------------------------------------------------------------------ rows

    def _write(self, batch: Batch) -> None:
        """Check and write the rows of a batch."""
        decisions, details, sets = [], [], []
        for row in range(batch.rows):
            made, arms, detail = self._decision(batch, row)
            data = arms.tobytes()
            sets.append((sha256(data).digest(), len(arms), data))
            decisions.append(made)
            details += detail
            if not math.isnan(batch.reward[row]):  # type: ignore[index]
                self.waiting.append(self._lesson(batch, row, made, arms))
            elif batch.reward_sent is not None and not math.isnan(batch.reward_sent[row]):
                self.waiting.append(self._unlearned(batch, row, made, arms))
        numbers = self.store.arm_sets(sets)
        self.store.add_decisions([one._replace(arm_set=set) for one, set in zip(decisions, numbers, strict=True)])
        if details:
            self.store.add_details(details)
        self.seen += len(decisions)
        while len(self.waiting) >= EVERY:
            self._learn(EVERY)

    def _decision(self, batch: Any, row: int) -> tuple[DecisionRow, Any, list[DetailRow]]:
        seq, id, arm, state_seq = int(batch.seq[row]), batch.decision_id[row], int(batch.arm[row]), batch.state_seq[row]
        arms, cohort = batch.arms[row] + 0.0, self._cohort(batch, row)
        if not 0 <= arm < len(arms) or arms.shape[1] != self.setup.policy.dim:
            raise batch.bad(row, "arms", f"{arms.shape}", f"all arms, of {self.setup.policy.dim} numbers each")
        if (batch.x[row] + 0.0).tobytes() != arms[arm].tobytes():
            raise batch.bad(row, "x", batch.x[row], "the vector of the arm that was played")
        if not state_seq < len(self.lessons):
            way_out = "a log from which rewards were forgotten cannot be imported"
            wanted = f"at most {len(self.lessons) - 1}, the learned rewards so far"
            raise batch.bad(row, "state_seq", int(state_seq), wanted, way_out)
        context, names = batch.context and batch.context[row], batch.candidates and batch.candidates[row]
        propensity, live = float(batch.propensity[row]), cohort == "live"
        score, mean, bonus = (float(one[row]) if live else 0.0 for one in (batch.score, batch.mean, batch.bonus))
        unit, known = 0 if batch.unit_hash is None else int(batch.unit_hash[row]), self.lessons[max(state_seq, 0)]
        made = DecisionRow(
            self.era.stream, seq, id, self.era.number, known, int(batch.born[row]), _seconds(batch.at[row]),
            None, len(arms), arm, names[arm] if names else batch.item and batch.item[row],
            None if math.isnan(propensity) else propensity, arm, propensity if live else 1.0, score, mean, bonus,
            int(batch.explored[row]) if live and batch.explored is not None else 0,
            max(int(batch.draws[row]), 0) if live and batch.draws is not None else 0, cohort, unit or None,
            None if context is None else canonical(context).decode(), None if names is None else _TEXT(names).decode(),
        )  # fmt: skip
        moved = batch.upon is not None and batch.upon[row] not in (-1, upon(self.setup, made))
        if moved or (self.setup.tick is None and state_seq >= 0 and made.born != state_seq + 1):
            raise batch.bad(row, "born", made.born, "a tick that counts learned rewards, as the stream's clock does")
        self.last, self.newest = max(self.last, seq), max(self.newest, (made.at, str(batch.policy[row]), seq))
        if batch.unit_seeds is not None and batch.unit_seeds[row] is not None:
            self.seeds |= set(map(int, batch.unit_seeds[row]))
        if self.setup.tick is not None and made.born >= 0:
            self.ahead = min(self.ahead, (made.born - made.at / self.setup.tick, seq))
        trace, costs = batch.trace and batch.trace[row], batch.costs and batch.costs[row]
        if costs is not None:
            costs = checked_price(self.setup.policy, costs, len(arms)).tobytes()
        detail = DetailRow(self.era.stream, seq, None, costs, trace, None)
        return made, arms, [detail] if trace or costs else []

    def _cohort(self, batch: Any, row: int) -> str:
        """Who chose: in a shadow the caller, in other streams the cohort in the log. What the policy did not choose on
        a state of this log, because it was another policy or before a reset, is taken as a caller's choice."""
        told = (batch.cohort and batch.cohort[row]) or "live"
        own = batch.policy[row] == self.era.policy and batch.state_seq[row] >= 0
        return "shadow" if self.mode == "shadow" or (told == "live" and not own) else told

    def _lesson(self, batch: Any, row: int, made: DecisionRow, arms: Any) -> RewardRow:
        number, value, tick = int(batch.reward_seq[row]), float(batch.reward[row]), int(batch.reward_tick[row])
        terms, due, learned = self.setup.terms, self.setup.tick, len(self.lessons)
        last, at = tick if self.tick is None else self.tick, _seconds(batch.reward_at[row])
        ahead = 0.0 if due is None else tick - at / due  # more than 0 since a clock was set back
        limits = (
            ("reward_seq", number, number == learned, f"every learned reward in order: {learned} is next"),
            ("reward_tick", tick, tick >= last, f"ticks that never decrease, from {last} on"),
            ("reward_tick", tick, due is not None or tick == number, "a tick that counts the rewards learned"),
            ("reward_tick", tick, due is None or ahead >= -1.0 - _SLACK / due, f"ticks of {due} seconds"),
            ("verdict", batch.verdict[row], terms.was_due(batch.verdict[row], value, made.born, tick),
             "the stream's default, when it was due"),
        )  # fmt: skip
        for column, got, good, wanted in limits:
            if not good:
                raise batch.bad(row, column, got, wanted)
        self.lessons.append(self.rewarded + 1)
        self.ahead = min(self.ahead, (ahead, made.seq))
        return self._reward(batch, row, "reward", made, tick, arms)

    def _unlearned(self, batch: Any, row: int, made: DecisionRow, arms: Any) -> RewardRow:
        """A reward that came late, of a fallback or of a unit that does not teach. Its tick is that of the reward
        before, because nothing is computed from it."""
        return self._reward(batch, row, "reward_sent", made, self.tick or 0, arms)

    def _reward(self, batch: Any, row: int, column: str, made: DecisionRow, tick: int, arms: Any) -> RewardRow:
        terms, value = self.setup.terms, float(getattr(batch, column)[row])
        if not terms.low <= value <= terms.high:
            raise batch.bad(row, column, value, f"a reward from {terms.low:g} to {terms.high:g}")
        self.rewarded, self.tick = self.rewarded + 1, tick
        return RewardRow(made.stream, self.rewarded, made.id, value + 0.0, tick, _seconds(batch.reward_at[row]),
                         batch.verdict[row], len(self.lessons) - 1, made.born, arms[made.arm].tobytes())  # fmt: skip

    def _learn(self, most: int | None = None) -> None:
        """Write and learn the rewards that wait, with the digests and snapshots that a server writes."""
        rows, self.waiting = self.waiting[:most], self.waiting[len(self.waiting) if most is None else most :]
        if not rows:
            return
        self.store.add_rewards(rows)
        self.fold.learn_rows(rows)
        if self.fold.seq % EVERY == 0:
            self.store.add_digests([DigestRow(self.era.stream, self.era.number, self.fold.seq, self.fold.digest())])
        if self.fold.seq % SNAPSHOT_EVERY == 0:
            self.store.add_snapshot(self.fold.snapshot_behind())

    def _check_ticks(self) -> None:
        """Refuse a log of shorter ticks than the stream's. Rows are ahead of their time after a clock was set back."""
        due, (ahead, seq) = self.setup.tick, self.ahead
        if due is not None and 1.0 + _SLACK / due < ahead < math.inf:
            raise self._bad(seq, "born", f"{ahead:.0f} ticks ahead of its time", f"ticks of {due} seconds")

    # ------------------------------------------------------------------------------------ decisions again

    def _decide_again(self) -> None:
        """Make every decision again, on its state, which is learned once more from the rows."""
        era, store, found, fills = Era(self.era, self.setup), self.store, Found("log"), []
        way = Refolding(store, era, None, found)
        for row in store.decisions(self.era.stream, self.era.number):
            self.advance(1)
            fold, arms = way.to(row.state_seq), arms_of(store, row)
            if fold is None or arms is None or fold.seq != row.state_seq:
                wanted = "a state not older than those of earlier decisions"
                way_out = "import it into PostgreSQL, whose replicas decide in any order"
                raise self._bad(row.seq, "state_seq", row.state_seq, wanted, way_out)
            limits = limits_of(store.detail(self.era.stream, row.seq), row.n)
            picked = again(fold, self.setup, row, arms, limits)
            if row.cohort != "live":
                fills.append(_filled(row, picked))
            elif not same(row, picked):
                got = f"arm {row.arm}, score {row.score!r}; this stream gives {picked[0].arm}, {picked[0].score!r}"
                wanted = "choices that can be recomputed: the same epsilon and seed, and the costs if there were any"
                raise self._bad(row.seq, "score", got, wanted, "make the stream with the log's settings, or a shadow")
            if len(fills) >= _ROWS:
                fills = self._fill(fills)
        self._fill(fills)

    def _fill(self, fills: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if fills:
            self.store.run(_FILL, rows=fills)
        return []

    def _bad(self, seq: int, column: str, got: object, wanted: str, way_out: str = "correct the log") -> BadInput:
        """The error about the row of a decision."""
        for batch in self.log.batches(["seq"]):
            rows = np.flatnonzero(batch.seq == seq)
            if rows.size:
                return batch.bad(int(rows[0]), column, got, wanted, way_out)
        raise AssertionError("called only for rows of the log")


def _filled(row: DecisionRow, picked: Any) -> tuple[Any, ...]:
    """The policy's own choice, for a row that a baseline, a fallback or the caller chose."""
    choice, share, draws, explored = picked
    made = row._replace(proposed=choice.arm, share=share, score=choice.score + 0.0, mean=choice.mean + 0.0,
                        bonus=choice.bonus + 0.0, explored=int(explored), draws=draws)  # fmt: skip
    return (*made[12:19], seal(made), made.stream, made.seq)


def _seconds(at: Any) -> float:
    """A time of a log, in seconds; a log has microseconds."""
    return float(at.astype("datetime64[us]").astype(np.int64)) / 1e6
