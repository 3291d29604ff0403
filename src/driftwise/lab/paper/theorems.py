"""The paper's four regret bounds with their own tuning, as functions of the setting, and the exponents of its Table 1.

Bounds are the proved ones (docs/repairs.md), or with uniform=False the printed ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driftwise.errors import BadInput
from driftwise.kernels.links import LINKS, LOGISTIC
from driftwise.kernels.links import mean as link_mean
from driftwise.theory import (
    glb_forget,
    glb_regret_bound,
    informative_horizon,
    lb_forget,
    lb_regret_bound,
    pw_delay,
    pw_forget,
    pw_radius,
    pw_regret_bound,
    scb_forget,
    scb_regret_bound,
)


@dataclass(frozen=True)
class Setting:
    """The arguments of a bound. `drift` is P_T, or Γ_T if θ is piecewise stationary."""

    dim: int
    horizon: float
    drift: float
    S: float = 1.0
    L: float = 1.0
    R: float = 1.0

    @property
    def slopes(self) -> tuple[float, float]:
        """k and c of the logistic link."""
        return LINKS["logistic"].slopes(self.S * self.L)

    @property
    def click_gap(self) -> float:
        """The largest possible regret of a round with clicks."""
        reach = self.S * self.L
        return float(link_mean(LOGISTIC, reach) - link_mean(LOGISTIC, -reach))


@dataclass(frozen=True)
class Theorem:
    """A regret bound, the largest regret of one round, and the exponents Table 1 gives it."""

    name: str
    policy: str
    bound: Callable[[Setting, bool], float]
    gap: Callable[[Setting], float]
    exponents: Mapping[str, float]

    def at(self, setting: Setting, uniform: bool = True) -> float:
        """The bound; infinite where its tuning forgets everything at once."""
        try:
            return self.bound(setting, uniform)
        except BadInput:
            return math.inf

    def informative(self, setting: Setting) -> float:
        """The T from which the bound is below the largest possible regret."""

        def bound(T: float) -> float:
            return self.at(Setting(setting.dim, T, setting.drift, setting.S, setting.L, setting.R))

        return informative_horizon(bound, self.gap(setting))


def _lb(s: Setting, uniform: bool) -> float:
    forget = lb_forget(s.dim, s.horizon, s.drift)
    return lb_regret_bound(
        dim=s.dim, horizon=s.horizon, path_length=s.drift, forget=forget, lam=float(s.dim), S=s.S, L=s.L, R=s.R,
        uniform=uniform,
    )  # fmt: skip


def _glb(s: Setting, uniform: bool) -> float:  # Theorem 2 holds with the δ it prints
    k, c = s.slopes
    forget = glb_forget(s.dim, s.horizon, s.drift, k, c)
    return glb_regret_bound(
        dim=s.dim, horizon=s.horizon, path_length=s.drift, forget=forget, lam=s.dim / c**2, S=s.S, L=s.L, R=s.R, k=k,
        c=c,
    )  # fmt: skip


def _scb(s: Setting, uniform: bool) -> float:
    k, c = s.slopes
    forget, lam = scb_forget(s.dim, s.horizon, s.drift, k), s.dim * math.log(max(2.0, s.horizon)) / c
    return scb_regret_bound(
        dim=s.dim, horizon=s.horizon, path_length=s.drift, forget=forget, lam=lam, S=s.S, L=s.L, m=1.0, k=k, c=c,
        uniform=uniform,
    )  # fmt: skip


def _pw(s: Setting, uniform: bool) -> float:
    k, c = s.slopes
    T = max(2.0, s.horizon)
    forget, reg = pw_forget(s.dim, T, s.drift), s.dim * math.log(T)
    delay = pw_delay(forget, T)
    log_delta = math.log(T) * (2.0 if uniform else 1.0)
    rho = pw_radius(float(delay), forget, float(s.dim), reg, log_delta, s.S, s.L, 1.0, k, False)
    return pw_regret_bound(
        dim=s.dim, horizon=T, changes=s.drift, gap=s.click_gap, delay=delay, forget=forget, reg=reg, rho=rho, S=s.S,
        L=s.L, k=k, c=c, uniform=uniform,
    )  # fmt: skip


def _click_gap(s: Setting) -> float:
    return s.click_gap


_DRIFTING = {"T": 3 / 4, "drift": 1 / 4, "d": 3 / 4}
THEOREMS = {
    "LB": Theorem("Theorem 1", "LB-WeightUCB", _lb, lambda s: 2.0 * s.S * s.L, _DRIFTING),
    "GLB": Theorem("Theorem 2", "GLB-WeightUCB", _glb, _click_gap, _DRIFTING),
    "SCB": Theorem("Theorem 3", "SCB-WeightUCB", _scb, _click_gap, _DRIFTING),
    "PW": Theorem("Theorem 4", "SCB-PW-WeightUCB", _pw, _click_gap, {"T": 2 / 3, "drift": 1 / 3, "d": 2 / 3}),
}
