"""Eight trials at a time against the same trials one by one, in one run: rounds, whole simulations, and memory.

    python bench/trials.py [--repeats 7] [--many 100000]

Both ways alternate; ratios are medians of processor time. One by one is by the plain loops, as all trials were played
before: what tiles gain on them is in bench/tiles.py. `--many` plays so many short trials in one call and says what
they took, and how much memory the process came to hold.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import driftwise as dw
from driftwise._internal.python_first import compile_at_once
from driftwise.policies import engines
from driftwise.simulation import Result

compile_at_once()  # times of compiled code are measured

SIZES = ((2, 10, 6000, None), (2, 50, 3000, 0.27), (5, 50, 2000, None), (10, 100, 1000, 0.45), (20, 100, 400, None))
NAMES = ("LB-WeightUCB", "RestartUCB", "D-LinUCB")


def simulated(plays_eight: bool, name: str, world: dw.worlds.Turn, trials: int) -> tuple[float, Result]:
    """Seconds of a whole simulation, and its result; its own `seconds` are those of the rounds alone."""
    policy = dw.make(name, **world.facts)
    with engines.forced(None if plays_eight else "plain"):
        begun = time.process_time()
        result = dw.simulate({name: policy}, world, trials=trials, jobs=1, record="last", progress=False)
        return time.process_time() - begun, result


def rounds(repeats: int) -> None:
    """A round of a trial both ways, and the time of a simulation besides its rounds."""
    head = f"{'policy':>14} {'d':>3} {'n':>4} {'alone ns':>9} {'eight ns':>9} {'ratio':>6} {'allowed':>8}"
    print(head, f"{'besides, µs a trial':>20} {'before':>7}")
    for d, n, T, allowed in SIZES:
        world = dw.worlds.Turn(dim=d, arms=n, horizon=T)
        for name in NAMES:
            for plays_eight in (True, False):
                simulated(plays_eight, name, world, 8)
            taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
            for _ in range(repeats):
                for plays_eight, found in taken.items():
                    whole, result = simulated(plays_eight, name, world, 16)
                    alone = float(result.seconds[name].sum())
                    found.append((alone / 16 / T * 1e9, (whole - alone) / 16 * 1e6))
            new, old = np.array(taken[True]), np.array(taken[False])
            ratio, most = float(np.median(new[:, 0] / old[:, 0])), f"{allowed:.2f}" if allowed else "-"
            (fast, beside), (slow, before) = np.median(new, axis=0), np.median(old, axis=0)
            print(f"{name:>14} {d:>3} {n:>4} {slow:>9.0f} {fast:>9.0f} {ratio:>6.2f} {most:>8}", end=" ")
            print(f"{beside:>20.0f} {before:>7.0f}")


def overhead() -> None:
    """The cost of a trial before its first round, from trials of one round."""
    world = dw.worlds.Turn(horizon=1)
    for plays_eight in (True, False):
        simulated(plays_eight, "LB-WeightUCB", world, 8)
        taken = [simulated(plays_eight, "LB-WeightUCB", world, 400)[0] / 400 * 1e6 for _ in range(7)]
        print(f"a trial of one round, {'eight at a time' if plays_eight else 'one by one'}: {np.median(taken):.0f} µs")


def many(trials: int) -> None:
    """Many trials in one call."""
    world = dw.worlds.Turn(horizon=200)
    simulated(True, "LB-WeightUCB", world, 64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken, _ = simulated(True, "LB-WeightUCB", world, trials)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{trials:,} trials of {world.horizon} rounds: {taken:.1f} s of processor time, {grown:.0f} MB more memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--many", type=int, default=0)
    options = parser.parse_args()
    rounds(options.repeats)
    overhead()
    if options.many:
        many(options.many)


if __name__ == "__main__":
    main()
