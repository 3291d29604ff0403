"""The dashboard: pages of the streams as they are, kept fresh by server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from driftwise.service.looking import look, slowest, state_of
from driftwise.service.pages import HEADERS, decision_page, overview, page, stream_page
from driftwise.service.protocol import Refusal

if TYPE_CHECKING:
    from driftwise.service.http import Api


def routes(api: Api) -> list[Route]:
    """The pages."""

    async def seen(name: str) -> str:
        service = api.service
        stream = service.stream(name)
        found = await service.aside(look, stream, state_of(stream), service.past[name])
        return stream_page(found, slowest(service.engine))

    async def home(request: Request) -> Response:
        return _guarded(api, request, None) or _html(page("driftwise", overview(api.service.engine), "/live"))

    async def one(request: Request) -> Response:
        name = request.path_params["stream"]
        refused = _guarded(api, request, name)
        return refused or await _or_refusal(_shown(name, seen(name), f"/live?stream={quote(name)}"))

    async def decision(request: Request) -> Response:
        name = request.path_params["stream"]
        return _guarded(api, request, name) or await _or_refusal(_explained(api, name, request.path_params["id"]))

    async def live(request: Request) -> Response:
        name = request.query_params.get("stream")
        refused = _guarded(api, request, name)
        if refused is not None:
            return refused

        async def told() -> AsyncIterator[bytes]:
            while not api.service.engine.stopping:
                main = overview(api.service.engine) if name is None else await seen(name)
                yield b"data: " + msgspec.json.encode(main) + b"\n\n"
                await asyncio.sleep(1.0)

        if name is not None and name not in api.service.engine.streams:
            return _html(page("driftwise", "<h1>No such stream</h1>"), 404)
        return StreamingResponse(told(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    return [Route("/", home), Route("/live", live), Route("/streams/{stream}", one),
            Route("/streams/{stream}/decisions/{id:path}", decision)]  # fmt: skip


async def _shown(name: str, main: Any, live: str) -> Response:
    return _html(page(f"{name}: driftwise", await main, live))


async def _explained(api: Api, name: str, id: str) -> Response:
    return _html(page(f"{id}: driftwise", decision_page(name, await api.service.explain(name, id))))


async def _or_refusal(answer: Any) -> Response:
    try:
        found: Response = await answer
        return found
    except Refusal as slip:
        told = slip.answer
        return _html(page("driftwise", f"<h1>{escape(told.error)}</h1><p>{escape(told.hint)}</p>"), slip.status)


def _guarded(api: Api, request: Request, stream: str | None) -> Response | None:
    """What somebody without a key is answered: browsers ask for it as a password."""
    try:
        api.admit(request.scope, None, stream)  # type: ignore[arg-type]
    except Refusal as slip:
        headers = {"www-authenticate": 'Basic realm="driftwise: a key as password"'} if slip.status == 401 else {}
        main = f"<h1>{escape(slip.answer.error)}</h1>"
        return Response(page("driftwise", main), slip.status, {**HEADERS, **headers}, "text/html; charset=utf-8")
    return None


def _html(text: str, status: int = 200) -> Response:
    return Response(text, status, HEADERS, "text/html; charset=utf-8")
