"""How often one set of arms, shared by all trials, gives the order the paper shows at S = 5: GLB-WeightUCB ahead.

For every set the mean regret of a few trials of GLB-WeightUCB, GLB-RestartUCB and MASTER+GLM-UCB; printed are the
numbers of sets in which the first is below the others, and the sets themselves. Before that, how wavy mean curves are:
the coefficient of variation of what is lost in every 250 rounds, published, over 20 sets, and with one for 20 trials.

    python bench/arm_sets.py [--norm clip] [--sets 400] [--trials 3]
"""

from __future__ import annotations

import argparse

import numpy as np

import driftwise as dw
from driftwise._internal.progress import bar
from driftwise.lab.paper.published import published_curves

EVERY = 250
NAMES = {"GLB-WeightUCB": {}, "GLB-RestartUCB": {}, "MASTER+GLM-UCB": {"n0": 13}}


def waves(curve: np.ndarray) -> float:
    """The waves of a mean curve with a point every 50 rounds."""
    lost = np.diff(curve[EVERY // 50 - 1 :: EVERY // 50])
    return float(lost.std() / lost.mean())


def show_waves(norm: str) -> None:
    for panel, name, fields in (("GLB_S5", "GLB-WeightUCB", {"R": 1.0}), ("SCB_S5", "SCB-RestartUCB", {}),
                                ("SCB_S5", "SCB-WeightUCB", {})):  # fmt: skip
        found = []
        for shared in (None, *range(12)):
            world = dw.worlds.Turn(radius=5.0, reward="bernoulli", norm=norm, arms_of=shared)
            policy = dw.make(name, **fields, **world.facts)
            found.append(waves(dw.simulate({name: policy}, world, record=50).regret[name].mean(axis=0)))
        own, shared_sets = found[0], found[1:]
        span = f"{min(shared_sets):.2f} to {max(shared_sets):.2f}"
        print(f"{norm}: waves of {name}: published {waves(published_curves()[panel, name].mean):.2f}, "
              f"20 sets {own:.2f}, one set {span}")  # fmt: skip


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--norm", default="clip", choices=["unit", "clip", "max"])
    words.add_argument("--sets", type=int, default=400)
    words.add_argument("--trials", type=int, default=3)
    asked = words.parse_args()
    show_waves(asked.norm)
    ahead: dict[str, list[int]] = {rival: [] for rival in list(NAMES)[1:]}
    with bar("sets", asked.sets) as tick:
        for number in range(asked.sets):
            world = dw.worlds.Turn(radius=5.0, reward="bernoulli", norm=asked.norm, arms_of=number)
            policies = {name: dw.make(name, R=1.0, **fields, **world.facts) for name, fields in NAMES.items()}
            result = dw.simulate(policies, world, trials=asked.trials, record="last", progress=False)
            for rival, sets in ahead.items():
                if result.final("GLB-WeightUCB").mean() < result.final(rival).mean():
                    sets.append(number)
            tick(1)
    for rival, sets in ahead.items():
        print(f"{asked.norm}: GLB-WeightUCB below {rival} in {len(sets)} of {asked.sets} sets: {sets}")


if __name__ == "__main__":
    main()
