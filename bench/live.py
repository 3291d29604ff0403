"""The cost of a live call: choose + learn from Python, in compiled rounds of the same run.

    python bench/live.py [--repeats 9] [--dim 10] [--arms 50]

Processor time of the thread, medians over interleaved repeats: the machines are shared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import driftwise as dw
from driftwise._internal.python_first import compile_at_once
from linear import tape_of

compile_at_once()  # times of compiled code are measured

ALLOWED = 4.0


def cost(call: Callable[[], object], times: int = 3000) -> float:
    """Microseconds of a call."""
    begun = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - begun) / times * 1e6


def played(policy: Any, world: Any, tape: Any) -> float:
    """Microseconds of a compiled round."""
    state, size = policy.start(), len(tape.theta)
    chosen, regret = np.empty(size, dtype=np.int64), np.empty(size)
    begun = time.thread_time()
    policy.play(state, *tape, world.link_code, world.reward_code, world.noise, 0.0, chosen, regret)
    return (time.thread_time() - begun) / size * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--arms", type=int, default=50)
    options = parser.parse_args()
    world = dw.worlds.Turn(dim=options.dim, arms=options.arms)
    policy, tape = dw.make("LB-WeightUCB", **world.facts), tape_of(world)
    rows = np.ascontiguousarray(tape.arms[0].T)
    prepared, state = dw.ArmSet(rows), policy.start()
    for t in range(300):
        policy.learn(state, prepared, policy.choose(state, prepared).arm, 0.3 if t % 2 else 0.1)
    sides: dict[str, Callable[[], float]] = {
        "a compiled round": lambda: played(policy, world, tape),
        "choose, prepared arms": lambda: cost(lambda: policy.choose(state, prepared)),
        "learn, prepared arms": lambda: cost(lambda: policy.learn(state, prepared, 3, 0.3)),
        "choose, an array": lambda: cost(lambda: policy.choose(state, rows)),
        "learn, an array": lambda: cost(lambda: policy.learn(state, rows, 3, 0.3)),
    }
    seen: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(options.repeats + 1):
        for name, side in sides.items():
            found = side()
            if repeat:  # the first is to warm up
                seen[name].append(found)
    median = {name: float(np.median(values)) for name, values in seen.items()}
    unit = median["a compiled round"]
    for name, value in median.items():
        print(f"{name:<24} {value:7.2f} µs {value / unit:7.2f} rounds")
    for kind in ("prepared arms", "an array"):
        both = (median[f"choose, {kind}"] + median[f"learn, {kind}"]) / unit
        print(f"choose + learn, {kind}: {both:.2f} compiled rounds (at most {ALLOWED:g} with prepared arms)")


if __name__ == "__main__":
    main()
