"""Sums over units, from which the asymptotic interval is computed in constant time.

Units are drawn into cohorts, so units are the independent observations. A unit has a total and a number of rewards. A
cohort's mean is the sum of totals divided by the sum of numbers, and its variance is that of a ratio (linearised).
Another reward of a unit replaces the unit's previous numbers.

Intervals stay valid when units return, for this reason. Write T_t for the sum of the residuals of units at time t. Its
variance is estimated by the sum V_t of their squares. Rewards of one unit are positively correlated if at all, so the
covariance of T_s and T_t is at least V_s for s < t, which is that of Brownian motion at V_s. By Slepian's inequality
such a process crosses a boundary no more often than Brownian motion does. Means that drift do not matter either:
cohorts are drawn by units, and the covariances of the residuals about the running mean are those of Brownian motion
again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from driftwise.kernels.point import Floats
from driftwise.lift.intervals import Interval, error_factor

# An interval is shown when each cohort has this many units that matter: (Σ r²)²/Σ r⁴ over residuals r, the number of
# successes if rewards are rare. With fewer the residuals are too few or too unequal to be nearly normal.
LEAST = 15.0
_POWERS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
_BINOMIAL = (1.0, -4.0, 6.0, -4.0, 1.0)


class Cohort(NamedTuple):
    """A cohort: rewards, units, the mean reward, the variance of that mean, and the units that matter (see LEAST)."""

    rewards: int
    units: int
    mean: float
    variance: float
    effective: float


def accumulated(start: Floats, terms: Floats) -> Floats:
    """Sums after further rows, added one by one, so that the division into batches does not change a bit."""
    if not len(terms):
        return start
    found: Floats = np.add.accumulate(np.vstack([start[None], terms]), axis=0)[-1]
    return found


class UnitSums:
    """Two cohorts, the policy's (1) and the baseline's (0)."""

    def __init__(self) -> None:
        self._sums = np.zeros((2, len(_POWERS)))
        self._units: dict[object, tuple[float, int]] = {}
        self._shift: float | None = None  # the first value; sums of powers around it lose no digits

    def add(self, units: Sequence[object], live: Sequence[int], values: Iterable[float]) -> list[int]:
        """Add rewards, in order. Returns the places of those that are the first of their units."""
        before, after, first, known = [], [], [], self._units
        for place, (unit, value) in enumerate(zip(units, values, strict=True)):
            if self._shift is None:
                self._shift = value
            had = known.get(unit)
            if had is None:
                first.append(place)
                had = 0.0, 0
            now = known[unit] = had[0] + (value - self._shift), had[1] + 1
            before.append(had)
            after.append(now)
        changed = _monomials(after) - _monomials(before)
        arms = np.asarray(live, dtype=np.int64)
        for arm in (0, 1):
            self._sums[arm] = accumulated(self._sums[arm], changed[arms == arm])
        return first

    def arm(self, place: int) -> Cohort:
        """The current cohort."""
        n, total, number, *seconds = self._sums[place, :6].tolist()
        units, rewards = round(n), round(number)
        if not units or self._shift is None:
            return Cohort(0, 0, math.nan, math.nan, 0.0)
        mean = total / number
        square = max(seconds[0] - 2 * mean * seconds[1] + mean**2 * seconds[2], 0.0)
        fourth = sum(
            factor * mean**power * term
            for power, (factor, term) in enumerate(zip(_BINOMIAL, self._sums[place, 6:].tolist(), strict=True))
        )
        variance = square / number**2 * units / (units - 1) if units > 1 else math.nan
        effective = square**2 / fourth if fourth > 1e-12 * square**2 else 0.0
        return Cohort(rewards, units, mean + self._shift, variance, effective)

    def difference(self, level: float) -> Interval:
        """The mean reward of the policy minus the baseline's, valid at any time."""
        one, zero = self.arm(1), self.arm(0)
        value = one.mean - zero.mean
        z = _spread(one, zero, level)
        if math.isnan(z):
            return Interval(value)
        half = z * math.sqrt(one.variance + zero.variance)
        return Interval(value, value - half, value + half)

    def ratio(self, level: float) -> Interval:
        """The mean reward of the policy divided by the baseline's, minus 1: Fieller's set with the boundary for all
        looks. No interval is shown if the baseline's mean may be 0."""
        one, zero = self.arm(1), self.arm(0)
        value = one.mean / zero.mean - 1.0 if zero.mean else math.nan
        z = _spread(one, zero, level)
        if math.isnan(z) or not zero.mean:
            return Interval(value)
        doubt = z**2 * zero.variance / zero.mean**2
        if doubt >= 1.0:
            return Interval(value)
        ratio = one.mean / zero.mean
        half = z / abs(zero.mean) * math.sqrt(one.variance * (1.0 - doubt) + ratio**2 * zero.variance)
        return Interval(value, (ratio - half) / (1.0 - doubt) - 1.0, (ratio + half) / (1.0 - doubt) - 1.0)


def _spread(one: Cohort, zero: Cohort, level: float) -> float:
    """Standard errors to each side; NaN if no interval is shown."""
    if min(one.effective, zero.effective) < LEAST:
        return math.nan
    return error_factor(one.units + zero.units, level)


def _monomials(pairs: list[tuple[float, int]]) -> Floats:
    found = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    total, number = found[:, :1], found[:, 1:]
    columns = [(number > 0) * total**a * number**b for a, b in _POWERS]
    return np.hstack(columns) if len(found) else np.zeros((0, len(_POWERS)))
