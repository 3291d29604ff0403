"""How a linear policy chooses: the norm of its bonus, and the radius. Each is a value that a policy reads.

A rule declares what it refuses, which numbers it does not need, and its row of the table. A new rule is a value here,
and a kernel if its index differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

from driftwise._internal.validate import real
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.linear import CONSTANT, QUANTILE, WEIGHTED
from driftwise.policies.border import log_confidence
from driftwise.theory.radius import cheung_radius

if TYPE_CHECKING:
    from driftwise.policies.linear import LinearUCB

RadiusName: TypeAlias = Literal["weighted", "cheung", "posterior"]

# The smallest R beside an S: the ridge R²d/S² must not be lost by rounding in sums of a million arms.
FAINTEST = 1e-5
_NOISE = 'pass the standard deviation of the noise, or play "Auto", which learns it'


class Norm(NamedTuple):
    """The norm of a bonus: that of V⁻¹ or, with a second matrix, of V⁻¹ṼV⁻¹; with `erring` as the published code
    does."""

    code: int
    twin: bool = False
    erring: bool = False

    def check(self, policy: LinearUCB) -> None:
        """Refuse settings for which the norm is not defined."""
        if self.erring and not policy.memory.geometric:
            raise BadInput("two_matrix", policy.two_matrix, "Fade or Keep for the published error", 'pass "correct"')

    def check_order(self) -> None:
        """Refuse to add sums that depend on the order of rewards."""
        if self.erring:
            raise BadInput("two_matrix", "as-published", '"correct": the published error depends on order', "pass that")


NORMS: dict[str | None, Norm] = {
    None: Norm(point.ONE_MATRIX),
    "correct": Norm(point.TWO_MATRIX, twin=True),
    "as-published": Norm(point.TWO_AS_PUBLISHED, twin=True, erring=True),
}


class Radius:
    """The radius of Theorem 1, whose β grows with the squared weights."""

    code: ClassVar[int] = WEIGHTED
    untold: ClassVar[tuple[str, ...]] = ()  # numbers that the rule does not need

    def check_noise(self, R: Any) -> None:
        """Refuse an R that the rule does not accept."""
        real("R", R, 0.0, way_out=_NOISE)

    def check(self, policy: LinearUCB) -> None:
        """Refuse settings for which the radius is not defined."""

    def check_uniform(self, policy: LinearUCB) -> None:
        """Refuse uniform=True if the radius cannot hold at all rounds."""

    def beta(self, policy: LinearUCB) -> float:
        """β, if it is one number."""
        return 0.0


class NoTheorem(Radius):
    """A radius without a theorem."""

    code = CONSTANT

    def check_uniform(self, policy: LinearUCB) -> None:
        raise BadInput("uniform", True, "a theorem's radius to hold at all rounds", 'pass radius="weighted"')


class Noise(NoTheorem):
    """The noise itself, of rules that sample."""

    def beta(self, policy: LinearUCB) -> float:
        return policy.noise


class Cheung(Radius):
    """The constant radius of SW-UCB (Cheung, Simchi-Levi, Zhu 2019)."""

    code = CONSTANT

    def check(self, policy: LinearUCB) -> None:
        super().check(policy)
        if not (policy.memory.sliding and policy.delta is not None):
            raise BadInput("radius", "cheung", 'a Window and a delta with radius="cheung"', 'pass radius="weighted"')

    def check_uniform(self, policy: LinearUCB) -> None:
        if policy.horizon is None:
            raise BadInput("horizon", None, "the number of rounds: this radius is constant", "pass horizon=")

    def beta(self, policy: LinearUCB) -> float:
        # A whole number larger than a machine word is converted, because compiled code does not accept it.
        return float(cheung_radius(
            policy.memory.numbers()[2], float(policy.dim), policy.ridge, log_confidence(policy),
            float(policy.S), policy.reach, policy.noise,
        ))  # fmt: skip


class Posterior(NoTheorem):
    """A posterior quantile (docs/math.md#posterior-radius)."""

    untold = ("lam", "L")

    def check_noise(self, R: Any) -> None:
        real("R", R, 0.0, low_open=True, way_out=_NOISE)

    def check(self, policy: LinearUCB) -> None:
        if policy.two_matrix is not None:
            wanted = 'one matrix with radius="posterior"'
            raise BadInput("two_matrix", policy.two_matrix, wanted, "leave two_matrix out")
        if policy.lam is None and policy.noise < FAINTEST * policy.S:
            wanted = f"R of at least {FAINTEST:g} S: a smaller ridge than that makes is lost in rounding"
            raise BadInput("R", policy.R, wanted, "pass a larger R, or a ridge as lam")

    def beta(self, policy: LinearUCB) -> float:
        return QUANTILE * policy.noise


RADII: dict[str, Radius] = {"weighted": Radius(), "cheung": Cheung(), "posterior": Posterior()}
SAMPLED: dict[str, Radius] = {"noise": Noise(), "weighted": Radius()}
