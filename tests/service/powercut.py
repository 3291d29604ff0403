"""F4, a power cut: what a server writes is recorded as it happens (record.c). Disks are made from the record as a power
cut at a random moment might have left them: everything that was synced before, and any part of the rest, torn at
sectors.

A server must start on each of these disks, and everything that was acknowledged before the moment must be there. An
answer that is sent too early is found too: its row must be on a disk that has only what was synced before.
"""

import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from driftwise.errors import DriftwiseError
from driftwise.service.core.serving import Service
from driftwise.service.stores.sqlite import SQLiteStore
from service.loading import Clients, Server, wrong

WRITE, CUT, REMOVE, SYNC_BEGINS, SYNC_ENDS, SENT = range(6)
SUFFIXES = ("", "-wal")  # the files by their number; -shm is made again after a cut, and the lock is not read
SECTOR = 512
_ENTRY = struct.Struct("<QIIQQ")


class Entry(NamedTuple):
    """One action of a server."""

    time: int  # time.monotonic_ns at that moment
    kind: int
    file: int
    offset: int
    data: bytes


def compiler():
    return shutil.which("cc") or shutil.which("gcc")


def compiled(folder):
    """The recorder, compiled here."""
    made = folder / "record.so"
    source = Path(__file__).with_name("record.c")
    subprocess.run([compiler(), "-O2", "-shared", "-fPIC", "-o", made, source, "-ldl", "-lpthread"], check=True)
    return made


def read(path):
    """All entries of a record."""
    raw, at, found = path.read_bytes(), 0, []
    while at + _ENTRY.size <= len(raw):
        time, kind, file, offset, length = _ENTRY.unpack_from(raw, at)
        at += _ENTRY.size
        data = raw[at : at + length] if kind in (WRITE, SENT) else b""
        at += len(data)
        found.append(Entry(time, kind, file, offset, data))
    return found


# ------------------------------------------------------------------------------------------ disks


def written(content, offset, data):
    """The content of a file after a write; None is no file. Gaps that were never written are zero."""
    content = bytearray() if content is None else content
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data
    return content


def done(content, entry):
    if entry.kind == REMOVE:
        return None
    if entry.kind == CUT:
        content = bytearray() if content is None else content
        return content[: entry.offset].ljust(entry.offset, b"\0")
    return written(content, entry.offset, entry.data)


def torn(content, entry, rng):
    """A write of which some sectors reached the disk."""
    at, end = entry.offset, entry.offset + len(entry.data)
    while at < end:
        stop = min(end, (at // SECTOR + 1) * SECTOR)
        if rng.random() < 0.5:
            content = written(content, at, entry.data[at - entry.offset : stop - entry.offset])
        at = stop
    return content


class Disk:
    """The content that is certainly on disk, and the writes since."""

    def __init__(self):
        self.certain = [None for _ in SUFFIXES]
        self.waiting = [[] for _ in SUFFIXES]
        self.marks = [0 for _ in SUFFIXES]

    def take(self, entry):
        waiting = self.waiting[entry.file]
        if entry.kind in (WRITE, CUT, REMOVE):
            waiting.append(entry)
        elif entry.kind == SYNC_BEGINS:
            self.marks[entry.file] = len(waiting)
        elif entry.kind == SYNC_ENDS:
            for one in waiting[: self.marks[entry.file]]:
                self.certain[entry.file] = done(self.certain[entry.file], one)
            del waiting[: self.marks[entry.file]]

    def after_a_cut(self, rng):
        """The files as a power cut at this moment may leave them."""
        found = []
        for certain, waiting in zip(self.certain, self.waiting, strict=True):
            content = None if certain is None else bytearray(certain)
            share = rng.choice((0.0, 0.5, 0.9, 1.0, rng.random()))  # the share of writes that reached the disk
            for one in waiting:
                if rng.random() >= share:
                    if one.kind == REMOVE:  # the file is still there, and later writes went into another one
                        break
                elif one.kind == WRITE and rng.random() < 0.3:
                    content = torn(content, one, rng)
                else:
                    content = done(content, one)
            found.append(content)
        return found


def put_down(files, folder):
    """Write the files of a disk into an empty folder. Returns the database."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for suffix, content in zip(SUFFIXES, files, strict=True):
        if content is not None:
            (folder / f"a.db{suffix}").write_bytes(content)
    return folder / "a.db"


# ------------------------------------------------------------------------------------------ checks


def started(db, acknowledged):
    """The errors when a server starts here after a cut."""
    try:
        store = SQLiteStore(db)
        with suppress(BaseException):
            store._database.execute("PRAGMA synchronous=OFF")  # this disk gets no second power cut
        try:
            service = Service(store)
        except BaseException:
            store.close()
            raise
        stream = service.engine.streams.get("home")
        digest = None if stream is None else stream.fold.digest()
        service.close()
        if stream is not None:
            return wrong(db, acknowledged, digest)
        lost = len(acknowledged.decided)
        return [f"the stream is not there, and {lost} decisions were acknowledged"] if lost else []
    except DriftwiseError as error:
        return [str(error)]


def until(clients, moment):
    """The answers that clients had before a moment."""

    def before(known, kind):
        return {id: answer for id, answer in known.items() if clients.times[kind, id] < moment}

    return SimpleNamespace(
        decided=before(clients.decided, "decide"), rewarded=before(clients.rewarded, "reward"), repeats=[]
    )


def cut(entries, clients, images, rng, folder):
    """Cuts at random entries: the errors of each, and the total number of unsynced writes."""
    moments = sorted(rng.randrange(1, len(entries)) for _ in range(images))
    disk, at, wrongs, waited = Disk(), 0, [], 0
    for moment in moments:
        while at < moment:
            disk.take(entries[at])
            at += 1
        waited += sum(map(len, disk.waiting))
        db = put_down(disk.after_a_cut(rng), folder)
        wrongs.append(started(db, until(clients, entries[moment].time)))
    return wrongs, waited


class Answers(NamedTuple):
    """Answers that a server sent, repeated answers among them, and answers whose row was not certainly on disk."""

    count: int
    repeats: int
    unsynced: int


def answers(entries, folder):
    """Check that the row of every answer was synced before the answer, on a disk with only synced writes."""
    disk, old = Disk(), True
    decided, rewarded, told = set(), set(), set()
    count = repeats = unsynced = 0
    for entry in entries:
        if entry.kind != SENT:
            disk.take(entry)
            old = old or entry.kind == SYNC_ENDS
            continue
        for kind, what in _told(entry.data):
            known = decided if kind == "decide" else rewarded
            if what not in known and old:
                _rows(put_down(disk.certain, folder), decided, rewarded)
                old = False
            count, repeats = count + 1, repeats + ((kind, what) in told)
            unsynced += what not in known
            told.add((kind, what))
    return Answers(count, repeats, unsynced)


def _told(data):
    """The sent answers: decisions by id and rewards by number."""
    body = data.partition(b"\r\n\r\n")[2] if data.startswith(b"HTTP/") else data
    with suppress(ValueError):
        found = json.loads(body)
        if "arm" in found:
            yield "decide", found["id"]
        elif "verdict" in found:
            yield "reward", found["seq"]


def _rows(db, decided, rewarded):
    if db.is_file():
        with closing(sqlite3.connect(db)) as found, suppress(sqlite3.OperationalError):  # the tables do not exist yet
            decided.update(id for (id,) in found.execute("SELECT event_id FROM decision WHERE stream = 1"))
            rewarded.update(seq for (seq,) in found.execute("SELECT seq FROM reward WHERE stream = 1"))


# ------------------------------------------------------------------------------------------ the row


class Cut(NamedTuple):
    """The result of the cuts of one record."""

    images: int
    wrong: list  # the errors of disks that had some
    waited: int  # unsynced writes in all disks together
    answers: Answers
    decisions: int


def recorded(folder, *what, seed=0, seconds=1.0, lives=2):
    """The record of several servers, one after the other, on a file, and their clients."""
    library, record, clients = compiled(folder), folder / "record", Clients(seed, clients=8)
    db = folder / "a.db"
    env = {**os.environ, "LD_PRELOAD": str(library), "DRIFTWISE_RECORD": str(record), "DRIFTWISE_RECORDED": str(db)}
    for _ in range(lives):
        server = Server(db, "often", "cramped", *what, env=env)
        server.put()
        clients.run(server.port, seconds)
        server.stop()
    return read(record), clients


def power_cuts(*what, seed=0, images=200, seconds=1.0, lives=2):
    """Record servers, and cut the power at so many moments."""
    shared = Path("/dev/shm")  # there are hundreds of disks
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        with tempfile.TemporaryDirectory() as real:
            entries, clients = recorded(Path(real), *what, seed=seed, seconds=seconds, lives=lives)
        wrongs, waited = cut(entries, clients, images, random.Random(seed), Path(name) / "cut")
        told = answers(entries, Path(name) / "certain")
    return Cut(images, [found for found in wrongs if found], waited, told, len(clients.decided))


if __name__ == "__main__":
    began = time.monotonic()
    print(power_cuts(images=60), time.monotonic() - began)
    print(power_cuts("unsynced", images=20, lives=1)._replace(wrong=[]), time.monotonic() - began)
