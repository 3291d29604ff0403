"""One server a file: a lock beside the database that says who has it, and goes with the process that took it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from driftwise.errors import BadInput
from driftwise.service.store import Taken


class Lock:
    """Held from the moment it is made until `close`, or the end of the process however it ends."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as slip:
            got = f"{database}: {slip.strerror}"
            raise BadInput("db", got, "a file in a folder that can be written", "pass another --db") from None
        _take(self._file, database)
        boot = _boot()
        # Whether all that the last holder wrote is still there, on disk or in the system's memory.
        self.same_boot = boot is not None and _note(self._file).get("boot") == boot
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "boot": boot}  # fmt: skip
        os.truncate(self._file, 0)
        os.pwrite(self._file, json.dumps(note).encode(), 0)

    def close(self) -> None:
        os.close(self._file)


def check_free(database: Path) -> None:
    """Say at once that another process has a database, before all that a server needs is imported."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        file = os.open(database.with_name(database.name + ".lock"), os.O_RDWR | os.O_CLOEXEC)
        _take(file, database)
        os.close(file)


def _take(file: int, database: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        note = _note(file)
        known = {"pid", "host", "since"} <= set(note)
        who = f"process {note['pid']} on {note['host']} since {note['since']}" if known else "another process"
        os.close(file)
        raise Taken("db", f"{database}, which {who} has", "a database that no other process has",
                    "stop that one, or pass another --db") from None  # fmt: skip


def _note(file: int) -> dict[str, Any]:
    """What the last one that took the lock wrote of itself."""
    with contextlib.suppress(ValueError):
        found = json.loads(os.pread(file, 1000, 0))
        return found if isinstance(found, dict) else {}
    return {}


def _boot() -> str | None:
    """What this run of the machine is known by, where the system tells."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None
