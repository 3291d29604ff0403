"""Group commit: what waits is decided at once on the event loop, written in one transaction, and answered after it.

While a group's commit runs in a thread, requests of the next one are read and gather; they are decided when the commit
is over, on the state it published, so that a group that could not be written has touched nobody else. The next commit
is started before the last group is answered, unless syncs take long: then a quarter of a sync is waited, at most, for
those who were just answered to ask again, because two small groups in turn cost each caller two syncs. A request that
is alone is committed in place, which saves two turns between threads; so is a group where syncs are short, because the
turns would take longer than what could be read meanwhile.

A group that fails for any reason but the store's room, lock or soundness is undone, divided and done again in halves:
only the request which made it fail is refused.
"""

from __future__ import annotations

import asyncio
import bisect
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from driftwise.errors import DriftwiseError
from driftwise.service.core.stream import Stream
from driftwise.service.stores.records import Broken, Failed, Full, Held, Lost, Rejected
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import MOST_WAITING, Refusal, error_of, internal_error, refusal_of

# Upper ends of what commits are counted by, in seconds.
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
_SHORT, _LONG = 0.0005, 0.002  # seconds: what is worth neither a wait nor a thread, and the most that is waited
_LOOKS = 8  # turns of the event loop in which nobody came, before a group is complete
_HELD = 1.0  # seconds that requests wait for a lock which another process holds, before they are refused
_AGAIN = 0.02  # and from try to try to take it
BROKEN = 4  # the exit code of a process whose disk can no longer be relied on


class Waiting(NamedTuple):
    """Work on the streams, and who is told what came of it: an answer, or what was raised."""

    work: Callable[[], Any]
    tell: Callable[[Any], None]


class Batch:
    """Work of many members, each with an answer of its own: a member that is refused stops no other."""

    def __init__(self, works: Sequence[Callable[[], Any]], leads: Any = None) -> None:
        self.works = works
        if leads is not None:
            self.leads = leads

    def __call__(self) -> list[Any]:
        return [self._each(work) for work in self.works]

    @staticmethod
    def _each(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Failed:
            raise
        except DriftwiseError as slip:
            return error_of(slip)

    def part(self, begin: int, end: int) -> Batch:
        return Batch(self.works[begin:end], getattr(self, "leads", None))


def leading(stream: Any, work: Callable[[], Any]) -> Callable[[], Any]:
    """Work that learns, marked by its stream: where others write too its lock is had before the group is worked on."""
    work.leads = stream  # type: ignore[attr-defined]
    return work


def halves(group: list[Waiting]) -> list[list[Waiting]]:
    """A group in two, a batch that is alone in it in two batches; nothing where nothing can be divided."""
    if len(group) > 1:
        middle = len(group) // 2
        return [group[:middle], group[middle:]]
    if not group:
        return []
    batch, told = group[0].work, group[0].tell
    if not isinstance(batch, Batch) or len(batch.works) < 2:
        return []
    middle = len(batch.works) // 2
    parts: list[list[Any]] = [[], []]

    def tell(place: int, size: int, answer: Any) -> None:
        parts[place] = [error_of(answer)] * size if isinstance(answer, BaseException) else answer
        if all(parts):
            told(parts[0] + parts[1])

    cuts = ((0, 0, middle), (1, middle, len(batch.works)))
    return [[Waiting(batch.part(begin, end), partial(tell, place, end - begin))] for place, begin, end in cuts]


class Engine:
    """All writing of a server goes through here, one group at a time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.streams: dict[str, Stream] = {}
        self.full = ""  # why nothing can be written now
        self.away = ""  # why the store cannot be reached, or another process keeps it from us
        self.stopping = False
        self.commits = [0] * (len(BUCKETS) + 1)
        self.commit_seconds = 0.0
        self._waiting: list[Waiting] = []
        self._again: list[list[Waiting]] = []  # parts of a group that failed, which come before all that waits
        self._alone: Waiting | None = None  # the last request that was done again by itself
        self._since = 0.0  # since when another process holds the store's lock
        self._extra: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []
        self._due = self._committing = False
        self._held: asyncio.TimerHandle | None = None  # the turn that waits for more to come
        self._expected = 1  # how many asked last
        self._patience = 0.0  # how long they are waited for
        self._usual = _LONG  # seconds of a commit, as they lately were
        self._last = 1  # how many the last group had
        self._to_commit: SimpleQueue[Callable[[Failed | None], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._commits, name="driftwise commit", daemon=True)
        self._thread.start()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.slip: Callable[[Exception], None] = lambda slip: None  # who is told of what should not happen

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Have work done with the next group; the future is its answer, and is there when the answer is on disk."""
        future = asyncio.get_running_loop().create_future()
        self.enter(work, partial(_resolve, future))
        return future

    def enter(self, work: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        """`submit` for those who would rather be called than wait."""
        if len(self._waiting) >= MOST_WAITING:
            raise Refusal("overloaded", "more requests wait than the server takes", "", "send it again", 1)
        self._waiting.append(Waiting(work, tell))
        if not self._committing and (not self._due or self._held is not None):
            self._gather()

    def _gather(self) -> None:
        """Let the turn come: when as many wait as asked last, or nobody came for a while."""
        loop = self._loop = asyncio.get_running_loop()
        if self._patience >= _SHORT and len(self._waiting) < self._expected:
            if self._held is None:
                self._held = loop.call_later(self._patience, self._turn)
        else:
            if self._held is not None:
                self._held.cancel()
                self._held = None
            loop.call_soon(self._look, 0, 0)
        self._due = True

    def _look(self, seen: int, idle: int) -> None:
        """Take the turn, or look once more for those who were just answered: less than a timer can wait."""
        count = len(self._waiting)
        idle = 0 if count > seen else idle + 1
        if count < self._expected and idle < _LOOKS and self._loop is not None:
            self._loop.call_soon(self._look, count, idle)
        else:
            self._turn()

    def also(self, write: Callable[[], None], then: Callable[[], None]) -> None:
        """For work that is being done: something else to write with the group, and what to do when it is on disk."""
        self._extra.append(write)
        self._after.append(then)

    def _turn(self) -> None:
        """Decide what waits, write it, and have it committed."""
        self._due, self._held = False, None
        group = self._taken()
        if not group and not self._since:  # an empty one says whether the store's lock is free again
            return
        answers: list[Any] = []
        try:
            self.store.begin()  # before ids are looked up: one lock a group is cheaper than one a lookup
            for one in group:
                try:
                    answers.append(one.work())
                except Failed:
                    raise
                except DriftwiseError as slip:
                    answers.append(slip)
            touched = self._touched()
            for stream in touched:
                stream.write()
            for write in self._extra:
                write()
        except Broken as slip:
            end(slip)
        except Exception as slip:
            self._failed(slip, group, answers)
            return
        if group and not touched and not self._extra:
            self.store.rollback()
            self._since, self.away = 0.0, ""
            _settle(group, answers)
            self._next()
            return
        alone, self._last = len(group) == self._last == 1, len(group)
        if alone or self._usual < _SHORT:
            self._done(self._commit(), touched, group, answers)
        else:
            self._committing = True
            self._to_commit.put(lambda slip: self._done(slip, touched, group, answers))

    def _taken(self) -> list[Waiting]:
        """The next group: a part of one that failed, or all that waits."""
        if self._again:
            return self._again.pop(0)
        group, self._waiting = self._waiting, []
        return group

    def _next(self) -> None:
        """Let the next turn come, if something waits for it."""
        if self._committing or self._due:
            return
        if self._again:
            self._due, loop = True, asyncio.get_running_loop()
            loop.call_soon(self._turn)
        elif self._waiting:
            self._gather()

    def _touched(self) -> list[Stream]:
        return [stream for stream in self.streams.values() if stream.touched]

    def _commits(self) -> None:
        """The thread: one commit after the other, each told on the event loop."""
        while (done := self._to_commit.get()) is not None:
            slip = self._commit()
            assert self._loop is not None
            self._loop.call_soon_threadsafe(done, slip)

    def _commit(self) -> Failed | None:
        """What is on disk when it returns None."""
        began = time.perf_counter()
        try:
            self.store.commit()
        except (Full, Held) as slip:
            return slip
        except BaseException as slip:
            end(slip)
        self._count(time.perf_counter() - began)
        return None

    def _count(self, spent: float) -> None:
        self.commits[bisect.bisect_left(BUCKETS, spent)] += 1
        self.commit_seconds += spent
        self._patience = min(0.25 * spent, _LONG)
        self._usual += 0.25 * (min(spent, _LONG) - self._usual)

    def _done(self, slip: Failed | None, touched: list[Stream], group: list[Waiting], answers: list[Any]) -> None:
        """After a commit: publish, start the next group, then answer this one."""
        self._committing = False
        if slip is not None:
            self._failed(slip, group, answers)
            return
        self.full, self.away, self._since = "", "", 0.0
        for stream in touched:
            stream.publish()
        after, self._extra, self._after = self._after, [], []
        for then in after:
            then()
        self._expected = min(len(group) + len(self._waiting), MOST_WAITING // 2)
        if self._waiting and not self._again and self._patience < _SHORT:
            self._turn()
        _settle(group, answers)
        self._next()

    def _failed(self, slip: Exception, group: list[Waiting], answers: list[Any]) -> None:
        """The group could not be written: it has never been. Where it was not for want of room or of the store's lock,
        one request is the reason, and is found by halves."""
        self._take_back()
        if isinstance(slip, Held):
            self._wait_for(slip, group)
        elif isinstance(slip, Full):
            refusal = self._without_room(slip)
            answers += [refusal] * (len(group) - len(answers))
            _settle(group, [answer if isinstance(answer, DriftwiseError) else refusal for answer in answers])
        elif parts := halves(group):
            self._again[:0] = parts
        elif isinstance(slip, Rejected) and self._alone is not group[0]:  # its id may be known by now
            self._alone = group[0]
            self._again.insert(0, group)
        else:
            _settle(group, [self._refused(slip, one) for one in group])
        self._next()

    def _take_back(self) -> None:
        self.store.rollback()
        for stream in self.streams.values():
            stream.undo()
        self._extra, self._after = [], []

    def _without_room(self, slip: Full) -> Refusal:
        self.full = str(slip)
        hint = "make room; the same id may be sent again"
        return Refusal("disk_full", "the disk is full: nothing was written", "", hint)

    def _refused(self, slip: Exception, one: Waiting) -> Any:
        """The answer to the one request that a group failed for."""
        if not isinstance(slip, DriftwiseError):
            self.slip(slip)
            slip = internal_error()
        return [error_of(slip)] if isinstance(one.work, Batch) else refusal_of(slip)

    def _wait_for(self, slip: Held, group: list[Waiting]) -> None:
        """Another process holds the store's lock: try again in a moment. After a while all that waits is refused, as is
        what comes, until the lock is free."""
        now = time.monotonic()
        self._since = self._since or now
        if group:
            self._again.insert(0, group)
        if now - self._since > _HELD:
            self.away = str(slip)
            waiting = [*(one for part in self._again for one in part), *self._waiting]
            self._again, self._waiting = [], []
            hint = "nothing was written; send it again"
            refusal = Refusal("database_held", "another process holds the database", "", hint, retry_after=1)
            _settle(waiting, [refusal] * len(waiting))
        if self._again or not self.stopping:
            self._due = True
            asyncio.get_running_loop().call_later(_AGAIN, self._turn)

    async def idle(self) -> None:
        """When nothing waits and nothing is being committed."""
        while self._waiting or self._again or self._committing or self._due:
            await asyncio.sleep(0.002)

    def close(self) -> None:
        """A snapshot of every stream, so that the next start is quick, and the store is closed."""
        self._to_commit.put(None)
        self._thread.join()
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


def _settle(group: list[Waiting], answers: list[Any]) -> None:
    for one, answer in zip(group, answers, strict=True):
        one.tell(answer)


def _resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():  # whoever asked has gone
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def end(slip: BaseException) -> None:
    """After a failed sync nobody knows what is on disk: end at once, answering nobody."""
    print(f"driftwise: the store failed and can promise nothing: {slip}", file=sys.stderr, flush=True)
    os._exit(BROKEN)
