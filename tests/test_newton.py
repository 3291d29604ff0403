"""The estimate solves its equation for all data; the one-pass estimate follows its recursion."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.special import expit

import naive
from driftwise.kernels import links
from driftwise.kernels.solvers import newton, one_pass, secular
from driftwise.kernels.solvers.atoms import Atoms, linear_predictor_
from interpreting import both_ways

LINKS = [links.IDENTITY, links.LOGISTIC, links.PROBIT, links.POISSON]
NAMES = {row.code: name for name, row in links.LINKS.items()}
MEANS = {link: naive.LINKS[NAMES[link]][0] for link in LINKS}
SLOPES = {link: naive.LINKS[NAMES[link]][1] for link in LINKS}
TINY = 1e-8 * links.LINKS["logistic"].slopes(20.0)[1]  # λ = 1e-8 at S = 20: 2e-17
seeds = st.integers(0, 2**32 - 1)


def made(seed, link, dim, count, radius=2.0):
    """Atoms (dim, count) in the unit ball, weights, weighted reward sums."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(dim, count))
    A /= np.maximum(1.0, np.linalg.norm(A, axis=0))
    theta = rng.normal(size=dim)
    means = MEANS[link](A.T @ theta * radius / np.linalg.norm(theta))
    pulls = rng.integers(1, 20, count)
    if link == links.POISSON:
        hits = rng.poisson(pulls * means)
    elif link == links.IDENTITY:
        hits = pulls * means + rng.normal(size=count)
    else:
        hits = rng.binomial(pulls, means)
    fade = rng.random(count)
    return A, (fade * pulls)[None].copy(), (fade * hits)[None].copy()


def atoms_of(link, A, w, s, reg):
    """All atoms, in one lane; the estimate ignores the ball."""
    return Atoms(link, A, w, s, 0, A.shape[1], reg, math.inf)


def solve(link, A, w, s, reg, start=None):
    """Status, estimate and Hessian (lower triangle)."""
    dim, count = A.shape
    theta = np.zeros((1, dim)) if start is None else np.array(start, float).reshape(1, dim)
    H = np.zeros((dim, dim))
    status = newton.solve_(atoms_of(link, A, w, s, reg), theta, newton.newton_scratch(dim, count), H)
    assert np.isfinite(theta).all()
    return status, theta[0], H


def gradient(link, A, w, s, reg, theta):
    return reg * theta + A @ (w[0] * MEANS[link](A.T @ theta) - s[0])


def hessian(link, A, w, reg, theta):
    return reg * np.eye(len(theta)) + (A * (w[0] * SLOPES[link](A.T @ theta))) @ A.T


def loss(link, A, w, s, reg, theta):
    return naive.Equation(A.T, s[0] / w[0], w[0], reg, naive.Link(NAMES[link])).loss(theta)


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from(LINKS), st.integers(1, 6), st.integers(1, 60), st.floats(-4, 1))
def test_the_estimate_solves_its_equation(seed, link, dim, count, log_reg):
    A, w, s = made(seed, link, dim, count)
    reg = 10.0**log_reg
    status, theta, H = solve(link, A, w, s, reg)
    assert status == newton.CONVERGED
    exact = hessian(link, A, w, reg, theta)
    step = np.linalg.solve(exact, gradient(link, A, w, s, reg, theta))
    assert np.linalg.norm(step) <= 1e-9 * (1 + np.linalg.norm(theta))
    assert np.tril(exact) == pytest.approx(np.tril(H), rel=2e-5, abs=2e-5 * np.abs(exact).max())


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("dim", [1, 2, 5, 10])
def test_the_estimate_is_scipys_minimum_of_the_loss(link, dim):
    A, w, s = made(dim, link, dim, 40)
    status, theta, _ = solve(link, A, w, s, 0.3)
    found = minimize(
        lambda x: loss(link, A, w, s, 0.3, x),
        np.zeros(dim),
        jac=lambda x: gradient(link, A, w, s, 0.3, x),
        hess=lambda x: hessian(link, A, w, 0.3, x),
        method="trust-exact",
        options={"gtol": 1e-9},
    )
    assert status == newton.CONVERGED
    assert theta == pytest.approx(found.x, abs=1e-8)
    assert loss(link, A, w, s, 0.3, theta) <= found.fun + 1e-12 * abs(found.fun)


@pytest.mark.parametrize("link", LINKS)
def test_the_loss_has_the_gradient_of_the_equation(link):
    A, w, s = made(1, link, 3, 20)
    atoms, desk = atoms_of(link, A, w, s, 0.7), secular.set_scratch(3, 20)
    x, h = np.array([0.3, -0.5, 0.8]), 1e-6
    for i in range(3):
        e = np.eye(3)[i] * h
        up, down = (secular.atoms_(atoms, desk, x + sign * e, True) for sign in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(gradient(link, A, w, s, 0.7, x)[i], rel=1e-6, abs=1e-6)
    assert secular.atoms_(atoms, desk, x, True) == pytest.approx(loss(link, A, w, s, 0.7, x), rel=1e-12)
    assert desk.vec[secular.GAP] == pytest.approx(gradient(link, A, w, s, 0.7, x), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from(LINKS), st.integers(1, 4), st.floats(-1, 2))
def test_the_start_does_not_matter_and_the_loss_ends_no_higher(seed, link, dim, log_far):
    A, w, s = made(seed, link, dim, 12)
    far = np.random.default_rng(seed).normal(size=dim) * min(10.0**log_far, 20.0 if link == links.POISSON else 100.0)
    status, theta, _ = solve(link, A, w, s, 0.05, far)
    assert status == newton.CONVERGED
    assert theta == pytest.approx(solve(link, A, w, s, 0.05)[1], abs=1e-7 * (1 + np.linalg.norm(theta)))
    there, here = (loss(link, A, w, s, 0.05, x) for x in (theta, far))
    assert there <= here + 1e-9 * abs(here)


@pytest.mark.parametrize("reg", [TINY, 1e-9, 1e-3, 10.0])
@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_one_arm_always_rewarded_alike_has_its_scalar_solution(reg, reward, count):
    x = np.array([0.6, -0.8])
    A, w = x[:, None].copy(), np.full((1, 1), float(count))
    status, theta, _ = solve(links.LOGISTIC, A, w, reward * w, reg)
    # θ = ±t x with reg t = n μ(-t): taken in logarithms.
    t = brentq(lambda t: math.log(reg * t) + math.log1p(math.exp(t)) - math.log(count), 1e-6, 100.0, xtol=1e-14)
    assert status == newton.CONVERGED
    assert theta == pytest.approx((1 if reward else -1) * t * x, rel=1e-8)


@pytest.mark.parametrize("link", [links.LOGISTIC, links.PROBIT])
@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("reg", [TINY, 1e-10, 1e-4])
def test_separable_data_that_grow_round_by_round_are_solved_warm(link, dim, reg):
    rng = np.random.default_rng(dim)
    A = rng.normal(size=(dim, 30))
    A /= np.linalg.norm(A, axis=0)
    up = (A[0] > 0).astype(float)
    w, s = np.zeros((1, 30)), np.zeros((1, 30))
    theta, H = np.zeros((1, dim)), np.zeros((dim, dim))
    atoms, work = atoms_of(link, A, w, s, reg), newton.newton_scratch(dim, 30)
    for t in range(300):
        a = rng.integers(30)
        w *= 0.98
        s *= 0.98
        w[0, a] += 1.0
        s[0, a] += up[a] if t < 200 else 1.0 - up[a]  # and then all rewards are reversed
        assert newton.solve_(atoms, theta, work, H) == newton.CONVERGED
        assert np.isfinite(theta).all()
    cold = solve(link, A, w, s, reg)[1]
    assert (theta[0] @ A) == pytest.approx(cold @ A, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-5])
def test_nearly_parallel_arms_with_hardly_a_ridge_end_in_a_solution(gap):
    A = np.array([[0.6, 1.2, 0.3], [0.8, 1.6 + gap, 0.4]])
    w, s = np.array([[500.0, 300.0, 200.0]]), np.array([[400.0, 120.0, 90.0]])
    status, theta, _ = solve(links.LOGISTIC, A, w, s, TINY)
    assert status == newton.CONVERGED
    along = np.array([1.0, 2.0, 0.5])
    flat = minimize(lambda z: float(w[0] @ np.logaddexp(0, z * along) - s[0] @ (z * along)), 0.0).x[0]
    if gap == 0.0:
        assert theta @ A[:, 0] == pytest.approx(flat, abs=1e-6)
    best = loss(links.LOGISTIC, A, w, s, TINY, flat * A[:, 0])
    assert loss(links.LOGISTIC, A, w, s, TINY, theta) <= best + 1e-9


@pytest.mark.parametrize("counts", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("start", [-30.0, 0.0, 25.0])
def test_large_counts_are_solved_from_far_away(counts, start):
    A, w, _ = made(4, links.POISSON, 2, 10)
    rng = np.random.default_rng(4)
    s = w * rng.poisson(counts, 10)
    status, theta, _ = solve(links.POISSON, A, w, s, 1e-3, [start, start])
    assert status == newton.CONVERGED
    scale = np.abs(A) @ (s[0] + w[0] * np.exp(A.T @ theta))
    assert (np.abs(gradient(links.POISSON, A, w, s, 1e-3, theta)) <= 1e-10 * scale).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_reported_and_leaves_a_finite_estimate(bad):
    A, w, s = made(0, links.LOGISTIC, 2, 5)
    s[0, 2] = bad
    assert solve(links.LOGISTIC, A, w, s, 0.1)[0] == newton.BROKEN


def test_a_start_beyond_all_exponents_is_followed_by_one_at_zero():
    A, w, s = made(0, links.POISSON, 2, 5)
    status, theta, _ = solve(links.POISSON, A, 1e6 * w, s, 0.1, [1e5, 1e5])
    assert status == newton.CONVERGED
    assert theta == pytest.approx(solve(links.POISSON, A, 1e6 * w, s, 0.1)[1], rel=1e-8)


@pytest.mark.parametrize("link", LINKS)
def test_atoms_without_weight_and_other_lanes_are_left_alone(link):
    A, w, s = made(3, link, 3, 9)
    wide, lanes_w, lanes_s = np.full((3, 14), 7.0), np.zeros((3, 14)), np.zeros((3, 14))
    wide[:, :9], lanes_w[1, :9], lanes_s[1, :9] = A, w[0], s[0]
    lanes_w[0], lanes_w[2] = 5.0, 6.0
    theta, H = np.full((3, 3), 0.25), np.zeros((3, 3))
    atoms = Atoms(link, wide, lanes_w, lanes_s, 1, 12, 0.2, math.inf)
    assert newton.solve_(atoms, theta, newton.newton_scratch(3, 14), H) == 0
    assert theta[1] == pytest.approx(solve(link, A, w, s, 0.2)[1], abs=1e-9)
    assert (theta[[0, 2]] == 0.25).all()


@pytest.mark.parametrize("link", LINKS[1:])
def test_a_link_evaluated_in_python_leads_to_the_same_estimate(link):
    A, w, s = made(6, link, 3, 25)
    theta, atoms = np.full((1, 3), 3.0), atoms_of(links.CUSTOM, A, w, s, 0.1)
    status = newton.solve_with(
        lambda z: (MEANS[link](z), SLOPES[link](z)), atoms, theta, newton.newton_scratch(3, 25), np.zeros((3, 3))
    )
    assert status == newton.CONVERGED
    assert theta[0] == pytest.approx(solve(link, A, w, s, 0.1)[1], abs=1e-9)


def test_a_link_of_ones_own_is_solved_where_bare_newton_diverges():
    A, w, s = np.ones((1, 1)), np.ones((1, 1)), np.full((1, 1), 0.2)
    theta, atoms = np.full((1, 1), 40.0), atoms_of(links.CUSTOM, A, w, s, 1e-6)
    status = newton.solve_with(
        lambda z: (np.arctan(z), 1 / (1 + z * z)), atoms, theta, newton.newton_scratch(1, 1), np.zeros((1, 1))
    )
    assert status == newton.CONVERGED
    assert math.atan(theta[0, 0]) + 1e-6 * theta[0, 0] == pytest.approx(0.2, abs=1e-12)


def test_links_evaluated_elsewhere_and_weighed_are_the_residuals():
    A, w, s = made(8, links.LOGISTIC, 2, 11)
    z, c, h, c2, h2, e = (np.zeros(11) for _ in range(6))
    linear_predictor_(atoms_of(links.CUSTOM, A, w, s, 0.0), np.array([[0.0, 0.0], [2.0, -1.0]]), 1, z)
    assert z == pytest.approx(A.T @ [2.0, -1.0])
    for link in LINKS:
        mu, dmu = (np.array([order(link, v) for v in z]) for order in (links.mean, links.slope))
        atoms = atoms_of(link, A, w, s, 0.0)
        newton.weigh_(atoms, mu, dmu, c, h)
        newton.residuals_(atoms, z, c2, h2, e)
        assert mu == pytest.approx(MEANS[link](z), rel=1e-14)
        assert c == pytest.approx(c2, abs=1e-13)
        assert h == pytest.approx(h2, rel=1e-13)
        assert e == pytest.approx([w[0, a] * links.curve(link, z[a]) for a in range(11)], rel=1e-12)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(LINKS), st.floats(-50, 50), st.floats(-12, 12), st.floats(0, 1))
def test_the_root_solves_the_scalar_equation(link, z0, log_q, r):
    q = 10.0**log_q
    z = one_pass.root(link, z0, q, r)
    push = q * (r - links.mean(link, z))
    size = abs(z0) + abs(z) + q * (abs(r) + abs(links.mean(link, z)))
    assert abs(z - z0 - push) <= 1e-12 * size + 1e-300  # below that, rounding leaves no digits
    error = (z - z0 - push) / (1.0 + q * links.slope(link, z))
    assert abs(error) <= 1e-11 * (1 + abs(z) + abs(z0))


@pytest.mark.parametrize(
    ("link", "z0", "q", "r"),
    [
        (links.LOGISTIC, 5.0, 75.0, 0.0),
        (links.LOGISTIC, -5.0, 75.0, 1.0),
        (links.LOGISTIC, 40.0, 1e17, 0.0),
        (links.PROBIT, 8.0, 1e3, 0.0),
        (links.POISSON, 700.0, 1e3, 0.0),
        (links.POISSON, 5.0, 1e8, 1e6),
        (links.POISSON, -700.0, 1e12, 3.0),
    ],
)
def test_the_root_is_found_where_bare_newton_cycles_or_crawls(link, z0, q, r):
    z = one_pass.root(link, z0, q, r)
    below, above = z - 1e-9 * (1 + abs(z)), z + 1e-9 * (1 + abs(z))
    assert below - z0 < q * (r - links.mean(link, below))
    assert above - z0 > q * (r - links.mean(link, above))


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(1, 5), st.floats(0.5, 1.0))
def test_the_one_pass_estimate_with_the_identity_is_the_linear_recursion(seed, dim, gamma):
    rng = np.random.default_rng(seed)
    reg = 0.7
    H, theta = reg * np.eye(dim)[None].repeat(2, 0), np.zeros((2, dim))
    work = newton.newton_scratch(dim, 1)
    G, b = np.zeros((dim, dim)), np.zeros(dim)
    for t in range(40):
        x, r, weight = rng.normal(size=dim), rng.normal(), rng.random()
        if t % 5 == 4:  # time passes alone
            assert one_pass.one_pass_fade_(H, theta, 1, gamma, reg, work.M) == newton.CONVERGED
            G, b = gamma * G, gamma * b
        fade = gamma ** float(rng.integers(0, 3))
        assert one_pass.one_pass_(links.IDENTITY, H, theta, 1, x, r, fade, weight, reg, work) == newton.CONVERGED
        G, b = fade * G + weight * np.outer(x, x), fade * b + weight * r * x
        V = G + reg * np.eye(dim)
        assert np.tril(H[1]) == pytest.approx(np.tril(V), rel=1e-10, abs=1e-10)
        assert theta[1] == pytest.approx(np.linalg.solve(V, b), rel=1e-8, abs=1e-9)
    assert (theta[0] == 0).all() and (H[0] == reg * np.eye(dim)).all()


def one_pass_distances(seed, gamma, reg, radius, rounds=1500):
    """‖one pass - exact‖ after each round of a still logistic world."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2))
    X /= np.linalg.norm(X, axis=1)[:, None]
    A, w, s = np.ascontiguousarray(X.T), np.zeros((1, 50)), np.zeros((1, 50))
    atoms, work = atoms_of(links.LOGISTIC, A, w, s, reg), newton.newton_scratch(2, 50)
    H, fast, exact, out = reg * np.eye(2)[None], np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((2, 2))
    distances = []
    for _ in range(rounds):
        a = rng.integers(50)
        r = float(rng.random() < expit(radius * X[a, 0]))
        w *= gamma
        s *= gamma
        w[0, a] += 1.0
        s[0, a] += r
        assert one_pass.one_pass_(links.LOGISTIC, H, fast, 0, X[a].copy(), r, gamma, 1.0, reg, work) == 0
        assert newton.solve_(atoms, exact, work, out) == 0
        distances.append(float(np.linalg.norm(fast - exact)))
    return distances


def test_one_pass_is_close_to_exact_in_a_still_world_of_radius_one():
    reg = 2 * math.log(1500)  # λc of SCB
    static = [one_pass_distances(seed, 1.0, reg, 1.0) for seed in range(4)]
    assert np.mean([run[-1] for run in static]) <= 0.007
    assert max(max(run) for run in static) <= 0.0125
    assert max(one_pass_distances(0, 0.99, reg, 1.0)) <= 0.007
    assert max(one_pass_distances(0, 0.99, reg, 5.0)) <= 0.01
    assert one_pass_distances(0, 1.0, reg, 5.0)[-1] >= 0.1  # a case in which it is far from exact


def test_a_one_pass_observation_without_weight_only_lets_time_pass():
    work = newton.newton_scratch(2, 1)
    x = np.array([0.3, 0.4])
    states = []
    for observed in (True, False):
        H, theta = np.array([[[2.0, 0.0], [0.5, 3.0]]]), np.array([[0.4, -1.0]])
        if observed:
            assert one_pass.one_pass_(links.LOGISTIC, H, theta, 0, x, 1.0, 0.9, 0.0, 0.2, work) == 0
        else:
            assert one_pass.one_pass_fade_(H, theta, 0, 0.9, 0.2, work.M) == 0
        states.append((H.tobytes(), theta.tobytes()))
    assert states[0] == states[1]


def test_one_pass_reports_what_is_not_finite_and_stays_finite():
    H, theta, work = np.ones((1, 1, 1)), np.zeros((1, 1)), newton.newton_scratch(1, 1)
    assert one_pass.one_pass_(links.LOGISTIC, H, theta, 0, np.ones(1), math.nan, 1.0, 1.0, 1.0, work) == newton.BROKEN
    assert np.isfinite(theta).all() and np.isfinite(H).all()


SCRIPT = """
import numpy as np
from driftwise.kernels.solvers import newton, one_pass
from driftwise.kernels.solvers.atoms import Atoms
rng = np.random.default_rng(3)
for link in range(4):
    for dim, count in ((1, 3), (2, 7), (3, 5)):
        A = rng.normal(size=(dim, count))
        w = rng.exponential(size=(1, count))
        w[0, 1] = 0.0
        s = w * rng.integers(0, 2, (1, count))
        theta, H = rng.normal(size=(1, dim)) * 3, np.zeros((dim, dim))
        work = newton.newton_scratch(dim, count)
        for reg in (1.0, 1e-12):
            status = newton.solve_(Atoms(link, A, w, s, 0, count, reg, np.inf), theta, work, H)
            print(status, theta.tobytes().hex(), H.tobytes().hex())
        x, H1 = A[:, 0].copy(), np.eye(dim)[None].copy()
        for r in (0.0, 1.0, 1.0):
            print(one_pass.one_pass_(link, H1, theta, 0, x, r, 0.9, 0.8, 0.5, work), theta.tobytes().hex())
"""


def test_compiled_and_interpreted_estimates_agree_to_the_bit():
    compiled, interpreted = both_ways(SCRIPT)
    assert compiled == interpreted and len(compiled) > 1000
