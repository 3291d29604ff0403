"""A ramp: the share of units that get the policy grows in steps while the policy is no worse than a margin.

Each step is a separate comparison, because the share of the policy changes and means may drift in between: pooled over
steps, a policy could look better or worse only because it played at other times. `level` bounds the probability that a
policy at or below the margin ever advances, or that one at or above it is ever stopped, over all steps. Each step gets
an equal part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from driftwise.lift.comparison import LEVEL, Guardrail, Lift
from driftwise.lift.intervals import Interval

Step = Literal["advanced", "stopped"]


class RampVerdict(NamedTuple):
    """The verdict on a step: what to do, why, and the numbers behind it."""

    step: Step | None
    reason: str
    reward: Interval
    harms: dict[str, Interval]


class Ramp(NamedTuple):
    """Shares of units in increasing order, the margin that the difference of mean rewards must clear, guardrails."""

    shares: tuple[float, ...]
    margin: float = 0.0
    guardrails: Mapping[str, Guardrail] = {}
    level: float = LEVEL

    def judge(self, lift: Lift, place: int) -> RampVerdict:
        """What to do at a step, from the comparison of that step only.

        It stops when the reward's interval lies below the margin, or a guardrail's beyond its own. It advances when the
        reward's lower end is above the margin and no guardrail may be beyond its margin. If the split differs from the
        drawn one, intervals are not valid, and it does neither.
        """
        reward, harms, split = lift.judged(self.level / len(self.shares))
        if not split:
            return RampVerdict(None, "sample_ratio", reward, harms)
        if reward.high < self.margin:
            return RampVerdict("stopped", "reward", reward, harms)
        for name, rail in self.guardrails.items():
            if harms[name].low > rail.margin:
                return RampVerdict("stopped", name, reward, harms)
        clear = all(harms[name].high < rail.margin for name, rail in self.guardrails.items())
        if clear and reward.low > self.margin and place + 1 < len(self.shares):
            return RampVerdict("advanced", "reward", reward, harms)
        return RampVerdict(None, "", reward, harms)
