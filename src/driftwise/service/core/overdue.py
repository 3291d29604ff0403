"""Decisions without a reward at their deadline: the default is learned, the oldest first (docs/contract.md#rewards).

Open decisions are read from the store in batches, because there may be millions. A default is stored as a row like any
reward, so learning, `verify` and exports need no clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from driftwise.service.stores.records import OpenRow
from driftwise.service.stores.store import Store

if TYPE_CHECKING:
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
