"""The dashboard over HTTP: access to pages, and events that update a page while it is open.

A page is complete without the script. The script only replaces its parts. Headers forbid a page to load anything else.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.routing import Route

from driftwise.draw.markup import Html, joined, tag
from driftwise.draw.page import DARK, style
from driftwise.draw.styles import PALETTE
from driftwise.errors import DriftwiseError
from driftwise.service.dashboard.looking import PAUSE, Dashboard, Parts
from driftwise.service.http.endpoint import Receive, Scope, Send, headers_of
from driftwise.service.stores.records import KeyRow
from driftwise.service.wire.protocol import Refusal, refusal_of


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


def hash_of(text: str) -> str:
    """The hash by which a content policy identifies a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Only this style and script, and events from this server: markup that was not escaped could still do nothing.
CONTENT_POLICY = (
    f"default-src 'none'; style-src {hash_of(_STYLE)}; script-src {hash_of(_SCRIPT)}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()), (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"), (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]  # fmt: skip


def html_document(title: str, above: object, lead: object, parts: dict[str, Html], events: str = "") -> bytes:
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


LONGEST = 600.0  # seconds of one connection; the browser reconnects by itself
MOST_WATCHING = 64
_BASIC = b'Basic realm="driftwise", charset="UTF-8"'
_QUIET = 15  # looks without news after which a comment keeps the connection alive


class DashboardPage:
    """A page: its parts made by `make` from the stream and the id in the path."""

    def __init__(self, board: Dashboard, kind: str) -> None:
        self.board, self.kind = board, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, params = time.perf_counter(), scope["path_params"]
        stream, status, more = params.get("stream", ""), 200, []
        try:
            key = self.board.admit(scope, stream or None)
            body = await self._made(stream, params.get("id", ""), key)
        except Exception as error:
            refusal = refusal_of(error) if isinstance(error, DriftwiseError) else self.board.api.unexpected(error)
            status, answer = refusal.status, refusal.answer
            more = headers_of(refusal, _BASIC)
            inside = tag("p", answer.error, ". ", answer.hint, "." if answer.hint else "")
            body = html_document(str(status), tag("a", "All streams", href="/"), "", {"facts": inside})
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(body)), *HEADERS]
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
        await send({"type": "http.response.body", "body": body})
        self.board.api.log.request(scope, stream, status, began, "dashboard")
        self.board.api.count(status)

    async def _made(self, stream: str, id: str, key: KeyRow | None) -> bytes:
        board = self.board
        if self.kind == "decision":
            up = joined([tag("a", "All streams", href="/"), " / ",
                         tag("a", stream, href=f"/streams/{quote(stream, safe='')}")])  # fmt: skip
            return html_document(id, up, "One decision explained from the log.", await board.one_decision(stream, id))
        if self.kind == "stream":
            parts = await board.one_stream(stream)
            return html_document(stream, tag("a", "All streams", href="/"), "", parts,
                            f"/streams/{quote(stream, safe='')}/events")  # fmt: skip
        return html_document("Streams", "driftwise", "The streams of this server.",
                        await board.all_streams(key), "/events")  # fmt: skip


class Events:
    """The changes of a page as server-sent events: the parts that changed, once a second."""

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
                raise Refusal("many_readers")
        except DriftwiseError as error:
            refusal = refusal_of(error)
            status = refusal.status
            headers = [*HEADERS, *headers_of(refusal, _BASIC)]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            headers = [(b"content-type", b"text/event-stream"), *HEADERS]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] != "HEAD":
                await self._follow(scope, stream, receive, send)
            await send({"type": "http.response.body", "body": b""})
        board.api.log.request(scope, stream, status, began, "events")
        board.api.count(status)

    async def _follow(self, scope: Scope, stream: str, receive: Receive, send: Send) -> None:
        """Send events until the reader disconnects, the key is revoked, the server stops or the connection is old."""
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
        except DriftwiseError:  # no longer allowed; the next request gets the reason
            return
        except Exception as error:
            board.api.unexpected(error)
        finally:
            board.watching -= 1
            gone.cancel()


async def _say(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def routes(board: Dashboard) -> list[Route]:
    """The routes of the pages. An id may contain slashes."""
    table: list[tuple[str, Any]] = [
        ("/", DashboardPage(board, "streams")), ("/events", Events(board, "streams")),
        ("/streams/{stream}", DashboardPage(board, "stream")), ("/streams/{stream}/events", Events(board, "stream")),
        ("/streams/{stream}/decisions/{id:path}", DashboardPage(board, "decision")),
    ]  # fmt: skip
    return [Route(path, end, methods=["GET"]) for path, end in table]
