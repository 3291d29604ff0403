"""A service: its store, its streams and the changes to them. http/app.py receives the requests."""

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
from driftwise._internal.products import length
from driftwise.errors import BadInput
from driftwise.ledger import LESSONS
from driftwise.service.core.access import Access, KeyWatch
from driftwise.service.core.engine import CommitEngine, Groups, Turn, end
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.origin import begun, check_machine, refused
from driftwise.service.core.peers import Alone, Peers, Unwatched, Watch
from driftwise.service.core.recompute import eras_of, explain
from driftwise.service.core.refold import bring_up
from driftwise.service.core.setup import Setup, declared_body, same_stream, setup
from driftwise.service.core.stream import Stream
from driftwise.service.core.waiting import leading, resolve, steady
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
_TRIES = 4  # attempts of a change that conflicts with another
_STRETCH = 2_000  # rows of a table that are erased per group
_GRACE = 3  # half seconds that work in the pool may take after the server is asked to stop
_SMALL = 64 << 20  # bytes: a smaller database is checked before serving, which takes a quarter of a second


class Parts(NamedTuple):
    """The parts of a service that differ if other servers serve the same database (replica/watch.py)."""

    turn: Callable[[CommitEngine], Turn]
    peers: Callable[[Stream], Peers]
    watch: Callable[[Service], Watch]


ALONE = Parts(Groups, Alone, Unwatched)


class Service:
    """The streams of a database. Changes to a stream are made one after the other; decisions and rewards in groups.

    With later=True `prepare` resumes the streams. Until then the service is not ready and refuses requests.
    """

    def __init__(
        self, store: Any, now: Callable[[], float] | None = None, *, later: bool = False, parts: Parts = ALONE
    ) -> None:
        self.store, self.now, self._peers_of = store, steady(now), parts.peers
        self.ready, self.doing = False, ""  # whether it serves, and what it is doing until then
        self.compiling: dict[str, Future[None]] = {}  # streams whose kernels are being compiled in the pool
        self.deleted: dict[str, int] = store.deleted()  # numbers of deleted streams, by name
        self._unerased = [number for number in self.deleted.values() if store.has_rows(number)]
        self._preparing: Thread | None = None
        self.pool = ThreadPoolExecutor(1, "driftwise aside")  # for work that takes long and may wait
        if not store.shared:
            if store.path.stat().st_size <= _SMALL:
                _check(store)
            else:
                self.pool.submit(_check_aside, store)
        self.engine = CommitEngine(store, parts.turn)
        self.watch = parts.watch(self)
        self.access = Access(store.keys())
        self._keys = KeyWatch(self.access, store, lambda error: self.engine.unexpected(error))
        self._changing = asyncio.Lock()
        self.notice_of: Callable[[str, EventRow], str | None] = lambda stream, event: None  # the webhook's message
        if not later:
            self._resume()
            self.ready = True

    async def prepare(self) -> None:
        """Resume the streams in a thread, because learning and compiling take long. Then the service is ready."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def work() -> None:
            error: BaseException | None = None
            try:
                self._resume()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the event loop was closed meanwhile
                loop.call_soon_threadsafe(resolve, done, error)

        self._preparing = Thread(target=work, name="driftwise prepare", daemon=True)
        self._preparing.start()
        await done
        self.ready = True

    def _resume(self) -> None:
        rows = self.store.streams()
        for number, row in enumerate(rows):
            self.doing = f"stream {row.name} is being compiled and brought up to date; {number} of {len(rows)} are done"
            bring_up(self.store, row)
            self.engine.streams[row.name] = self.resumed(row)
        if not self.store.shared:
            self.store.never_wait()

    def check_open(self) -> None:
        """Refuse requests before the service is ready and when it stops."""
        if self.engine.stopping:
            raise Refusal("stopping")
        if not self.ready:
            raise Refusal("starting", "the server is starting: its streams are being compiled and brought up to date")

    def resumed(self, row: StreamRow) -> Stream:
        """A stream as it was last written."""
        last = eras_of(self.store, row.id)[-1]
        check_machine(self.store.path, row.name, last)
        warm(last.setup.policy, last.setup.terms.low)
        try:
            fold = resume(self.store, last.row, last.setup)
        except Unlike as error:
            raise refused(self.store.path, row.name, last, error) from None
        stream = Stream(row, last.setup, fold, self.store, self._peers_of)
        self.teach_items(stream)
        return stream

    def teach_items(self, stream: Stream) -> None:
        encoder = stream.offers.encoder
        if encoder is not None:
            encoder.know({name: msgspec.json.decode(text) for name, text in self.store.items(stream.row.id)})

    def start(self) -> None:
        """Start; the event loop runs."""
        self._keys.start()
        self.watch.start()
        self._look_for_room()
        self._erasing = [asyncio.create_task(self.erase(number)) for number in self._unerased]

    async def answer(self, name: str) -> StreamAnswer:
        """The state of a stream as it is on disk."""
        return await self.watch.answer(self.stream(name))

    def _look_for_room(self) -> None:
        """Write something, so that health says whether the disk is full."""
        asked = self.engine.submit(partial(self.engine.also, self.store.probe, lambda: None))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())

    def expire(self) -> None:
        """Learn the defaults that are due, with the next group; see whether a full disk has room again."""
        if self.engine.full and not self.engine.stopping:
            self._look_for_room()
        for stream in self.engine.streams.values():
            idle = self.engine.stopping or stream.row.name in self.compiling
            if stream.setup.terms.default is not None and not idle:
                asked = self.engine.submit(partial(stream.peers.expire, self.now()))
                asked.add_done_callback(lambda done: done.exception())  # the next call tries again

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
        """Close the service. Returns whether all of its threads have ended."""
        self.watch.close()
        self._keys.close()
        if self._preparing is not None and self._preparing.is_alive():  # it still uses the store
            return False
        ended = end_soon(self.pool)
        self.engine.close()
        return ended

    # ------------------------------------------------------------------------------------ changes

    async def changed(self, change: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:
        """Change a stream, one change at a time in this process. If another replica's change came first it is computed
        again, so that the changes of a stream have one order."""
        async with self._changing:
            for _ in range(_TRIES - 1):
                try:
                    return await change(*arguments)
                except Stale:
                    await self.watch.look()
            return await change(*arguments)

    async def put(self, name: str, body: StreamBody) -> tuple[int, StreamAnswer]:
        """Make a stream. The same body again is accepted; another body with the same name is refused."""
        return await self.changed(self._put, checked_name(name), body)

    async def _put(self, name: str, body: StreamBody) -> tuple[int, StreamAnswer]:
        await self.watch.look()  # another replica may have deleted it
        found = self.engine.streams.get(name)
        if found is not None:
            if not same_stream(found.setup, body):
                raise Refusal("stream_exists")
            return 200, await self.answer(name)
        self._check_name(name)
        made = await self.in_thread(_warm, declared_body(body), None)
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
        """Stop deciding, or play the fallback, or resume. Rewards are accepted in every case."""
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
        """Add an event: a step that is neither a decision nor a reward. Call it under the stream's lock."""
        seq, text = len(self.store.events(stream.row.id)) + 1, canonical(body).decode()
        row = EventRow(stream.row.id, seq, self.now(), kind, stream.seq, stream.rewarded, text)
        self.store.add_events([row])
        notice = self.notice_of(stream.row.name, row)
        if notice is not None:
            self.store.add_notice(stream.row.id, row.at, notice)

    async def delete(self, name: str, body: DeleteBody) -> dict[str, str]:
        """Delete a stream permanently: its name is never used again."""
        if body.name != name:
            raise BadInput("name", body.name, f"{name}, the stream's name again", "send the name to confirm")
        stream = self.stream(name)
        await self.changed(self._delete, stream, body.force)
        if self.store.shared:
            await self.drop_sets()  # waits for the decisions of other replicas that began before it was deleted
        await self.erase(stream.row.id)
        return {"deleted": name}

    async def _delete(self, stream: Stream, force: bool) -> None:
        def write() -> None:
            if not force and stream.counts.open:
                raise Refusal("open_decisions", f"{stream.counts.open} decisions of the stream wait for their rewards")
            self.event(stream, "deleted", decisions=stream.counts.decided, rewards=stream.kept[1], forced=force)
            self.store.end_stream(stream.row.id)

        await self.written(write, lambda: self.drop(stream), stream)

    def drop(self, stream: Stream) -> None:
        """Stop serving a deleted stream."""
        stream.gone = True
        self.deleted = {**self.deleted, stream.row.name: stream.row.id}
        self.engine.streams = {name: one for name, one in self.engine.streams.items() if one is not stream}

    async def erase(self, number: int) -> None:
        """Erase the rows of a deleted stream, a batch per group."""
        more = [True]

        def write() -> None:
            more[:] = [self.store.erase_stretch(number, _STRETCH)]

        await self.engine.submit(self.store.erase_wholly)
        while more[0]:
            await self.written(write, lambda: None)
        await self.drop_sets()

    async def drop_sets(self) -> None:
        """Erase sets of arms that no decision refers to."""
        if self.store.shared:
            await self.in_thread(self.store.drop_sets_aside)
        else:
            await self.written(self.store.drop_sets, self.store.checkpoint_soon)  # the WAL still has the erased rows

    async def reset(self, name: str) -> StreamAnswer:
        """Discard what was learned: a new generation begins, which learns only later rewards."""
        return await self.changed(self._reset, self.stream(name))

    async def _reset(self, stream: Stream) -> StreamAnswer:
        before, made = stream.era, stream.setup
        await self._begin(stream, before, made, lambda era: Fold(era, made), stream_first=True)
        return await self.answer(stream.row.name)

    async def change(self, name: str, body: StreamBody) -> StreamAnswer:
        """Change the policy. The new one has learned the same rewards."""
        return await self.changed(self._replace, self.stream(name), body)

    async def _replace(self, stream: Stream, body: StreamBody) -> StreamAnswer:
        before, old = stream.era, stream.setup
        made = await self.in_thread(_warm, declared_body(body, old.body), old.tick)
        for what, mine, theirs in (
            ("clock", made.body.clock, old.body.clock), ("tick", made.tick, old.tick),
            ("dim", made.policy.dim, old.policy.dim), ("features", made.body.features, old.body.features),
        ):  # fmt: skip
            if mine != theirs:
                raise Refusal("fixed_setting", f"the stored rewards were written with another {what}", what)
        fold = await self.in_thread(self._taught, made, before)
        await self.in_thread(self._catch_up, fold, made)  # with the rewards that came while the thread folded
        taken: list[EraRow] = []

        def taught(era: EraRow) -> Fold:
            if taken:  # the group whose rows it had learned was rolled back
                raise Stale
            taken.append(era)
            self._teach(fold, made, self.store)  # with the rows of this group, which are in the transaction
            fold.era = era
            return fold

        await self._begin(stream, before, made, taught, stream_first=False)
        return await self.answer(stream.row.name)

    def _taught(self, made: Setup, before: EraRow) -> Fold:
        """Runs in a thread: a policy that has learned all rewards that are committed now."""
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
        except Unlike:  # another replica is erasing them
            raise Stale from None

    async def _begin(
        self, stream: Stream, before: EraRow, made: Setup, fold_of: Callable[[EraRow], Fold], stream_first: bool
    ) -> None:
        """Begin a new generation at the end of the group, if the stream still has the generation `before`, for which
        this was computed."""
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
        """Register rows of items that decisions refer to by name."""
        return await self.changed(self._items, self.stream(name), body)

    async def _items(self, stream: Stream, body: ItemsBody) -> dict[str, int]:
        trial = stream.setup.encoder()
        if trial is None:
            raise Refusal("missing_features")
        for item in body.items:
            if not item or not item.isprintable():
                raise BadInput("items", item, "names of printable text", "send another name")
        trial.know(body.items)
        rows = [(item, canonical(row).decode()) for item, row in body.items.items()]
        known: list[int] = []

        def then() -> None:
            encoder = stream.offers.encoder
            assert encoder is not None, "the features of a stream do not change"
            encoder.know(body.items)
            known.append(len(encoder.rows))

        await self.written(lambda: self.store.add_items(stream.row.id, rows), then, stream)
        return {"items": known[0]}

    async def explain(self, name: str, id: str) -> Explained:
        """Recompute one decision from the log, in the pool."""
        return await self.aside(explain, self.stream(name).row.id, id)

    async def aside(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """Do work in the pool, on its own connection to the database."""

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
        """Write something else with the next group, under the lock of the stream that it changes."""

        def under_lock() -> None:
            if stream is not None:
                stream.peers.lead()
            write()

        def work() -> None:
            if stream is not None:
                stream.check_there()
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
    """Check that tables agree with their indices: an id that is missing in its index would be decided twice."""
    found = store.soundness()
    if found != "ok":
        raise Damaged(str(store.path), found)


def _check_aside(store: Any) -> None:
    """Check a large file while it is served. The server ends if the file is damaged."""
    reader = store.reader()
    try:
        _check(reader)
    except Damaged as error:
        end(error)
    finally:
        reader.close()


def _warm(body: StreamBody, tick: float | None) -> Setup:
    """The setup of a stream, with its kernels compiled or loaded before a request needs them."""
    made = setup(body, tick)
    warm(made.policy, made.terms.low)
    return made


def _fitting(rows: Iterator[RewardRow], made: Setup) -> Iterator[RewardRow]:
    """The rewards, if the policy may learn them; else a BadInput."""
    reach = made.policy.reach * (1.0 + 1e-6)
    for row in rows:
        if row.verdict in LESSONS:
            if not made.terms.low <= row.value <= made.terms.high:
                wanted = f"rewards from {made.terms.low:g} to {made.terms.high:g}, the range of the new policy"
                raise BadInput("rewards", row.value, wanted, "declare a range that contains the stored rewards")
            norm = length(np.frombuffer(row.x or b"", dtype="<f8"))
            if not norm <= reach:
                raise BadInput("policy", f"L = {reach:g}", f"L of at least {norm:.6g}, as stored arms have", "pass L")
        yield row
