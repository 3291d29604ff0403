"""Commands on a database: verify, export, backup, forget, keys."""

import socket
import sqlite3

import numpy as np
import pytest

import driftwise as dw
from driftwise.cli import main
from driftwise.service.core import forgetting
from driftwise.service.core.setup import setup
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.stores.records import Taken
from refusing import refused
from service.desk import LINEAR, POLICIES, Desk, arms_of, body_of
from service.living import ARMS, living, soon


def told(capsys, *words):
    """The output of a command, and its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def filled(path, data=LINEAR, rounds=60, seed=0, start=1000.0):
    desk, rng = Desk(path, data), np.random.default_rng(seed)
    for number in range(rounds):
        desk.decide(arms_of(rng), start + number, id=f"{seed}-{number}", items=["a", "b", "c", "d"])
        desk.commit()
        if number % 4:
            desk.reward(f"{seed}-{number}", float(number % 3 == 0), start + number)
            desk.commit()
    return desk


def test_verify_says_what_it_saw_and_its_digest(tmp_path, capsys):
    desk = filled(tmp_path / "a.db")
    code, out, err = told(capsys, "verify", tmp_path / "a.db")  # while it is open
    assert code == 0 and not err
    assert "home: 60 decisions, 45 rewards, 1 generations" in out and desk.stream.fold.digest() in out
    desk.close()
    raw = sqlite3.connect(tmp_path / "a.db")
    raw.execute("UPDATE reward SET value = 0.25 WHERE seq = 9")
    raw.commit()
    raw.close()
    code, out, err = told(capsys, "verify", tmp_path / "a.db")
    assert code == 2 and err.count("\n") == 1 and "1 differences" in err and "a.db" in err and "reward" in out
    code, out, err = told(capsys, "verify", tmp_path / "none.db")
    assert code == 2 and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "format"),
    [("fade", "jsonl"), ("fade", "parquet"), ("Auto", "jsonl"), ("Auto", "parquet"), ("wall", "jsonl"),
     ("wall Auto", "jsonl"), ("wall restart", "parquet")],
)  # fmt: skip
def test_an_agent_that_learns_the_exported_log_is_the_stream_to_the_last_bit(tmp_path, capsys, name, format):
    desk = filled(tmp_path / "a.db", POLICIES[name])
    code, out, _ = told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log", "--format", format)
    assert code == 0 and "60 rows" in out
    made = setup(body_of(POLICIES[name]))
    agent = dw.Agent(made.policy, rewards=(0.0, 1.0), clock=made.body.clock, tick=made.tick)
    assert agent.learn_log(tmp_path / "log") == 45
    front = desk.stream.fold.states.front
    assert (agent.state.floats == front.floats).all() and (agent.state.ints == front.ints).all()
    log = dw.tables.read_log(tmp_path / "log")
    columns = ["verdict", "arm", "arms", "candidates", "propensity"]
    rows = [one for batch in log.batches(columns) for one in batch.verdict]
    assert rows.count("learned") == 45 and rows.count("open") == 15
    code, _, err = told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log")
    assert code == 2 and "empty" in err
    desk.close()


@pytest.fixture
def held_back(tmp_path):
    """An export of a stream that holds back half, and what its live half earned."""
    data = {"policy": {"name": "OFUL", "dim": 3, "horizon": 1000}, "rewards": [0, 1], "half_life": 40,
            "epsilon": 0.2, "mode": "holdback", "holdback": 0.5, "baseline": "uniform"}  # fmt: skip
    desk, rng, earned = Desk(tmp_path / "a.db", data), np.random.default_rng(0), []
    for number in range(200):
        arms = arms_of(rng)
        made = desk.decide(arms, 1000.0 + number, id=str(number))
        desk.commit()
        value = float(rng.random() < 0.4 + 0.5 * arms[made.arm][0])
        if number % 5:
            desk.reward(str(number), value, 1000.0 + number)
            desk.commit()
            earned += [value] if made.cohort == "live" else []
    policy = desk.stream.setup.policy
    desk.close()
    assert export(tmp_path / "a.db", tmp_path / "log", format="jsonl").rows == 200
    return tmp_path / "log", policy, float(np.mean(earned)), len(earned)


def test_the_policy_of_a_stream_with_a_holdback_gets_what_its_live_cohort_earned(held_back):
    folder, policy, earned, rows = held_back
    found = dw.evaluate(policy, folder, epsilon=0.2, progress=False, blocks=1)
    assert (found.terms.weight == 1.0).all() and len(found.terms) == rows
    assert found.estimates["IPS"].value == pytest.approx(earned, abs=1e-12)
    assert (found.cohort, found.aside) == ("live", 160 - rows) and "of other cohorts than live" in str(found)


def test_an_export_of_a_holdback_without_cohorts_is_refused(held_back, tmp_path):
    """As version 1 wrote it: two kinds of propensities in one column, without a mark."""
    folder, policy, _, _ = held_back
    columns = ["stream", "seq", "born", "arm", "n", "arms", "propensity", "score", "reward", "reward_tick"]
    (batch,) = dw.read_log(folder).batches(columns)
    old = {name: getattr(batch, name) for name in columns}
    with refused("log", "holdback", "cohort", "export the stream again"):
        dw.evaluate(policy, old, progress=False)
    mine = ~np.isnan(batch.score)  # an export of a live stream has only the policy's own arms, and is read
    rows = {name: [one for one, own in zip(values, mine, strict=True) if own] if name != "arms" else
            [batch.arms[k] for k in np.flatnonzero(mine)] for name, values in old.items()}  # fmt: skip
    assert dw.evaluate(policy, rows, progress=False, blocks=1).cohort is None


def test_a_baseline_that_is_drawn_uniformly_answers_for_a_policy_that_never_explores(tmp_path):
    data = {**LINEAR, "mode": "holdback", "holdback": 0.5, "baseline": "uniform"}
    desk, rng = Desk(tmp_path / "a.db", data), np.random.default_rng(0)
    for number in range(60):
        desk.decide(arms_of(rng), 1000.0, id=str(number))
        desk.commit()
        desk.reward(str(number), float(rng.random() < 0.5), 1000.0)
        desk.commit()
    desk.close()
    export(tmp_path / "a.db", tmp_path / "log", format="jsonl")
    found = dw.evaluate(setup(body_of(data)).policy, tmp_path / "log", progress=False, blocks=1)
    assert found.cohort == "baseline" and found.terms.most == 4.0 and 20 < len(found.terms) < 40


def test_a_backup_of_a_database_in_use_is_whole_and_goes_on(tmp_path, capsys):
    desk = filled(tmp_path / "a.db")
    desk.store.begin()
    desk.decide([[0.1, 0.2, 0.3]], id="not yet")
    desk.stream.write()  # not committed
    code, out, _ = told(capsys, "backup", tmp_path / "a.db", "--out", tmp_path / "b.db")
    assert code == 0 and "bytes" in out
    desk.store.rollback()
    assert told(capsys, "backup", tmp_path / "a.db", "--out", tmp_path / "b.db")[0] == 2
    (found,) = verify(tmp_path / "b.db")
    assert not found.differs and found.digest == desk.stream.fold.digest() and found.decisions == 60
    copy = Desk(tmp_path / "b.db")
    assert copy.decide(arms_of(np.random.default_rng(5)), id="more").seq == 61
    copy.close(), desk.close()


@pytest.mark.parametrize("name", ("fade", "wall", "wall Auto", "wall restart"))
def test_what_is_forgotten_is_gone_and_what_was_learned_stays(tmp_path, capsys, name):
    desk = filled(tmp_path / "a.db", POLICIES[name], start=1_700_000_000.0)
    digest = desk.stream.fold.digest()
    with pytest.raises(Taken, match="send POST …/forget to that server"):
        forgetting.forget(tmp_path / "a.db", 0.0)
    desk.close()
    code, out, _ = told(capsys, "forget", tmp_path / "a.db", "--before", "2023-11-14T22:13:50")
    assert code == 0 and out == "home: 22 decisions forgotten\n"
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs and found.digest == digest and found.forgotten >= 22
    desk = Desk(tmp_path / "a.db")
    assert desk.stream.fold.digest() == digest == desk.refolded()
    assert desk.reward("0-1", 0.0).verdict == "duplicate"  # it still has what it learned
    assert desk.reward("0-0", 1.0).verdict == "learned"  # an open decision kept its arms
    desk.commit()
    desk.close()
    assert "22 left out" in told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log")[1]
    assert told(capsys, "forget", tmp_path / "a.db", "--before", "yesterday")[0] == 2
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs


def test_a_server_forgets_while_it_decides(tmp_path, monkeypatch):
    """In batches, with other decisions in between; the state, the log and later decisions stay correct."""
    monkeypatch.setattr(forgetting, "STRETCH", 7)
    now, rng = [1_700_000_000.0], np.random.default_rng(2)
    secret = [[0.123456789, 0.2], [0.1, 0.2]]
    with living(tmp_path / "a.db", now=lambda: now[0]) as asked:
        asked.put()
        for number in range(40):
            now[0] += 1.0
            asked.decide(str(number), arms=secret if number == 3 else arms_of(rng, 3, 2))
            if number % 4:
                asked.reward(str(number), float(number % 3 == 0))
        before = asked.stream()
        found = asked.ask("POST", "home/forget", json={"before": "2023-11-14T22:13:50"})  # half a minute later
        assert found.json() == {"forgotten": 21} and asked.stream() == before
        assert asked.ask("POST", "home/forget", json={"before": "2023-11-14T22:13:50"}).json() == {"forgotten": 0}
        assert asked.ask("POST", "home/forget", json={"before": "soon"}).status_code == 422
        for name in ("a.db", "a.db-wal"):
            assert np.array(secret[0]).tobytes() not in (tmp_path / name).read_bytes()
        for arms in (secret, ARMS):  # nothing is left that could distinguish the same request from another
            refused = asked.decide("3", arms=arms)
            assert refused.status_code == 409 and refused.json()["code"] == "forgotten_decision"
        assert asked.ask("GET", "home/explain/3").json()["decision"]["id"] == "3"
        assert asked.decide("new", arms=secret).status_code == 200  # a set that was erased is written again
        assert asked.reward("0", 1.0).json()["verdict"] == "learned" and asked.reward("1", 0.0).status_code == 200
        assert asked.reward("new", 1.0).json()["verdict"] == "learned"
        digest = asked.stream()["digest"]
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs and found.digest == digest and found.forgotten >= 21
    with living(tmp_path / "a.db") as asked:
        assert asked.stream()["digest"] == digest


def test_the_vectors_of_what_was_forgotten_are_not_in_the_file(tmp_path):
    desk = Desk(tmp_path / "a.db")
    secret = [[0.123456789, 0.2, 0.3], [0.1, 0.2, 0.1]]
    for number in range(3):  # the state after one reward would reveal its vector
        desk.decide(secret, at=1.0, id=str(number), items=["who-it-was", "b"])
        desk.commit()
        desk.reward(str(number), 0.7, at=2.0)
        desk.commit()
    desk.close()
    needles = (np.array(secret[0]).tobytes(), b"who-it-was")
    assert all(needle in (tmp_path / "a.db").read_bytes() for needle in needles)
    assert forgetting.forget(tmp_path / "a.db", 100.0) == {"home": 3}
    left = (tmp_path / "a.db").read_bytes()
    assert needles[0] not in left and b'["who-it-was"' not in left  # the name of the played item is kept


def test_keys_are_shown_once_and_listed_without_themselves(tmp_path, capsys):
    db = tmp_path / "a.db"
    code, key, _ = told(capsys, "keys", "create", db, "--scopes", "reward,decide", "--stream", "home", "--name", "app")
    assert code == 0 and len(key.strip()) == 43
    listed = told(capsys, "keys", "list", db)[1]
    assert "1  decide,reward  stream home" in listed and key.strip() not in listed
    with living(db) as asked:  # beside a server
        assert told(capsys, "keys", "revoke", db, 1)[0] == 0
        assert soon(lambda: not asked.service.access.keys)
    assert told(capsys, "keys", "revoke", db, 1)[0] == 2
    assert told(capsys, "keys", "create", db, "--scopes", "everything")[0] == 2


def test_a_key_for_a_database_that_is_not_there_says_that_one_was_made(tmp_path, capsys):
    assert "was created" in told(capsys, "keys", "create", tmp_path / "a.db")[2]
    assert "was created" not in told(capsys, "keys", "create", tmp_path / "a.db")[2]


def test_a_wanted_stream_is_named_where_there_are_several(tmp_path, capsys):
    with living(tmp_path / "a.db") as asked:
        asked.put("one"), asked.put("two")
        asked.decide("a", stream="one")
    code, _, err = told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log")
    assert code == 2 and "one, two" in err
    assert told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log", "--stream", "one")[0] == 0


@pytest.mark.parametrize("words", [["forget", "--before", "2026-01-31"], ["keys", "revoke", "1"], ["keys", "list"],
                                   ["refold"]])
@pytest.mark.parametrize("empty", [False, True])
def test_a_database_that_is_not_there_is_refused_and_not_made(tmp_path, capsys, words, empty):
    path = tmp_path / "slip.db"
    if empty:
        path.touch()
    at = 2 if words[0] == "keys" else 1
    code, _, err = told(capsys, *words[:at], path, *words[at:])
    assert code == 2 and "db: wanted a database" in err
    assert [one.name for one in tmp_path.iterdir()] == ["slip.db"] * empty and (not empty or not path.stat().st_size)


def test_a_server_that_is_refused_names_the_database_and_leaves_no_file(tmp_path, capsys):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "notes.txt").write_text("no database " * 500)
    with socket.create_server(("127.0.0.1", 0)) as other:
        for wanted, *words in (
            ("db:", folder / "notes.txt"), ("db:", folder), ("host:", folder / "new.db", "--host", "192.0.2.1"),
            ("host:", folder / "new.db", "--port", other.getsockname()[1]),
            ("host:", folder / "new.db", "--host", "a b"),
        ):  # fmt: skip
            code, _, err = told(capsys, "serve", "--db", *words)
            assert code == 2 and wanted in err, err
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["here", "notes.txt"]


def test_an_export_of_a_stream_that_is_not_there_is_refused_where_there_is_none(tmp_path, capsys):
    with living(tmp_path / "a.db"):
        pass
    code, _, err = told(capsys, "export", tmp_path / "a.db", "--out", tmp_path / "log", "--stream", "home")
    assert code == 2 and "there are none" in err


@pytest.mark.parametrize("number", [-1, 0, 2, 2**31, 2**63, 2**80])
def test_a_key_that_is_not_there_is_not_revoked(tmp_path, capsys, number):
    assert told(capsys, "keys", "create", tmp_path / "a.db")[0] == 0
    code, _, err = told(capsys, "keys", "revoke", tmp_path / "a.db", "--", number)
    assert code == 2 and "the number of a valid key" in err
    assert "decide" in told(capsys, "keys", "list", tmp_path / "a.db")[1]


@pytest.mark.parametrize("address", ["postgresql://[bad", "postgresql://a:secret@[bad/x", "postgres://a:secret@h:x/y"])
def test_an_address_that_is_not_one_is_refused_without_its_password(capsys, address):
    pytest.importorskip("psycopg")
    code, out, err = told(capsys, "verify", address)
    assert code == 2 and "db:" in err and "secret" not in out + err
