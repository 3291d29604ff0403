"""dLinUCB (Wu, Iyer, Wang 2018): several LinUCB models, of which those that predict badly are discarded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from driftwise._internal.elementary import log, log1p
from driftwise._internal.products import solved
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.kernels.point import Floats
from driftwise.kernels.ridge import ridge_scores, ridge_take_
from driftwise.policies.arms import Scores
from driftwise.policies.neighbours.stepped import State, Stepped


@dataclass(frozen=True, kw_only=True)
class DLinUCB(Stepped):
    """dLinUCB (Wu, Iyer, Wang 2018), as in the code that Russac et al. 2019 compare with.

    A model fails at a reward that is farther from its prediction than β‖x‖ + η, η = R√2·erfinv(1-δ). It does not learn
    from that reward. Its badness is the share of failures in its last `window` rounds; n of them have the half-width
    √(log(1/delta_2)/(2n)). The model with the least badness - √(log window)·half-width plays. A model is discarded when
    its badness is at least half-width + δ. A new model begins when no badness is below half-width + delta_new.

    count="own": the radius of a model counts the rewards that the model has learned from. count="as-published": it also
    counts the rounds before the model began, as that code does.
    """

    dim: int
    lam: float = 0.1
    delta: float = 0.01
    S: float = 1.0
    L: float = 1.0
    R: float = 1.0
    window: int = 200
    delta_2: float = 0.01
    delta_new: float = 0.002
    exploration: float = 1.0
    count: Literal["own", "as-published"] = "own"

    def __post_init__(self) -> None:
        keep_whole(self, "dim")
        keep_whole(self, "window", 2, "pass the rounds that badness looks back")
        for name in ("lam", "S", "L", "R"):
            real(name, getattr(self, name), 0.0, low_open=True, way_out="pass a number above 0")
        for name in ("delta", "delta_2", "delta_new"):
            real(name, getattr(self, name), 0.0, 1.0, low_open=True, high_open=True, way_out="pass a probability")
        real("exploration", self.exploration, 0.0, way_out="pass a factor of at least 0")
        one_of("count", self.count, ["own", "as-published"])

    @cached_property
    def eta(self) -> float:
        """The quantile of the noise: |N(0, R²)| is above it with probability δ."""
        return self.R * NormalDist().inv_cdf(1.0 - 0.5 * self.delta)

    def start(self, seed: int = 0) -> State:
        state: State = {
            "t": np.zeros((), dtype=np.int64), "V": np.zeros((0, self.dim, self.dim)), "b": np.zeros((0, self.dim)),
            "counted": np.zeros(0), "seen": np.zeros(0, dtype=np.int64),
            "failed": np.zeros((0, self.window), dtype=bool), "made": np.zeros((), dtype=np.int64),
        }  # fmt: skip
        self._begin(state)
        return state

    def _begin(self, state: State) -> None:
        """Add a new model to the state."""
        counted = float(state["t"]) if self.count == "as-published" else 0.0
        fresh = {
            "V": self.lam * np.eye(self.dim), "b": np.zeros(self.dim), "counted": counted, "seen": 0,
            "failed": np.zeros(self.window, dtype=bool),
        }  # fmt: skip
        for name, value in fresh.items():
            state[name] = np.concatenate([state[name], np.asarray(value, dtype=state[name].dtype)[None]])
        state["made"] = state["made"] + 1

    def beta(self, counted: float) -> float:
        """√λ S + R√(2 log(1/δ) + d log(1 + nL²/(λd)))."""
        inside = 2.0 * -log(self.delta) + self.dim * log1p(self.L * self.L * counted / (self.lam * self.dim))
        return math.sqrt(self.lam) * self.S + self.R * math.sqrt(inside)

    def badness(self, state: State) -> tuple[Floats, Floats]:
        """The share of failures of every model in its last rounds, and the half-width of that share."""
        rounds = np.minimum(state["seen"], self.window)
        shown = np.maximum(rounds, 1)
        half = np.sqrt(-log(self.delta_2) / (2.0 * shown))
        return state["failed"].sum(axis=1) / shown, np.where(rounds > 0, half, 0.5)

    def acting(self, state: State) -> int:
        """The number of the model that plays."""
        bad, half = self.badness(state)
        return int(np.argmin(bad - math.sqrt(log(float(self.window))) * half))

    def theta(self, state: State) -> Floats:
        """θ̂ of the model that plays."""
        model = self.acting(state)
        return solved(state["V"][model], state["b"][model])

    def scores(self, state: State, arms: Any) -> Scores:
        model = self.acting(state)
        mean, width = ridge_scores(state["V"], model, state["b"], self._rows(arms))
        return Scores(mean, self.exploration * self.beta(float(state["counted"][model])) * width)

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        state["t"] = state["t"] + 1
        x = np.ascontiguousarray(X[arm : arm + 1])
        for model in range(len(state["seen"])):
            mean, width = ridge_scores(state["V"], model, state["b"], x)
            reach = float(width[0]) * self.beta(float(state["counted"][model])) + self.eta
            fails = abs(float(mean[0]) - reward) > reach
            if not fails:
                ridge_take_(state["V"], model, state["b"], x[0], reward, 1.0)
                state["counted"][model] += 1.0
            state["failed"][model, state["seen"][model] % self.window] = fails
            state["seen"][model] += 1
        bad, half = self.badness(state)
        good = bad < half + self.delta_new
        kept = good | (bad < half + self.delta)
        if not kept.all():
            for name in ("V", "b", "counted", "seen", "failed"):
                state[name] = state[name][kept]
        if not good.any():
            self._begin(state)
