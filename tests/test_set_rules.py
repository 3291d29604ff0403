"""Optimism over sets, and BVD-GLM-UCB: slow twins that use general solvers, and laws of their choices."""

import math

import numpy as np
import pytest
from scipy import special
from scipy.stats import binom

import driftwise as dw
from driftwise.kernels.point import USED
from naive import NaiveBVD, NaiveLogisticUCB2, NaiveOFULog, NaivePW

T = 60


def rounds(seed, count, dim=2, S=1.0, fresh=False):
    rng = np.random.default_rng(seed)
    sets = rng.normal(size=(count if fresh else 1, 4, dim))
    sets /= np.linalg.norm(sets, axis=2, keepdims=True)
    sets *= np.linspace(0.7, 1.0, 4)[:, None]
    theta = rng.normal(size=(2, dim))
    theta *= S / np.linalg.norm(theta, axis=1)[:, None]
    for t in range(count):
        arms, u = sets[t if fresh else 0], rng.random()

        def reward(arm, t=t, arms=arms, u=u):
            return float(u < special.expit(arms[arm] @ theta[t * 2 // count]))

        yield arms, reward


def replay(policy, naive, stream, tolerance=1e-5):
    state = policy.start()
    for t, (arms, reward) in enumerate(stream):
        choice = policy.choose(state, arms)
        mean, bonus = naive.scores(arms)
        score = mean + bonus
        assert score[choice.arm] >= score.max() - tolerance, f"round {t + 1}"
        assert choice.score == pytest.approx(score[choice.arm], abs=tolerance), f"round {t + 1}"
        assert choice.mean == pytest.approx(mean[choice.arm], abs=tolerance), f"round {t + 1}"
        r = reward(choice.arm)
        policy.learn(state, arms, choice.arm, r)
        naive.learn(arms, choice.arm, r)


@pytest.mark.parametrize("S", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["exact", "convex"])
@pytest.mark.parametrize("exploration", [1.0, 0.1])
def test_PW_is_its_slow_twin(S, kind, exploration):
    policy = dw.make("SCB-PW-WeightUCB", dim=2, horizon=T, changes=1, S=S, set=kind, exploration=exploration)
    naive = NaivePW(
        dim=2, memory=("fade", policy.memory.forget), link="logistic", lam=policy.lam, delta=policy.delta, horizon=T,
        S=S, exploration=exploration, set=kind,
    )  # fmt: skip
    replay(policy, naive, rounds(1, 10, S=S, fresh=True))


@pytest.mark.parametrize("relaxed", [False, True])
def test_OFULog_is_its_slow_twin(relaxed):
    policy = dw.make("OFULog-r" if relaxed else "OFULog", dim=2, horizon=T, exploration=0.2)
    naive = NaiveOFULog(dim=2, delta=policy.delta, exploration=0.2, r=relaxed)
    replay(policy, naive, rounds(2, 10))


def test_Logistic_UCB_2_is_its_slow_twin():
    policy = dw.make("Logistic-UCB-2", dim=2, horizon=T)
    naive = NaiveLogisticUCB2(dim=2, lam=policy.lam, delta=policy.delta)
    replay(policy, naive, rounds(3, 10))


@pytest.mark.parametrize("tie", ["nearest", "origin"])
@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("lam", [2.0, 0.05])
def test_BVD_is_its_slow_twin(tie, link, lam):
    policy = dw.make("BVD-GLM-UCB", dim=2, horizon=T, path_length=0.5, tie=tie, link=link, lam=lam)
    naive = NaiveBVD(
        dim=2, memory=("fade", policy.memory.forget), link=link, lam=lam, delta=policy.delta, R=0.5, tie=tie
    )
    replay(policy, naive, rounds(4, 20), 1e-6)


def test_the_mean_of_a_set_rule_is_at_the_projection_and_its_bonus_reaches_the_optimistic_value():
    policy = dw.make("SCB-PW-WeightUCB", dim=2, horizon=T, changes=1, exploration=0.1)
    state = policy.start()
    for arms, reward in rounds(5, 15):
        choice, scores = policy.choose(state, arms), policy.scores(state, arms)
        assert choice.mean == pytest.approx(special.expit(arms[choice.arm] @ state.shown[0]))
        assert choice.score == choice.mean + choice.bonus
        assert (scores.score <= special.expit(policy.S * np.linalg.norm(arms, axis=1)) + 1e-9).all()
        how = policy.diagnose(state, arms)
        assert how.failures == 0 and how.residual < 1e-6 and 0 <= how.solved <= how.looked <= how.arms
        policy.learn(state, arms, choice.arm, reward(choice.arm))


def test_the_true_parameter_stays_in_the_set_of_a_stationary_stretch():
    # Appendix D: from D rounds after a change on, θ is in C_t with probability 1-δ. 60 runs; alarm rate 1e-3.
    runs, delta, horizon = 60, 0.05, 120
    missed = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        theta = np.array([math.cos(seed), math.sin(seed)])
        policy = dw.research.PiecewiseUCB(
            dim=2, memory=dw.Fade(0.05), lam=20.0, delta=delta, horizon=horizon, S=1.0, uniform=False
        )
        state = policy.start()
        arms = rng.normal(size=(5, 2))
        arms /= np.linalg.norm(arms, axis=1)[:, None]
        for _ in range(horizon):
            arm = int(rng.integers(5))
            policy.learn(state, arms, arm, float(rng.random() < special.expit(arms[arm] @ theta)))
        used = int(state.cursor[USED])
        A, w, s = state.atoms[:, :used], state.weights[0, :used], state.targets[0, :used]
        mu = special.expit(A.T @ theta)
        r = policy.reg * theta + A @ (w * mu - s)
        H = policy.reg * np.eye(2) + (A * (w * mu * (1 - mu))) @ A.T
        missed += math.sqrt(r @ np.linalg.solve(H, r)) > policy.set_radius(state)
    assert missed <= binom.ppf(0.999, runs, delta)


@pytest.mark.parametrize(
    ("name", "fields", "parameter"),
    [
        ("SCB-PW-WeightUCB", {"set": "round"}, "set"),
        ("SCB-PW-WeightUCB", {"memory": dw.Keep()}, "memory"),
        ("SCB-PW-WeightUCB", {"memory": dw.Fade(0.0)}, "memory"),
        ("SCB-PW-WeightUCB", {"link": "poisson"}, "link"),
        ("SCB-PW-WeightUCB", {"estimate": "one-pass"}, "estimate"),
        ("OFULog", {"memory": dw.Fade(0.1)}, "link"),
        ("OFULog", {"link": "probit"}, "link"),
        ("Logistic-UCB-2", {"memory": dw.Window(5)}, "link"),
        ("BVD-GLM-UCB", {"tie": "any"}, "tie"),
        ("BVD-GLM-UCB", {"memory": dw.Window(9)}, "memory"),
        ("BVD-GLM-UCB", {"delta": None}, "delta"),
    ],
)
def test_what_a_set_rule_does_not_take_gets_the_sentence(name, fields, parameter):
    with pytest.raises(dw.BadInput) as caught:
        dw.make(name, dim=2, horizon=T, path_length=0.5, changes=1, **fields)
    assert caught.value.parameter == parameter
