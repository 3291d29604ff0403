"""A store by what names it: the path of a SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driftwise.errors import BadInput

SCHEMES = ("postgresql://", "postgres://")


def is_shared(db: object) -> bool:
    """Whether it is an address, of which several servers may have the database."""
    return isinstance(db, str) and db.startswith(SCHEMES)


def open_store(db: str | Path, **options: Any) -> Any:
    """The store, opened as it is asked for."""
    if not is_shared(db):
        from driftwise.service.sqlite import SQLiteStore

        return SQLiteStore(db, **options)
    if find_spec("psycopg") is None:
        raise BadInput("db", "no psycopg", "the driver of PostgreSQL", 'pip install "driftwise[postgres]"')
    from driftwise.service.postgres import PostgresStore

    return PostgresStore(str(db), **options)


def service_of(store: Any, now: Callable[[], float] | None = None, *, later: bool = False) -> Any:
    """A service on a store: alone, or one replica of several; later: `prepare` resumes its streams."""
    if not store.shared:
        from driftwise.service.serving import Service

        return Service(store, now, later=later)
    from driftwise.service.replica import SharedService

    return SharedService(store, now, later=later)
