"""Lemmas 2 and 3: the estimation errors of GLB-WeightUCB and SCB-WeightUCB are covered, and by which part of the bound.

The tape of a run is fixed by its seed, so a run either passes for ever or not. A count may reach the 99.9% quantile of
Binomial(200, δ), which the lemmas allow: with other seeds, a false alarm less than once in 1000.
"""

import functools
import math

import numpy as np
import pytest
from scipy import special, stats

import driftwise as dw
from driftwise import theory

DELTA, RUNS = 0.05, 200


def lemma(policy, theta, spread):
    """The right-hand side at round t = len(theta), at an arm of norm `spread` in V⁻¹."""
    common = {"lam": policy.lam, "delta": policy.delta, "S": policy.S, "L": policy.L, "k": policy.k, "c": policy.c}
    if isinstance(policy, dw.research.GLMUCB):
        return theory.glb_estimation_bound(theta, policy.memory.forget, spread, R=policy.R or 0.5, **common)
    extra = {"m": policy.m, "uniform": policy.uniform, "horizon": float(policy.horizon)}
    return theory.scb_estimation_bound(theta, policy.memory.forget, spread, **extra, **common)


def errors(policy, state, arms, theta):
    """|μ(x'θ̃)-μ(x'θ_t)| and ‖x‖ in V⁻¹ of every arm, from the state's own arrays."""
    G = np.tril(state.G[0]) + np.tril(state.G[0], -1).T
    spread = np.sqrt(np.sum(arms * np.linalg.solve(G + policy.lam * np.eye(policy.dim), arms.T).T, axis=1))
    return np.abs(special.expit(arms @ state.shown[0]) - special.expit(arms @ theta)), spread


def worst_ratio(world, policy, seed, every, bias=True):
    """max over checked rounds and all arms of (error - bias term)/(bonus term): above 1 the lemma fails.

    With bias=False the bonus stands alone.
    """
    state, theta, worst, t = policy.start(), world.theta(), -math.inf, 0
    for tape in world.tapes(seed):
        arms = np.ascontiguousarray(tape.arms[0].T)
        prepared = dw.ArmSet(arms)
        for draw in tape.draws:
            if t % every == every - 1:
                error, spread = errors(policy, state, arms, theta[t])
                drift = lemma(policy, theta[: t + 1], 0.0)
                bonus = (lemma(policy, theta[: t + 1], 1.0) - drift) * spread
                worst = max(worst, float(((error - (drift if bias else 0.0)) / bonus).max()))
            arm = policy.choose(state, prepared).arm
            policy.learn(state, prepared, arm, float(draw < special.expit(arms[arm] @ theta[t])))
            t += 1
    return worst


SMALL = {"horizon": 200, "arms": 8, "reward": "bernoulli"}
# world, and fields beside the theorem's tuning: where θ is small and λ too, the bound is nearest to what happens.
DRIFTS = {
    "a turn, tuned to it": (dw.worlds.Turn(**SMALL), {}),
    "a slow turn, hardly any ridge": (dw.worlds.Turn(turns=0.02, radius=0.5, **SMALL), {"lam": 0.5, "S": 1.0}),
    "jumps in one dimension, hardly any ridge": (
        dw.worlds.Jumps(horizon=200, arms=2, dim=1, radius=0.01, reward="bernoulli"), {"lam": 0.1, "S": 1.0}
    ),
    "a saturated turn": (dw.worlds.Turn(radius=5.0, **SMALL), {}),
}  # fmt: skip
FAMILIES = {"Lemma 2": "GLB-WeightUCB", "Lemma 3": "SCB-WeightUCB"}
TIGHT, SATURATED = "jumps in one dimension, hardly any ridge", "a saturated turn"
QUICK = [TIGHT]


def tuned(name, drift, **more):
    world, fields = DRIFTS[drift]
    return world, dw.make(name, **{**world.facts, "delta": DELTA, **fields, **more})


@functools.cache
def ratios(name, drift, runs, **more):
    world, policy = tuned(name, drift, **more)
    found = np.array([worst_ratio(world, policy, seed, every=10) for seed in range(runs)])
    assert np.isfinite(found).all()
    return found


@pytest.mark.parametrize("drift", [
    drift if drift in QUICK else pytest.param(drift, marks=pytest.mark.slow) for drift in DRIFTS
])  # fmt: skip
@pytest.mark.parametrize("name", FAMILIES.values(), ids=FAMILIES)
def test_violations_in_200_drifting_runs_are_no_more_than_delta_allows(name, drift):
    assert (ratios(name, drift, RUNS) > 1.0).sum() <= stats.binom(RUNS, DELTA).ppf(0.999)


@pytest.mark.parametrize(
    ("name", "drift", "share"),
    [("GLB-WeightUCB", TIGHT, 1 / 10),
     pytest.param("GLB-WeightUCB", "a turn, tuned to it", 1 / 8, marks=pytest.mark.slow),
     pytest.param("SCB-WeightUCB", "a turn, tuned to it", 1 / 20, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_fraction_of_the_radius_would_be_found_out(name, drift, share):
    # The power of the counts above: with this share of the bonus most runs are violations. More would not be: the
    # lemmas pay 2k/c and 2√(1+2SL)k/√c for the link, and δ for all rounds at once.
    assert (ratios(name, drift, RUNS) > share).mean() > 0.5


@pytest.mark.parametrize(("name", "share"), [("GLB-WeightUCB", 0.4), ("SCB-WeightUCB", 0.15)])
def test_what_the_ridge_alone_does_takes_this_share_of_the_bonus(name, share):
    # An enormous ridge holds the estimate at 0: the error is μ(S)-1/2 ≈ kS, for which Lemma 2 pays 2kS and Lemma 3
    # 2√(1+2S)k(S+1/2). Without the term √λcS (or √reg·S) of the radius nothing would be left to pay.
    world = dw.worlds.Turn(**SMALL)
    policy = dw.make(name, **world.facts, delta=DELTA, lam=1e8)
    found = np.array([worst_ratio(world, policy, seed, every=50) for seed in range(3)])
    assert ((found > share) & (found <= 1.0)).all()


@pytest.mark.parametrize("name", FAMILIES.values(), ids=FAMILIES)
def test_without_the_bias_term_a_jump_would_be_found_out(name):
    # From one end of the ball to the other: the bonus of 3000 observations does not pay for that, the bias term does.
    world = dw.worlds.Jumps(
        horizon=3001, arms=2, dim=1, radius=2.0, jumps=1, at=(3000,), directions=((1.0,), (-1.0,)), reward="bernoulli"
    )
    policy = dw.make(name, **{**world.facts, "delta": DELTA, "memory": dw.Fade(1e-6)})
    checked = [[worst_ratio(world, policy, seed, 3001, bias) for bias in (True, False)] for seed in range(5)]
    covered, bare = np.array(checked).T
    assert (covered <= 1.0).all()
    assert (bare > 1.0).all()


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("name", FAMILIES.values(), ids=FAMILIES)
def test_the_bonus_played_is_the_lemmas(name, drift):
    world, policy = tuned(name, drift)
    state, arms = policy.start(), np.ascontiguousarray(next(iter(world.tapes())).arms[0].T)
    still = np.tile(world.theta()[:1], (60, 1))
    for t in range(60):
        _, spread = errors(policy, state, arms, still[0])
        scores = policy.scores(state, arms)
        np.testing.assert_allclose(scores.bonus, [lemma(policy, still[: t + 1], s) for s in spread], rtol=1e-9)
        np.testing.assert_allclose(scores.mean, special.expit(arms @ state.shown[0]), rtol=1e-12)
        assert np.linalg.norm(state.shown[0]) <= policy.S * (1 + 1e-12)
        policy.learn(state, arms, int(np.argmax(scores.score)), float(t % 3 == 0))


def test_uniform_widens_the_self_concordant_radius_by_log_T_and_the_repair_of_lemma_9():
    plain, uniform = (tuned("SCB-WeightUCB", TIGHT, uniform=flag)[1] for flag in (False, True))
    state, arms = plain.start(), np.array([[1.0]])
    wider = uniform.scores(state, arms).bonus[0] - plain.scores(state, arms).bonus[0]
    spread = 1.0 / math.sqrt(plain.lam)
    tail = theory.scb_tail(plain.memory.forget, float(plain.horizon))
    more = theory.drifting_log(math.log(plain.horizon), plain.reg, 1.0, 1.0, tail)
    step = 2.0 / math.sqrt(plain.reg) * more  # (2m/√reg) of it more of β̃
    assert wider == pytest.approx(2.0 * math.sqrt(3.0) * plain.k / math.sqrt(plain.c) * step * spread, rel=1e-12)
