"""Figures as tables, for the terminal and for pages."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from driftwise._internal.validate import Floats
from driftwise.draw.figure import Figure, Line
from driftwise.draw.page import Table
from driftwise.simulation import t_interval


def text_table(figure: Figure) -> Table:
    """Final regret beside the published values, or of every policy at every value of an axis."""
    return _swept(figure) if figure.axis else _final(figure)


def comma_separated(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A table as the text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue().encode()


def plus_minus(mean: float, width: float, digits: int = 0, sign: str = "") -> str:
    """A mean and its interval; one trial has no interval."""
    text = f"{mean:{sign}.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return f"{text} ± {width:.{digits}f}" if math.isfinite(width) else text


def _final(figure: Figure) -> Table:
    columns = ["algorithm", "trials", "regret ± 95%", "min–max", "published", "ratio", "seconds a run", "published s"]
    rows = [_row(line) for line in figure.lines]
    for name in ("published s", "ratio", "published"):  # the user's own worlds have no published values
        place = columns.index(name)
        if all(row[place] == "–" for row in rows):
            del columns[place]
            rows = [row[:place] + row[place + 1 :] for row in rows]
    return Table(columns, rows, range(1, len(columns)))


def _row(line: Line) -> list[str]:
    final = plus_minus(*t_interval(line.final))
    found = [line.label, str(len(line.regret)), final, f"{line.low:.0f}–{line.high:.0f}"]
    found += [f"{line.curve.final:.0f}", f"{line.mean / line.curve.final:.2f}"] if line.curve else ["–", "–"]
    return [*found, _span(line.times), f"{line.published_seconds:.2f}" if line.published_seconds else "–"]


def _swept(figure: Figure) -> Table:
    assert figure.axis is not None
    first = f"{figure.axis.field} ×" if figure.axis.times else figure.axis.field
    columns = [first, *(line.label for line in figure.lines)]
    rows = [
        [f"{value:g}" if isinstance(value, float) else str(value)]
        + [plus_minus(*t_interval(line.regret[:, place])) for line in figure.lines]
        for place, value in enumerate(figure.at)
    ]
    rows.append(["seconds a run", *(_span(line.times) for line in figure.lines)])
    return Table(columns, rows, range(1, len(columns)))


def _span(times: Floats) -> str:
    """The seconds at all values of an axis, as one number if they hardly differ."""
    low, high = float(times.min()), float(times.max())
    if not math.isfinite(low + high):
        return "–"
    return f"{low:.4f}" if high < 1.5 * low else f"{low:.4f}–{high:.4f}"
