"""argmin of ‖g(θ)-b‖_{H(θ)⁻¹} over {‖θ‖ ≤ S, |y_j'θ| ≤ limit_j}: the estimate of Logistic-UCB-2 (Faury et al. 2020).

A logarithmic barrier whose weight is lowered tenfold at a time, each time with Newton steps: 0 is always strictly
inside, so no feasible point must be searched, and the number of constraints hardly matters. It is compiled instead of
scipy's SLSQP, because it runs in every round in which θ̂ leaves the shrinking set, with one constraint per arm played.
"""

from __future__ import annotations

import math

from driftwise._internal.elementary import log
from driftwise.kernels import kernel, routine
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.point import Floats
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.secular import (
    BEST,
    GRAD,
    HAT,
    HESS,
    KEPT,
    LOW,
    SPARE,
    THETA,
    SetScratch,
    atoms_,
    back_,
    bend_,
    copy_,
    secular_backward_,
    secular_factor_,
    secular_forward_,
    set_scratch,
    vector_dot,
)

WEIGHTS = 10  # powers of ten the barrier's weight goes through
STEPS = 40
AWAY = 0.9  # of the way to the nearest wall: the start
TINY, HUGE = 1e-300, 1e300


@routine
def room(S: float, Y: Floats, limit: Floats, count: int, theta: Floats) -> float:
    """The largest t for which t·θ is in the set: ≥ 1 inside; inf at 0."""
    t = S / math.sqrt(vector_dot(theta, theta) + TINY)
    for j in range(count):
        y = 0.0
        for i in range(theta.size):
            y += Y[i, j] * theta[i]
        if limit[j] > 0.0:
            t = min(t, limit[j] / (abs(y) + TINY))
    return t


@routine
def walls(S: float, Y: Floats, limit: Floats, count: int, theta: Floats) -> float:
    """-log(1-‖θ‖²/S²) - Σ log(1-(y'θ/limit)²); inf outside. A slab of limit 0, that of the arm 0, is none."""
    t = 1.0 - vector_dot(theta, theta) / (S * S)
    if not t > 0.0:
        return math.inf
    total = -log(t)
    for j in range(count):
        if limit[j] > 0.0:
            y = 0.0
            for i in range(theta.size):
                y += Y[i, j] * theta[i]
            t = (1.0 - y / limit[j]) * (1.0 + y / limit[j])
            if not t > 0.0:
                return math.inf
            total -= log(t)
    return total


@routine
def walled_(p: Atoms, z: SetScratch, Y: Floats, limit: Floats, count: int, weight: float) -> float:
    """½f + weight·walls at vec[THETA], with gradient and Hessian."""
    theta, grad, hess = z.vec[THETA], z.vec[GRAD], z.mat[HESS]
    d = theta.size
    edge = walls(p.S, Y, limit, count, theta)
    if edge == math.inf:
        return math.inf
    atoms_(p, z, theta, p.used < 0)
    value = 0.5 * back_(z)
    bend_(p, z, grad, hess)
    left = p.S * p.S - vector_dot(theta, theta)
    for i in range(d):
        grad[i] += weight * 2.0 * theta[i] / left
        hess[i, i] += weight * 2.0 / left
        for j in range(d):
            hess[i, j] += weight * 4.0 * theta[i] * theta[j] / (left * left)
    for k in range(count):
        if limit[k] > 0.0:
            y = 0.0
            for i in range(d):
                y += Y[i, k] * theta[i]
            left = (limit[k] - y) * (limit[k] + y)
            pull = weight * 2.0 * y / left
            push = weight * (2.0 / left + 4.0 * y * y / (left * left))
            for i in range(d):
                grad[i] += pull * Y[i, k]
                for j in range(d):
                    hess[i, j] += push * Y[i, k] * Y[j, k]
    return value + weight * edge


@routine
def centre_(p: Atoms, z: SetScratch, Y: Floats, limit: Floats, count: int, weight: float) -> bool:
    """Newton on walled_ from vec[THETA], the step halved while it does not lower it."""
    theta, kept, move, grad = z.vec[THETA], z.vec[KEPT], z.vec[SPARE], z.vec[GRAD]
    hess, low = z.mat[HESS], z.mat[LOW]
    value = walled_(p, z, Y, limit, count, weight)
    for _ in range(STEPS):
        ridge = 0.0
        while not secular_factor_(hess, ridge, low):
            ridge = max(4.0 * ridge, 1e-3 * abs(hess[0, 0]), TINY)
            if not ridge < HUGE:  # a wall so near that its force is not finite
                return False
        for i in range(theta.size):
            move[i] = -grad[i]
        decrement = secular_forward_(low, move)
        secular_backward_(low, move)
        if decrement <= 1e-6 * weight:
            return True
        copy_(theta, kept)
        t, before = 1.0, value
        while True:
            for i in range(theta.size):
                theta[i] = kept[i] + t * move[i]
            value = walled_(p, z, Y, limit, count, weight)
            if value <= before - 1e-4 * t * decrement + 1e-15 * abs(before):
                break
            t *= 0.5
            if t < 1e-10:
                copy_(kept, theta)
                walled_(p, z, Y, limit, count, weight)
                return decrement <= 1e-2 * weight
    return False


@kernel
def narrow_(p: Atoms, theta: Matrix, Y: Matrix, limit: Vector, count: int, out: Vector) -> tuple[float, float, bool]:
    """out (d,) = the estimate; ‖g-b‖_{H⁻¹} there, how much of half its square may be missing, and success.

    Y (d, m), limit (m,): the first count columns are the slabs. θ̂ = theta[lane] itself if it is in the set, else the
    better of the barrier's ends from tθ̂ and from 0.
    """
    d = p.A.shape[0]
    z = set_scratch(d, p.used)
    here, hat, best = z.vec[THETA], z.vec[HAT], z.vec[BEST]
    copy_(theta[p.lane], hat)
    copy_(hat, out)
    near = room(p.S, Y, limit, count, hat)
    if near >= 1.0:
        return 0.0, 0.0, True
    least, slack, fine = math.inf, 0.0, False
    for start in range(2):
        for i in range(d):
            here[i] = AWAY * near * hat[i] if start == 0 else 0.0
        atoms_(p, z, here, p.used < 0)
        weight = 0.1 * back_(z) / (2.0 * (count + 1.0))
        good = True
        for _ in range(WEIGHTS):
            good = centre_(p, z, Y, limit, count, weight)
            weight *= 0.1
        atoms_(p, z, here, p.used < 0)
        value = 0.5 * back_(z)
        if value < least:
            least, slack, fine = value, 20.0 * (count + 1.0) * weight, good
            copy_(here, best)
    copy_(best, out)
    return math.sqrt(2.0 * least), slack, fine
