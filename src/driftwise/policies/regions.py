"""The interface of continuous sets of arms (policies/shapes.py and curves.py have the sets).

A set is used in place of arms. It has `dim`, `reach` (its longest arm), `peak` (the point of largest index, with an
upper bound), `contains`, a uniform `draw`, and `support` (the largest x'θ).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from driftwise._internal.validate import array
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ActionSet, Choice
from driftwise.policies.searching import Index, Peak, check_region, choose_from

if TYPE_CHECKING:
    from driftwise.policies.base import Compiled
    from driftwise.policies.state import State

# The first counter of uniform draws; the agent uses 0 and 1.
COUNTER = 2


class Region(ActionSet):
    """The base of all continuous sets."""

    listed = False
    # A continuous set has no countable arms; an agent's book stores 0.
    count: ClassVar[int] = 0  # type: ignore[misc]

    @property
    def measure(self) -> str | None:
        return "volume"

    @property
    def image(self) -> tuple[Floats, bool] | None:
        """F, and whether it is F[0, 0]·I, for a set of all Fy with ‖y‖ ≤ 1; None for other sets."""
        return None

    @property
    def crc(self) -> int:
        return zlib.crc32(repr(self).encode())

    @property
    def arms(self) -> NoReturn:
        raise BadInput("arms", self, "a list of arms, of which each is scored", "choose and learn take sets")

    def check_for(self, policy: Compiled) -> None:
        check_region(policy, self)

    def best(self, policy: Compiled, state: State, number: int) -> Choice:
        return choose_from(policy, state, self, number)

    def observed(self, policy: Compiled, arm: Any) -> Floats:
        self.check_for(policy)
        return self.vector(arm).reshape(1, -1, 1).copy()

    def peak(self, index: Index) -> Peak:
        """The point of largest index."""
        raise NotImplementedError

    def contains(self, x: Floats) -> bool:
        """Whether a vector is one of its arms, up to rounding."""
        raise NotImplementedError

    def support(self, theta: Floats) -> Floats:
        """The largest x'θ for every row of theta (n, d)."""
        raise NotImplementedError

    def column(self, found: Choice) -> Floats:
        assert found.x is not None
        return found.x.reshape(1, -1, 1).copy()

    def vector(self, arm: Any) -> Floats:
        """A given arm as a vector of this set, or a BadInput."""
        x = array("arm", arm, (self.dim,), "pass the x that choose gave")
        if not self.contains(x):
            raise BadInput("arm", arm, f"an arm of {self!r}", "pass the x that choose gave")
        return x
