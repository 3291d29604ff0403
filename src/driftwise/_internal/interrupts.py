"""Ctrl-C for commands: no traceback while the command still imports, and no wait while it compiles.

After the imports `cli.main` handles Ctrl-C. While the main thread compiles, Python's own handler would run only after
the compiler returns, up to half a minute later. A second thread therefore ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

SENTENCE = "driftwise: interrupted; the same command continues where it stopped"


def quiet() -> None:
    """End quietly at Ctrl-C. Only the `driftwise` command calls it; a program that imports driftwise keeps its
    handler."""
    command = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if command in ("driftwise", "driftwise.exe") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def usual() -> None:
    """Ctrl-C raises KeyboardInterrupt again."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_compiles() -> None:
    """From now on Ctrl-C ends the process at once, with status 130, if the main thread is compiling. For commands."""
    if threading.current_thread() is not threading.main_thread():
        return
    told, heard = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)

    def watch(_open: socket.socket = told) -> None:
        while number := heard.recv(1):
            compile_notice = sys.modules.get("driftwise._internal.compile_notice")  # absent until something compiles
            if number[0] == signal.SIGINT and compile_notice is not None and compile_notice.compiles_in_main():
                print(("\n" if sys.stderr.isatty() else "") + SENTENCE, file=sys.stderr, flush=True)
                os._exit(130)

    threading.Thread(target=watch, name="interrupts", daemon=True).start()


quiet()
