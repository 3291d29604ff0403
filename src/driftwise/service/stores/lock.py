"""The lock of a database, for one server: a lock on the file itself, and a note beside it that names the process.

The lock on the file is a record lock on a byte that SQLite never locks. It follows the file and not its name: a
symbolic link, another mount or a removed `.lock` changes nothing. Both locks end with the process that took them.

Closing any descriptor of a file drops all record locks that the process has on it, and SQLite relies on its own. So
the descriptor stays open until SQLite has closed the file, and this module opens no file that the process has locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

from driftwise._internal.files import PRIVATE
from driftwise.errors import BadInput
from driftwise.service.stores.records import Taken

# struct flock: one byte far beyond the end of every file, and beyond the bytes at 1 GiB that SQLite locks.
_BYTE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 2**62, 1, 0)
_OPEN = os.O_RDWR | os.O_CLOEXEC
_HELD: set[tuple[int, int] | None] = set()  # files that this process has locked


class Lock:
    """The lock. It is held from its creation until `close` or the end of the process."""

    def __init__(self, database: Path) -> None:
        self.path = note_of(database)
        try:
            self.file, self._note = _take(database, _OPEN | os.O_CREAT)
        except OSError as error:
            got = f"{database}: {error.strerror}"
            raise BadInput("db", got, "a file in a folder that can be written", "pass another --db") from None
        self._files: dict[Path, tuple[int, int] | None] = {}
        self.watch(database)
        _HELD.add(identity(self.file))
        boot = _boot()
        # Whether everything that the last holder wrote still exists, on disk or in the page cache.
        self.same_boot = boot is not None and _read(self._note).get("boot") == boot
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "boot": boot}  # fmt: skip
        told = json.dumps(note).encode()
        with contextlib.suppress(OSError):  # a full disk: the note is for people, and the locks are held without it
            os.pwrite(self._note, told, 0)
            os.truncate(self._note, len(told))

    def watch(self, path: Path) -> None:
        """Make `gone` watch this file too."""
        self._files[path] = identity(path)

    def gone(self) -> Path | None:
        """A watched file that was removed or replaced since it was opened; writes to it are lost."""
        return next((path for path, known in self._files.items() if identity(path) != known), None)

    def close(self) -> None:
        """Release the lock. SQLite must have closed the file."""
        _HELD.discard(identity(self.file))
        os.close(self.file)
        os.close(self._note)


def identity(file: Path | int) -> tuple[int, int] | None:
    """The device and inode of a file or a descriptor, which do not depend on its name; None if there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def held(database: Path) -> bool:
    """Whether this process has locked a database."""
    return identity(database) in _HELD


def check_free(database: Path) -> None:
    """Refuse at once if another process has the database, before the imports of a server."""
    with contextlib.suppress(OSError):  # which a server that opens it reports
        for file in _take(Path(os.path.realpath(database)), _OPEN):
            os.close(file)


def note_of(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _take(database: Path, flags: int) -> tuple[int, int]:
    """Descriptors of the database and of the note beside it, both locked."""
    if held(database):
        raise _taken(database)
    file = os.open(database, flags, PRIVATE)
    note = None
    try:
        _lock_byte(file)
        note = os.open(note_of(database), flags, PRIVATE)
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if identity(database) != identity(file):  # replaced since it was opened
            raise BlockingIOError
    except BaseException as error:
        os.close(file)
        if note is not None:
            os.close(note)
        if isinstance(error, BlockingIOError):
            raise _taken(database) from None
        raise
    return file, note


def _lock_byte(file: int) -> None:
    """Lock the file itself if the system can; otherwise only the lock beside it remains."""
    if hasattr(fcntl, "F_OFD_SETLK"):
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _BYTE)
        except PermissionError as error:  # EACCES, which some systems say for EAGAIN
            raise BlockingIOError(*error.args) from None
        except BlockingIOError:
            raise
        except OSError:
            pass


def _taken(database: Path) -> Taken:
    note: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        file = os.open(note_of(database), os.O_RDONLY | os.O_CLOEXEC)
        note = _read(file)
        os.close(file)
    known = {"pid", "host", "since"} <= set(note)
    who = f"process {note['pid']} on {note['host']} since {note['since']}" if known else "another process"
    return Taken("db", f"{database}, which {who} has open", "a database that no other process has open",
                 "stop that process, or pass another --db")  # fmt: skip


def _read(file: int) -> dict[str, Any]:
    """The note of the last process that took the lock."""
    with contextlib.suppress(ValueError):
        found = json.loads(os.pread(file, 1000, 0))
        return found if isinstance(found, dict) else {}
    return {}


def _boot() -> str | None:
    """The id of this boot of the machine, if the system has one."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None
