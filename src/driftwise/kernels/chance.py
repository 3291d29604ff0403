"""Rewards from a tape: one standard normal or one uniform a round, read the same by every policy."""

from __future__ import annotations

import math

from driftwise.kernels import kernel, piece

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
def reward_of(kind: int, mean: float, noise: float, draw: float) -> float:
    """What the tape makes of a mean."""
    if kind == GAUSSIAN:
        return mean + noise * draw
    if kind == BERNOULLI:
        return 1.0 if draw < mean else 0.0
    return poisson_quantile(draw, mean)
