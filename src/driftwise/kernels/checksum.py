"""SQLite's checksum of a write-ahead log (service/stores/wal.py)."""

from __future__ import annotations

from driftwise.kernels import entry
from driftwise.kernels.point import Ints


@entry
def checksum_(words: Ints, sums: Ints) -> None:
    """s0 <- s0 + x + s1, s1 <- s1 + x' + s0 over pairs of 32-bit words."""
    first, second = sums[0], sums[1]
    for i in range(0, words.size - 1, 2):
        first = (first + words[i] + second) & 0xFFFFFFFF
        second = (second + words[i + 1] + first) & 0xFFFFFFFF
    sums[0], sums[1] = first, second
