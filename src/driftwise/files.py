"""Files that are there whole or not at all."""

from __future__ import annotations

import threading
from pathlib import Path

# How the name of a file ends until it is whole.
HALF = ".tmp"


def keep(target: Path, data: bytes | str) -> None:
    """Write a file beside its place and move it there."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f"{target.name}.{threading.get_ident()}{HALF}")
    aside.write_bytes(raw)
    aside.replace(target)
