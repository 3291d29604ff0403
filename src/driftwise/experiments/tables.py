"""Outcomes as tables, for the terminal and the page alike."""

from __future__ import annotations

import math

from driftwise.experiments.page import Table
from driftwise.experiments.published import SECONDS
from driftwise.experiments.results import Figure, Line, interval


def table(figure: Figure) -> Table:
    """Final regret beside what was published, or of every policy at every value of a sweep."""
    return _swept(figure) if figure.sweep else _final(figure)


def plus_minus(mean: float, width: float) -> str:
    """A mean and its interval; no interval from one trial."""
    return f"{mean:.0f} ± {width:.0f}" if math.isfinite(width) else f"{mean:.0f}"


def seconds(time: float) -> str:
    return f"{time:.4f}" if math.isfinite(time) else "–"


def _final(figure: Figure) -> Table:
    columns = ["algorithm", "trials", "regret ± 95%", "min–max", "published", "ratio", "seconds a run", "published s"]
    rows = [_row(figure, line) for line in figure.lines]
    for name in ("published s", "ratio", "published"):  # nothing was published of worlds of one's own
        place = columns.index(name)
        if all(row[place] == "–" for row in rows):
            del columns[place]
            rows = [row[:place] + row[place + 1 :] for row in rows]
    return Table(columns, rows, range(1, len(columns)))


def _row(figure: Figure, line: Line) -> list[str]:
    found = [line.label, str(len(line.regret)), plus_minus(*interval(line.final)), f"{line.low:.0f}–{line.high:.0f}"]
    found += [f"{line.curve.final:.0f}", f"{line.mean / line.curve.final:.2f}"] if line.curve else ["–", "–"]
    published = SECONDS.get(line.label) if figure.key == "LB" else None
    return [*found, seconds(line.time), f"{published:.2f}" if published else "–"]


def _swept(figure: Figure) -> Table:
    assert figure.sweep is not None
    field = figure.sweep.over.split(".")[1]
    columns = [f"{field} ×" if figure.sweep.times else field, *(line.label for line in figure.lines)]
    rows = [
        [f"{value:g}" if isinstance(value, float) else str(value)]
        + [plus_minus(*interval(line.regret[:, place])) for line in figure.lines]
        for place, value in enumerate(figure.at)
    ]
    return Table(columns, rows, range(1, len(columns)))
