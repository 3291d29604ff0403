"""Decisions and rewards straight from the connection: no task and no scope a request, and one write an answer.

Most of what a small request costs is what a framework does for requests of every kind. A decision or a reward that
comes as nearly all do is read whole, waits with its group, and is called back when that is on disk. Whatever is
unusual about a request (a body in chunks, a query, a request before the last is answered) sends it the ordinary way.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from driftwise.service.endpoint import REFUSED, Work, encode, headers_of
from driftwise.service.protocol import MOST_BODY, decoder, refusal_of

if TYPE_CHECKING:
    from driftwise.service.http import Api

_DIGITS = len(str(MOST_BODY))
_ANSWER = b"%bcontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"


def written(status: int, body: bytes, more: bytes) -> bytes:
    """An answer as it is sent, with lines of headers beside the usual ones."""
    return _ANSWER % (STATUS_LINE[status], len(body), more, body)


class Straight:
    """One of the routes that are asked most: its name, the work it is, the scope a key needs, and the body."""

    def __init__(self, api: Api, name: str, work: Work, scope: str, body: Any) -> None:
        self.api, self.name, self.work, self.scope = api, name, work, scope
        self.decode = decoder(body)


def straight(protocol: HttpToolsProtocol) -> Asked | None:
    """The request whose headers have come, if it may go straight."""
    parts = protocol.url.split(b"/")
    if len(parts) != 5 or parts[1] != b"v1" or parts[2] != b"streams" or protocol.expect_100_continue:
        return None
    route = protocol.app.straight.get(parts[4])
    last, parser = protocol.cycle, protocol.parser
    if route is None or parser.get_method() != b"POST" or b"%" in parts[3]:
        return None
    if (last is not None and not last.response_complete) or protocol.flow.write_paused:
        return None  # the ordinary way waits until the caller has read the answers before
    for name, value in protocol.headers:
        if name == b"content-length" and len(value) <= _DIGITS and int(value) <= MOST_BODY:
            version = parser.get_http_version()
            protocol.scope["method"], protocol.scope["http_version"] = "POST", version
            keep_alive = parser.should_keep_alive() and version != "1.0"
            return Asked(protocol, route, parts[3].decode("ascii", "replace"), keep_alive)
    return None


class Asked:
    """A request in the place of uvicorn's cycle: what a connection looks at there has the same names."""

    __slots__ = ("_began", "_body", "_protocol", "_route", "_scope", "_stream", "disconnected", "keep_alive",
                 "message_event", "response_complete")  # fmt: skip

    def __init__(self, protocol: HttpToolsProtocol, route: Straight, stream: str, keep_alive: bool) -> None:
        self._protocol, self._route, self._stream = protocol, route, stream
        self._scope: Any = protocol.scope
        self._body: bytes | bytearray = b""
        self._began = time.perf_counter()
        self.keep_alive, self.disconnected, self.response_complete = keep_alive, False, False
        self.message_event = _NOBODY_WAITS

    def take(self, body: bytes) -> None:
        """More of the body; the parser sees to it that it is no longer than was said."""
        if not self._body:
            self._body = body
        else:  # as a rule there is no second piece; of tiny ones a list would take a hundred times their bytes
            if type(self._body) is bytes:
                self._body = bytearray(self._body)
            self._body += body

    def begin(self) -> None:
        """The request is whole: have it done with the next group."""
        route, stream = self._route, self._stream
        api = route.api
        try:
            api.site.check(self._scope)
            api.admit(self._scope, route.scope, stream)
            body = route.decode(self._body)
            api.service.engine.enter(route.work(api, stream, body), self.answer)
        except REFUSED as slip:
            self.answer(slip)
        except Exception as slip:
            self.answer(api.slip(slip))

    def answer(self, answer: Any) -> None:
        """What came of it, which is on disk, or what was raised: sent in one write."""
        api, status, more = self._route.api, 200, b""
        if isinstance(answer, BaseException):
            refusal = refusal_of(answer)
            status, answer = refusal.status, refusal.answer
            more = b"".join([b"%b: %b\r\n" % header for header in headers_of(refusal)])
        if not self.disconnected:
            self._send(status, encode(answer), more)
        api.log.request(self._scope, self._stream, status, self._began, self._route.name)
        api.count(status)

    def _send(self, status: int, body: bytes, more: bytes) -> None:
        protocol = self._protocol
        if not self.keep_alive:
            more += b"connection: close\r\n"
        protocol.transport.write(written(status, body, more))
        self.response_complete = True
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()


class _Nobody:
    """In the place of an event that nobody waits for."""

    def set(self) -> None:
        pass


_NOBODY_WAITS = _Nobody()
