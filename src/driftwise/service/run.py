"""`driftwise serve`: the application under uvicorn, on this machine unless there are keys."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftwise.errors import BadInput
from driftwise.service.http import app
from driftwise.service.logs import Log
from driftwise.service.opening import open_store, service_of
from driftwise.service.sites import Site, loopback
from driftwise.service.straight import Asked, straight

PATIENCE = 10.0  # seconds for a request to come whole
_DRAIN = 4  # seconds for requests to be answered after SIGTERM


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's. What is asked most goes straight; headers or a body that take too long close it, so
    that slow callers hold nothing."""

    cycle: Any  # uvicorn's, or what goes straight
    _due: asyncio.TimerHandle | None = None
    _whole = True  # whether all of the last request has come

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._whole = False
        super().data_received(data)
        if not self._whole and self._due is None:  # as a rule a request comes in one piece
            self._wait()

    def on_message_begin(self) -> None:
        self._whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
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


class _Server(uvicorn.Server):
    """Tells the application to stop when it is told so itself, and not only when the last connection is gone."""

    stop: Callable[[], None]

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
    site = Site(host, allow_hosts)
    store = open_store(db, pages=pages)
    try:
        if not loopback(host) and all(key.revoked is not None for key in store.keys()):
            wanted = "a valid key before other machines can reach the server"
            raise BadInput("host", host, wanted, f"driftwise keys create {store.path} first")
        service = service_of(store)
        if not loopback(host):
            service.access.close()
    except BaseException:
        store.close()
        raise
    log = Log(requests)

    def started() -> None:
        settle()
        streams = len(service.engine.streams)
        access = f"{len(service.access.keys)} keys" if service.access.closed else "open"
        log.event("serving", db=str(store.path), host=host, port=port, streams=streams, access=access, pid=os.getpid())

    run(app(service, log, started, site), host, port)
    log.event("stopped")
    log.close()


def run(application: Any, host: str, port: int) -> None:
    """An application until it is told to stop."""
    config = uvicorn.Config(
        application, host=host, port=port, http=Connection, log_config=None, access_log=False, server_header=False,
        date_header=False, lifespan="on", timeout_keep_alive=75, timeout_graceful_shutdown=_DRAIN, backlog=1024,
        ws="none", proxy_headers=False,
    )  # fmt: skip
    # uvicorn raises the signal again when it has drained; ours has then been obeyed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = _Server(config)
    server.stop = application.stop
    server.run()
