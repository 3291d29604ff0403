"""Self-concordant bandits: rewards such as clicks, whose slope bounds its own change (MATH.md 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from driftwise._internal.validate import one_of
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.model import check_self_concordant


@dataclass(frozen=True, kw_only=True)
class SelfConcordantUCB(GeneralizedUCB):
    """Optimism for self-concordant rewards (Wang, Zhao, Zhou 2023, Algorithm 3; memory=Keep() is LogUCB1).

    Plays the largest μ(x'θ̃) + exploration·2√(1+2SL)(k/√c)β̃‖x‖ in the norm of V⁻¹, θ̃ the point of the S-ball nearest
    the estimate in ‖g(θ)-b‖ in H(θ)⁻¹ (eq. SCB-projection). uniform=True takes log(T/δ) in β̃, so that the
    concentration holds at all rounds at once and not just at each; it needs `horizon`.
    """

    uniform: bool = False
    rule: ClassVar[int] = point.SCB
    adds: ClassVar[bool] = True

    def _check_model(self) -> None:
        check_self_concordant(self.link, self.S, self.L)
        one_of("uniform", self.uniform, [True, False])
        if self.uniform and (self.horizon is None or self.delta is None):
            wanted = "the number of rounds and a delta, which uniform=True is uniform over"
            raise BadInput("horizon", self.horizon, wanted, "pass horizon= and delta=")

    def _log_delta(self) -> float:
        if self.delta is None:
            return -1.0
        return -math.log(self.delta) + (math.log(self.horizon) if self.uniform and self.horizon else 0.0)


@dataclass(frozen=True, kw_only=True)
class DiscountedSelfConcordantUCB(GeneralizedUCB):
    """SC-D-GLUCB (Russac, Faury, Cappé, Garivier 2021): weighted MLE with ridge lam, no projection.

    Its bonus is (β/√c)‖x‖ in the norm of V⁻¹, V with ridge lam/c, and β is far larger while the estimate lies outside
    the ball.
    """

    rule: ClassVar[int] = point.SC_D
    adds: ClassVar[bool] = True

    def _check_model(self) -> None:
        check_self_concordant(self.link, self.S, self.L)
        if not self.memory.geometric or self.memory.forget == 0.0:
            raise BadInput("memory", self.memory, "Fade(forget) with forget above 0", "use SelfConcordantUCB")
        if self.delta is None:
            raise BadInput("delta", None, "a number in (0, 1)", "pass delta=1/horizon")
        if self.horizon is None:
            raise BadInput("horizon", None, "the number of rounds, which the radius holds log T of", "pass horizon=")

    @property
    def ridge(self) -> float:
        return float(self.lam) / self.c

    @property
    def reg(self) -> float:
        return float(self.lam)
