"""Small programs that show where the paper's lemmas fail as printed, and the results with the repairs of
docs/repairs.md.

`python -m driftwise.lab.paper.slips` prints all of them. Each has a fixed seed and takes about a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from driftwise import theory as th
from driftwise._internal.validate import Floats

DELTA = 0.05


class Slip(NamedTuple):
    """A statement, the program's result as printed, and its result with the repair."""

    statement: str
    printed: str
    repaired: str


class Crossed(NamedTuple):
    """Shares of runs that cross a radius at some round: as printed, and with the shares δ/T."""

    printed: float
    repaired: float


def share_crossed(norm: str, forget: float = 0.1, T: int = 6000, runs: int = 400, clicks: bool = False) -> Crossed:
    """One arm x = 1, θ = 0 and λ = 1: how often the noise part of β (or β̄, R = 1/2) is crossed in V⁻¹ or in Ṽ⁻¹."""
    rng, gamma, R = np.random.default_rng(0), 1.0 - forget, 0.5 if clicks else 1.0
    total, worst = np.zeros(runs), np.zeros((2, runs))
    logs = (-math.log(DELTA), th.uniform_log(-math.log(DELTA), 1.0, float(T)))
    for n in range(1, T):
        noise = rng.integers(0, 2, runs) - 0.5 if clicks else rng.standard_normal(runs)
        total = gamma * total + noise
        weights = th.geometric(forget, n) if norm == "two matrices" else -math.expm1(n * math.log1p(-forget)) / forget
        size = np.abs(total) / math.sqrt(1.0 + weights)
        for row, log in enumerate(logs):
            radius = th.lb_radius(th.geometric(forget, n), 1.0, 1.0, log, 0.0, 1.0, R)
            worst[row] = np.maximum(worst[row], size / radius)
    return Crossed(*(float((row > 1.0).mean()) for row in worst))


def mixture_step(forget: float, weights: float, lam: float = 1.0) -> tuple[float, float]:
    """The mixture of Theorem 5 at a round whose sum is 0, and its conditional mean one round later: it grows.

    In one dimension with x = 1 and Gaussian noise the mixture is √(λ/(λ+G̃)) exp(S²/(2(λ+G̃))). Its mean after a round
    is √(λ/(λ+γ²G̃)) exp(γ²S²/(2(λ+γ²G̃))).
    """
    gamma = 1.0 - forget
    return math.sqrt(lam / (lam + weights)), math.sqrt(lam / (lam + gamma * gamma * weights))


def lemma_9(runs: int = 2000, still: int = 20_000, S: float = 10.0, forget: float = 1e-4) -> Crossed:
    """Shares of runs whose ‖Σγ^{t-1-s}η_sX_s - λcθ_t‖ in H_t(θ_t)⁻¹ is above β̃, and above it in the true variances.

    d = 1, x = 1, λc = 1: θ = 0 for 20,000 rounds, then θ = S. Rounds before the jump have the variance 1/4, which
    H_t(θ_t) takes for μ'(S). "repaired" puts the true variances into H.
    """
    rng = np.random.default_rng(0)
    weights = np.exp(np.arange(still)[::-1] * math.log1p(-forget))
    noise = np.array([(weights * (rng.integers(0, 2, still) - 0.5)).sum() for _ in range(runs)])
    slope = 1.0 / (2.0 + math.exp(S) + math.exp(-S))
    radius = th.scb_radius(th.geometric(forget, still), 1.0, 1.0, -math.log(DELTA), S, 1.0, 1.0, 0.25)
    wrong = np.abs(noise - S) / math.sqrt(1.0 + slope * weights.sum())
    right = np.abs(noise) / math.sqrt(1.0 + 0.25 * float((weights * weights).sum()))
    return Crossed(float((wrong > radius).mean()), float((right > radius - S).mean()))


def outside_the_ball(S: float = 1.0, beyond: float = 20.0) -> tuple[float, float]:
    """α(x, 0, θ̂) and μ'(0)/(1+2S) at x = 1 and a θ̂ outside the ball: Theorem 4 needs the first to be the larger."""
    mean = 1.0 / (1.0 + math.exp(-beyond))
    return (mean - 0.5) / beyond, 0.25 / (1.0 + 2.0 * S)


class Potential(NamedTuple):
    """Σ of squared lengths of the features, and the most that the potential lemma allows."""

    total: float
    bound: float


def potential(changing: bool, S: float = 40.0, T: int = 3000, forget: float = 0.002, reg: float = 1.0) -> Potential:
    """Unit arms that turn through many angles, each with a θ_t of norm S across it: Σ μ'(X_t'θ_t)‖X_t‖² in H⁻¹.

    `changing` weighs the past by μ'(X_s'θ_t), as the proof of Theorem 4 does, and not by μ'(X_s'θ_s), as the lemma
    needs.
    """
    angle = np.pi * (np.arange(T) * 0.6180339887498949 % 1.0)  # the golden ratio spreads the angles evenly
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    theta = S * np.stack([-X[:, 1], X[:, 0]], axis=1)

    def slope(z: Floats) -> Floats:
        return np.asarray(1.0 / (2.0 + np.exp(z) + np.exp(-z)))

    total, log_gamma = 0.0, math.log1p(-forget)
    for t in range(T):
        weights = np.exp((t - 1 - np.arange(t)) * log_gamma)
        weights *= slope(X[:t] @ theta[t]) if changing else slope(np.sum(X[:t] * theta[:t], axis=1))
        H = reg * np.eye(2) + (X[:t] * weights[:, None]).T @ X[:t]
        total += float(slope(X[t] @ theta[t]) * X[t] @ np.linalg.solve(H, X[t]))
    most = 2.0 * max(1.0, 0.25 / reg) * 2.0 * (-T * log_gamma + math.log1p(0.25 / (reg * 2.0 * forget)))
    return Potential(total, most)


def _share(found: Crossed) -> tuple[str, str]:
    return f"{found.printed:.1%} of runs", f"{found.repaired:.1%} of runs"


def _radii() -> Iterator[Slip]:
    rows = (("Lemmas 1 and 2: the noise part of β and β̄ in V⁻¹, Gaussian noise, T = 6,000", "V", False, 6000),
            ("The same in Ṽ⁻¹, as D-LinUCB and BVD-GLM-UCB use it, Gaussian noise", "two matrices", False, 6000),
            ("The same in Ṽ⁻¹ with clicks, R = 1/2, T = 2,000", "two matrices", True, 2000))  # fmt: skip
    for text, norm, clicks, T in rows:
        yield Slip(f"{text}, γ = 0.9, δ = {DELTA:g}: crossed at some round", 
                   *_share(share_crossed(norm, T=T, clicks=clicks)))  # fmt: skip


def _theorem_5() -> Slip:
    before, after = mixture_step(0.1, th.geometric(0.1, 1000.0))
    return Slip("Theorem 5: its mixture is a supermartingale in t (a round at which the sum is 0, γ = 0.9)",
                f"{before:.3f}, then {after:.3f} in the mean", "no step in t: a union over rounds")  # fmt: skip


def _lemma_9() -> Slip:
    text = "Lemma 9: β̃ exceeded one round after θ jumps from 0 to 10 (repaired: with the variances at θ_s)"
    return Slip(text, *_share(lemma_9()))


def _theorem_4() -> Iterator[Slip]:
    have, need = outside_the_ball()
    yield Slip("Theorem 4 needs α(x, θ, θ̂) ≥ μ'(x'θ)/(1+2S) at an estimate outside the ball (S = 1, θ = 0, θ̂ = 20)",
               f"{have:.3f} against {need:.3f}", "no θ̂: θ̃ and θ_t are both in the ball")  # fmt: skip
    changing, fixed = potential(True), potential(False)
    yield Slip("Theorem 4 uses the potential lemma for features that change with t (S = 40)",
               f"{changing.total:.1f} against at most {changing.bound:.1f}",
               f"{fixed.total:.1f} against at most {fixed.bound:.1f} with μ'(X_s'θ_s)")  # fmt: skip


PROGRAMS: tuple[Callable[[], Iterator[Slip]], ...] = (
    _radii, lambda: iter([_theorem_5()]), lambda: iter([_lemma_9()]), _theorem_4,
)  # fmt: skip


def found() -> list[Slip]:
    """The results of all programs."""
    return [slip for program in PROGRAMS for slip in program()]


if __name__ == "__main__":
    for one in found():
        print(f"{one.statement}\n    as printed: {one.printed}\n    repaired:   {one.repaired}")
