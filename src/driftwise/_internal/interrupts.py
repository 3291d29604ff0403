"""Ctrl-C while the command line still imports ends it without a traceback; `cli.main` takes over from there.

While the main thread is in the compiler, Python's own handler would run only when that returns: up to half a minute.
There a thread ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

SENTENCE = "driftwise: interrupted; the same command goes on where it was"


def quiet() -> None:
    """For the `driftwise` command alone: a program that imports driftwise keeps its own handling."""
    command = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if command in ("driftwise", "driftwise.exe") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def usual() -> None:
    """Ctrl-C raises KeyboardInterrupt again."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_compiles() -> None:
    """For a process that is a command: Ctrl-C now ends a compile of the main thread at once, with status 130."""
    if threading.current_thread() is not threading.main_thread():
        return
    told, heard = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def watch(_open: socket.socket = told) -> None:
        while number := heard.recv(1):
            compile_notice = sys.modules.get("driftwise._internal.compile_notice")  # which imports the compiler
            if number[0] == signal.SIGINT and compile_notice is not None and compile_notice.compiles_in_main():
                print(("\n" if sys.stderr.isatty() else "") + SENTENCE, file=sys.stderr, flush=True)
                os._exit(130)

    threading.Thread(target=watch, name="interrupts", daemon=True).start()


quiet()
