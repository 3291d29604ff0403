"""docs/personalizer.md call by call: the calls with a counterpart, and those that the page says have none."""

import re
from pathlib import Path

import pytest

import driftwise as dw
from driftwise.service.operate.export import export
from service.living import living

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "personalizer.md").read_text(encoding="utf-8")
TOPICS = {"cup final": "sport", "budget": "news", "new album": "music"}


@pytest.fixture
def home(tmp_path):
    """A stream as the page declares it, with its items, on a clock that tests set."""
    space, clock = {}, [1_000.0]
    exec(compile(re.search(r"```python\n(.*?)```", PAGE, flags=re.S)[1], "personalizer.md", "exec"), space)
    with living(tmp_path / "a.db", now=lambda: clock[0]) as asked:
        asked.clock, asked.body = clock, space["body"]

        def make(name, **changes):
            assert asked.ask("PUT", name, json={**asked.body, **changes}).status_code == 201
            rows = {item: {"topic": topic} for item, topic in TOPICS.items()}
            assert asked.ask("PUT", f"{name}/items", json={"items": rows}).status_code == 200

        asked.make = make
        yield asked


def rank(asked, id, stream="home", **changes):
    body = {"id": id, "context": {"device": "phone", "hour": 9}, "items": list(TOPICS), **changes}
    return asked.ask("POST", f"{stream}/decide", json=body)


def test_rank_again_with_the_same_event_gets_the_same_decision(home):
    home.make("home")
    first = rank(home, "e1").json()
    assert rank(home, "e1").json() == first and first["item"] in TOPICS
    assert rank(home, "e1", items=["budget", "cup final"]).status_code == 409
    ordered = home.ask("GET", "home/explain/e1").json()["arms"]
    assert sorted(arm["item"] for arm in ordered) == sorted(TOPICS)
    assert [arm["score"] for arm in ordered] == sorted((arm["score"] for arm in ordered), reverse=True)


def test_the_first_reward_stands_and_none_is_added_to_it(home):
    home.make("home")
    rank(home, "e1")
    assert home.reward("e1", 0.65).json()["verdict"] == "learned"
    assert home.reward("e1", 0.65).json()["verdict"] == "duplicate"
    refused = home.reward("e1", 0.2)
    assert refused.status_code == 409 and refused.json()["code"] == "other_reward"
    assert home.reward("e2", 0.2).status_code == 404


def test_the_reward_wait_time_and_the_default_reward(home):
    home.make("home", clock="wall", expire_after="10m", tick="1s")
    home.make("defaults", clock="wall", expire_after="10m", tick="1s", default_reward=0.0)
    for stream in ("home", "defaults"):
        rank(home, "e1", stream)
        rank(home, "e2", stream)
        assert home.reward("e2", 1.0, stream=stream).json()["verdict"] == "learned"
    for _ in range(14):  # a clock that jumps is held back
        home.clock[0] += 50.0
        rank(home, f"later{home.clock[0]:.0f}")
        rank(home, f"later{home.clock[0]:.0f}", "defaults")
    assert home.reward("e1", 1.0).json()["verdict"] == "late"
    home.reward("e1", 1.0, stream="defaults")
    counts = home.stream("defaults")["counts"]
    assert home.stream()["counts"]["learned"] == 1 and counts["defaulted"] >= 1


def test_an_excluded_action_is_left_out_and_slots_are_decisions_of_their_own(home):
    home.make("home")
    left = list(TOPICS)
    for slot in range(3):
        told = rank(home, f"visit-7/slot-{slot}", items=left).json()
        assert told["item"] in left
        left.remove(told["item"])
    assert not left


def test_a_misspelt_feature_is_refused_with_the_nearest_name(home):
    home.make("home")
    refused = rank(home, "e1", context={"devise": "phone", "hour": 9})
    assert refused.status_code == 422 and "device" in str(refused.json())


def test_exploration_has_the_propensity_that_the_page_says(home):
    home.make("home", epsilon=0.3)
    told = [rank(home, f"e{number}").json() for number in range(60)]
    wanted = {0.1, 0.1 + 0.7}  # before ten rewards nothing is looked at
    assert {round(one["propensity"], 12) for one in told} == {round(one, 12) for one in wanted}


def test_apprentice_mode_plays_the_callers_action_and_its_log_is_evaluated(home, tmp_path):
    home.make("apprentice", mode="shadow")
    agreed = 0
    for number in range(80):
        told = rank(home, f"e{number}", "apprentice", action=number % 3, propensity=1 / 3).json()
        assert told["arm"] == number % 3 and told["cohort"] == "shadow"
        agreed += told["proposed"] == told["arm"]
        home.reward(f"e{number}", float(number % 3 == 0), stream="apprentice")
    assert rank(home, "e99", "apprentice").json()["code"] == "missing_action"
    assert 0 < agreed < 80
    export(home.service.store.path, tmp_path / "log", stream="apprentice")
    assert list((tmp_path / "log").rglob("*"))
    policy = dw.make("Auto", dim=home.service.stream("apprentice").setup.policy.dim)
    assert dw.evaluate(policy, tmp_path / "log") is not None


WANTING = {  # a call of Personalizer, and the answer of the service
    "activate": ("POST", "home/decide/e1/activate", {}, 404),
    "deferActivation": ("POST", "home/decide", {"id": "e9", "deferActivation": True, "items": ["budget"]}, 422),
    "excludedActions": ("POST", "home/decide", {"id": "e9", "items": ["budget"], "excludedActions": []}, 422),
    "multislot": ("POST", "home/multislot", {}, 404),
}


@pytest.mark.parametrize("name", WANTING)
def test_what_does_not_work_is_refused_and_the_page_says_so(home, name):
    home.make("home")
    method, path, body, status = WANTING[name]
    assert home.ask(method, path, json=body).status_code == status
    assert [row for row in PAGE.splitlines() if f"`{name}`" in row and str(status) in row]
