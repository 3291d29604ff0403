"""Ctrl-C while the command line still imports ends it without a traceback; `cli.main` takes over from there."""

from __future__ import annotations

import os
import signal
import sys
import threading


def quiet() -> None:
    """For the `driftwise` command alone: a program that imports driftwise keeps its own handling."""
    command = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if command in ("driftwise", "driftwise.exe") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def usual() -> None:
    """Ctrl-C raises KeyboardInterrupt again."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


quiet()
