"""A bank of plain memories and of memories with a trend, which grow as time passes (docs/math.md#auto)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from driftwise._internal.elementary import exp, log1p, log2
from driftwise._internal.products import solved
from driftwise._internal.validate import one_of, real, whole
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.adapt import levels
from driftwise.kernels.adapt.belief import (
    ACTING,
    FEATURES,
    LOOK,
    TRIAL,
    audit_belief_,
    audit_chance,
    forecast_size,
    purpose_of,
    trial_chance,
)
from driftwise.kernels.belief import QUANTILE, UNITS, gauge_size
from driftwise.kernels.glm import QUANTILE as QUANTILE_OF_CLICKS
from driftwise.kernels.level import level_forecast_size
from driftwise.kernels.point import Floats
from driftwise.policies.adapt import Bank, Base, fades
from driftwise.policies.answers import effective_observations
from driftwise.policies.arms import Arms, ArmSet, Choice
from driftwise.policies.linear import BELIEF, LinearUCB, believed, ridges_of, whole_matrix
from driftwise.policies.live import Entries, for_scores, proposed, report
from driftwise.policies.memory import Fade, Keep, Memory, Trend
from driftwise.policies.posterior import PosteriorUCB
from driftwise.policies.questions import LevelReport
from driftwise.policies.state import State
from driftwise.policies.vetting import LATEST

# Memories last 8·2^i rounds, those with a trend 32·2^i; longer ones than 4096 sleep at first.
SHORTEST, SHORTEST_TREND, STEP, AWAKE = 8, 32, 2, 4096
# A lane's bonus is √(1 + 0.45 log(1 + Σw)) standard deviations: it grows, so that no arm is left for ever.
WIDENS = 0.45
# Rounds that a level is remembered for, the last of them with a slope, and rounds of preferences beside it.
LEVEL_ROUNDS, LEVEL_SLOPED = (4.0, 16.0, 64.0, 64.0), (False, False, False, True)
PREFERENCES = (64.0, 512.0, 4096.0, math.inf)
# Of more features than 32 memories last 8·4^i rounds, none has a trend, and there are fewer of preferences.
WIDE_STEP, WIDE_PREFERENCES = 4, (512.0, math.inf)
# By how much the first log weights of a memory of preferences lie below those of the next longer one.
LEVEL_TILT = 1.0
# The longest memory by which forced exploration draws an arm.
AUDITED = 64.0
_BELIEVERS = (LinearUCB, PosteriorUCB)
_NO_COSTS = np.zeros(0)


@dataclass(frozen=True, kw_only=True)
class TrendBank(Bank):
    """A bank that needs no path length and no horizon: plain memories of 8, 16, … rounds and one that keeps everything,
    and memories of 32, 64, … rounds that follow a trend.

    A trend counts as just longer than the plain memory of its rounds. The base has radius="posterior", or is a
    PosteriorUCB for clicks: every lane plays and scores by one belief, and clicks are learned in one pass.
    Memories of more than 4096 rounds sleep until the clock shows half of them, and then begin as the next shorter one
    of their kind: the longest have at most `longest` rounds, and nothing depends on a horizon. Before anything is seen
    the log weight of a memory is `tilt` less than that of one twice as long: by default 1/2, and 0 for clicks.

    levels=True adds sixteen lanes that tell a common level of all arms, which may move fast, from preferences, which
    may stay: rankings are not forgotten because a season changes. For clicks the level is one of log odds. They
    are played while rewards speak for them. Kin: ISD-linUCB (Lazzaretto, Peters, Pfister 2026).

    audit=a forces exploration in a share of decisions, min(1, a/√t), t counting rewards: they play an arm that would
    not be chosen, drawn by what a short memory does not know of it beside what it seems to lose. Nothing else can find
    out what such an arm does. While a common level is believed in, more of them play what would be played without it.
    Draws are those of the state's key, and probabilities are exact (docs/math.md#audits). 0 plays the best arm always.
    """

    base: LinearUCB | PosteriorUCB
    longest: int = 2**24
    tilt: float | None = None
    share: float = 1e-3
    levels: bool = False
    audit: float = 0.0
    revision: ClassVar[int] = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("levels", self.levels, [True, False])
        real("audit", self.audit, 0.0, way_out="pass 0, or up to 1 where unplayed arms may change")
        if getattr(self.base, "radius", "posterior") != "posterior" or not isinstance(self.base, _BELIEVERS):
            wanted = 'a LinearUCB with radius="posterior", or a PosteriorUCB'
            raise BadInput("base", self.base, wanted, "FadeBank takes the others")
        if not (self.linear or self.base.model.chance):
            raise BadInput("base", self.base, "a logistic or probit PosteriorUCB", "the bank scores no other rewards")
        if not isinstance(self.base.memory, Keep):
            raise BadInput("base", self.base.memory, "a base that keeps everything", "pass memory=Keep()")
        whole("longest", self.longest, SHORTEST, "pass a power of 2, or leave it out")
        if self.tilt is not None:
            real("tilt", self.tilt, -50.0, 50.0, way_out="leave it out")

    @property
    def linear(self) -> bool:
        """Whether rewards are values."""
        return isinstance(self.base, LinearUCB)

    @property
    def entries(self) -> Entries:  # type: ignore[override]
        return BELIEF

    def _scratch(self, used: int) -> int:
        return forecast_size(self.dim, self.lanes) + level_forecast_size(self.dim, len(self.leveled), self.filters)

    @property
    def can_fail(self) -> bool:
        return False

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """Of the lanes without a level apart, the shortest first."""
        memories: list[Memory] = []
        rounds = SHORTEST
        while rounds <= self.longest:
            memories.append(Fade(1.0 / rounds))
            if rounds >= SHORTEST_TREND and not self.wide:
                memories.append(Trend(float(rounds)))
            rounds *= WIDE_STEP if self.wide else STEP
        return (*memories, Keep())

    @property
    def wide(self) -> bool:
        """Whether there are so many features that a forecast of all memories is dear."""
        return bool(self.dim > FEATURES)

    @property
    def preferences(self) -> tuple[float, ...]:
        """Rounds that preferences beside a level are remembered for."""
        return WIDE_PREFERENCES if self.wide else PREFERENCES

    @cached_property
    def leveled(self) -> tuple[tuple[Memory, float, bool], ...]:
        """Of the lanes with a level apart: the memory of preferences, rounds of the level, and whether it slopes."""
        if not self.levels:
            return ()
        levels = tuple(zip(LEVEL_ROUNDS, LEVEL_SLOPED, strict=True))
        return tuple((memory, *level) for memory in fades(self.preferences) for level in levels)

    @property
    def filters(self) -> int:
        """How many filters of the level there are: lanes of values share them, each of clicks has its own."""
        return len(self.leveled) // (len(self.preferences) if self.linear else 1)

    @cached_property
    def rows(self) -> tuple[Base, ...]:
        memories = (*self.memories, *(memory for memory, *_ in self.leveled))
        return tuple(dataclasses.replace(self.believer, memory=memory) for memory in memories)

    @property
    def lanes(self) -> int:
        return len(self.memories)

    @property
    def believer(self) -> LinearUCB:
        """What plays a lane: the base, or for clicks the belief in log odds that it is, with R = 1."""
        base = self.base
        if isinstance(base, LinearUCB):
            return base
        return LinearUCB(
            dim=base.dim, memory=Keep(), S=base.S, L=base.L, R=1.0, radius="posterior",
            exploration=QUANTILE_OF_CLICKS / QUANTILE * base.exploration,
        )  # fmt: skip

    def _groups(self) -> dict[str, int]:
        levels = {"levels": len(self.leveled), "filters": self.filters}
        return {**super()._groups(), "gauges": gauge_size(self.dim), **levels}

    @cached_property
    def point(self) -> point.Point:
        made = super().point
        made.flags[point.MEMORY] = point.FADE if self.wide else point.TREND
        made.flags[point.LINK] = self.model.code
        if self.linear:
            made.table[:, point.WIDENS] = WIDENS
        else:
            made.table[:, point.LAM] = self.base.lam or 0.0  # otherwise it follows the log odds that are seen
            # Two standard deviations and not 1.5 where a level is apart: a level that follows the arm played leaves
            # nothing that would ever correct an arm thought too little of.
            made.table[self.lanes :, point.EXPLORE] = self.base.exploration
        for row, one in enumerate(self.rows):
            rounds = one.memory.rounds
            made.table[row, point.WAKES] = rounds / 2.0 if AWAKE < rounds < math.inf else 0.0
        for row, (_, rounds, slopes) in enumerate(self.leveled, self.lanes):
            made.table[row, point.LEVEL_GAMMA] = 1.0 - 1.0 / rounds
            made.table[row, point.LEVEL_LOG_GAMMA] = log1p(-1.0 / rounds)
            made.table[row, point.LEVEL_STIFFNESS] = rounds * rounds if slopes else 0.0
        made.table[:, point.AUDIT] = self.audit
        still = [row for row, memory in enumerate(self.memories) if memory.still and memory.rounds <= AUDITED]
        made.table[:, point.AUDIT_LANE] = still[-1]
        return made

    def _begin(self, state: State) -> None:
        tilt = self.tilt if self.tilt is not None else 0.5 if self.linear else 0.0
        doublings = np.array([log2(min(memory.rounds, 2.0 * AWAKE)) for memory in self.memories])
        awake = self.point.table[: self.lanes, point.WAKES] == 0.0
        weights = np.array([exp(tilt * one) for one in doublings - doublings.max()]) * awake
        state.scores[:] = weights / weights.sum()
        state.gauge[UNITS + 2 * self.dim :] = 1.0
        if self.levels:
            state.filters[:, point.GUESS] = 1.0
            tilted = [exp(-LEVEL_TILT * one) for one in range(len(self.preferences) - 1, -1, -1)]
            first = np.repeat(tilted, len(LEVEL_ROUNDS))
            state.level_scores[:] = first / first.sum()

    @property
    def unit_per_feature(self) -> bool:
        return not (self.base.S or self.base.lam)

    @property
    def deterministic(self) -> bool:
        """Whether equal states and arms give equal choices: forced exploration is drawn."""
        return self.audit == 0.0

    @property
    def ranks(self) -> bool:  # type: ignore[override]
        """The arm of largest score is played but for forced exploration."""
        return True

    def _number(self, state: State, draw: int | None) -> int:
        """What a decision is for: `draw` numbers it, by default by the rewards so far and itself."""
        if self.audit == 0.0:
            return ACTING
        count = float(self.hold.read(state).counters[0, point.COUNT])
        if not 0.0 <= count <= LATEST:
            report(point.DAMAGED)
        own, known = self._notes(state), (state.gauge, self._evidence(state))
        return int(purpose_of(self.point, own, *known, int(count) + 1 if draw is None else draw, count))

    def _evidence(self, state: State) -> Floats:
        return state.evidence if self.levels else np.zeros(0)

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        return super().best_of(state, X, number) if number == ACTING else self._audit(state, X, number)[0]

    def _audit(
        self, state: State, X: Floats, purpose: int, costs: Floats = _NO_COSTS
    ) -> tuple[Choice, Floats]:
        """The choice of a forced decision, of an arm or of the common level, and every arm's chance in the former. The
        mean of a forced arm is less its cost."""
        n = X.shape[2]
        scratch, second = for_scores(self.dim, n)
        arm = int(audit_belief_(*self.point, state.floats, state.ints, scratch, X, purpose, costs))
        if arm < 0:
            report(arm)
        mean, bonus = scratch.item(arm), scratch.item(second + arm)
        return Choice(arm, mean + bonus, mean, bonus), proposed(scratch, self.dim, n)

    def audited(self, state: State, draw: int | None = None) -> bool:
        """Whether a decision is forced exploration, of either kind."""
        return self._number(state, draw) != ACTING

    def share_of(self, state: State, arms: Arms, arm: int) -> float:
        """The probability that an arm is played: forced exploration is drawn, the rest is not."""
        return float(self.shares(state, arms, arm, 0)[arm])

    def shares(self, state: State, arms: Arms, arm: int, draw: int) -> Floats:
        """The probability that each arm is played."""
        if self.deterministic:
            return super().shares(state, arms, arm, draw)  # type: ignore[arg-type]
        X = self._columns(arms)
        return self._spread(state, X, self.best_of(state, X, ACTING).arm)

    def _spread(self, state: State, X: Floats, best: int, costs: Floats = _NO_COSTS) -> Floats:
        """The probability that each arm is played, where `best` is played but for forced exploration."""
        count = float(self.hold.read(state).counters[0, point.COUNT])
        look = float(audit_chance(self.point, state.gauge, count))
        trial = float(trial_chance(self.point, state.gauge, self._evidence(state), count))
        shares = look * self._audit(state, X, LOOK, costs)[1]
        if trial > 0.0:
            shares[self._audit(state, X, TRIAL, costs)[0].arm] += trial
        shares[best] += 1.0 - look - trial
        return shares

    def priced(self, state: State, arms: ArmSet, costs: Floats, draw: int | None) -> tuple[Choice, Floats]:
        """The choice where costs are subtracted from scores, forced ones among them, and the probability of every
        arm."""
        found, sure = super().priced(state, arms, costs, draw)
        if self.deterministic:
            return found, sure
        X, purpose = self._columns(arms), self._number(state, draw)
        shares = self._spread(state, X, found.arm, costs)
        if purpose != ACTING:
            seen = self._audit(state, X, purpose, costs)[0]
            mean = seen.mean if purpose == TRIAL else float(self.scores(state, arms).mean[seen.arm])
            found = Choice(seen.arm, mean + seen.bonus - float(costs[seen.arm]), mean, seen.bonus)
        return found, shares

    def propensity(self, state: State, arms: ArmSet, arm: int, draw: int) -> tuple[float, int] | None:
        return self.share_of(state, arms, arm), 0

    def played(self, state: State) -> int:
        """The row now played: a lane's, or that of a lane with a level behind all others."""
        if self.levels:
            self.hold.read(state)
            with_level = levels.level_lane(state.level_scores, state.evidence)
            if with_level >= 0:
                return self.lanes + int(with_level)
        return super().played(state)

    def likeliest(self, state: State) -> int:
        """Which of `leveled` is played, or would be if a level were believed in."""
        return int(levels.level_pick(self.hold.read(state).level_scores))

    def theta(self, state: State) -> Floats:
        """θ as the lane now played believes it: of preferences alone where a level is told apart; of log odds."""
        row = self.played(state)
        if row < self.lanes:
            return believed(self.point, row, state, row)
        lane = row - self.lanes
        return solved(whole_matrix(state.level_G[lane], ridges_of(self.point, row, state)), state.level_b[lane])

    def worth(self, state: State) -> float:
        row = self.played(state)
        return effective_observations(
            state.counters[row] if row < self.lanes else state.level_counters[row - self.lanes]
        )

    def weighed(self, weights: Floats) -> tuple[tuple[float, ...], Floats]:
        """A memory with a trend and one without count as one; those that never woke are left out."""
        each = np.array([memory.rounds for memory in self.memories])
        rounds = np.unique(each)
        shares = (weights[:, :, None] * (each[:, None] == rounds)).sum(axis=1)
        awake = (rounds <= AWAKE) | np.isinf(rounds) | (shares > 0.0).any(axis=0)
        return tuple(rounds[awake].tolist()), shares[:, awake]

    def level(self, state: State) -> LevelReport | None:
        if not self.levels:
            return None
        evidence = float(state.evidence[0])
        memory, level, _ = self.leveled[self.likeliest(state)]
        return LevelReport(evidence, evidence > levels.BELIEVED, level, float(memory.rounds))

    def report(self, state: State) -> dict[str, float]:
        """The memory of preferences now played, whether it follows a trend, noise and scale; with levels also the
        log evidence that a level moves by itself (above 1 that is believed) and the rounds of the likeliest one."""
        seen = super().report(state)
        if self.levels:
            seen |= {"evidence": float(state.evidence[0]), "level": self.leveled[self.likeliest(state)][1]}
        return seen
