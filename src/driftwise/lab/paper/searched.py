"""The search over sets of arms: what bench/arm_sets.py found, as a table and a picture."""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib.resources import files

import numpy as np

from driftwise.draw.figure import Axis, Figure, Line
from driftwise.draw.page import Table

KEY = "arms"
# What a setting is chosen by, and what judges it.
_CHOOSING, _JUDGED, _ALL = "choosing", "S = 5 given those", "all"


@cache
def rows() -> tuple[dict[str, str], ...]:
    """A row per setting and way of sharing a set of arms: new in each trial, or one, the chosen or the fitted set."""
    with (files("driftwise.lab.paper") / "arm_sets.csv").open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


def _row(setting: str, sets: str) -> dict[str, str]:
    return next(row for row in rows() if (row["setting"], row["sets"]) == (setting, sets))


def _settings() -> list[str]:
    return list(dict.fromkeys(row["setting"] for row in rows()))


def _below(row: dict[str, str], what: str) -> str:
    """How far a log-likelihood is below the best one."""
    best = max(float(one[what]) for one in rows())
    return f"{best - float(row[what]):.0f}"


def drawn() -> str:
    """The number of sets that were drawn and played."""
    return f"{sum(int(row['drawn']) for row in rows() if row['sets'] == 'one, chosen'):,}"


def table() -> Table:
    """Log-likelihoods below the best, and how many of the 24 ends are close, for new sets and for one shared set."""
    found = []
    for name in _settings():
        new, chosen, fitted = (_row(name, sets) for sets in ("new", "one, chosen", "one, fitted"))
        found.append([
            name, _below(new, _CHOOSING), _below(new, _JUDGED), new["within 15%"], new["in the band"],
            _below(chosen, _CHOOSING), _below(chosen, _JUDGED), chosen["within 15%"], chosen["in the band"],
            fitted["within 15%"],
        ])  # fmt: skip
    columns = ("setting", "new sets: LB, S = 1", "S = 5", "within 15%", "in band", "one set: LB, S = 1", "S = 5",
               "within 15%", "in band", "fitted to all: within 15%")  # fmt: skip
    return Table(columns, found, range(1, len(columns)))


def picture() -> Figure:
    """How far the log-likelihood is below the best setting's, by the number of unit arms."""
    at = sorted({int(row["setting"].split()[0]) for row in rows() if row["setting"].endswith("unit arms")} | {50})
    names = [f"{n} unit arms" if n < 50 else "each arm to 1" for n in at]
    lines = []
    for sets, words in (("new", "new sets"), ("one, chosen", "one set")):
        for what, by in ((_CHOOSING, "LB and S = 1"), (_ALL, "all")):
            best = max(float(one[what]) for one in rows())
            values = np.array([[best - float(_row(name, sets)[what]) for name in names]])
            lines.append(Line(f"{words}, {by}", values, np.array([math.nan])))
    return Figure(KEY, "Likelihood of the published curves by the number of unit arms", tuple(at), tuple(lines),
                  Axis("arms", words="unit arms"), what="log-likelihood below the best setting", how="lower is likelier")  # fmt: skip
