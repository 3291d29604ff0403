"""One request: its body read within limits, its key checked, its answer sent in one shape.

An endpoint is an ASGI application of its own, because reading at most so many bytes, answering in one message and
leaving out what nobody asked for is most of what a request costs. What is asked most has a shorter way still:
straight.py.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from driftwise.errors import DriftwiseError
from driftwise.service.wire.protocol import MOST_BODY, Refusal, checked_name, decoder, refusal_of

if TYPE_CHECKING:
    from driftwise.service.http.app import Api

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Handler = Callable[["Api", str, Any, Scope], Awaitable[tuple[int, Any]]]
Work = Callable[["Api", str, Any, Scope], Callable[[], Any]]
Header = tuple[bytes, bytes]

encode = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")
REFUSED = msgspec.DecodeError, DriftwiseError, UnicodeError, RecursionError


class Gone(Exception):
    """The caller went away before the request was whole."""


class Endpoint:
    """One route: the scope a key needs, what the body is, and what is done with it."""

    def __init__(self, api: Api, handler: Handler, scope: str | None, body: Any = None) -> None:
        self.api, self.handler, self.scope = api, handler, scope
        self.decode = None if body is None else decoder(body)
        self.empty = b"null" if type(None) in get_args(body) else b""  # what no body stands for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, api = time.perf_counter(), self.api
        stream = scope["path_params"].get("stream", "")
        try:
            api.admit(scope, self.scope, stream or None)
            _check_path(scope["raw_path"])
            body = None
            if self.decode is not None:
                body = self.decode(await _body(scope, receive) or self.empty)
                api.admit(scope, self.scope, stream or None)  # a body takes up to 10 s: the key may be revoked by now
            status, answer = await self.handler(api, stream, body, scope)
            await _send(send, status, encode(answer))
        except Gone:
            return
        except REFUSED as slip:
            refusal = refusal_of(slip)
            status = refusal.status
            await refuse(send, refusal)
        except Exception as slip:
            refusal = api.slip(slip)
            status = refusal.status
            await refuse(send, refusal)
        api.log.request(scope, stream, status, began)
        api.count(status)


class Straight:
    """One of the routes that are asked most: its name, the work it is, the scope a key needs, and the body."""

    def __init__(self, api: Api, name: str, work: Work, scope: str, body: Any) -> None:
        self.api, self.name, self.work, self.scope = api, name, work, scope
        self.decode = decoder(body)


def _check_path(path: bytes) -> None:
    """Refuse a stream's name with an encoded slash: the router takes home%2Freset for the route reset of home."""
    if b"%" in path and b"%2f" in b"/".join(path.lower().split(b"/", 4)[:4]):
        checked_name("%2f")


async def _body(scope: Scope, receive: Receive) -> bytes:
    """The whole body, or 413 as soon as it is known to be too long."""
    for name, value in scope["headers"]:
        if name == b"content-length" and len(value) < 20 and int(value) > MOST_BODY:
            raise too_long()
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        if len(whole) > MOST_BODY:
            raise too_long()
        return whole
    body = bytearray()  # a list of tiny parts would take a hundred times their bytes
    while True:
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            raise too_long()
        if not message.get("more_body", False):
            return bytes(body)
        message = await receive()


def too_long() -> Refusal:
    """What is refused beyond `MOST_BODY`."""
    return Refusal("long_body", f"more than {MOST_BODY} bytes")


async def _send(send: Send, status: int, body: bytes, *more: Header) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, refusal: Refusal) -> None:
    """The one shape of a refusal."""
    await _send(send, refusal.status, encode(refusal.answer), *headers_of(refusal))


def headers_of(refusal: Refusal, scheme: bytes = b"Bearer") -> list[Header]:
    """What a refusal says beside its body; scheme: how a key is to be shown."""
    more = []
    if refusal.retry_after:
        more.append((b"retry-after", b"%d" % refusal.retry_after))
    if refusal.status == 401:
        more.append((b"www-authenticate", scheme))
    if refusal.status == 413:
        more.append((b"connection", b"close"))  # the rest of the body is not read
    return more
