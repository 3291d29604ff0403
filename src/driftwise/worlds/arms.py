"""Sets of arms: drawn, scaled, and laid out with the arms as the contiguous axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftwise.kernels.lanes import EIGHT, FOUR
from driftwise.kernels.point import Floats
from driftwise.kernels.tapes import CLIP, MAX, UNIT, lay_out_, normals

NORMS = {"unit": UNIT, "clip": CLIP, "max": MAX}
DRAWS = ("normal", "cube", "disc", "basis")


def draw_arms(rng: np.random.Generator, sets: int, n: int, d: int, draw: str, norm: str, spread: float) -> Floats:
    """`sets` sets of n arms in d dimensions as (sets, d, n): coordinates normal, or uniform on [-1, 1]; uniform in the
    unit ball ("disc"); or the vectors of the standard basis. All are multiplied by `spread`."""
    out = np.empty((sets, d, n))
    raw = _raw(rng, sets, n, d, draw)
    if spread != 1.0:
        raw *= spread
    lay_out_(raw, NORMS[norm], np.empty(n), out)
    return out


def _raw(rng: np.random.Generator, sets: int, n: int, d: int, draw: str) -> Floats:
    if draw == "cube":
        return np.asarray(-1.0 + 2.0 * rng.random((sets, n, d)))
    if draw == "basis":
        return np.ascontiguousarray(np.broadcast_to(np.eye(n, d), (sets, n, d)))
    if draw == "normal":
        return normals(rng, (sets, n, d))
    # The first d coordinates of a point on the sphere in d + 2 dimensions are uniform in the ball.
    raw = normals(rng, (sets, n, d + 2))
    square = np.zeros((sets, n))
    for i in range(d + 2):  # one after the other, because NumPy's sums have another order
        square += raw[..., i] * raw[..., i]
    return np.ascontiguousarray(raw[..., :d] / np.sqrt(square)[..., None])


def arm_tiles(sets: Sequence[Floats]) -> Floats:
    """Up to eight sets (d, n) as lanes of tiles of four arms (n/4, d, 4, 8). Unused lanes repeat the last set. Unused
    places of the last tile repeat the first arm, which no tie chooses."""
    d, n = sets[0].shape
    tiles = -(-n // FOUR)
    rows = np.empty((d, tiles * FOUR, EIGHT))
    for lane in range(EIGHT):
        one = sets[min(lane, len(sets) - 1)]
        rows[:, :n, lane] = one
        rows[:, n:, lane] = one[:, :1]
    return np.ascontiguousarray(rows.reshape(d, tiles, FOUR, EIGHT).transpose(1, 0, 2, 3))
