"""Chance: rewards from a tape that every policy reads, and draws that are pure functions of a key and counters.

No generator lives in a state. A draw hashes its key and counters in 32-bit steps, which int64 arithmetic and Python's
integers carry out alike, so interpreted and compiled runs draw the same.
"""

from __future__ import annotations

import math

from driftwise.kernels import kernel, piece
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats

GAUSSIAN, BERNOULLI, POISSON = 0, 1, 2


@kernel
def poisson_quantile(u: float, mean: float) -> float:
    """The smallest count whose distribution function exceeds u; means up to 600 or so keep e^-mean above 0."""
    count = 0.0
    p = math.exp(-mean)
    total = p
    while total <= u and p > 0.0:
        count += 1.0
        p *= mean / count
        total += p
    return count


@piece
def mean_of(link: int, arms: Floats, at: int, arm: int, theta: Floats, t: int) -> float:
    """μ(x'θ_t) of the arm played, x = arms[at, :, arm]."""
    value = 0.0
    for i in range(arms.shape[1]):
        value += arms[at, i, arm] * theta[t, i]
    return link_mean(link, value)


@piece
def reward_of(kind: int, mean: float, noise: float, draw: float) -> float:
    """What the tape makes of a mean."""
    if kind == GAUSSIAN:
        return mean + noise * draw
    if kind == BERNOULLI:
        return 1.0 if draw < mean else 0.0
    return poisson_quantile(draw, mean)


WORD = 0xFFFFFFFF


@piece
def mix(x: int) -> int:
    """A bijection of 32-bit words that spreads every bit over all (Wellons' lowbias32)."""
    x ^= x >> 16
    x = (x * 0x7FEB352D) & WORD
    x ^= x >> 15
    x = (x * 0x846CA68B) & WORD
    return x ^ (x >> 16)


@piece
def word(salt: int, low: int, high: int, a: int, b: int, c: int) -> int:
    """32 bits from a key in two halves and three counters."""
    h = mix((low ^ salt) & WORD)
    h = mix((h + high) & WORD)
    h = mix((h + a) & WORD)
    h = mix((h + 0x9E3779B9 + b) & WORD)
    h = mix((h + 0x3C6EF372 + c) & WORD)
    return mix((h ^ (a >> 32)) & WORD)


@piece
def uniform(low: int, high: int, a: int, b: int, c: int) -> float:
    """A number in [0, 1) with 53 bits."""
    upper = word(0x243F6A88, low, high, a, b, c) >> 5
    lower = word(0x85A308D3, low, high, a, b, c) >> 6
    return (upper * 67108864.0 + lower) / 9007199254740992.0
