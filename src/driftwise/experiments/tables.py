"""Outcomes as tables, for the terminal and the page alike."""

from __future__ import annotations

import math

from driftwise.experiments.page import Table
from driftwise.experiments.published import SECONDS
from driftwise.experiments.results import Figure, Line
from driftwise.kernels.point import Floats
from driftwise.simulation import interval


def table(figure: Figure) -> Table:
    """Final regret beside what was published, or of every policy at every value of a sweep."""
    return _swept(figure) if figure.sweep else _final(figure)


def plus_minus(mean: float, width: float, digits: int = 0, sign: str = "") -> str:
    """A mean and its interval; no interval from one trial."""
    text = f"{mean:{sign}.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return f"{text} ± {width:.{digits}f}" if math.isfinite(width) else text


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
    return [*found, _span(line.times), f"{published:.2f}" if published else "–"]


def _swept(figure: Figure) -> Table:
    assert figure.sweep is not None
    field = figure.sweep.over.split(".")[1]
    columns = [f"{field} ×" if figure.sweep.times else field, *(line.label for line in figure.lines)]
    rows = [
        [f"{value:g}" if isinstance(value, float) else str(value)]
        + [plus_minus(*interval(line.regret[:, place])) for line in figure.lines]
        for place, value in enumerate(figure.at)
    ]
    rows.append(["seconds a run", *(_span(line.times) for line in figure.lines)])
    return Table(columns, rows, range(1, len(columns)))


def _span(times: Floats) -> str:
    """Seconds at all values of a sweep: one number where they hardly differ."""
    low, high = float(times.min()), float(times.max())
    if not math.isfinite(low + high):
        return "–"
    return f"{low:.4f}" if high < 1.5 * low else f"{low:.4f}–{high:.4f}"


def speed(figure: Figure, unit: str) -> Table:
    """Times of a sweep in times of one policy, beside those of the paper's bar chart."""
    at, one = [f"d = {value}" for value in figure.at], figure.line(unit)
    rows = [
        [line.label, *(f"{ratio:.2f}" for ratio in line.times / one.times),
         f"{SECONDS[line.label] / SECONDS[unit]:.2f}" if line.label in SECONDS else "–"]
        for line in figure.lines
    ]  # fmt: skip
    return Table([f"seconds of a run, {unit} = 1", *at, "published, d = 2"], rows, range(1, len(at) + 2))
