"""How fast to forget when the drift is known: one function per theorem. All return forget = 1-γ, or rounds."""

from __future__ import annotations

import math

from driftwise.errors import BadInput

_BY_HAND = "pass memory=Fade(...) yourself"


def _checked(forget: float, name: str, value: float, limit: float, formula: str) -> float:
    if not forget < 1.0:
        raise BadInput(name, value, f"below {formula} = {limit:.6g}, or γ leaves (0, 1)", _BY_HAND)
    return forget


def lb_forget(dim: int, horizon: float, path_length: float) -> float:
    """Theorem 1: 1-γ = max(1/T, √(P_T/(dT)))."""
    forget = max(1.0 / horizon, math.sqrt(path_length / (dim * horizon)))
    return _checked(forget, "path_length", path_length, dim * horizon, "dim*horizon") if horizon > 1 else 0.0


def glb_forget(dim: int, horizon: float, path_length: float, k: float, c: float) -> float:
    """Theorem 2: 1-γ = max(1/T, √(k'c P_T/(dT))), k' = max(k, 1)."""
    rate = max(k, 1.0) * c
    forget = max(1.0 / horizon, math.sqrt(rate * path_length / (dim * horizon)))
    limit = dim * horizon / rate
    return _checked(forget, "path_length", path_length, limit, "dim*horizon/(max(k,1)*c)") if horizon > 1 else 0.0


def scb_forget(dim: int, horizon: float, path_length: float, k: float) -> float:
    """Theorem 3: 1-γ = max(1/T, √(k' P_T/(dT))), k' = max(k, 1)."""
    rate = max(k, 1.0)
    forget = max(1.0 / horizon, math.sqrt(rate * path_length / (dim * horizon)))
    limit = dim * horizon / rate
    return _checked(forget, "path_length", path_length, limit, "dim*horizon/max(k,1)") if horizon > 1 else 0.0


def bvd_forget(dim: int, horizon: float, path_length: float) -> float:
    """BVD-GLM-UCB (Faury et al. 2021): 1-γ = (P_T/(√d T))^{2/5}."""
    forget = (path_length / (math.sqrt(dim) * horizon)) ** 0.4
    return _checked(forget, "path_length", path_length, math.sqrt(dim) * horizon, "√dim*horizon")


def pw_forget(dim: int, horizon: float, changes: float) -> float:
    """Theorem 4: 1-γ = max(1/T, (Γ_T/(dT))^{2/3})."""
    forget = max(1.0 / horizon, (changes / (dim * horizon)) ** (2.0 / 3.0))
    return _checked(forget, "changes", changes, dim * horizon, "dim*horizon")


def pw_delay(forget: float, horizon: float) -> int:
    """D = ⌈log T / log(1/γ)⌉, the rounds after which a change is forgotten (Appendix D)."""
    return math.ceil(math.log(horizon) / -math.log1p(-forget))


def sc_d_glucb_forget(dim: int, horizon: float, changes: float, c: float) -> float:
    """SC-D-GLUCB (Russac et al. 2021): 1-γ = max(1/T, (√c Γ_T/(dT))^{2/3})."""
    forget = max(1.0 / horizon, (math.sqrt(c) * changes / (dim * horizon)) ** (2.0 / 3.0))
    return _checked(forget, "changes", changes, dim * horizon / math.sqrt(c), "dim*horizon/√c")


def restart_period(dim: int, horizon: float, path_length: float) -> int:
    """H = max(1, ⌊d^{1/4} √(T/(1+P_T))⌋) (Zhao et al. 2020, as the paper sets it)."""
    return max(1, math.floor(math.pow(dim, 0.25) * math.sqrt(horizon / (1.0 + path_length))))


def window_length(dim: int, horizon: float, path_length: float) -> int:
    """w = H: the paper gives window and period one formula."""
    return restart_period(dim, horizon, path_length)
