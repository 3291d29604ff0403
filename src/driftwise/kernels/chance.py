"""Randomness: rewards from a tape that every policy reads, and draws that are pure functions of a key and counters.

A state has no generator. A draw hashes its key and counters in 32-bit steps, which int64 arithmetic and Python's
integers compute alike, so interpreted and compiled runs draw the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import cosine, exp, log1p
from driftwise.kernels import formula, piece
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Ints

GAUSSIAN, BERNOULLI, POISSON = 0, 1, 2


@formula
def poisson_quantile(u: float, mean: float) -> float:
    """The smallest count whose distribution function exceeds u; means up to 600 or so keep e^-mean above 0."""
    count = 0.0
    p = exp(-mean)
    total = p
    while total <= u and p > 0.0:
        count += 1.0
        p *= mean / count
        total += p
    return count


class Rounds(NamedTuple):
    """Rounds to play: arms, one set or one per round, θ's path (B, d), the tape's draws and the best means (B,), and
    the model of rewards: link, kind, noise."""

    arms: Stack
    path: Matrix
    draws: Vector
    best: Vector
    link: int
    kind: int
    noise: float


class Record(NamedTuple):
    """The results: arms chosen, cumulative regret, and the row of the table that acted."""

    chosen: Ints
    regret: Vector
    used: Ints


@formula
def reward_of(kind: int, mean: float, noise: float, draw: float) -> float:
    """The reward for a mean and a draw of the tape."""
    if kind == GAUSSIAN:
        return mean + noise * draw
    if kind == BERNOULLI:
        return 1.0 if draw < mean else 0.0
    return poisson_quantile(draw, mean)


@piece
def set_of(rounds: Rounds, t: int) -> int:
    """The set of arms of a round: the only one, or its own."""
    return t if rounds.arms.shape[0] > 1 else 0


@piece
def reward_(rounds: Rounds, t: int, arm: int, total: float, record: Record) -> float:
    """The reward of the arm played in round t, which is recorded; total is the regret before it."""
    arms, at = rounds.arms, set_of(rounds, t)
    value = 0.0
    for i in range(arms.shape[1]):
        value += arms[at, i, arm] * rounds.path[t, i]
    value = link_mean(rounds.link, value)
    record.chosen[t] = arm
    record.regret[t] = total + (rounds.best[t] - value)
    return reward_of(rounds.kind, value, rounds.noise, rounds.draws[t])


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
    h = mix((int(low) ^ salt) & WORD)  # int, because numpy warns if integers wrap, which is intended here
    h = mix((h + int(high)) & WORD)
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


@piece
def normal(low: int, high: int, a: int, b: int, c: int) -> float:
    """A standard normal number, by Box and Muller from the uniforms of the counters c and c + 1."""
    radius = math.sqrt(-2.0 * log1p(-uniform(low, high, a, b, c)))
    return radius * cosine(2.0 * math.pi * uniform(low, high, a, b, c + 1))
