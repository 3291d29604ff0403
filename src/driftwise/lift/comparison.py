"""A policy compared with a baseline: rewards and guardrails by unit. You may watch it as often as you like.

A check that units are split as they were drawn is valid at any time too. If the split differs from the drawn one, one
cohort loses more units or rewards than the other, and no interval is valid. The test is the beta mixture of Lindon and
Malek, "Anytime-valid inference for multinomial count data" (NeurIPS 2022): under the drawn share the evidence ever
exceeds 1/α with probability at most α.

A ramp lets the share of units that get the policy grow in steps while the policy is no worse than a margin. Each step
is a separate comparison, because the share of the policy changes and means may drift in between: pooled over steps, a
policy could look better or worse only because it played at other times. `level` bounds the probability that a policy at
or below the margin ever advances, or that one at or above it is ever stopped, over all steps. Each step gets an equal
part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from driftwise.lift.betting import Bets
from driftwise.lift.intervals import Interval
from driftwise.lift.sums import Cohort, UnitSums

_WEIGHT = 100.0  # the weight of the prior on the drawn share, in units


def ratio_evidence(live: int, baseline: int, share: float) -> float:
    """log of the evidence against a split of units at the drawn share of the policy."""
    a, b = _WEIGHT * share, _WEIGHT * (1.0 - share)
    mixed = _log_beta(a + live, b + baseline) - _log_beta(a, b)
    return mixed - live * math.log(share) - baseline * math.log1p(-share)


def mismatch(live: int, baseline: int, share: float, level: float) -> bool:
    """Whether the split differs from the drawn one. Ever wrong with probability at most `level`."""
    return ratio_evidence(live, baseline, share) >= math.log(1.0 / level)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


LEVEL = 0.05
SPLIT_LEVEL = 0.001  # the level of the check of the split: a mismatch is a defect, not a result


class Guardrail(NamedTuple):
    """A metric sent with rewards that the policy must not worsen by more than a margin."""

    margin: float
    better: Literal["lower", "higher"] = "lower"

    def harm(self, found: Interval) -> Interval:
        """How much worse the policy is: the difference, with its sign changed if more is better."""
        if self.better == "lower":
            return found
        return Interval(-found.value, -found.high, -found.low)


class Look(NamedTuple):
    """The comparison at one time: cohorts, both intervals of difference and lift, guardrails, the split."""

    live: Cohort
    baseline: Cohort
    difference: Interval
    lift: Interval
    bounded: Interval  # of the difference, from the first reward of each unit
    bounded_lift: Interval
    guardrails: dict[str, Interval]
    split: float  # log of the evidence against the drawn split
    reach: float  # the width of the range of rewards; a bounded interval of twice that has no information

    @property
    def split_holds(self) -> bool:
        return self.split < math.log(1.0 / SPLIT_LEVEL)


class Lift:
    """Sums of a comparison. `share` is the probability that a unit gets the policy, `rewards` the declared range."""

    def __init__(
        self, share: float, rewards: tuple[float, float], guardrails: Mapping[str, Guardrail] | None = None
    ) -> None:
        self.share, self.guardrails = share, dict(guardrails or {})
        self.sums, self.bets = UnitSums(), Bets(share, rewards)
        self.metrics = {name: UnitSums() for name in self.guardrails}

    def add(
        self, units: Sequence[object], live: Sequence[int], values: Sequence[float],
        metrics: Sequence[Mapping[str, float] | None] | None = None,
    ) -> None:  # fmt: skip
        """Add rewards in the order of arrival, each with its unit and whether the policy chose."""
        first = self.sums.add(units, live, values)
        self.bets.add([live[place] for place in first], [values[place] for place in first])
        for name, sums in self.metrics.items() if metrics is not None else ():
            places = [place for place, sent in enumerate(metrics or ()) if sent and name in sent]
            found = [float((metrics or ())[place][name]) for place in places]  # type: ignore[index]
            sums.add([units[place] for place in places], [live[place] for place in places], found)

    def look(self, level: float = LEVEL) -> Look:
        """The intervals now. Each is ever wrong with probability at most `level`."""
        live, baseline = self.sums.arm(1), self.sums.arm(0)
        return Look(
            live, baseline, self.sums.difference(level), self.sums.ratio(level),
            self.bets.difference(level), self.bets.ratio(level),
            {name: sums.difference(level) for name, sums in self.metrics.items()},
            ratio_evidence(live.units, baseline.units, self.share), self.bets.largest - self.bets.least,
        )  # fmt: skip

    def judged(self, level: float) -> tuple[Interval, dict[str, Interval], bool]:
        """The numbers that a ramp uses: the difference that both intervals allow at half the level each, how much worse
        each guardrail is, and whether the split holds. `level` is shared by the reward and all guardrails."""
        each = level / (1 + len(self.guardrails))
        found = self.sums.difference(each / 2).meet(self.bets.difference(each / 2))
        harms = {name: rail.harm(self.metrics[name].difference(each)) for name, rail in self.guardrails.items()}
        split = ratio_evidence(self.sums.arm(1).units, self.sums.arm(0).units, self.share)
        return found, harms, split < math.log(1.0 / SPLIT_LEVEL)


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
