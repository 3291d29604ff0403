"""Group commit: waiting requests are processed together, written in one transaction, and answered after it.

`CommitEngine` has the streams, the queue and the rows of the current group. `Groups` takes a group from the queue to
its answers; replica/groups.py does so if other servers write to the store too.
"""

from __future__ import annotations

import asyncio
import bisect
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from driftwise.errors import DriftwiseError
from driftwise.service.core.stream import Stream
from driftwise.service.core.waiting import LONG, SHORT, Queue, Waiting, WorkBatch, answer_of, halves, settle_group
from driftwise.service.stores.records import Broken, Failed, Full, Held, Lost, Rejected
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import Refusal, error_of, refusal_of

# The upper ends of the bins of commit times, in seconds.
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
_HELD = 1.0  # seconds that requests wait for a lock of another process before they are refused
_AGAIN = 0.02  # seconds between two attempts to take it
BROKEN = 4  # the exit code after a failed sync
Turn = Callable[[list[Waiting]], None]


class CommitEngine:
    """All writing of a server goes through here, one group at a time."""

    def __init__(self, store: Store, turn_of: Callable[[CommitEngine], Turn]) -> None:
        self.store = store
        self.streams: dict[str, Stream] = {}
        self.full = ""  # why nothing can be written now
        self.away = ""  # why the store cannot be reached or is locked by another process
        self.stopping = False
        self.commits = [0] * (len(BUCKETS) + 1)
        self.commit_seconds = 0.0
        self._extra: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []
        self.unexpected: Callable[[Exception], None] = lambda error: None  # called with an unexpected exception
        self.turn = turn_of(self)
        self.queue = Queue(self.turn)
        self.submit, self.enter, self.idle = self.queue.submit, self.queue.enter, self.queue.idle
        self._jobs: SimpleQueue[Any] = SimpleQueue()  # work, its callback, the callback's event loop; or None
        self._thread = Thread(target=self._work, name="driftwise commit", daemon=True)
        self._thread.start()

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], Any]) -> None:
        """Do work in the engine's thread and return its result on the event loop. No group starts before it is done."""
        self.queue.busy = True
        self._jobs.put((work, then, asyncio.get_running_loop()))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, then, loop = job
            loop.call_soon_threadsafe(then, work())

    def also(self, write: Callable[[], None], then: Callable[[], None]) -> None:
        """Add a write to the current group, and a function to call when it is on disk. For work in the group."""
        self._extra.append(write)
        self._after.append(then)

    # ------------------------------------------------------------------------------------ steps of a group

    @staticmethod
    def work(group: list[Waiting], places: Iterable[int], answers: list[Any]) -> None:
        """Do the work at some places of a group."""
        for place in places:
            answers[place] = answer_of(group[place].work)

    @property
    def touched(self) -> list[Stream]:
        return [stream for stream in self.streams.values() if stream.touched]

    def write(self) -> list[Stream] | None:
        """Write the group's rows into the transaction, and return their streams. If there are no rows, end the
        transaction and return none."""
        touched = self.touched
        if not touched and not self._extra:
            self.store.rollback()
            return None
        for stream in touched:
            stream.write()
        if self._extra:
            self.store.take_time()
        for write in self._extra:
            write()
        return touched

    def commit(self) -> float:
        """Commit; the group is on disk when this returns. Returns the seconds it took."""
        began = time.perf_counter()
        self.store.commit()
        spent = time.perf_counter() - began
        self.commits[bisect.bisect_left(BUCKETS, spent)] += 1
        self.commit_seconds += spent
        return spent

    def publish(self, touched: list[Stream]) -> None:
        """Publish the group, which is on disk."""
        for stream in touched:
            stream.publish()
        after, self._extra, self._after = self._after, [], []
        for then in after:
            then()

    def take_back(self) -> None:
        """The transaction failed; roll back the in-memory state."""
        self.store.rollback()
        for stream in self.streams.values():
            stream.undo()
        self._extra, self._after = [], []

    def without_room(self, error: Full) -> Refusal:
        self.full = str(error)
        return Refusal("disk_full")

    def refused(self, error: Exception, one: Waiting) -> Any:
        """The answer to the one request that a group failed for."""
        if not isinstance(error, DriftwiseError):
            self.unexpected(error)
            error = Refusal("internal_error")
        return [error_of(error)] if isinstance(one.work, WorkBatch) else refusal_of(error)

    def close(self) -> None:
        """Write a snapshot of every stream, so that the next start is fast, and close the store."""
        self._jobs.put(None)
        self._thread.join()
        with self.store.stopping():
            try:
                if not self.away:
                    self.store.begin()
                    for stream in self.streams.values():
                        if stream.fold.seq > stream.era.first:
                            self.store.add_snapshot(stream.fold.snapshot_behind())
                    self.store.commit()
            except (Full, Held, Lost):  # the next start folds instead
                self.store.rollback()
            except Broken as error:
                end(error)
            self.store.close()


class Groups:
    """Groups of a server that is alone on its store: processed on the event loop, committed in the engine's thread.

    While a commit runs, requests of the next group are read and wait. They are decided after the commit, on the state
    it published, so a group that could not be written has affected no other. A single request is committed on the event
    loop, which saves two switches between threads. So is a group if syncs are short, because the switches would take
    longer than the reading that they allow.

    A group that fails for another reason than a full disk, a lock or a broken store is rolled back, divided and done
    again in halves, so that only the request that caused the failure is refused.
    """

    def __init__(self, engine: CommitEngine) -> None:
        self.engine = engine
        self._once: Waiting | None = None  # the last request that was done again alone
        self._since = 0.0  # the time since which another process holds the store's lock
        self._usual = LONG  # the recent seconds of a commit
        self._last = 1  # the size of the last group

    def __call__(self, group: list[Waiting]) -> None:
        """Decide what waits, write it, and have it committed."""
        if not group and not self._since:  # an empty group tests whether the store's lock is free again
            return
        engine = self.engine
        answers: list[Any] = [None] * len(group)
        try:
            engine.store.begin()  # before ids are looked up: one lock per group is cheaper than one per lookup
            engine.work(group, range(len(group)), answers)
            touched = engine.write()
        except Broken as error:
            end(error)
        except Exception as error:
            self._failed(error, group, answers)
            return
        if touched is None:
            self._since, engine.away = 0.0, ""
            settle_group(group, answers)
            engine.queue.next()
            return
        in_place = len(group) == self._last == 1 or self._usual < SHORT
        self._last = len(group)
        if in_place:
            self._done(touched, group, answers, self._commit())
        else:
            engine.in_thread(self._commit, partial(self._done, touched, group, answers))

    def _commit(self) -> Failed | None:
        """Commit the group; it is on disk if this returns None."""
        try:
            spent = self.engine.commit()
        except (Full, Held) as error:
            return error
        except BaseException as error:
            end(error)
        self.engine.queue.patience = min(0.25 * spent, LONG)
        self._usual += 0.25 * (min(spent, LONG) - self._usual)
        return None

    def _done(self, touched: list[Stream], group: list[Waiting], answers: list[Any], error: Failed | None) -> None:
        """After a commit: publish, start the next group, then answer this one."""
        engine, queue = self.engine, self.engine.queue
        queue.busy = False
        if error is not None:
            self._failed(error, group, answers)
            return
        engine.full, engine.away, self._since = "", "", 0.0
        engine.publish(touched)
        queue.done(len(group))
        if queue.waiting and not queue.again and queue.patience < SHORT:
            queue.take()
        settle_group(group, answers)
        queue.next()

    def _failed(self, error: Exception, group: list[Waiting], answers: list[Any]) -> None:
        """The transaction failed, and the in-memory state is rolled back. Unless the disk was full or the store locked,
        one request is the cause, and bisection finds it."""
        engine, queue = self.engine, self.engine.queue
        engine.take_back()
        if isinstance(error, Held):
            self._wait_for(error, group)
        elif isinstance(error, Full):
            refusal = engine.without_room(error)
            settle_group(group, [answer if isinstance(answer, DriftwiseError) else refusal for answer in answers])
        elif parts := halves(group):
            queue.again[:0] = parts
        elif isinstance(error, Rejected) and self._once is not group[0]:  # its id may be known by now
            self._once = group[0]
            queue.again.insert(0, group)
        else:
            settle_group(group, [engine.refused(error, one) for one in group])
        queue.next()

    def _wait_for(self, error: Held, group: list[Waiting]) -> None:
        """Another process holds the store's lock: retry soon. After a while all requests are refused until the lock is
        free."""
        engine, queue, now = self.engine, self.engine.queue, time.monotonic()
        self._since = self._since or now
        if group:
            queue.again.insert(0, group)
        if now - self._since > _HELD:
            engine.away = str(error)
            queue.refuse(Refusal("database_held"))
        if queue.again or not engine.stopping:
            queue.take_in(_AGAIN)


def end(error: BaseException) -> None:
    """End the process at once, without answers: after a failed sync the contents of the disk are unknown."""
    print(f"driftwise: the store failed, so no answer can be given: {error}", file=sys.stderr, flush=True)
    os._exit(BROKEN)
