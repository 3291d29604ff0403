"""Smooth programs over the ball ‖θ‖ ≤ S: Newton steps whose quadratic model is minimised in the ball itself.

N(θ) = g(θ) - b = reg·θ + Σ (w_a μ(x_a'θ) - s_a) x_a over the atoms of one lane, H(θ) its derivative. A solver writes
only to a `SetScratch`, whose rows and layers have the names below. Objectives are flags, because a function argument
would defeat the cache of compiled code; a constant that is passed as an argument is wrapped in int(), or numba would
compile the callee again for every constant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftwise._internal.elementary import exp, log1p
from driftwise.kernels import formula, part, routine
from driftwise.kernels.algebra import (
    backward_divided_,
    divide_divided_,
    factor_shifted_,
    forward_divided_,
    multiply_,
    multiply_turned_lower_,
)
from driftwise.kernels.links import LOGISTIC, area, curve, mean, slope, third
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import carved_from
from driftwise.kernels.solvers.atoms import Atoms, along, spread

# Objectives: Loss - tilt'θ; ½‖N‖² in a fixed metric; ½‖N‖² in H(θ)⁻¹; ½(distance from -N to BVD's ellipsoid)²; the
# augmented Lagrangian of: most tilt'θ subject to ‖N‖_{H(θ)⁻¹} ≤ ρ.
LOSS, FIXED, LOCAL, ELLIPSOID, AUGMENTED = 0, 1, 2, 3, 4

# Rows of vec. THETA and GRAD have two places, so that a refused step costs nothing. The rows from HAT on belong to the
# caller.
HERE = 0
THETA, GRAD, GAP, BACK, TILT, SPARE, ETA, PULL, ZERO = 0, 2, 4, 5, 6, 7, 8, 9, 10
HAT, CENTRE, ARM, KEPT, BEST = 11, 12, 13, 14, 15
VECTORS = 16
# Layers of mat. HESS has two places; METRIC, ROOT, INNER are what FIXED and ELLIPSOID measure by; HAT_LOW a caller's.
HESS, LOW, INFO, BEND, CROSS, METRIC, ROOT, INNER, HAT_LOW = 0, 2, 3, 4, 5, 6, 7, 8, 9
MATRICES = 10
# Rows of work: w μ', w μ'', w μ''' and something along each atom.
SLOPE, CURVE, THIRD, ALONG = 0, 1, 2, 3
ROWS = 4
# AUGMENTED's radius ρ, multiplier, penalty.
RHO, MULTIPLIER, PENALTY = 0, 1, 2
NUMBERS = 3

STEPS = 60
STEP = 1e-10
ROUNDING = 1e-14


class SetScratch(NamedTuple):
    """Scratch, which must be 0 at first: not every triangle is written before it is read."""

    vec: Floats
    mat: Floats
    work: Floats
    number: Floats
    kkt: Floats


@formula
def set_shapes(
    d: int, used: int
) -> tuple[tuple[int, int], tuple[int, int, int], tuple[int, int], tuple[int], tuple[int, int]]:
    """The shapes of its fields."""
    return (VECTORS, d), (MATRICES, d, d), (ROWS, used), (NUMBERS,), (d + 2, d + 3)


set_scratch_size, set_scratch_of = carved_from(SetScratch, set_shapes)


@formula
def set_scratch(d: int, used: int) -> SetScratch:
    """Scratch in arrays of its own."""
    vec, mat, work, number, kkt = set_shapes(d, used)
    return SetScratch(np.zeros(vec), np.zeros(mat), np.zeros(work), np.zeros(number), np.zeros(kkt))


# ------------------------------------------------------------------------------------------ small linear algebra


@routine
def vector_dot(u: Floats, v: Floats) -> float:
    """u'v."""
    total = 0.0
    for i in range(v.size):
        total += u[i] * v[i]
    return total


@routine
def secular_factor_(M: Floats, ridge: float, low: Floats) -> bool:
    """low low' = M + ridge·I, lower triangle; False where that is not positive definite."""
    return bool(factor_shifted_(M, M.shape[0], ridge, low, low) >= 0)


@routine
def secular_forward_(low: Floats, v: Floats) -> float:
    """v <- low⁻¹ v; its squared length."""
    forward_divided_(low, low, v, v.size, v)
    return vector_dot(v, v)


@routine
def secular_backward_(low: Floats, v: Floats) -> None:
    """v <- low⁻ᵀ v."""
    backward_divided_(low, low, v)


@routine
def secular_divide_(low: Floats, M: Floats, to: Floats) -> None:
    """to = low⁻¹ M; to may be M."""
    divide_divided_(low, low, M, to)


@routine
def times_(M: Floats, v: Floats, to: Floats) -> None:
    """to = M v."""
    for i in range(v.size):
        t = 0.0
        for j in range(v.size):
            t += M[i, j] * v[j]
        to[i] = t


@routine
def copy_(v: Floats, to: Floats) -> None:
    """to = v."""
    for i in range(v.size):
        to[i] = v[i]


@routine
def clip_(v: Floats, S: float) -> None:
    """v <- the radial point of the ball."""
    size = math.sqrt(vector_dot(v, v))
    if size > S:
        for i in range(v.size):
            v[i] *= S / size


# ------------------------------------------------------------------------------------------ the model in the ball


@routine
def model_(
    M: Floats, ridge: float, grad: Floats, at: Floats, S: float, kappa: float, low: Floats, spare: Floats, to: Floats
) -> float:
    """to = argmin over ‖y‖ ≤ S of grad'(y-θ) + ½(y-θ)'(M+ridge·I)(y-θ), θ = at; the multiplier κ of the ball.

    κ solves the secular equation ‖y(κ)‖ = S: Newton on 1/‖y‖ between brackets, from the κ given.
    """
    d = at.size
    under, over = -1.0, math.inf  # κ lies between; under = -1 as long as κ = 0 may be the answer
    for _ in range(STEPS):
        if secular_factor_(M, ridge + kappa, low):
            for i in range(d):
                to[i] = -grad[i] - kappa * at[i]
            secular_forward_(low, to)
            secular_backward_(low, to)
            for i in range(d):
                to[i] += at[i]
            size = math.sqrt(vector_dot(to, to))
            if abs(size - S) <= ROUNDING * S or (size < S and kappa == 0.0):
                break
            if size > S:
                under = kappa
            else:
                over = kappa
            copy_(to, spare)
            kappa += (size - S) / S * size * size / secular_forward_(low, spare)
        else:
            under = kappa
            kappa = max(4.0 * kappa, 1e-3 * (abs(M[0, 0]) + math.sqrt(vector_dot(grad, grad)) / S))
        if not kappa > max(under, 0.0):
            kappa = 0.0 if under < 0.0 else 0.5 * (under + over)
        elif not kappa < over:
            kappa = 0.5 * (max(under, 0.0) + over)
        if over < math.inf and over - under <= 4e-16 * over:
            break
    size = math.sqrt(vector_dot(to, to))
    if kappa > 0.0 and size > (1.0 - 1e-9) * S:
        for i in range(d):
            to[i] *= S / size
    return kappa


# ------------------------------------------------------------------------------------------ sums over the atoms


@routine
def along_(p: Atoms, v: Floats, out: Floats) -> None:
    """out[a] = x_a'v."""
    A = p.A
    t = v[0]
    for a in range(p.used):
        out[a] = A[0, a] * t
    for i in range(1, v.size):
        t = v[i]
        for a in range(p.used):
            out[a] += A[i, a] * t


@routine
def gather_(p: Atoms, c: Floats, out: Floats) -> None:
    """out += Σ c_a x_a."""
    for i in range(out.size):
        out[i] += along(p, i, c)


@routine
def spread_(p: Atoms, c: Floats, reg: float, M: Floats) -> None:
    """M = reg·I + Σ c_a x_a x_a', both triangles."""
    for i in range(M.shape[0]):
        for j in range(i + 1):
            t = spread(p, i, j, c)
            M[i, j] = t
            M[j, i] = t
        M[i, i] += reg


@routine
def atoms_(p: Atoms, z: SetScratch, theta: Floats, weigh: bool) -> float:
    """N in vec[GAP], H in mat[INFO], w μ', w μ'', w μ''' in work; Loss, without the atoms' part unless weigh.

    Near 1, μ enters as (w - s) - w(1 - μ): for an atom with only rewards of 1 no digit is lost.
    """
    w, s, work, gap = p.w, p.s, z.work, z.vec[GAP]
    link, lane = p.link, p.lane
    residual = work[ALONG]
    along_(p, theta, residual)
    loss = 0.0
    for a in range(p.used):
        y, n, r = residual[a], w[lane, a], s[lane, a]
        if link == LOGISTIC:
            e = exp(-abs(y))
            t = 1.0 / (1.0 + e)
            tail = n * e * t
            bend = tail * t * t * (1.0 - e)
            residual[a] = (n - r) - tail if y > 0.0 else tail - r
            work[SLOPE, a] = tail * t
            work[CURVE, a] = -bend if y > 0.0 else bend
            work[THIRD, a] = tail * t * (1.0 - 6.0 * e * t * t)
            if weigh:
                loss += n * (max(y, 0.0) + log1p(e)) - r * y
        else:
            residual[a] = n * mean(link, y) - r
            work[SLOPE, a] = n * slope(link, y)
            work[CURVE, a] = n * curve(link, y)
            work[THIRD, a] = n * third(link, y)
            if weigh:
                loss += n * area(link, y) - r * y
    for i in range(theta.size):
        gap[i] = p.reg * theta[i]
        loss += 0.5 * gap[i] * theta[i]
    gather_(p, residual, gap)
    spread_(p, work[SLOPE], p.reg, z.mat[INFO])
    return loss


@routine
def back_(z: SetScratch) -> float:
    """vec[BACK] = v = H⁻¹N, and f = ‖N‖²_{H⁻¹}; mat[LOW] is the factor of H."""
    low, v = z.mat[LOW], z.vec[BACK]
    secular_factor_(z.mat[INFO], 0.0, low)
    copy_(z.vec[GAP], v)
    f = secular_forward_(low, v)
    secular_backward_(low, v)
    return f


@routine
def bend_(p: Atoms, z: SetScratch, grad: Floats, hess: Floats) -> None:
    """Half of f's gradient and Hessian, after back_: N - ½Σ w μ''(x'v)² x and H - K + K H⁻¹ K - ½T.

    v = H⁻¹N, K = Σ w μ''(x'v) x x', T = Σ w μ'''(x'v)² x x'.
    """
    work, mat, cross = z.work, z.mat, z.mat[CROSS]
    d = grad.size
    along = work[ALONG]
    along_(p, z.vec[BACK], along)
    for a in range(p.used):
        y = along[a]
        work[CURVE, a] *= y
        work[THIRD, a] *= -0.5 * y * y
        along[a] = -0.5 * work[CURVE, a] * y
    copy_(z.vec[GAP], grad)
    gather_(p, along, grad)
    spread_(p, work[CURVE], 0.0, mat[BEND])
    spread_(p, work[THIRD], 0.0, hess)
    secular_divide_(mat[LOW], mat[BEND], cross)
    for i in range(d):
        for j in range(d):
            t = mat[INFO, i, j] - mat[BEND, i, j]
            for k in range(d):
                t += cross[k, i] * cross[k, j]
            hess[i, j] += t


# ------------------------------------------------------------------------------------------ objectives


@part
def toward_(z: SetScratch) -> float:
    """½‖N+Rη‖²_B at its least over ‖η‖ ≤ 1; vec[PULL] = B(N+Rη), mat[BEND] = its derivative in N, vec[ETA] = η.

    B = mat[METRIC], R = mat[ROOT] lower triangular, mat[INNER] = R'BR; η by the secular equation of model_.
    """
    vec, mat = z.vec, z.mat
    back, pull, eta, spare = vec[BACK], vec[PULL], vec[ETA], vec[SPARE]
    B, R, inner, low, cross = mat[METRIC], mat[ROOT], mat[INNER], mat[LOW], mat[CROSS]
    d = eta.size
    times_(B, vec[GAP], back)
    for i in range(d):
        t = 0.0
        for j in range(i, d):
            t += R[j, i] * back[j]
        pull[i] = t
    kappa = model_(inner, 0.0, pull, vec[ZERO], 1.0, 0.0, low, spare, eta)
    secular_factor_(inner, kappa, low)
    times_(R, eta, back)
    for i in range(d):
        back[i] += vec[GAP, i]
    times_(B, back, pull)
    value = 0.5 * vector_dot(pull, back)
    multiply_turned_lower_(R, B, cross)
    secular_divide_(low, cross, cross)
    copy_(eta, spare)
    length = secular_forward_(low, spare) if kappa > 0.0 else math.inf
    for i in range(d):
        t = 0.0
        for k in range(d):
            t += cross[k, i] * spare[k]
        back[i] = t
    for i in range(d):
        for j in range(d):
            t = B[i, j] + back[i] * back[j] / length
            for k in range(d):
                t -= cross[k, i] * cross[k, j]
            mat[BEND, i, j] = t
    return value


@routine
def sandwich_(p: Atoms, z: SetScratch, M: Floats, grad: Floats, hess: Floats) -> None:
    """grad = H u and hess = H M H + Σ w μ''(x'u) x x', u = vec[PULL]."""
    work, info, cross, u = z.work, z.mat[INFO], z.mat[CROSS], z.vec[PULL]
    d = grad.size
    along_(p, u, work[ALONG])
    for a in range(p.used):
        work[CURVE, a] *= work[ALONG, a]
    spread_(p, work[CURVE], 0.0, hess)
    times_(info, u, grad)
    multiply_(info, M, cross)
    for i in range(d):
        for j in range(d):
            for k in range(d):
                hess[i, j] += cross[i, k] * info[k, j]


@part
def augment_(p: Atoms, z: SetScratch, theta: Floats, grad: Floats, hess: Floats) -> float:
    """The augmented Lagrangian: -tilt'θ + (λ²-ν²)/(2π), λ = max(0, ν + π(‖N‖_{H⁻¹} - ρ)); ν multiplier, π penalty."""
    tilt = z.vec[TILT]
    d = theta.size
    nu, penalty = float(z.number[MULTIPLIER]), float(z.number[PENALTY])
    f = back_(z)
    length = math.sqrt(f)
    force = max(0.0, nu + penalty * (length - float(z.number[RHO])))
    if force > 0.0:
        bend_(p, z, grad, hess)
        pull = force / length
        inward = (penalty - pull) / f
        for i in range(d):
            for j in range(d):
                hess[i, j] = pull * hess[i, j] + inward * grad[i] * grad[j]
        for i in range(d):
            grad[i] = pull * grad[i] - tilt[i]
    else:
        for i in range(d):
            grad[i] = -tilt[i]
            for j in range(d):
                hess[i, j] = 0.0
    return 0.5 * (force - nu) * (force + nu) / penalty - vector_dot(tilt, theta)


@routine
def evaluate_(kind: int, p: Atoms, z: SetScratch, side: int) -> float:
    """The objective at vec[THETA+side], its gradient in vec[GRAD+side], its Hessian in mat[HESS+side]."""
    vec, mat = z.vec, z.mat
    theta, grad, hess = vec[THETA + side], vec[GRAD + side], mat[HESS + side]
    value = atoms_(p, z, theta, kind == LOSS)
    if kind == LOSS:
        for i in range(theta.size):
            grad[i] = vec[GAP, i] - vec[TILT, i]
            for j in range(theta.size):
                hess[i, j] = mat[INFO, i, j]
        value -= vector_dot(vec[TILT], theta)
    elif kind == LOCAL:
        value = 0.5 * back_(z)
        bend_(p, z, grad, hess)
    elif kind == AUGMENTED:
        value = augment_(p, z, theta, grad, hess)
    elif kind == FIXED:
        times_(mat[METRIC], vec[GAP], vec[PULL])
        value = 0.5 * vector_dot(vec[PULL], vec[GAP])
        sandwich_(p, z, mat[METRIC], grad, hess)
    else:
        value = toward_(z)
        sandwich_(p, z, mat[BEND], grad, hess)
    return value


@routine
def descend_(kind: int, p: Atoms, z: SetScratch, kappa: float, tolerance: float) -> tuple[float, float, float]:
    """A local minimum over the ball from vec[THETA], left there: its value, the ball's multiplier, the last step.

    A step that does not lower the objective as predicted is repeated with a ridge added to the Hessian. The last step,
    at most tolerance·(1+‖θ‖) on success, is taken without evaluating the objective again.
    """
    vec, mat, move = z.vec, z.mat, z.vec[SPARE]
    d = move.size
    side = int(HERE)
    value = evaluate_(kind, p, z, side)
    ridge, step = 0.0, math.inf
    for _ in range(STEPS):
        other = 1 - side
        theta, grad, hess, new = vec[THETA + side], vec[GRAD + side], mat[HESS + side], vec[THETA + other]
        kappa = model_(hess, ridge, grad, theta, p.S, kappa, mat[LOW], move, new)
        for i in range(d):
            move[i] = new[i] - theta[i]
        square = vector_dot(move, move)
        downhill = vector_dot(move, grad)
        step = math.sqrt(square)
        if step <= tolerance * (1.0 + math.sqrt(vector_dot(theta, theta))):
            copy_(new, theta)
            break
        foreseen = downhill
        for i in range(d):
            for j in range(d):
                foreseen += 0.5 * move[i] * hess[i, j] * move[j]
        found = evaluate_(kind, p, z, other)
        if found <= value + 1e-4 * min(foreseen, 0.0) + ROUNDING * (abs(value) + abs(found)):
            value = found
            side = other
            ridge = 0.1 * ridge if ridge > 1e-6 * abs(hess[0, 0]) else 0.0
        else:
            ridge = max(8.0 * ridge, 1e-2 * abs(hess[0, 0]), -2.0 * downhill / square)
    copy_(vec[THETA + side], vec[THETA])
    copy_(vec[GRAD + side], vec[GRAD])
    return value, kappa, step
