"""Group commit: what waits is worked on at once, written in one transaction, and answered after it.

`Engine` has the streams, the queue and what the group at hand writes. How a group gets from the queue to its answers is
`Groups`' here, and replica/groups.py's where others write to the store too.
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

# Upper ends of what commits are counted by, in seconds.
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
_HELD = 1.0  # seconds that requests wait for a lock which another process holds, before they are refused
_AGAIN = 0.02  # and from try to try to take it
BROKEN = 4  # the exit code of a process whose disk can no longer be relied on
Turn = Callable[[list[Waiting]], None]


class Engine:
    """All writing of a server goes through here, one group at a time."""

    def __init__(self, store: Store, turn_of: Callable[[Engine], Turn]) -> None:
        self.store = store
        self.streams: dict[str, Stream] = {}
        self.full = ""  # why nothing can be written now
        self.away = ""  # why the store cannot be reached, or another process keeps it from us
        self.stopping = False
        self.commits = [0] * (len(BUCKETS) + 1)
        self.commit_seconds = 0.0
        self._extra: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []
        self.slip: Callable[[Exception], None] = lambda slip: None  # who is told of what should not happen
        self.turn = turn_of(self)
        self.queue = Queue(self.turn)
        self.submit, self.enter, self.idle = self.queue.submit, self.queue.enter, self.queue.idle
        self._jobs: SimpleQueue[Any] = SimpleQueue()  # work, who is told, on which event loop; or None
        self._thread = Thread(target=self._work, name="driftwise commit", daemon=True)
        self._thread.start()

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], Any]) -> None:
        """Have work done in the engine's thread, and its result told on the event loop. No group is taken before."""
        self.queue.busy = True
        self._jobs.put((work, then, asyncio.get_running_loop()))

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, then, loop = job
            loop.call_soon_threadsafe(then, work())

    def also(self, write: Callable[[], None], then: Callable[[], None]) -> None:
        """For work that is being done: something else to write with the group, and what to do when it is on disk."""
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
        """The group's rows, into the transaction: the streams they are of; none where there is nothing to write, and
        the transaction is over."""
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
        """The group is on disk when it returns: the seconds it took."""
        began = time.perf_counter()
        self.store.commit()
        spent = time.perf_counter() - began
        self.commits[bisect.bisect_left(BUCKETS, spent)] += 1
        self.commit_seconds += spent
        return spent

    def publish(self, touched: list[Stream]) -> None:
        """The group is on disk: others see it."""
        for stream in touched:
            stream.publish()
        after, self._extra, self._after = self._after, [], []
        for then in after:
            then()

    def take_back(self) -> None:
        """The group could not be written: it has never been."""
        self.store.rollback()
        for stream in self.streams.values():
            stream.undo()
        self._extra, self._after = [], []

    def without_room(self, slip: Full) -> Refusal:
        self.full = str(slip)
        return Refusal("disk_full")

    def refused(self, slip: Exception, one: Waiting) -> Any:
        """The answer to the one request that a group failed for."""
        if not isinstance(slip, DriftwiseError):
            self.slip(slip)
            slip = Refusal("internal_error")
        return [error_of(slip)] if isinstance(one.work, WorkBatch) else refusal_of(slip)

    def close(self) -> None:
        """A snapshot of every stream, so that the next start is quick, and the store is closed."""
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
            except Broken as slip:
                end(slip)
            self.store.close()


class Groups:
    """Groups of a server that has its store to itself: worked on on the event loop, committed in the engine's thread.

    While a group's commit runs, requests of the next one are read and gather; they are decided when the commit is over,
    on the state it published, so that a group that could not be written has touched nobody else. A request that is
    alone is committed in place, which saves two turns between threads; so is a group where syncs are short, because the
    turns would take longer than what could be read meanwhile.

    A group that fails for any reason but the store's room, lock or soundness is undone, divided and done again in
    halves: only the request which made it fail is refused.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._once: Waiting | None = None  # the last request that was done again by itself
        self._since = 0.0  # since when another process holds the store's lock
        self._usual = LONG  # seconds of a commit, as they lately were
        self._last = 1  # how many the last group had

    def __call__(self, group: list[Waiting]) -> None:
        """Decide what waits, write it, and have it committed."""
        if not group and not self._since:  # an empty one says whether the store's lock is free again
            return
        engine = self.engine
        answers: list[Any] = [None] * len(group)
        try:
            engine.store.begin()  # before ids are looked up: one lock a group is cheaper than one a lookup
            engine.work(group, range(len(group)), answers)
            touched = engine.write()
        except Broken as slip:
            end(slip)
        except Exception as slip:
            self._failed(slip, group, answers)
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
        """What is on disk when it returns None."""
        try:
            spent = self.engine.commit()
        except (Full, Held) as slip:
            return slip
        except BaseException as slip:
            end(slip)
        self.engine.queue.patience = min(0.25 * spent, LONG)
        self._usual += 0.25 * (min(spent, LONG) - self._usual)
        return None

    def _done(self, touched: list[Stream], group: list[Waiting], answers: list[Any], slip: Failed | None) -> None:
        """After a commit: publish, start the next group, then answer this one."""
        engine, queue = self.engine, self.engine.queue
        queue.busy = False
        if slip is not None:
            self._failed(slip, group, answers)
            return
        engine.full, engine.away, self._since = "", "", 0.0
        engine.publish(touched)
        queue.done(len(group))
        if queue.waiting and not queue.again and queue.patience < SHORT:
            queue.take()
        settle_group(group, answers)
        queue.next()

    def _failed(self, slip: Exception, group: list[Waiting], answers: list[Any]) -> None:
        """The group could not be written: it has never been. Where it was not for want of room or of the store's lock,
        one request is the reason, and is found by halves."""
        engine, queue = self.engine, self.engine.queue
        engine.take_back()
        if isinstance(slip, Held):
            self._wait_for(slip, group)
        elif isinstance(slip, Full):
            refusal = engine.without_room(slip)
            settle_group(group, [answer if isinstance(answer, DriftwiseError) else refusal for answer in answers])
        elif parts := halves(group):
            queue.again[:0] = parts
        elif isinstance(slip, Rejected) and self._once is not group[0]:  # its id may be known by now
            self._once = group[0]
            queue.again.insert(0, group)
        else:
            settle_group(group, [engine.refused(slip, one) for one in group])
        queue.next()

    def _wait_for(self, slip: Held, group: list[Waiting]) -> None:
        """Another process holds the store's lock: try again in a moment. After a while all that waits is refused, as is
        what comes, until the lock is free."""
        engine, queue, now = self.engine, self.engine.queue, time.monotonic()
        self._since = self._since or now
        if group:
            queue.again.insert(0, group)
        if now - self._since > _HELD:
            engine.away = str(slip)
            queue.refuse(Refusal("database_held"))
        if queue.again or not engine.stopping:
            queue.take_in(_AGAIN)


def end(slip: BaseException) -> None:
    """After a failed sync nobody knows what is on disk: end at once, answering nobody."""
    print(f"driftwise: the store failed and can promise nothing: {slip}", file=sys.stderr, flush=True)
    os._exit(BROKEN)
