"""What enters compiled code must be proven in range: the check of a state that was loaded, against its policy."""

from __future__ import annotations

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels import belief, point
from driftwise.kernels.adapt.book import EXCESS, LEAST, TICK
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    COUNTERS,
    DROPPED,
    FAILED,
    HEAD,
    LOST,
    REMOVED,
    SINCE,
    SIZE,
    SQUARES,
    USED,
    WEIGHT,
    Floats,
)
from driftwise.policies.state import State

# Clocks count in doubles: beyond this a tick is lost in rounding.
LATEST = 2.0**53
# Sums of what could have been seen are smaller.
MOST_SUM = 1e250
_AGAIN = "load the last state that was saved whole"


def _no(name: str, got: str, wanted: str) -> BadInput:
    return BadInput(f"state.{name}", got, wanted, _AGAIN)


def vet(state: State, L: float, rewards: tuple[float, float]) -> None:
    """Finite numbers, counters, cursors and observations in range, or the one sentence.

    Arms have norms up to L. Marks are checked where they are used.
    """
    groups = state.groups()
    for name, values in groups.items():
        if values.dtype == np.float64:
            _check_finite(name, values)
    _check_counters(groups["counters"])
    if "cursor" in groups:
        room, atoms = (int(state.layout.flags[place]) for place in (point.ROOM, point.ATOMS))
        most = {HEAD: max(0, room - 1), SIZE: room, REMOVED: 2**53, USED: atoms}
        for place, largest in most.items():
            value = int(groups["cursor"][place])
            if not 0 <= value <= largest:
                raise _no(f"cursor[{place}]", str(value), f"a whole number from 0 to {largest}")
    if "scores" in groups:
        weighs = state.layout.flags[point.LANES] == len(groups["scores"]) > 1  # a bank's; BOB's are logarithms
        if (np.abs(groups["scores"]) > 1e300).any() or (
            weighs and not ((groups["scores"] >= 0.0).all() and groups["scores"].max() > 0.0)
        ):
            raise _no("scores", "numbers out of range", "weights from 0 on, not all 0, or log scores up to 1e300")
    if "filters" in groups:
        _check_levels(groups)
    _check_observations(groups, L, rewards)
    if not (groups["key"] >= 0).all() or not (groups["key"] <= 0xFFFFFFFF).all():
        raise _no("key", "a half of a key out of range", "two whole numbers of 32 bits")


def _check_finite(name: str, values: Floats) -> None:
    """Only what has not happened yet may be infinite: the last restart, MASTER's least index, a bound on an arm."""
    good = np.isfinite(values)
    if name == "counters":
        good[:, SINCE] |= values[:, SINCE] == -np.inf
    elif name == "limits":
        good |= values == np.inf
    elif name == "notes":
        good[LEAST] |= values[LEAST] == np.inf
    if not good.all():
        place = [int(i) for i in np.argwhere(~good)[0]]
        raise _no(name, f"{values[tuple(place)]} at {place}", "finite numbers")
    if name == "notes" and not (0.0 <= values[TICK] <= LATEST and abs(values[EXCESS]) < 1e300):
        raise _no(name, f"a clock of {values[TICK]}", "a clock from 0 to 2^53")


def _check_levels(groups: dict[str, Floats]) -> None:
    """Lanes with a level apart: counters, weights, and filters that something is left of."""
    _check_counters(groups["level_counters"])
    if not ((groups["level_scores"] >= 0.0).all() and 0.0 < groups["level_scores"].sum() <= 2.0):
        raise _no("level_scores", "numbers out of range", "weights from 0 on that add up to 1")
    mass = groups["filters"][:, [point.GUESS, point.MASS]]
    if not ((mass >= 0.0).all() and (mass.sum(axis=1) > 0.0).all() and (mass <= LATEST).all()):
        raise _no("filters", "a weight out of range", "weights from 0 on, not all 0")


def _check_observations(groups: dict[str, Floats], L: float, rewards: tuple[float, float]) -> None:
    """What was seen is what could have been: arms no longer than L, rewards in range, weights that a clock allows."""
    low, high = rewards
    if "ring" in groups:
        ring = groups["ring"]
        _check_norms("ring", ring[:, :-2].T, L)
        if not ((ring[:, -2] >= min(low, 0.0)) & (ring[:, -2] <= max(high, 0.0))).all():
            raise _no("ring", "a reward out of range", f"rewards from {low:g} to {high:g}")
    if "atoms" in groups:
        _check_norms("atoms", groups["atoms"], L)
        if not ((groups["weights"] >= 0.0) & (groups["weights"] <= LATEST)).all():
            raise _no("weights", "a weight out of range", "weights from 0 to 2^53")
    if "H" in groups and not (np.diagonal(groups["H"], axis1=1, axis2=2) > 0.0).all():
        raise _no("H", "a diagonal that is not above 0", "Hessians with a ridge")
    if "gauge" in groups:
        _check_gauge(groups["gauge"])
    if "gauge" in groups or "lag" in groups:
        for name in ("G", "b", "lag", "lag_square", "lag_reward", "level_G", "level_b", "filters"):
            if name in groups and (np.abs(groups[name]) > MOST_SUM).any():
                raise _no(name, f"a number beyond {MOST_SUM:g}", "sums of what could have been seen")
        squares, apart = groups.get("lag_square", groups["G"]), groups.get("level_G", groups["G"])
        for name, one, other in (("G", groups["G"], groups["G"]), ("lag", groups["G"], squares),
                                 ("lag_square", squares, squares), ("level_G", apart, apart)):  # fmt: skip
            if name in groups and not _bounded(groups[name], one, other):
                raise _no(name, "an entry larger than its diagonal allows", "sums of products")
    for name in ("G", "twin", "lag", "lag_square", "level_G"):
        if name in groups and not (np.diagonal(groups[name], axis1=1, axis2=2) >= -1e-6).all():
            raise _no(name, "a diagonal below 0", "sums of squares")


def _check_gauge(gauge: Floats) -> None:
    """What is known of noise and scale: sums of squares of rewards, one of which was seen where one is above 0."""
    squares = gauge[[belief.REWARD_SQUARES, belief.NORM_SQUARES]]
    seen, weight = gauge[belief.SEEN], gauge[belief.GUESSED] + gauge[belief.ERROR_WEIGHT]
    learns = gauge[belief.GUESSED] > 0.0 or gauge[belief.ERROR_WEIGHT] > 0.0 or gauge[belief.ERRORS] > 0.0
    good = (gauge >= 0.0).all() and (gauge <= MOST_SUM).all() and seen <= LATEST
    good = good and (seen >= 1.0 or not squares.any()) and (weight > 0.0 or not learns)
    if not good or ((squares > 0.0) & (squares < 1.0 / MOST_SUM)).any():
        raise _no("gauge", "a number out of range", "sums of squares of the rewards that were seen")


def _bounded(products: Floats, one: Floats, other: Floats) -> bool:
    """Whether products lie within the squares of their factors, as Cauchy and Schwarz have it, up to rounding."""
    left, right = (np.sqrt(np.maximum(np.diagonal(squares, axis1=1, axis2=2), 0.0)) for squares in (one, other))
    lower = np.tril(np.ones(products.shape[1:], dtype=bool))
    most = np.maximum(left[:, :, None] * right[:, None, :], right[:, :, None] * left[:, None, :])
    return bool((np.abs(products) <= 1.0001 * most + 1e-9)[:, lower].all())


def _check_norms(name: str, columns: Floats, L: float) -> None:
    with np.errstate(over="ignore"):
        longest = float(np.sqrt((columns * columns).sum(axis=0)).max(initial=0.0))
    if not longest <= L * (1.0 + 1e-3):
        raise _no(name, f"a vector of norm {longest:g}", f"norms up to L = {L:g}")


def _check_counters(counters: Floats) -> None:
    for column in range(COUNTERS):
        low = -np.inf if column == SINCE else 0.0
        slack = 1e-6 if column in (WEIGHT, SQUARES, LOST) else 0.0  # what rounding leaves after many removals
        values = counters[:, column]
        if not ((values >= low - slack) & (values <= LATEST)).all():
            raise _no("counters", f"{values.tolist()} in column {column}", f"numbers from {low:g} to 2^53")
    whole = counters[:, [COUNT, DROPPED, FAILED]]
    if (whole != np.floor(whole)).any() or (counters[:, SINCE] > counters[:, CLOCK]).any():
        raise _no("counters", "a count that is not whole, or a restart in the future", "counters of lessons learned")
