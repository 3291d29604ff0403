"""A compiled LB-WeightUCB round against the same loop in C, in one run; and two threads against two C processes.

    python bench/linear.py [--repeats 9]

The two sides alternate, and the best of several repeats counts on both: the machines are shared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import driftwise as dw
from driftwise.lab.bench.rivals import c_compiler, compile_limit
from driftwise.policies.base import Compiled
from driftwise.worlds import Tape, World

SIZES = ((2, 50, 6000, 1.3), (10, 100, 6000, 1.1), (50, 200, 1000, 1.1))


def limit_ns(program: Path, d: int, n: int, T: int, runs: int) -> float:
    """Best nanoseconds per round of the C loop."""
    done = subprocess.run([program, *map(str, (d, n, T, runs))], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[1])


def tape_of(world: World) -> Tape:
    """All rounds of a world with fixed arms as one stretch."""
    parts = list(world.tapes())
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("theta", "draws", "best"))
    return Tape(parts[0].arms, *joined)


def play_once(policy: Compiled, world: World, tape: Tape) -> float:
    """Seconds of one whole run."""
    state = policy.start()
    chosen, regret = np.empty(len(tape.theta), dtype=np.int64), np.empty(len(tape.theta))
    begun = time.perf_counter()
    policy.play(state, *tape, world.link_code, world.reward_code, world.noise, 0.0, chosen, regret)
    return time.perf_counter() - begun


def rounds(program: Path, repeats: int) -> None:
    """One round, ours against C, at three sizes."""
    print(f"{'d':>4} {'n':>4} {'ours ns':>9} {'C ns':>9} {'ratio':>6} {'allowed':>8}")
    for d, n, T, allowed in SIZES:
        world = dw.worlds.Turn(dim=d, arms=n, horizon=T)
        policy, tape = dw.make("LB-WeightUCB", **world.facts), tape_of(world)
        play_once(policy, world, tape)
        ours, theirs = [], []
        runs = max(1, 20_000_000 // (T * n * d * d))
        for _ in range(repeats):
            theirs.append(limit_ns(program, d, n, T, runs))
            ours.append(min(play_once(policy, world, tape) for _ in range(runs)) / T * 1e9)
        print(f"{d:>4} {n:>4} {min(ours):>9.1f} {min(theirs):>9.1f} {min(ours) / min(theirs):>6.2f} {allowed:>8.2f}")


def flatness(repeats: int) -> None:
    """Time per round early and late in a long run."""
    world = dw.worlds.Turn(horizon=200_000)
    policy, tape = dw.make("LB-WeightUCB", **world.facts), tape_of(world)
    parts = [slice(1_000, 21_000), slice(180_000, 200_000)]
    best = [np.inf, np.inf]
    for _ in range(repeats):
        state = policy.start()
        for part, which in ((slice(0, 1_000), None), (parts[0], 0), (slice(21_000, 180_000), None), (parts[1], 1)):
            piece = Tape(tape.arms, *(field[part] for field in tape[1:]))
            size = len(piece.theta)
            begun = time.perf_counter()
            policy.play(state, *piece, 0, 0, 1.0, 0.0, np.empty(size, dtype=np.int64), np.empty(size))
            if which is not None:
                best[which] = min(best[which], (time.perf_counter() - begun) / size * 1e9)
    early, late = best
    print(f"rounds 1,000-21,000: {early:.1f} ns each; 180,000-200,000: {late:.1f} ns; ratio {late / early:.2f}")


def threads(program: Path, repeats: int) -> None:
    """The gain of two threads here, against that of two C processes."""
    world = dw.worlds.Turn(horizon=6000)
    policy = dw.make("LB-WeightUCB", **world.facts)
    tape = tape_of(world)
    runs = 300
    play_once(policy, world, tape)

    def ours(workers: int) -> float:
        begun = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda _: play_once(policy, world, tape), range(2 * runs)))
        return time.perf_counter() - begun

    def theirs(side_by_side: bool) -> float:
        command = [program, "2", "50", "6000", str(runs)]
        begun = time.perf_counter()
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if not side_by_side:
            first.wait()
        second = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        first.wait(), second.wait()
        return time.perf_counter() - begun

    gains = [(ours(1) / ours(2), theirs(False) / theirs(True)) for _ in range(repeats)]
    mine, c = (float(np.median(column)) for column in zip(*gains, strict=True))
    print(f"two threads gain {mine:.2f}, two C processes {c:.2f}: share {mine / c:.2f} (wanted 0.85)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cc = c_compiler()
        program = compile_limit(Path(folder), cc) if cc else None
        if program is None:
            sys.exit("there is no C compiler here that can build the loop to measure against")
        rounds(program, options.repeats)
        flatness(max(2, options.repeats // 2))
        threads(program, options.repeats)


if __name__ == "__main__":
    main()
