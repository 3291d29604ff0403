"""An agent whose arms are a continuous set: x is the action, a drawn point has a density, and log and snapshot have
both."""

import json
import math

import numpy as np
import pytest

import driftwise as dw
from driftwise.tables.check import check_log

BALL = dw.Ball(2)


def agent_of(epsilon=0.0, **more):
    policy = dw.make("LB-WeightUCB", dim=2, horizon=500, path_length=1.0)
    return dw.Agent(policy, rewards=(-10.0, 10.0), epsilon=epsilon, now=lambda: 0.0, **more)


def live(agent, rounds, arms=BALL):
    made = [agent.decide(arms) for _ in range(rounds)]
    for one in made:
        agent.reward(one.id, float(one.x[0]))
    return made


def test_an_agent_on_a_ball_is_its_policy():
    agent, state = agent_of(), None
    policy = agent.policy
    state = policy.start(seed=0)
    for _ in range(30):
        one, choice = agent.decide(BALL), policy.choose(state, BALL)
        assert np.array_equal(one.x, choice.x) and one.score == choice.score and (one.arm, one.n) == (-1, 0)
        assert one.propensity == 1.0 and one.measure is None
        agent.reward(one.id, float(one.x[0]))
        policy.learn(state, BALL, choice.x, float(one.x[0]))
    assert agent.state.to_bytes() == state.to_bytes()


def test_what_is_drawn_has_a_density_and_what_is_chosen_a_chance():
    made = live(agent_of(epsilon=0.25), 400)
    drawn, chosen = [one for one in made if one.explored], [one for one in made if not one.explored]
    assert abs(len(drawn) / 400 - 0.25) < 0.11  # 5 standard errors
    assert all(math.isclose(one.propensity, 0.25 / math.pi) and one.measure == "volume" for one in drawn)
    assert all(one.propensity == 0.75 and one.measure is None for one in chosen)
    # A density says how often a part of the set is drawn: half the radius has a quarter of the area.
    inside = np.mean([one.x @ one.x < 0.25 for one in drawn])
    assert abs(inside - 0.25) < 5 * math.sqrt(0.25 * 0.75 / len(drawn))
    curve = dw.Curve(dw.Polynomial(1), 2.0, 6.0)
    prices = [one for one in live(agent_of(epsilon=0.5), 50, curve) if one.explored]
    assert all(one.measure == "length" and one.propensity == 0.5 / 4.0 and 2 <= one.number <= 6 for one in prices)


def test_a_snapshot_goes_on_where_it_was():
    agent = agent_of(epsilon=0.3)
    live(agent, 20)
    waiting = [agent.decide(BALL, id=f"open {k}") for k in range(5)]
    again = dw.Agent.from_bytes(agent.to_bytes(), now=lambda: 0.0)
    for one in waiting:
        kept = again.decide(BALL, id=one.id)
        assert np.array_equal(kept.x, one.x) and kept.propensity == one.propensity
        for each in (agent, again):
            each.reward(one.id, 0.5)
    assert agent.state.to_bytes() == again.state.to_bytes()
    assert np.array_equal(agent.decide(BALL).x, again.decide(BALL).x)
    with pytest.raises(dw.BadInput, match="other arms"):
        agent.decide(dw.Ball(2, 0.5), id="open 0")


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_the_log_says_which_propensities_are_densities_and_folds(tmp_path, format):
    agent = agent_of(epsilon=0.3)
    with agent.log_to(tmp_path / "log", format=format):
        made = live(agent, 60)
    log = check_log(tmp_path / "log")
    measures = [one for batch in log.batches(["measure"]) for one in batch.measure]
    assert measures == [one.measure for one in made] and "volume" in measures and None in measures
    rows = np.concatenate([batch.x for batch in log.batches(["x"])])
    assert np.array_equal(rows, np.array([one.x for one in made]))
    assert all((batch.arm == -1).all() and (batch.n == 0).all() for batch in log.batches(["arm", "n"]))
    fresh = agent_of(epsilon=0.3)
    fresh.learn_log(tmp_path / "log")
    assert fresh.state.to_bytes() == agent.state.to_bytes()


def test_a_log_of_lists_has_no_column_more_than_before(tmp_path):
    agent = agent_of()
    with agent.log_to(tmp_path / "log", format="jsonl"):
        one = agent.decide(np.eye(2))
        agent.reward(one.id, 0.1)
    line = json.loads(next((tmp_path / "log").glob("*.jsonl")).read_text().splitlines()[0])
    assert "measure" not in line and line["n"] == 2


def test_what_a_set_cannot_have_is_refused():
    agent = agent_of(epsilon=0.1)
    calls = [
        lambda: agent.decide(BALL, items=["a"]), lambda: agent.decide(BALL, allowed=[True]),
        lambda: agent.decide(BALL, cost=[1.0]), lambda: agent.decide(dw.Ball(3)),
        lambda: agent.decide(dw.Union(BALL, np.eye(2))), lambda: agent.explain(BALL),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        with pytest.raises(dw.BadInput) as caught:
            call()
        assert "wanted" in str(caught.value), number
    assert agent.counts["decided"] == 0
