"""What bench/arm_sets.py found about the arms of the paper's figures, as a table and a picture."""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib.resources import files

import numpy as np

from driftwise.draw.figure import Axis, Figure, Line
from driftwise.draw.page import Table

KEY = "arms"
_COLUMNS = ("setting", "sets", "LB and S = 1", "S = 5", "all", "within 15%", "in the band", "width of bands")


@cache
def searched_rows() -> tuple[dict[str, str], ...]:
    """A row per setting and use of sets: a new one in each trial, or one for all, chosen by LB and S = 1 or by all."""
    with (files("driftwise.lab.paper") / "arm_sets.csv").open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


def searched_row(setting: str, sets: str) -> dict[str, str]:
    return next(one for one in searched_rows() if (one["setting"], one["sets"]) == (setting, sets))


def settings_table() -> Table:
    """Log-likelihoods above that of new unit arms, their standard errors, and how near the 24 ends are."""
    found = [[*(one[name] for name in _COLUMNS[:2]),
              *(f"{float(one[name]):.0f} ± {float(one[f'± {name}']):.0f}" for name in _COLUMNS[2:5]),
              *(one[name] for name in _COLUMNS[5:])] for one in searched_rows()]  # fmt: skip
    return Table(_COLUMNS, found, range(2, len(_COLUMNS)))


def likelihood_figure() -> Figure:
    """How far the log-likelihood is below the best one, by the number of unit arms."""
    settings = [one["setting"] for one in searched_rows()]
    names = {int(one.split()[0]): one for one in settings if one.endswith("unit arms")}
    names[50] = "each arm to 1"
    lines = []
    for by in ("LB and S = 1", "S = 5"):
        best = max(float(one[by]) for one in searched_rows())
        for sets, words in (("new", "new sets"), ("chosen", "one set")):
            values = np.array([[best - float(searched_row(names[n], sets)[by]) for n in sorted(names)]])
            lines.append(Line(f"{words}, {by}", values, np.array([math.nan])))
    return Figure(KEY, "Likelihood of the published curves by the number of unit arms", tuple(sorted(names)),
                  tuple(lines), Axis("arms", words="unit arms"), what="log-likelihood below the best setting's",
                  how="lower is likelier")  # fmt: skip
