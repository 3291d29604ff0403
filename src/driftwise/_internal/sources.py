"""One hash of the source files on which compiled code, a stored number or a chunk of work depends."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
# The sources of compiled code.
COMPILED = ("kernels", "theory", "_internal/elementary.py", "_internal/intrinsics.py")


@cache
def source_hash(*within: str, without: tuple[str, ...] = ()) -> str:
    """Hash of the sources in the folders or files `within` (all of the package if none is named), except `without`."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        name = source.relative_to(PACKAGE)
        named = not within or any(name.is_relative_to(one) for one in within)
        if named and not any(name.is_relative_to(one) for one in without):
            digest.update(str(name).encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]
