"""The largest index over the unit ball, with a proof: each search returns a bound that no point of it exceeds."""

from __future__ import annotations

import math

from driftwise.kernels import entry, routine
from driftwise.kernels.links import IDENTITY, LOGISTIC, PROBIT, slope
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats
from driftwise.kernels.region.basis import (
    ALONG,
    GAPS,
    NUDGE,
    TILTED,
    TURNED,
    VALUES,
    back_,
    dot,
    eigenbasis_,
    largest,
    nudge_,
    place_,
    shift_of,
    spread_of,
)
from driftwise.kernels.region.sheet import (
    CONSTANT_PART,
    DEEP,
    FOUND,
    KIND,
    LINK_CODE,
    SHIFT,
    STEPS,
    SUM,
    THETA,
    TILT,
    TOP,
    WEIGHT,
    Sheet,
    sheet_of,
    square_at,
    value_at,
)

HALVINGS = 200
# Intervals of a search over z, and the share of the index it leaves unproven.
INTERVALS, CLOSE = 2000, 1e-11


@routine
def plain_summit_(sheet: Sheet) -> None:
    """The largest c'y + w√(y'Ay): Σ m c²/(δ + gap)² = w² (with V = A⁻¹, the issue's Σ λc²/(νλ - 1)² = β²).

    It is the length of the longest u with (u - θ)'A⁻¹(u - θ) ≤ w²; for every η > M that is at most
    √(η(w² + Σ c²/(η - m))), which is the bound, and equal to it at the η found.
    """
    vec, numbers = sheet.vec, sheet.numbers
    w = numbers[WEIGHT]
    if w > 0.0:
        most, total = largest(vec), w * w
        nudge_(vec, int(ALONG), w * math.sqrt(most))
        delta = shift_of(vec, int(ALONG), True, w)
        place_(vec, int(ALONG), delta)
        for i in range(vec.shape[1]):
            total += vec[ALONG, i] * vec[ALONG, i] / (delta + vec[GAPS, i])
        numbers[TOP] = numbers[SHIFT] + math.sqrt((most + delta) * total)
        back_(sheet, int(FOUND))
        return
    length = math.sqrt(dot(vec, int(THETA), vec, int(THETA)))
    for i in range(vec.shape[1]):
        vec[FOUND, i] = vec[THETA, i] / length if length > 0.0 else 1.0 if i == 0 else 0.0
    numbers[TOP] = numbers[SHIFT] + length


@routine
def climb(link: int, w: float, vec: Floats, delta: float) -> tuple[float, float, float, float, float]:
    """At y(δ): z, √(y'Ay), the slope of the latter in z, the index μ(z) + w√(y'Ay), and its slope in z."""
    t = place_(vec, int(ALONG), delta)
    z = dot(vec, int(ALONG), vec, int(TURNED))
    spread = spread_of(vec)
    fall = -t / spread
    return z, spread, fall, link_mean(link, z) + w * spread, slope(link, z) + w * fall


@routine
def sum_summit_(sheet: Sheet) -> None:
    """The largest μ(c'y) + w√(y'Ay). Its h(z), the largest √(y'Ay) where c'y = z, is concave where it falls: h² is
    concave in z², by the convex joint range of three quadratic forms. Where h rises with z so does the index."""
    vec, numbers = sheet.vec, sheet.numbers
    link, w = int(numbers[LINK_CODE]), numbers[WEIGHT]
    if not w > 0.0:  # θ alone counts
        plain_summit_(sheet)
        numbers[TOP] = link_mean(link, numbers[TOP])
        return
    most = largest(vec)
    nudge_(vec, int(ALONG), w * math.sqrt(most))
    near, far = 1e-16 * NUDGE * most, 1e16 * most
    if link == IDENTITY or link == LOGISTIC or link == PROBIT:  # μ is concave from 0 on, and z is never below
        delta = concave_(sheet, link, w, near, far)
    else:
        delta = branched_(sheet, link, w, near, far)
    place_(vec, int(ALONG), delta)
    back_(sheet, int(FOUND))


@routine
def concave_(sheet: Sheet, link: int, w: float, near: float, far: float) -> float:
    """Where a concave index has slope 0, halving the logarithm of δ; the bound is where the tangents at the last two
    ends meet, which no point between them and none outside exceeds."""
    vec, numbers = sheet.vec, sheet.numbers
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
        top = high + rise1 * max(math.sqrt(dot(vec, int(ALONG), vec, int(ALONG))) - z1, 0.0)
    numbers[TOP] = top
    return near if low >= high else far


@routine
def ceiling_of(
    z0: float, z1: float, low: float, high: float, mean0: float, mean1: float, fall0: float, fall1: float, w: float
) -> float:
    """No index between z0 and z1 exceeds it: a convex μ lies below its chord, a concave h below its tangents."""
    if not z1 > z0:
        return max(low, high)
    chord = (mean1 - mean0) / (z1 - z0)
    rise0, rise1 = chord + w * fall0, chord + w * fall1
    if rise0 <= 0.0 or rise1 >= 0.0:
        return max(low, high)
    meet = (high - low + rise0 * z0 - rise1 * z1) / (rise0 - rise1)
    return max(low, high, low + rise0 * (min(max(meet, z0), z1) - z0))


@routine
def branched_(sheet: Sheet, link: int, w: float, near: float, far: float) -> float:
    """Intervals of z, halved where their ceiling lies above the best index seen. The bound is the highest ceiling that
    was not looked into."""
    vec, numbers, stack = sheet.vec, sheet.numbers, sheet.stack
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


@routine
def tilted_at(sheet: Sheet, t: float) -> tuple[float, float]:
    """For a guess t of √q: the largest c'y + (w/2)(q(y)/t + t), which no index exceeds, and √q where it is reached.

    vec[TURNED] is that y, by the secular equation ‖y‖ = 1 of the quadratic; vec[FOUND] is scribbled on.
    """
    vec, numbers = sheet.vec, sheet.numbers
    w, d = numbers[WEIGHT], vec.shape[1]
    for i in range(d):
        vec[FOUND, i] = vec[ALONG, i] * (t / w) - vec[TILTED, i]
    nudge_(vec, int(FOUND), largest(vec))
    delta = shift_of(vec, int(FOUND), False, 1.0)
    place_(vec, int(FOUND), delta)
    mean, square = 0.0, numbers[CONSTANT_PART]
    for i in range(d):
        y = vec[TURNED, i]
        mean += vec[ALONG, i] * y
        square += (vec[VALUES, i] * y - 2.0 * vec[TILTED, i]) * y
    square = max(square, 0.0)
    return mean + 0.5 * w * (square / t + t), math.sqrt(square)


@routine
def tilted_summit_(sheet: Sheet) -> None:
    """The largest c'y + w√q(y), q(y) = y'Ay - 2b'y + c. For every t > 0 the largest c'y + (w/2)(q/t + t) is a bound,
    convex in t, and is reached where √q = t; that t is halved in on."""
    vec, numbers = sheet.vec, sheet.numbers
    w = numbers[WEIGHT]
    if not w > 0.0:
        plain_summit_(sheet)
        return
    far = math.sqrt(largest(vec) + 2.0 * math.sqrt(dot(vec, int(TILTED), vec, int(TILTED))) + numbers[CONSTANT_PART])
    near, top = 1e-9 * far, math.inf
    for _ in range(HALVINGS):
        t = math.sqrt(near) * math.sqrt(far)
        bound, root = tilted_at(sheet, t)
        top = min(top, bound)
        if root > t:
            near = t
        else:
            far = t
        if far - near <= 1e-14 * far:
            break
    numbers[TOP] = numbers[SHIFT] + top
    tilted_at(sheet, far)
    back_(sheet, int(FOUND))
    ascend_(sheet)
    best = value_at(sheet, vec, int(FOUND))
    for i in range(vec.shape[1]):
        sheet.low[0, i] = vec[FOUND, i]
    tilted_at(sheet, near)  # where two points tie the bound is not reached, and the ends lie on either side of it
    back_(sheet, int(FOUND))
    ascend_(sheet)
    if value_at(sheet, vec, int(FOUND)) < best:
        for i in range(vec.shape[1]):
            vec[FOUND, i] = sheet.low[0, i]


@routine
def ascend_(sheet: Sheet) -> None:
    """From vec[FOUND] uphill: the gradient of a convex index, made as long as the ball is wide, is never lower."""
    vec, d = sheet.vec, sheet.vec.shape[1]
    for _ in range(50):
        root = math.sqrt(square_at(sheet, vec, int(FOUND)))
        if not root > 0.0:
            return
        length, moved = 0.0, 0.0
        for i in range(d):
            t = -vec[TILT, i]
            for j in range(d):
                t += sheet.A[i, j] * vec[FOUND, j]
            vec[TURNED, i] = vec[THETA, i] + sheet.numbers[WEIGHT] * t / root
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


@entry
def summit_(scratch: Floats, F: Floats, straight: bool, out: Floats) -> bool:
    """out <- the x = Fy, ‖y‖ ≤ 1, of largest index, F lower triangular, or F[0, 0]·I where straight; numbers[TOP] is
    the bound. θ, b and A of the sheet become those in y. False where there are no eigenvalues."""
    d = out.size
    sheet = sheet_of(scratch, d)
    through_(sheet, F, straight)
    if not eigenbasis_(sheet):
        return False
    tilted = False
    for i in range(d):
        tilted = tilted or sheet.vec[TILT, i] != 0.0
    if sheet.numbers[KIND] == SUM:
        sum_summit_(sheet)
    elif tilted or sheet.numbers[CONSTANT_PART] > 0.0:
        tilted_summit_(sheet)
    else:
        plain_summit_(sheet)
    for i in range(d):
        if straight:
            out[i] = F[0, 0] * sheet.vec[FOUND, i]
        else:
            out[i] = 0.0
            for j in range(i + 1):
                out[i] += F[i, j] * sheet.vec[FOUND, j]
    return True


@routine
def through_(sheet: Sheet, F: Floats, straight: bool) -> None:
    """The index in y, x = Fy: F'θ, F'b and F'AF."""
    A, vec, work, d = sheet.A, sheet.vec, sheet.work, sheet.vec.shape[1]
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
