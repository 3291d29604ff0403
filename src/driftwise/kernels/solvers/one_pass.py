"""The estimate in one pass (docs/math.md#estimates): O(d²) memory and time, no history.

H (lanes, d, d) starts as reg·I and theta (lanes, d) as 0; scratch is that of newton.py.
"""

from __future__ import annotations

import math

from driftwise.kernels import routine
from driftwise.kernels.algebra import ROUNDING
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.links import IDENTITY, mean, slope
from driftwise.kernels.point import Floats
from driftwise.kernels.solvers.newton import (
    BROKEN,
    CONVERGED,
    NewtonScratch,
    newton_backward_,
    newton_factor_,
    newton_forward_,
)


@routine
def root(link: int, z0: float, q: float, r: float) -> float:
    """The z with z = z0 + q(r - μ(z)), q ≥ 0: Newton inside a bracket, bisection where it cycles or crawls.

    As μ does not fall, the root lies between z0 and z0 + q(r - μ(z0)); from there the bracket is found by doubling.
    """
    if link == IDENTITY:
        return (z0 + q * r) / (1.0 + q)
    push = q * (r - mean(link, z0))
    if push == 0.0 or not abs(push) <= math.inf:
        return z0 + push
    sign = 1.0 if push > 0.0 else -1.0
    near, far = 0.0, abs(push)  # distances from z0 between which the root lies
    width = 1.0
    while width < far:
        if width - sign * q * (r - mean(link, z0 + sign * width)) >= 0.0:
            far = width
        else:
            near = width
            width *= 2.0
    t = near if near > 0.0 else min(far, abs(push) / (1.0 + q * slope(link, z0)))
    last = far - near
    for _ in range(200):
        z = z0 + sign * t
        f = t - sign * q * (r - mean(link, z))
        if f > 0.0:
            far = t
        else:
            near = t
        step = -f / (1.0 + q * slope(link, z))
        if not (near < t + step < far) or abs(step) > 0.5 * last:
            step = 0.5 * (near + far) - t
        last = abs(step)
        t += step
        if last <= 2.0 * ROUNDING * (abs(z0) + t):
            break
    return z0 + sign * t


@routine
def one_pass_fade_(H: Stack, theta: Matrix, k: int, gamma: float, reg: float, M: Stack) -> int:
    """Time passes: A = γH + (1-γ)reg·I, θ <- A⁻¹γHθ = θ - (1-γ)reg A⁻¹θ; H[k] becomes A, M[0] its factor."""
    d = theta.shape[1]
    ridge = (1.0 - gamma) * reg
    for i in range(d):
        for j in range(i + 1):
            H[k, i, j] *= gamma
        H[k, i, i] += ridge
    F = M[0]
    if newton_factor_(H[k], d, 0.0, F) < 0:
        return BROKEN
    if ridge != 0.0:
        v = M[1, 0]
        for i in range(d):
            v[i] = theta[k, i]
        newton_forward_(F, d, v)
        newton_backward_(F, d, v)
        for i in range(d):
            theta[k, i] -= ridge * v[i]
    return CONVERGED


@routine
def one_pass_aim_(theta: Matrix, k: int, x: Vector, newton: NewtonScratch) -> tuple[float, float]:
    """(x'θ, x'A⁻¹x) after one_pass_fade_, A⁻¹x in P[0]: what the scalar equation of `root` needs."""
    d = x.size
    y, F = newton.P[0], newton.M[0]
    z0, q = 0.0, 0.0
    for i in range(d):
        y[i] = x[i]
        z0 += x[i] * theta[k, i]
    newton_forward_(F, d, y)
    for i in range(d):
        q += y[i] * y[i]
    newton_backward_(F, d, y)
    return z0, q


@routine
def one_pass_take_(H: Stack, theta: Matrix, k: int, x: Vector, c: float, h: float, P: Matrix) -> None:
    """θ <- θ - c A⁻¹x, H <- A + h xx', with c = w(μ(z) - r) and h = wμ'(z) at the root z."""
    for i in range(x.size):
        theta[k, i] -= c * P[0, i]
        for j in range(i + 1):
            H[k, i, j] += h * x[i] * x[j]


@routine
def one_pass_(
    link: int, H: Floats, theta: Floats, k: int, x: Floats, r: float, gamma: float, weight: float, reg: float,
    newton: NewtonScratch,
) -> int:
    """The estimate in O(d²) memory: fade by gamma, then take (x, r) in with a weight; 0, or 2 not finite.

    Start with H[k] = reg·I and θ = 0. Gamma is γ^ticks, the weight γ^age. A user's own link calls the three pieces
    and solves z = z0 + wq(r - μ(z)) itself, between z0 and z0 + wq(r - μ(z0)).
    """
    if one_pass_fade_(H, theta, k, gamma, reg, newton.M) != CONVERGED:
        return BROKEN
    if weight == 0.0:
        return CONVERGED
    z0, q = one_pass_aim_(theta, k, x, newton)
    z = root(link, z0, weight * q, r)
    c = weight * (mean(link, z) - r)
    h = weight * slope(link, z)
    if not (abs(c) < math.inf and h < math.inf):
        return BROKEN
    one_pass_take_(H, theta, k, x, c, h, newton.P)
    return CONVERGED
