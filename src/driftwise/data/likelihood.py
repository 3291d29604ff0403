"""Intervals of a mean by empirical likelihood, for weights that are rarely large (docs/evaluation.md has the coverage).

Rows are drawn with weights w of mean 1. Consider all distributions on the rows seen, and on rows that were possible and
not seen. Those whose likelihood is within a quantile of the largest, and under which the controls have mean 0, give the
interval of the mean of a term (Owen 2001; for logged choices Karampatziakis, Langford, Mineiro 2020). Unseen rows
matter: an arm that the log plays once in 10,000 rows is missing from most samples of 5,000, and with it the largest
weight, which the variance of the sample does not contain.

With shares p of the rows, controls c and term g, the upper end is the smallest value over (a, b) of

    a - exp(Σ p log z - φ), z = a + b'c - g, where z ≥ 0 at every possible row,

which is convex. φ is half the quantile over n, plus the largest Σ p log(1 + b'c) of the controls alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driftwise._internal.intervals import t_quantile
from driftwise.kernels.point import Floats

# Weights of the barrier at unseen rows, in rows. The last one is negligible.
_BARRIERS = (0.3, 1e-4)
_STEPS = 50
# The largest distance of an end from the smallest value, in units of the reward range.
_CLOSE = 1e-9
# Least degrees of freedom of the quantile.
_LEAST = 3.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a log in units of the reward range: rewards r from 0 to 1, with weights w of at most `most` (infinite if
    that is unknown, or if weights may have a mean below 1), in shares p that are worth `n` rows. If a model predicts
    rewards: also its prediction q of the logged arm and e of the policy, from 0 to 1."""

    weight: Floats
    reward: Floats
    share: Floats
    n: float
    most: float
    said: Floats | None = None
    expected: Floats | None = None

    @property
    def controls(self) -> Floats:
        """(k, rows): w - 1 and, with a model, w q - e. Their means are 0."""
        rows = [self.weight - 1.0]
        if self.said is not None and self.expected is not None:
            rows.append(self.weight * self.said - self.expected)
        return np.array(rows)

    def possible(self) -> Floats:
        """(k, corners): controls at the corners of what is possible, at w = 0 and w = most. The latter are divided by
        `most`, which may be infinite."""
        inverse = 1.0 / self.most
        if self.said is None or self.expected is None:
            return np.array([[-1.0, 1.0 - inverse]])
        low, high = float(self.expected.min()), float(self.expected.max())
        least, largest = min(low, float(self.said.min())), max(high, float(self.said.max()))
        corners = [(-1.0, -low), (-1.0, -high)]
        corners += [(1.0 - inverse, q - inverse * e) for q in (least, largest) for e in (low, high)]
        return np.array(corners).T


def likelihood_interval(sample: Sample, minus_logged: bool = False) -> tuple[float, float]:
    """The 95% interval of the mean of w r, or of w r - r."""
    low, high = _ends(sample, sample.weight * sample.reward - (sample.reward if minus_logged else 0.0), minus_logged)
    least = -1.0 if minus_logged else 0.0
    return min(max(low, least), 1.0), max(min(high, 1.0), least)


def mean_interval(reward: Floats, share: Floats, n: float) -> tuple[float, float]:
    """The 95% interval of the mean of rewards from 0 to 1 with equal weights."""
    return likelihood_interval(Sample(np.ones(len(reward)), reward, share, n, math.inf))


def _ends(sample: Sample, term: Floats, minus_logged: bool) -> tuple[float, float]:
    controls, corners = sample.controls, sample.possible()
    heavy = corners[0] >= 0.0  # corners at w = most, divided by it
    inverse = 1.0 / sample.most
    scale = np.where(heavy, inverse, 1.0)
    half = _quantile(sample, minus_logged) / 2.0
    phi = half / sample.n + _free(controls, corners, scale, sample.share, sample.n)
    top, bottom = heavy.astype(np.float64), np.zeros(len(heavy))  # largest and smallest w r there: r = 1 or 0
    if minus_logged:  # w r - r: from 0 to w - 1, and from -1 to 0
        top, bottom = np.where(heavy, 1.0, 0.0), np.where(heavy, -inverse, -1.0)
    high = _end(term, controls, corners, scale, top, sample.share, phi, sample.n)
    low = -_end(-term, controls, corners, scale, -bottom, sample.share, phi, sample.n)
    return low, high


def _quantile(sample: Sample, minus_logged: bool) -> float:
    """The quantile of twice the log likelihood ratio: Student's t squared, with the number of equal influences ψ, n
    (Σpψ²)²/Σpψ⁴, less one, as degrees of freedom. It approaches χ² for many equal rows. ψ is that of SNIPS, w (r - v),
    or of DR."""
    w, r, p = sample.weight, sample.reward, sample.share
    if sample.said is None or sample.expected is None:
        total = float(p @ w)
        influence = w * (r - (float(p @ (w * r)) / total if total > 0.0 else 0.0))
    else:
        influence = sample.expected + w * (r - sample.said)
        influence = influence - float(p @ influence)
    if minus_logged:
        influence = influence - (r - float(p @ r))
    squares = influence * influence
    first, second = float(p @ squares), float(p @ (squares * squares))
    alike = sample.n * first * first / second if second > 0.0 else sample.n
    return t_quantile(max(alike - 1.0, _LEAST)) ** 2


def _free(controls: Floats, corners: Floats, scale: Floats, share: Floats, n: float) -> float:
    """The largest Σ p log(1 + b'c) over b with 1 + b'c ≥ 0 at every possible row: how unlikely controls of mean 0 are,
    given the rows seen."""

    def asked(at: Floats, barrier: float) -> tuple[float, Floats, Floats]:
        z, edge = 1.0 + at @ controls, scale + at @ corners
        if z.min() <= 0.0 or edge.min() <= 0.0:
            return math.inf, at, at
        pull, push = controls / z, corners / edge
        value = -float(share @ np.log(z)) - barrier * float(np.log(edge).sum())
        slope = -(pull @ share) - barrier * push.sum(axis=1)
        return value, slope, (pull * share) @ pull.T + barrier * (push @ push.T)

    # Half of the reflection w ≥ 0, which is inside for weights of any size.
    start = np.zeros(len(controls))
    start[0] = 0.5
    return -_least(asked, start, n)


def _end(
    term: Floats, controls: Floats, corners: Floats, scale: Floats, most: Floats, share: Floats, phi: float, n: float
) -> float:
    """The upper end. `most` is the largest term at each corner. The point b = 2, a = 4 is inside at every corner."""
    design = np.vstack([np.ones(len(term)), controls])
    edges = np.vstack([scale, corners])

    def asked(at: Floats, barrier: float) -> tuple[float, Floats, Floats]:
        z, edge = at @ design - term, at @ edges - most
        if z.min() <= 0.0 or edge.min() <= 0.0:
            return math.inf, at, at
        mean = math.exp(float(share @ np.log(z)) - phi)
        pull, push = design / z, edges / edge
        first = pull @ share
        value = float(at[0]) - mean - barrier * float(np.log(edge).sum())
        slope = -mean * first - barrier * push.sum(axis=1)
        slope[0] += 1.0
        curve = mean * ((pull * share) @ pull.T - np.outer(first, first)) + barrier * (push @ push.T)
        return value, slope, curve

    start = np.zeros(len(design))
    start[:2] = 4.0, 2.0
    return _least(asked, start, n)


def _least(asked: Callable[[Floats, float], tuple[float, Floats, Floats]], at: Floats, n: float) -> float:
    """The smallest value, by damped Newton steps inside the barrier, which is lowered to a negligible weight."""
    value = math.inf
    for height in _BARRIERS:
        barrier = height / n
        value, slope, curve = asked(at, barrier)
        for _ in range(_STEPS):
            step = -_solved(curve, slope)
            falls = -float(slope @ step)
            if falls < _CLOSE:
                break
            size = 1.0
            while True:
                found = asked(at + size * step, barrier)
                if found[0] <= value - 1e-4 * size * falls or size < 1e-6:
                    break
                size *= 0.5
            if not found[0] < value:
                break
            at, (value, slope, curve) = at + size * step, found
    return asked(at, 0.0)[0]


def _solved(curve: Floats, slope: Floats) -> Floats:
    """The Newton step; the shortest one if rounding made the curvature singular."""
    try:
        return np.asarray(np.linalg.solve(curve, slope), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(curve, slope, rcond=None)[0], dtype=np.float64)
