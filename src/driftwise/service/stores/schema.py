"""The tables of a SQLite database, and how an older database becomes a newer one.

Rows that states and answers depend on end in a seal, a checksum of the row as it was written. Rows are stored in the
order of their numbers: a state reads consecutive pages of the file, and a new row is appended.
"""

from __future__ import annotations

import sqlite3

from driftwise.errors import BadInput

APPLICATION = 0x44574953  # the application id in SQLite's header: "DWIS"

_FIRST = """
CREATE TABLE stream (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created REAL NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0, seal INTEGER NOT NULL);
CREATE TABLE era (stream INTEGER NOT NULL, number INTEGER NOT NULL, after INTEGER NOT NULL, first INTEGER NOT NULL,
    begun_at INTEGER NOT NULL, origin INTEGER NOT NULL, body TEXT NOT NULL, policy TEXT NOT NULL,
    base INTEGER NOT NULL, seal INTEGER NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE arm_set (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, n INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE decision (stream INTEGER NOT NULL, seq INTEGER NOT NULL, event_id TEXT NOT NULL, era INTEGER NOT NULL,
    state_seq INTEGER NOT NULL, born INTEGER NOT NULL, at REAL NOT NULL, arm_set INTEGER, n INTEGER NOT NULL,
    arm INTEGER NOT NULL, item TEXT, propensity REAL, proposed INTEGER NOT NULL, share REAL, score REAL, mean REAL,
    bonus REAL, explored INTEGER NOT NULL, draws INTEGER NOT NULL, cohort TEXT NOT NULL, unit INTEGER, context TEXT,
    candidates TEXT, seal INTEGER NOT NULL, PRIMARY KEY (stream, seq), UNIQUE (stream, event_id)) WITHOUT ROWID;
CREATE TABLE reward (stream INTEGER NOT NULL, seq INTEGER NOT NULL, event_id TEXT NOT NULL, value REAL NOT NULL,
    tick INTEGER NOT NULL, at REAL NOT NULL, verdict TEXT NOT NULL, learned INTEGER NOT NULL, born INTEGER NOT NULL,
    x BLOB, seal INTEGER NOT NULL, PRIMARY KEY (stream, seq), UNIQUE (stream, event_id)) WITHOUT ROWID;
CREATE TABLE snapshot (stream INTEGER NOT NULL, era INTEGER NOT NULL, seq INTEGER NOT NULL, tick INTEGER NOT NULL,
    data BLOB NOT NULL, seal INTEGER NOT NULL, UNIQUE (stream, era, seq));
CREATE TABLE digest (stream INTEGER NOT NULL, era INTEGER NOT NULL, seq INTEGER NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (stream, era, seq)) WITHOUT ROWID;
CREATE TABLE item (stream INTEGER NOT NULL, name TEXT NOT NULL, row TEXT NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (stream, name)) WITHOUT ROWID;
CREATE TABLE key (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, name TEXT NOT NULL, scopes TEXT NOT NULL,
    stream TEXT NOT NULL, created REAL NOT NULL, revoked REAL);
"""

# Why an era began, and which machine and version computed it; unknown for older eras.
_ORIGIN = """
CREATE TABLE era_of_version_2 (stream INTEGER NOT NULL, number INTEGER NOT NULL, after INTEGER NOT NULL,
    first INTEGER NOT NULL, begun_at INTEGER NOT NULL, origin INTEGER NOT NULL, body TEXT NOT NULL,
    policy TEXT NOT NULL, base INTEGER NOT NULL, reason TEXT, probe TEXT, sources TEXT, seal INTEGER NOT NULL,
    PRIMARY KEY (stream, number)) WITHOUT ROWID;
INSERT INTO era_of_version_2 SELECT stream, number, after, first, begun_at, origin, body, policy, base,
    NULL, NULL, NULL, seal FROM era;
DROP TABLE era;
ALTER TABLE era_of_version_2 RENAME TO era
"""

# Steps of a stream that are neither decisions nor rewards; what only some decisions and rewards have; messages to send.
_EVENTS = """
CREATE TABLE event (stream INTEGER NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL,
    decided INTEGER NOT NULL, rewarded INTEGER NOT NULL, body TEXT NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)) WITHOUT ROWID;
CREATE TABLE detail (stream INTEGER NOT NULL, seq INTEGER NOT NULL, allowed BLOB, cost BLOB, trace TEXT, ramp REAL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
CREATE TABLE guardrail (stream INTEGER NOT NULL, seq INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (stream, seq, name)) WITHOUT ROWID;
CREATE TABLE notice (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, at REAL NOT NULL, due REAL NOT NULL,
    tries INTEGER NOT NULL, body TEXT NOT NULL)
"""

# Step i takes a database of version i to version i + 1.
STEPS: tuple[str, ...] = (_FIRST, _ORIGIN, _EVENTS)
VERSION = len(STEPS)


def version_of(database: sqlite3.Connection, path: object) -> int:
    """The version of a driftwise database, 0 for an empty file; BadInput for a file of another program."""
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    empty = not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and not (empty and version == 0):
        raise BadInput("db", f"{path}, of another program", "a database that driftwise serve wrote", "pass its path")
    if version > VERSION:
        wanted = f"at most version {VERSION}, the newest that this driftwise knows"
        raise BadInput("db", f"{path} of version {version}", wanted, "use the driftwise that wrote it, or a newer one")
    return version


def migrate(database: sqlite3.Connection, path: object) -> None:
    """Migrate a database to this version, one transaction per step. After a kill each step is done or not done."""
    version = version_of(database, path)
    for number in range(version, VERSION):
        step(database, number)


def step(database: sqlite3.Connection, number: int) -> None:
    """One step, in one transaction."""
    database.execute("BEGIN IMMEDIATE")
    try:
        for statement in STEPS[number].split(";\n"):
            if statement.strip():
                database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {number + 1}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
