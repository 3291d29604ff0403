"""Rules that sample: θ drawn around the estimate, or one random multiplier of all bonuses (docs/math.md#sampling).

They have the estimates, states and updates of the optimistic rules; only the choice is drawn. A draw is a pure function
of the state's key and a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from driftwise._internal.validate import one_of, whole
from driftwise.errors import BadInput
from driftwise.kernels import point, sampling
from driftwise.kernels.entries import learn_glm_, learn_linear_
from driftwise.kernels.point import Floats
from driftwise.kernels.search.families import form_sampling_glm_, form_sampling_linear_
from driftwise.policies.arms import Arms, ArmSet, Choice, Scores
from driftwise.policies.base import Compiled
from driftwise.policies.linear import LinearUCB
from driftwise.policies.live import Entries, report
from driftwise.policies.posterior import PosteriorUCB
from driftwise.policies.rule import SAMPLED, Radius
from driftwise.policies.state import State

# The number of draws from which propensities of Thompson sampling are counted.
TRIES = 1000
_NO_SHARES = np.zeros(0)


class Propensities(NamedTuple):
    """The probability of each arm, and the number of draws from which it was counted; 0 if it is exact."""

    shares: Floats
    tries: int


class Sampling(Compiled):
    """The base of rules that sample: choices by a draw, and the probability of each arm.

    `draw` numbers draws from 0. None is the number of the round, 1 more than the whole ticks that have passed, so that
    a choice changes with time and asking twice gives the same arm. A caller that chooses more than once per tick
    numbers the choices, as an agent does. The bonus of an arm is what the draw adds to its mean, and may be negative.
    """

    deterministic: ClassVar[bool] = False
    exact: bool = False  # whether propensities need no counting

    def _number(self, state: State, draw: int | None) -> int:
        return sampling.BY_ROUND if draw is None else _number(draw)

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        arm, scratch, second = self._sampled(state, X, number, _NO_SHARES)
        mean, bonus = scratch.item(arm), scratch.item(second + arm)
        return Choice(arm, mean + bonus, mean, bonus)

    def scores(self, state: State, arms: Arms, draw: int | None = None) -> Scores:
        """Mean and bonus of every arm by a draw. Changes nothing."""
        X, number = self._columns(arms), self._number(state, draw)
        with self.hold(state):
            _, scratch, second = self._sampled(state, X, number, _NO_SHARES)
            n = X.shape[2]
            return Scores(scratch[:n].copy(), scratch[second : second + n].copy())

    def propensities(self, state: State, arms: Arms, draw: int | None = None) -> Propensities:
        """How often each arm is played over all draws: exact if one number is drawn, counted if θ is.

        The count uses the draw of this number and 999 more that belong to it. The first is among them, so the arm it
        plays has at least 1/1000. At a true share of p the mean of its 1/share is (1 - (1-p)^1000)/p, which is nearly
        unbiased.
        """
        X, number = self._columns(arms), self._number(state, draw)
        shares = np.empty(X.shape[2])
        with self.hold(state):
            self._sampled(state, X, number, shares)
        return Propensities(shares, 0 if self.exact else TRIES)

    def propensity(self, state: State, arms: ArmSet, arm: int, draw: int) -> tuple[float, int] | None:
        shares, tries = self.propensities(state, arms, draw)
        return float(shares[arm]), tries

    def shares(self, state: State, arms: ArmSet, arm: int, draw: int) -> Floats:
        return self.propensities(state, arms, draw).shares

    def _sampled(self, state: State, X: Floats, number: int, shares: Floats) -> tuple[int, Floats, int]:
        """The best arm by a draw and the scratch, as from `_score`; or, if there is room for them, shares."""
        scratch, second, taken = self.scoring_scratch(state, X.shape[2])
        live = self._live
        arm = live.scores(*live.point, *state.packed, taken, X, number, TRIES, shares)
        report(arm)
        return arm, scratch, second


def _number(draw: object) -> int:
    number = whole("draw", draw, 0, "pass the number of the decision, or leave it out")
    if number >= 2**63:
        raise BadInput("draw", draw, "a number below 2^63", "count decisions")
    return number


@dataclass(frozen=True, kw_only=True)
class LinearSampling(Sampling, LinearUCB):
    """Linear rules that sample (Kim, Tewari 2020; D-LinTS is drawn="theta", D-RandLinUCB drawn="multiplier").

    drawn="theta" plays the largest x'θ̃, θ̃ ~ N(θ̂, a²Σ); "multiplier" the largest x'θ̂ + aZ‖x‖ in the norm of Σ with
    one normal Z for all arms, or |Z| with optimistic=True. Σ is V⁻¹ṼV⁻¹ of D-LinUCB with two_matrix="correct", and V⁻¹
    with None (LinTS, Agrawal, Goyal 2013, and RandLinUCB, Vaswani et al. 2020, where nothing is forgotten). a is
    exploration·R with radius="noise", and exploration·β with "weighted"; S and delta are β's alone.
    """

    two_matrix: Literal["correct", "as-published"] | None = "correct"
    radius: Literal["noise", "weighted"] = "noise"  # type: ignore[assignment]
    drawn: Literal["theta", "multiplier"] = "theta"
    optimistic: bool = False

    radii: ClassVar[dict[str, Radius]] = SAMPLED
    entries: ClassVar[Entries] = Entries(
        sampling.sample_linear_, learn_linear_, sampling.SAMPLED_LINEAR, form=form_sampling_linear_
    )

    def __post_init__(self) -> None:
        one_of("drawn", self.drawn, ["theta", "multiplier"])
        one_of("optimistic", self.optimistic, [True, False])
        if self.optimistic and self.drawn == "theta":
            raise BadInput("optimistic", True, 'drawn="multiplier": a θ has no sign', "leave it out")
        super().__post_init__()

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.drawn == "multiplier"

    @property
    def revision(self) -> int:  # type: ignore[override]
        """The second for a multiplier: near ties are chosen as their probabilities are computed."""
        return 2 if self.exact else 1

    @cached_property
    def point(self) -> point.Point:
        made = super().point
        upward = point.UPWARD if self.optimistic else point.MULTIPLIER
        made.flags[point.DRAWN] = point.THETA if self.drawn == "theta" else upward
        return made


@dataclass(frozen=True, kw_only=True)
class PosteriorSampling(Sampling, PosteriorUCB):
    """Thompson sampling for clicks by the Laplace posterior (GLM-TSL, Kveton et al. 2020; Chapelle, Li 2011).

    Plays the arm with the largest x'θ̃, θ̃ ~ N(θ̂, exploration²H⁻¹), on the estimate of PosteriorUCB, whose fields it
    has. The mean of an arm is μ(x'θ̂), its bonus μ(x'θ̃) - μ(x'θ̂).
    """

    entries: ClassVar[Entries] = Entries(
        sampling.sample_glm_, learn_glm_, sampling.SAMPLED_GLM, form=form_sampling_glm_
    )

    def multiplier(self, n: float) -> float:
        """The standard deviation of x'θ̃, in ‖x‖."""
        return float(self.exploration)
