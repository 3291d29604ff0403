"""Constants of the generalized linear families: multipliers of the bonus, ranges, self-concordance."""

from __future__ import annotations

import math

from driftwise.compiling import kernel


@kernel
def glm_multiplier(k: float, c: float) -> float:
    """2k/c, the factor before β̄‖x‖ in GLB indices (Algorithm 2)."""
    return 2.0 * k / c


@kernel
def scb_multiplier(k: float, c: float, S: float, L: float) -> float:
    """2√(1+2SL) k/√c, the factor before β̃‖x‖ in SCB indices (Algorithm 3)."""
    return 2.0 * math.sqrt(1.0 + 2.0 * S * L) * k / math.sqrt(c)


def bernoulli_range() -> float:
    """A Bernoulli reward is 1/2-sub-Gaussian (Hoeffding)."""
    return 0.5


def self_concordance(link: str, radius: float) -> float:
    """The smallest M with |μ''| ≤ M μ' on |z| ≤ radius (rules of section 3 need M ≤ 1)."""
    return {"identity": 0.0, "logistic": math.tanh(radius / 2.0), "probit": radius, "poisson": 1.0}[link]
