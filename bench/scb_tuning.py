"""What gives the published 218 of SCB-WeightUCB at S = 5: all that its text leaves open, one by one and together.

    python bench/scb_tuning.py [--set NUMBER] [--trials 8] [--out results/scb_tuning.csv]

A literal SCB-WeightUCB plays trials side by side in the worlds of the main panels, all with the chosen set of arms.
`distance` is the root mean square of the mean curve minus the published one, over the published end. The row "the
package" is the compiled policy, which the literal one must equal up to chance.

The projection and its tolerance have no row of their own: the estimate never leaves the ball in these runs, so that
project=False plays the same bits. The table says in how many rounds it was outside.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import driftwise as dw
from driftwise import theory as th
from driftwise.lab.paper.panels import built_in
from driftwise.lab.paper.published import published_curves

Floats = np.ndarray[Any, np.dtype[np.float64]]
EVERY = 250


@dataclass(frozen=True)
class Tuning:
    """What the text leaves open. `ridge`: λ kept, grown as d log t/c, or faded with the data. `steps` of Newton's
    method are made in a round. `rate` is k in γ, and `k` that of the bonus."""

    lam: str = "d log T/c"
    delta: float = 1.0 / 6000.0
    rate: float = 1.0
    k: float = 0.25
    m: float = 1.0
    ridge: str = "kept"
    steps: int = 4

    def __str__(self) -> str:
        plain = Tuning()
        told = [f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
                for name, value in vars(self).items() if value != getattr(plain, name)]  # fmt: skip
        return ", ".join(told) or "as in the panel"


def play(world: Any, trials: int, tuning: Tuning, seed: int = 0) -> tuple[Floats, float]:
    """Mean regret every 250 rounds, and the share of rounds with the estimate outside the ball."""
    tapes = [list(world.tapes(seed, trial)) for trial in range(trials)]
    arms = np.stack([tape[0].arms[0].T for tape in tapes])
    draws = np.stack([np.concatenate([part.draws for part in tape]) for tape in tapes])
    theta, T, d, S = world.theta(), world.horizon, world.dim, world.S
    c = math.exp(-S) / (1.0 + math.exp(-S)) ** 2
    fixed = {"d log T/c": d * math.log(T) / c, "d/c": d / c, "d log T": d * math.log(T), "d": float(d)}[tuning.lam]
    gamma = 1.0 - max(1.0 / T, math.sqrt(tuning.rate * world.path_length / (d * T)))
    rows, weight, b = np.arange(trials), np.zeros(arms.shape[:2]), np.zeros((trials, d))
    estimate, lost, squares, outside = np.zeros((trials, d)), np.zeros(trials), 0.0, 0.0
    curve = []
    for t in range(T):
        lam = {"kept": fixed, "grown": max(fixed / math.log(T) * math.log(t + 2.0), 1.0),
               "faded": max(fixed * gamma**t, 1e-6)}[tuning.ridge]  # fmt: skip
        for _ in range(tuning.steps if t else 0):
            mean = 1.0 / (1.0 + np.exp(-np.einsum("knd,kd->kn", arms, estimate)))
            slope = np.einsum("knd,kn->kd", arms, weight * mean) + lam * c * estimate - b
            H = np.swapaxes(arms * (weight * mean * (1.0 - mean))[:, :, None], 1, 2) @ arms + lam * c * np.eye(d)
            estimate = estimate - np.linalg.solve(H, slope[:, :, None])[:, :, 0]
        outside += float((np.linalg.norm(estimate, axis=1) > S).mean())
        V = np.swapaxes(arms * weight[:, :, None], 1, 2) @ arms + lam * np.eye(d)
        width = np.sqrt(np.einsum("knd,knd->kn", arms, np.swapaxes(np.linalg.solve(V, np.swapaxes(arms, 1, 2)), 1, 2)))
        radius = th.scb_radius(squares, float(d), lam * c, -math.log(tuning.delta), S, 1.0, tuning.m, 0.25)
        mean = 1.0 / (1.0 + np.exp(-np.einsum("knd,kd->kn", arms, estimate)))
        score = mean + 2.0 * math.sqrt(1.0 + 2.0 * S) * tuning.k / math.sqrt(c) * radius * width
        played = score.argmax(axis=1)
        truth = 1.0 / (1.0 + np.exp(-arms @ theta[t]))
        chance = truth[rows, played]
        lost += truth.max(axis=1) - chance
        rewards = (draws[:, t] < chance).astype(float)
        weight, b, squares = gamma * weight, gamma * b, gamma * gamma * squares + 1.0
        weight[rows, played] += 1.0
        b += arms[rows, played] * rewards[:, None]
        if (t + 1) % EVERY == 0:
            curve.append(lost.mean())
    return np.array(curve), outside / T


def tunings() -> list[Tuning]:
    """One by one, then together."""
    single = [Tuning(), *(Tuning(delta=one) for one in (0.1, 0.05, 0.01, 1.0 / (2.0 * 6000.0**2))),
              *(Tuning(lam=one) for one in ("d/c", "d log T", "d")), Tuning(rate=0.25), Tuning(k=1.0), Tuning(m=0.5),
              Tuning(m=2.0), Tuning(ridge="grown"), Tuning(ridge="faded"), Tuning(steps=1)]  # fmt: skip
    grid = itertools.product(("d log T/c", "d/c"), (1.0 / 6000.0, 0.05), (1.0, 0.25), (0.25,), (1.0, 0.5))
    return list(dict.fromkeys([*single, *(Tuning(*one) for one in grid)]))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--trials", type=int, default=8)
    words.add_argument("--set", type=int, default=5114, help="the number of the set of arms that all trials share")
    words.add_argument("--out", type=Path, default=Path("results/scb_tuning.csv"))
    asked = words.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    at = np.arange(EVERY, 6001, EVERY)
    with asked.out.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("arms", "tuning", "S = 5: end", "distance", "S = 1: end", "distance", "outside the ball"))
        for tuning in ("the package", *tunings()):
            row = []
            for S in (5, 1):
                world = replace(built_in(f"scb_s{S}").contests[0][0].world, arms_of=asked.set)
                if isinstance(tuning, str):
                    policy = dw.make("SCB-WeightUCB", **world.facts)
                    found = dw.simulate(policy, world, trials=asked.trials, record=EVERY, jobs=1, progress=False)
                    (regret,), outside = found.regret.values(), 0.0
                    curve = regret.mean(axis=0)
                else:
                    curve, outside = play(world, asked.trials, tuning)
                there = published_curves()[f"SCB_S{S}", "SCB-WeightUCB"]
                apart = float(np.sqrt(np.mean((curve - np.interp(at, there.at, there.mean)) ** 2))) / there.final
                row += [f"{curve[-1]:.0f}", f"{apart:.3f}"]
            told = "–" if isinstance(tuning, str) else f"{outside:.1%}"
            lines.writerow((f"one set ({asked.set})", tuning, *row, told))
            file.flush()


if __name__ == "__main__":
    main()
