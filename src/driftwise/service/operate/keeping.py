"""Commands on a database that may be in use: its backup and its keys."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftwise._internal.files import file_beside, private, settle_files
from driftwise.errors import BadInput
from driftwise.service.core.access import SCOPES, checked_scopes, hashed, new_key
from driftwise.service.stores.opening import check_there, is_shared, one_file, open_store
from driftwise.service.stores.records import Held, KeyRow
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.wire.protocol import checked_name

_OTHERS = "decide,reward"  # scopes of a key that is not the only valid one, where none are given
_MOST_NAME = 200
_WAIT = 10.0  # seconds for the lock of a database that a server writes to


def backup(path: str | Path, out: Path) -> int:
    """Make a consistent copy of a database that may be in use; the copy is complete or absent. Returns its size."""
    one_file(path, "use pg_dump, which copies it while it is in use")
    store = SQLiteStore(path, writes=False)
    try:
        if out.exists():
            raise BadInput("out", str(out), "a file that does not exist", "pass another name")
        with copied(store, out) as aside:
            settle_files(aside, out, new=True)
    except FileExistsError:
        raise BadInput("out", str(out), "a file that does not exist", "pass another name") from None
    finally:
        store.close()
    return out.stat().st_size


@contextmanager
def copied(store: SQLiteStore, out: Path) -> Iterator[Path]:
    """A copy of what is committed, under a temporary name beside `out`. Its header says that it has no WAL (wal.py)."""
    aside = file_beside(out)
    try:
        os.close(private(aside))
        copy = sqlite3.connect(aside)
        try:
            store._database.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        yield aside
    except FileExistsError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise BadInput("out", f"{out}: {error}", "a place where the copy can be written", "pass another") from None
    finally:
        aside.unlink(missing_ok=True)


def create_key(path: str | Path, scopes: str | None, stream: str, name: str) -> str:
    """Make a new key. Only this call shows it; a running server accepts it within a second. Without `scopes` the only
    valid key gets all scopes, so that the owner is never locked out; other keys get decide and reward."""
    checked = None if scopes is None else checked_scopes(scopes)
    if stream != "*":
        checked_name(stream)
    if not name.isprintable() or len(name) > _MOST_NAME:
        raise BadInput("name", name, f"up to {_MOST_NAME} printable characters", "pass a shorter or plainer name")
    key = new_key()
    with _writing(path) as store:
        if checked is None:
            checked = _OTHERS if _valid(store.keys()) else ",".join(SCOPES)
        store.run("INSERT INTO key (sha256, name, scopes, stream, created) VALUES (?, ?, ?, ?, ?)",
                  values=(hashed(key), name, checked, stream, time.time()))  # fmt: skip
    return key


def revoke_key(path: str | Path, number: int) -> None:
    """Revoke a key. A running server refuses it within a second."""
    check_there(path)
    changed = 0
    if 0 < number < 2**31:  # what both stores can hold
        with _writing(path) as store:
            changed = store.run("UPDATE key SET revoked = ? WHERE id = ? AND revoked IS NULL",
                                values=(time.time(), number)).rowcount  # fmt: skip
    if not changed:
        raise BadInput("key", number, "the number of a valid key", "driftwise keys list shows them")


@contextmanager
def _writing(path: str | Path) -> Iterator[Any]:
    """One transaction beside a server that may be busy. Such a server holds SQLite's lock nearly all the time. Polling
    every millisecond gets the lock in the next gap between two groups. SQLite's own wait polls ten times a second; with
    it a revocation took 5 s or failed."""
    store = open_store(path, lock=False)
    try:
        if not store.shared:
            store.never_wait()
        until = time.monotonic() + _WAIT
        while True:
            try:
                store.begin()
                break
            except Held:
                if time.monotonic() > until:
                    raise
                time.sleep(0.001)
        yield store
        store.changed()
        store.commit()
    finally:
        store.close()


def keys(path: str | Path) -> list[KeyRow]:
    """The valid keys; only a digest of each is stored."""
    store = open_store(path, writes=False)
    try:
        return _valid(store.keys())
    finally:
        store.close()


def _valid(rows: Sequence[KeyRow]) -> list[KeyRow]:
    return [key for key in rows if key.revoked is None]


def grants(key: KeyRow) -> str:
    """What a key may do, in a sentence."""
    does = {"decide": "decide", "reward": "reward", "admin": "change streams and open the dashboard"}
    where = "all streams" if key.stream == "*" else f"stream {key.stream} only"
    return f"Key {key.id} may {', '.join(does[scope] for scope in key.scopes.split(','))}: {where}."


def lacking(path: str | Path, valid: Sequence[KeyRow]) -> str:
    """What the valid keys no longer allow the owner of a database to do, and how to restore it; "" if nothing."""
    create = f"driftwise keys create {'DB' if is_shared(path) else path}"
    if not valid:
        return f"No key is valid: the server answers every request with 401. `{create}` on this machine makes one."
    if not any(key.stream == "*" and "admin" in key.scopes.split(",") for key in valid):
        way_out = f"`{create} --scopes {','.join(SCOPES)}` makes one"
        return f"No valid key has the scope admin for all streams, which is needed to make a stream: {way_out}."
    return ""
