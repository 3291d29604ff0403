"""Generalized linear bandits: what the GLB and SCB rules share, and the GLB rule itself.

The formulas are in docs/math.md#generalized-linear and docs/math.md#estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from driftwise._internal.products import dot
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.errors import BadInput, NumericalError
from driftwise.kernels import glm, point
from driftwise.kernels.adapt.glm import GLM
from driftwise.kernels.entries import learn_glm_, score_glm_
from driftwise.kernels.links import LinkRow, widening
from driftwise.kernels.point import COUNT, FAILED, Floats
from driftwise.kernels.search.families import form_glm_
from driftwise.policies.arms import Arms, Choice, Scores
from driftwise.policies.base import Compiled
from driftwise.policies.border import check_index, check_uniform, log_confidence, tell
from driftwise.policies.live import NO_TESTS, Entries
from driftwise.policies.memory import KINDS, Memory, offered
from driftwise.policies.model import Link, LinkName, constants, curves, noise, row_of
from driftwise.policies.plain import later
from driftwise.policies.questions import LinkCurve, Predicts
from driftwise.policies.state import Layout, State, layout

# A fading history is truncated where the rest moves the estimate by less than this (docs/math.md#estimates).
CUT = 1e-9

# The number of consecutive lessons with the estimate at the ball's edge after which a warning is given.
EDGE = 1000

# The cost of a round, in rounds of one linear lane.
COST = 10.0


@dataclass(frozen=True, kw_only=True)
class GeneralizedUCB(Compiled):
    """The base of the generalized linear rules: the estimate from weighted atoms, or in one pass.

    estimate="exact" keeps the history as weighted atoms: one per distinct arm, or per observation with fresh arms.
    Keep() and rewards without a bound need room for every observation, and so `horizon`; estimate="one-pass" needs
    O(dim²) for any horizon (related: DOMD-GLB, Lee and Oh 2026). `capacity` is the room for atoms if more than one new
    vector comes per tick.
    """

    dim: int
    memory: Memory
    lam: float
    delta: float | None
    S: float = 1.0
    L: float = 1.0
    m: float = 1.0
    link: LinkName | Link = "logistic"
    R: float | None = None
    exploration: float = 1.0
    estimate: Literal["exact", "one-pass"] = "exact"
    horizon: int | None = None
    capacity: int | None = None

    rule: ClassVar[int]
    adds: ClassVar[bool] = False  # whether its exact states add up
    uniform: ClassVar[bool] = False  # a field of rules with a theorem's radius
    project: ClassVar[bool] = True  # a field of rules that use the point of the ball nearest to the estimate
    lam_estimates: ClassVar[bool] = False  # whether lam is the ridge of the estimate; otherwise it is that of V
    untold: ClassVar[tuple[str, ...]] = ()  # numbers that the rule does not need
    entries: ClassVar[Entries] = Entries(
        score_glm_, learn_glm_, GLM, form=form_glm_
    )
    adaptive: ClassVar[Entries] = entries

    def __post_init__(self) -> None:
        check_index(self, self.untold)
        real("m", self.m, 0.0, low_open=True, way_out="pass the largest reward")
        one_of("estimate", self.estimate, ["exact", "one-pass"])
        if self.horizon is not None:
            keep_whole(self, "horizon", 1, "pass the number of rounds")
        if self.capacity is not None:
            keep_whole(self, "capacity", 1, "pass how many distinct vectors there are room for")
        row_of(self.link)
        self._check_model()
        self._k_and_c  # noqa: B018 - raises where the link has no slope left
        self.room  # noqa: B018 - raises where no room can be told
        if self.estimate == "one-pass" and not self.memory.one_pass:
            followed = offered(kind for kind in KINDS.values() if kind.one_pass)
            wanted = f'{followed} with estimate="one-pass", which cannot take a reward out again'
            raise BadInput("memory", self.memory, wanted, 'pass estimate="exact"')

    def _check_model(self) -> None:
        """Check the link."""

    # The constants that follow.
    @cached_property
    def _k_and_c(self) -> tuple[float, float]:
        return constants(self.link, self.S, self.L)

    @property
    def k(self) -> float:
        """The largest slope of the link on the ball."""
        return self._k_and_c[0]

    @property
    def c(self) -> float:
        """The smallest slope of the link on the ball."""
        return self._k_and_c[1]

    @property
    def ridge(self) -> float:
        """λ in V."""
        return float(self.lam) / self.c if self.lam_estimates else float(self.lam)

    @property
    def reg(self) -> float:
        """The ridge inside the estimating equation, λc."""
        return float(self.lam) if self.lam_estimates else float(self.lam) * self.c

    @cached_property
    def room(self) -> int:
        """The number of atoms there is room for."""
        if self.estimate == "one-pass":
            return 0
        if self.capacity is not None:
            return self.capacity
        # All observations that weigh less than this move the estimate by less than CUT (docs/math.md#estimates).
        # A reward without a bound can move it with any weight.
        little = max(self.memory.forget * self.reg * CUT, 1e-300) / (self.reach * self.m)
        span = self.memory.span(max(little, 1e-300) if self.model.bounded else 0.0)
        if math.isfinite(span):
            room = max(1, math.ceil(span))
            return min(room, self.horizon) if self.memory.forget and self.horizon is not None else room
        if self.horizon is None:
            wanted = "the number of rounds, because this memory keeps every observation"
            raise BadInput("horizon", None, wanted, 'pass horizon=, or estimate="one-pass"')
        return self.horizon

    @property
    def model(self) -> LinkRow:
        return row_of(self.link)

    @property
    def link_name(self) -> str | None:
        return None if isinstance(self.link, Link) else self.link

    @property
    def lane_cost(self) -> float:
        return COST

    @property
    def adds_up(self) -> bool:
        return self.adds and self.estimate == "exact" and not self.stepped and self.memory.geometric

    @property
    def predicts(self) -> Predicts:
        row = self.model
        mean, slope = curves(self.link)
        chances = row.chance and self.m <= 1.0
        noise = max(float(self.R or row.noise or self.m / 2.0), 1e-6)  # m/2: Hoeffding, for a bounded link
        reach = math.inf if self.S is None or self.L is None else float(self.S) * float(self.L)
        wide = widening(row.code) if chances else 0.0
        return super().predicts._replace(curve=LinkCurve(mean, slope, chances, wide, noise, reach, self.scoring()[0]))

    def check_wall_clock(self) -> None:
        super().check_wall_clock()
        if self.estimate == "exact" and self.capacity is None and not math.isinf(self.memory.rounds):
            wanted = "capacity=, the room for all rewards that count at once, on the wall clock"
            raise BadInput("capacity", None, wanted, 'pass capacity=, or estimate="one-pass"')

    @property
    def largest_reward(self) -> float:
        return float(self.m) if self.model.bounded else math.inf

    @property
    def noise(self) -> float:
        """R."""
        return noise(self.link, self.R)

    def multiplier(self, n: float) -> float:
        """The factor on ‖x‖ in the index after n rounds of data."""
        return glm.glm_radius(self.point, 0, n, n, self.dim, True)

    def scoring(self) -> tuple[float, float]:
        """The ridge and noise with which a bank scores its memories: those of a θ that is N(0, S²/d)."""
        return self.dim / (self.S * self.S), 1.0

    def _table(self) -> tuple[float, ...]:
        """The row of numbers, in the order of the columns."""
        gamma, log_gamma, length = self.memory.numbers()
        spread = noise(self.link, self.R) if self.rule == point.GLB else 0.0
        return (
            gamma, log_gamma, length, self.ridge, self._log_delta(), self.S or 0.0, self.reach, spread,
            self.exploration, 0.0, self.memory.forget, self.reg, self.k, self.c, self.m, float(self.horizon or 0),
        )  # fmt: skip

    def _log_delta(self) -> float:
        return log_confidence(self)

    @cached_property
    def point(self) -> point.Point:
        flags = self.layout.flags.copy()
        flags[point.MEMORY] = self.memory.code
        flags[point.RULE] = self.rule
        flags[point.LINK] = self.model.code
        flags[point.ESTIMATE] = point.ONE_PASS if self.estimate == "one-pass" else point.EXACT
        flags[point.SOLVER] = point.OUTSIDE if self.stepped else point.INSIDE
        table = np.zeros((1, point.COLUMNS + len(self.memory.listed)))
        table[0, point.COLUMNS :] = self.memory.listed
        row = self._table()
        table[0, : len(row)] = row
        table[0, point.BALL] = (self.S or 0.0) if self.project else math.inf
        return point.Point(flags, table)

    @property
    def can_fail(self) -> bool:
        return True

    @property
    def stepped(self) -> bool:
        return isinstance(self.link, Link)

    @property
    def form(self) -> Callable[..., Any] | None:
        return None if self.stepped else self.entries.form

    @cached_property
    def layout(self) -> Layout:
        return layout(self.dim, **self.sizes(1))

    def sizes(self, lanes: int) -> dict[str, int]:
        """The sizes of the groups for this number of lanes."""
        estimates = {"played": lanes, "estimates": lanes, "atoms": self.room}
        return {"room": self.memory.room(), "cursors": point.CURSOR, **estimates}

    def start(self, seed: int = 0) -> State:
        state = super().start(seed)
        state.H[:] = self.reg * np.eye(self.dim)
        return state

    def lane_scratch(self, used: int, lanes: int) -> int:
        """The size of the scratch of an update inside an adaptation."""
        return glm.lesson_scratch_size(self.dim, used + 1, lanes)

    def _scratch(self, used: int) -> int:
        return self.lane_scratch(used, 1)

    def _tests(self) -> tuple[Any, ...]:
        return (NO_TESTS,)

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        return (NO_TESTS, 0.0)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, float(self.m)) if self.model.bounded else super().reward_range

    def _settle(self, state: State) -> None:
        """Raise an error if a solver failed."""
        if state.counters[:, FAILED].any():
            seen = int(state.counters[0, COUNT])
            raise NumericalError(
                f"the estimate from {seen} observations did not converge (lam = {self.ridge:g}, reg = {self.reg:g}, "
                f"S = {self.S}); pass a larger lam, a smaller S, or rescale the rewards"
            )

    def _take(self, state: State, x: Floats, arm: int, *rest: Any) -> None:
        super()._take(state, x, arm, *rest)
        if arm >= 0 and state.outside < EDGE:
            theta = state.theta[0]
            state.outside = state.outside + 1 if dot(theta, theta) > self.S * self.S else 0
            if state.outside == EDGE:
                tell(
                    f"the estimate has lain outside the ball of radius S = {self.S:g} for {EDGE} rewards: they are "
                    "more extreme than S allows, so pass a larger one (dw.advise(click_rate=...) says which)"
                )

    # A link of the user's own: compiled sums, atoms and Newton steps, with μ evaluated in Python.
    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        return self._scores(state, X).best() if isinstance(self.link, Link) else super().best_of(state, X, number)

    def _scores(self, state: State, X: Floats) -> Scores:
        found = super()._scores(state, X)
        return Scores(self.link(found.mean)[0], found.bonus) if isinstance(self.link, Link) else found

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        """What compiled code cannot do for a link of the user's own."""
        if isinstance(self.link, Link):
            from driftwise.policies.own_link import estimate_

            estimate_(self, self.link, state, lesson, ticks)


@dataclass(frozen=True, kw_only=True)
class GLMUCB(GeneralizedUCB):
    """Optimism for generalized linear rewards (Wang, Zhao, Zhou 2023, Algorithm 2; memory=Keep() is GLM-UCB).

    Plays the largest μ(x'θ̃) + exploration·(2k/c)β̄‖x‖ in the norm of V⁻¹, where θ̃ is the point of the S-ball nearest
    to the estimate in ‖g(θ)-b‖ in V⁻¹ (eq. GLB-projection). Filippi et al. 2010 have no ridge. With uniform=True β̄
    holds at all rounds at once: δ/T per round, or δ/(2t(1+log t)²) without a horizon (docs/repairs.md, 1).
    project=False uses the estimate itself, as many experiments do; no theorem covers this if the estimate is outside
    the ball.
    """

    uniform: bool = later(False)  # type: ignore[misc]
    project: bool = later(True)  # type: ignore[misc]
    rule: ClassVar[int] = point.GLB
    adds: ClassVar[bool] = True

    def _check_model(self) -> None:
        noise(self.link, self.R)
        check_uniform(self)
        one_of("project", self.project, [True, False])

