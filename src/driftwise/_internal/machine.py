"""A digest of the arithmetic of this machine. Machines with equal digests compute equal bits.

Compiled code keeps IEEE arithmetic as written (compiling.py), and elementary functions are our own (elementary.py).
Both give the same bits everywhere. A digest that differs therefore shows a defect of a processor, compiler or library:

* `functions`: the elementary functions in interpreted Python; tests/test_elementary.py compares the compiled ones.
* `numpy`: NumPy's sums and roots. Policies use them to set up, and generalized policies to score arms.

Earlier versions called the C library, NumPy's functions and BLAS. Their probes begin with `c:`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache

import numpy as np

from driftwise._internal import elementary, products

_NAMES = {
    "functions": "our elementary functions", "numpy": "NumPy's sums", "c": "the C library's exp, log, pow …",
    "blas": "the linear algebra library", "svml": "Intel's vector library",
}  # fmt: skip
_POINTS = 40
_SIZES = (2, 3, 5, 8, 13, 20, 31)
_RANGES = {
    "exp": (-40.0, 8.0), "expm1": (-30.0, 3.0), "log": (1e-9, 1e5), "log1p": (-0.9, 3.0), "log2": (1.0, 1e6),
    "erfc": (-6.0, 6.0), "sine": (0.0, 6.283185307179586), "cosine": (0.0, 6.283185307179586),
}  # fmt: skip


@cache
def probe() -> str:
    """The digest, with one part for each of the above: a few hundred fixed points, in about ten milliseconds."""
    parts = {"functions": _functions(), "numpy": _numpy()}
    return " ".join(f"{name}:{hashlib.sha256(data).hexdigest()[:12]}" for name, data in parts.items())


def differing(one: str, other: str) -> str:
    """The parts in which two digests differ, in words."""
    mine, theirs = set(one.split()), set(other.split())
    names = [name for name in _NAMES if any(part.startswith(f"{name}:") for part in mine ^ theirs)]
    return ", ".join(_NAMES[name] for name in names) or "the probe itself"


def scattered(low: float, high: float, count: int = _POINTS) -> list[float]:
    """Points from low to high in no regular order. Only products and differences, so the same on every machine."""
    return [low + (high - low) * (0.6180339887498949 * number % 1.0) for number in range(1, count + 1)]


def _bytes(values: Iterable[float]) -> bytes:
    return np.array(list(values), dtype="<f8").tobytes()


def _functions() -> bytes:
    found = [_bytes(map(getattr(elementary, name), scattered(*range_))) for name, range_ in _RANGES.items()]
    return b"".join([*found, _bytes(elementary.power(base, 0.4) for base in scattered(1e-6, 50.0))])


def _numpy() -> bytes:
    found = []
    for size in _SIZES:
        A = np.array(scattered(-1.0, 1.0, size * size)).reshape(size, size)
        V = products.times(A, A) + np.eye(size)
        found += [np.array(products.length(A[0])), V, products.solved(V, A[0]), products.factor(V)]
    return b"".join(one.tobytes() for one in found)
