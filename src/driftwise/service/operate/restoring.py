"""`driftwise restore`: replace a database by a backup, without mixing the two.

If a backup is copied over a database that crashed, the `-wal` of the old file stays beside the new one, and SQLite
applies it to the wrong file. Here the old files get second names, the backup replaces the file in one step, and the old
WAL is removed last. A process that is killed in between leaves a file of two names, or a backup with a foreign WAL:
`driftwise serve` refuses both, and the same `restore` can be run again.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from driftwise._internal.files import settle_files, sync_folder
from driftwise.errors import BadInput
from driftwise.service.operate.keeping import copied
from driftwise.service.stores.lock import Lock
from driftwise.service.stores.opening import one_file
from driftwise.service.stores.records import Damaged
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.stores.wal import wal_of

_BESIDE = ("-wal", "-journal", "-shm")  # files of SQLite's that belong to a database
_DUMPS = (b"PGDMP", b"--\n-- PostgreSQL")  # the first bytes of files of pg_dump


def restore(backup: str | Path, db: str | Path, *, replace: bool = False) -> tuple[int, Path | None]:
    """Replace `db` by the database in `backup`. Returns its size, and the new path of the files that `db` had
    before."""
    for one in (backup, db):
        one_file(one, "use pg_restore for what pg_dump wrote")
    target = Path(os.path.realpath(db))
    store = _opened(Path(backup), target)
    try:
        check_rows(store)
        there = [path for path in (target, *_files_beside(target)) if path.exists()]
        if there and not replace:
            way_out = "pass --replace, which keeps these files under other names"
            raise BadInput("db", f"{there[0].name} in {target.parent}", "a database that does not exist", way_out)
        created = not target.exists()
        lock = Lock(target)
        try:
            kept = _place(store, target, there)
        except BaseException:
            if created:
                target.unlink()
            raise
        finally:
            lock.close()
    finally:
        store.close()
    return target.stat().st_size, kept


def _opened(backup: Path, target: Path) -> SQLiteStore:
    """The opened backup. A dump of PostgreSQL, the database itself and a file that a server writes are refused."""
    wanted, way_out = "a file that driftwise backup wrote", "pass another BACKUP"
    if not backup.is_file():
        raise BadInput("backup", str(backup), wanted, way_out)
    with backup.open("rb") as file:
        if file.read(max(map(len, _DUMPS))).startswith(_DUMPS):
            raise BadInput("backup", f"a dump of PostgreSQL, {backup}", wanted, "use pg_restore or psql")
    if target.exists() and target.samefile(backup):
        raise BadInput("backup", f"the database itself, {backup}", wanted, way_out)
    log = wal_of(Path(os.path.realpath(backup)))
    if log.exists() and log.stat().st_size:
        raise BadInput("backup", f"a database with a WAL, {log}", wanted, "copy it with driftwise backup")
    return SQLiteStore(backup, writes=False)


def check_rows(store: SQLiteStore) -> None:
    """Check the structure of a database, the seal of every row, and that no reward is missing."""
    sound = store.soundness()
    if sound != "ok":
        raise Damaged(str(store.path), sound)
    for stream in store.streams():
        store.eras(stream.id), store.items(stream.id)
        for number, reward in enumerate(store.rewards(stream.id), 1):
            if reward.seq != number:
                raise Damaged(str(store.path), f"no reward {number} of stream {stream.name}")
        sets = {decision.arm_set for decision in store.decisions(stream.id)}
        for arms in sets:
            if arms is not None and store.arms(arms) is None:
                raise Damaged(str(store.path), f"no row {arms} of table arm_set")


def _place(store: SQLiteStore, target: Path, there: list[Path]) -> Path | None:
    with copied(store, target) as aside:
        kept = _second_names(target, there) if there else None
        settle_files(aside, target)
        for path in _files_beside(target):
            path.unlink(missing_ok=True)
        sync_folder(target.parent)
    return kept


def _second_names(target: Path, there: list[Path]) -> Path:
    """Give the existing files second names, under which they remain a database with its WAL."""
    stem = f"{target.name}.replaced-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    names = (target.with_name(stem + more) for more in ("", *(f"-{number}" for number in range(2, 1000))))
    kept = next(name for name in names if not name.exists())
    for path in there:
        if not path.name.endswith("-shm"):  # an index of the WAL, which SQLite makes again
            os.link(path, kept.with_name(kept.name + path.name.removeprefix(target.name)))
    sync_folder(target.parent)
    return kept


def _files_beside(target: Path) -> list[Path]:
    return [target.with_name(target.name + ending) for ending in _BESIDE]
