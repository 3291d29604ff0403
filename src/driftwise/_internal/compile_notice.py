"""A message on stderr while code is compiled: a line with a counter on a terminal, one plain line of a run elsewhere.

The garbage collector is off while numba compiles: the compiler makes about a million objects, and none is garbage yet.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_LINE = "driftwise compiles {name}, once per version and machine: {count} functions"
_ONCE = "driftwise compiles code for this machine, once for this version: this takes up to a minute"
_SLOW = 'driftwise runs as Python, slowly, without machine code ({why}): pip install "driftwise[jit]" compiles'
plain = True  # a server sets it to False, because its stderr is a log of JSON objects
_RUN = "DRIFTWISE_COMPILE_NOTICE"  # the variable that names the file of a run
_PATIENCE = 2.0  # seconds of compiling before the plain line is printed


class _Notice:
    """Counts the functions that are compiled for one entry."""

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
            sys.stderr.write("\r" + line[: shutil.get_terminal_size().columns - 1])  # "\r" cannot undo a wrapped line
            sys.stderr.flush()
        elif plain and not self.told and time.monotonic() - self.began > _PATIENCE:
            self.told = True
            if _first_of_the_run():
                print(_ONCE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        if self.thread != threading.get_ident():
            return
        self.depth -= 1
        if self.depth == 0 and self.collects:
            if gc.get_freeze_count() == 0:  # move the new objects to the oldest generation without scanning them
                gc.freeze()
                gc.unfreeze()
            gc.enable()
        if self.depth == 0 and _overwrites():
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


@contextmanager
def one_for_all() -> Iterator[None]:
    """Let the processes that are started from here on print the plain line once together."""
    with tempfile.TemporaryDirectory(prefix="driftwise-") as folder:
        os.environ[_RUN] = str(Path(folder, "told"))
        try:
            yield
        finally:
            del os.environ[_RUN]


def _first_of_the_run() -> bool:
    """Whether no other process of the run has printed it: the first one makes the file that the run named."""
    try:
        if _RUN in os.environ:
            Path(os.environ[_RUN]).touch(exist_ok=False)
    except OSError:
        return False
    return True


_notice = _Notice()


def _overwrites() -> bool:
    """Whether a line of stderr can be overwritten: stderr is a terminal, and no progress bar has replaced it. A
    progress bar prints every write as a line of its own."""
    return sys.stderr.isatty() and not type(sys.stderr).__module__.startswith("rich.")


@cache
def say_slow(why: str) -> None:
    """Say once that there is neither machine code nor a compiler."""
    if plain:
        print(_SLOW.format(why=why), file=sys.stderr, flush=True)


def watch() -> None:
    """Print the message from now on whenever numba compiles."""
    from numba.core import event  # imported here: a process that compiles nothing must not load numba

    class Listener(event.Listener):
        on_start, on_end = _notice.on_start, _notice.on_end

    register: Any = event.register
    register("numba:compile", Listener())


def compiles_in_main() -> bool:
    """Whether the main thread is compiling."""
    return _notice.depth > 0 and _notice.thread == threading.main_thread().ident
