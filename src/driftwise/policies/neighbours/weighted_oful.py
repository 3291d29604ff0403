"""Restarted-WeightedOFUL+ (Wang, Xie, Chen, Lui, Zhou 2025): rewards weighted by their known variance, and restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from driftwise._internal.elementary import log, log1p
from driftwise._internal.products import solved
from driftwise._internal.validate import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.kernels.ridge import ridge_scores, ridge_take_
from driftwise.kernels.stretches import play_weighted_
from driftwise.policies.arms import Scores
from driftwise.policies.neighbours.stepped import FixedRounds, State, Stepped
from driftwise.theory.radius import rare_deviation, weighted_deviation


@dataclass(frozen=True, kw_only=True)
class RestartedWeightedOFUL(Stepped):
    """Restarted-WeightedOFUL+ (Wang, Xie, Chen, Lui, Zhou 2025, Algorithm 1).

    The index is x'θ̂ + β‖x‖ in Σ⁻¹. The reward of round k has the weight 1/σ̄², σ̄ = max(σ_k, alpha, gamma·√‖x‖ in Σ⁻¹).
    The policy forgets everything every `window` rounds: before round k if `window` divides k. `sigma` is the known
    standard deviation of the noise: a number, or "rare" for that of a world with chance="rare", √(p(1-p)) with
    p = 1/(2k). beta=None is β of the source's equation (5), where R is the largest size of the noise and n the rest of
    k divided by `window`:
    12√(d log(1 + nL²/(alpha²dλ))·q) + 30q R/gamma² + √λ S, q = log(32(log(gamma²/alpha) + 1)n²/δ).
    It is √λ S in the first round and in rounds with n = 0. The source's experiments have β = 10 throughout.
    """

    dim: int
    window: int
    lam: float = 1.0
    alpha: float = 1.0
    gamma: float = 2.0
    beta: float | None = None
    delta: float = 0.01
    S: float = 1.0
    L: float = 1.0
    R: float = 1.0
    sigma: float | Literal["rare"] = "rare"

    def __post_init__(self) -> None:
        keep_whole(self, "dim")
        keep_whole(self, "window", 1, "pass the number of rounds between restarts")
        for name in ("lam", "alpha", "gamma", "S", "L", "R"):
            real(name, getattr(self, name), 0.0, low_open=True, way_out="pass a number above 0")
        real("delta", self.delta, 0.0, 1.0, low_open=True, high_open=True, way_out="pass a probability")
        if self.beta is not None:
            real("beta", self.beta, 0.0, way_out="pass the factor on ‖x‖, or None for the theorem's")
        elif (self.gamma * self.gamma) < self.alpha:
            raise BadInput("gamma", self.gamma, "gamma² of at least alpha with beta=None", "pass beta")
        if self.sigma != "rare":
            real("sigma", self.sigma, 0.0, way_out='pass the standard deviation of the noise, or "rare"')

    def start(self, seed: int = 0) -> State:
        return {
            "k": np.zeros((), dtype=np.int64), "V": self.lam * np.eye(self.dim)[None], "b": np.zeros((1, self.dim)),
        }  # fmt: skip

    def radius(self, k: int) -> float:
        """β in round k = 1, 2, …."""
        if self.beta is not None:
            return float(self.beta)
        n, bias = k % self.window, math.sqrt(self.lam) * self.S
        if n == 0 or k == 1:
            return bias
        iota = log(32.0 * (log((self.gamma * self.gamma) / self.alpha) + 1.0) * n * n / self.delta)
        spread = self.dim * log1p(n * self.L * self.L / (self.alpha * self.alpha * self.dim * self.lam))
        return 12.0 * math.sqrt(spread * iota) + 30.0 * iota * self.R / (self.gamma * self.gamma) + bias

    def told(self, k: int) -> float:
        """The known standard deviation σ_k of the noise in round k."""
        return rare_deviation(k) if self.sigma == "rare" else float(self.sigma)

    def theta(self, state: State) -> Floats:
        """θ̂."""
        return solved(state["V"][0], state["b"][0])

    def scores(self, state: State, arms: Any) -> Scores:
        mean, width = ridge_scores(state["V"], 0, state["b"], self._rows(arms))
        return Scores(mean, self.radius(int(state["k"]) + 1) * width)

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        k = int(state["k"]) + 1
        x = np.ascontiguousarray(X[arm : arm + 1])
        width = float(ridge_scores(state["V"], 0, state["b"], x)[1][0])
        sigma = weighted_deviation(self.told(k), self.alpha, self.gamma, width)
        ridge_take_(state["V"], 0, state["b"], x[0], reward, 1.0 / (sigma * sigma))
        state["k"] = np.array(k, dtype=np.int64)
        if (k + 1) % self.window == 0:
            state["V"], state["b"] = self.lam * np.eye(self.dim)[None], np.zeros((1, self.dim))

    @property
    def has_stretch(self) -> bool:
        return self.beta is not None

    def stretch(self, state: State, one: FixedRounds) -> None:
        assert self.beta is not None  # has_stretch
        sigma = -1.0 if self.sigma == "rare" else self.sigma
        one.play_layers(play_weighted_, state, self.window, [self.lam, self.alpha, self.gamma, self.beta, sigma])
