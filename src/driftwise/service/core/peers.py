"""The questions of streams and services about other servers of the same database, answered for a server without others.

A replica's answers are in replica/peers.py and replica/watch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from driftwise.service.core.overdue import Overdue
from driftwise.service.wire.protocol import StreamAnswer

if TYPE_CHECKING:
    from driftwise.service.core.serving import Service
    from driftwise.service.core.stream import Stream


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
