"""`driftwise serve`: the application under uvicorn, on this machine unless there are keys."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftwise.errors import BadInput
from driftwise.service.http import app
from driftwise.service.logs import Log
from driftwise.service.opening import open_store, service_of

PATIENCE = 10.0  # seconds for a request to come whole
_DRAIN = 4  # seconds for requests to be answered after SIGTERM


class Impatient(HttpToolsProtocol):
    """Closes a connection whose headers or body take too long, so that slow callers hold nothing."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self._due is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()
        super().data_received(data)

    def on_message_complete(self) -> None:
        self._calm()
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


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def settle() -> None:
    """numba's heap is large and stays: collecting it again and again doubled what a request costs. And the thread that
    has committed is not to wait long for the one that decides."""
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def serve(
    db: str | Path, host: str = "127.0.0.1", port: int = 8000, *, requests: bool = False, pages: int | None = None
) -> None:
    """Serve a database until SIGTERM or Ctrl-C."""
    store = open_store(db, pages=pages)
    try:
        if not loopback(host) and not store.keys():
            wanted = "keys before others than this machine can reach it"
            raise BadInput("host", host, wanted, f"driftwise keys create {store.path} first")
        service = service_of(store)
    except BaseException:
        store.close()
        raise
    log = Log(requests)

    def started() -> None:
        settle()
        streams = len(service.engine.streams)
        log.event("serving", db=str(store.path), host=host, port=port, streams=streams, pid=os.getpid())

    run(app(service, log, started), host, port)
    log.event("stopped")
    log.close()


def run(application: Any, host: str, port: int) -> None:
    """An application until it is told to stop."""
    config = uvicorn.Config(
        application, host=host, port=port, http=Impatient, log_config=None, access_log=False, server_header=False,
        date_header=False, lifespan="on", timeout_keep_alive=75, timeout_graceful_shutdown=_DRAIN, backlog=1024,
        ws="none", proxy_headers=False,
    )  # fmt: skip
    # uvicorn raises the signal again when it has drained; ours has then been obeyed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = _Server(config)
    server.stop = application.stop
    server.run()
