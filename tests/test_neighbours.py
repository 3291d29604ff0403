"""The algorithms of the papers around ours: slow twins, public code, laws, and mistakes that are planted and found."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise.policies.names import neighbours
from driftwise.policies.neighbours import dlinucb, weighted_oful
from naive_neighbours import NaiveDLinUCB, NaiveWeightedOFUL, naive_exp3_shares

CHOICES = np.load(Path(__file__).parent / "published" / "choices.npz")
KNOWN = {"dim": 2, "horizon": 400, "path_length": 2.0, "changes": 1, "S": 1.0, "L": 1.0}
RUSSAC = {"lam": 0.1, "delta": 0.01, "R": 0.3}
D_MODEL = {"dim": 2, **RUSSAC, "S": 1.0, "L": 1.0, "window": 40, "delta_2": 0.01, "delta_new": 0.002}
WEIGHTED = {"dim": 2, "window": 60, "lam": 1.0, "alpha": 0.3, "gamma": 0.7, "sigma": "rare", "delta": 0.01, "S": 1.0,
            "L": 1.0, "R": 1.0}  # fmt: skip


def stream(rounds=260, seed=3):
    """Arms, and the reward of each, with a jump half way."""
    rng = np.random.default_rng(seed)
    arms = rng.uniform(-0.7, 0.7, (rounds, 6, 2))
    theta = np.where(np.arange(rounds)[:, None] < rounds // 2, [[1.0, 0.0]], [[-1.0, 0.0]])
    rewards = np.einsum("tnd,td->tn", arms, theta) + 0.3 * rng.standard_normal((rounds, 1))
    return arms, rewards


def farthest(policy, twin):
    """The two play the policy's arms: how far their estimates get apart, and whether a choice differed."""
    state, apart, others = policy.start(), 0.0, 0
    for arms, rewards in zip(*stream(), strict=True):
        arm = policy.choose(state, arms).arm
        others += arm != twin.choose(arms)
        policy.learn(state, arms, arm, rewards[arm])
        twin.learn(arms, arm, float(rewards[arm]))
        apart = max(apart, float(np.abs(policy.theta(state) - twin.theta()).max()))
    return apart, others, state


@pytest.mark.parametrize("count", ["own", "as-published"])
def test_dlinucb_is_its_slow_twin(count):
    policy = dw.make("dLinUCB", **D_MODEL, count=count)
    apart, others, state = farthest(policy, NaiveDLinUCB(**D_MODEL, count=count))
    assert apart < 1e-9 and others == 0
    assert int(state["made"]) >= 2  # the jump was seen


@pytest.mark.parametrize("beta", [None, 0.8])
def test_restarted_weighted_oful_is_its_slow_twin(beta):
    policy = dw.make("Restarted-WeightedOFUL+", **WEIGHTED, beta=beta)
    apart, others, _ = farthest(policy, NaiveWeightedOFUL(**WEIGHTED, beta=beta))
    assert apart < 1e-9 and others == 0


PLANTED = {
    "a model learns from its failures": (dlinucb, "abs", lambda value: 0.0),
    "the quantile of the noise is left out": (dlinucb.DLinUCB, "eta", 0.0),
    "the radius does not grow": (dlinucb.DLinUCB, "beta", lambda self, n: 1.0),
    "badness looks at all rounds": (dlinucb.DLinUCB, "badness", lambda self, state: (
        state["failed"].sum(axis=1) / np.maximum(state["seen"], 1), np.full(len(state["seen"]), 0.1))),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_in_dlinucb_is_found(mistake, monkeypatch):
    place, name, wrong = PLANTED[mistake]
    monkeypatch.setattr(place, name, wrong, raising=False)
    apart, others, _ = farthest(dw.make("dLinUCB", **D_MODEL), NaiveDLinUCB(**D_MODEL))
    assert apart > 1e-6 or others


@pytest.mark.parametrize(
    ("name", "wrong"), [("told", lambda self, k: 1.0), ("radius", lambda self, n: 0.1)], ids=["variance", "radius"]
)
def test_a_planted_mistake_in_weighted_oful_is_found(name, wrong, monkeypatch):
    monkeypatch.setattr(weighted_oful.RestartedWeightedOFUL, name, wrong)
    apart, others, _ = farthest(dw.make("Restarted-WeightedOFUL+", **WEIGHTED), NaiveWeightedOFUL(**WEIGHTED))
    assert apart > 1e-6 or others


def test_exp3s_plays_by_the_probabilities_of_its_formula():
    policy = dw.make("EXP3.S", dim=2, mix=0.2, share=0.01, arms=3)
    arms, state, history = np.eye(3, 2), policy.start(5), []
    rng = np.random.default_rng(0)
    played = np.zeros(3)
    for _ in range(400):
        share = policy.propensities(state, arms)
        np.testing.assert_allclose(share, naive_exp3_shares(history, 3, 0.2, 0.01), rtol=1e-9)
        arm = policy.choose(state, arms).arm
        played[arm] += 1
        reward = float(rng.random() < (0.2, 0.5, 0.8)[arm])
        policy.learn(state, arms, arm, reward)
        history.append((arm, reward))
    assert played[2] > played[0]
    draws = np.bincount([policy.choose(state, arms, draw=one).arm for one in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(draws, policy.propensities(state, arms), atol=0.03)


PUBLIC = {
    "D-LinUCB": ("D-LinUCB", {"two_matrix": "as-published", "memory": dw.Fade(0.02)}),
    "D-LinUCB of Kim, Tewari": ("D-LinUCB", {"two_matrix": "correct", "memory": dw.Fade(0.02)}),
    "SW-LinUCB": ("SW-UCB", {"memory": dw.Window(60)}),
    "LinUCB": ("OFUL", {}),
    "dLinUCB": ("dLinUCB", {"window": 40, "count": "as-published"}),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_choices_are_those_of_the_public_code(name):
    """θ̂ to 1e-9 and every arm, all rounds: tests/published/README.md says which code."""
    ours, fields = PUBLIC[name]
    policy = dw.make(ours, **KNOWN, **RUSSAC, **fields)
    state, X, theta, noise = policy.start(), CHOICES["arms"], CHOICES["theta"], CHOICES["noise"]
    for t, arm in enumerate(CHOICES[f"{name}/arms"]):
        believed = policy.theta(state)
        np.testing.assert_allclose(believed, CHOICES[f"{name}/theta"][t], atol=1e-9, err_msg=f"round {t}")
        assert policy.choose(state, X[t]).arm == arm, f"round {t}"
        policy.learn(state, X[t], int(arm), float(X[t, arm] @ theta[t] + noise[t]))


NEIGHBOURS = {
    row["name"]: dw.make(row["name"], **KNOWN, **({"window": 50} if "Weighted" in row["name"] else {}))
    for row in neighbours()
}


# EXP3.S is left out: it looks at no features, and the checks turn and shuffle arms.
@pytest.mark.parametrize("name", [name for name in NEIGHBOURS if name != "EXP3.S"])
def test_every_neighbour_passes_the_checks_of_a_policy(name):
    dw.checks.check_policy(NEIGHBOURS[name])


@pytest.mark.parametrize("name", ["dLinUCB", "Restarted-WeightedOFUL+", "EXP3.S"])
def test_a_neighbour_plays_in_an_agent_and_comes_back_from_a_snapshot(name):
    agent = dw.Agent(NEIGHBOURS[name], rewards=(-1.0, 1.0), seed=1)
    arms = np.array([[0.5, 0.1], [-0.2, 0.6]])

    def play(one, rounds):
        for number in range(rounds):
            decision = one.decide(arms)
            one.reward(decision.id, 0.3 if number % 2 else -0.2)

    play(agent, 30)
    again = dw.Agent.from_bytes(agent.to_bytes(), policy=NEIGHBOURS[name])
    assert agent.decide(arms).arm == again.decide(arms).arm


@pytest.mark.parametrize("name", ["GLM-UCB", "LogUCB1"])
def test_without_projection_the_estimate_itself_is_played(name):
    known = {"dim": 2, "horizon": 60, "S": 0.2}
    policy, free = (dw.make(name, **known, lam=0.01, project=one) for one in (True, False))
    states = policy.start(), free.start()
    arms = np.eye(2)
    for number in range(40):
        for one, state in zip((policy, free), states, strict=True):
            one.learn(state, arms, number % 2, float(number % 2))
    assert np.linalg.norm(states[1].theta[0]) > 0.2
    np.testing.assert_array_equal(states[0].theta, states[1].theta)
    np.testing.assert_array_equal(states[1].shown, states[1].theta)
    assert np.linalg.norm(states[0].shown[0]) <= 0.2 + 1e-9


def test_restarts_at_listed_rounds_are_fresh_policies_from_there_on():
    arms, rewards = stream(60)
    policy = dw.make("OFUL", dim=2, horizon=60, memory=dw.Restart(at=(20, 35)), delta=0.1)
    fresh = dw.make("OFUL", dim=2, horizon=60, delta=0.1)
    state, other = policy.start(), fresh.start()
    for t in range(60):
        if t in (20, 35):
            other = fresh.start()
        np.testing.assert_array_equal(policy.scores(state, arms[t]).mean, fresh.scores(other, arms[t]).mean)
        for one, memory in ((policy, state), (fresh, other)):
            one.learn(memory, arms[t], 2, float(rewards[t, 2]))


@pytest.mark.parametrize("at", [(0, 5), (5, 3), (3, 3), "a", (float("nan"),), [[1.0]], []])
def test_restarts_that_are_not_rising_are_refused(at):
    with pytest.raises(dw.BadInput):
        dw.Restart(at=at)


def test_a_restart_has_a_period_or_a_list_and_a_list_no_wall_clock():
    with pytest.raises(dw.BadInput, match="not both"):
        dw.Restart(3, at=(2,))
    with pytest.raises(dw.BadInput, match="period"):
        dw.Restart()
    with pytest.raises(dw.BadInput, match="wall clock"):
        dw.Restart(at=(2,)).phase(3)
    with pytest.raises(dw.BadInput, match="one kind"):
        dw.BanditOverBandit(base=dw.make("OFUL", dim=2, horizon=10), horizon=10, grid=(dw.Restart(at=(2,)),))
    assert dataclasses.asdict(dw.Restart(at=[1, 2])) == {"period": None, "at": (1.0, 2.0)}
