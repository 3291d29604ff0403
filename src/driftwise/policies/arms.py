"""Arms as a policy accepts them, and choices and scores as it returns them."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from driftwise._internal.validate import array, contiguous, is_integer
from driftwise.errors import BadInput
from driftwise.kernels.chance import uniform
from driftwise.kernels.index import columns_
from driftwise.kernels.point import Floats, Ints

if TYPE_CHECKING:
    from driftwise.policies.base import Compiled
    from driftwise.policies.state import State

# Arms that were rescaled to norm L may be longer by a rounding error, which is accepted.
NORM_SLACK = 1e-9
_DOUBLE = np.dtype(np.float64)


def norm_slack(arms: object) -> float:
    """The share by which a norm may exceed L: the rounding of the arms' own type, which is larger for float32."""
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
    """The arm to play, with its optimistic score = mean + bonus.

    For a continuous set (dw.Ball, …) `arm` is -1 and `x` is the vector to play, with its `number` on a curve. No arm of
    the set has a score more than `gap` above this one's; an infinite gap means that nothing is proven.
    """

    x: Floats | None = None
    number: float | None = None
    gap: float = 0.0

    @classmethod
    def of_set(
        cls, score: float, mean: float, bonus: float, x: Floats, number: float | None, gap: float
    ) -> Choice:
        """A point of a continuous set."""
        found = tuple.__new__(cls, (-1, score, mean, bonus))
        found.x, found.number, found.gap = x, number, gap
        return found

    def __repr__(self) -> str:
        text = super().__repr__()
        return text if self.x is None else f"{text[:-1]}, x={self.x}, number={self.number}, gap={self.gap})"


class Scores(NamedTuple):
    """Mean and bonus of every arm."""

    mean: Floats
    bonus: Floats

    @property
    def score(self) -> Floats:
        return self.mean + self.bonus

    def best(self) -> Choice:
        """The arm with the largest score; the first one of a tie."""
        arm = int(self.score.argmax())
        return Choice(arm, float(self.mean[arm] + self.bonus[arm]), float(self.mean[arm]), float(self.bonus[arm]))


class Drawn(NamedTuple):
    """A uniform draw, its number on a curve or its index in a list, and how likely it was: a density by the set's own
    measure if `dense`, otherwise a probability."""

    x: Floats
    number: float | None
    share: float
    dense: bool


class ActionSet:
    """The arms to choose from: a list of arms (ArmSet), or a continuous set (policies/regions.py).

    `listed` says which. Only arms of a list have indices, names and costs. `count` of a continuous set is 0.
    """

    __slots__ = ()
    listed: ClassVar[bool]
    dim: int
    count: int

    @property
    def reach(self) -> float:
        """The longest arm."""
        raise NotImplementedError

    @property
    def measure(self) -> str | None:
        """The unit of the density of a uniform draw; "count" if it is a probability, None if it is neither."""
        raise NotImplementedError

    @property
    def crc(self) -> int:
        """A checksum that identifies the set."""
        raise NotImplementedError

    @property
    def arms(self) -> ArmSet:
        """The list, or a BadInput."""
        raise NotImplementedError

    def check_for(self, policy: Compiled) -> None:
        """Refuse a policy that cannot play the set."""
        raise NotImplementedError

    def best(self, policy: Compiled, state: State, number: int) -> Choice:
        """The arm with the largest index; the state is held. `number` selects the index, or the draw."""
        raise NotImplementedError

    def observed(self, policy: Compiled, arm: Any) -> Floats:
        """A given arm as an update needs it (1, d, 1), or a BadInput."""
        raise NotImplementedError

    def column(self, found: Choice) -> Floats:
        """The vector of a choice as (1, d, 1), a copy."""
        raise NotImplementedError

    def draw(self, low: int, high: int, number: int) -> Drawn:
        """A uniform draw: a hash of a key in two halves and a number."""
        raise NotImplementedError


class ArmSet(ActionSet):
    """Arms that are checked and laid out once, for many rounds: `columns` is (1, d, n), one arm per column."""

    __slots__ = ("_crc", "columns", "count", "dim", "longest", "shortest_reach", "slack")
    listed = True
    measure = "count"

    def __init__(self, arms: npt.ArrayLike) -> None:
        plain = type(arms) is np.ndarray and arms.dtype.kind in "fiu"  # masked arrays and others are checked in full
        rows = contiguous(arms) if plain else None
        if rows is None or rows.ndim != 2 or not rows.size:
            rows = array("arms", arms, (None, None), ROWS)
        self.count, self.dim = rows.shape
        self.slack = norm_slack(arms)
        self.columns = np.empty((1, self.dim, self.count))
        self.longest = columns_(rows, self.columns)
        if not math.isfinite(self.longest):
            array("arms", rows, (None, None), ROWS)
            raise BadInput("arms", "norms that overflow", "norms of at most 1e150", "rescale the arms")

        self.shortest_reach = self.longest / (1.0 + self.slack)  # the smallest L that accepts these arms

        self._crc: int | None = None

    def __len__(self) -> int:
        return self.count

    @property
    def reach(self) -> float:
        return self.longest

    @property
    def arms(self) -> ArmSet:
        return self

    def check_for(self, policy: Compiled) -> None:
        if self.dim != policy.dim:
            raise BadInput("arms", f"dimension {self.dim}", f"dimension {policy.dim}", "match policy and arms")
        if not self.longest <= policy.reach * (1.0 + self.slack):
            norms = np.sqrt(np.square(self.columns[0]).sum(axis=0))
            row = int(np.argmax(norms))
            check_norm(float(norms[row]), policy.reach, self.slack, row)

    def best(self, policy: Compiled, state: State, number: int) -> Choice:
        return policy.best_of(state, self.columns, number)

    def observed(self, policy: Compiled, arm: Any) -> Floats:
        return observed_row(self.columns[0].T, arm, policy, self.slack)

    def column(self, found: Choice) -> Floats:
        return self.columns[:, :, found.arm : found.arm + 1].copy()

    def draw(self, low: int, high: int, number: int) -> Drawn:
        place = min(int(uniform(low, high, number, 1, 0) * self.count), self.count - 1)
        return Drawn(self.columns[0, :, place].copy(), place, 1.0 / self.count, False)

    def only(self, places: Ints) -> ArmSet:
        """The arms with these indices."""
        return ArmSet(np.ascontiguousarray(self.columns[0].T[places]))

    @property
    def crc(self) -> int:
        """A checksum of all numbers, computed once."""
        if self._crc is None:
            self._crc = zlib.crc32(self.columns.data)
        return self._crc


Arms: TypeAlias = "ActionSet | npt.ArrayLike"


def action_set(arms: Arms) -> ActionSet:
    """Arms as a checked set."""
    return arms if isinstance(arms, ActionSet) else ArmSet(arms)


def observed_arm(arms: Arms, arm: Any, policy: Compiled) -> Floats:
    """An arm as an update needs it (1, d, 1), or a BadInput. Of a list that was not prepared only one row is read."""
    if isinstance(arms, ActionSet):
        return arms.observed(policy, arm)
    numbers = isinstance(arms, np.ndarray) and arms.dtype.kind in "fiu" and arms.ndim == 2 and len(arms) > 0
    rows: Any = arms if numbers else array("arms", arms, (None, None), ROWS)
    return observed_row(rows, arm, policy, norm_slack(rows))


def observed_row(rows: Floats, arm: Any, policy: Compiled, slack: float) -> Floats:
    """An arm of a list by its index."""
    if rows.ndim != 2 or rows.shape[1] != policy.dim:
        raise BadInput("arms", f"shape {rows.shape}", f"an array of shape (n, {policy.dim})", ROWS)
    if not is_integer(arm) or not 0 <= arm < len(rows):
        raise BadInput("arm", arm, f"a whole number from 0 to {len(rows) - 1}", "pass the arm that choose gave")
    x = np.empty((1, policy.dim, 1))
    norm = columns_(contiguous(rows[arm : arm + 1]), x)
    check_norm(norm, policy.reach, slack, int(arm))
    return x


def check_norm(norm: float, reach: float, slack: float, row: int) -> None:
    """Refuse an arm that is longer than the policy accepts."""
    if not norm <= reach * (1.0 + slack):
        wanted = f"finite arms with norms of at most L = {reach:g}"
        raise BadInput("arms", f"norm {norm:.9g} in row {row}", wanted, "rescale the arms or pass a larger L")
