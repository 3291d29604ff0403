"""Adaptation to unknown drift: wrappers that build a point with more lanes (MATH.md 5)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np

from driftwise.border import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels import adapt, adaptive_linear, point
from driftwise.kernels.point import Floats
from driftwise.policies.base import Arms, Compiled, Entries, State, empty_state
from driftwise.policies.glm import GLMUCB, GeneralizedUCB, glm_scratch
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Fade, Keep, Memory, Restart, Window
from driftwise.policies.model import Link
from driftwise.policies.model import noise as model_noise
from driftwise.policies.self_concordant import SelfConcordantUCB
from driftwise.rng import checked_seed

MEMORIES = (*(float(2**i) for i in range(3, 13)), math.inf)


def fades(memories: tuple[float, ...] = MEMORIES) -> tuple[Fade, ...]:
    """Discounts with these memories in rounds; an infinite one forgets nothing."""
    return tuple(Fade(0.0 if math.isinf(rounds) else 1.0 / rounds) for rounds in memories)


Base: TypeAlias = LinearUCB | GeneralizedUCB

_LINEAR = Entries(
    adaptive_linear.adaptive_linear_scores,
    adaptive_linear.adaptive_linear_learn_,
    adaptive_linear.play_adaptive_linear_,
)


@dataclass(frozen=True, kw_only=True)
class Adaptive(Compiled):
    """What the wrappers share: a base policy, lanes for its sums, marks and notes for the adaptation."""

    base: Base

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        if not isinstance(self.base, (LinearUCB, GLMUCB, SelfConcordantUCB)):
            raise BadInput("base", self.base, "a LinearUCB, GLMUCB or SelfConcordantUCB", "pass one of these")
        if self._glm and isinstance(self.base.link, Link):  # type: ignore[union-attr]
            raise BadInput("base", self.base, "a base with a built-in link", "adaptation runs compiled only")

    @property
    def _glm(self) -> bool:
        return isinstance(self.base, GeneralizedUCB)

    @property
    def entries(self) -> Entries:  # type: ignore[override]
        return GeneralizedUCB.entries if self._glm else _LINEAR

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.base.dim

    @property
    def L(self) -> float:  # type: ignore[override]
        return self.base.L

    def _rows(self) -> tuple[Base, ...]:
        """The policies whose numbers fill the table, a row each."""
        raise NotImplementedError

    def _lanes(self) -> int:
        raise NotImplementedError

    def _settings(self) -> tuple[float, ...]:
        raise NotImplementedError

    def _begin(self, state: State) -> None:
        """The first marks and notes."""

    @cached_property
    def point(self) -> point.Point:
        rows = self._rows()
        flags = rows[0].point.flags.copy()
        flags[point.ADAPT] = self.kind
        return point.Point(flags, np.concatenate([row.point.table for row in rows]))

    @cached_property
    def _numbers(self) -> tuple[Floats, Floats]:
        """Settings, and ρ̂ for MASTER's tests."""
        settings = np.zeros(adapt.SETTINGS)
        given = self._settings()
        settings[: len(given)] = given
        return settings, self._rho()

    def _rho(self) -> Floats:
        return np.zeros(1)

    def start(self, seed: int = 0) -> State:
        key = checked_seed(seed)
        lanes, rows = self._lanes(), self._rows()
        room = max(row.memory.room() for row in rows)
        atoms = max(row.capacity for row in rows if isinstance(row, GeneralizedUCB)) if self._glm else 0
        state = empty_state(
            self.dim, lanes, twin=getattr(self.base, "two_matrix", None) is not None, capacity=room, seed=0,
            atoms=atoms, estimate=self._glm, scoring=self._glm and self.kind == adapt.BANK,
            marks=adapt.LANES + adapt.PER_LANE * lanes, notes=4 + max(lanes, len(rows)) + 1,
        )  # fmt: skip
        state.marks[adapt.KEY_LOW], state.marks[adapt.KEY_HIGH] = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
        if isinstance(self.base, GeneralizedUCB):
            state.H[:lanes] = self.base.reg * np.eye(self.dim)
        self._begin(state)
        return state

    def _reading(self, state: State) -> tuple[Any, ...]:
        extra = (state.marks, state.notes, self._numbers[0])
        return (state.G, state.counters, *state[9:12], *extra) if self._glm else (*state[:4], *extra)

    def _writing(self, state: State) -> tuple[Any, ...]:
        kept = state[:12] if self._glm else state[:6]
        return (*kept, state.marks, state.notes, *self._numbers)

    def learn(
        self, state: State, arms: Arms, arm: int, reward: float, ticks: float = 1.0, age: float = 0.0
    ) -> None:
        x, reward, ticks, age = self._checked(state, arms, arm, reward, ticks, age)
        self._lesson(state, x, 0, reward, ticks, age, self._largest(state, arms))
        self._settle(state)

    def _largest(self, state: State, arms: Arms) -> float:
        """The index the choice was made with, where the adaptation asks for it."""
        return 0.0

    def _lesson(
        self, state: State, x: Floats, arm: int, reward: float, ticks: float, age: float, largest: float = 0.0
    ) -> None:
        d = self.dim
        if self._glm:
            scratch = glm_scratch(d, state)
        else:
            scratch = np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d), np.empty(self._lanes())
        arrays = (*self._writing(state), largest, *scratch)
        self.entries.learn(*self.point, 0, 0, x, 0, arm, reward, ticks, age, *arrays)

    def effective(self) -> Floats:
        """Effective rounds of each row: what a run's record of lanes stands for."""
        return np.array([_rounds(row.memory) for row in self._rows()])

    def play(self, state: State, *rounds: Any) -> Any:
        used = np.empty(len(rounds[1]), dtype=np.int64)
        self.entries.play(*self.point, *self._writing(state), *rounds, used)
        self._settle(state)
        return used

    def _settle(self, state: State) -> None:
        self.base._settle(state)

    def _reward(self, reward: float) -> float:
        return self.base._reward(reward)


def _rounds(memory: Memory) -> float:
    if isinstance(memory, Fade):
        return math.inf if memory.forget == 0.0 else 1.0 / memory.forget
    return memory.numbers()[2]


@dataclass(frozen=True, kw_only=True)
class BanditOverBandit(Adaptive):
    """BOB (Cheung, Simchi-Levi, Zhu 2019): Exp3 over a grid of memories, drawn anew every block (MATH.md 5).

    The base is cleared at every block of ⌈d√T⌉ rounds. `grid` is memories of one kind. A block is paid its mean reward
    where the link says rewards lie in [0, 1], and by the source's formula for Gaussian-like rewards where it is linear.
    """

    horizon: int
    grid: tuple[Memory, ...] = fades()
    block: int | None = None
    kind: ClassVar[int] = adapt.BOB

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_whole(self, "horizon", 1, "pass the number of rounds")
        if self.block is not None:
            keep_whole(self, "block", 1, "leave it out for ⌈d√T⌉")
        kinds = {type(memory) for memory in self.grid} if isinstance(self.grid, (tuple, list)) else set()
        if len(kinds) != 1 or not kinds <= {Keep, Fade, Window, Restart}:
            raise BadInput("grid", self.grid, "memories of one kind", "pass a tuple such as (Fade(0.1), Fade(0.01))")
        if getattr(self.base, "link", "identity") == "poisson":
            wanted = "rewards in [0, 1] or Gaussian-like ones, for which BOB has a payoff"
            raise BadInput("base", self.base, wanted, "use Master for counts")

    def _rows(self) -> tuple[Base, ...]:
        return tuple(dataclasses.replace(self.base, memory=memory) for memory in self.grid)

    def _lanes(self) -> int:
        return 1

    @property
    def length(self) -> int:
        """Rounds of a block."""
        return self.block or math.ceil(self.dim * math.sqrt(self.horizon))

    def _settings(self) -> tuple[float, ...]:
        T, B, K = self.horizon, self.length, len(self.grid)
        blocks = math.ceil(T / B)
        mix = min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1.0) * blocks))) if K > 1 else 1.0
        if isinstance(self.base, GeneralizedUCB) and self.base.link != "identity":
            return float(T), float(B), 0.0, 1.0 / B, mix
        reach = 2.0 * self.base.L * self.base.S * B
        noise = 4.0 * float(self.base.R or 1.0) * math.sqrt(B * math.log(max(math.e, T / math.sqrt(B))))
        return float(T), float(B), 0.5, 1.0 / (reach + noise), mix

    def _begin(self, state: State) -> None:
        adapt.bob_draw_(state.marks, state.notes, len(self.grid), self._numbers[0][adapt.MIX_], 0)
        adapt.to_clear_(state.marks, 0)


@dataclass(frozen=True, kw_only=True)
class Master(Adaptive):
    """MASTER (Wei, Luo 2021): a static base restarted on many scales, and afresh when its tests see a change.

    n0 is the order of the first block (the paper plots 0 and 13), test_scale a factor on ρ̂ in both tests (1 is the
    source's, inf switches them off). `report(state)` counts blocks and what the tests did.
    """

    horizon: int
    n0: int = 0
    test_scale: float = 1.0
    kind: ClassVar[int] = adapt.MASTER

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_whole(self, "horizon", 1, "pass the number of rounds")
        keep_whole(self, "n0", 0, "pass the order of the first block, 0 or 13 in the paper")
        if self.test_scale != math.inf:
            real("test_scale", self.test_scale, 0.0, way_out="pass 1 for the source's tests, inf to switch them off")
        if not isinstance(self.base.memory, Keep):
            raise BadInput("base", self.base.memory, "a static base, with memory=Keep()", "MASTER does the forgetting")

    def _rows(self) -> tuple[Base, ...]:
        return (self.base,)

    def _orders(self) -> int:
        return max(self.n0, math.floor(math.log2(self.horizon)) + 1)

    def _lanes(self) -> int:
        return self._orders() + 1

    def _settings(self) -> tuple[float, ...]:
        return float(self.n0), float(self._orders()), self.test_scale

    def _rho(self) -> Floats:
        """ρ̂(t) of MATH.md 5 for t = 0, 1, …, T."""
        if self.test_scale == math.inf:
            return np.zeros(1)
        base, T = self.base, self.horizon
        log_delta = math.log(T) if base.delta is None else -math.log(base.delta)
        ridge = base.ridge if isinstance(base, GeneralizedUCB) else base.lam
        noise = model_noise(base.link, base.R) if isinstance(base, GLMUCB) else getattr(base, "R", 0.5)
        t = np.arange(min(T, 1 << 20) + 1, dtype=np.float64)
        width = np.array([base.multiplier(n) for n in t])
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(2.0 * max(1.0, base.L**2 / ridge) * self.dim * t)
            potential = np.sqrt(np.log1p(base.L**2 * t / (ridge * self.dim)))
            rho = (2.0 * width * spread * potential + float(noise or 0.5) * np.sqrt(2.0 * t * log_delta)) / t
        rho[0] = math.inf
        return np.asarray(6.0 * (math.log2(T) + 1.0) * (math.log(T) + log_delta) * rho)

    def _begin(self, state: State) -> None:
        adapt.begin_block_(state.marks, state.notes, self.n0)
        adapt.schedule_(state.marks, state.notes)
        for lane in range(self._lanes()):
            adapt.to_clear_(state.marks, lane)

    def _largest(self, state: State, arms: Arms) -> float:
        return self.choose(state, arms).score

    def report(self, state: State) -> dict[str, int]:
        """Blocks begun, the order of the last, restarts, and how often each test fired."""
        marks = state.marks
        return {
            "blocks": int(marks[adapt.BLOCKS]),
            "order": int(marks[adapt.ORDER]),
            "restarts": int(marks[adapt.RESTARTS]),
            "test_1": int(marks[adapt.FIRED_ONE]),
            "test_2": int(marks[adapt.FIRED_TWO]),
        }


@dataclass(frozen=True, kw_only=True)
class FadeBank(Adaptive):
    """A bank of discounts that needs no path length (ours; the paper leaves adaptive weights open).

    Every memory is fed every reward and paid the log density it had given it; weights are shared a little every round,
    so that none dies; the longest memory within `margin` nats of the best is played, with its own index; and a longer
    memory that falls `gap` nats behind the best takes over that one's data and starts again `back` nats below. The
    scoring estimate has the ridge dR²/S² of a θ that is N(0, S²/d): the theorem's would drag short memories to 0.

    Over generalized linear bases every memory proposes arms by its own index and the best-weighted one judges them by
    μ(x'θ + κ‖x‖): there the theorem's bonus is too flat for any one memory to be followed. Scores are those of a
    one-pass estimate at ridge d/S².
    """

    memories: tuple[float, ...] = MEMORIES
    share: float = 3e-4
    margin: float = 1.0
    gap: float = 6.0
    back: float = 3.0
    tilt: float | None = None
    kappa: float = 1.5
    kind: ClassVar[int] = adapt.BANK

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds = self.memories if isinstance(self.memories, (tuple, list)) else ()
        numbers = all(isinstance(one, (int, float)) and one > 1.0 for one in rounds)
        if not rounds or not numbers or not all(a < b for a, b in pairwise(rounds)):
            wanted = "rising numbers of rounds above 1, the last one perhaps infinite"
            raise BadInput("memories", self.memories, wanted, "pass (8, 64, 512, math.inf), say")
        if self.tilt is not None:
            real("tilt", self.tilt, -math.inf, way_out="leave it out")
        real("share", self.share, 0.0, 1.0, high_open=True, way_out="pass a small number, e.g. 3e-4")
        for name in ("margin", "gap", "back", "kappa"):
            real(name, getattr(self, name), 0.0, way_out="pass a number of nats")
        if getattr(self.base, "link", "logistic") not in ("logistic", "probit"):
            raise BadInput("base", self.base, "a linear, logistic or probit base", "the bank scores no other rewards")
        if isinstance(self.base.memory, Window):
            raise BadInput("base", self.base.memory, "a base that keeps or fades", "pass memory=Keep()")

    def _rows(self) -> tuple[Base, ...]:
        return tuple(dataclasses.replace(self.base, memory=memory) for memory in fades(self.memories))

    def _lanes(self) -> int:
        return len(self.memories)

    def _settings(self) -> tuple[float, ...]:
        ridge, noise = self.dim / self.base.S**2, 1.0
        if isinstance(self.base, LinearUCB):
            noise = max(self.base.R, 1e-6 * self.base.S * self.base.L)  # of the scores alone: R = 0 would divide by 0
            ridge *= noise**2
        return ridge, self.share, self.margin, self.gap, self.back, noise, self.kappa

    def _begin(self, state: State) -> None:
        lanes = self._lanes()
        tilt = self.tilt if self.tilt is not None else 0.0 if self._glm else 0.5
        weights = np.exp(-tilt * np.arange(lanes - 1, -1, -1))
        if self._glm:
            state.H[lanes:] = self._numbers[0][adapt.RIDGE_] * np.eye(self.dim)
        state.notes[adapt.SCORES : adapt.SCORES + lanes] = weights / weights.sum()

    def memory(self, state: State) -> float:
        """Effective rounds of the memory now played: the drift the bank believes in."""
        lanes = self._lanes()
        lane = adapt.bank_best(state.notes, lanes) if self._glm else adapt.bank_pick(state.notes, lanes, self.margin)
        return float(self.memories[lane])

