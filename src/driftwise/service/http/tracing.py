"""W3C Trace Context: the `traceparent` of a request (https://www.w3.org/TR/trace-context/#traceparent-header)."""

from __future__ import annotations

import re
from typing import Any

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
