"""Features: declared, bounded, equal after saving and loading, and defined for missing values."""

import dataclasses
import json

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftwise as dw
from driftwise._internal.container import canonical
from driftwise.tables import Encoder, check_log, from_obp, log_of
from hostile.surface import BAD
from refusing import refused

F = dw.Features
SPEC = F(
    context={"hour": F.number(12.0, 6.0), "device": F.levels(("phone", "desktop")), "user": F.hashed(5)},
    item={"price": F.number(5.0, 2.0, 2.0), "genre": F.levels(("a", "b"))},
    cross=[("device", "genre"), ("hour", "price")], blocks=("one", "two"), L=2.0,
)  # fmt: skip
ALLOWS = dataclasses.replace(SPEC, unknown="allow")
ITEMS = {"one": {"price": 6.0, "genre": "a"}, "two": {"price": None, "genre": "z"}, "three": {}}
CONTEXT = {"hour": 15, "device": "desktop", "user": "u1"}


def named(context, items, row=0):
    """The numbers of a vector by name, unscaled."""
    vector = Encoder(ALLOWS).arms(context, items)[row] / SPEC.scale
    return {name: round(float(value), 12) for name, value in zip(SPEC.names, vector, strict=True) if value}


def test_a_vector_says_what_was_declared():
    found = named(CONTEXT, ITEMS)
    hashed = [name for name in found if name.startswith("user#")]
    assert len(hashed) == 1 and abs(found[hashed[0]]) == 1.0
    rest = {name: value for name, value in found.items() if "user" not in name}
    hour, price = 0.5 / 3.0, 0.5 / 2.0
    assert rest == pytest.approx({
        "1": 1.0, "hour": hour, "device=desktop": 1.0, "price": price, "genre=a": 1.0, "device=desktop × genre=a": 1.0,
        "hour × price": hour * price, "one: 1": 1.0, "one: hour": hour, "one: device=desktop": 1.0,
    })  # fmt: skip


def test_what_is_missing_or_unknown_has_a_meaning():
    assert "genre=other" in named(CONTEXT, ITEMS, 1) and "price" not in named(CONTEXT, ITEMS, 1)
    assert named({}, ["one"]) == {"1": 1.0, "one: 1": 1.0}  # only the item's name is known
    assert named({"device": "watch"}, ["nobody"]) == {
        "1": 1.0, "device=other": 1.0, "other: 1": 1.0, "other: device=other": 1.0}
    nan = {"hour": float("nan"), "device": None, "unheard of": 3}
    assert named(nan, ["one"]) == named({}, ["one"])
    far = {"hour": 1e300}
    assert named(far, ["one"])["hour"] == 1.0
    assert named({"user": 7}, ["one"]) == named({"user": 7.0}, ["one"]) == named({"user": "7"}, ["one"])


def test_names_that_nobody_declared_are_refused_with_the_nearest_one():
    encoder = Encoder(SPEC)
    encoder.know(ITEMS)
    for ask, parts in (
        (lambda: encoder.arms({"devise": "phone"}, ITEMS), ("context", "'devise'", "the nearest is 'device'")),
        (lambda: encoder.context({"device": "phone", "": 1}), ("context", "''", 'unknown="allow"')),
        (lambda: encoder.know({"four": {"gendre": "a"}}), ("items", "'gendre'", "the nearest is 'genre'")),
        (lambda: encoder.arms({}, {"four": {"prize": 2.0}}), ("items", "'prize'", "the nearest is 'price'")),
        (lambda: encoder.arms({}, ["one", "thre"]), ("items", "'thre'", "the nearest is 'three'")),
        (lambda: Encoder(SPEC).arms({}, ["one"]), ("items", "'one'", "described by a row")),
    ):  # fmt: skip
        with refused(*parts):
            ask()
    assert set(encoder.rows) == set(ITEMS)
    lenient = Encoder(ALLOWS)
    want = lenient.arms({"device": "phone"}, ["one"])
    np.testing.assert_array_equal(lenient.arms({"device": "phone", "devise": 1}, {"one": {"gendre": "a"}}), want)
    blocks = Encoder(F(context={}, item={}, blocks=("one", "two")))
    assert blocks.arms({}, ["two", "one"]).shape == (2, 4)
    with refused("items", "'tow'", "the nearest is 'two'"):
        blocks.arms({}, ["tow"])
    assert blocks.arms({}, {"new": {}})[0, -1] > 0.0  # described by a row: it shares the block "other"
    assert Encoder(F(context={"hour": F.number()}, item={})).arms({}, ["any", "name"]).shape == (2, 2)


def test_features_of_before_allow_what_is_unknown_and_new_ones_say_so():
    assert SPEC.unknown == F.fit([{"a": 1}], {}).unknown == "refuse" and SPEC.to_dict()["unknown"] == "refuse"
    old = {name: value for name, value in SPEC.to_dict().items() if name != "unknown"}
    assert F.from_dict(old) == ALLOWS and F.from_dict(ALLOWS.to_dict()) == ALLOWS
    with refused("unknown", "refuse, allow"):
        dataclasses.replace(SPEC, unknown="ignore")


def test_no_masked_value_is_taken_for_the_number_behind_its_mask():
    hidden = np.ma.array([[1.0, 0.0], [0.0, 99.0]], mask=[[0, 0], [0, 1]])
    agent = dw.Agent(dw.LinearUCB(dim=2, memory=dw.Keep(), lam=1.0, delta=0.1, L=100.0), rewards=(0, 1))
    with refused("arms", "masked value at [1, 1]"):
        agent.decide(hidden)
    with refused("arms", "masked value at [1]"):
        agent.decide(list(hidden))
    with refused("cost", "masked"):
        agent.decide(np.eye(2), cost=np.ma.array([0.1, 5.0], mask=[1, 0]))
    with refused("rewards", "masked value at [0, 1]"):
        dw.Outcomes(arms=np.eye(2), rewards=np.ma.array([[1.0, 0.5]], mask=[[0, 1]]))
    with refused("value"):
        agent.reward(agent.decide(np.eye(2)).id, np.ma.masked)
    paid = np.ma.array([0.0, 1.0], mask=[0, 1])
    for column, values in (("reward", paid), ("born", np.ma.array([1, 2], mask=[0, 1])), ("x", hidden)):
        with refused("log", "row 1"):
            log_of(**{column: values})
    assert agent.decide(np.ma.array(np.eye(2))).arm in (0, 1)  # nothing is masked


numbers = st.one_of(st.none(), st.floats(allow_infinity=False))
values = st.one_of(numbers, st.booleans(), st.integers(-9, 9), st.sampled_from("abz"))
item_rows = st.fixed_dictionaries({}, optional={"price": numbers, "genre": values})


@given(
    st.fixed_dictionaries({}, optional={"hour": numbers, "device": values, "user": values}),
    st.dictionaries(st.sampled_from(["one", "two", "new"]), item_rows, min_size=1),
)
def test_no_vector_is_longer_than_L(context, items):
    arms = Encoder(SPEC).arms(context, items)
    assert arms.shape == (len(items), SPEC.dim) and np.isfinite(arms).all()
    assert np.linalg.norm(arms, axis=1).max() <= SPEC.L * (1.0 + 1e-9)


def test_the_bound_on_the_norm_is_reached():
    full = F(context={"device": F.levels(("a",))}, item={"genre": F.levels(("b",))}, cross=[("device", "genre")], L=3.0)
    arms = Encoder(full).arms({"device": "a"}, {"x": {"genre": "b"}})
    assert np.linalg.norm(arms) == pytest.approx(3.0)


def test_the_dimension_is_the_number_of_names():
    for spec in (SPEC, dataclasses.replace(SPEC, blocks=("a", "b")), dataclasses.replace(SPEC, blocks=(), cross=())):
        for intercept in (True, False):
            made = dataclasses.replace(spec, intercept=intercept)
            assert made.dim == len(made.names)


def test_a_file_keeps_features_to_the_last_bit():
    text = json.dumps(SPEC.to_dict())
    again = F.from_dict(json.loads(text))
    assert again == SPEC and canonical(again.to_dict()) == canonical(SPEC.to_dict())
    np.testing.assert_array_equal(Encoder(again).arms(CONTEXT, ITEMS), Encoder(SPEC).arms(CONTEXT, ITEMS))
    odd = ({"more": 1}, {"context": [["a", "magic", {}]]}, {"context": [["a", "number", {"scale": 0.0}]]}, {"L": "x"})
    for bad in (None, {}, [], *({**SPEC.to_dict(), **change} for change in odd)):
        with pytest.raises(dw.BadInput):
            F.from_dict(bad)


@pytest.mark.parametrize("frame", [lambda rows: rows, pandas.DataFrame, polars.DataFrame])
def test_features_are_fitted_from_rows_or_frames(frame):
    rows = [{"hour": float(k % 24), "city": "Oslo" if k % 3 else "Rome", "user": f"u{k}"} for k in range(480)]
    items = {"a": {"genre": "x"}, "b": {"genre": "y"}}
    found = F.fit(frame(rows), items, cross=[("city", "genre")], width=8, blocks=True)
    hours = [row["hour"] for row in rows]
    assert found.context["hour"].mean == pytest.approx(np.mean(hours))
    assert found.context["hour"].scale == pytest.approx(np.std(hours))
    assert found.context["city"].levels == ("Oslo", "Rome") and found.context["user"].width == 8
    assert found.blocks == ("a", "b")


def test_rows_of_items_are_kept_and_replaced():
    encoder = Encoder(SPEC)
    first = encoder.arms(CONTEXT, ITEMS)
    np.testing.assert_array_equal(encoder.arms(CONTEXT, list(ITEMS)), first)
    other = encoder.arms(CONTEXT, {"one": {"price": 1.0, "genre": "b"}})
    assert (other != first[:1]).any()
    np.testing.assert_array_equal(encoder.arms(CONTEXT, ["one"]), other)


def test_what_cannot_be_declared_or_encoded_is_said():
    with refused("cross"):
        F(context={}, item={}, cross=[("a", "b")])
    with refused("context"):
        F(context={"hour": "number"}, item={})
    with refused("levels"):
        F.levels(("a", "a"))
    with refused("features"):
        F(context={}, item={}, intercept=False)
    with refused("hour"):
        Encoder(SPEC).arms({"hour": "noon"}, ITEMS)
    with refused("items"):
        Encoder(SPEC).arms({}, [])
    with refused("context"):
        Encoder(SPEC).arms(7, ITEMS)


def agent_of(**options):
    policy = dw.LinearUCB(dim=SPEC.dim, memory=dw.Fade(0.01), lam=1.0, delta=0.1, L=2.0)
    return dw.Agent(policy, rewards=(0, 1), features=SPEC, **options)


def test_an_agent_with_features_chooses_as_one_with_their_arms():
    agent, twin = agent_of(), agent_of()
    for t in range(20):
        context = {**CONTEXT, "hour": t}
        one = agent.decide(context=context, items=ITEMS if t == 0 else list(ITEMS), id=f"t{t}")
        two = twin.decide(Encoder(SPEC).arms(context, ITEMS), list(ITEMS), id=f"t{t}")
        assert one.arm == two.arm and one.item == list(ITEMS)[one.arm]
        agent.reward(one.id, t % 2)
        twin.reward(two.id, t % 2)
    assert agent.state.to_bytes() == twin.state.to_bytes()
    assert {name for name, _ in agent.explain(one).pulls} == set(SPEC.names)


def test_a_snapshot_has_the_features_and_the_items():
    agent = agent_of()
    agent.decide(context=CONTEXT, items=ITEMS)
    twin = dw.Agent.from_bytes(agent.to_bytes())
    assert twin.features == SPEC and twin.to_bytes() == agent.to_bytes()
    assert twin.decide(context=CONTEXT, items=list(ITEMS))[2:8] == agent.decide(context=CONTEXT, items=list(ITEMS))[2:8]


def test_a_log_with_contexts_and_candidates_gives_the_arms_again(tmp_path):
    agent = agent_of()
    with agent.log_to(tmp_path, arms=True):
        for t in range(8):
            agent.reward(agent.decide(context={**CONTEXT, "hour": t, "user": t}, items=ITEMS).id, 0.5)
    (batch,) = check_log(tmp_path).batches(["context", "candidates", "arms", "x", "arm"])
    encoder = Encoder(SPEC)
    encoder.know(ITEMS)
    for row in range(8):
        arms = encoder.arms(batch.context[row], batch.candidates[row])
        np.testing.assert_array_equal(arms, batch.arms[row])
        np.testing.assert_array_equal(arms[batch.arm[row]], batch.x[row])


def test_what_does_not_fit_an_agent_is_said():
    with refused("features", "dim=features.dim"):
        dw.Agent(dw.LinearUCB(dim=3, memory=dw.Keep(), lam=1.0, delta=0.1), rewards=(0, 1), features=SPEC)
    with refused("features"):
        dw.Agent(dw.LinearUCB(dim=3, memory=dw.Keep(), lam=1.0, delta=0.1), rewards=(0, 1), features={"a": 1})
    with refused("arms"):
        agent_of().decide(np.eye(SPEC.dim), context={})
    with refused("items"):
        agent_of().decide(context={})
    with refused("arms", "features="):
        dw.Agent.for_clicks(3).decide(context={}, items=["a"])


def test_whatever_is_passed_gives_a_sentence_or_works(tmp_path):
    """As tests/hostile does for other public names; a TypeError is Python's own error for a missing argument."""
    agent = agent_of()
    before = agent.state.to_bytes()
    (tmp_path / "empty").mkdir()
    for bad in BAD:
        for call in (
            lambda bad=bad: F(context=bad, item={}), lambda bad=bad: F(context={"a": bad}, item={}),
            lambda bad=bad: F(context={}, item={}, cross=bad), lambda bad=bad: F(context={}, item={}, cross=[bad]),
            lambda bad=bad: F(context={}, item={}, blocks=bad), lambda bad=bad: F(context={}, item={}, L=bad),
            lambda bad=bad: F.number(bad), lambda bad=bad: F.number(0.0, bad), lambda bad=bad: F.levels(bad),
            lambda bad=bad: F.hashed(bad) if not isinstance(bad, int) or bad < 10**6 else None,
            lambda bad=bad: F.fit(bad, {}), lambda bad=bad: F.fit([{"a": bad}], {}), lambda bad=bad: F.fit([], bad),
            lambda bad=bad: F.fit([], {"a": bad}), lambda bad=bad: F.from_dict(bad),
            lambda bad=bad: agent.decide(context=bad, items=["one"]),
            lambda bad=bad: agent.decide(context={}, items=bad),
            lambda bad=bad: agent.decide(context={"hour": bad, "user": bad}, items={"one": {"price": 1}}),
            lambda bad=bad: agent.decide(context={}, items={"one": bad}),
            lambda bad=bad: agent.decide(context={}, items={"one": {"price": bad, "genre": bad}}),
            lambda bad=bad: agent.decide(context={}, items=[bad]), lambda bad=bad: agent.learn_log(bad),
            lambda bad=bad: agent.learn_log({"x": bad}), lambda bad=bad: log_of(reward=bad, seq=[1]),
            lambda bad=bad: check_log({"seq": [bad], "x": [bad], "at": [bad], "arms": [bad], "context": [bad]}),
            lambda bad=bad: from_obp(bad), lambda bad=bad: agent.log_to(tmp_path / "empty", rows=bad).close(),
            lambda bad=bad: agent.log_to(tmp_path / "empty", seconds=bad).close(),
            lambda bad=bad: agent.log_to(bad).close() if not isinstance(bad, (str, bytes)) else None,
        ):  # fmt: skip
            try:
                call()
            except dw.BadInput as refusal:
                assert "\n" not in str(refusal) and len(str(refusal)) < 500
    assert agent.state.to_bytes() == before
