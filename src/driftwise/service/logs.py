"""Structured logs: a JSON object a line on stderr, without bodies, keys, headers or queries."""

from __future__ import annotations

import sys
import time
import traceback
from typing import Any, TextIO

import msgspec


class Log:
    """`requests=True` writes a line a request; without it only what we could not serve, and what the server does."""

    def __init__(self, requests: bool = False, out: TextIO | None = None) -> None:
        self.requests = requests
        self._out = sys.stderr if out is None else out

    def event(self, event: str, **facts: Any) -> None:
        line = {"at": round(time.time(), 3), "event": event, **facts}
        self._out.write(msgspec.json.encode(line).decode() + "\n")
        self._out.flush()

    def slip(self, slip: BaseException) -> None:
        """Something that should not happen: its kind and place, and nothing that a caller sent."""
        place = traceback.extract_tb(slip.__traceback__)[-1]
        self.event("slip", kind=type(slip).__name__, file=place.filename.rpartition("/")[2], line=place.lineno)

    def request(self, scope: dict[str, Any], stream: str, status: int, began: float, route: str = "") -> None:
        """One request: its route and not its path, which has ids of the caller's."""
        if self.requests or status >= 500 or status == 429:
            named = route or scope["path"].partition("/v1/streams/")[2].partition("/")[2].partition("/")[0]
            named = named or "stream"
            spent = round((time.perf_counter() - began) * 1e3, 3)
            self.event("request", method=scope["method"], route=named, stream=stream, status=status, ms=spent)
