"""A confidence sequence for bounded rewards that holds at every number of units: a mixture of bets.

Each unit has a known chance π to get the policy. With a centre c that is known before the unit's reward y,

    u = (y - c) 1[policy]/π + c,    v = (y - c) 1[baseline]/(1-π) + c

have the conditional means μ₁ and μ₀ of that moment, whatever these do over time. A candidate d for the mean difference
is tested by the capital Π(1 + λ(u - v - d)) of a player who bets λ (Waudby-Smith and Ramdas, "Estimating means of
bounded random variables by betting", JRSS B 2024). Capital is nonnegative and fair at the true running mean of effects,
so a mixture over λ reaches 1/α with probability at most α, at any time (Ville's inequality).

Capital is not kept for all candidates. For x ≥ -b it holds that log(1+x) ≥ x - x²/2 + x³/3 - k(b) x⁴ with
k(b) = (-log(1-b) - b - b²/2 - b³/3)/b⁴, so sums of four powers bound it from below for every candidate and every bet:
units are added, and intervals are taken, in constant time. Capital for a larger d is smaller, hence a
candidate that is excluded excludes all below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from driftwise.kernels.point import Floats
from driftwise.lift.intervals import Interval
from driftwise.lift.sums import accumulated

# Bets as shares of the largest bet that can never lose everything, and their weights: large bets matter for few units.
BETS = np.geomspace(0.75, 1e-5, 30)
_SHARES = 1.0 / (np.arange(len(BETS)) + 6.0) ** 2
WEIGHTS = np.log(_SHARES / _SHARES.sum())
_LARGEST = 0.97  # as a share of b
_STEPS = 48
_PAIRS = tuple((a, b) for total in range(5) for a in range(total + 1) for b in [total - a])
_FACTORIAL = (1, 1, 2, 6, 24)


class Bets:
    """Units of a randomised comparison: `share` is the probability of the policy; rewards lie within `rewards`."""

    def __init__(self, share: float, rewards: tuple[float, float]) -> None:
        self.share, (self.least, self.largest) = share, rewards
        self._sums = np.zeros(len(_PAIRS))  # Σ uᵃvᵇ
        self._centre = np.array([0.5, 1.0])  # the sum of rewards and their number, of which one half is assumed

    def add(self, live: Sequence[int], values: Sequence[float]) -> None:
        """Add the rewards of further units, one each, in order."""
        if not len(values):
            return
        y = (np.asarray(values, dtype=np.float64) - self.least) / (self.largest - self.least)
        arm = np.asarray(live, dtype=np.float64)
        sums = np.add.accumulate(np.vstack([self._centre[None], np.column_stack([y, np.ones_like(y)])]), axis=0)
        centre, self._centre = sums[:-1, 0] / sums[:-1, 1], sums[-1]
        u = (y - centre) * arm / self.share + centre
        v = (y - centre) * (1.0 - arm) / (1.0 - self.share) + centre
        self._sums = accumulated(self._sums, np.column_stack([u**a * v**b for a, b in _PAIRS]))

    @property
    def units(self) -> int:
        return round(float(self._sums[0]))

    def difference(self, level: float) -> Interval:
        """The mean effect over units, in the unit of rewards, valid at any time."""
        size = self.largest - self.least
        moments = self._moments(1.0)
        if not moments[0]:
            return Interval(math.nan)
        reach = 1.0 / min(self.share, 1.0 - self.share)
        low = _lowest(moments, reach, level / 2)
        high = -_lowest(moments * _MIRROR, reach, level / 2)
        return Interval(size * float(moments[1] / moments[0]), size * max(low, -1.0), size * min(high, 1.0))

    def ratio(self, level: float) -> Interval:
        """The ratio of means minus 1, for rewards that are not negative; no interval if the baseline's mean may be 0.

        The contrast u - r v has the mean μ₁ - r μ₀. Both ends are searched from the estimate outward.
        """
        if self.least != 0.0 or not self.units or not self._mean(0, 1) > 0.0:
            return Interval(math.nan)
        value = self._mean(1, 0) / self._mean(0, 1)
        target = math.log(2.0 / level)
        low = _crossing(lambda r: self._against(r, 1) >= target, value, 0.0)
        top = 64.0 * max(value, 1.0)
        high = _crossing(lambda r: self._against(r, -1) >= target, value, top)
        return Interval(value - 1.0, low - 1.0, high - 1.0) if high < top else Interval(value - 1.0)

    def _against(self, ratio: float, side: int) -> float:
        """log capital against the ratio, betting that it is larger (side 1) or smaller (-1)."""
        pi = self.share
        if side > 0:
            reach = max(1.0 / pi - 1.0 + ratio, ratio / (1.0 - pi), ratio - 1.0)
            return _capital(self._moments(ratio), 0.0, reach)
        reach = max(1.0 / pi, 1.0 + ratio * pi / (1.0 - pi))
        return _capital(self._moments(ratio) * _MIRROR, 0.0, reach)

    def _mean(self, a: int, b: int) -> float:
        return float(self._sums[_PAIRS.index((a, b))]) / self.units

    def _moments(self, ratio: float) -> Floats:
        """Σ (u - r v)ᵏ for k = 0…4."""
        found = np.zeros(5)
        for (a, b), total in zip(_PAIRS, self._sums.tolist(), strict=True):
            ways = _FACTORIAL[a + b] / (_FACTORIAL[a] * _FACTORIAL[b])
            found[a + b] += ways * (-ratio) ** b * total
        return found


_MIRROR = np.array([1.0, -1.0, 1.0, -1.0, 1.0])


def _capital(moments: Floats, d: float, reach: float) -> float:
    """A lower bound of the log of the mixture's capital against the mean d, of values that are at least -reach."""
    n, one, two, three, four = moments.tolist()
    first = one - n * d
    second = two - 2 * d * one + n * d**2
    third = three - 3 * d * two + 3 * d**2 * one - n * d**3
    fourth = four - 4 * d * three + 6 * d**2 * two - 4 * d**3 * one + n * d**4
    bets = BETS / reach
    b = bets * (reach + max(d, 0.0))
    fit = b < _LARGEST
    bets, b, weights = bets[fit], b[fit], WEIGHTS[fit]
    grown = weights + bets * first - bets**2 * second / 2 + bets**3 * third / 3 - fourth_factor(b) * bets**4 * fourth
    most = float(grown.max())
    return most + math.log(float(np.exp(grown - most).sum()))


def fourth_factor(b: Floats) -> Floats:
    """k(b), rounded up: the rest of its series is below b⁴; for larger b ten digits remain."""
    series = 0.25 + b / 5 + b**2 / 6 + b**3 / 7 + b**4
    exact = (-np.log1p(-b) - b - b**2 / 2 - b**3 / 3) / b**4
    found: Floats = np.where(b < 0.03, series, exact * (1 + 1e-7))
    return found


def _lowest(moments: Floats, reach: float, level: float) -> float:
    """The largest mean that is excluded from below."""
    target = math.log(1.0 / level)
    return _crossing(lambda d: _capital(moments, d, reach) >= target, float(moments[1] / moments[0]), -1.0)


def _crossing(excluded: Callable[[float], bool], inside: float, far: float) -> float:
    """The end between a value inside and one far away. If nothing is excluded the far value is the end."""
    if not excluded(far):
        return far
    out = far
    for _ in range(_STEPS):
        middle = (out + inside) / 2
        if excluded(middle):
            out = middle
        else:
            inside = middle
    return out
