"""Constants of the generalized linear families: multipliers of the bonus."""

from __future__ import annotations

import math

from driftwise._internal.compiling import formula


@formula
def glm_multiplier(k: float, c: float) -> float:
    """2k/c, the factor before β̄‖x‖ in GLB indices (Algorithm 2)."""
    return 2.0 * k / c


@formula
def scb_multiplier(k: float, c: float, S: float, L: float) -> float:
    """2√(1+2SL) k/√c, the factor before β̃‖x‖ in SCB indices (Algorithm 3)."""
    return 2.0 * math.sqrt(1.0 + 2.0 * S * L) * k / math.sqrt(c)
