"""Numbers, times and parts of pages in the words of the dashboard."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from driftwise.draw.markup import Html, html_table, joined, tag


def numbers(columns: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[int], label: str) -> Html:
    """The numbers of a chart, as a table that the reader can open."""
    return tag("details", tag("summary", "The numbers"), html_table(columns, rows, numeric, label))


def count(value: int) -> str:
    return f"{value:,}"


def decimal(value: float | None, digits: int = 4) -> str:
    """A number for people, with a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def signed(value: float, digits: int = 3) -> str:
    return "–" if math.isnan(value) else f"{value:+.{digits}g}"


def percent(value: float, sign: bool = False) -> str:
    return "–" if math.isnan(value) else f"{100.0 * value:{'+' if sign else ''}.1f}%"


def span(seconds: float) -> str:
    """A duration."""
    if math.isnan(seconds):
        return "–"
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms"


def shown_time(at: float) -> Html:
    """A moment in UTC."""
    when = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return tag("time", f"{when:%Y-%m-%d %H:%M:%S}", datetime=f"{when:%Y-%m-%dT%H:%M:%SZ}")


def short(text: str, most: int = 28) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def tile(name: str, value: object, more: object = "") -> Html:
    """A number with its name."""
    return tag("div", tag("dt", name), tag("dd", value, tag("small", more) if more else ""))


def card(title: str, *inside: object) -> Html:
    """A part of a page under its heading."""
    return joined([tag("h2", title), *inside])
