"""The nearest point of a ball in a quadratic norm: the projection if only θ̂ and its Hessian are known."""

from __future__ import annotations

import math

from driftwise.kernels import piece, routine
from driftwise.kernels.algebra import backward_, factor_, forward_, forward_one_
from driftwise.kernels.point import Floats

STEPS = 100


@piece
def length_of(theta: Floats, lane: int) -> float:
    """‖θ‖ of a lane."""
    square = 0.0
    for i in range(theta.shape[1]):
        square += theta[lane, i] * theta[lane, i]
    return math.sqrt(square)


@routine
def nearest_(Q: Floats, S: float, theta: Floats, lane: int, low: Floats, pivot: Floats, z: Floats, rhs: Floats) -> int:
    """theta[lane] <- argmin over ‖θ‖ ≤ S of (θ-θ̂)'Q[0](θ-θ̂), from θ̂ = theta[lane]; 0, or 2 if it does not converge.

    Outside the ball the answer is (Q+νI)⁻¹Qθ̂ with the ν > 0 that gives it norm S. Newton's method on 1/norm, which is
    nearly linear in ν, rises to that ν from 0 without overshooting (Moré and Sorensen 1983). rhs is (1, d) scratch.
    """
    d = theta.shape[1]
    square = 0.0
    for i in range(d):
        square += theta[lane, i] * theta[lane, i]
    if square <= S * S:
        return 0
    for i in range(d):
        rhs[0, i] = 0.0
    for i in range(d):
        for j in range(i + 1):
            rhs[0, i] += Q[0, i, j] * theta[lane, j]
            if j < i:
                rhs[0, j] += Q[0, i, j] * theta[lane, i]
    shift = 0.0
    status = 2
    for _ in range(STEPS):
        factor_(Q, 0, shift, low, pivot)
        forward_(low, pivot, rhs, 0, z)
        backward_(low, pivot, z)
        norm = 0.0
        for i in range(d):
            norm += z[i] * z[i]
        norm = math.sqrt(norm)
        if not norm < math.inf:
            return 2
        if norm <= S * (1.0 + 1e-14):
            status = 0
            break
        slope = 0.0  # ‖low⁻¹θ‖², which is -½ d‖θ‖²/dν
        forward_one_(low, pivot, z, lane, theta[lane])
        for i in range(d):
            slope += theta[lane, i] * theta[lane, i]
        step = (norm * norm / slope) * ((norm - S) / S)
        if step <= 1e-16 * shift:
            status = 0
            break
        shift += step
    if norm > 0.0:
        for i in range(d):
            theta[lane, i] = z[i] * (S / norm)
    return status
