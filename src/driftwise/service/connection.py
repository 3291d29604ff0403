"""A connection to PostgreSQL that says in our words what went wrong, and is made anew when it broke.

A connection that breaks is `Lost`: whether its last transaction was committed nobody knows, so whoever asked is told to
ask again, by the same id. A turn to the server and back costs more than most statements do: those whose result nobody
needs at once wait for the next one (`_later`) and go with it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from driftwise.errors import BadInput
from driftwise.service.store import Conflict, Full, Lost
from driftwise.service.tables import migrate, version_of

CHANNEL = "driftwise"
_CONNECT = 3  # seconds to wait for the server
_AGAIN = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded)


def shown(url: str) -> str:
    """An address without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:…@{host}"))


class Connection:
    """One connection and its transaction."""

    def __init__(self, url: str, *, writes: bool = True, lock: bool = True, pages: int | None = None) -> None:
        if pages is not None:
            raise BadInput("max-pages", pages, "none for PostgreSQL", "set a quota there")
        self.url, self.path, self._writes = url, shown(url), writes
        self.name = f"{socket.gethostname()}/{os.getpid()}/{os.urandom(3).hex()}"
        self._sets: dict[bytes, int] = {}
        self._new_sets: list[bytes] = []
        self._ahead: list[tuple[str, Sequence[Any]]] = []  # what goes with the next statement
        self._inside = False  # whether a transaction was begun on the connection there is
        self._database: psycopg.Connection[Any] | None = None
        try:
            self._connection()
        except Lost as slip:
            way_out = "start it, or pass another address"
            raise BadInput("db", str(slip), "a PostgreSQL server that answers", way_out) from None

    def _connection(self) -> psycopg.Connection[Any]:
        """The connection, made anew where it broke; but not in a transaction, whose first half went with it."""
        if self._database is not None and not self._database.closed:
            return self._database
        if self._inside:
            raise Lost(f"{self.path}: the connection broke in a transaction")
        try:
            made = psycopg.connect(self.url, autocommit=True, connect_timeout=_CONNECT, application_name=self.name)
            if self._writes:
                made.execute("SET synchronous_commit TO on")
                migrate(made, self.path)
            elif not version_of(made, self.path):
                raise BadInput("db", f"{self.path}, which is empty", "a database", "pass the --db of driftwise serve")
            else:
                made.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")  # all that is read is of one moment
                self._inside = True
        except psycopg.Error as slip:
            raise Lost(f"{self.path}: {_first_line(slip)}") from None
        self._database = made
        return made

    # ------------------------------------------------------------------------------------ transactions

    @property
    def in_transaction(self) -> bool:
        made = self._database
        if self._ahead:
            return True
        return made is not None and not made.closed and made.info.transaction_status != TransactionStatus.IDLE

    def begin(self) -> None:
        self._later("BEGIN")

    def commit(self) -> None:
        """On disk when it returns. Where the connection breaks here, nobody knows whether it is."""
        if self._run("COMMIT").statusmessage != "COMMIT":  # what failed before ends so, without an error
            raise Lost(f"{self.path}: the transaction had failed")
        self._inside = False
        self._new_sets.clear()

    def rollback(self) -> None:
        for digest in self._new_sets:
            self._sets.pop(digest, None)
        self._new_sets.clear()
        self._ahead.clear()
        self._inside = False
        if self.in_transaction:
            try:
                self._run("ROLLBACK")
            except Lost:  # then there is none any more
                pass

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def soundness(self) -> str:
        """PostgreSQL looks after its files itself."""
        return "ok"

    def run(self, statement: str, rows: Sequence[Any] | None = None, values: tuple[Any, ...] = ()) -> Any:
        """A statement with ? where values go, as for SQLite."""
        return self._run(statement.replace("?", "%s"), values, rows)

    def _run(
        self, statement: str, values: Sequence[Any] = (), rows: Sequence[Any] | None = None, anew: bool = False
    ) -> Any:
        """A statement, whose plan the server keeps unless it is to think anew."""
        if self._ahead and rows is None and not anew:
            return self._together((statement, values))[-1]
        with self._in_our_words() as made:
            self._send_ahead(made)
            if rows is None:
                return made.execute(statement, values, prepare=False if anew else None)
            cursor = made.cursor()
            cursor.executemany(statement, rows)
            return cursor

    def _later(self, statement: str, values: Sequence[Any] = ()) -> None:
        """A statement of the transaction that is sent with the next one."""
        self._ahead.append((statement, values))

    def _together(self, *statements: tuple[str, Sequence[Any]]) -> list[Any]:
        """Statements in one turn to the server, each after the one before; none after one that failed."""
        with self._in_our_words() as made, made.pipeline():
            self._send_ahead(made)
            return [made.execute(*one) for one in statements]

    def _copy(self, where: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Rows into the columns of a table, by the shortest way there is."""
        with self._in_our_words() as made:
            self._send_ahead(made)
            with made.cursor().copy(f"COPY {where} FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)

    def _send_ahead(self, made: psycopg.Connection[Any]) -> None:
        ahead, self._ahead = self._ahead, []
        self._inside = self._inside or bool(ahead)
        for one in ahead:
            made.execute(*one)

    @contextmanager
    def _in_our_words(self) -> Iterator[psycopg.Connection[Any]]:
        made = self._connection()
        try:
            yield made
        except _AGAIN as slip:
            raise Conflict(f"{self.path}: {_first_line(slip)}") from None
        except _FULL as slip:
            raise Full(f"{self.path}: {_first_line(slip)}") from None
        except psycopg.Error as slip:
            if isinstance(slip, (psycopg.OperationalError, psycopg.InterfaceError)):
                made.close()
            raise Lost(f"{self.path}: {_first_line(slip)}") from None

    def _one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._run(statement, values).fetchone()
        return found

    def changed(self) -> None:
        """Tell the others that there is something other than rewards to read."""
        self._run("UPDATE driftwise SET changes = changes + 1")
        self._run(f"NOTIFY {CHANNEL}")


def _first_line(slip: psycopg.Error) -> str:
    return (str(slip).strip().splitlines() or [type(slip).__name__])[0]
