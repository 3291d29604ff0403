"""The plain index over the unit ball by a tridiagonal form: a fast method, with the eigenbasis as fallback.

Reflections bring θ to the first coordinate and A to three diagonals. There g(η) = θ'(ηI - A)⁻¹θ is a continued
fraction. Its pivots are all positive if η is above every eigenvalue, and so are its slopes. The η wanted has Σ m c²/(η
- m)² = -ηg' - g = w², and √(η(w² + g)) is an upper bound of the index (ball.py). In the hard case, if θ has almost no
part along the direction that is known least, η is so close to the largest eigenvalue that rounding decides: then the
index of the point found misses that bound, and the caller uses the eigenbasis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import routine
from driftwise.kernels.point import ONLY, Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.index_form import FOUND, SHIFT, THETA, TOP, WEIGHT, IndexForm
from driftwise.kernels.solvers.eigen import normal_, reflect_, reflect_both_, tridiagonalise_

# The steps of the search for the root, and the share of the index by which the point found may miss its bound.
STEPS, MISS = 25, 1e-14

# The rows of vec here: the off-diagonal, its squares, the normal that brings θ to its first coordinate, 2/‖normal‖² of
# the others, and 1/pivots.
BESIDE, SQUARED, NORMAL, HALVES, PIVOTS = page.FIRST, page.SECOND, page.THIRD, page.FIFTH, page.FOURTH


class Slopes(NamedTuple):
    """At η: g and two slopes of it, Σc²/(η - m)² and 2Σc²/(η - m)³; Σ1/(η - m) and Σ1/(η - m)²."""

    g: float
    fall: float
    bend: float
    first: float
    second: float


@routine
def slopes_at(vec: Floats, T: Floats, square: float, eta: float) -> Slopes:
    """All of them by the pivots of ηI - T from its end and their slopes; g = 0 if η is not above T's eigenvalues.

    The first pivot is ‖θ‖²/g, and their product the characteristic polynomial.
    """
    d = T.shape[0]
    pivot, rise, turn, first, second = eta - T[d - 1, d - 1], 1.0, 0.0, 0.0, 0.0
    r, t = 0.0, 0.0
    for k in range(d - 1, -1, -1):
        if not pivot > 0.0:
            return Slopes(0.0, 0.0, 0.0, 0.0, 0.0)
        r = 1.0 / pivot
        t = rise * r
        first += t
        second += t * t - turn * r
        if k > 0:
            q = vec[SQUARED, k - 1] * r
            pivot = eta - T[k - 1, k - 1] - q
            turn = q * r * (turn - 2.0 * t * rise)
            rise = 1.0 + q * t
    g = square * r
    return Slopes(g, g * t, g * r * (2.0 * t * rise - turn), first, second)


@routine
def level_of(vec: Floats, T: Floats, square: float, w: float) -> float:
    """η, by Newton's method on 1/√(Σ m c²/(η - m)²), which rises to it from below; 0 if it is not found in time.

    From above it may step below the largest eigenvalue; Laguerre's step for that one never does, and is taken then.
    """
    d = T.shape[0]
    reach = math.sqrt(square * T[0, 0]) / w  # the largest distance of η from the eigenvalues
    # Jensen: the mean eigenvalue, weighed by m c², and reach on top of it, lie below η
    eta = T[0, 0] + vec[SQUARED, 0] / T[0, 0] + reach
    for step in range(STEPS):
        at = slopes_at(vec, T, square, eta)
        if not at.g > 0.0:
            if step > 0:
                return 0.0
            eta = reach  # below the eigenvalues; by Gershgorin's circles this is above them
            for i in range(d):
                eta = max(eta, T[i, i] + abs(vec[BESIDE, i]) + (abs(vec[BESIDE, i - 1]) if i > 0 else 0.0))
            eta *= 1.0 + 1e-15
            continue
        norm, steep = eta * at.fall - at.g, eta * at.bend - 2.0 * at.fall
        if not steep > 0.0:  # only rounding is left
            return 0.0
        following = eta + 2.0 * norm / steep * (math.sqrt(max(norm, 0.0)) / w - 1.0)
        down = d / (at.first + math.sqrt(max((d - 1.0) * (d * at.second - at.first * at.first), 0.0)))
        if abs(following - eta) <= 1e-9 * down + 4e-16 * eta:
            return float(following)
        eta = max(following, eta - down)
    return 0.0


@routine
def meet_(form: IndexForm, eta: float, length: float) -> tuple[float, float]:
    """vec[FOUND] = y ∝ (ηI - T)⁻¹ (±1, 0, …), of norm 1; returns the bound of η, infinite if there is none, and the
    index of y."""
    vec, T, w, d = form.vec, form.work, form.numbers[WEIGHT], form.vec.shape[1]
    pivot = eta - T[d - 1, d - 1]
    for k in range(d - 1, -1, -1):
        if not pivot > 0.0:
            return math.inf, 0.0
        vec[PIVOTS, k] = 1.0 / pivot
        if k > 0:
            pivot = eta - T[k - 1, k - 1] - vec[SQUARED, k - 1] * vec[PIVOTS, k]
    y, total, square = 1.0 if length > 0.0 else -1.0, 0.0, 0.0
    for k in range(d):
        vec[FOUND, k] = y
        total += y * y
        square += T[k, k] * y * y
        if k < d - 1:
            following = y * vec[BESIDE, k] * vec[PIVOTS, k + 1]
            square += 2.0 * vec[BESIDE, k] * y * following
            y = following
    scale = 1.0 / math.sqrt(total)
    for k in range(d):
        vec[FOUND, k] *= scale
    value = (abs(length) + w * math.sqrt(max(square, 0.0))) * scale
    return math.sqrt(eta * (w * w + length * length / pivot)), value


@routine
def tridiagonal_summit_(form: IndexForm) -> bool:
    """vec[FOUND] = the y of largest c'y + w√(y'Ay), w > 0, numbers[TOP] the bound; False if they do not meet."""
    vec, T, numbers, d = form.vec, form.work, form.numbers, form.vec.shape[1]
    w = numbers[WEIGHT]
    for i in range(d):
        vec[NORMAL, i] = vec[THETA, i]
        for j in range(d):
            T[i, j] = form.A[i, j]
    first = int(ONLY)
    length, half = normal_(vec, int(NORMAL), first)
    if half != 0.0:
        reflect_both_(T, vec, int(NORMAL), first, half, vec[BESIDE])
    if not (abs(length) > 0.0 and T[0, 0] > 0.0):
        return False
    tridiagonalise_(T, vec[HALVES], vec[BESIDE])
    for i in range(d):
        vec[SQUARED, i] = vec[BESIDE, i] * vec[BESIDE, i]
    eta = level_of(vec, T, length * length, w)
    if not eta > 0.0:
        return False
    top, value = meet_(form, eta, length)
    if not abs(top - value) <= MISS * value:
        return False
    numbers[TOP] = numbers[SHIFT] + top
    for k in range(d - 3, -1, -1):
        reflect_(T, k, k + 1, vec[HALVES, k], vec, int(FOUND))
    if half != 0.0:
        reflect_(vec, int(NORMAL), first, half, vec, int(FOUND))
    return True
