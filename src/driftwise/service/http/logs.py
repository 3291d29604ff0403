"""Structured logs: a JSON object a line on stderr, without bodies, keys, queries or headers but for a trace.

Lines are written by a thread of their own, so that whoever reads them too slowly holds up nobody's decision: beyond
what may wait they are counted and left out.
"""

from __future__ import annotations

import contextlib
import queue
import re
import sys
import threading
import time
import traceback
from typing import Any, TextIO

import msgspec

from driftwise.service.http.tracing import traceparent

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_WAITING = 1_000  # lines that may wait to be written


class Log:
    """`requests=True` writes a line a request; without it only what we could not serve, and what the server does."""

    def __init__(self, requests: bool = False, out: TextIO | None = None) -> None:
        self.requests = requests
        self.left_out = 0
        self._out = sys.stderr if out is None else out
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="driftwise log", daemon=True)
        self._thread.start()

    def event(self, event: str, **facts: Any) -> None:
        """Something that happened, for the log."""
        if self._lines.qsize() >= _WAITING:
            self.left_out += 1
            return
        line = {"at": round(time.time(), 3), "event": event, **facts}
        if self.left_out:
            line["left_out"], self.left_out = self.left_out, 0
        self._lines.put(msgspec.json.encode(line))

    def close(self) -> None:
        """Write what waits, if somebody reads it within a second."""
        self._lines.put(None)
        self._thread.join(1.0)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody reads any more: that stops no server
                self._out.write(line.decode() + "\n")
                self._out.flush()

    def slip(self, slip: BaseException) -> None:
        """Something that should not happen: its kind and place, and nothing that a caller sent."""
        place = traceback.extract_tb(slip.__traceback__)[-1]
        self.event("slip", kind=type(slip).__name__, file=place.filename.rpartition("/")[2], line=place.lineno)

    def request(self, scope: dict[str, Any], stream: str, status: int, began: float, route: str = "") -> None:
        """One request: its route and not its path, which has ids of the caller's."""
        if self.requests or status >= 500 or status == 429:
            named = route or scope["path"].partition("/v1/streams/")[2].partition("/")[2].partition("/")[0]
            named, stream = _plain(named) or "stream", _plain(stream)
            spent = round((time.perf_counter() - began) * 1e3, 3)
            trace = traceparent(scope)
            more = {} if trace is None else {"trace": trace}
            self.event("request", method=scope["method"], route=named, stream=stream, status=status, ms=spent, **more)


def _plain(name: str) -> str:
    """A name as streams and routes have them; "" for what a caller made up, which a terminal may obey."""
    return name if _PLAIN.fullmatch(name) else ""
