"""The orders of regret in Table 1, those of earlier work, and the lower bound, without constants and logarithms."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import power


class Order(NamedTuple):
    """Exponents of regret in k, c, d, the drift (P_T, or Γ_T in the piecewise family) and T."""

    k: float
    c: float
    d: float
    drift: float
    T: float

    def at(self, *, dim: int, horizon: float, drift: float, k: float = 1.0, c: float = 1.0) -> float:
        """The product of powers."""
        sizes = power(dim, self.d) * power(drift, self.drift) * power(horizon, self.T)
        return power(k, self.k) * power(c, self.c) * sizes


# This paper's results by family, and where its weighted algorithms stood before.
ORDERS = {
    "LB": Order(0.0, 0.0, 3 / 4, 1 / 4, 3 / 4),
    "GLB": Order(5 / 4, -3 / 4, 3 / 4, 1 / 4, 3 / 4),
    "SCB": Order(5 / 4, -1 / 2, 3 / 4, 1 / 4, 3 / 4),
    "PW": Order(0.0, 0.0, 2 / 3, 1 / 3, 2 / 3),
}
PREVIOUS = {
    "LB": Order(0.0, 0.0, 7 / 8, 1 / 4, 3 / 4),  # Russac, Vernade, Cappé 2019, corrected
    "GLB": Order(2.0, -1.0, 9 / 10, 1 / 5, 4 / 5),  # Faury et al. 2021
    "SCB": Order(2.0, -1.0, 9 / 10, 1 / 5, 4 / 5),  # the same
    "PW": Order(0.0, -1 / 3, 2 / 3, 1 / 3, 2 / 3),  # Russac et al. 2021
}
LOWER = Order(0.0, 0.0, 2 / 3, 1 / 3, 2 / 3)  # Cheung, Simchi-Levi, Zhu 2019


def lower_bound(dim: int, horizon: float, path_length: float) -> float:
    """The minimax lower bound for drifting linear bandits, d^{2/3} P_T^{1/3} T^{2/3}, and d√T where that is more."""
    return max(dim * math.sqrt(horizon), LOWER.at(dim=dim, horizon=horizon, drift=path_length))


def still_below(family: str, dim: int, horizon: float, k: float = 1.0, c: float = 1.0) -> float:
    """The drift below which a theorem forgets at the least rate, 1/T, and claims the static order."""
    return {"LB": dim / horizon, "GLB": dim / (k * c * horizon), "SCB": dim / (k * horizon),
            "PW": dim / math.sqrt(horizon)}[family]  # fmt: skip


def regret_order(family: str, *, dim: int, horizon: float, drift: float, k: float = 1.0, c: float = 1.0) -> float:
    """What Theorems 1-4 promise up to constants and logarithms, in both regimes of the drift."""
    if drift >= still_below(family, dim, horizon, k, c):
        return ORDERS[family].at(dim=dim, horizon=horizon, drift=drift, k=k, c=c)
    static = {"LB": 1.0, "GLB": k / c, "SCB": k / math.sqrt(c), "PW": 1.0}[family]
    return static * dim * math.sqrt(horizon)


def previous_order(family: str, *, dim: int, horizon: float, drift: float, k: float = 1.0, c: float = 1.0) -> float:
    """What was promised before, up to constants and logarithms (Table 1)."""
    return PREVIOUS[family].at(dim=dim, horizon=horizon, drift=drift, k=k, c=c)
