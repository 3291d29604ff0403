"""What a policy would have earned, from choices that another one made: estimates with their intervals.

With p the propensity of the logged arm, π the share with which the policy plays it, w = π/p, r the reward and q̂ a
model of rewards: IPS is the mean of w r (Horvitz, Thompson 1952), SNIPS Σw r/Σw (Swaminathan, Joachims 2015), the
doubly robust one the mean of Σ_a π(a) q̂(a) + w (r - q̂) (Dudík, Langford, Li 2011). Policy and model may have learned
from earlier rows. Then the terms are not independent, but each has the right mean given the rows before it.

Intervals use empirical likelihood (likelihood.py), with the facts that w has mean 1 and a known largest value. An
estimate outside its interval, which IPS may be if few weights are large, is moved to the interval's end.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwise.data.likelihood import Sample, likelihood_interval, mean_interval
from driftwise.kernels.point import Floats

# An interval wider than this share of the reward range is not shown.
_OPEN = 0.98


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error and its 95% interval from `low` to `high`. `effective` is the number of rows of
    equal weight that would be worth as much.

    If the log has too little information, `reason` says why and the value is NaN.
    """

    value: float
    error: float
    rows: int
    effective: float
    low: float
    high: float
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers; None replaces NaN, which JSON does not have."""
        numbers = {"value": self.value, "error": self.error, "low": self.low, "high": self.high}
        known = {name: one if math.isfinite(one) else None for name, one in numbers.items()}
        return {**known, "rows": self.rows, "effective": self.effective, "reason": self.reason}

    def __str__(self) -> str:
        if self.reason is not None:
            return "cannot tell"
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The terms of each row: its reward, its weight w, and, if there is a model, q̂ of the logged arm and Σ_a π(a)
    q̂(a).

    `range` is the range of rewards, `most` the largest possible weight. `misfit` says why the weights tell nothing.
    """

    reward: Floats
    weight: Floats
    logged: Floats | None = None
    expected: Floats | None = None
    range: tuple[float, float] = (0.0, 1.0)
    most: float = math.inf
    misfit: str | None = None

    def __len__(self) -> int:
        return len(self.reward)

    def cut(self, rows: slice) -> RowTerms:
        """The terms of a range of rows."""
        said, expected = (None if one is None else one[rows] for one in (self.logged, self.expected))
        return RowTerms(self.reward[rows], self.weight[rows], said, expected, self.range, self.most, self.misfit)

    def within(self, range: tuple[float, float], most: float, misfit: str | None) -> RowTerms:
        """The same terms with known bounds of rewards and weights."""
        most = max(most, float(self.weight.max()))
        return dataclasses.replace(self, range=range, most=most, misfit=misfit)

    @property
    def names(self) -> tuple[str, ...]:
        return ("SNIPS", "IPS") if self.logged is None else ("DR", "SNIPS", "IPS")

    def parts(self, name: str) -> tuple[Floats, Floats]:
        """Numerators and denominators: the estimate is the sum of the first divided by the sum of the second."""
        if name == "IPS":
            return self.weight * self.reward, np.ones(len(self))
        if name == "SNIPS":
            return self.weight * self.reward, self.weight
        assert self.logged is not None and self.expected is not None
        return self.expected + self.weight * (self.reward - self.logged), np.ones(len(self))

    def effective(self, discounts: Floats) -> float:
        """(Σw)²/Σw², where w includes the discounts."""
        return effective(self.weight * discounts)


def effective(weights: Floats) -> float:
    """(Σw)²/Σw²: the number of equal weights with the same information."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def ratio(top: Floats, bottom: Floats, discounts: Floats) -> tuple[float, Floats]:
    """Σg t/Σg b, and the influence of each row on it. The influences sum to 0; the root of the sum of squares is the
    error.
    """
    total = float(discounts @ bottom)
    if total <= 0.0:
        return math.nan, np.full(len(top), math.nan)
    value = float(discounts @ top) / total
    return value, discounts * (top - value * bottom) / total


def estimates(
    terms: RowTerms, names: Iterable[str], discounts: Floats | None = None, minus_logged: bool = False
) -> dict[str, Estimate]:
    """Estimates by name, with rows weighted by discounts; or their paired differences to the logged rewards."""
    g = np.ones(len(terms)) if discounts is None else discounts
    low, high = terms.range
    start, span, widest = (0.0, high - low, 2.0) if minus_logged else (low, high - low, 1.0)
    ends: dict[bool, tuple[float, float]] = {}
    made = {}
    for name in names:
        value, influence = ratio(*terms.parts(name), g)
        if minus_logged:
            base, other = ratio(terms.reward, np.ones(len(terms)), g)
            value, influence = value - base, influence - other
        with_model = name == "DR"
        if terms.misfit is not None:
            ends[with_model] = (-1.0 if minus_logged else 0.0, 1.0)
        elif with_model not in ends:
            ends[with_model] = likelihood_interval(sample_of(terms, g, with_model), minus_logged)
        near, far = (start + span * one for one in ends[with_model])
        value = min(max(value, near), far)
        found = Estimate(value, weight_spread(influence), len(terms), terms.effective(g), near, far)
        reason = _reason(terms, g, (far - near) / (widest * span))
        made[name] = found if reason is None else dataclasses.replace(
            found, value=math.nan, error=math.nan, reason=reason
        )
    return made


def _reason(terms: RowTerms, discounts: Floats, share: float) -> str | None:
    """The reason if the log has too little information; None if it has enough."""
    if not (terms.weight * discounts).any():
        return "no logged row plays what the policy would play"
    if terms.misfit is not None:
        return terms.misfit
    if share >= _OPEN:
        few = f"{terms.effective(discounts):.0f} effective rows"
        return f"{few} leave {min(share, 1.0):.0%} of what is possible open"
    return None


def sample_of(terms: RowTerms, discounts: Floats, with_model: bool) -> Sample:
    """Rows in units of the reward range. Equal rows are counted once."""
    low, high = terms.range
    total, squares = float(discounts.sum()), float(discounts @ discounts)
    share, n = discounts / total, total * total / squares

    def unit(values: Floats) -> Floats:
        return np.clip((values - low) / (high - low), 0.0, 1.0)

    weight, reward = terms.weight, unit(terms.reward)
    if with_model:
        assert terms.logged is not None and terms.expected is not None
        return Sample(weight, reward, share, n, terms.most, unit(terms.logged), unit(terms.expected))
    pairs, place = np.unique(weight + 1j * reward, return_inverse=True)
    if 2 * len(pairs) > len(weight):
        return Sample(weight, reward, share, n, terms.most)
    return Sample(pairs.real.copy(), pairs.imag.copy(), np.bincount(place, share).astype(np.float64), n, terms.most)


def matched(terms: RowTerms, discounts: Floats | None = None, minus_logged: bool = False) -> Estimate:
    """The mean reward of the rows that a policy matched, which have weight 1; or its difference to the mean of the
    logged rewards, with an interval made from those of the two means (Donner, Zou 2012)."""
    found = _plain(terms, terms.weight if discounts is None else discounts * terms.weight)
    if terms.misfit is not None and found.reason is None:
        low, high = terms.range
        least, largest = (low - high, high - low) if minus_logged else (low, high)
        return Estimate(math.nan, math.nan, len(terms), found.effective, least, largest, terms.misfit)
    if not minus_logged or found.reason is not None:
        return found
    base = logged(terms, discounts)
    value = found.value - base.value
    low = value - math.hypot(found.value - found.low, base.high - base.value)
    high = value + math.hypot(found.high - found.value, base.value - base.low)
    return Estimate(value, math.hypot(found.error, base.error), len(terms), found.effective, low, high)


def logged(terms: RowTerms, discounts: Floats | None = None) -> Estimate:
    """The mean of the logged rewards."""
    return _plain(terms, np.ones(len(terms)) if discounts is None else discounts)


def _plain(terms: RowTerms, g: Floats) -> Estimate:
    """The mean of rewards with these discounts."""
    low, high = terms.range
    if not g.any():
        reason = "no row in which the policy plays what was played"
        return Estimate(math.nan, math.nan, len(terms), 0.0, low, high, reason)
    value, influence = ratio(terms.reward, np.ones(len(terms)), g)
    unit = np.clip((terms.reward - low) / (high - low), 0.0, 1.0)
    near, far = (low + (high - low) * one for one in mean_interval(unit, g / g.sum(), effective(g)))
    return Estimate(min(max(value, near), far), weight_spread(influence), len(terms), effective(g), near, far)


def weight_spread(influence: Floats) -> float:
    """The standard error from influences, with n/(n-1) because their mean was subtracted."""
    n = len(influence)
    return math.sqrt(float(influence @ influence) * n / (n - 1)) if n > 1 else math.inf
