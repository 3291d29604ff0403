"""F5 and F6: changed bytes are reported and never become numbers; with a full disk writes are refused until there is
space again."""

import random
import shutil
import sqlite3

import numpy as np
import pytest

from driftwise.errors import BadInput, DriftwiseError
from driftwise.service.core.serving import Service
from driftwise.service.core.verify import verify
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.stores.store import seal
from driftwise.service.stores.wal import damage_of
from service.desk import Desk, arms_of
from service.living import living


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder as a killed server leaves it: a database, its write-ahead log, and the acknowledged requests."""
    folder = tmp_path_factory.mktemp("killed")
    desk, rng, kept = Desk(folder / "a.db"), np.random.default_rng(0), {}
    for number in range(60):
        kept[str(number)] = desk.decide(arms_of(rng), id=str(number)).seq
        desk.commit()
        if number % 3:
            desk.reward(str(number), 1.0)
            desk.commit()
        if number == 30:
            desk.store.checkpoint()
            desk.store.begin()
            desk.store.add_snapshot(desk.stream.fold.snapshot_behind())
            desk.store.commit()
    aside = tmp_path_factory.mktemp("as-it-was")
    for name in ("a.db", "a.db-wal", "a.db.lock"):
        shutil.copy(folder / name, aside / name)
    digest = desk.stream.fold.digest()
    desk.close()
    return aside, kept, digest


def opened(folder, kept, digest):
    """None if everything acknowledged is there and is recomputed; otherwise the error."""
    try:
        store = SQLiteStore(folder / "a.db")
        try:
            service = Service(store)
            assert service.stream("home").fold.digest() == digest
            assert all(store.decision(1, id).seq == seq for id, seq in kept.items())
        finally:
            store.close()
        (found,) = verify(folder / "a.db")
        if found.differs:
            return found.differs[0]
        assert (found.digest, found.decisions) == (digest, len(kept))
        return None
    except DriftwiseError as error:
        return str(error)


def test_what_a_kill_leaves_opens_whole(killed, tmp_path):
    shutil.copytree(killed[0], tmp_path / "x")
    assert opened(tmp_path / "x", *killed[1:]) is None


@pytest.mark.parametrize("name", ("a.db", "a.db-wal"))
def test_a_changed_byte_is_named_or_changes_nothing(killed, tmp_path, name):
    rng, told, kept = random.Random(name), 0, killed
    if name == "a.db":  # all of it in the file itself
        shutil.copytree(killed[0], tmp_path / "whole")
        SQLiteStore(tmp_path / "whole" / "a.db").close()
        killed = (tmp_path / "whole", *kept[1:])
    size = (killed[0] / name).stat().st_size
    last = 4096 + 24 if name == "a.db-wal" else 0  # the very last frame: see wal.py
    for number in range(100):
        folder = tmp_path / str(number)
        shutil.copytree(killed[0], folder)
        raw = bytearray((folder / name).read_bytes())
        raw[rng.randrange(size - last)] ^= 1 << rng.randrange(8)
        (folder / name).write_bytes(raw)
        sentence = opened(folder, *killed[1:])
        if sentence is not None:
            assert "a.db" in sentence or "home" in sentence, sentence
            told += 1
    assert told >= (95 if name == "a.db-wal" else 10)  # much of a database is empty space


@pytest.mark.parametrize("same_boot", (True, False))
def test_a_log_that_was_cut_is_its_beginning_and_one_with_a_hole_is_refused(killed, tmp_path, same_boot):
    raw = (killed[0] / "a.db-wal").read_bytes()
    database, rng, frame = tmp_path / "a.db", random.Random(1), 4096 + 24
    log = tmp_path / "a.db-wal"
    for _ in range(20):
        log.write_bytes(raw[: rng.randrange(len(raw))])
        assert damage_of(database, same_boot) == ""
    for _ in range(20):
        place = rng.randrange(32, len(raw) - 12 * frame)
        log.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        assert "was changed" in damage_of(database, same_boot)


def test_power_that_fails_in_the_last_transaction_is_no_damage(killed, tmp_path):
    """Any part of a transaction that was not synced may be missing after a power cut."""
    raw = bytearray((killed[0] / "a.db-wal").read_bytes())
    frame = 4096 + 24
    count = (len(raw) - 32) // frame
    commits = [at for at in range(count) if any(raw[32 + at * frame + 4 : 32 + at * frame + 8])]
    assert commits[-1] == count - 1 and commits[-2] < count - 2
    at = 32 + (commits[-2] + 1) * frame
    raw[at : at + frame] = bytes(frame)
    (tmp_path / "a.db-wal").write_bytes(raw)
    assert damage_of(tmp_path / "a.db", same_boot=False) == ""
    assert damage_of(tmp_path / "a.db", same_boot=True) != ""


def test_a_full_disk_refuses_writes_says_why_and_goes_on_when_there_is_room(tmp_path):
    rng = np.random.default_rng(0)
    with living(tmp_path / "a.db", pages=60) as asked:
        assert asked.put().status_code == 201
        statuses = []
        for number in range(400):
            arms = (rng.normal(size=(100, 2)) / 10).tolist()
            statuses.append(asked.decide(str(number), arms=arms).status_code)
            if statuses[-1] != 200:
                break
        assert statuses[-1] == 507 and len(statuses) > 20
        health = asked.get("/healthz")
        assert health.status_code == 503 and health.json()["status"] == "full" and "full" in health.json()["reason"]
        before = asked.stream()
        assert asked.decide("x", arms=arms).status_code == 507 and asked.stream() == before
        assert asked.decide("0").status_code == 409  # requests that need no space are answered
        asked.service.store._database.execute("PRAGMA max_page_count=4000")
        assert asked.decide(str(number), arms=arms).json()["seq"] == len(statuses)
        assert asked.reward(str(number), 1.0).json()["seq"] == 1
        assert asked.get("/healthz").json() == {"status": "fine"}
    assert not verify(tmp_path / "a.db")[0].differs


def test_verify_finds_what_seals_do_not(tmp_path):
    """A changed row with a new seal, a changed digest, a missing reward."""
    desk, rng = Desk(tmp_path / "a.db"), np.random.default_rng(3)
    for number in range(30):
        desk.decide(arms_of(rng), id=str(number))
        desk.commit()
        desk.reward(str(number), 1.0)
        desk.commit()
    rows = list(desk.store.decisions(1))
    value = next(desk.store.rewards(1))
    desk.close()
    forged = rows[20]._replace(score=rows[20].score + 1e-15)
    other = value._replace(value=0.5)
    for change, values in (
        ("UPDATE decision SET score = ?, seal = ? WHERE seq = 21", (forged.score, seal(forged))),
        ("UPDATE reward SET value = ?, seal = ? WHERE seq = 1", (0.5, seal(other))),
        ("DELETE FROM reward WHERE seq = ?", (7,)),
        ("DELETE FROM decision WHERE seq = ?", (30,)),
        ("INSERT INTO digest VALUES (1, 1, 10, ?)", ("0" * 64,)),
    ):
        shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
        raw = sqlite3.connect(tmp_path / "b.db")
        assert raw.execute(change, values).rowcount == 1
        raw.commit()
        raw.close()
        assert verify(tmp_path / "b.db")[0].differs, change
    assert not verify(tmp_path / "a.db")[0].differs
    with pytest.raises(BadInput, match="that exists"):
        verify(tmp_path / "c.db")
