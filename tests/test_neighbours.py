"""The algorithms of the papers around ours: slow twins, public code, laws, and mistakes that are planted and found."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise.policies.names import neighbours
from driftwise.policies.neighbours import dlinucb, glr, logistic, mirror, save, weighted_oful
from naive_neighbours import (
    NaiveDLinUCB,
    NaiveGLBOMD,
    NaiveGLUCB,
    NaiveLogisticCode,
    NaiveOFUGLB,
    NaiveSAVE,
    NaiveWeightedOFUL,
    naive_exp3_shares,
    naive_glr,
)

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


def farthest(policy, twin, rounds=260):
    """Both play the policy's arms: the largest distance of their estimates, and whether a choice differed."""
    state, apart, others = policy.start(), 0.0, 0
    for arms, rewards in zip(*stream(rounds), strict=True):
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


SAVE = {"dim": 2, "window": 60, "layers": 9, "delta": 0.5, "S": 1.0, "R": 0.4}


@pytest.mark.parametrize(("radius", "layers", "window"), [("theorem", 9, 60), ("first", 2, 60), ("first", 6, 400)])
def test_restarted_save_is_its_slow_twin(radius, layers, window):
    fields = {**SAVE, "radius": radius, "layers": layers, "window": window}
    apart, others, state = farthest(dw.make("Restarted-SAVE+", **fields), NaiveSAVE(**fields), 110)
    assert apart < 1e-9 and others == 0
    assert (state["heard"][:, 1] > 0).sum() >= 2  # several layers were compared


def test_the_last_layer_of_restarted_save_estimates_its_variance():
    """Layer 9 does at these numbers, and layer 8 bounds it by R² for each of its rewards."""
    fields = {**SAVE, "window": 10**6}
    policy, twin = dw.make("Restarted-SAVE+", **fields), NaiveSAVE(**fields)
    state = policy.start()
    for number in range(40):
        x, reward, weight = np.array([0.5, 0.2]) * (1 + number / 40), 0.3 + number / 10, 0.7
        for layer in (8, 9):
            twin.data[layer].append((x, reward, weight))
            state["V"][layer - 1] += weight**2 * np.outer(x, x)
            state["b"][layer - 1] += weight**2 * reward * x
            state["heard"][layer - 1] += weight**2 * reward**2, 1.0
    before = [policy.beta(state, layer) for layer in (8, 9)]
    assert before == [pytest.approx(twin.radius(layer), rel=1e-9) for layer in (8, 9)]
    state["heard"][:, 1] *= 10
    assert policy.beta(state, 8) > 1.1 * before[0] and policy.beta(state, 9) == before[1]


PLANTED_SAVE = {
    "the first layer alone": ("scores", lambda self, state, arms: dw.Scores(
        *save.ridge_scores(state["V"], 0, state["b"], self._rows(arms)))),
    "a radius that stays": ("beta", lambda self, state, layer: 1.0),
    "no restart": ("_restart", lambda self, state: None),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PLANTED_SAVE)
def test_a_planted_mistake_in_restarted_save_is_found(mistake, monkeypatch):
    name, wrong = PLANTED_SAVE[mistake]
    monkeypatch.setattr(save.RestartedSAVE, name, wrong)
    apart, others, _ = farthest(dw.make("Restarted-SAVE+", **SAVE), NaiveSAVE(**SAVE), 110)
    assert apart > 1e-6 or others


BASIS = dw.worlds.Sine(arms=2, draw="basis", horizon=700, noise=1.0, chance="rare")
DRAWN = dw.worlds.Turn(dim=3, arms=5, horizon=300)


@pytest.mark.parametrize("world", [BASIS, DRAWN], ids=["basis", "drawn"])
def test_rounds_in_one_call_have_the_bits_of_single_calls(world, monkeypatch):
    """On fixed arms; restarts and several stretches are in them."""
    monkeypatch.setattr("driftwise.worlds.base._ROUNDS", 250)
    sizes = {"dim": world.dim, "horizon": world.horizon}
    policies = {
        "EXP3.S": dw.make("EXP3.S", **sizes, path_length=3.0, arms=world.count),
        "weighted": dw.make("Restarted-WeightedOFUL+", **sizes, window=100, beta=1.0),
        "told": dw.make("Restarted-WeightedOFUL+", **sizes, window=90, beta=0.7, sigma=0.3),
        "save": dw.make("Restarted-SAVE+", **sizes, window=100, radius="first"),
    }
    fast, slow = (dw.simulate(policies, world, trials=2, stepped=one, progress=False) for one in (False, True))
    for name in policies:
        assert policies[name].has_stretch
        np.testing.assert_array_equal(fast.regret[name], slow.regret[name], err_msg=name)
        np.testing.assert_array_equal(fast.arms[name], slow.arms[name], err_msg=name)
        assert np.bincount(fast.arms[name].ravel()).max() < 0.95 * fast.arms[name].size  # others are played too


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


# name -> the memory that its twin has; S is small, so that estimates leave the ball.
GLUCB = {"D-GLUCB": "fade", "SW-GLUCB": "window"}
TOLD = {"dim": 2, "horizon": 200, "changes": 3, "S": 1.5}


def clicks_apart(name, project, rounds=70, **wrong):
    """Plays the policy's arms on clicks: the largest difference of scores, choices that differ, estimates outside the
    ball."""
    policy = dw.make(name, **{**TOLD, "project": project, **wrong})
    twin = NaiveGLUCB(**TOLD, kind=GLUCB[name], project=project)
    rng, state = np.random.default_rng(5), policy.start()
    apart, others, outside = 0.0, 0, 0
    for t in range(rounds):
        arms = rng.uniform(-0.7, 0.7, (4, 2))
        ours, theirs = policy.scores(state, arms).score, twin.scores(arms)
        arm = policy.choose(state, arms).arm
        apart = max(apart, float(np.abs(ours - theirs).max()))
        others += arm != int(np.argmax(theirs))
        outside += np.linalg.norm(state.theta[0]) > TOLD["S"]
        click = float(rng.random() < NaiveGLUCB.mu(6.0 * arms[arm, 0] * (1 if t < rounds // 2 else -1)))
        policy.learn(state, arms, arm, click)
        twin.learn(arms, arm, click)
    return apart, others, outside


@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("name", GLUCB)
def test_every_choice_of_d_glucb_and_sw_glucb_is_that_of_the_slow_twin(name, project):
    apart, others, outside = clicks_apart(name, project)
    assert apart < 1e-6 and others == 0
    assert outside >= 5  # projections were compared too


WRONG_GLUCB = {
    "V has the ridge of the equation": ("D-GLUCB", {"lam": 1.0}),
    "the discount of another order": ("D-GLUCB", {"memory": dw.Fade((3 / 400) ** 0.5)}),
    "a window one round too long": ("SW-GLUCB", {"memory": dw.Window(28)}),
    "noise of size 1": ("SW-GLUCB", {"R": 1.0}),
    "the ball is twice as wide": ("D-GLUCB", {"S": 3.0}),
}


@pytest.mark.parametrize("mistake", WRONG_GLUCB)
def test_a_mistake_in_d_glucb_or_sw_glucb_is_found(mistake):
    name, wrong = WRONG_GLUCB[mistake]
    assert clicks_apart(name, True, rounds=40, **wrong)[0] > 1e-4


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


def test_the_probabilities_of_exp3s_are_those_of_the_public_code():
    """All 400 rounds to 1e-9, on the arms and rewards that the public code had (tests/published/README.md)."""
    shares = np.load(Path(__file__).parent / "published" / "shares.npz")
    policy, arms = dw.make("EXP3.S", dim=3, mix=0.2, share=0.01), np.eye(3)
    state = policy.start()
    for t, (arm, reward) in enumerate(zip(shares["arms"], shares["rewards"], strict=True)):
        found = policy.propensities(state, arms)
        np.testing.assert_allclose(found, shares["shares"][t], atol=1e-9, err_msg=f"round {t}")
        policy.learn(state, arms, int(arm), float(reward))


CLICKS = np.load(Path(__file__).parent / "published" / "clicks.npz")
PUBLIC_CLICKS = {
    "GLM-UCB": ("GLM-UCB-code", {}),
    "LogUCB1": ("LogUCB1-code", {}),
    "OFUGLB": ("OFUGLB", {"count": "as-published"}),
}


def code_radius(policy, state):
    return policy.radius(state) if hasattr(policy, "radius") else policy.most_gap(state.squares)


@pytest.mark.parametrize("name", PUBLIC_CLICKS)
def test_choices_on_clicks_are_those_of_the_public_code(name):
    """Every arm and radius, θ̂ to 1e-9 where the code takes Newton's steps (tests/published/README.md)."""
    ours, fields = PUBLIC_CLICKS[name]
    policy = dw.make(ours, dim=2, horizon=300, S=3.0, delta=0.05, **fields)
    state, X = policy.start(), CLICKS["arms"]
    for t, arm in enumerate(CLICKS[f"{name}/arms"]):
        if name != "OFUGLB":
            np.testing.assert_allclose(policy.theta(state), CLICKS[f"{name}/theta"][t], atol=1e-9, err_msg=f"round {t}")
        if t:  # the first radius of OFUGLB's code is of -1 rewards
            assert code_radius(policy, state) == pytest.approx(CLICKS[f"{name}/radius"][t], rel=1e-9)
        assert policy.choose(state, X[t]).arm == arm, f"round {t}"
        click = float(CLICKS["draws"][t] < 1 / (1 + np.exp(-X[t, arm] @ CLICKS["theta"])))
        policy.learn(state, X[t], int(arm), click)


def twin_apart(policy, twin, rounds=25, dim=2):
    """Both play the policy's arms on clicks: the largest difference of their scores."""
    rng, state, apart = np.random.default_rng(8), policy.start(), 0.0
    for _ in range(rounds):
        arms = rng.uniform(-0.7, 0.7, (4, dim))
        found = policy.scores(state, arms).score
        theirs = twin.scores(arms) if hasattr(twin, "scores") else NaiveGLUCB.mu(twin.values(arms))
        apart = max(apart, float(np.abs(found - theirs).max()))
        arm = policy.choose(state, arms).arm
        click = float(rng.random() < NaiveGLUCB.mu(4.0 * arms[arm, 0]))
        policy.learn(state, arms, arm, click)
        twin.learn(arms, arm, click)
    return apart


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize(("name", "constants"), [("GLM-UCB-code", "glm"), ("LogUCB1-code", "log")])
def test_the_rules_of_logistic_bandit_are_their_slow_twins(name, constants, dim):
    policy = dw.make(name, dim=dim, horizon=50, S=2.0, L=1.3)
    twin = NaiveLogisticCode(dim=dim, delta=0.05, S=2.0, L=1.3, constants=constants)
    assert twin_apart(policy, twin, 15, dim) < 1e-7


@pytest.mark.parametrize("window", [None, 15])
def test_ofuglb_is_its_slow_twin(window):
    """The twin searches a grid of θ: its values are a little lower."""
    memory = {} if window is None else {"memory": dw.Window(window)}
    policy = dw.make("OFUGLB", dim=2, horizon=60, S=3.0, delta=0.05, exploration=0.2, **memory)
    twin = NaiveOFUGLB(dim=2, delta=0.05, S=3.0, window=window, share=0.2)
    assert twin_apart(policy, twin) < 0.03


MIRROR = {"S": 2.0, "L": 1.3, "delta": 0.05}


@pytest.mark.parametrize("lam", [None, 0.05])
def test_glb_omd_is_its_slow_twin(lam):
    """With the small ridge steps are long, and most of them end on the ball."""
    policy = dw.make("GLB-OMD", dim=2, **MIRROR, lam=lam)
    assert twin_apart(policy, NaiveGLBOMD(**MIRROR, lam=lam), 40) < 1e-6
    edge = clicks_of(policy, 40)
    assert (edge > 1.99).sum() >= 5 if lam else edge.max() < 1.99
    assert edge.max() <= 2.0 * (1 + 1e-12)


def clicks_of(policy, rounds):
    """‖θ‖ after every reward of a stream of clicks."""
    rng, state, found = np.random.default_rng(8), policy.start(), []
    for _ in range(rounds):
        arms = rng.uniform(-0.7, 0.7, (4, 2))
        arm = policy.choose(state, arms).arm
        policy.learn(state, arms, arm, float(arms[arm, 0] > 0.0))
        found.append(float(np.linalg.norm(policy.theta(state))))
    return np.array(found)


PLANTED_MIRROR = {
    "the ball is left": (mirror, "nearest", lambda metric, point, ball: point),
    "the point is shortened, in no metric": (
        mirror, "nearest", lambda metric, point, ball: point * ball / np.linalg.norm(point)),
    "a step of 1": (mirror.GLBOMD, "eta", 1.0),
    "a radius that does not grow": (mirror.GLBOMD, "radius", lambda self, n: 9.0),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PLANTED_MIRROR)
def test_a_planted_mistake_in_glb_omd_is_found(mistake, monkeypatch):
    place, name, wrong = PLANTED_MIRROR[mistake]
    monkeypatch.setattr(place, name, wrong)
    policy = dw.make("GLB-OMD", dim=2, **MIRROR, lam=0.05)
    assert twin_apart(policy, NaiveGLBOMD(**MIRROR, lam=0.05), 40) > 1e-4


def test_the_ellipsoid_of_glb_omd_holds_the_truth_and_its_radius_is_the_proofs():
    """δ = 0.05 in 20 runs: more than 4 misses have a chance below 0.003 where δ is kept."""
    rng, policy, truth, missed = np.random.default_rng(6), dw.make("GLB-OMD", dim=2, S=1.0), np.array([0.6, -0.7]), 0
    for _ in range(20):
        state, arms = policy.start(), rng.uniform(-0.7, 0.7, (5, 2))
        outside = False
        for _ in range(60):
            arm = policy.choose(state, arms).arm
            policy.learn(state, arms, arm, float(rng.random() < NaiveGLUCB.mu(arms[arm] @ truth)))
            gap = truth - policy.theta(state)
            outside |= math.sqrt(gap @ state["H"] @ gap) > policy.radius(int(state["n"]))
        missed += outside
    assert missed <= 4
    eta, lam = 2.0, 56.0
    assert policy.ridge == lam and policy.radius(0) == pytest.approx(math.sqrt(4 * lam + 2 * eta * math.log(20)))
    grown = policy.radius(400) ** 2 - policy.radius(0) ** 2
    assert grown == pytest.approx(2 * (6 * eta**2 + eta) * math.log(1 + 400 / (4 * lam)))


PLANTED_CLICKS = {
    "the ridge does not grow": (
        "LogUCB1-code", logistic.LogisticCodeUCB, "ridge_now", lambda self, state: float(self.dim)),
    "no chi-square": ("LogUCB1-code", logistic, "chi_square", lambda d, x: 1.0),
    "no determinant": ("GLM-UCB-code", logistic, "log_det", lambda V: 0.0),
    "the loss of the estimate outside the ball": (
        "OFUGLB", logistic.OFUGLB, "nearest", lambda self, state: state.theta[0].copy()),
    "a level that does not grow": ("OFUGLB", logistic.OFUGLB, "most_gap", lambda self, n: 4.0),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PLANTED_CLICKS)
def test_a_planted_mistake_in_the_rules_for_clicks_is_found(mistake, monkeypatch):
    name, place, attribute, wrong = PLANTED_CLICKS[mistake]
    monkeypatch.setattr(place, attribute, wrong)
    if name == "OFUGLB":
        policy = dw.make(name, dim=2, horizon=60, S=1.0, delta=0.05, exploration=0.2)
        assert twin_apart(policy, NaiveOFUGLB(dim=2, delta=0.05, S=1.0, window=None, share=0.2)) > 0.04
    else:
        constants = "glm" if name == "GLM-UCB-code" else "log"
        policy = dw.make(name, dim=2, horizon=50, S=2.0)
        assert twin_apart(policy, NaiveLogisticCode(dim=2, delta=0.05, S=2.0, L=1.0, constants=constants), 12) > 1e-3


def test_the_glr_statistic_is_its_formula():
    rng = np.random.default_rng(2)
    for n in (2, 3, 17, 60):
        rewards = (rng.random(n) < np.where(np.arange(n) < n // 2, 0.2, 0.8)).astype(float)
        assert glr.statistic(rewards) == pytest.approx(naive_glr(list(rewards)), abs=1e-9)
        values = rng.random(n)
        assert glr.statistic(values) == pytest.approx(naive_glr(list(values)), abs=1e-9)
    assert glr.statistic(np.repeat([0.0, 1.0], 40), every=10) == glr.statistic(np.repeat([0.0, 1.0], 40))


def test_glr_restarts_soon_after_a_change_and_not_without_one():
    policy, arms = dw.make("GLR+OFUL", dim=2, horizon=2000, arms=2), np.eye(2)
    for jump, wanted in ((True, 1), (False, 0)):
        rng, state, heard = np.random.default_rng(4), policy.start(), []
        base, other, began = policy.base, policy.base.start(), 0
        for t in range(1200):
            means = (0.2, 0.8) if jump and t >= 600 else (0.8, 0.2)
            arm = policy.choose(state, arms).arm
            place = (t - began) % policy.period
            assert arm == (place if place < 2 else base.choose(other, arms).arm)  # the base, except for forced plays
            before = int(state["restarts"])
            reward = float(rng.random() < means[arm])
            policy.learn(state, arms, arm, reward)
            base.learn(other, arms, arm, reward)
            if int(state["restarts"]) > before:
                heard.append(t)
                other, began = base.start(), t + 1
        assert len(heard) == wanted and all(600 < t < 800 for t in heard)


@pytest.mark.parametrize(
    "wrong", [{"base": 3}, {"dim": 3}, {"share": 2.0}, {"every": 0}, {"high": 0.0}, {"arms": 0}, {"horizon": 0}]
)
def test_a_glr_policy_with_a_wrong_field_is_refused(wrong):
    right = {"dim": 2, "base": dw.make("OFUL", dim=2, horizon=10), "arms": 2, "horizon": 10}
    with pytest.raises(dw.BadInput):
        glr.GLRRestart(**{**right, **wrong})
    with pytest.raises(dw.BadInput, match="arms"):
        policy = glr.GLRRestart(**right)
        policy.choose(policy.start(), np.eye(3, 2))


NEIGHBOURS = {
    row["name"]: dw.make(row["name"], **KNOWN, **({"window": 50} if "Restarted" in row["name"] else {}))
    for row in neighbours()
}


# EXP3.S is left out: it ignores features, and the checks rotate and shuffle arms.
# GLR+OFUL is left out too: it identifies an arm by its index, and some indices are forced.
@pytest.mark.parametrize("name", [name for name in NEIGHBOURS if name not in ("EXP3.S", "GLR+OFUL")])
def test_every_neighbour_passes_the_checks_of_a_policy(name):
    dw.checks.check_policy(NEIGHBOURS[name])


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_neighbour_plays_in_an_agent_and_comes_back_from_a_snapshot(name):
    agent = dw.Agent(NEIGHBOURS[name], rewards=(0.0, 1.0), seed=1)
    arms = np.array([[0.5, 0.1], [-0.2, 0.6]])
    for number in range(30):
        agent.reward(agent.decide(arms).id, float(number % 2))
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
        dw.research.BanditOverBandit(base=dw.make("OFUL", dim=2, horizon=10), horizon=10, grid=(dw.Restart(at=(2,)),))
    assert dataclasses.asdict(dw.Restart(at=[1, 2])) == {"period": None, "at": (1.0, 2.0)}
