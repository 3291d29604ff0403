"""Every error of the wire: its stable code, its status and what it means. A code is never renamed or given another
meaning; the sentences beside it may change."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """One kind of error."""

    name: str
    status: int
    meaning: str


TABLE = (
    Code("invalid_json", 400, "the body is not one JSON value in UTF-8"),
    Code("invalid_http", 400, "the bytes are not an HTTP request"),
    Code("repeated_header", 400, "a header that may come once came twice"),
    Code("missing_host", 400, "the request has no Host header"),
    Code("unknown_key", 401, "the request has no key, or one that is not known"),
    Code("missing_scope", 403, "the key has not the scope or is not for the stream"),
    Code("foreign_origin", 403, "a page of another site sent the request"),
    Code("unknown_path", 404, "no route has this path"),
    Code("unknown_stream", 404, "no stream has this name"),
    Code("unknown_decision", 404, "no decision has this id"),
    Code("unknown_method", 405, "the route does not take this method"),
    Code("stream_exists", 409, "another stream has this name"),
    Code("stream_paused", 409, "the stream is paused and does not decide"),
    Code("stream_changed", 409, "another change of the stream came first"),
    Code("fixed_setting", 409, "a new policy may not change this setting"),
    Code("missing_features", 409, "the stream has no features, which items need"),
    Code("forgotten_rewards", 409, "rewards that a new policy would learn were forgotten"),
    Code("forgotten_decision", 409, "the arms of the decision were forgotten"),
    Code("other_decision", 409, "the id was decided with another request"),
    Code("other_reward", 409, "the decision has another reward"),
    Code("other_dimension", 409, "a policy of another dimension made the decision"),
    Code("other_result", 409, "the log does not come out as it was written"),
    Code("long_body", 413, "the body has too many bytes"),
    Code("many_chunks", 413, "the body has too many chunks"),
    Code("long_url", 414, "the URL has too many bytes"),
    Code("wrong_content_type", 415, "the body is not application/json"),
    Code("wrong_host", 421, "the server does not answer to this Host"),
    Code("invalid_field", 422, "a field is missing, unknown or of another type"),
    Code("invalid_value", 422, "a value is out of its range"),
    Code("invalid_name", 422, "the name cannot be that of a stream"),
    Code("nul_character", 422, "a text has a NUL character"),
    Code("rejected_row", 422, "the database does not accept the row"),
    Code("not_learned", 422, "the policy cannot learn the reward"),
    Code("long_batch", 422, "the batch has too many members"),
    Code("missing_action", 422, "a shadow stream needs the action that was played"),
    Code("unexpected_action", 422, "only a shadow stream takes action and propensity"),
    Code("missing_unit", 422, "a holdback stream needs unit or id"),
    Code("many_failures", 429, "the address sent too many keys that are not known"),
    Code("many_pipelined", 431, "too many requests came before an answer was read"),
    Code("long_headers", 431, "the URL and headers have too many bytes, or the headers are too many"),
    Code("internal_error", 503, "the request was not applied because of a defect of the server"),
    Code("starting", 503, "the server or the stream is being made ready"),
    Code("stopping", 503, "the server is stopping"),
    Code("overloaded", 503, "more requests wait than the server takes"),
    Code("many_readers", 503, "too many pages of the dashboard are open"),
    Code("database_held", 503, "another process holds the lock of the database"),
    Code("database_damaged", 503, "bytes of the database were changed"),
    Code("database_unreadable", 503, "the database cannot be read now"),
    Code("database_silent", 503, "the database does not answer"),
    Code("uncertain_write", 503, "the request may or may not have been written"),
    Code("stream_held", 503, "another replica holds the lock of the stream"),
    Code("replica_conflict", 503, "another replica wrote the same at the same time"),
    Code("disk_full", 507, "there is no room: the request was not written"),
)
STATUS = {one.name: one.status for one in TABLE}
