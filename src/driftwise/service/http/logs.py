"""Structured logs: one JSON object per line on stderr, without bodies, keys, queries or headers other than the trace.

A thread writes the lines, so that a slow reader of the log delays no decision. If too many lines wait, further lines
are counted and dropped. The trace is W3C's (https://www.w3.org/TR/trace-context/#traceparent-header).
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

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_WAITING = 1_000  # lines that may wait to be written


class ServerLog:
    """`requests=True` logs every request; without it only requests that the server could not serve, and its own
    events."""

    def __init__(self, requests: bool = False, out: TextIO | None = None) -> None:
        self.requests = requests
        self.left_out = 0
        self._out = sys.stderr if out is None else out
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="driftwise log", daemon=True)
        self._thread.start()

    def event(self, event: str, **facts: Any) -> None:
        """Log an event with its facts."""
        if self._lines.qsize() >= _WAITING:
            self.left_out += 1
            return
        line = {"at": round(time.time(), 3), "event": event, **facts}
        if self.left_out:
            line["left_out"], self.left_out = self.left_out, 0
        self._lines.put(msgspec.json.encode(line))

    def close(self) -> None:
        """Write the lines that wait, if they are read within a second."""
        self._lines.put(None)
        self._thread.join(1.0)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ValueError):  # the reader is gone, which must not stop the server
                self._out.write(line.decode() + "\n")
                self._out.flush()

    def unexpected(self, error: BaseException) -> None:
        """Log an unexpected exception: its type and place, and nothing that a client sent."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        file = place.filename.rpartition("/")[2]
        self.event("internal_error", kind=type(error).__name__, file=file, line=place.lineno)

    def request(self, scope: dict[str, Any], stream: str, status: int, began: float, route: str = "") -> None:
        """Log one request: its route and not its path, which contains the client's ids."""
        if self.requests or status >= 500 or status == 429:
            named = route or scope["path"].partition("/v1/streams/")[2].partition("/")[2].partition("/")[0]
            named, stream = _plain(named) or "stream", _plain(stream)
            spent = round((time.perf_counter() - began) * 1e3, 3)
            trace = traceparent(scope)
            more = {} if trace is None else {"trace": trace}
            self.event("request", method=scope["method"], route=named, stream=stream, status=status, ms=spent, **more)


def _plain(name: str) -> str:
    """A name as streams and routes have them; "" for any other text, which could contain control codes of a
    terminal."""
    return name if _PLAIN.fullmatch(name) else ""


# version, trace-id, parent-id and flags in lower-case hex. No id is all zeros and no version is ff. Versions after 00
# may have more after a dash, which is dropped.
_PARENT = re.compile(rb"((?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(?:-.*)?")


def traceparent(scope: dict[str, Any]) -> str | None:
    """The trace that a request is part of. None if the header is absent, repeated or malformed: the standard says to
    ignore such headers."""
    found = None
    for name, value in scope["headers"]:
        if name == b"traceparent":
            if found is not None:
                return None
            found = value
    if found is None:
        return None
    told = _PARENT.fullmatch(found)
    return None if told is None or (found[:2] == b"00" and len(found) != 55) else told[1].decode()
