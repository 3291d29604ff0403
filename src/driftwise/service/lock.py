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
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = self._holder()
            os.close(self._file)
            raise Taken("db", f"{database}, which {who} has", "a database that no other process has",
                        "stop that one, or pass another --db") from None  # fmt: skip
        boot = _boot()
        # Whether all that the last holder wrote is still there, on disk or in the system's memory.
        self.same_boot = boot is not None and self._note().get("boot") == boot
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "boot": boot}  # fmt: skip
        os.truncate(self._file, 0)
        os.pwrite(self._file, json.dumps(note).encode(), 0)

    def _note(self) -> dict[str, Any]:
        with contextlib.suppress(ValueError):
            found = json.loads(os.pread(self._file, 1000, 0))
            return found if isinstance(found, dict) else {}
        return {}

    def _holder(self) -> str:
        note = self._note()
        if {"pid", "host", "since"} <= set(note):
            return f"process {note['pid']} on {note['host']} since {note['since']}"
        return "another process"

    def close(self) -> None:
        os.close(self._file)


def _boot() -> str | None:
    """What this run of the machine is known by, where the system tells."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None
