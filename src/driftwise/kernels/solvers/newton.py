"""The estimate of a generalized linear model from weighted atoms: reg·θ + Σ (w_a μ(x_a'θ) - s_a) x_a = 0.

theta (lanes, d) holds the estimates. Matrices are lower triangles. Any number of calls may share a `NewtonScratch`:
rows of Z (capacity long) for x_a'θ, the residuals c_a = w_a μ - s_a, the curvatures h_a = w_a μ' and the bends
e_a = w_a μ''; rows of P (d long) for vectors; M for factors.

How far to step. With |μ''| ≤ M μ' (M is `bend` of links.py) and τ = M max_a |x_a'p|, the loss along the Newton
direction p changes by at most λ²(-α + (e^{τα} - 1 - τα)/τ²), λ² its decrement: a full step lowers it when τ ≤ 1, and so
does α = log(1 + τ)/τ always. A longer step is halved until the loss, which is convex, does not rise at its end, but not
below that α. So the loss never rises, yet it is never computed, and its rounding stops nothing. A short step (τ ≤ 1/2)
gets Chebyshev's correction -H⁻¹ Σ e_a (x_a'p)² x_a / 2, which needs no link and leaves an error of about τ² of the
step: the last step is predicted, not confirmed by another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftwise._internal.elementary import erfc, exp, log1p
from driftwise.kernels import formula, piece, routine
from driftwise.kernels.algebra import ROUNDING, backward_divided_, factor_raised_, forward_divided_
from driftwise.kernels.cut import Matrix, Stack
from driftwise.kernels.links import (
    EXPONENT,
    IDENTITY,
    LOGISTIC,
    POISSON,
    PROBIT,
    ROOT_HALF,
    bend,
    bends_more_far_out,
    curve,
    density,
    mean,
    slope,
)
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import carved_from
from driftwise.kernels.solvers.atoms import Atoms, along, linear_predictor_, spread

CONVERGED, UNFINISHED, BROKEN = 0, 1, 2

TOLERANCE = 1e-10
AHEAD = 1e-3  # margin of the predicted step: its bound is in the norm of H, and this allows for the condition of H
SHORT = 0.5  # τ up to which a corrected step is sure to lower the loss
STILL = 1e-5  # τ up to which H may be taken for the Hessian at the step's end
STEPS = 100
PATIENCE = 8  # steps after which a gradient of only rounding errors is tested for


# Rows of P.
GRADIENT, STEP, CORRECTION = 0, 1, 2


class NewtonScratch(NamedTuple):
    """Scratch for any kernel here or in project.py: rows of Z for atoms, of P for vectors, and M."""

    Z: Matrix
    P: Matrix
    M: Stack


@formula
def newton_shapes(d: int, capacity: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int]]:
    """The shapes of its fields."""
    return (6, capacity), (11, d), (4, d, d)


newton_scratch_size, newton_scratch_of = carved_from(NewtonScratch, newton_shapes)


@formula
def newton_scratch(d: int, capacity: int) -> NewtonScratch:
    """Scratch in arrays of its own."""
    Z, P, M = newton_shapes(d, capacity)
    return NewtonScratch(np.zeros(Z), np.zeros(P), np.zeros(M))


@routine
def weigh_(p: Atoms, mu: Floats, dmu: Floats, c: Floats, h: Floats) -> None:
    """c_a = w_a μ_a - s_a, h_a = w_a μ'_a, for a link evaluated elsewhere; arrays may be shared."""
    w, s, k = p.w, p.s, p.lane
    for a in range(p.used):
        c[a] = w[k, a] * mu[a] - s[k, a]
        h[a] = w[k, a] * dmu[a]


@piece
def residuals_(p: Atoms, z: Floats, c: Floats, h: Floats, e: Floats) -> None:
    """c_a = w_a μ(z_a) - s_a, h_a = w_a μ'(z_a), e_a = w_a μ''(z_a); an atom without weight costs nothing.

    Near 1, μ enters as c = (w - s) - w(1 - μ): for an atom with only rewards of 1 no digit is lost.
    """
    link, w, s, used, k = p.link, p.w, p.s, p.used, p.lane
    if link == LOGISTIC:
        for a in range(used):
            e[a] = exp(-abs(z[a])) if w[k, a] != 0.0 else 0.0
        for a in range(used):
            t = 1.0 / (1.0 + e[a])
            tail = w[k, a] * (e[a] * t)
            h[a] = tail * t
            bend = h[a] * ((1.0 - e[a]) * t)
            c[a] = (w[k, a] - s[k, a]) - tail if z[a] > 0.0 else tail - s[k, a]
            e[a] = -bend if z[a] > 0.0 else bend
    elif link == POISSON:
        for a in range(used):
            h[a] = w[k, a] * exp(min(z[a], EXPONENT)) if w[k, a] != 0.0 else 0.0
            c[a] = h[a] - s[k, a]
            e[a] = h[a]
    elif link == PROBIT:
        for a in range(used):
            tail = w[k, a] * (0.5 * erfc(ROOT_HALF * abs(z[a]))) if w[k, a] != 0.0 else 0.0
            h[a] = w[k, a] * density(z[a]) if w[k, a] != 0.0 else 0.0
            c[a] = (w[k, a] - s[k, a]) - tail if z[a] > 0.0 else tail - s[k, a]
            e[a] = -z[a] * h[a]
    else:
        for a in range(used):
            h[a] = w[k, a] * slope(link, z[a])
            c[a] = w[k, a] * mean(link, z[a]) - s[k, a]
            e[a] = w[k, a] * curve(link, z[a])


@piece
def gradient_hessian_(p: Atoms, theta: Floats, k: int, c: Floats, h: Floats, g: Floats, H: Floats) -> None:
    """g = reg·θ_k + Σ c_a x_a and H = reg·I + Σ h_a x_a x_a'."""
    for i in range(p.A.shape[0]):
        g[i] = p.reg * theta[k, i] + along(p, i, c)
        for j in range(i + 1):
            H[i, j] = spread(p, i, j, h)
        H[i, i] += p.reg


@piece
def newton_factor_(H: Floats, d: int, least: float, F: Floats) -> int:
    """F F' = H, lower triangle; the number of pivots raised, -1 when H is not finite or not positive."""
    return int(factor_raised_(H, d, least, F, F))


@piece
def newton_forward_(F: Floats, d: int, v: Floats) -> None:
    """v <- F⁻¹ v."""
    forward_divided_(F, F, v, d, v)


@piece
def newton_backward_(F: Floats, d: int, v: Floats) -> None:
    """v <- F⁻ᵀ v."""
    backward_divided_(F, F, v)


@piece
def direction_(H: Floats, reg: float, P: Floats, F: Floats) -> int:
    """The step -H⁻¹g into P, the factor of H into F; returns the result of newton_factor_."""
    d = H.shape[0]
    raised = newton_factor_(H, d, reg, F)
    if raised >= 0:
        p = P[STEP]
        for i in range(d):
            p[i] = -P[GRADIENT, i]
        newton_forward_(F, d, p)
        newton_backward_(F, d, p)
    return raised


@piece
def largest(p: Atoms, v: Floats) -> float:
    """max |v_a| over the atoms that have weight."""
    w, used, k = p.w, p.used, p.lane
    whole = used - used % 4
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for a in range(0, whole, 4):
        v0 = abs(v[a]) if w[k, a] != 0.0 else 0.0
        v1 = abs(v[a + 1]) if w[k, a + 1] != 0.0 else 0.0
        v2 = abs(v[a + 2]) if w[k, a + 2] != 0.0 else 0.0
        v3 = abs(v[a + 3]) if w[k, a + 3] != 0.0 else 0.0
        t0 = v0 if v0 > t0 else t0
        t1 = v1 if v1 > t1 else t1
        t2 = v2 if v2 > t2 else t2
        t3 = v3 if v3 > t3 else t3
    for a in range(whole, used):
        v0 = abs(v[a]) if w[k, a] != 0.0 else 0.0
        t0 = v0 if v0 > t0 else t0
    return max(max(t0, t1), max(t2, t3))


@piece
def correct_(p: Atoms, dz: Floats, e: Floats, P: Floats, F: Floats) -> None:
    """p += -H⁻¹ Σ e_a (x_a'p)² x_a / 2, Chebyshev's correction; e is overwritten."""
    d = p.A.shape[0]
    q = P[CORRECTION]
    for a in range(p.used):
        e[a] *= dz[a] * dz[a]
    for i in range(d):
        q[i] = -0.5 * along(p, i, e)
    newton_forward_(F, d, q)
    newton_backward_(F, d, q)
    for i in range(d):
        P[STEP, i] += q[i]


@routine
def only_rounding(p: Atoms, theta: Floats, c: Floats, g: Floats, ulps: float) -> bool:
    """Whether each g_i is within `ulps` units of rounding of the terms of its sum."""
    A, w, s, k = p.A, p.w, p.s, p.lane
    for i in range(A.shape[0]):
        size = p.reg * abs(theta[k, i])
        for a in range(p.used):
            size += (abs(c[a]) + min(abs(s[k, a]), abs(w[k, a] - s[k, a]))) * abs(A[i, a])
        if not abs(g[i]) <= ulps * ROUNDING * size:
            return False
    return True


@routine
def damp_(p: Atoms, least: float, rise: float, bow: float, Z: Floats) -> float:
    """1, ½, ¼, … until the loss falls all the way to θ + αp, or least; Z[0] is x_a'θ, Z[4] x_a'p, the rest is scratch.

    The ridge's part of the derivative along p is rise + α bow.
    """
    alpha = 1.0
    while alpha > least:
        for a in range(p.used):
            Z[5, a] = Z[0, a] + alpha * Z[4, a]
        residuals_(p, Z[5], Z[1], Z[2], Z[3])
        slope_there = rise + alpha * bow
        for a in range(p.used):
            slope_there += Z[1, a] * Z[4, a]
        if slope_there <= 0.0:
            return alpha
        alpha *= 0.5
    return least


@routine
def solve_(p: Atoms, theta: Matrix, newton: NewtonScratch, H: Matrix) -> int:
    """theta[lane] <- the estimate, from a warm start: 0, or 1 out of steps, or 2 not finite (theta always is).

    H is the Hessian where the last step began, which may differ from that at its end by 1e-5 of itself. A start
    that fails is followed by a start at 0. It is one function, because each layer is compiled again with all below it.
    """
    k, reg, d = p.lane, p.reg, p.A.shape[0]
    Z, P = newton.Z, newton.P
    z, c, h, e, dz = Z[0], Z[1], Z[2], Z[3], Z[4]
    g, move, F = P[GRADIENT], P[STEP], newton.M[0]
    n, restarted = 0, False
    while True:
        linear_predictor_(p, theta, k, z)
        residuals_(p, z, c, h, e)
        gradient_hessian_(p, theta, k, c, h, g, H)
        raised = direction_(H, reg, P, F)
        doubtful = raised > 0 or (raised == 0 and n >= PATIENCE)
        if doubtful and only_rounding(p, theta, c, g, 4.0 + n):
            return CONVERGED
        step, size, rise = 0.0, 0.0, 0.0
        for i in range(d):
            step += move[i] * move[i]
            size += theta[k, i] * theta[k, i]
            rise += theta[k, i] * move[i]
        bow = reg * step
        step = math.sqrt(step)
        tolerance = TOLERANCE * (1.0 + math.sqrt(size))
        alpha, tau, t, most = 1.0, 0.0, 0.0, math.inf
        if p.link != IDENTITY and raised >= 0:
            far = 0.0
            if bends_more_far_out(p.link):
                far = largest(p, z)
                most = max(1.0, 0.5 * far)  # the bound holds as long as no |z| grows by more
                far += most
            linear_predictor_(p, P, STEP, dz)
            t = largest(p, dz)
            tau = bend(p.link, far) * t
        finite = raised >= 0 and step < math.inf and tau < math.inf
        if not finite or n == STEPS:
            if finite and raised > 0:  # along directions of only rounding errors it might never end
                return CONVERGED
            if restarted:
                return UNFINISHED if finite else BROKEN
            n, restarted = 0, True
            for i in range(d):
                theta[k, i] = 0.0
            continue
        if tau > 1.0:
            least = min(log1p(tau) / tau, most / t)
            alpha = damp_(p, least, reg * rise, bow, Z)
        elif tau <= SHORT and tau * step > AHEAD * tolerance:
            correct_(p, dz, e, P, F)
        for i in range(d):
            theta[k, i] += alpha * move[i]
        if (alpha == 1.0 and step <= tolerance) or (tau <= STILL and tau * tau * step <= AHEAD * tolerance):
            return CONVERGED
        n += 1


@routine
def hessian_(p: Atoms, theta: Floats, newton: NewtonScratch, H: Floats) -> None:
    """H at theta[lane] itself; `solve_` may leave that of the step before."""
    Z = newton.Z
    linear_predictor_(p, theta, p.lane, Z[0])
    residuals_(p, Z[0], Z[1], Z[2], Z[3])
    gradient_hessian_(p, theta, p.lane, Z[1], Z[2], newton.P[GRADIENT], H)



def solve_with(
    evaluate: Callable[[Floats], tuple[Floats, Floats]], p: Atoms, theta: Floats, newton: NewtonScratch, H: Floats
) -> int:
    """solve_ for a link of the user's own: evaluate(z) is (μ(z), μ'(z)), increasing; statuses are the same.

    There is no bound of μ'' here, so the step is halved until the loss, which is convex, no longer rises at its end.
    """
    z, c, h = newton.Z[0], newton.Z[1], newton.Z[2]
    P, k = newton.P, p.lane
    g, move = P[GRADIENT], P[STEP]

    def look() -> bool:
        linear_predictor_(p, theta, k, z)
        mu, dmu = evaluate(z[: p.used].copy())
        weigh_(p, np.asarray(mu, np.float64), np.asarray(dmu, np.float64), c, h)
        gradient_hessian_(p, theta, k, c, h, g, H)
        return bool(np.isfinite(g).all() and np.isfinite(H).all())

    def slope_along() -> float:
        return math.fsum(float(a * b) for a, b in zip(g, move, strict=True))

    if not look():
        return BROKEN
    for _ in range(STEPS):
        if direction_(H, p.reg, P, newton.M[0]) < 0 or not np.isfinite(move).all():
            return BROKEN
        start = theta[k].copy()
        fall = -slope_along()
        step = math.sqrt(math.fsum(float(v * v) for v in move))
        tolerance = TOLERANCE * (1.0 + math.sqrt(math.fsum(float(v * v) for v in start)))
        alpha = 1.0
        while True:
            theta[k] = start + alpha * move
            if look() and slope_along() <= 0.1 * fall:
                break
            if alpha * step <= tolerance:
                theta[k] = start
                return CONVERGED if look() else BROKEN
            alpha *= 0.5
        if alpha * step <= tolerance:
            return CONVERGED
    return UNFINISHED
