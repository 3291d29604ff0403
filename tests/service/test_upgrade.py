"""F13: every golden database opens, verifies and has its digests; an upgrade is atomic; a downgrade is refused."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from driftwise._internal.machine import probe
from driftwise.service.core.access import Access
from driftwise.service.core.serving import Service
from driftwise.service.core.verify import verify
from driftwise.service.stores.schema import VERSION
from driftwise.service.stores.sqlite import SQLiteStore
from golden.databases.make import live
from service.living import living
from service.loading import Server
from service.nursery import Nursery

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "databases"
NURSERY = Nursery()


def version(path):
    with sqlite3.connect(path) as raw:
        tables = raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        found = raw.execute("PRAGMA user_version").fetchone()[0], tables
    raw.close()
    return found


@pytest.fixture(params=sorted(path.stem for path in GOLDEN.glob("*.db")))
def golden(request, tmp_path):
    """A copy of a golden database, and its stored facts. Its digests are those of the version that made it."""
    shutil.copy(GOLDEN / f"{request.param}.db", tmp_path / "a.db")
    return tmp_path / "a.db", json.loads((GOLDEN / f"{request.param}.json").read_text(encoding="utf-8"))


COUNTS = ("decisions", "rewards", "forgotten")


def facts(path):
    """The content of a database without damage."""
    found = verify(path)
    assert not [told for one in found for told in one.differs]
    return {one.name: {name: getattr(one, name) for name in COUNTS} for one in found}


def counts(known):
    return {name: {one: fact[one] for one in COUNTS} for name, fact in known.items()}


def test_every_version_has_a_golden_database():
    assert sorted(path.stem for path in GOLDEN.glob("*.db")) == [str(number + 1) for number in range(VERSION)]


def test_a_golden_database_opens_verifies_and_is_folded_here_where_its_bits_are_others(golden):
    """The digests of versions 1 and 2 are of functions of the C library. Auto has been revised since version 3."""
    path, known = golden
    theirs = version(path)[0] < 3
    service = Service(SQLiteStore(path))
    digests = {name: stream.fold.digest() for name, stream in service.engine.streams.items()}
    service.close()
    assert facts(path) == counts(known) and version(path)[0] == VERSION
    found = {one.name: one for one in verify(path)}
    assert {name: one.digest for name, one in found.items()} == digests
    begun = {name for name, one in found.items() if one.eras != known[name]["eras"]}
    assert all(found[name].eras == known[name]["eras"] + 1 for name in begun) and ("window" in begun) == theirs
    assert {name for name in known if digests[name] != known[name]["digest"]} <= begun and "auto" in begun
    assert {name for name, one in found.items() if one.foreign} == begun - {"auto"}
    assert [name for name, one in found.items() if one.revised] == ["auto"]


def test_a_golden_database_goes_on(golden):
    path, known = golden
    now = [1_800_000_000.0]
    with living(path, now=lambda: now[0]) as asked:
        asked.service.access = Access([])  # open, even if there are keys
        live(asked, now, 12, "since", 5)
        digests = {name: asked.stream(name)["digest"] for name in known}
    found = facts(path)
    assert {one.name: one.digest for one in verify(path)} == digests
    assert all(found[name]["decisions"] == known[name]["decisions"] + 12 for name in known)
    with closing(SQLiteStore(path, writes=False)) as store:  # from now on it records the machine
        assert {store.eras(row.id)[-1].probe for row in store.streams()} == {probe()}


def test_killed_in_an_upgrade_it_is_the_database_it_was_and_none_goes_back(golden):
    path, known = golden
    for number in range(version(path)[0], VERSION + 1):  # every remaining step, and one more
        before = version(path)
        server = Server(path, f"kill:in-upgrade:{number}", wait=False, nursery=NURSERY)
        server.end()
        assert server.process.returncode == -9
        assert facts(path) == counts(known) and version(path)[0] == number
        assert number > before[0] or version(path) == before
    server = Server(path, "next", nursery=NURSERY)  # now it is not killed
    server.kill()
    assert version(path)[0] == VERSION + 1
    with pytest.raises(AssertionError, match=f"at most version {VERSION}"):
        Server(path, nursery=NURSERY)
    assert version(path)[0] == VERSION + 1
