"""The point of the ball ‖θ‖ ≤ S that best explains the data: argmin ‖g(θ) - b‖, in the norm of V⁻¹ or of H(θ)⁻¹.

g(θ) - b = reg·θ + Σ (w_a μ(x_a'θ) - s_a) x_a =: r is the gradient of newton.py, whose scratch these kernels take. Half
the squared norm has, with u = V⁻¹r (H⁻¹r), v_a = x_a'u and C = Σ w_a μ'' v_a x_a x_a',
    in V⁻¹:  gradient Hu, Hessian HV⁻¹H + C;
    in H⁻¹:  gradient r - Σ w_a μ'' v_a² x_a / 2, Hessian H - C + CH⁻¹C - Σ w_a μ''' v_a² x_a x_a' / 2.
The method is Newton's along the sphere: halved steps, then a shifted Hessian, until the value falls. In V⁻¹ nothing is
stationary inside the ball. In H⁻¹ there can be minima inside, and the least one can be (mostly at d = 1, S = 5, with
little ridge), so where the value falls inwards the sphere is left.

Local minima. In V⁻¹ the start on the ray of the estimate decides; other starts are used only after a failure or for
Poisson. In 170,000 made states (d ≤ 10, S ≤ 20, reg from 1e-8 to 10) this start missed the best of thirteen starts in 3
of 90,000 logistic states (separable, S = 20), 1 of 40,000 probit and 34 of 45,000 Poisson ones. At S ≤ 2 it missed only
for Poisson. In H⁻¹ the best of four starts is taken; it missed in 3, 21 and 18 of the same states.

secular.py minimises the same ‖g(θ) - b‖_{H(θ)⁻¹} over the ball for the set rules (its LOCAL). Both are kept: they agree
to 1e-6, not to the last bit, and the bits of choices are a promise.
"""

from __future__ import annotations

import math

from driftwise.kernels import routine
from driftwise.kernels.algebra import factor_definite_
from driftwise.kernels.cut import Matrix
from driftwise.kernels.links import one_valley, third
from driftwise.kernels.point import Floats
from driftwise.kernels.solvers.atoms import Atoms, along, linear_predictor_, spread
from driftwise.kernels.solvers.ball import length_of
from driftwise.kernels.solvers.newton import (
    BROKEN,
    CONVERGED,
    GRADIENT,
    UNFINISHED,
    NewtonScratch,
    gradient_hessian_,
    newton_backward_,
    newton_factor_,
    newton_forward_,
    residuals_,
)

TRIALS = 2000
CLOSE = 1e-11  # a step this short, relative to S, is the last
LITTLE = 1e-13  # a gain this small, relative to the value, cannot be distinguished from rounding
SHORTEST = 2.0**-12.0  # part of a step tried before the Hessian is shifted
STARTS = 4
GRID = 65

# Rows of P (GRADIENT is r = g(θ) - b), matrices of M.
POINT, TRIAL, DUAL, DOWN, MOVE, NORMAL, BEST, ESTIMATE = 3, 4, 5, 6, 7, 8, 9, 10
FACTOR, CURVE, WORK, HESSIAN = 0, 1, 2, 3


@routine
def value_(by_v: bool, p: Atoms, low: Floats, newton: NewtonScratch) -> float:
    """Half the squared norm of r at TRIAL; leaves r, H, the links' values and the factor of H behind."""
    d = p.A.shape[0]
    Z, P, M = newton.Z, newton.P, newton.M
    linear_predictor_(p, P, TRIAL, Z[0])
    residuals_(p, Z[0], Z[1], Z[2], Z[3])
    gradient_hessian_(p, P, TRIAL, Z[1], Z[2], P[GRADIENT], M[HESSIAN])
    u = P[DUAL]
    for i in range(d):
        u[i] = P[GRADIENT, i]
    if by_v:
        newton_forward_(low, d, u)
    else:
        if newton_factor_(M[HESSIAN], d, p.reg, M[FACTOR]) < 0:
            return math.inf
        newton_forward_(M[FACTOR], d, u)
    total = 0.0
    for i in range(d):
        total += u[i] * u[i]
    return 0.5 * total if total < math.inf else math.inf


@routine
def curvature_(by_v: bool, p: Atoms, low: Floats, newton: NewtonScratch) -> None:
    """Gradient into P[DOWN] and Hessian into M[CURVE], where value_ was last."""
    used, d = p.used, p.A.shape[0]
    Z, P, M = newton.Z, newton.P, newton.M
    h, e, v, t = Z[2], Z[3], Z[4], Z[5]
    H, B, W = M[HESSIAN], M[CURVE], M[WORK]
    newton_backward_(low if by_v else M[FACTOR], d, P[DUAL])
    linear_predictor_(p, P, DUAL, v)
    if by_v:
        for a in range(used):
            t[a] = e[a] * v[a]
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += (H[i, j] if j <= i else H[j, i]) * P[DUAL, j]
            P[DOWN, i] = total
    else:
        for a in range(used):
            t[a] = e[a] * v[a] * v[a]
        for i in range(d):
            P[DOWN, i] = P[GRADIENT, i] - 0.5 * along(p, i, t)
        for a in range(used):
            t[a] = e[a] * v[a]
    # Rows of W are the columns of H (by V) or of C, then the forward solutions, whose products are the middle term.
    for i in range(d):
        for j in range(i + 1):
            B[i, j] = spread(p, i, j, t)
            W[i, j] = H[i, j] if by_v else B[i, j]
            W[j, i] = W[i, j]
    for i in range(d):
        newton_forward_(low if by_v else M[FACTOR], d, W[i])
    if not by_v:
        for a in range(used):
            z = Z[0, a]
            t[a] = h[a] - e[a] * v[a]
            weight = p.w[p.lane, a]
            if weight != 0.0:
                t[a] -= 0.5 * weight * third(p.link, z) * v[a] * v[a]
    for i in range(d):
        for j in range(i + 1):
            total = B[i, j] if by_v else spread(p, i, j, t)
            for m in range(d):
                total += W[i, m] * W[j, m]
            B[i, j] = total
        if not by_v:
            B[i, i] += p.reg


@routine
def propose_(S: float, tangent: bool, pull: float, shift: float, newton: NewtonScratch) -> bool:
    """P[MOVE] <- the Newton step from POINT for a shifted Hessian, along the sphere or free, if there is one.

    On the sphere the Hessian is ∇² + pull·I, pull the multiplier, across θ; adding any multiple of θθ' leaves the
    step along it as it is and makes the factor exist.
    """
    P, M = newton.P, newton.M
    B, W = M[CURVE], M[WORK]
    x, p, n = P[POINT], P[MOVE], P[NORMAL]
    d = x.size
    size = 0.0
    for i in range(d):
        size += abs(B[i, i])
    for i in range(d):
        for j in range(i + 1):
            W[i, j] = B[i, j]
            if tangent:
                W[i, j] += (size + pull) * (x[i] / S) * (x[j] / S)
        W[i, i] += shift + (pull if tangent else 0.0)
    if factor_definite_(W, d, 0.0, M[FACTOR], M[FACTOR]) < 0:
        return False
    for i in range(d):
        p[i] = -P[DOWN, i]
    if tangent:
        for i in range(d):
            p[i] -= pull * x[i]
            n[i] = x[i]
    newton_forward_(M[FACTOR], d, p)
    newton_backward_(M[FACTOR], d, p)
    if tangent:
        newton_forward_(M[FACTOR], d, n)
        newton_backward_(M[FACTOR], d, n)
        above, below = 0.0, 0.0
        for i in range(d):
            above += x[i] * p[i]
            below += x[i] * n[i]
        for i in range(d):
            p[i] -= (above / below) * n[i]
    norm = length_of(P, MOVE)
    if not norm < math.inf:
        return False
    if norm > 2.0 * S:  # no two points of the ball are further apart
        for i in range(d):
            p[i] *= 2.0 * S / norm
    return True


@routine
def retract_(S: float, tangent: bool, alpha: float, P: Floats) -> None:
    """P[TRIAL] <- POINT + α MOVE, brought back to the sphere, or into the ball when the move is free."""
    d = P.shape[1]
    for i in range(d):
        P[TRIAL, i] = P[POINT, i] + alpha * P[MOVE, i]
    norm = length_of(P, TRIAL)
    if tangent or norm > S:
        for i in range(d):
            P[TRIAL, i] = S * (P[TRIAL, i] / norm)


@routine
def settle_(by_v: bool, p: Atoms, low: Floats, newton: NewtonScratch) -> tuple[int, float]:
    """Down from TRIAL, a point of the ball, to a local minimum over the ball, left in POINT; status and value.

    One trial per iteration, so that each piece is called once: every further call costs seconds of compilation.
    """
    S, d = p.S, p.A.shape[0]
    P, M = newton.P, newton.M
    value, alpha, shift, kept, scale, pull, slope, promise = math.inf, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf
    tangent, fresh, last = False, False, False
    for _ in range(TRIALS):
        after = value_(by_v, p, low, newton)
        falls = after < value and after <= value + 1e-4 * slope
        renew = falls
        if falls or (last and after <= value + LITTLE * value):
            kept = 0.125 * shift
            shift = 0.0 if after <= value + 0.3 * slope else kept  # half the slope is what a parabola gains
            value = after
            for i in range(d):
                P[POINT, i] = P[TRIAL, i]
        if last:
            return CONVERGED, value
        if falls:
            curvature_(by_v, p, low, newton)
            pull, scale = 0.0, 0.0
            for i in range(d):
                pull -= P[DOWN, i] * P[POINT, i] / (S * S)
                scale += abs(M[CURVE, i, i])
            tangent = length_of(P, POINT) >= S * (1.0 - 1e-13) and pull >= 0.0
            if tangent and d == 1:
                return CONVERGED, value
            scale = (scale + abs(pull)) / d + 1e-300
            alpha, fresh = 1.0, True
        elif not value < math.inf:
            return BROKEN, value
        else:
            alpha *= 0.5
            fresh = False
            if alpha < SHORTEST:
                alpha, renew = 1.0, True
                shift = max(8.0 * shift, kept, 1e-12 * scale)
        while renew and not propose_(S, tangent, pull, shift, newton):
            if not shift < 1e12 * scale:
                return ending(value, promise), value
            shift = max(8.0 * shift, kept, 1e-12 * scale)
        retract_(S, tangent, alpha, P)
        length, slope = 0.0, 0.0
        for i in range(d):
            step = P[TRIAL, i] - P[POINT, i]
            length += step * step
            slope += P[DOWN, i] * (alpha * P[MOVE, i] if tangent else step)
        if fresh and shift == 0.0:
            promise = -0.5 * slope
        # A Newton step whose gain is lost in rounding is still right, and is the last one.
        last = fresh and (math.sqrt(length) <= CLOSE * S or abs(slope) <= LITTLE * value)
    return ending(value, promise), value


@routine
def ending(value: float, promise: float) -> int:
    """Whether a further step would, by the last Newton model, have lowered the norm by more than a millionth."""
    norm = math.sqrt(2.0 * value)
    return CONVERGED if norm - math.sqrt(max(0.0, 2.0 * (value - promise))) <= 1e-6 * max(1.0, norm) else UNFINISHED


@routine
def begin_(start: int, by_v: bool, p: Atoms, low: Floats, newton: NewtonScratch) -> None:
    """TRIAL <- where to start: on the ray of the estimate, at 0, opposite, or at the best corner.

    The corners are ±S e_i, and at d = 1 a grid. The estimate itself is in P[ESTIMATE].
    """
    S, d, P = p.S, p.A.shape[0], newton.P
    norm = length_of(P, ESTIMATE)
    for i in range(d):
        P[TRIAL, i] = (1.0 - start) * S * (P[ESTIMATE, i] / norm) if start < 3 else 0.0
    if start == 3:
        least, best, there = math.inf, 0, S
        for n in range(GRID if d == 1 else 2 * d):
            place = 0 if d == 1 else n // 2
            P[TRIAL, place] = S * ((2.0 * n) / (GRID - 1.0) - 1.0) if d == 1 else S * (1.0 - 2.0 * (n % 2))
            value = value_(by_v, p, low, newton)
            if value < least:
                least, best, there = value, place, P[TRIAL, place]
            P[TRIAL, place] = 0.0
        P[TRIAL, best] = there


@routine
def project_(by_v: bool, p: Atoms, low: Matrix, theta: Matrix, newton: NewtonScratch) -> tuple[int, float]:
    """theta[lane], the estimate, <- argmin over the S-ball of ‖g(θ) - b‖; status (newton.py's) and that norm.

    In V⁻¹, low low' = V, or in H(θ)⁻¹, which does not read low. Inside the ball the estimate stays, at norm 0, as it
    does after a failure. The best that the starts of begin_ lead to is taken, for V⁻¹ mostly the first that converges.
    """
    k, d = p.lane, p.A.shape[0]
    P = newton.P
    if length_of(theta, k) <= p.S:
        return CONVERGED, 0.0
    for i in range(d):
        P[ESTIMATE, i] = theta[k, i]
    status, least = BROKEN, math.inf
    for start in range(STARTS):
        begin_(start, by_v, p, low, newton)
        found, value = settle_(by_v, p, low, newton)
        if value < least - 1e-9 * least or (status == BROKEN and value < math.inf):  # among equals the first
            status, least = found, value
            for i in range(d):
                P[BEST, i] = P[POINT, i]
        if by_v and one_valley(p.link) and found == CONVERGED:
            break
    for i in range(d):
        theta[k, i] = P[ESTIMATE, i] if status == BROKEN else P[BEST, i]
    return status, math.sqrt(2.0 * least)
