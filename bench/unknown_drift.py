"""Gains of adapting to unknown drift: the bank against rivals that are given the path length.

    python bench/unknown_drift.py [--trials 20] [--seed 0] [--only linear|logistic|ablation] [--world NAME]

Every table is Markdown on stdout; docs/lab/unknown-drift/ has them.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import driftwise as dw
from drifts import linear_worlds, logistic_worlds
from driftwise.policies.adapt import MEMORIES, fades
from driftwise.policies.names import BANK_EXPLORATION
from driftwise.worlds import World

EXPLORATIONS = (0.1, 0.2, 0.3, 0.5, 1.0)


def told(world: World) -> dict[str, object]:
    """The facts that a policy which adapts may get."""
    return {key: value for key, value in world.facts.items() if key not in ("path_length", "changes")}


def contenders(world: World, linear: bool) -> dict[str, object]:
    """The bank twice, the tuned rival twice, BOB and MASTER."""
    weight, static = ("LB-WeightUCB", "OFUL") if linear else ("SCB-WeightUCB", "LogUCB1")
    e = BANK_EXPLORATION
    return {
        "bank": dw.make(f"Bank+{weight}", exploration=1.0, **told(world)),
        "tuned": dw.make(weight, **world.facts),
        "bank e": dw.make(f"Bank+{weight}", **told(world)),
        "tuned e": dw.make(weight, exploration=e, **world.facts),
        "BOB": dw.make(f"BOB+{weight}", **told(world)),
        "MASTER 0": dw.make(f"MASTER+{static}", test_scale=math.inf, **told(world)),
        "MASTER 13": dw.make(f"MASTER+{static}", n0=13, test_scale=math.inf, **told(world)),
    }


def best_pair(world: World, linear: bool, trials: int, seed: int) -> float:
    """The least mean regret of any fixed discount with any fixed exploration, in hindsight.

    All pairs run on a quarter of the trials, and the five best of those on all.
    """
    weight = "LB-WeightUCB" if linear else "SCB-WeightUCB"
    extra = {} if linear else {"estimate": "one-pass"}
    facts = world.facts
    pairs = {
        f"{memory.forget:.5g} {e}": dw.make(weight, memory=memory, exploration=e, **extra, **facts)
        for memory in fades(MEMORIES)
        for e in EXPLORATIONS
    }
    few = dw.simulate(pairs, world, trials=max(2, trials // 4), seed=seed, record="last", progress=False)
    short = sorted(pairs, key=lambda name: few.final(name).mean())[:5]
    chosen = {name: pairs[name] for name in short}
    full = dw.simulate(chosen, world, trials=trials, seed=seed, record="last", progress=False)
    return min(float(full.final(name).mean()) for name in short)


def table(worlds: dict[str, World], linear: bool, trials: int, seed: int) -> None:
    """Regret and ratios, world by world."""
    names = ["bank", "tuned", "bank e", "tuned e", "BOB", "MASTER 0", "MASTER 13"]
    ratios_of = "bank/tuned | bank e/tuned e | bank e/pair | bank e/tuned"
    print("| world | " + " | ".join(names) + f" | best pair | {ratios_of} |")
    print("|---" * (len(names) + 6) + "|")
    ratios = []
    for title, world in worlds.items():
        result = dw.simulate(contenders(world, linear), world, trials=trials, seed=seed, record="last", progress=False)
        mean = {name: float(result.final(name).mean()) for name in names}
        pair = best_pair(world, linear, trials, seed)
        row = (mean["bank"] / mean["tuned"], mean["bank e"] / mean["tuned e"], mean["bank e"] / pair,
               mean["bank e"] / mean["tuned"])
        ratios.append(row)
        cells = [f"{mean[name]:.0f}" for name in names] + [f"{pair:.0f}"] + [f"{ratio:.2f}" for ratio in row]
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    for label, function in (("mean", np.mean), ("max", np.max)):
        cells = [""] * (len(names) + 1) + [f"{value:.2f}" for value in function(np.array(ratios), axis=0)]
        print(f"| **{label}** | " + " | ".join(cells) + " |", flush=True)


ABLATIONS: dict[str, dict[str, object]] = {
    "as it is": {},
    "no sharing of weights": {"share": 0.0},
    "no margin (best memory played)": {"margin": 0.0},
    "no taking over": {"gap": 1e300},
    "no tilt towards long memories": {"tilt": 0.0},
    "four memories": {"memories": (8.0, 64.0, 512.0, math.inf)},
    "judge with κ = 0 (logistic)": {"kappa": 0.0},
}


def ablation(trials: int, seed: int) -> None:
    """The gain of each ingredient: mean and largest ratio to the tuned rival at exploration 1 and at the default."""
    heads = [f"{family}, e={e:g}: {kind}" for family in ("linear", "logistic") for e in (1.0, BANK_EXPLORATION)
             for kind in ("mean", "max")]
    print("| variant | " + " | ".join(heads) + " |")
    print("|---" * 9 + "|")
    cells: dict[str, list[str]] = {name: [] for name in ABLATIONS}
    for linear, worlds in ((True, linear_worlds()), (False, logistic_worlds())):
        weight = "LB-WeightUCB" if linear else "SCB-WeightUCB"
        for e in (1.0, BANK_EXPLORATION):
            ratios: dict[str, list[float]] = {name: [] for name in ABLATIONS}
            for world in worlds.values():
                policies: dict[str, object] = {
                    name: dw.make(f"Bank+{weight}", exploration=e, **fields, **told(world))
                    for name, fields in ABLATIONS.items()
                }
                policies["rival"] = dw.make(weight, exploration=e, **world.facts)
                result = dw.simulate(policies, world, trials=trials, seed=seed, record="last", progress=False)
                rival = result.final("rival").mean()
                for name in ABLATIONS:
                    ratios[name].append(float(result.final(name).mean() / rival))
            for name, values in ratios.items():
                cells[name] += [f"{np.mean(values):.2f}", f"{np.max(values):.2f}"]
    for name, row in cells.items():
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("linear", "logistic", "ablation"))
    parser.add_argument("--world", help="one world of the lists alone, for a closer look with more trials")
    options = parser.parse_args()

    def chosen(worlds: dict[str, World]) -> dict[str, World]:
        return {name: world for name, world in worlds.items() if options.world in (None, name)}

    if options.only in (None, "linear"):
        table(chosen(linear_worlds()), True, options.trials, options.seed)
    if options.only in (None, "logistic"):
        table(chosen(logistic_worlds()), False, options.trials, options.seed)
    if options.only in (None, "ablation"):
        ablation(max(2, options.trials // 2), options.seed)
    print(f"\n{options.trials} trials, seed {options.seed}")


if __name__ == "__main__":
    main()
