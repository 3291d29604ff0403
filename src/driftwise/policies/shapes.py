"""Balls, ellipsoids, boxes, and unions of sets and lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise._internal.elementary import power
from driftwise._internal.products import factor, length, solved, times
from driftwise._internal.validate import array, keep_whole, one_of, real
from driftwise.errors import BadInput
from driftwise.kernels.chance import normal, uniform
from driftwise.kernels.point import Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.ball import summit_
from driftwise.kernels.search.corners import climb_, corner_
from driftwise.kernels.solvers.eigen import eigen_
from driftwise.policies.arms import NORM_SLACK, ArmSet, Drawn
from driftwise.policies.regions import COUNTER, Region
from driftwise.policies.searching import Index, Peak, lost

# The most sides of a box whose vertices a tree visits, and the starts of a coordinate ascent without a proof.
MOST_SIDES, STARTS = 20, 16


def _summit(image: tuple[Floats, bool], index: Index) -> Peak:
    x = np.empty(index.dim)
    if not summit_(index.form, *image, x):
        lost()
    return Peak(x, index.number(page.TOP))


@dataclass(frozen=True)
class Ball(Region):
    """All vectors of norm at most `radius`."""

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        keep_whole(self, "dim", 1, "pass the number of features of an arm")
        real("radius", self.radius, 0.0, 1e100, low_open=True, way_out="pass the length of the longest arm")

    @cached_property
    def reach(self) -> float:
        return float(self.radius)

    @cached_property
    def image(self) -> tuple[Floats, bool]:
        return np.array([[self.reach]]), True

    def peak(self, index: Index) -> Peak:
        """Exact: the longest point of the confidence ellipsoid, by a secular equation."""
        return _summit(self.image, index)

    def contains(self, x: Floats) -> bool:
        return length(x) <= self.radius * (1.0 + NORM_SLACK)

    def draw(self, low: int, high: int, number: int) -> Drawn:
        y = _within(low, high, number, self.dim)
        volume = _unit_volume(self.dim) * power(self.reach, float(self.dim))
        return Drawn(self.radius * y, None, 1.0 / volume, True)

    def support(self, theta: Floats) -> Floats:
        return np.asarray(self.radius * np.sqrt((theta * theta).sum(axis=1)))


def _within(low: int, high: int, number: int, dim: int) -> Floats:
    """A uniform point of the unit ball."""
    y = np.array([normal(low, high, number, COUNTER + i, 0) for i in range(dim)])
    return np.asarray(power(uniform(low, high, number, COUNTER + dim, 0), 1.0 / dim) / length(y) * y)


def _unit_volume(dim: int) -> float:
    return 1.0 + dim % 2 if dim < 2 else _unit_volume(dim - 2) * (2.0 * math.pi / dim)


@dataclass(frozen=True)
class Ellipsoid(Region):
    """All x with x'E⁻¹x ≤ 1, E = shape symmetric and positive definite: E = r²I is a ball of radius r."""

    shape: Any

    def __post_init__(self) -> None:
        way_out = "pass a symmetric positive definite matrix (d, d)"
        rows = array("shape", self.shape, (None, None), way_out)
        if rows.shape[0] != rows.shape[1] or not np.allclose(rows, rows.T, rtol=1e-9, atol=0.0):
            raise BadInput("shape", "no symmetric matrix", "a symmetric matrix (d, d)", way_out)
        object.__setattr__(self, "shape", tuple(map(tuple, rows.tolist())))
        try:
            self._factor  # noqa: B018 - raises where it is not positive definite
        except np.linalg.LinAlgError:
            raise BadInput("shape", "a matrix with an eigenvalue of 0 or below", "a positive definite one",
                           way_out) from None

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.shape)

    @cached_property
    def _matrix(self) -> Floats:
        return np.array(self.shape)

    @cached_property
    def _factor(self) -> Floats:
        return factor(self._matrix)

    @cached_property
    def image(self) -> tuple[Floats, bool]:
        return self._factor, False

    @cached_property
    def reach(self) -> float:
        values, rows, beside = np.empty(self.dim), np.empty((self.dim, self.dim)), np.empty(self.dim)
        if not eigen_(self._matrix.copy(), values, rows, beside):
            lost()
        return math.sqrt(float(values.max()))

    def peak(self, index: Index) -> Peak:
        """Exact, as on the ball of which it is an image."""
        return _summit(self.image, index)

    def contains(self, x: Floats) -> bool:
        y = solved(self._factor, x)
        return length(y) <= 1.0 + NORM_SLACK

    def draw(self, low: int, high: int, number: int) -> Drawn:
        volume = _unit_volume(self.dim) * float(np.prod(np.diag(self._factor)))
        return Drawn(times(self._factor, _within(low, high, number, self.dim)), None, 1.0 / volume, True)

    def support(self, theta: Floats) -> Floats:
        return np.asarray(np.sqrt((times(theta, self._matrix) * theta).sum(axis=1)))


@dataclass(frozen=True)
class Box(Region):
    """All x with low ≤ x ≤ high, coordinate by coordinate.

    The index of a linear rule is convex, so a vertex is best. A tree over the sides finds it exactly, in up to 20
    dimensions. certify=False uses coordinate ascent from several starts, in any dimension and for every rule; the gap
    of a choice is then infinite, because nothing is proven.
    """

    low: Any
    high: Any
    certify: bool = True

    def __post_init__(self) -> None:
        low = array("low", self.low, (None,), "pass the least number of every coordinate")
        high = array("high", self.high, (len(low),), "pass the largest number of every coordinate")
        if not (low < high).all():
            raise BadInput("high", self.high, "numbers above those of low", "leave out a coordinate that is fixed")
        if not math.isfinite(float(np.abs(low).max() + np.abs(high).max())) or max(-low.min(), high.max()) > 1e100:
            raise BadInput("high", "numbers beyond 1e100", "sides whose squares fit in a double", "rescale the arms")
        one_of("certify", self.certify, [True, False])
        object.__setattr__(self, "low", tuple(low.tolist()))
        object.__setattr__(self, "high", tuple(high.tolist()))

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.low)

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        return np.array(self.low), np.array(self.high)

    @cached_property
    def reach(self) -> float:
        low, high = self._ends
        return math.sqrt(float(np.square(np.maximum(np.abs(low), np.abs(high))).sum()))

    def peak(self, index: Index) -> Peak:
        """The best vertex, or the result of coordinate ascent."""
        low, high = self._ends
        x = np.empty(self.dim)
        if not self.certify:
            climb_(index.form, low, high, self._starts(index), x)
            return Peak(x, math.inf)
        if self.dim > MOST_SIDES:
            wanted = f"at most {MOST_SIDES} dimensions, for a box has 2^d vertices"
            raise BadInput("arms", f"a box of {self.dim} dimensions", wanted, "pass certify=False to Box")
        if index.sums:
            wanted = "an index that is convex: that of a linear rule or of a posterior"
            raise BadInput("arms", "a box and a GLB or SCB rule", wanted, "pass certify=False to Box, or a Ball")
        corner_(index.form, low, high, x)
        return Peak(x, index.number(page.TOP))

    def _starts(self, index: Index) -> Floats:
        """The vertex that θ alone would choose, its opposite, the middle, and corners in a fixed pattern."""
        low, high = self._ends
        up = index.theta >= 0.0
        rows = [np.where(up, high, low), np.where(up, low, high), 0.5 * (low + high)]
        for k in range(STARTS - len(rows)):
            rows.append(np.where([uniform(k, 0, i, 0, 0) < 0.5 for i in range(self.dim)], high, low))
        return np.array(rows)

    def contains(self, x: Floats) -> bool:
        low, high = self._ends
        slack = NORM_SLACK * np.maximum(1.0, high - low)
        return bool(((x >= low - slack) & (x <= high + slack)).all())

    def draw(self, low: int, high: int, number: int) -> Drawn:
        start, stop = self._ends
        shares = np.array([uniform(low, high, number, COUNTER + i, 0) for i in range(self.dim)])
        return Drawn(start + (stop - start) * shares, None, 1.0 / float(np.prod(stop - start)), True)

    def support(self, theta: Floats) -> Floats:
        low, high = self._ends
        return np.asarray(np.where(theta >= 0.0, theta * high, theta * low).sum(axis=1))


@dataclass(frozen=True, init=False)
class Union(Region):
    """Several sets, or lists of arms (n, d), as one. Of equal indices that of the first part is chosen."""

    parts: tuple[Any, ...]

    def __init__(self, *parts: Region | npt.ArrayLike) -> None:
        if not parts:
            raise BadInput("parts", parts, "at least one set or list of arms", "pass dw.Ball(2), say")
        made = tuple(one if isinstance(one, Region) else Listed.of(one) for one in parts)
        sizes = {one.dim for one in made}
        if len(sizes) > 1:
            raise BadInput("parts", f"dimensions {sorted(sizes)}", "parts of one dimension", "match them")
        object.__setattr__(self, "parts", made)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return int(self.parts[0].dim)

    @property
    def reach(self) -> float:
        return max(float(one.reach) for one in self.parts)

    @property
    def measure(self) -> str | None:
        kinds = {one.measure for one in self.parts}
        return kinds.pop() if len(kinds) == 1 else None

    def peak(self, index: Index) -> Peak:
        """The best of the parts' points."""
        peaks = [one.peak(index.copy()) for one in self.parts]
        values = index.values(np.array([one.x for one in peaks]))
        best: Peak = peaks[int(values.argmax())]
        return best._replace(top=max(one.top for one in peaks))

    def contains(self, x: Floats) -> bool:
        return any(one.contains(x) for one in self.parts)

    def draw(self, low: int, high: int, number: int) -> Drawn:
        """A part, all equally likely, then a uniform draw of it."""
        count = len(self.parts)
        part = min(int(uniform(low, high, number, COUNTER, 1) * count), count - 1)
        drawn = self.parts[part].draw(low, high, number)
        return Drawn(drawn.x, drawn.number, drawn.share / count, drawn.dense)

    def support(self, theta: Floats) -> Floats:
        return np.asarray(np.max([one.support(theta) for one in self.parts], axis=0))


@dataclass(frozen=True)
class Listed(Region):
    """A list of arms, as a part of a union."""

    rows: tuple[tuple[float, ...], ...]

    @property
    def measure(self) -> str | None:
        return "count"

    @classmethod
    def of(cls, arms: npt.ArrayLike | ArmSet) -> Listed:
        """A checked list."""
        prepared = arms if isinstance(arms, ArmSet) else ArmSet(arms)
        return cls(tuple(map(tuple, prepared.columns[0].T.tolist())))

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.rows[0])

    @cached_property
    def _rows(self) -> Floats:
        return np.array(self.rows)

    @cached_property
    def reach(self) -> float:
        return math.sqrt(float(np.square(self._rows).sum(axis=1).max()))

    def peak(self, index: Index) -> Peak:
        values = index.values(self._rows)
        best = int(values.argmax())
        return Peak(self._rows[best].copy(), float(values[best]))

    def contains(self, x: Floats) -> bool:
        return bool((np.abs(self._rows - x).max(axis=1) <= NORM_SLACK * max(1.0, self.reach)).any())

    def draw(self, low: int, high: int, number: int) -> Drawn:
        count = len(self.rows)
        place = min(int(uniform(low, high, number, COUNTER, 0) * count), count - 1)
        return Drawn(self._rows[place].copy(), None, 1.0 / count, False)

    def support(self, theta: Floats) -> Floats:
        return np.asarray(times(theta, self._rows).max(axis=1))
