"""One writer per folder: logs of two agents in one folder could not be learned."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

from driftwise._internal.files import LOCKS, lock, unlock
from driftwise.errors import BadInput


class FolderClaim:
    """A lock on a folder itself, held from `renew` until `release` or the end of the process.

    The child of a fork releases its copy, and the parent keeps the lock. A file system that cannot lock folders (NFS)
    grants every claim, as Windows does; parts are then created under names that no other part has, so none is lost.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: int | None = None
        _HELD.add(self)

    def renew(self) -> None:
        """Claim the folder that has this name now. The first one may have been moved away, and another made."""
        if not LOCKS or (self._file is not None and os.path.samestat(os.stat(self.folder), os.fstat(self._file))):
            return
        self.release()
        file = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            free = lock(file)
        except OSError:
            os.close(file)
            return
        except BaseException:
            os.close(file)
            raise
        if not free:
            os.close(file)
            wanted = "a folder that no other agent or process logs into"
            way_out = f'give each its own, {self.folder.name}/{os.getpid()} say'
            raise BadInput("path", str(self.folder), wanted, way_out)
        self._file = file

    def release(self) -> None:
        """Release the folder, also if a child of a fork has the descriptor too."""
        if self._file is not None:
            unlock(self._file)
        self.leave()

    def leave(self) -> None:
        """Release it in this process only."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


_HELD: weakref.WeakSet[FolderClaim] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for claim in list(_HELD):
        claim.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
