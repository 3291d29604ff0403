"""From `python` to a first decision: python release/first.py PYTHON [--runs 5], with the python of an installation.

Prints the median of wall seconds and of CPU seconds of processes that import driftwise, that decide and learn one
reward (clicks, values), and of `driftwise serve` to its first answer and its first decision, if the extra `serve` is
there. As root it also decides on a read-only file system without HOME, PATH or anything else in the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

LIVED = "one = agent.decide([[1.0, 0.0], [0.0, 1.0]]); agent.reward(one.id, 1.0)"
PROGRAMS = {
    "import": "import driftwise",
    "clicks": f"import driftwise as dw; agent = dw.Agent.for_clicks(2); {LIVED}",
    "values": f"import driftwise as dw; agent = dw.Agent.for_values(2, 0.0, 1.0); {LIVED}",
}
# A view of the file system that cannot be written to, in a name space of its own.
READ_ONLY = """mount --make-rprivate / && mount --bind / "$0" && mount -o remount,ro,bind "$0" &&
exec env -i /usr/sbin/chroot "$0" "$@\""""
Spent = tuple[float, float]


def spent(words: list[str], environment: dict[str, str]) -> Spent:
    """Wall and CPU seconds of a process that must end well."""
    began = time.perf_counter()
    child = os.posix_spawn(words[0], words, environment)
    _, status, usage = os.wait4(child, 0)
    if status:
        sys.exit(f"first: {' '.join(words)[:200]} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def ask(port: int, path: str, body: object = None, method: str = "GET") -> object:
    head = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, head, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def served(python: str) -> tuple[Spent, Spent]:
    """Seconds of `driftwise serve` to its first answer, and to the first decision of a new stream."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        words = [str(Path(python).with_name("driftwise")), "serve", "--db", f"{folder}/a.db", "--port", str(port)]
        began = time.perf_counter()
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            while True:
                try:
                    ask(port, "/readyz")
                    break
                except OSError:
                    if server.poll() is not None or time.perf_counter() - began > 60.0:
                        sys.exit("first: the server does not answer")
                    time.sleep(0.01)
            answered = time.perf_counter() - began, _cpu_of(server.pid)
            ask(port, "/v1/streams/home", {"policy": {"name": "Auto", "dim": 2}, "rewards": [0, 1]}, "PUT")
            ask(port, "/v1/streams/home/decide", {"id": "a", "arms": [[1, 0], [0, 1]]}, "POST")
            decided = time.perf_counter() - began, _cpu_of(server.pid)
        finally:
            server.terminate()
            server.wait(30)
    return answered, decided


def _cpu_of(process: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(name: str, seen: list[Spent]) -> str:
    walls, cpus = ([one[k] for one in seen] for k in (0, 1))
    least, most = min(walls), max(walls)
    return f"{name} {statistics.median(walls):.2f} s ({least:.2f}-{most:.2f}), CPU {statistics.median(cpus):.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    python, runs = os.path.abspath(options.python), range(options.runs)
    for name, program in PROGRAMS.items():
        print(told(name, [spent([python, "-I", "-c", program], dict(os.environ)) for _ in runs]), flush=True)
    if subprocess.run([python, "-I", "-c", "import uvicorn"], capture_output=True, check=False).returncode == 0:
        answers = [served(python) for _ in runs]
        print(told("serve, first answer", [one[0] for one in answers]), flush=True)
        print(told("serve, first decision", [one[1] for one in answers]), flush=True)
    unshare = shutil.which("unshare")
    if os.geteuid() == 0 and unshare:
        with tempfile.TemporaryDirectory() as folder:
            program = f"{PROGRAMS['clicks']}; open('/tmp/first', 'w')"
            words = [unshare, "--mount", "sh", "-c", READ_ONLY, folder, python, "-I", "-c", program]
            refused = subprocess.run(words, capture_output=True, text=True, check=False, env={}).stderr
            if "Read-only file system" not in refused:
                sys.exit(f"first: wanted a file system that cannot be written to, got {refused[-500:]}")
            words[-1] = PROGRAMS["clicks"]
            print(told("read-only, clicks", [spent(words, {}) for _ in runs]), flush=True)


if __name__ == "__main__":
    main()
