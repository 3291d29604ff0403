"""The store in one SQLite file: WAL, synchronous=FULL, one writer.

A server locks the file. A command that only reads (verify, export, backup) takes no lock and sees what is committed.
`commit` may run in another thread while no other thread uses the store.

SQLite names the log after the path of the file, so two paths of one file would give it two logs. Symbolic links are
resolved before the file is opened; a file with hard links is refused.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from driftwise._internal.files import private
from driftwise.errors import BadInput
from driftwise.service.stores.lock import Lock, held, note_of
from driftwise.service.stores.records import (
    Broken,
    Damaged,
    DecisionRow,
    Failed,
    Full,
    Held,
    Rejected,
    Taken,
    viewed,
)
from driftwise.service.stores.schema import migrate, version_of
from driftwise.service.stores.store import COLUMNS, TABLES, Sealed, Store
from driftwise.service.stores.wal import damage_of, has_log, strange_log, wal_of

_WAIT = 5.0  # seconds that another process may hold the file's lock before this one gives up
_LEAST = 64 << 10  # bytes of room that SQLite needs to open a database
_FULL = ("SQLITE_FULL", "SQLITE_NOMEM")
_HELD = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")  # and their extended codes
_REJECTED = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, OverflowError, UnicodeError)
_ADD = {kind: f"INSERT INTO {TABLES[kind]} ({names}) VALUES ({','.join('?' * len(names.split(',')))})"
        for kind, names in COLUMNS.items()}  # fmt: skip


def _named(path: Path, error: Exception) -> Failed:
    """The driftwise error for an error of SQLite."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(_HELD):
        return Held(f"{path}: another process holds its lock ({error})")
    if name in _FULL:
        return Full(f"{path}: {error}")
    if isinstance(error, _REJECTED):
        return Rejected(str(error))
    return Broken(f"{path}: {error}")


class SQLiteStore(Store):
    """A database file. `writes=False` only reads and takes no lock. `pages` is the largest number of pages. A command
    that writes a single row beside a running server uses `lock=False`."""

    shared = False

    def __init__(
        self, path: str | Path, *, writes: bool = True, lock: bool = True, pages: int | None = None
    ) -> None:
        super().__init__()
        self.path = Path(os.path.realpath(path))
        new = [one for one in (self.path, note_of(self.path)) if not one.exists()]
        self._lock = Lock(self.path) if writes and lock else None
        try:
            self._open(writes, pages)
        except BaseException as error:
            for one in new if self._lock is not None else ():  # while it is locked
                one.unlink(missing_ok=True)
            self.close()
            if isinstance(error, Held) or getattr(error, "sqlite_errorname", "").startswith(_HELD):
                got = f"{self.path}, whose lock another process holds"
                raise Taken("db", got, "a database that can be written", "end that process, then start again") from None
            if isinstance(error, sqlite3.Error):
                full = shutil.disk_usage(self.path.parent).free < _LEAST
                way_out = "make room on its disk" if full else "pass the path of a database, or restore a backup"
                raise BadInput("db", f"{self.path}: {error}", "a database that can be opened", way_out) from None
            raise

    def _open(self, writes: bool, pages: int | None) -> None:
        if not writes and not self.path.is_file():
            raise BadInput("db", str(self.path), "a database that exists", "pass the --db of driftwise serve")
        self._check_files(writes)
        address = f"file:{quote(str(self.path))}?mode={'rwc' if writes else 'ro'}"
        self._database = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=_WAIT
        )
        if writes:
            self._database.execute("PRAGMA journal_mode=WAL").fetchone()
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("PRAGMA cache_size=-65536")  # 64 MB: the indices of ids and arms are read at random
            self._database.execute("PRAGMA wal_autocheckpoint=8000")  # pages, 32 MB: fewer pages are copied twice
            self._database.execute("PRAGMA journal_size_limit=50331648")  # keep the file: a log that grows syncs slower
            migrate(self._database, self.path)
            if pages is not None:
                self._database.execute(f"PRAGMA max_page_count={int(pages)}")
        self.version = version_of(self._database, self.path)
        if not self.version:
            raise BadInput("db", f"{self.path}, which is empty", "a database", "pass the --db of driftwise serve")
        if not writes:
            self._database.execute("BEGIN")  # so that all reads see one moment
        if self._lock is not None:
            self._lock.watch(wal_of(self.path))

    def _check_files(self, writes: bool) -> None:
        """Refuse files that SQLite would read wrongly without an error."""
        if held(self.path) and self._lock is None:
            return  # the server of this process has done this; see lock.py for why the file is not opened here
        if writes and not self.path.exists():
            os.close(private(self.path))
        links = self.path.stat().st_nlink
        if links > 1:
            way_out = "remove the other names; driftwise backup makes a copy"
            raise BadInput("db", f"a file of {links} names (hard links), {self.path}", "a file of one name", way_out)
        if self._lock is not None:
            head = os.pread(self._lock.file, 100, 0)
        else:
            with self.path.open("rb") as file:
                head = file.read(100)
        strange = strange_log(self.path, head)
        if strange:
            way_out = "driftwise restore BACKUP DB --replace puts a backup in place and keeps these files"
            raise BadInput("db", strange, "a database with its own -wal, or none", way_out)
        damage = damage_of(self.path, self._lock.same_boot) if self._lock is not None else ""
        if damage:
            raise Damaged(f"{self.path}-wal", damage)

    # ------------------------------------------------------------------------------------ transactions

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit; the data are on disk when this returns. After a failure other than a full disk or a lock, the state
        of the disk is unknown."""
        gone = self._lock and self._lock.gone()
        if self._lock is not None and gone is None and not has_log(os.pread(self._lock.file, 100, 0)):
            gone = self.path  # a backup was copied into it
        if gone is not None:
            raise Broken(f"{gone} was removed or replaced while it was in use; put a backup in place with driftwise "
                         "restore while no server runs")  # fmt: skip
        self.run("COMMIT")
        super().commit()

    def rollback(self) -> None:
        super().rollback()
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database file."""
        self.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def checkpoint_soon(self) -> None:
        """The same, unless another process reads or writes at this moment; a later commit then does it."""
        self._database.execute("PRAGMA busy_timeout=50")
        with suppress(Held):
            self.checkpoint()
        self.never_wait()

    def never_wait(self) -> None:
        """Raise `Held` at once for a lock that another process holds, so that the event loop never waits."""
        self._database.execute("PRAGMA busy_timeout=0")

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def aside(self) -> SQLiteStore:
        return SQLiteStore(self.path, lock=False)

    def reader(self) -> SQLiteStore:
        return viewed(lambda: SQLiteStore(self.path, writes=False))

    def soundness(self) -> str:
        """The result of SQLite's integrity check: "ok", or what is wrong."""
        return str(next(self._read("PRAGMA integrity_check(1)"))[0])

    def run(self, statement: str, rows: Sequence[Any] | None = None, values: tuple[Any, ...] = ()) -> Any:
        try:
            if rows is not None:
                return self._database.executemany(statement, rows)
            return self._database.execute(statement, values)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise _named(self.path, error) from None

    # ------------------------------------------------------------------------------------ rows

    def _add(self, kind: type, rows: Sequence[Sequence[Any]]) -> None:
        self.run(_ADD[kind], rows=rows)

    def arm_sets(self, wanted: Sequence[tuple[bytes, int, bytes]]) -> list[int]:
        return [self._arm_set(*one) for one in wanted]

    def _arm_set(self, digest: bytes, n: int, data: bytes) -> int:
        known = self._sets.get(digest)
        if known is not None:
            return known
        made = self.run("INSERT INTO arm_set (sha256, n, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                        values=(digest, n, data))  # fmt: skip
        if made.rowcount:
            number = int(made.lastrowid)
            self._new_sets.append(digest)
        else:
            number = int(self.run("SELECT id FROM arm_set WHERE sha256 = ?", values=(digest,)).fetchone()[0])
        self._know_sets({digest: number})
        return number

    def erase_wholly(self) -> None:
        """Overwrite erased data from now on."""
        self.run("PRAGMA secure_delete=ON")

    def _read(self, statement: str, values: tuple[Any, ...] = (), anew: bool = False) -> Iterator[tuple[Any, ...]]:
        """Rows of a query; an error names the file."""
        try:
            for row in self._database.execute(statement, values):  # noqa: UP028 - which would close the cursor too late
                yield row
        except (sqlite3.Error, UnicodeError) as error:
            named = _named(self.path, error)
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(named, Held):
                raise Damaged(str(self.path), str(error)) from None
            raise named from None

    def _all(self, kind: type[Sealed], where: str, values: tuple[Any, ...], order: Sequence[str]) -> Iterator[Sealed]:
        return self._sealed(kind, f"WHERE {where} ORDER BY {', '.join(order)}", values)

    def _eras(self, stream: int) -> Iterator[tuple[Sequence[Any], int]]:
        rows = self._read("SELECT * FROM era WHERE stream = ? ORDER BY number", (stream,))
        return ((row[:-1], row[-1]) for row in rows)

    def decision(self, stream: int, id: str) -> DecisionRow | None:
        # This runs for every new id. The usual result, no row, is the fast one.
        if self.run("SELECT 1 FROM decision WHERE stream = ? AND event_id = ?", values=(stream, id)).fetchone() is None:
            return None
        return super().decision(stream, id)
