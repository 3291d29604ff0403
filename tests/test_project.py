"""Projections onto the ball: never worse than scipy from thirteen starts, exact at d = 1."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import naive
from driftwise.kernels import links
from driftwise.kernels.solvers import newton, project, secular
from driftwise.kernels.solvers.atoms import Atoms
from interpreting import both_ways

MEANS = {row.code: naive.LINKS[name][0] for name, row in links.LINKS.items()}
NORMS = ["V", "H"]
seeds = st.integers(0, 2**32 - 1)


class Outside:
    """Data whose estimate has left the ball, and slow code for the two norms."""

    def __init__(self, seed, link, dim, count=20, S=1.0, reg=0.2, lam=1.0, pulls=50.0, A=None, w=None, s=None):
        rng = np.random.default_rng(seed)
        self.link, self.S, self.reg, self.dim = link, S, reg, dim
        while True:
            self.A = rng.normal(size=(dim, count)) if A is None else A
            if A is None:
                self.A /= np.maximum(1.0, np.linalg.norm(self.A, axis=0))
            theta = rng.normal(size=dim)
            means = MEANS[link](self.A.T @ theta * rng.uniform(1.0, 3.0) * S / np.linalg.norm(theta))
            self.w = rng.exponential(size=(1, self.A.shape[1])) * pulls / self.A.shape[1] if w is None else w
            if link == links.POISSON:
                rewards = rng.poisson(means)
            elif link == links.IDENTITY:
                rewards = means + rng.normal(size=means.size)
            else:
                rewards = rng.random(means.size) < means
            self.s = self.w * rewards if s is None else s
            self.count = self.w.shape[1]
            self.V = lam * np.eye(dim) + (self.A * self.w) @ self.A.T
            self.work = newton.newton_scratch(dim, self.count)
            self.estimate = np.zeros((1, dim))
            status = newton.solve_(self.atoms(), self.estimate, self.work, np.zeros((dim, dim)))
            assert status == newton.CONVERGED
            if np.linalg.norm(self.estimate) > S * 1.001:
                return

    def atoms(self):
        return Atoms(self.link, self.A, self.w, self.s, 0, self.count, self.reg, self.S)

    def low(self, norm):
        """The factor of V; a placeholder if it is not read."""
        return np.linalg.cholesky(self.V) if norm == "V" else np.full_like(self.V, np.nan)

    def project(self, norm):
        """Status, norm, point."""
        theta = self.estimate.copy()
        status, residual = project.project_(norm == "V", self.atoms(), self.low(norm), theta, self.work)
        return status, residual, theta[0]

    def value(self, norm, theta):
        """‖g(θ) - b‖."""
        z = self.A.T @ theta
        r = self.reg * theta + self.A @ (self.w[0] * MEANS[self.link](z) - self.s[0])
        slopes = np.array([links.slope(self.link, v) for v in z])
        H = self.reg * np.eye(self.dim) + (self.A * (self.w[0] * slopes)) @ self.A.T
        return math.sqrt(r @ np.linalg.solve(self.V if norm == "V" else H, r))

    def half_square(self, norm, theta):
        """Half its square with the gradient, by the compiled pieces."""
        self.work.P[project.TRIAL] = theta
        data = norm == "V", self.atoms(), self.low(norm), self.work
        value = project.value_(*data)
        project.curvature_(*data)
        B = self.work.M[project.CURVE]
        return value, self.work.P[project.DOWN].copy(), np.tril(B) + np.tril(B, -1).T

    def scipy(self, norm, starts=13):
        """The least norm scipy finds in the ball."""
        rng = np.random.default_rng(0)
        ray = self.S * self.estimate[0] / np.linalg.norm(self.estimate)
        found = []
        ball = {"type": "ineq", "fun": lambda x: 1 - x @ x / self.S**2, "jac": lambda x: -2 * x / self.S**2}
        for n in range(starts):
            start = rng.normal(size=self.dim)
            start *= self.S / np.linalg.norm(start) * (1.0 if n % 2 else rng.random())
            start = ray if n == 0 else start
            scale = 1.0 / self.half_square(norm, start)[0]
            end = minimize(
                lambda x, scale=scale: tuple(scale * part for part in self.half_square(norm, x)[:2]),
                start,
                jac=True,
                method="SLSQP",
                constraints=ball,
                options={"ftol": 1e-15, "maxiter": 300},
            ).x
            found.append(self.value(norm, end * min(1.0, self.S / np.linalg.norm(end))))
        return min(found)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [2, 5, 10])
@pytest.mark.parametrize(
    ("link", "S", "reg"),
    [
        (links.LOGISTIC, 1.0, 0.2),
        (links.LOGISTIC, 1.0, 1e-3),
        (links.LOGISTIC, 5.0, 0.01),
        (links.PROBIT, 1.0, 0.1),
        (links.POISSON, 1.0, 0.1),
        (links.IDENTITY, 1.0, 1.0),
    ],
)
def test_the_projection_is_as_good_as_scipys_best_of_thirteen_starts(norm, dim, link, S, reg):
    data = Outside(dim, link, dim, S=S, reg=reg)
    status, residual, theta = data.project(norm)
    assert status == newton.CONVERGED
    assert np.linalg.norm(theta) <= S * (1 + 1e-14)
    assert residual == pytest.approx(data.value(norm, theta), rel=1e-9)
    best = data.scipy(norm)
    assert residual - best <= 1e-8 * max(1.0, best)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("link", list(MEANS))
def test_gradient_and_hessian_are_the_derivatives_of_the_value(norm, link):
    data = Outside(3, link, 3)
    x, h = np.array([0.3, -0.4, 0.5]), 1e-5
    _, gradient, hessian = data.half_square(norm, x)
    for i, e in enumerate(np.eye(3) * h):
        (up, g_up, _), (down, g_down, _) = data.half_square(norm, x + e), data.half_square(norm, x - e)
        assert (up - down) / (2 * h) == pytest.approx(gradient[i], rel=1e-5, abs=1e-5)
        assert (g_up - g_down) / (2 * h) == pytest.approx(hessian[i], rel=1e-5, abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from(list(MEANS)), st.integers(2, 6), st.sampled_from([0.5, 1.0, 3.0]))
def test_at_the_projection_the_gradient_points_into_the_ball(seed, link, dim, S):
    data = Outside(seed, link, dim, S=S, reg=0.3)
    status, residual, theta = data.project("V")
    assert status == newton.CONVERGED
    assert np.linalg.norm(theta) == pytest.approx(S, rel=1e-12)
    _, gradient, _ = data.half_square("V", theta)
    pull = -gradient @ theta / S**2
    assert pull > 0
    assert np.linalg.norm(gradient + pull * theta) <= 1e-7 * np.linalg.norm(gradient)
    assert residual <= data.value("V", S * data.estimate[0] / np.linalg.norm(data.estimate)) * (1 + 1e-12)


@pytest.mark.parametrize("link", list(MEANS))
@pytest.mark.parametrize("seed", range(5))
def test_in_one_dimension_the_projection_is_exact(link, seed):
    data = Outside(seed, link, 1, S=2.0, reg=0.05)
    _, _, theta = data.project("V")
    assert theta[0] == math.copysign(2.0, data.estimate[0, 0])
    status, residual, theta = data.project("H")
    grid = min(data.value("H", np.array([t])) for t in np.linspace(-2, 2, 4001))
    assert status == newton.CONVERGED
    assert residual <= grid * (1 + 1e-12)
    assert residual >= grid - 1e-3


def test_in_the_norm_of_the_hessian_the_best_point_can_lie_inside():
    # A strong, nearly constant gradient outwards, and one arm whose curvature e^-θ vanishes on the way.
    A, w = np.array([[1.0, 0.02]]), np.array([[1.0, 20.0]])
    data = Outside(0, links.LOGISTIC, 1, S=5.0, reg=1e-6, A=A, w=w, s=w)
    status, residual, theta = data.project("H")
    assert status == newton.CONVERGED
    assert 1.0 < theta[0] < 2.5
    assert residual == pytest.approx(min(data.value("H", np.array([t])) for t in np.linspace(-5, 5, 20001)), rel=1e-6)
    assert data.project("V")[2][0] == 5.0


@pytest.mark.parametrize("norm", NORMS)
def test_inside_the_ball_nothing_moves(norm):
    data = Outside(1, links.LOGISTIC, 3)
    data.S = 1.0001 * float(np.linalg.norm(data.estimate))
    status, residual, theta = data.project(norm)
    assert (status, residual) == (newton.CONVERGED, 0.0)
    assert (theta == data.estimate[0]).all()


@pytest.mark.parametrize("norm", NORMS)
def test_turning_the_arms_turns_the_projection(norm):
    data = Outside(2, links.LOGISTIC, 4)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    turned = Outside(
        2, links.LOGISTIC, 4, A=np.ascontiguousarray(turn @ data.A), w=data.w, s=data.s, S=data.S, reg=data.reg
    )
    assert turned.project(norm)[2] == pytest.approx(turn @ data.project(norm)[2], abs=1e-8)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("reg", [2e-17, 1e-12, 1e-6])
def test_separable_data_at_radius_twenty_with_hardly_a_ridge_are_projected(norm, dim, reg):
    rng = np.random.default_rng(dim)
    A = rng.normal(size=(dim, 15))
    A /= np.linalg.norm(A, axis=0)
    for w in (np.ones((1, 15)), rng.exponential(size=(1, 15)) * 100.0):
        data = Outside(0, links.LOGISTIC, dim, S=20.0, reg=reg, lam=1e-8, A=A, w=w, s=w * (A[0] > 0))
        status, residual, theta = data.project(norm)
        assert status == newton.CONVERGED
        assert np.linalg.norm(theta) <= 20.0 * (1 + 1e-14)
        ray = 20.0 * data.estimate[0] / np.linalg.norm(data.estimate)
        assert residual <= data.value(norm, ray) * (1 + 1e-9)


@pytest.mark.parametrize("link", list(MEANS))
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_confined_estimate_has_the_least_loss_in_the_ball(link, dim):
    data = Outside(dim + 10, link, dim)
    desk = secular.set_scratch(dim, data.count)
    theta = desk.vec[secular.THETA]
    theta[:] = data.S * data.estimate[0] / np.linalg.norm(data.estimate)
    _, _, step = secular.descend_(secular.LOSS, data.atoms(), desk, 0.0, secular.STEP)
    assert step <= secular.STEP * (1 + data.S)
    assert np.linalg.norm(theta) == pytest.approx(data.S, rel=2e-9)
    z = data.A.T @ theta
    gradient = data.reg * theta + data.A @ (data.w[0] * MEANS[link](z) - data.s[0])
    pull = -gradient @ theta / data.S**2
    assert pull > 0  # the loss falls outwards and is constant along the sphere
    assert np.linalg.norm(gradient + pull * theta) <= 1e-7 * np.linalg.norm(gradient)


@pytest.mark.parametrize("norm", NORMS)
def test_what_is_not_finite_is_reported_and_leaves_the_estimate(norm):
    data = Outside(0, links.LOGISTIC, 2)
    data.s = data.s.copy()
    data.s[0, 0] = math.nan
    status, _, theta = data.project(norm)
    assert status == newton.BROKEN
    assert (theta == data.estimate[0]).all()


SCRIPT = """
import numpy as np
from driftwise.kernels.solvers import newton, project
from driftwise.kernels.solvers.atoms import Atoms
rng = np.random.default_rng(3)
for link in range(4):
    for dim, count in ((1, 3), (2, 5), (3, 4)):
        A = rng.normal(size=(dim, count))
        w = rng.exponential(size=(1, count)) * 20
        s = w * rng.integers(0, 2, (1, count))
        estimate, work = np.zeros((1, dim)), newton.newton_scratch(dim, count)
        atoms = Atoms(link, A, w, s, 0, count, 0.01, np.inf)
        print(newton.solve_(atoms, estimate, work, np.zeros((dim, dim))))
        S = 0.5 * float(np.sqrt(sum(float(v) ** 2 for v in estimate[0])))
        for by_v in (True, False):
            theta = estimate.copy()
            status, norm = project.project_(by_v, atoms._replace(S=S), np.eye(dim) * 1.5, theta, work)
            print(status, float(norm).hex(), theta.tobytes().hex())
"""


def test_compiled_and_interpreted_projections_agree_to_the_bit():
    compiled, interpreted = both_ways(SCRIPT)
    assert compiled == interpreted and len(compiled) > 1000
