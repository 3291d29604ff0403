"""One request: its body is read within limits, its key is checked, and its answer is sent in one shape.

An endpoint is an ASGI application of its own, because most of the cost of a request is avoided by bounding the body
while it is read, answering in one message, and doing nothing that was not requested. The most frequent requests take a
still shorter path (straight.py).
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
    """The client disconnected before the request was complete."""


class Endpoint:
    """One route: the scope that a key needs, the type of the body, and the handler."""

    def __init__(self, api: Api, handler: Handler, scope: str | None, body: Any = None) -> None:
        self.api, self.handler, self.scope = api, handler, scope
        self.decode = None if body is None else decoder(body)
        self.empty = b"null" if type(None) in get_args(body) else b""  # the value of an absent body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, api = time.perf_counter(), self.api
        stream = scope["path_params"].get("stream", "")
        try:
            api.admit(scope, self.scope, stream or None)
            _check_path(scope["raw_path"])
            body = None
            if self.decode is not None:
                body = self.decode(await _body(scope, receive) or self.empty)
                api.admit(scope, self.scope, stream or None)  # again: a body takes up to 10 s, and keys are revoked
            status, answer = await self.handler(api, stream, body, scope)
            await _send(send, status, encode(answer))
        except Gone:
            return
        except REFUSED as error:
            refusal = refusal_of(error)
            status = refusal.status
            await refuse(send, refusal)
        except Exception as error:
            refusal = api.unexpected(error)
            status = refusal.status
            await refuse(send, refusal)
        api.log.request(scope, stream, status, began)
        api.count(status)


class Straight:
    """One of the most frequent routes: its name, its work, the scope that a key needs, and the type of the body."""

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
    """The refusal of a body longer than `MOST_BODY`."""
    return Refusal("long_body", f"more than {MOST_BODY} bytes")


async def _send(send: Send, status: int, body: bytes, *more: Header) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, refusal: Refusal) -> None:
    """Send a refusal."""
    await _send(send, refusal.status, encode(refusal.answer), *headers_of(refusal))


def headers_of(refusal: Refusal, scheme: bytes = b"Bearer") -> list[Header]:
    """The headers of a refusal. scheme: how a key is to be sent."""
    more = []
    if refusal.retry_after:
        more.append((b"retry-after", b"%d" % refusal.retry_after))
    if refusal.status == 401:
        more.append((b"www-authenticate", scheme))
    if refusal.status == 413:
        more.append((b"connection", b"close"))  # the rest of the body is not read
    return more
