"""The cost of a round of optimism over a set, in rounds of SCB-WeightUCB of the same run, and the arms after pruning.

    python bench/sets.py [--rounds 1500]

The solver alone is timed (compiled `optimist_`, pruned), and the whole round as `simulate` steps it from Python.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import driftwise as dw
from driftwise._internal.python_first import compile_at_once
from driftwise.policies.base import ArmSet

compile_at_once()  # times of compiled code are measured


def measure(S: float, kind: str, exploration: float, rounds: int) -> tuple[float, float, float, float, int]:
    """Seconds of the solver and of a whole round, shares of arms looked at and solved, failures."""
    world = dw.worlds.Jumps(jumps=4, radius=S, reward="bernoulli")
    policy = dw.make("SCB-PW-WeightUCB", set=kind, exploration=exploration, **world.facts)
    state, tape = policy.start(), next(world.tapes())
    arms = ArmSet(tape.arms[0].T)
    X = policy._columns(arms)
    policy.choose(state, arms)
    solver, whole, looked, solved, failures = [], 0.0, 0, 0, 0
    for t in range(rounds):
        begun = time.perf_counter()
        choice = policy.choose(state, arms)
        value = 1.0 / (1.0 + np.exp(-float(X[0, :, choice.arm] @ tape.theta[t])))
        policy.learn(state, arms, choice.arm, float(tape.draws[t] < value))
        whole += time.perf_counter() - begun
        begun = time.perf_counter()
        _, _, how = policy._solve(state, X, True)
        solver.append(time.perf_counter() - begun)
        looked, solved, failures = looked + how.looked, solved + how.solved, failures + how.failures
    n = rounds * len(arms)
    return float(np.mean(solver)), whole / rounds, looked / n, solved / n, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1500)
    options = parser.parse_args()
    print("| S | set | exploration | solver, in SCB rounds | whole round | arms looked at | solved | failures |")
    print("|---|---|---|---|---|---|---|---|")
    for S in (1.0, 5.0):
        world = dw.worlds.Jumps(jumps=4, radius=S, reward="bernoulli")
        base = dw.make("SCB-WeightUCB", **world.facts)
        runs = dw.simulate({"base": base}, world, trials=5, jobs=1, record="last", progress=False)
        unit = float(runs.seconds["base"].min()) / world.horizon
        for kind in ("exact", "convex"):
            for e in (1.0, 0.1):
                solver, whole, looked, solved, failures = measure(S, kind, e, options.rounds)
                cells = (f"{S:g}", kind, f"{e:g}", f"{solver / unit:.0f}", f"{whole / unit:.0f}", f"{looked:.1%}",
                         f"{solved:.1%}", str(failures))
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
