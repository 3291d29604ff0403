"""Reading a PostgreSQL database: rows whose seals are checked, a stretch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from driftwise.service.connection import Connection
from driftwise.service.sqlite import seal, seal_era, whole
from driftwise.service.store import (
    Damaged,
    DecisionRow,
    EraRow,
    KeyRow,
    OpenRow,
    RewardRow,
    SnapshotRow,
    StreamRow,
)

_STRETCH = 5_000  # rows that are fetched at once
_OPEN = "NOT EXISTS (SELECT 1 FROM reward r WHERE r.stream = d.stream AND r.event_id = d.event_id)"
_Sealed = TypeVar("_Sealed", DecisionRow, RewardRow)
TABLES: dict[type, tuple[str, tuple[str, ...]]] = {
    EraRow: ("era", EraRow._fields), DecisionRow: ("decision", DecisionRow._fields),
    RewardRow: ("reward", RewardRow._fields),
}  # fmt: skip
COLUMNS = {
    kind: ", ".join("event_id" if name == "id" else name for name in (*fields, "seal"))
    for kind, (_, fields) in TABLES.items()
}


def _select(kind: type, rest: str) -> str:
    return f"SELECT {COLUMNS[kind]} FROM {TABLES[kind][0]} {rest}"


NEXT_REWARDS = _select(RewardRow, f"WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT {_STRETCH}")


class Rows(Connection):
    """What is written in a database."""

    def _sealed(self, kind: type[_Sealed], rest: str, values: tuple[Any, ...]) -> Iterator[_Sealed]:
        return self._checked(kind, self._run(_select(kind, rest), values))

    def _checked(self, kind: type[_Sealed], rows: Any) -> Iterator[_Sealed]:
        table, _ = TABLES[kind]
        for found in rows:
            row = kind(*found[:-1])
            if seal(row) != found[-1]:
                raise Damaged(self.path, f"a changed row {found[:2]} of table {table}")
            yield row

    def streams(self) -> list[StreamRow]:
        found = []
        for id, name, created, paused, sealed in self._run(
            "SELECT id, name, created, paused, seal FROM stream ORDER BY id"
        ):
            if seal((name, created)) != sealed:
                raise Damaged(self.path, f"a changed row {id} of table stream")
            found.append(StreamRow(id, name, created, bool(paused)))
        return found

    def eras(self, stream: int) -> list[EraRow]:
        rows = self._run("SELECT * FROM era WHERE stream = %s ORDER BY number", (stream,), anew=True)
        names, found = [column.name for column in rows.description], []
        for values in rows:  # of this version of the tables, or of one before it
            told = dict(zip(names, values, strict=True))
            sealed, row = told.pop("seal"), EraRow(**told)
            if seal_era(row) != sealed:
                raise Damaged(self.path, f"a changed row {row[:2]} of table era")
            found.append(row)
        return found

    def items(self, stream: int) -> list[tuple[str, str]]:
        found = []
        for name, row, sealed in self._run("SELECT name, row, seal FROM item WHERE stream = %s", (stream,)):
            if seal((name, row)) != sealed:
                raise Damaged(self.path, f"a changed row {name!r} of table item")
            found.append((name, row))
        return found

    def keys(self) -> list[KeyRow]:
        columns = ", ".join(KeyRow._fields)
        return [KeyRow(*row) for row in self._run(f"SELECT {columns} FROM key ORDER BY id")]

    def decision(self, stream: int, id: str) -> DecisionRow | None:
        return self._by_id(DecisionRow, stream, id)

    def reward(self, stream: int, id: str) -> RewardRow | None:
        return self._by_id(RewardRow, stream, id)

    def _by_id(self, kind: type[_Sealed], stream: int, id: str) -> _Sealed | None:
        # A plan made while the table was empty would be kept, and look through all rows of the stream.
        found = self._run(_select(kind, "WHERE stream = %s AND event_id = %s"), (stream, id), anew=True)
        return next(self._checked(kind, found), None)

    def open_decisions(self, stream: int, after: int, upto: int, most: int) -> list[OpenRow]:
        rows = self._run(f"SELECT seq, event_id, born FROM decision d WHERE stream = %s AND seq > %s AND seq <= %s "
                         f"AND {_OPEN} ORDER BY seq LIMIT %s", (stream, after, upto, most))  # fmt: skip
        return [OpenRow(*row) for row in rows]

    def overdue(self, stream: int, since: float, before: float, most: int) -> list[OpenRow]:
        """The oldest decisions without a reward that were born between two ticks."""
        rows = self._run(f"SELECT seq, event_id, born FROM decision d WHERE stream = %s AND born >= %s AND born < %s "
                         f"AND {_OPEN} ORDER BY born, seq LIMIT %s", (stream, since, before, most))  # fmt: skip
        return [OpenRow(*row) for row in rows]

    def defaults(self, stream: int, upto: int = 2**62) -> dict[str, int]:
        statement = ("SELECT verdict, count(*) FROM reward WHERE stream = %s AND verdict IN ('defaulted', 'expired') "
                     "AND seq <= %s GROUP BY verdict")  # fmt: skip
        return {str(verdict): int(many) for verdict, many in self._run(statement, (stream, upto))}

    def last_decision(self, stream: int) -> DecisionRow | None:
        return next(self._sealed(DecisionRow, "WHERE stream = %s ORDER BY seq DESC LIMIT 1", (stream,)), None)

    def last_reward(self, stream: int) -> RewardRow | None:
        return next(self._sealed(RewardRow, "WHERE stream = %s ORDER BY seq DESC LIMIT 1", (stream,)), None)

    def decisions(self, stream: int, era: int | None = None) -> Iterator[DecisionRow]:
        # Replicas number their decisions apart, so that only state_seq says which came on which state.
        which, values = ("", (stream,)) if era is None else (" AND era = %s", (stream, era))
        after = (-1, -1)
        while True:
            rest = f"WHERE stream = %s{which} AND (state_seq, seq) > (%s, %s) ORDER BY state_seq, seq LIMIT {_STRETCH}"
            rows = list(self._sealed(DecisionRow, rest, (*values, *after)))
            yield from rows
            if len(rows) < _STRETCH:
                return
            after = rows[-1].state_seq, rows[-1].seq

    def rewards(self, stream: int, after: int = 0, upto: int | None = None) -> Iterator[RewardRow]:
        last = 2**62 if upto is None else upto
        while True:
            rows = list(self._checked(RewardRow, self._run(NEXT_REWARDS, (stream, after, last))))
            yield from rows
            if len(rows) < _STRETCH:
                return
            after = rows[-1].seq

    def arms(self, number: int) -> tuple[bytes, int, bytes] | None:
        found = self._run("SELECT sha256, n, data FROM arm_set WHERE id = %s", (number,)).fetchone()
        if found is None:
            return None
        digest, n, data = found
        if not whole(digest, n, data):
            raise Damaged(self.path, f"a changed row {number} of table arm_set")
        return digest, n, data

    def snapshots(self, stream: int, era: int) -> list[SnapshotRow]:
        rows = self._run("SELECT stream, era, seq, tick, data, seal FROM snapshot WHERE stream = %s AND era = %s "
                         "ORDER BY seq DESC", (stream, era))  # fmt: skip
        return [SnapshotRow(*row[:-1]) for row in rows if seal(row[:-1]) == row[-1]]  # others are as good as none

    def digests(self, stream: int, era: int) -> dict[int, str]:
        rows = self._run("SELECT seq, digest FROM digest WHERE stream = %s AND era = %s", (stream, era))
        return dict(rows.fetchall())
