"""Linear bandits: one covariance, or two (MATH.md 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from driftwise.border import one_of, real
from driftwise.errors import BadInput
from driftwise.kernels import gram, play, point
from driftwise.policies.base import Compiled, Entries, State, check_index, empty_state
from driftwise.policies.memory import Fade, Keep, Memory, Window
from driftwise.theory.radius import cheung_radius

_RULES = {None: point.ONE_MATRIX, "correct": point.TWO_MATRIX, "as-published": point.TWO_AS_PUBLISHED}


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

    entries: ClassVar[Entries] = Entries(play.linear_scores, gram.learn_, play.play_linear_)

    def __post_init__(self) -> None:
        check_index(self)
        real("R", self.R, 0.0, way_out="pass the standard deviation of the noise")
        one_of("two_matrix", self.two_matrix, list(_RULES))
        one_of("radius", self.radius, ["weighted", "cheung"])
        if self.two_matrix == "as-published" and not isinstance(self.memory, (Fade, Keep)):
            raise BadInput("two_matrix", self.two_matrix, "Fade or Keep for the published slip", 'pass "correct"')
        if self.radius == "cheung" and not (isinstance(self.memory, Window) and self.delta is not None):
            raise BadInput("radius", "cheung", 'a Window and a delta with radius="cheung"', 'pass radius="weighted"')

    @cached_property
    def point(self) -> point.Point:
        flags = np.zeros(point.FLAGS, dtype=np.int64)
        flags[point.MEMORY] = self.memory.code
        flags[point.RULE] = _RULES[self.two_matrix]
        table = np.zeros((1, point.COLUMNS))
        gamma, log_gamma, length = self.memory.numbers()
        log_delta = -1.0 if self.delta is None else -math.log(self.delta)
        table[0, : point.EXPLORE + 1] = (
            gamma, log_gamma, length, self.lam, log_delta, self.S, self.L, self.R, self.exploration
        )  # fmt: skip
        if self.radius == "cheung":
            flags[point.RADIUS] = point.CONSTANT
            table[0, point.BETA] = cheung_radius(
                length, float(self.dim), self.lam, log_delta, self.S, self.L, self.R
            )
        return point.Point(flags, table)

    def multiplier(self, n: float) -> float:
        """The factor on ‖x‖ in the index after n rounds of data."""
        return play.linear_radius(self.point.flags, self.point.table, 0, n, n, self.dim)

    def start(self, seed: int = 0) -> State:
        return empty_state(
            self.dim, 1, twin=self.two_matrix is not None, capacity=self.memory.room(), seed=seed
        )

    def _reading(self, state: State) -> tuple[Any, ...]:
        return state[:4]

    def _writing(self, state: State) -> tuple[Any, ...]:
        return state[:6]
