"""Opens a store: the path of a SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driftwise.errors import BadInput
from driftwise.service.stores.records import Taken

SCHEMES = ("postgresql://", "postgres://")


def is_shared(db: object) -> bool:
    """Whether it is an address of PostgreSQL, whose database several servers can share."""
    return isinstance(db, str) and db.startswith(SCHEMES)


def open_store(db: str | Path, **options: Any) -> Any:
    """The opened store."""
    if not is_shared(db):
        from driftwise.service.stores.sqlite import SQLiteStore

        return SQLiteStore(db, **options)
    if find_spec("psycopg") is None:
        raise BadInput("db", "no psycopg", "the driver of PostgreSQL", 'pip install "driftwise[postgres]"')
    from driftwise.service.stores.postgres import PostgresStore

    return PostgresStore(str(db), **options)


@contextmanager
def written_alone(db: str | Path) -> Iterator[Any]:
    """A store that no server has open, in one transaction: if it fails, nothing is written."""
    store = open_store(db)
    try:
        store.begin()
        if store.shared and not store.alone():
            raise Taken("db", "one that replicas serve", "a database that no replica serves", "stop them first")
        yield store
        store.commit()
        if not store.shared:
            store.checkpoint()
    except BaseException:
        store.rollback()
        raise
    finally:
        store.close()


def one_file(path: str | Path, way_out: str) -> None:
    """Refuse a PostgreSQL database, for commands that work on files only."""
    if is_shared(path):
        raise BadInput("db", "a PostgreSQL database", "a database that is a file", way_out)


def check_there(path: str | Path) -> None:
    """Refuse a database that does not exist: a typing error in its name must not create a new one."""
    open_store(path, writes=False).close()
