"""Lemma 1: the estimation error of LB-WeightUCB is covered, by how much, and by which part of the bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import driftwise as dw
from driftwise import theory

DELTA = 0.05


def worst_ratio(world, policy, seed, every):
    """max over checked rounds t and all arms x of (|x'(θ̂_t-θ_t)| - bias_t)/β_{t-1}‖x‖: above 1 the lemma fails."""
    state, theta, worst, t = policy.start(), world.theta(), -math.inf, 0
    for tape in world.tapes(seed):
        arms = np.ascontiguousarray(tape.arms[0].T)
        for draw in tape.draws:
            if t % every == every - 1:
                scores = policy.scores(state, arms)
                bias = theory.bias_bound(theta[: t + 1], policy.memory.forget, policy.lam, policy.L)
                worst = max(worst, float(((np.abs(scores.mean - arms @ theta[t]) - bias) / scores.bonus).max()))
            arm = policy.choose(state, arms).arm
            policy.learn(state, arms, arm, float(arms[arm] @ theta[t] + world.noise * draw))
            t += 1
    return worst


DRIFTS = {
    "a turn, tuned to it": (dw.worlds.Turn(horizon=200, arms=8), 2.0),
    "a slow turn": (dw.worlds.Turn(horizon=200, arms=8, turns=0.02), 2.0),
    "jumps in one dimension, hardly any ridge": (dw.worlds.Jumps(horizon=200, arms=2, dim=1, radius=0.01), 0.01),
}


@pytest.mark.parametrize(("world", "lam"), [
    pytest.param(*case, id=name, marks=pytest.mark.slow if name.startswith("a ") else ())
    for name, case in DRIFTS.items()
])  # fmt: skip
def test_violations_in_200_drifting_runs_are_no_more_than_delta_allows(world, lam):
    # At most the 99.9% quantile of Binomial(200, δ), which the lemma allows: a false alarm once in 1000, fixed seeds.
    policy = dw.make("LB-WeightUCB", **world.facts, delta=DELTA, lam=lam)
    ratios = np.array([worst_ratio(world, policy, seed, every=5) for seed in range(200)])
    assert np.isfinite(ratios).all()
    assert (ratios > 1.0).sum() <= stats.binom(200, DELTA).ppf(0.999)


def test_a_third_of_the_radius_would_be_found_out():
    # The power of the count above: a third of β is violated in most runs.
    world, lam = DRIFTS["jumps in one dimension, hardly any ridge"]
    policy = dw.make("LB-WeightUCB", **world.facts, delta=DELTA, lam=lam)
    ratios = np.array([worst_ratio(world, policy, seed, every=5) for seed in range(50)])
    assert (ratios > 1 / 3).sum() > 25


def noise_free(world, forget, lam, rounds):
    """State of a policy after noise-free rounds, and the parameter of the round to come."""
    policy = dw.LinearUCB(dim=world.dim, memory=dw.Fade(forget), lam=lam, delta=DELTA, S=world.S, R=0.0)
    state, theta = policy.start(), world.theta()
    arms = np.ascontiguousarray(next(iter(world.tapes())).arms[0].T)
    for t in range(rounds):
        arm = policy.choose(state, arms).arm
        policy.learn(state, arms, arm, float(arms[arm] @ theta[t]))
    return policy, state, theta[: rounds + 1]


def drift_error(policy, state, theta):
    """V⁻¹ Σ γ^{t-1-s} X_s X_s'(θ_s-θ_t): the noise-free error of the estimate, without the ridge's part -λV⁻¹θ_t."""
    lower = np.tril(state.G[0])
    V = lower + np.tril(lower, -1).T + policy.lam * np.eye(policy.dim)
    estimate = policy.scores(state, np.eye(policy.dim)).mean
    return estimate - theta[-1] + policy.lam * np.linalg.solve(V, theta[-1])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(["turn", "walk", "jumps"]), st.integers(2, 4), st.integers(1, 80), st.integers(0, 99),
    st.sampled_from([0.0, 1e-17, 0.003, 0.05, 0.4]), st.sampled_from([1e-3, 0.3, 2.0, 50.0]),
)  # fmt: skip
def test_the_bias_term_alone_covers_the_noise_free_error(kind, dim, rounds, seed, forget, lam):
    common = {"horizon": 81, "dim": dim, "arms": 6, "path_seed": seed}
    world = {
        "turn": dw.worlds.Turn(turns=2.0, **common),
        "walk": dw.worlds.Walk(step=0.3, **common),
        "jumps": dw.worlds.Jumps(jumps=5, **common),
    }[kind]
    policy, state, theta = noise_free(world, forget, lam, rounds)
    bias = theory.bias_bound(theta, forget, lam)
    error = drift_error(policy, state, theta)
    assert np.linalg.norm(error) <= bias + 1e-9  # for every x of norm up to L = 1
    arms = np.vstack([np.eye(dim), error / max(1.0, np.linalg.norm(error))])
    scores = policy.scores(state, arms)  # with R = 0 the bonus is √λ S ‖x‖, which pays for the ridge
    assert (np.abs(scores.mean - arms @ theta[-1]) <= bias + scores.bonus + 1e-9).all()


@pytest.mark.parametrize("forget", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("rounds", [1, 40])
def test_the_bias_term_is_twice_the_error_of_one_jump_and_0_4_of_it_is_not_enough(forget, rounds):
    # d = 1, one arm, a jump before round t, discounted count N = λ: error N/(N+λ)·|Δ| = |Δ|/2, bound √(N/λ)|Δ| = |Δ|.
    lam = float(sum((1.0 - forget) ** i for i in range(rounds)))
    policy = dw.LinearUCB(dim=1, memory=dw.Fade(forget), lam=lam, delta=DELTA, R=0.0)
    state, arms = policy.start(), np.array([[1.0]])
    for _ in range(rounds):
        policy.learn(state, arms, policy.choose(state, arms).arm, 1.0)
    theta = np.append(np.ones((rounds, 1)), [[-1.0]], axis=0)
    error = abs(drift_error(policy, state, theta)).item()
    bias = theory.bias_bound(theta, forget, lam)
    assert error == pytest.approx(1.0, rel=1e-12)
    assert bias == pytest.approx(2.0 * error, rel=1e-12)
    assert error > 0.4 * bias
