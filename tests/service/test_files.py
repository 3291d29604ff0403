"""The files of a database: one server per file under any name, its own write-ahead log, restored backups, modes."""

import os
import shutil
import subprocess
import sys
from itertools import product

import httpx
import numpy as np
import pytest

from driftwise._internal import files
from driftwise.errors import BadInput
from driftwise.service.core import forgetting
from driftwise.service.core.verify import verify
from driftwise.service.operate import restoring
from driftwise.service.operate.keeping import backup, create_key, keys
from driftwise.service.operate.restoring import restore
from driftwise.service.stores.records import Broken, Damaged, Taken
from driftwise.service.stores.sqlite import SQLiteStore
from service.desk import Desk, arms_of
from service.loading import Server
from service.nursery import Nursery
from service.test_commands import filled, told

NURSERY = Nursery()

ELSEWHERE = """
import sys
from driftwise.service.stores.sqlite import SQLiteStore
for line in sys.stdin:
    try:
        SQLiteStore(line.strip()).close()
        print("opened", flush=True)
    except Exception as slip:
        print(f"{type(slip).__name__}: {slip}", flush=True)
"""


@pytest.fixture
def elsewhere():
    """The result of another process that opens a database as a server does."""
    with subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdin=-1, stdout=-1, text=True) as process:

        def ask(path):
            print(path, file=process.stdin, flush=True)
            return process.stdout.readline()

        yield ask
        process.stdin.close()


def locks_of(path):
    """Record locks on a file, as the system lists them."""
    number = f":{path.stat().st_ino} "
    with open("/proc/locks") as file:
        return sorted(line.split()[1] for line in file if number in line)


def crashed(folder, **more):
    """A database as a killed server leaves it, whose write-ahead log has rows that the file lacks; and its digest."""
    desk = filled(folder / "live.db", **more)
    folder.joinpath("as-it-was").mkdir()
    for ending in ("", "-wal"):
        shutil.copy(folder / f"live.db{ending}", folder / "as-it-was" / f"a.db{ending}")
    digest = desk.stream.fold.digest()
    desk.close()
    return folder / "as-it-was" / "a.db", digest


# ------------------------------------------------------------------------------------------ the lock


def test_a_database_has_one_server_by_whatever_name_it_is_called(tmp_path, elsewhere):
    store = SQLiteStore(tmp_path / "a.db")
    (tmp_path / "there").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    (tmp_path / "there" / "far.db").symlink_to(tmp_path / "link.db")
    names = [tmp_path / "link.db", tmp_path / "there" / "far.db"]
    for name in names:
        with pytest.raises(Taken, match=f"process {os.getpid()} "):
            SQLiteStore(name)
        with pytest.raises(Taken, match="forget to that server"):
            forgetting.forget(name, 0.0)
        found = elsewhere(name)
        assert found.startswith("Taken") and f"process {os.getpid()} " in found
    (tmp_path / "a.db.lock").unlink()  # the lock is on the file itself
    for name in (tmp_path / "a.db", *names):
        assert elsewhere(name).startswith("Taken")
    store.close()
    assert elsewhere(tmp_path / "link.db") == "opened\n"
    assert not list(tmp_path.glob("link.db-*")) and not list(tmp_path.glob("link.db.*"))


def test_a_database_with_a_hard_link_is_refused_by_either_name(tmp_path):
    desk = filled(tmp_path / "a.db", rounds=3)
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    with pytest.raises(Taken):
        SQLiteStore(tmp_path / "b.db")
    desk.close()
    for name in ("a.db", "b.db"):
        for attempt in (SQLiteStore, verify, keys, lambda path: create_key(path, "decide", "*", "")):
            with pytest.raises(BadInput, match="2 names"):
                attempt(tmp_path / name)
    (tmp_path / "b.db").unlink()
    assert not verify(tmp_path / "a.db")[0].differs


def test_an_attempt_to_take_a_database_leaves_the_locks_of_sqlite(tmp_path):
    """Closing a descriptor of a file drops all record locks of the process on it, those of SQLite too."""
    store = SQLiteStore(tmp_path / "a.db")
    before = locks_of(tmp_path / "a.db")
    assert "OFDLCK" in before and "POSIX" in before
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    for name in ("a.db", "link.db"):
        with pytest.raises(Taken):
            SQLiteStore(tmp_path / name)
    store.reader().close()
    create_key(tmp_path / "link.db", "decide", "*", "")
    assert locks_of(tmp_path / "a.db") == before
    store.close()
    assert locks_of(tmp_path / "a.db") == []


@pytest.mark.parametrize(("ending", "how"), [*product(("", "-wal"), ("removed", "replaced")), ("", "copied over")])
def test_nothing_is_committed_to_a_file_that_was_removed_or_replaced(tmp_path, ending, how):
    desk, path = filled(tmp_path / "a.db", rounds=3), tmp_path / f"a.db{ending}"
    if how == "replaced":
        shutil.copy(path, tmp_path / "other")
        (tmp_path / "other").replace(path)
    elif how == "removed":
        path.unlink()
    else:
        backup(path, tmp_path / "b.db")
        shutil.copyfile(tmp_path / "b.db", path)
    desk.decide(arms_of(np.random.default_rng(0)), id="more")
    with pytest.raises(Broken, match="removed or replaced"):
        desk.commit()
    desk.store.rollback()
    desk.close()


@pytest.mark.parametrize("asked", (True, False))
def test_a_server_whose_database_was_replaced_ends_with_4_and_answers_nothing(tmp_path, asked):
    server = Server(tmp_path / "a.db", nursery=NURSERY)
    server.put()
    backup(tmp_path / "a.db", tmp_path / "b.db")
    (tmp_path / "b.db").replace(tmp_path / "a.db")
    if asked:
        with pytest.raises(httpx.HTTPError):
            httpx.post(f"{server.url}/v1/streams/home/decide", json={"arms": [[1.0, 0.0]], "id": "x"}, timeout=20)
    else:
        server.process.terminate()
    assert server.process.wait(10) == 4
    server.end()
    with pytest.raises(BadInput, match="of another database"):  # its write-ahead log is still there
        SQLiteStore(tmp_path / "a.db")


# ------------------------------------------------------------------------------------------ restore


def test_a_backup_copied_over_a_crashed_database_is_refused_and_not_mixed_with_its_log(tmp_path):
    old = filled(tmp_path / "old.db", rounds=20)
    backup(tmp_path / "old.db", tmp_path / "backup.db")
    old.close()
    path, _ = crashed(tmp_path)
    shutil.copyfile(tmp_path / "backup.db", path)
    kept = path.with_name("a.db-wal").read_bytes()
    for attempt in (SQLiteStore, verify, lambda path: backup(path, tmp_path / "c.db")):
        with pytest.raises(BadInput, match=r"of another database.*restore"):
            attempt(path)
    path.unlink()  # SQLite removes a log without a database
    with pytest.raises(BadInput, match=r"empty or missing.*of another database"):
        SQLiteStore(path)
    assert path.with_name("a.db-wal").read_bytes() == kept


def test_a_restored_backup_is_the_database_it_was_made_of(tmp_path, capsys):
    """Made from a database in use and restored over a crashed one: it has the same digests, and continues."""
    desk = filled(tmp_path / "in-use.db", rounds=40)
    digest = desk.stream.fold.digest()
    assert told(capsys, "backup", tmp_path / "in-use.db", "--out", tmp_path / "backup.db")[0] == 0
    desk.close()
    path, newer = crashed(tmp_path)
    code, _, err = told(capsys, "restore", tmp_path / "backup.db", path)
    assert code == 2 and "--replace" in err
    code, out, err = told(capsys, "restore", tmp_path / "backup.db", path, "--replace")
    assert code == 0, err
    assert sorted(one.name for one in path.parent.glob("*")) == sorted(
        ["a.db", "a.db.lock", *(one.name for one in path.parent.glob("a.db.replaced-*"))]
    )
    (found,) = verify(path)
    assert not found.differs and (found.digest, found.decisions) == (digest, 40)
    again = Desk(path)
    assert again.stream.fold.digest() == digest
    assert again.decide(arms_of(np.random.default_rng(5)), id="more").seq == 41
    again.commit()
    again.close()
    kept = next(path.parent.glob("a.db.replaced-*Z"))
    assert str(kept) in out and kept.with_name(kept.name + "-wal").exists()
    again = Desk(kept)  # the old database, with everything in its log
    assert again.stream.fold.digest() == newer
    again.close()


def killed(*_):
    raise KeyboardInterrupt


def test_a_restore_that_is_killed_in_between_is_refused_until_it_is_run_again(tmp_path, monkeypatch):
    old = filled(tmp_path / "old.db", rounds=20)
    backup(tmp_path / "old.db", tmp_path / "backup.db")
    digest = old.stream.fold.digest()
    old.close()
    for place, sentence in (((restoring, "settle_files"), "2 names"), ((files, "sync_folder"), "of another database")):
        (tmp_path / place[1]).mkdir()
        path, _ = crashed(tmp_path / place[1])
        with monkeypatch.context() as patch:
            patch.setattr(*place, killed)
            with pytest.raises(KeyboardInterrupt):
                restore(tmp_path / "backup.db", path, replace=True)
        with pytest.raises(BadInput, match=sentence):
            SQLiteStore(path)
        restore(tmp_path / "backup.db", path, replace=True)
        (found,) = verify(path)
        assert not found.differs and found.digest == digest


def test_restore_refuses_what_is_no_backup_and_a_database_in_use(tmp_path, capsys):
    desk = filled(tmp_path / "a.db", rounds=10)
    backup(tmp_path / "a.db", tmp_path / "b.db")
    code, _, err = told(capsys, "restore", tmp_path / "b.db", tmp_path / "a.db", "--replace")
    assert code == 3 and f"process {os.getpid()} " in err
    with pytest.raises(BadInput, match="with a WAL"):
        restore(tmp_path / "a.db", tmp_path / "new.db")
    desk.close()
    with pytest.raises(BadInput, match="the database itself"):
        restore(tmp_path / "a.db", tmp_path / "a.db", replace=True)
    for db in ("postgresql://x/y", tmp_path / "new.db"):
        (tmp_path / "dump").write_bytes(b"PGDMP\x01\x0e")
        with pytest.raises(BadInput, match="pg_restore"):
            restore(tmp_path / "dump", db)
    (tmp_path / "text").write_text("no database at all")
    with pytest.raises(BadInput):
        restore(tmp_path / "text", tmp_path / "new.db")
    raw = bytearray((tmp_path / "b.db").read_bytes())
    place = raw.rindex(b"0-7")  # an id in a row
    raw[place + 2] ^= 1
    (tmp_path / "b.db").write_bytes(raw)
    with pytest.raises((Damaged, BadInput)):
        restore(tmp_path / "b.db", tmp_path / "new.db")
    assert not list(tmp_path.glob("new.db*")) and not list(tmp_path.glob("*.tmp"))


def test_backup_beside_a_server_then_restore_then_serve_has_the_same_digest(tmp_path):
    server = Server(tmp_path / "a.db", nursery=NURSERY)
    server.put()
    rng = np.random.default_rng(0)
    for number in range(30):
        arms = (rng.normal(size=(3, 2)) / 4).tolist()
        httpx.post(f"{server.url}/v1/streams/home/decide", json={"arms": arms, "id": str(number)}, timeout=20)
        httpx.post(f"{server.url}/v1/streams/home/reward", json={"id": str(number), "value": 1}, timeout=20)
    backup(tmp_path / "a.db", tmp_path / "b.db")
    digest = server.stream()["digest"]
    with pytest.raises(Taken):
        restore(tmp_path / "b.db", tmp_path / "a.db", replace=True)
    server.kill()
    restore(tmp_path / "b.db", tmp_path / "a.db", replace=True)
    server = Server(tmp_path / "a.db", nursery=NURSERY)
    assert server.stream()["digest"] == digest
    server.kill()
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs and found.digest == digest


# ------------------------------------------------------------------------------------------ modes


def modes(folder):
    return {one.name: oct(one.stat().st_mode & 0o777) for one in folder.iterdir() if one.is_file()}


def test_files_of_a_service_are_readable_by_their_owner_alone(tmp_path, capsys):
    before = os.umask(0)
    try:
        desk = filled(tmp_path / "a.db", rounds=5)
        backup(tmp_path / "a.db", tmp_path / "b.db")
        restore(tmp_path / "b.db", tmp_path / "c.db")
        create_key(tmp_path / "d.db", "decide", "*", "")
        assert told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log")[0] == 0
        found = modes(tmp_path) | modes(tmp_path / "log")
        assert {"a.db", "a.db-wal", "a.db-shm", "a.db.lock", "b.db", "c.db", "d.db"} < set(found)
        assert set(found.values()) == {"0o600"}, found
        desk.close()
        (tmp_path / "a.db").chmod(0o640)  # a mode that the owner set is kept
        desk = filled(tmp_path / "a.db", rounds=2, seed=1)
        assert modes(tmp_path)["a.db"] == modes(tmp_path)["a.db-wal"] == "0o640"
        desk.close()
        restore(tmp_path / "b.db", tmp_path / "a.db", replace=True)
        assert modes(tmp_path)["a.db"] == "0o640"
    finally:
        os.umask(before)
