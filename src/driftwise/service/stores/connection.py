"""A connection to PostgreSQL that raises driftwise's own errors and reconnects when it broke.

Every wait is bounded. The server ends long statements, waits for locks, and transactions of a silent client. A client
that gets no answer closes the connection (`cut`).

A connection that breaks raises `Lost`. It is then unknown whether the last transaction was committed, so the client is
asked to send the same id again. A round trip costs more than most statements. A statement whose result is not needed at
once is therefore sent together with the next one (`_later`).
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from driftwise.errors import BadInput
from driftwise.service.stores.records import Failed, Full, Held, Lost, Rejected, WriteConflict
from driftwise.service.stores.tables import migrate, version_of

CHANNEL = "driftwise"
WRITER, CHANGER, READER = "driftwise/", "driftwise change/", "driftwise reader/"  # how names of connections begin
NO_ANSWER = 8.0  # seconds after which a statement is abandoned: a working server would have ended it before
STOPPING = 2.0  # the same while the server stops
_NETWORK: dict[str, Any] = {  # of the client, unless the address says otherwise
    "connect_timeout": 3, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
    "tcp_user_timeout": int(1000 * NO_ANSWER),
}  # fmt: skip
_PEER = {  # of the server: a client that is cut off loses its transaction, and its locks
    "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "8s",
    "synchronous_commit": "on",
}  # fmt: skip
# A replica that is stopped (SIGSTOP) loses them too.
_LIMITS = {"lock_timeout": "3s", "statement_timeout": "5s", "idle_in_transaction_session_timeout": "5s"}
_AGAIN = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)
_REJECTED = (psycopg.DataError, psycopg.IntegrityError, UnicodeError, OverflowError)
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded)


def shown(url: str) -> str:
    """An address without its password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is not valid"  # it may have a password in any place
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:…@{host}"))


_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()  # of this process


def cut_silent(seconds: float) -> None:
    """Close the connections of this process that have waited this long for an answer."""
    for one in list(_OPEN):
        if one.quiet() > seconds:
            one.cut()


def connected(url: str, **more: Any) -> psycopg.Connection[Any]:
    """A connection that notices when its server is gone."""
    return psycopg.connect(autocommit=True, **{**_NETWORK, **conninfo_to_dict(url), **more})


def _set(made: psycopg.Connection[Any], settings: dict[str, str]) -> None:
    made.execute("SELECT " + ", ".join("set_config(%s, %s, false)" for _ in settings), sum(settings.items(), ()))


class Connection:
    """One connection and its transaction."""

    _limited = False  # whether statements have limits, as a replica's have
    _asked: float | None = None  # the start of the statement that has no answer yet

    def __init__(self, url: str, *, writes: bool = True, lock: bool = True, pages: int | None = None) -> None:
        if pages is not None:
            raise BadInput("max-pages", pages, "none for PostgreSQL", "set a quota there")
        self.url, self.path, self._writes = url, shown(url), writes
        self.name = f"{socket.gethostname()}/{os.getpid()}/{os.urandom(3).hex()}"
        self._ahead: list[tuple[str, Sequence[Any]]] = []  # what goes with the next statement
        self._inside = False  # whether a transaction was begun on the connection there is
        self._database: psycopg.Connection[Any] | None = None
        _OPEN.add(self)
        try:
            self._connection()
        except Failed as error:
            way_out = "start it, or pass another address"
            raise BadInput("db", str(error), "a PostgreSQL server that answers", way_out) from None

    def _connection(self) -> psycopg.Connection[Any]:
        """The connection; it reconnects if it broke, but not in a transaction, whose first half is lost."""
        if self._database is not None and not self._database.closed:
            return self._database
        if self._inside:
            raise Lost(f"{self.path}: the connection broke in a transaction")
        self._asked = time.monotonic()
        try:
            name = f"{WRITER if self._writes else READER}{self.name}"
            made = self._database = connected(self.url, application_name=name)
            try:
                self._set_up(made)
            except BaseException:
                made.close()
                raise
        except psycopg.Error as error:
            raise Lost(f"{self.path}: {_first_line(error)}") from None
        finally:
            self._asked = None
        return made

    def _set_up(self, made: psycopg.Connection[Any]) -> None:
        if self._writes:
            _set(made, _PEER)
            migrate(made, self.path)
            if self._limited:
                _set(made, _LIMITS)
        self.version = version_of(made, self.path)
        if not self.version:
            raise BadInput("db", f"{self.path}, which is empty", "a database", "pass the --db of driftwise serve")
        if not self._writes:
            made.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")  # so that all reads see one moment
            self._inside = True

    def limit(self) -> None:
        """Set the limits of a replica's transactions, so that it does not block others for long."""
        self._limited = True
        with self._in_our_words() as made:
            _set(made, _LIMITS)

    def take_time(self) -> None:
        """Relax the limits for this transaction: a change of a stream may compute for a while under its lock."""
        self._later("SET LOCAL idle_in_transaction_session_timeout TO '60s'")
        self._later("SELECT set_config('application_name', %s, true)", (CHANGER + self.name,))

    def quiet(self) -> float:
        """Seconds since the start of the statement that has no answer yet."""
        asked = self._asked
        return 0.0 if asked is None else time.monotonic() - asked

    def cut(self) -> None:
        """Close the connection from any thread; a wait for the server then raises `Lost`."""
        made = self._database
        with suppress(OSError, psycopg.Error):
            if made is not None and not made.closed:
                with socket.socket(fileno=os.dup(made.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Shorten the waits while the server stops."""
        timer = threading.Timer(STOPPING, self.cut)
        timer.start()
        yield
        timer.cancel()

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
        """Commit; the data are on disk when this returns. If the connection breaks here, the outcome is unknown."""
        if self._run("COMMIT").statusmessage != "COMMIT":  # COMMIT of a failed transaction raises no error
            raise Lost(f"{self.path}: the transaction had failed")
        self._inside = False

    def rollback(self) -> None:
        self._ahead.clear()
        self._inside = False
        if self.in_transaction:
            with suppress(Failed):  # the connection, and with it the transaction, is gone
                self._run("ROLLBACK")

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def soundness(self) -> str:
        """Nothing to do: PostgreSQL manages its files itself."""
        return "ok"

    def run(self, statement: str, rows: Sequence[Any] | None = None, values: tuple[Any, ...] = ()) -> Any:
        """A statement with ? where values go, as for SQLite."""
        return self._run(statement.replace("?", "%s"), values, rows)

    def _run(
        self, statement: str, values: Sequence[Any] = (), rows: Sequence[Any] | None = None, anew: bool = False
    ) -> Any:
        """Run a statement. The server keeps its plan, unless it is to plan again."""
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
        """Send a statement of the transaction together with the next one."""
        self._ahead.append((statement, values))

    def _together(self, *statements: tuple[str, Sequence[Any]]) -> list[Any]:
        """Run statements in order in one round trip; a failure ends them."""
        with self._in_our_words() as made, made.pipeline():
            self._send_ahead(made)
            return [made.execute(*one) for one in statements]

    def _copy(self, where: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows into the columns of a table, in the fastest way."""
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
        self._asked = time.monotonic()
        try:
            yield made
        except _AGAIN as error:
            raise WriteConflict(f"{self.path}: {_first_line(error)}") from None
        except errors.LockNotAvailable as error:
            raise Held(f"{self.path}: {_first_line(error)}") from None
        except _REJECTED as error:
            raise Rejected(_first_line(error)) from None
        except _FULL as error:
            raise Full(f"{self.path}: {_first_line(error)}") from None
        except psycopg.Error as error:
            if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
                made.close()
            raise Lost(f"{self.path}: {_first_line(error)}") from None
        finally:
            self._asked = None

    def _one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._run(statement, values).fetchone()
        return found

    def changed(self) -> None:
        """Notify the other replicas of a change that is not a reward."""
        self._run("UPDATE driftwise SET changes = changes + 1")
        self._run(f"NOTIFY {CHANNEL}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
