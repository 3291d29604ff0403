"""Sets of arms: drawn, scaled, and laid out with the arms as the contiguous axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driftwise.kernels import kernel
from driftwise.kernels.lanes import EIGHT, FOUR
from driftwise.kernels.point import Floats

UNIT, CLIP, MAX = 0, 1, 2
NORMS = {"unit": UNIT, "clip": CLIP, "max": MAX}
DRAWS = ("normal", "cube")


@kernel
def lay_out_(raw: Floats, norm: int, out: Floats) -> None:
    """out (B, d, n) from raw (B, n, d), scaled: to norm 1, into the unit ball, or by the longest of its set."""
    rounds, n, d = raw.shape
    length = np.empty(n)
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


def draw_arms(rng: np.random.Generator, sets: int, n: int, d: int, draw: str, norm: str) -> Floats:
    """`sets` sets of n arms in d dimensions as (sets, d, n); coordinates normal, or uniform on [-1, 1]."""
    raw = rng.standard_normal((sets, n, d)) if draw == "normal" else rng.uniform(-1.0, 1.0, (sets, n, d))
    out = np.empty((sets, d, n))
    lay_out_(raw, NORMS[norm], out)
    return out


def arm_tiles(sets: Sequence[Floats]) -> Floats:
    """Up to eight sets (d, n) as lanes of tiles of four arms (n/4, d, 4, 8); lanes beyond them are as the last, and
    arms that fill up the last tile as the first, which no tie chooses."""
    d, n = sets[0].shape
    tiles = -(-n // FOUR)
    rows = np.empty((d, tiles * FOUR, EIGHT))
    for lane in range(EIGHT):
        one = sets[min(lane, len(sets) - 1)]
        rows[:, :n, lane] = one
        rows[:, n:, lane] = one[:, :1]
    return np.ascontiguousarray(rows.reshape(d, tiles, FOUR, EIGHT).transpose(1, 0, 2, 3))
