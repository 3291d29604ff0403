"""A stream of 10⁶ imported rows, beside the stream that made them: time, digests, rows, and a killed process.

    python bench/imports.py [--rows 1000000] [--keep DIR]

Three processes: one lives the stream (groups of 500, each with its rewards a group later) and exports it, one imports
the log and is killed when its log has grown, one imports it again. Then the rows of both streams are compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from driftwise.service.operate.export import export  # noqa: E402
from driftwise.service.operate.importing import import_log  # noqa: E402
from driftwise.service.stores.sqlite import SQLiteStore  # noqa: E402
from service.desk import Desk  # noqa: E402

BODY = {"policy": {"name": "OFUL", "dim": 3, "horizon": 10**6}, "rewards": [0, 1], "half_life": 10_000, "epsilon": 0.05}
GROUP = 500


def live(folder: Path, rows: int) -> None:
    """Make a stream in a.db, its log, and a new stream of the same body in b.db."""
    rng, began = np.random.default_rng(0), time.perf_counter()
    sets = [np.round(rng.uniform(-0.5, 0.5, (4, 3)), 3).tolist() for _ in range(1_000)]
    desk, waiting = Desk(folder / "a.db", BODY), []
    for start in range(0, rows, GROUP):
        at = 1.6e9 + start / 1000
        for number, (id, arm) in enumerate(waiting):
            desk.reward(id, float((start + number + arm) % 3 == 0), at)
        waiting = [(f"d{n}", desk.decide(sets[n * 7 % 1000], at, id=f"d{n}").arm) for n in range(start, start + GROUP)]
        desk.commit()
    print(f"lived {rows} decisions in {time.perf_counter() - began:.0f} s", flush=True)
    desk.close()
    Desk(folder / "b.db", BODY).close()
    began = time.perf_counter()
    export(folder / "a.db", folder / "log")
    print(f"exported in {time.perf_counter() - began:.0f} s", flush=True)


def take(folder: Path) -> None:
    began = time.perf_counter()
    found = import_log(folder / "b.db", "home", folder / "log")
    took = time.perf_counter() - began
    print(json.dumps({**found._asdict(), "seconds": round(took, 1)}), flush=True)


def killed(folder: Path) -> None:
    """An import that is killed when its rows have reached the disk."""
    wal = folder / "b.db-wal"
    child = subprocess.Popen([sys.executable, __file__, "--do", "take", "--keep", str(folder)])
    while child.poll() is None and (not wal.exists() or wal.stat().st_size < 1 << 20):
        time.sleep(0.05)
    time.sleep(0.5)
    child.kill()
    child.wait()
    grown = wal.stat().st_size
    with closing(SQLiteStore(folder / "b.db")) as store:
        left = store.last_decision(1), store.last_reward(1), store.events(1)
    print(f"killed with {grown >> 20} MB of uncommitted log: {'nothing' if left == (None, None, []) else left} is left")


def compared(folder: Path) -> None:
    """Whether rows and digests are the same."""
    theirs, ours = (SQLiteStore(folder / name, writes=False) for name in ("a.db", "b.db"))
    same = decisions = rewards = 0
    for one, other in zip(theirs.decisions(1), ours.decisions(1), strict=True):
        decisions, same = decisions + 1, same + (one._replace(arm_set=0) == other._replace(arm_set=0))
    for row, other_row in zip(theirs.rewards(1), ours.rewards(1), strict=True):
        rewards, same = rewards + 1, same + (row == other_row)
    digests = theirs.digests(1, 1) == ours.digests(1, 1)
    print(f"{decisions} decisions and {rewards} rewards: {decisions + rewards - same} differ; "
          f"{len(ours.digests(1, 1))} digests: {'equal' if digests else 'DIFFERENT'}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--do", choices=["live", "killed", "take", "compared"])
    asked = parser.parse_args()
    folder = asked.keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    for name in [asked.do] if asked.do else ["live", "killed", "take", "compared"]:
        {"live": lambda f: live(f, asked.rows), "killed": killed, "take": take, "compared": compared}[name](folder)


if __name__ == "__main__":
    main()
