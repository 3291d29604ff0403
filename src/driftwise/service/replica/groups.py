"""Groups of one replica of several: processed in the engine's thread from their first lock to their commit.

A group may have to wait for the network, and for the lock of a stream that another replica writes to. Decisions need no
lock. They are made and written first, so that no replica waits for them. Rewards first learn what other replicas wrote
(`lead`), so that they get the next numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from driftwise.service.core.engine import CommitEngine, end
from driftwise.service.core.waiting import LONG, Waiting, halves
from driftwise.service.replica.peers import others
from driftwise.service.stores.records import Broken, Failed, Full, Held, Lost, WriteConflict
from driftwise.service.wire.protocol import Refusal

_TRIES = 4  # attempts of a group that conflicts with another replica's


class JointGroups:
    """The processing of groups where other replicas write to the store too."""

    refresh: Callable[[], None]  # read at once what other replicas changed

    def __init__(self, engine: CommitEngine) -> None:
        self.engine = engine
        self.store: Any = engine.store

    def __call__(self, group: list[Waiting]) -> None:
        if group:
            self.engine.in_thread(partial(self._group, group), self._over)

    def hang(self, why: str) -> None:
        """On the event loop: the database does not answer. Refuse waiting and new requests until it does."""
        self.engine.away, self.engine.queue.shut = why, _unanswered
        self.engine.queue.refuse(_unanswered())

    def _group(self, group: list[Waiting]) -> list[tuple[Waiting, Any]]:
        """In the thread: write a group, and return each request with its answer or refusal."""
        error: Exception | None = None
        engine = self.engine
        for number in range(_TRIES):
            try:
                began = time.perf_counter()
                answers = self._tried(group, careful=number > 0)
                engine.full, engine.away = "", self._blocked()
                engine.queue.patience = min(0.25 * (time.perf_counter() - began), LONG)
                return list(zip(group, answers, strict=True))
            except Exception as met:
                error = met
                engine.take_back()
            if not self._once_more(error):
                break
        assert error is not None
        if isinstance(error, Full):
            refusal = engine.without_room(error)
        elif isinstance(error, (Lost, Held)):
            refusal = Refusal("uncertain_write", f"the group may not have been written: {type(error).__name__}")
        elif parts := halves(group):
            return [told for part in parts for told in self._group(part)]
        elif isinstance(error, WriteConflict):
            refusal = Refusal("replica_conflict")
        else:
            return [(one, engine.refused(error, one)) for one in group]
        return [(one, refusal) for one in group]

    def _once_more(self, error: Exception) -> bool:
        """Whether a group that failed for this is to be done again as it is."""
        if isinstance(error, WriteConflict):
            with suppress(Failed):
                self.refresh()  # the cause may be another era, or another stream of this name
            return True
        if isinstance(error, Broken):
            end(error)
        if isinstance(error, (Lost, Held)):
            self.engine.away = str(error)
        if isinstance(error, Held):
            with suppress(Failed):
                self.store.end_stopped()
            return bool(self._blocked())  # then without the requests that need the lock of that stream
        return False

    def _blocked(self) -> str:
        """The streams whose locks a replica holds that makes no progress."""
        held = [name for name, stream in self.engine.streams.items() if others(stream).held]
        return f"another replica holds the locks of streams {', '.join(held)}" if held else ""

    def _tried(self, group: list[Waiting], careful: bool) -> list[Any]:
        engine = self.engine
        peers = [others(stream) for stream in engine.streams.values()]
        for one in peers:
            one.careful = careful
        answers: list[Any] = [None] * len(group)
        learning = [place for place, one in enumerate(group) if hasattr(one.work, "leads")]
        engine.work(group, sorted(set(range(len(group))) - set(learning)), answers)
        if not self.store.in_transaction:
            self.store.begin()
        for stream in engine.touched:
            stream.write_decisions()
        leads = {group[place].work.leads for place in learning}  # type: ignore[attr-defined]
        for stream in sorted(leads, key=lambda one: one.row.id):
            if not (others(stream).held or stream.gone):
                stream.peers.lead()  # in one order, so that two replicas never wait for each other
        engine.work(group, learning, answers)
        touched = engine.write()
        if touched is not None:
            engine.commit()
            engine.publish(touched)
        for one in peers:
            one.leading = False
        return answers

    def _over(self, told: list[tuple[Waiting, Any]]) -> None:
        """On the event loop again."""
        queue = self.engine.queue
        queue.busy, queue.shut = False, None
        queue.done(len(told))
        for one, answer in told:
            one.tell(answer)
        queue.next()


def _unanswered() -> Refusal:
    return Refusal("database_silent")
