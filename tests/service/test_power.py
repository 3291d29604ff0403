"""F4 at a small size: servers start on disks as a power cut may leave them; without syncs the test finds losses."""

import shutil
import sqlite3

import pytest

from driftwise.service.stores.wal import damage_of
from service import powercut

if powercut.compiler() is None:
    pytest.skip("no C compiler here, so that nothing could be recorded", allow_module_level=True)


def test_after_a_power_cut_all_that_was_acknowledged_is_there(tmp_path):
    row = powercut.power_cuts(images=40, seconds=0.6)
    assert row.wrong == [] and row.waited > 40  # there were unsynced writes
    assert row.answers.unsynced == 0 and row.answers.count > row.decisions > 50 and row.answers.repeats > 0


def test_a_server_that_syncs_nothing_is_found_out(tmp_path):
    row = powercut.power_cuts("unsynced", images=10, seconds=0.4, lives=1)
    assert len(row.wrong) > 3 and row.answers.unsynced == row.answers.count > 50


FRAME = 4096 + 24


@pytest.fixture
def generations(tmp_path):
    """A write-ahead log that was restarted: frames of a new transaction, then frames of the older log."""
    database = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL").fetchone()
    database.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, text BLOB)")
    for number in range(30):  # one or two frames per commit
        database.execute("INSERT INTO kept VALUES (?, randomblob(3000))", (number,))
    database.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
    log = tmp_path / "a.db-wal"
    old = log.read_bytes()
    with database:
        database.execute("BEGIN")
        database.execute("UPDATE kept SET text = randomblob(3000)")
    new = log.read_bytes()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    yield tmp_path / "b.db", tmp_path / "b.db-wal", old, bytearray(new)
    database.close()


def test_what_an_older_log_left_where_a_write_was_lost_is_no_damage(generations):
    """Commit marks of the older log do not count. Found by a power cut, after which a server refused to start."""
    database, log, old, new = generations
    marks = [at for at in range(1, 20) if any(old[32 + at * FRAME + 4 : 32 + at * FRAME + 8])]
    assert marks
    for at in marks:
        start = 32 + at * FRAME
        log.write_bytes(new[:start] + old[start : start + FRAME] + new[start + FRAME :])
        assert damage_of(database, same_boot=False) == ""
        assert damage_of(database, same_boot=True) != ""


def test_half_a_head_of_a_frame_is_no_damage(generations):
    """Frame 41 has its mark at the end of one sector and its salts at the start of the next."""
    database, log, _, new = generations
    start = 32 + 41 * FRAME
    assert (start + 8) % powercut.SECTOR == 0
    frames = bytearray(new[: 32 + 20 * FRAME]).ljust(32 + 45 * FRAME, b"\0")
    salts = new[16:24]
    for at in range(40, 44):  # the last transaction, of which 40 was lost, and 41 kept an older mark
        head = 32 + at * FRAME
        frames[head : head + 16] = (7).to_bytes(4) + (9 if at == 41 else 0).to_bytes(4) + bytes(salts)
    log.write_bytes(frames)
    assert damage_of(database, same_boot=False) == ""
