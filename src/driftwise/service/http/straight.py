"""Decisions and rewards straight from the connection: no task and no scope a request, and one write an answer.

Most of what a small request costs is what a framework does for requests of every kind. A decision or a reward that
comes as nearly all do is read whole, waits with its group, and is called back when that is on disk. Whatever is
unusual about a request (a body in chunks, a query, a request before the last is answered) sends it the ordinary way.
This saves a third of the CPU of a decision at 32 clients and a fifth at 8 (bench/straight.py).

All that the service uses of uvicorn's private side is in this file. `missing` names what a version of uvicorn lacks of
it; then the server runs without this file (run.py).
"""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import Any, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from driftwise.service.http.endpoint import REFUSED, Straight, encode, headers_of, too_long
from driftwise.service.wire.protocol import (
    MOST_BODY,
    MOST_CHUNKS,
    MOST_HEAD,
    MOST_HEADERS,
    MOST_PIPELINED,
    Refusal,
    refusal_of,
)

PATIENCE = 10.0  # seconds for a request to come whole
_METHODS = (
    "_unset_keepalive_if_required", "connection_lost", "connection_made", "data_received", "on_body", "on_header",
    "on_headers_complete", "on_message_begin", "on_message_complete", "on_response_complete", "on_url",
    "send_400_response",
)  # fmt: skip
_FIELDS = ("app", "cycle", "expect_100_continue", "flow", "headers", "loop", "parser", "pipeline", "scope", "transport")
_CYCLE = ("disconnected", "keep_alive", "message_event", "response_complete", "response_started")
_PHRASES = {int(status): status.phrase.encode() for status in HTTPStatus}
_DIGITS = len(str(MOST_BODY))
_ANSWER = b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"


def written(status: int, body: bytes, more: bytes) -> bytes:
    """An answer as it is sent, with lines of headers beside the usual ones."""
    return _ANSWER % (status, _PHRASES[status], len(body), more, body)


def missing() -> list[str]:
    """Names of uvicorn's private side that this file uses and the installed version has not."""
    lacking = [name for name in _METHODS if not hasattr(HttpToolsProtocol, name)]
    for kind, names in ((HttpToolsProtocol, _FIELDS), (RequestResponseCycle, _CYCLE)):
        lacking += sorted(set(names) - set(kind.__init__.__code__.co_names))
    return lacking


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
            api.service.engine.enter(route.work(api, stream, body, self._scope), self.answer)
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


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's. What is asked most goes straight. A request that takes too long, or is larger than
    the limits in protocol.py, closes it: before a key is checked a caller can take neither memory nor time from others.

    The parser calls back when it has parsed something. What it holds itself, an endless header say, is bounded by
    counting the bytes of each read; a read has at most 256 KB.
    """

    cycle: Any  # uvicorn's, or what goes straight
    _due: asyncio.TimerHandle | None = None
    _whole = True  # whether all of the last request has come
    _heading = False  # between the first byte of a request and the end of its headers
    _begins = 0  # requests that began in this read
    _read = 0  # bytes read since the read in which the last request began
    _head = 0  # bytes of its URL, headers and trailers
    _chunks = 0  # of its body
    _refused: Refusal | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._whole = False
        self._begins = 0
        self._unset_keepalive_if_required()
        self._feed(data)
        if self.transport.is_closing():
            return
        if not self._begins:
            self._count(len(data))
        if not self._whole and self._due is None:  # as a rule a request comes in one piece
            self._wait()

    def _feed(self, data: bytes) -> None:
        """What uvicorn's `data_received` does, but for an Upgrade, which is ignored as RFC 9110 7.8 allows: Java's
        client offers h2c by itself. httptools takes what follows such a head for another protocol, a body too."""
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    data = b""
                except httptools.HttpParserUpgrade as slip:
                    data = self._head_again() + data[slip.args[0] :]
        except httptools.HttpParserError:
            self.send_400_response("")

    def _head_again(self) -> bytes:
        """The head of the request at hand without its Upgrade, for a new parser."""
        old, self.parser = self.parser, httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        line = b"%b %b HTTP/%b\r\n" % (old.get_method(), self.url, old.get_http_version().encode())
        return line + b"".join([b"%b: %b\r\n" % one for one in self.headers if one[0] != b"upgrade"]) + b"\r\n"

    def _count(self, size: int) -> None:
        self._read += size
        if self._heading and self._read > MOST_HEAD:
            self._end(_too_many_headers())
        elif self._read > 2 * MOST_BODY:  # chunks may take as much again as what is in them
            self._end(too_long())

    def _refuse(self, refusal: Refusal) -> NoReturn:
        """In a callback of the parser: stop it, which then calls `send_400_response`. The refusal itself is not raised:
        by its traceback the connection and what it read would stay until the garbage collector runs."""
        self._refused = refusal
        raise ValueError(refusal.status)

    def send_400_response(self, msg: str) -> None:
        self._end(self._refused or Refusal("invalid_http"))

    def _end(self, refusal: Refusal) -> None:
        """Answer the request that is being read with a refusal, unless another answer is due first, and close."""
        cycle = self.cycle
        if cycle is None or self._heading:  # the cycle is that of the request before
            free = cycle is None or cycle.response_complete
        else:  # a request that is whole gets its own answer, or none
            free = not self._whole and not _begun(cycle)
        if free and not self.pipeline:
            self.transport.write(written(refusal.status, encode(refusal.answer), b"connection: close\r\n"))
            self.app.api.count(refusal.status)
            if cycle is not None and not self._heading:
                cycle.disconnected = True
                cycle.message_event.set()
        self.transport.close()

    def on_message_begin(self) -> None:
        self._whole, self._heading = False, True
        self._begins += 1
        self._read = self._head = self._chunks = 0
        if self._begins > MOST_PIPELINED or len(self.pipeline) >= MOST_PIPELINED:
            self._refuse(Refusal("many_pipelined", hint=f"send at most {MOST_PIPELINED}"))
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._head += len(url)
        if self._head > MOST_HEAD:
            self._refuse(Refusal("long_url", f"a URL of more than {MOST_HEAD} bytes"))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        if self._head > MOST_HEAD or len(self.headers) >= MOST_HEADERS:
            self._refuse(_too_many_headers())
        if self._heading:  # trailers count, and are left out
            super().on_header(name, value)

    def on_chunk_header(self) -> None:
        self._chunks += 1
        if self._chunks > MOST_CHUNKS:
            self._refuse(Refusal("many_chunks", f"a body of more than {MOST_CHUNKS} chunks"))

    def on_headers_complete(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            self._refuse(Refusal("unknown_method"))
        if self.parser.should_upgrade():
            return  # `_feed` has it parsed again
        self._heading = False
        asked = straight(self)
        if asked is None:
            super().on_headers_complete()
        else:
            self.cycle = asked

    def on_body(self, body: bytes) -> None:
        if type(self.cycle) is Asked:
            self.cycle.take(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._whole = True
        self._calm()
        if type(self.cycle) is Asked:
            self.cycle.begin()
        else:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._due = self.loop.call_later(PATIENCE, self._close)

    def _calm(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _close(self) -> None:
        self._due = None
        if not self.transport.is_closing():
            self.transport.close()


def _begun(cycle: Any) -> bool:
    """Whether an answer is being written; one that goes straight is written at once."""
    return bool(cycle.response_complete if type(cycle) is Asked else cycle.response_started)


def _too_many_headers() -> Refusal:
    got = f"more than {MOST_HEAD} bytes of URL and headers, or more than {MOST_HEADERS} headers"
    return Refusal("long_headers", got)
