"""A stream that other replicas decide and learn on too: numbers that nobody else has, and rewards in one order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from driftwise.agent.record import is_automatic
from driftwise.ledger import LESSONS, Verdict
from driftwise.service.core.fold import Fold, resume
from driftwise.service.core.offers import Offer
from driftwise.service.core.overdue import MOST, Overdue
from driftwise.service.core.setup import Setup
from driftwise.service.core.stream import Known, Stream
from driftwise.service.stores.postgres import PostgresStore, Replica
from driftwise.service.stores.records import Broken, Conflict, EraRow, Held, RewardRow, StreamRow
from driftwise.service.wire.protocol import DecideBody, Decided, Refusal, RewardBody, Rewarded, StreamAnswer

_FEW = 64  # lessons from others that are published at once


class SharedOverdue(Overdue):
    """Decisions of all replicas whose time is over: by their births, because numbers are no order here."""

    _store: PostgresStore

    def __init__(self, store: PostgresStore, stream: int) -> None:
        super().__init__(store, stream)
        self._from = 0.0  # nothing older is open, but for what a replica writes late

    def expire(self, stream: Stream, at: float) -> None:
        before = stream.limit(at)
        found = self._store.overdue(self._stream, self._from, before, MOST)
        if found:
            stream.lead()  # another may have closed some of them meanwhile: what it wrote is known now
        for row in found:
            known = stream.find(row.id)
            if known is not None and known.verdict is Verdict.OPEN:
                stream.default(row.id, known, at)
        if len(found) < MOST:
            self._from = max(self._from, before - (stream.setup.terms.expire_after or 0.0))


class SharedStream(Stream):
    """A stream that other replicas decide and learn on too."""

    store: PostgresStore

    def __init__(self, row: StreamRow, setup: Setup, fold: Fold, store: PostgresStore) -> None:
        super().__init__(row, setup, fold, store)
        self._stand_at(fold)
        self.forgotten = 0  # up to which reward this replica knows that vectors are erased
        self.overdue = SharedOverdue(store, row.id)
        self._numbers = range(0)
        self._ahead = 0  # decisions of the group that are in the transaction
        self.leading = False
        self.held = False  # whether another replica holds its lock, and does not go on
        self.careful = False  # whether ids of decisions are looked for in the store before they are used
        self.others: list[Replica] = []
        self.numbered = 0  # up to which numbers were given out when somebody looked
        self.head = self.rewarded  # the newest reward there was when somebody looked
        self.decided_by_all = store.decided(row.id)

    def _stand_at(self, fold: Fold) -> None:
        """Where a fold is: what came since it was made is caught up with as everything else is."""
        store, stream = self.store, self.row.id
        self.rewarded = fold.seq
        self.learned = next((one.learned for one in store.rewards(stream, fold.seq - 1, fold.seq)), 0)
        self.kept = (self.seq, self.rewarded, self.learned)
        self.defaults = self.defaults_upto(fold.seq)

    def forget(self, upto: int, era: EraRow, setup: Setup) -> None:
        """Another replica erased what rewards up to a number were about: let go of it too. Where they were not learned
        here yet, go on from the snapshot that stands for them."""
        self.forgotten = upto
        if self.rewarded < upto:
            self.begin_era(setup, resume(self.store, era, setup))
            self._stand_at(self.fold)
            self.known.clear()
        for id in [id for id, known in self.known.items() if 0 < known.number <= upto]:
            del self.known[id]
        if era.number == self.era.number:
            self.fold.era = era

    @property
    def decided(self) -> int:
        return self.decided_by_all

    @property
    def last(self) -> int:
        return max(self.kept[0], self.numbered)

    @property
    def replicas(self) -> tuple[tuple[str, int], ...]:
        return tuple((one.name, one.folded) for one in self.others)

    def decide(self, asked: DecideBody, offer: Offer, at: float) -> Decided:
        """As alone, by a number that no other replica has."""
        if not self._numbers:
            self._numbers = self.store.numbers(self.row.id)
        self.seq = self._numbers[0] - 1
        answer = super().decide(asked, offer, at)
        if self.seq == self._numbers[0]:
            self._numbers = self._numbers[1:]
        return answer

    def find(self, id: str) -> Known | None:
        # An id that is new is as a rule new to all: its row would be refused, and the group done again with care.
        if id not in self.known and not self.careful and not self.leading and not is_automatic(id):
            return None
        return super().find(id)

    def reward(self, asked: RewardBody, at: float) -> Rewarded:
        self.lead()
        known = self.find(asked.id)
        if known is not None:  # another's clock may be ahead of ours: nothing is rewarded before it was decided
            self.clock.newest = max(self.clock.newest, known.born)
        return super().reward(asked, at)

    def lead(self) -> None:
        """Until the group is over nobody else learns; what they learned before is learned here first."""
        if self.leading:
            return
        if self.held:
            raise Refusal("stream_held", "another replica holds this stream's lock", "stream", "send it again", 1)
        try:
            head, rows = self.store.lock(self.row.id, self.rewarded)
        except Held:
            self.held = True
            raise
        if head.era != self.era.number:
            raise Conflict(f"stream {self.row.name} has begun another era")
        self._take(rows)
        if self.rewarded < head.rewarded:  # there were too many to come at once
            self.catch_up()
        if self.rewarded != head.rewarded:
            raise Broken(f"stream {self.row.name} has {self.rewarded} rewards where {head.rewarded} are due")
        self.leading = True

    def catch_up(self) -> None:
        """Learn what others wrote, in the order of its numbers."""
        self._take(self.store.rewards(self.row.id, self.rewarded))

    def _take(self, rows: Iterable[RewardRow]) -> None:
        fold, taken = self.fold, 0

        def publish() -> None:
            fold.publish()
            self.kept = (self.kept[0], self.rewarded, self.learned)

        for row in rows:
            if row.verdict in LESSONS:
                fold.lesson(_vector(row.x, self.setup.policy.dim), row.value, row.tick, row.born)
                taken += 1
            self.rewarded, self.learned = row.seq, row.learned
            self.count_default(row.verdict)
            self.clock.newest = max(self.clock.newest, row.tick)
            fold.newest = row.seq
            known = self.known.get(row.id)
            if known is not None:
                known.settle(row.value, row.verdict, row.seq)
            if taken == _FEW:
                publish()
                taken = 0
        publish()
        self.head = max(self.head, self.rewarded)

    def write_decisions(self, done: int = 0) -> None:
        """Those that are not written yet: they need no lock, and are to keep nobody waiting who does."""
        super().write_decisions(max(done, self._ahead))
        self._ahead = len(self._decided)

    def _clear(self) -> None:
        super()._clear()
        self._ahead = 0

    def publish(self) -> None:
        self.decided_by_all += len(self._decided)
        super().publish()
        self.leading, self.head = False, max(self.head, self.rewarded)

    def undo(self) -> None:
        """What is not certain to be unwritten keeps its numbers: new ones are taken."""
        super().undo()
        self._numbers, self.leading = range(0), False

    def release(self) -> None:
        """The group is over, and had nothing to write here."""
        self.leading = False

    @property
    def lag(self) -> int:
        """Rewards that others wrote and this replica has not learned yet."""
        return max(0, self.head - self.fold.seq)

    def answer(self) -> StreamAnswer:
        self.decided_by_all = self.store.decided(self.row.id)
        return super().answer()


def _vector(x: bytes | None, dim: int) -> Any:
    if x is None:
        raise Conflict("a reward was forgotten before it was learned here")
    if len(x) != 8 * dim:
        raise Broken("a reward without the vector that was played")
    return np.frombuffer(x, dtype="<f8").reshape(1, dim, 1).astype(np.float64)
