"""Auto, the default: it finds the memory, noise, scale and units itself (docs/math.md#auto)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from driftwise._internal.elementary import LN2, exp, log, log1p
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.auto.choice import BELIEVED, is_look, look_chance, looked_at
from driftwise.kernels.auto.gauge import EVIDENCE, GUESS, GUESSED, KNOWN, REACH, SEEN, Gauge, gauge_size, scale_of
from driftwise.kernels.auto.lane import WIDE, WIDE_ODDS, cell
from driftwise.kernels.auto.lesson import AUTO, auto_scratch_size, weigh_auto_
from driftwise.kernels.entries import learn_auto_, score_auto_
from driftwise.kernels.links import LINKS, LinkRow, widening
from driftwise.kernels.point import Floats
from driftwise.kernels.search.families import ACTING, LOOK, form_auto_
from driftwise.policies.arms import Arms, ArmSet, Choice
from driftwise.policies.base import Compiled
from driftwise.policies.linear import MOST_LENGTH
from driftwise.policies.live import NO_TESTS, Entries, proposed, report
from driftwise.policies.memory import Memory, checked_memory
from driftwise.policies.model import curves
from driftwise.policies.questions import LevelReport, LinkCurve, Predicts
from driftwise.policies.state import Layout, State, layout
from driftwise.policies.vetting import LATEST

# Rounds of plain memories, of those with a trend, and of those beside a level, with the rounds of the level.
PLAIN = (8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0)
TRENDS = (32.0, 128.0, 512.0, 2048.0)
LEVELS = tuple((rounds, level) for level in (8.0, 32.0) for rounds in (32.0, 512.0, 8192.0))
# The memory that looks ask.
ASKED = 128.0
# A decision in so many roots of the rewards looks at a hidden arm.
LOOKS = 0.5
# The first log weight of a trend is so much less.
TREND_TILT = 0.5
# The chance of a click before any was seen.
RATE = 0.12


class AutoLane(NamedTuple):
    """A lane: the rounds of its memory and of its offset's, whether θ has a velocity, whether it tells levels apart."""

    rounds: float
    level: float = math.inf
    sloped: bool = False
    leveled: bool = False


@dataclass(frozen=True, kw_only=True)
class Auto(Compiled):
    """Weighs lanes that remember 8 to 8192 rounds, follow trends, or tell a level of all arms from preferences.

    The likeliest lane plays. Noise, the scale of rewards and a unit for each feature are learned. `link` is "logistic"
    or "probit" for clicks; rate is then the chance of one before any was seen. With a `memory`, Keep() or Fade(forget),
    there is one lane. looks=a plays in a share of decisions, a/√t at most, an arm that would not be chosen and of which
    a short memory knows little: nothing else can find out what such an arm does. By default a is .5, and 0 with a
    memory. Draws are those of the state's key, and probabilities are exact.
    """

    dim: int
    link: Literal["identity", "logistic", "probit"] = "identity"
    memory: Memory | None = None
    looks: float | None = None
    rate: float | None = None
    L: float | None = None  # type: ignore[assignment]

    entries: ClassVar[Entries] = Entries(score_auto_, learn_auto_, AUTO, form=form_auto_)
    revision: ClassVar[int] = 6
    own_form: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep_whole(self, "dim", 1, "pass the number of features of an arm")
        one_of("link", self.link, ["identity", "logistic", "probit"])
        if self.memory is not None and not checked_memory(self.memory).geometric:
            raise BadInput("memory", self.memory, "Keep() or Fade(forget)", "leave it out, and Auto finds it")
        if self.looks is not None:
            real("looks", self.looks, 0.0, way_out="pass 0, or up to 1 where unplayed arms may change")
        if self.rate is not None:
            if self.link == "identity":
                raise BadInput("rate", self.rate, 'no rate: rewards are values', 'pass link="logistic" for clicks')
            real("rate", self.rate, 0.0, 1.0, low_open=True, high_open=True, way_out="pass the usual chance of a click")
        if self.L is not None:
            real("L", self.L, 0.0, MOST_LENGTH, low_open=True, way_out="pass the length of the longest arm, or None")

    # ---------------------------------------------------------------------------------------- lanes
    @cached_property
    def rows(self) -> tuple[AutoLane, ...]:
        """Its lanes."""
        if self.memory is not None:
            return (AutoLane(self.memory.rounds),)
        plain = (AutoLane(rounds) for rounds in PLAIN)
        trends = (AutoLane(rounds, sloped=True) for rounds in TRENDS)
        return *plain, *trends, *(AutoLane(*rounds, leveled=True) for rounds in LEVELS)

    @property
    def looking(self) -> float:
        """The chance of a look, times √t."""
        return self.looks if self.looks is not None else LOOKS if self.memory is None else 0.0

    @cached_property
    def point(self) -> point.Point:
        flags, rows = self.layout.flags.copy(), self.rows
        flags[point.LINK] = self.model.code
        table = np.zeros((len(rows), point.COLUMNS))
        for row, one in zip(table, rows, strict=True):
            row[[point.GAMMA, point.LOG_GAMMA]] = 1.0 - 1.0 / one.rounds, log1p(-1.0 / one.rounds)
            row[[point.OFFSET, point.LOG_OFFSET]] = 1.0 - 1.0 / one.level, log1p(-1.0 / one.level)
            row[[point.SLOPED, point.LEVEL]] = one.sloped, one.leveled
        if self.link != "identity":
            table[:, point.START] = log((self.rate or RATE) / (1.0 - (self.rate or RATE)))
        table[:, point.LOOKS] = self.looking
        table[:, point.SHORT] = next((k for k, one in enumerate(rows) if one.rounds == ASKED), 0)
        return point.Point(flags, table)

    @cached_property
    def layout(self) -> Layout:
        d = self.dim
        numbers = sum(int(cell(2 * d + 1 if one.sloped else d + 1, 0)) for one in self.rows)
        return layout(d, 1, beliefs=len(self.rows), spreads=numbers, gauges=gauge_size(d))

    def start(self, seed: int = 0) -> State:
        state, d, first = super().start(seed), self.dim, 0
        wide = WIDE if self.link == "identity" else WIDE_ODDS
        for k, one in enumerate(self.rows):
            state.mean[k, d] = self.point.table[k, point.START]
            state.spread[first + cell(d, d)] = wide
            first += int(cell(2 * d + 1 if one.sloped else d + 1, 0))
        state.trust[:] = self._first_weights()
        state.gauge[GUESSED] = GUESS
        state.gauge[KNOWN + 2 * d : KNOWN + 3 * d] = 1.0
        return state

    def _first_weights(self) -> Floats:
        """The weights of each family before any reward."""
        weights = np.array([exp(-TREND_TILT * one.sloped) for one in self.rows])
        family = np.array([one.leveled for one in self.rows])
        for one in (False, True):
            weights[family == one] /= weights[family == one].sum() or 1.0
        return weights

    def _scratch(self, used: int) -> int:
        return int(auto_scratch_size(self.dim, len(self.rows)))

    def _tests(self) -> tuple[Any, ...]:
        return (NO_TESTS,)

    def _beside(self, state: State, arms: Arms | None) -> tuple[Any, ...]:
        return (NO_TESTS, 0.0)

    # ---------------------------------------------------------------------------------------- what it is
    @property
    def reach(self) -> float:
        return MOST_LENGTH if self.L is None else float(self.L)

    @property
    def model(self) -> LinkRow:
        return LINKS[self.link]

    @property
    def reward_range(self) -> tuple[float, float]:
        return super().reward_range if self.link == "identity" else (0.0, 1.0)

    @property
    def link_name(self) -> str | None:
        return None if self.link == "identity" else self.link

    @property
    def largest_reward(self) -> float:
        return math.inf if self.link == "identity" else 1.0

    @property
    def cost(self) -> float:
        return float(len(self.rows))

    @property
    def adapts(self) -> bool:
        return self.memory is None

    @property
    def single_memory(self) -> Memory | None:
        return self.memory

    @property
    def timeless(self) -> bool:
        return self.memory is not None and math.isinf(self.memory.rounds)

    @property
    def ages(self) -> bool:
        """Lanes forget when the next reward comes."""
        return False

    @property
    def half_life(self) -> float:
        return math.inf if self.memory is None else LN2 * float(self.memory.rounds)

    def check_wall_clock(self) -> None:
        """Every memory of it may be counted in time."""

    def effective(self) -> Floats:
        return np.array([one.rounds for one in self.rows])

    # ---------------------------------------------------------------------------------------- choices
    @property
    def deterministic(self) -> bool:
        return self.looking == 0.0

    @property
    def ranks(self) -> bool:
        return True

    @property
    def unit_per_feature(self) -> bool:
        return True

    def _number(self, state: State, draw: int | None) -> int:
        """Whether a decision is a look: `draw` numbers it, by default the rewards so far and itself."""
        if self.deterministic:
            return ACTING
        seen = float(self.hold.read(state).gauge[SEEN])
        if not 0.0 <= seen <= LATEST:
            report(point.DAMAGED)
        number = int(seen) + 1 if draw is None else draw
        look = is_look(state.key, look_chance(self.point, state.gauge), number)
        return LOOK - number if look else ACTING

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        return self._pick(state, X, number, NO_TESTS)[0]

    def _pick(self, state: State, X: Floats, number: int, costs: Floats) -> tuple[Choice, Floats]:
        """The choice, and the probability of every arm; costs may be none."""
        n = X.shape[2]
        scratch, second, taken = self.scoring_scratch(state, n)
        arm = best = weigh_auto_(*self._live.point, *state.packed, taken, X, costs)
        if best < 0:
            report(best)
        share, chance = proposed(scratch, self.dim, n), float(look_chance(self.point, state.gauge))
        if share.any():
            looked = int(looked_at(state.key, LOOK - number, share)) if number <= LOOK else -1
            arm = looked if looked >= 0 else best
            share = chance * share
            share[best] = 1.0 - share.sum()
        else:
            share = np.zeros(n)
            share[best] = 1.0
        mean, bonus = scratch.item(arm), scratch.item(second + arm)
        cost = float(costs[arm]) if costs.size else 0.0
        return Choice(arm, mean + bonus - cost, mean, bonus), share

    def audited(self, state: State, draw: int | None = None) -> bool:
        return self._number(state, draw) != ACTING

    def shares(self, state: State, arms: Arms, arm: int, draw: int) -> Floats:
        X = self._columns(arms)
        with self.hold(state):
            return self._pick(state, X, ACTING, NO_TESTS)[1]

    def propensity(self, state: State, arms: ArmSet, arm: int, draw: int) -> tuple[float, int] | None:
        return float(self.shares(state, arms, arm, draw)[arm]), 0

    def priced(self, state: State, arms: ArmSet, costs: Floats, draw: int | None) -> tuple[Choice, Floats]:
        X, number = self._columns(arms), self._number(state, draw)
        with self.hold(state):
            return self._pick(state, X, number, costs)

    # ---------------------------------------------------------------------------------------- what it knows
    @property
    def weighs(self) -> bool:
        return self.memory is None

    def played(self, state: State) -> int:
        """The lane that plays."""
        believed = self.hold.read(state).gauge[EVIDENCE] > BELIEVED
        return max((k for k, one in enumerate(self.rows) if one.leveled == believed), key=lambda k: state.trust[k])

    def acting(self, state: State) -> tuple[int, int]:
        return (self.played(state),) * 2

    def theta(self, state: State) -> Floats:
        """θ as the lane that plays believes it; of log odds for clicks."""
        inverse = state.gauge[KNOWN + 2 * self.dim : KNOWN + 3 * self.dim]
        return np.asarray(state.mean[self.played(state), : self.dim] * inverse)

    def remembered(self, state: State) -> float:
        return self.rows[self.played(state)].rounds

    def worth(self, state: State) -> float:
        """Rewards, each weighed by the memory that plays."""
        seen, rounds = float(self.hold.read(state).gauge[SEEN]), self.remembered(state)
        if math.isinf(rounds) or seen == 0.0:
            return seen
        fade = exp(seen * log1p(-1.0 / rounds))
        return (1.0 - fade) / (1.0 + fade) * (2.0 * rounds - 1.0)

    def weights(self, state: State) -> Floats | None:
        return self._families(state)[False] if self.weighs else None

    def _families(self, state: State) -> dict[bool, Floats]:
        """The weights of the plain family and of that with a level."""
        trust = np.asarray(self.hold.read(state).trust)
        leveled = np.array([one.leveled for one in self.rows])
        return {one: trust[leveled == one] for one in (False, True)}

    def weighed(self, weights: Floats) -> tuple[tuple[float, ...], Floats]:
        """A memory with a trend and one without count as one."""
        each = np.array([one.rounds for one in self.rows if not one.leveled])
        rounds = np.unique(each)
        return tuple(rounds.tolist()), (weights[:, :, None] * (each[:, None] == rounds)).sum(axis=1)

    def level(self, state: State) -> LevelReport | None:
        leveled = [one for one in self.rows if one.leveled]
        if not leveled:
            return None
        evidence = float(self.hold.read(state).gauge[EVIDENCE])
        likeliest = leveled[int(self._families(state)[True].argmax())]
        return LevelReport(evidence, evidence > BELIEVED, likeliest.level, likeliest.rounds)

    @property
    def predicts(self) -> Predicts:
        length = math.inf if self.L is None else float(self.L)
        if self.link == "identity":
            return Predicts(0.0, length)
        wide, ridge = widening(self.model.code), self.dim / (REACH * REACH)
        return Predicts(0.0, length, LinkCurve(*curves(self.link), True, wide, 0.5, math.inf, ridge))

    @property
    def reports(self) -> bool:
        return True

    def report(self, state: State) -> dict[str, float]:
        """The memory that plays and whether it follows a trend, the noise, and the evidence that a level moves by
        itself (above 4 that is believed) with the rounds of the likeliest one."""
        row = self.rows[self.played(state)]
        seen = {"memory": row.rounds, "trend": float(row.sloped)}
        if self.link == "identity":
            seen["R"] = math.sqrt(scale_of(self.model.code, Gauge(state.gauge, *[NO_TESTS] * 5)).noise)
        level = self.level(state)
        return seen if level is None else seen | {"evidence": level.evidence, "level": level.level}
