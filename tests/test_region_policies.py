"""Policies on continuous sets: choices, lessons, refusals, and the same results for a list of the same arms."""

import math

import numpy as np
import pytest

import driftwise as dw
from driftwise.kernels.auto.gauge import KNOWN as NUMBERS
from driftwise.kernels.auto.gauge import Gauge, scale_of
from interpreting import both_ways
from naive_regions import LINKS, circle, finest, index_of_state

KNOWN = {"horizon": 300, "path_length": 1.0}
ON_BALLS = {
    "LB-WeightUCB": KNOWN, "OFUL": {"horizon": 300}, "D-LinUCB": KNOWN, "SW-UCB": KNOWN, "RestartUCB": KNOWN,
    "Bank+LB-WeightUCB": {}, "MASTER+OFUL": {"horizon": 300}, "BOB+LB-WeightUCB": {"horizon": 300},
    "Auto": {"looks": 0.0},
}  # fmt: skip
CLICKS = {
    "GLB-WeightUCB": KNOWN, "SCB-WeightUCB": KNOWN, "SC-D-GLUCB": {**KNOWN, "changes": 2}, "BVD-GLM-UCB": KNOWN,
    "Auto": {"link": "logistic", "looks": 0.0},
}  # fmt: skip


def scores_on(policy, state, X):
    """Mean and score of points of a set: those of a list, but for Auto those of docs/math.md#auto, from its beliefs."""
    if not isinstance(policy, dw.research.Auto):
        found = policy.scores(state, X)
        return found.mean, found.score
    d, k = policy.dim, policy.played(state)
    sizes = [(2 * d + 1 if row.sloped else d + 1) for row in policy.rows]
    first, C = sum(n * (n + 1) // 2 for n in sizes[:k]), np.zeros((sizes[k], sizes[k]))
    C[np.tril_indices(sizes[k])] = state.spread[first : first + sizes[k] * (sizes[k] + 1) // 2]
    C = (C + np.tril(C, -1).T)[: d + 1, : d + 1]
    counts, inverse = state.gauge[NUMBERS + d : NUMBERS + 2 * d], state.gauge[NUMBERS + 2 * d : NUMBERS + 3 * d]
    bar = state.gauge[-d - 1 :]
    scale = scale_of(policy.model.code, Gauge(state.gauge, *[np.zeros(0)] * 5))
    v = np.c_[X * inverse, np.ones(len(X))]
    square = np.einsum("ni,ij,nj->n", v, C, v) - (v @ C @ bar) ** 2 / max(bar @ C @ bar, 1e-300)
    square += (X * inverse) ** 2 @ (counts == 0.0) * scale.prior
    seen = min(state.gauge[0], policy.rows[k].rounds)
    bonus = np.sqrt(np.maximum(square, 0.0) * scale.noise * (1.0 + 0.45 * math.log1p(seen)))
    z = v @ state.mean[k, : d + 1]
    link = LINKS[policy.link]
    return link(z), link(z + bonus)


def lived(policy, region, rounds, seed=0, clicks=False):
    """A state after some rounds on a set, with θ turning."""
    rng, state = np.random.default_rng(seed), policy.start(seed)
    for t in range(rounds):
        x = policy.choose(state, region).x
        theta = np.zeros(policy.dim)
        theta[0], theta[-1] = math.cos(t / 20), math.sin(t / 20)
        value = float(x @ theta)
        policy.learn(state, region, x, float(rng.random() < 1 / (1 + math.exp(-3 * value))) if clicks
                     else value + 0.3 * rng.standard_normal())  # fmt: skip
    return state


@pytest.mark.parametrize("name", ON_BALLS)
def test_a_choice_on_a_ball_is_that_on_a_fine_grid_of_it(name):
    policy = dw.make(name, dim=2, **ON_BALLS[name])
    ball, grid = dw.Ball(2), circle(5000)
    for rounds in (0, 1, 2, 40):
        state = lived(policy, ball, rounds)
        choice, score = policy.choose(state, ball), scores_on(policy, state, grid)[1].max()
        scale = max(1.0, abs(score))
        assert score - 1e-9 * scale <= choice.score <= score + 1e-5 * scale
        assert 0.0 <= choice.gap <= 1e-9 * scale and choice.arm == -1 and choice.number is None
        assert choice.score == choice.mean + choice.bonus
        told = [found[0] for found in scores_on(policy, state, choice.x[None])]
        if name == "Auto":
            np.testing.assert_allclose((choice.mean, choice.score), told, rtol=1e-9, atol=1e-9)
        else:
            assert [choice.mean, choice.score] == told


@pytest.mark.parametrize("name", CLICKS)
def test_a_choice_of_clicks_on_a_ball_is_that_on_a_fine_grid_of_it(name):
    policy = dw.make(name, dim=2, **CLICKS[name])
    ball, grid = dw.Ball(2), circle(5000)
    for rounds in (0, 3, 25):
        state = lived(policy, ball, rounds, clicks=True)
        choice, score = policy.choose(state, ball), scores_on(policy, state, grid)[1].max()
        scale = max(1.0, abs(score))
        assert score - 1e-9 * scale <= choice.score <= score + 1e-5 * scale
        # The square of Auto's deviation has a middle other than 0. Where points nearly tie, the gap says what is open.
        assert 0.0 <= choice.gap <= (1e-3 if name == "Auto" else 1e-8) * scale


@pytest.mark.parametrize("two", [None, "correct"])
def test_the_index_on_a_ball_is_the_formula_of_the_sums(two):
    # An independent computation: V, b and β from docs/math.md#linear, and a grid.
    policy = dw.LinearUCB(dim=3, memory=dw.Fade(0.05), lam=1e-3, delta=0.01, R=0.3, two_matrix=two)
    state = lived(policy, dw.Ball(3), 60)
    G, twin = (np.tril(M) + np.tril(M, -1).T for M in (state.G[0], state.twin[0] if two else state.G[0]))
    beta = policy.choose(state, [[1.0, 0.0, 0.0]]).bonus / math.sqrt(
        index_of_state(G, state.b[0], 1e-3, 1.0, twin if two else None).A[0, 0]
    )
    naive = index_of_state(G, state.b[0], 1e-3, beta, twin if two else None)
    choice = policy.choose(state, dw.Ball(3))
    assert abs(choice.score - finest(naive, 3)) <= 1e-9 * choice.score


def test_a_bank_of_clicks_judges_what_its_memories_propose():
    policy = dw.make("Bank+SCB-WeightUCB", dim=2)
    ball = dw.Ball(2)
    state = lived(policy, ball, 12, clicks=True)
    choice, score = policy.choose(state, ball), policy.scores(state, circle(2000)).score.max()
    assert abs(choice.score - score) <= 1e-3 and math.isfinite(choice.gap)


@pytest.mark.parametrize("rounds", [0, 30])
def test_thompson_on_a_ball_plays_the_direction_of_its_draw(rounds):
    policy, ball = dw.make("D-LinTS", dim=3, **KNOWN), dw.Ball(3, 0.5)
    state = lived(policy, ball, rounds)
    for draw in range(20):
        choice = policy.choose(state, ball, draw)
        corners = policy.scores(state, 0.5 * np.eye(3), draw).score * 2.0  # θ̃: each arm is one coordinate
        assert np.allclose(choice.x, 0.5 * corners / math.sqrt(corners @ corners), atol=1e-9)
    assert not np.array_equal(policy.choose(state, ball, 1).x, policy.choose(state, ball, 2).x)


def test_the_first_choice_of_an_empty_state_is_defined():
    policy = dw.make("LB-WeightUCB", dim=4, **KNOWN)
    assert np.allclose(policy.choose(policy.start(), dw.Ball(4, 0.7)).x, [0.7, 0.0, 0.0, 0.0])


def test_boxes_curves_and_unions_are_played_by_every_convex_index():
    regions = [
        dw.Box([-0.5] * 3, [0.5, 0.4, 0.3]), dw.Curve(dw.Polynomial(2), 1.0, 5.0),
        dw.Union(dw.Ball(3, 0.2), dw.Curve(dw.Polynomial(2), 1.0, 5.0), np.eye(3)),
    ]  # fmt: skip
    for name in ("LB-WeightUCB", "D-LinUCB", "Auto", "Bank+LB-WeightUCB"):
        policy = dw.make(name, dim=3, **ON_BALLS[name])
        for region in regions:
            state = lived(policy, region, 25)
            choice = policy.choose(state, region)
            points = np.array([region.draw(0, 1, number).x for number in range(300)])
            assert scores_on(policy, state, points)[1].max() <= choice.score + choice.gap + 1e-9
            assert choice.gap <= 2e-6 * max(1.0, choice.score) and region.contains(choice.x)


def test_a_price_is_learned_by_its_number_as_by_its_vector():
    curve = dw.Curve(dw.Polynomial(2), 1.0, 5.0)
    policy = dw.make("LB-WeightUCB", dim=3, **KNOWN)
    one, other = policy.start(), policy.start()
    for _ in range(10):
        choice = policy.choose(one, curve)
        policy.learn(one, curve, choice.number, 0.3)
        policy.learn(other, curve, choice.x, 0.3)
    assert one.to_bytes() == other.to_bytes()


def test_a_sum_of_a_link_and_a_norm_needs_certify_false_on_a_box():
    policy = dw.make("GLB-WeightUCB", dim=2, **KNOWN)
    state = lived(policy, dw.Ball(2), 10, clicks=True)
    with pytest.raises(dw.BadInput, match="certify=False"):
        policy.choose(state, dw.Box([-0.5, -0.5], [0.5, 0.5]))
    choice = policy.choose(state, dw.Box([-0.5, -0.5], [0.5, 0.5], certify=False))
    axis = np.linspace(-0.5, 0.5, 101)
    grid = np.array([[a, b] for a in axis for b in axis])
    assert choice.gap == math.inf and choice.score >= policy.scores(state, grid).score.max() - 1e-3


REFUSED = {
    "OFULog": KNOWN, "SCB-PW-WeightUCB": {**KNOWN, "changes": 2}, "Logistic-UCB-2": KNOWN,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_played_on_a_set_is_refused_with_a_sentence(name):
    policy = dw.make(name, dim=2, **REFUSED[name])
    state = policy.start()
    before = state.to_bytes()
    with pytest.raises(dw.BadInput, match="list"):
        policy.choose(state, dw.Ball(2))
    assert state.to_bytes() == before


def test_bad_calls_on_sets_change_nothing():
    policy = dw.make("LB-WeightUCB", dim=2, **KNOWN)
    state = lived(policy, dw.Ball(2), 5)
    before = state.to_bytes()
    multiplied = dw.make("D-RandLinUCB", dim=2, **KNOWN)
    calls = [
        lambda: policy.choose(state, dw.Ball(3)), lambda: policy.choose(state, dw.Ball(2, 2.0)),
        lambda: policy.learn(state, dw.Ball(2), [2.0, 0.0], 1.0), lambda: policy.learn(state, dw.Ball(2), 0, 1.0),
        lambda: policy.learn(state, dw.Ball(2), [math.nan, 0.0], 1.0),
        lambda: policy.learn(state, dw.Ball(2, 0.5), [0.9, 0.0], 1.0),
        lambda: policy.learn(state, dw.Ball(2), [0.5, 0.0], math.nan),
        lambda: policy.choose(state, dw.Box([0.0] * 21, [0.1] * 21)),
        lambda: [multiplied.choose(multiplied.start(), dw.Ball(2), draw) for draw in range(20)],
        lambda: policy.scores(state, dw.Ball(2)),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        with pytest.raises(dw.BadInput) as caught:
            call()
        assert "wanted" in str(caught.value), number
        assert state.to_bytes() == before, number


def test_choices_on_sets_are_the_same_bits_compiled_and_interpreted():
    script = """
import numpy as np, driftwise as dw
for name in ("LB-WeightUCB", "D-LinUCB"):
    for region in (dw.Ball(3), dw.Ellipsoid([[.5, .1, 0], [.1, .4, 0], [0, 0, .2]]), dw.Box([-.5] * 3, [.5] * 3),
                   dw.Curve(dw.Polynomial(2), 0, 1)):
        p = dw.make(name, dim=3, horizon=99, path_length=1.0)
        s = p.start()
        for t in range(15):
            c = p.choose(s, region)
            p.learn(s, region, c.x if c.number is None else c.number, float(c.x[0]) + 0.1 * (t % 3))
        print(name, c.x.tobytes().hex(), c.score.hex(), c.gap.hex())
"""
    compiled, interpreted = both_ways(script)
    assert compiled == interpreted and compiled.count("UCB") == 8


def played_states(count, dim, rng):
    """States reached in play on a ball, and extreme ones: λ down to 1e-8, one arm only, none, rewards of 0 or huge."""
    for number in range(count):
        two = "correct" if number % 3 == 0 else None
        memory = (dw.Keep(), dw.Fade(0.05), dw.Window(7))[number % 3]
        policy = dw.LinearUCB(
            dim=dim, memory=memory, lam=10.0 ** rng.uniform(-8, 2), delta=0.05, R=10.0 ** rng.uniform(-2, 1),
            two_matrix=two,
        )  # fmt: skip
        state, ball = policy.start(), dw.Ball(dim)
        scale, arm = (0.0, 1.0, 1e4)[number % 3], rng.standard_normal(dim)
        arm /= math.sqrt(arm @ arm)
        for _ in range(int(rng.integers(0, 25))):
            x = arm if number % 5 == 0 else policy.choose(state, ball).x
            policy.learn(state, ball, x, scale * float(x[0]) + (number % 2) * rng.standard_normal())
        yield policy, state


def no_point_is_better(count, dim, seed):
    rng, ball = np.random.default_rng([count, dim, seed]), dw.Ball(dim)
    for policy, state in played_states(count, dim, rng):
        choice = policy.choose(state, ball)
        best = finest(lambda X, p=policy, s=state: p.scores(s, X / np.maximum(
            1.0, np.sqrt((X**2).sum(axis=1, keepdims=True)))).score, dim)  # fmt: skip
        scale = max(1.0, abs(choice.score))
        assert best - 1e-9 * scale <= choice.score and choice.gap <= 1e-9 * scale


@pytest.mark.parametrize("dim", [2, 3])
def test_of_states_reached_in_play_and_made_extreme_no_point_of_a_grid_is_better(dim):
    no_point_is_better(30, dim, 0)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 3])
def test_of_a_thousand_such_states_no_point_of_a_grid_is_better(dim):
    no_point_is_better(1000, dim, 1)
