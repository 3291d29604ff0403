"""Linear bandits: one covariance, or two (MATH.md 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from driftwise.border import one_of, real
from driftwise.errors import BadInput
from driftwise.kernels import linear, point
from driftwise.kernels.adapt import linear as adaptive
from driftwise.kernels.links import LINKS, LinkRow
from driftwise.policies.base import Compiled, Entries, check_index
from driftwise.policies.memory import Memory
from driftwise.policies.state import Layout, layout
from driftwise.theory.radius import cheung_radius

_RULES = {None: point.ONE_MATRIX, "correct": point.TWO_MATRIX, "as-published": point.TWO_AS_PUBLISHED}
_RADII = {"weighted": point.WEIGHTED, "cheung": point.CONSTANT}


@dataclass(frozen=True, kw_only=True)
class LinearUCB(Compiled):
    """Optimism with one covariance (Wang, Zhao, Zhou 2023, Algorithm 1; memory=Keep() is OFUL).

    Plays the arm of largest x'θ̂ + exploration·β‖x‖, in the norm of V⁻¹, or of V⁻¹ṼV⁻¹ with two_matrix="correct"
    (D-LinUCB, Russac, Vernade, Cappé 2019; "as-published" repeats the slip of its code, MATH.md 1).
    radius="cheung" is the constant radius of SW-UCB and needs a Window and a delta. delta=None is 1/max(2, t) at round
    t, for a horizon nobody knows.
    """

    dim: int
    memory: Memory
    lam: float
    delta: float | None
    S: float = 1.0
    L: float = 1.0
    R: float = 1.0
    exploration: float = 1.0
    two_matrix: Literal["correct", "as-published"] | None = None
    radius: Literal["weighted", "cheung"] = "weighted"

    entries: ClassVar[Entries] = Entries(linear.score_linear_, linear.learn_linear_, linear.play_linear_)
    adaptive: ClassVar[Entries] = Entries(
        adaptive.score_adaptive_linear_, adaptive.learn_adaptive_linear_, adaptive.play_adaptive_linear_
    )

    def __post_init__(self) -> None:
        check_index(self)
        real("R", self.R, 0.0, way_out="pass the standard deviation of the noise")
        one_of("two_matrix", self.two_matrix, list(_RULES))
        one_of("radius", self.radius, list(_RADII))
        if self.two_matrix == "as-published" and not self.memory.geometric:
            raise BadInput("two_matrix", self.two_matrix, "Fade or Keep for the published slip", 'pass "correct"')
        if self.radius == "cheung" and not (self.memory.room() and self.delta is not None):
            raise BadInput("radius", "cheung", 'a Window and a delta with radius="cheung"', 'pass radius="weighted"')

    @property
    def model(self) -> LinkRow:
        return LINKS["identity"]

    @property
    def ridge(self) -> float:
        """λ in V."""
        return float(self.lam)

    @property
    def noise(self) -> float:
        """R."""
        return float(self.R)

    @cached_property
    def point(self) -> point.Point:
        flags = self.layout.flags.copy()
        flags[point.MEMORY] = self.memory.code
        flags[point.RULE] = _RULES[self.two_matrix]
        flags[point.RADIUS] = _RADII[self.radius]
        table = np.zeros((1, point.COLUMNS))
        gamma, log_gamma, length = self.memory.numbers()
        log_delta = -1.0 if self.delta is None else -math.log(self.delta)
        table[0, : point.EXPLORE + 1] = (
            gamma, log_gamma, length, self.lam, log_delta, self.S, self.L, self.R, self.exploration
        )  # fmt: skip
        if self.radius == "cheung":
            # Whole numbers beyond a machine word are numbers like any other, and no compiled code takes them.
            lam, S, L, R = (float(one) for one in (self.lam, self.S, self.L, self.R))
            table[0, point.BETA] = cheung_radius(length, float(self.dim), lam, log_delta, S, L, R)
        return point.Point(flags, table)

    @cached_property
    def layout(self) -> Layout:
        return layout(self.dim, **self.sizes(1))

    def sizes(self, lanes: int) -> dict[str, int]:
        """Sizes of the groups that so many lanes need."""
        room = self.memory.room()
        return {"twins": lanes if self.two_matrix else 0, "room": room, "cursors": point.CURSOR if room else 0}

    def lane_scratch(self, used: int, lanes: int) -> int:
        """The numbers a lesson scribbles on when it is one of an adaptation."""
        return adaptive.scales_size(self.dim, lanes)

    def multiplier(self, n: float) -> float:
        """The factor on ‖x‖ in the index after n rounds of data."""
        return linear.linear_radius(self.point, 0, n, n, self.dim)

    def scoring(self) -> tuple[float, float]:
        """Ridge and noise by which a bank scores its memories: those of a θ that is N(0, S²/d)."""
        noise = max(self.R, 1e-6 * self.S * self.L)  # of the scores alone: R = 0 would divide by 0
        return self.dim / self.S**2 * noise**2, noise
