"""The check of a loaded state against its policy: everything that enters compiled code must be in range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels.adapt.book import EXCESS, LEAST, TICK
from driftwise.kernels.auto.gauge import AVERAGE, ERROR_WEIGHT, EVIDENCE, GUESSED, KNOWN, LAST, LEANS, SEEN, TURN
from driftwise.kernels.groups import COUNTERS, DEMANDS
from driftwise.kernels.point import (
    ATOMS,
    CLOCK,
    COUNT,
    DIM,
    DROPPED,
    FAILED,
    HEAD,
    LANES,
    LOST,
    REMOVED,
    ROOM,
    SINCE,
    SIZE,
    SQUARES,
    USED,
    WEIGHT,
    Floats,
    Ints,
)
from driftwise.policies.state import State

# Clocks are doubles: beyond this a tick is lost in rounding.
LATEST = 2.0**53
# Sums of possible observations are smaller.
MOST_SUM = 1e250
_AGAIN = "load the last state that was saved whole"


class Vetted(NamedTuple):
    """A state's groups and flags, and the limits of its policy: norms up to L, rewards in a range."""

    groups: dict[str, Any]
    flags: Ints
    L: float
    rewards: tuple[float, float]

    @property
    def believes(self) -> bool:
        """Whether noise and scale are learned: then sums need a margin for further arithmetic."""
        return "gauge" in self.groups


def _no(name: str, got: str, wanted: str) -> BadInput:
    return BadInput(f"state.{name}", got, wanted, _AGAIN)


def vet(state: State, L: float, rewards: tuple[float, float]) -> None:
    """Check that numbers are finite, and what kernels/groups.py demands of every group; otherwise BadInput."""
    vetted = Vetted(state.groups(), state.layout.flags, L, rewards)
    for name, values in vetted.groups.items():
        if values.dtype == np.float64:
            _check_finite(name, values)
    for name, values in vetted.groups.items():
        for demand in DEMANDS.get(name, ()):
            if demand in _CHECKS:
                _CHECKS[demand](vetted, name, values)
            elif demand not in _INFINITE:
                holds, got, wanted = _LIMITS[demand]
                if not holds(vetted, values):
                    raise _no(name, got, wanted)


# Only values of events that have not happened may be infinite: the last restart, MASTER's smallest index, a bound on an
# arm.
_INFINITE: dict[str, tuple[Any, float]] = {
    "-inf since": (np.s_[:, SINCE], -np.inf),
    "inf least": (LEAST, np.inf),
    "inf": (np.s_[:], np.inf),
}


def _check_finite(name: str, values: Floats) -> None:
    good = np.isfinite(values)
    for demand in DEMANDS.get(name, ()):
        if demand in _INFINITE:
            where, number = _INFINITE[demand]
            good[where] |= values[where] == number
    if not good.all():
        place = [int(i) for i in np.argwhere(~good)[0]]
        raise _no(name, f"{values[tuple(place)]} at {place}", "finite numbers")


def _check_counters(vetted: Vetted, name: str, counters: Floats) -> None:
    for column in range(COUNTERS):
        low = -np.inf if column == SINCE else 0.0
        slack = 1e-6 if column in (WEIGHT, SQUARES, LOST) else 0.0  # rounding after many removals
        values = counters[:, column]
        if not ((values >= low - slack) & (values <= LATEST)).all():
            raise _no(name, f"{values.tolist()} in column {column}", f"numbers from {low:g} to 2^53")
    whole = counters[:, [COUNT, DROPPED, FAILED]]
    if (whole != np.floor(whole)).any() or (counters[:, SINCE] > counters[:, CLOCK]).any():
        raise _no(name, "a count that is not whole, or a restart in the future", "counters of learned rewards")


def _check_cursor(vetted: Vetted, name: str, cursor: Ints) -> None:
    room, atoms = int(vetted.flags[ROOM]), int(vetted.flags[ATOMS])
    for place, largest in {HEAD: max(0, room - 1), SIZE: room, REMOVED: 2**53, USED: atoms}.items():
        value = int(cursor[place])
        if not 0 <= value <= largest:
            raise _no(f"{name}[{place}]", str(value), f"a whole number from 0 to {largest}")


def _check_observations(vetted: Vetted, name: str, ring: Floats) -> None:
    """Check that observations are possible: arms not longer than L, rewards in range."""
    low, high = vetted.rewards
    _check_arms(vetted, name, ring[:, :-2].T)
    if not ((ring[:, -2] >= min(low, 0.0)) & (ring[:, -2] <= max(high, 0.0))).all():
        raise _no(name, "a reward out of range", f"rewards from {low:g} to {high:g}")


def _check_arms(vetted: Vetted, name: str, columns: Floats) -> None:
    with np.errstate(over="ignore"):
        longest = float(np.sqrt((columns * columns).sum(axis=0)).max(initial=0.0))
    if not longest <= vetted.L * (1.0 + 1e-3):
        raise _no(name, f"a vector of norm {longest:g}", f"norms up to L = {vetted.L:g}")


def _check_gauge(vetted: Vetted, name: str, gauge: Floats) -> None:
    """Check what Auto knows: counts, sums of squares, units, and a first guess that has some weight."""
    d = int(vetted.flags[DIM])
    squares, counts, inverse = gauge[KNOWN : KNOWN + 3 * d].reshape(3, -1)
    good = 0.0 <= gauge[SEEN] <= LATEST and (np.abs(gauge) <= MOST_SUM).all()
    good = good and (np.delete(gauge[:KNOWN], [AVERAGE, LAST, EVIDENCE, LEANS]) >= 0.0).all()
    good = good and gauge[GUESSED] + gauge[ERROR_WEIGHT] > 0.0 and gauge[TURN] in range(d)
    good = good and (counts >= 0.0).all() and (squares >= 0.0).all() and (inverse > 0.0).all()
    if not good or ((counts > 0.0) & (squares == 0.0)).any():
        raise _no(name, "a number out of range", "what rewards say of noise, scale and units")


_CHECKS: dict[str, Callable[[Vetted, str, Any], None]] = {
    "arms": _check_arms, "counters": _check_counters, "cursor": _check_cursor, "gauge": _check_gauge,
    "observations": _check_observations,
}  # fmt: skip


class Limit(NamedTuple):
    """What must hold of a group's finite numbers, what was got where it does not, and what was wanted."""

    holds: Callable[[Vetted, Any], bool]
    got: str
    wanted: str


_LIMITS = {
    "clock": Limit(
        lambda vetted, notes: bool(0.0 <= notes[TICK] <= LATEST and abs(notes[EXCESS]) < 1e300),
        "a clock out of range", "a clock from 0 to 2^53",
    ),
    "key": Limit(
        lambda vetted, key: bool(((key >= 0) & (key <= 0xFFFFFFFF)).all()),
        "a half of a key out of range", "two whole numbers of 32 bits",
    ),
    "positive": Limit(
        lambda vetted, matrices: bool((np.diagonal(matrices, axis1=1, axis2=2) > 0.0).all()),
        "a diagonal that is not above 0", "Hessians with a ridge",
    ),
    "scores": Limit(  # those of a bank are weights; BOB's are logarithms
        lambda vetted, scores: not (np.abs(scores) > 1e300).any()
        and (not vetted.flags[LANES] == len(scores) > 1 or _some(scores, np.inf)),
        "numbers out of range", "weights from 0 on, not all 0, or log scores up to 1e300",
    ),
    "shares": Limit(
        lambda vetted, shares: bool((shares >= 0.0).all() and 0.0 < shares.sum() <= 2.0 + 1e-9),
        "numbers out of range", "weights from 0 on that add up to 1",
    ),
    "squares": Limit(
        lambda vetted, matrices: bool((np.diagonal(matrices, axis1=1, axis2=2) >= -1e-6).all()),
        "a diagonal below 0", "sums of squares",
    ),
    "sum": Limit(
        lambda vetted, values: not (vetted.believes and (np.abs(values) > MOST_SUM).any()),
        f"a number beyond {MOST_SUM:g}", "sums of what could have been seen",
    ),
    "weights": Limit(
        lambda vetted, weights: bool(((weights >= 0.0) & (weights <= LATEST)).all()),
        "a weight out of range", "weights from 0 to 2^53",
    ),
}  # fmt: skip


def _some(weights: Floats, most: float) -> bool:
    """Whether weights, one column each or one row, are from 0 to `most`, and some of a column are above 0."""
    return bool(((weights >= 0.0) & (weights <= most)).all() and (weights.sum(axis=0) > 0.0).all())
