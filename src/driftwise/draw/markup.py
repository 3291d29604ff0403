"""HTML from small functions. Every value that is not `Html` is escaped, so no caller can forget it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


NEW_LINE = Html("\n")


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


def badge(text: object, kind: str = "open") -> Html:
    return tag("span", text, class_=f"verdict {kind}")


def html_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[int], label: str,
    shown: Callable[[Any], Html] = safe, kind: Callable[[Any], str | None] = lambda cell: None,
    head: Callable[[str], Html] = safe,
) -> Html:  # fmt: skip
    """A table that scrolls where it is wide. The first cell is the header of its row, unless it is a number.

    `shown` and `head` make markup of a cell and of a column's name; `kind` is the class of a cell that is no number.
    """

    def line(cells: Sequence[Any], of_head: bool) -> Html:
        made = []
        for place, cell in enumerate(cells):
            number = place in numeric
            class_ = "number" if number else kind(cell)
            if of_head:
                made.append(tag("th", head(cell), scope="col", class_=class_))
            elif place == 0 and not number:
                made.append(tag("th", shown(cell), scope="row", class_=class_))
            else:
                made.append(tag("td", shown(cell), class_=class_))
        return Html(f"{tag('tr', *made)}\n")

    top = Html(f"{tag('thead', NEW_LINE, line(columns, True))}\n") if columns else ""
    body = tag("tbody", NEW_LINE, *(line(row, False) for row in rows))
    inside = tag("table", NEW_LINE, top, body, NEW_LINE)
    return tag("div", NEW_LINE, inside, NEW_LINE, class_="wide", tabindex="0", role="region", aria_label=label)
