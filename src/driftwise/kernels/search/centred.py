"""The largest index over the unit ball where arms are seen from a centre, with a bound that no point of it exceeds."""

from __future__ import annotations

import math

from driftwise.kernels import routine
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.basis import (
    ALONG,
    HALVINGS,
    TILTED,
    TURNED,
    VALUES,
    along_theta_,
    back_,
    dot,
    largest,
    nudge_,
    place_,
    shift_of,
)
from driftwise.kernels.search.index_form import FOUND, THETA, WEIGHT, IndexForm, square_at, value_at


@routine
def centred_at(form: IndexForm, t: float) -> tuple[float, float]:
    """For a guess t of √q: the largest c'y + (w/2)(q(y)/t + t), which no index exceeds, and √q where it is reached.

    vec[TURNED] is that y, by the secular equation ‖y‖ = 1 of the quadratic; vec[FOUND] is scribbled on.
    """
    vec, numbers = form.vec, form.numbers
    w, d = numbers[WEIGHT], vec.shape[1]
    for i in range(d):
        vec[FOUND, i] = vec[ALONG, i] * (t / w) - vec[TILTED, i]
    nudge_(vec, int(FOUND), largest(vec))
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
    convex in t, and is reached where √q = t; that t is halved in on."""
    vec, numbers = form.vec, form.numbers
    w = numbers[WEIGHT]
    if not w > 0.0:
        along_theta_(form)
        return
    lean = math.sqrt(dot(vec, int(TILTED), vec, int(TILTED)))
    far = math.sqrt(largest(vec) + 2.0 * lean + numbers[page.CONSTANT_PART])
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
    back_(form, int(FOUND))
    ascend_(form)
    best = value_at(form, vec, int(FOUND))
    for i in range(vec.shape[1]):
        form.low[0, i] = vec[FOUND, i]
    centred_at(form, near)  # where two points tie the bound is not reached, and the ends lie on either side of it
    back_(form, int(FOUND))
    ascend_(form)
    if value_at(form, vec, int(FOUND)) < best:
        for i in range(vec.shape[1]):
            vec[FOUND, i] = form.low[0, i]


@routine
def ascend_(form: IndexForm) -> None:
    """From vec[FOUND] uphill: the gradient of a convex index, made as long as the ball is wide, is never lower."""
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
