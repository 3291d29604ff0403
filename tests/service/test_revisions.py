"""A policy of another revision: its streams continue in a new era, and eras of the earlier one are not damage."""

import time
from contextlib import closing, contextmanager
from unittest.mock import patch

import numpy as np
import pytest

import driftwise as dw
from driftwise.errors import BadInput
from driftwise.policies.auto import Auto
from driftwise.service.core import origin
from driftwise.service.core.fold import digest
from driftwise.service.core.forgetting import expired_stretch, forget
from driftwise.service.core.origin import Foreign, Revised
from driftwise.service.core.refold import refold
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.operate.importing import import_log
from driftwise.service.stores.opening import open_store
from service.desk import arms_of
from service.living import living
from service.loading import Server
from service.nursery import Nursery
from service.test_travel import another, live, refusal, told

NURSERY = Nursery()
VALUES = {"policy": {"name": "Auto", "dim": 2}, "rewards": [0, 1]}
CLICKS = {"policy": {"name": "Auto", "dim": 2, "link": "logistic"}, "rewards": [0, 1]}
UNITS = {**VALUES, "mode": "holdback", "holdback": 0.25}


@contextmanager
def version(revision, bits=True):
    """A driftwise whose Auto has another revision and other arithmetic."""
    with patch.object(Auto, "revision", revision), another(bits, probe=origin.probe()):
        with patch.object(origin, "_sources", lambda: f"of revision {revision}"):
            yield


def first(db, body=VALUES, tag="old", **more):
    """A database of the first revision; the digest of its state."""
    with version(1, **more), living(db) as asked:
        assert asked.ask("PUT", "home", json=body).status_code == 201
        live(asked, tag)
        return asked.stream()["digest"]


def eras(db, stream=1):
    with closing(open_store(db, writes=False)) as store:
        return store.eras(stream)


@pytest.fixture(params=["file", "postgres"])
def db(request, tmp_path):
    return tmp_path / "a.db" if request.param == "file" else request.getfixturevalue("database")


on = pytest.mark.parametrize
WALL = {"clock": "wall", "tick": 0.001}


@on(("db", "body"), [("file", VALUES), ("file", CLICKS), ("postgres", {**VALUES, **WALL})], indirect=["db"],
    ids=["values", "clicks", "wall clock, postgres"])  # fmt: skip
def test_a_stream_of_an_earlier_revision_goes_on_in_a_new_era(db, body, capsys):
    there = first(db, body)
    code, out, err = told(capsys, "verify", db)
    said = "generation 1, computed by revision 1 of its policy, is not recomputable by this version"
    assert code == 6 and said in out
    assert "nothing is damaged" in err and "differences" not in out + err and "backup" not in err
    with living(db) as asked:
        assert asked.stream()["era"] == 2 and asked.stream()["digest"] != there
        assert asked.reward("old3", 1.0).json()["verdict"] == "learned"  # decided before the upgrade
        live(asked, "new")
        found = [asked.ask("GET", f"home/explain/{id}").json()["recomputed"] for id in ("old5", "new1", "new5")]
        assert found == [None, True, True]
        assert "revision 1 of its policy" in asked.get("/streams/home/decisions/old5").text
        here = asked.stream()["digest"]
    (seen,) = verify(db)
    assert not seen.differs and not seen.foreign and len(seen.revised) == 1 and seen.digest == here
    with living(db) as asked:
        assert (asked.stream()["era"], asked.stream()["digest"]) == (2, here)
    before, now = eras(db)
    assert (now.policy, now.reason) == (f"{before.policy}-{Auto.revision}", "revision")


def test_only_the_stream_of_the_revised_policy_begins_an_era_and_a_pause_stays(tmp_path, capsys):
    db = tmp_path / "a.db"
    first(db)
    with version(1, bits=False), living(db) as asked:
        asked.put("plain")
        live(asked, "old", name="plain")
        plain = asked.stream("plain")["digest"]
        assert asked.ask("POST", "home/pause", json={}).status_code == 200
    with living(db) as asked:
        assert (asked.stream("plain")["era"], asked.stream("plain")["digest"]) == (1, plain)
        assert asked.stream()["paused"] and asked.decide("no").status_code == 409
        assert asked.reward("old3", 1.0).status_code == 200
    assert told(capsys, "verify", db)[0] == 6


def test_the_command_does_what_a_server_does(tmp_path, capsys):
    db = tmp_path / "a.db"
    first(db)
    error = refusal_of(lambda: forget(db, 2.0**40))
    assert isinstance(error, Revised) and "driftwise refold" in str(error) and error.exit_code == 6
    assert told(capsys, "refold", db) == (0, "home: generation 2 begins: its rewards were learned again here\n", "")
    assert refold(db) == {} and refusal(db) is None and [era.reason for era in eras(db)] == ["made", "revision"]


def refusal_of(act):
    with pytest.raises(BadInput) as caught:
        act()
    return caught.value


def rewarded(asked, tag, rounds=12):
    """Rounds of three units, all rewarded except the last."""
    rng = np.random.default_rng(3)
    for number in range(rounds):
        arms, unit = arms_of(rng, 3, 2), f"u{number % 3}"
        assert asked.decide(f"{tag}{number}", arms=arms, unit=unit).status_code == 200
        if number < rounds - 1:
            assert asked.reward(f"{tag}{number}", float(number % 2)).status_code == 200


def forgotten(db, how):
    """Forget decisions of the old era that closed before a reward, or those of a unit."""
    with version(1):
        if how == "time":
            with closing(open_store(db)) as store:
                store.begin()
                assert expired_stretch(store, 1, 2.0**40, most=5).cut == 5
                store.commit()
        else:
            with living(db) as asked:
                assert asked.ask("POST", "home/forget", json={"unit": "u1"}).json() == {"forgotten": 4}


@on(("db", "how", "clock"), [("file", "time", {}), ("file", "unit", WALL), ("postgres", "unit", {})], indirect=["db"],
    ids=["time", "unit, wall clock", "unit, postgres"])  # fmt: skip
def test_what_was_forgotten_before_is_not_learned_and_time_passes_for_it(db, how, clock):
    with version(1), living(db) as asked:
        asked.ask("PUT", "home", json={**UNITS, **clock})
        rewarded(asked, "old")
    forgotten(db, how)
    with living(db) as asked:
        rewarded(asked, "new")
        here = asked.stream()["digest"]
    with closing(open_store(db, writes=False)) as store:
        now = store.eras(1)[-1]
        (snapshot,) = [one for one in store.snapshots(1, 2) if one.seq == now.base]
        state = dw.State.from_bytes(snapshot.data)
        rows = list(store.rewards(1, 0, now.base))
    left = sum(row.x is not None for row in rows)
    assert (now.base, left) == ((5, 0) if how == "time" else (11, 7)) and state.observations == left
    assert state.clock == rows[-1].tick - (rows[0].born if clock else 0)
    (seen,) = verify(db)
    assert not seen.differs and not seen.foreign and len(seen.revised) == 1 and seen.digest == here
    with living(db) as asked:
        assert asked.stream()["digest"] == here
        assert asked.ask("POST", "home/forget", json={"unit": "u2"}).status_code == 200
        assert asked.stream()["digest"] == here
    (seen,) = verify(db)
    assert not seen.differs and seen.digest == here


def test_what_an_earlier_revision_decided_can_be_forgotten(tmp_path):
    db = tmp_path / "a.db"
    with version(1), living(db) as asked:
        asked.ask("PUT", "home", json=UNITS)
        rewarded(asked, "old")
    with living(db) as asked:
        rewarded(asked, "new", 3)
        here = asked.stream()["digest"]
        assert asked.ask("POST", "home/forget", json={"unit": "u1"}).json() == {"forgotten": 5}
    (seen,) = verify(db)
    assert not seen.differs and seen.forgotten == 13 and seen.digest == here
    assert forget(db, 2.0**40) == {"home": 8}
    assert verify(db)[0].digest == here


def test_damage_of_an_era_of_an_earlier_revision_is_damage(tmp_path, capsys):
    db = tmp_path / "a.db"
    first(db)
    with closing(open_store(db)) as store:
        store.run("UPDATE reward SET value = 0.25 WHERE seq = 2")
    assert told(capsys, "verify", db)[0] == 2
    assert "changed row" in str(refusal(db)) and len(eras(db)) == 1


def test_killed_in_the_refold_the_database_is_what_it_was(tmp_path):
    db = tmp_path / "a.db"
    first(db)
    server = Server(db, "kill:in-snapshot:1", wait=False, nursery=NURSERY)
    server.end()
    assert server.process.returncode == -9 and len(eras(db)) == 1
    (seen,) = verify(db)
    assert not seen.differs and len(seen.revised) == 1
    server = Server(db, nursery=NURSERY)
    assert server.stream()["era"] == 2
    server.stop()
    (seen,) = verify(db)
    assert not seen.differs and seen.eras == 2


def test_of_servers_that_start_at_once_one_begins_the_era(database):
    first(database)
    with version(1, bits=False), living(database) as asked:
        asked.ask("PUT", "other", json=CLICKS)
        live(asked, "old", name="other")
    servers = [Server(database, wait=False, nursery=NURSERY) for _ in range(3)]
    for server in servers:
        server.wait()
    assert len({(server.stream()["era"], server.stream()["digest"]) for server in servers}) == 1
    assert [[era.reason for era in eras(database, stream)] for stream in (1, 2)] == [["made", "revision"]] * 2
    for server in servers:
        assert "Traceback" not in server.stop()
    assert not [one for seen in verify(database) for one in (*seen.differs, *seen.foreign)]


def test_a_server_does_not_begin_an_era_under_one_of_the_earlier_revision(database):
    first(database)
    with version(1), living(database) as asked:
        time.sleep(0.3)  # until the other replica has read it
        server = Server(database, wait=False, nursery=NURSERY)
        assert "revision 1 of its policy" in server.end() and server.process.returncode
        live(asked, "on")
    assert len(eras(database)) == 1


def test_a_database_of_a_later_revision_is_refused_and_a_refold_goes_on(tmp_path):
    """The way back: states of the later revision cannot be read here."""
    db = tmp_path / "a.db"
    with version(Auto.revision + 1), living(db) as asked:
        asked.ask("PUT", "home", json=UNITS)
        rewarded(asked, "later")
        assert asked.ask("POST", "home/forget", json={"unit": "u1"}).json() == {"forgotten": 4}
    error = refusal(db)
    assert type(error) is Foreign and error.exit_code == 5 and "another version" in str(error)
    assert refold(db) == {"home": 2} and refusal(db) is None
    (seen,) = verify(db)
    assert not seen.differs and len(seen.foreign) == 1 and not seen.revised
    assert [int(era.policy[-1]) for era in eras(db)] == [Auto.revision + 1, Auto.revision]


def test_a_log_of_an_earlier_revision_is_imported_as_a_shadow_and_learned_by_an_agent(tmp_path):
    db = tmp_path / "a.db"
    with version(1), living(db) as asked:
        asked.ask("PUT", "home", json=VALUES)
        asked.ask("PUT", "empty", json=VALUES)
        live(asked, "old")
    export(db, tmp_path / "log", "home")
    assert isinstance(refusal_of(lambda: import_log(db, "empty", tmp_path / "log")), Revised)
    with living(db) as asked:
        assert asked.stream("empty")["era"] == 2
        asked.ask("PUT", "shadow", json={**VALUES, "mode": "shadow"})
        here = asked.stream()["digest"]
    error = refusal_of(lambda: import_log(db, "empty", tmp_path / "log"))
    assert "revision 1" in str(error) and "shadow" in str(error)
    assert import_log(db, "shadow", tmp_path / "log").digest == here
    agent = dw.Agent(dw.make("Auto", dim=2), rewards=(0.0, 1.0), clock="rewards")
    agent.learn_log(tmp_path / "log")
    assert digest(agent.policy, agent.state) == here
    assert not [one for seen in verify(db) for one in (*seen.differs, *seen.foreign)]
