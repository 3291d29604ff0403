"""Reads the log for the dashboard in its own thread, at most once per second and stream for all readers together.

The event loop only copies a few counters.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from driftwise.draw.markup import Html
from driftwise.service.core.access import authorization, caller_of, sees
from driftwise.service.core.fold import Unlike
from driftwise.service.core.origin import elsewhere
from driftwise.service.core.recompute import decision_of, eras_of, explained, recorded, remade
from driftwise.service.core.setup import Era
from driftwise.service.core.warming import end_soon
from driftwise.service.dashboard import pages, reading
from driftwise.service.dashboard.live import LiveStream, Server, live_of
from driftwise.service.dashboard.signals import Signals
from driftwise.service.dashboard.track import Track, labels_of
from driftwise.service.dashboard.why import Why, decision
from driftwise.service.stores.records import DecisionRow, KeyRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import Refusal, other_result

if TYPE_CHECKING:
    from driftwise.service.http.app import Api

Scope = dict[str, Any]
Parts = dict[str, Html]

PAUSE = 1.0  # seconds from look to look
MOST_FOLD = 100_000  # rewards that are folded to explain one decision


class Looked:
    """The last reading of a stream, and the one that is running."""

    def __init__(self) -> None:
        self.key: object = None
        self.parts: Parts = {}
        self.track: Track | None = None
        self.at = 0.0
        self.running: asyncio.Future[Parts] | None = None


class Dashboard:
    """The pages of a service."""

    def __init__(self, api: Api) -> None:
        self.api, self.service = api, api.service
        self.watching = 0
        self._looked: dict[str, Looked] = {}
        self.signals = Signals()
        self._reading: asyncio.Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "driftwise dashboard")

    def close(self) -> bool:
        """Close it. Returns whether its thread has ended."""
        return end_soon(self._thread)

    def admit(self, scope: Scope, stream: str | None) -> KeyRow | None:
        """The key of a request: an admin's, as a bearer or as the password of Basic. A request without credentials is
        not counted as a failure: the browser has not been asked for a password yet."""
        access = self.service.access
        self.service.check_open()
        if not access.closed:
            return None
        given = authorization(scope)
        if given is None:
            raise Refusal("unknown_key", hint="sign in with an admin key as the password")
        return access.check(caller_of(scope), given, "admin", stream, basic=scope["method"] in ("GET", "HEAD"))

    def live(self, name: str) -> LiveStream:
        return live_of(self.service.stream(name), self.service.now())

    def server(self) -> Server:
        engine = self.service.engine
        return Server(tuple(engine.commits), engine.full, self.service.now.word)

    async def all_streams(self, key: KeyRow | None) -> Parts:
        """The streams that a key may see."""
        names = [name for name in self.service.engine.streams if sees(key, name)]
        return pages.streams([self.live(name) for name in names], self.server())

    async def one_stream(self, name: str) -> Parts:
        """The parts of a stream's page. They are read again if something has changed and a second has passed."""
        live = self.live(name)
        looked = self._looked.setdefault(name, Looked())
        if looked.running is not None:
            return await asyncio.shield(looked.running)
        fresh = time.monotonic() - looked.at < 0.9 * PAUSE
        if looked.parts and (fresh or looked.key == _key(live, self.server())):
            return looked.parts
        loop = asyncio.get_running_loop()
        look = loop.run_in_executor(self._thread, self._look, looked, live, self.server())
        looked.running = asyncio.ensure_future(look)
        looked.running.add_done_callback(lambda _: setattr(looked, "running", None))
        return await asyncio.shield(looked.running)  # a reader that disconnects must not cancel it for others

    def _look(self, looked: Looked, live: LiveStream, server: Server) -> Parts:
        """Runs in the thread."""
        reader = self.service.store.reader()
        try:
            track = looked.track
            if track is None or track.era != live.era:
                track = looked.track = Track(reader, live.era, live.setup, live.state_seq)
            track.follow(reader, live.state_seq)
            found = reading.newest(reader, live.number, live.last)
            parts = {"now": pages.now(live, server, track)}
            listed = reading.latest_decisions(reader, live.number, live.last)
            parts |= pages.parts(live, found, listed, track, self.signals.compare(reader, live))
        except Unlike as error:
            raise other_result(error) from None
        finally:
            reader.close()
        looked.parts, looked.key, looked.at = parts, _key(live, server), time.monotonic()
        return parts

    async def gather(self, key: KeyRow | None) -> None:
        """Read again, for `/metrics`, the outdated numbers of the streams that a key may see."""
        if self._reading is not None:
            return await asyncio.shield(self._reading)
        names = [name for name in self.service.engine.streams if sees(key, name)]
        old = [one for one in map(self.live, names) if self.signals.due(one.number)]
        if old:
            look = asyncio.get_running_loop().run_in_executor(self._thread, self._read, old)
            self._reading = asyncio.ensure_future(look)
            self._reading.add_done_callback(lambda _: setattr(self, "_reading", None))
            await asyncio.shield(self._reading)

    def _read(self, streams: list[LiveStream]) -> None:
        """Runs in the thread."""
        reader = self.service.store.reader()
        try:
            for one in streams:
                self.signals.read(reader, one)
        finally:
            reader.close()

    async def one_decision(self, name: str, id: str) -> Parts:
        """Why a decision was made."""
        number = self.service.stream(name).row.id

        def work() -> Parts:
            reader = self.service.store.reader()
            try:
                return decision(why(reader, number, id))
            finally:
                reader.close()

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _key(live: LiveStream, server: Server) -> object:
    """Everything that a page depends on. The generation stands for the setup."""
    return live._replace(setup=None), server  # type: ignore[arg-type]


def why(store: Store, stream: int, id: str) -> Why:
    """Compute a decision again, unless its arms were forgotten or too many rewards would have to be learned."""
    row = decision_of(store, stream, id)
    era = next(one for one in eras_of(store, stream) if one.row.number == row.era)
    reason = _not_again(store, row, era)
    if not reason:
        told, seen = explained(store, remade(store, row), labels_of(era.setup))
        other = elsewhere(era) if told.recomputed is None else ""
        if not other:
            rival = next((arm for arm in told.arms if seen is not None and arm.arm == seen.rival), None)
            name = "" if rival is None else f"arm {rival.arm}" if rival.item is None else rival.item
            return Why(row, era.setup, told, () if seen is None else seen.pulls, name)
        reason = f"It was computed by {other}, and is not recomputable here, which is not damage."
    return Why(row, era.setup, recorded(store, row, era), (), "", reason)


def _not_again(store: Store, row: DecisionRow, era: Era) -> str:
    """Why a decision is not computed again."""
    if row.arm_set is None:
        return "Its arms were forgotten."
    if row.state_seq < era.row.base:
        return "Rewards that were learned after it were forgotten, and the state before them with them."
    starts = [one.seq for one in store.snapshots(row.stream, row.era) if one.seq <= row.state_seq]
    if row.state_seq - max(starts, default=era.row.first) > MOST_FOLD:
        return f"No snapshot lies within {MOST_FOLD:,} rewards before it: driftwise verify computes it again."
    return ""
