"""The dashboard over HTTP: who may see it, what a page may load, and fragments that follow while somebody looks.

All that reads the log runs in one thread of its own, at most once a second for a stream however many look at it; the
event loop only copies a few counters. A page is whole without the script, which does nothing but swap its parts.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from starlette.routing import Route

from driftwise.agent.explain import estimate, pulls_of
from driftwise.draw.page import DARK, style
from driftwise.draw.styles import PALETTE
from driftwise.errors import DriftwiseError
from driftwise.service.dashboard import pages, reading
from driftwise.service.dashboard.markup import Html, joined, tag
from driftwise.service.dashboard.pages import Live, Server, Why
from driftwise.service.dashboard.track import Track, labels_of
from driftwise.service.fold import Unlike
from driftwise.service.protocol import Explained, Refusal, refusal_of
from driftwise.service.recompute import decision_of, eras_of, explained, remade
from driftwise.service.store import DecisionRow, KeyRow, Store
from driftwise.service.stream import decided

if TYPE_CHECKING:
    from driftwise.service.http import Api

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Parts = dict[str, Html]

PAUSE = 1.0  # seconds from look to look
LONGEST = 600.0  # seconds of one connection; the browser makes the next by itself
MOST_WATCHING = 64
MOST_FOLD = 100_000  # rewards that are folded to explain one decision
_QUIET = 15  # looks without news after which a comment keeps the connection alive


def _colours() -> str:
    """The classes c0 … c6, light and dark, in the report's hues."""
    hues = [PALETTE[name] for name in ("weighted", "discounted", "restart", "MASTER", "Bank", "window", "other")]
    light = "".join(f".c{place} {{ color: {hue}; }}\n" for place, hue in enumerate(hues))
    dark = "".join(f".c{place} {{ color: {DARK[hue]}; }}\n" for place, hue in enumerate(hues))
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _file(name: str) -> str:
    return (files("driftwise.service.dashboard") / name).read_text(encoding="utf-8")


_STYLE = style() + _file("dashboard.css") + _colours()
_SCRIPT = _file("live.js")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Only this very style and script, and news from this server: text that slipped through could still do nothing.
CONTENT_POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()), (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"), (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]  # fmt: skip


def document(title: str, above: object, lead: object, parts: Parts, events: str = "") -> bytes:
    """A whole page."""
    top = tag("header", tag("p", above), tag("h1", title), tag("p", lead), tag("span", id="live"))
    sections = [tag("section", inside, id=name) for name, inside in parts.items()]
    body = tag("body", top, tag("main", *sections), tag("script", Html(_SCRIPT)), data_events=events or None)
    head = joined([
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'),
        tag("title", f"{title} · driftwise"), tag("style", Html(_STYLE)),
    ])  # fmt: skip
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'.encode()


class Looked:
    """What was last seen of a stream, and the look that is under way."""

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
        self._thread = ThreadPoolExecutor(1, "driftwise dashboard")

    def close(self) -> None:
        self._thread.shutdown()

    def admit(self, scope: Scope, stream: str | None) -> KeyRow | None:
        """The key of a request: an admin's, as a bearer or as the password of Basic. Nobody is guessing who was not
        asked yet, so a request without credentials is no failure."""
        engine, access = self.service.engine, self.service.access
        if engine.stopping:
            raise Refusal(503, "the server is stopping", "", "come again", retry_after=1)
        if not access.keys:
            return None
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"), None)
        if given is None:
            raise Refusal(401, "a key is needed", "authorization", "sign in with an admin key as the password")
        caller = scope["client"][0] if scope.get("client") else ""
        return access.check(caller, given, "admin", stream)

    def live(self, name: str) -> Live:
        return pages.live_of(self.service.stream(name), self.service.now())

    def server(self) -> Server:
        engine = self.service.engine
        return Server(tuple(engine.commits), engine.full)

    async def all_streams(self, key: KeyRow | None) -> Parts:
        """The streams that a key may see."""
        names = [name for name in self.service.engine.streams if key is None or key.stream in ("*", name)]
        return pages.streams([self.live(name) for name in names], self.server())

    async def one_stream(self, name: str) -> Parts:
        """The parts of a stream's page, read anew when something came and a second has passed."""
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
        return await asyncio.shield(looked.running)  # whoever goes away takes nothing from the others

    def _look(self, looked: Looked, live: Live, server: Server) -> Parts:
        """In the thread."""
        reader = self.service.store.reader()
        try:
            track = looked.track
            if track is None or track.era != live.era:
                track = looked.track = Track(reader, live.era, live.setup, live.state_seq)
            track.follow(reader, live.state_seq)
            found = reading.newest(reader, live.number, live.last)
            parts = {"now": pages.now(live, server, track)}
            parts |= pages.parts(live, found, reading.listed(reader, live.number, live.last), track)
        except Unlike as slip:
            raise Refusal(409, f"the log does not come out as written: {slip}", "", "run driftwise verify") from None
        finally:
            reader.close()
        looked.parts, looked.key, looked.at = parts, _key(live, server), time.monotonic()
        return parts

    async def one_decision(self, name: str, id: str) -> Parts:
        """Why a decision was made."""
        number = self.service.stream(name).row.id

        def work() -> Parts:
            reader = self.service.store.reader()
            try:
                return pages.decision(_why(reader, number, id))
            finally:
                reader.close()

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _key(live: Live, server: Server) -> object:
    """What a page depends on; an era says which setup it has."""
    return live._replace(setup=None), server  # type: ignore[arg-type]


def _why(store: Store, stream: int, id: str) -> Why:
    """A decision computed again, unless its arms were forgotten or too much would have to be folded."""
    row = decision_of(store, stream, id)
    era = next(one for one in eras_of(store, stream) if one.row.number == row.era)
    if row.arm_set is None:
        return Why(row, era.setup, _record(store, row, era.row.policy), (), "", "Its arms were forgotten.")
    starts = [one.seq for one in store.snapshots(stream, row.era) if one.seq <= row.state_seq]
    far = row.state_seq - max(starts, default=era.row.first)
    if far > MOST_FOLD:
        reason = f"No snapshot lies within {MOST_FOLD:,} rewards before it: driftwise verify computes it again."
        return Why(row, era.setup, _record(store, row, era.row.policy), (), "", reason)
    found = remade(store, row)
    told = explained(store, found)
    pulls: tuple[tuple[str, float], ...] = ()
    rival = next((arm for arm in told.arms if arm.arm != row.proposed), None)
    if found.arms is not None and rival is not None:
        theta, _ = estimate(era.setup.policy, found.state)
        if theta.size == found.arms.dim:
            pulls = pulls_of(theta, found.arms, row.proposed, rival.arm, labels_of(era.setup))
    name = "" if rival is None else f"arm {rival.arm}" if rival.item is None else rival.item
    return Why(row, era.setup, told, pulls, name)


def _record(store: Store, row: DecisionRow, policy: str) -> Explained:
    """What is written of a decision, nothing computed again."""
    reward = store.reward(row.stream, row.id)
    return Explained(
        decision=decided(row), born=row.born, at=row.at, policy=policy, arms=[], recomputed=None,
        reward=None if reward is None else reward.value, verdict="open" if reward is None else reward.verdict,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ over HTTP


class Page:
    """A page: its parts made by `make` from the stream and the id in the path."""

    def __init__(self, board: Dashboard, kind: str) -> None:
        self.board, self.kind = board, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, params = time.perf_counter(), scope["path_params"]
        stream, status, more = params.get("stream", ""), 200, []
        try:
            key = self.board.admit(scope, stream or None)
            body = await self._made(stream, params.get("id", ""), key)
        except DriftwiseError as slip:
            refusal = refusal_of(slip)
            status, answer = refusal.status, refusal.answer
            if status == 401:
                more.append((b"www-authenticate", b'Basic realm="driftwise", charset="UTF-8"'))
            if refusal.retry_after:
                more.append((b"retry-after", b"%d" % refusal.retry_after))
            inside = tag("p", answer.error, ". ", answer.hint, "." if answer.hint else "")
            body = document(str(status), tag("a", "All streams", href="/"), "", {"facts": inside})
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body)), *_HEADERS]
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
        await send({"type": "http.response.body", "body": body})
        self.board.api.log.request(scope, stream, status, began, "dashboard")
        self.board.api.count(status)

    async def _made(self, stream: str, id: str, key: KeyRow | None) -> bytes:
        board = self.board
        if self.kind == "decision":
            up = joined([tag("a", "All streams", href="/"), " / ",
                         tag("a", stream, href=f"/streams/{quote(stream, safe='')}")])  # fmt: skip
            return document(id, up, "One decision explained from the log.", await board.one_decision(stream, id))
        if self.kind == "stream":
            parts = await board.one_stream(stream)
            return document(stream, tag("a", "All streams", href="/"), "", parts,
                            f"/streams/{quote(stream, safe='')}/events")  # fmt: skip
        return document("Streams", "driftwise", "What decides here, and what it learns.",
                        await board.all_streams(key), "/events")  # fmt: skip


class Events:
    """News of a page by server-sent events: the parts that changed, a second apart."""

    def __init__(self, board: Dashboard, kind: str) -> None:
        self.board, self.kind = board, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        board, began = self.board, time.perf_counter()
        stream, status = scope["path_params"].get("stream", ""), 200
        try:
            board.admit(scope, stream or None)
            if stream:
                board.service.stream(stream)
            if board.watching >= MOST_WATCHING:
                raise Refusal(503, "too many are looking", "", "come again", retry_after=5)
        except DriftwiseError as slip:
            refusal = refusal_of(slip)
            status = refusal.status
            more = [(b"retry-after", b"%d" % refusal.retry_after)] if refusal.retry_after else []
            if status == 401:
                more.append((b"www-authenticate", b'Basic realm="driftwise", charset="UTF-8"'))
            await send({"type": "http.response.start", "status": status, "headers": [*_HEADERS, *more]})
            await send({"type": "http.response.body", "body": b""})
        else:
            headers = [(b"content-type", b"text/event-stream"), *_HEADERS]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] != "HEAD":
                await self._follow(scope, stream, receive, send)
            await send({"type": "http.response.body", "body": b""})
        board.api.log.request(scope, stream, status, began, "events")
        board.api.count(status)

    async def _follow(self, scope: Scope, stream: str, receive: Receive, send: Send) -> None:
        """Until the reader goes, the key is revoked, the server stops or the connection is old."""
        board, sent, quiet = self.board, Parts(), 0
        gone = asyncio.ensure_future(_gone(receive))
        until = time.monotonic() + LONGEST
        board.watching += 1
        try:
            await _say(send, "retry: 1000\n\n")
            while time.monotonic() < until:
                key = board.admit(scope, stream or None)
                parts = await (board.one_stream(stream) if stream else board.all_streams(key))
                news = {name: inside for name, inside in parts.items() if sent.get(name) != inside}
                quiet = 0 if news else quiet + 1
                for name, inside in news.items():
                    told = msgspec.json.encode({"id": name, "html": str(inside)}).decode()
                    await _say(send, f"event: part\ndata: {told}\n\n")
                if quiet and quiet % _QUIET == 0:
                    await _say(send, ": still here\n\n")
                sent = parts
                await asyncio.wait({gone}, timeout=PAUSE)
                if gone.done():
                    return
        except DriftwiseError:  # not welcome any more; whoever asks again is told why
            return
        finally:
            board.watching -= 1
            gone.cancel()


async def _say(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def routes(board: Dashboard) -> list[Route]:
    """Where the pages are. An id may have slashes."""
    table: list[tuple[str, Any]] = [
        ("/", Page(board, "streams")), ("/events", Events(board, "streams")),
        ("/streams/{stream}", Page(board, "stream")), ("/streams/{stream}/events", Events(board, "stream")),
        ("/streams/{stream}/decisions/{id:path}", Page(board, "decision")),
    ]  # fmt: skip
    return [Route(path, end, methods=["GET"]) for path, end in table]
