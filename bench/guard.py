"""A guard against slower code, by ratios within one run: `make guard`. No test depends on it.

    python bench/guard.py [--repeats 7]

Each line is the median CPU time of one thing over that of another, taken in turns. `known` is what a quiet machine
showed, whose processor the first line of the table names: another one may have other ratios. Half as much again is
allowed, for shared machines. A line that is slower is measured again, longer, at once and after all others; only one
that is slower each time ends with exit code 1. The sides are small: a guard that takes long is a guard that is left
out. What is not compiled yet is compiled first, by two processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

import driftwise as dw
from driftwise._internal.python_first import compile_at_once
from driftwise.lab.bench import rivals
from driftwise.policies import engines

compile_at_once()  # times of compiled code are measured

MARGIN = 1.5
# Where the known ratios were measured. On a cascadelake, LB-WeightUCB takes .61 of C and not .40.
FILLED = "an x86-64 processor with 512-bit vectors"
Side = Callable[[], float]


class Line(NamedTuple):
    """One thing over another."""

    name: str
    known: float
    one: Side
    other: Side


def rounds(name: str, d: int, n: int, T: int, road: str | None = None, trials: int = 1, alone: bool = False) -> Side:
    """CPU seconds a round of a policy in its turning world."""
    clicks = name.startswith(("GLB", "SCB"))
    world = dw.worlds.Turn(dim=d, arms=n, horizon=T, reward="bernoulli" if clicks else "gaussian")
    policy = dw.make(name, **world.facts)

    def side() -> float:
        with engines.forced(road, without=("eight",) if alone else ()):
            result = dw.simulate({"it": policy}, world, trials=trials, jobs=1, record="last", progress=False)
        return float(result.seconds["it"].sum()) / (T * trials)

    return side


def in_c(program: Path, d: int, n: int, T: int) -> Side:
    return lambda: rivals.c_round(program, d, n, T, 3)


def in_numpy(d: int, n: int) -> Side:
    world = dw.worlds.Turn(dim=d, arms=n, horizon=200)
    return lambda: rivals.numpy_round(world, 150)


def live(d: int, n: int) -> Side:
    """CPU seconds of choose and learn, called from Python on a prepared set."""
    world = dw.worlds.Turn(dim=d, arms=n, horizon=1000)
    policy = dw.make("LB-WeightUCB", **world.facts)
    arms = dw.ArmSet(np.ascontiguousarray(next(world.tapes()).arms[0].T))

    def side() -> float:
        state = policy.start()
        begun = time.thread_time()
        for _ in range(500):
            policy.learn(state, arms, policy.choose(state, arms).arm, 0.5)
        return (time.thread_time() - begun) / 500

    return side


def started(program: str) -> Side:
    """CPU seconds of a fresh Python."""

    def side() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return side


# The groups that are compiled before anything is measured; each takes about as long.
COMPILED = (("Auto",), ("GLB-WeightUCB", "SCB-WeightUCB", "Bank+LB-WeightUCB", "D-LinUCB"))
WARM = """
import sys
sys.path.insert(0, sys.argv[1])
import guard
for name in sys.argv[2:]:
    guard.rounds(name, 2, 50, 10)()
"""


def compile_all() -> None:
    """Compile everything that is measured, on all cores."""
    folder = str(Path(__file__).resolve().parent)
    begun = [subprocess.Popen([sys.executable, "-c", WARM, folder, *names]) for names in COMPILED]
    if any([one.wait() for one in begun]):
        sys.exit("what is to be measured cannot be compiled")


def eight_of_one() -> float:
    """The known time of eight lanes, relative to one by one; it depends on the width of the processor's vectors."""
    has = llvm.get_host_cpu_features()
    return 0.36 if has.get("avx512f") else 0.68 if has.get("avx2") else 0.95


FIRST = """
import driftwise as dw
world = dw.worlds.Turn(horizon=50)
dw.simulate({"it": dw.make("LB-WeightUCB", **world.facts)}, world, trials=1, jobs=1)
"""


def lines(program: Path | None) -> list[Line]:
    small, middle = rounds("LB-WeightUCB", 2, 50, 3000), rounds("LB-WeightUCB", 10, 100, 1500)
    bank = rounds("Bank+LB-WeightUCB", 10, 100, 600)
    found = [
        Line("eight trials in lanes, of one by one, (2, 50)", eight_of_one(),
             rounds("LB-WeightUCB", 2, 50, 1500, trials=8), rounds("LB-WeightUCB", 2, 50, 1500, trials=8, alone=True)),
        Line("tiles, of the plain loop, (10, 100)", 0.72, rounds("LB-WeightUCB", 10, 100, 1000, "tiled"),
             rounds("LB-WeightUCB", 10, 100, 1000, "plain")),
        Line("only what can win, of the plain loop, (32, 1000)", 0.13, rounds("LB-WeightUCB", 32, 1000, 150, "lazy"),
             rounds("LB-WeightUCB", 32, 1000, 150, "plain")),
        Line("a round, of one in NumPy, (10, 100)", 0.03, middle, in_numpy(10, 100)),
        Line("choose and learn from Python, of a round in NumPy, (10, 100)", 0.15, live(10, 100), in_numpy(10, 100)),
        Line("D-LinUCB, of LB-WeightUCB, (10, 100)", 2.8, rounds("D-LinUCB", 10, 100, 1000), middle),
        Line("the bank, of LB-WeightUCB, (10, 100)", 4.2, bank, middle),
        Line("Auto, of the bank, (10, 100)", 4.0, rounds("Auto", 10, 100, 300), bank),
        Line("GLB-WeightUCB, of LB-WeightUCB, (2, 50)", 14.0, rounds("GLB-WeightUCB", 2, 50, 800), small),
        Line("SCB-WeightUCB, of LB-WeightUCB, (2, 50)", 14.5, rounds("SCB-WeightUCB", 2, 50, 800), small),
        Line("a first simulate from a full cache, of import numba", 2.5, started(FIRST), started("import numba")),
    ]  # fmt: skip
    if program is not None:
        found += [
            Line("LB-WeightUCB, of C, (2, 50)", 0.40, small, in_c(program, 2, 50, 3000)),
            Line("LB-WeightUCB, of C, (10, 100)", 0.40, middle, in_c(program, 10, 100, 1500)),
        ]
    return found


def ratio(line: Line, repeats: int) -> float:
    """Medians of turns."""
    line.one(), line.other()
    pairs = [(line.one(), line.other()) for _ in range(repeats)]
    one, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    return one / other


def is_slower(line: Line, repeats: int) -> bool:
    """Measure and print a line; whether it is slower than allowed."""
    found = ratio(line, repeats)
    late = found > MARGIN * line.known
    print(f"{found:8.2f}  known {line.known:6.2f}  {'SLOWER' if late else '':6}  {line.name}", flush=True)
    return late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    compile_all()
    print(f"known ratios are of {FILLED}; this is {llvm.get_host_cpu_name()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cc = rivals.c_compiler()
        program = rivals.compile_limit(Path(folder), cc) if cc else None
        if program is None:
            print("no C compiler here: what is measured against C is left out", file=sys.stderr)
        late = [line for line in lines(program) if is_slower(line, repeats) and is_slower(line, 2 * repeats)]
        slow = [line.name for line in late if is_slower(line, 3 * repeats)]
    if slow:
        sys.exit(f"slower than half as much again on {llvm.get_host_cpu_name()}, three times: {', '.join(slow)}")


if __name__ == "__main__":
    main()
