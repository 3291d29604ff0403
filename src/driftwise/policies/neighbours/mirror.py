"""GLB-OMD (Zhang, Xu, Zhao, Sugiyama 2025) for clicks: a one-pass estimate by mirror descent, and its ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from driftwise._internal.elementary import log, log1p
from driftwise._internal.products import dot, length, solved, times
from driftwise._internal.validate import keep_whole, real
from driftwise.kernels.links import LOGISTIC, mean, slope
from driftwise.kernels.point import Floats
from driftwise.kernels.ridge import ridge_scores
from driftwise.policies.arms import Scores
from driftwise.policies.neighbours.stepped import State, Stepped

STEEPEST = 0.25  # the largest slope of the logistic link


@dataclass(frozen=True, kw_only=True)
class GLBOMD(Stepped):
    """GLB-OMD (Zhang, Xu, Zhao, Sugiyama 2025, Algorithm 1) with the logistic link; no past reward is kept.

    Plays the largest x'θ + exploration·β‖x‖ in H⁻¹. After a reward r of x, θ moves to the minimum over ‖θ‖ ≤ S of
    g'θ + ½μ'(x'θ_t)(x'θ - x'θ_t)² + ‖θ - θ_t‖²/(2η) in H. Here θ_t is the estimate before, g = (μ(x'θ_t) - r)x the
    gradient of the loss there, and η = 1 + S. Then H grows by μ'(x'θ)xx' at the new θ.

    H starts at λI. lam=None is the theorem's λ = max(14dη, 6ηS/4); the authors' experiments have λ = d. After n rewards
    β² = 4λS² + 2η log(1/δ) + d(6η² + η) log(1 + n/(4λ)). The text that could be read lacks the formula of β: this one
    follows from the paper's proof, step by step (`radius`). Arms are divided by L and θ is multiplied by it, so S
    above is S·L.
    """

    dim: int
    S: float = 1.0
    L: float = 1.0
    delta: float = 0.05
    lam: float | None = None
    exploration: float = 1.0

    def __post_init__(self) -> None:
        keep_whole(self, "dim")
        for name in ("S", "L"):
            real(name, getattr(self, name), 0.0, low_open=True, way_out="pass a number above 0")
        real("delta", self.delta, 0.0, 1.0, low_open=True, high_open=True, way_out="pass a probability")
        if self.lam is not None:
            real("lam", self.lam, 0.0, low_open=True, way_out="pass a number above 0, or None for the theorem's")
        real("exploration", self.exploration, 0.0, way_out="pass a factor of at least 0")

    @cached_property
    def eta(self) -> float:
        """η, the step of mirror descent."""
        return 1.0 + self.S * self.L

    @cached_property
    def ridge(self) -> float:
        """λ."""
        if self.lam is not None:
            return float(self.lam)
        return max(14.0 * self.dim * self.eta, 6.0 * self.eta * self.S * self.L * STEEPEST)

    def radius(self, n: int) -> float:
        """β after n rewards: the sum of the proof's steps.

        They are 4λS² for the start, 2η log(1/δ) by Ville's inequality, and 2η(3η + 1/2) log(det H/λ^d) for the mixture
        N(θ, 3ηH⁻¹/2), of which 3η is 2 · 3η/2 from Lemma 7. The terms in ‖θ_s - θ_(s+1)‖² cancel, as λ ≥ 6ηRSL_μ.
        The paper may bound log det by d log(1 + L_μ t/λ), as here, or by the smaller d log(1 + L_μ t/(λd)).
        """
        ball, eta, lam = self.S * self.L, self.eta, self.ridge
        grown = self.dim * (6.0 * eta * eta + eta) * log1p(STEEPEST * n / lam)
        return math.sqrt(4.0 * lam * ball * ball - 2.0 * eta * log(self.delta) + grown)

    def start(self, seed: int = 0) -> State:
        H = self.ridge * np.eye(self.dim)
        return {"n": np.zeros((), dtype=np.int64), "theta": np.zeros(self.dim), "H": H}

    def theta(self, state: State) -> Floats:
        """θ, for arms that are not divided by L."""
        return np.asarray(state["theta"] / self.L)

    def scores(self, state: State, arms: Any) -> Scores:
        X = self._rows(arms) / self.L
        width = ridge_scores(state["H"][None], 0, np.zeros((1, self.dim)), X)[1]
        return Scores(times(X, state["theta"]), self.exploration * self.radius(int(state["n"])) * width)

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        x, before, ball = X[arm] / self.L, state["theta"], self.S * self.L
        z = dot(x, before)
        metric = state["H"] + self.eta * slope(LOGISTIC, z) * np.outer(x, x)
        after = before - self.eta * (mean(LOGISTIC, z) - reward) * solved(metric, x)
        if length(after) > ball:
            after = nearest(metric, after, ball)
        state["theta"] = after
        state["H"] = state["H"] + slope(LOGISTIC, dot(x, after)) * np.outer(x, x)
        state["n"] = state["n"] + 1


def nearest(metric: Floats, point: Floats, ball: float) -> Floats:
    """The point of ‖θ‖ ≤ ball that is nearest to a point outside, in a metric Q: (Q + νI)⁻¹Q·point of that length.

    The length falls as ν grows, so that ν is found by bisection. It lies below the largest ν that a metric of the same
    trace could need: Q's largest eigenvalue times (‖point‖/ball - 1).
    """
    pulled = times(metric, point)
    low, high = 0.0, float(np.trace(metric)) * (length(point) / ball - 1.0)

    def at(shift: float) -> Floats:
        return solved(metric + shift * np.eye(len(point)), pulled)

    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if length(at(middle)) > ball else (low, middle)
    found = at(high)
    return np.asarray(found * (ball / length(found)))
