"""The cost of learning from a log beyond reading it, and whether memory stays constant.

    python bench/logs.py [--rows 1000000] [--dim 20] [--repeats 5] [--flat] [--folder DIR]

Processor time of the process, medians over interleaved repeats. "reading" is pyarrow's own batches of the columns that
a fold needs (x, reward, reward_seq, reward_tick, born, seq, verdict); "batches" are ours, which are numpy columns whose
numbers have been checked; "fold" is `agent.learn_log` with LinearUCB and Fade. A fold may cost 2.5 times reading. With
--flat the same log is folded once at a tenth of its rows and once whole, each in a process of its own, and what either
needed at most is told: a log of ten times the rows may take a twentieth more memory. Logging is measured too: what
`reward` costs with a log and without.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import driftwise as dw

COLUMNS = ["x", "reward", "reward_seq", "reward_tick", "born", "seq", "verdict"]


def write(path: Path, rows: int, dim: int) -> None:
    """Write a log of lessons with immediate rewards, one stretch at a time."""
    chance, writer = np.random.default_rng(0), None
    for first in range(0, rows, 100_000):
        many = min(100_000, rows - first)
        x = chance.standard_normal((many, dim))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        count = np.arange(first + 1, first + many + 1)
        table = pa.table({
            "seq": count, "born": count, "reward_tick": count, "reward_seq": count, "reward": chance.random(many),
            "x": pa.FixedSizeListArray.from_arrays(x.ravel(), dim), "verdict": pa.array(["learned"] * many),
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def reading(path: Path) -> None:
    for _ in pq.ParquetFile(path).iter_batches(batch_size=65_536, columns=COLUMNS, use_threads=False):
        pass


def batches(path: Path) -> None:
    for _ in dw.read_log(path).batches(COLUMNS):
        pass


def agent_of(dim: int) -> dw.Agent:
    policy = dw.LinearUCB(dim=dim, memory=dw.Fade(0.001), lam=float(dim), delta=0.01)
    return dw.Agent(policy, rewards=(0.0, 1.0))


def spent(work, *given) -> float:
    begun = time.process_time()
    work(*given)
    return time.process_time() - begun


def fold(path: Path, dim: int) -> None:
    agent_of(dim).learn_log(path)


def peak(path: Path, dim: int) -> float:
    """The peak memory in MB of a process that folds this log."""
    words = [sys.executable, __file__, "--peak-of", str(path), "--dim", str(dim)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(done.stdout)


def logging(dim: int, folder: Path, times: int = 5000) -> tuple[float, float]:
    """Microseconds of decide + reward, without a log and with one, while parts are written."""
    arms = np.random.default_rng(1).standard_normal((50, dim))
    prepared, found = dw.ArmSet(arms / np.linalg.norm(arms, axis=1, keepdims=True)), []
    for live in (False, True):
        agent = agent_of(dim)
        log = agent.log_to(folder / "live", rows=times // 5) if live else None
        begun = time.process_time()
        for t in range(times):
            agent.reward(agent.decide(prepared).id, 0.25 if t % 2 else 0.5)
        if log is not None:
            log.close()
        found.append((time.process_time() - begun) / times * 1e6)
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--peak-of", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of is not None:
        fold(options.peak_of, options.dim)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        path, tenth = folder / "log.parquet", folder / "tenth.parquet"
        write(path, options.rows, options.dim)
        if options.flat:
            write(tenth, options.rows // 10, options.dim)
            small, large = peak(tenth, options.dim), peak(path, options.dim)
            print(f"memory: {small:.0f} MB at {options.rows // 10:,} rows, {large:.0f} MB at {options.rows:,}")
            raise SystemExit(0 if large <= 1.05 * small else 1)
        small_log = folder / "warm.parquet"
        write(small_log, 1000, options.dim)
        fold(small_log, options.dim)
        table = [
            [spent(reading, path), spent(batches, path), spent(fold, path, options.dim)] for _ in range(options.repeats)
        ]
        alone, ours, folded = (statistics.median(column) for column in zip(*table, strict=True))
        seconds = f"reading {alone:.3f} s, batches {ours:.3f} s, fold {folded:.3f} s"
        print(f"{options.rows:,} rows x {options.dim}: {seconds}")
        print(f"of reading: batches {ours / alone:.2f}, fold {folded / alone:.2f} (allowed 2.5)")
        plain, logged = logging(options.dim, folder)
        print(f"decide + reward: {plain:.1f} us, with a log {logged:.1f} us, its thread's writing included")
    raise SystemExit(0 if folded <= 2.5 * alone else 1)


if __name__ == "__main__":
    main()
