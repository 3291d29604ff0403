"""The sketched bound for fresh arms: how the squared error of the arms played grows with T and with P_T.

    python bench/promise.py [--trials 4] [--seed 0]

With fresh arms that are spread in all directions, greedy play by an estimate has E R_T ≤ 2L√(TQ/λ₀). Q is the sum of
(x'(θ - θ̂))² over the arms played (docs/math.md#auto). The best memory has Q of the order R√(d T P_T). A bank that is as
good as its best memory therefore shows slopes of at most 1/2 in log T and in log P_T, and R_T at most 3/4 and 1/4.
"""

from __future__ import annotations

import argparse

import numpy as np

import driftwise as dw
from driftwise.worlds import Turn, World


def played_error(world: World, seed: int, trial: int) -> tuple[float, float]:
    """Q and the regret of one trial of Auto, a call at a time."""
    policy = dw.make("Auto", dim=world.dim)
    state = policy.start(0)
    error = regret = 0.0
    for tape in world.tapes(seed, trial):
        for arms, theta, draw in zip(tape.arms, tape.theta, tape.draws, strict=True):
            rows = dw.ArmSet(arms.T)
            choice = policy.choose(state, rows)
            truth = arms.T @ theta
            error += (choice.mean - truth[choice.arm]) ** 2
            regret += truth.max() - truth[choice.arm]
            policy.learn(state, rows, choice.arm, float(truth[choice.arm] + world.noise * draw))
    return error, regret


def slopes(title: str, worlds: dict[float, World], trials: int, seed: int) -> None:
    """A row per world, and the least-squares slopes of log Q and log R_T against the log of its key."""
    print(f"| {title} | Q | R_T |\n|---|---|---|")
    seen = []
    for key, world in worlds.items():
        Q, regret = np.mean([played_error(world, seed, trial) for trial in range(trials)], axis=0)
        seen.append((np.log(key), np.log(Q), np.log(regret)))
        print(f"| {key:g} | {Q:.0f} | {regret:.0f} |", flush=True)
    x, q, r = np.array(seen).T
    print(f"| **slope** | {np.polyfit(x, q, 1)[0]:.2f} | {np.polyfit(x, r, 1)[0]:.2f} |\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    facts = {"dim": 3, "arms": 20, "fresh": True, "noise": 0.5}
    lengths = (1000, 2000, 4000, 8000, 16000, 32000)
    slopes("T, one turn", {T: Turn(horizon=T, **facts) for T in lengths}, options.trials, options.seed)
    turns = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    slopes("turns, T = 8000", {n: Turn(horizon=8000, turns=n, **facts) for n in turns}, options.trials, options.seed)


if __name__ == "__main__":
    main()
