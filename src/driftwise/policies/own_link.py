"""The estimate for a link of the user's own: Python evaluates μ on the atoms, compiled Newton steps use it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.point import FAILED, LAM, REG, USED, Floats, S
from driftwise.kernels.solvers import newton, one_pass
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.policies.model import Link
from driftwise.policies.state import State

if TYPE_CHECKING:
    from driftwise.policies.glm import GeneralizedUCB


def _optimize() -> Any:
    """scipy.optimize, which only links of the user's own need, or a BadInput."""
    try:
        from scipy import optimize
    except ImportError:
        raise BadInput("link", "no scipy", "scipy for a link of your own", 'pip install "driftwise[links]"') from None
    return optimize


def estimate_(
    policy: GeneralizedUCB, link: Link, state: State, lesson: tuple[Any, float, float] | None, ticks: float
) -> None:
    """theta <- θ̂ and shown <- the point of the ball the rule plays with, after compiled code has kept the history."""
    flags, table = policy.point
    used = int(state.cursor[USED])
    if flags[point.ESTIMATE] == point.ONE_PASS:
        status = _one_pass(policy, link, state, lesson, ticks)
    else:
        work = newton.newton_scratch(policy.dim, max(1, used))
        reg, reach = float(table[0, REG]), float(table[0, S])
        atoms = Atoms(policy.model.code, state.atoms, state.weights, state.targets, 0, used, reg, reach)
        status = newton.solve_with(link, atoms, state.theta, work, state.H[0])
    state.shown[0] = state.theta[0]
    projects = flags[point.RULE] in (point.GLB, point.SCB)
    if projects and float(np.linalg.norm(state.theta[0])) > table[0, point.BALL]:
        state.shown[0] = _confined(policy, link, state)
    if status != newton.CONVERGED:
        state.counters[0, FAILED] += 1.0


def _one_pass(
    policy: GeneralizedUCB, link: Link, state: State, lesson: tuple[Any, float, float] | None, ticks: float
) -> int:
    """One pass (docs/math.md#estimates): Python solves the scalar equation, compiled pieces do the rest."""
    memory, work = policy.memory, newton.newton_scratch(policy.dim, 1)
    fade = math.exp(ticks * memory.numbers()[1])  # γ^ticks, whatever else the memory does
    status = one_pass.one_pass_fade_(state.H, state.theta, 0, fade, float(policy.point.table[0, REG]), work.M)
    if lesson is None or status != newton.CONVERGED:
        return status
    x, reward, age = lesson
    weight = memory.weight(age, state.clock)
    if weight == 0.0:
        return status
    x = np.ascontiguousarray(x.ravel())
    z0, q = one_pass.one_pass_aim_(state.theta, 0, x, work)

    def gap(z: float) -> float:
        return float(z - z0 - weight * q * (reward - link(np.array([z]))[0][0]))

    push = weight * q * (reward - float(link(np.array([z0]))[0][0]))
    ends = sorted((z0, z0 + push))
    if gap(ends[0]) < 0.0 < gap(ends[1]):
        z = float(_optimize().brentq(gap, *ends, xtol=1e-14, rtol=1e-14, maxiter=5000))
    else:  # up to rounding, the root is an end
        z = min(ends, key=lambda end: abs(gap(end)))
    value, slope = (float(one[0]) for one in link(np.array([z])))
    one_pass.one_pass_take_(state.H, state.theta, 0, x, weight * (value - reward), weight * slope, work.P)
    return status


def _confined(policy: GeneralizedUCB, link: Link, state: State) -> Floats:
    """argmin over the S-ball of ‖g(θ)-b‖ in V⁻¹ or H(θ)⁻¹, by scipy's least squares from the ray of the estimate."""
    least_squares = _optimize().least_squares
    flags, table = policy.point
    reach, reg = float(table[0, S]), float(table[0, REG])
    used = int(state.cursor[USED])
    G = np.tril(state.G[0]) + np.tril(state.G[0], -1).T
    V = G + table[0, LAM] * np.eye(policy.dim)
    H0 = np.tril(state.H[0]) + np.tril(state.H[0], -1).T
    folded = flags[point.ESTIMATE] == point.ONE_PASS

    def residual(theta: Floats) -> tuple[Floats, Floats]:
        if folded:
            return H0 @ (theta - state.theta[0]), H0
        A, w, s = state.atoms[:, :used], state.weights[0, :used], state.targets[0, :used]
        mean, slope = link(A.T @ theta)
        return reg * theta + A @ (w * mean - s), reg * np.eye(policy.dim) + (A * (w * slope)) @ A.T

    def whitened(theta: Floats) -> Floats:
        """low⁻¹(g(θ)-b), whose length is the norm to be minimised."""
        r, H = residual(theta)
        low = np.linalg.cholesky(V if flags[point.RULE] == point.GLB else H)
        return np.asarray(np.linalg.solve(low, r))

    ray = state.theta[0] / np.linalg.norm(state.theta[0])
    tangent = np.linalg.svd(ray[None])[2][1:]  # rows span what is orthogonal to the ray

    def on_sphere(v: Floats) -> Floats:
        u = ray + v @ tangent
        return np.asarray(reach * u / np.linalg.norm(u))

    def in_ball(v: Floats) -> Floats:
        return np.asarray(reach * v / math.sqrt(1.0 + float(v @ v)))

    tight: dict[str, Any] = {"jac": "3-point", "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 400}
    best = reach * ray
    if policy.dim > 1:
        best = on_sphere(least_squares(lambda v: whitened(on_sphere(v)), np.zeros(policy.dim - 1), **tight).x)
    if flags[point.RULE] == point.SCB:  # in H(θ)⁻¹ the minimum may be inside the ball
        inner = in_ball(least_squares(lambda v: whitened(in_ball(v)), ray, **tight).x)
        if float(np.linalg.norm(whitened(inner))) < float(np.linalg.norm(whitened(best))):
            best = inner
    return np.asarray(best)
