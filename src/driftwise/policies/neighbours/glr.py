"""Restarts by a GLR test (QCD+, after Gerogiannis, Huang, Bose, Veeravalli 2025; GLR-klUCB, Besson et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from driftwise._internal.elementary import log
from driftwise._internal.validate import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import Choice, Scores
from driftwise.policies.neighbours.stepped import State, Stepped
from driftwise.policies.state import State as BaseState

EDGE = 1e-12  # the smallest distance of a mean from 0 and 1


def divergence(p: float, q: float) -> float:
    """The Kullback-Leibler divergence of two Bernoulli distributions."""
    p, q = min(max(p, EDGE), 1.0 - EDGE), min(max(q, EDGE), 1.0 - EDGE)
    return p * log(p / q) + (1.0 - p) * log((1.0 - p) / (1.0 - q))


def statistic(rewards: Floats, every: int = 1) -> float:
    """max over s of s·kl(mean of the first s, mean) + (n-s)·kl(mean of the others, mean), s a multiple of `every`."""
    n, sums = len(rewards), np.cumsum(rewards)
    whole, most = float(sums[-1]) / n, 0.0
    for s in range(every, n, every):
        first, rest = float(sums[s - 1]) / s, float(sums[-1] - sums[s - 1]) / (n - s)
        most = max(most, s * divergence(first, whole) + (n - s) * divergence(rest, whole))
    return most


@dataclass(frozen=True, kw_only=True)
class GLRRestart(Stepped):
    """Restarts of a base policy by a GLR test on every arm (after Gerogiannis et al. 2025), for a fixed list of arms.

    The policy restarts when, after n rewards of an arm since the last restart, `statistic` is at least log(4n^(3/2)/δ).
    delta=None is δ = 1/√T. Rewards become (r-low)/(high-low), clipped to [0, 1]. The test runs at every `every`-th
    reward of an arm, over splits that are multiples of `every`. Every ⌈arms/share⌉ rounds the policy plays all arms in
    turn. These forced plays stand in for those of DAL, whose text could not be read. share=None is √(arms·log T/T).
    """

    dim: int
    base: Any
    arms: int
    horizon: int
    delta: float | None = None
    share: float | None = None
    low: float = 0.0
    high: float = 1.0
    every: int = 10

    def __post_init__(self) -> None:
        if not (hasattr(self.base, "layout") and self.base.deterministic):
            raise BadInput("base", self.base, "a policy of the catalogue that does not draw", 'pass dw.make("OFUL", …)')
        keep_whole(self, "dim")
        if self.dim != self.base.dim:
            raise BadInput("dim", self.dim, f"that of the base, {self.base.dim}", "pass the same")
        keep_whole(self, "arms")
        keep_whole(self, "horizon", 1, "pass the number of rounds")
        keep_whole(self, "every", 1, "pass 1 to test after every reward")
        for name in ("delta", "share"):
            if getattr(self, name) is not None:
                real(name, getattr(self, name), 0.0, 1.0, low_open=True, way_out="pass a number in (0, 1]")
        real("low", self.low, -math.inf, way_out="pass the least reward")
        real("high", self.high, self.low, low_open=True, way_out="pass the largest reward")

    @property
    def L(self) -> float:
        return float(self.base.L)

    @cached_property
    def period(self) -> int:
        """The length of a block of rounds, of which the first `arms` are forced."""
        most = math.sqrt(self.arms * log(max(2, self.horizon)) / self.horizon)
        return math.ceil(self.arms / (min(1.0, most) if self.share is None else self.share))

    def threshold(self, n: int) -> float:
        """log(4n^(3/2)/δ)."""
        log_delta = 0.5 * log(self.horizon) if self.delta is None else -log(self.delta)
        return log(4.0) + 1.5 * log(n) + log_delta

    @cached_property
    def _fresh(self) -> BaseState:
        state: BaseState = self.base.start()
        return state

    def start(self, seed: int = 0) -> State:
        return {
            "floats": self._fresh.floats.copy(), "ints": self._fresh.ints.copy(), "rewards": np.zeros(0),
            "played": np.zeros(0, dtype=np.int64), "restarts": np.zeros((), dtype=np.int64),
        }  # fmt: skip

    def inside(self, state: State) -> BaseState:
        """The state of the base policy. It shares its arrays with this state."""
        fresh = self._fresh
        return BaseState(fresh.layout, state["floats"], state["ints"], fresh.owner, vetted=True)

    def theta(self, state: State) -> Floats:
        """θ̂ of the base."""
        return np.asarray(self.base.theta(self.inside(state)))

    def forced(self, state: State) -> int | None:
        """The arm that this round must play, or None."""
        place = len(state["rewards"]) % self.period
        return place if place < self.arms else None

    def _listed(self, arms: Any) -> Floats:
        X = self._rows(arms)
        if len(X) != self.arms:
            raise BadInput("arms", f"{len(X)} arms", f"the same {self.arms} arms in every round", "pass arms= as many")
        return X

    def scores(self, state: State, arms: Any) -> Scores:
        found: Scores = self.base.scores(self.inside(state), self._listed(arms))
        return found

    def choose(self, state: State, arms: Any) -> Choice:
        """Choose the forced arm if there is one, otherwise the choice of the base."""
        X, forced = self._listed(arms), self.forced(state)
        if forced is None:
            found: Choice = self.base.choose(self.inside(state), X)
            return found
        mean, bonus = (float(one[forced]) for one in self.base.scores(self.inside(state), X))
        return Choice(forced, mean + bonus, mean, bonus)

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        held = self.inside(state)
        self.base.learn(held, self._listed(X), arm, reward)
        gain = min(1.0, max(0.0, (reward - self.low) / (self.high - self.low)))
        state["rewards"] = np.append(state["rewards"], gain)
        state["played"] = np.append(state["played"], arm)
        own = state["rewards"][state["played"] == arm]
        if len(own) > 1 and len(own) % self.every == 0 and statistic(own, self.every) >= self.threshold(len(own)):
            state.update({**self.start(), "restarts": state["restarts"] + 1})
