"""The store in a PostgreSQL database, which several replicas share without a leader.

Rewards lock their stream's row (`lock`) and get numbers without a gap in the group's transaction. Decisions take no
lock, and get numbers from a sequence.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, get_args, get_type_hints

from driftwise.service.stores.connection import CHANNEL, WRITER, Connection
from driftwise.service.stores.records import EraRow, RewardRow, WriteConflict, viewed
from driftwise.service.stores.store import COLUMNS, TABLES, Sealed, Store, select

HUSH = 0.02  # least seconds between two notifications of rewards: each wakes every replica
NUMBERS = 64  # numbers of decisions that are reserved at once; a replica that ends leaves a smaller gap
_SETS = 0x44575354  # an advisory lock: shared by users of sets of arms, exclusive for dropping sets
SERVING = 0x44575356  # an advisory lock, shared by the running replicas
_CHANGES = "SELECT changes FROM driftwise"
_ADD_SETS = ("INSERT INTO arm_set (sha256, n, data) SELECT * FROM unnest(%b::bytea[], %b::int8[], %b::bytea[]) "
             "ON CONFLICT (sha256) DO NOTHING RETURNING sha256, id")  # fmt: skip
_STRETCH = 5_000  # rows per fetch
_NEXT_REWARDS = select(RewardRow, f"WHERE stream = %s AND seq > %s ORDER BY seq LIMIT {_STRETCH}")
_NAMES = {int: "int8", float: "float8", str: "text", bytes: "bytea"}
_TYPES = {  # types of columns by the declared types of a row's fields, and that of the seal
    kind: [*(_NAMES[(get_args(told) or (told,))[0]] for told in get_type_hints(kind).values()), "int8"]
    for kind in TABLES
}


_END_STOPPED = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name LIKE '{WRITER}%%' AND wait_event = 'ClientRead' AND xact_start IS NOT NULL
    AND greatest(query_start, state_change) < now() - interval '5 s'
"""


class Head(NamedTuple):
    """How far a stream is: its rewards, the learned ones, the tick of the last, and the newest generation."""

    rewarded: int
    learned: int
    tick: int
    era: int


class Replica(NamedTuple):
    """How far a replica is with a stream, and when it last reported."""

    name: str
    folded: int
    at: float


class PostgresStore(Connection, Store):
    """A database by its address. `writes=False` reads a snapshot of one moment."""

    shared = True
    _order = ("state_seq", "seq")  # numbers of different replicas are not in order
    _noticed = 0.0  # the time of the last notification
    _changes = -1  # the count of changes when numbers of arm sets were last used
    _ended: frozenset[int] = frozenset()  # the streams that were deleted by then

    def __init__(self, url: str, **options: Any) -> None:
        Store.__init__(self)
        Connection.__init__(self, url, **options)

    def commit(self) -> None:
        Connection.commit(self)
        Store.commit(self)

    def rollback(self) -> None:
        Store.rollback(self)
        Connection.rollback(self)

    def reader(self) -> PostgresStore:
        return viewed(lambda: PostgresStore(self.url, writes=False))

    def aside(self) -> PostgresStore:
        return PostgresStore(self.url)

    # ------------------------------------------------------------------------------------ replicas

    def lock(self, stream: int, after: int) -> tuple[Head, list[RewardRow]]:
        """Until the end of the transaction, which begins here if necessary, no other replica learns on this stream.
        Returns the head of the stream and the first of the rewards after a number, all of which are committed."""
        if not self.in_transaction:
            self.begin()
        head, rows = self._together(
            ("SELECT rewarded, learned, tick, era FROM stream WHERE id = %s FOR UPDATE", (stream,)),
            (_NEXT_REWARDS, (stream, after)),
        )
        return Head(*head.fetchone()), list(self._checked(RewardRow, rows))

    def alone(self) -> bool:
        """Whether no replica serves the database. A replica that starts waits for the end of the transaction."""
        return bool(self._one("SELECT pg_try_advisory_xact_lock(%s)", (SERVING,))[0])

    def free(self, streams: Sequence[int]) -> list[int]:
        """The streams among these whose locks are free now."""
        found = self._run("SELECT id FROM stream WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED", (list(streams),))
        return [row[0] for row in found]

    def end_stopped(self) -> None:
        """End the transactions of replicas that make no progress. PostgreSQL does this itself if it waits for the next
        statement, but not if it waits for the rest of one."""
        self._run(_END_STOPPED)

    def look(self) -> tuple[int, dict[int, Head]]:
        """The count of changes, and how far every stream is."""
        changes, rows = self._together(
            (_CHANGES, ()), ("SELECT id, rewarded, learned, tick, era FROM stream", ())
        )
        return int(changes.fetchone()[0]), {row[0]: Head(*row[1:]) for row in rows}

    def numbers(self, stream: int) -> range:
        """Numbers for decisions, which no other replica gets."""
        first = int(self._one(f"SELECT nextval('numbers_{int(stream)}')")[0])
        return range(first, first + NUMBERS)

    def skip_numbers(self, stream: int, upto: int) -> None:
        first = (max(upto, 1) - 1) // NUMBERS * NUMBERS + 1
        self._run(f"SELECT setval('numbers_{int(stream)}', %s)", (first,))

    def last_number(self, stream: int) -> int:
        """The largest number that a decision can have."""
        return int(self._one(f"SELECT last_value FROM numbers_{int(stream)}")[0]) + NUMBERS - 1

    def decided(self, stream: int) -> int:
        """The number of decisions."""
        return int(self._one("SELECT coalesce(sum(decided), 0) FROM replica WHERE stream = %s", (stream,))[0])

    def tell(self, folded: Sequence[tuple[int, int]]) -> None:
        """Report how far this replica is: pairs of a stream and the number of the last reward it learned."""
        now = time.time()
        rows = [(self.name, stream, seq, now) for stream, seq in folded]
        self.begin()
        self._run("SET LOCAL synchronous_commit TO off")  # losing this report is harmless
        self._run("INSERT INTO replica (name, stream, folded, at) VALUES (%s, %s, %s, %s) ON CONFLICT (name, stream) "
                  "DO UPDATE SET folded = EXCLUDED.folded, at = EXCLUDED.at", rows=rows)  # fmt: skip
        self.commit()

    def replicas(self, stream: int, since: float) -> list[Replica]:
        """The replicas that have reported since a time."""
        rows = self._run("SELECT name, folded, at FROM replica WHERE stream = %s AND at >= %s ORDER BY name",
                         (stream, since))  # fmt: skip
        return [Replica(*row) for row in rows]

    # ------------------------------------------------------------------------------------ rows

    def _read(self, statement: str, values: tuple[Any, ...] = (), anew: bool = False) -> Any:
        return self._run(statement.replace("?", "%s"), values, anew=anew)

    def _add(self, kind: type, rows: Sequence[Sequence[Any]]) -> None:
        self._copy(f"{TABLES[kind]} ({COLUMNS[kind]})", _TYPES[kind], rows)

    def _all(self, kind: type[Sealed], where: str, values: tuple[Any, ...], order: Sequence[str]) -> Iterator[Sealed]:
        """Rows in batches, because the driver holds all rows of an answer in memory."""
        names, marks = ", ".join(order), ", ".join("?" * len(order))
        rest = f"WHERE {where} AND ({names}) > ({marks}) ORDER BY {names} LIMIT {_STRETCH}"
        after: tuple[int, ...] = (-1,) * len(order)
        while True:
            rows = list(self._sealed(kind, rest, (*values, *after)))
            yield from rows
            if len(rows) < _STRETCH:
                return
            after = tuple(getattr(rows[-1], name) for name in order)

    def _eras(self, stream: int) -> Iterator[tuple[Sequence[Any], int]]:
        rows = self._run("SELECT * FROM era WHERE stream = %s ORDER BY number", (stream,), anew=True)
        place = [column.name for column in rows.description].index("seal")  # later columns come after it
        return (((*row[:place], *row[place + 1 :]), row[place]) for row in rows)

    def add_stream(self, name: str, at: float) -> int:
        number = super().add_stream(name, at)
        self._run(f"CREATE SEQUENCE numbers_{number} INCREMENT {NUMBERS}")
        return number

    def end_stream(self, stream: int) -> None:
        self._run("UPDATE stream SET era = 0 WHERE id = %s", (stream,))  # no era: `lock` tells other replicas

    def add_era(self, row: EraRow) -> None:
        super().add_era(row)
        self._run("UPDATE stream SET era = %s WHERE id = %s", (row.number, row.stream))

    def arm_sets(self, wanted: Sequence[tuple[bytes, int, bytes]]) -> list[int]:
        """The numbers of sets of arms. New sets are written together."""
        sets = {one[0]: one for one in wanted}
        found = self._added([sets[digest] for digest in sorted(sets) if digest not in self._sets])
        rest = sorted(digest for digest in sets if digest not in found and digest not in self._sets)
        if rest:  # another replica wrote them, or their numbers were discarded
            found |= self._numbered(rest)
            lost = [sets[digest] for digest in rest if digest not in found]
            found |= self._added(lost) if lost else {}
        if not all(digest in found or digest in self._sets for digest in sets):
            raise WriteConflict(f"{self.path}: another replica writes the same arms")
        numbers = [found[digest] if digest in found else self._sets[digest] for digest, *_ in wanted]
        self._know_sets(found)
        return numbers

    def _added(self, sets: list[tuple[bytes, int, bytes]]) -> dict[bytes, int]:
        """The numbers of new sets, in a fixed order, so that two replicas never wait for each other. Until the end of
        the transaction no set is dropped. If sets may have been dropped since the last call, known numbers are
        discarded."""
        ask: list[tuple[str, Sequence[Any]]] = [("SELECT pg_advisory_xact_lock_shared(%s)", (_SETS,)), (_CHANGES, ())]
        if sets:
            ask.append((_ADD_SETS, [list(column) for column in zip(*sets, strict=True)]))
        _, changes, *added = self._together(*ask)
        count = int(changes.fetchone()[0])
        if count != self._changes:
            self._ended = frozenset(self.deleted().values())
            self._changes = count
            self.forget_sets()
        found = dict(added[0].fetchall()) if added else {}
        self._new_sets += found
        return found

    def drop_sets_aside(self) -> None:
        """Drop the sets of arms that no decision refers to, in a connection that holds no other lock. It waits for
        groups that use sets, and later groups wait for it."""
        aside = self.aside()
        try:
            aside.begin()
            aside._run("SET LOCAL lock_timeout TO '3s'")
            aside._run("SELECT pg_advisory_xact_lock(%s)", (_SETS,))
            aside.drop_sets()
            aside.changed()
            aside.commit()
        finally:
            aside.close()

    def erase_wholly(self) -> None:
        """Nothing to do: VACUUM decides when erased bytes leave PostgreSQL's files."""

    def _numbered(self, digests: list[bytes]) -> dict[bytes, int]:
        return dict(self._run("SELECT sha256, id FROM arm_set WHERE sha256 = ANY(%s)", (digests,)).fetchall())

    def add_decisions(self, rows: Sequence[Sequence[Any]]) -> None:
        if not self._ended.isdisjoint(row[0] for row in rows):
            raise WriteConflict(f"{self.path}: another replica deleted the stream")
        super().add_decisions(rows)
        for stream, count in Counter(row[0] for row in rows).items():
            self._later("INSERT INTO replica (name, stream, decided) VALUES (%s, %s, %s) ON CONFLICT (name, stream) "
                        "DO UPDATE SET decided = replica.decided + EXCLUDED.decided",
                        (self.name, stream, count))  # fmt: skip

    def add_rewards(self, rows: Sequence[RewardRow]) -> None:
        """Called under the stream's lock. A number that does not follow the last one was given without the lock."""
        super().add_rewards(rows)
        first, last = rows[0], rows[-1]
        moved = self._run(
            "UPDATE stream SET rewarded = %s, learned = %s, tick = %s WHERE id = %s AND rewarded = %s",
            (last.seq, last.learned, last.tick, last.stream, first.seq - 1),
        )
        if moved.rowcount != 1:
            raise WriteConflict(f"{self.path}: reward {first.seq} does not follow the last")
        if time.monotonic() - self._noticed > HUSH:
            self._noticed = time.monotonic()
            self._later(f"NOTIFY {CHANNEL}")
