"""Files that are there whole or not at all."""

from __future__ import annotations

import os
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


def keep_durably(target: Path, data: bytes) -> None:
    """As `keep`, and on disk when it returns: the file is synced before it is moved, its folder after."""
    aside = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}{HALF}")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
