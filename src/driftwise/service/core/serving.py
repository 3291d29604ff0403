"""A service: its store, its streams, and what changes them; http.py is how it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from driftwise._internal.container import canonical
from driftwise.errors import BadInput
from driftwise.ledger import LESSONS
from driftwise.service.core.access import Access, KeyWatch
from driftwise.service.core.engine import Engine, Groups, Turn, end
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.origin import begun, check_machine, refused
from driftwise.service.core.peers import Alone, Peers, Unwatched, Watch
from driftwise.service.core.recompute import eras_of, explain
from driftwise.service.core.refold import record_machine
from driftwise.service.core.setup import Setup, declared, same_stream, setup
from driftwise.service.core.steady import steady
from driftwise.service.core.stream import Stream
from driftwise.service.core.waiting import leading, resolve
from driftwise.service.core.warming import end_soon, warm
from driftwise.service.stores.records import Damaged, EraRow, EventRow, RewardRow, StreamRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import (
    DeleteBody,
    Explained,
    ItemsBody,
    Refusal,
    Stale,
    StreamAnswer,
    StreamBody,
    checked_name,
)

_T = TypeVar("_T")
_TRIES = 4  # of a change that met another
_STRETCH = 2_000  # rows of a table that are erased with one group
_GRACE = 3  # half seconds that work aside gets after the server was told to stop
_SMALL = 64 << 20  # bytes of a database that is looked through before it serves, which takes a quarter of a second


class Parts(NamedTuple):
    """What a server does in its own way where others serve the same database (replica/watch.py)."""

    turn: Callable[[Engine], Turn]
    peers: Callable[[Stream], Peers]
    watch: Callable[[Service], Watch]


ALONE = Parts(Groups, Alone, Unwatched)


class Service:
    """The streams of a database. Changes to a stream come one after the other; decisions and rewards in groups.

    With later=True the streams are resumed by `prepare`: until then it is not ready and serves nothing.
    """

    def __init__(
        self, store: Any, now: Callable[[], float] | None = None, *, later: bool = False, parts: Parts = ALONE
    ) -> None:
        self.store, self.now, self._peers_of = store, steady(now), parts.peers
        self.ready, self.doing = False, ""  # whether it serves, and what it does until then
        self.compiling: dict[str, Future[None]] = {}  # streams whose kernels are being compiled aside
        self.deleted: dict[str, int] = store.deleted()  # numbers of streams that were, by name
        self._unerased = [number for number in self.deleted.values() if store.has_rows(number)]
        self._preparing: Thread | None = None
        self.pool = ThreadPoolExecutor(1, "driftwise aside")  # what takes long and may wait
        if not store.shared:
            if store.path.stat().st_size <= _SMALL:
                _check(store)
            else:
                self.pool.submit(_check_aside, store)
        self.engine = Engine(store, parts.turn)
        self.watch = parts.watch(self)
        self.access = Access(store.keys())
        self._keys = KeyWatch(self.access, store, lambda slip: self.engine.slip(slip))
        self._changing = asyncio.Lock()
        self.notice_of: Callable[[str, EventRow], str | None] = lambda stream, event: None  # what a webhook sends of it
        if not later:
            self._resume()
            self.ready = True

    async def prepare(self) -> None:
        """Resume the streams in a thread, because folding and compiling take long, and be ready."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def work() -> None:
            slip: BaseException | None = None
            try:
                self._resume()
            except BaseException as raised:
                slip = raised
            with suppress(RuntimeError):  # the event loop was closed meanwhile
                loop.call_soon_threadsafe(resolve, done, slip)

        self._preparing = Thread(target=work, name="driftwise prepare", daemon=True)
        self._preparing.start()
        await done
        self.ready = True

    def _resume(self) -> None:
        rows = self.store.streams()
        for number, row in enumerate(rows):
            self.doing = f"stream {row.name} is being compiled and folded; {number} of {len(rows)} are done"
            record_machine(self.store, row)
            self.engine.streams[row.name] = self.resumed(row)
        if not self.store.shared:
            self.store.never_wait()

    def check_open(self) -> None:
        """Refuse what comes before it is ready, or when it stops."""
        if self.engine.stopping:
            raise Refusal("stopping")
        if not self.ready:
            raise Refusal("starting", "the server is starting: its streams are being compiled and folded")

    def resumed(self, row: StreamRow) -> Stream:
        """A stream as it was when it was last written."""
        last = eras_of(self.store, row.id)[-1]
        check_machine(self.store.path, row.name, last.row)
        warm(last.setup.policy, last.setup.terms.low)
        try:
            fold = resume(self.store, last.row, last.setup)
        except Unlike as slip:
            raise refused(self.store.path, row.name, slip) from None
        stream = Stream(row, last.setup, fold, self.store, self._peers_of)
        self.teach_items(stream)
        return stream

    def teach_items(self, stream: Stream) -> None:
        encoder = stream.offers.encoder
        if encoder is not None:
            encoder.know({name: msgspec.json.decode(text) for name, text in self.store.items(stream.row.id)})

    def start(self) -> None:
        """The event loop runs."""
        self._keys.start()
        self.watch.start()
        self._erasing = [asyncio.create_task(self.erase(number)) for number in self._unerased]

    async def answer(self, name: str) -> StreamAnswer:
        """What is on disk of a stream."""
        return await self.watch.answer(self.stream(name))

    def expire(self) -> None:
        """Have the defaults learned that are due, with the next group."""
        for stream in self.engine.streams.values():
            idle = self.engine.stopping or stream.row.name in self.compiling
            if stream.setup.terms.default is not None and not idle:
                asked = self.engine.submit(partial(stream.peers.expire, self.now()))
                asked.add_done_callback(lambda done: done.exception())  # there is a next time

    def stream(self, name: str) -> Stream:
        if name in self.compiling:
            raise Refusal("starting", "the policy of this stream is being compiled")
        found = self.engine.streams.get(name)
        if found is None:
            self._check_name(name)
            raise Refusal("unknown_stream")
        return found

    def _check_name(self, name: str) -> None:
        if name in self.deleted:
            raise Refusal("stream_deleted")

    def close(self) -> bool:
        """Whether all of its threads have ended."""
        self.watch.close()
        self._keys.close()
        if self._preparing is not None and self._preparing.is_alive():  # it has the store; the process ends first
            return False
        ended = end_soon(self.pool)
        self.engine.close()
        return ended

    # ------------------------------------------------------------------------------------ changes

    async def changed(self, change: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """A change to a stream, one at a time here; computed again where another replica's came first, so that the
        changes of a stream are one history."""
        async with self._changing:
            for _ in range(_TRIES - 1):
                try:
                    return await change(*arguments)
                except Stale:
                    await self.watch.look()
            return await change(*arguments)

    async def put(self, name: str, body: StreamBody) -> tuple[int, StreamAnswer]:
        """Make a stream; the same again is fine, another of that name is not."""
        return await self.changed(self._put, checked_name(name), body)

    async def _put(self, name: str, body: StreamBody) -> tuple[int, StreamAnswer]:
        found = self.engine.streams.get(name)
        if found is not None:
            if not same_stream(found.setup, body):
                raise Refusal("stream_exists")
            return 200, await self.answer(name)
        self._check_name(name)
        made = await self.in_thread(_warm, declared(body), None)
        made.check_now(self.now())
        era = begun(EraRow(0, 1, 0, 0, 0, made.origin(0), made.text, made.policy.digest), "made")
        rows: list[Stream] = []

        def write() -> None:
            if name in self.engine.streams:
                raise Stale
            at = self.now()
            number = self.store.add_stream(name, at)
            self.store.add_era(era._replace(stream=number))
            row = StreamRow(number, name, at, False)
            fold = Fold(era._replace(stream=number), made)
            rows[:] = [Stream(row, made, fold, self.store, self._peers_of)]

        def then() -> None:
            self.engine.streams = {**self.engine.streams, name: rows[0]}

        await self.written(write, then)
        return 201, await self.answer(name)

    async def pause(self, name: str, paused: bool, fallback: int | str | None = None) -> StreamAnswer:
        """Stop deciding, or play the fallback, or go on; rewards are taken either way."""
        return await self.changed(self._pause, self.stream(name), paused, fallback)

    async def _pause(self, stream: Stream, paused: bool, fallback: int | str | None) -> StreamAnswer:
        def write() -> None:
            self.store.set_paused(stream.row.id, paused)
            told = {} if fallback is None else {"fallback": fallback}
            self.event(stream, "paused" if paused else "resumed", **told)

        def then() -> None:
            stream.paused = paused
            stream.read_steps()

        await self.written(write, then, stream)
        return await self.answer(stream.row.name)

    def event(self, stream: Stream, kind: str, **body: Any) -> None:
        """For what is written under a stream's lock: a step that is neither a decision nor a reward."""
        seq, text = len(self.store.events(stream.row.id)) + 1, canonical(body).decode()
        row = EventRow(stream.row.id, seq, self.now(), kind, stream.seq, stream.rewarded, text)
        self.store.add_events([row])
        notice = self.notice_of(stream.row.name, row)
        if notice is not None:
            self.store.add_notice(stream.row.id, row.at, notice)

    async def delete(self, name: str, body: DeleteBody) -> dict[str, str]:
        """Delete a stream for good: its name is never given to another."""
        if body.name != name:
            raise BadInput("name", body.name, f"{name}, the stream's name again", "send it to say that you mean it")
        stream = self.stream(name)
        await self.changed(self._delete, stream, body.force)
        await self.erase(stream.row.id)
        return {"deleted": name}

    async def _delete(self, stream: Stream, force: bool) -> None:
        def write() -> None:
            if not force and stream.counts.open:
                raise Refusal("open_decisions", f"{stream.counts.open} decisions of the stream wait for their rewards")
            self.event(stream, "deleted", decisions=stream.counts.decided, rewards=stream.kept[1], forced=force)

        await self.written(write, lambda: self.drop(stream), stream)

    def drop(self, stream: Stream) -> None:
        """Serve a stream no more that was deleted."""
        self.deleted = {**self.deleted, stream.row.name: stream.row.id}
        self.engine.streams = {name: one for name, one in self.engine.streams.items() if one is not stream}

    async def erase(self, number: int) -> None:
        """The rows of a stream that was deleted, a stretch a group."""
        more = [True]

        def write() -> None:
            more[:] = [self.store.erase_stretch(number, _STRETCH)]

        await self.engine.submit(self.store.erase_wholly)
        while more[0]:
            await self.written(write, lambda: None)
        await self.drop_sets()

    async def drop_sets(self) -> None:
        """Sets of arms that no decision is about any more."""
        if self.store.shared:
            await self.in_thread(self.store.drop_sets_aside)
        else:
            await self.written(self.store.drop_sets, self.store.checkpoint_soon)  # the log has what was erased

    async def reset(self, name: str) -> StreamAnswer:
        """Forget what was learned and begin anew: an era that folds only what comes from now on."""
        return await self.changed(self._reset, self.stream(name))

    async def _reset(self, stream: Stream) -> StreamAnswer:
        before, made = stream.era, stream.setup
        await self._begin(stream, before, made, lambda era: Fold(era, made), stream_first=True)
        return await self.answer(stream.row.name)

    async def change(self, name: str, body: StreamBody) -> StreamAnswer:
        """Another policy, taught all that the one before was: its state is the fold of the same rewards."""
        return await self.changed(self._replace, self.stream(name), body)

    async def _replace(self, stream: Stream, body: StreamBody) -> StreamAnswer:
        before, old = stream.era, stream.setup
        made = await self.in_thread(_warm, declared(body, old.body), old.tick)
        for what, mine, theirs in (
            ("clock", made.body.clock, old.body.clock), ("tick", made.tick, old.tick),
            ("dim", made.policy.dim, old.policy.dim), ("features", made.body.features, old.body.features),
        ):  # fmt: skip
            if mine != theirs:
                raise Refusal("fixed_setting", f"another {what} than the rewards were written with", what)
        fold = await self.in_thread(self._taught, made, before)
        await self.in_thread(self._catch_up, fold, made)  # with what came while the thread folded
        taken: list[EraRow] = []

        def taught(era: EraRow) -> Fold:
            if taken:  # the group that it learned the rows of was undone
                raise Stale
            taken.append(era)
            self._teach(fold, made, self.store)  # with the rows of this group, which are in the transaction
            fold.era = era
            return fold

        await self._begin(stream, before, made, taught, stream_first=False)
        return await self.answer(stream.row.name)

    def _taught(self, made: Setup, before: EraRow) -> Fold:
        """In a thread: a policy taught all rewards that are committed now."""
        if before.base:
            raise Refusal("forgotten_rewards")
        origin = made.origin(before.origin)
        fold = Fold(before._replace(policy=made.policy.digest, body=made.text, origin=origin), made)
        self._catch_up(fold, made)
        return fold

    def _catch_up(self, fold: Fold, made: Setup) -> None:
        reader = self.store.reader()
        try:
            self._teach(fold, made, reader)
        finally:
            reader.close()

    @staticmethod
    def _teach(fold: Fold, made: Setup, store: Store) -> None:
        try:
            fold.learn_rows(_fitting(store.rewards(fold.era.stream, fold.seq), made))
        except Unlike:  # another replica forgets them
            raise Stale from None

    async def _begin(
        self, stream: Stream, before: EraRow, made: Setup, fold_of: Callable[[EraRow], Fold], stream_first: bool
    ) -> None:
        """A new era from the end of the group on, if the stream still has the one that this was computed for."""
        folds: list[Fold] = []

        def write() -> None:
            if self.store.eras(stream.row.id)[-1] != before or stream.era != before:  # under the stream's lock
                raise Stale
            era = begun(EraRow(
                stream.row.id, before.number + 1, stream.seq, stream.rewarded if stream_first else before.first,
                stream.rewarded, made.origin(stream.learned if stream_first else before.origin), made.text,
                made.policy.digest,
            ), "reset" if stream_first else "policy")  # fmt: skip
            fold = fold_of(era)
            self.store.add_era(era)
            if not stream_first and fold.seq:
                self.store.add_snapshot(fold.snapshot_behind())
            folds[:] = [fold]

        def then() -> None:
            stream.begin_era(made, folds[0])
            self.teach_items(stream)

        await self.written(write, then, stream)

    async def items(self, name: str, body: ItemsBody) -> dict[str, int]:
        """Rows of items that decisions call by name."""
        return await self.changed(self._items, self.stream(name), body)

    async def _items(self, stream: Stream, body: ItemsBody) -> dict[str, int]:
        trial = stream.setup.encoder()
        if trial is None:
            raise Refusal("missing_features")
        for item in body.items:
            if not item or not item.isprintable():
                raise BadInput("items", item, "names of printable text", "mend the name")
        trial.know(body.items)
        rows = [(item, canonical(row).decode()) for item, row in body.items.items()]
        known: list[int] = []

        def then() -> None:
            encoder = stream.offers.encoder
            assert encoder is not None, "features stay with a stream"
            encoder.know(body.items)
            known.append(len(encoder.rows))

        await self.written(lambda: self.store.add_items(stream.row.id, rows), then, stream)
        return {"items": known[0]}

    async def explain(self, name: str, id: str) -> Explained:
        """One decision again from the log, aside from those that decide."""
        return await self.aside(explain, self.stream(name).row.id, id)

    async def aside(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """Work on a view of the file of its own, in a thread, aside from those that decide."""

        def found() -> _T:
            reader = self.store.reader()
            try:
                return work(reader, *arguments)
            finally:
                reader.close()

        return await self.in_thread(found)

    async def written(
        self, write: Callable[[], None], then: Callable[[], None], stream: Stream | None = None
    ) -> None:
        """Something else to write with the next group, under the lock of the stream that it changes."""

        def under_lock() -> None:
            if stream is not None:
                stream.peers.lead()
            write()

        def work() -> None:
            self.engine.also(under_lock, then)

        await self.engine.submit(work if stream is None else leading(stream, work))

    async def in_thread(self, work: Callable[..., _T], *arguments: Any) -> _T:
        found = asyncio.wrap_future(self.pool.submit(work, *arguments))
        late = 0
        while not (await asyncio.wait({found}, timeout=0.5))[0]:
            late += self.engine.stopping
            if late >= _GRACE:
                self.check_open()
        return found.result()


def _check(store: Any) -> None:
    """Whether tables and their indices say the same: an id that its index lost would be decided twice."""
    found = store.soundness()
    if found != "ok":
        raise Damaged(str(store.path), found)


def _check_aside(store: Any) -> None:
    """The same of a large file, while it serves: the server ends if it is not whole."""
    reader = store.reader()
    try:
        _check(reader)
    except Damaged as slip:
        end(slip)
    finally:
        reader.close()


def _warm(body: StreamBody, tick: float | None) -> Setup:
    """A stream's parts, its kernels compiled or loaded before anybody waits for them."""
    made = setup(body, tick)
    warm(made.policy, made.terms.low)
    return made


def _fitting(rows: Iterator[RewardRow], made: Setup) -> Iterator[RewardRow]:
    """Rewards that a policy may be taught, or the one sentence."""
    reach = made.policy.reach * (1.0 + 1e-6)
    for row in rows:
        if row.verdict in LESSONS:
            if not made.terms.low <= row.value <= made.terms.high:
                wanted = f"rewards from {made.terms.low:g} to {made.terms.high:g}, as the new policy takes them"
                raise BadInput("rewards", row.value, wanted, "declare the range of what was written")
            norm = float(np.linalg.norm(np.frombuffer(row.x or b"", dtype="<f8")))
            if not norm <= reach:
                raise BadInput("policy", f"L = {reach:g}", f"L of at least {norm:.6g}, as arms had", "pass it")
        yield row
