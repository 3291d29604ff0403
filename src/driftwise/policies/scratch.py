"""Scratch that Python passes to kernels, with the lengths they declare (kernels/scratch.py)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from driftwise.kernels.index import ScoreScratch, score_scratch_size
from driftwise.kernels.lazy import lazy_size
from driftwise.kernels.point import Floats
from driftwise.kernels.scratch import EIGHT, places
from driftwise.kernels.tiles import Tiles

_in_scores, _on_tiles = places(ScoreScratch), places(Tiles)


def on_a_line(size: int) -> Floats:
    """`size` zeros that begin on a cache line."""
    raw = np.zeros(size + EIGHT)
    start = -(raw.__array_interface__["data"][0] // 8) % EIGHT
    return raw[start : start + size]


def for_scores(dim: int, n: int) -> tuple[Floats, int]:
    """Scratch for the scores of n arms by any engine: means at its beginning, and the offset of the bonuses."""
    at = _in_scores(dim, n)["bonus"]
    assert at == _on_tiles(dim, n)["bonus"], "engines leave bonuses at one place"
    return on_a_line(max(score_scratch_size(dim, n), lazy_size(dim, n))), at


def proposed(scratch: Floats, dim: int, n: int) -> Floats:
    """What is proposed of n arms, in scratch for their scores."""
    at = _in_scores(dim, n)["proposed"]
    return scratch[at : at + n]


def for_rounds(dim: int, n: int, lesson: int) -> Floats:
    """Scratch for rounds with n arms by any engine, whose updates use `lesson` numbers."""
    return on_a_line(_size_of_rounds(dim, n, lesson))


@lru_cache(maxsize=256)
def _size_of_rounds(dim: int, n: int, lesson: int) -> int:
    return int(max(score_scratch_size(dim, n) + lesson, lazy_size(dim, n)))
