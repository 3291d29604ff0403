"""P_T and Γ_T of a path, the estimation errors of Lemmas 1-3, and the regret bounds of Theorems 1-4."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from driftwise.theory.constants import glm_multiplier, scb_multiplier
from driftwise.theory.radius import geometric, glb_radius, lb_radius, scb_radius

Floats = npt.NDArray[np.float64]


def path_length(theta: Floats) -> float:
    """P_T = Σ ‖θ_t - θ_{t+1}‖ of a path (T, d)."""
    return float(np.linalg.norm(np.diff(theta, axis=0), axis=1).sum())


def change_number(theta: Floats) -> int:
    """Γ_T, the number of rounds at which the parameter differs from the one before."""
    return int(np.any(np.diff(theta, axis=0) != 0.0, axis=1).sum())


def bias_bound(theta: Floats, forget: float, lam: float, L: float = 1.0) -> float:
    """Bias term of Lemma 1 at round t = len(theta): L²√(d/λ) Σ_p √(γ^{t-1-p}(1-γ^p)/(1-γ)) ‖θ_p-θ_{p+1}‖.

    The paper prints γ^{(t-1)/2} √((γ^{-p}-1)/(1-γ)), the same number, which overflows.
    """
    t, d = theta.shape
    if t < 2:
        return 0.0
    steps = np.linalg.norm(np.diff(theta, axis=0), axis=1)
    p = np.arange(1, t, dtype=np.float64)
    if forget == 0.0:
        square = p
    else:
        log_gamma = math.log1p(-forget)
        square = np.exp((t - 1 - p) * log_gamma) * np.expm1(p * log_gamma) / -forget
    return float(L * L * math.sqrt(d / lam) * (np.sqrt(square) * steps).sum())


def lb_estimation_bound(
    theta: Floats, forget: float, spread: float, *, lam: float, delta: float, S: float = 1.0, L: float = 1.0,
    R: float = 1.0,
) -> float:
    """Lemma 1: |x'(θ̂_t-θ_t)| ≤ bias + β_{t-1}‖x‖, with spread = ‖x‖ in the norm of V_{t-1}⁻¹."""
    t, d = theta.shape
    beta = lb_radius(geometric(forget, t - 1.0), d, lam, -math.log(delta), S, L, R)
    return bias_bound(theta, forget, lam, L) + beta * spread


def glb_estimation_bound(
    theta: Floats, forget: float, spread: float, *, lam: float, delta: float, S: float, L: float, R: float, k: float,
    c: float,
) -> float:
    """Lemma 2: |μ(x'θ̃_t)-μ(x'θ_t)| ≤ (2k²/c) bias + (2k/c) β̄_{t-1}‖x‖."""
    t, d = theta.shape
    beta = glb_radius(geometric(forget, t - 1.0), d, lam, -math.log(delta), S, L, R, c)
    return 2.0 * k * k / c * bias_bound(theta, forget, lam, L) + glm_multiplier(k, c) * beta * spread


def scb_estimation_bound(
    theta: Floats, forget: float, spread: float, *, lam: float, delta: float, S: float, L: float, m: float, k: float,
    c: float, uniform: bool = False, horizon: float = 1.0,
) -> float:
    """Lemma 3: |μ(x'θ̃_t)-μ(x'θ_t)| ≤ 2√(1+2SL)(k²/c) bias + 2√(1+2SL)(k/√c) β̃_{t-1}‖x‖.

    As printed it holds at a fixed round; `uniform` takes log(T/δ) and holds at all of them.
    """
    t, d = theta.shape
    log_delta = -math.log(delta) + (math.log(horizon) if uniform else 0.0)
    beta = scb_radius(geometric(forget, t - 1.0), d, lam * c, log_delta, S, L, m, k)
    bias = 2.0 * math.sqrt(1.0 + 2.0 * S * L) * k * k / c * bias_bound(theta, forget, lam, L)
    return bias + scb_multiplier(k, c, S, L) * beta * spread


def _drift_term(factor: float, forget: float, length: float) -> float:
    """factor · (1-γ)^{-3/2} P_T: nothing without drift, infinite when drift is never forgotten."""
    if length == 0.0:
        return 0.0
    return math.inf if forget < 1e-200 else factor * forget**-1.5 * length


def _potential(forget: float, horizon: float, ratio: float) -> float:
    """√(T log(1/γ) + log(1 + ratio·(1-γ^T)/(1-γ))), the elliptical potential; log(1 + ratio·T) at γ = 1, ∞ at γ = 0."""
    if forget == 0.0:
        return math.sqrt(math.log1p(ratio * horizon))
    if forget >= 1.0:
        return math.inf
    log_gamma = math.log1p(-forget)
    mass = math.expm1(horizon * log_gamma) / -forget
    return math.sqrt(-horizon * log_gamma + math.log1p(ratio * mass))


def lb_regret_bound(
    *, dim: int, horizon: float, path_length: float, forget: float, lam: float, S: float = 1.0, L: float = 1.0,
    R: float = 1.0,
) -> float:
    """Theorem 1 with its constants, with probability 1-1/T (δ = 1/(2T))."""
    beta = lb_radius(geometric(forget, horizon), dim, lam, math.log(2.0 * horizon), S, L, R)
    drift = _drift_term(4.0 * L * L * math.sqrt(dim / lam), forget, path_length)
    width = math.sqrt(2.0 * max(1.0, L * L / lam) * dim * horizon)
    return drift + 2.0 * beta * width * _potential(forget, horizon, L * L / (lam * dim))


def glb_regret_bound(
    *, dim: int, horizon: float, path_length: float, forget: float, lam: float, S: float, L: float, R: float, k: float,
    c: float,
) -> float:
    """Theorem 2 with its constants (δ = 1/(2T²))."""
    beta = glb_radius(geometric(forget, horizon), dim, lam, math.log(2.0 * horizon * horizon), S, L, R, c)
    drift = _drift_term(8.0 * L * L * (k * k / c) * math.sqrt(dim / lam), forget, path_length)
    width = math.sqrt(2.0 * max(1.0, L * L / lam) * dim * horizon)
    return drift + 2.0 * glm_multiplier(k, c) * beta * width * _potential(forget, horizon, L * L / (lam * dim))


def scb_regret_bound(
    *, dim: int, horizon: float, path_length: float, forget: float, lam: float, S: float, L: float, m: float, k: float,
    c: float,
) -> float:
    """Theorem 3 with its constants (δ = 1/(2T))."""
    beta = scb_radius(geometric(forget, horizon), dim, lam * c, math.log(2.0 * horizon), S, L, m, k)
    root = math.sqrt(1.0 + 2.0 * S * L)
    drift = _drift_term(8.0 * root * L * L * (k * k / c) * math.sqrt(dim / lam), forget, path_length)
    width = math.sqrt(2.0 * max(1.0, L * L / lam) * dim * horizon)
    return drift + 2.0 * scb_multiplier(k, c, S, L) * beta * width * _potential(forget, horizon, L * L / (lam * dim))


def pw_regret_bound(
    *, dim: int, horizon: float, changes: float, gap: float, delay: float, forget: float, reg: float, rho: float,
    S: float, L: float, k: float,
) -> float:
    """Theorem 4: Γ_T·D·(largest gap) + 2√(1+2SL) ρ_T √(2k max(1, L²k/reg) dT) · potential (δ = 1/T)."""
    width = math.sqrt(2.0 * k * max(1.0, L * L * k / reg) * dim * horizon)
    potential = _potential(forget, horizon, L * L * k / (reg * dim))
    return changes * delay * gap + 2.0 * math.sqrt(1.0 + 2.0 * S * L) * rho * width * potential


def informative_horizon(bound: Callable[[float], float], gap: float, largest: float = 1e18) -> float:
    """The T from which a bound says anything: the least power-of-1.01 grid point with bound(T) < gap·T.

    `gap` is the largest regret one round can have; infinite when no T up to `largest` will do.
    """
    T = 1.0
    while T <= largest:
        if bound(T) < gap * T:
            return math.ceil(T)
        T *= 1.01
    return math.inf
