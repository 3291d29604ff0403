"""BVD-GLM-UCB: generalized linear bandits with a projection through two covariances (MATH.md 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from driftwise.border import one_of
from driftwise.errors import BadInput
from driftwise.kernels import bvd, newton, point
from driftwise.kernels.adaptive_glm import glm_scores
from driftwise.kernels.drift_glm import learn_bvd_, play_bvd_
from driftwise.kernels.point import USED
from driftwise.policies.base import Compiled, Entries, State, empty_state
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.memory import Fade
from driftwise.policies.model import noise


@dataclass(frozen=True, kw_only=True)
class BVDGLMUCB(GeneralizedUCB):
    """BVD-GLM-UCB (Faury, Russac, Abeille, Calauzènes 2021), whose projection the paper calls highly complex.

    Plays as GLM-UCB does, at a point of the ball that the confidence set of Ṽ allows. The source takes *any* such
    point; tie="nearest" takes the one nearest the estimate, tie="origin" takes 0 wherever it is allowed, which shows
    how much the unspecified choice decides.
    """

    tie: Literal["nearest", "origin"] = "nearest"
    rule: ClassVar[int] = point.GLB
    entries: ClassVar[Entries] = Entries(glm_scores, learn_bvd_, play_bvd_)

    def _check_model(self) -> None:
        if not isinstance(self.link, str):
            raise BadInput("link", self.link, "a built-in link", "BVD-GLM-UCB runs compiled solvers")
        noise(self.link, self.R)
        one_of("tie", self.tie, ["nearest", "origin"])
        if self.estimate != "exact":
            raise BadInput("estimate", self.estimate, '"exact": the projection needs the history', "leave it out")
        if self.delta is None:
            raise BadInput("delta", None, "a number in (0, 1)", "pass delta=1/horizon")
        if not isinstance(self.memory, Fade):
            raise BadInput("memory", self.memory, "Fade(forget)", "use GLMUCB for other memories")

    @cached_property
    def point(self) -> point.Point:
        flags, table = super().point
        flags[point.TIE] = bvd.NEAREST if self.tie == "nearest" else bvd.ORIGIN
        return point.Point(flags, table)

    def start(self, seed: int = 0) -> State:
        state = empty_state(self.dim, 1, twin=True, capacity=0, seed=seed, atoms=self.capacity, estimate=True)
        state.H[:] = self.reg * np.eye(self.dim)
        return state

    def _writing(self, state: State) -> tuple[Any, ...]:
        return (*state[:4], *state[5:12])  # no ring, for nothing leaves; no marks nor notes, for nothing adapts

    def _scratch(self, state: State) -> tuple[Any, ...]:
        return newton.scratch(self.dim, int(state.cursor[USED]) + 1)

    play = Compiled.play
