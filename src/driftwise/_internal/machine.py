"""A digest of what computes on this machine: equal digests, equal bits.

Compiled code keeps IEEE arithmetic as written (compiling.py), which is the same everywhere. Three libraries round for
themselves, and each has other code for other processors:

* `c`: the C library's elementary functions. numba calls them by their symbols, and so do Python's `math` and `**`;
  tests/test_machine.py compares the two.
* `numpy`: NumPy's own elementary functions, by which policies set up their weights.
* `blas`: sums of products and solutions of linear systems, by which generalized policies score arms.

numba may call Intel's vector library (SVML) instead of the C library where it is installed: a fourth part says whether.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import cache

import numpy as np

from driftwise._internal.compiling import config

_NAMES = {
    "c": "the C library's exp, log, pow …", "numpy": "NumPy's exp, log …", "blas": "the linear algebra library",
    "svml": "Intel's vector library",
}  # fmt: skip
_POINTS = 2_000
_POWERS = (0.1, 0.25, 0.4, 2.0 / 3.0, -1.5)
_SIZES = (2, 3, 5, 8, 13, 20, 31)  # too small for BLAS to share among threads


@cache
def probe() -> str:
    """The digest, a part for each library: a few thousand fixed points, in about ten milliseconds."""
    parts = {"c": _c(), "numpy": _numpy(), "blas": _blas()}
    found = [f"{name}:{hashlib.sha256(data).hexdigest()[:12]}" for name, data in parts.items()]
    return " ".join([*found, "svml:yes" if config.USING_SVML else "svml:no"])


def differing(one: str, other: str) -> str:
    """The libraries in which two digests differ, in words."""
    mine, theirs = set(one.split()), set(other.split())
    names = [name for name in _NAMES if any(part.startswith(f"{name}:") for part in mine ^ theirs)]
    return ", ".join(_NAMES[name] for name in names) or "the probe itself"


def _spread(low: float, high: float, count: int = _POINTS) -> list[float]:
    """Points from low to high in no regular order; products and differences alone, so the same everywhere."""
    return [low + (high - low) * (0.6180339887498949 * number % 1.0) for number in range(1, count + 1)]


def _bytes(values: Iterable[float]) -> bytes:
    return np.array(list(values), dtype="<f8").tobytes()


def _c() -> bytes:
    """The functions that kernels, theory and policies call, where they call them."""
    small, angles = _spread(-0.9, 3.0), _spread(0.0, 6.283185307179586)
    found = [
        map(math.exp, _spread(-40.0, 8.0, 2 * _POINTS)), map(math.exp, _spread(-0.1, 0.1)),
        map(math.log, _spread(1e-9, 1e5)), map(math.log, _spread(0.5, 1.5, 2 * _POINTS)),
        map(math.log2, _spread(1.0, 1e6)), map(math.log1p, small), map(math.expm1, small),
        map(math.expm1, _spread(-30.0, -0.001)), map(math.erfc, _spread(-6.0, 6.0)), map(math.tanh, small),
        map(math.cos, angles), map(math.sin, angles),
        *([math.pow(base, power) for base in _spread(1e-6, 50.0, 400)] for power in _POWERS),
    ]  # fmt: skip
    return b"".join(map(_bytes, found))


def _numpy() -> bytes:
    wide, above = np.array(_spread(-40.0, 8.0)), np.array(_spread(0.001, 1e5))
    found = (np.exp(wide), np.log1p(above), np.log2(above), np.cos(wide), np.sin(wide))
    return b"".join(one.tobytes() for one in found)


def _blas() -> bytes:
    found = []
    for size in _SIZES:
        A = np.array(_spread(-1.0, 1.0, size * size)).reshape(size, size)
        x, wide = A[0].copy(), np.array(_spread(-1.0, 1.0, 3 * size)).reshape(size, 3)
        V = A @ A.T + np.eye(size)
        found += [np.asarray(x @ x), A @ x, wide.T @ x, V, A @ wide, np.linalg.solve(V, x), np.linalg.solve(V, wide),
                  np.linalg.cholesky(V)]  # fmt: skip
    return b"".join(one.tobytes() for one in found)
