"""What the policy brings against those who are held back, with an interval that holds when units come again.

Who is held back is drawn by unit, so units are what varies: a cohort's mean is its rewards over its decisions, and its
variance that of a ratio of sums over units (linearised). With one decision a unit it is the variance of a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftwise._internal.intervals import t_quantile
from driftwise.kernels.point import Floats


class Cohort(NamedTuple):
    """Decisions of a cohort whose rewards have come, the units they were about, and their mean reward."""

    decisions: int
    units: int
    mean: float
    variance: float  # of the mean; NaN below two units


class Interval(NamedTuple):
    """An estimate and the ends of its 95% interval; ends are NaN where it cannot be told."""

    value: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Difference of means, policy less baseline, and the lift: the difference over the baseline's mean."""

    live: Cohort
    baseline: Cohort
    difference: Interval
    lift: Interval


def cohort(values: Floats, units: Sequence[object]) -> Cohort:
    """A cohort's mean reward a decision, and how sure it is."""
    names = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    count = len(values)
    if not count:
        return Cohort(0, 0, math.nan, math.nan)
    places = np.fromiter((names[unit] for unit in units), dtype=np.int64, count=count)
    sizes = np.bincount(places).astype(np.float64)
    mean = float(values.mean())
    apart = np.bincount(places, weights=values) - mean * sizes
    many = len(sizes)
    variance = float(apart @ apart) / count**2 * many / (many - 1) if many > 1 else math.nan
    return Cohort(count, many, mean, variance)


def compare(live: Cohort, baseline: Cohort) -> Comparison:
    """Welch's interval for the difference, Fieller's for the lift."""
    difference, lift = live.mean - baseline.mean, math.nan
    if baseline.mean != 0.0:
        lift = difference / baseline.mean
    variance = live.variance + baseline.variance
    unknown = math.nan, math.nan
    if not variance > 0.0:  # NaN too: too few units, or no reward that differs
        return Comparison(live, baseline, Interval(difference, *unknown), Interval(lift, *unknown))
    freedom = variance**2 / (
        live.variance**2 / (live.units - 1) + baseline.variance**2 / (baseline.units - 1)
    )
    t = t_quantile(freedom)
    half = t * math.sqrt(variance)
    ends = _fieller(live, baseline, t)
    return Comparison(
        live, baseline, Interval(difference, difference - half, difference + half), Interval(lift, *ends)
    )


def _fieller(live: Cohort, baseline: Cohort, t: float) -> tuple[float, float]:
    """Ends of the interval of the ratio of means, less 1; none where the baseline's mean may be 0."""
    if baseline.mean == 0.0:
        return math.nan, math.nan
    doubt = t**2 * baseline.variance / baseline.mean**2
    if doubt >= 1.0:
        return math.nan, math.nan
    ratio = live.mean / baseline.mean
    root = math.sqrt(live.variance * (1.0 - doubt) + ratio**2 * baseline.variance)
    half = t / abs(baseline.mean) * root
    return (ratio - half) / (1.0 - doubt) - 1.0, (ratio + half) / (1.0 - doubt) - 1.0
