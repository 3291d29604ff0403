"""A SQLite file whose lock another process holds: 503 until it is free, nothing lost, and no blocked event loop."""

import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial

import pytest

from driftwise.service.core.verify import verify
from driftwise.service.stores import sqlite
from driftwise.service.stores.records import Held, Taken
from driftwise.service.stores.sqlite import SQLiteStore
from service.living import living, soon


def other(path):
    """Another process's connection."""
    return closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False))


def test_a_lock_that_another_process_holds_is_503_until_it_is_free(tmp_path):
    path = tmp_path / "a.db"
    with living(path) as home, other(path) as holder:
        home.put()
        home.decide("before")
        holder.execute("BEGIN IMMEDIATE")
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(home.decide("one")))
        waiting.start()
        quickest = 60.0
        while waiting.is_alive():  # it waits a second for the lock; other requests do not
            began = time.monotonic()
            home.get("/healthz")
            quickest = min(quickest, time.monotonic() - began)
        assert quickest < 0.9
        (answer,) = answers
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        health = home.get("/healthz")
        assert health.status_code == 503 and health.json()["status"] == "away" and "lock" in health.json()["reason"]
        asked = (partial(home.decide, "one"), partial(home.reward, "before", 1.0), partial(home.put, "other"),
                 partial(home.ask, "POST", "home/reset"))  # fmt: skip
        spent = []
        for ask in asked:
            began = time.monotonic()
            assert ask().status_code == 503
            spent.append(time.monotonic() - began)
        assert min(spent) < 0.9  # none waits for the lock again
        assert home.stream()["seq"] == 1 and home.get("/metrics").status_code == 200
        holder.execute("ROLLBACK")
        assert soon(lambda: home.get("/healthz").status_code == 200)  # without a request
        assert home.decide("one").json()["seq"] == 2 and home.decide().json()["seq"] == 3
        assert home.reward("before", 1.0).json() == {"verdict": "learned", "seq": 1}
    (found,) = verify(path)
    assert found.differs == [] and (found.decisions, found.rewards) == (3, 1)


def test_a_lock_that_is_held_for_a_moment_is_waited_for(tmp_path):
    path = tmp_path / "a.db"
    with living(path) as home, other(path) as holder:
        home.put()
        holder.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, holder.execute, ("ROLLBACK",)).start()
        assert home.decide("one").json()["seq"] == 1


@pytest.mark.parametrize("statement", ["COMMIT", "BEGIN IMMEDIATE"])
def test_a_busy_file_at_any_point_undoes_the_group_and_loses_nothing(tmp_path, statement):
    with living(tmp_path / "a.db") as home:
        home.put()
        home.decide("before")
        store = home.service.store
        inside, free = store.run, []

        def busy(asked, rows=None, values=()):
            if asked == statement and not free:
                raise Held("another process holds its lock")
            return inside(asked, rows, values)

        store.run = busy
        assert home.decide("one").status_code == home.reward("before", 1.0).status_code == 503
        assert home.get("/healthz").json()["status"] == "away"
        free.append(True)
        assert soon(lambda: home.get("/healthz").status_code == 200)
        assert home.decide("one").json()["seq"] == 2 and home.reward("before", 1.0).json()["seq"] == 1
    (found,) = verify(tmp_path / "a.db")
    assert found.differs == [] and (found.decisions, found.rewards) == (2, 1)


def test_a_checkpoint_that_cannot_be_made_now_costs_no_answer(tmp_path):
    path = tmp_path / "a.db"
    with living(path) as home, other(path) as reader:
        home.put()
        for n in range(5):
            home.reward(home.decide(str(n)).json()["id"], 1.0)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM decision").fetchone()
        assert home.ask("POST", "home/forget", json={"before": "2100-01-01"}).json() == {"forgotten": 5}
        assert home.decide("after").status_code == 200
    assert not verify(path)[0].differs


def test_a_server_that_stops_does_not_wait_for_a_lock(tmp_path):
    path = tmp_path / "a.db"
    with other(path) as holder:
        with living(path) as home:
            home.put()
            home.reward(home.decide("one").json()["id"], 1.0)
            holder.execute("BEGIN IMMEDIATE")
            assert home.decide("two").status_code == 503
        holder.execute("ROLLBACK")
    (found,) = verify(path)
    assert found.differs == [] and (found.decisions, found.rewards) == (1, 1)


def test_a_file_that_is_held_at_the_start_is_said_to_be_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_WAIT", 0.1)
    path = tmp_path / "new.db"
    with other(path) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Taken, match="whose lock another process holds") as refused:
            SQLiteStore(path)
        assert refused.value.exit_code == 3
        holder.execute("ROLLBACK")
    SQLiteStore(path).close()


def test_a_command_that_meets_a_held_file_says_so_and_ends_with_3(tmp_path):
    path = tmp_path / "a.db"
    SQLiteStore(path).close()
    code = ("from driftwise.service.operate import keeping; keeping._WAIT = 0.1; from driftwise.cli import main; "
            f"main(['keys', 'create', {str(path)!r}])")  # fmt: skip
    with other(path) as holder:
        holder.execute("BEGIN IMMEDIATE")
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 3 and "another process holds its lock" in found.stderr
    assert "Traceback" not in found.stderr and found.stderr.count("\n") == 1
