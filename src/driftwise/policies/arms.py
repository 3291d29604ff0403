"""Arms as a policy takes them, and what it says about them."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from driftwise._internal.validate import array
from driftwise.errors import BadInput
from driftwise.kernels.index import columns_
from driftwise.kernels.point import Floats

if TYPE_CHECKING:
    from driftwise.policies.regions import Region

# Arms rescaled to norm L come out a rounding error longer; that is no reason to refuse them.
NORM_SLACK = 1e-9
_DOUBLE = np.dtype(np.float64)


def norm_slack(arms: object) -> float:
    """By what share a norm may exceed L: the rounding of the arms' own type, which float32 has more of."""
    kind = getattr(arms, "dtype", None)
    if kind is None or kind is _DOUBLE or kind.kind != "f":
        return NORM_SLACK
    return max(NORM_SLACK, 4.0 * float(np.finfo(kind).eps))

ROWS = "pass an array (n, d) with one arm a row"


class _Four(NamedTuple):
    arm: int
    score: float
    mean: float
    bonus: float


class Choice(_Four):
    """The arm to play, with its optimistic score = mean + bonus: four numbers.

    From a set that is no list (dw.Ball, …) `arm` is -1 and `x` the vector to play, with its `number` on a curve; no arm
    of the set has a score more than `gap` above this one's, and infinite says that nothing is proven.
    """

    x: Floats | None = None
    number: float | None = None
    gap: float = 0.0

    @classmethod
    def of_set(
        cls, score: float, mean: float, bonus: float, x: Floats, number: float | None, gap: float
    ) -> Choice:
        """A point of a set that is no list."""
        found = tuple.__new__(cls, (-1, score, mean, bonus))
        found.x, found.number, found.gap = x, number, gap
        return found

    def __repr__(self) -> str:
        told = super().__repr__()
        return told if self.x is None else f"{told[:-1]}, x={self.x}, number={self.number}, gap={self.gap})"


class Scores(NamedTuple):
    """Mean and bonus of every arm."""

    mean: Floats
    bonus: Floats

    @property
    def score(self) -> Floats:
        return self.mean + self.bonus

    def best(self) -> Choice:
        """The arm of largest score, the first of them in a tie."""
        arm = int(self.score.argmax())
        return Choice(arm, float(self.mean[arm] + self.bonus[arm]), float(self.mean[arm]), float(self.bonus[arm]))


def _numeric(values: object) -> bool:
    return type(values) is np.ndarray and values.dtype.kind in "fiu"  # masked arrays and others take the long way


class ArmSet:
    """Arms checked and laid out once, for use in many rounds: `columns` is (1, d, n), an arm a column."""

    __slots__ = ("_crc", "columns", "count", "dim", "longest", "shortest_reach", "slack")
    count: int
    dim: int

    def __init__(self, arms: npt.ArrayLike) -> None:
        rows = np.ascontiguousarray(arms, dtype=_DOUBLE) if _numeric(arms) else None
        if rows is None or rows.ndim != 2 or not rows.size:
            rows = array("arms", arms, (None, None), ROWS)
        self.count, self.dim = rows.shape
        self.slack = norm_slack(arms)
        self.columns = np.empty((1, self.dim, self.count))
        self.longest = columns_(rows, self.columns)
        if not math.isfinite(self.longest):
            array("arms", rows, (None, None), ROWS)
            raise BadInput("arms", "norms that overflow", "norms of at most 1e150", "rescale the arms")

        self.shortest_reach = self.longest / (1.0 + self.slack)  # the least L that takes these arms

        self._crc: int | None = None

    def __len__(self) -> int:
        return self.count

    def column(self, found: Choice) -> Floats:
        """The vector of a choice as (1, d, 1), a copy."""
        return self.columns[:, :, found.arm : found.arm + 1].copy()

    @property
    def crc(self) -> int:
        """A checksum of all numbers, taken once."""
        if self._crc is None:
            self._crc = zlib.crc32(self.columns.data)
        return self._crc


Arms: TypeAlias = "ArmSet | Region | npt.ArrayLike"
