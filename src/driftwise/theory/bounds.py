"""P_T and Γ_T of a path, the estimation errors of Lemmas 1-3, and the regret bounds of Theorems 1-4.

With uniform=False a function is what the paper prints. With uniform=True it is what is proved in docs/repairs.md: the
radii hold at all rounds at once, Lemma 9 is repaired by rounds that are left out, and Theorem 4 has a second term.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from driftwise._internal.elementary import exp, expm1, log, log1p, power
from driftwise.theory.constants import glm_multiplier, scb_multiplier
from driftwise.theory.radius import drifting_log, geometric, glb_radius, lb_radius, scb_radius, uniform_log
from driftwise.theory.tuning import pw_delay

Floats = npt.NDArray[np.float64]


def _lengths(theta: Floats) -> Floats:
    """‖θ_t - θ_{t+1}‖ of a path (T, d)."""
    steps = np.diff(theta, axis=0)
    return np.asarray(np.sqrt((steps * steps).sum(axis=1)))


def path_length(theta: Floats) -> float:
    """P_T = Σ ‖θ_t - θ_{t+1}‖ of a path (T, d)."""
    return float(_lengths(theta).sum())


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
    steps = _lengths(theta)
    p = np.arange(1, t, dtype=np.float64)
    if forget == 0.0:
        square = p
    else:
        log_gamma = log1p(-forget)
        square = np.array([exp((t - 1 - n) * log_gamma) * expm1(n * log_gamma) for n in p.tolist()]) / -forget
    return float(L * L * math.sqrt(d / lam) * (np.sqrt(square) * steps).sum())


def virtual_window_bias(theta: Floats, forget: float, lam: float, delay: int, *, S: float, L: float = 1.0) -> float:
    """Bias term ‖x‖₂A' of the earlier analysis (eq. 10) at round t = len(theta) and ‖x‖ = L, by a virtual window of D.

    L²√(d(1-γ^D)/(λ(1-γ))) Σ_{p=t-D}^{t-1} ‖θ_p-θ_{p+1}‖ for the window, after its correction (Touati, Vincent 2020;
    Zhao, Zhang 2021), and (2L³S/λ) γ^D/(1-γ) for what is older.
    """
    t, d = theta.shape
    steps = _lengths(theta)
    first = max(0, t - 1 - delay)
    old = exp(delay * log1p(-forget))
    window = L * L * math.sqrt(d * (1.0 - old) / (lam * forget)) * float(steps[first:].sum())
    return window + (2.0 * L * L * L * S / lam * old / forget if first else 0.0)


def _log_delta(delta: float, uniform: bool, t: float, horizon: float) -> float:
    """log(1/δ), or that of the share of round t."""
    return uniform_log(-log(delta), t, horizon) if uniform else -log(delta)


def lb_estimation_bound(
    theta: Floats, forget: float, spread: float, *, lam: float, delta: float, S: float = 1.0, L: float = 1.0,
    R: float = 1.0, uniform: bool = False, horizon: float = 0.0,
) -> float:
    """Lemma 1: |x'(θ̂_t-θ_t)| ≤ bias + β_{t-1}‖x‖, with spread = ‖x‖ in the norm of V_{t-1}⁻¹."""
    t, d = theta.shape
    log_delta = _log_delta(delta, uniform, t, horizon)
    beta = lb_radius(geometric(forget, t - 1.0), d, lam, log_delta, S, L, R)
    return bias_bound(theta, forget, lam, L) + beta * spread


def glb_estimation_bound(
    theta: Floats, forget: float, spread: float, *, lam: float, delta: float, S: float, L: float, R: float, k: float,
    c: float, uniform: bool = False, horizon: float = 0.0,
) -> float:
    """Lemma 2: |μ(x'θ̃_t)-μ(x'θ_t)| ≤ (2k²/c) bias + (2k/c) β̄_{t-1}‖x‖."""
    t, d = theta.shape
    log_delta = _log_delta(delta, uniform, t, horizon)
    beta = glb_radius(geometric(forget, t - 1.0), d, lam, log_delta, S, L, R, c)
    return 2.0 * k * k / c * bias_bound(theta, forget, lam, L) + glm_multiplier(k, c) * beta * spread


def scb_estimation_bound(
    theta: Floats, forget: float, spread: float, *, lam: float, delta: float, S: float, L: float, m: float, k: float,
    c: float, uniform: bool = False, horizon: float = 1.0,
) -> float:
    """Lemma 3: |μ(x'θ̃_t)-μ(x'θ_t)| ≤ 2√(1+2SL)(k²/c) bias + 2√(1+2SL)(k/√c) β̃_{t-1}‖x‖.

    As printed it is not proved where θ drifts; `uniform` takes log(T/δ) and the repair of Lemma 9, and covers all
    rounds whose last D rounds have a path of at most 1/L.
    """
    t, d = theta.shape
    log_delta = _log_delta(delta, uniform, t, horizon)
    if uniform:
        log_delta = drifting_log(log_delta, lam * c, L, m, scb_tail(forget, horizon))
    beta = scb_radius(geometric(forget, t - 1.0), d, lam * c, log_delta, S, L, m, k)
    bias = 2.0 * math.sqrt(1.0 + 2.0 * S * L) * k * k / c * bias_bound(theta, forget, lam, L)
    return bias + scb_multiplier(k, c, S, L) * beta * spread


def scb_tail(forget: float, horizon: float) -> float:
    """γ^D/(1-γ), D = ⌈log T/log(1/γ)⌉: the weight of what is older than D rounds; at most 1/(T(1-γ))."""
    if not 0.0 < forget < 1.0:
        return 0.0
    return exp(pw_delay(forget, max(2.0, horizon)) * log1p(-forget)) / forget


def bad_rounds(theta: Floats, delay: int, L: float = 1.0) -> int:
    """Rounds whose last D rounds have a path longer than 1/L, which the repair of Lemma 9 leaves out: at most LDP_T."""
    steps = np.concatenate([[0.0], np.cumsum(_lengths(theta))])
    first = np.maximum(np.arange(len(theta)) - delay, 0)
    return int((steps - steps[first] > 1.0 / L).sum())


def _drift_term(factor: float, forget: float, length: float) -> float:
    """factor · (1-γ)^{-3/2} P_T: nothing without drift, infinite when drift is never forgotten."""
    if length == 0.0:
        return 0.0
    return math.inf if forget < 1e-200 else factor * power(forget, -1.5) * length


def _potential(forget: float, horizon: float, ratio: float) -> float:
    """√(T log(1/γ) + log(1 + ratio·(1-γ^T)/(1-γ))), the elliptical potential; log(1 + ratio·T) at γ = 1, ∞ at γ = 0."""
    if forget == 0.0:
        return math.sqrt(log1p(ratio * horizon))
    if forget >= 1.0:
        return math.inf
    log_gamma = log1p(-forget)
    mass = expm1(horizon * log_gamma) / -forget
    return math.sqrt(-horizon * log_gamma + log1p(ratio * mass))


def _spread(forget: float, horizon: float, dim: int, lam: float, L: float, k: float = 1.0) -> float:
    """√(2 max(1, L²k/λ) d) · potential: what Σ‖√w X_t‖² in V_{t-1}⁻¹ is at most, as a root, for weights w up to k."""
    ratio = L * L * k / lam
    return math.sqrt(2.0 * max(1.0, ratio) * dim) * _potential(forget, horizon, ratio / dim)


def lb_regret_bound(
    *, dim: int, horizon: float, path_length: float, forget: float, lam: float, S: float = 1.0, L: float = 1.0,
    R: float = 1.0, uniform: bool = True,
) -> float:
    """Theorem 1 with its constants, with probability 1-1/T: δ = 1/(2T) as printed, 1/(2T²) with uniform=True."""
    beta = lb_radius(geometric(forget, horizon), dim, lam, _half(horizon, uniform), S, L, R)
    drift = _drift_term(4.0 * L * L * math.sqrt(dim / lam), forget, path_length)
    return drift + 2.0 * beta * math.sqrt(horizon) * _spread(forget, horizon, dim, lam, L)


def _half(horizon: float, uniform: bool) -> float:
    """log(2T), or log(2T²)."""
    return log(2.0 * horizon) + (log(horizon) if uniform else 0.0)


def glb_regret_bound(
    *, dim: int, horizon: float, path_length: float, forget: float, lam: float, S: float, L: float, R: float, k: float,
    c: float,
) -> float:
    """Theorem 2 with its constants. Its printed δ = 1/(2T²) is 1/(2T) at every round, so it holds as printed."""
    beta = glb_radius(geometric(forget, horizon), dim, lam, _half(horizon, True), S, L, R, c)
    drift = _drift_term(8.0 * L * L * (k * k / c) * math.sqrt(dim / lam), forget, path_length)
    return drift + 2.0 * glm_multiplier(k, c) * beta * math.sqrt(horizon) * _spread(forget, horizon, dim, lam, L)


def scb_regret_bound(
    *, dim: int, horizon: float, path_length: float, forget: float, lam: float, S: float, L: float, m: float, k: float,
    c: float, uniform: bool = True,
) -> float:
    """Theorem 3 with its constants. δ = 1/(2T) as printed.

    uniform=True has it at every round, pays for the repair of Lemma 9 in β̃, and adds the rounds it leaves out:
    LDP_T of them, each of which loses at most min(m, 2kSL).
    """
    log_delta, left_out = _half(horizon, uniform), 0.0
    if uniform and path_length > 0.0:
        if forget == 0.0:
            return math.inf
        log_delta = drifting_log(log_delta, lam * c, L, m, scb_tail(forget, horizon))
        left_out = L * pw_delay(forget, max(2.0, horizon)) * path_length * min(m, 2.0 * k * S * L)
    beta = scb_radius(geometric(forget, horizon), dim, lam * c, log_delta, S, L, m, k)
    root = math.sqrt(1.0 + 2.0 * S * L)
    drift = _drift_term(8.0 * root * L * L * (k * k / c) * math.sqrt(dim / lam), forget, path_length)
    width = 2.0 * scb_multiplier(k, c, S, L) * beta * math.sqrt(horizon)
    return left_out + drift + width * _spread(forget, horizon, dim, lam, L)


def pw_regret_bound(
    *, dim: int, horizon: float, changes: float, gap: float, delay: float, forget: float, reg: float, rho: float,
    S: float, L: float, k: float, c: float, uniform: bool = True,
) -> float:
    """Theorem 4: Γ_T·D·(largest gap) + what the rounds far from a change lose, with ρ at the δ of the caller.

    As printed the second part is 2√(1+2SL) ρ √(kT) · spread. That is not proved (docs/repairs.md, 4). uniform=True is
    2(1+2SL) ρ √((1+ε)kT) · spread + 2(k/c)((1+2SL) ρ)²(1+ε) · spread², ε = L²k γ^D/((1-γ)reg), for ρ with log(T/δ).
    """
    spread = _spread(forget, horizon, dim, reg, L, k)
    if not uniform:
        return changes * delay * gap + 2.0 * math.sqrt(1.0 + 2.0 * S * L) * rho * math.sqrt(k * horizon) * spread
    excess = 1.0 + L * L * k * exp(delay * log1p(-forget)) / (forget * reg)
    reach = (1.0 + 2.0 * S * L) * rho * math.sqrt(excess) * spread
    return changes * delay * gap + 2.0 * reach * math.sqrt(k * horizon) + 2.0 * (k / c) * reach * reach


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
