"""The largest index over a ball or an ellipsoid, with a proof: each search returns a bound that no point exceeds."""

from __future__ import annotations

import math

from driftwise.kernels import entry, piece, routine
from driftwise.kernels.point import Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.basis import (
    ALONG,
    GAPS,
    along_theta_,
    back_,
    eigenbasis_,
    largest,
    nudge_,
    place_,
    shift_of,
)
from driftwise.kernels.search.centred import centred_summit_
from driftwise.kernels.search.index_form import FOUND, SHIFT, THETA, TILT, TOP, WEIGHT, IndexForm, index_form_of
from driftwise.kernels.search.sums import sum_summit_
from driftwise.kernels.search.tridiagonal import tridiagonal_summit_


@routine
def plain_summit_(form: IndexForm) -> bool:
    """The largest c'y + w√(y'Ay): Σ m c²/(δ + gap)² = w² (with V = A⁻¹, the issue's Σ λc²/(νλ - 1)² = β²).

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
    most, total = largest(vec), w * w
    nudge_(vec, int(ALONG), w * math.sqrt(most))
    delta = shift_of(vec, int(ALONG), True, w)
    place_(vec, int(ALONG), delta)
    for i in range(vec.shape[1]):
        total += vec[ALONG, i] * vec[ALONG, i] / (delta + vec[GAPS, i])
    numbers[TOP] = numbers[SHIFT] + math.sqrt((most + delta) * total)
    back_(form, int(FOUND))
    return True


@entry
def summit_(scratch: Floats, F: Floats, straight: bool, out: Floats) -> bool:
    """out <- the x = Fy, ‖y‖ ≤ 1, of largest index, F lower triangular, or F[0, 0]·I where straight; numbers[TOP] is
    the bound. θ, b and A of the form become those in y. False where there are no eigenvalues."""
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
    """out = Fy of the y found."""
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
    for i in range(d):
        for j in range(d):
            t = 0.0
            for k in range(j, d):
                t += A[i, k] * F[k, j]
            work[i, j] = t
    for i in range(d):
        theta, tilt = 0.0, 0.0
        for k in range(i, d):
            theta += F[k, i] * vec[THETA, k]
            tilt += F[k, i] * vec[TILT, k]
        vec[THETA, i], vec[TILT, i] = theta, tilt
        for j in range(d):
            t = 0.0
            for k in range(i, d):
                t += F[k, i] * work[k, j]
            A[i, j] = t
