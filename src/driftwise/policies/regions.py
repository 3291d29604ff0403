"""What a set of arms that is no list is to a policy (policies/shapes.py and curves.py have the sets).

It stands where arms stand, and owes the policy little: `dim`, `reach` (its longest arm), `peak`, the point of largest
index with a bound that none exceeds, `contains`, a uniform `draw`, and `support`, the largest x'θ.
"""

from __future__ import annotations

import zlib
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from driftwise._internal.validate import array
from driftwise.errors import BadInput, NumericalError
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import Floats
from driftwise.kernels.region import sheet as page
from driftwise.kernels.region.sheet import SUM, VECTORS, score_of, sheet_size, values_
from driftwise.policies.arms import Choice

# The first counter of uniform draws: 0 and 1 are the agent's.
COUNTER = 2


class Index:
    """The index of a policy as it is now, on a sheet (kernels/region/sheet.py); a search changes the sheet."""

    __slots__ = ("dim", "sheet")

    def __init__(self, dim: int, sheet: Floats | None = None) -> None:
        self.dim, self.sheet = dim, np.zeros(sheet_size(dim)) if sheet is None else sheet

    def copy(self) -> Index:
        """One of its own, for another search."""
        return Index(self.dim, self.sheet.copy())

    def number(self, place: int) -> float:
        """A number of the sheet."""
        return self.sheet.item(place)

    @property
    def theta(self) -> Floats:
        """θ, a view."""
        return self.sheet[page.NUMBERS : page.NUMBERS + self.dim]

    @property
    def A(self) -> Floats:
        """The square of the norm that arms are known by, a view."""
        start = page.NUMBERS + VECTORS * self.dim
        return self.sheet[start : start + self.dim**2].reshape(self.dim, self.dim)

    @property
    def sums(self) -> bool:
        """Whether it is μ(z) + spread, which is not convex."""
        return self.number(page.KIND) == SUM

    def values(self, points: Floats) -> Floats:
        """The index at points (n, d); of one that rises, before its link."""
        out = np.empty(len(points))
        values_(self.sheet, points, out)
        return out

    def score(self, value: float) -> float:
        """A value or a bound as a score."""
        kind, link = self.sheet.item(page.KIND), self.sheet.item(page.LINK_CODE)
        return value if kind == SUM or link == IDENTITY else float(score_of(int(link), int(kind), value))


def lost() -> NoReturn:
    """Raise where a search found nothing."""
    raise NumericalError("the covariance of the index has no eigenvalues; the state holds numbers out of all scale")


class Peak(NamedTuple):
    """The point of largest index that a search found, a bound of the index before its link, and a curve's number."""

    x: Floats
    top: float
    number: float | None = None


class Drawn(NamedTuple):
    """A uniform draw, and how likely it was: a density where `dense`, by the set's own measure, a chance else."""

    x: Floats
    number: float | None
    share: float
    dense: bool


class Region:
    """What all sets share."""

    dim: int
    # Arms that can be counted: none, or as an agent's books have it, 0.
    count: ClassVar[int] = 0

    @property
    def measure(self) -> str | None:
        """What the density of a uniform draw is per unit of; "count" where it is a chance, None where it is neither."""
        return "volume"

    @property
    def image(self) -> tuple[Floats, bool] | None:
        """F, and whether it is F[0, 0]·I, of a set of all Fy with ‖y‖ ≤ 1; None of one that is no such."""
        return None

    @property
    def crc(self) -> int:
        """A checksum, to know the set again by."""
        return zlib.crc32(repr(self).encode())

    @property
    def reach(self) -> float:
        """The longest arm."""
        raise NotImplementedError

    def peak(self, index: Index) -> Peak:
        """The point of largest index."""
        raise NotImplementedError

    def contains(self, x: Floats) -> bool:
        """Whether a vector is one of its arms, up to rounding."""
        raise NotImplementedError

    def draw(self, low: int, high: int, number: int) -> Drawn:
        """A uniform draw: a hash of a key in two halves and a number."""
        raise NotImplementedError

    def support(self, theta: Floats) -> Floats:
        """The largest x'θ for every row of theta (n, d)."""
        raise NotImplementedError

    def column(self, found: Choice) -> Floats:
        """The vector of a choice as (1, d, 1), a copy."""
        assert found.x is not None
        return found.x.reshape(1, -1, 1).copy()

    def vector(self, arm: Any) -> Floats:
        """An arm handed in, as a vector of this set, or the one sentence."""
        x = array("arm", arm, (self.dim,), "pass the x that choose gave")
        if not self.contains(x):
            raise BadInput("arm", arm, f"an arm of {self!r}", "pass the x that choose gave")
        return x
