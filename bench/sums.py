"""The cost of reducing a log, relative to reading it (docs/contract.md#logs).

    python bench/sums.py [--rows 1000000] [--dim 20] [--repeats 5]

CPU time of `dw.sums` over that of reading the same columns batch by batch; pairs take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import driftwise as dw
from driftwise.data.reduce import COLUMNS
from driftwise.tables import read_log


def write(path: Path, rows: int, dim: int) -> None:
    """A log of so many rows in one Parquet file."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dim)) / (4.0 * dim**0.5)
    ticks = np.arange(1, rows + 1)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), dim)
    table = pa.table({"born": ticks, "x": vectors, "reward": rng.standard_normal(rows), "reward_tick": ticks})
    pyarrow.parquet.write_table(table, path, row_group_size=100_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    policy = dw.LinearUCB(dim=asked.dim, memory=dw.Fade(1e-6), lam=1.0, L=10.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write(path, asked.rows, asked.dim)
        reading, reducing = [], []
        for _ in range(asked.repeats):
            begun = time.process_time()
            for _batch in read_log(path).batches(COLUMNS):
                pass
            middle = time.process_time()
            dw.sums(path, policy)
            reading.append(middle - begun)
            reducing.append(time.process_time() - middle)
    ratio = statistics.median(b / a for a, b in zip(reading, reducing, strict=True))
    print(f"{asked.rows} rows, d = {asked.dim}: read in {min(reading):.2f} CPU-seconds, "
          f"reduced in {min(reducing):.2f}, {ratio:.2f} times")  # fmt: skip


if __name__ == "__main__":
    main()
