"""A client in Python. A decision has one id, however often its request is sent.

If a connection breaks before the answer, the client sends the request again with the same id. The server answers with
the decision that this id already has, if it has one.
"""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Unpack
from urllib.parse import quote

from driftwise.errors import BadInput, DriftwiseError
from driftwise.service.answers import (
    Decided,
    Deleted,
    Explained,
    Items,
    Refusal,
    Rewarded,
    Settings,
    StreamAnswer,
    Streams,
)

try:
    import httpx
except ImportError:  # reported when a Client is made
    httpx = None  # type: ignore[assignment]

_AGAIN = (429, 503, 507)
_SAY_AFTER = 3.0  # seconds of retries before a warning is logged
_logger = logging.getLogger("driftwise.client")


class Refused(DriftwiseError):
    """The service refused a request: `status`, and `code`, `error`, `field` and `hint` as it sent them. The code is
    stable.
    """

    def __init__(self, status: int, told: Mapping[str, Any]) -> None:
        self.status = status
        names = ("code", "error", "field", "hint")
        self.code, self.error, self.field, self.hint = (str(told.get(name, "")) for name in names)
        what = f"{status} {self.code}" if self.code else f"{status}"
        super().__init__(f"{what}: {self.error}" + (f"; {self.hint}" if self.hint else ""))


class Client:
    """`decide` and `reward` over HTTP.

    key: a bearer key; without one, that in DRIFTWISE_KEY. tries: how often a request is sent before a broken connection
    or a busy server becomes an error. patience: how many seconds a request waits for a server that is starting; this
    uses no tries. The logger driftwise.client warns of a request that is retried for seconds."""

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, key: str | None = None, tries: int = 5, timeout: float = 10.0,
        patience: float = 300.0, transport: Any = None,
    ) -> None:
        if httpx is None:
            raise BadInput("client", "no httpx", "the package of the client", 'pip install "driftwise[client]"')
        given = os.environ.get("DRIFTWISE_KEY") if key is None else key
        headers = {} if given is None else {"authorization": f"Bearer {given}"}
        self.url, self.tries = url.rstrip("/"), max(1, tries)
        self.patience = patience
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, transport=transport)

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # ------------------------------------------------------------------------------------ streams

    def put(self, stream: str, **body: Unpack[Settings]) -> StreamAnswer:
        """Make a stream: policy={"name": "Auto", "dim": 10}, rewards=(0, 1), …. Sending the same again changes
        nothing."""
        found: StreamAnswer = self._ask("PUT", _path(stream), body)
        return found

    def change(self, stream: str, **body: Unpack[Settings]) -> StreamAnswer:
        """Change the policy. The new one learns all rewards that the old one learned."""
        found: StreamAnswer = self._ask("PUT", _path(stream, "policy"), body)
        return found

    def items(self, stream: str, items: Mapping[str, Mapping[str, Any]]) -> Items:
        """Register rows of items, which decisions then name."""
        found: Items = self._ask("PUT", _path(stream, "items"), {"items": items})
        return found

    def stream(self, stream: str) -> StreamAnswer:
        """The current state of a stream."""
        found: StreamAnswer = self._ask("GET", _path(stream))
        return found

    def streams(self) -> Streams:
        """The streams that the key may see, and the names of deleted streams."""
        found: Streams = self._ask("GET", "/v1/streams")
        return found

    def delete(self, stream: str, force: bool = False) -> Deleted:
        """Delete a stream permanently; with force also if decisions wait for their rewards."""
        found: Deleted = self._ask("DELETE", _path(stream), {"name": stream, "force": force})
        return found

    def pause(self, stream: str, fallback: int | str | None = None) -> StreamAnswer:
        """Stop deciding, or play a fallback: an item, or the index of an arm."""
        found: StreamAnswer = self._ask("POST", _path(stream, "pause"), {"fallback": fallback})
        return found

    def resume(self, stream: str) -> StreamAnswer:
        """Decide again."""
        found: StreamAnswer = self._ask("POST", _path(stream, "resume"), {})
        return found

    # ------------------------------------------------------------------------------------ decisions

    def decide(
        self, stream: str, arms: Sequence[Sequence[float]] | None = None, *, id: str | None = None, **more: Any
    ) -> Decided:
        """Decide among arms, or among items= in a context=. If no id is given the client makes one, for retries."""
        found: Decided = self._ask("POST", _path(stream, "decide"), _decision(arms, id, more))
        return found

    def decide_many(self, stream: str, many: Sequence[Mapping[str, Any]]) -> list[Decided | Refusal]:
        """Many decisions in one request, each a dict of what `decide` takes."""
        bodies = [_decision(one.get("arms"), one.get("id"), one) for one in many]
        found: list[Decided | Refusal] = self._ask("POST", _path(stream, "decide", "batch"), bodies)
        return found

    def reward(self, stream: str, id: str, value: float, metrics: Mapping[str, float] | None = None) -> Rewarded:
        """Send the reward of a decision, and values of guardrails. A reward that is sent twice is learned once."""
        more = {} if metrics is None else {"metrics": dict(metrics)}
        found: Rewarded = self._ask("POST", _path(stream, "reward"), {"id": id, "value": float(value), **more})
        return found

    def reward_many(self, stream: str, rewards: Sequence[tuple[str, float]]) -> list[Rewarded | Refusal]:
        """Send many rewards in one request."""
        bodies = [{"id": id, "value": float(value)} for id, value in rewards]
        found: list[Rewarded | Refusal] = self._ask("POST", _path(stream, "reward", "batch"), bodies)
        return found

    def explain(self, stream: str, id: str) -> Explained:
        """Recompute a decision from the log."""
        found: Explained = self._ask("GET", _path(stream, "explain", id))
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request until it is answered. Every request of this class may be repeated."""
        pause, left, began, said = 0.05, self.tries, time.monotonic(), False
        while True:
            left -= 1
            try:
                answer = self._http.request(method, path, **({} if body is None else {"json": body}))
            except httpx.TransportError as broken:
                if left <= 0:
                    wanted = f"an answer within {self.tries} tries"
                    raise BadInput("url", f"{self.url}: {type(broken).__name__}", wanted, "is the server up?") from None
                wait, reason = pause, type(broken).__name__
            else:
                if answer.is_success:
                    return answer.json()
                told = _told(answer)
                refused = Refused(answer.status_code, told)
                starting = refused.status == 503 and refused.field == "ready"
                left += starting
                if starting and time.monotonic() - began >= self.patience:
                    error = f"not ready within {self.patience:g} s: {refused.error}"
                    raise Refused(503, {**told, "error": error, "hint": "pass a larger patience="})
                if refused.status not in _AGAIN or left <= 0:
                    raise refused
                wait = max(pause, min(float(answer.headers.get("retry-after", 0) or 0), 5.0))
                reason = str(refused)
            if not said and time.monotonic() - began >= _SAY_AFTER:
                said = True
                _logger.warning("%s: retrying for %.0f s: %s", self.url, time.monotonic() - began, reason)
            time.sleep(wait * random.uniform(0.5, 1.0))  # clients cut off together must not retry together
            pause = min(2.0 * pause, 2.0)


def _path(*parts: str) -> str:
    """The path of a stream's route, each part quoted; "." and ".." too, which a URL would otherwise drop."""
    quoted = (quote(one, safe="") for one in parts)
    return "/v1/streams/" + "/".join(one if one.strip(".") else one.replace(".", "%2E") for one in quoted)


def _decision(arms: Any, id: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a `decide`, with an id."""
    body = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in more.items()
            if name not in ("arms", "id")}  # fmt: skip
    if arms is not None:
        rows = arms.tolist() if hasattr(arms, "tolist") else arms
        if not isinstance(rows, Sequence):
            wanted = "rows of numbers, one per arm: the service takes lists only"
            raise BadInput("arms", type(arms).__name__, wanted, "pass a grid of the set, or use a dw.Agent")
        body["arms"] = rows
    return {"id": uuid.uuid4().hex if id is None else id, **body}


def _told(answer: Any) -> Mapping[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
