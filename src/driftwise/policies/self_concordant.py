"""Self-concordant bandits: rewards such as clicks, whose slope bounds its own change (docs/math.md#self-concordant)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftwise._internal.validate import one_of
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.policies.border import check_uniform, log_confidence
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.model import check_self_concordant
from driftwise.policies.plain import later
from driftwise.theory.bounds import scb_tail
from driftwise.theory.radius import drifting_log


@dataclass(frozen=True, kw_only=True)
class SelfConcordantUCB(GeneralizedUCB):
    """Optimism for self-concordant rewards (Wang, Zhao, Zhou 2023, Algorithm 3; memory=Keep() is LogUCB1).

    Plays the largest μ(x'θ̃) + exploration·2√(1+2SL)(k/√c)β̃‖x‖ in the norm of V⁻¹, where θ̃ is the point of the S-ball
    nearest to the estimate in ‖g(θ)-b‖ in H(θ)⁻¹ (eq. SCB-projection). With uniform=True β̃ holds at all rounds at
    once: δ/T per round, or δ/(2t(1+log t)²) without a horizon. If the memory forgets, it also pays for variances at θ_s
    instead of θ_t, and then holds on rounds with a short recent path (docs/repairs.md, 3). project=False uses the
    estimate itself.
    """

    uniform: bool = False  # type: ignore[misc]
    project: bool = later(True)  # type: ignore[misc]
    rule: ClassVar[int] = point.SCB
    adds: ClassVar[bool] = True

    def _check_model(self) -> None:
        check_self_concordant(self.link, self.S, self.L)
        check_uniform(self)
        one_of("project", self.project, [True, False])

    def _log_delta(self) -> float:
        forgets = not self.memory.geometric or self.memory.forget > 0.0
        if not (self.uniform and forgets):
            return log_confidence(self)
        # Without a horizon D is defined by γ^D = 1-γ, and older data have weight 1.
        tail = scb_tail(self.memory.forget, float(self.horizon)) if self.horizon else 1.0
        return log_confidence(self, drifting_log(0.0, self.reg, self.reach, float(self.m), tail))


@dataclass(frozen=True, kw_only=True)
class DiscountedSelfConcordantUCB(GeneralizedUCB):
    """SC-D-GLUCB (Russac, Faury, Cappé, Garivier 2021): weighted MLE with ridge lam, no projection.

    Its bonus is (β/√c)‖x‖ in the norm of V⁻¹, V with ridge lam/c, and β is far larger while the estimate lies outside
    the ball.
    """

    rule: ClassVar[int] = point.SC_D
    adds: ClassVar[bool] = True
    lam_estimates: ClassVar[bool] = True

    def _check_model(self) -> None:
        check_self_concordant(self.link, self.S, self.L)
        if not self.memory.geometric or self.memory.forget == 0.0:
            raise BadInput("memory", self.memory, "Fade(forget) with forget above 0", "use SelfConcordantUCB")
        if self.delta is None:
            raise BadInput("delta", None, "a number in (0, 1)", "pass delta=1/horizon")
        if self.horizon is None:
            raise BadInput("horizon", None, "the number of rounds, which the radius holds log T of", "pass horizon=")
