"""Tables on stdout, for commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> None:
    """Print rows of strings. Columns whose numbers are in `numeric` are right-aligned. The first column, with names, is
    never wrapped."""
    from rich.console import Console
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if place in numeric else "left"
        words = [word for row in rows for word in row[place].split()] if place < len(columns) - 1 else []
        least = max((len(word) for word in words), default=0)  # words are broken only in the last column
        made.add_column(column, justify=side, overflow="fold", no_wrap=place == 0, min_width=min(least, 24))
    for row in rows:
        made.add_row(*row)
    # Without a terminal there is no width to fit, and programs read unfolded rows more easily.
    console = Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False)
    console.print(made)
