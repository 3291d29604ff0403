"""The service over HTTP: the routes, the check of keys, and the application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from driftwise.errors import DriftwiseError
from driftwise.service.core.access import authorization, caller_of, sees
from driftwise.service.core.forgetting import asked_to, online
from driftwise.service.core.ramping import Ramping
from driftwise.service.core.serving import Service
from driftwise.service.core.telling import notice_of
from driftwise.service.core.waiting import WorkBatch, leading
from driftwise.service.dashboard.looking import Dashboard
from driftwise.service.dashboard.web import routes as dashboard_routes
from driftwise.service.http import metrics
from driftwise.service.http.endpoint import (
    Endpoint,
    Handler,
    Receive,
    Scope,
    Send,
    Straight,
    Work,
    encode,
    headers_of,
    refuse,
)
from driftwise.service.http.logs import ServerLog, traceparent
from driftwise.service.http.sites import Site
from driftwise.service.http.webhook import Sender, Webhook
from driftwise.service.stores.records import KeyRow
from driftwise.service.wire.openapi import document
from driftwise.service.wire.protocol import (
    MOST_BATCH,
    DecideBody,
    DeleteBody,
    ForgetBody,
    Health,
    ItemsBody,
    PauseBody,
    Refusal,
    RewardBody,
    StreamBody,
    Streams,
)

_JSON_TYPE = "application/json"
_SCRAPE = 2.0  # seconds that a scrape waits for numbers from the log


# ------------------------------------------------------------------------------------------ handlers


def _decide(api: Api, stream: str, body: DecideBody, scope: Scope) -> Callable[[], Any]:
    service, trace = api.service, traceparent(scope)
    found = service.stream(stream)
    offer = found.offers.offer(body)
    return lambda: found.decide(body, offer, service.now(), trace)


def _reward(api: Api, stream: str, body: RewardBody, scope: Scope) -> Callable[[], Any]:
    service = api.service
    found = service.stream(stream)
    return leading(found, lambda: found.reward(body, service.now()))


def _grouped(work: Work) -> Handler:
    """A handler for work that is done with the next group."""

    async def handler(api: Api, stream: str, body: Any, scope: Scope) -> tuple[int, Any]:
        return 200, await api.service.engine.submit(work(api, stream, body, scope))

    return handler


async def _decide_batch(api: Api, stream: str, body: list[DecideBody], scope: Scope) -> tuple[int, Any]:
    service, trace = api.service, traceparent(scope)
    found = service.stream(stream)

    def one(asked: DecideBody) -> Any:
        return found.decide(asked, found.offers.offer(asked), service.now(), trace)

    return 200, await service.engine.submit(WorkBatch([partial(one, asked) for asked in _few(body)]))


async def _reward_batch(api: Api, stream: str, body: list[RewardBody], scope: Scope) -> tuple[int, Any]:
    service = api.service
    found = service.stream(stream)

    def one(asked: RewardBody) -> Any:
        return found.reward(asked, service.now())

    return 200, await service.engine.submit(WorkBatch([partial(one, asked) for asked in _few(body)], found))


def _few(body: list[Any]) -> list[Any]:
    if len(body) > MOST_BATCH:
        raise Refusal("long_batch", f"{len(body)} in a batch", hint=f"send at most {MOST_BATCH}")
    return body


def _done(ask: Callable[[Service, str, Any], Awaitable[Any]]) -> Handler:
    """A handler that passes the stream's name and the body to the service."""

    async def handler(api: Api, stream: str, body: Any, scope: Scope) -> tuple[int, Any]:
        return 200, await ask(api.service, stream, body)

    return handler


async def _put(api: Api, stream: str, body: StreamBody, scope: Scope) -> tuple[int, Any]:
    return await api.service.put(stream, body)


async def _streams(api: Api, stream: str, body: None, scope: Scope) -> tuple[int, Any]:
    key, service = api.admit(scope, None, None), api.service
    found = [await service.answer(name) for name in sorted(service.engine.streams) if sees(key, name)]
    return 200, Streams(streams=found, deleted=[name for name in sorted(service.deleted) if sees(key, name)])


async def _explain(api: Api, stream: str, body: None, scope: Scope) -> tuple[int, Any]:
    return 200, await api.service.explain(stream, scope["path_params"]["id"])


# The most frequent requests, by the last word of their path (see straight.py): the work, the scope of the key, the
# body.
STRAIGHT: dict[bytes, tuple[Work, str, Any]] = {
    b"decide": (_decide, "decide", DecideBody),
    b"reward": (_reward, "reward", RewardBody),
}

# method, path, handler, scope of the key, body.
ROUTES: tuple[tuple[str, str, Handler, str | None, Any], ...] = (
    ("POST", "/v1/streams/{stream}/decide", _grouped(_decide), "decide", DecideBody),
    ("POST", "/v1/streams/{stream}/reward", _grouped(_reward), "reward", RewardBody),
    ("POST", "/v1/streams/{stream}/decide/batch", _decide_batch, "decide", list[DecideBody]),
    ("POST", "/v1/streams/{stream}/reward/batch", _reward_batch, "reward", list[RewardBody]),
    ("GET", "/v1/streams/{stream}/explain/{id}", _explain, None, None),
    ("PUT", "/v1/streams/{stream}/policy",
     _done(lambda service, stream, body: service.change(stream, body)), "admin", StreamBody),
    ("PUT", "/v1/streams/{stream}/items",
     _done(lambda service, stream, body: service.items(stream, body)), "admin", ItemsBody),
    ("POST", "/v1/streams/{stream}/pause",
     _done(lambda service, stream, body: service.pause(stream, True, body and body.fallback)), "admin",
     PauseBody | None),
    ("POST", "/v1/streams/{stream}/resume",
     _done(lambda service, stream, _: service.pause(stream, False)), "admin", None),
    ("POST", "/v1/streams/{stream}/reset", _done(lambda service, stream, _: service.reset(stream)), "admin", None),
    ("POST", "/v1/streams/{stream}/forget",
     _done(lambda service, stream, body: online(service, stream, asked_to(body.before, body.unit))), "admin",
     ForgetBody),
    ("PUT", "/v1/streams/{stream}", _put, "admin", StreamBody),
    ("DELETE", "/v1/streams/{stream}",
     _done(lambda service, stream, body: service.delete(stream, body)), "admin", DeleteBody),
    ("GET", "/v1/streams", _streams, None, None),
    ("GET", "/v1/streams/{stream}", _done(lambda service, stream, _: service.answer(stream)), None, None),
)  # fmt: skip


class Api:
    """What all endpoints share."""

    def __init__(self, service: Service, log: ServerLog, site: Site) -> None:
        self.service, self.log, self.site = service, log, site
        service.engine.unexpected = log.unexpected
        self.statuses: dict[int, int] = {}
        self.board = Dashboard(self)
        self.sender: Sender | None = None

    def admit(self, scope: Scope, wanted: str | None, stream: str | None) -> KeyRow | None:
        """The key of a request that may pass now; None on an open server."""
        access = self.service.access
        self.service.check_open()
        if not access.closed:
            return None
        return access.check(caller_of(scope), authorization(scope), wanted, stream)

    def unexpected(self, error: Exception) -> Refusal:
        """Log an unexpected exception. Returns the refusal for the caller."""
        self.log.unexpected(error)
        return Refusal("internal_error")

    def count(self, status: int) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1

    async def health(self, request: Request) -> Response:
        engine, now = self.service.engine, self.service.now
        if engine.stopping:
            return _health("stopping", "")
        status: Any = "full" if engine.full else "away" if engine.away else "fine"
        return _health(status, self._detail(request.scope, engine.full or engine.away or now.word))  # type: ignore[arg-type]

    async def readiness(self, request: Request) -> Response:
        """Health, and 503 until all streams are resumed and their kernels are compiled or loaded."""
        service = self.service
        if service.ready or service.engine.stopping:
            return await self.health(request)
        return _health("starting", self._detail(request.scope, service.doing))  # type: ignore[arg-type]

    def _detail(self, scope: Scope, reason: str) -> str:
        """A reason, which may name paths and addresses, for callers with a key; "" for others, and for pages whose name
        was rebound to this address."""
        access = self.service.access
        try:
            self.site.check_host(dict(scope["headers"]).get(b"host"), scope["http_version"])
            if access.closed and authorization(scope) is None:
                return ""  # a health check without a key is not counted as a failure
            access.check(caller_of(scope), authorization(scope), None, None)
        except Refusal:
            return ""
        return reason

    async def metrics(self, request: Request) -> Response:
        try:
            key = self.admit(request.scope, None, None)  # type: ignore[arg-type]
        except Refusal as error:
            headers = {name.decode(): value.decode() for name, value in headers_of(error)}
            return Response(encode(error.answer), error.status, headers, media_type=_JSON_TYPE)
        with suppress(DriftwiseError, TimeoutError):  # the counters are still reported
            await asyncio.wait_for(self.board.gather(key), _SCRAPE)
        return Response(metrics.metrics_text(self, self.board.signals, key), media_type=metrics.TYPE)

    async def openapi(self, request: Request) -> Response:
        return Response(encode(document()), media_type=_JSON_TYPE)


def _health(status: Any, reason: str) -> Response:
    told = encode(Health(status=status, reason=reason))
    return Response(told, 200 if status == "fine" else 503, media_type=_JSON_TYPE)


class Front:
    """The application. A server that knows `straight` uses it for the most frequent requests; Starlette has the
    rest."""

    def __init__(self, inside: Starlette, api: Api, board: Dashboard) -> None:
        self.inside, self.api, self.board = inside, api, board
        self.straight = {name: Straight(api, name.decode(), *what) for name, what in STRAIGHT.items()}
        self.prepare: Callable[[], None] = lambda: None  # the server calls it when the port is bound
        self.busy = False  # whether a thread still runs after everything else has ended
        self.failure: BaseException | None = None  # why the preparation failed
        self.end: Callable[[], None] = lambda: None  # stops the server that runs it

    def stop(self) -> None:
        """Refuse new requests. Requests that were accepted are still answered."""
        self.api.service.engine.stopping = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            began = time.perf_counter()
            try:
                self.api.site.check(scope)
            except Refusal as refusal:
                await refuse(send, refusal)
                self.api.log.request(scope, "", refusal.status, began)
                self.api.count(refusal.status)
                return
        await self.inside(scope, receive, send)  # type: ignore[arg-type]


def app(
    service: Service, log: ServerLog, started: Callable[[], None] = lambda: None, site: Site | None = None,
    webhook: Webhook | None = None,
) -> Front:  # fmt: skip
    """The application. `started` is called when it is ready. Without a site, only this machine may send requests."""
    api = Api(service, log, site or Site())
    board = api.board
    if webhook is not None:
        service.notice_of, api.sender = notice_of, Sender(service, webhook, log)

    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        tasks.append(asyncio.create_task(_watch(service)))
        if api.sender is not None:
            tasks.append(asyncio.create_task(api.sender.run()))
        service.start()
        started()

    async def prepared() -> None:
        try:
            await service.prepare()
        except Exception as error:
            made.failure = error
            made.end()
        else:
            begin()

    def prepare() -> None:
        if not service.ready:
            tasks.append(asyncio.create_task(prepared()))

    @asynccontextmanager
    async def living(_: Starlette) -> Any:
        if service.ready:
            begin()
        yield
        service.engine.stopping = True
        for task in tasks:
            task.cancel()
        made.busy = not board.close() or (api.sender is not None and not api.sender.close())
        await service.engine.idle()
        made.busy |= not service.close()

    async def unknown(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        refusal = Refusal("unknown_method") if status == 405 else Refusal("unknown_path")
        headers = error.headers if isinstance(error, HTTPException) else None
        return Response(encode(refusal.answer), refusal.status, headers=headers, media_type=_JSON_TYPE)

    routes = [
        Route(path.replace("{id}", "{id:path}"), Endpoint(api, handler, scope, body), methods=_methods(path))
        if len(_methods(path)) == 1 else Route(path, _Both(api, path), methods=_methods(path))
        for _, path, handler, scope, body in ROUTES
    ]  # fmt: skip
    routes += [Route("/healthz", api.health), Route("/readyz", api.readiness)]
    routes += [Route("/metrics", api.metrics), Route("/openapi.json", api.openapi)]
    routes += dashboard_routes(board)
    inside = Starlette(routes=routes, lifespan=living, exception_handlers={HTTPException: unknown})
    inside.router.redirect_slashes = False  # a redirect would repeat the caller's Host
    made = Front(inside, api, board)
    made.prepare = prepare
    return made


def _methods(path: str) -> list[str]:
    return [row[0] for row in ROUTES if row[1] == path]


class _Both:
    """A path with several methods."""

    def __init__(self, api: Api, path: str) -> None:
        self.ends = {row[0]: Endpoint(api, row[2], row[3], row[4]) for row in ROUTES if row[1] == path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self.ends[method](scope, receive, send)


async def _watch(service: Service) -> None:
    """Twice a second: learn the default of decisions whose time is over if no reward comes, and judge ramps."""
    ramping = Ramping(service)
    while True:
        await asyncio.sleep(0.4)
        with suppress(Refusal):  # the server is overloaded
            service.expire()
        if not service.engine.stopping:
            await ramping.look()
