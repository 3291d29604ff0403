"""The statements of both databases, written once. sqlite.py and postgres.py have the differences.

A store has one transaction at a time: `begin`, rows, `commit`. What is committed is on disk. Every row has a seal, a
checksum of its values, so a row that was changed later raises an error that names it, instead of giving wrong numbers.
A statement has ? for values. tests/service/test_store.py tests both stores against this.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec

from driftwise.service.stores.records import (
    Damaged,
    DecisionRow,
    DetailRow,
    DigestRow,
    EraRow,
    EventRow,
    GuardrailRow,
    KeyRow,
    NoticeRow,
    OpenRow,
    RewardRow,
    SnapshotRow,
    StreamRow,
)

_KEPT_SETS = 50_000  # how many numbers of arm sets are cached
_SNAPSHOTS = 3
_ROOM = 1 << 16  # bytes
_ENCODE = msgspec.msgpack.Encoder().encode
Sealed = TypeVar("Sealed", DecisionRow, RewardRow, EventRow, DetailRow, GuardrailRow)
TABLES: dict[type, str] = {EraRow: "era", DecisionRow: "decision", RewardRow: "reward", EventRow: "event",
                           DetailRow: "detail", GuardrailRow: "guardrail"}  # fmt: skip
_EVENTS = 3  # the version of the tables that has events, details, guardrails and notices
COLUMNS = {  # the columns of a row, and its seal
    kind: ", ".join("event_id" if name == "id" else name for name in (*kind._fields, "seal"))  # type: ignore[attr-defined]
    for kind in TABLES
}
_OPEN = (
    "SELECT seq, event_id, born FROM decision d WHERE stream = ? AND {} AND NOT EXISTS "
    "(SELECT 1 FROM reward r WHERE r.stream = d.stream AND r.event_id = d.event_id) ORDER BY {} LIMIT ?"
)


def seal(row: Sequence[Any]) -> int:
    """A checksum of a row's values."""
    return zlib.crc32(_ENCODE(row))


def seal_era(row: Sequence[Any]) -> int:
    """The seal of a generation. Empty columns at its end are left out, because version 1 of the tables did not have
    them."""
    count = len(row)
    while row[count - 1] is None:
        count -= 1
    return seal(row[:count])


def select(kind: type, rest: str) -> str:
    """A statement that reads rows of a kind with their seals."""
    return f"SELECT {COLUMNS[kind]} FROM {TABLES[kind]} {rest}"


class Store(Protocol):
    """A store of decisions and rewards. `shared` says whether several servers use it."""

    shared: bool
    path: Any
    version: int  # the version of its tables, which may be older if they are only read
    _order: tuple[str, ...] = ("seq",)  # the order of decisions: that of the states on which they were made
    _sets: dict[bytes, int]  # numbers of arm sets
    _new_sets: list[bytes]  # the sets of this transaction

    def __init__(self) -> None:
        self._sets, self._new_sets = {}, []

    def commit(self) -> None:
        """Commit; the data are on disk when this returns."""
        self._new_sets.clear()

    def rollback(self) -> None:
        """Roll the transaction back, with the sets of arms that it wrote."""
        for digest in self._new_sets:
            self._sets.pop(digest, None)
        self._new_sets.clear()

    # The methods that differ between the databases.

    def begin(self) -> None: ...
    def close(self) -> None: ...
    def aside(self) -> Store:
        """Another connection. Each of its reads sees what is committed at that time, and none waits for this store."""

    def reader(self) -> Store:
        """Another connection, which sees what is committed now."""

    def run(self, statement: str, rows: Sequence[Any] | None = None, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement, with values or for each of many rows."""

    def arm_sets(self, wanted: Sequence[tuple[bytes, int, bytes]]) -> list[int]:
        """The numbers of sets of arms, given by sha256, n and data. New sets are written."""

    def _read(self, statement: str, values: tuple[Any, ...] = (), anew: bool = False) -> Iterable[tuple[Any, ...]]:
        """Rows of a query; damage is reported by name. anew: the query is planned again."""

    def _add(self, kind: type, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows with their seals, in the fastest way."""

    def _all(self, kind: type[Sealed], where: str, values: tuple[Any, ...], order: Sequence[str]) -> Iterator[Sealed]:
        """Rows that need not fit in memory together."""

    def _eras(self, stream: int) -> Iterable[tuple[Sequence[Any], int]]:
        """Rows of generations, of this or an earlier version of the tables, and their seals."""

    def changed(self) -> None:
        """Note a change other than decisions and rewards, which other servers must read."""
        return

    def skip_numbers(self, stream: int, upto: int) -> None:
        """A command wrote decisions up to a number: later decisions get larger numbers."""
        return

    def end_stream(self, stream: int) -> None:
        """The current transaction deletes a stream: no replica writes to it afterwards."""
        return

    def take_time(self) -> None:
        """The current transaction changes a stream, and may compute for a while under its lock."""
        return

    def stopping(self) -> AbstractContextManager[None]:
        """Shorten the waits while a server stops."""
        return nullcontext()

    # ------------------------------------------------------------------------------------ writing

    def add_stream(self, name: str, at: float) -> int:
        self.run("INSERT INTO stream (name, created, seal) VALUES (?, ?, ?)", values=(name, at, seal((name, at))))
        self.changed()
        return int(self.run("SELECT id FROM stream WHERE name = ?", values=(name,)).fetchone()[0])

    def set_paused(self, stream: int, paused: bool) -> None:
        self.run("UPDATE stream SET paused = ? WHERE id = ?", values=(int(paused), stream))
        self.changed()

    def add_era(self, row: EraRow) -> None:
        self._add(EraRow, [(*row, seal_era(row))])
        self.changed()

    def add_decisions(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows with the fields of DecisionRow."""
        self._add(DecisionRow, [(*row, seal(row)) for row in rows])

    def add_rewards(self, rows: Sequence[RewardRow]) -> None:
        self._add(RewardRow, [(*row, seal(row)) for row in rows])

    def add_events(self, rows: Sequence[EventRow]) -> None:
        self._add(EventRow, [(*row, seal(row)) for row in rows])
        self.changed()

    def add_details(self, rows: Sequence[DetailRow]) -> None:
        self._add(DetailRow, [(*row, seal(row)) for row in rows])

    def add_guardrails(self, rows: Sequence[GuardrailRow]) -> None:
        self._add(GuardrailRow, [(*row, seal(row)) for row in rows])

    def add_notice(self, stream: int, at: float, body: str) -> None:
        """Add a message that is due now."""
        values = (stream, at, at, body)
        self.run("INSERT INTO notice (stream, at, due, tries, body) VALUES (?, ?, ?, 0, ?)", values=values)

    def probe(self) -> None:
        """Write as much as a small group, and erase it, in the current transaction: is there room?"""
        self.add_notice(0, 0.0, "0" * _ROOM)
        self.run("DELETE FROM notice WHERE stream = 0")

    def put_off(self, id: int, due: float, tries: int) -> bool:
        """Claim a message after `tries` attempts and set the time of the next. Returns whether no other replica claimed
        it."""
        statement = "UPDATE notice SET due = ?, tries = tries + 1 WHERE id = ? AND tries = ?"
        return bool(self.run(statement, values=(due, id, tries)).rowcount)

    def drop_notice(self, id: int) -> None:
        self.run("DELETE FROM notice WHERE id = ?", values=(id,))

    def add_digests(self, rows: Sequence[DigestRow]) -> None:
        self.run("INSERT INTO digest VALUES (?, ?, ?, ?) ON CONFLICT (stream, era, seq) "
                 "DO UPDATE SET digest = EXCLUDED.digest", rows=rows)  # fmt: skip

    def add_snapshot(self, row: SnapshotRow) -> None:
        """Write a snapshot. A generation keeps its newest three and the one at its base."""
        stream, era, *_ = row
        self.run("INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream, era, seq) "
                 "DO UPDATE SET tick = EXCLUDED.tick, data = EXCLUDED.data, seal = EXCLUDED.seal",
                 values=(*row, seal(row)))  # fmt: skip
        self.run(
            "DELETE FROM snapshot WHERE stream = ? AND era = ? AND seq NOT IN (SELECT seq FROM snapshot "
            "WHERE stream = ? AND era = ? ORDER BY seq DESC LIMIT ?) AND seq NOT IN "
            "(SELECT base FROM era WHERE stream = ? AND number = ?)",
            values=(stream, era, stream, era, _SNAPSHOTS, stream, era),
        )

    def add_items(self, stream: int, rows: Sequence[tuple[str, str]]) -> None:
        self.run("INSERT INTO item VALUES (?, ?, ?, ?) ON CONFLICT (stream, name) "
                 "DO UPDATE SET row = EXCLUDED.row, seal = EXCLUDED.seal",
                 rows=[(stream, *row, seal(row)) for row in rows])  # fmt: skip
        self.changed()

    def arm_set(self, digest: bytes, n: int, data: bytes) -> int:
        return self.arm_sets([(digest, n, data)])[0]

    def _know_sets(self, found: dict[bytes, int]) -> None:
        while self._sets and len(self._sets) + len(found) > _KEPT_SETS:
            del self._sets[next(iter(self._sets))]
        self._sets |= found

    def drop_sets(self) -> None:
        """Erase the sets of arms that no decision refers to."""
        self.run("DELETE FROM arm_set WHERE id NOT IN (SELECT arm_set FROM decision WHERE arm_set IS NOT NULL)")
        self.forget_sets()

    def forget_sets(self) -> None:
        """Drop the cached numbers of arm sets, because some may be gone."""
        self._sets.clear()
        self._new_sets.clear()

    # ------------------------------------------------------------------------------------ reading

    def _sealed(self, kind: type[Sealed], rest: str, values: tuple[Any, ...], anew: bool = False) -> Iterator[Sealed]:
        return self._checked(kind, self._read(select(kind, rest), values, anew))

    def _checked(self, kind: type[Sealed], rows: Iterable[tuple[Any, ...]]) -> Iterator[Sealed]:
        encode, crc, make = _ENCODE, zlib.crc32, tuple.__new__  # a million rows are read by this loop
        for found in rows:
            row = found[:-1]
            if crc(encode(row)) != found[-1]:
                raise self._changed_row(found[:2], TABLES[kind])
            yield make(kind, row)

    def _changed_row(self, which: Any, table: str) -> Damaged:
        return Damaged(str(self.path), f"a changed row {which} of table {table}")

    def deleted(self) -> dict[str, int]:
        """The numbers of deleted streams, by name. A name is not used again."""
        statement = "SELECT name, id FROM stream WHERE id IN (SELECT stream FROM event WHERE kind = 'deleted')"
        return {} if self.version < _EVENTS else dict(self._read(statement))

    def has_rows(self, stream: int) -> bool:
        """Whether a stream has decisions, rewards or items."""
        tables = ("decision", "reward", "item")
        return any(any(self._read(f"SELECT 1 FROM {one} WHERE stream = ? LIMIT 1", (stream,))) for one in tables)

    def erase_stretch(self, stream: int, most: int) -> bool:
        """Erase some rows of a deleted stream. Returns whether there may be more. Its generations and events stay."""
        erased = 0
        for table in ("guardrail", "reward", "detail", "decision"):
            made = self.run(f"DELETE FROM {table} WHERE stream = ? AND seq IN (SELECT seq FROM {table} "
                            "WHERE stream = ? ORDER BY seq LIMIT ?)", values=(stream, stream, most))  # fmt: skip
            erased += made.rowcount
        if not erased:
            for table in ("snapshot", "digest", "item"):
                self.run(f"DELETE FROM {table} WHERE stream = ?", values=(stream,))
        return bool(erased)

    def streams(self) -> list[StreamRow]:
        """The streams that were not deleted."""
        found, deleted = [], self.deleted()
        for id, name, created, paused, sealed in self._read(
            "SELECT id, name, created, paused, seal FROM stream ORDER BY id"
        ):
            if seal((name, created)) != sealed:
                raise self._changed_row(id, "stream")
            if name not in deleted:
                found.append(StreamRow(id, name, created, bool(paused)))
        return found

    def eras(self, stream: int) -> list[EraRow]:
        found = []
        for row, sealed in self._eras(stream):
            if seal_era(row) != sealed:
                raise self._changed_row(tuple(row[:2]), "era")
            found.append(EraRow(*row))
        return found

    def events(self, stream: int) -> list[EventRow]:
        """The events of a stream, in order."""
        return [] if self.version < _EVENTS else list(
            self._sealed(EventRow, "WHERE stream = ? ORDER BY seq", (stream,))
        )  # fmt: skip

    def detail(self, stream: int, seq: int) -> DetailRow | None:
        """The row of details of a decision."""
        if self.version < _EVENTS:
            return None
        return next(self._sealed(DetailRow, "WHERE stream = ? AND seq = ?", (stream, seq), anew=True), None)

    def guardrails(self, stream: int, after: int, upto: int) -> list[GuardrailRow]:
        """The values that came with the rewards in a range of numbers."""
        where = "WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq, name"
        return [] if self.version < _EVENTS else list(self._sealed(GuardrailRow, where, (stream, after, upto)))

    def notices(self, upto: float, most: int = 100) -> list[NoticeRow]:
        """Messages that are due by a time, the oldest first."""
        statement = f"SELECT {', '.join(NoticeRow._fields)} FROM notice WHERE due <= ? ORDER BY id LIMIT ?"
        return [NoticeRow(*row) for row in self._read(statement, (upto, most))]

    def items(self, stream: int) -> list[tuple[str, str]]:
        found = []
        for name, row, sealed in self._read("SELECT name, row, seal FROM item WHERE stream = ?", (stream,)):
            if seal((name, row)) != sealed:
                raise self._changed_row(repr(name), "item")
            found.append((name, row))
        return found

    def keys(self) -> list[KeyRow]:
        """All keys, revoked ones too, in the order of their creation."""
        columns = ", ".join(KeyRow._fields)
        return [KeyRow(*row) for row in self._read(f"SELECT {columns} FROM key ORDER BY id")]

    def decision(self, stream: int, id: str) -> DecisionRow | None:
        return self._by_id(DecisionRow, stream, id)

    def reward(self, stream: int, id: str) -> RewardRow | None:
        return self._by_id(RewardRow, stream, id)

    def _by_id(self, kind: type[Sealed], stream: int, id: str) -> Sealed | None:
        return next(self._sealed(kind, "WHERE stream = ? AND event_id = ?", (stream, id), anew=True), None)

    def open_decisions(self, stream: int, after: int, upto: int, most: int) -> list[OpenRow]:
        """The first few decisions after a number that have no reward."""
        statement = _OPEN.format("seq > ? AND seq <= ?", "seq")
        return [OpenRow(*row) for row in self._read(statement, (stream, after, upto, most))]

    def overdue(self, stream: int, since: float, before: float, most: int) -> list[OpenRow]:
        """The oldest decisions without a reward that were made between two ticks."""
        statement = _OPEN.format("born >= ? AND born < ?", "born, seq")
        return [OpenRow(*row) for row in self._read(statement, (stream, since, before, most))]

    def defaults(self, stream: int, upto: int = 2**62) -> dict[str, int]:
        """The numbers of rewards up to a number that were not sent or not learned, by verdict: defaulted, expired or
        kept."""
        statement = ("SELECT verdict, count(*) FROM reward WHERE stream = ? AND seq <= ? "
                     "AND verdict IN ('defaulted', 'expired', 'kept') GROUP BY verdict")  # fmt: skip
        return {verdict: many for verdict, many in self._read(statement, (stream, upto))}

    def last_decision(self, stream: int) -> DecisionRow | None:
        return next(self._sealed(DecisionRow, "WHERE stream = ? ORDER BY seq DESC LIMIT 1", (stream,)), None)

    def last_reward(self, stream: int) -> RewardRow | None:
        return next(self._sealed(RewardRow, "WHERE stream = ? ORDER BY seq DESC LIMIT 1", (stream,)), None)

    def decisions(self, stream: int, era: int | None = None) -> Iterator[DecisionRow]:
        """In the order of the states on which they were made."""
        if era is None:
            return self._all(DecisionRow, "stream = ?", (stream,), self._order)
        return self._all(DecisionRow, "stream = ? AND era = ?", (stream, era), self._order)

    def rewards(self, stream: int, after: int = 0, upto: int | None = None) -> Iterator[RewardRow]:
        last = 2**62 if upto is None else upto
        return self._all(RewardRow, "stream = ? AND seq > ? AND seq <= ?", (stream, after, last), ("seq",))

    def arms(self, number: int) -> tuple[bytes, int, bytes] | None:
        """sha256, n and data of a set of arms; None if it was forgotten."""
        statement = "SELECT sha256, n, data FROM arm_set WHERE id = ?"
        for digest, n, data in self._read(statement, (number,)):
            if sha256(data).digest() != digest or n <= 0 or len(data) % (8 * n):
                raise self._changed_row(number, "arm_set")
            return digest, n, data
        return None

    def snapshots(self, stream: int, era: int) -> list[SnapshotRow]:
        """The newest first."""
        rows = self._read("SELECT stream, era, seq, tick, data, seal FROM snapshot WHERE stream = ? AND era = ? "
                          "ORDER BY seq DESC", (stream, era))  # fmt: skip
        return [SnapshotRow(*row[:-1]) for row in rows if seal(row[:-1]) == row[-1]]  # damaged ones are skipped

    def digests(self, stream: int, era: int) -> dict[int, str]:
        return dict(self._read("SELECT seq, digest FROM digest WHERE stream = ? AND era = ?", (stream, era)))
