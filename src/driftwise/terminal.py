"""Tables on stdout, for commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> None:
    """Print rows of strings; the columns numbered in `numeric` stand to the right."""
    from rich.console import Console
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        made.add_column(column, justify="right" if place in numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    # When the output is no terminal there is no width to respect, and a folded row is hard to read by machine.
    console = Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False)
    console.print(made)
