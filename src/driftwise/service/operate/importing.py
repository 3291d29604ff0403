"""`driftwise import`: a log (docs/contract.md#logs) becomes the rows of a stream, as if the stream had made them.

The import is one transaction: if the log has an error or the process is killed, nothing is imported. Rewards are folded
in their order, and digests and snapshots are written where a server writes them. Then every decision is made again: the
policy's own choices must agree with the log to the last bit. Choices of others (a baseline, a shadow's caller) are
taken from the log, and the policy's proposal is computed.
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
from driftwise.errors import BadInput
from driftwise.policies.plain import revision_in
from driftwise.service.core.fold import EVERY, Fold
from driftwise.service.core.origin import check_machine
from driftwise.service.core.recompute import again, arms_of, eras_of, same, upon
from driftwise.service.core.setup import Era
from driftwise.service.core.stream import SNAPSHOT_EVERY
from driftwise.service.core.verify import Found, Refolding
from driftwise.service.stores.opening import check_there, written_alone
from driftwise.service.stores.records import DecisionRow, DetailRow, DigestRow, EraRow, EventRow, RewardRow
from driftwise.service.stores.store import seal, seal_era
from driftwise.tables.check import check_log
from driftwise.tables.logs import Log
from driftwise.tables.schema import Batch

_NEEDED = ("seq", "decision_id", "at", "born", "arm", "x", "propensity", "score", "mean", "bonus", "policy",
           "state_seq", "reward", "reward_at", "reward_tick", "reward_seq", "verdict", "arms")  # fmt: skip
_MORE = ("item", "explored", "context", "candidates", "cohort", "upon", "draws", "trace", "stream")
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
        self.era = self._numbered(era.row)
        self.fold = Fold(self.era, era.setup)
        self.seen = self.rewarded = self.last = 0  # decisions, learned rewards, and the largest number of a decision
        self.waiting: list[RewardRow] = []  # rewards that are not folded yet
        self.mode = era.setup.body.mode

    def _numbered(self, era: EraRow) -> EraRow:
        """The era, starting at the first decision of the log. One server numbers its decisions without a gap."""
        found = np.sort(np.concatenate([batch.seq for batch in self.log.batches(["seq"]) if batch.seq is not None]))
        gaps = np.flatnonzero(np.diff(found) != 1)
        if gaps.size and not self.store.shared:
            number = int(found[gaps[0] + 1])
            wanted = "numbers without a gap, as one server gives them"
            raise self._bad(number, "seq", number, wanted, "import it into PostgreSQL, whose replicas leave gaps")
        if self.store.shared or found[0] == 1:
            return era
        begun = era._replace(after=int(found[0]) - 1)
        self.store.run("UPDATE era SET after = ?, seal = ? WHERE stream = ? AND number = ?",
                       values=(begun.after, seal_era(begun), era.stream, era.number))  # fmt: skip
        return begun

    def __call__(self) -> Imported:
        columns = [*_NEEDED, *(name for name in _MORE if name in self.log.columns)]
        for batch in self.log.batches(columns, _ROWS):
            self._write(batch)
            self.advance(batch.rows)
        self._learn()
        store, stream = self.store, self.era.stream
        store.skip_numbers(stream, self.last)
        self._decide_again()
        if self.fold.seq % SNAPSHOT_EVERY:
            store.add_snapshot(self.fold.snapshot_behind())
        told = {"decisions": self.seen, "parts": [part.digest() for part in self.log.parts]}
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
                self.waiting.append(self._reward(batch, row, made, arms))
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
        if state_seq < 0:
            raise batch.bad(row, "state_seq", None, "the number of rewards known then", "leave out earlier decisions")
        if self.mode != "shadow" and batch.policy[row] != self.era.policy:
            theirs, own = str(batch.policy[row]), self.era.policy
            got = f"{theirs[:12]}…, revision {revision_in(theirs)}"
            wanted = f"decisions of the stream's policy, {own[:12]}…, revision {revision_in(own)}"
            raise batch.bad(row, "policy", got, wanted, "make the stream by that policy, or as a shadow")
        context, names = batch.context and batch.context[row], batch.candidates and batch.candidates[row]
        propensity, live = float(batch.propensity[row]), cohort == "live"
        score, mean, bonus = (float(one[row]) if live else 0.0 for one in (batch.score, batch.mean, batch.bonus))
        made = DecisionRow(
            self.era.stream, seq, id, self.era.number, int(state_seq), int(batch.born[row]), _seconds(batch.at[row]),
            None, len(arms), arm, names[arm] if names else batch.item and batch.item[row],
            None if math.isnan(propensity) else propensity, arm, propensity if live else 1.0, score, mean, bonus,
            int(batch.explored[row]) if live and batch.explored is not None else 0,
            max(int(batch.draws[row]), 0) if live and batch.draws is not None else 0, cohort, None,
            None if context is None else canonical(context).decode(), None if names is None else _TEXT(names).decode(),
        )  # fmt: skip
        moved = batch.upon is not None and batch.upon[row] not in (-1, upon(self.setup, made))
        if moved or (self.setup.tick is None and made.born != state_seq + 1):
            raise batch.bad(row, "born", made.born, "a tick that counts learned rewards, as the stream's clock does")
        self.last = max(self.last, seq)
        trace = batch.trace and batch.trace[row]
        return made, arms, [DetailRow(self.era.stream, seq, None, None, trace, None)] if trace else []

    def _cohort(self, batch: Any, row: int) -> str:
        """Who chose: in a shadow the caller, in other streams the cohort in the log."""
        return "shadow" if self.mode == "shadow" else (batch.cohort and batch.cohort[row]) or "live"

    def _reward(self, batch: Any, row: int, made: DecisionRow, arms: Any) -> RewardRow:
        number, value, tick = int(batch.reward_seq[row]), float(batch.reward[row]), int(batch.reward_tick[row])
        terms, at, due, before = self.setup.terms, _seconds(batch.reward_at[row]), self.setup.tick, self.rewarded
        last = self.waiting[-1].tick if self.waiting else self.fold.tick if before else tick
        self.rewarded += 1
        limits = (
            ("reward_seq", number, number == self.rewarded, f"every learned reward in order: {self.rewarded} is next"),
            ("reward", value, terms.low <= value <= terms.high, f"a reward from {terms.low:g} to {terms.high:g}"),
            ("reward_tick", tick, tick >= last, f"ticks that never decrease, from {last} on"),
            ("reward_tick", tick, due is not None or tick == number, "a tick that counts the rewards learned"),
            ("reward_tick", tick, due is None or abs(tick - at / due) <= 1.0 + _SLACK / due, f"ticks of {due} seconds"),
            ("state_seq", made.state_seq, made.state_seq < number, "a number below that of its own reward"),
            ("verdict", batch.verdict[row], terms.was_due(batch.verdict[row], value, made.born, tick),
             "the stream's default, when it was due"),
        )  # fmt: skip
        for column, got, good, wanted in limits:
            if not good:
                raise batch.bad(row, column, got, wanted)
        return RewardRow(made.stream, number, made.id, value + 0.0, tick, at, batch.verdict[row], number, made.born,
                         arms[made.arm].tobytes())  # fmt: skip

    def _learn(self, most: int | None = None) -> None:
        """Write and fold the rewards that wait, with the digests and snapshots that a server writes."""
        rows, self.waiting = self.waiting[:most], self.waiting[len(self.waiting) if most is None else most :]
        if not rows:
            return
        self.store.add_rewards(rows)
        self.fold.learn_rows(rows)
        if self.fold.seq % EVERY == 0:
            self.store.add_digests([DigestRow(self.era.stream, self.era.number, self.fold.seq, self.fold.digest())])
        if self.fold.seq % SNAPSHOT_EVERY == 0:
            self.store.add_snapshot(self.fold.snapshot_behind())

    # ------------------------------------------------------------------------------------ decisions again

    def _decide_again(self) -> None:
        """Make every decision again, on its state, which is folded once more from the rows."""
        era, store, found, fills = Era(self.era, self.setup), self.store, Found("log"), []
        way = Refolding(store, era, None, found)
        for row in store.decisions(self.era.stream, self.era.number):
            self.advance(1)
            fold, arms = way.to(row.state_seq), arms_of(store, row)
            if fold is None or arms is None or fold.seq != row.state_seq:
                wanted = "a state not older than those of earlier decisions"
                raise self._bad(row.seq, "state_seq", row.state_seq, wanted)
            picked = again(fold, self.setup, row, arms)
            if row.cohort != "live":
                fills.append(_filled(row, picked))
            elif not same(row, picked):
                got = f"arm {row.arm}, score {row.score!r}; this stream gives {picked[0].arm}, {picked[0].score!r}"
                wanted = "choices that can be recomputed: the same epsilon and seed, no costs (a log has none)"
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
