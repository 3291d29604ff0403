"""Past one machine, measured: the same bytes, kills, CPU, rows and shards.

    python bench/cluster.py kills [--kills 10] [--seed 0]   ten workers and ten drivers killed, resumed, the same bytes
    python bench/cluster.py cpu [--trials 16000]            CPU of two Dask processes in times of two threads
    python bench/cluster.py rows [--rows 1e7] [--dim 20]    a log on two workers, one killed, equal to its fold
    python bench/cluster.py store                           a trial put and got, packed and as a file of its own

Each ends with exit 1 where what it must show is not so. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from scheduling import Scheduler, command, contents, played  # noqa: E402

SPEC = """\
title = "Spread"
trials = {trials}
seed = 3
record = 200

[world]
kind = "Turn"
horizon = 20000

[[policies]]
name = "LB-WeightUCB"

[[policies]]
name = "D-LinUCB"
"""


# ------------------------------------------------------------------------------------------ kills


def kills(asked: argparse.Namespace) -> bool:
    """Runs whose workers, and then drivers, are killed at random moments."""
    rng, quiet = random.Random(asked.seed), {"stdout": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec, out, whole = folder / "spread.toml", folder / "out", folder / "threads"
        spec.write_text(SPEC.format(trials=asked.trials))
        subprocess.run(command(spec, whole), check=True, **quiet)
        scheduler, workers, drivers = Scheduler(folder), 0, 0
        driver = subprocess.Popen(command(spec, out, "--on", scheduler.address), **quiet)
        try:
            while workers + drivers < 2 * asked.kills:
                for _ in range(5):  # far enough apart that no chunk loses four workers by chance
                    before, until = played(out), time.monotonic() + 300.0
                    while played(out) == before and driver.poll() is None and time.monotonic() < until:
                        time.sleep(0.02)
                time.sleep(rng.uniform(0.0, 0.5))
                if driver.poll() is not None:
                    if driver.returncode:
                        return _told(False, f"the driver ended with {driver.returncode}")
                    subprocess.run(["rm", "-rf", str(out)], check=True)  # it ended too soon: start again
                elif workers < asked.kills:
                    place = rng.randrange(len(scheduler.workers))
                    scheduler.workers[place].kill()
                    scheduler.workers[place].wait()
                    scheduler.workers[place] = scheduler.worker()
                    workers += 1
                    continue
                else:
                    driver.kill()
                    driver.wait()
                    drivers += 1
                driver = subprocess.Popen(command(spec, out, "--on", scheduler.address), **quiet)
            ended = driver.wait()
            again = played(out) - 2 * asked.trials
        finally:
            scheduler.close()
        same = ended == 0 and contents(out) == contents(whole)
    return _told(same, f"{workers} workers and {drivers} drivers killed, {again} trials played twice: "
                       f"{'the same bytes' if same else 'other bytes'}")  # fmt: skip


# ------------------------------------------------------------------------------------------ CPU


def cpu(asked: argparse.Namespace) -> bool:
    """All CPU of a command and its processes, with threads and with Dask in turns."""
    spent: dict[str, list[float]] = {"threads": [], "Dask": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "spread.toml"
        spec.write_text(SPEC.format(trials=asked.trials))
        for number in range(asked.repeats):
            for kind, words in (("threads", ["--jobs", "2"]), ("Dask", ["--on", "local:2"])):
                out = folder / f"{kind}{number}"
                process = subprocess.Popen(command(spec, out, *words), stdout=subprocess.DEVNULL)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = status
                if status:
                    return _told(False, f"{kind} ended with {status}")
                spent[kind].append(used.ru_utime + used.ru_stime)
        same = contents(folder / "threads0") == contents(folder / "Dask0")
    ratio = float(np.median([b / a for a, b in zip(*spent.values(), strict=True)]))
    means = {kind: float(np.median(values)) for kind, values in spent.items()}
    told = f"threads {means['threads']:.1f} s, Dask {means['Dask']:.1f} s: {ratio:.2f} times"
    return _told(ratio <= 1.3 and same, f"{told}; {'the same bytes' if same else 'other bytes'}")


# ------------------------------------------------------------------------------------------ rows


def _part(path: Path, number: int, count: int, dim: int) -> None:
    """Rows of a log, drawn by the number of the part."""
    import pyarrow as pa
    import pyarrow.parquet

    born, X, reward, ticks = _drawn(number, count, dim)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), dim)
    table = pa.table({"born": born, "x": vectors, "reward": reward, "reward_tick": ticks})
    pa.parquet.write_table(table, path, row_group_size=100_000, compression="none")


def _drawn(number: int, count: int, dim: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng([18, number])
    X = rng.standard_normal((count, dim)) / (4.0 * dim**0.5)
    ticks = np.arange(number * count + 1, (number + 1) * count + 1)
    return np.maximum(1, ticks - rng.integers(0, 50, count)), X, rng.standard_normal(count), ticks


def _most_memory(executor: Any) -> float:
    """The peak memory of a worker, in MB."""
    found = executor._client.run(lambda: open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
    return max(map(int, found.values())) / 1024.0


def rows(asked: argparse.Namespace) -> bool:
    """Parts are made, reduced and deleted in waves of at most 2 GB; the fold reads the same numbers as drawn."""
    import driftwise as dw
    from driftwise import cluster

    count, dim = 1_000_000 if asked.rows >= 4e6 else int(asked.rows) // 4, asked.dim
    parts = round(asked.rows / count)
    wave = max(1, int(1.9e9 // (count * (8 * dim + 24))))
    # 1 - 2^-20 is a float: the fold multiplies by γ itself, without a rounding error that is repeated a million times.
    policy = dw.LinearUCB(dim=dim, memory=dw.Fade(2.0**-20), lam=1.0, L=10.0)
    state, total, memory, killed = policy.start(0), None, [], 0
    began, folding, clock = time.perf_counter(), 0.0, 0.0
    with tempfile.TemporaryDirectory() as name, cluster.on("local:2") as executor:
        client = executor._client  # type: ignore[attr-defined]
        waves = [range(first, min(first + wave, parts)) for first in range(0, parts, wave)]
        if len(waves) == 1 and parts > 1:
            waves = [range(0, parts // 2), range(parts // 2, parts)]
        for place, numbers in enumerate(waves):
            paths = [Path(name) / f"{number:05d}.parquet" for number in numbers]
            for number, path in zip(numbers, paths, strict=True):
                _part(path, number, count, dim)
            if place == len(waves) // 2:
                victim = next(iter(client.run(os.getpid).values()))
                subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -9 {victim}"])
                killed += 1
            found = dw.sums(paths, policy, executor=executor)
            total = found if total is None else total + found
            memory.append(_most_memory(executor))
            for path in paths:
                path.unlink()
            paused = time.perf_counter()
            for number in numbers:
                born, X, reward, ticks = _drawn(number, count, dim)
                policy.fold(state, X, reward, np.diff(ticks, prepend=clock).astype(float), (ticks - born).astype(float))
                clock = ticks[-1]
            folding += time.perf_counter() - paused
    assert total is not None
    there = total.state(policy)
    apart = max(_apart(getattr(there, one), getattr(state, one)) for one in ("G", "b", "counters"))
    flat = memory[-1] <= 1.1 * memory[0]
    took = time.perf_counter() - began - folding
    return _told(apart <= 1e-12 and flat and killed == 1 and total.n == parts * count,
                 f"{parts * count:.0e} rows × {dim} in {parts} parts, {took:.0f} s with making them, "
                 f"{killed} worker killed: "
                 f"{apart:.1e} from the fold; a worker had at most {memory[0]:.0f} MB after the first "
                 f"{len(waves[0]) * count:.0e} rows and {memory[-1]:.0f} MB in the end")  # fmt: skip


def _apart(a: Any, b: Any) -> float:
    """The largest difference, relative to the largest number if that is above one."""
    known = np.isfinite(b)
    return float(np.abs(a[known] - b[known]).max() / max(1.0, np.abs(b[known]).max()))


# ------------------------------------------------------------------------------------------ shards


def store(asked: argparse.Namespace) -> bool:
    """A trial of 120 rounds put and got again by another process's store, in µs."""
    from driftwise._internal.files import keep
    from driftwise.experiments.run.store import Played, TrialStore

    many, row = 20_000, np.random.default_rng(0).standard_normal(120).cumsum()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.perf_counter()
        made = TrialStore(folder)
        for first in range(0, many, 1000):
            made.put(Played("it", number, row, 0.1) for number in range(first, first + 1000))
        made.pack()
        middle = time.perf_counter()
        again = TrialStore(folder)
        assert all(again.get("it", number, 120) is not None for number in range(many))
        packed = (middle - begun) / many * 1e6, (time.perf_counter() - middle) / many * 1e6
        size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*.rows")) / many
        begun, few = time.perf_counter(), 1000
        for number in range(few):
            data = io.BytesIO()
            np.savez(data, regret=row)
            keep(folder / "old" / f"{number:05d}.npz", data.getvalue())
        middle = time.perf_counter()
        for number in range(few):
            with np.load(folder / "old" / f"{number:05d}.npz") as found:
                assert found["regret"].shape == (120,)
        single = (middle - begun) / few * 1e6, (time.perf_counter() - middle) / few * 1e6
    return _told(sum(packed) < 0.1 * sum(single),
                 f"packed: put {packed[0]:.1f} µs, got {packed[1]:.1f} µs, {size:.0f} bytes; "
                 f"a file each: put {single[0]:.0f} µs, got {single[1]:.0f} µs, 4096 bytes")  # fmt: skip


def _told(good: bool, what: str) -> bool:
    print(f"{'as promised' if good else 'NOT AS PROMISED'}: {what} (load {os.getloadavg()[0]:.1f})", flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kills", "cpu", "rows", "store"))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--trials", type=int, help="2000, or 16000 where chunks are to take ten seconds")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asked.trials = asked.trials or (16_000 if asked.what == "cpu" else 2_000)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(0 if globals()[asked.what](asked) else 1)


if __name__ == "__main__":
    main()
