"""Optimism over a set of parameters: most x'θ over a confidence set within the ball ‖θ‖ ≤ S, for each arm x.

EXACT is {‖g(θ)-b‖_{H(θ)⁻¹} ≤ ρ} (Wang, Zhao, Zhou 2023, Appendix D; OFULog), not convex. CONVEX is the set around it
{Loss(θ)-Loss(θ̂) ≤ B}, B = (ρ+Lρ²/√reg)² (OFULog-r). θ̂ may lie outside the ball. L is at least every atom's length,
and the link is self-concordant: |μ''| ≤ μ'.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftwise._internal.elementary import exp
from driftwise.kernels import kernel, routine
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.links import tame
from driftwise.kernels.point import Floats
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.exact import DONE, FAILED, RAYS, STARTS, farthest_, rim_
from driftwise.kernels.solvers.secular import (
    ARM,
    CENTRE,
    GAP,
    GRAD,
    HAT,
    HAT_LOW,
    INFO,
    KEPT,
    LOCAL,
    LOSS,
    LOW,
    SPARE,
    STEP,
    STEPS,
    THETA,
    TILT,
    ZERO,
    SetScratch,
    atoms_,
    back_,
    clip_,
    copy_,
    descend_,
    secular_backward_,
    secular_factor_,
    secular_forward_,
    set_scratch,
    vector_dot,
)

EXACT, CONVEX = 0, 1

# Rows of the table that optimist_ fills, a column per arm: the value, or a bound on it where pruning spared it; the
# bound at the start; ‖x‖; x'θ̂; ‖x‖_{H⁻¹(θ̂)}.
VALUE, BOUND, SIZE, MEAN, WIDTH = 0, 1, 2, 3, 4
COLUMNS = 5

SLACK = 1e-9  # by which a bound from solved arms is raised, because they are solved to a tolerance


class ThetaSet(NamedTuple):
    """One of the two sets: ρ, B, Loss(θ̂), the radius of x'θ ≤ x'θ̂ + radius·‖x‖_{H⁻¹(θ̂)}, whether known to be
    convex."""

    kind: int
    L: float
    rho: float
    level: float
    floor: float
    radius: float
    lone: bool


# ------------------------------------------------------------------------------------------ the region


@routine
def stretch(kind: int, D: float, rho: float, level: float) -> float:
    """The radius of (a) or (a') (docs/math.md#self-concordant); D bounds how far any atom's x'θ moves from θ̂."""
    if kind == CONVEX:
        return math.sqrt((2.0 + D) * level)
    return math.sqrt(1.0 + D) * min(math.sqrt(1.0 + D) * rho, math.sqrt(level))


@routine
def region_(p: Atoms, z: SetScratch, kind: int, L: float, rho: float) -> ThetaSet:
    """The region around θ̂ = vec[HAT], whose factor of H goes to mat[HAT_LOW].

    D is at first L(S+‖θ̂‖), then what the radius it gives allows the atoms, and so on. EXACT is convex in the ball when
    θ̂ is in it, D < log 3 and κ = max|x_a'H⁻¹(θ)N| < √(3/2): ½f'' = H - K + KH⁻¹K - ½T ≥ (¾ - ½κ²)H > 0 wherever f ≤ ρ²
    as |μ'''| ≤ μ' too; and f rises along every ray from θ̂, so the ball's edge holds no second valley.
    """
    hat, spare, low = z.vec[HAT], z.vec[SPARE], z.mat[HAT_LOW]
    floor = atoms_(p, z, hat, kind == CONVEX)
    secular_factor_(z.mat[INFO], 0.0, low)
    wide = rho + L * rho * rho / math.sqrt(p.reg)
    level = wide * wide
    far, tall = 0.0, 0.0
    for a in range(p.used):
        if p.w[p.lane, a] > 0.0:
            for i in range(hat.size):
                spare[i] = p.A[i, a]
            far = max(far, abs(vector_dot(spare, hat)) + p.S * math.sqrt(vector_dot(spare, spare)))
            tall = max(tall, secular_forward_(low, spare))
    tall = math.sqrt(tall)
    D = min(far, L * (p.S + math.sqrt(vector_dot(hat, hat))))
    for _ in range(8):
        D = min(D, tall * stretch(kind, D, rho, level))
    inside = vector_dot(hat, hat) <= p.S * p.S
    lone = kind == CONVEX or (inside and tame(p.link, L * p.S) and D < 1.09 and tall * exp(0.5 * D) * rho < 1.22)
    return ThetaSet(kind, L, rho, level, floor, stretch(kind, D, rho, level), lone)


@routine
def enter_(p: Atoms, z: SetScratch, r: ThetaSet) -> bool:
    """Whether the region meets the ball, with a point of both in vec[CENTRE].

    If not, vec[CENTRE] replaces it: argmin over the ball of ‖g-b‖_{H⁻¹(θ)}, or of Loss for CONVEX.
    """
    theta, hat, centre = z.vec[THETA], z.vec[HAT], z.vec[CENTRE]
    copy_(hat, theta)
    copy_(hat, centre)
    if vector_dot(hat, hat) <= p.S * p.S:
        return True
    clip_(theta, p.S)
    for i in range(theta.size):
        z.vec[TILT, i] = 0.0
    least, bar = math.inf, r.level + r.floor if r.kind == CONVEX else 0.5 * r.rho * r.rho
    for turn in range(4):  # there may be more valleys: after the radial point, the argmin of Loss and the origin
        kind = int(LOSS) if r.kind == CONVEX or turn == 1 else int(LOCAL)
        value, _, _ = descend_(kind, p, z, 0.0, STEP)
        if turn != 1 and value < least:
            least = value
            copy_(theta, centre)
        if least <= bar or r.kind == CONVEX:
            break
        if turn == 0:
            copy_(hat, theta)
            clip_(theta, p.S)
        elif turn == 2:
            copy_(z.vec[ZERO], theta)
    return least <= bar


# ------------------------------------------------------------------------------------------ the convex set


@routine
def turn_(z: SetScratch, kappa: float) -> float:
    """vec[KEPT] = dθ/dτ of the tilted minimiser at H = mat[INFO], the ball held if κ > 0; e'dθ/dτ."""
    low, kept, spare = z.mat[LOW], z.vec[KEPT], z.vec[SPARE]
    secular_factor_(z.mat[INFO], kappa, low)
    copy_(z.vec[ARM], kept)
    secular_forward_(low, kept)
    if kappa > 0.0:
        copy_(z.vec[THETA], spare)
        square = secular_forward_(low, spare)
        share = vector_dot(spare, kept) / square
        for i in range(kept.size):
            kept[i] -= share * spare[i]
    rate = vector_dot(kept, kept)
    secular_backward_(low, kept)
    return rate


@routine
def tilt_(p: Atoms, z: SetScratch, r: ThetaSet) -> tuple[float, float]:
    """Most e'θ over the convex set in the ball, e = vec[ARM], where Se is outside the set; the residual.

    θ(τ) = argmin over the ball of Loss - τe'θ; Newton between brackets on √(Loss gap), which is nearly linear in τ.
    """
    e, theta, spare, kept, tilt = z.vec[ARM], z.vec[THETA], z.vec[SPARE], z.vec[KEPT], z.vec[TILT]
    d = e.size
    copy_(e, spare)
    tau = math.sqrt(2.0 * r.level / secular_forward_(z.mat[HAT_LOW], spare))
    secular_backward_(z.mat[HAT_LOW], spare)
    for i in range(d):
        theta[i] = z.vec[HAT, i] + tau * spare[i]
    clip_(theta, p.S)
    low, high, kappa, gap, miss = 0.0, math.inf, 0.0, 0.0, math.inf
    for _ in range(STEPS):
        for i in range(d):
            tilt[i] = tau * e[i]
        value, kappa, _ = descend_(int(LOSS), p, z, kappa, STEP)
        gap = value + vector_dot(tilt, theta) - r.floor
        if abs(gap - r.level) <= DONE * r.level or high - low <= 1e-15 * tau:
            break
        if gap > r.level:
            high = tau
        else:
            low = tau
        root, rate, last = math.sqrt(max(gap, 0.0)), turn_(z, kappa), miss
        miss = math.sqrt(r.level) - root
        new = tau + 2.0 * miss * root / (tau * rate) if rate > 0.0 else math.inf
        if not (new > low and new < high and abs(miss) <= 0.5 * last):  # where κ becomes positive, Newton may oscillate
            new = 0.5 * (low + high) if high < math.inf else min(10.0 * tau, max(new, 2.0 * tau))
        miss = abs(miss)
        new = min(max(new, 0.1 * tau), 10.0 * tau)
        for i in range(d):
            theta[i] += (new - tau) * kept[i]
        clip_(theta, p.S)
        tau = new
    worst = abs(gap - r.level) / r.level
    for i in range(d):
        worst = max(worst, abs(z.vec[GRAD, i] + kappa * theta[i]) / tau)
    return vector_dot(e, theta) + (r.level - gap) / tau, worst


# ------------------------------------------------------------------------------------------ bounds


@routine
def measure_(p: Atoms, z: SetScratch, r: ThetaSet, X: Floats, white: Floats, table: Floats) -> None:
    """The table's rows but VALUE, with BOUND = min(S‖x‖, x'θ̂ + radius·‖x‖_{H⁻¹(θ̂)}); white = low⁻¹X."""
    spare, low = z.vec[SPARE], z.mat[HAT_LOW]
    for a in range(X.shape[1]):
        mean, size = 0.0, 0.0
        for i in range(X.shape[0]):
            spare[i] = X[i, a]
            mean += X[i, a] * z.vec[HAT, i]
            size += X[i, a] * X[i, a]
        table[WIDTH, a] = math.sqrt(secular_forward_(low, spare))
        for i in range(X.shape[0]):
            white[i, a] = spare[i]
        table[SIZE, a] = math.sqrt(size)
        table[MEAN, a] = mean
        table[BOUND, a] = min(p.S * table[SIZE, a], mean + r.radius * table[WIDTH, a])


@routine
def touch_(p: Atoms, z: SetScratch, r: ThetaSet) -> float:
    """inf if Se is in the set, e = vec[ARM]; else a bound on e'θ over it, S at most. vec[THETA] = Se.

    CONVEX: the tangent of Loss at Se cuts the set off. EXACT: within δ of Se, ‖g-b‖_{H⁻¹} falls to no less than
    e^{-Lδ/2}(F - √tr(H)(e^{Lδ}-1)/L), and no point of the set is as near as the δ where that is ρ.
    """
    theta, e, gap = z.vec[THETA], z.vec[ARM], z.vec[GAP]
    S = p.S
    for i in range(e.size):
        theta[i] = S * e[i]
    loss = atoms_(p, z, theta, r.kind == CONVEX)
    if r.kind == CONVEX:
        excess = loss - r.floor - r.level
        if excess <= 0.0:
            return math.inf
        steep = math.sqrt(vector_dot(gap, gap))
        cosine = vector_dot(e, gap) / steep
        cap = max(cosine - excess / (steep * S), -1.0)
        return S * min(1.0, cosine * cap + math.sqrt(max(0.0, (1.0 - cosine * cosine) * (1.0 - cap * cap))))
    F = math.sqrt(back_(z))
    if F <= r.rho:
        return math.inf
    trace = 0.0
    for i in range(e.size):
        trace += z.mat[INFO, i, i]
    low, high = 0.0, 2.0 * S
    for _ in range(12):
        t = 0.5 * (low + high)
        y = exp(0.5 * r.L * t)
        if F - math.sqrt(trace) * (y * y - 1.0) / r.L > r.rho * y:
            low = t
        else:
            high = t
    return S - 0.5 * low * low / S


@routine
def sharpen_(p: Atoms, r: ThetaSet, X: Floats, white: Floats, table: Floats, stage: Floats, j: int) -> None:
    """Lower the bounds of open arms (VALUE, stage < 2) by what arm j's value and the earlier ones' say.

    The support function h is sublinear: h(x) ≤ c h(x_j) + h(x - c x_j), and h(x) ≤ c h(x_i) + c' h(x_j) for
    x = c x_i + c' x_j (d = 2), c, c' ≥ 0.
    """
    d, n = X.shape
    for a in range(n):
        if stage[a] >= 2.0:
            continue
        flat, tall = 0.0, 0.0
        for i in range(d):
            flat += X[i, a] * X[i, j]
            tall += white[i, a] * white[i, j]
        bound = math.inf
        if flat > 0.0:
            c = flat / (table[SIZE, j] * table[SIZE, j])
            rest = table[SIZE, a] * table[SIZE, a] - c * flat
            bound = c * table[VALUE, j] + p.S * math.sqrt(max(rest, 0.0))
        if tall > 0.0:
            c = tall / (table[WIDTH, j] * table[WIDTH, j])
            rest = table[WIDTH, a] * table[WIDTH, a] - c * tall
            far = table[MEAN, a] - c * table[MEAN, j] + r.radius * math.sqrt(max(rest, 0.0))
            bound = min(bound, c * table[VALUE, j] + far)
        if d == 2:
            for k in range(n):
                if stage[k] == 2.0 and k != j:
                    area = X[0, k] * X[1, j] - X[1, k] * X[0, j]
                    if abs(area) > 1e-6 * table[SIZE, k] * table[SIZE, j]:
                        c = (X[0, a] * X[1, j] - X[1, a] * X[0, j]) / area
                        e = (X[0, k] * X[1, a] - X[1, k] * X[0, a]) / area
                        if c >= 0.0 and e >= 0.0:
                            bound = min(bound, c * table[VALUE, k] + e * table[VALUE, j])
        table[VALUE, a] = min(table[VALUE, a], bound + SLACK * p.S * table[SIZE, a])


# ------------------------------------------------------------------------------------------ arms


@kernel
def optimist_(
    kind: int, p: Atoms, theta: Matrix, L: float, rho: float, X: Matrix, prune: bool, table: Matrix, centre: Vector,
    best: Vector,
) -> tuple[int, float, int, int, float, int, bool]:
    """The arm, a column of X (d, n), with the largest optimistic value, ties to the first; the θ that gives it in best.

    theta (lanes, d) is θ̂; table (COLUMNS, n) is filled, every VALUE exact unless prune. Returns arm, value x'θ, arms
    looked at, arms solved, worst residual, failures, and whether the set missed the ball: then it is replaced by the
    one point in centre (d,), which is otherwise some point of the set.
    """
    d, n = X.shape
    z = set_scratch(d, p.used)
    here, e = z.vec[THETA], z.vec[ARM]
    copy_(theta[p.lane], z.vec[HAT])
    r = region_(p, z, kind, L, rho)
    missed = not enter_(p, z, r)
    point_only = missed or not rho > 0.0  # at radius 0 the set is θ̂ alone
    copy_(z.vec[CENTRE], centre)
    copy_(z.vec[CENTRE], best)
    white = np.empty((d, n))
    measure_(p, z, r, X, white, table)
    arm, value, looked, solved, failures, residual = -1, -math.inf, 0, 0, 0, 0.0
    if point_only:
        for a in range(n):
            table[VALUE, a] = 0.0
            for i in range(d):
                table[VALUE, a] += X[i, a] * centre[i]
            if table[VALUE, a] > value:
                arm, value = a, table[VALUE, a]
        return arm, value, looked, solved, residual, failures, missed
    copy_(table[BOUND], table[VALUE])
    stage = np.zeros(n)  # 0 new, 1 touched, 2 solved, 3 failed
    rim = np.empty((2, 2 * RAYS))
    starts = np.empty((STARTS, d))
    scanned = r.lone or d != 2
    while True:
        a = n
        for k in range(n):
            if stage[k] < 2.0 and (a == n or table[VALUE, k] > table[VALUE, a]):
                a = k
        if a == n or (prune and (table[VALUE, a] < value or (table[VALUE, a] == value and a > arm))):
            return arm, value, looked, solved, residual, failures, missed
        size = table[SIZE, a]
        for i in range(d):
            e[i] = X[i, a] / size if size > 0.0 else 0.0
        if stage[a] == 0.0:
            copy_(centre, here)
            top = touch_(p, z, r) if size > 0.0 else math.inf
            looked += 1
            if top < math.inf:
                stage[a] = 1.0
                table[VALUE, a] = min(table[VALUE, a], size * top)
                continue
            found, worst = size * p.S, 0.0
        else:
            if not scanned:
                rim_(p, z, rho, rim)
                scanned = True
            found, worst = tilt_(p, z, r) if kind == CONVEX else farthest_(p, z, L, rho, r.lone, rim, starts)
            found *= size
            solved += 1
        table[VALUE, a] = found
        residual = max(residual, worst)
        if worst > FAILED:
            failures += 1
            stage[a] = 3.0
        else:
            stage[a] = 2.0
            if prune:
                sharpen_(p, r, X, white, table, stage, a)
        if found > value or (found == value and a < arm):
            arm, value = a, found
            copy_(here, best)
