"""The store in a PostgreSQL database, which several replicas share and none of them leads.

Rewards take the lock of their stream's row (`lock`) and get numbers without a gap in the group's transaction; decisions
take none, and numbers of their own from a sequence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from driftwise.service.connection import CHANNEL, Connection
from driftwise.service.sqlite import _KEPT_SETS, _SNAPSHOTS, seal
from driftwise.service.store import (
    Conflict,
    Damaged,
    DecisionRow,
    DigestRow,
    EraRow,
    KeyRow,
    OpenRow,
    RewardRow,
    SnapshotRow,
    StreamRow,
)

NUMBERS = 64  # decisions that get their numbers at once; a replica that ends leaves a gap of fewer
_STRETCH = 5_000  # rows that are fetched at once
_OPEN = "NOT EXISTS (SELECT 1 FROM reward r WHERE r.stream = d.stream AND r.event_id = d.event_id)"
_Sealed = TypeVar("_Sealed", EraRow, DecisionRow, RewardRow)
_TABLES: dict[type, tuple[str, tuple[str, ...]]] = {
    EraRow: ("era", EraRow._fields), DecisionRow: ("decision", DecisionRow._fields),
    RewardRow: ("reward", RewardRow._fields),
}  # fmt: skip
_COLUMNS = {
    kind: ", ".join("event_id" if name == "id" else name for name in (*fields, "seal"))
    for kind, (_, fields) in _TABLES.items()
}
_ADD = {
    kind: f"INSERT INTO {table} ({_COLUMNS[kind]}) VALUES ({', '.join(['%s'] * (len(fields) + 1))})"
    for kind, (table, fields) in _TABLES.items()
}


class Head(NamedTuple):
    """How far a stream is: rewards, those learned, the tick of the last, and the newest era."""

    rewarded: int
    learned: int
    tick: int
    era: int


class Replica(NamedTuple):
    """How far a replica is with a stream, and when it last said so."""

    name: str
    folded: int
    at: float


class PostgresStore(Connection):
    """A database by its address: `writes=False` reads one moment only."""

    shared = True

    def reader(self) -> PostgresStore:
        """Another view of the database, of what is committed now."""
        return PostgresStore(self.url, writes=False)

    # ------------------------------------------------------------------------------------ replicas

    def lock(self, stream: int) -> Head:
        """Until the end of the transaction, which begins here if need be, nobody else learns of this stream."""
        if not self.in_transaction:
            self.begin()
        return Head(*self._one("SELECT rewarded, learned, tick, era FROM stream WHERE id = %s FOR UPDATE", (stream,)))

    def heads(self) -> dict[int, Head]:
        """How far every stream is."""
        rows = self._run("SELECT id, rewarded, learned, tick, era FROM stream").fetchall()
        return {row[0]: Head(*row[1:]) for row in rows}

    def numbers(self, stream: int) -> range:
        """Numbers for decisions that nobody else has."""
        first = int(self._one(f"SELECT nextval('numbers_{int(stream)}')")[0])
        return range(first, first + NUMBERS)

    def last_number(self, stream: int) -> int:
        """No decision has a larger one."""
        return int(self._one(f"SELECT last_value FROM numbers_{int(stream)}")[0]) + NUMBERS - 1

    def decided(self, stream: int) -> int:
        """How many decisions there are."""
        return int(self._one("SELECT coalesce(sum(decided), 0) FROM replica WHERE stream = %s", (stream,))[0])

    def tell(self, folded: Sequence[tuple[int, int]]) -> None:
        """Say how far this replica is: pairs of a stream and the number of the last reward it folded."""
        now = time.time()
        rows = [(self.name, stream, seq, now) for stream, seq in folded]
        self.begin()
        self._run("SET LOCAL synchronous_commit TO off")  # nobody is promised this
        self._run("INSERT INTO replica (name, stream, folded, at) VALUES (%s, %s, %s, %s) ON CONFLICT (name, stream) "
                  "DO UPDATE SET folded = EXCLUDED.folded, at = EXCLUDED.at", rows=rows)  # fmt: skip
        self.commit()

    def replicas(self, stream: int, since: float) -> list[Replica]:
        """Those that were heard of since a time."""
        rows = self._run("SELECT name, folded, at FROM replica WHERE stream = %s AND at >= %s ORDER BY name",
                         (stream, since))  # fmt: skip
        return [Replica(*row) for row in rows]

    # ------------------------------------------------------------------------------------ writing

    def add_stream(self, name: str, at: float) -> int:
        statement = "INSERT INTO stream (name, created, seal) VALUES (%s, %s, %s) RETURNING id"
        number = int(self._one(statement, (name, at, seal((name, at))))[0])
        self._run(f"CREATE SEQUENCE numbers_{number} INCREMENT {NUMBERS}")
        self.changed()
        return number

    def set_paused(self, stream: int, paused: bool) -> None:
        self._run("UPDATE stream SET paused = %s WHERE id = %s", (int(paused), stream))
        self.changed()

    def add_era(self, row: EraRow) -> None:
        self._run(_ADD[EraRow], (*row, seal(row)))
        self._run("UPDATE stream SET era = %s WHERE id = %s", (row.number, row.stream))
        self.changed()

    def arm_set(self, digest: bytes, n: int, data: bytes) -> int:
        return self.arm_sets([(digest, n, data)])[0]

    def arm_sets(self, wanted: Sequence[tuple[bytes, int, bytes]]) -> list[int]:
        """The numbers of sets of arms, those that are new written at once."""
        missing = {one[0]: one for one in wanted if one[0] not in self._sets}
        if missing:
            found = self._numbered(list(missing))
            new = sorted(set(missing) - set(found))  # in one order, so that two replicas never wait for each other
            if new:
                self._run("INSERT INTO arm_set (sha256, n, data) VALUES (%s, %s, %s) ON CONFLICT (sha256) DO NOTHING",
                          rows=[missing[digest] for digest in new])  # fmt: skip
                self._new_sets += new
                found |= self._numbered(new)
            while self._sets and len(self._sets) + len(found) > _KEPT_SETS:
                del self._sets[next(iter(self._sets))]
            self._sets |= found
            return [found[one[0]] if one[0] in found else self._sets[one[0]] for one in wanted]
        return [self._sets[one[0]] for one in wanted]

    def _numbered(self, digests: list[bytes]) -> dict[bytes, int]:
        return dict(self._run("SELECT sha256, id FROM arm_set WHERE sha256 = ANY(%s)", (digests,)).fetchall())

    def add_decisions(self, rows: Sequence[Sequence[Any]]) -> None:
        self._run(_ADD[DecisionRow], rows=[(*row, seal(row)) for row in rows])
        counts: dict[int, int] = {}
        for row in rows:
            counts[row[0]] = counts.get(row[0], 0) + 1
        self._run("INSERT INTO replica (name, stream, decided) VALUES (%s, %s, %s) ON CONFLICT (name, stream) "
                  "DO UPDATE SET decided = replica.decided + EXCLUDED.decided",
                  rows=[(self.name, stream, count) for stream, count in counts.items()])  # fmt: skip

    def add_rewards(self, rows: Sequence[RewardRow]) -> None:
        """Under the stream's lock; a number that does not follow the last was given by somebody who did not have it."""
        self._run(_ADD[RewardRow], rows=[(*row, seal(row)) for row in rows])
        first, last = rows[0], rows[-1]
        moved = self._run(
            "UPDATE stream SET rewarded = %s, learned = %s, tick = %s WHERE id = %s AND rewarded = %s",
            (last.seq, last.learned, last.tick, last.stream, first.seq - 1),
        )
        if moved.rowcount != 1:
            raise Conflict(f"{self.path}: reward {first.seq} does not follow the last")
        self._run(f"NOTIFY {CHANNEL}")

    def add_digests(self, rows: Sequence[DigestRow]) -> None:
        self._run("INSERT INTO digest VALUES (%s, %s, %s, %s) ON CONFLICT (stream, era, seq) "
                  "DO UPDATE SET digest = EXCLUDED.digest", rows=rows)  # fmt: skip

    def add_snapshot(self, row: SnapshotRow) -> None:
        stream, era, *_ = row
        self._run("INSERT INTO snapshot VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (stream, era, seq) "
                  "DO UPDATE SET tick = EXCLUDED.tick, data = EXCLUDED.data, seal = EXCLUDED.seal",
                  (*row, seal(row)))  # fmt: skip
        self._run(
            "DELETE FROM snapshot WHERE stream = %s AND era = %s AND seq NOT IN (SELECT seq FROM snapshot "
            "WHERE stream = %s AND era = %s ORDER BY seq DESC LIMIT %s) AND seq NOT IN "
            "(SELECT base FROM era WHERE stream = %s AND number = %s)",
            (stream, era, stream, era, _SNAPSHOTS, stream, era),
        )

    def add_items(self, stream: int, rows: Sequence[tuple[str, str]]) -> None:
        self._run("INSERT INTO item VALUES (%s, %s, %s, %s) ON CONFLICT (stream, name) "
                  "DO UPDATE SET row = EXCLUDED.row, seal = EXCLUDED.seal",
                  rows=[(stream, *row, seal(row)) for row in rows])  # fmt: skip
        self.changed()

    # ------------------------------------------------------------------------------------ reading

    def _sealed(self, kind: type[_Sealed], rest: str, values: tuple[Any, ...]) -> Iterator[_Sealed]:
        table, _ = _TABLES[kind]
        for found in self._run(f"SELECT {_COLUMNS[kind]} FROM {table} {rest}", values):
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
        return list(self._sealed(EraRow, "WHERE stream = %s ORDER BY number", (stream,)))

    def items(self, stream: int) -> list[tuple[str, str]]:
        found = []
        for name, row, sealed in self._run("SELECT name, row, seal FROM item WHERE stream = %s", (stream,)):
            if seal((name, row)) != sealed:
                raise Damaged(self.path, f"a changed row {name!r} of table item")
            found.append((name, row))
        return found

    def keys(self) -> list[KeyRow]:
        columns = ", ".join(KeyRow._fields)
        return [KeyRow(*row) for row in self._run(f"SELECT {columns} FROM key WHERE revoked IS NULL ORDER BY id")]

    def decision(self, stream: int, id: str) -> DecisionRow | None:
        return next(self._sealed(DecisionRow, "WHERE stream = %s AND event_id = %s", (stream, id)), None)

    def reward(self, stream: int, id: str) -> RewardRow | None:
        return next(self._sealed(RewardRow, "WHERE stream = %s AND event_id = %s", (stream, id)), None)

    def open_decisions(self, stream: int, after: int, upto: int, most: int) -> list[OpenRow]:
        rows = self._run(f"SELECT seq, event_id, born FROM decision d WHERE stream = %s AND seq > %s AND seq <= %s "
                         f"AND {_OPEN} ORDER BY seq LIMIT %s", (stream, after, upto, most))  # fmt: skip
        return [OpenRow(*row) for row in rows]

    def overdue(self, stream: int, since: float, before: float, most: int) -> list[OpenRow]:
        """The oldest decisions without a reward that were born between two ticks."""
        rows = self._run(f"SELECT seq, event_id, born FROM decision d WHERE stream = %s AND born >= %s AND born < %s "
                         f"AND {_OPEN} ORDER BY born, seq LIMIT %s", (stream, since, before, most))  # fmt: skip
        return [OpenRow(*row) for row in rows]

    def defaulted(self, stream: int, upto: int = 2**62) -> int:
        statement = "SELECT count(*) FROM reward WHERE stream = %s AND verdict = 'defaulted' AND seq <= %s"
        return int(self._one(statement, (stream, upto))[0])

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
            rest = f"WHERE stream = %s AND seq > %s AND seq <= %s ORDER BY seq LIMIT {_STRETCH}"
            rows = list(self._sealed(RewardRow, rest, (stream, after, last)))
            yield from rows
            if len(rows) < _STRETCH:
                return
            after = rows[-1].seq

    def arms(self, number: int) -> tuple[bytes, int, bytes] | None:
        found = self._run("SELECT sha256, n, data FROM arm_set WHERE id = %s", (number,)).fetchone()
        if found is None:
            return None
        digest, n, data = found
        if sha256(data).digest() != digest:
            raise Damaged(self.path, f"a changed row {number} of table arm_set")
        return digest, n, data

    def snapshots(self, stream: int, era: int) -> list[SnapshotRow]:
        rows = self._run("SELECT stream, era, seq, tick, data, seal FROM snapshot WHERE stream = %s AND era = %s "
                         "ORDER BY seq DESC", (stream, era))  # fmt: skip
        return [SnapshotRow(*row[:-1]) for row in rows if seal(row[:-1]) == row[-1]]  # others are as good as none

    def digests(self, stream: int, era: int) -> dict[int, str]:
        rows = self._run("SELECT seq, digest FROM digest WHERE stream = %s AND era = %s", (stream, era))
        return dict(rows.fetchall())
