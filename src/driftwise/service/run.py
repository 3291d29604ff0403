"""`driftwise serve`: the application under uvicorn, on this machine unless there are keys."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftwise._internal import compile_notice
from driftwise.errors import BadInput
from driftwise.service.endpoint import encode, too_long
from driftwise.service.http import app
from driftwise.service.logs import Log
from driftwise.service.opening import open_store, service_of
from driftwise.service.protocol import (
    MOST_BODY,
    MOST_CHUNKS,
    MOST_HEAD,
    MOST_HEADERS,
    MOST_PIPELINED,
    Refusal,
    unknown_method,
)
from driftwise.service.sites import Site, loopback
from driftwise.service.straight import Asked, straight, written

PATIENCE = 10.0  # seconds for a request to come whole
_DRAIN = 4  # seconds for requests to be answered after SIGTERM


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
        self._end(self._refused or Refusal("invalid_http", "no HTTP request", "", "send HTTP/1.1"))

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
            hint = f"send at most {MOST_PIPELINED}"
            self._refuse(Refusal("many_pipelined", "too many requests before an answer", "", hint))
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._head += len(url)
        if self._head > MOST_HEAD:
            self._refuse(Refusal("long_url", f"a URL of more than {MOST_HEAD} bytes", "path", "send less"))
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
            error = f"a body of more than {MOST_CHUNKS} chunks"
            self._refuse(Refusal("many_chunks", error, "body", "send larger chunks"))

    def on_headers_complete(self) -> None:
        if self.parser.get_method() == b"CONNECT":
            self._refuse(unknown_method())
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
    return Refusal("long_headers", got, "headers", "send fewer")


class _Server(uvicorn.Server):
    """Tells the application to stop when it is told so itself, and not only when the last connection is gone; and
    tells when it listens, and at which port."""

    stop: Callable[[], None]
    listening: Callable[[int], None]

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening(self.servers[0].sockets[0].getsockname()[1])

    def end(self) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.stop()
        super().handle_exit(sig, frame)


def settle() -> None:
    """numba's heap is large and stays: collecting it again and again doubled what a request costs. And the thread that
    has committed is not to wait long for the one that decides."""
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def serve(
    db: str | Path, host: str = "127.0.0.1", port: int = 8000, *, requests: bool = False, pages: int | None = None,
    allow_hosts: Sequence[str] = (),
) -> None:  # fmt: skip
    """Serve a database until SIGTERM or Ctrl-C. allow_hosts: names it is asked by, beside its address."""
    compile_notice.plain = False
    site = Site(host, allow_hosts)
    store = open_store(db, pages=pages)
    try:
        if not loopback(host) and all(key.revoked is not None for key in store.keys()):
            wanted = "a valid key before other machines can reach the server"
            raise BadInput("host", host, wanted, f"driftwise keys create {store.path} first")
        service = service_of(store, later=True)
        if not loopback(host):
            service.access.close()
    except BaseException:
        store.close()
        raise
    log = Log(requests)

    def listening(bound: int) -> None:
        access = f"{len(service.access.keys)} keys" if service.access.closed else "open"
        log.event("serving", db=str(store.path), host=host, port=bound, access=access, pid=os.getpid())

    def ready() -> None:
        settle()
        log.event("ready", streams=len(service.engine.streams))

    application = app(service, log, ready, site)
    try:
        run(application, host, port, listening)
    finally:
        log.event("stopped")
        log.close()
    if application.busy:
        os._exit(0)  # a compile under way would be waited for; all that was answered is on disk


def run(application: Any, host: str, port: int, listening: Callable[[int], None] = lambda port: None) -> None:
    """An application until it is told to stop; `listening` is called when the port is bound. What it could not be made
    ready for is raised."""
    config = uvicorn.Config(
        application, host=host, port=port, http=Connection, log_config=None, access_log=False, server_header=False,
        date_header=False, lifespan="on", timeout_keep_alive=75, timeout_graceful_shutdown=_DRAIN, backlog=1024,
        ws="none", proxy_headers=False, log_level="error",  # it writes on the event loop, for callers to fill a pipe
    )  # fmt: skip
    # uvicorn raises the signal again when it has drained; ours has then been obeyed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def bound(at: int) -> None:
        listening(at)
        application.prepare()

    server = _Server(config)
    server.stop, server.listening, application.end = application.stop, bound, server.end
    try:
        server.run()
    except SystemExit:  # of uvicorn, with 3: that code says that another process has the database
        wanted = "an address of this machine with a port that no other process listens at"
        raise BadInput("host", f"{host}, port {port}", wanted, "pass another --port or --host") from None
    application.busy |= server.force_exit
    if application.slip is not None:
        raise application.slip
