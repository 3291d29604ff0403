"""Linear bandits: one covariance, or two (docs/math.md#linear)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from driftwise._internal.products import solved
from driftwise._internal.validate import keep_whole, one_of
from driftwise.errors import BadInput
from driftwise.kernels import entries, linear, point, tiled
from driftwise.kernels.adapt import linear as adaptive
from driftwise.kernels.links import LINKS, LinkRow
from driftwise.kernels.point import Floats, Point
from driftwise.kernels.search.families import form_linear_
from driftwise.kernels.search.linear import best_linear_
from driftwise.policies.base import Compiled
from driftwise.policies.border import check_index, check_uniform, log_confidence
from driftwise.policies.live import Entries
from driftwise.policies.memory import Memory
from driftwise.policies.plain import later
from driftwise.policies.questions import Predicts
from driftwise.policies.rule import NORMS, RADII, Norm, Radius, RadiusName
from driftwise.policies.state import Layout, State, layout

# Without a given L, products of the numbers in the sums must still fit in a double.
MOST_LENGTH = 1e100


@dataclass(frozen=True, kw_only=True)
class LinearUCB(Compiled):
    """Optimism with one covariance (Wang, Zhao, Zhou 2023, Algorithm 1; memory=Keep() is OFUL).

    Plays the arm with the largest x'θ̂ + exploration·β‖x‖, in the norm of V⁻¹, or of V⁻¹ṼV⁻¹ with two_matrix="correct"
    (D-LinUCB, Russac, Vernade, Cappé 2019; "as-published" repeats an error of its code, docs/math.md#linear).
    radius="cheung" is the constant radius of SW-UCB and needs a Window and a delta. delta=None is 1/max(2, t) at round
    t, for an unknown horizon. With uniform=True the radius holds at all rounds at once: round t has the share δ/T, or
    δ/(2t(1+log t)²) without a horizon (docs/repairs.md, 1). The paper's radius has δ at every round.

    radius="posterior" plays x'θ̂ + 2·exploration·R‖x‖ with the ridge lam = R²d/S² of a θ that is N(0, S²/d). No theorem
    covers it (docs/math.md#posterior-radius). L=None then accepts arms of any length. `Auto` learns R and S.
    """

    dim: int
    memory: Memory
    lam: float | None = None
    delta: float | None = None
    S: float = 1.0
    L: float | None = 1.0  # type: ignore[assignment]
    R: float = 1.0
    exploration: float = 1.0
    two_matrix: Literal["correct", "as-published"] | None = None
    radius: RadiusName = "weighted"
    uniform: bool = later(False)
    horizon: int | None = later(None)

    radii: ClassVar[dict[str, Radius]] = RADII

    def __post_init__(self) -> None:
        one_of("radius", self.radius, list(self.radii))
        check_index(self, self.rule.untold)
        self.rule.check_noise(self.R)
        check_uniform(self)
        if self.horizon is not None:
            keep_whole(self, "horizon", 1, "pass the number of rounds")
        if self.uniform:
            self.rule.check_uniform(self)
        one_of("two_matrix", self.two_matrix, list(NORMS))
        self.rule.check(self)
        self.norm.check(self)

    @property
    def rule(self) -> Radius:
        """Its radius."""
        return self.radii[self.radius]

    @property
    def norm(self) -> Norm:
        """The norm of its bonus."""
        return NORMS[self.two_matrix]

    @property
    def predicts(self) -> Predicts:
        return super().predicts._replace(noise=self.noise)

    @property
    def adds_up(self) -> bool:
        return self.memory.geometric

    def check_adds(self) -> None:
        super().check_adds()
        self.norm.check_order()

    def check_sums(self) -> float:
        if not self.memory.geometric:
            raise BadInput("policy", self.memory, "memory=Keep() or Fade(forget)", "learn the log instead")
        self.norm.check_order()
        return float(self.memory.numbers() and self.memory.forget)

    def of_sums(
        self, G: Floats, twin: Floats, b: Floats, clock: float, n: int, weight: float, squares: float, seed: int = 0
    ) -> State:
        """The state after n observations with these weighted sums (see `check_sums`)."""
        state = self.start(seed)
        state.G[0], state.b[0] = np.tril(G), b
        if self.two_matrix:
            state.twin[0] = np.tril(twin)
        for place, value in ((point.COUNT, n), (point.WEIGHT, weight), (point.SQUARES, squares)):
            state.counters[0, place] = value
        state.set_clock(clock)
        return state

    @property
    def entries(self) -> Entries:  # type: ignore[override]
        return _ALONE

    @property
    def adaptive(self) -> Entries:
        """The entries of adaptations over it."""
        return _ADAPTIVE

    @property
    def reach(self) -> float:
        """L, or the longest arm whose squares fit in a double."""
        return MOST_LENGTH if self.L is None else float(self.L)

    @property
    def model(self) -> LinkRow:
        return LINKS["identity"]

    @property
    def ridge(self) -> float:
        """λ in V."""
        if self.lam is not None:
            return float(self.lam)
        return self.dim * (self.noise * self.noise) / (float(self.S) * float(self.S))

    @property
    def noise(self) -> float:
        """R."""
        return float(self.R)

    @cached_property
    def point(self) -> point.Point:
        flags = self.layout.flags.copy()
        flags[point.MEMORY] = self.memory.code
        flags[point.RULE] = self.norm.code
        flags[point.RADIUS] = self.rule.code
        table = np.zeros((1, point.COLUMNS + len(self.memory.listed)))
        table[0, point.COLUMNS :] = self.memory.listed
        gamma, log_gamma, length = self.memory.numbers()
        log_delta = log_confidence(self)
        table[0, : point.EXPLORE + 1] = (
            gamma, log_gamma, length, self.ridge, log_delta, self.S, self.reach, self.noise, self.exploration,
        )  # fmt: skip
        table[0, point.BETA] = self.rule.beta(self)
        return point.Point(flags, table)

    @cached_property
    def layout(self) -> Layout:
        return layout(self.dim, **self.sizes(1))

    def sizes(self, lanes: int) -> dict[str, int]:
        """The sizes of the groups for this number of lanes."""
        room = self.memory.room()
        return {
            "twins": lanes if self.norm.twin else 0, "room": room, "cursors": point.CURSOR if room else 0,
        }  # fmt: skip

    def lane_scratch(self, used: int, lanes: int) -> int:
        """The size of the scratch of an update inside an adaptation."""
        return int(adaptive.bank_scratch_size(self.dim, lanes))

    def lane_theta(self, at: Point, row: int, state: State, lane: int) -> Floats:
        V = np.tril(state.G[lane])
        V = V + np.tril(V, -1).T + float(at.table[row, point.LAM]) * np.eye(self.dim)
        return solved(V, state.b[lane])

    def multiplier(self, n: float) -> float:
        """The factor on ‖x‖ in the index after n rounds of data."""
        return linear.linear_radius(self.point, 0, n, n, self.dim)

    def scoring(self) -> tuple[float, float]:
        """The ridge and noise with which a bank scores its memories: those of a θ that is N(0, S²/d)."""
        if self.radius == "posterior":  # plays and scores with the same posterior
            return self.ridge, self.noise
        noise = max(self.noise, 1e-6 * self.S * self.reach)  # R = 0 would divide by 0
        return self.dim / (self.S * self.S) * (noise * noise), noise


_ALONE = Entries(
    entries.score_linear_, entries.learn_linear_, linear.LINEAR, entries.fold_linear_,
    form_linear_, best_linear_, tiled.score_tiled_,
)
_ADAPTIVE = Entries(
    entries.score_adaptive_linear_, entries.learn_adaptive_linear_, adaptive.ADAPTIVE_LINEAR,
    form=form_linear_, ball=best_linear_,
)
