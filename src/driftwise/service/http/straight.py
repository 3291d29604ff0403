"""The fast path of decisions and rewards: no task and no scope per request, and one write per answer.

A framework does work for requests of every kind, which is most of the cost of a small request. An ordinary decision or
reward is read completely, waits with its group, and is answered by a callback when the group is on disk. An unusual
request (a body in chunks, a query, a request before the last is answered) takes the normal path. This saves about a
quarter of the CPU of a decision, at 8 clients and at 32.

This file has everything that the service uses of uvicorn's private parts. `missing` lists the parts that a version of
uvicorn lacks; then the server runs without this file (run.py).
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

PATIENCE = 10.0  # seconds in which a request must be complete
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


def raw_answer(status: int, body: bytes, more: bytes) -> bytes:
    """An answer as bytes, with further header lines beside the usual ones."""
    return _ANSWER % (status, _PHRASES[status], len(body), more, body)


def missing() -> list[str]:
    """The names of uvicorn's private parts that this file uses and the installed version lacks."""
    lacking = [name for name in _METHODS if not hasattr(HttpToolsProtocol, name)]
    for kind, names in ((HttpToolsProtocol, _FIELDS), (RequestResponseCycle, _CYCLE)):
        lacking += sorted(set(names) - set(kind.__init__.__code__.co_names))
    return lacking


def straight(protocol: HttpToolsProtocol) -> FastRequest | None:
    """The request whose headers have arrived, if it may take the fast path."""
    parts = protocol.url.split(b"/")
    if len(parts) != 5 or parts[1] != b"v1" or parts[2] != b"streams" or protocol.expect_100_continue:
        return None
    route = protocol.app.straight.get(parts[4])
    last, parser = protocol.cycle, protocol.parser
    if route is None or parser.get_method() != b"POST" or b"%" in parts[3]:
        return None
    if (last is not None and not last.response_complete) or protocol.flow.write_paused:
        return None  # the normal path waits until the client has read earlier answers
    for name, value in protocol.headers:
        if name == b"content-length" and len(value) <= _DIGITS and int(value) <= MOST_BODY:
            version = parser.get_http_version()
            protocol.scope["method"], protocol.scope["http_version"] = "POST", version
            keep_alive = parser.should_keep_alive() and version != "1.0"
            return FastRequest(protocol, route, parts[3].decode("ascii", "replace"), keep_alive)
    return None


class FastRequest:
    """A request in place of uvicorn's cycle. The attributes that a connection reads have the same names."""

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
        """Add a piece of the body. The parser ensures that it is no longer than announced."""
        if not self._body:
            self._body = body
        else:  # rare; a list of tiny pieces would take a hundred times their bytes
            if type(self._body) is bytes:
                self._body = bytearray(self._body)
            self._body += body

    def begin(self) -> None:
        """The request is complete: queue it for the next group."""
        route, stream = self._route, self._stream
        api = route.api
        try:
            api.site.check(self._scope)
            api.admit(self._scope, route.scope, stream)
            body = route.decode(self._body)
            api.service.engine.enter(route.work(api, stream, body, self._scope), self.answer)
        except REFUSED as error:
            self.answer(error)
        except Exception as error:
            self.answer(api.unexpected(error))

    def answer(self, answer: Any) -> None:
        """Send the answer, which is on disk, or the exception, in one write."""
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
        protocol.transport.write(raw_answer(status, body, more))
        self.response_complete = True
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()


class _Nobody:
    """Replaces an event that is not awaited."""

    def set(self) -> None:
        pass


_NOBODY_WAITS = _Nobody()


class HttpConnection(HttpToolsProtocol):
    """A connection of uvicorn's, with the fast path. A request that takes too long, or exceeds the limits in
    protocol.py, closes it: before its key is checked a client can take neither memory nor time from others.

    The parser calls back when it has parsed something. What it buffers itself, such as an endless header, is bounded by
    counting the bytes of each read; a read has at most 256 KB.
    """

    cycle: Any  # uvicorn's cycle, or a FastRequest
    _due: asyncio.TimerHandle | None = None
    _whole = True  # whether the last request is complete
    _heading = False  # between the first byte of a request and the end of its headers
    _begins = 0  # number of requests that began in this read
    _read = 0  # bytes read since the read in which the last request began
    _head = 0  # bytes of its URL, headers and trailers
    _chunks = 0  # chunks of its body
    _refused: Refusal | None = None
    _last: bytes = b""  # the answer that follows those of the requests before it, and ends the connection

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self._last:
            return
        if self.cycle is None or self.cycle.response_complete:
            self._whole = False
        self._begins = 0
        self._unset_keepalive_if_required()
        self._feed(data)
        if self.transport.is_closing():
            return
        if not self._begins:
            self._count(len(data))
        if not self._whole and self._due is None:  # usually a request comes in one piece
            self._wait()

    def _feed(self, data: bytes) -> None:
        """uvicorn's `data_received`, except that an Upgrade is ignored, as RFC 9110 7.8 allows: Java's client offers
        h2c by default. httptools takes everything after such a head for another protocol, the body too."""
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    data = b""
                except httptools.HttpParserUpgrade as error:
                    data = self._head_again() + data[error.args[0] :]
        except httptools.HttpParserError:
            self.send_400_response("")

    def _head_again(self) -> bytes:
        """The head of the current request without its Upgrade, for a new parser."""
        old, self.parser = self.parser, httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        line = b"%b %b HTTP/%b\r\n" % (old.get_method(), self.url, old.get_http_version().encode())
        return line + b"".join([b"%b: %b\r\n" % one for one in self.headers if one[0] != b"upgrade"]) + b"\r\n"

    def _count(self, size: int) -> None:
        self._read += size
        if self._heading and self._read > MOST_HEAD:
            self._end(_too_many_headers())
        elif self._read > 2 * MOST_BODY:  # the framing of chunks may double their size
            self._end(too_long())

    def _refuse(self, refusal: Refusal) -> NoReturn:
        """In a callback of the parser: stop it. It then calls `send_400_response`. The refusal itself is not raised,
        because its traceback would keep the connection and its buffers alive until the garbage collector runs."""
        self._refused = refusal
        raise ValueError(refusal.status)

    def send_400_response(self, msg: str) -> None:
        self._end(self._refused or Refusal("invalid_http"))

    def _end(self, refusal: Refusal) -> None:
        """Answer the request that is being read with a refusal, after the answers to the requests before it, and
        close."""
        cycle, told = self.cycle, raw_answer(refusal.status, encode(refusal.answer), b"connection: close\r\n")
        if cycle is not None and self._heading and not cycle.response_complete and cycle.keep_alive:
            self._last = told
            if self._due is None:
                self._wait()
            self.flow.pause_reading()
            self.app.api.count(refusal.status)
            return
        if cycle is None or self._heading:  # the cycle belongs to the previous request
            free = cycle is None or cycle.response_complete
        else:  # a complete request gets its own answer, or none
            free = not self._whole and not _begun(cycle)
        if free and not self.pipeline:
            self.transport.write(told)
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

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._last and not self.transport.is_closing():
            if self.cycle.response_complete:
                self.transport.write(self._last)
                self.transport.close()
            else:
                self.flow.pause_reading()

    def on_url(self, url: bytes) -> None:
        self._head += len(url)
        if self._head > MOST_HEAD:
            self._refuse(Refusal("long_url", f"a URL of more than {MOST_HEAD} bytes"))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        if self._head > MOST_HEAD or len(self.headers) >= MOST_HEADERS:
            self._refuse(_too_many_headers())
        if self._heading:  # trailers are counted and dropped
            super().on_header(name, value)

    def on_chunk_header(self) -> None:
        self._chunks += 1
        if self._chunks > MOST_CHUNKS:
            self._refuse(Refusal("many_chunks", f"a body of more than {MOST_CHUNKS} chunks"))

    def on_headers_complete(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            self._refuse(Refusal("unknown_method"))
        if self.parser.should_upgrade():
            return  # `_feed` parses it again
        self._heading = False
        asked = straight(self)
        if asked is None:
            super().on_headers_complete()
        else:
            self.cycle = asked

    def on_body(self, body: bytes) -> None:
        if type(self.cycle) is FastRequest:
            self.cycle.take(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._whole = True
        self._calm()
        if type(self.cycle) is FastRequest:
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
    """Whether an answer is being written. An answer of the fast path is written in one piece."""
    return bool(cycle.response_complete if type(cycle) is FastRequest else cycle.response_started)


def _too_many_headers() -> Refusal:
    got = f"more than {MOST_HEAD} bytes of URL and headers, or more than {MOST_HEADERS} headers"
    return Refusal("long_headers", got)
