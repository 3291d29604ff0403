"""A bank of plain memories and of memories with a trend, which grow as time passes (MATH.md 8)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftwise.border import real, whole
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.adapt.belief import forecast_size
from driftwise.kernels.belief import GAUGE, QUANTILE
from driftwise.kernels.glm import QUANTILE as QUANTILE_OF_CLICKS
from driftwise.policies.adapt import Bank, Base
from driftwise.policies.base import Entries
from driftwise.policies.linear import BELIEF, LinearUCB
from driftwise.policies.memory import Fade, Keep, Memory, Trend
from driftwise.policies.posterior import PosteriorUCB
from driftwise.policies.state import State

# Memories last 8·2^i rounds, those with a trend 32·2^i; longer ones than 4096 sleep at first.
SHORTEST, SHORTEST_TREND, STEP, AWAKE = 8, 32, 2, 4096
# A lane's bonus is √(1 + 0.45 log(1 + Σw)) standard deviations: it grows, so that no arm is left for ever.
WIDENS = 0.45
_BELIEVERS = (LinearUCB, PosteriorUCB)


@dataclass(frozen=True, kw_only=True)
class TrendBank(Bank):
    """A bank that needs no path length and no horizon: plain memories of 8, 16, … rounds and one that keeps everything,
    and memories of 32, 64, … rounds that follow a trend.

    A trend counts as just longer than the plain memory of its rounds. The base has radius="posterior", or is a
    PosteriorUCB for clicks: every lane plays and scores by one belief, and clicks are learned in one pass.
    Memories of more than 4096 rounds sleep until the clock shows half of them, and then begin as the next shorter one
    of their kind: the longest have at most `longest` rounds, and nothing depends on a horizon. Before anything is seen
    a memory weighs `tilt` nats less than one twice as long: by default 1/2, and none for clicks.
    """

    base: LinearUCB | PosteriorUCB
    longest: int = 2**24
    tilt: float | None = None
    share: float = 1e-3

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
        return forecast_size(self.dim, self.lanes)

    @property
    def can_fail(self) -> bool:
        return False

    @cached_property
    def rows(self) -> tuple[Base, ...]:
        memories: list[Memory] = []
        rounds = SHORTEST
        while rounds <= self.longest:
            memories.append(Fade(1.0 / rounds))
            if rounds >= SHORTEST_TREND:
                memories.append(Trend(float(rounds)))
            rounds *= STEP
        return tuple(dataclasses.replace(self.believer, memory=memory) for memory in (*memories, Keep()))

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
        return {**super()._groups(), **({} if self.linear else {"gauges": GAUGE})}

    @cached_property
    def point(self) -> point.Point:
        made = super().point
        made.flags[point.MEMORY], made.flags[point.LINK] = point.TREND, self.model.code
        if self.linear:
            made.table[:, point.WIDENS] = WIDENS
        else:
            made.table[:, point.LAM] = self.base.lam or 0.0  # otherwise it follows the log odds that are seen
        for row, one in enumerate(self.rows):
            rounds = one.memory.rounds
            made.table[row, point.WAKES] = rounds / 2.0 if AWAKE < rounds < math.inf else 0.0
        return made

    def _begin(self, state: State) -> None:
        tilt = self.tilt if self.tilt is not None else 0.5 if self.linear else 0.0
        doublings = np.log2(np.minimum(self.effective(), 2.0 * AWAKE))
        weights = np.exp(tilt * (doublings - doublings.max())) * (self.point.table[:, point.WAKES] == 0.0)
        state.scores[:] = weights / weights.sum()
