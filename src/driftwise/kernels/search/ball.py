"""The largest index over a ball or an ellipsoid, with a proof: each search returns an upper bound of all points."""

from __future__ import annotations

import math

from driftwise.kernels import entry, piece, routine
from driftwise.kernels.algebra import multiply_lower_, multiply_turned_lower_
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.point import Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.basis import (
    ALONG,
    GAPS,
    HALVINGS,
    TILTED,
    TURNED,
    VALUES,
    along_theta_,
    eigenbasis_,
    from_basis_,
    largest_eigenvalue,
    nudge_,
    place_,
    row_dot,
    shift_of,
)
from driftwise.kernels.search.index_form import (
    FOUND,
    SHIFT,
    THETA,
    TILT,
    TOP,
    WEIGHT,
    IndexForm,
    index_form_of,
    square_at,
    value_at,
)
from driftwise.kernels.search.sums import sum_summit_
from driftwise.kernels.search.tridiagonal import tridiagonal_summit_


@routine
def plain_summit_(form: IndexForm) -> bool:
    """The largest c'y + w√(y'Ay): Σ m c²/(δ + gap)² = w² (with V = A⁻¹, the Σ λc²/(νλ - 1)² = β² of docs/sets.md).

    It is the length of the longest u with (u - θ)'A⁻¹(u - θ) ≤ w²; for every η > M that is at most
    √(η(w² + Σ c²/(η - m))), which is the bound, and equal to it at the η found. False without eigenvalues.
    """
    vec, numbers = form.vec, form.numbers
    w = numbers[WEIGHT]
    if not w > 0.0:
        along_theta_(form)
        return True
    if tridiagonal_summit_(form):
        return True
    if not eigenbasis_(form):
        return False
    most, total = largest_eigenvalue(vec), w * w
    nudge_(vec, int(ALONG), w * math.sqrt(most))
    delta = shift_of(vec, int(ALONG), True, w)
    place_(vec, int(ALONG), delta)
    for i in range(vec.shape[1]):
        total += vec[ALONG, i] * vec[ALONG, i] / (delta + vec[GAPS, i])
    numbers[TOP] = numbers[SHIFT] + math.sqrt((most + delta) * total)
    from_basis_(form, int(FOUND))
    return True


# ------------------------------------------------------------------------------------------ arms seen from a centre


@routine
def centred_at(form: IndexForm, t: float) -> tuple[float, float]:
    """For a guess t of √q: the largest c'y + (w/2)(q(y)/t + t), an upper bound of the index, and √q where it is
    reached.

    vec[TURNED] is that y, by the secular equation ‖y‖ = 1 of the quadratic; vec[FOUND] is overwritten.
    """
    vec, numbers = form.vec, form.numbers
    w, d = numbers[WEIGHT], vec.shape[1]
    for i in range(d):
        vec[FOUND, i] = vec[ALONG, i] * (t / w) - vec[TILTED, i]
    nudge_(vec, int(FOUND), largest_eigenvalue(vec))
    delta = shift_of(vec, int(FOUND), False, 1.0)
    place_(vec, int(FOUND), delta)
    mean, square = 0.0, numbers[page.CONSTANT_PART]
    for i in range(d):
        y = vec[TURNED, i]
        mean += vec[ALONG, i] * y
        square += (vec[VALUES, i] * y - 2.0 * vec[TILTED, i]) * y
    square = max(square, 0.0)
    return mean + 0.5 * w * (square / t + t), math.sqrt(square)


@routine
def centred_summit_(form: IndexForm) -> None:
    """The largest c'y + w√q(y), q(y) = y'Ay - 2b'y + c. For every t > 0 the largest c'y + (w/2)(q/t + t) is a bound,
    convex in t, and is reached where √q = t; bisection finds that t."""
    vec, numbers = form.vec, form.numbers
    w = numbers[WEIGHT]
    if not w > 0.0:
        along_theta_(form)
        return
    lean = math.sqrt(row_dot(vec, int(TILTED), vec, int(TILTED)))
    far = math.sqrt(largest_eigenvalue(vec) + 2.0 * lean + numbers[page.CONSTANT_PART])
    near, top = 1e-9 * far, math.inf
    for _ in range(HALVINGS):
        t = math.sqrt(near) * math.sqrt(far)
        bound, root = centred_at(form, t)
        top = min(top, bound)
        if root > t:
            near = t
        else:
            far = t
        if far - near <= 1e-14 * far:
            break
    numbers[page.TOP] = numbers[page.SHIFT] + top
    centred_at(form, far)
    from_basis_(form, int(FOUND))
    ascend_(form)
    best = value_at(form, vec, int(FOUND))
    for i in range(vec.shape[1]):
        form.low[0, i] = vec[FOUND, i]
    centred_at(form, near)  # if two points tie, the bound is not reached, and the ends are on both sides of it
    from_basis_(form, int(FOUND))
    ascend_(form)
    if value_at(form, vec, int(FOUND)) < best:
        for i in range(vec.shape[1]):
            vec[FOUND, i] = form.low[0, i]


@routine
def ascend_(form: IndexForm) -> None:
    """Ascend from vec[FOUND]: the gradient of a convex index, scaled to the edge of the ball, never has a lower
    index."""
    vec, d = form.vec, form.vec.shape[1]
    for _ in range(50):
        root = math.sqrt(square_at(form, vec, int(FOUND)))
        if not root > 0.0:
            return
        length, moved = 0.0, 0.0
        for i in range(d):
            t = -vec[page.TILT, i]
            for j in range(d):
                t += form.A[i, j] * vec[FOUND, j]
            vec[TURNED, i] = vec[THETA, i] + form.numbers[WEIGHT] * t / root
            length += vec[TURNED, i] * vec[TURNED, i]
        length = math.sqrt(length)
        if not length > 0.0:
            return
        for i in range(d):
            y = vec[TURNED, i] / length
            moved = max(moved, abs(y - vec[FOUND, i]))
            vec[FOUND, i] = y
        if moved <= 1e-15:
            return


# ------------------------------------------------------------------------------------------ the entry


@entry
def summit_(scratch: Vector, F: Matrix, straight: bool, out: Vector) -> bool:
    """out <- the x = Fy, ‖y‖ ≤ 1, of largest index, F lower triangular, or F[0, 0]·I if straight; numbers[TOP] is the
    bound. θ, b and A of the form become those in y. False if there are no eigenvalues."""
    form, found, tilted = index_form_of(scratch, out.size), True, False
    through_(form, F, straight)
    for i in range(out.size):
        tilted = tilted or form.vec[TILT, i] != 0.0
    if form.numbers[page.KIND] == page.SUM:
        found = eigenbasis_(form)
        if found:
            sum_summit_(form)
    elif tilted or form.numbers[page.CONSTANT_PART] > 0.0:
        found = eigenbasis_(form)
        if found:
            centred_summit_(form)
    else:
        found = plain_summit_(form)
    if found:
        outward_(form, F, straight, out)
    return found


@piece
def outward_(form: IndexForm, F: Floats, straight: bool, out: Floats) -> None:
    """out = Fy for the y found."""
    for i in range(out.size):
        if straight:
            out[i] = F[0, 0] * form.vec[FOUND, i]
        else:
            out[i] = 0.0
            for j in range(i + 1):
                out[i] += F[i, j] * form.vec[FOUND, j]


@routine
def through_(form: IndexForm, F: Floats, straight: bool) -> None:
    """The index in y, x = Fy: F'θ, F'b and F'AF."""
    A, vec, work, d = form.A, form.vec, form.work, form.vec.shape[1]
    if straight:
        r = F[0, 0]
        if r == 1.0:
            return
        for i in range(d):
            vec[THETA, i] *= r
            vec[TILT, i] *= r
            for j in range(d):
                A[i, j] *= r * r
        return
    multiply_lower_(A, F, work)
    multiply_turned_lower_(F, work, A)
    for i in range(d):
        theta, tilt = 0.0, 0.0
        for k in range(i, d):
            theta += F[k, i] * vec[THETA, k]
            tilt += F[k, i] * vec[TILT, k]
        vec[THETA, i], vec[TILT, i] = theta, tilt
