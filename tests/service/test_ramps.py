"""Ramps, guardrails, fallbacks and units that are kept out of training, on both stores: each step is an event."""

import json
from contextlib import closing

import numpy as np
import pytest

from driftwise.service.core.ramping import Ramping
from driftwise.service.core.verify import verify
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import DecisionRow, EventRow
from driftwise.service.stores.store import TABLES, seal, select
from service.living import ARMS, BODY, living


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def db(request, tmp_path):
    return tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("database")


def play(asked, start, count, live, held, seed=0, **more):
    """Units with one decision each, at the rates of the policy and of the baseline. Returns the policy's shares."""
    rng = np.random.default_rng(seed)
    for at in range(start, start + count, 250):
        bodies = [{"id": f"u{number}", "arms": ARMS} for number in range(at, at + 250)]
        told = asked.ask("POST", "home/decide/batch", json=bodies).json()
        rewards = [
            {"id": one["id"], "value": float(rng.random() < (live if one["cohort"] == "live" else held)),
             **({"metrics": {"ms": 100.0 + rng.normal() + more["slow"] * (one["cohort"] == "live")}} if more else {})}
            for one in told
        ]  # fmt: skip
        assert {"verdict"} <= set(asked.ask("POST", "home/reward/batch", json=rewards).json()[0])
    return np.mean([one["cohort"] == "live" for one in told])


def step(asked):
    """The state of the ramp after one look."""
    asked.wait(Ramping(asked.service).look())
    return asked.stream()["ramp"]


def events(db):
    with closing(open_store(db, writes=False)) as store:
        return [(one.kind, json.loads(one.body)) for one in store.events(1)]


def test_a_good_policy_arrives_and_each_step_is_computed_again(db):
    with living(db) as asked:
        assert asked.put(mode="holdback", holdback=0.1, ramp=[0.2, 0.5, 1], margin=-0.25).status_code == 201
        assert asked.stream()["ramp"] == {"place": 0, "share": pytest.approx(0.2), "stopped": False}
        number, shares = 0, []
        for place in (1, 2):
            for _ in range(8):
                shares.append(play(asked, number, 500, 0.5, 0.5, seed=number))
                number += 500
                if step(asked)["place"] == place:
                    break
        assert step(asked) == {"place": 2, "share": 0.9, "stopped": False}
        assert shares[0] < 0.3 and play(asked, number, 500, 0.5, 0.5) > 0.8
    with living(db) as asked:  # and again, from its events
        assert asked.stream()["ramp"]["place"] == 2
    told = [body for kind, body in events(db) if kind == "ramp"]
    assert [body["step"] for body in told] == ["advanced", "advanced"]
    assert all(body["reward"][1] > -0.25 for body in told)
    (found,) = verify(db)
    assert not found.differs


def test_a_harmful_policy_is_stopped_at_its_first_share(db):
    with living(db) as asked:
        asked.put(mode="holdback", ramp=[0.2, 1])
        number = 0
        while not step(asked)["stopped"]:
            play(asked, number, 500, 0.05, 0.6, seed=number)
            number += 500
            assert number <= 3_000, "stopped before 600 units got the policy"
        assert asked.stream()["ramp"] == {"place": 0, "share": 0.0, "stopped": True}
        assert play(asked, number, 250, 0.05, 0.6) == 0.0  # all units get the baseline
        assert step(asked)["stopped"]
    (found,) = verify(db)
    assert not found.differs


def test_a_step_that_was_not_due_is_found_by_verify(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(mode="holdback", ramp=[0.2, 1])
        play(asked, 0, 250, 0.5, 0.5)
        stream, service = asked.service.stream("home"), asked.service
        told = {"era": 1, "step": "advanced", "reason": "reward", "upto": 250, "reward": [0.1, 0.05, 0.2], "harms": {}}
        asked.wait(service.written(lambda: service.event(stream, "ramp", **told), stream.read_steps, stream))
        assert asked.stream()["ramp"]["place"] == 1
    (found,) = verify(tmp_path / "a.db")
    assert any("differs when it is recomputed" in one for one in found.differs)


def test_a_guardrail_that_is_broken_stops_a_ramp(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(mode="holdback", ramp=[0.5, 1], guardrails={"ms": {"margin": 5}})
        play(asked, 0, 1_000, 0.9, 0.5, slow=20.0)
        assert step(asked)["stopped"]
        wrong = {"id": "u1", "value": 1, "metrics": {"ms": "x"}}
        assert asked.ask("POST", "home/reward", json=wrong).status_code == 422
    assert [body["reason"] for kind, body in events(tmp_path / "a.db") if kind == "ramp"] == ["ms"]
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs


@pytest.mark.parametrize("ramp, mode", (
    ([0.5, 0.2], "holdback"), ([], "holdback"), ([0.0, 1], "holdback"), ([0.5], "live"),
))  # fmt: skip
def test_a_ramp_that_cannot_be_one_is_refused(tmp_path, ramp, mode):
    with living(tmp_path / "a.db") as asked:
        told = asked.put(mode=mode, ramp=ramp)
        assert told.status_code == 422 and "ramp" in told.json()["error"]


def test_a_fallback_is_played_while_a_stream_is_paused_and_nothing_is_learned_of_it(db):
    with living(db) as asked:
        asked.put()
        for number in range(5):
            asked.decide(f"a{number}")
            asked.reward(f"a{number}", 1.0)
        before = asked.stream()
        assert asked.ask("POST", "home/pause").status_code == 200
        assert asked.decide("b").json()["code"] == "stream_paused"
        assert asked.ask("POST", "home/pause", json={"fallback": 2}).status_code == 200
        told = asked.decide("b").json()
        assert (told["arm"], told["propensity"], told["cohort"]) == (2, 1.0, "fallback")
        assert asked.decide("c", arms=ARMS[:2]).json()["code"] == "fallback_not_offered"
        assert asked.reward("b", 1.0).json()["verdict"] == "kept"
        assert asked.reward("b", 1.0).json()["verdict"] == "duplicate"
        assert asked.decide("d").status_code == 200
        after = asked.stream()
        assert after["counts"]["learned"] == before["counts"]["learned"] and after["counts"]["kept"] == 1
    with living(db) as asked:  # a fallback survives a restart
        assert asked.decide("e").json()["cohort"] == "fallback" and asked.stream()["counts"]["kept"] == 1
        asked.ask("POST", "home/resume")
        assert asked.decide("f").json()["cohort"] == "live"
    (found,) = verify(db)
    assert not found.differs and found.rewards == 6
    assert [kind for kind, _ in events(db)] == ["paused", "paused", "resumed"]


def test_units_that_are_kept_out_count_for_the_lift_and_teach_nothing(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(mode="holdback", holdback=0.3, keep_out=0.5)
        play(asked, 0, 1_000, 0.6, 0.2)
        counts = asked.stream()["counts"]
        assert counts["learned"] + counts["kept"] == 1_000 and 400 < counts["kept"] < 600 and counts["late"] == 0
        asked.get("/metrics")
        look = asked.board.signals.newest(1).look
        assert look.live.units + look.baseline.units == 1_000
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs


@pytest.mark.parametrize("change, told", (
    ("UPDATE decision SET cohort = 'live' WHERE event_id = 'b'", "was not played by the fallback"),
    ("UPDATE decision SET arm = 1 WHERE event_id = 'b'", "is not the fallback"),
    ("UPDATE decision SET cohort = 'fallback' WHERE event_id = 'a'", "was played by a fallback"),
    ("UPDATE event SET body = '{}'", "was made while the stream was paused"),
    ("UPDATE stream SET paused = 1", "whether it is paused"),
))  # fmt: skip
def test_verify_computes_pauses_and_fallbacks_again(tmp_path, change, told):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        asked.decide("a")
        asked.ask("POST", "home/pause", json={"fallback": 2})
        asked.decide("b")
        asked.ask("POST", "home/resume")
        asked.decide("c")
    assert not verify(tmp_path / "a.db")[0].differs
    with closing(open_store(tmp_path / "a.db")) as store:  # changed, with a new seal
        store.begin()
        store.run(change)
        for kind in (EventRow, DecisionRow):
            rows = store.run(select(kind, "")).fetchall()
            store.run(f"UPDATE {TABLES[kind]} SET seal = ? WHERE stream = ? AND seq = ?",
                      rows=[(seal(row[:-1]), *row[:2]) for row in rows])  # fmt: skip
        store.commit()
    assert any(told in one for one in verify(tmp_path / "a.db")[0].differs)


def test_verify_computes_the_cohorts_of_units_again(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(mode="holdback", holdback=0.5)
        for number in range(10):
            asked.decide(f"d{number}")
        stream = asked.service.stream("home")
        stream.steps = stream.steps._replace(held=0.01)  # as a server that ignores its ramp
        for number in range(10, 30):
            asked.decide(f"d{number}")
    assert any("another cohort than its unit" in one for one in verify(tmp_path / "a.db")[0].differs)


DEFAULTS = {"epsilon": 0.0, "seed": 0, "mode": "live", "holdback": 0.1, "baseline": "first", "clock": "rewards",
            "margin": 0, "keep_out": 0, "ramp": None, "guardrails": None, "features": None, "tick": None}  # fmt: skip


def test_a_default_that_is_sent_is_no_other_stream(tmp_path):
    rail = {"guardrails": {"ms": {"margin": 5}}}
    with living(tmp_path / "a.db") as asked:
        assert asked.put().status_code == 201
        for name, value in DEFAULTS.items():
            assert asked.put(**{name: value}).status_code == 200, name
        assert asked.put(**DEFAULTS, policy={**BODY["policy"], "exploration": 1.0}).status_code == 200
        assert asked.put(policy={**BODY["policy"], "exploration": 0.5}).status_code == 409
        assert asked.put(epsilon=0.1).status_code == 409
        assert asked.put("sent", **DEFAULTS).status_code == 201 and asked.put("sent").status_code == 200
        assert asked.put("rail", **rail).status_code == 201
        rail["guardrails"]["ms"]["better"] = "lower"
        assert asked.put("rail", **rail).status_code == 200
    with living(tmp_path / "a.db") as asked:
        assert asked.put("sent").status_code == 200 and asked.put(**DEFAULTS).status_code == 200


def test_a_metric_that_no_guardrail_names_is_refused_and_one_that_has_gone_is_not(tmp_path):
    with living(tmp_path / "a.db") as asked:
        rails = {"ms": {"margin": 5}, "errors": {"margin": 1}}
        assert asked.put(mode="holdback", holdback=0.1, ramp=[0.5, 0.9], guardrails=rails).status_code == 201
        for id in "abc":
            assert asked.decide(id).status_code == 200

        def send(id, **metrics):
            return asked.ask("POST", "home/reward", json={"id": id, "value": 1, "metrics": metrics})

        for wrong in ({"msec": 3.0}, {"ms": 1e308}, {"ms": -1e16}):
            refused = send("a", **wrong)
            assert refused.status_code == 422 and "ms" in refused.json()["field"] + refused.json()["error"]
        assert asked.stream()["counts"]["learned"] == 0
        assert send("a", ms=3.0, errors=0.0).json()["verdict"] == "learned"
        body = {**BODY, "mode": "holdback", "guardrails": {"ms": {"margin": 5}}}
        assert asked.ask("PUT", "home/policy", json=body).status_code == 200
        assert send("b", ms=3.0, errors=0.0).json()["verdict"] == "learned"
    with living(tmp_path / "a.db") as asked:
        reward = {"id": "c", "value": 1, "metrics": {"errors": 0.0}}
        assert asked.ask("POST", "home/reward", json=reward).json()["verdict"] == "learned"


def test_a_live_stream_takes_no_action_while_it_is_paused(tmp_path):
    with living(tmp_path / "a.db") as asked:
        assert asked.put().status_code == 201
        assert asked.ask("POST", "home/pause", json={"fallback": 0}).status_code == 200
        for _ in range(2):
            assert asked.decide("a", action=1).json()["code"] == "unexpected_action"
        assert asked.decide("a").json()["cohort"] == "fallback"


def test_a_shadow_that_is_paused_with_a_fallback_records_what_the_caller_played(tmp_path):
    with living(tmp_path / "a.db") as asked:
        assert asked.put(mode="shadow").status_code == 201
        assert asked.ask("POST", "home/pause", json={"fallback": 0}).status_code == 200
        first = asked.decide("a", action=1, propensity=0.25).json()
        assert (first["arm"], first["propensity"], first["cohort"]) == (1, 0.25, "shadow")
        assert asked.decide("a", action=1, propensity=0.25).json() == first
        assert asked.reward("a", 1.0).json()["verdict"] == "learned"
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs
