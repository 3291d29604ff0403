"""The paper's four regret bounds at their own tuning, as functions of the problem, and the exponents of its Table 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driftwise.errors import BadInput
from driftwise.kernels.links import LOGISTIC, bounds
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
class Problem:
    """What a bound depends on. `drift` is P_T, or Γ_T in the piecewise stationary setting."""

    dim: int
    horizon: float
    drift: float
    S: float = 1.0
    L: float = 1.0
    R: float = 1.0

    @property
    def slopes(self) -> tuple[float, float]:
        """k and c of the logistic link."""
        return bounds(LOGISTIC, self.S * self.L)

    @property
    def click_gap(self) -> float:
        """The largest regret a round can have with clicks."""
        reach = self.S * self.L
        return float(link_mean(LOGISTIC, reach) - link_mean(LOGISTIC, -reach))


@dataclass(frozen=True)
class Theorem:
    """A regret bound, the largest regret of one round, and the exponents Table 1 gives it."""

    name: str
    policy: str
    bound: Callable[[Problem], float]
    gap: Callable[[Problem], float]
    exponents: Mapping[str, float]

    def at(self, problem: Problem) -> float:
        """The bound; infinite where its tuning forgets everything at once."""
        try:
            return self.bound(problem)
        except BadInput:
            return math.inf

    def informative(self, problem: Problem) -> float:
        """The T from which the bound is below what the worst player loses."""

        def bound(T: float) -> float:
            return self.at(Problem(problem.dim, T, problem.drift, problem.S, problem.L, problem.R))

        return informative_horizon(bound, self.gap(problem))


def _lb(p: Problem) -> float:
    forget = lb_forget(p.dim, p.horizon, p.drift)
    return lb_regret_bound(
        dim=p.dim, horizon=p.horizon, path_length=p.drift, forget=forget, lam=float(p.dim), S=p.S, L=p.L, R=p.R
    )


def _glb(p: Problem) -> float:
    k, c = p.slopes
    forget = glb_forget(p.dim, p.horizon, p.drift, k, c)
    return glb_regret_bound(
        dim=p.dim, horizon=p.horizon, path_length=p.drift, forget=forget, lam=p.dim / c**2, S=p.S, L=p.L, R=p.R, k=k,
        c=c,
    )  # fmt: skip


def _scb(p: Problem) -> float:
    k, c = p.slopes
    forget, lam = scb_forget(p.dim, p.horizon, p.drift, k), p.dim * math.log(max(2.0, p.horizon)) / c
    return scb_regret_bound(
        dim=p.dim, horizon=p.horizon, path_length=p.drift, forget=forget, lam=lam, S=p.S, L=p.L, m=1.0, k=k, c=c
    )


def _pw(p: Problem) -> float:
    k, _ = p.slopes
    T = max(2.0, p.horizon)
    forget, reg = pw_forget(p.dim, T, p.drift), p.dim * math.log(T)
    delay = pw_delay(forget, T)
    rho = pw_radius(float(delay), forget, float(p.dim), reg, math.log(T), p.S, p.L, 1.0, k, False)
    return pw_regret_bound(
        dim=p.dim, horizon=T, changes=p.drift, gap=p.click_gap, delay=delay, forget=forget, reg=reg, rho=rho, S=p.S,
        L=p.L, k=k,
    )  # fmt: skip


def _click_gap(p: Problem) -> float:
    return p.click_gap


_DRIFTING = {"T": 3 / 4, "drift": 1 / 4, "d": 3 / 4}
THEOREMS = {
    "LB": Theorem("Theorem 1", "LB-WeightUCB", _lb, lambda p: 2.0 * p.S * p.L, _DRIFTING),
    "GLB": Theorem("Theorem 2", "GLB-WeightUCB", _glb, _click_gap, _DRIFTING),
    "SCB": Theorem("Theorem 3", "SCB-WeightUCB", _scb, _click_gap, _DRIFTING),
    "PW": Theorem("Theorem 4", "SCB-PW-WeightUCB", _pw, _click_gap, {"T": 2 / 3, "drift": 1 / 3, "d": 2 / 3}),
}
