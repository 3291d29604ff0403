"""Named random streams: the same seed and names give the same numbers, whatever else is drawn."""

from __future__ import annotations

import hashlib

import numpy as np

from driftwise.errors import BadInput


def checked_seed(seed: object, name: str = "seed") -> int:
    """A seed is a whole number from 0 up."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise BadInput(name, seed, "a whole number of at least 0", "pass seed=0, or any other number you can repeat")
    return int(seed)


def key(seed: int, *names: str | int) -> int:
    """A 64-bit key for (seed, names)."""
    text = "\0".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """A generator of its own for (seed, names)."""
    return np.random.Generator(np.random.Philox(key=key(seed, *names)))
