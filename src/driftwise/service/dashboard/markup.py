"""HTML from small functions. Every value that is not `Html` is escaped, so no caller can forget it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from html import escape


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def safe(text: object) -> Html:
    """Markup unchanged, and anything else as escaped text."""
    return text if isinstance(text, Html) else Html(escape(str(text)))


def joined(parts: Sequence[object], between: str = "") -> Html:
    return Html(between.join(safe(part) for part in parts))


def tag(name: str, *inside: object, **attributes: object) -> Html:
    """An element. A trailing underscore of an attribute's name is removed; other underscores become hyphens."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items() if value is not None
    )  # fmt: skip
    return Html(f"<{name}{told}>{joined(inside)}</{name}>")


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[int], label: str) -> Html:
    """A table in the style of the report. The first cell is the header of its row; a wide table scrolls."""

    def line(cells: Sequence[object], head: bool) -> Html:
        made = []
        for place, cell in enumerate(cells):
            kind = "number" if place in numeric else None
            if head:
                made.append(tag("th", cell, scope="col", class_=kind))
            elif place == 0 and kind is None:
                made.append(tag("th", cell, scope="row"))
            else:
                made.append(tag("td", cell, class_=kind))
        return tag("tr", *made)

    body = tag("tbody", *(line(row, False) for row in rows))
    inside = tag("table", tag("thead", line(columns, True)) if columns else "", body)
    return tag("div", inside, class_="wide", tabindex="0", role="region", aria_label=label)


def numbers(columns: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[int], label: str) -> Html:
    """The numbers of a chart, as a table that the reader can open."""
    return tag("details", tag("summary", "The numbers"), html_table(columns, rows, numeric, label))


def badge(text: object, kind: str = "open") -> Html:
    return tag("span", text, class_=f"verdict {kind}")


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
