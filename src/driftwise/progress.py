"""A bar on stderr for long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(what: str, total: float, wanted: bool | None = None, least: float = 0.0) -> Iterator[Callable[[float], None]]:
    """Hands out `advance`; by default shown when stderr is a terminal and there is more than `least` to do."""
    if not (sys.stderr.isatty() and total > least if wanted is None else wanted):
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn(what), progress.BarColumn(), progress.TaskProgressColumn(), progress.TimeElapsedColumn(),
        progress.TextColumn("left"), progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.advance(task, done)
