"""Servers forked from a process that has imported and compiled everything: a start takes a tenth of a second, not two.

`python nursery.py` reads a line of JSON a request: {"start": [DB, PORT, what …], "told": FILE} forks a server of
broken.py whose stderr is FILE and answers its process id; {"poll": PID} answers its exit code, or null while it runs.
When its stdin ends it kills the servers that it has started.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Nursery:
    """A process that forks servers. It starts when the first server is needed."""

    def __init__(self):
        self._process = None
        self._turn = threading.Lock()

    def ask(self, **what):
        with self._turn:
            if self._process is None:
                command = [sys.executable, str(HERE / "nursery.py")]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                atexit.register(self.close)
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self):
        """Close its stdin, which ends it."""
        with self._process:
            self._process = None

    def start(self, *words):
        return Forked(self, [str(word) for word in words])


class Forked:
    """The part of `subprocess.Popen` that tests use, for a process that the nursery forked."""

    def __init__(self, nursery, words):
        handle, name = tempfile.mkstemp(suffix=".stderr")
        self.nursery, self.returncode, self.stderr = nursery, None, open(handle)
        self.pid = nursery.ask(start=words, told=name)
        os.unlink(name)

    def poll(self):
        if self.returncode is None:
            self.returncode = self.nursery.ask(poll=self.pid)
        return self.returncode

    def wait(self, timeout=60.0):
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("server", timeout)
            time.sleep(0.005)
        return self.returncode

    def kill(self):
        if self.returncode is None:  # not waited for, so that the process id is not reused
            os.kill(self.pid, signal.SIGKILL)

    def terminate(self):
        if self.returncode is None:
            os.kill(self.pid, signal.SIGTERM)


def _born(words, told):
    """In the child: run a server until it ends."""
    code = 1
    try:
        os.dup2(told, 2)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        from service.broken import serve

        serve(words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _warm():
    """Import the modules of a server, and run the kernels of its stream once."""
    sys.path.insert(0, str(HERE.parent))
    import msgspec

    import service.broken  # noqa: F401 - imports all that a server needs
    from driftwise.service.core.setup import setup
    from driftwise.service.core.warming import warm
    from driftwise.service.stores.wal import checksum_
    from driftwise.service.wire.protocol import StreamBody
    from service.loading import BODY

    made = setup(msgspec.convert(BODY, StreamBody))
    warm(made.policy, made.terms.low)
    import numpy as np

    checksum_(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))


def main():
    _warm()
    running = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            told = os.open(asked["told"], os.O_WRONLY)
            pid = os.fork()
            if pid == 0:
                _born(asked["start"], told)
            os.close(told)
            running.add(pid)
            answer = pid
        else:
            pid, status = os.waitpid(asked["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
            running.discard(pid)
        print(json.dumps(answer), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
