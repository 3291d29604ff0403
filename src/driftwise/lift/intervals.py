"""An estimate with its interval, and the two boundaries that hold at all times.

A confidence sequence at level α ever excludes the true value with probability at most α. The normal
mixture is the asymptotic one of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and
asymptotic confidence sequences" (Annals of Statistics 2024), Theorem 2.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

TIGHTEST = 2_000  # units at which the mixture is narrowest
_NAN = math.nan


class Interval(NamedTuple):
    """An estimate and the ends of its interval. The ends are NaN if no interval can be shown."""

    value: float
    low: float = _NAN
    high: float = _NAN

    @property
    def shown(self) -> bool:
        return not math.isnan(self.low)

    def meet(self, other: Interval) -> Interval:
        """The intersection of two intervals, with the first one's estimate."""
        lows = [one.low for one in (self, other) if one.shown]
        highs = [one.high for one in (self, other) if one.shown]
        return Interval(self.value, max(lows), min(highs)) if lows else self


def error_factor(units: float, level: float) -> float:
    """The half-width of the asymptotic interval in standard errors; a fixed sample has 1.96.

    This is Robbins' normal mixture boundary √((t+ρ)/t · (log((t+ρ)/ρ) + 2 log(1/α))), with ρ near the value at which it
    is narrowest at t = TIGHTEST.
    """
    rho = TIGHTEST / (2 * math.log(1 / level) + math.log(1 + 2 * math.log(1 / level)))
    return math.sqrt((1 + rho / units) * (math.log1p(units / rho) + 2 * math.log(1 / level)))
