"""The largest convex index over a box: a vertex, found by a tree over its sides with a bound for every branch.

A node has its first coordinates at an end and the others in the middle of their side, h away from both. The possible
gain, for any t > 0, is at most Σ|a_i + (w/t)g_i|h_i + (w/2t)Σ|A_ij|h_i h_j over the free ones, by √q ≤ (q/t + t)/2 with
g half the gradient of q.
"""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import kernel, piece, routine
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.point import Floats, Ints
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.index_form import IndexForm, index_form_of, square_at, value_at

# By how much a branch's bound must exceed the best vertex, relative to it: the rounding of the sums.
ROUNDING = 1e-13


@routine
def promise(
    theta: Floats, g: Floats, depth: int, order: Ints, half: Floats, mean: float, q: float, left: float, w: float
) -> float:
    """An upper bound of the index below a node, with the best of three t."""
    d = order.size
    slack, along = 0.0, 0.0
    for k in range(depth, d):
        i = order[k]
        along += abs(theta[i]) * half[i]
        slack += abs(g[depth, i]) * half[i]
    if not w > 0.0:
        return mean + along
    best = math.inf
    t = math.sqrt(max(q + 2.0 * slack + left, 0.0))
    for _ in range(3):
        if not t > 0.0:
            return min(best, mean + along)  # q is 0 in the whole branch
        gain, at = 0.0, q + left
        for k in range(depth, d):
            i = order[k]
            push = theta[i] + w / t * g[depth, i]
            gain += abs(push) * half[i]
            at += 2.0 * (g[depth, i] if push >= 0.0 else -g[depth, i]) * half[i]
        best = min(best, mean + gain + 0.5 * w * ((q + left) / t + t))
        t = math.sqrt(max(at, 0.0))
    return best


@routine
def polish_(form: IndexForm, low: Floats, high: Floats, x: Floats) -> float:
    """Move x[0] from vertex to vertex, one coordinate at a time, while the index rises; returns the index."""
    best = value_at(form, x, 0)
    rising = True
    while rising:
        rising = False
        for i in range(low.size):
            kept = x[0, i]
            x[0, i] = low[i] if kept == high[i] else high[i]
            value = value_at(form, x, 0)
            if value > best + ROUNDING * max(1.0, abs(best)):
                best, rising = value, True
            else:
                x[0, i] = kept
    return best


@piece
def take_(x: Floats, out: Floats) -> None:
    """out <- x[0], by a loop: array expressions may raise, and wheels cannot hold such machine code."""
    for i in range(out.size):
        out[i] = x[0, i]


@kernel
def corner_(scratch: Vector, low: Vector, high: Vector, out: Vector) -> float:
    """out <- the vertex of largest index; numbers[TOP] bounds all of them. Returns the number of nodes visited."""
    d = low.size
    form = index_form_of(scratch, d)
    A, theta, w = form.A, form.vec[page.THETA], form.numbers[page.WEIGHT]
    half, weight, x = np.empty(d), np.empty(d), np.empty((1, d))
    for i in range(d):
        half[i] = 0.5 * (high[i] - low[i])
        weight[i] = half[i] * (abs(theta[i]) + w * math.sqrt(max(A[i, i], 0.0)))
        x[0, i] = high[i] if theta[i] >= 0.0 else low[i]
    best = polish_(form, low, high, x)
    take_(x, out)
    order = np.arange(d)
    for k in range(1, d):  # the most important come first; NumPy's sort takes longer to compile than this file
        i, m = order[k], k
        while m > 0 and weight[order[m - 1]] < weight[i]:
            order[m] = order[m - 1]
            m -= 1
        order[m] = i
    left = np.zeros(d + 1)
    for k in range(d - 1, -1, -1):
        i = order[k]
        left[k] = left[k + 1] + A[i, i] * half[i] * half[i]
        for m in range(k + 1, d):
            left[k] += 2.0 * abs(A[i, order[m]]) * half[i] * half[order[m]]
    g, mean, q = np.empty((d + 1, d)), np.empty(d + 1), np.empty(d + 1)
    for i in range(d):
        x[0, i] = 0.5 * (low[i] + high[i])
    mean[0], q[0] = form.numbers[page.SHIFT], square_at(form, x, 0)
    for i in range(d):
        mean[0] += theta[i] * x[0, i]
        g[0, i] = -form.vec[page.TILT, i]
        for j in range(d):
            g[0, i] += A[i, j] * x[0, j]
    side, depth, nodes, top = np.zeros(d, dtype=np.int64), 0, 0.0, best
    while depth >= 0:
        if depth == d:
            for k in range(d):
                x[0, order[k]] = high[order[k]] if side[k] == 1 else low[order[k]]
            value = value_at(form, x, 0)
            if value > best:
                best = value
                take_(x, out)
            depth -= 1
            continue
        if side[depth] == 2:
            side[depth] = 0
            depth -= 1
            continue
        side[depth] += 1
        i = order[depth]
        step = half[i] if side[depth] == 1 else -half[i]
        mean[depth + 1] = mean[depth] + theta[i] * step
        q[depth + 1] = q[depth] + (2.0 * g[depth, i] + A[i, i] * step) * step
        for j in range(d):
            g[depth + 1, j] = g[depth, j] + A[j, i] * step
        nodes += 1.0
        bound = promise(theta, g, depth + 1, order, half, mean[depth + 1], q[depth + 1], left[depth + 1], w)
        if bound > best + ROUNDING * max(1.0, abs(best)):
            depth += 1
            if depth < d:
                side[depth] = 0
        else:
            top = max(top, min(bound, best + ROUNDING * max(1.0, abs(best))))
    form.numbers[page.TOP] = max(top, best)
    return nodes


@kernel
def climb_(scratch: Vector, low: Vector, high: Vector, starts: Matrix, out: Vector) -> float:
    """out <- the best point of coordinate ascent from the rows of starts; returns its index. Nothing is proven.

    A coordinate moves to the best of 33 places of its side, then of 33 around that, four times.
    """
    d = low.size
    form = index_form_of(scratch, d)
    x = np.empty((1, d))
    best = -math.inf
    for s in range(starts.shape[0]):
        for i in range(d):
            x[0, i] = starts[s, i]
        value = value_at(form, x, 0)
        for _ in range(100):
            before = value
            for i in range(d):
                value = along_side_(form, low[i], high[i], i, x, value)
            if value <= before + ROUNDING * max(1.0, abs(before)):
                break
        if value > best:
            best = value
            take_(x, out)
    form.numbers[page.TOP] = math.inf
    return best


@routine
def along_side_(form: IndexForm, low: float, high: float, i: int, x: Floats, value: float) -> float:
    """x[0, i] <- the best place of a side on a grid, refined around it; returns the index."""
    start, stop, place = low, high, x[0, i]
    for _ in range(5):
        for k in range(33):
            x[0, i] = start + (stop - start) * (k / 32.0)
            found = value_at(form, x, 0)
            if found > value:
                value, place = found, x[0, i]
        step = (stop - start) / 32.0
        start, stop = max(low, place - step), min(high, place + step)
    x[0, i] = place
    return value
