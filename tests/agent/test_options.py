"""The options of a decision, every pair of them, for a rule without chance, one with looks and rules that sample."""

import itertools
import math

import numpy as np
import pytest

import driftwise as dw
from refusing import refused

KNOWN = {"horizon": 300, "path_length": 1.5}
POLICIES = {
    "best score": lambda: dw.LinearUCB(dim=3, memory=dw.Keep(), S=1.0, L=2.0, R=0.5, delta=0.05, lam=1.0),
    "looks": lambda: dw.make("Auto", dim=3, looks=3.0),
    "looks, clicks": lambda: dw.make("Auto", dim=3, looks=3.0, link="logistic"),
    "samples": lambda: dw.make("D-RandLinUCB", dim=3, **KNOWN),
    "counts draws": lambda: dw.make("D-LinTS", dim=3, **KNOWN),
}  # fmt: skip
ARMS = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.1], [0.1, 0.2, 0.9], [0.5, 0.5, 0.1], [0.3, 0.3, 0.6]])
COST = np.array([0.3, 0.0, 0.1, 0.2, 0.05])
ALLOWED = {"all": None, "mask": [True, False, True, True, False], "indices": [3, 0, 2], "one": [4]}
OPTIONS = [
    (policy, allowed, price, epsilon)
    for policy, allowed, price, epsilon in itertools.product(POLICIES, ALLOWED, (False, True), (0.0, 0.4))
    if not (price and policy in ("samples", "counts draws"))
]


def places(allowed):
    """The indices of the arms that may be played."""
    told = ALLOWED[allowed]
    return np.arange(5) if told is None else np.flatnonzero(told) if told[0] is True else np.unique(told)


def lived(policy, epsilon, folder=None):
    """An agent after some decisions with options, and with an open one of each kind."""
    agent = dw.Agent(POLICIES[policy](), rewards=(0.0, 1.0), epsilon=epsilon, seed=5, now=lambda: 0.0)
    if folder is not None:
        agent.log_to(folder, arms=True, format="jsonl")
    rng = np.random.default_rng(3)
    for t in range(12):
        more = {"cost": COST} if agent._parts.policy.ranks and t % 2 else {}
        one = agent.decide(ARMS, id=f"a{t}", allowed=ALLOWED["mask"] if t % 3 == 0 else None, **more)
        if t % 4:
            agent.reward(one.id, float(rng.random() < 0.5))
    return agent


@pytest.mark.parametrize(("policy", "allowed", "price", "epsilon"), OPTIONS, ids=str)
def test_a_decision_with_options_is_the_one_among_its_arms(policy, allowed, price, epsilon):
    agent, twin, there = lived(policy, epsilon), lived(policy, epsilon), places(allowed)
    cost = COST if price else None
    one = agent.decide(ARMS, list("abcde"), id="n", allowed=ALLOWED[allowed], cost=cost)
    other = twin.decide(ARMS[there], [*"abcde"[: len(there)]], id="n", cost=None if cost is None else cost[there])
    assert one.arm in there and one.item == "abcde"[one.arm] and one.n == len(there)
    assert one._replace(arm=0, item="") == other._replace(arm=0, item="") and one.arm == there[other.arm]
    assert one.score == pytest.approx(one.mean + one.bonus - (COST[one.arm] if price else 0.0), abs=1e-15)
    # The same call again, other options, a copy, an explanation.
    assert agent.decide(ARMS, list("abcde"), id="n", allowed=ALLOWED[allowed], cost=cost) == one
    with refused("id", "other arms"):
        agent.decide(ARMS, id="n", allowed=[1], cost=cost)
    if agent._parts.policy.ranks:
        with refused("id", "other arms"):
            agent.decide(ARMS, id="n", allowed=ALLOWED[allowed], cost=COST + 1.0)
    else:
        with refused("cost", "sample"):
            agent.decide(ARMS, id="other", allowed=ALLOWED[allowed], cost=COST)
    loaded = dw.Agent.from_bytes(agent.to_bytes(), now=lambda: 0.0)
    more = {"id": "next", "allowed": ALLOWED[allowed], "cost": cost}
    assert loaded.decide(ARMS, **more)[:-3] == agent.decide(ARMS, **more)[:-3]
    told = agent.explain("n")
    assert told.items == tuple("abcde"[place] for place in there)
    assert (told.cost is None) is (cost is None) and ("cost" in str(told)) is price
    if price:
        assert np.array_equal(told.cost, COST[there])
        assert told.score == pytest.approx(told.mean + told.bonus - told.cost, abs=1e-15)
        if told.runner_up is not None:  # what moved the choice names the price
            assert dict(told.pulls)["cost"] == told.cost[told.runner_up] - told.cost[told.chosen]


@pytest.mark.parametrize(("policy", "allowed", "price", "epsilon"), OPTIONS, ids=str)
def test_the_propensity_of_a_decision_with_options_is_the_share_of_draws(policy, allowed, price, epsilon):
    agent, there, draws = lived(policy, epsilon), places(allowed), 600
    state, cost = agent._parts.states.front, COST[there] if price else None
    arms, counts, told = dw.ArmSet(ARMS[there]), np.zeros(len(there)), {}
    for seq in range(1, draws + 1):
        found, propensity, tries, _ = agent._chooser.choose(state, arms, cost, seq)
        counts[found.arm] += 1.0
        told.setdefault(found.arm, []).append(propensity)
        assert tries == (1000 if policy == "counts draws" else 0)
    for arm, each in told.items():
        p = float(np.mean(each))
        assert policy == "counts draws" or len(set(each)) == 1
        assert abs(counts[arm] / draws - p) <= 5.0 * math.sqrt(p * (1.0 - p) / draws * 1.6) + 1e-12
    # One in a million: arms that were not played have little left.
    assert sum(float(np.mean(each)) for each in told.values()) > 1.0 - 14.0 / draws - 0.05 * (policy == "counts draws")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_many_decisions_are_the_same_one_after_the_other(policy, epsilon):
    agent, twin = lived(policy, epsilon), lived(policy, epsilon)
    sets = [ARMS, ARMS[:2], ARMS[2:]]
    many = agent.decide_many(sets, ids=["x", None, "z"])
    alone = [twin.decide(arms, id=id) for arms, id in zip(sets, ["x", None, "z"], strict=True)]
    assert [one._replace(id="") for one in many] == [one._replace(id="") for one in alone]
    again = agent.decide_many([ARMS, ARMS[2:], ARMS], ids=["x", "z", "x"])
    assert again == [many[0], many[2], many[0]]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_the_log_of_decisions_with_options_gives_the_state(policy, epsilon, tmp_path):
    agent = lived(policy, epsilon, tmp_path / "log")
    for id in list(agent._parts.book.open):
        agent.cancel(id)
    agent._parts.book.log.close()
    again = dw.Agent(POLICIES[policy](), rewards=(0.0, 1.0), epsilon=epsilon, seed=5)
    assert again.learn_log(tmp_path / "log") == agent.counts["learned"]
    assert again.state.to_bytes() == agent.state.to_bytes()
