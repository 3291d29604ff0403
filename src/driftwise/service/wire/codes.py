"""Every error of the wire: its stable code, its status, its meaning and what to do. A code is never renamed or given
another meaning. Its sentences may change."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """One kind of error. A `Refusal` has these texts unless it is given others."""

    name: str
    status: int
    meaning: str
    field: str = ""
    hint: str = ""
    retry_after: int = 0  # seconds


_AGAIN, _SAME = "send it again", "send it again: the same id gets the same answer"
TABLE = (
    Code("invalid_json", 400, "the body is not one JSON value in UTF-8", "body", "send one JSON value in UTF-8"),
    Code("invalid_http", 400, "the bytes are not an HTTP request", "", "send HTTP/1.1"),
    Code("repeated_header", 400, "a header that may occur once occurs twice", "", "send one"),
    Code("missing_host", 400, "the request has no Host header", "host", "send the server's name or address as Host"),
    Code("unknown_key", 401, "the request has no key, or one that is not known", "authorization",
         "send Authorization: Bearer <key>"),
    Code("missing_scope", 403, "the key lacks the scope, or is for another stream", "authorization",
         "use a key with that scope and stream"),
    Code("foreign_origin", 403, "a page of another site sent the request", "origin",
         "send it from a program, or name the proxy's host by driftwise serve --allow-host NAME"),
    Code("unknown_path", 404, "no route has this path", "path", "see /openapi.json"),
    Code("unknown_stream", 404, "no stream has this name", "stream", "make it with PUT /v1/streams/{stream}"),
    Code("unknown_decision", 404, "no decision has this id", "id", "send the id from the answer of decide"),
    Code("stream_deleted", 410, "the stream was deleted, and its name cannot be used again", "stream",
         "make a stream of another name"),
    Code("unknown_method", 405, "the route does not take this method", "path", "see /openapi.json"),
    Code("stream_exists", 409, "another stream has this name", "stream", "send PUT …/policy to change its policy"),
    Code("stream_paused", 409, "the stream is paused and makes no decisions", "stream",
         "send POST …/resume first; rewards are still accepted"),
    Code("fallback_not_offered", 409, "the stream is paused and its fallback is not among the arms", "stream",
         "offer the fallback, or send POST …/resume"),
    Code("open_decisions", 409, "decisions of the stream wait for their rewards", "force",
         "send force: true to delete the stream anyway"),
    Code("stream_changed", 409, "another change of the stream came first", "stream",
         "read the stream, then send the change again"),
    Code("fixed_setting", 409, "a new policy may not change this setting", "policy", "make a new stream"),
    Code("missing_features", 409, "the stream has no features, and items need them", "items",
         "declare features when you make the stream"),
    Code("forgotten_rewards", 409, "rewards that a new policy would learn were forgotten", "policy", "reset instead"),
    Code("forgotten_decision", 409, "the arms of the decision were forgotten", "id",
         "drop its reward; GET …/explain/{id} shows the decision; a new decision needs a new id"),
    Code("other_decision", 409, "the id was decided with another request", "id", "send a new id for it"),
    Code("other_reward", 409, "the decision has another reward", "value", "the first reward stands"),
    Code("other_dimension", 409, "a policy of another dimension made the decision", "id", "drop the reward"),
    Code("other_result", 409, "recomputing the log gives another result than was written", "", "run driftwise verify"),
    Code("long_body", 413, "the body has too many bytes", "body", "send less, or arms as arms64"),
    Code("many_chunks", 413, "the body has too many chunks", "body", "send larger chunks"),
    Code("long_url", 414, "the URL has too many bytes", "path", "send less"),
    Code("wrong_content_type", 415, "the body is not application/json", "content-type",
         "send the header Content-Type: application/json, with or without a body"),
    Code("wrong_host", 421, "the server does not answer to this Host", "host",
         "use its address, or start it with driftwise serve --allow-host NAME for each of its names"),
    Code("invalid_field", 422, "a field is missing, unknown or of another type", "body",
         "see /openapi.json for the fields and their types"),
    Code("invalid_value", 422, "a value is out of its range"),
    Code("invalid_name", 422, "the name is not valid for a stream", "stream", "send 1 to 64 of A-Z a-z 0-9 . _ -"),
    Code("nul_character", 422, "a text has a NUL character", "body", "leave it out of names, ids and values"),
    Code("rejected_row", 422, "the database does not accept the row", "body", "change what was sent"),
    Code("not_learned", 422, "the policy could not learn the reward", "value",
         "nothing was learned; change the policy, or leave this reward out"),
    Code("long_batch", 422, "the batch has too many members", "body", "send fewer"),
    Code("missing_action", 422, "a shadow stream needs the action that was played", "action",
         "send action, or make the stream live"),
    Code("unexpected_action", 422, "only a shadow stream takes action and propensity", "action", "leave both out"),
    Code("missing_unit", 422, "a holdback stream needs unit or id", "unit", "send one of them"),
    Code("many_failures", 429, "the address sent too many keys that are not known", "authorization", "wait"),
    Code("many_pipelined", 431, "too many requests came before an answer was read", "", "read answers first"),
    Code("long_headers", 431, "the URL and headers have too many bytes, or the headers are too many", "headers",
         "send fewer"),
    Code("internal_error", 503, "the request was not applied because of an internal error", "", _AGAIN, 1),
    Code("starting", 503, "the server or the stream is starting", "ready",
         "send it again; GET /readyz says when the server is ready", 1),
    Code("stopping", 503, "the server is stopping", "", _AGAIN, 1),
    Code("overloaded", 503, "more requests wait than the server takes", "", _AGAIN, 1),
    Code("many_readers", 503, "too many pages of the dashboard are open", "", "open it again later", 5),
    Code("database_held", 503, "another process holds the lock of the database", "",
         "nothing was written; send it again", 1),
    Code("database_damaged", 503, "bytes of the database were changed", "", "restore a backup", 60),
    Code("database_unreadable", 503, "the database cannot be read now", "", _AGAIN, 1),
    Code("database_silent", 503, "the database does not answer", "", _SAME, 1),
    Code("uncertain_write", 503, "the request may or may not have been written", "", _SAME, 1),
    Code("stream_held", 503, "another replica holds the lock of the stream", "stream", _AGAIN, 1),
    Code("replica_conflict", 503, "another replica wrote the same at the same time", "", _SAME, 1),
    Code("disk_full", 507, "the disk is full: the request was not written", "",
         "free disk space; the same id may be sent again"),
)  # fmt: skip
CODES = {one.name: one for one in TABLE}
STATUS = {one.name: one.status for one in TABLE}
