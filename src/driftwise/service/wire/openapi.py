"""The OpenAPI 3.1 description of the wire, made from the types that check it."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from driftwise import __version__
from driftwise.service.wire.codes import STATUS, TABLE
from driftwise.service.wire.protocol import (
    DecideBody,
    Decided,
    DeleteBody,
    Error,
    Explained,
    ForgetBody,
    Health,
    ItemsBody,
    PauseBody,
    RewardBody,
    Rewarded,
    StreamAnswer,
    StreamBody,
    Streams,
)

_TYPES = (
    StreamBody, DecideBody, RewardBody, ItemsBody, PauseBody, ForgetBody, DeleteBody, Decided, Rewarded, StreamAnswer,
    Streams, Explained, Error, Health,
)  # fmt: skip
_STREAM = {"name": "stream", "in": "path", "required": True,
           "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}}  # fmt: skip
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 128}}
_STATUSES = sorted(set(STATUS.values()))
_ABOUT = (
    "An answer is on disk when sent. Every POST and PUT needs Content-Type: application/json, also without a body."
)


def _list(kind: Any, most: int = 1000) -> dict[str, Any]:
    return {"type": "array", "items": kind, "maxItems": most}


@cache
def document() -> dict[str, Any]:
    """The whole description."""
    kinds, components = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    of = dict(zip(_TYPES, kinds, strict=True))
    operations = (
        ("put", "", "Make a stream", of[StreamBody], of[StreamAnswer], (200, 201)),
        ("get", "", "The state of a stream", None, of[StreamAnswer], (200,)),
        ("delete", "", "Delete a stream permanently", of[DeleteBody],
         {"type": "object", "properties": {"deleted": {"type": "string"}}, "required": ["deleted"]}, (200,)),
        ("post", "/decide", "Decide among arms", of[DecideBody], of[Decided], (200,)),
        ("post", "/reward", "Send the reward of a decision", of[RewardBody], of[Rewarded], (200,)),
        ("post", "/decide/batch", "Many decisions", _list(of[DecideBody]),
         _list({"anyOf": [of[Decided], of[Error]]}), (200,)),
        ("post", "/reward/batch", "Many rewards", _list(of[RewardBody]),
         _list({"anyOf": [of[Rewarded], of[Error]]}), (200,)),
        ("get", "/explain/{id}", "Recompute a decision from the log", None, of[Explained], (200,)),
        ("put", "/policy", "Change the policy, keep what was learned", of[StreamBody], of[StreamAnswer], (200,)),
        ("put", "/items", "Register rows of items, which decisions name", of[ItemsBody],
         {"type": "object", "properties": {"items": {"type": "integer"}}, "required": ["items"]}, (200,)),
        ("post", "/forget", "Erase decisions that closed before a time, or those of a unit", of[ForgetBody],
         {"type": "object", "properties": {"forgotten": {"type": "integer"}}, "required": ["forgotten"]}, (200,)),
        ("post", "/pause", "Stop deciding, or play a fallback", of[PauseBody], of[StreamAnswer], (200,)),
        ("post", "/resume", "Decide again", None, of[StreamAnswer], (200,)),
        ("post", "/reset", "Discard what was learned", None, of[StreamAnswer], (200,)),
    )  # fmt: skip
    paths: dict[str, Any] = {}
    for method, rest, summary, asked, answered, statuses in operations:
        given = [_STREAM, _ID] if "{id}" in rest else [_STREAM]
        paths.setdefault("/v1/streams/{stream}" + rest, {"parameters": given})[method] = _operation(
            summary, asked, answered, statuses
        )
    paths["/v1/streams"] = {"get": _operation("Streams that the key may see", None, of[Streams], (200,))}
    for path, summary in (("/healthz", "Whether the server is healthy"), ("/readyz", "Whether the server is ready")):
        paths[path] = {"get": {
            "summary": summary, "security": [],
            "responses": {str(status): _answer("health", of[Health]) for status in (200, 503)},
        }}  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {"title": "driftwise", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {str(status): _answer(_codes(status), of[Error]) for status in _STATUSES},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _operation(summary: str, asked: Any, answered: Any, statuses: tuple[int, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "summary": summary,
        "responses": {str(status): _answer("done", answered) for status in statuses}
        | {str(status): {"$ref": f"#/components/responses/{status}"} for status in _STATUSES},
    }
    if asked is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": asked}}}
    return made


def _codes(status: int) -> str:
    """The meaning of an error status, by code."""
    return "; ".join(f"{one.name}: {one.meaning}" for one in TABLE if one.status == status)


def _answer(why: str, kind: Any) -> dict[str, Any]:
    return {"description": why, "content": {"application/json": {"schema": kind}}}
