"""BVD-GLM-UCB: a GLM bandit that projects through two covariances (docs/math.md#generalized-linear)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from driftwise._internal.validate import one_of
from driftwise.errors import BadInput
from driftwise.kernels import bvd, point
from driftwise.kernels.entries import learn_bvd_, score_glm_
from driftwise.kernels.search.families import form_glm_
from driftwise.kernels.solvers.newton import newton_scratch_size
from driftwise.kernels.solvers.secular import set_scratch_size
from driftwise.policies.arms import Arms
from driftwise.policies.border import check_uniform
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.live import Entries
from driftwise.policies.model import noise
from driftwise.policies.plain import later
from driftwise.policies.state import State


@dataclass(frozen=True, kw_only=True)
class BVDGLMUCB(GeneralizedUCB):
    """BVD-GLM-UCB (Faury, Russac, Abeille, Calauzènes 2021), whose projection the paper calls highly complex.

    Plays as GLM-UCB does, at a point of the ball that the confidence set of Ṽ allows. The source accepts *any* such
    point. tie="nearest" takes the one nearest to the estimate; tie="origin" takes 0 wherever it is allowed, which shows
    how much this unspecified choice matters. uniform=True uses log(T/δ) in β̄, and needs `horizon`.
    """

    tie: Literal["nearest", "origin"] = "nearest"
    uniform: bool = later(False)  # type: ignore[misc]
    rule: ClassVar[int] = point.GLB
    entries: ClassVar[Entries] = Entries(score_glm_, learn_bvd_, bvd.BVD, form=form_glm_)

    def _check_model(self) -> None:
        if not isinstance(self.link, str):
            raise BadInput("link", self.link, "a built-in link", "BVD-GLM-UCB runs compiled solvers")
        noise(self.link, self.R)
        one_of("tie", self.tie, ["nearest", "origin"])
        if self.estimate != "exact":
            raise BadInput("estimate", self.estimate, '"exact": the projection needs the history', "leave it out")
        if self.delta is None:
            raise BadInput("delta", None, "a number in (0, 1)", "pass delta=1/horizon")
        if not self.memory.geometric:
            raise BadInput("memory", self.memory, "Fade(forget) or Keep()", "use GLMUCB for other memories")
        check_uniform(self)
        if self.uniform and self.horizon is None:
            raise BadInput("horizon", None, "the number of rounds, which uniform=True shares δ over", "pass horizon=")

    @cached_property
    def point(self) -> point.Point:
        flags, table = super().point
        flags[point.TIE] = bvd.NEAREST if self.tie == "nearest" else bvd.ORIGIN
        return point.Point(flags, table)

    def sizes(self, lanes: int) -> dict[str, int]:
        return {**super().sizes(lanes), "twins": lanes}

    def _scratch(self, used: int) -> int:
        return newton_scratch_size(self.dim, used + 1) + set_scratch_size(self.dim, used + 1)

    def _tests(self) -> tuple[Any, ...]:
        return ()

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        return ()
