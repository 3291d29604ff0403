"""EXP3.S (Auer, Cesa-Bianchi, Freund, Schapire 2002): exponential weights of arms with a share for every arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftwise._internal.rng import key
from driftwise._internal.validate import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.kernels.stretches import (
    exp3_chances_,
    exp3_drawn,
    exp3_take_,
    exp3_weights_size,
    exp3_weights_views,
    play_exp3_,
)
from driftwise.policies.arms import Choice, Scores
from driftwise.policies.neighbours.stepped import FixedRounds, State, Stepped

SEEDS, WORDS = 2**63, 2.0**64


@dataclass(frozen=True, kw_only=True)
class Exp3S(Stepped):
    """EXP3.S (Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 6) on n arms.

    It plays arm i with probability (1-mix)w_i/Σw + mix/n. Then w_i ← w_i exp(mix·r̂_i/n) + (e·share/n)Σw, where r̂ is the
    reward over its probability for the arm played, and 0 for the others. Rewards become (r-low)/(high-low), clipped to
    [0, 1]. The policy ignores features: arm i is the i-th of the list in every round, and n must not change.
    """

    dim: int
    arms: int
    mix: float
    share: float
    low: float = 0.0
    high: float = 1.0

    deterministic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        keep_whole(self, "dim")
        keep_whole(self, "arms")
        real("mix", self.mix, 0.0, 1.0, low_open=True, way_out="pass the share of exploration")
        real("share", self.share, 0.0, way_out="pass the share that every arm gets, e.g. 1/T")
        real("low", self.low, -math.inf, way_out="pass the least reward")
        real("high", self.high, self.low, low_open=True, way_out="pass the largest reward")

    def start(self, seed: int = 0) -> State:
        return {
            "weights": np.ones(self.arms), "draws": np.zeros((), dtype=np.int64),
            "seed": np.array(seed % SEEDS, dtype=np.int64),
        }  # fmt: skip

    def propensities(self, state: State, arms: Any, draw: int | None = None) -> Floats:
        """The probability of every arm."""
        self._count(arms)
        out = np.empty(self.arms)
        exp3_chances_(state["weights"], self.mix, out)
        return out

    def _count(self, arms: Any) -> None:
        if len(self._rows(arms)) != self.arms:
            raise BadInput("arms", f"{len(arms)} arms", f"{self.arms} arms in every round", "pass arms= as many")

    def scores(self, state: State, arms: Any) -> Scores:
        share = self.propensities(state, arms)
        return Scores(share, np.zeros(self.arms))

    def choose(self, state: State, arms: Any, draw: int | None = None) -> Choice:
        """Draw an arm. `draw` is the number of the draw; None takes the next one."""
        share = self.propensities(state, arms)
        number = int(state["draws"]) if draw is None else int(draw)
        return Choice(exp3_drawn(share, self._level(state, number)), math.nan, math.nan, math.nan)

    def _level(self, state: State, number: int) -> float:
        """The uniform number that draws the arm."""
        return key(int(state["seed"]), "exp3", number) / WORDS

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        weights, share = state["weights"].copy(), np.empty(self.arms)
        total = exp3_chances_(weights, self.mix, share)
        gain = min(1.0, max(0.0, (reward - self.low) / (self.high - self.low)))
        exp3_take_(weights, total, float(share[arm]), arm, gain, self.mix, self.share)
        state["weights"], state["draws"] = weights, state["draws"] + 1

    @property
    def has_stretch(self) -> bool:
        return True

    def stretch(self, state: State, one: FixedRounds) -> None:
        self._count(one.rounds.arms[0].T)
        first, rounds = int(state["draws"]), len(one.regret)
        floats = np.zeros(exp3_weights_size(self.arms, rounds))
        held = exp3_weights_views(floats, self.arms, rounds)
        held.weights[:] = state["weights"]
        held.levels[:] = [self._level(state, first + t) for t in range(rounds)]
        settings = [self.mix, self.share, self.low, self.high]
        one.play(play_exp3_, [self.arms, rounds], settings, floats, np.zeros(1, dtype=np.int64))
        state["weights"], state["draws"] = held.weights.copy(), state["draws"] + rounds
