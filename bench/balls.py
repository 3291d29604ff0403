"""The paper's turning world with a ball for arms: regret, its growth with T, and what a choice costs.

    python bench/balls.py [--trials N] [--out FILE.png] [--longest T]

Every policy of a trial meets the same rewards; regrets are means with 95% intervals. The cost of a choice on a ball is
a ratio to that from a list of 100 arms, of medians of runs that alternate, in processor time.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import driftwise as dw
from driftwise.simulation import t_interval

NAMES = ("LB-WeightUCB", "D-LinUCB", "Bank+LB-WeightUCB", "Auto", "OFUL")
TOLD = {"Bank+LB-WeightUCB": ("dim", "S", "L", "R"), "Auto": ("dim",)}


def policies(facts: Mapping[str, Any]) -> dict[str, Any]:
    """All policies by name, each with the facts that it needs."""
    return {name: dw.make(name, **{one: facts[one] for one in TOLD.get(name, facts)}) for name in NAMES}


def regrets(horizon: int, trials: int, arms: object) -> dw.Result:
    """Regret on one turn."""
    world = dw.worlds.Turn(dim=2, arms=arms, horizon=horizon)
    return dw.simulate(policies(world.facts), world, trials=trials, seed=0, record=max(1, horizon // 100), jobs=1)


def cost(dim: int = 10, arms: int = 100, runs: int = 15) -> dict[str, tuple[float, float]]:
    """A choice on a ball over one from a list, prepared and as an array."""
    rng, found = np.random.default_rng(0), {}
    rows = rng.standard_normal((arms, dim))
    rows /= np.sqrt((rows**2).sum(axis=1, keepdims=True))
    ball, prepared = dw.Ball(dim), dw.ArmSet(rows)
    facts = {"dim": dim, "horizon": 6000, "path_length": 6.283, "S": 1.0, "L": 1.0, "R": 1.0}
    for name, policy in policies(facts).items():
        state = policy.start()
        for _ in range(300):
            x = policy.choose(state, ball).x
            policy.learn(state, ball, x, float(x[0] + rng.standard_normal()))
        other, times = state.copy(), []
        for _ in range(runs):
            row = []
            for one, where in ((state, prepared), (state, rows), (other, ball)):
                begun = time.process_time()
                for _ in range(500):
                    policy.choose(one, where)
                row.append(time.process_time() - begun)
            times.append(row)
        listed, array, on_ball = np.median(times, axis=0)
        found[name] = (on_ball / listed, on_ball / array)
    return found


def main(trials: int, out: str | None, longest: int) -> None:
    """All tables, and the figure."""
    for name, (prepared, array) in cost().items():
        print(f"{name}: on a ball a choice costs {prepared:.2f} of a prepared list's, {array:.2f} of an array's, d=10")
    horizons = [T for T in (1500, 6000, 24000) if T <= longest]
    last: dw.Result | None = None
    table: dict[str, list[float]] = {name: [] for name in NAMES}
    for T in horizons:
        found = regrets(T, trials, dw.Ball(2))
        listed = regrets(T, trials, 50)
        for name in NAMES:
            mean, half = t_interval(found.final(name))
            on_list, wide = t_interval(listed.final(name))
            table[name].append(mean)
            both = f"ball {mean:7.0f} ± {half:4.0f}   list of 50 {on_list:7.0f} ± {wide:4.0f}"
            print(f"T = {T:6} {name:20} {both}", flush=True)
        last = found if T == 6000 or last is None else last
    for name, means in table.items():
        slopes = [math.log(b / a) / math.log(t / s) for a, b, s, t in
                  zip(means, means[1:], horizons, horizons[1:], strict=False)]
        print(f"{name:20} slopes in T: {', '.join(f'{one:.2f}' for one in slopes)}")
    if out and last is not None:
        draw(last, out)


def draw(found: dw.Result, out: str) -> None:
    """Mean regret over rounds."""
    from driftwise.draw.plots import pyplot

    plt = pyplot()
    picture, panel = plt.subplots(figsize=(7.0, 3.8))
    colours = dict(zip(NAMES, ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#333333"), strict=True))
    means = {name: found.regret[name].mean(axis=0) for name in NAMES}
    step, height = 0.05 * max(mean[-1] for mean in means.values()), -math.inf
    for name in sorted(NAMES, key=lambda one: float(means[one][-1])):
        mean = means[name]
        panel.plot(found.rounds, mean, color=colours[name])
        height = max(height + step, float(mean[-1]))  # names are moved so that they do not overlap
        panel.annotate(f" {name} {mean[-1]:.0f}", (found.rounds[-1], height), color=colours[name], fontsize=8,
                       va="center", annotation_clip=False)
    panel.set_xlabel("round")
    panel.set_ylabel("regret")
    panel.set_title("One turn, arms are the unit ball", fontsize=10)
    panel.set_xlim(0, found.rounds[-1])
    picture.subplots_adjust(right=0.74, bottom=0.14)
    picture.savefig(out, dpi=110)
    plt.close(picture)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--trials", type=int, default=10)
    asked.add_argument("--longest", type=int, default=24000)
    asked.add_argument("--out")
    main(**vars(asked.parse_args()))
