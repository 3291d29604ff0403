"""Optimism by a posterior quantile for clicks (docs/math.md#posterior-radius)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.glm import ODDS, QUANTILE
from driftwise.kernels.point import Floats
from driftwise.policies.base import Compiled
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.linear import MOST_LENGTH
from driftwise.policies.model import Link
from driftwise.policies.state import State


@dataclass(frozen=True, kw_only=True)
class PosteriorUCB(GeneralizedUCB):
    """Plays the arm with the largest z = x'θ̂ + 1.5·exploration·‖x‖ in the norm of H⁻¹, H the Hessian at the estimate.

    z is a quantile of the Laplace posterior of a θ that is N(0, S²/d). The ridge inside the estimating equation is lam;
    lam=None is d/S². The mean of an arm is μ(x'θ̂), its bonus μ(z) - μ(x'θ̂). Nothing is projected, and no theorem
    covers it. S=None is 3. L=None accepts arms of any length.
    """

    lam: float | None = None  # type: ignore[assignment]
    delta: float | None = None
    S: float | None = ODDS  # type: ignore[assignment]
    L: float | None = 1.0  # type: ignore[assignment]

    rule: ClassVar[int] = point.POSTERIOR
    untold: ClassVar[tuple[str, ...]] = ("lam", "S", "L")

    def _check_model(self) -> None:
        if isinstance(self.link, Link):
            raise BadInput("link", self.link, "a built-in link, whose μ the index is lifted by", "use GLMUCB for it")

    @property
    def _k_and_c(self) -> tuple[float, float]:
        """No constant of the link is used."""
        return 1.0, 1.0

    @property
    def reach(self) -> float:
        return MOST_LENGTH if self.L is None else float(self.L)

    @property
    def ridge(self) -> float:
        return self.dim / (float(self.S or ODDS) * float(self.S or ODDS)) if self.lam is None else float(self.lam)

    @property
    def reg(self) -> float:
        return self.ridge

    @property
    def noise(self) -> float:
        """R, which the index does not use."""
        return 0.0

    def multiplier(self, n: float) -> float:
        return QUANTILE * float(self.exploration)

    def scoring(self) -> tuple[float, float]:
        return self.ridge, 1.0

    def _take(self, state: State, x: Floats, arm: int, *rest: Any) -> None:
        Compiled._take(self, state, x, arm, *rest)  # there is no ball that could exclude the estimate
