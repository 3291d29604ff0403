"""Most e'θ over {‖g(θ)-b‖_{H(θ)⁻¹} ≤ ρ, ‖θ‖ ≤ S}, e = vec[ARM] of length 1; the set need not be convex, nor connected.

F is ‖g-b‖_{H⁻¹(θ)}. From any start an augmented Lagrangian over the ball finds the place, and Newton on the KKT system
e = ν∇F + κθ the digits. At d = 1 a march inward from the end of the interval cannot jump over a point of the set.
"""

from __future__ import annotations

import math

import numpy as np

from driftwise._internal.elementary import cosine, log, sine
from driftwise.kernels import kernel, routine
from driftwise.kernels.point import Floats
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.secular import (
    ARM,
    AUGMENTED,
    BEST,
    CENTRE,
    GAP,
    GRAD,
    HAT,
    HAT_LOW,
    HESS,
    INFO,
    KEPT,
    MULTIPLIER,
    PENALTY,
    RHO,
    SPARE,
    STEP,
    THETA,
    TILT,
    SetScratch,
    atoms_,
    back_,
    bend_,
    clip_,
    copy_,
    descend_,
    secular_backward_,
    secular_forward_,
    vector_dot,
)

DONE = 1e-11  # residual at which Newton is done
FAILED = 1e-6  # residual above which a solution counts as failed
OUTER = 25  # multipliers tried
TRIES = 40  # Newton steps on the KKT system
SOFT, STIFF = 10.0, 5e3  # penalties, in units of multiplier over radius
RAYS = 24
STARTS = 8
MARCH = 5000


@routine
def distance_(p: Atoms, z: SetScratch, theta: Floats) -> float:
    """F at theta."""
    atoms_(p, z, theta, p.used < 0)
    return math.sqrt(back_(z))


@routine
def eliminate_(K: Floats, n: int) -> bool:
    """Solve K[:n, :n] y = K[:n, n] by elimination with row pivots; y in column n."""
    for c in range(n):
        p = c
        for r in range(c + 1, n):
            if abs(K[r, c]) > abs(K[p, c]):
                p = r
        if not abs(K[p, c]) > 0.0:
            return False
        if p != c:
            for j in range(c, n + 1):
                K[c, j], K[p, j] = K[p, j], K[c, j]
        for r in range(c + 1, n):
            t = K[r, c] / K[c, c]
            for j in range(c + 1, n + 1):
                K[r, j] -= t * K[c, j]
    for c in range(n - 1, -1, -1):
        for j in range(c + 1, n):
            K[c, n] -= K[c, j] * K[j, n]
        K[c, n] /= K[c, c]
    return True


@routine
def newton_(p: Atoms, z: SetScratch, rho: float, nu: float, kappa: float) -> float:
    """Newton from vec[THETA] on e = ν∇F + κθ, F = ρ, and ‖θ‖ = S or κ = 0; returns the residual, inf if it fails.

    Whether the ball is active is first taken from κ, and changed if the result has κ < 0 or ‖θ‖ > S.
    """
    K, e, theta, grad, hess = z.kkt, z.vec[ARM], z.vec[THETA], z.vec[GRAD], z.mat[HESS]
    d = theta.size
    both = kappa > 0.0
    worst, switches = math.inf, 0
    for _ in range(TRIES):
        n = d + 2 if both else d + 1
        F = distance_(p, z, theta)
        bend_(p, z, grad, hess)
        size = math.sqrt(vector_dot(theta, theta))
        before = worst
        worst = max(abs(F / rho - 1.0), abs(size / p.S - 1.0) if both else 0.0)
        for i in range(d):
            grad[i] /= F
            worst = max(worst, abs(e[i] - nu * grad[i] - kappa * theta[i]))
        if worst <= DONE or (worst <= 1e3 * DONE and worst >= 0.5 * before):
            if not nu > 0.0 or switches == 3:
                return math.inf
            if both and kappa < 0.0:
                both, kappa, worst = False, 0.0, math.inf
            elif not both and size > p.S * (1.0 + 1e-12):
                both, worst = True, math.inf
                clip_(theta, p.S)
            else:
                return worst
            switches += 1
            continue
        if not worst < 1e3 * before:
            return math.inf
        for i in range(d):
            for j in range(d):
                K[i, j] = nu / F * hess[i, j]
            K[i, i] += kappa
            K[i, d] = grad[i]
            K[d, i] = grad[i]
            if both:
                K[i, d + 1] = theta[i]
                K[d + 1, i] = theta[i]
            K[i, n] = e[i]
        for i in range(d, n):
            for j in range(d, n):
                K[i, j] = 0.0
        K[d, n] = 0.5 * (rho - F) * (rho + F) / F
        if both:
            K[d + 1, n] = 0.5 * (p.S - size) * (p.S + size)
        if not eliminate_(K, n):
            return math.inf
        for i in range(d):
            theta[i] += K[i, n]
        nu = K[d, n]
        kappa = K[d + 1, n] if both else 0.0
    return math.inf


@kernel
def rim_(p: Atoms, z: SetScratch, rho: float, rim: Floats) -> None:
    """Points of the set around its edge in the ball, d = 2, in rim (2, 2·RAYS).

    First where rays from vec[CENTRE] leave the set for the last time, roughly; then, between two of them one of which
    ends on the circle, where the circle leaves the set, else the first again.
    """
    theta, centre = z.vec[THETA], z.vec[CENTRE]
    c0, c1 = centre[0], centre[1]
    start = distance_(p, z, centre)
    ends = np.empty((2, RAYS))
    whole = np.empty(RAYS, dtype=np.bool_)
    for k in range(RAYS):
        u0, u1 = cosine(2.0 * math.pi * k / RAYS), sine(2.0 * math.pi * k / RAYS)
        inner = c0 * u0 + c1 * u1
        out = max(0.0, -inner + math.sqrt(max(0.0, inner * inner + p.S * p.S - c0 * c0 - c1 * c1)))
        low, high, below, above = 0.0, out, start - rho, math.inf
        for n in range(5):  # the end and the middle, then by interpolation
            t = out / (n + 1.0) if n < 2 else low + (high - low) * min(max(below / (below - above), 0.1), 0.9)
            theta[0], theta[1] = c0 + t * u0, c1 + t * u1
            excess = distance_(p, z, theta) - rho
            if excess <= 0.0:
                low, below = t, excess
            else:
                high, above = t, excess
            if low == out:
                break
        whole[k] = low == out
        ends[0, k], ends[1, k] = c0 + out * u0, c1 + out * u1
        rim[0, k], rim[1, k] = c0 + low * u0, c1 + low * u1
    for k in range(RAYS):
        rim[0, RAYS + k], rim[1, RAYS + k] = rim[0, k], rim[1, k]
        other = (k + 1) % RAYS
        if whole[k] != whole[other]:
            i, j = (k, other) if whole[k] else (other, k)
            a0, a1, b0, b1 = ends[0, i], ends[1, i], ends[0, j], ends[1, j]
            for _ in range(12):
                theta[0], theta[1] = a0 + b0, a1 + b1
                share = p.S / math.sqrt(theta[0] * theta[0] + theta[1] * theta[1])
                theta[0], theta[1] = share * theta[0], share * theta[1]
                if distance_(p, z, theta) <= rho:
                    a0, a1 = theta[0], theta[1]
                else:
                    b0, b1 = theta[0], theta[1]
            rim[0, RAYS + k], rim[1, RAYS + k] = a0, a1


@routine
def march_(p: Atoms, z: SetScratch, L: float, rho: float) -> tuple[float, float]:
    """d = 1: e'θ at the outermost point of the set on the side of e, and the residual; -inf if there is no point.

    Within δ of θ, H changes by a factor of at most e^{Lδ}, so |N| falls by at most H(e^{Lδ}-1)/L: a quadratic in
    e^{Lδ/2} says how far no point can satisfy |N| ≤ ρ√H.
    """
    theta, e = z.vec[THETA], z.vec[ARM, 0]
    theta[0] = e * p.S
    excess = math.inf
    for _ in range(MARCH):
        excess = distance_(p, z, theta) / rho - 1.0
        if excess <= 1e-13:
            return e * theta[0], max(0.0, excess)
        N, H = z.vec[GAP, 0], z.mat[INFO, 0, 0]
        if N * e > 0.0:  # inward is toward θ̂
            half = rho * math.sqrt(H)
            y = (math.sqrt(half * half + 4.0 * H / L * (abs(N) + H / L)) - half) * L / (2.0 * H)
        else:
            y = abs(N) / (rho * math.sqrt(H))
        theta[0] -= e * max(2.0 * log(y) / L, 1e-16 * p.S)
        if abs(theta[0]) > p.S:
            return -math.inf, 0.0
    return e * theta[0], excess


@routine
def starts_(p: Atoms, z: SetScratch, rho: float, lone: bool, rim: Floats, starts: Floats) -> int:
    """Rows of starts to climb from; how many.

    The end of the ellipsoid around θ̂ or, unless the set is known to be convex (lone), Se and at d = 2 wherever the
    rim turns away from e, then its best corner; the last is used only if nothing better was found.
    """
    e, spare = z.vec[ARM], z.vec[SPARE]
    d = e.size
    count = 0
    if not lone:
        for i in range(d):
            starts[count, i] = p.S * e[i]
        count += 1
    if lone or d > 2:
        copy_(e, spare)
        share = rho / math.sqrt(secular_forward_(z.mat[HAT_LOW], spare))
        secular_backward_(z.mat[HAT_LOW], spare)
        for i in range(d):
            starts[count, i] = z.vec[HAT, i] + share * spare[i]
        clip_(starts[count], p.S)
        return count + 1
    corner, right = RAYS, -math.inf
    left = e[0] * rim[0, RAYS - 1] + e[1] * rim[1, RAYS - 1]
    here = e[0] * rim[0, 0] + e[1] * rim[1, 0]
    for k in range(RAYS):
        after = (k + 1) % RAYS
        right = e[0] * rim[0, after] + e[1] * rim[1, after]
        if here > left and here >= right and count < STARTS - 1:
            starts[count, 0], starts[count, 1] = rim[0, k], rim[1, k]
            count += 1
        left, here = here, right
        if e[0] * (rim[0, RAYS + k] - rim[0, corner]) + e[1] * (rim[1, RAYS + k] - rim[1, corner]) > 0.0:
            corner = RAYS + k
    starts[count, 0], starts[count, 1] = rim[0, corner], rim[1, corner]
    return count + 1


@routine
def farthest_(
    p: Atoms, z: SetScratch, L: float, rho: float, lone: bool, rim: Floats, starts: Floats
) -> tuple[float, float]:
    """Most e'θ and the residual, the point in vec[THETA]; on failure e'CENTRE and inf. Se is taken to be outside.

    The best local maximum over the starts. A climb that ends below its start, a point of the set, has moved to a lower
    maximum: it is repeated with a stiffer penalty. The function is long, because each level of calls above descend_
    costs seconds of compilation.
    """
    vec, number = z.vec, z.number
    theta, kept, e, spare = vec[THETA], vec[KEPT], vec[ARM], vec[SPARE]
    d = theta.size
    if d == 1:
        return march_(p, z, L, rho)
    copy_(vec[CENTRE], vec[BEST])
    best, residual = -math.inf, math.inf
    count = starts_(p, z, rho, lone, rim, starts)
    copy_(e, spare)
    slack = math.sqrt(secular_forward_(z.mat[HAT_LOW], spare))
    copy_(e, vec[TILT])
    number[RHO] = rho
    k, outer, stiff, kappa, before, first = 0, 0, SOFT, 0.0, math.inf, -math.inf
    while k < count:
        if outer == 0:
            copy_(starts[k], theta)
            inside = d == 2 and k > 0  # on the rim
            first = vector_dot(e, theta) - 1e-9 * p.S if inside else -math.inf
            if inside and k == count - 1 and first < best:
                break
            number[MULTIPLIER], number[PENALTY], kappa, before = slack, stiff * slack / rho, 0.0, math.inf
        _, kappa, _ = descend_(int(AUGMENTED), p, z, kappa, STEP if outer > 0 else 1e-2)
        outer += 1
        copy_(theta, kept)
        excess = distance_(p, z, theta) / rho - 1.0
        number[MULTIPLIER] = max(0.0, number[MULTIPLIER] + number[PENALTY] * excess * rho)
        worst = newton_(p, z, rho, number[MULTIPLIER], kappa)
        far = 0.0
        for i in range(d):
            far += (theta[i] - kept[i]) * (theta[i] - kept[i])
        if worst < math.inf and far <= 0.1 * p.S * p.S:
            value = vector_dot(e, theta)
            if value > best:
                best, residual = value, worst
                copy_(theta, vec[BEST])
            stiff *= 20.0
            outer = 0
            if value >= first or stiff > STIFF:
                k, stiff = k + 1, SOFT
        elif outer == OUTER:
            k, outer, stiff = k + 1, 0, SOFT
        else:
            copy_(kept, theta)
            if abs(excess) > 0.25 * before or number[MULTIPLIER] == 0.0:
                number[PENALTY] *= 8.0
            before = abs(excess)
    copy_(vec[BEST], theta)
    return vector_dot(e, theta), residual
