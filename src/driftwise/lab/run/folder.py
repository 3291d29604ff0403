"""A folder of results: writable, locked by one process, and without incomplete files of killed processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driftwise._internal.files import HALF, lock
from driftwise.errors import BadInput


def writable(folder: Path) -> Path:
    """Create the folder if necessary, and check that it is writable before hours of work."""
    with _refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".driftwise-{os.getpid()}"
        probe.touch()
        probe.unlink()
    return folder


@contextmanager
def alone(folder: Path) -> Iterator[Path]:
    """Hold the lock of a folder. The operating system releases it when the process ends, in any way."""
    writable(folder)
    with _refusals(folder), (folder / ".lock").open("w") as file:
        if not lock(file.fileno()):  # on systems without locks, two runs do the same work twice and agree
            wanted = "a folder that no other run is writing to"
            raise BadInput("out", str(folder), wanted, "wait for it, or pass another --out")
        yield folder


def sweep_out(folder: Path) -> None:
    """Remove the incomplete files of killed processes. The caller must hold the folder's lock."""
    for depth in ("", "*/", "trials/*/"):
        for left in list(folder.glob(f"{depth}*{HALF}")):
            left.unlink()


@contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission, or a folder in place of a file into a BadInput."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        where = f" ({Path(error.filename).name})" if isinstance(error.filename, str) else ""
        wanted = "a folder that can be written"
        raise BadInput("out", str(folder), wanted, f"{reason}{where}: pass another --out") from None
