"""The stored part of a run, for records beside the catalogue's rows.

Each case is a name and a function that runs it, so that `guard.py --only` runs few. A run is stored as the guard stores
a row: `arms` is a hash of everything discrete, `numbers` of scores and regret, `sums` of canonical bytes of the state;
a sample of the sums is stored for other platforms. A search on a continuous set stops at a tolerance, so on other
platforms sums agree to CLOSE only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from golden import guard

CLOSE = 1e-6
FEW = 40  # sums of a state that are stored for other platforms


class Seen(NamedTuple):
    """The result of a run: everything discrete, numbers, bytes of the state, and sums for other platforms."""

    arms: list[Any]
    numbers: bytes
    state: bytes
    sums: np.ndarray


Case = tuple[str, Callable[[], Seen]]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def kept(seen: Seen) -> dict[str, str]:
    """The stored row of a run."""
    return {"arms": digest(json.dumps(seen.arms).encode()), "numbers": digest(seen.numbers), "sums": digest(seen.state)}


def ended(policy: Any, state: Any, arms: list[Any], numbers: Any) -> Seen:
    """A run that ends with a state of a policy."""
    data = numbers if isinstance(numbers, bytes) else np.array(numbers, dtype=np.float64).tobytes()
    return Seen(arms, data, policy.canonical(state).to_bytes(), sample(guard.summed(state)))


def sample(numbers: Any) -> np.ndarray:
    """The few numbers of many that are stored."""
    return np.array(numbers[:: 1 + len(numbers) // FEW], dtype=np.float64)


@cache
def sine(t: int) -> float:
    """The double nearest to sin(t), t below 60, whatever the C library: its series in whole numbers over 2^200."""
    fixed = total = term = t << 200
    k = 1
    while abs(term) > 1:
        k += 2
        term = -(term * fixed >> 200) * fixed // ((k - 1) * k << 200)
        total += term
    return float(Fraction(total, 1 << 200))


def fused(x: Any, y: Any) -> float:
    """x'y by fused multiply-adds from the first on: so the BLAS rounds that records were made with."""
    total = 0.0
    for one, other in zip(x.tolist(), y.tolist(), strict=True):
        total = float(Fraction(one) * Fraction(other) + Fraction(total))
    return total


def click(policy: Any) -> bool:
    """Whether a policy learns from clicks."""
    return getattr(getattr(policy, "base", policy), "link", "identity") != "identity"
