"""A bank of plain memories and of memories with a trend, which grow as time passes (MATH.md 8)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

from driftwise.border import whole
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.adapt.belief import forecast_size
from driftwise.policies.adapt import Bank, Base
from driftwise.policies.base import Entries
from driftwise.policies.linear import BELIEF, LinearUCB
from driftwise.policies.memory import Fade, Keep, Memory, Trend
from driftwise.policies.posterior import PosteriorUCB
from driftwise.policies.state import State

# Memories last 8·4^i rounds, those with a trend 32·4^i; longer ones than 2048 sleep at first.
SHORTEST, SHORTEST_TREND, STEP, AWAKE = 8, 32, 4, 2048
# A lane's bonus is √(1 + 0.45 log(1 + Σw)) standard deviations: it grows, so that no arm is left for ever.
WIDENS = 0.45
_BELIEVERS = (LinearUCB, PosteriorUCB)


@dataclass(frozen=True, kw_only=True)
class TrendBank(Bank):
    """A bank that needs no path length and no horizon: plain memories of 8, 32, 128, … rounds and one that keeps
    everything, and memories of 32, 128, … rounds that follow a trend.

    A trend counts as just longer than the plain memory of its rounds. The base has radius="posterior", or is a
    PosteriorUCB, which knows no trends: every lane plays and scores by one belief. Memories of more than 2048 rounds
    sleep until the clock shows half of them, and then begin as the next shorter one of their kind: the longest have at
    most `longest` rounds, and nothing depends on a horizon.
    """

    base: LinearUCB | PosteriorUCB
    longest: int = 2**24

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self.base, "radius", "posterior") != "posterior" or not isinstance(self.base, _BELIEVERS):
            wanted = 'a LinearUCB with radius="posterior", or a PosteriorUCB'
            raise BadInput("base", self.base, wanted, "FadeBank takes the others")
        if not (self.linear or self.base.model.chance):
            raise BadInput("base", self.base, "a logistic or probit PosteriorUCB", "the bank scores no other rewards")
        if not isinstance(self.base.memory, Keep):
            raise BadInput("base", self.base.memory, "a base that keeps everything", "pass memory=Keep()")
        whole("longest", self.longest, SHORTEST, "pass a power of 2, or leave it out")

    @property
    def linear(self) -> bool:
        """Whether rewards are values: clicks know no trends."""
        return isinstance(self.base, LinearUCB)

    @property
    def entries(self) -> Entries:  # type: ignore[override]
        return BELIEF if self.linear else self.base.adaptive

    def _scratch(self, used: int) -> int:
        return forecast_size(self.dim, self.lanes) if self.linear else super()._scratch(used)

    @cached_property
    def rows(self) -> tuple[Base, ...]:
        memories: list[Memory] = []
        rounds = SHORTEST
        while rounds <= self.longest:
            memories.append(Fade(1.0 / rounds))
            if rounds >= SHORTEST_TREND and self.linear:
                memories.append(Trend(float(rounds)))
            rounds *= STEP
        return tuple(dataclasses.replace(self.base, memory=memory) for memory in (*memories, Keep()))

    @cached_property
    def point(self) -> point.Point:
        made = super().point
        made.flags[point.MEMORY] = point.TREND if self.linear else point.FADE
        made.table[:, point.WIDENS] = WIDENS
        for row, one in enumerate(self.rows):
            rounds = one.memory.rounds
            made.table[row, point.WAKES] = rounds / 2.0 if AWAKE < rounds < math.inf else 0.0
        return made

    def _begin(self, state: State) -> None:
        awake = self.point.table[:, point.WAKES] == 0.0
        state.scores[:] = awake / awake.sum()
