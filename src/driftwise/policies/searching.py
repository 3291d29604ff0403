"""Choices from continuous sets: the index as a form, its largest point in the set, and its score there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from driftwise.errors import BadInput, NumericalError
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import EXPLORE, FINE, Floats
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.families import ACTING
from driftwise.kernels.search.index_form import SUM, index_form_size, index_form_views, score_of, values_
from driftwise.policies.arms import Choice
from driftwise.policies.live import report

if TYPE_CHECKING:
    from driftwise.policies.base import Compiled
    from driftwise.policies.live import LiveCalls
    from driftwise.policies.regions import Region
    from driftwise.policies.state import State

_LISTS = "pass a list of arms, a grid of the set, say"


class Index:
    """The current index of a policy, as a form (kernels/search/index_form.py). A search changes the form."""

    __slots__ = ("dim", "form")

    def __init__(self, dim: int, form: Floats | None = None) -> None:
        self.dim, self.form = dim, np.zeros(index_form_size(dim)) if form is None else form

    def copy(self) -> Index:
        """A copy for another search."""
        return Index(self.dim, self.form.copy())

    def number(self, place: int) -> float:
        """A number of the form."""
        return self.form.item(place)

    @property
    def theta(self) -> Floats:
        """θ, a view."""
        row: Floats = index_form_views(self.form, self.dim).vec[page.THETA]
        return row

    @property
    def A(self) -> Floats:
        """The matrix of the norm in which arms are known, a view."""
        return index_form_views(self.form, self.dim).A

    @property
    def sums(self) -> bool:
        """Whether it is μ(z) + spread, which is not convex."""
        return self.number(page.KIND) == SUM

    def values(self, points: Floats) -> Floats:
        """The index at points (n, d); for one that increases, before its link."""
        out = np.empty(len(points))
        values_(self.form, points, out)
        return out

    def score(self, value: float) -> float:
        """A value or a bound as a score."""
        kind, link = self.form.item(page.KIND), self.form.item(page.LINK_CODE)
        return value if kind == SUM or link == IDENTITY else float(score_of(int(link), int(kind), value))


def lost() -> NoReturn:
    """Raise an error if a search found nothing."""
    raise NumericalError("the covariance of the index has no eigenvalues; the state holds numbers out of all scale")


class Peak(NamedTuple):
    """The point of largest index that a search found, an upper bound of the index before its link, and a curve's
    number."""

    x: Floats
    top: float
    number: float | None = None


def check_region(policy: Compiled, region: Region) -> None:
    """Refuse a set that the policy cannot play."""
    if policy.form is None:
        name = type(policy).__name__
        wanted = "a policy whose index is known for every x: set rules and links of your own score lists alone"
        raise BadInput("arms", f"{type(region).__name__} for {name}", wanted, _LISTS)
    if region.dim != policy.dim:
        raise BadInput("arms", f"dimension {region.dim}", f"dimension {policy.dim}", "match policy and arms")
    if not region.reach <= policy.reach * (1.0 + 1e-9):
        wanted = f"a set with norms of at most L = {policy.reach:g}"
        raise BadInput("arms", f"norms up to {region.reach:.9g}", wanted, "rescale the arms or pass a larger L")


def choose_from(policy: Compiled, state: State, region: Region, number: int = ACTING) -> Choice:
    """The point of largest index. `number` selects the index (kernels/search/families.py), or the draw."""
    live = policy._live
    if live.ball is not None and region.image is not None:
        return _at_once(live.ball, live, state, region.image)
    if live.judged:
        return _judged(policy, state, region)
    index = index_of(policy, state, number)
    if index.form.item(page.WEIGHT) < 0.0:
        wanted = 'optimistic=True: a multiplier below 0 makes an index that is largest nowhere near the edge'
        raise BadInput("arms", f"{type(region).__name__} for {type(policy).__name__}", wanted, _LISTS)
    peak = region.peak(index)
    if policy.own_form:
        return _by_form(policy, state, region, peak, number)
    found = policy.best_of(state, peak.x.reshape(1, -1, 1), number)
    return _choice(peak, found.mean, found.bonus, index.score(peak.top))


# Coordinates of a point that are smaller, in those of its largest one, are rounding of a search.
_ROUNDING = 1e-12


def _by_form(policy: Compiled, state: State, region: Region, peak: Peak, number: int) -> Choice:
    """The choice with mean and bonus as the form has them. To such a policy a coordinate that is not 0 is a feature
    that was seen, so that one of rounding becomes 0."""
    size = np.abs(peak.x)
    tiny = (size > 0.0) & (size < _ROUNDING * size.max())
    if peak.number is None and tiny.any() and region.contains(x := np.where(tiny, 0.0, peak.x)):
        peak = peak._replace(x=x)
    index = index_of(policy, state, number)  # the search has changed it
    score = index.score(float(index.values(peak.x[None])[0]))
    top = index.score(peak.top)
    index.form[page.WEIGHT] = 0.0
    mean = index.score(float(index.values(peak.x[None])[0]))
    return _choice(peak, mean, score - mean, top)


def _at_once(ball: Callable[..., int], live: LiveCalls, state: State, image: tuple[Floats, bool]) -> Choice:
    """The choice on a ball or an ellipsoid, in one call."""
    if state.form is None:
        state.form = Index(live.dim)
    x, form = np.empty(live.dim), state.form.form
    status = ball(*live.point, state.floats, state.ints, form, *image, x)
    if status != FINE:
        _failed(status)
    mean, bonus = form.item(page.MEAN), form.item(page.BONUS)
    x.flags.writeable = False
    score = mean + bonus
    return Choice.of_set(score, mean, bonus, x, None, max(0.0, form.item(page.TOP) - score))


def _failed(status: int) -> None:
    report(status)
    lost()


def index_of(policy: Compiled, state: State, number: int = ACTING) -> Index:
    """The current index, in the state's own form. The state must be held, and the next search overwrites it."""
    live = policy._live
    if state.form is None:
        state.form = Index(live.dim)
    index: Index = state.form
    status = live.form(*live.point, state.floats, state.ints, index.form, number)  # type: ignore[misc]
    if status != FINE:
        _failed(status)
    return index


def _choice(peak: Peak, mean: float, bonus: float, top: float) -> Choice:
    x, score = peak.x, mean + bonus
    x.flags.writeable = False
    return Choice.of_set(score, mean, bonus, x, peak.number, max(0.0, top - score))


def _judged(policy: Any, state: State, region: Region) -> Choice:
    """For a bank of clicks with a theorem's radius: every memory proposes its best points, the best memory judges
    them."""
    peaks: list[Peak] = []
    gap = 0.0
    for lane in range(policy.lanes):
        e = float(policy.point.table[lane, EXPLORE])
        for factor in (1.0,) if e == 1.0 else (1.0, 1.0 / e if e > 0.0 else 1.0, e):
            index = index_of(policy, state, lane)
            index.form[page.WEIGHT] *= factor
            before = index.copy()
            peaks.append(region.peak(index))
            gap = max(gap, peaks[-1].top - float(before.values(peaks[-1].x[None])[0]))
    X = np.ascontiguousarray(np.array([one.x for one in peaks]).T)[None]
    found = policy.best_of(state, X, ACTING)
    peak = peaks[found.arm]
    score = found.mean + found.bonus
    return _choice(peak, found.mean, found.bonus, score + gap if math.isfinite(gap) else math.inf)
