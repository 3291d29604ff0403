"""One hash of the source files on which compiled code, a stored number or a chunk of work depends."""

from __future__ import annotations

import hashlib
import os
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


def cache_folders(chosen: str) -> list[Path]:
    """Where compiled code of these sources may be: in the folder that NUMBA_CACHE_DIR names, or else beside the
    sources and in the user's cache."""
    roots = [Path(chosen)] if chosen else [PACKAGE / "kernels" / "__pycache__", *_user_cache()]
    return [root / f"driftwise-{source_hash(*COMPILED)}" for root in roots]


def _user_cache() -> list[Path]:
    """The user's cache folder, if there is a user: a container may have neither HOME nor a line in passwd."""
    try:
        return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftwise"]
    except RuntimeError:
        return []


def was_compiled(name: str) -> bool:
    """Whether numba has stored compiled code of the entry of this name. Nothing is imported for the answer."""
    folders = cache_folders(os.environ.get("NUMBA_CACHE_DIR", ""))
    return any(True for folder in folders for _ in folder.rglob(f"*.{name}-*.nbi"))
