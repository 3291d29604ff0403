"""Adaptation to unknown drift: wrappers that build a point with more lanes (docs/math.md#unknown-drift)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from driftwise._internal.elementary import exp, log, log1p, log2
from driftwise._internal.validate import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.adapt import bank, bob, book, master
from driftwise.kernels.groups import Adapting
from driftwise.kernels.links import LINKS
from driftwise.kernels.point import Floats, Point
from driftwise.kernels.search.families import ACTING
from driftwise.policies.arms import Arms, action_set
from driftwise.policies.base import Compiled
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.linear import LinearUCB
from driftwise.policies.live import NO_TESTS
from driftwise.policies.memory import Fade, Memory
from driftwise.policies.posterior import PosteriorUCB
from driftwise.policies.state import Layout, State, layout

MOST_ROUNDS = 1_000_000
MOST_ORDER = 50

MEMORIES = (*(float(1 << i) for i in range(3, 13)), math.inf)


def fades(memories: tuple[float, ...] = MEMORIES) -> tuple[Fade, ...]:
    """Discounts with these memories in rounds; an infinite one forgets nothing."""
    return tuple(Fade(0.0 if math.isinf(rounds) else 1.0 / rounds) for rounds in memories)


def checked_memories(memories: object) -> tuple[float, ...]:
    """The lengths of a bank's memories in rounds, or a BadInput."""
    rounds = tuple(memories) if isinstance(memories, (tuple, list)) else ()
    numbers = all(isinstance(one, (int, float)) and one > 1.0 for one in rounds)
    if not rounds or not numbers or not all(a < b for a, b in pairwise(rounds)):
        wanted = "rising numbers of rounds above 1, the last one perhaps infinite"
        raise BadInput("memories", memories, wanted, "pass (8, 64, 512, math.inf), say")
    return rounds


Base: TypeAlias = LinearUCB | GeneralizedUCB


def of_base(name: str) -> Any:
    """A property that the base policy answers."""
    return property(lambda policy: getattr(policy.base, name))


@dataclass(frozen=True, kw_only=True)
class Adaptive(Compiled):
    """The base of the wrappers: a base policy, lanes for its sums, and marks and notes for the adaptation.

    A wrapper only builds a point with more lanes. It declares what fills the table, the number of lanes, the sizes of
    its own groups, and its settings, which are columns of the table that are the same in every row.
    """

    base: Base

    kind: ClassVar[int]
    adapts: ClassVar[bool] = True
    # Whether every round that ends is examined, even if nothing was learned.
    counts_rounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if getattr(self.base, "adaptive", None) is None:
            raise BadInput("base", self.base, "a LinearUCB, GLMUCB or SelfConcordantUCB", "pass one of these")
        if not self.base.deterministic:
            wanted = "a base that does not sample: what is paid and tested is its index, and a draw is none"
            raise BadInput("base", self.base, wanted, "pass a LinearUCB or a PosteriorUCB, say")
        if self.base.stepped:
            raise BadInput("base", self.base, "a base with a built-in link", "adaptation runs compiled only")

    entries, dim, L, reach = of_base("adaptive"), of_base("dim"), of_base("L"), of_base("reach")
    model, link_name, largest_reward = of_base("model"), of_base("link_name"), of_base("largest_reward")
    reward_range, lane_cost, predicts = of_base("reward_range"), of_base("lane_cost"), of_base("predicts")
    can_fail = of_base("can_fail")

    if TYPE_CHECKING:  # declared by each adaptation

        @cached_property
        def rows(self) -> tuple[Base, ...]:
            """The policies whose numbers fill the table, one row each."""

        @property
        def lanes(self) -> int: ...
        def _settings(self) -> dict[int, float]:
            """Columns of the table that are the adaptation's own."""
        def _groups(self) -> dict[str, int]:
            """Sizes of the groups that are the adaptation's own."""

    def _begin(self, state: State) -> None:
        """The first marks and notes."""

    @cached_property
    def layout(self) -> Layout:
        sizes = [row.sizes(self.lanes) for row in self.rows]
        most = {name: max(one[name] for one in sizes) for name in sizes[0]}
        marks = book.LANE_MARKS + book.PER_LANE * self.lanes
        return layout(self.dim, self.lanes, **{**most, "notes": book.NOTE_PLACES, "marks": marks, **self._groups()})

    @cached_property
    def point(self) -> point.Point:
        flags = self.layout.flags.copy()
        flags[: point.DIM] = self.rows[0].point.flags[: point.DIM]
        flags[point.ADAPT] = self.kind
        table = np.concatenate([row.point.table for row in self.rows])
        for column, value in self._settings().items():
            table[:, column] = value
        return point.Point(flags, table)

    def start(self, seed: int = 0) -> State:
        state = super().start(seed)
        if self.layout.flags[point.PLAYED]:
            state.H[: self.lanes] = self.rows[0].start().H
        self._begin(state)
        return state

    def _notes(self, state: State) -> Adapting:
        """The arguments of the bookkeeping; groups that this adaptation does not use are empty."""
        groups = state.groups()
        return Adapting(*(groups.get(name, np.zeros(0)) for name in Adapting._fields))

    def _tests(self) -> tuple[Any, ...]:
        return (NO_TESTS,)

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        return (*self._tests(), 0.0)

    def _scratch(self, used: int) -> int:
        return self.base.lane_scratch(used, self.lanes)

    def _held(self) -> tuple[Memory, ...]:
        return tuple(row.memory for row in self.rows)

    def effective(self) -> Floats:
        """The effective rounds of each row, for a run's record of rows."""
        return np.array([row.memory.rounds for row in self.rows])

    def _settle(self, state: State) -> None:
        self.base._settle(state)

    # It finds its memory itself, so time always matters.
    single_memory, timeless, ages, half_life, ranks = None, False, True, math.inf, False

    def check_wall_clock(self) -> None:
        for row in self.rows:
            row.check_wall_clock()

    def lane_theta(self, at: Point, row: int, state: State, lane: int) -> Floats:
        return self.rows[row].lane_theta(at, row, state, lane)

    def remembered(self, state: State) -> float:
        return float(self.rows[self.acting(state)[1]].memory.rounds)

    def _take(self, state: State, x: Floats, arm: int, reward: float, ticks: float, *rest: Any) -> None:
        if self.counts_rounds and ticks > MOST_ROUNDS:
            wanted = f"at most {MOST_ROUNDS:,} ticks at once, for every round of it is drawn"
            raise BadInput("ticks", ticks, wanted, "let time pass in several calls, or count it in larger ticks")
        super()._take(state, x, arm, reward, ticks, *rest)


def check_told(base: Base) -> None:
    """Refuse a base without R, S and L, from which BOB's payoffs and MASTER's tests are computed."""
    if base.L is None:
        raise BadInput("base", base, "a base with R, S and L given", '"Auto" learns them')


@dataclass(frozen=True, kw_only=True)
class BanditOverBandit(Adaptive):
    """BOB (Cheung, Simchi-Levi, Zhu 2019): Exp3 over a grid of memories, drawn again for every block
    (docs/math.md#bob).

    The base is cleared at every block of ⌈d√T⌉ rounds. `grid` is memories of one kind. A block is paid its mean reward
    if the link implies rewards in [0, 1], and by the source's formula for Gaussian-like rewards if it is linear.
    """

    horizon: int
    grid: tuple[Memory, ...] = fades()
    block: int | None = None
    kind: ClassVar[int] = point.BOB

    def __post_init__(self) -> None:
        super().__post_init__()
        check_told(self.base)
        keep_whole(self, "horizon", 1, "pass the number of rounds")
        if self.block is not None:
            keep_whole(self, "block", 1, "leave it out for ⌈d√T⌉")
        grid = self.grid if isinstance(self.grid, (tuple, list)) else ()
        kinds = {memory.code if isinstance(memory, Memory) else -1 for memory in grid}
        if len(kinds) != 1 or -1 in kinds or any(memory.listed for memory in grid):
            raise BadInput("grid", self.grid, "memories of one kind", "pass a tuple such as (Fade(0.1), Fade(0.01))")
        if self.model.noise is None:
            wanted = "rewards in [0, 1] or Gaussian-like ones, for which BOB has a payoff"
            raise BadInput("base", self.base, wanted, "use Master for counts")

    @cached_property
    def rows(self) -> tuple[Base, ...]:
        return tuple(dataclasses.replace(self.base, memory=memory) for memory in self.grid)

    @property
    def lanes(self) -> int:
        return 1

    @property
    def length(self) -> int:
        """The number of rounds of a block."""
        return self.block or math.ceil(self.dim * math.sqrt(self.horizon))

    def _groups(self) -> dict[str, int]:
        return {"scores": len(self.grid)}

    def _settings(self) -> dict[int, float]:
        T, B, K = self.horizon, self.length, len(self.grid)
        blocks = math.ceil(T / B)
        mix = min(1.0, math.sqrt(K * log(K) / ((math.e - 1.0) * blocks))) if K > 1 else 1.0
        low, scale = 0.0, 1.0 / B
        if not self.model.bounded:
            reach = 2.0 * self.base.reach * float(self.base.S or 1.0) * B
            noise = 4.0 * (self.base.noise or 1.0) * math.sqrt(B * log(max(math.e, T / math.sqrt(B))))
            low, scale = 0.5, 1.0 / (reach + noise)
        return {
            point.END: float(T), point.BLOCK_LENGTH: float(B), point.PAY_BASE: low, point.PAY_SCALE: scale,
            point.MIX: mix,
        }  # fmt: skip

    def acting(self, state: State) -> tuple[int, int]:
        return 0, int(state.marks[book.ROW])

    def _begin(self, state: State) -> None:
        own = self._notes(state)
        bob.bob_draw_(self.point, own, 0)
        book.to_clear_(own, 0)


@dataclass(frozen=True, kw_only=True)
class Master(Adaptive):
    """MASTER (Wei, Luo 2021): a static base restarted on many scales, and again when its tests detect a change.

    n0 is the order of the first block (the paper plots 0 and 13), test_scale a factor on ρ̂ in both tests (1 is the
    source's, inf switches them off). `report(state)` counts blocks and detections.
    """

    horizon: int
    n0: int = 0
    test_scale: float = 1.0
    kind: ClassVar[int] = point.MASTER

    def __post_init__(self) -> None:
        super().__post_init__()
        check_told(self.base)
        keep_whole(self, "horizon", 1, "pass the number of rounds")
        keep_whole(self, "n0", 0, "pass the order of the first block, 0 or 13 in the paper")
        if self.n0 > MOST_ORDER:
            wanted = f"an order of at most {MOST_ORDER}: its block has 2^n0 rounds"
            raise BadInput("n0", self.n0, wanted, "pass 13, as the paper does")
        if not (isinstance(self.test_scale, (int, float)) and self.test_scale == math.inf):
            real("test_scale", self.test_scale, 0.0, way_out="pass 1 for the source's tests, inf to switch them off")
        if not math.isinf(self.base.memory.rounds):
            raise BadInput("base", self.base.memory, "a static base, with memory=Keep()", "MASTER does the forgetting")

    @cached_property
    def rows(self) -> tuple[Base, ...]:
        return (self.base,)

    def _orders(self) -> int:
        return max(self.n0, math.floor(log2(self.horizon)) + 1)

    @property
    def lanes(self) -> int:
        return self._orders() + 1

    def _groups(self) -> dict[str, int]:
        return {"before": self.lanes}

    def _settings(self) -> dict[int, float]:
        orders = {point.FIRST_ORDER: float(self.n0), point.LAST_ORDER: float(self._orders())}
        return {**orders, point.TEST_SCALE: self.test_scale}

    def _tests(self) -> tuple[Any, ...]:
        return (self._rho,)

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        if arms is None:
            return (self._rho, 0.0)
        offered = action_set(arms)
        offered.check_for(self)
        return (self._rho, offered.best(self, state, ACTING).score)

    @cached_property
    def _rho(self) -> Floats:
        """ρ̂(t) of docs/math.md#master for t = 0, 1, …, T."""
        if self.test_scale == math.inf:
            return np.zeros(1)
        base, T = self.base, self.horizon
        log_delta = log(T) if base.delta is None else -log(base.delta)
        t = np.arange(min(T, 1 << 20) + 1, dtype=np.float64)
        width = np.array([base.multiplier(n) for n in t])
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(2.0 * max(1.0, base.reach * base.reach / base.ridge) * self.dim * t)
            seen = base.reach * base.reach * t / (base.ridge * self.dim)
            potential = np.sqrt([log1p(one) for one in seen.tolist()])
            rho = (2.0 * width * spread * potential + (base.noise or 0.5) * np.sqrt(2.0 * t * log_delta)) / t
        rho[0] = math.inf
        return np.asarray(6.0 * (log2(T) + 1.0) * (log(T) + log_delta) * rho)

    def _begin(self, state: State) -> None:
        own = self._notes(state)
        master.begin_block_(own, self.n0)
        master.schedule_(own)
        for lane in range(self.lanes):
            book.to_clear_(own, lane)

    def acting(self, state: State) -> tuple[int, int]:
        return int(state.marks[book.ACTIVE]), 0

    @property
    def reports(self) -> bool:
        return True

    def report(self, state: State) -> dict[str, int]:
        """The number of blocks, the order of the last one, the restarts, and how often each test fired."""
        marks = self.hold.read(state).marks
        return {
            "blocks": int(marks[book.BLOCKS]),
            "order": int(marks[book.ORDER]),
            "restarts": int(marks[book.RESTARTS]),
            "test_1": int(marks[book.FIRED_ONE]),
            "test_2": int(marks[book.FIRED_TWO]),
        }


@dataclass(frozen=True, kw_only=True)
class Bank(Adaptive):
    """The base of banks: one lane per memory. Every lane learns every reward and is paid the log density it had
    predicted.

    Weights are shared a little every round, so that none becomes 0. The longest memory whose log-likelihood is
    within `margin` of the best is played, with its own index. A longer memory that falls `gap` behind the best takes
    over that one's data and starts again `back` below. Lanes are sorted, the shortest memory first.
    """

    share: float = 3e-4
    margin: float = 1.0
    gap: float = 6.0
    back: float = 3.0
    kind: ClassVar[int] = point.BANK
    counts_rounds: ClassVar[bool] = False
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        real("share", self.share, 0.0, 1.0, high_open=True, way_out="pass a small number, e.g. 3e-4")
        for name in ("margin", "gap", "back"):
            real(name, getattr(self, name), 0.0, way_out="pass a log-likelihood, e.g. 3.0")

    @property
    def lanes(self) -> int:
        return len(self.rows)

    @property
    def ranks(self) -> bool:  # type: ignore[override]
        return self.deterministic and not self.judged

    @property
    def cost(self) -> float:
        return float(self.lanes * self.lane_cost)

    def acting(self, state: State) -> tuple[int, int]:
        lane = self.played(state)
        return lane, lane

    def weights(self, state: State) -> Floats | None:
        found: Floats = state.scores
        return found

    def _groups(self) -> dict[str, int]:
        return {"scores": self.lanes}

    def _settings(self) -> dict[int, float]:
        return {point.SHARE: self.share, point.MARGIN: self.margin, point.GAP: self.gap, point.BACK: self.back}

    def played(self, state: State) -> int:
        """The lane in use, or the one that judges."""
        scores = self.hold.read(state).scores
        return int(bank.bank_best(scores) if self.judged else bank.bank_pick(scores, self.margin))

    def memory(self, state: State) -> float:
        """The effective rounds of the memory in use: the drift that the bank estimates."""
        return float(self.rows[self.played(state)].memory.rounds)

    def report(self, state: State) -> dict[str, float]:
        """The memory in use."""
        return {"memory": self.memory(state)}


@dataclass(frozen=True, kw_only=True)
class FadeBank(Bank):
    """A bank of discounts that needs no path length (ours; the paper leaves adaptive weights open).

    Related: Jacobsen and Cutkosky 2024, who learn the discount of online regression.

    The scoring estimate has the ridge dR²/S² of a θ that is N(0, S²/d): the theorem's ridge would pull short memories
    to 0.

    Over generalized linear bases with a theorem's radius every memory proposes arms by its own index and the
    best-weighted one judges them by μ(x'θ + κ‖x‖): there the theorem's bonus is too flat to follow any single memory.
    Scores are those of a one-pass estimate at ridge d/S².
    """

    memories: tuple[float, ...] = MEMORIES
    tilt: float | None = None
    kappa: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_memories(self.memories)
        if self.tilt is not None:
            real("tilt", self.tilt, -50.0, 50.0, way_out="leave it out")
        real("kappa", self.kappa, 0.0, way_out="pass standard deviations, e.g. 1.5")
        if not (self.model.chance or isinstance(self.base, LinearUCB)):
            scored = " or ".join(name for name, row in LINKS.items() if row.chance)
            raise BadInput("base", self.base, f"a linear, {scored} base", "the bank scores no other rewards")
        if not self.base.memory.geometric:
            raise BadInput("base", self.base.memory, "a base that keeps or fades", "pass memory=Keep()")

    @cached_property
    def rows(self) -> tuple[Base, ...]:
        return tuple(dataclasses.replace(self.base, memory=memory) for memory in fades(self.memories))

    @property
    def judged(self) -> bool:
        return not isinstance(self.base, (LinearUCB, PosteriorUCB))

    def _groups(self) -> dict[str, int]:
        return {**super()._groups(), **({"estimates": 2 * self.lanes} if self.judged else {})}

    def _settings(self) -> dict[int, float]:
        ridge, noise = self.base.scoring()
        return {
            **super()._settings(), point.SCORE_RIDGE: ridge, point.SCORE_NOISE: noise, point.KAPPA: self.kappa,
        }  # fmt: skip

    def memory(self, state: State) -> float:
        return float(self.memories[self.played(state)])

    def _begin(self, state: State) -> None:
        clicks = not isinstance(self.base, LinearUCB)
        tilt = self.tilt if self.tilt is not None else 0.0 if clicks else 0.5
        weights = np.array([exp(-tilt * row) for row in range(self.lanes - 1, -1, -1)])
        if self.judged:
            state.H[self.lanes :] = self.base.scoring()[0] * np.eye(self.dim)
        state.scores[:] = weights / weights.sum()
