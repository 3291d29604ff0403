"""The largest sum of a link and a norm over the unit ball, with an upper bound."""

from __future__ import annotations

import math

from driftwise.kernels import routine
from driftwise.kernels.links import IDENTITY, LOGISTIC, PROBIT, slope
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats
from driftwise.kernels.search.basis import (
    ALONG,
    HALVINGS,
    NUDGE,
    TURNED,
    along_theta_,
    from_basis_,
    largest_eigenvalue,
    nudge_,
    place_,
    row_dot,
    width_of,
)
from driftwise.kernels.search.index_form import DEEP, FOUND, LINK_CODE, STEPS, TOP, WEIGHT, IndexForm

# The intervals of a search over z, and the share of the index that remains unproven.
INTERVALS, CLOSE = 2000, 1e-11


@routine
def climb(link: int, w: float, vec: Floats, delta: float) -> tuple[float, float, float, float, float]:
    """At y(δ): z, √(y'Ay), the slope of the latter in z, the index μ(z) + w√(y'Ay), and its slope in z."""
    t = place_(vec, int(ALONG), delta)
    z = row_dot(vec, int(ALONG), vec, int(TURNED))
    spread = width_of(vec)
    fall = -t / spread
    return z, spread, fall, link_mean(link, z) + w * spread, slope(link, z) + w * fall


@routine
def sum_summit_(form: IndexForm) -> None:
    """The largest μ(c'y) + w√(y'Ay). Its h(z), the largest √(y'Ay) where c'y = z, is concave where it falls: h² is
    concave in z², by the convex joint range of three quadratic forms. Where h rises with z so does the index."""
    vec, numbers = form.vec, form.numbers
    link, w = int(numbers[LINK_CODE]), numbers[WEIGHT]
    if not w > 0.0:  # θ alone counts
        along_theta_(form)
        numbers[TOP] = link_mean(link, numbers[TOP])
        return
    most = largest_eigenvalue(vec)
    nudge_(vec, int(ALONG), w * math.sqrt(most))
    near, far = 1e-16 * NUDGE * most, 1e16 * most
    if link == IDENTITY or link == LOGISTIC or link == PROBIT:  # μ is concave from 0 on, and z is never below
        delta = concave_(form, link, w, near, far)
    else:
        delta = branched_(form, link, w, near, far)
    place_(vec, int(ALONG), delta)
    from_basis_(form, int(FOUND))


@routine
def concave_(form: IndexForm, link: int, w: float, near: float, far: float) -> float:
    """The point at which a concave index has slope 0, by halving the logarithm of δ; the bound is where the tangents at
    the last two ends meet, an upper bound between and outside them."""
    vec, numbers = form.vec, form.numbers
    for _ in range(HALVINGS):
        middle = math.sqrt(near) * math.sqrt(far)
        _, _, _, _, rise = climb(link, w, vec, middle)
        if rise > 0.0:
            near = middle
        else:
            far = middle
        if far - near <= 1e-15 * far:
            break
    z0, _, _, low, rise0 = climb(link, w, vec, near)
    z1, _, _, high, rise1 = climb(link, w, vec, far)
    top = max(low, high)
    if rise0 > 0.0 and rise1 < 0.0 and z1 > z0:
        meet = (high - low + rise0 * z0 - rise1 * z1) / (rise0 - rise1)
        top = max(top, low + rise0 * (min(max(meet, z0), z1) - z0))
    elif rise1 >= 0.0:
        top = high + rise1 * max(math.sqrt(row_dot(vec, int(ALONG), vec, int(ALONG))) - z1, 0.0)
    numbers[TOP] = top
    return near if low >= high else far


@routine
def ceiling_of(
    z0: float, z1: float, low: float, high: float, mean0: float, mean1: float, fall0: float, fall1: float, w: float
) -> float:
    """An upper bound of the index between z0 and z1: a convex μ is below its chord, a concave h below its tangents."""
    if not z1 > z0:
        return max(low, high)
    chord = (mean1 - mean0) / (z1 - z0)
    rise0, rise1 = chord + w * fall0, chord + w * fall1
    if rise0 <= 0.0 or rise1 >= 0.0:
        return max(low, high)
    meet = (high - low + rise0 * z0 - rise1 * z1) / (rise0 - rise1)
    return max(low, high, low + rise0 * (min(max(meet, z0), z1) - z0))


@routine
def branched_(form: IndexForm, link: int, w: float, near: float, far: float) -> float:
    """Intervals of z, halved if their upper bound is above the best index so far. The bound is the highest one of the
    intervals that were not searched."""
    vec, numbers, stack = form.vec, form.numbers, form.stack
    z0, _, fall0, low, _ = climb(link, w, vec, near)
    z1, _, fall1, high, _ = climb(link, w, vec, far)
    best, at = max(low, high), near if low >= high else far
    top, size, steps = best, 0, 0.0
    here, there = near, far
    while True:
        mean0, mean1 = link_mean(link, z0), link_mean(link, z1)
        ceiling = ceiling_of(z0, z1, low, high, mean0, mean1, fall0, fall1, w)
        middle = math.sqrt(here) * math.sqrt(there)
        open_ = ceiling > best + CLOSE * max(1.0, abs(best)) and here < middle < there
        if open_ and steps < INTERVALS and size < DEEP:
            steps += 1.0
            zm, _, fallm, value, _ = climb(link, w, vec, middle)
            if value > best:
                best, at = value, middle
            stack[0, size], stack[1, size] = middle, there
            size += 1
            there, z1, fall1, high = middle, zm, fallm, value
            continue
        top = max(top, ceiling)
        if size == 0:
            break
        size -= 1
        here, there = stack[0, size], stack[1, size]
        z0, _, fall0, low, _ = climb(link, w, vec, here)
        z1, _, fall1, high, _ = climb(link, w, vec, there)
    numbers[TOP], numbers[STEPS] = top, steps
    return at
