"""How fast to forget when the drift is known: one function per theorem. All return forget = 1-γ, or rounds."""

from __future__ import annotations

import math

from driftwise._internal.elementary import log, log1p, power
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


def glb_forget(
    dim: int, horizon: float, path_length: float, k: float, c: float, *, printed: bool = False
) -> float:
    """Theorem 2: 1-γ = max(1/T, √(k'c P_T/(dT))). k' = max(k, 1) as in the experiments; `printed` takes k itself."""
    rate = (k if printed else max(k, 1.0)) * c
    forget = max(1.0 / horizon, math.sqrt(rate * path_length / (dim * horizon)))
    limit = dim * horizon / rate
    return _checked(forget, "path_length", path_length, limit, "dim*horizon/(max(k,1)*c)") if horizon > 1 else 0.0


def scb_forget(dim: int, horizon: float, path_length: float, k: float, *, printed: bool = False) -> float:
    """Theorem 3: 1-γ = max(1/T, √(k' P_T/(dT))). k' = max(k, 1) as in the experiments; `printed` takes k itself."""
    rate = k if printed else max(k, 1.0)
    forget = max(1.0 / horizon, math.sqrt(rate * path_length / (dim * horizon)))
    limit = dim * horizon / rate
    return _checked(forget, "path_length", path_length, limit, "dim*horizon/max(k,1)") if horizon > 1 else 0.0


def exp3_mix(arms: int, horizon: float, variation: float) -> float:
    """The exploration of EXP3.S against a variation V: min(1, (4VK log(KT)/((e-1)²T))^(1/3)) (Besbes, Gur, Zeevi)."""
    spread = (math.e - 1.0) * (math.e - 1.0) * horizon
    rate = 4.0 * max(variation, 1.0 / horizon) * arms * log(arms * horizon + 1.0) / spread
    return min(1.0, power(rate, 1.0 / 3.0))


def bvd_forget(dim: int, horizon: float, path_length: float) -> float:
    """BVD-GLM-UCB (Faury et al. 2021): 1-γ = (P_T/(√d T))^{2/5}."""
    forget = power(path_length / (math.sqrt(dim) * horizon), 0.4)
    return _checked(forget, "path_length", path_length, math.sqrt(dim) * horizon, "√dim*horizon")


def pw_forget(dim: int, horizon: float, changes: float) -> float:
    """Theorem 4: 1-γ = max(1/T, (Γ_T/(dT))^{2/3})."""
    forget = max(1.0 / horizon, power(changes / (dim * horizon), 2.0 / 3.0))
    return _checked(forget, "changes", changes, dim * horizon, "dim*horizon")


def pw_delay(forget: float, horizon: float) -> int:
    """D = ⌈log T / log(1/γ)⌉, the rounds after which a change is forgotten (Appendix D)."""
    return math.ceil(log(horizon) / -log1p(-forget))


def sc_d_glucb_forget(dim: int, horizon: float, changes: float, c: float) -> float:
    """SC-D-GLUCB (Russac et al. 2021): 1-γ = max(1/T, (√c Γ_T/(dT))^{2/3})."""
    forget = max(1.0 / horizon, power(math.sqrt(c) * changes / (dim * horizon), 2.0 / 3.0))
    return _checked(forget, "changes", changes, dim * horizon / math.sqrt(c), "dim*horizon/√c")


def restart_period(dim: int, horizon: float, path_length: float) -> int:
    """H = max(1, ⌊d^{1/4} √(T/(1+P_T))⌋) (Zhao et al. 2020, as the paper sets it)."""
    return max(1, math.floor(power(dim, 0.25) * math.sqrt(horizon / (1.0 + path_length))))


def d_linucb_forget(dim: int, horizon: float, path_length: float) -> float:
    """D-LinUCB by its own source (Russac, Vernade, Cappé 2019, Corollary 1): 1-γ = (B_T/(dT))^{2/3}, at least 1/T."""
    forget = max(1.0 / horizon, power(path_length / (dim * horizon), 2.0 / 3.0))
    return _checked(forget, "path_length", path_length, dim * horizon, "dim*horizon") if horizon > 1 else 0.0


def _two_thirds(dim: int, horizon: float, path_length: float) -> float:
    """(dT/P_T)^{2/3}, at most T."""
    return horizon if path_length <= dim / math.sqrt(horizon) else power(dim * horizon / path_length, 2.0 / 3.0)


def cheung_window(dim: int, horizon: float, path_length: float) -> int:
    """SW-UCB by its own source (Cheung, Simchi-Levi, Zhu 2019): w = ⌊(dT/B_T)^{2/3}⌋, between 1 and T."""
    return max(1, math.floor(_two_thirds(dim, horizon, path_length)))


def zhao_period(dim: int, horizon: float, path_length: float) -> int:
    """RestartUCB by its own source (Zhao et al. 2020, first version): H = ⌈(dT/P_T)^{2/3}⌉, at most T."""
    return max(1, math.ceil(_two_thirds(dim, horizon, path_length)))


def bob_block(dim: int, horizon: float) -> int:
    """Rounds of a block of BOB by its source (Cheung, Simchi-Levi, Zhu 2019): H = ⌊d√T⌋."""
    return max(1, math.floor(dim * math.sqrt(horizon)))


def bob_grid(block: int) -> tuple[int, ...]:
    """Windows BOB draws from by its source: ⌊H^{j/Δ}⌋ for j = 0..Δ, Δ = ⌈log H⌉; each once."""
    steps = max(1, math.ceil(log(block)))
    widths = (math.floor(power(block, j / steps) * (1.0 + 1e-12)) for j in range(steps + 1))
    return tuple(sorted({min(block, width) for width in widths}))


def window_length(dim: int, horizon: float, path_length: float) -> int:
    """w = H: the paper gives window and period one formula."""
    return restart_period(dim, horizon, path_length)
