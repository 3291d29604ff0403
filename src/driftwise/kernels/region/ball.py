"""The largest index over the unit ball, with a proof: every search returns a bound that no point of the ball exceeds.

In the eigenbasis of A, with m its eigenvalues, c = u'θ and M the largest m, all maximisers lie on one curve,
y_i ∝ c_i/(δ + M - m_i) for δ in (0, ∞): from the direction that is known least to that of θ. Where c has no part along
the first, the curve has a corner there (the hard case of Moré and Sorensen 1983); c is then nudged by 1e-14 of its
length along it, with a sign that is fixed, which moves no index by more than that and leaves no case apart.
"""

from __future__ import annotations

import math

from driftwise.kernels import piece, routine
from driftwise.kernels.links import IDENTITY, LOGISTIC, PROBIT, slope
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats
from driftwise.kernels.region.sheet import (
    CONSTANT_PART,
    DEEP,
    FIFTH,
    FIRST,
    FOUND,
    FOURTH,
    KIND,
    LINK_CODE,
    SECOND,
    SHIFT,
    STEPS,
    SUM,
    THETA,
    THIRD,
    TILT,
    TOP,
    WEIGHT,
    Sheet,
    sheet_of,
    square_at,
    value_at,
)
from driftwise.kernels.solvers.eigen import eigen_

NUDGE = 1e-14
NEWTON = 60
HALVINGS = 200
# Intervals of a search over z, and the share of the index it leaves unproven.
INTERVALS, CLOSE = 2000, 1e-11

# What the rows of vec hold here: gaps of eigenvalues to the largest, c, y and b in the eigenbasis, and eigenvalues.
GAPS, ALONG, TURNED, TILTED, VALUES = FIRST, SECOND, THIRD, FOURTH, FIFTH


@piece
def dot(u: Floats, a: int, v: Floats, b: int) -> float:
    """u[a]'v[b]."""
    total = 0.0
    for i in range(v.shape[1]):
        total += u[a, i] * v[b, i]
    return total


@piece
def largest(vec: Floats) -> float:
    """M, the largest eigenvalue."""
    most = 0.0
    for i in range(vec.shape[1]):
        most = max(most, vec[VALUES, i])
    return most


@routine
def eigenbasis_(sheet: Sheet) -> bool:
    """Eigenvectors in rows, each with its first largest coordinate positive; their values, gaps, c and b."""
    vec, rows, d = sheet.vec, sheet.rows, sheet.vec.shape[1]
    for i in range(d):
        for j in range(d):
            sheet.work[i, j] = sheet.A[i, j]
    if not eigen_(sheet.work, vec[VALUES], rows, vec[TURNED]):
        return False
    for k in range(d):
        vec[VALUES, k] = max(vec[VALUES, k], 0.0)
        widest, at = 0.0, 0
        for i in range(d):
            if abs(rows[k, i]) > (1.0 + 1e-9) * widest:
                widest, at = abs(rows[k, i]), i
        if rows[k, at] < 0.0:
            for i in range(d):
                rows[k, i] = -rows[k, i]
    most = largest(vec)
    for k in range(d):
        vec[GAPS, k] = most - vec[VALUES, k]
        vec[ALONG, k] = dot(rows, k, vec, int(THETA))
        vec[TILTED, k] = dot(rows, k, vec, int(TILT))
    return True


@routine
def nudge_(vec: Floats, row: int, unit: float) -> None:
    """vec[row] gets a part along the first eigenvector of the largest value if it has none, small beside it or unit."""
    first, along = -1, 0.0
    for i in range(vec.shape[1]):
        if vec[GAPS, i] <= 1e-15 * vec[VALUES, i]:
            along += vec[row, i] * vec[row, i]
            if first < 0:
                first = i
    floor = NUDGE * max(math.sqrt(dot(vec, row, vec, row)), unit)
    if not along > floor * floor:
        vec[row, first] = floor if vec[row, first] >= 0.0 else -floor


@routine
def shift_of(vec: Floats, row: int, weighted: bool, level: float) -> float:
    """δ with Σ c²(m)/(δ + gap)² = level², m where weighted: Newton's method on 1/norm, which rises to it from below."""
    under, over = 0.0, 0.0
    for i in range(vec.shape[1]):
        part = vec[row, i] * vec[row, i] * (vec[VALUES, i] if weighted else 1.0)
        over += part
        if vec[GAPS, i] <= 1e-15 * vec[VALUES, i]:
            under += part
    delta, over = math.sqrt(under) / level, math.sqrt(over) / level
    for _ in range(NEWTON):
        norm, fall = 0.0, 0.0
        for i in range(vec.shape[1]):
            below = 1.0 / (delta + vec[GAPS, i])
            part = vec[row, i] * below
            part = part * part * (vec[VALUES, i] if weighted else 1.0)
            norm += part
            fall += part * below
        if not fall > 0.0:
            break
        step = (norm / fall) * (math.sqrt(norm) / level - 1.0)
        following = min(max(delta + step, 0.5 * delta), over)
        if not abs(following - delta) > 1e-16 * delta:
            break
        delta = following
    return delta


@routine
def place_(vec: Floats, row: int, delta: float) -> float:
    """vec[TURNED] = y(δ) of norm 1; t with y_i = t c_i/(δ + gap)."""
    total = 0.0
    for i in range(vec.shape[1]):
        vec[TURNED, i] = vec[row, i] / (delta + vec[GAPS, i])
        total += vec[TURNED, i] * vec[TURNED, i]
    t = 1.0 / math.sqrt(total)
    for i in range(vec.shape[1]):
        vec[TURNED, i] *= t
    return t


@routine
def back_(sheet: Sheet, to: int) -> None:
    """vec[to] = the point whose coordinates in the eigenbasis are vec[TURNED]."""
    vec = sheet.vec
    for i in range(vec.shape[1]):
        t = 0.0
        for k in range(vec.shape[1]):
            t += vec[TURNED, k] * sheet.rows[k, i]
        vec[to, i] = t


@piece
def spread_of(vec: Floats) -> float:
    """√(y'Ay) of vec[TURNED]."""
    total = 0.0
    for i in range(vec.shape[1]):
        total += vec[VALUES, i] * vec[TURNED, i] * vec[TURNED, i]
    return math.sqrt(total)


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


@routine
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
