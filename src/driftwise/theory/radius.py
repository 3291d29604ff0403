"""Radii of the confidence regions, in terms of E, the sum of squared weights, so that they serve every memory.

`log_delta` is log(1/δ): it is what every formula uses, and 1/δ itself may overflow.
"""

from __future__ import annotations

import math

from driftwise._internal.compiling import formula
from driftwise._internal.elementary import LN2, exp, expm1, log, log1p


@formula
def geometric(forget: float, n: float) -> float:
    """E(n) = (1-γ^2n)/(1-γ²), γ = 1-forget: the sum of squared weights after n rounds; n itself at forget = 0."""
    if forget == 0.0 or n == 0.0:
        return float(n)
    if forget >= 1.0:
        return 1.0
    log_square = 2.0 * log1p(-forget)
    return expm1(n * log_square) / expm1(log_square)


@formula
def uniform_log(log_delta: float, t: float, horizon: float) -> float:
    """log(1/δ_t) where round t has the share δ_t of δ: δ/T, or δ/(2t(1+log t)²) where the horizon is not known (0).

    The concentration behind the radii of weighted sums holds at a fixed round. With these shares, which sum to at most
    δ, it holds at all rounds at once (docs/repairs.md, 1; Wu 2026).
    """
    if horizon > 0.0:
        return log_delta + log(horizon)
    return log_delta + log(2.0 * t) + 2.0 * log1p(log(t))


@formula
def drifting_log(log_delta: float, reg: float, L: float, m: float, tail: float) -> float:
    """The log(1/δ) with which β̃ pays for variances at θ_s instead of θ_t (docs/repairs.md, 3).

    It adds (e-1)reg/(4m²L²) + tail/2, tail = γ^D/(1-γ). β̃ with it covers the rounds whose last D rounds have a path
    of at most 1/L.
    """
    return log_delta + expm1(1.0) * reg / (4.0 * m * m * L * L) + tail / 2.0


@formula
def lb_radius(E: float, d: float, lam: float, log_delta: float, S: float, L: float, R: float) -> float:
    """β of Lemma 1, eq. (LB-confidence-radius): √λ S + R √(2 log(1/δ) + d log(1 + L²E/(λd)))."""
    return math.sqrt(lam) * S + R * math.sqrt(2.0 * log_delta + d * log1p(L * L * E / (lam * d)))


@formula
def cheung_radius(length: float, d: float, lam: float, log_delta: float, S: float, L: float, R: float) -> float:
    """The constant radius of SW-UCB (Cheung, Simchi-Levi, Zhu 2019): √λ S + R √(d log((1 + wL²/λ)/δ))."""
    return math.sqrt(lam) * S + R * math.sqrt(d * (log1p(length * L * L / lam) + log_delta))


@formula
def glb_radius(E: float, d: float, lam: float, log_delta: float, S: float, L: float, R: float, c: float) -> float:
    """β̄ of Lemma 2: √λ c S + R √(2 log(1/δ) + d log(1 + L²E/(λd)))."""
    return math.sqrt(lam) * c * S + R * math.sqrt(2.0 * log_delta + d * log1p(L * L * E / (lam * d)))


@formula
def scb_radius(E: float, d: float, reg: float, log_delta: float, S: float, L: float, m: float, k: float) -> float:
    """β̃ of Lemma 3, with m replaced by mL in its first three terms (written there for L = 1)."""
    root = math.sqrt(reg)
    reach = m * L
    noise = root / (2.0 * reach) + (2.0 * reach / root) * (log_delta + d * LN2)
    return noise + (d * reach / root) * log1p(L * L * k * E / (reg * d)) + root * S


@formula
def pw_radius(
    delay: float, forget: float, d: float, reg: float, log_delta: float, S: float, L: float, m: float, k: float,
    tight: bool,
) -> float:
    """ρ of Appendix D at delay D: what a change older than D can still do, plus β̆.

    `tight` divides by 1-γ² inside the logarithm, as the derivation allows; the paper prints 1-γ.
    """
    log_gamma = log1p(-forget)
    root = math.sqrt(reg)
    tail = exp(delay * log_gamma) / forget
    square = -expm1(2.0 * delay * log_gamma)
    spread = square / -expm1(2.0 * log_gamma) if tight else square / forget
    reach = m * L
    noise = root / (2.0 * reach) + (2.0 * reach / root) * (log_delta + d * LN2)
    noise += (d * reach / root) * log1p(L * L * k * spread / (reg * d)) + root * S
    return (2.0 * L * L * S * k / root) * tail + (L * m / root) * tail + noise


@formula
def ofulog_radius(t: float, d: float, lam: float, log_delta: float, S: float) -> float:
    """ω_t as OFULog is played here, logistic, L = 1, at λ_t = lam. The form is that of Faury et al. 2020, Lemma 1.

    Abeille, Faury, Calauzènes 2021 print another one: `abeille_radius`.
    """
    root = math.sqrt(lam)
    return root * (S + 0.5) + (2.0 / root) * log_delta + (d / root) * log(4.0 * (1.0 + t / (4.0 * d * lam)))


@formula
def abeille_radius(t: float, d: float, lam: float, log_delta: float, S: float) -> float:
    """The radius Abeille, Faury, Calauzènes 2021 print: √λ(S+½) + (d/√λ) log((4/δ)(1 + t/(16dλ)))."""
    root = math.sqrt(lam)
    return root * (S + 0.5) + (d / root) * (log_delta + log(4.0) + log1p(t / (16.0 * d * lam)))


@formula
def sc_d_glucb_radius(
    inside: bool, d: float, lam: float, log_delta: float, S: float, m: float, k: float, forget: float, horizon: float
) -> float:
    """β of SC-D-GLUCB (Russac, Faury, Cappé, Garivier 2021); `inside` tells whether the estimate is in the ball."""
    root = math.sqrt(lam)
    square = -expm1(2.0 * log1p(-forget))
    rho = root / (2.0 * m) + (2.0 * m / root) * (log(horizon) + log_delta + d * LN2)
    rho += (d * m / root) * log1p(k * (1.0 - 1.0 / (horizon * horizon)) / (d * lam * square))
    if inside:
        return k * math.sqrt(1.0 + 2.0 * S) * (root * S + rho)
    wide = S + (2.0 * S * k + m) / (horizon * lam * forget)
    inner = 1.0 + wide + math.sqrt((1.0 + wide) / lam) * rho + (rho / root) * (rho / root)
    return k * root * inner * math.sqrt(inner)


@formula
def rare_deviation(k: int) -> float:
    """The standard deviation of a coin with p = 1/(2k)."""
    return math.sqrt(0.5 / k * (1.0 - 0.5 / k))


@formula
def weighted_deviation(sigma: float, alpha: float, gamma: float, width: float) -> float:
    """σ̄ = max(σ, alpha, gamma·√width), with `width` the norm of the arm."""
    return max(sigma, alpha, gamma * math.sqrt(width))
