"""Laws of optimism over parameter sets: the exact set, the convex set around it, bounds, pruning, the shrinking set."""

import math

import numpy as np
import pytest
from scipy import optimize

import naive
from driftwise.kernels.links import IDENTITY, LINKS, LOGISTIC, PROBIT
from driftwise.kernels.solvers import secular, sets, slabs
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.sets import CONVEX, EXACT

MU = {row.code: naive.LINKS[name] for name, row in LINKS.items()}


class Made:
    """A made state: atoms, their weights and reward sums, a ridge; everything else again in NumPy."""

    def __init__(self, X, w, s, reg, link=LOGISTIC):
        self.X, self.w, self.s, self.reg, self.link = X, w, s, reg, link
        self.dim = X.shape[1]
        self.mu, self.slope, _, self.area = MU[link]
        self.hat = self.estimate()

    def N(self, theta):
        return self.reg * theta + self.X.T @ (self.w * self.mu(self.X @ theta) - self.s)

    def H(self, theta):
        return self.reg * np.eye(self.dim) + (self.X.T * (self.w * self.slope(self.X @ theta))) @ self.X

    def loss(self, theta):
        z = self.X @ theta
        return self.reg / 2 * theta @ theta + self.w @ self.area(z) - self.s @ z

    def gap(self, theta):
        return self.loss(theta) - self.loss(self.hat)

    def F(self, theta):
        return math.sqrt(self.N(theta) @ np.linalg.solve(self.H(theta), self.N(theta)))

    def Fs(self, points):
        """F at every row of points."""
        z = points @ self.X.T
        N = self.reg * points + (self.w * self.mu(z) - self.s) @ self.X
        H = np.einsum("pa,ai,aj->pij", self.w * self.slope(z), self.X, self.X) + self.reg * np.eye(self.dim)
        return np.sqrt(np.einsum("pi,pi->p", N, np.linalg.solve(H, N[..., None])[..., 0]))

    def estimate(self):
        theta = np.zeros(self.dim)
        for _ in range(300):
            step = -np.linalg.solve(self.H(theta), self.N(theta))
            while self.loss(theta + step) > self.loss(theta) + 1e-12 and np.linalg.norm(step) > 1e-12:
                step = step / 2
            theta = theta + step
            if np.linalg.norm(step) < 1e-13 * (1 + np.linalg.norm(theta)):
                break
        return theta

    def atoms(self, S, lane=1, lanes=3):
        """The arguments of a solver, and θ̂: the state in one of several lanes, with unused columns."""
        n = self.w.size
        A = np.full((self.dim, n + 2), np.nan)
        w, s = np.full((lanes, n + 2), np.nan), np.full((lanes, n + 2), np.nan)
        theta = np.full((lanes, self.dim), np.nan)
        A[:, :n], w[lane, :n], s[lane, :n], theta[lane] = self.X.T, self.w, self.s, self.hat
        return Atoms(self.link, A, w, s, lane, n, self.reg, S), theta


def length(X):
    return float(np.linalg.norm(X, axis=1).max(initial=1e-3))


def played(rng, n, dim, shortest=0.3):
    """Arms of many lengths, one a row."""
    X = rng.normal(size=(n, dim))
    return X * (rng.uniform(shortest, 1, n) / np.linalg.norm(X, axis=1))[:, None]


def made(rng, dim, link=LOGISTIC, heavy=3.0):
    n = int(rng.integers(1, 12))
    X = played(rng, n, dim)
    w = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0]))) * 10 ** rng.uniform(0, heavy)
    s = w * np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), rng.random(n))
    return Made(X, w, s, 10 ** rng.uniform(-1, 1.3), link)


def ball(rng, m, inside):
    """A radius with θ̂ inside or outside; and a ρ from small to the whole ball."""
    size = float(np.linalg.norm(m.hat))
    S = size * rng.uniform(1.02, 3) + 0.01 if inside else max(size * rng.uniform(0.3, 0.98), 1e-3)
    return S, math.sqrt(m.reg) * (S + 0.5) * 10 ** rng.uniform(-1.5, 0.3)


def states(rng, count, dims, inside=(False, True, True), **how):
    """Made states of these dimensions in turn, each with its ball, which has θ̂ inside or not in turn."""
    for k in range(count):
        m = made(rng, dims[k % len(dims)], **how)
        yield m, *ball(rng, m, inside[k % len(inside)])


def unit(rng, dim, n):
    X = rng.normal(size=(dim, n))
    return X / np.maximum(1, np.linalg.norm(X, axis=0))


def run(m, kind, S, rho, X, prune=False, L=None):
    """What optimist_ says, by name."""
    dim, n = X.shape
    table, centre, best = np.zeros((sets.COLUMNS, n)), np.zeros(dim), np.zeros(dim)
    X = np.ascontiguousarray(X)
    out = sets.optimist_(kind, *m.atoms(S), L or length(m.X), rho, X, prune, table, centre, best)
    names = ("arm", "value", "looked", "solved", "residual", "failures", "missed")
    return dict(zip(names, out, strict=True)) | {
        "values": table[sets.VALUE],
        "bounds": table[sets.BOUND],
        "centre": centre,
        "best": best,
    }


def level(m, rho):
    """B."""
    return (rho + length(m.X) * rho**2 / math.sqrt(m.reg)) ** 2


def written_bounds(m, S, rho, X):
    """(a) and (a') of docs/math.md#self-concordant."""
    B = level(m, rho)
    Q = 1 + length(m.X) * (S + np.linalg.norm(m.hat))
    width = np.sqrt(np.sum(X * np.linalg.solve(m.H(m.hat), X), axis=0))
    a = X.T @ m.hat + width * math.sqrt(Q) * min(math.sqrt(Q) * rho, math.sqrt(B))
    return a, X.T @ m.hat + width * math.sqrt((1 + Q) * B)


def check_order(rng, states, links):
    empty = 0
    for k in range(states):
        dim, link = (1, 2, 3, 5)[k % 4], links[k // 8 % len(links)]
        m = made(rng, dim, link)
        S, rho = ball(rng, m, inside=k // 4 % 2 == 0)
        if link == PROBIT:  # its law |μ''| ≤ μ' asks for SL ≤ 1
            m.X /= max(1, 1.0001 * S * length(m.X))
            m.hat = m.estimate()
            S = min(S, 1 / length(m.X))
        X = unit(rng, dim, 6)
        a, a_ = written_bounds(m, S, rho, X)
        exact, convex = run(m, EXACT, S, rho, X), run(m, CONVEX, S, rho, X)
        slack = 1e-7 * (1 + S)
        for out in (exact, convex):
            assert out["failures"] == 0 and out["residual"] <= 1e-6
            assert np.linalg.norm(out["best"]) <= S * (1 + 1e-9)
            assert out["value"] == out["values"].max() == out["values"][out["arm"]]
            assert X[:, out["arm"]] @ out["best"] == pytest.approx(out["value"], abs=slack)
        if not exact["missed"]:
            assert not convex["missed"]
            assert m.F(exact["best"]) <= rho * (1 + 1e-7)
            assert np.all(exact["values"] <= np.minimum(convex["values"], a) + slack)
            assert np.all(exact["values"] <= exact["bounds"] + slack)
            assert np.all(exact["bounds"] <= a + slack)
        else:
            empty += 1
            assert m.F(exact["centre"]) > rho
        if not convex["missed"]:
            assert m.gap(convex["best"]) <= level(m, rho) * (1 + 1e-7)
            assert np.all(convex["values"] <= np.minimum(convex["bounds"], a_) + slack)
    return empty


def test_exact_is_within_convex_and_each_within_its_bound():
    assert check_order(np.random.default_rng(1), 4000, [LOGISTIC]) > 30


@pytest.mark.slow
def test_exact_is_within_convex_and_each_within_its_bound_in_thousands_of_states():
    assert check_order(np.random.default_rng(2), 40_000, [LOGISTIC]) > 300


def test_the_order_holds_for_the_other_self_concordant_links():
    check_order(np.random.default_rng(3), 400, [PROBIT, IDENTITY])


def on_a_grid(m, S, rho, e):
    """Most e'θ over the exact set, d = 2: a grid of the disk and its circle, then ever finer ones on lines.

    A line {e'θ = v} meets the set where the least F on it is at most ρ; between two grid lines, v is halved.
    """
    t = np.linspace(-S, S, 301)
    grid = np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
    turn = np.linspace(0, 2 * np.pi, 4001)
    circle = S * np.stack([np.cos(turn), np.sin(turn)], 1)
    points = np.vstack([grid[np.linalg.norm(grid, axis=1) <= S], circle])
    points = points[m.Fs(points) <= rho]
    if len(points) == 0:
        return None
    across = np.array([-e[1], e[0]])

    def meets(v):
        half = math.sqrt(max(0.0, S * S - v * v))
        low, high = -half, half
        for count in (801, 101, 101, 101):
            t = np.linspace(low, high, count)
            F = m.Fs(v * e + t[:, None] * across)
            i = int(np.argmin(F))
            low, high = t[max(i - 2, 0)], t[min(i + 2, count - 1)]
        return F.min() <= rho

    low = float((points @ e).max())
    high = min(S, low + 4 * S / 300)
    while high - low > 1e-9 * S:
        v = (low + high) / 2
        low, high = (v, high) if meets(v) else (low, v)
    return low


def test_in_the_plane_exact_is_what_a_fine_grid_says():
    rng = np.random.default_rng(4)
    cases = 0
    for m, S, rho in states(rng, 36, [2]):
        X = unit(rng, 2, 2)
        X /= np.linalg.norm(X, axis=0)
        out = run(m, EXACT, S, rho, X)
        for e, value in zip(X.T, out["values"], strict=True):
            if value >= S * (1 - 1e-12) or out["missed"]:
                continue
            wanted = on_a_grid(m, S, rho, e)
            assert wanted is not None and value == pytest.approx(wanted, abs=1e-6 * max(1, S))
            cases += 1
    assert cases > 20


def test_two_hills_are_both_climbed():
    """A notch in the set makes two local maxima of nearly the same value, one inside and one on the circle."""
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(400):
        n = int(rng.integers(2, 8))
        X = played(rng, n, 2, 0.5)
        w = 10 ** rng.uniform(-1, 4, n)
        m = Made(X, w, w * rng.integers(0, 2, n), 10 ** rng.uniform(-2, 1))
        rho = math.sqrt(m.reg) * 10 ** rng.uniform(0.7, 2)
        e = unit(rng, 2, 1)
        e /= np.linalg.norm(e)
        out = run(m, EXACT, 10.0, rho, e)
        if out["missed"] or out["value"] >= 10 * (1 - 1e-12):
            continue
        turn = np.linspace(0, 2 * np.pi, 1001)
        shells = np.concatenate([r * np.stack([np.cos(turn), np.sin(turn)], 1) for r in np.linspace(0.5, 10, 20)])
        shells = shells[m.Fs(shells) <= rho]
        assert out["value"] >= (shells @ e).max(initial=-math.inf) - 1e-6
        seen += 1
    assert seen > 50


def test_on_the_line_exact_is_the_outermost_root():
    rng = np.random.default_rng(5)
    roots = 0
    for m, S, rho in states(rng, 200, [1], inside=(True, False), heavy=4.0):
        line = np.linspace(-S, S, 4001)
        good = m.Fs(line[:, None]) <= rho
        out = run(m, EXACT, S, rho, np.array([[1.0, -1.0]]))
        assert not (out["missed"] and good.any())
        if out["missed"] or not good.any():
            continue
        for sign, value in ((1, out["values"][0]), (-1, out["values"][1])):
            edge = sign * line[good].max() if sign > 0 else sign * line[good].min()
            assert edge - 1e-9 <= value <= edge + 2 * S / 4000 + 1e-9
            if value < S * (1 - 1e-9):
                assert m.F(np.array([sign * value])) == pytest.approx(rho, rel=1e-9)
                roots += 1
    assert roots > 100


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_convex_is_what_a_general_solver_says(dim):
    rng = np.random.default_rng(10 + dim)
    cases = 0
    for m, S, wide in states(rng, 24, [dim], inside=(True, False)):
        rho = 0.1 * wide
        X = unit(rng, dim, 2)
        out = run(m, CONVEX, S, rho, X)
        if out["missed"]:
            continue
        B = level(m, rho)
        rows = [
            {"type": "ineq", "fun": lambda t, m=m, B=B: 1 - m.gap(t) / B, "jac": lambda t, m=m, B=B: -m.N(t) / B},
            {"type": "ineq", "fun": lambda t, S=S: 1 - t @ t / S**2, "jac": lambda t, S=S: -2 * t / S**2},
        ]
        for x, value in zip(X.T, out["values"], strict=True):
            start = out["centre"] * 0.999
            found = optimize.minimize(
                lambda t, x=x: -x @ t, start, jac=lambda t, x=x: -x, constraints=rows, method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 500},
            )  # fmt: skip
            if found.success and min(row["fun"](found.x) for row in rows) > -1e-9:
                assert value == pytest.approx(-found.fun, abs=2e-6 * (1 + S))
                cases += 1
    assert cases >= 10


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_for_the_identity_both_sets_are_ellipsoids(dim):
    rng = np.random.default_rng(20 + dim)
    m = made(rng, dim, IDENTITY)
    X = unit(rng, dim, 5)
    width = np.sqrt(np.sum(X * np.linalg.solve(m.H(m.hat), X), axis=0))
    for rho in (0.01, 0.3, 2.0):
        exact, convex = run(m, EXACT, 1e3, rho, X), run(m, CONVEX, 1e3, rho, X)
        np.testing.assert_allclose(exact["values"], X.T @ m.hat + rho * width, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            convex["values"], X.T @ m.hat + math.sqrt(2 * level(m, rho)) * width, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("kind", [EXACT, CONVEX])
def test_without_data_the_set_is_a_ball(kind):
    m = Made(np.zeros((0, 3)), np.zeros(0), np.zeros(0), 4.0)
    X = np.array([[0.5, 0.3, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 0.0]])
    size = np.array([0.5, 0.5, 0.0])
    small = 0.2 if kind == EXACT else math.sqrt(2 / 4) * (0.4 + 0.4**2 / 2)
    np.testing.assert_allclose(run(m, kind, 1.0, 0.4, X, L=1.0)["values"], small * size, atol=1e-10)
    assert np.array_equal(run(m, kind, 1.0, 9.0, X, L=1.0)["values"], 1.0 * size)


@pytest.mark.parametrize("kind", [EXACT, CONVEX])
def test_pruning_changes_neither_arm_nor_value(kind):
    rng = np.random.default_rng(30 + kind)
    looked = arms = 0
    for m, S, rho in states(rng, 300, (1, 2, 3, 5)):
        X = unit(rng, m.dim, 20)
        full, short = run(m, kind, S, rho, X), run(m, kind, S, rho, X, prune=True)
        assert full["missed"] == short["missed"]
        assert short["arm"] == full["arm"] and short["value"] == full["value"]
        assert np.array_equal(short["best"], full["best"])
        assert np.all(short["values"] >= full["values"] - 1e-8 * (1 + S))  # if it was pruned, a bound
        if not full["missed"]:
            looked, arms = looked + short["looked"], arms + 20
    assert looked < 0.5 * arms


@pytest.mark.parametrize("kind", [EXACT, CONVEX])
def test_ties_go_to_the_first_arm_and_order_is_nothing_else(kind):
    rng = np.random.default_rng(40 + kind)
    for m, S, rho in states(rng, 100, (1, 2, 3)):
        X = unit(rng, m.dim, 8)
        twice = run(m, kind, S, rho, np.hstack([X, X]), prune=True)
        once = run(m, kind, S, rho, X, prune=True)
        assert twice["arm"] == once["arm"] and twice["value"] == once["value"]
        order = rng.permutation(8)
        mixed = run(m, kind, S, rho, X[:, order], prune=True)
        values = np.sort(run(m, kind, S, rho, X)["values"])
        if values[-1] - values[-2] > 1e-7 * (1 + S):
            assert order[mixed["arm"]] == once["arm"] and mixed["value"] == once["value"]


def test_a_set_that_misses_the_ball_is_replaced_by_its_nearest_point():
    rng = np.random.default_rng(50)
    missed = [0, 0]
    for k in range(40):
        dim = (2, 3)[k % 2]
        m = made(rng, dim)
        S = 0.4 * float(np.linalg.norm(m.hat)) + 1e-3
        edge = [{"type": "ineq", "fun": lambda t, S=S: 1 - t @ t / S**2, "jac": lambda t, S=S: -2 * t / S**2}]
        for kind, value in ((EXACT, m.F), (CONVEX, m.loss)):
            out = run(m, kind, S, 1e-4, unit(rng, dim, 4))
            if not out["missed"]:
                continue
            missed[kind] += 1
            assert np.linalg.norm(out["centre"]) <= S * (1 + 1e-12)
            assert out["solved"] == 0 and np.array_equal(out["best"], out["centre"])
            start = S * m.hat / np.linalg.norm(m.hat)
            found = optimize.minimize(value, 0.99 * start, constraints=edge, method="SLSQP", options={"ftol": 1e-13})
            assert value(out["centre"]) <= value(found.x) + 1e-6 * abs(value(found.x)) + 1e-9
    assert min(missed) > 20


def test_a_set_said_to_be_convex_is_convex():
    """If one climb is considered enough, midpoints of points of the exact set in the disk are in the set."""
    rng = np.random.default_rng(60)
    lone = 0
    for _ in range(600):
        m = made(rng, 2)
        S = float(np.linalg.norm(m.hat)) * rng.uniform(1.0, 2) + 0.05
        rho = math.sqrt(m.reg) * 10 ** rng.uniform(-1.5, 0.5)
        p, theta = m.atoms(S)
        z = secular.set_scratch(2, p.used)
        z.vec[secular.HAT] = theta[p.lane]
        if not sets.region_(p, z, EXACT, length(m.X), rho).lone:
            continue
        lone += 1
        t = np.linspace(-S, S, 61)
        grid = np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
        grid = grid[np.linalg.norm(grid, axis=1) <= S]
        grid = grid[m.Fs(grid) <= rho]
        if len(grid) > 1:
            i, j = rng.integers(0, len(grid), (2, 500))
            assert np.all(m.Fs((grid[i] + grid[j]) / 2) <= rho * (1 + 1e-12))
    assert lone > 40


def test_the_reach_of_an_arm_both_ways_bounds_it_on_the_set():
    """What Logistic-UCB-2 calls l_s: the larger of the values of x and -x."""
    rng = np.random.default_rng(70)
    for m, S, rho in states(rng, 30, [2], inside=[True]):
        x = unit(rng, 2, 1)
        out = run(m, EXACT, S, rho, np.hstack([x, -x]))
        points = rng.normal(size=(4000, 2))
        points *= (S * np.sqrt(rng.random(4000)) / np.linalg.norm(points, axis=1))[:, None]
        points = points[m.Fs(points) <= rho]
        assert np.all(np.abs(points @ x) <= out["values"].max() + 1e-9)


def narrow(m, S, limit):
    out = np.zeros(m.dim)
    p, theta = m.atoms(S)
    limit = np.concatenate([limit, [np.nan, np.nan]])
    return out, *slabs.narrow_(p, theta, p.A, limit, p.used, out)


def test_the_shrunken_estimate_is_what_a_general_solver_says():
    rng = np.random.default_rng(80)
    tight = 0
    for m, S, _ in states(rng, 60, (1, 2, 3, 5)):
        limit = S * np.linalg.norm(m.X, axis=1) * rng.uniform(0.1, 1, m.w.size)
        theta, F, slack, good = narrow(m, S, limit)
        assert good
        if F == 0.0:
            assert np.array_equal(theta, m.hat)
            continue
        assert np.linalg.norm(theta) <= S and np.all(np.abs(m.X @ theta) <= limit)
        assert pytest.approx(m.F(theta), rel=1e-9) == F and slack <= 1e-7 * F**2
        rows = [
            {"type": "ineq", "fun": lambda t, S=S: 1 - t @ t / S**2},
            {"type": "ineq", "fun": lambda t, m=m, limit=limit: 1 - (m.X @ t / limit) ** 2},
        ]
        for start in (0.9 * theta, 0.5 * theta, 0 * theta):
            found = optimize.minimize(
                lambda t, m=m, F=F: m.F(t) / F, start, constraints=rows, method="SLSQP", options={"ftol": 1e-13}
            )
            if min(np.min(row["fun"](found.x)) for row in rows) > -1e-10:
                assert F <= m.F(found.x) * (1 + 1e-6)
        tight += 1
    assert tight > 20


def test_an_arm_of_length_zero_bounds_nothing():
    m = Made(np.array([[0.0, 0.0], [0.6, 0.8]]), np.array([3.0, 5.0]), np.array([1.0, 4.0]), 1.0)
    theta, F, _, good = narrow(m, 0.2, np.array([0.0, 0.1]))
    assert good and F > 0 and abs(m.X[1] @ theta) <= 0.1
