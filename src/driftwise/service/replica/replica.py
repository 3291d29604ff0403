"""One server of several on a shared store: none leads, and every one folds all rewards in the order of their numbers.

A group is worked on, written and committed in the engine's thread, because it may have to wait: for the lock of a
stream that others are writing to, and for the network. Decisions need no lock: they are made and written first, so that
nobody waits for them. Rewards take in what others have learned (`lead`), so that theirs are the next numbers. What
others write comes by polling; a notice only says that it is time to.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import psycopg

from driftwise.errors import DriftwiseError
from driftwise.service.core.engine import _LONG, Engine, Waiting, _settle, end, halves
from driftwise.service.core.fold import resume
from driftwise.service.core.origin import Foreign, check_machine
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.serving import Service
from driftwise.service.core.setup import Setup
from driftwise.service.core.warming import is_warm, warm
from driftwise.service.replica.shared import SharedStream
from driftwise.service.stores.connection import CHANNEL, NO_ANSWER, connected, cut_silent
from driftwise.service.stores.postgres import SERVING, PostgresStore
from driftwise.service.stores.records import Broken, Conflict, Failed, Full, Held, Lost
from driftwise.service.wire.protocol import MOST_WAITING, Refusal, StreamAnswer

POLL = 0.1  # seconds from look to look at what others wrote
TELL = 1.0  # and from word to word on how far this replica is
_TRIES = 4  # of a group that met another's
_TOLD = 2.0  # seconds without an answer of the database after which callers are told
_STOPPING = 2.0  # and after which a server that stops waits no more
_COME_AGAIN = "send it again: the same id gets the same answer"


class SharedEngine(Engine):
    """Groups in the thread, from their first lock to their commit."""

    store: PostgresStore
    refresh: Callable[[], None]

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store)
        self.hung = False  # whether the database has not answered for so long that nothing more is taken

    def enter(self, work: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        if self.hung:
            raise _unanswered()
        super().enter(work, tell)

    def hang(self, why: str) -> None:
        """On the event loop: the database does not answer. What waits is refused, as is what comes, until it does."""
        self.away, self.hung = why, True
        waiting, self._waiting = self._waiting, []
        _settle(waiting, [_unanswered()] * len(waiting))

    def _turn(self) -> None:
        self._due, self._held = False, None
        group = self._taken()
        if group:
            self._committing = True
            self._to_commit.put(group)  # type: ignore[arg-type]

    def _commits(self) -> None:
        """The thread: one group after the other, each told on the event loop."""
        queue: SimpleQueue[Any] = self._to_commit
        while (group := queue.get()) is not None:
            told = self._group(group)
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._over, told)

    def _group(self, group: list[Waiting]) -> list[tuple[Waiting, Any]]:
        """In the thread: a group that is on disk or refused, each request with its answer."""
        slip: Exception | None = None
        for number in range(_TRIES):
            try:
                began = time.perf_counter()
                answers = self._tried(group, careful=number > 0)
                self.full, self.away = "", self._blocked()
                self._patience = min(0.25 * (time.perf_counter() - began), _LONG)
                return list(zip(group, answers, strict=True))
            except Exception as met:
                slip = met
                self._take_back()
            if not self._once_more(slip):
                break
        assert slip is not None
        if isinstance(slip, Full):
            refusal = self._without_room(slip)
        elif isinstance(slip, (Lost, Held)):
            error = f"the group may not have been written: {type(slip).__name__}"
            refusal = Refusal("uncertain_write", error, "", _COME_AGAIN, 1)
        elif parts := halves(group):
            return [told for part in parts for told in self._group(part)]
        elif isinstance(slip, Conflict):
            refusal = Refusal("replica_conflict", "another replica wrote the same at the same time", "", _COME_AGAIN, 1)
        else:
            return [(one, self._refused(slip, one)) for one in group]
        return [(one, refusal) for one in group]

    def _once_more(self, slip: Exception) -> bool:
        """Whether a group that failed for this is to be done again as it is."""
        if isinstance(slip, Conflict):
            with suppress(Failed):
                self.refresh()  # it may have been another era, or another stream of this name
            return True
        if isinstance(slip, Broken):
            end(slip)
        if isinstance(slip, (Lost, Held)):
            self.away = str(slip)
        if isinstance(slip, Held):
            with suppress(Failed):
                self.store.end_stopped()
            return bool(self._blocked())  # without what needs the lock of that stream
        return False

    def _blocked(self) -> str:
        """Which streams' locks another replica holds without going on."""
        held = [name for name, stream in self.streams.items() if stream.held]  # type: ignore[attr-defined]
        return f"another replica holds the locks of streams {', '.join(held)}" if held else ""

    def _tried(self, group: list[Waiting], careful: bool) -> list[Any]:
        streams: list[Any] = list(self.streams.values())
        for stream in streams:
            stream.careful = careful
        answers: list[Any] = [None] * len(group)
        learning = [place for place, one in enumerate(group) if hasattr(one.work, "leads")]
        others = sorted(set(range(len(group))) - set(learning))
        self._work(group, others, answers)
        if not self.store.in_transaction:
            self.store.begin()
        for stream in self._touched():
            stream.write_decisions()
        leads: set[Any] = {group[place].work.leads for place in learning}  # type: ignore[attr-defined]
        for stream in sorted(leads, key=lambda one: one.row.id):
            if not stream.held:
                stream.lead()  # in one order, so that two replicas never wait for each other
        self._work(group, learning, answers)
        self._write()
        for stream in streams:
            stream.release()
        return answers

    def _work(self, group: list[Waiting], places: list[int], answers: list[Any]) -> None:
        for place in places:
            try:
                answers[place] = group[place].work()
            except Failed:
                raise
            except DriftwiseError as slip:
                answers[place] = slip

    def _write(self) -> None:
        """What the group left behind, on disk when it returns."""
        touched = self._touched()
        if not touched and not self._extra:
            self.store.rollback()
            return
        for stream in touched:
            stream.write()
        if self._extra:
            self.store.take_time()
        for write in self._extra:
            write()
        self._commit()
        for stream in touched:
            stream.publish()
        after, self._extra, self._after = self._after, [], []
        for then in after:
            then()

    def _commit(self) -> Any:
        began = time.perf_counter()
        self.store.commit()
        self._count(time.perf_counter() - began)
        return None

    def _over(self, told: list[tuple[Waiting, Any]]) -> None:
        """On the event loop again."""
        self._committing = self.hung = False
        self._expected = min(len(told) + len(self._waiting), MOST_WAITING // 2)
        for one, answer in told:
            one.tell(answer)
        self._next()

    def close(self) -> None:
        """As alone; but a database that does not answer is not waited for."""
        timer = threading.Timer(_STOPPING, self.store.cut)
        timer.start()
        super().close()
        timer.cancel()


def _unanswered() -> Refusal:
    return Refusal("database_silent", "the database does not answer", "", _COME_AGAIN, retry_after=1)


def leave(slip: Foreign) -> None:
    """Another machine goes on with a stream, to other bits: end at once, before a decision is made on the old state."""
    print(f"driftwise: {slip}", file=sys.stderr, flush=True)
    os._exit(slip.exit_code)


class SharedService(Service):
    """The streams of a database that other replicas serve too."""

    store: PostgresStore
    engine: SharedEngine
    engine_of = SharedEngine
    stream_of = SharedStream

    def __init__(self, store: PostgresStore, now: Callable[[], float] | None = None, *, later: bool = False) -> None:
        super().__init__(store, now, later=later)
        self._seen = -1  # what was written while it began is read with the first look
        self.engine.refresh = self._look
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking = self._ended = False
        self._told = 0.0
        self._listener = threading.Thread(target=self._listen, name="driftwise listen", daemon=True)

    def start(self) -> None:
        """From now on, on this event loop, look at what others write."""
        super().start()
        self._loop = asyncio.get_running_loop()
        self.store.limit()
        self._listener.start()
        self._guard()

    def _guard(self) -> None:
        """On the event loop, again and again: whether the database answers."""
        if self._ended or self._loop is None:
            return
        quiet = self.store.quiet()
        if quiet > _TOLD:
            self.engine.hang(f"{self.store.path}: no answer for {quiet:.0f} s")
        if quiet > (_STOPPING if self.engine.stopping else NO_ANSWER):
            self.store.cut()
        self._loop.call_later(0.2, self._guard)

    async def look(self) -> None:
        await self.engine.submit(self._look)

    def refresh(self) -> None:
        """Look, unless somebody does; on the event loop."""
        if not self._looking and not self.engine.stopping:
            self._looking = True
            try:
                self.engine.submit(self._look).add_done_callback(self._looked)
            except Refusal:  # there is more to do than can be done
                self._looking = False

    def _looked(self, future: Any) -> None:
        self._looking = False
        if not future.cancelled():
            future.exception()  # the store is away: the next look says whether it is back

    def _look(self) -> None:
        """In the engine's thread: what is new."""
        streams: list[Any] = list(self.engine.streams.values())
        held: dict[int, Any] = {stream.row.id: stream for stream in streams if stream.held}
        if held and not self.store.in_transaction:
            self.store.end_stopped()
            for number in self.store.free(list(held)):
                held[number].held = False
        version, heads = self.store.look()
        if version != self._seen and not any(stream.leading or stream.touched for stream in streams):
            self._seen = version
            try:
                self._reload()
            except Foreign as slip:
                leave(slip)
            except BaseException:
                self._seen = -1
                raise
        for stream in streams:
            if stream.row.id in heads and stream.row.name not in self.compiling:
                stream.head = heads[stream.row.id].rewarded
                if stream.head > stream.rewarded and not stream.leading:
                    stream.catch_up()
        if time.monotonic() - self._told > TELL and not self.store.in_transaction:
            self._told = time.monotonic()
            if streams:
                self.store.tell([(stream.row.id, stream.fold.seq) for stream in streams])
            for stream in streams:
                stream.others = self.store.replicas(stream.row.id, time.time() - 5 * TELL)
                stream.decided_by_all = self.store.decided(stream.row.id)
                stream.numbered = self.store.last_number(stream.row.id)

    def _reload(self) -> None:
        """Streams, eras, pauses and items as they are now; what must be compiled first is left for a later look."""
        for row in self.store.streams():
            stream: Any = self.engine.streams.get(row.name)
            eras = eras_of(self.store, row.id)
            check_machine(self.store.path, row.name, eras[-1].row)
            last, erased = eras[-1], max(era.row.base for era in eras)
            if not self._compiled(row.name, last.setup):
                continue
            if stream is None:
                self.engine.streams = {**self.engine.streams, row.name: self._resumed(row)}
                self.compiling.pop(row.name, None)
                continue
            stream.paused = row.paused
            if erased > stream.forgotten:
                stream.forget(erased, last.row, last.setup)
            if last.row != stream.era:
                stream.catch_up()  # so that all it was begun after is known
                stream.begin_era(last.setup, resume(self.store, last.row, last.setup, upto=stream.rewarded))
            self._teach_items(stream)
            self.compiling.pop(row.name, None)

    def _compiled(self, name: str, made: Setup) -> bool:
        """Whether a stream's kernels are in this process. If not they are compiled aside, because other streams share
        the engine's thread, and requests of this one are refused until then."""
        asked = self.compiling.get(name)
        if is_warm(made.policy) or (asked is not None and asked.done()):
            return True

        def work() -> None:
            try:
                warm(made.policy, made.terms.low)
            finally:
                self._seen = -1  # the next look takes it up, or tells what is wrong with it

        if asked is None:
            self.compiling[name] = self._aside.submit(work)
        return False

    def _listen(self) -> None:
        """In a thread of its own: look when told to, and every so often whether told or not."""
        while not self._ended:
            try:
                with connected(self.store.url) as ears:
                    ears.execute(f"LISTEN {CHANNEL}")
                    ears.execute("SELECT pg_advisory_lock_shared(%s)", (SERVING,))  # as long as this connection lasts
                    while not self._ended:
                        for _ in ears.notifies(timeout=POLL, stop_after=1):
                            pass
                        self._soon()
            except psycopg.Error:
                self._soon()
                time.sleep(POLL)

    def _soon(self) -> None:
        if self._loop is not None and not self._loop.is_closed() and not self._ended:
            try:
                self._loop.call_soon_threadsafe(self.refresh)
            except RuntimeError:  # it was closed just now
                pass

    async def answer(self, name: str) -> StreamAnswer:
        """From the engine's thread: states change there."""
        stream = self.stream(name)
        found: StreamAnswer = await self.engine.submit(stream.answer)
        return found

    def close(self) -> bool:
        self._ended = True
        if self._listener.is_alive():
            self._listener.join(1.0)
        cut_silent(1.0)  # of those that read aside
        return super().close()
