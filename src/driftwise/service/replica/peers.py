"""A stream on which other replicas decide and learn too: distinct numbers, and rewards in one order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from driftwise.agent.record import is_automatic
from driftwise.ledger import LESSONS
from driftwise.service.core.fold import resume
from driftwise.service.core.peers import MOST
from driftwise.service.core.setup import Setup
from driftwise.service.core.stream import Stream
from driftwise.service.stores.postgres import PostgresStore, Replica
from driftwise.service.stores.records import Broken, EraRow, Held, RewardRow, WriteConflict
from driftwise.service.wire.protocol import Refusal

_FEW = 64  # rewards from others that are published together


def others(stream: Stream) -> Others:
    """The part of a replica's stream that knows the others."""
    return cast(Others, stream.peers)


class Others:
    """The other replicas that decide and learn on a stream, and how far they are."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.store = cast(PostgresStore, stream.store)
        self.forgotten = 0  # the last reward whose vector this replica knows to be erased
        self.forgets = 0  # how many erasures of a unit it has seen
        self._open_from = 0.0  # no open decision is older, except one that a replica writes late
        self._numbers = range(0)
        self.leading = False
        self.held = False  # whether another replica holds its lock and makes no progress
        self.careful = False  # whether ids of decisions are looked up in the store before they are used
        self.heard: list[Replica] = []
        self.numbered = 0  # the last number given out, at the last look
        self.head = stream.rewarded  # the newest reward, at the last look
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
        """A number that no other replica has."""
        if self._numbers and self._numbers[0] == self.stream.seq:  # the last decision has it
            self._numbers = self._numbers[1:]
        if not self._numbers:
            self._numbers = self.store.numbers(self.stream.row.id)
        return self._numbers[0]

    def is_new(self, id: str) -> bool:
        """Assume that an id is new to all replicas. If it is not, its row is rejected and the group is done again,
        `careful`.
        """
        return not self.careful and not self.leading and not is_automatic(id)

    def expire(self, at: float) -> None:
        """Decisions of all replicas whose time is over, by their ticks, because numbers are not in order of time
        here."""
        stream = self.stream
        before = stream.limit(at)
        found = self.store.overdue(stream.row.id, self._open_from, before, MOST)
        if found:
            self.lead()  # another replica may have closed some of them; read what it wrote
        for row in found:
            stream.default(row.id, at)
        if len(found) < MOST:
            self._open_from = max(self._open_from, before - (stream.setup.terms.expire_after or 0.0))

    def lead(self) -> None:
        self.stream.check_there()
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
            raise WriteConflict(f"stream {stream.row.name} has begun another generation, or was deleted")
        self._take(rows)
        if stream.rewarded < head.rewarded:  # there were too many for one read
            self.catch_up()
        if stream.rewarded != head.rewarded:
            raise Broken(f"stream {stream.row.name} has {stream.rewarded} rewards instead of {head.rewarded}")
        self.leading = True

    def catch_up(self) -> None:
        """Learn what others wrote, in the order of the numbers."""
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
        """Another replica erased the vectors of rewards up to a number: drop them from memory. If they were not learned
        here yet, continue from the snapshot that replaces them."""
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
        """Roll back. It is uncertain whether the rows were written, so their numbers are not used again."""
        self._numbers, self.leading = range(0), False


def _vector(x: bytes | None, dim: int) -> Any:
    if x is None:
        raise WriteConflict("a reward was forgotten before it was learned here")
    if len(x) != 8 * dim:
        raise Broken("a reward without the vector that was played")
    return np.frombuffer(x, dtype="<f8").reshape(1, dim, 1).astype(np.float64)
