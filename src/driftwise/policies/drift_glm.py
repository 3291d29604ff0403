"""BVD-GLM-UCB: generalized linear bandits with a projection through two covariances (MATH.md 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from driftwise.border import one_of
from driftwise.errors import BadInput
from driftwise.kernels import bvd, newton, point
from driftwise.kernels.point import Floats
from driftwise.policies.base import Arms, Scores, State, empty_state
from driftwise.policies.memory import Fade
from driftwise.policies.model import noise
from driftwise.policies.solved import Solved
from driftwise.theory.radius import glb_radius


@dataclass(frozen=True, kw_only=True)
class BVDGLMUCB(Solved):
    """BVD-GLM-UCB (Faury, Russac, Abeille, Calauzènes 2021), whose projection the paper calls highly complex.

    Plays as GLM-UCB does, at a point of the ball that the confidence set of Ṽ allows. The source takes *any* such
    point; tie="nearest" takes the one nearest the estimate, tie="origin" takes 0 wherever it is allowed, which shows
    how much the unspecified choice decides.
    """

    tie: Literal["nearest", "origin"] = "nearest"
    rule: ClassVar[int] = point.GLB

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

    def start(self, seed: int = 0) -> State:
        state = empty_state(self.dim, 1, twin=True, capacity=0, seed=seed, atoms=self.capacity, estimate=True)
        state.H[:] = self.reg * np.eye(self.dim)
        return state

    def _show(self, state: State, used: int, reg: float, scratch: tuple[Floats, Floats, Floats]) -> int:
        V, twin = (_full(sums) + self.ridge * np.eye(self.dim) for sums in (state.G[0], state.twin[0]))
        log_delta = -math.log(float(self.delta or 1.0))
        beta = glb_radius(
            state.squares, float(self.dim), self.ridge, log_delta, float(self.S), float(self.L),
            noise(self.link, self.R), self.c,
        )  # fmt: skip
        out = np.zeros(self.dim)
        tie = bvd.NEAREST if self.tie == "nearest" else bvd.ORIGIN
        _, _, _, last = bvd.project_(
            *self.history(state), 0, used, reg, state.theta, float(self.S), V, twin, float(beta), tie, out
        )
        state.shown[0] = out
        good = last <= 1e-7 * (1.0 + math.sqrt(float(out @ out)))
        return newton.CONVERGED if good else newton.UNFINISHED

    def scores(self, state: State, arms: Arms) -> Scores:
        found = super().scores(state, arms)  # the mean of a link left to Python is x'θ̃ itself
        return Scores(self.mu(found.mean), found.bonus)


def _full(sums: Floats) -> Floats:
    return np.asarray(np.tril(sums) + np.tril(sums, -1).T)
