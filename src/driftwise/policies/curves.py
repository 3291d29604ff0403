"""Curves: arms that are features of one number, such as a price (docs/math.md#continuous-sets, docs/sets.md).

Between two numbers a curve leaves its chord by at most bend·(distance)²/8. The index is convex, so on the chord it is
at most its value at the ends. The index at the ends plus what leaving the chord can add is therefore a bound. Intervals
are halved until no bound is above the best index by more than the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.products import dot, times
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.errors import BadInput
from driftwise.kernels.chance import uniform
from driftwise.kernels.links import IDENTITY, LOGISTIC, PROBIT, mean, slope
from driftwise.kernels.point import Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.tapes import waves_
from driftwise.policies.arms import Drawn
from driftwise.policies.regions import COUNTER, Region
from driftwise.policies.searching import Index, Peak

# The number of intervals at the start of a search, and the largest number of points it evaluates.
FIRST, MOST_POINTS = 64, 400_000
# The largest slope and curvature of the links that have one.
_STEEPEST = {IDENTITY: (1.0, 0.0), LOGISTIC: (0.25, 0.0963), PROBIT: (0.3990, 0.2420)}


@dataclass(frozen=True)
class Polynomial:
    """(1, u, …, u^degree)/√(degree + 1), u from -1 to 1 over the curve."""

    degree: int

    def __post_init__(self) -> None:
        keep_whole(self, "degree", 1, "pass 2 for a parabola")

    @property
    def dim(self) -> int:
        return self.degree + 1

    def __call__(self, numbers: Floats, low: float, high: float) -> Floats:
        u = (2.0 * numbers - low - high) / (high - low)
        rows = np.ones((len(u), self.dim))
        for power in range(1, self.dim):
            rows[:, power] = rows[:, power - 1] * u
        return rows / math.sqrt(self.dim)

    def bend(self, low: float, high: float) -> float:
        """An upper bound of the length of the second derivative."""
        square = sum(j * (j - 1) * j * (j - 1) for j in range(self.dim))
        return math.sqrt(square / self.dim) * (2.0 / (high - low)) * (2.0 / (high - low))

    def knots(self, low: float, high: float) -> Floats:
        """The numbers at which it is not smooth."""
        return np.array([low, high])


@dataclass(frozen=True)
class Fourier:
    """(1, cos 2πv, sin 2πv, …, cos 2πnv, sin 2πnv)/√(1 + n), v from 0 to 1 over a period; the curve by default."""

    terms: int
    period: float | None = None

    def __post_init__(self) -> None:
        keep_whole(self, "terms", 1, "pass 1 for one wave")
        if self.period is not None:
            real("period", self.period, 0.0, low_open=True, way_out="leave it out for the length of the curve")

    @property
    def dim(self) -> int:
        return 2 * self.terms + 1

    def __call__(self, numbers: Floats, low: float, high: float) -> Floats:
        v = 2.0 * math.pi * (numbers - low) / (self.period or high - low)
        rows = np.ones((len(v), self.dim))
        waves_(np.ascontiguousarray(v), self.terms, rows)
        return rows / math.sqrt(1.0 + self.terms)

    def bend(self, low: float, high: float) -> float:
        """An upper bound of the length of the second derivative."""
        square = sum(float(j * j * j * j) for j in range(1, self.terms + 1)) / (1.0 + self.terms)
        rate = 2.0 * math.pi / (self.period or high - low)
        return math.sqrt(square) * (rate * rate)

    def knots(self, low: float, high: float) -> Floats:
        """The numbers at which it is not smooth."""
        return np.array([low, high])


@dataclass(frozen=True)
class Spline:
    """B-splines over `pieces` equal intervals, cubic, or with degree=1 broken lines: they add up to 1 everywhere."""

    pieces: int
    degree: int = 3

    def __post_init__(self) -> None:
        keep_whole(self, "pieces", 1, "pass the number of intervals between knots")
        one_of("degree", self.degree, [1, 3])

    @property
    def dim(self) -> int:
        return self.pieces + self.degree

    def __call__(self, numbers: Floats, low: float, high: float) -> Floats:
        v = np.clip((numbers - low) / (high - low), 0.0, 1.0) * self.pieces
        piece = np.minimum(v.astype(np.int64), self.pieces - 1)
        t = v - piece
        parts = [1.0 - t, t]
        if self.degree == 3:
            square, cube = t * t, t * t * t
            parts = [
                (1.0 - t) * (1.0 - t) * (1.0 - t) / 6.0, (3.0 * cube - 6.0 * square + 4.0) / 6.0,
                (1.0 + 3.0 * t + 3.0 * square - 3.0 * cube) / 6.0, cube / 6.0,
            ]  # fmt: skip
        rows = np.zeros((len(v), self.dim))
        for k, part in enumerate(parts):
            rows[np.arange(len(v)), piece + k] = part
        return rows

    def bend(self, low: float, high: float) -> float:
        """An upper bound of the second derivative's length: 0 between knots of broken lines, at most √6 for cubics."""
        return 0.0 if self.degree == 1 else math.sqrt(6.0) * (self.pieces / (high - low)) * (self.pieces / (high - low))

    def knots(self, low: float, high: float) -> Floats:
        """The numbers at which it is not smooth."""
        return np.linspace(low, high, self.pieces + 1)


Smooth = Polynomial | Fourier | Spline


@dataclass(frozen=True)
class Curve(Region):
    """Arms φ(p) of a number p from low to high, e.g. features of a price.

    features: a `Polynomial`, `Fourier` or `Spline`, or a function of your own from numbers (n,) to vectors (n, d). For
    a function of your own give bend, an upper bound of ‖φ''‖, or slope, an upper bound of ‖φ'‖. With neither, pass
    certify=False: the best point of a fine grid is used, and its gap is infinite, because nothing is proven. The point
    chosen has an index within tolerance·max(1, |index|) of the largest.
    """

    features: Any
    low: float
    high: float
    tolerance: float = 1e-6
    bend: float | None = None
    slope: float | None = None
    certify: bool = True

    def __post_init__(self) -> None:
        real("low", self.low, -1e100, 1e100, way_out="pass the least number")
        real("high", self.high, self.low, 1e100, low_open=True, way_out="pass a number above low")
        real("tolerance", self.tolerance, 1e-12, 1.0, way_out="pass a share of the index, e.g. 1e-6")
        one_of("certify", self.certify, [True, False])
        for name in ("bend", "slope"):
            if getattr(self, name) is not None:
                real(name, getattr(self, name), 0.0, way_out="pass a bound of a derivative's length")
        if isinstance(self.features, Smooth):
            return
        if not callable(self.features):
            wanted = "dw.Polynomial(2), dw.Fourier(2), dw.Spline(8), or a function from numbers (n,) to vectors (n, d)"
            raise BadInput("features", self.features, wanted, "pass one of these")
        if self.certify and self.bend is None and self.slope is None:
            wanted = "bend= or slope= with features of your own, without which nothing is proven between two numbers"
            raise BadInput("features", self.features, wanted, "pass one of them, or certify=False")
        self._grid  # noqa: B018 - raises where the function does not give vectors

    @property
    def measure(self) -> str | None:
        return "length"

    def at(self, numbers: Any) -> Floats:
        """The arms of these numbers (n,)."""
        points = np.ascontiguousarray(numbers, dtype=np.float64)
        if isinstance(self.features, Smooth):
            made: Floats = self.features(points, float(self.low), float(self.high))
            return made
        rows = np.ascontiguousarray(self.features(points), dtype=np.float64)
        if rows.ndim != 2 or len(rows) != len(points) or not rows.size or not np.isfinite(rows).all():
            got = f"an array of shape {rows.shape}, or numbers that are not finite"
            raise BadInput("features", got, f"finite vectors ({len(points)}, d)", "take an array of numbers")
        return rows

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """The numbers at the start of a search, including those at which the curve is not smooth, and their arms."""
        low, high = float(self.low), float(self.high)
        knots = self.features.knots(low, high) if isinstance(self.features, Smooth) else np.array([low, high])
        each = max(1, (FIRST if self.certify else 4096) // (len(knots) - 1))
        shares = np.arange(each) / each
        numbers = np.append((knots[:-1, None] + np.diff(knots)[:, None] * shares).ravel(), high)
        return numbers, self.at(numbers)

    @cached_property
    def dim(self) -> int:  # type: ignore[override]
        return self.features.dim if isinstance(self.features, Smooth) else int(self._grid[1].shape[1])

    @cached_property
    def _leaves(self) -> tuple[float, float]:
        """The largest distance from a chord: (bend/8)·length² + (slope/2)·length, one of which is 0."""
        if isinstance(self.features, Smooth):
            return self.features.bend(float(self.low), float(self.high)) / 8.0, 0.0
        if self.bend is not None:
            return float(self.bend) / 8.0, 0.0
        return 0.0, float(self.slope or 0.0) / 2.0

    @cached_property
    def reach(self) -> float:
        """An upper bound of the norms: the longest arm of a grid plus what may lie between."""
        numbers, rows = self._grid
        step = float(np.diff(numbers).max())
        square, straight = self._leaves
        if isinstance(self.features, (Fourier, Spline)):
            return 1.0
        longest = math.sqrt(float((rows * rows).sum(axis=1).max()))
        return longest if isinstance(self.features, Polynomial) else longest + square * (step * step) + straight * step

    def peak(self, index: Index) -> Peak:
        """The point of largest index within the tolerance, by halving intervals whose bound is above it."""
        numbers, rows = self._grid
        values = index.values(rows)
        if not self.certify:
            return _Points(numbers, rows, values).best()._replace(top=math.inf)
        rates = _rates(index, self.reach)
        seen = _Points(numbers, rows, values)
        best, left, right = seen.best(), seen.part(slice(None, -1)), seen.part(slice(1, None))
        top, points = best.top, len(numbers)
        while True:
            bound = self._bound(index, left, right, *rates)
            above = bound > best.top + self.tolerance * max(1.0, abs(best.top))
            top = max(top, best.top, float(bound[~above].max(initial=-math.inf)))
            if not above.any() or points > MOST_POINTS:
                return best._replace(top=max(top, float(bound[above].max(initial=-math.inf))))
            left, right = left.part(above), right.part(above)
            middle = 0.5 * (left.numbers + right.numbers)
            found = self.at(middle)
            points += len(middle)
            new = _Points(middle, found, index.values(found))
            best = max(best, new.best(), key=lambda one: one.top)
            left, right = left.joined(new), new.joined(right)

    def _bound(self, index: Index, left: _Points, right: _Points, rate: float, bends: float) -> Floats:
        """An upper bound of the index between left and right."""
        length = right.numbers - left.numbers
        square, straight = self._leaves
        ends = 0.5 * (left.values + right.values) if straight > 0.0 else np.maximum(left.values, right.values)
        bound = ends + rate * (square * (length * length) + straight * length)
        if bends > 0.0 and straight == 0.0:
            across = times(right.rows - left.rows, index.theta)
            bound = bound + bends / 8.0 * (across * across)
        return np.asarray(bound)

    def vector(self, arm: Any) -> Floats:
        """An arm given by its number, or as a vector of the curve."""
        if np.ndim(arm) == 0:
            number = real("arm", arm, float(self.low), float(self.high), way_out="pass the number that choose gave")
            return np.asarray(self.at(np.array([number]))[0])
        return super().vector(arm)

    def contains(self, x: Floats) -> bool:
        """Whether a vector is on the curve, by the nearest point of a grid and a search around it."""
        numbers, rows = self._grid
        for _ in range(40):
            far = np.square(rows - x).sum(axis=1)
            if math.sqrt(float(far.min())) <= 1e-9 * max(1.0, self.reach):
                return True
            near = int(far.argmin())
            start, stop = numbers[max(near - 1, 0)], numbers[min(near + 1, len(numbers) - 1)]
            numbers = np.linspace(start, stop, 33)
            rows = self.at(numbers)
        return False

    def draw(self, low: int, high: int, number: int) -> Drawn:
        width = float(self.high) - float(self.low)
        at = float(self.low) + width * uniform(low, high, number, COUNTER, 0)
        return Drawn(self.at(np.array([at]))[0], at, 1.0 / width, True)

    def support(self, theta: Floats) -> Floats:
        """The largest x'θ, within the tolerance."""
        found = np.empty(len(theta))
        index = Index(self.dim)
        for row, one in enumerate(theta):
            index.theta[:] = one
            found[row] = dot(self.peak(index).x, one)
        return found


class _Points(NamedTuple):
    """Numbers of a curve, their arms, and the index there."""

    numbers: Floats
    rows: Floats
    values: Floats

    def best(self) -> Peak:
        """The first point with the largest index, which is also the bound so far."""
        place = int(self.values.argmax())
        return Peak(self.rows[place].copy(), float(self.values[place]), float(self.numbers[place]))

    def part(self, which: Any) -> _Points:
        return _Points(self.numbers[which], self.rows[which], self.values[which])

    def joined(self, other: _Points) -> _Points:
        return _Points(*(np.concatenate(two) for two in zip(self, other, strict=True)))


def _rates(index: Index, reach: float) -> tuple[float, float]:
    """The largest rate of change of an index in x and, for a sum, of the slope of its mean in z: μ may leave its
    chord."""
    link, theta = int(index.number(page.LINK_CODE)), index.theta
    length = math.sqrt(dot(theta, theta))
    wide = index.number(page.WEIGHT) * math.sqrt(float(np.abs(index.A).sum(axis=1).max()))
    if not index.sums:
        return length + wide, 0.0
    steepest, bends = _STEEPEST.get(link, (0.0, 0.0))
    if link not in _STEEPEST:
        steepest = bends = max(slope(link, length * reach), mean(link, length * reach))
    return steepest * length + wide, bends


