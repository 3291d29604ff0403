"""Laws of the projection of BVD-GLM-UCB, stage by stage."""

import math

import numpy as np
import pytest
from scipy import optimize

from driftwise.kernels import bvd
from driftwise.kernels.bvd import NEAREST, ORIGIN
from driftwise.kernels.solvers import secular
from test_sets import Made, played


def made(rng, dim, S):
    """A state whose estimate lies outside the ball, with V, Ṽ of a fading memory."""
    while True:
        n = int(rng.integers(2, 15))
        X = played(rng, n, dim)
        w = rng.random(n) * 10 ** rng.uniform(0, 2)
        direction = rng.normal(size=dim)
        sure = 1 / (1 + np.exp(-X @ direction * 6 * S / np.linalg.norm(direction)))
        m = Made(X, w, w * np.clip(sure + 0.1 * rng.normal(size=n), 0, 1), 10 ** rng.uniform(-1.5, 0.5))
        if np.linalg.norm(m.hat) > S:
            break
    lam = 5 * m.reg
    V = lam * np.eye(dim) + (X.T * w) @ X
    return m, V, lam * np.eye(dim) + (X.T * (w * rng.uniform(0.2, 0.9, n))) @ X


def project(m, S, V, V2, beta, tie=NEAREST):
    out = np.zeros(m.dim)
    way = bvd.Way(V, V2, 0.0, beta, tie)
    return out, *bvd.confine_(*m.atoms(S), way, secular.set_scratch(m.dim, m.w.size), out)


def norm(m, theta, V2):
    return math.sqrt(m.N(theta) @ np.linalg.solve(V2, m.N(theta)))


def inside(S):
    return {"type": "ineq", "fun": lambda u: 1 - u @ u / S**2, "jac": lambda u: -2 * u / S**2}


def test_an_estimate_in_the_ball_stays():
    m = Made(np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([3.0, 2.0]), np.array([1.0, 1.5]), 1.0)
    theta, stage, *_ = project(m, 5.0, np.eye(2), np.eye(2), 1.0)
    assert stage == 1 and np.array_equal(theta, m.hat)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_second_stage_is_the_nearest_point_of_the_ball(dim):
    rng = np.random.default_rng(dim)
    for _ in range(15):
        S = float(rng.choice([0.5, 1, 3]))
        m, V, V2 = made(rng, dim, S)
        q, stage, found, _, step = project(m, S, V, V2, 1e9)
        assert stage == 2 and step <= 1e-7 and found == pytest.approx(norm(m, q, V2), rel=1e-9)
        assert np.linalg.norm(q) == pytest.approx(S, rel=1e-9)
        start = S * m.hat / np.linalg.norm(m.hat)
        other = optimize.minimize(
            lambda u, m=m, V2=V2, c=found: norm(m, u, V2) / c, start, constraints=[inside(S)], method="SLSQP",
            options={"ftol": 1e-13},
        )  # fmt: skip
        assert found <= other.fun * found * (1 + 1e-7)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_third_stage_is_what_a_general_solver_says_of_the_joint_program(dim):
    rng = np.random.default_rng(100 + dim)
    for _ in range(12):
        S = float(rng.choice([0.5, 1, 3]))
        m, V, V2 = made(rng, dim, S)
        q, _, far, _, _ = project(m, S, V, V2, 1e9)
        beta = far * rng.uniform(0.2, 0.97)
        theta, stage, again, least, step = project(m, S, V, V2, beta)
        assert stage == 3 and again == far and step <= 1e-7 * (1 + S)
        assert np.linalg.norm(theta) <= S * (1 + 1e-12)
        values, vectors = np.linalg.eigh(V2)
        root = vectors @ np.diag(np.sqrt(values)) @ vectors.T  # the symmetric root; the kernel uses another one

        def value(u, m=m, V=V, root=root, beta=beta, scale=least):
            return float(np.sum((np.linalg.solve(V, m.N(u[: m.dim]) + beta * root @ u[m.dim :]) / scale) ** 2))

        rows = [
            {"type": "ineq", "fun": lambda u, S=S: 1 - u[:dim] @ u[:dim] / S**2},
            {"type": "ineq", "fun": lambda u: 1 - u[dim:] @ u[dim:]},
        ]
        best = math.inf
        for start in (q, theta, 0.5 * q):
            u = np.concatenate([start, -0.5 * np.linalg.solve(root, m.N(start)) / far])
            found = optimize.minimize(value, u, constraints=rows, method="SLSQP", options={"ftol": 1e-14})
            if min(row["fun"](found.x) for row in rows) > -1e-9:
                best = min(best, found.fun)
        assert best >= 1 - 1e-6  # the kernel's own is 1
        assert best <= 1 + 1e-2  # and the solver comes near


def test_the_joint_program_vanishes_where_the_second_stage_begins():
    rng = np.random.default_rng(7)
    m, V, V2 = made(rng, 2, 1.0)
    q, _, far, _, _ = project(m, 1.0, V, V2, 1e9)
    last = math.inf
    for short in (0.3, 0.1, 1e-2, 1e-4):
        theta, stage, _, least, _ = project(m, 1.0, V, V2, far * (1 - short))
        assert stage == 3 and least < last
        last = least
    np.testing.assert_allclose(theta, q, atol=1e-3)
    assert last < 1e-3 * far


def test_the_origin_is_taken_whenever_it_may_be_and_only_then():
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(200):
        S = float(rng.choice([0.3, 1, 20]))
        m, V, V2 = made(rng, 2, min(S, 1))
        beta = norm(m, np.zeros(2), V2) * rng.uniform(0.5, 1.5)
        nearest, near_stage, *_ = project(m, S, V, V2, beta)
        origin, stage, *_ = project(m, S, V, V2, beta, ORIGIN)
        assert stage == near_stage
        if norm(m, np.zeros(2), V2) <= beta:
            assert stage < 3 and np.array_equal(origin, np.zeros(2))
            seen.add((stage, "origin"))
        else:
            assert np.array_equal(origin, nearest)
            seen.add((stage, "else"))
    assert {(1, "origin"), (1, "else"), (2, "origin"), (2, "else"), (3, "else")} <= seen
