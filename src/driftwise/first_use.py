"""What a first use is waiting for: a line on stderr while code is compiled, when that is a terminal.

Meanwhile Python looks for no circles among its objects: there are a million of the compiler's, and none is garbage yet.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from numba.core import event

_LINE = "driftwise compiles {name} for this machine, once for this version: {count} functions"


class _Notice(event.Listener):
    """Follows one compiled entry and the functions inside it."""

    def __init__(self) -> None:
        self.depth, self.count, self.name, self.thread = 0, 0, "", 0
        self.collects = False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.name = str(getattr(event.data.get("dispatcher"), "__name__", "code")).strip("_")
            self.count, self.thread = 0, threading.get_ident()
            self.collects = gc.isenabled()
            gc.disable()
        if self.thread != threading.get_ident():
            return
        self.depth += 1
        self.count += 1
        if sys.stderr.isatty():
            sys.stderr.write("\r" + _LINE.format(name=self.name, count=self.count))
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        if self.thread != threading.get_ident():
            return
        self.depth -= 1
        if self.depth == 0 and self.collects:
            if gc.get_freeze_count() == 0:  # what was made meanwhile counts as old: nobody waits while it is looked at
                gc.freeze()
                gc.unfreeze()
            gc.enable()
        if self.depth == 0 and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def watch() -> None:
    """From now on a person at a terminal is told."""
    register: Any = event.register
    register("numba:compile", _Notice())
