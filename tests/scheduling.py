"""A Dask scheduler with workers that can be killed, and runs of a spec on it."""

import json
import subprocess
import sys
import time


def contents(folder):
    """All files except those with seconds."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("seconds.json", "timings.jsonl")
    }


def command(spec, out, *words):
    return [sys.executable, "-m", "driftwise.cli", "run", str(spec), "--out", str(out), *words]


def played(out):
    return (out / "timings.jsonl").read_text().count("\n") if (out / "timings.jsonl").exists() else 0


class Scheduler:
    """A scheduler on loopback with workers, each a process that can be killed."""

    def __init__(self, folder, workers=2, extra=()):
        self.folder, self.address, self.extra = folder, None, extra
        file = folder / "scheduler.json"
        self.process = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        while not file.exists() or not file.read_text().strip():
            assert self.process.poll() is None
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        self.workers = [self.worker() for _ in range(workers)]

    def _start(self, *words):
        with (self.folder / "dask.log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", "dask", *words, *self.extra], stdout=log, stderr=log)

    def worker(self):
        return self._start("worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny",
                           "--no-dashboard", "--memory-limit", "0")  # fmt: skip

    def close(self):
        for one in (*self.workers, self.process):
            one.kill()
            one.wait()
