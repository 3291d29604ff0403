"""One server of several on a shared store. No server leads; each learns all rewards in the order of their numbers.

A server polls for what others write; a notification only triggers a poll.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from typing import Any, cast

import psycopg

from driftwise.service.core.fold import resume
from driftwise.service.core.origin import Foreign, check_machine
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.serving import Parts, Service
from driftwise.service.core.setup import Setup
from driftwise.service.core.stream import Stream
from driftwise.service.core.warming import is_warm, warm
from driftwise.service.replica.groups import JointGroups
from driftwise.service.replica.peers import Others, others
from driftwise.service.stores.connection import CHANNEL, NO_ANSWER, STOPPING, connected, cut_silent
from driftwise.service.stores.postgres import SERVING, PostgresStore
from driftwise.service.wire.protocol import Refusal, StreamAnswer

POLL = 0.1  # seconds between two looks at what others wrote
TELL = 1.0  # seconds between two reports of how far this replica is
_TOLD = 2.0  # seconds without an answer of the database after which requests are refused


def leave(error: Foreign) -> None:
    """Another machine continues a stream, with other bits: end the process before it decides on the old state."""
    print(f"driftwise: {error}", file=sys.stderr, flush=True)
    os._exit(error.exit_code)


class Watching:
    """The part of a service that follows the other replicas of its database."""

    def __init__(self, service: Service) -> None:
        self.service, self.engine = service, service.engine
        self.store: PostgresStore = service.store
        self._groups = cast(JointGroups, self.engine.turn)
        self._groups.refresh = self._look
        self._seen = -1  # so that the first look reads everything
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking = self._ended = False
        self._told = 0.0
        self._listener = threading.Thread(target=self._listen, name="driftwise listen", daemon=True)

    def start(self) -> None:
        """Start looking at what others write, on this event loop."""
        self._loop = asyncio.get_running_loop()
        self.store.limit()
        self._listener.start()
        self._guard()

    def _guard(self) -> None:
        """On the event loop, repeatedly: check whether the database answers."""
        if self._ended or self._loop is None:
            return
        quiet = self.store.quiet()
        if quiet > _TOLD:
            self._groups.hang(f"{self.store.path}: no answer for {quiet:.0f} s")
        if quiet > (STOPPING if self.engine.stopping else NO_ANSWER):
            self.store.cut()
        self._loop.call_later(0.2, self._guard)

    async def look(self) -> None:
        await self.engine.submit(self._look)

    def refresh(self) -> None:
        """Check, unless a check is running. Call it on the event loop."""
        if not self._looking and not self.engine.stopping:
            self._looking = True
            try:
                self.engine.submit(self._look).add_done_callback(self._looked)
            except Refusal:  # the server is overloaded
                self._looking = False

    def _looked(self, future: Any) -> None:
        self._looking = False
        if not future.cancelled():
            future.exception()  # the store is not reachable: the next look tries again

    def _look(self) -> None:
        """In the engine's thread: read what is new."""
        peers = {stream.row.id: others(stream) for stream in self.engine.streams.values()}
        held = [number for number, one in peers.items() if one.held]
        if held and not self.store.in_transaction:
            self.store.end_stopped()
            for number in self.store.free(held):
                peers[number].held = False
        version, heads = self.store.look()
        if version != self._seen and not any(one.leading or one.stream.touched for one in peers.values()):
            self._seen = version
            try:
                self._reload()
            except Foreign as error:
                leave(error)
            except BaseException:
                self._seen = -1
                raise
        for number, one in peers.items():
            if number in heads and one.stream.row.name not in self.service.compiling:
                one.head = heads[number].rewarded
                if one.head > one.stream.rewarded and not one.leading:
                    one.catch_up()
        if time.monotonic() - self._told > TELL and not self.store.in_transaction:
            self._told = time.monotonic()
            if peers:
                self.store.tell([(number, one.stream.fold.seq) for number, one in peers.items()])
            for number, one in peers.items():
                one.heard = self.store.replicas(number, time.time() - 5 * TELL)
                one.decided = self.store.decided(number)
                one.numbered = self.store.last_number(number)

    def _reload(self) -> None:
        """Read streams, generations, pauses and items again. A stream that must be compiled first is left for later."""
        rows = self.store.streams()
        for gone in [one for name, one in self.engine.streams.items() if name not in {row.name for row in rows}]:
            self.service.drop(gone)  # another replica deleted it
        for row in rows:
            stream = self.engine.streams.get(row.name)
            eras = eras_of(self.store, row.id)
            check_machine(self.store.path, row.name, eras[-1])
            last, erased = eras[-1], max(era.row.base for era in eras)
            if not self._compiled(row.name, last.setup):
                continue
            if stream is None:
                self.engine.streams = {**self.engine.streams, row.name: self.service.resumed(row)}
                self.service.compiling.pop(row.name, None)
                continue
            stream.paused = row.paused
            stream.read_steps()
            peers = others(stream)
            forgets = sum(event.kind == "forgotten" for event in self.store.events(row.id))
            if forgets != peers.forgets:  # open decisions may have been erased too
                stream.known.clear()
                peers.forgets = forgets
            if erased > peers.forgotten:
                peers.forget(erased, last.row, last.setup)
            if last.row != stream.era:
                peers.catch_up()  # so that everything before its beginning is known
                stream.begin_era(last.setup, resume(self.store, last.row, last.setup, upto=stream.rewarded))
            self.service.teach_items(stream)
            self.service.compiling.pop(row.name, None)

    def _compiled(self, name: str, made: Setup) -> bool:
        """Whether a stream's kernels are in this process. If not, they are compiled in another thread, because other
        streams share the engine's thread. Requests of this stream are refused until then."""
        asked = self.service.compiling.get(name)
        if is_warm(made.policy) or (asked is not None and asked.done()):
            return True

        def work() -> None:
            try:
                warm(made.policy, made.terms.low)
            finally:
                self._seen = -1  # the next look starts serving it, or reports the error

        if asked is None:
            self.service.compiling[name] = self.service.pool.submit(work)
        return False

    def _listen(self) -> None:
        """In a thread of its own: check after a notification, and regularly without one."""
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
            except RuntimeError:  # the event loop was closed
                pass

    async def answer(self, stream: Stream) -> StreamAnswer:
        """Computed in the engine's thread, where states change."""

        def counted() -> StreamAnswer:
            others(stream).decided = self.store.decided(stream.row.id)
            return stream.answer()

        found: StreamAnswer = await self.engine.submit(counted)
        return found

    def close(self) -> None:
        self._ended = True
        if self._listener.is_alive():
            self._listener.join(1.0)
        cut_silent(1.0)  # the connections of readers


REPLICA = Parts(JointGroups, Others, Watching)
