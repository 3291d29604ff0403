"""The store in one SQLite file: WAL, synchronous=FULL, one writer.

A server locks the file; a command that only reads (verify, export, backup) takes no lock and sees what is committed.
`commit` may run in another thread while nobody else uses the store.

SQLite names the log after the path of the file, so two paths of one file would give it two logs. Symbolic links are
resolved before the file is opened; a file with hard links is refused.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from driftwise._internal.files import private
from driftwise.errors import BadInput
from driftwise.service.lock import Lock, held
from driftwise.service.schema import migrate, version_of
from driftwise.service.store import (
    Broken,
    Damaged,
    DecisionRow,
    DigestRow,
    EraRow,
    Failed,
    Full,
    Held,
    KeyRow,
    OpenRow,
    Rejected,
    RewardRow,
    SnapshotRow,
    StreamRow,
    Taken,
    viewed,
)
from driftwise.service.wal import damage_of, has_log, log_of, strange_log

_KEPT_SETS = 50_000  # numbers of arm sets that are known without asking the file
_SNAPSHOTS = 3
_WAIT = 5.0  # seconds that another process may hold the file's lock before this one gives up
_FULL = ("SQLITE_FULL", "SQLITE_NOMEM")
_HELD = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")  # and their extended codes
_REJECTED = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, OverflowError, UnicodeError)
_ENCODE = msgspec.msgpack.Encoder().encode
_Sealed = TypeVar("_Sealed", DecisionRow, RewardRow)
_TABLES = {EraRow: "era", DecisionRow: "decision", RewardRow: "reward"}


def seal(row: Sequence[Any]) -> int:
    """A checksum of a row's values."""
    return zlib.crc32(_ENCODE(row))


def seal_era(row: Sequence[Any]) -> int:
    """That of an era, without the columns at its end that are empty: version 1 of the tables did not have them."""
    count = len(row)
    while row[count - 1] is None:
        count -= 1
    return seal(row[:count])


def whole(digest: bytes, n: int, data: bytes) -> bool:
    """Whether a set of arms is as it was written: `n` rows of numbers of this sha256."""
    return sha256(data).digest() == digest and n > 0 and len(data) % (8 * n) == 0


def _named(path: Path, slip: Exception) -> Failed:
    """What an error of SQLite means here."""
    name = getattr(slip, "sqlite_errorname", "")
    if name.startswith(_HELD):
        return Held(f"{path}: another process holds its lock ({slip})")
    if name in _FULL:
        return Full(f"{path}: {slip}")
    if isinstance(slip, _REJECTED):
        return Rejected(str(slip))
    return Broken(f"{path}: {slip}")


def _insert(kind: type[EraRow] | type[DecisionRow] | type[RewardRow]) -> str:
    return f"INSERT INTO {_TABLES[kind]} VALUES ({','.join('?' * (len(kind._fields) + 1))})"


_ADD = {kind: _insert(kind) for kind in _TABLES}


class SQLiteStore:
    """A database file: `writes=False` takes no lock and reads only, `pages` is the most pages it may have. A command
    that writes beside a server, which takes a moment and a row, does so with `lock=False`."""

    shared = False

    def __init__(
        self, path: str | Path, *, writes: bool = True, lock: bool = True, pages: int | None = None
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self._lock = Lock(self.path) if writes and lock else None
        self._sets: OrderedDict[bytes, int] = OrderedDict()
        self._new_sets: list[bytes] = []
        try:
            self._open(writes, pages)
        except BaseException as slip:
            self.close()
            if isinstance(slip, Held) or getattr(slip, "sqlite_errorname", "").startswith(_HELD):
                got = f"{self.path}, whose lock another process holds"
                raise Taken("db", got, "one that can be written", "end what holds it, then start again") from None
            if isinstance(slip, sqlite3.Error):
                way_out = "pass the path of a database, or restore a backup"
                raise BadInput("db", f"{self.path}: {slip}", "a database that opens", way_out) from None
            raise

    def _open(self, writes: bool, pages: int | None) -> None:
        if not writes and not self.path.is_file():
            raise BadInput("db", str(self.path), "a database that is there", "pass the --db of driftwise serve")
        self._check_files(writes)
        address = f"file:{quote(str(self.path))}?mode={'rwc' if writes else 'ro'}"
        self._database = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=_WAIT
        )
        if writes:
            self._database.execute("PRAGMA journal_mode=WAL").fetchone()
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("PRAGMA cache_size=-65536")  # 64 MB: indices of ids and arms are hit at random
            self._database.execute("PRAGMA wal_autocheckpoint=8000")  # pages, 32 MB: fewer are copied twice
            self._database.execute("PRAGMA journal_size_limit=50331648")  # beyond that: a log that grows syncs slower
            migrate(self._database, self.path)
            if pages is not None:
                self._database.execute(f"PRAGMA max_page_count={int(pages)}")
        elif not version_of(self._database, self.path):
            raise BadInput("db", f"{self.path}, which is empty", "a database", "pass the --db of driftwise serve")
        else:
            self._database.execute("BEGIN")  # all that is read is of one moment
        if self._lock is not None:
            self._lock.watch(log_of(self.path))

    def _check_files(self, writes: bool) -> None:
        """Refuse files that SQLite would read wrongly without a word."""
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
        """On disk when it returns. What fails here other than for want of room or a lock leaves nothing to rely on."""
        gone = self._gone()
        if gone is not None:
            raise Broken(f"{gone} was removed or replaced while it was in use; put a backup in place with driftwise "
                         "restore while no server runs")  # fmt: skip
        self.run("COMMIT")
        self._new_sets.clear()

    def _gone(self) -> Path | None:
        """A file of ours that was removed or replaced, or a backup that was copied into the database."""
        if self._lock is None:
            return None
        return self._lock.gone() or (None if has_log(os.pread(self._lock.file, 100, 0)) else self.path)

    def rollback(self) -> None:
        for digest in self._new_sets:
            self._sets.pop(digest, None)
        self._new_sets.clear()
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Bring what is in the write-ahead log into the file itself."""
        self.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def checkpoint_soon(self) -> None:
        """The same unless another process reads or writes just now: then it comes with a later commit."""
        self._database.execute("PRAGMA busy_timeout=50")
        with suppress(Held):
            self.checkpoint()
        self.never_wait()

    def never_wait(self) -> None:
        """From now on a lock that another process holds is `Held` at once: the event loop waits for none."""
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
        """Another view of the file, of what is committed now."""
        return viewed(lambda: SQLiteStore(self.path, writes=False))

    def soundness(self) -> str:
        """What SQLite says of the file's structure: "ok", or what is wrong."""
        return str(next(self._read("PRAGMA integrity_check(1)"))[0])

    def run(self, statement: str, rows: Sequence[Any] | None = None, values: tuple[Any, ...] = ()) -> Any:
        try:
            if rows is not None:
                return self._database.executemany(statement, rows)
            return self._database.execute(statement, values)
        except (sqlite3.Error, OverflowError, UnicodeError) as slip:
            raise _named(self.path, slip) from None

    # ------------------------------------------------------------------------------------ writing

    def add_stream(self, name: str, at: float) -> int:
        statement = "INSERT INTO stream (name, created, seal) VALUES (?, ?, ?)"
        return int(self.run(statement, values=(name, at, seal((name, at)))).lastrowid)

    def set_paused(self, stream: int, paused: bool) -> None:
        self.run("UPDATE stream SET paused = ? WHERE id = ?", values=(int(paused), stream))

    def add_era(self, row: EraRow) -> None:
        self.run(_ADD[EraRow], values=(*row, seal_era(row)))

    def arm_set(self, digest: bytes, n: int, data: bytes) -> int:
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
        if len(self._sets) >= _KEPT_SETS:
            self._sets.popitem(last=False)
        self._sets[digest] = number
        return number

    def erase_wholly(self) -> None:
        """From now on what is erased is overwritten."""
        self.run("PRAGMA secure_delete=ON")

    def forget_sets(self) -> None:
        """Numbers of arm sets are looked up anew: some may be gone."""
        self._sets.clear()
        self._new_sets.clear()

    def arm_sets(self, wanted: Sequence[tuple[bytes, int, bytes]]) -> list[int]:
        return [self.arm_set(*one) for one in wanted]

    def changed(self) -> None:
        """Others see by SQLite's own count that there is something new."""

    def add_decisions(self, rows: Sequence[Sequence[Any]]) -> None:
        self.run(_ADD[DecisionRow], rows=[(*row, seal(row)) for row in rows])

    def add_rewards(self, rows: Sequence[RewardRow]) -> None:
        self.run(_ADD[RewardRow], rows=[(*row, seal(row)) for row in rows])

    def add_digests(self, rows: Sequence[DigestRow]) -> None:
        self.run("INSERT OR REPLACE INTO digest VALUES (?, ?, ?, ?)", rows=rows)

    def add_snapshot(self, row: SnapshotRow) -> None:
        stream, era, *_ = row
        self.run("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?)", values=(*row, seal(row)))
        self.run(
            "DELETE FROM snapshot WHERE stream = ? AND era = ? AND seq NOT IN (SELECT seq FROM snapshot "
            "WHERE stream = ? AND era = ? ORDER BY seq DESC LIMIT ?) AND seq NOT IN "
            "(SELECT base FROM era WHERE stream = ? AND number = ?)",
            values=(stream, era, stream, era, _SNAPSHOTS, stream, era),
        )

    def add_items(self, stream: int, rows: Sequence[tuple[str, str]]) -> None:
        self.run("INSERT OR REPLACE INTO item VALUES (?, ?, ?, ?)", rows=[(stream, *row, seal(row)) for row in rows])

    # ------------------------------------------------------------------------------------ reading

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows, or the sentence that names the file."""
        try:
            for row in self._database.execute(statement, values):  # noqa: UP028 - which would close the cursor too late
                yield row
        except (sqlite3.Error, UnicodeError) as slip:
            named = _named(self.path, slip)
            if isinstance(slip, sqlite3.DatabaseError) and not isinstance(named, Held):
                raise Damaged(str(self.path), str(slip)) from None
            raise named from None

    def _sealed(self, kind: type[_Sealed], rest: str, values: tuple[Any, ...]) -> Iterator[_Sealed]:
        encode, crc, make = _ENCODE, zlib.crc32, tuple.__new__  # a million rows are read by this loop
        for found in self._read(f"SELECT * FROM {_TABLES[kind]} {rest}", values):
            row = found[:-1]
            if crc(encode(row)) != found[-1]:
                raise Damaged(str(self.path), f"a changed row {found[:2]} of table {_TABLES[kind]}")
            yield make(kind, row)

    def streams(self) -> list[StreamRow]:
        found = []
        for id, name, created, paused, sealed in self._read("SELECT * FROM stream ORDER BY id"):
            if seal((name, created)) != sealed:
                raise Damaged(str(self.path), f"a changed row {id} of table stream")
            found.append(StreamRow(id, name, created, bool(paused)))
        return found

    def eras(self, stream: int) -> list[EraRow]:
        found = []
        for *row, sealed in self._read("SELECT * FROM era WHERE stream = ? ORDER BY number", (stream,)):
            if seal_era(row) != sealed:
                raise Damaged(str(self.path), f"a changed row {tuple(row[:2])} of table era")
            found.append(EraRow(*row))
        return found

    def items(self, stream: int) -> list[tuple[str, str]]:
        found = []
        for name, row, sealed in self._read("SELECT name, row, seal FROM item WHERE stream = ?", (stream,)):
            if seal((name, row)) != sealed:
                raise Damaged(str(self.path), f"a changed row {name!r} of table item")
            found.append((name, row))
        return found

    def keys(self) -> list[KeyRow]:
        columns = ", ".join(KeyRow._fields)
        return [KeyRow(*row) for row in self._read(f"SELECT {columns} FROM key ORDER BY id")]

    def decision(self, stream: int, id: str) -> DecisionRow | None:
        # Asked for every new id, of which there is none: that answer is the quick one.
        if self.run("SELECT 1 FROM decision WHERE stream = ? AND event_id = ?", values=(stream, id)).fetchone() is None:
            return None
        return next(self._sealed(DecisionRow, "WHERE stream = ? AND event_id = ?", (stream, id)), None)

    def reward(self, stream: int, id: str) -> RewardRow | None:
        return next(self._sealed(RewardRow, "WHERE stream = ? AND event_id = ?", (stream, id)), None)

    def open_decisions(self, stream: int, after: int, upto: int, most: int) -> list[OpenRow]:
        statement = (
            "SELECT seq, event_id, born FROM decision d WHERE stream = ? AND seq > ? AND seq <= ? AND NOT EXISTS "
            "(SELECT 1 FROM reward r WHERE r.stream = d.stream AND r.event_id = d.event_id) ORDER BY seq LIMIT ?"
        )
        return [OpenRow(*row) for row in self._read(statement, (stream, after, upto, most))]

    def defaults(self, stream: int, upto: int = 2**62) -> dict[str, int]:
        statement = ("SELECT verdict, count(*) FROM reward WHERE stream = ? AND verdict IN ('defaulted', 'expired') "
                     "AND seq <= ? GROUP BY verdict")  # fmt: skip
        return {verdict: many for verdict, many in self._read(statement, (stream, upto))}

    def last_decision(self, stream: int) -> DecisionRow | None:
        return next(self._sealed(DecisionRow, "WHERE stream = ? ORDER BY seq DESC LIMIT 1", (stream,)), None)

    def last_reward(self, stream: int) -> RewardRow | None:
        return next(self._sealed(RewardRow, "WHERE stream = ? ORDER BY seq DESC LIMIT 1", (stream,)), None)

    def decisions(self, stream: int, era: int | None = None) -> Iterator[DecisionRow]:
        # One writer publishes states in order, so that the order of seq is that of state_seq.
        if era is None:
            return self._sealed(DecisionRow, "WHERE stream = ? ORDER BY seq", (stream,))
        return self._sealed(DecisionRow, "WHERE stream = ? AND era = ? ORDER BY seq", (stream, era))

    def rewards(self, stream: int, after: int = 0, upto: int | None = None) -> Iterator[RewardRow]:
        last = 2**62 if upto is None else upto
        return self._sealed(RewardRow, "WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq", (stream, after, last))

    def arms(self, number: int) -> tuple[bytes, int, bytes] | None:
        found = next(self._read("SELECT sha256, n, data FROM arm_set WHERE id = ?", (number,)), None)
        if found is None:
            return None
        if not whole(*found):
            raise Damaged(str(self.path), f"a changed row {number} of table arm_set")
        return found[0], found[1], found[2]

    def snapshots(self, stream: int, era: int) -> list[SnapshotRow]:
        rows = self._read("SELECT * FROM snapshot WHERE stream = ? AND era = ? ORDER BY seq DESC", (stream, era))
        return [SnapshotRow(*row[:-1]) for row in rows if seal(row[:-1]) == row[-1]]  # others are as good as none

    def digests(self, stream: int, era: int) -> dict[int, str]:
        return dict(self._read("SELECT seq, digest FROM digest WHERE stream = ? AND era = ?", (stream, era)))
