"""A bar on stderr for long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(
    what: str, total: float, wanted: bool | None = None, least: float = 0.0, after: float = 0.0
) -> Iterator[Callable[[float], None]]:
    """Yield `advance`, which moves the bar. By default the bar is shown if stderr is a terminal and `total` is above
    `least`. Work that ends within `after` seconds shows no bar.
    """
    if not (sys.stderr.isatty() and total > least if wanted is None else wanted):
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn(what), progress.BarColumn(), progress.TaskProgressColumn(), progress.TimeElapsedColumn(),
        progress.TextColumn("left"), progress.TimeRemainingColumn(),
    )  # fmt: skip
    shown = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    task, began, running = shown.add_task(what, total=total), time.monotonic(), False

    def advance(done: float) -> None:
        nonlocal running
        shown.advance(task, done)
        if not running and time.monotonic() - began >= after:
            shown.start()
            running = True

    if not after:
        advance(0.0)
    try:
        yield advance
    finally:
        shown.stop()
