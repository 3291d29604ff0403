"""The compiled parts of worlds: normal draws, turns, walks and sets of arms.

Normal draws are Marsaglia and Tsang's ziggurat with 256 layers, from the words of the bit generator, in the order in
which NumPy's generator reads them, with its widths of layers: draws have its bits except for tails and, once in 10^15,
an edge. Edges and tails need exp and log1p, which are our own, so that a tape has the same bits on every machine.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from driftwise._internal.elementary import cosine, exp, log1p, sine
from driftwise.kernels import entry, late
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.point import Floats, Ints

UNIT, CLIP, MAX = 0, 1, 2
LAYERS = 256
# Where the tail begins: with it 256 layers of one area end at the top.
TAIL_AT = "3.6541528853610087716454297203995157629748545997463"
TAIL = float(TAIL_AT)
PER_TAIL = 1.0 / TAIL
PER_WORD = 1.0 / 9007199254740992.0
# How many units in the last place the widths that NumPy's draws show lie from the exact ones, layer by layer.
SLIPS = """
    -9 -60 -18 -16 -14 -15 -16 -13 -13 -7 -7 -6 -5 -5 -5 -5 -5 -6 -5 -6 -7 -7 -6 -7 -7 -6 -6 -5 -6 -6 -7 -5
    -6 -6 -6 -6 -6 -7 -5 -5 -4 -3 -4 -5 -3 -4 -4 -4 -4 -4 -4 -5 -2 -3 -3 -4 -4 -3 -4 -4 -3 -3 -2 -2
    -3 -3 -4 -3 -4 -3 -3 -3 -2 -2 -1 -2 -2 -3 -3 -3 -2 -2 -3 -3 -3 -2 -2 -2 -2 -1 -2 -1 -1 -1 -1 -1
    -2 -1 -1 -1 -1 -1 -2 -1 -1 -2 -2 -2 -2 -2 -2 -2 -2 -2 -1 -1 -1 -1 -1 -1 -1 -1 0 0 -1 -1 -1 -2
    -1 -1 -1 -1 -2 -2 -2 -1 -1 -2 -2 -2 -3 -3 -4 -3 -3 -3 -2 -2 -1 -2 -1 -1 -1 -1 -1 -1 0 0 1 0
    0 -1 0 0 0 0 0 0 0 0 0 1 2 2 3 3 3 2 2 1 0 0 0 0 0 0 0 0 0 0 0 0
    0 0 0 -1 -1 -1 -1 -1 -2 -1 -2 -2 -2 -2 -2 -2 -1 -1 -1 -1 0 0 -1 -1 0 0 0 0 -1 0 0 0
    0 0 0 0 0 0 0 -1 0 -1 -1 -1 -1 -1 -1 -1 0 0 1 0 1 1 1 1 1 1 0 0 1 1 1 0
"""


@cache
def ziggurat() -> tuple[Ints, Floats, Floats]:
    """For each layer: the integer below which a draw is accepted at once, its width per unit, and the density at its
    edge."""
    with localcontext(prec=40):
        tail = Decimal(TAIL_AT)

        def density(x: Decimal) -> Decimal:
            return (-x * x / 2).exp()

        edges, unit = [tail], Decimal(2**52)
        area = tail * density(tail) + _beyond(tail)
        while len(edges) < LAYERS - 1:
            edges.append((-2 * (area / edges[-1] + density(edges[-1])).ln()).sqrt())
        edges = [area / density(tail), *reversed(edges)]
        below = [edges[-1] / edges[0] * unit, Decimal(0)]
        below += [edges[i - 1] / edges[i] * unit for i in range(2, LAYERS)]
        heights = [1.0, *(float(density(x)) for x in edges[1:])]
        exact = np.array([float(x / unit) for x in edges])
        widths = exact + np.array(SLIPS.split(), dtype=np.float64) * np.spacing(exact)
        return np.array([int(one) for one in below]), widths, np.array(heights)


def _beyond(x: Decimal) -> Decimal:
    """∫ₓ^∞ e^(-t²/2) dt, by its continued fraction."""
    below = x
    for n in range(400, 0, -1):
        below = x + n / below
    return (-x * x / 2).exp() / below


@late
@entry
def normals_(words: Ints, below: Ints, width: Vector, height: Vector, begun: int, out: Vector) -> tuple[int, int]:
    """Write normal numbers to out from place `begun` on, while words suffice; returns its next place and the words
    used."""
    used, place = 0, begun
    while place < out.size and used < words.size:
        at, word = used + 1, words[used]
        layer = word & 0xFF
        whole = (word >> 9) & 0xFFFFFFFFFFFFF
        x = whole * width[layer]
        if (word >> 8) & 1:
            x = -x
        if whole < below[layer]:
            out[place] = x
            place, used = place + 1, at
        elif layer == 0:
            far = False
            while not far and at + 1 < words.size:
                beyond = -PER_TAIL * log1p(-(((words[at] >> 11) & 0x1FFFFFFFFFFFFF) * PER_WORD))
                y = -log1p(-(((words[at + 1] >> 11) & 0x1FFFFFFFFFFFFF) * PER_WORD))
                at += 2
                if y + y > beyond * beyond:
                    far = True
                    out[place] = -(TAIL + beyond) if (whole >> 8) & 1 else TAIL + beyond
            if not far:
                return place, used
            place, used = place + 1, at
        else:
            if at >= words.size:
                return place, used
            u = ((words[at] >> 11) & 0x1FFFFFFFFFFFFF) * PER_WORD
            used = at + 1
            if (height[layer - 1] - height[layer]) * u + height[layer] < exp(-0.5 * x * x):
                out[place] = x
                place += 1
    return place, used


# Words that are read at a time.
WORDS = 1 << 14


def normals(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Standard normal numbers: what rng.standard_normal draws, with bits that do not depend on the machine.

    Only as many words are read as these numbers need, so that the next draw is the same too.
    """
    out = np.empty(shape)
    flat, place = out.reshape(-1), 0
    words: Any = np.zeros(0, dtype=np.int64)
    while place < flat.size:
        more = rng.bit_generator.random_raw(min(flat.size - place, WORDS)).view(np.int64)
        words = np.concatenate([words, more])
        place, used = normals_(words, *ziggurat(), place, flat)
        words = words[used:]
    return out


@late
@entry
def turn_(angles: Vector, radius: float, path: Matrix) -> None:
    """The first two coordinates of path (B, d): radius times cosine and sine of angles."""
    for t in range(angles.size):
        path[t, 0] = radius * cosine(angles[t])
        path[t, 1] = radius * sine(angles[t])


@entry
def waves_(angles: Vector, terms: int, rows: Matrix) -> None:
    """rows[t, 2j-1] and rows[t, 2j] are cosine and sine of j times an angle, j from 1 to terms."""
    for t in range(angles.size):
        for j in range(1, terms + 1):
            rows[t, 2 * j - 1] = cosine(j * angles[t])
            rows[t, 2 * j] = sine(j * angles[t])


@entry
def walk_(theta: Matrix, steps: Matrix, radius: float) -> None:
    """theta[t] = radius·(theta[t-1] + steps[t])/‖·‖; theta[-1] is passed as the last row."""
    last = theta.shape[0] - 1
    for t in range(theta.shape[0]):
        before = t - 1 if t > 0 else last
        square = 0.0
        for i in range(theta.shape[1]):
            theta[t, i] = theta[before, i] + steps[t, i]
            square += theta[t, i] * theta[t, i]
        scale = radius / math.sqrt(square) if square > 0.0 else 0.0
        for i in range(theta.shape[1]):
            theta[t, i] *= scale


@late
@entry
def lay_out_(raw: Stack, norm: int, length: Vector, out: Stack) -> None:
    """out (B, d, n) from raw (B, n, d), scaled: to norm 1, into the unit ball, or by the longest of its set; length (n)
    is scratch."""
    rounds, n, d = raw.shape
    for t in range(rounds):
        longest = 0.0
        for a in range(n):
            square = 0.0
            for i in range(d):
                square += raw[t, a, i] * raw[t, a, i]
            length[a] = math.sqrt(square)
            longest = max(longest, length[a])
        for a in range(n):
            scale = length[a] if norm == UNIT else max(1.0, length[a]) if norm == CLIP else longest
            if scale == 0.0:
                scale = 1.0
            for i in range(d):
                out[t, i, a] = raw[t, a, i] / scale
