"""Atomic file writes: a file is complete or absent. Files with data about people are readable by their owner alone."""

from __future__ import annotations

import os
import threading
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCKS = fcntl is not None  # whether the system has locks that end with their process
# The suffix of a file that is not yet complete.
HALF = ".tmp"
PRIVATE = 0o600  # the mode of new databases, locks, snapshots, logs and backups, whatever the umask allows


def keep(target: Path, data: bytes | str) -> None:
    """Write a temporary file in the same folder and rename it. For figures and reports; the umask sets the mode."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f"{target.name}.{threading.get_ident()}{HALF}")
    aside.write_bytes(raw)
    aside.replace(target)


def keep_durably(target: Path, data: bytes, *, new: bool = False) -> None:
    """Write a private file that is on disk when this returns. `new` raises FileExistsError where the target exists."""
    aside = file_beside(target)
    try:
        with os.fdopen(private(aside), "wb") as file:
            file.write(data)
        settle_files(aside, target, new=new)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def file_beside(target: Path) -> Path:
    """The temporary name of a file in this thread."""
    return target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}{HALF}")


def private(path: Path) -> int:
    """Create a file that only its owner can read; a file that a killed process left under this name is removed."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)


def settle_files(aside: Path, target: Path, *, new: bool = False) -> None:
    """Sync a complete file, rename it and sync the folder. A file that replaces another one takes over its mode."""
    with aside.open("rb+") as file:
        if not new and target.exists():
            os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
        os.fsync(file.fileno())
    if not new:
        aside.replace(target)
        sync_folder(target.parent)
        return
    _link(aside, target)
    try:
        sync_folder(target.parent)
    except BaseException:  # a second attempt must not find the rest of this one
        target.unlink(missing_ok=True)
        raise


def _link(aside: Path, target: Path) -> None:
    """Move a file to a name that does not exist. A rename would replace a file that another process made meanwhile."""
    try:
        os.link(aside, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError(str(target)) from None
        aside.replace(target)
    else:
        aside.unlink()


def sync_folder(folder: Path) -> None:
    """Sync a folder: the names in it are on disk when this returns."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def lock(file: int) -> bool:
    """Lock an open file or folder until this process ends or unlocks it; False where another process has it.

    A system without such locks grants every one. A file system that cannot lock raises OSError.
    """
    if LOCKS:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def unlock(file: int) -> None:
    """Unlock it, also where a child of a fork has the descriptor too."""
    if LOCKS:
        fcntl.flock(file, fcntl.LOCK_UN)
