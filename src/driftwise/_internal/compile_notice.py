"""What a first use is waiting for: on a terminal a line on stderr while code is compiled, elsewhere one plain line.

Meanwhile Python looks for no circles among its objects: there are a million of the compiler's, and none is garbage yet.
"""

from __future__ import annotations

import gc
import shutil
import sys
import threading
import time
from typing import Any

_LINE = "driftwise compiles {name}, once per version and machine: {count} functions"
_ONCE = "driftwise compiles code for this machine, once for this version: this takes up to a minute"
plain = True  # not in a server, whose stderr is a log of JSON objects
_PATIENCE = 2.0  # seconds of compiling after which one plain line is said where no line can be written over


class _Notice:
    """Follows one compiled entry and the functions inside it."""

    def __init__(self) -> None:
        self.depth, self.count, self.name, self.thread = 0, 0, "", 0
        self.collects = self.told = False
        self.began = 0.0

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.name = str(getattr(event.data.get("dispatcher"), "__name__", "code")).strip("_")
            self.count, self.thread = 0, threading.get_ident()
            self.collects, self.began = gc.isenabled(), time.monotonic()
            gc.disable()
        if self.thread != threading.get_ident():
            return
        self.depth += 1
        self.count += 1
        if _overwrites():
            line = _LINE.format(name=self.name, count=self.count)
            sys.stderr.write("\r" + line[: shutil.get_terminal_size().columns - 1])  # a longer one is not written over
            sys.stderr.flush()
        elif plain and not self.told and time.monotonic() - self.began > _PATIENCE:
            self.told = True
            print(_ONCE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        if self.thread != threading.get_ident():
            return
        self.depth -= 1
        if self.depth == 0 and self.collects:
            if gc.get_freeze_count() == 0:  # what was made meanwhile counts as old: nobody waits while it is looked at
                gc.freeze()
                gc.unfreeze()
            gc.enable()
        if self.depth == 0 and _overwrites():
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


_notice = _Notice()


def _overwrites() -> bool:
    """Whether a line of stderr can be written over: on a terminal, and under no progress bar, which takes what is
    written for lines of their own."""
    return sys.stderr.isatty() and not type(sys.stderr).__module__.startswith("rich.")


def watch() -> None:
    """From now on whoever waits is told."""
    from numba.core import event  # here: a process that compiles nothing starts without it

    class Listener(event.Listener):
        on_start, on_end = _notice.on_start, _notice.on_end

    register: Any = event.register
    register("numba:compile", Listener())


def compiles_in_main() -> bool:
    """Whether the main thread is in the compiler."""
    return _notice.depth > 0 and _notice.thread == threading.main_thread().ident
