"""What streams and services ask about other servers of the same database: the answers of a server that is alone.

Those of a replica are in replica/peers.py and replica/watch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from driftwise.service.core.overdue import Overdue
from driftwise.service.wire.protocol import StreamAnswer

if TYPE_CHECKING:
    from driftwise.service.core.serving import Service
    from driftwise.service.core.stream import Stream


class Peers(Protocol):
    """The part of a stream that knows who else decides and learns on it."""

    @property
    def decided(self) -> int:
        """How many decisions are on disk."""

    @property
    def last(self) -> int:
        """The largest number of a decision."""

    @property
    def lag(self) -> int:
        """Rewards of others that were not learned here yet."""

    @property
    def names(self) -> tuple[tuple[str, int], ...]:
        """Who serves the stream, and how far each has folded; nothing where one does."""

    def number(self) -> int:
        """The number of the next decision."""

    def is_new(self, id: str) -> bool:
        """Whether an id that is not at hand is taken for one that nobody used."""

    def lead(self) -> None:
        """Until the group is over nobody else learns; what they learned before is learned here first."""

    def expire(self, at: float) -> None:
        """Learn the defaults that are due now, so many at a time."""

    def publish(self, decided: int) -> None:
        """The group is on disk, with so many decisions."""

    def undo(self) -> None:
        """The group has never been."""


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
        """The event loop runs."""

    async def look(self) -> None:
        """Take in what others changed."""

    async def answer(self, stream: Stream) -> StreamAnswer:
        """What is on disk of a stream."""

    def close(self) -> None:
        """Look no more."""


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
