"""Choices from sets that are no list: the index on a sheet, its largest point in the set, and its score there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels.point import EXPLORE, FINE, Floats
from driftwise.kernels.region import sheet as page
from driftwise.kernels.region.families import ACTING
from driftwise.policies.arms import Choice
from driftwise.policies.regions import Index, Peak, Region, lost

if TYPE_CHECKING:
    from driftwise.policies.base import Compiled, Live
    from driftwise.policies.state import State

_LISTS = "pass a list of arms, a grid of the set, say"


def check_region(policy: Compiled, region: Region) -> None:
    """Refuse a set that the policy cannot play."""
    if policy.sheet is None:
        name = type(policy).__name__
        wanted = "a policy whose index is known for every x: set rules and links of your own score lists alone"
        raise BadInput("arms", f"{type(region).__name__} for {name}", wanted, _LISTS)
    if region.dim != policy.dim:
        raise BadInput("arms", f"dimension {region.dim}", f"dimension {policy.dim}", "match policy and arms")
    if not region.reach <= policy.reach * (1.0 + 1e-9):
        wanted = f"a set with norms of at most L = {policy.reach:g}"
        raise BadInput("arms", f"norms up to {region.reach:.9g}", wanted, "rescale the arms or pass a larger L")


def choose_from(policy: Compiled, state: State, region: Region, number: int = ACTING) -> Choice:
    """The point of largest index; `number` says whose index it is (kernels/region/families.py), or which draw's."""
    live = policy._live
    if live.ball is not None and region.image is not None:
        return _at_once(live.ball, live, state, region.image)
    if live.judged:
        return _judged(policy, state, region)
    index = index_of(policy, state, number)
    if index.sheet.item(page.WEIGHT) < 0.0:
        wanted = 'optimistic=True: a multiplier below 0 makes an index that is largest nowhere near the edge'
        raise BadInput("arms", f"{type(region).__name__} for {type(policy).__name__}", wanted, _LISTS)
    peak = region.peak(index)
    mean, bonus = policy.score_at(state, peak.x.reshape(1, -1, 1), number)
    return _choice(peak, mean, bonus, index.score(peak.top))


def _at_once(ball: Callable[..., int], live: Live, state: State, image: tuple[Floats, bool]) -> Choice:
    """On a ball or an ellipsoid, in one call."""
    if state.sheet is None:
        state.sheet = Index(live.dim)
    x, sheet = np.empty(live.dim), state.sheet.sheet
    status = ball(*live.point, state.floats, state.ints, sheet, *image, x)
    if status != FINE:
        _failed(status)
    mean, bonus = sheet.item(page.MEAN), sheet.item(page.BONUS)
    x.flags.writeable = False
    score = mean + bonus
    return Choice.of_set(score, mean, bonus, x, None, max(0.0, sheet.item(page.TOP) - score))


def _failed(status: int) -> None:
    from driftwise.policies.base import report

    report(status)
    lost()


def index_of(policy: Compiled, state: State, number: int = ACTING) -> Index:
    """The index as it is now, on the state's own sheet: the state must be held, and the next search writes over it."""
    live = policy._live
    if state.sheet is None:
        state.sheet = Index(live.dim)
    index: Index = state.sheet
    status = live.sheet(*live.point, state.floats, state.ints, index.sheet, number)  # type: ignore[misc]
    if status != FINE:
        _failed(status)
    return index


def _choice(peak: Peak, mean: float, bonus: float, top: float) -> Choice:
    x, score = peak.x, mean + bonus
    x.flags.writeable = False
    return Choice.of_set(score, mean, bonus, x, peak.number, max(0.0, top - score))


def _judged(policy: Any, state: State, region: Region) -> Choice:
    """A bank of clicks with a theorem's radius: every memory proposes its best points, the best memory judges them."""
    peaks: list[Peak] = []
    gap = 0.0
    for lane in range(policy.lanes):
        e = float(policy.point.table[lane, EXPLORE])
        for factor in (1.0,) if e == 1.0 else (1.0, 1.0 / e if e > 0.0 else 1.0, e):
            index = index_of(policy, state, lane)
            index.sheet[page.WEIGHT] *= factor
            before = index.copy()
            peaks.append(region.peak(index))
            gap = max(gap, peaks[-1].top - float(before.values(peaks[-1].x[None])[0]))
    X = np.ascontiguousarray(np.array([one.x for one in peaks]).T)[None]
    found = policy._choose(state, X)
    peak = peaks[found.arm]
    score = found.mean + found.bonus
    return _choice(peak, found.mean, found.bonus, score + gap if math.isfinite(gap) else math.inf)
