"""`uniform=` and `tuning=`: radii that hold at all rounds, the paper's radii by default, and the sources' tunings."""

import math

import numpy as np
import pytest

import driftwise as dw
from driftwise import theory as th
from driftwise.policies.base import Compiled
from driftwise.policies.memory import Memory
from driftwise.policies.plain import described, kinds_of, restored

DELTA, FORGET, T = 0.05, 0.1, 40
ARMS = np.array([[0.8, 0.5], [0.2, -0.7]])
LINEAR = {"dim": 2, "lam": 2.0, "delta": DELTA}
CLICKS = {"dim": 2, "lam": 30.0, "delta": DELTA}


def logs(horizon):
    """log(1/δ) of each round."""
    rounds = range(1, T)
    return [math.log(horizon / DELTA) if horizon else math.log(2 * t * (1 + math.log(t)) ** 2 / DELTA) for t in rounds]


def widening(make, rounds=12, reward=1.0):
    """Bonus with uniform=True divided by that without, round by round, on one stream."""
    plain, wide = make(False), make(True)
    states = plain.start(), wide.start()
    for _ in range(rounds):
        scores = [policy.scores(state, ARMS) for policy, state in zip((plain, wide), states, strict=True)]
        np.testing.assert_allclose(scores[0].mean, scores[1].mean, rtol=1e-12)
        yield scores[1].bonus / scores[0].bonus
        for policy, state in zip((plain, wide), states, strict=True):
            policy.learn(state, ARMS, 0, reward)


@pytest.mark.parametrize("horizon", [T, None])
@pytest.mark.parametrize("two_matrix", [None, "correct"])
def test_a_uniform_linear_radius_shares_delta_over_rounds(horizon, two_matrix):
    def make(uniform):
        return dw.LinearUCB(memory=dw.Fade(FORGET), two_matrix=two_matrix, uniform=uniform, horizon=horizon, **LINEAR)

    for n, ratio in enumerate(widening(make)):
        E = th.geometric(FORGET, float(n))
        radii = [th.lb_radius(E, 2.0, 2.0, log, 1.0, 1.0, 1.0) for log in (logs(horizon)[n], -math.log(DELTA))]
        assert ratio == pytest.approx(radii[0] / radii[1], rel=1e-12)


@pytest.mark.parametrize("kind", [dw.research.GLMUCB, dw.research.BVDGLMUCB, dw.research.SelfConcordantUCB])
@pytest.mark.parametrize("horizon", [T, None])
def test_a_uniform_radius_of_clicks_shares_delta_over_rounds(kind, horizon):
    def make(uniform):
        return kind(memory=dw.Fade(FORGET), uniform=uniform, horizon=horizon, **CLICKS)

    if kind is dw.research.BVDGLMUCB and horizon is None:
        with pytest.raises(dw.BadInput, match="horizon"):
            make(True)
        return
    policy = make(False)
    for n, ratio in enumerate(widening(make)):
        E, log = th.geometric(FORGET, float(n)), logs(horizon)[n]
        if kind is dw.research.SelfConcordantUCB:
            tail = th.scb_tail(FORGET, float(horizon)) if horizon else 1.0
            log = th.drifting_log(log, policy.reg, 1.0, 1.0, tail)
            radii = [th.scb_radius(E, 2.0, policy.reg, one, 1.0, 1.0, 1.0, policy.k) for one in (log, -math.log(DELTA))]
        else:
            radii = [th.glb_radius(E, 2.0, 30.0, one, 1.0, 1.0, 0.5, policy.c) for one in (log, -math.log(DELTA))]
        assert ratio == pytest.approx(radii[0] / radii[1], rel=1e-12)


def test_where_nothing_fades_beta_tilde_needs_no_repair_of_variances():
    policy = dw.research.SelfConcordantUCB(memory=dw.Keep(), uniform=True, horizon=T, **CLICKS)
    radius = th.scb_radius(0.0, 2.0, policy.reg, math.log(T / DELTA), 1.0, 1.0, 1.0, policy.k)
    spread = math.sqrt(float(ARMS[0] @ ARMS[0]) / 30.0)
    bonus = th.scb_multiplier(policy.k, policy.c, 1.0, 1.0) * radius * spread
    assert policy.scores(policy.start(), ARMS).bonus[0] == pytest.approx(bonus, rel=1e-12)


def test_the_constant_radius_and_the_piecewise_one_are_uniform_too():
    window = {"memory": dw.Window(9), "radius": "cheung", **LINEAR}
    wide = dw.LinearUCB(uniform=True, horizon=T, **window)
    expected = th.cheung_radius(9.0, 2.0, 2.0, math.log(T / DELTA), 1.0, 1.0, 1.0) * math.sqrt(0.89 / 2.0)
    assert wide.scores(wide.start(), ARMS).bonus[0] == pytest.approx(expected, rel=1e-12)
    piecewise = dw.research.PiecewiseUCB(memory=dw.Fade(FORGET), horizon=T, uniform=True, D=7, **CLICKS)
    rho = th.pw_radius(7.0, FORGET, 2.0, piecewise.reg, math.log(T / DELTA), 1.0, 1.0, 1.0, piecewise.k, False)
    assert piecewise.delay == 7 and piecewise.set_radius(piecewise.start()) == pytest.approx(rho, rel=1e-12)
    assert dw.research.PiecewiseUCB(memory=dw.Fade(FORGET), horizon=T, **CLICKS).delay == th.pw_delay(FORGET, float(T))


@pytest.mark.parametrize("fields", [
    {"uniform": 1.5}, {"uniform": True, "delta": None}, {"uniform": True, "radius": "posterior"}, {"horizon": 0},
    {"uniform": True, "radius": "cheung", "memory": dw.Window(9)},
])  # fmt: skip
def test_a_uniform_radius_that_cannot_be_is_refused(fields):
    with pytest.raises(dw.BadInput):
        dw.LinearUCB(**{"memory": dw.Fade(FORGET), **LINEAR, **fields})


def test_simulated_and_stepped_uniform_policies_play_the_same_arms():
    world = dw.worlds.Turn(horizon=120, arms=6)
    for horizon in (120, None):
        policy = dw.LinearUCB(memory=dw.Fade(0.05), uniform=True, horizon=horizon, **LINEAR)
        played = dw.simulate({"one": policy}, world, trials=9).arms["one"][8]
        state, stepped = policy.start(), []
        for tape in world.tapes(0, 8):
            arms = np.ascontiguousarray(tape.arms[0].T)
            for theta, draw in zip(tape.theta, tape.draws, strict=True):
                stepped.append(policy.choose(state, arms).arm)
                policy.learn(state, arms, stepped[-1], float(arms[stepped[-1]] @ theta + draw))
        assert list(played) == stepped


# Fields that older files do not have.

KNOWN = {
    "LB-WeightUCB": "a1e5ac8128dcf24c1a89",
    "GLB-WeightUCB": "1a878c90b8e81e198b35",
    "SCB-WeightUCB": "f5eb0eae3c40ea375ad2",
    "SCB-PW-WeightUCB": "47052bea17d09466e01c",
    "BVD-GLM-UCB": "8eb283d591b055662e64",
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_policy_without_the_new_fields_is_known_by_its_old_digest(name):
    drift = {"changes": 3} if "PW" in name else {"path_length": 3.0}
    policy = dw.make(name, dim=3, horizon=500, **drift)
    assert policy.digest == KNOWN[name]
    written = described(policy)
    kinds = kinds_of(Compiled, Memory)
    assert restored(written, kinds) == policy
    wide = dw.make(name, dim=3, horizon=500, uniform=True, **drift)
    assert wide.digest != policy.digest and restored(described(wide), kinds) == wide
    with pytest.raises(dw.BadInput, match="other fields: odd"):
        restored({**written, "odd": 1.0}, kinds)
    del written["lam"]
    with pytest.raises(dw.BadInput, match="other fields: lam"):
        restored(written, kinds)


# Tunings.


def test_the_sources_own_tunings():
    facts = {"dim": 2, "horizon": 6000, "path_length": 2 * math.pi}
    assert dw.make("D-LinUCB", tuning="source", **facts).memory == dw.Fade(th.d_linucb_forget(2, 6000, 2 * math.pi))
    assert dw.make("SW-UCB", tuning="source", **facts).memory == dw.Window(153)
    for name in ("RestartUCB", "GLB-RestartUCB", "SCB-RestartUCB"):
        assert dw.make(name, tuning="source", **facts).memory == dw.Restart(154)
    k, c = 0.25, 0.25 / math.cosh(0.5) ** 2
    printed = dw.make("GLB-WeightUCB", tuning="printed", **facts).memory.forget
    assert printed == pytest.approx(math.sqrt(k * c * 2 * math.pi / 12000))
    assert dw.make("SCB-WeightUCB", tuning="printed", **facts).memory.forget == pytest.approx(
        0.5 * dw.make("SCB-WeightUCB", **facts).memory.forget
    )
    assert dw.make("OFUL", tuning="paper", **facts) == dw.make("OFUL", **facts)
    for name in ("OFUL", "MASTER+OFUL", "Auto"):
        with pytest.raises(dw.BadInput, match="tuning"):
            dw.make(name, dim=2, horizon=6000, tuning="source")


def test_bob_with_the_block_and_grid_of_its_source():
    bob = dw.make("BOB+SW-UCB", dim=2, horizon=6000, tuning="source")
    assert bob.length == 154 and bob.grid == tuple(map(dw.Window, (1, 2, 5, 12, 28, 66, 154)))
    faded = dw.make("BOB+LB-WeightUCB", dim=2, horizon=6000, tuning="source")
    assert faded.grid == tuple(dw.Fade(1 / n) for n in (2, 5, 12, 28, 66, 154))
    assert dw.make("BOB+LB-WeightUCB", dim=2, horizon=6000).length == 155
