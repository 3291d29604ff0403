"""Regret of Auto, which is given nothing, against policies that are given R, S or P_T.

    python bench/auto.py [--trials 20] [--seed 0] [--only values|clicks] [--world NAME]

Every table is Markdown on stdout; docs/lab/unknown-drift/ has them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

import driftwise as dw
from drifts import linear_worlds, logistic_worlds
from driftwise.worlds import Jumps, Still, Turn, Walk, World
from unknown_drift import best_pair, told

QUANTILES = (1.0, 1.3, 1.65, 2.0)
MEMORIES = (*(float(2**i) for i in range(5, 13)), math.inf)


def mean_of(policies: dict[str, object], world: World, trials: int, seed: int) -> dict[str, float]:
    """Mean regret of each."""
    result = dw.simulate(policies, world, trials=trials, seed=seed, record="last", progress=False)
    return {name: float(result.final(name).mean()) for name in policies}


def best_rival(world: World, trials: int, seed: int) -> float:
    """The least mean regret of a posterior quantile with a fixed memory, both in hindsight, with noise and scale given.

    All run on a quarter of the trials, and the five best of those on all.
    """
    facts = {"dim": world.dim, "S": world.radius, "R": world.noise, "L": world.L, "radius": "posterior"}
    rivals: dict[str, object] = {
        f"{rounds:g} {c}": dw.LinearUCB(
            memory=dw.Fade(0.0 if math.isinf(rounds) else 1.0 / rounds), exploration=c / 2.0, **facts
        )
        for rounds in MEMORIES
        for c in QUANTILES
    }
    few = mean_of(rivals, world, max(2, trials // 4), seed)
    short = sorted(rivals, key=lambda name: few[name])[:5]
    return min(mean_of({name: rivals[name] for name in short}, world, trials, seed).values())


def table(
    worlds: dict[str, World], columns: dict[str, Callable[[World], float]], ratios: list[tuple[str, str]]
) -> None:
    """Regret and ratios of the first column to others, world by world; their mean, geometric mean and largest."""
    heads = [f"{over}/{under}" for over, under in ratios]
    print("| world | " + " | ".join([*columns, *heads]) + " |")
    print("|---" * (len(columns) + len(heads) + 1) + "|")
    rows = []
    for title, world in worlds.items():
        seen = {name: column(world) for name, column in columns.items()}
        rows.append([seen[over] / seen[under] for over, under in ratios])
        cells = [f"{value:.0f}" for value in seen.values()] + [f"{ratio:.2f}" for ratio in rows[-1]]
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    kept = np.array(rows)
    for label, values in (("mean", kept.mean(axis=0)), ("geometric mean", np.exp(np.log(kept).mean(axis=0))),
                          ("max", kept.max(axis=0))):
        cells = [""] * len(columns) + [f"{value:.2f}" for value in values]
        print(f"| **{label}** | " + " | ".join(cells) + " |", flush=True)
    print()


def values(worlds: dict[str, World], trials: int, seed: int) -> None:
    """Auto, given only dim, against the bank given R, LB-WeightUCB given P_T, and the best of two kinds in
    hindsight."""
    quiet = {
        "still, d=5, noise .1": Still(horizon=6000, dim=5, noise=0.1),
        "one turn, d=5, noise .1": Turn(horizon=6000, dim=5, noise=0.1),
        "3 jumps, noise .1": Jumps(horizon=6000, jumps=3, noise=0.1),
        "walk .005, d=5, noise .1": Walk(horizon=6000, dim=5, step=0.005, noise=0.1),
    }
    for these in (worlds, quiet):
        several(these, {
            "Auto": lambda world: dw.make("Auto", dim=world.dim),
            "bank": lambda world: dw.make("Bank+LB-WeightUCB", **told(world)),
            "tuned": lambda world: dw.make("LB-WeightUCB", **world.facts),
            "no looks": lambda world: dw.make("Auto", dim=world.dim, audit=0.0),
        }, {
            "best pair": lambda world: best_pair(world, True, trials, seed),
            "best rival": lambda world: best_rival(world, trials, seed),
        }, trials, seed)  # fmt: skip


def several(
    worlds: dict[str, World], policies: dict[str, Callable[[World], object]],
    others: dict[str, Callable[[World], float]], trials: int, seed: int, over: bool = False,
) -> None:
    """A table of policies that play in one run and of columns found otherwise; ratios of the first to the others, or
    of the others over the first."""
    seen: dict[int, dict[str, float]] = {}

    def column(name: str) -> Callable[[World], float]:
        def look(world: World) -> float:
            if id(world) not in seen:
                made = {name: policy(world) for name, policy in policies.items()}
                seen[id(world)] = mean_of(made, world, trials, seed)
            return seen[id(world)][name]

        return look

    first, *rest = [*policies, *others]
    ratios = [(name, first) if over else (first, name) for name in rest]
    table(worlds, {**{name: column(name) for name in policies}, **others}, ratios)


def clicks(worlds: dict[str, World], trials: int, seed: int) -> None:
    """Auto for clicks, given only dim, against the click bank, which is given S."""
    several(worlds, {
        "Auto": lambda world: dw.make("Auto", dim=world.dim, link="logistic"),
        "bank": lambda world: dw.make("Bank+SCB-WeightUCB", **told(world)),
        "tuned": lambda world: dw.make("SCB-WeightUCB", **world.facts),
        "no looks": lambda world: dw.make("Auto", dim=world.dim, link="logistic", audit=0.0),
    }, {"best pair": lambda world: best_pair(world, False, trials, seed)}, trials, seed)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("values", "clicks"))
    parser.add_argument("--world", help="one world of the lists alone, for a closer look with more trials")
    options = parser.parse_args()
    begun = time.time()

    def chosen(worlds: dict[str, World]) -> dict[str, World]:
        return {name: world for name, world in worlds.items() if options.world in (None, name)}

    trials, seed = options.trials, options.seed
    if options.only in (None, "values"):
        values(chosen(linear_worlds()), trials, seed)
    if options.only in (None, "clicks"):
        clicks(chosen(logistic_worlds(radii=(1.0, 3.0, 5.0))), trials, seed)
    print(f"{trials} trials, seed {seed}, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
