"""What a policy would have earned, from choices that another one made: estimates with their errors.

With p the propensity of the logged arm, π the share with which the policy plays it, w = π/p, r the reward and q̂ a
model of rewards: IPS is the mean of w r (Horvitz, Thompson 1952), SNIPS Σw r/Σw (Swaminathan, Joachims 2015), the
doubly robust one the mean of Σ_a π(a) q̂(a) + w (r - q̂) (Dudík, Langford, Li 2011). Policy and model may have learned
from earlier rows: terms are then no longer independent, but each has the mean it should have given what came before,
and errors add up as if they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwise.kernels.point import Floats

# The normal quantile of 95% intervals.
QUANTILE = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error; `effective` is how many rows of equal weight would say as much."""

    value: float
    error: float
    rows: int
    effective: float

    @property
    def low(self) -> float:
        """Where the 95% interval begins."""
        return self.value - QUANTILE * self.error

    @property
    def high(self) -> float:
        """Where the 95% interval ends."""
        return self.value + QUANTILE * self.error

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None where no row says anything: JSON has no NaN."""
        numbers = {"value": self.value, "error": self.error, "low": self.low, "high": self.high}
        known = {name: one if math.isfinite(one) else None for name, one in numbers.items()}
        return {**known, "rows": self.rows, "effective": self.effective}

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return "–"
        return f"{self.value:.4f} ± {QUANTILE * self.error:.4f}"


@dataclass(frozen=True, eq=False)
class Terms:
    """What a row says: its reward, its weight w, and where there is a model, q̂ of the logged arm and Σ_a π(a) q̂(a)."""

    reward: Floats
    weight: Floats
    logged: Floats | None = None
    expected: Floats | None = None

    def __len__(self) -> int:
        return len(self.reward)

    def cut(self, rows: slice) -> Terms:
        """A stretch of it."""
        pair = (None if one is None else one[rows] for one in (self.logged, self.expected))
        return Terms(self.reward[rows], self.weight[rows], *pair)

    @property
    def names(self) -> tuple[str, ...]:
        return ("IPS", "SNIPS") if self.logged is None else ("IPS", "SNIPS", "DR")

    def parts(self, name: str) -> tuple[Floats, Floats]:
        """Numerators and denominators: the estimate is the one's sum over the other's."""
        if name == "IPS":
            return self.weight * self.reward, np.ones(len(self))
        if name == "SNIPS":
            return self.weight * self.reward, self.weight
        assert self.logged is not None and self.expected is not None
        return self.expected + self.weight * (self.reward - self.logged), np.ones(len(self))

    def effective(self, discounts: Floats) -> float:
        """(Σw)²/Σw², w with the discounts."""
        return effective(self.weight * discounts)


def effective(weights: Floats) -> float:
    """(Σw)²/Σw²: equal weights that would say as much."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def ratio(top: Floats, bottom: Floats, discounts: Floats) -> tuple[float, Floats]:
    """Σg t/Σg b, and the influence of each row on it: their sum is 0, the root of their squares' sum the error."""
    total = float(discounts @ bottom)
    if total <= 0.0:
        return math.nan, np.full(len(top), math.nan)
    value = float(discounts @ top) / total
    return value, discounts * (top - value * bottom) / total


def estimate(terms: Terms, name: str, discounts: Floats | None = None, minus_logged: bool = False) -> Estimate:
    """An estimate by name, rows weighed by discounts; or what it has over the logged rewards, row by row paired."""
    g = np.ones(len(terms)) if discounts is None else discounts
    value, influence = ratio(*terms.parts(name), g)
    if minus_logged:
        base, other = ratio(terms.reward, np.ones(len(terms)), g)
        value, influence = value - base, influence - other
    return Estimate(value, spread(influence), len(terms), terms.effective(g))


def logged(terms: Terms, discounts: Floats | None = None) -> Estimate:
    """The mean of the logged rewards."""
    g = np.ones(len(terms)) if discounts is None else discounts
    value, influence = ratio(terms.reward, np.ones(len(terms)), g)
    return Estimate(value, spread(influence), len(terms), effective(g))


def spread(influence: Floats) -> float:
    """The standard error that influences make, with n/(n-1) for the mean that was taken off."""
    n = len(influence)
    return math.sqrt(float(influence @ influence) * n / (n - 1)) if n > 1 else math.inf
