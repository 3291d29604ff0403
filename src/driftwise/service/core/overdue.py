"""Decisions whose time is over without a reward: their default is learned, the oldest first (docs/contract.md#rewards).

What waits is read from the store a stretch at a time, because there may be millions. A default is a row like that of
any reward, so that a fold, a verify and an export know nothing of clocks.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from driftwise.ledger import Verdict
from driftwise.service.stores.records import OpenRow
from driftwise.service.stores.store import Store

if TYPE_CHECKING:
    from driftwise.service.core.stream import Stream

STRETCH = 1_000
LOOKED = 20_000  # decisions that are looked through at a time, a twentieth of a second: after a start there are many
MOST = 1_000  # defaults that are learned at a time: after a long stop there are many


class Overdue:
    """What had no reward when it was read; births never run backwards, so that numbers are in their order."""

    def __init__(self, store: Store, stream: int) -> None:
        self._store, self._stream = store, stream
        self._waiting: deque[OpenRow] = deque()
        self._read = 0  # the decision up to which the store was asked
        self._taken: list[OpenRow] = []  # by the group at hand

    def expire(self, stream: Stream, at: float) -> None:
        """Learn the defaults that are due now, so many at a time."""
        before = stream.limit(at)
        for _ in range(MOST):
            if not self._waits(before, stream.kept[0]):
                return
            self._taken.append(self._waiting.popleft())
            known = stream.find(self._taken[-1].id)
            if known is not None and known.verdict is Verdict.OPEN:
                stream.default(self._taken[-1].id, known, at)

    def _waits(self, before: float, kept: int) -> bool:
        """Whether the oldest of the `kept` decisions on disk was born before a tick."""
        if not self._waiting and self._read < kept:  # as far as others can wait for; the next look goes on
            upto = min(kept, self._read + LOOKED)
            found = self._store.open_decisions(self._stream, self._read, upto, STRETCH)
            self._read = found[-1].seq if len(found) == STRETCH else upto
            self._waiting.extend(found)
        return bool(self._waiting) and self._waiting[0].born < before

    def publish(self) -> None:
        """The group is on disk."""
        self._taken.clear()

    def undo(self) -> None:
        """The group has never been: whom it took waits again."""
        self._waiting.extendleft(reversed(self._taken))
        self._taken.clear()
