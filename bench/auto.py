"""Regret and cost of Auto, which is given nothing: against policies that are given R, S or P_T, and with wrong values.

    python bench/auto.py [--trials 20] [--seed 0] [--only values|clicks|rates|tails|untold|horizons|cost] [--world NAME]

Every table is Markdown on stdout; docs/unknown-drift-tables.md holds what it printed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

import driftwise as dw
from drifts import linear_worlds, logistic_worlds
from driftwise._internal.python_first import compile_at_once
from driftwise.worlds import Jumps, Still, Turn, Walk, World
from unknown_drift import best_pair, told

compile_at_once()  # times of compiled code are measured

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


def rates(trials: int, seed: int) -> None:
    """Clicks at a rate of about 3%: 20 arms (1, z), still, told nothing, S = ‖θ‖ right and 3 times wrong, and arms 8
    times as long."""
    names = ("Auto", "told S", "told S/3", "told 3S", "arms × 8", "bank, told S")
    lost: dict[str, list[float]] = {name: [] for name in names}
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        z, v = rng.standard_normal((20, 2)), rng.standard_normal(2)
        arms = np.column_stack([np.ones(20), z / np.linalg.norm(z, axis=1, keepdims=True)])
        theta = np.tile([-3.9, *(0.8 * v / np.linalg.norm(v))], (6000, 1))
        S, tape = float(np.linalg.norm(theta[0])), rng.random(6000)
        auto: Callable[..., object] = lambda **told: dw.make("Auto", dim=3, link="logistic", **told)  # noqa: E731
        made = {"Auto": auto(), "told S": auto(S=S), "told S/3": auto(S=S / 3.0), "told 3S": auto(S=3.0 * S),
                "bank, told S": dw.make("Bank+SCB-WeightUCB", dim=3, S=S, L=1.5)}  # fmt: skip
        world = dw.worlds.Given(arms=arms, theta=theta, tape=tape, reward="bernoulli")
        longer = dw.worlds.Given(arms=8.0 * arms, theta=theta / 8.0, tape=tape, reward="bernoulli")
        for name, regret in {**mean_of(made, world, 1, 0), **mean_of({"arms × 8": auto()}, longer, 1, 0)}.items():
            lost[name].append(regret)
    print("| clicks at 3% | regret | over Auto |\n|---|---|---|")
    for name in names:
        mean, error = np.mean(lost[name]), np.std(lost[name], ddof=1) / math.sqrt(trials)
        print(f"| {name} | {mean:.1f} ± {error:.1f} | {mean / np.mean(lost['Auto']):.2f} |", flush=True)
    print()


def tails(trials: int, seed: int) -> None:
    """The worst trials with little noise and five dimensions, without levels and with, and the best pair's mean."""
    worlds = {
        "still": Still(horizon=6000, dim=5, noise=0.1), "one turn": Turn(horizon=6000, dim=5, noise=0.1),
        "walk .005": Walk(horizon=6000, dim=5, step=0.005, noise=0.1),
    }  # fmt: skip
    print("| d=5, noise .1 | without levels, worst | Auto, worst | 3 × best pair |\n|---|---|---|---|")
    for name, world in worlds.items():
        made = {on: dw.make("Auto", dim=5, levels=on == "levels") for on in ("plain", "levels")}
        result = dw.simulate(made, world, trials=2 * trials, seed=seed, record="last", progress=False)
        worst = [f"{result.final(on).max():.0f}" for on in made]
        print(f"| {name} | {' | '.join(worst)} | {3.0 * best_pair(world, True, trials, seed):.0f} |", flush=True)
    print()


def untold(worlds: dict[str, World], trials: int, seed: int) -> None:
    """Auto with a first guess of R that is 10 times wrong, an S that is 3 times wrong, and rewards in other units."""
    chosen = {name: worlds[name] for name in ("still", "one turn", "3 jumps", "walk .005, d=5") if name in worlds}
    several(chosen, {
        "Auto": lambda world: dw.make("Auto", dim=world.dim),
        "R told": lambda world: dw.make("Auto", dim=world.dim, R=world.noise, S=world.radius),
        "guess R/10": lambda world: dw.make("Auto", dim=world.dim, R=("learn", world.noise / 10.0)),
        "guess 10R": lambda world: dw.make("Auto", dim=world.dim, R=("learn", world.noise * 10.0)),
        "S/3": lambda world: dw.make("Auto", dim=world.dim, S=world.radius / 3.0),
        "3S": lambda world: dw.make("Auto", dim=world.dim, S=world.radius * 3.0),
    }, {}, trials, seed, over=True)  # fmt: skip


def horizons(trials: int, seed: int) -> None:
    """Long runs: nothing depends on a horizon."""
    for T in (30_000, 200_000):
        worlds: dict[str, World] = {
            f"still, T={T:,}": Still(horizon=T), f"one turn, T={T:,}": Turn(horizon=T),
            f"5 jumps, T={T:,}": Jumps(horizon=T, jumps=5), f"walk .002, T={T:,}": Walk(horizon=T, step=0.002),
            f"one turn, d=5, T={T:,}": Turn(horizon=T, dim=5),
        }  # fmt: skip
        several(worlds, {
            "Auto": lambda world: dw.make("Auto", dim=world.dim),
            "bank": lambda world: dw.make("Bank+LB-WeightUCB", **told(world)),
            "tuned": lambda world: dw.make("LB-WeightUCB", **world.facts),
        }, {}, max(2, trials // 4), seed)  # fmt: skip


def cost(repeats: int = 5) -> None:
    """Time of a round as a multiple of the bank's in the same run."""
    print("| Auto for | d | arms | times the bank's cost | allowed |")
    print("|---|---|---|---|---|")
    rows = [("values", 2, 50, 4.0), ("values", 10, 100, 4.0), ("clicks", 2, 50, 0.5), ("clicks", 10, 100, 0.5)]
    for kind, d, n, allowed in rows:
        clicks = kind == "clicks"
        world = Turn(horizon=3000, dim=d, arms=n, **({"reward": "bernoulli", "radius": 3.0} if clicks else {}))
        pair = {
            "it": dw.make("Auto", dim=d, **({"link": "logistic"} if clicks else {})),
            "bank": dw.make("Bank+SCB-WeightUCB" if clicks else "Bank+LB-WeightUCB", **told(world)),
        }
        best = {"it": math.inf, "bank": math.inf}
        for _ in range(repeats):
            result = dw.simulate(pair, world, trials=3, jobs=1, record="last", progress=False)
            best = {key: min(best[key], float(result.seconds[key].min())) for key in best}
        print(f"| {kind} | {d} | {n} | {best['it'] / best['bank']:.2f} | {allowed} |", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("values", "clicks", "rates", "tails", "untold", "horizons", "cost"))
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
    if options.only in (None, "rates"):
        rates(trials, seed)
    if options.only in (None, "tails"):
        tails(trials, seed)
    if options.only in (None, "untold"):
        untold(chosen(linear_worlds()), trials, seed)
    if options.only in (None, "horizons"):
        horizons(trials, seed)
    if options.only in (None, "cost"):
        cost()
    print(f"{trials} trials, seed {seed}, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
