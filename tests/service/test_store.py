"""The laws of every store (store.py). PostgreSQL is added by a line of STORES."""

import hashlib
import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from driftwise.errors import BadInput
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import (
    Damaged,
    DecisionRow,
    DetailRow,
    DigestRow,
    EraRow,
    EventRow,
    Full,
    GuardrailRow,
    Lost,
    Rejected,
    RewardRow,
    SnapshotRow,
    Taken,
    WriteConflict,
)
from driftwise.service.stores.schema import STEPS, VERSION
from driftwise.service.stores.sqlite import SQLiteStore

STORES = ("postgres", "sqlite")


@pytest.fixture(params=STORES)
def opened(request, tmp_path):
    """A way to open the same store again and again."""
    made = []
    db = tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("database")

    def open_(**options):
        made.append(open_store(db, **options))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def decision(seq, id, arm_set=1):
    chosen = (2, 0, None, 0.5, 0, 0.5, 0.1, 0.1, 0.0, 0, 0)
    return DecisionRow(1, seq, id, 1, 0, seq, 1.5, arm_set, *chosen, "live", None, None, None)


def reward(seq, id, value=1.0):
    return RewardRow(1, seq, id, value, seq, 2.5, "learned", seq, seq, b"12345678")


def test_what_is_committed_is_there_for_the_next_and_what_is_rolled_back_never_was(opened):
    store = opened()
    store.begin()
    assert store.add_stream("home", 0.0) == 1
    store.add_era(EraRow(1, 1, 0, 0, 0, 0, "{}", "abc"))
    store.add_decisions([decision(1, "a"), decision(2, "b")])
    store.add_rewards([reward(1, "b", 0.25)])
    store.add_digests([DigestRow(1, 1, 1, "d")])
    store.commit()
    store.begin()
    store.add_decisions([decision(3, "c")])
    store.rollback()
    store.close()
    again = opened()
    assert [row.name for row in again.streams()] == ["home"]
    assert again.eras(1) == [EraRow(1, 1, 0, 0, 0, 0, "{}", "abc")]
    assert list(again.decisions(1)) == [decision(1, "a"), decision(2, "b")]
    assert list(again.rewards(1)) == [reward(1, "b", 0.25)]
    assert again.decision(1, "c") is None and again.decision(1, "b") == decision(2, "b")
    assert again.last_decision(1) == decision(2, "b") and again.last_reward(1) == reward(1, "b", 0.25)
    assert again.digests(1, 1) == {1: "d"} and list(again.rewards(1, after=1)) == []


@pytest.mark.parametrize("rows", ([decision(1, "a"), decision(2, "a")], [decision(1, "a"), decision(1, "b")]))
def test_an_id_and_a_number_are_written_once(opened, rows):
    store = opened()
    store.begin()
    with pytest.raises(WriteConflict if store.shared else Rejected):
        store.add_decisions(rows)
    store.rollback()
    assert list(store.decisions(1)) == []


def test_a_set_of_arms_is_written_once_and_forgotten_with_its_transaction(opened):
    store, data = opened(), b"12345678"
    sha256 = hashlib.sha256(data).digest()
    store.begin()
    first = store.arm_set(sha256, 1, data)
    store.rollback()
    assert store.arms(first) is None
    store.begin()
    numbers = [store.arm_set(sha256, 1, data) for _ in range(2)]
    store.commit()
    store.close()
    again = opened()
    again.begin()
    assert {*numbers, again.arm_set(sha256, 1, data)} == {numbers[0]}
    assert again.arms(numbers[0]) == (sha256, 1, data)
    again.rollback()


def test_the_newest_three_snapshots_stay_and_that_at_the_base(opened):
    store = opened()
    store.begin()
    store.add_era(EraRow(1, 1, 0, 0, 0, 0, "{}", "abc", base=2))
    for seq in range(1, 7):
        store.add_snapshot(SnapshotRow(1, 1, seq, seq, b"x"))
    store.commit()
    assert [row.seq for row in store.snapshots(1, 1)] == [6, 5, 4, 2]


def test_a_reader_sees_what_is_committed_while_another_writes(opened):
    store = opened()
    store.begin()
    store.add_decisions([decision(1, "a")])
    store.commit()
    store.begin()
    store.add_decisions([decision(2, "b")])
    reader = opened(writes=False)
    assert [row.id for row in reader.decisions(1)] == ["a"]
    store.commit()
    assert [row.id for row in opened(writes=False).decisions(1)] == ["a", "b"]


# ------------------------------------------------------------------------------------------ of SQLite alone


def test_a_second_server_is_refused_and_told_who_has_it(tmp_path):
    store = SQLiteStore(tmp_path / "a.db")
    program = f"from driftwise.service.stores.sqlite import SQLiteStore; SQLiteStore({str(tmp_path / 'a.db')!r})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "Taken" in found.stderr and f"process {os.getpid()} " in found.stderr
    with pytest.raises(Taken, match="which process"):
        SQLiteStore(tmp_path / "a.db")
    store.close()
    SQLiteStore(tmp_path / "a.db").close()


def test_a_full_disk_refuses_the_transaction_and_goes_on_when_there_is_room(tmp_path):
    store = SQLiteStore(tmp_path / "a.db", pages=40)
    sets = iter(range(10_000))
    written = 0
    with pytest.raises(Full):
        while True:
            store.begin()
            data = next(sets).to_bytes(8, "little") * 500
            store.arm_set(hashlib.sha256(data).digest(), 500, data)
            store.add_decisions([decision(written + 1, str(written))])
            store.commit()
            written += 1
    store.rollback()
    assert written > 5 and len(list(store.decisions(1))) == written
    store.close()
    store = SQLiteStore(tmp_path / "a.db", pages=80)
    store.begin()
    store.add_decisions([decision(written + 1, "more")])
    store.commit()
    store.close()


@pytest.mark.parametrize("change", ("UPDATE decision SET score = 0.2", "UPDATE decision SET event_id = 'x'"))
def test_a_changed_row_is_named_and_never_read(tmp_path, change):
    store = SQLiteStore(tmp_path / "a.db")
    store.begin()
    store.add_decisions([decision(1, "a")])
    store.commit()
    store.close()
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute(change)
    raw.close()
    store = SQLiteStore(tmp_path / "a.db")
    with pytest.raises(Damaged, match=r"a\.db.*decision"):
        list(store.decisions(1))
    store.close()


def test_a_database_of_the_future_or_of_others_is_refused_with_a_sentence(tmp_path):
    SQLiteStore(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute(f"PRAGMA user_version = {VERSION + 1}")
    raw.close()
    with pytest.raises(BadInput, match=f"version {VERSION + 1}"):
        SQLiteStore(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "b.db") as raw:
        raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    with pytest.raises(BadInput, match="another program"):
        SQLiteStore(tmp_path / "b.db")
    (tmp_path / "c.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(BadInput, match=r"c\.db"):
        SQLiteStore(tmp_path / "c.db")


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path, monkeypatch):
    SQLiteStore(tmp_path / "a.db").close()
    broken = (*STEPS, "CREATE TABLE more (x);\nCREATE TABLE more (y);\n")
    monkeypatch.setattr("driftwise.service.stores.schema.STEPS", broken)
    monkeypatch.setattr("driftwise.service.stores.schema.VERSION", len(broken))
    with pytest.raises(BadInput, match="more"):
        SQLiteStore(tmp_path / "a.db")
    monkeypatch.undo()
    SQLiteStore(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as raw:
        assert not raw.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone()[0]
    raw.close()


# ------------------------------------------------------------------------------------------ of PostgreSQL alone


def test_an_id_is_found_by_its_index_however_many_came_since_the_first_was_looked_for(database):
    """A plan made for an empty table would be kept, and would read all rows of the stream."""
    store, many = open_store(database), 2_000
    if store._database.info.server_version < 150_000:
        store.close()
        pytest.skip("PostgreSQL 15 was the first to say at once what was read")
    for _ in range(20):
        assert store.decision(1, "a") is None and store.reward(1, "a") is None
    store.begin()
    store.add_stream("home", 0.0)
    store.add_decisions([decision(seq, str(seq)) for seq in range(1, many)])
    store.add_rewards([reward(seq, str(seq)) for seq in range(1, many)])
    store.commit()
    for table, find in (("decision", store.decision), ("reward", store.reward)):
        before = _entries_read(store, table)
        assert find(1, "1000").seq == 1000
        assert _entries_read(store, table) - before <= 5
    store.close()


def _entries_read(store, table):
    """Entries of indices and rows of the table that this connection has read."""
    store.run("SELECT pg_stat_force_next_flush()")
    read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = ?"
    rows = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = ?"
    return sum(int(store.run(one, values=(table,)).fetchone()[0]) for one in (read, rows))


def test_a_transaction_that_had_failed_is_not_taken_for_committed(database):
    store = open_store(database)
    store.begin()
    store.add_decisions([decision(1, "a")])
    with pytest.raises(Rejected):
        store.run("SELECT 1 / 0")
    with pytest.raises(Lost, match="had failed"):
        store.commit()
    assert list(store.decisions(1)) == []
    store.close()


def test_arms_that_a_group_is_about_to_use_are_not_dropped_before_it_has(database):
    store, other = open_store(database), open_store(database)
    data = b"12345678"
    sha256 = hashlib.sha256(data).digest()
    store.begin()
    number = store.arm_set(sha256, 1, data)
    store.commit()
    store.begin()
    assert store.arm_set(sha256, 1, data) == number  # known, and in no decision yet
    dropping = threading.Thread(target=other.drop_sets_aside)
    dropping.start()
    dropping.join(0.2)
    assert dropping.is_alive()
    store.add_decisions([decision(1, "a", arm_set=number)])
    store.commit()
    dropping.join()
    assert store.arms(number) == (sha256, 1, data)
    store.begin()
    store.run("UPDATE decision SET arm_set = NULL")
    store.commit()
    other.drop_sets_aside()
    assert store.arms(number) is None
    store.begin()
    again = store.arm_set(sha256, 1, data)  # no store has it in memory any more
    store.commit()
    assert store.arms(again) == (sha256, 1, data)
    store.close(), other.close()


def test_events_details_guardrails_and_notices_come_back_as_they_were_written(opened):
    store = opened()
    store.begin()
    store.add_stream("home", 0.0)
    events = [EventRow(1, 1, 2.5, "paused", 3, 2, "{}"), EventRow(1, 2, 3.5, "resumed", 3, 2, '{"by": "me"}')]
    store.add_events(events)
    detail = DetailRow(1, 3, b"\x01\x00", None, "00-abc", 0.25)
    store.add_details([detail])
    rails = [GuardrailRow(1, 1, "errors", 0.5), GuardrailRow(1, 2, "errors", 1.5)]
    store.add_guardrails(rails)
    store.add_notice(1, 4.0, '{"kind": "stop"}')
    store.commit()
    again = opened(writes=False) if store.shared else store
    assert again.events(1) == events and again.events(2) == []
    assert again.detail(1, 3) == detail and again.detail(1, 4) is None
    assert again.guardrails(1, 1, 2) == rails[1:]
    (notice,) = store.notices(4.0)
    assert (notice.stream, notice.tries, notice.body) == (1, 0, '{"kind": "stop"}') and store.notices(3.9) == []
    store.begin()
    assert store.put_off(notice.id, 9.0, 0) and not store.put_off(notice.id, 9.0, 0)
    store.commit()
    assert store.notices(8.0) == [] and store.notices(9.0)[0].tries == 1
    store.begin()
    store.run("UPDATE event SET kind = 'resumed' WHERE seq = 1")
    store.drop_notice(notice.id)
    store.commit()
    assert store.notices(9.0) == []
    with pytest.raises(Damaged, match="event"):
        store.events(1)
