"""The estimate of a generalized linear model from weighted atoms: reg·θ + Σ (w_a μ(x_a'θ) - s_a) x_a = 0.

Atoms are the columns 0..used-1 of A (d, capacity); w and s (lanes, capacity) are their weights and weighted reward
sums, theta (lanes, d) the estimates, k the lane. Matrices are lower triangles. Scratch is two arrays that `scratch`
makes and any number of calls may share: Z (3, capacity) for x_a'θ, the residuals c_a = w_a μ - s_a and the
curvatures h_a = w_a μ', and P (d + 2, d) for the factor, the gradient and the step.

How far to step. With |μ''| ≤ M μ' (M = 1 for logistic and Poisson, |z| for probit, 0 for the identity) and
τ = M max_a |x_a'p|, the loss along the Newton direction p changes by at most λ²(-α + (e^{τα} - 1 - τα)/τ²), λ² its
decrement: a full step lowers it when τ ≤ 1, and α = log(1 + τ)/τ is the best step the bound knows otherwise. So the
loss never rises, no loss is ever computed, and rounding of the loss stalls nothing. Nor is a last, idle pass
needed: the step after a full one is about τ/2 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from driftwise.kernels import kernel
from driftwise.kernels.links import EXPONENT, IDENTITY, LOGISTIC, POISSON, PROBIT, ROOT_HALF, area, density, mean, slope
from driftwise.kernels.point import Floats

CONVERGED, UNFINISHED, BROKEN = 0, 1, 2

TOLERANCE = 1e-10
AHEAD = 1e-3  # margin of the step foreseen: the bound on it is in the norm of H, whose condition this leaves room for
STEPS = 100
PATIENCE = 8  # steps after which a gradient of mere rounding errors is looked for
ROUNDING = 2.220446049250313e-16


def scratch(dim: int, capacity: int) -> tuple[Floats, Floats]:
    """Z and P."""
    return np.zeros((3, capacity)), np.zeros((dim + 2, dim))


@kernel
def linear_predictor_(A: Floats, used: int, theta: Floats, k: int, z: Floats) -> None:
    """z_a = x_a'θ_k."""
    t = theta[k, 0]
    for a in range(used):
        z[a] = t * A[0, a]
    for i in range(1, A.shape[0]):
        t = theta[k, i]
        for a in range(used):
            z[a] += t * A[i, a]


@kernel
def evaluate_(link: int, z: Floats, used: int, mu: Floats, dmu: Floats) -> None:
    """mu_a = μ(z_a), dmu_a = μ'(z_a), from one exponential where one is enough."""
    if link == LOGISTIC:
        for a in range(used):
            e = math.exp(-abs(z[a]))
            t = 1.0 / (1.0 + e)
            mu[a] = t if z[a] > 0.0 else e * t
            dmu[a] = e * t * t
    elif link == POISSON:
        for a in range(used):
            mu[a] = math.exp(min(z[a], EXPONENT))
            dmu[a] = mu[a]
    else:
        for a in range(used):
            mu[a] = mean(link, z[a])
            dmu[a] = slope(link, z[a])


@kernel
def weigh_(w: Floats, s: Floats, used: int, k: int, mu: Floats, dmu: Floats, c: Floats, h: Floats) -> None:
    """c_a = w_a μ_a - s_a, h_a = w_a μ'_a, for a link evaluated elsewhere; arrays may be shared."""
    for a in range(used):
        c[a] = w[k, a] * mu[a] - s[k, a]
        h[a] = w[k, a] * dmu[a]


@kernel
def residuals_(link: int, w: Floats, s: Floats, used: int, k: int, z: Floats, c: Floats, h: Floats) -> None:
    """c_a = w_a μ(z_a) - s_a, h_a = w_a μ'(z_a); an atom without weight costs nothing.

    Where μ nears 1 it is c = (w - s) - w(1 - μ): of an atom that was only ever rewarded, no digit is lost.
    """
    for a in range(used):
        weight = w[k, a]
        if weight == 0.0:
            c[a] = 0.0
            h[a] = 0.0
        elif link == LOGISTIC:
            e = math.exp(-abs(z[a]))
            t = 1.0 / (1.0 + e)
            tail = weight * (e * t)
            h[a] = tail * t
            c[a] = (weight - s[k, a]) - tail if z[a] > 0.0 else tail - s[k, a]
        elif link == IDENTITY:
            h[a] = weight
            c[a] = weight * z[a] - s[k, a]
        elif link == PROBIT:
            tail = weight * (0.5 * math.erfc(ROOT_HALF * abs(z[a])))
            h[a] = weight * density(z[a])
            c[a] = (weight - s[k, a]) - tail if z[a] > 0.0 else tail - s[k, a]
        else:
            h[a] = weight * slope(link, z[a])
            c[a] = h[a] - s[k, a] if link == POISSON else weight * mean(link, z[a]) - s[k, a]


@kernel
def gradient_hessian_(
    A: Floats, used: int, k: int, reg: float, theta: Floats, c: Floats, h: Floats, g: Floats, H: Floats
) -> None:
    """g = reg·θ + Σ c_a x_a and H = reg·I + Σ h_a x_a x_a'; four sums at a time, added in a fixed order."""
    whole = used - used % 4
    for i in range(A.shape[0]):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for a in range(0, whole, 4):
            s0 += c[a] * A[i, a]
            s1 += c[a + 1] * A[i, a + 1]
            s2 += c[a + 2] * A[i, a + 2]
            s3 += c[a + 3] * A[i, a + 3]
        for a in range(whole, used):
            s0 += c[a] * A[i, a]
        g[i] = reg * theta[k, i] + ((s0 + s1) + (s2 + s3))
        for j in range(i + 1):
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for a in range(0, whole, 4):
                s0 += h[a] * A[i, a] * A[j, a]
                s1 += h[a + 1] * A[i, a + 1] * A[j, a + 1]
                s2 += h[a + 2] * A[i, a + 2] * A[j, a + 2]
                s3 += h[a + 3] * A[i, a + 3] * A[j, a + 3]
            for a in range(whole, used):
                s0 += h[a] * A[i, a] * A[j, a]
            H[i, j] = (s0 + s1) + (s2 + s3)
        H[i, i] += reg


@kernel
def factor_(H: Floats, d: int, least: float, F: Floats) -> int:
    """F F' = H, lower triangle; the number of pivots raised, -1 when H is not finite or not positive.

    No pivot of H can lie below its least eigenvalue (`least` is a bound), nor is one below the rounding errors of
    its own row worth anything; such are raised, which changes H by no more than rounding already has.
    """
    raised = 0
    for i in range(d):
        for j in range(i):
            v = H[i, j]
            for m in range(j):
                v -= F[i, m] * F[j, m]
            F[i, j] = v / F[j, j]
        v = H[i, i]
        for m in range(i):
            v -= F[i, m] * F[i, m]
        floor = max(least, 4.0 * ROUNDING * H[i, i])
        if v < floor:
            v = floor
            raised += 1
        if not (v > 0.0 and v < math.inf):
            return -1
        F[i, i] = math.sqrt(v)
    return raised


@kernel
def forward_(F: Floats, d: int, v: Floats) -> None:
    """v <- F⁻¹ v."""
    for i in range(d):
        t = v[i]
        for m in range(i):
            t -= F[i, m] * v[m]
        v[i] = t / F[i, i]


@kernel
def backward_(F: Floats, d: int, v: Floats) -> None:
    """v <- F⁻ᵀ v."""
    for i in range(d - 1, -1, -1):
        t = v[i]
        for m in range(i + 1, d):
            t -= F[m, i] * v[m]
        v[i] = t / F[i, i]


@kernel
def direction_(H: Floats, d: int, reg: float, P: Floats) -> int:
    """P[d+1] = -H⁻¹ P[d], with the factor in P[:d]; what factor_ says."""
    raised = factor_(H, d, reg, P)
    if raised >= 0:
        p = P[d + 1]
        for i in range(d):
            p[i] = -P[d, i]
        forward_(P, d, p)
        backward_(P, d, p)
    return raised


@kernel
def reach(A: Floats, w: Floats, used: int, k: int, p: Floats, dz: Floats) -> float:
    """max |x_a'p| over the atoms that have weight; dz is overwritten with x_a'p."""
    for a in range(used):
        dz[a] = p[0] * A[0, a]
    for i in range(1, A.shape[0]):
        for a in range(used):
            dz[a] += p[i] * A[i, a]
    return largest(w, used, k, dz)


@kernel
def largest(w: Floats, used: int, k: int, v: Floats) -> float:
    """max |v_a| over the atoms that have weight."""
    t0, t1 = 0.0, 0.0
    for a in range(0, used - 1, 2):
        v0 = abs(v[a]) if w[k, a] != 0.0 else 0.0
        v1 = abs(v[a + 1]) if w[k, a + 1] != 0.0 else 0.0
        t0 = v0 if v0 > t0 else t0
        t1 = v1 if v1 > t1 else t1
    if used % 2 == 1 and w[k, used - 1] != 0.0:
        t0 = max(t0, abs(v[used - 1]))
    return max(t0, t1)


@kernel
def only_rounding(
    A: Floats, w: Floats, s: Floats, used: int, k: int, reg: float, theta: Floats, c: Floats, g: Floats, ulps: float
) -> bool:
    """Whether each g_i is within so many units of rounding of the terms it is summed from."""
    for i in range(A.shape[0]):
        size = reg * abs(theta[k, i])
        for a in range(used):
            size += (abs(c[a]) + min(abs(s[k, a]), abs(w[k, a] - s[k, a]))) * abs(A[i, a])
        if abs(g[i]) > ulps * ROUNDING * size:
            return False
    return True


@kernel
def descend_(
    link: int,
    A: Floats,
    w: Floats,
    s: Floats,
    used: int,
    k: int,
    reg: float,
    theta: Floats,
    Z: Floats,
    P: Floats,
    H: Floats,
) -> int:
    """Newton steps from theta[k], which is finite whenever this returns."""
    d = A.shape[0]
    z, c, h = Z[0], Z[1], Z[2]
    g, p = P[d], P[d + 1]
    for n in range(STEPS):
        linear_predictor_(A, used, theta, k, z)
        residuals_(link, w, s, used, k, z, c, h)
        gradient_hessian_(A, used, k, reg, theta, c, h, g, H)
        raised = direction_(H, d, reg, P)
        if raised < 0:
            return BROKEN
        if (raised > 0 or n >= PATIENCE) and only_rounding(A, w, s, used, k, reg, theta, c, g, 4.0 + n):
            return CONVERGED
        step, size = 0.0, 0.0
        for i in range(d):
            step += p[i] * p[i]
            size += theta[k, i] * theta[k, i]
        if not step < math.inf:
            return BROKEN
        step = math.sqrt(step)
        tolerance = TOLERANCE * (1.0 + math.sqrt(size))
        alpha, tau = 1.0, 0.0
        if link != IDENTITY:
            M, most = 1.0, math.inf
            if link == PROBIT:
                far = largest(w, used, k, z)
                most = max(1.0, 0.5 * far)  # M holds as long as no |z| grows by more
                M = far + most
            t = reach(A, w, used, k, p, z)
            tau = M * t
            if not tau < math.inf:
                return BROKEN
            if tau > 1.0:
                alpha = min(math.log1p(tau) / tau, most / t)
        for i in range(d):
            theta[k, i] += alpha * p[i]
        if alpha == 1.0 and (step <= tolerance or tau * step <= AHEAD * tolerance):
            return CONVERGED
    return UNFINISHED


@kernel
def solve_(
    link: int,
    A: Floats,
    w: Floats,
    s: Floats,
    used: int,
    k: int,
    reg: float,
    theta: Floats,
    Z: Floats,
    P: Floats,
    H: Floats,
) -> int:
    """theta[k] <- the estimate, from a warm start; 0, or 1 out of steps, or 2 not finite (theta is finite in any case).

    H is the Hessian where the last step began; as that step is foreseen to be the last, it is off by less than
    1e-6 of itself. A start that leads nowhere is followed by a start at 0.
    """
    status = descend_(link, A, w, s, used, k, reg, theta, Z, P, H)
    if status != CONVERGED:
        for i in range(A.shape[0]):
            theta[k, i] = 0.0
        status = descend_(link, A, w, s, used, k, reg, theta, Z, P, H)
    return status
