"""The questions of streams and services about other servers of the same database, answered for a server without others.

A replica's answers are in replica/peers.py and replica/watch.py. Decisions without a reward at their deadline are here
too: the default is learned, the oldest first (docs/contract.md#rewards). Open decisions are read from the store in
batches, because there may be millions. A default is stored as a row like any reward, so learning, `verify` and exports
need no clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from driftwise.service.stores.records import OpenRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import StreamAnswer

if TYPE_CHECKING:
    from driftwise.service.core.serving import Service
    from driftwise.service.core.stream import Stream

STRETCH = 1_000
LOOKED = 20_000  # decisions per read, which takes a twentieth of a second; after a start there may be many
MOST = 1_000  # defaults that are learned per group; after a long stop there may be many


class Overdue:
    """Decisions without a reward when they were read. Births never decrease, so the order of numbers is that of
    births."""

    def __init__(self, store: Store, stream: int) -> None:
        self._store, self._stream = store, stream
        self._waiting: deque[OpenRow] = deque()
        self._read = 0  # the last decision that was read from the store
        self._taken: list[OpenRow] = []  # those of the current group

    def expire(self, stream: Stream, at: float) -> None:
        """Learn the defaults that are due now, at most MOST of them."""
        before = stream.limit(at)
        for _ in range(MOST):
            if not self._waits(before, stream.kept[0]):
                return
            self._taken.append(self._waiting.popleft())
            stream.default(self._taken[-1].id, at)

    def _waits(self, before: float, kept: int) -> bool:
        """Whether the oldest of the `kept` decisions on disk was created before a tick."""
        if not self._waiting and self._read < kept:  # read a batch only, so that other requests need not wait long
            upto = min(kept, self._read + LOOKED)
            found = self._store.open_decisions(self._stream, self._read, upto, STRETCH)
            self._read = found[-1].seq if len(found) == STRETCH else upto
            self._waiting.extend(found)
        return bool(self._waiting) and self._waiting[0].born < before

    def publish(self) -> None:
        """The group was committed."""
        self._taken.clear()

    def undo(self) -> None:
        """The group was rolled back: its decisions are open again."""
        self._waiting.extendleft(reversed(self._taken))
        self._taken.clear()


class Peers(Protocol):
    """The part of a stream that knows which other servers decide and learn on it."""

    @property
    def decided(self) -> int:
        """The number of decisions on disk."""

    @property
    def last(self) -> int:
        """The largest number of a decision."""

    @property
    def lag(self) -> int:
        """The number of rewards of other servers that were not learned here yet."""

    @property
    def names(self) -> tuple[tuple[str, int], ...]:
        """The servers of the stream, and the last reward that each has learned; empty if there is one server."""

    def number(self) -> int:
        """The number of the next decision."""

    def is_new(self, id: str) -> bool:
        """Whether to assume that an id that is not in memory was never used."""

    def lead(self) -> None:
        """Prevent other servers from learning until the group is over, and learn what they learned before."""

    def expire(self, at: float) -> None:
        """Learn some of the defaults that are due now."""

    def publish(self, decided: int) -> None:
        """The group is on disk. `decided` is the number of its decisions."""

    def undo(self) -> None:
        """The group was rolled back."""


class Alone:
    """No other server writes to the stream."""

    lag = 0
    names: tuple[tuple[str, int], ...] = ()

    def __init__(self, stream: Stream) -> None:
        self._stream, self._overdue = stream, Overdue(stream.store, stream.row.id)
        self.undo = self._overdue.undo

    @property
    def decided(self) -> int:
        return self._stream.kept[0] - self._stream.skipped

    @property
    def last(self) -> int:
        return self._stream.kept[0]

    def number(self) -> int:
        return self._stream.seq + 1

    def is_new(self, id: str) -> bool:
        return False

    def lead(self) -> None:
        return

    def expire(self, at: float) -> None:
        self._overdue.expire(self._stream, at)

    def publish(self, decided: int) -> None:
        self._overdue.publish()


class Watch(Protocol):
    """The part of a service that knows what other servers change."""

    def start(self) -> None:
        """Start; the event loop runs."""

    async def look(self) -> None:
        """Read what other servers changed."""

    async def answer(self, stream: Stream) -> StreamAnswer:
        """The state of a stream as it is on disk."""

    def close(self) -> None:
        """Stop watching."""


class Unwatched:
    """No other server changes anything."""

    def __init__(self, service: Service) -> None:
        return

    def start(self) -> None:
        return

    def close(self) -> None:
        return

    async def look(self) -> None:
        return

    async def answer(self, stream: Stream) -> StreamAnswer:
        return stream.answer()
