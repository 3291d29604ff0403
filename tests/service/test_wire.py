"""Requests and answers (docs/contract.md#the-wire)."""

import base64
import sqlite3

import numpy as np
import pytest

from driftwise.service.core import serving
from driftwise.service.core.verify import verify
from driftwise.service.operate import keeping
from service.living import ARMS, BODY, living, soon


@pytest.fixture
def home(tmp_path):
    with living(tmp_path / "a.db") as asked:
        assert asked.put().status_code == 201
        yield asked


def test_the_same_stream_again_is_fine_and_another_of_its_name_is_not(home):
    assert home.put().status_code == 200
    assert home.put(epsilon=0.1).status_code == 409
    assert home.put("other", epsilon=0.1).status_code == 201
    assert home.ask("GET", "nobody").status_code == 404


def test_an_id_is_decided_once_whatever_comes_between(home):
    first = home.decide("a").json()
    assert first["seq"] == 1 and first["state_seq"] == 0
    home.decide("b")
    home.reward("b", 1.0)
    assert home.decide("a").json() == first
    assert home.decide("a", arms=ARMS[:2]).status_code == 409
    home.service.stream("home").known.clear()  # read from the file it is the same
    assert home.decide("a").json() == first
    assert home.decide("a", arms=ARMS[:2]).status_code == 409
    assert home.stream()["seq"] == 2


def test_what_a_reward_gets(home):
    home.decide("a")
    assert home.reward("a", 1.0).json() == {"verdict": "learned", "seq": 1}
    for _ in range(2):
        assert home.reward("a", 1.0).json() == {"verdict": "duplicate", "seq": 1}
        assert home.reward("a", 0.0).status_code == 409
        home.service.stream("home").known.clear()
    assert home.reward("nobody", 1.0).status_code == 404
    digest = home.stream()["digest"]
    assert home.reward("a", 7.0).status_code == 422
    assert home.stream()["digest"] == digest and home.stream()["counts"]["learned"] == 1


def test_a_reward_that_comes_after_its_time_is_late_and_changes_nothing(tmp_path):
    clock = [1000.0]
    with living(tmp_path / "a.db", now=lambda: clock[0]) as asked:
        assert asked.put(clock="wall", half_life="1h", expire_after="10m").status_code == 201
        asked.decide("a"), asked.decide("b")
        clock[0] += 590.0
        assert asked.reward("a", 1.0).json()["verdict"] == "learned"
        digest = asked.stream()["digest"]
        clock[0] += 100.0
        assert asked.reward("b", 1.0).json() == {"verdict": "late", "seq": 2}
        assert asked.reward("b", 1.0).json() == {"verdict": "late", "seq": 2}
        assert asked.reward("b", 0.0).status_code == 409
        found = asked.stream()
        assert found["digest"] == digest and found["counts"]["late"] == 1 and found["state_seq"] == 2
    assert [one.differs for one in verify(tmp_path / "a.db")] == [[]]


def test_a_clock_that_jumps_moves_nothing_but_later_births(tmp_path):
    clock = [10_000.0]
    with living(tmp_path / "a.db", now=lambda: clock[0]) as asked:
        asked.put(clock="wall", half_life="1h", tick="1s")
        for number, jump in enumerate((0.0, 3600.0, -7200.0, 0.0, 3600.0)):
            clock[0] += jump
            asked.decide(str(number))
            assert asked.reward(str(number), 1.0).json()["verdict"] == "learned"
        births = [row.born for row in asked.service.store.decisions(1)]
        assert births == sorted(births) == [10_000, 13_600, 13_600, 13_600, 13_600]
        digest = asked.stream()["digest"]
    assert verify(tmp_path / "a.db")[0].digest == digest


def test_arms_are_the_same_as_numbers_and_as_bytes(home):
    packed = base64.b64encode(np.array(ARMS).tobytes()).decode()
    first = home.decide("a").json()
    assert home.decide("a", arms=None, arms64=packed, n=3).json() == first
    assert home.decide("b", arms=None, arms64=packed, n=3).status_code == 200
    assert home.decide("c", arms=None, arms64=packed, n=2).status_code == 422
    assert home.decide("c", arms=None, arms64="!" + packed, n=3).status_code == 422
    with sqlite3.connect(home.service.store.path) as raw:
        assert raw.execute("SELECT count(*) FROM arm_set").fetchone() == (1,)
    raw.close()


def test_items_in_a_context_are_the_arms_that_features_make_of_them(tmp_path):
    import driftwise as dw

    features = dw.Features(
        context={"hour": dw.Features.number(12, 6)}, item={"kind": dw.Features.levels(("news", "sport"))},
        cross=[("hour", "kind")],
    )  # fmt: skip
    body = {"policy": {"name": "Auto", "dim": features.dim}, "rewards": [0, 1], "features": features.to_dict()}
    rows = {"a": {"kind": "news"}, "b": {"kind": "sport"}}
    with living(tmp_path / "a.db") as asked:
        assert asked.ask("PUT", "home", json=body).status_code == 201
        assert asked.ask("PUT", "home/items", json={"items": rows}).json() == {"items": 2}
        first = asked.decide("1", arms=None, context={"hour": 6}, items=["a", "b"]).json()
        assert first["item"] in rows
    with living(tmp_path / "a.db") as asked:  # registered once
        made = dw.tables.Encoder(features)
        arms = made.arms({"hour": 6}, rows).tolist()
        assert asked.decide("1", arms=arms, items=["a", "b"]).json() == first
        assert asked.ask("PUT", "home", json=body).status_code == 200
        for refused, nearest in (
            (asked.decide("2", arms=None, context={"our": 6}, items=["a"]), "'hour'"),
            (asked.decide("2", arms=None, context={"hour": 6}, items=["a", "bb"]), "'b'"),
            (asked.ask("PUT", "home/items", json={"items": {"c": {"kid": "news"}}}), "'kind'"),
        ):  # fmt: skip
            assert refused.status_code == 422 and f"the nearest is {nearest}" in refused.json()["hint"]
            assert refused.json()["hint"] not in refused.json()["error"]  # a client that prints both shows it once
        assert asked.decide("3", arms=None, context={"hour": "noon"}, items=["a"]).status_code == 422
    assert not verify(tmp_path / "a.db")[0].differs


def test_the_same_request_gets_its_decision_when_the_rows_of_its_items_have_changed(tmp_path):
    import driftwise as dw

    features = dw.Features(context={"hour": dw.Features.number(12, 6)}, item={"size": dw.Features.number(0, 1)})
    body = {"policy": {"name": "Auto", "dim": features.dim}, "rewards": [0, 1], "features": features.to_dict()}
    same = {"arms": None, "context": {"hour": 6}, "items": ["a", "b"]}
    with living(tmp_path / "a.db") as asked:
        assert asked.ask("PUT", "home", json=body).status_code == 201
        asked.ask("PUT", "home/items", json={"items": {"a": {"size": 0.5}, "b": {"size": 0.1}}})
        first = asked.decide("1", **same).json()
        asked.ask("PUT", "home/items", json={"items": {"a": {"size": 0.1}, "b": {"size": 0.7}}})
        assert asked.decide("1", **same).json() == first
    with living(tmp_path / "a.db") as asked:
        assert asked.decide("1", **same).json() == first
        for other in ({"context": {"hour": 7}}, {"items": ["b", "a"]}, {"items": ["a"]}):
            assert asked.decide("1", **{**same, **other}).status_code == 409
        assert asked.stream()["seq"] == 1
    assert not verify(tmp_path / "a.db")[0].differs


def test_another_name_of_any_item_under_an_id_is_refused(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        first = asked.decide("1", items=["a", "b", "c"]).json()
    for _ in range(2):
        with living(tmp_path / "a.db") as asked:
            for arm in range(3):
                names = [*"abc"]
                names[arm] = "z"
                assert asked.decide("1", items=names).status_code == 409
            assert asked.decide("1").status_code == 409
            assert asked.decide("1", items=["a", "b", "c"]).json() == first


def test_a_stream_of_before_allows_unknown_names_and_a_new_one_refuses_them_unless_it_says_so(tmp_path, monkeypatch):
    import driftwise as dw

    F = dw.Features
    new = F(context={"hour": F.number(12, 6)}, item={"kind": F.levels(("news",))}).to_dict()
    old = {name: value for name, value in new.items() if name != "unknown"}

    def body(features):
        return {"policy": {"name": "OFUL", "dim": 4, "horizon": 99}, "rewards": [0, 1], "features": features}

    def decides(asked, stream):
        return asked.decide(arms=None, context={"our": 6}, items=["nobody"], stream=stream).status_code

    with living(tmp_path / "a.db") as asked:
        with monkeypatch.context() as before:
            before.setattr(serving, "declared_body", lambda body, before=None: body)
            assert asked.ask("PUT", "old", json=body(old)).status_code == 201
        assert asked.ask("PUT", "new", json=body(old)).status_code == 201  # written by hand, without that setting
        assert asked.ask("PUT", "free", json=body({**old, "unknown": "allow"})).status_code == 201
        assert [decides(asked, one) for one in ("old", "new", "free")] == [200, 422, 200]
        assert [asked.ask("PUT", one, json=body(old)).status_code for one in ("old", "new", "free")] == [200, 200, 409]
        for one in ("old", "new", "free"):
            assert asked.ask("PUT", f"{one}/policy", json={**body(old), "epsilon": 0.1}).status_code == 200
    with living(tmp_path / "a.db") as asked:
        assert [decides(asked, one) for one in ("old", "new", "free")] == [200, 422, 200]


def test_a_shadow_plays_what_the_caller_plays_and_notes_its_own(home):
    home.put("apprentice", mode="shadow")
    assert home.decide("a", stream="apprentice").status_code == 422
    found = home.decide("a", stream="apprentice", action=2, propensity=0.25).json()
    assert (found["arm"], found["propensity"], found["cohort"], found["proposed"]) == (2, 0.25, "shadow", 0)
    assert home.reward("a", 1.0, "apprentice").json()["verdict"] == "learned"
    again = home.decide("b", stream="apprentice", action=0).json()
    assert again["proposed"] != 0 or again["mean"] > 0  # it learned from the caller's arm
    assert home.decide("c", action=1).status_code == 422  # a live stream takes no action


@pytest.mark.parametrize("restarted", [False, True], ids=["at hand", "from the store"])
def test_the_same_id_means_the_same_request(tmp_path, restarted):
    names = ["x", "y", "z"]
    shown = {"stream": "apprentice", "action": 2, "propensity": 0.25, "items": names}
    others = {
        "action": {**shown, "action": 1}, "propensity": {**shown, "propensity": 0.5},
        "no action": {**shown, "action": None}, "no propensity": {**shown, "propensity": None},
        "arms": {**shown, "arms": ARMS[::-1]}, "items": {**shown, "items": names[::-1]},
        "no items": {**shown, "items": None},
    }  # fmt: skip
    with living(tmp_path / "a.db") as asked:
        asked.put(), asked.put("apprentice", mode="shadow")
        first, live = asked.decide("a", **shown), asked.decide("a")
        if not restarted:
            _same_or_refused(asked, first, live, shown, others)
    if restarted:
        with living(tmp_path / "a.db") as asked:
            _same_or_refused(asked, first, live, shown, others)


def _same_or_refused(asked, first, live, shown, others):
    assert asked.decide("a", **shown).json() == first.json() and asked.decide("a").json() == live.json()
    for name, other in others.items():
        refused = asked.decide("a", **other)
        assert refused.status_code == 409 and refused.json()["error"].endswith(f"other {name.removeprefix('no ')}")
    assert asked.decide("a", action=live.json()["arm"]).status_code == 409  # a live stream gets none
    batch = [{"id": "a", "arms": ARMS, **{key: shown[key] for key in ("action", "propensity", "items")}},
             {"id": "a", "arms": ARMS, "action": 1, "propensity": 0.25, "items": shown["items"]}]  # fmt: skip
    told = asked.ask("POST", "apprentice/decide/batch", json=batch).json()
    assert told[0] == first.json() and told[1]["status"] == 409


def test_a_share_of_units_is_held_back_and_always_the_same(home):
    home.put("trial", mode="holdback", holdback=0.25, baseline="uniform")
    cohorts = {}
    for number in range(400):
        found = home.decide(f"d{number}", stream="trial", unit=f"u{number % 200}").json()
        cohorts.setdefault(f"u{number % 200}", set()).add(found["cohort"])
        assert found["propensity"] == (1 / 3 if found["cohort"] == "baseline" else 1.0)
    assert all(len(one) == 1 for one in cohorts.values())
    held = sum(one == {"baseline"} for one in cohorts.values())
    assert 25 <= held <= 77  # 50 expected; outside by chance once in 10^4
    assert home.decide(stream="trial").status_code == 422


def test_a_paused_stream_learns_but_does_not_decide(home):
    home.decide("a")
    assert home.ask("POST", "home/pause").json()["paused"] is True
    assert home.decide("b").status_code == 409
    assert home.decide("a").status_code == 200 and home.reward("a", 1.0).status_code == 200
    assert home.ask("POST", "home/resume").json()["paused"] is False
    assert home.decide("b").status_code == 200


def test_a_reset_forgets_and_another_policy_is_taught_the_same(tmp_path):
    with living(tmp_path / "a.db") as home:
        home.put()
        digest = _changed(home)
    with living(tmp_path / "a.db") as asked:
        assert asked.stream()["digest"] == digest
    assert [one.differs for one in verify(tmp_path / "a.db")] == [[], []]


def _changed(home):
    fresh = home.stream()["digest"]
    for number in range(20):
        home.decide(str(number))
        home.reward(str(number), float(number % 3 == 0))
    changed = {**BODY, "half_life": 5}
    found = home.ask("PUT", "home/policy", json=changed).json()
    assert found["era"] == 2 and found["state_seq"] == 20
    home.put("twin", half_life=5)
    for number in range(20):  # a stream that had this policy from the start and learned the same arms
        arm = home.service.store.decision(1, str(number)).arm
        home.decide(str(number), stream="twin", arms=[ARMS[arm]])
        home.reward(str(number), float(number % 3 == 0), "twin")
    assert home.stream("twin")["digest"] == found["digest"]
    home.decide("old")
    assert home.ask("POST", "home/reset").json()["era"] == 3
    assert home.reward("old", 1.0).json()["verdict"] == "learned"  # decided before, learned after
    assert home.stream()["digest"] != fresh
    assert home.put(half_life=5).status_code == 200 and home.put().status_code == 409
    assert home.ask("PUT", "home/policy", json={**changed, "clock": "wall", "half_life": "1h"}).status_code == 409
    return home.stream()["digest"]


def test_batches_are_the_same_one_by_one_and_one_that_is_refused_stops_nobody(home):
    asked = [{"id": "a", "arms": ARMS}, {"id": "b", "arms": [[1.0]]}, {"id": "a", "arms": ARMS}]
    first, second, third = home.ask("POST", "home/decide/batch", json=asked).json()
    assert first == third == home.decide("a").json()
    assert second["status"] == 422 and set(second) == {"code", "error", "field", "hint", "status"}
    told = home.ask("POST", "home/reward/batch", json=[{"id": "a", "value": 1}] * 2 + [{"id": "x", "value": 1}]).json()
    assert [one.get("verdict", one.get("status")) for one in told] == ["learned", "duplicate", 404]
    assert home.ask("POST", "home/decide/batch", json=[asked[0]] * 1001).status_code == 422


def test_a_decision_is_explained_by_the_state_it_was_made_on(home):
    for number in range(30):
        home.decide(str(number), items=["x", "y", "z"])
        home.reward(str(number), float(number % 2))
    found = home.ask("GET", "home/explain/17").json()
    assert found["recomputed"] is True and found["reward"] == 1.0 and found["verdict"] == "learned"
    best = found["arms"][0]
    assert (best["arm"], best["score"]) == (found["decision"]["arm"], found["decision"]["score"])
    assert sorted(one["item"] for one in found["arms"]) == ["x", "y", "z"]
    assert home.ask("GET", "home/explain/nobody").status_code == 404


def test_metrics_and_health_say_what_is_on_disk(home):
    home.decide("a"), home.reward("a", 1.0), home.decide("b")
    text = home.get("/metrics").text
    assert 'driftwise_decisions_total{stream="home"} 2.0' in text
    assert 'driftwise_rewards_total{stream="home",verdict="learned"} 1.0' in text
    assert home.get("/healthz").json() == {"status": "fine"}


# ------------------------------------------------------------------------------------------ access


def test_keys_let_in_whom_they_name_and_nobody_else(tmp_path):
    path = tmp_path / "a.db"
    admin = keeping.create_key(path, "admin", "*", "ops")
    user = keeping.create_key(path, "decide", "home", "app")
    with living(path) as asked:

        def status(key, method, where, **more):
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            return asked.ask(method, where, headers=headers, **more).status_code

        assert status(None, "PUT", "home", json=BODY) == 401
        assert status(user, "PUT", "home", json=BODY) == 403
        assert status(admin, "PUT", "home", json=BODY) == 201
        assert status(admin, "PUT", "other", json=BODY) == 201
        assert status(user, "POST", "home/decide", json={"arms": ARMS}) == 200
        assert status(user, "POST", "other/decide", json={"arms": ARMS}) == 403
        assert status(user, "POST", "home/reward", json={"id": "a", "value": 1}) == 403
        assert status(admin, "POST", "home/decide", json={"arms": ARMS}) == 403
        assert asked.get("/healthz").status_code == 200
        assert asked.get("/metrics").status_code == 401
        keeping.revoke_key(path, 2)
        assert soon(lambda: len(asked.service.access.keys) == 1)
        assert status(user, "POST", "home/decide", json={"arms": ARMS}) == 401
        for _ in range(7):
            assert status("guess", "POST", "home/decide", json={"arms": ARMS}) == 401
        assert status("guess", "GET", "home") == 429
        assert status(admin, "GET", "home") == 200  # failures are limited, valid keys are not
        logged = asked.log.getvalue() + repr(asked.service.access) + repr(vars(asked.service))
        assert admin not in logged and user not in logged
    assert admin.encode() not in path.read_bytes() and user.encode() not in path.read_bytes()
