"""A database that another machine, library or version computed is not reported as damage, and a refold continues it."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from unittest.mock import patch

import numpy as np
import pytest

import driftwise as dw
from driftwise.agent import clock
from driftwise.cli import main
from driftwise.errors import BadInput
from driftwise.service.core import fold, origin, refold
from driftwise.service.core.fold import digest
from driftwise.service.core.forgetting import expired_stretch, forget
from driftwise.service.core.origin import Foreign
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.verify import verify
from driftwise.service.http.run import service_of
from driftwise.service.operate.export import export
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import Damaged, Taken
from service.desk import Desk, arms_of
from service.living import living
from service.loading import Server
from service.nursery import Nursery
from test_machine import PLAIN

NURSERY = Nursery()
AUTO = {"policy": {"name": "Auto", "dim": 2}, "rewards": [0, 1]}
HALF = "functions:another numpy:another"
COMMANDS = """
import json, sys
from driftwise.cli import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        print("ended", end.code, flush=True)
"""


@contextmanager
def another(bits=True, probe=HALF):
    """Another machine: another probe, and other bits."""
    lesson = fold.Fold.lesson

    def other(self, x, value, tick, born):
        lesson(self, x, value * (1.0 - 2.0**-50), tick, born)

    with patch.object(origin, "probe", lambda: probe), patch.object(fold.Fold, "lesson", other if bits else lesson):
        yield


def live(asked, tag, rounds=6, name="home"):
    rng = np.random.default_rng(len(tag))
    for number in range(rounds):
        assert asked.decide(f"{tag}{number}", arms=arms_of(rng, 3, 2), stream=name).status_code == 200
        if number % 3:
            assert asked.reward(f"{tag}{number}", float(number % 2), stream=name).status_code == 200


def made(db, tag="there", bits=True, **more):
    """A database that another machine computed; the digest of its state."""
    with another(bits, **more), living(db) as asked:
        asked.put()
        live(asked, tag)
        return asked.stream()["digest"]


def refusal(db):
    """Why a server does not start."""
    store = open_store(db)
    try:
        service_of(store).close()
    except BadInput as error:
        return error
    finally:
        store.close()


def changed(db, statement):
    raw = sqlite3.connect(db)
    raw.execute(statement)
    raw.commit()
    raw.close()


def told(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code, *capsys.readouterr()


@pytest.fixture(params=["file", "postgres"])
def db(request, tmp_path):
    return tmp_path / "a.db" if request.param == "file" else request.getfixturevalue("database")


def test_a_server_refuses_what_another_machine_computed_and_names_the_way_on(db):
    made(db)
    error = refusal(db)
    assert isinstance(error, Foreign) and error.exit_code == 5
    assert "another machine or library" in str(error) and "driftwise refold" in str(error)
    assert "our elementary functions" in str(error) and "backup" not in str(error)


@pytest.mark.parametrize("forgotten", [0, 2, 4])
def test_a_refold_begins_an_era_and_what_was_decided_before_keeps_its_numbers(db, forgotten):
    there = made(db)
    if forgotten:
        with another():
            _forget(db, forgotten)
    with closing(open_store(db, writes=False)) as store:
        before = list(store.decisions(1))
    assert refold.refold(db) == {"home": 2} and refold.refold(db) == {}
    with living(db) as asked:
        assert (asked.stream()["digest"] == there) == (forgotten == 4) and asked.stream()["era"] == 2
        live(asked, "here")
        found = [asked.ask("GET", f"home/explain/{id}") for id in ("there5", "here1", "here5")]
        assert [one.status_code for one in found] == [200] * 3
        assert [one.json()["recomputed"] for one in found] == [None, True, True]
        assert asked.get("/streams/home").status_code == asked.get("/streams/home/decisions/there5").status_code == 200
        here = asked.stream()["digest"]
    with closing(open_store(db, writes=False)) as store:
        assert [one for one in store.decisions(1) if one.era == 1] == before
        first, second = store.eras(1)
        assert (first.reason, second.reason, first.probe, second.base) == ("made", "refold", HALF, forgotten)
    (found,) = verify(db)
    assert not found.differs and found.digest == here and len(found.foreign) == (forgotten < 4)


def _forget(db, count):
    store = open_store(db)
    try:
        store.begin()
        assert expired_stretch(store, 1, 2.0**40, most=count).cut == count
        store.commit()
    finally:
        store.close()


def test_numbers_of_a_policy_that_another_machine_rounds_otherwise_are_not_damage(tmp_path):
    db, convert = tmp_path / "a.db", clock.convert_memory
    with patch.object(clock, "convert_memory", lambda *asked: np.nextafter(convert(*asked), 1.0)):
        made(db, bits=False)
        with another():
            _forget(db, 2)
    (found,) = verify(db)
    assert found.foreign and not found.differs and isinstance(refusal(db), Foreign)
    assert refold.refold(db) == {"home": 2}
    with living(db) as asked:
        live(asked, "here")
        assert asked.ask("GET", "home/explain/there5").json()["recomputed"] is None
        here = asked.stream()["digest"]
    (found,) = verify(db)
    assert len(found.foreign) == 1 and not found.differs and found.digest == here


@pytest.mark.parametrize("column", ["probe", "sources", "reason"])
def test_what_computed_an_era_is_sealed_with_it(tmp_path, column):
    made(tmp_path / "a.db")
    changed(tmp_path / "a.db", f"UPDATE era SET {column} = NULL")
    assert isinstance(refusal(tmp_path / "a.db"), Damaged)


def test_a_postgres_database_of_version_1_is_read_upgraded_and_recorded(database):
    with patch("driftwise.service.core.serving.begun", lambda era, reason: era), living(database) as asked:
        asked.put()
        live(asked, "old")
        digest = asked.stream()["digest"]
    store = open_store(database)
    for column in ("reason", "probe", "sources"):
        store.run(f"ALTER TABLE era DROP COLUMN {column}")
    for table in ("event", "detail", "guardrail", "notice"):
        store.run(f"DROP TABLE {table}")
    store.run("UPDATE driftwise SET version = 1")
    store.close()
    (found,) = verify(database)  # as it is
    assert not found.differs and found.digest == digest
    with living(database) as asked:
        live(asked, "newer")
        assert asked.stream()["era"] == 1
    with closing(open_store(database, writes=False)) as store:
        assert [era.probe for era in store.eras(1)] == [origin.probe()]
    (found,) = verify(database)
    assert not found.differs and found.decisions == 12


def test_verify_tells_another_machine_from_damage(tmp_path, capsys):
    db = tmp_path / "a.db"
    made(db)
    code, out, err = told(capsys, "verify", db)
    assert code == 5 and "not recomputable here" in out and "nothing is damaged" in err and "backup" not in err
    changed(db, "UPDATE reward SET value = 0.25 WHERE seq = 2")
    code, out, err = told(capsys, "verify", db)
    assert code == 2 and "a changed row" in out and "backup" in err
    assert isinstance(refusal(db), Foreign)
    with pytest.raises(Damaged):
        refold.refold(db)


@pytest.mark.parametrize("statement", [
    "DELETE FROM reward WHERE seq = 2", "DELETE FROM decision WHERE seq = 2", "UPDATE decision SET n = 2 WHERE seq = 2",
    "UPDATE decision SET arm = 2 WHERE seq = 2",
])  # fmt: skip
def test_what_needs_no_arithmetic_is_compared_in_foreign_eras_too(tmp_path, statement):
    made(tmp_path / "a.db")
    (found,) = verify(tmp_path / "a.db")
    assert found.foreign and not found.differs
    changed(tmp_path / "a.db", statement)
    (found,) = verify(tmp_path / "a.db")
    assert found.differs


def test_a_foreign_era_that_comes_out_equal_is_fine_but_a_server_does_not_go_on_with_it(tmp_path):
    made(tmp_path / "a.db", bits=False)
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs and not found.foreign
    assert isinstance(refusal(tmp_path / "a.db"), Foreign)
    assert refold.refold(tmp_path / "a.db") == {"home": 2}
    assert refusal(tmp_path / "a.db") is None


def test_an_agent_learns_the_export_of_a_refolded_stream_to_its_state(tmp_path):
    made(tmp_path / "a.db")
    refold.refold(tmp_path / "a.db")
    with closing(open_store(tmp_path / "a.db", writes=False)) as store:
        setup = eras_of(store, 1)[-1].setup
    export(tmp_path / "a.db", tmp_path / "log")
    agent = dw.Agent(setup.policy, rewards=(0.0, 1.0), clock="rewards")
    agent.learn_log(tmp_path / "log")
    (found,) = verify(tmp_path / "a.db")
    assert digest(setup.policy, agent.state) == found.digest


def desk_of(db, bits):
    """A database of a version that recorded no machine, with a snapshot."""
    desk, rng = Desk(db, signed=False), np.random.default_rng(0)
    with another(bits):
        for number in range(9):
            desk.decide(arms_of(rng), id=str(number))
            desk.commit()
            desk.reward(str(number), 1.0)
            desk.commit()
    desk.store.begin()
    desk.store.add_snapshot(desk.stream.fold.snapshot_behind())
    desk.store.commit()
    desk.close()


def test_an_era_of_an_unknown_machine_that_comes_out_here_is_recorded_as_computed_here(tmp_path):
    desk_of(tmp_path / "a.db", bits=False)
    assert refold.refold(tmp_path / "a.db") == {}  # nothing to do
    assert refusal(tmp_path / "a.db") is None
    with closing(open_store(tmp_path / "a.db", writes=False)) as store:
        assert store.eras(1)[-1].probe == origin.probe()
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs


def test_an_era_of_an_unknown_machine_that_does_not_come_out_is_not_damage(tmp_path, capsys):
    desk_of(tmp_path / "a.db", bits=True)
    code, out, _ = told(capsys, "verify", tmp_path / "a.db")
    assert code == 5 and "not recomputable here" in out
    code, out, _ = told(capsys, "refold", tmp_path / "a.db")
    assert code == 0 and out == "home: generation 2 begins: its rewards were learned again here\n"
    assert refusal(tmp_path / "a.db") is None


def test_another_version_is_named_where_the_state_differs_and_refused_only_there(tmp_path):
    with patch.object(origin, "_sources", lambda: "older"):
        made(tmp_path / "a.db", bits=False, probe=origin.probe())
        made(tmp_path / "b.db", bits=True, probe=origin.probe())
    assert refusal(tmp_path / "a.db") is None
    changed(tmp_path / "b.db", "DELETE FROM snapshot")
    changed(tmp_path / "b.db", f"INSERT INTO digest VALUES (1, 1, 4, '{'0' * 64}')")
    with patch.object(fold, "EVERY", 4):
        assert "another version of driftwise" in str(refusal(tmp_path / "b.db"))
    (found,) = verify(tmp_path / "b.db")
    assert not found.differs and "another version" in found.foreign[0]


def test_what_another_machine_computed_can_be_forgotten_once_an_era_began_here(tmp_path):
    db = tmp_path / "a.db"
    made(db)
    with pytest.raises(Foreign):
        forget(db, 2.0**40)
    refold.refold(db)
    with living(db) as asked:
        live(asked, "here")
        here = asked.stream()["digest"]
    assert forget(db, 2.0**40) == {"home": 8}
    (found,) = verify(db)
    assert not found.differs and not found.foreign and found.digest == here
    with living(db) as asked:
        assert asked.ask("GET", "home/explain/there3").json()["recomputed"] is None


def test_a_replica_that_computes_otherwise_does_not_join_nor_stay(database):
    server = Server(database, nursery=NURSERY)
    server.put()
    with another():
        assert isinstance(refusal(database), Foreign)
        with pytest.raises(Taken, match="no replica"):
            refold.refold(database)
        alone = "driftwise.service.stores.postgres.PostgresStore.alone"
        with patch(alone, lambda self: True):  # as if it had begun at that moment
            assert refold.refold(database) == {"home": 2}
    assert server.process.wait(20) == 5
    assert "another machine or library" in server.end()


def test_a_database_travels_to_a_processor_without_fma(tmp_path):
    db = tmp_path / "a.db"
    with living(db) as asked:
        asked.ask("PUT", "home", json=AUTO)
        live(asked, "here", 60)
    script = [sys.executable, "-c", COMMANDS, json.dumps([["verify", db], ["refold", db]], default=str)]
    ended = subprocess.run(script, env={**os.environ, **PLAIN}, capture_output=True, text=True, check=True)
    codes = [int(line.split()[1]) for line in ended.stdout.splitlines() if line.startswith("ended")]
    assert codes == [0, 0] and "all as written" in ended.stdout and "begins" not in ended.stdout


@pytest.mark.parametrize("probe", ["c:1 numpy:2 blas:3 svml:no", None])
def test_a_database_of_an_earlier_version_goes_on_in_a_new_era(db, probe, capsys):
    with another(probe=probe), living(db) as asked:
        asked.put()
        live(asked, "old")
    code, out, err = told(capsys, "verify", db)
    assert code == 5 and "an earlier version of driftwise" in out and "nothing is damaged" in err
    with living(db) as asked:
        assert asked.stream()["era"] == 2
        live(asked, "new")
        here = asked.stream()["digest"]
    (found,) = verify(db)
    assert not found.differs and len(found.foreign) == 1 and found.digest == here
    with closing(open_store(db, writes=False)) as store:
        assert [era.probe for era in store.eras(1)] == [probe, origin.probe()]
