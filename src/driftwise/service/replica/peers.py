"""A stream that other replicas decide and learn on too: numbers that nobody else has, and rewards in one order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from driftwise.agent.record import is_automatic
from driftwise.ledger import LESSONS, Verdict
from driftwise.service.core.fold import resume
from driftwise.service.core.overdue import MOST
from driftwise.service.core.setup import Setup
from driftwise.service.core.stream import Stream
from driftwise.service.stores.postgres import PostgresStore, Replica
from driftwise.service.stores.records import Broken, EraRow, Held, RewardRow, WriteConflict
from driftwise.service.wire.protocol import Refusal

_FEW = 64  # lessons from others that are published at once


def others(stream: Stream) -> Others:
    """That part of a stream of a replica."""
    return cast(Others, stream.peers)


class Others:
    """Who else decides and learns on a stream, and how far they are."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.store = cast(PostgresStore, stream.store)
        self.forgotten = 0  # up to which reward this replica knows that vectors are erased
        self.forgets = 0  # and how often it has heard that decisions of a unit are
        self._open_from = 0.0  # no open decision is older, but for what a replica writes late
        self._numbers = range(0)
        self.leading = False
        self.held = False  # whether another replica holds its lock, and does not go on
        self.careful = False  # whether ids of decisions are looked for in the store before they are used
        self.heard: list[Replica] = []
        self.numbered = 0  # up to which numbers were given out when somebody looked
        self.head = stream.rewarded  # the newest reward there was when somebody looked
        self.decided = self.store.decided(stream.row.id)

    @property
    def last(self) -> int:
        return max(self.stream.kept[0], self.numbered)

    @property
    def names(self) -> tuple[tuple[str, int], ...]:
        return tuple((one.name, one.folded) for one in self.heard)

    @property
    def lag(self) -> int:
        return max(0, self.head - self.stream.fold.seq)

    def number(self) -> int:
        """One that no other replica has."""
        if self._numbers and self._numbers[0] == self.stream.seq:  # the last decision has it
            self._numbers = self._numbers[1:]
        if not self._numbers:
            self._numbers = self.store.numbers(self.stream.row.id)
        return self._numbers[0]

    def is_new(self, id: str) -> bool:
        """An id that is new is as a rule new to all: its row would be refused, and the group done again with care."""
        return not self.careful and not self.leading and not is_automatic(id)

    def expire(self, at: float) -> None:
        """Decisions of all replicas whose time is over: by their births, because numbers are no order here."""
        stream = self.stream
        before = stream.limit(at)
        found = self.store.overdue(stream.row.id, self._open_from, before, MOST)
        if found:
            self.lead()  # another may have closed some of them meanwhile: what it wrote is known now
        for row in found:
            known = stream.find(row.id)
            if known is not None and known.verdict is Verdict.OPEN:
                stream.default(row.id, known, at)
        if len(found) < MOST:
            self._open_from = max(self._open_from, before - (stream.setup.terms.expire_after or 0.0))

    def lead(self) -> None:
        if self.leading:
            return
        if self.held:
            raise Refusal("stream_held")
        stream = self.stream
        try:
            head, rows = self.store.lock(stream.row.id, stream.rewarded)
        except Held:
            self.held = True
            raise
        if head.era != stream.era.number:
            raise WriteConflict(f"stream {stream.row.name} has begun another era")
        self._take(rows)
        if stream.rewarded < head.rewarded:  # there were too many to come at once
            self.catch_up()
        if stream.rewarded != head.rewarded:
            raise Broken(f"stream {stream.row.name} has {stream.rewarded} rewards where {head.rewarded} are due")
        self.leading = True

    def catch_up(self) -> None:
        """Learn what others wrote, in the order of its numbers."""
        self._take(self.store.rewards(self.stream.row.id, self.stream.rewarded))

    def _take(self, rows: Iterable[RewardRow]) -> None:
        stream, fold, taken = self.stream, self.stream.fold, 0

        def publish() -> None:
            fold.publish()
            stream.kept = (stream.kept[0], stream.rewarded, stream.learned)

        for row in rows:
            if row.verdict in LESSONS:
                fold.lesson(_vector(row.x, stream.setup.policy.dim), row.value, row.tick, row.born)
                taken += 1
            stream.rewarded, stream.learned = row.seq, row.learned
            stream.count_default(row.verdict)
            stream.clock.newest = max(stream.clock.newest, row.tick)
            fold.newest = row.seq
            known = stream.known.get(row.id)
            if known is not None:
                known.settle(row.value, row.verdict, row.seq)
            if taken == _FEW:
                publish()
                taken = 0
        publish()
        self.head = max(self.head, stream.rewarded)

    def forget(self, upto: int, era: EraRow, setup: Setup) -> None:
        """Another replica erased what rewards up to a number were about: let go of it too. Where they were not learned
        here yet, go on from the snapshot that stands for them."""
        stream = self.stream
        self.forgotten = upto
        if stream.rewarded < upto:
            stream.begin_era(setup, resume(self.store, era, setup))
            stream.stand()
            stream.known.clear()
        for id in [id for id, known in stream.known.items() if 0 < known.number <= upto]:
            del stream.known[id]
        if era.number == stream.era.number:
            stream.fold.era = era

    def publish(self, decided: int) -> None:
        self.decided += decided
        self.leading, self.head = False, max(self.head, self.stream.rewarded)

    def undo(self) -> None:
        """What is not certain to be unwritten keeps its numbers: new ones are taken."""
        self._numbers, self.leading = range(0), False


def _vector(x: bytes | None, dim: int) -> Any:
    if x is None:
        raise WriteConflict("a reward was forgotten before it was learned here")
    if len(x) != 8 * dim:
        raise Broken("a reward without the vector that was played")
    return np.frombuffer(x, dtype="<f8").reshape(1, dim, 1).astype(np.float64)
