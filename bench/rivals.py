"""Every rival with its best memory and exploration in hindsight, beside Auto, which is given nothing.

    python bench/rivals.py [--trials 20] [--seed 0] [--only values|clicks] [--world NAME]

A rival is given noise and scale. It plays every memory with every exploration on a quarter of the trials; the five best
of those play all, and the best of these counts. Tables are Markdown on stdout; docs/unknown-drift-tables.md holds them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import driftwise as dw
from auto import mean_of, several
from drifts import linear_worlds, logistic_worlds
from driftwise.worlds import World

MEMORIES = (*(float(2**i) for i in range(5, 13)), math.inf)
Rival = Callable[[World, float, float], object]


def fade(rounds: float) -> dw.Fade:
    """The discount of a memory of so many rounds."""
    return dw.Fade(0.0 if math.isinf(rounds) else 1.0 / rounds)


def row(name: str, **fields: object) -> Rival:
    """A row of the catalogue with another memory and exploration."""
    return lambda world, rounds, e: dw.make(name, memory=fade(rounds), exploration=e, **fields, **world.facts)


def window(world: World, rounds: float, e: float) -> object:
    """SW-UCB with a window of so many rounds."""
    length = min(rounds, float(world.horizon))
    return dw.make("SW-UCB", memory=dw.Window(length), exploration=e, **world.facts)


def quantile(world: World, rounds: float, e: float) -> object:
    """Posterior UCB: exploration 1 is two standard deviations."""
    facts = {"dim": world.dim, "S": world.radius, "R": world.noise, "L": world.L}
    return dw.LinearUCB(memory=fade(rounds), radius="posterior", exploration=e, **facts)


def click_quantile(world: World, rounds: float, e: float) -> object:
    """Posterior UCB for clicks: exploration 1 is 1.5 standard deviations of the log odds."""
    facts = {"dim": world.dim, "S": world.radius, "L": world.L, "estimate": "one-pass"}
    return dw.PosteriorUCB(memory=fade(rounds), exploration=e, **facts)


THEOREM = (0.1, 0.2, 0.3, 0.5, 1.0)
STANDARD = (0.5, 0.65, 0.82, 1.0, 1.5)
VALUES: dict[str, tuple[Rival, tuple[float, ...]]] = {
    "LB-WeightUCB": (row("LB-WeightUCB"), THEOREM),
    "D-LinUCB": (row("D-LinUCB"), THEOREM),
    "SW-UCB": (window, THEOREM),
    "D-LinTS": (row("D-LinTS"), STANDARD),
    "D-RandLinUCB": (row("D-RandLinUCB"), THEOREM),
    "posterior UCB": (quantile, STANDARD),
}
CLICKS: dict[str, tuple[Rival, tuple[float, ...]]] = {
    "SCB-WeightUCB": (row("SCB-WeightUCB", estimate="one-pass"), THEOREM),
    "D-GLM-TSL": (row("D-GLM-TSL", estimate="one-pass"), STANDARD),
    "posterior UCB": (click_quantile, STANDARD),
}


def best(rival: Rival, explorations: tuple[float, ...], trials: int, seed: int) -> Callable[[World], float]:
    """The least mean regret of a rival, in hindsight."""

    def look(world: World) -> float:
        every = {f"{rounds:g} {e}": rival(world, rounds, e) for rounds in MEMORIES for e in explorations}
        few = mean_of(every, world, max(2, trials // 4), seed)
        short = sorted(every, key=lambda name: few[name])[:5]
        return min(mean_of({name: every[name] for name in short}, world, trials, seed).values())

    return look


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("values", "clicks"))
    parser.add_argument("--world", help="one world of the lists alone")
    options = parser.parse_args()
    begun = time.time()
    for kind, worlds, rivals, fields in (
        ("values", linear_worlds(), VALUES, {}), ("clicks", logistic_worlds(), CLICKS, {"link": "logistic"}),
    ):  # fmt: skip
        chosen = {name: world for name, world in worlds.items() if options.world in (None, name)}
        if chosen and options.only in (None, kind):
            found = {name: best(*rival, options.trials, options.seed) for name, rival in rivals.items()}
            auto = {"Auto": lambda world, fields=fields: dw.make("Auto", dim=world.dim, **fields)}
            several(chosen, auto, found, options.trials, options.seed)
    print(f"{options.trials} trials, seed {options.seed}, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
