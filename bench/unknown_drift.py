"""Adapting to unknown drift: Auto, which is told nothing, and the bank, beside policies that are told more.

    python bench/unknown_drift.py [--trials 20] [--seed 0] [--only TABLE] [--world NAME]

A table is Markdown on stdout, docs/lab/unknown-drift/ has them: `values` and `clicks` are Auto in worlds that drift;
`linear` and `logistic` the bank there, and `ablation` the bank without one part each; `levels`, `weak`, `odds` have a
level that all arms share, and in each trial other arms, preferences and noise; `looks` is the price of looks.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import driftwise as dw
from drifts import CLICK_LEVELS, LEVELS, click_world, hidden_rise, level_world, linear_worlds, logistic_worlds
from driftwise.policies.adapt import MEMORIES as BANK
from driftwise.policies.adapt import fades
from driftwise.policies.names import BANK_EXPLORATION
from driftwise.worlds import World

EXPLORATIONS = (0.1, 0.2, 0.3, 0.5, 1.0)
QUANTILES = (1.0, 1.3, 1.65, 2.0)
MEMORIES = (*(float(2**i) for i in range(5, 13)), math.inf)
FIXED = (32.0, 128.0, 512.0, 2048.0, math.inf)
Policies = Callable[[World], dict[str, object]]
Worlds = Mapping[str, World | list[World]]


def told(world: World) -> dict[str, object]:
    """The facts that a policy which adapts may get."""
    return {key: value for key, value in world.facts.items() if key not in ("path_length", "changes")}


def fade(rounds: float) -> dw.Fade:
    return dw.Fade(0.0 if math.isinf(rounds) else 1.0 / rounds)


class Tables:
    """Tables of mean regret, by their trials and seed; of one world if it is named."""

    def __init__(self, trials: int, seed: int, only: str | None) -> None:
        self.trials, self.seed, self.only = trials, seed, only

    def losses(self, policies: Policies, worlds: World | list[World], trials: int | None = None) -> dict[str, float]:
        """Mean final regret of each policy: trials of a world, or one trial of each of many."""
        rows: dict[str, list[float]] = {}
        for number, world in enumerate(worlds if isinstance(worlds, list) else [worlds]):
            count = 1 if isinstance(worlds, list) else trials or self.trials
            seed = self.seed + number
            run = dw.simulate(policies(world), world, trials=count, seed=seed, record="last", progress=False)
            for name in run.regret:
                rows.setdefault(name, []).extend(run.final(name))
        return {name: float(np.mean(row)) for name, row in rows.items()}

    def hindsight(self, rivals: Mapping[str, object], world: World) -> float:
        """The least mean regret of many policies. All play a quarter of the trials, and the five best of those all."""
        few = self.losses(lambda _: dict(rivals), world, max(2, self.trials // 4))
        short = sorted(rivals, key=few.__getitem__)[:5]
        return min(self.losses(lambda _: {name: rivals[name] for name in short}, world).values())

    def show(self, worlds: Worlds, policies: Policies, columns: Sequence[str], ratios: Sequence[str],
             found: Mapping[str, Callable[[World], float]] | None = None) -> None:  # fmt: skip
        """Regret by world, and ratios "over/under" with their means. `best fixed` is the least of the policies that are
        no column; columns of `found` are found otherwise."""
        print(f"| world | {' | '.join([*columns, *ratios])} |\n{'|---' * (len(columns) + len(ratios) + 1)}|")
        rows = []
        for title, world in worlds.items():
            if self.only in (None, title):
                seen = self.losses(policies, world)
                seen["best fixed"] = min((loss for name, loss in seen.items() if name not in columns), default=math.nan)
                seen |= {name: look(world) for name, look in (found or {}).items() if isinstance(world, World)}
                rows.append([seen[over] / seen[under] for over, under in (one.split("/") for one in ratios)])
                cells = [f"{seen[name]:.0f}" for name in columns] + [f"{ratio:.2f}" for ratio in rows[-1]]
                print(f"| {title} | {' | '.join(cells)} |", flush=True)
        kept = np.array(rows)
        if kept.size:
            geometric = np.exp(np.log(kept).mean(axis=0))
            means = (("mean", kept.mean(axis=0)), ("geometric mean", geometric), ("max", kept.max(axis=0)))
            for label, values in means:
                print(f"| **{label}** | {' | '.join([''] * len(columns) + [f'{value:.2f}' for value in values])} |")
        print()

    def best_pair(self, world: World) -> float:
        """The best fixed discount with any fixed exploration, in hindsight."""
        linear = world.reward == "gaussian"
        weight, extra = ("LB-WeightUCB", {}) if linear else ("SCB-WeightUCB", {"estimate": "one-pass"})
        return self.hindsight({
            f"{memory.forget:.5g} {e}": dw.make(weight, memory=memory, exploration=e, **extra, **world.facts)
            for memory in fades(BANK) for e in EXPLORATIONS
        }, world)  # fmt: skip

    def best_rival(self, world: World) -> float:
        """The best posterior quantile with a fixed memory, in hindsight, with noise and scale given."""
        facts = {"dim": world.dim, "S": world.radius, "R": world.noise, "L": world.L, "radius": "posterior"}
        return self.hindsight({
            f"{rounds:g} {c}": dw.LinearUCB(memory=fade(rounds), exploration=c / 2.0, **facts)
            for rounds in MEMORIES for c in QUANTILES
        }, world)  # fmt: skip

    def values(self) -> None:
        self._auto(linear_worlds(), "LB-WeightUCB", {"best pair": self.best_pair, "best rival": self.best_rival})

    def clicks(self) -> None:
        worlds = logistic_worlds(radii=(1.0, 3.0, 5.0))
        self._auto(worlds, "SCB-WeightUCB", {"best pair": self.best_pair}, link="logistic")

    def _auto(self, worlds: Worlds, weight: str, found: dict[str, Callable[[World], float]], **link: str) -> None:
        """Auto, given only dim, against the bank given R or S, the paper's algorithm given P_T, and hindsight."""
        columns = ["Auto", "bank", "tuned", "no looks", *found]
        self.show(worlds, lambda world: {
            "Auto": dw.make("Auto", dim=world.dim, **link), "bank": dw.make(f"Bank+{weight}", **told(world)),
            "tuned": dw.make(weight, **world.facts), "no looks": dw.make("Auto", dim=world.dim, looks=0.0, **link),
        }, columns, [f"Auto/{one}" for one in columns[1:]], found)  # fmt: skip

    def linear(self) -> None:
        self._bank(linear_worlds(), "LB-WeightUCB", "OFUL")

    def logistic(self) -> None:
        self._bank(logistic_worlds(), "SCB-WeightUCB", "LogUCB1")

    def _bank(self, worlds: Worlds, weight: str, static: str) -> None:
        """The bank against the tuned rival, both at exploration 1 and at the bank's, BOB and MASTER."""
        def policies(world: World) -> dict[str, object]:
            return {
                "bank": dw.make(f"Bank+{weight}", exploration=1.0, **told(world)),
                "tuned": dw.make(weight, **world.facts),
                "bank e": dw.make(f"Bank+{weight}", **told(world)),
                "tuned e": dw.make(weight, exploration=BANK_EXPLORATION, **world.facts),
                "BOB": dw.make(f"BOB+{weight}", **told(world)),
                "MASTER 0": dw.make(f"MASTER+{static}", test_scale=math.inf, **told(world)),
                "MASTER 13": dw.make(f"MASTER+{static}", n0=13, test_scale=math.inf, **told(world)),
            }  # fmt: skip

        columns = ["bank", "tuned", "bank e", "tuned e", "BOB", "MASTER 0", "MASTER 13", "best pair"]
        ratios = ["bank/tuned", "bank e/tuned e", "bank e/best pair", "bank e/tuned"]
        self.show(worlds, policies, columns, ratios, {"best pair": self.best_pair})

    def ablation(self) -> None:
        """The bank without one part each: ratios to the tuned rival."""
        parts: dict[str, dict[str, object]] = {
            "as it is": {}, "no sharing of weights": {"share": 0.0}, "no margin": {"margin": 0.0},
            "no taking over": {"gap": 1e300}, "no tilt": {"tilt": 0.0},
            "four memories": {"memories": (8.0, 64.0, 512.0, math.inf)}, "κ = 0": {"kappa": 0.0},
        }  # fmt: skip
        for worlds, weight in ((linear_worlds(), "LB-WeightUCB"), (logistic_worlds(), "SCB-WeightUCB")):
            for e in (1.0, BANK_EXPLORATION):
                print(f"exploration {e:g}")
                self.show(worlds, lambda world, e=e, weight=weight: {  # type: ignore[misc]
                    **{name: dw.make(f"Bank+{weight}", exploration=e, **fields, **told(world))
                       for name, fields in parts.items()},
                    "tuned": dw.make(weight, exploration=e, **world.facts),
                }, [*parts, "tuned"], [f"{name}/tuned" for name in parts])  # fmt: skip

    def levels(self) -> None:
        """A level that moves, preferences that stay."""
        self._levels({
            f"{name}, noise {noise:g}{', basis of 20' if basis else ''}":
                [level_world(name, self.seed, k, noise, basis=basis) for k in range(self.trials)]
            for basis in (False, True) for name in LEVELS for noise in (1.0, 0.3)
        })  # fmt: skip

    def weak(self) -> None:
        """Where a level and preferences are hard to distinguish: two arms, fresh arms."""
        spots = {"two arms": {"arms": 2}, "basis of 2": {"arms": 2, "basis": True}, "fresh arms": {"fresh": True}}
        self._levels({
            f"{name}, {spot}, noise {noise:g}":
                [level_world(name, self.seed, k, noise, **fields) for k in range(self.trials)]  # type: ignore[arg-type]
            for name in LEVELS for noise in (1.0, 0.3) for spot, fields in spots.items()
        })  # fmt: skip

    def odds(self) -> None:
        """A level inside the link: worlds with one, and weak spots."""
        spots: dict[str, dict[str, object]] = {
            "": {}, ", basis of 20": {"arms": 20, "basis": True}, ", fresh arms": {"fresh": True},
            ", 3% clicks": {"rate": -3.9}, ", 0.25 turns": {"turns": 0.25}, ", two arms": {"arms": 2},
            ", basis of 2": {"arms": 2, "basis": True},
        }  # fmt: skip
        self._levels({
            name + more: [click_world(name, self.seed, k, **fields) for k in range(self.trials)]  # type: ignore[arg-type]
            for more, fields in spots.items() for name in CLICK_LEVELS
        }, link="logistic")  # fmt: skip

    def _levels(self, worlds: Worlds, **link: str) -> None:
        """Auto with levels and without, the bank, and posteriors and theorems that are told noise and scale."""
        def policies(world: World) -> dict[str, object]:
            facts = {"dim": world.dim, "S": world.radius, "L": world.L}
            found: dict[str, object] = {
                "Auto": dw.make("Auto", dim=world.dim, **link),
                "bank": dw.make("Bank+SCB-WeightUCB" if link else "Bank+LB-WeightUCB", **told(world)),
            }  # fmt: skip
            for rounds in FIXED:
                memory = fade(rounds)
                if link:
                    known = {**world.facts, "memory": memory, "estimate": "one-pass", "exploration": 0.3}
                    found[f"posterior {rounds:g}"] = dw.PosteriorUCB(memory=memory, estimate="one-pass", **facts)
                    found[f"theorem {rounds:g}"] = dw.make("SCB-WeightUCB", **known)
                else:
                    known = {**facts, "memory": memory, "R": world.noise}
                    found[f"posterior {rounds:g}"] = dw.LinearUCB(radius="posterior", **known)
                    found[f"theorem {rounds:g}"] = dw.LinearUCB(lam=float(world.dim), **known)
            return found

        columns = ["best fixed", "bank", "Auto"]
        self.show(worlds, policies, columns, [f"Auto/{one}" for one in columns[:2]])

    def looks(self) -> None:
        """An arm that is not played rises at half time; and the cost of looks where no arm rises."""
        worlds: dict[str, World | list[World]] = {
            f"{'hidden rise' if rises else 'still'}, noise {noise:g}":
                [hidden_rise(np.random.default_rng([self.seed, k]), noise, rises) for k in range(self.trials)]
            for noise in (1.0, 0.3) for rises in (True, False)
        }  # fmt: skip
        worlds |= {title: linear_worlds()[title] for title in ("still", "one turn", "3 jumps", "still, d=5")}
        sizes = (0.0, 0.5, 1.0, 2.0, 4.0)
        self.show(worlds, lambda world: {f"{a:g}": dw.make("Auto", dim=world.dim, looks=a) for a in sizes},
                  [f"{a:g}" for a in sizes], [])  # fmt: skip


TABLES = ("values", "clicks", "linear", "logistic", "ablation", "levels", "weak", "odds", "looks")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--world", help="one row alone, for a closer look with more trials")
    options = parser.parse_args()
    begun, tables = time.time(), Tables(options.trials, options.seed, options.world)
    for name in TABLES:
        if options.only in (None, name):
            getattr(tables, name)()
    print(f"{options.trials} trials, seed {options.seed}, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
