"""`allowed` and `cost` of a decision, and the trace of its request: kept beside the decision, on both stores."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import driftwise as dw
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.tables.check import check_log
from service.living import ARMS, living

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
AUTO = {"name": "Auto", "dim": 2}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def db(request, tmp_path):
    return tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("database")


def requests(count, seed=0):
    """Bodies of decisions: with masks, indices, costs, both and neither."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        more = {}
        if number % 2:
            mask = (rng.random(3) < 0.5) | (np.arange(3) == number % 3)
            more["allowed"] = np.flatnonzero(mask).tolist() if number % 4 == 1 else mask.tolist()
        if number % 3:
            more["cost"] = np.round(rng.uniform(0, 0.6, 3), 3).tolist()
        yield f"d{number}", more


def test_a_service_decides_among_allowed_arms_at_their_costs_as_an_agent_does(db):
    agent = dw.Agent(dw.make(**AUTO), rewards=(0, 1), clock="rewards", epsilon=0.3, seed=4)
    kept = []
    with living(db) as asked:
        asked.put(policy=AUTO, half_life=None, epsilon=0.3, seed=4)
        for number, (id, more) in enumerate(requests(60)):
            told, own = asked.decide(id, **more).json(), agent.decide(ARMS, id=id, **more)
            for name in ("arm", "score", "mean", "bonus", "propensity", "explored"):
                assert told[name] == getattr(own, name), (number, name)
            asked.reward(id, number % 2)
            agent.reward(id, number % 2)
            kept.append(told)
    with living(db) as asked:  # again from the database
        for (id, more), told in zip(requests(60), kept, strict=True):
            assert asked.decide(id, **more).json() == told
            other = asked.decide(id, **{**more, "cost": [0.9, 0.9, 0.8]})
            assert other.json()["code"] == "other_decision" and "cost" in other.json()["error"]
            seen = asked.ask("GET", f"home/explain/{id}").json()
            assert seen["recomputed"] and len(seen["arms"]) == (np.ones(3)[_mask(more)]).sum()
            of = {one["arm"]: one for one in seen["arms"]}[told["arm"]]
            assert of["mean"] == told["mean"]  # the bonus of a forced decision is another
            assert of["score"] == of["mean"] + of["bonus"] - (of.get("cost") or 0.0)
    (found,) = verify(db)
    assert not found.differs and found.decisions == 60


def _mask(more):
    given = more.get("allowed", [True] * 3)
    return given if isinstance(given[0], bool) else np.isin(np.arange(3), given)


def test_whoever_plays_plays_an_arm_that_is_allowed(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put("first", mode="holdback", holdback=1.0)
        asked.put("uniform", mode="holdback", holdback=1.0, baseline="uniform")
        asked.put("shadow", mode="shadow")
        asked.put("home")
        told = asked.decide("a", stream="first", allowed=[1, 2]).json()
        assert (told["arm"], told["propensity"], told["cohort"]) == (1, 1.0, "baseline")
        drawn = [asked.decide(f"u{number}", stream="uniform", allowed=[0, 2]).json() for number in range(30)]
        assert {one["arm"] for one in drawn} == {0, 2} and {one["propensity"] for one in drawn} == {0.5}
        assert asked.decide("a", stream="shadow", allowed=[True, False, True], action=2).json()["arm"] == 2
        told = asked.decide("b", stream="shadow", allowed=[True, False, True], action=1)
        assert told.status_code == 422 and told.json()["field"] == "action"
        asked.ask("POST", "home/pause", json={"fallback": 2})
        assert asked.decide("a", allowed=[0, 2]).json()["arm"] == 2
        assert asked.decide("b", allowed=[0, 1]).json()["code"] == "fallback_not_offered"
    assert not [one for found in verify(tmp_path / "a.db") for one in found.differs]


@pytest.mark.parametrize("more, field", (
    ({"allowed": []}, "allowed"), ({"allowed": [True]}, "allowed"), ({"allowed": [0, True]}, "allowed"),
    ({"allowed": [0, 0, 1]}, "allowed"), ({"allowed": [1, 1]}, "allowed"), ({"allowed": [True, 1, 0]}, "allowed"),
    ({"allowed": [3]}, "allowed"), ({"allowed": [False] * 3}, "allowed"), ({"allowed": [-1]}, "allowed"),
    ({"cost": [0.1]}, "cost"), ({"cost": [0.1, "b", 0.2]}, "cost"), ({"cost": [1e400, 0, 0]}, "cost"),
))  # fmt: skip
def test_limits_that_mean_nothing_are_refused(tmp_path, more, field):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        told = asked.ask("POST", "home/decide", content=json.dumps({"arms": ARMS, **more}).replace("Infinity", "1e400"))
        assert told.status_code in (400, 422) and told.json()["field"].startswith((field, "body"))
        assert asked.stream()["counts"]["decided"] == 0


def test_a_policy_that_does_not_rank_arms_refuses_costs(tmp_path):
    with living(tmp_path / "a.db") as asked:
        sampling = {"name": "D-RandLinUCB", "dim": 2, "horizon": 500, "path_length": 1.0}
        asked.put(policy=sampling, half_life=None)
        told = asked.decide("a", cost=[0, 0, 0.1])
        assert told.status_code == 422 and "ranks arms" in told.json()["error"]
        assert asked.decide("a", allowed=[0, 1]).status_code == 200


def test_the_page_of_a_decision_shows_what_arms_cost_and_what_that_moved(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        for id, more in (("free", {}), ("priced", {"cost": [0.0, 0.25, 9.0]})):
            asked.decide(id, **more)
            asked.reward(id, 1)
        pages = {id: asked.get(f"/streams/home/decisions/{id}").text for id in ("free", "priced")}
    assert "Score = estimate + bonus," in pages["free"] and "cost" not in pages["free"].split("<main")[-1]
    assert "Score = estimate + bonus - cost," in pages["priced"] and ">0.25<" in pages["priced"]
    assert "and the cost " in pages["priced"] and ">cost<" in pages["priced"]


def test_costs_of_nothing_leave_a_stream_its_propensities(tmp_path):
    """Decisions with costs were never forced ones: their propensity was 1, and no log of them could be evaluated."""
    with living(tmp_path / "a.db") as asked:
        for name in ("free", "priced"):
            asked.put(name, policy={**AUTO, "looks": 3.0}, half_life=None, seed=4)
        forced = 0
        for number in range(900):  # until arms that are not played are hidden
            told = [
                asked.decide(f"d{number}", stream=name, **more).json()
                for name, more in (("free", {}), ("priced", {"cost": [0, 0, 0]}))
            ]
            for part in ("arm", "score", "mean", "bonus", "propensity"):
                assert told[0][part] == told[1][part]
            forced += 0.0 < told[0]["propensity"] < 1.0
            for name in ("free", "priced"):
                asked.reward(f"d{number}", float(told[0]["arm"] == 0), stream=name)
        assert forced > 0
    assert not [one for found in verify(tmp_path / "a.db") for one in found.differs]


def test_limits_that_were_changed_are_found_by_verify(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        asked.decide("a", cost=[0, 0, 5])
    with closing(sqlite3.connect(tmp_path / "a.db")) as raw:
        raw.execute("UPDATE detail SET cost = ?", (np.array([9.0, 0.0, 0.0]).tobytes(),))
        raw.commit()
    (found,) = verify(tmp_path / "a.db")
    assert any("a changed row" in told and "detail" in told for told in found.differs)


def test_a_trace_is_kept_with_its_decision_and_told_again(db, tmp_path):
    pytest.importorskip("pyarrow")
    wrong = ("", "x", TRACE.upper(), TRACE[:-1], TRACE + "-01", "ff" + TRACE[2:], f"00-{'0' * 32}{TRACE[35:]}",
             f"{TRACE[:36]}{'0' * 16}-01")  # fmt: skip
    later = "cc" + TRACE[2:]
    with living(db) as asked:
        asked.put()
        told = asked.ask("POST", "home/decide", json={"id": "a", "arms": ARMS}, headers={"traceparent": TRACE})
        assert told.status_code == 200
        asked.ask("POST", "home/decide/batch", json=[{"id": "b", "arms": ARMS, "allowed": [0, 2]}],
                  headers={"traceparent": later + "-more"})  # fmt: skip
        for number, header in enumerate(wrong):
            asked.ask("POST", "home/decide", json={"id": f"w{number}", "arms": ARMS}, headers={"traceparent": header})
        twice = [("traceparent", TRACE), ("traceparent", TRACE)]
        asked.ask("POST", "home/decide", json={"id": "w", "arms": ARMS}, headers=twice)
        seen = {id: asked.ask("GET", f"home/explain/{id}").json().get("trace") for id in ("a", "b", "w", "w0")}
        assert seen == {"a": TRACE, "b": later, "w": None, "w0": None}
        lines = [json.loads(line) for line in asked.log.getvalue().splitlines()]
        assert [line["trace"] for line in lines if "trace" in line] == [TRACE, later]
    export(db, tmp_path / "log")
    (batch,) = check_log(tmp_path / "log").batches(["decision_id", "trace", "n", "arm", "arms"])
    told = dict(zip(batch.decision_id, batch.trace, strict=True))
    assert {id for id, trace in told.items() if trace} == {"a", "b"} and told["b"] == later
    row = list(batch.decision_id).index("b")
    assert batch.n[row] == 2 and batch.arms[row].tolist() == [ARMS[0], ARMS[2]]
    (found,) = verify(db)
    assert not found.differs
