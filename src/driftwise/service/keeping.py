"""What is done to a database from outside: a backup while it is used, forgetting what is old, and its keys."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from driftwise.errors import BadInput
from driftwise.files import HALF
from driftwise.service.access import checked_scopes, hashed, new_key
from driftwise.service.fold import resume
from driftwise.service.opening import is_shared, open_store
from driftwise.service.protocol import checked_name
from driftwise.service.recompute import eras_of
from driftwise.service.sqlite import SQLiteStore, seal
from driftwise.service.store import KeyRow


def backup(path: str | Path, out: Path) -> int:
    """A consistent copy, whole or not there, of a database that may be in use; its bytes."""
    _one_file(path, "pg_dump copies it while it is used")
    store = SQLiteStore(path, writes=False)
    aside = out.with_name(f"{out.name}.{os.getpid()}{HALF}")
    try:
        if out.exists():
            raise BadInput("out", str(out), "a file that is not there yet", "pass another name")
        copy = sqlite3.connect(aside)
        try:
            store._database.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(out)
        folder = os.open(out.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except (sqlite3.Error, OSError) as slip:
        raise BadInput("out", f"{out}: {slip}", "a place where the copy can be written", "pass another") from None
    finally:
        aside.unlink(missing_ok=True)
        store.close()
    return out.stat().st_size


def _one_file(path: str | Path, way_out: str) -> None:
    """For what is done to files alone."""
    if is_shared(path):
        raise BadInput("db", "a PostgreSQL database", "a database that is a file", way_out)


def forget(path: str | Path, before: float) -> dict[str, int]:
    """Erase arms, contexts and vectors of decisions that closed before a time; how many of each stream.

    The fold goes on from a snapshot at the last reward that was forgotten, which is sealed by its own sha256. No
    server may have the file meanwhile.
    """
    _one_file(path, "export what may stay to a new one")
    store = SQLiteStore(path)
    try:
        store.run("PRAGMA secure_delete=ON")
        store.begin()
        found = {row.name: _forget(store, row.id, before) for row in store.streams()}
        store.run(
            "DELETE FROM arm_set WHERE id NOT IN (SELECT arm_set FROM decision WHERE arm_set IS NOT NULL)"
        )
        store.commit()
        store.checkpoint()
        store.run("VACUUM")
        store.checkpoint()
        return found
    except BaseException:
        store.rollback()
        raise
    finally:
        store.close()


def _forget(store: SQLiteStore, stream: int, before: float) -> int:
    cut = 0
    for reward in store.rewards(stream):
        if reward.at >= before:
            break
        cut = reward.seq
    eras = eras_of(store, stream)
    for place, (row, made) in enumerate(eras):
        end = eras[place + 1].row.begun_at if place + 1 < len(eras) else cut
        base = min(cut, end)
        if base <= max(row.first, row.base):
            continue
        fold = resume(store, row, made, upto=base)
        kept = row._replace(base=base)
        store.run("UPDATE era SET base = ?, seal = ? WHERE stream = ? AND number = ?",
                  values=(base, seal(kept), stream, row.number))  # fmt: skip
        store.add_snapshot(fold.snapshot_behind())
    count = 0
    for reward in list(store.rewards(stream, 0, cut)):
        bare = reward._replace(x=None)
        store.run("UPDATE reward SET x = NULL, seal = ? WHERE stream = ? AND seq = ?",
                  values=(seal(bare), stream, reward.seq))  # fmt: skip
        decision = store.decision(stream, reward.id)
        if decision is not None and decision.arm_set is not None:
            empty = decision._replace(arm_set=None, context=None, candidates=None, unit=None)
            store.run("UPDATE decision SET arm_set = NULL, context = NULL, candidates = NULL, unit = NULL, seal = ? "
                      "WHERE stream = ? AND seq = ?", values=(seal(empty), stream, decision.seq))  # fmt: skip
            count += 1
    return count


def create_key(path: str | Path, scopes: str, stream: str, name: str) -> str:
    """A new key, which is shown this once; a server that runs takes it within a second."""
    checked = checked_scopes(scopes)
    if stream != "*":
        checked_name(stream)
    key = new_key()
    store = open_store(path, lock=False)
    try:
        store.begin()
        store.run("INSERT INTO key (sha256, name, scopes, stream, created) VALUES (?, ?, ?, ?, ?)",
                  values=(hashed(key), name, checked, stream, time.time()))  # fmt: skip
        store.changed()
        store.commit()
    finally:
        store.close()
    return key


def revoke_key(path: str | Path, number: int) -> None:
    """A key that is no longer good, within a second."""
    store = open_store(path, lock=False)
    try:
        store.begin()
        changed = store.run("UPDATE key SET revoked = ? WHERE id = ? AND revoked IS NULL",
                            values=(time.time(), number)).rowcount  # fmt: skip
        store.changed()
        store.commit()
    finally:
        store.close()
    if not changed:
        raise BadInput("key", number, "the number of a key that is good", "driftwise keys list shows them")


def keys(path: str | Path) -> list[KeyRow]:
    """The keys that are good; of each only a digest is known."""
    store = open_store(path, writes=False)
    try:
        found: list[KeyRow] = store.keys()
        return found
    finally:
        store.close()
