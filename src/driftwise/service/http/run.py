"""`driftwise serve`: the application under uvicorn, on loopback only unless there are keys."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from driftwise._internal import compile_notice
from driftwise.errors import BadInput
from driftwise.service.http.app import app
from driftwise.service.http.logs import ServerLog
from driftwise.service.http.sites import Site, loopback
from driftwise.service.http.webhook import Webhook
from driftwise.service.stores.opening import is_shared, open_store
from driftwise.service.wire.protocol import MOST_HEAD

_DRAIN = 4  # seconds for requests to be answered after SIGTERM


def service_of(store: Any, now: Callable[[], float] | None = None, *, later: bool = False) -> Any:
    """A service on a store, alone or as one of several replicas. later: `prepare` resumes its streams."""
    from driftwise.service.core.serving import ALONE, Service

    if not store.shared:
        return Service(store, now, later=later, parts=ALONE)
    from driftwise.service.replica.watch import REPLICA

    return Service(store, now, later=later, parts=REPLICA)


def connection() -> tuple[Any, str]:
    """The connection that bounds requests and has the short path (straight.py). If uvicorn's private parts differ from
    those it was written for: uvicorn's own connection, and the reason."""
    try:
        from driftwise.service.http.straight import HttpConnection, missing
    except ImportError as error:
        return "h11", str(error)
    lacking = missing()
    return ("h11", f"uvicorn {uvicorn.__version__} has no {', '.join(lacking)}") if lacking else (HttpConnection, "")


class _Server(uvicorn.Server):
    """Stops the application as soon as it is asked to stop itself, not only when the last connection is gone; and
    reports when it listens, and at which port."""

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


def settle_heap() -> None:
    """Freeze the heap and shorten the switch interval. numba's heap is large and permanent; collecting it repeatedly
    doubled the cost of a request. And a thread that has committed must not wait long for the thread that decides."""
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def serve(
    db: str | Path, host: str = "127.0.0.1", port: int = 8000, *, requests: bool = False, pages: int | None = None,
    allow_hosts: Sequence[str] = (), webhook: Webhook | None = None,
) -> None:  # fmt: skip
    """Serve a database until SIGTERM or Ctrl-C. allow_hosts: further names of the server, beside its address. webhook:
    where drift, lift and stops are reported."""
    compile_notice.plain = False
    site = Site(host, allow_hosts)
    unbounded = connection()[1]
    if unbounded and not loopback(host):
        wanted = "a uvicorn whose connections driftwise can limit, before other machines can reach the server"
        raise BadInput("uvicorn", unbounded, wanted, 'pip install "driftwise[serve]" installs one that is tested')
    if not (is_shared(db) or Path(db).exists()):  # refuse before the database is made
        if not loopback(host):
            raise _keyless(host, db)
        _check_address(host, port)
    store = open_store(db, pages=pages)
    try:
        if not loopback(host) and all(key.revoked is not None for key in store.keys()):
            raise _keyless(host, store.path)
        service = service_of(store, later=True)
        if not loopback(host):
            service.access.close()
    except BaseException:
        store.close()
        raise
    log = ServerLog(requests)
    if unbounded:
        log.event("unbounded", why=unbounded, without="the short path of requests, and limits on slow or endless ones")

    def listening(bound: int) -> None:
        access = f"{len(service.access.keys)} keys" if service.access.closed else "open"
        log.event("serving", db=str(store.path), host=host, port=bound, access=access, pid=os.getpid())

    def ready() -> None:
        settle_heap()
        log.event("ready", streams=len(service.engine.streams))

    application = app(service, log, ready, site, webhook)
    try:
        run(application, host, port, listening)
    finally:
        log.event("stopped")
        log.close()
    if application.busy:
        os._exit(0)  # otherwise Python waits for a running compile; every answer is on disk


def _keyless(host: str, db: object) -> BadInput:
    wanted = "a valid key before other machines can reach the server"
    return BadInput("host", host, wanted, f"driftwise keys create {db} first")


def _check_address(host: str, port: int) -> None:
    """Refuse an address at which no server can listen."""
    why = ""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                with socket.socket(family, kind, protocol) as tried:
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    tried.bind(address)
                    return
            except OSError as error:
                why = str(error.strerror)
    except OSError as error:  # no address has this name
        why = str(error.strerror)
    raise _taken(host, port, why)


def _taken(host: str, port: int, why: str = "") -> BadInput:
    got = f"{host}, port {port}" + (f": {why.lower()}" if why else "")
    wanted = "an address of this machine, and a port that no other process uses"
    return BadInput("host", got, wanted, "pass another --port or --host")


def run(application: Any, host: str, port: int, listening: Callable[[int], None] = lambda port: None) -> None:
    """Run an application until it is asked to stop. `listening` is called when the port is bound. If the preparation of
    the application failed, its exception is raised."""
    config = uvicorn.Config(
        application, host=host, port=port, http=connection()[0], h11_max_incomplete_event_size=MOST_HEAD,
        log_config=None, access_log=False, server_header=False, date_header=False, lifespan="on",
        timeout_keep_alive=75, timeout_graceful_shutdown=_DRAIN, backlog=1024, ws="none", proxy_headers=False,
        log_level="error",  # uvicorn writes on the event loop, and clients could fill a pipe
    )  # fmt: skip
    # uvicorn raises the signal again when it has drained. It has been obeyed by then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def bound(at: int) -> None:
        listening(at)
        application.prepare()

    server = _Server(config)
    server.stop, server.listening, application.end = application.stop, bound, server.end
    try:
        server.run()
    except SystemExit:  # uvicorn exits with 3, the code for a database that is in use
        raise _taken(host, port) from None
    application.busy |= server.force_exit
    if application.failure is not None:
        raise application.failure
