"""Restarted SAVE+ (Wang, Xie, Chen, Lui, Zhou 2025): layers of weighted regressions for noise of unknown variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from driftwise._internal.elementary import log
from driftwise._internal.products import dot, solved, times
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.kernels.point import Floats
from driftwise.kernels.ridge import ridge_scores, ridge_take_
from driftwise.kernels.stretches import play_save_
from driftwise.policies.arms import Scores
from driftwise.policies.neighbours.stepped import FixedRounds, State, Stepped


@dataclass(frozen=True, kw_only=True)
class RestartedSAVE(Stepped):
    """Restarted SAVE+ (Wang, Xie, Chen, Lui, Zhou 2025, Algorithm 2).

    Layer l = 1, …, `layers` has a regression with the ridge 4^-l. An arm's index is the least x'θ̂ + β‖x‖ in Σ⁻¹ of
    all layers. A reward goes to the first layer where ‖x‖ in Σ⁻¹ is at least 2^-l, with the weight (2^-l/‖x‖)², and to
    none if there is no such layer. The policy forgets everything every `window` rounds: before round k if `window`
    divides k.

    radius="theorem": β of a layer is 2^(1-l) until its first reward, and then that of the source's equation (9), where
    R is the largest size of the noise. radius="first": β stays 2^(1-l), as in the source's experiments.
    """

    dim: int
    window: int
    layers: int = 6
    delta: float = 0.01
    S: float = 1.0
    R: float = 1.0
    radius: Literal["theorem", "first"] = "theorem"

    most_layers: ClassVar[int] = 100  # 4^-l is a normal number

    def __post_init__(self) -> None:
        keep_whole(self, "dim")
        keep_whole(self, "window", 1, "pass the number of rounds between restarts")
        keep_whole(self, "layers", 1, "pass the number of layers, log2(1/alpha)")
        real("layers", self.layers, 1, self.most_layers, way_out="pass fewer layers")
        for name in ("S", "R"):
            real(name, getattr(self, name), 0.0, low_open=True, way_out="pass a number above 0")
        real("delta", self.delta, 0.0, 1.0, low_open=True, high_open=True, way_out="pass a probability")
        one_of("radius", self.radius, ["theorem", "first"])

    def start(self, seed: int = 0) -> State:
        V = np.stack([math.ldexp(1.0, -2 * layer) * np.eye(self.dim) for layer in range(1, self.layers + 1)])
        empty = np.zeros((self.layers, 2))  # of every layer: Σ w²r², and the number of its rewards
        return {"k": np.zeros((), dtype=np.int64), "V": V, "b": np.zeros((self.layers, self.dim)), "heard": empty}

    def _restart(self, state: State) -> None:
        state.update({name: value for name, value in self.start().items() if name != "k"})

    def beta(self, state: State, layer: int) -> float:
        """β of layer 1, 2, …."""
        scale, (squares, count) = math.ldexp(1.0, -layer), state["heard"][layer - 1]
        if self.radius == "first" or count == 0:
            return 2.0 * scale
        w, rare = float(self.window), 4.0 * self.layers / self.delta
        ahead, now = log(rare * (w + 1.0) * (w + 1.0)), log(rare * w * w)
        variance = self.R * self.R * count
        if 1.0 / scale >= 64.0 * math.sqrt(ahead):
            V, b = state["V"][layer - 1] - scale * scale * np.eye(self.dim), state["b"][layer - 1]
            theta = solved(state["V"][layer - 1], b)
            variance = max(0.0, float(squares) - 2.0 * dot(theta, b) + dot(theta, times(V, theta)))
        inside = 8.0 * variance + 6.0 * self.R * self.R * ahead + 16.0 * scale * scale
        return scale * (16.0 * math.sqrt(inside * now) + 6.0 * self.R * now + self.S)

    def theta(self, state: State) -> Floats:
        """θ̂ of the first layer."""
        return solved(state["V"][0], state["b"][0])

    def scores(self, state: State, arms: Any) -> Scores:
        X = self._rows(arms)
        means, bonuses = np.empty((2, self.layers, len(X)))
        for layer in range(self.layers):
            means[layer], bonuses[layer] = ridge_scores(state["V"], layer, state["b"], X)
            bonuses[layer] *= self.beta(state, layer + 1)
        least, all_arms = (means + bonuses).argmin(axis=0), np.arange(len(X))
        return Scores(means[least, all_arms], bonuses[least, all_arms])

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        state["k"] = state["k"] + 1
        x = np.ascontiguousarray(X[arm : arm + 1])
        for layer in range(self.layers):
            width, scale = float(ridge_scores(state["V"], layer, state["b"], x)[1][0]), math.ldexp(1.0, -layer - 1)
            if width >= scale:
                weight = (scale / width) * (scale / width)
                ridge_take_(state["V"], layer, state["b"], x[0], reward, weight)
                state["heard"][layer] += weight * reward * reward, 1.0
                break
        if (int(state["k"]) + 1) % self.window == 0:
            self._restart(state)

    @property
    def has_stretch(self) -> bool:
        return self.radius == "first"

    def stretch(self, state: State, one: FixedRounds) -> None:
        one.play_layers(play_save_, state, self.window, [])
