"""Levels that all arms share, distinguished from preferences; and audits of arms that are not played.

    python bench/levels.py [--trials 20] [--seed 0] [--only levels|weak|clicks|audits]

Every table is Markdown on stdout; docs/lab/unknown-drift/ has them. A trial of the level worlds has
its own arms, preferences, level and noise.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

import driftwise as dw
from drifts import linear_worlds
from driftwise.worlds import Given, World
from unknown_drift import told

T = 6000
MEMORIES = (32.0, 128.0, 512.0, 2048.0, math.inf)
Levels = Callable[[np.random.Generator], np.ndarray]
LEVELS: dict[str, Levels] = {
    "still": lambda rng: np.zeros(T),
    "seasons": lambda rng: 0.5 * np.sin(20.0 * np.pi * np.arange(T) / T),
    "blocks": lambda rng: np.repeat(0.3 * rng.standard_normal(T // 50), 50),
    "walk": lambda rng: np.clip(0.02 * np.cumsum(rng.standard_normal(T)), -0.7, 0.7),
}


def sphere(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Unit vectors."""
    z = rng.standard_normal(shape)
    return np.asarray(z / np.linalg.norm(z, axis=-1, keepdims=True))


def level_world(
    level: str, seed: int, trial: int, noise: float, arms: int = 20, turns: float = 0.0, basis: bool = False,
    fresh: bool = False,
) -> Given:
    """Arms (1, z)/√2 with a level for the first feature and preferences of norm .5 for z, which may turn; or the basis,
    an arm each, whose values all move with the level."""
    rng = np.random.default_rng([seed, trial])
    z, v, a = sphere(rng, *((T, arms) if fresh else (arms,)), 2), 0.5 * sphere(rng, 2), LEVELS[level](rng)
    angle = 2.0 * np.pi * turns * np.arange(T) / T
    v = np.stack([v[0] * np.cos(angle) - v[1] * np.sin(angle), v[0] * np.sin(angle) + v[1] * np.cos(angle)], axis=1)
    tape = rng.standard_normal(T)
    if basis:
        return Given(arms=np.eye(arms), theta=a[:, None] + v @ z.T, tape=tape, noise=noise)
    features = np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1) / math.sqrt(2.0)
    return Given(arms=features, theta=math.sqrt(2.0) * np.column_stack([a, v]), tape=tape, noise=noise)


def auto(world: World, **fields: object) -> dw.research.TrendBank:
    """The default, with levels and without."""
    policy = dw.make("Auto", dim=world.dim, **fields)
    assert isinstance(policy, dw.research.TrendBank)
    return policy


def fixed(world: World) -> dict[str, object]:
    """Static policies and fixed memories, by posterior and theorem, with noise and scale given."""
    facts = {"dim": world.dim, "S": world.radius, "R": world.noise, "L": world.L}
    found: dict[str, object] = {}
    for rounds in MEMORIES:
        memory = dw.Fade(0.0 if math.isinf(rounds) else 1.0 / rounds)
        found[f"posterior {rounds:g}"] = dw.LinearUCB(memory=memory, radius="posterior", **facts)
        found[f"theorem {rounds:g}"] = dw.LinearUCB(memory=memory, lam=float(world.dim), **facts)
    return found


def banks(world: World) -> dict[str, object]:
    """The default with levels, without, and the bank of discounts that is given R."""
    return {
        "levels": auto(world, levels=True), "no levels": auto(world, levels=False),
        "bank": dw.make("Bank+LB-WeightUCB", **told(world)),
    }  # fmt: skip


def losses(worlds: list[World], policies: Callable[[World], dict[str, object]], seed: int) -> dict[str, np.ndarray]:
    """Final regret of each policy, one trial per world."""
    rows: dict[str, list[float]] = {}
    for number, world in enumerate(worlds):
        made = policies(world)
        run = dw.simulate(made, world, trials=1, seed=seed + number, record="last", progress=False, jobs=1)
        for name in made:
            rows.setdefault(name, []).append(float(run.final(name)[0]))
    return {name: np.array(row) for name, row in rows.items()}


# The level of log odds, about -1.5.
CLICK_LEVELS: dict[str, Levels] = {
    "still": lambda rng: np.zeros(T),
    "seasons": lambda rng: 1.5 * np.sin(20.0 * np.pi * np.arange(T) / T),
    "blocks": lambda rng: np.repeat(1.2 * rng.standard_normal(T // 50), 50),
    "walk": lambda rng: np.clip(0.06 * np.cumsum(rng.standard_normal(T)), -2.5, 2.5),
}


def click_world(
    level: str, seed: int, trial: int, arms: int = 20, turns: float = 0.0, basis: bool = False, fresh: bool = False,
    rate: float = -1.5,
) -> Given:
    """level_world for clicks: log odds `rate` and a level, and preferences of norm 1.5."""
    rng = np.random.default_rng([seed, trial])
    z, v = sphere(rng, *((T, arms) if fresh else (arms,)), 2), 1.5 * sphere(rng, 2)
    a = CLICK_LEVELS[level](rng) + rate
    angle = 2.0 * np.pi * turns * np.arange(T) / T
    v = np.stack([v[0] * np.cos(angle) - v[1] * np.sin(angle), v[0] * np.sin(angle) + v[1] * np.cos(angle)], axis=1)
    tape = rng.random(T)
    if basis:
        return Given(arms=np.eye(arms), theta=a[:, None] + v @ z.T, tape=tape, reward="bernoulli")
    features = np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1) / math.sqrt(2.0)
    return Given(arms=features, theta=math.sqrt(2.0) * np.column_stack([a, v]), tape=tape, reward="bernoulli")


def fixed_clicks(world: World) -> dict[str, object]:
    """Static policies and fixed memories for clicks, by posterior and theorem, given the scale; all in one pass."""
    found: dict[str, object] = {}
    for rounds in MEMORIES:
        memory = dw.Fade(0.0 if math.isinf(rounds) else 1.0 / rounds)
        facts = {"dim": world.dim, "S": world.radius, "L": world.L, "estimate": "one-pass"}
        found[f"posterior {rounds:g}"] = dw.PosteriorUCB(memory=memory, **facts)
        known = {**world.facts, "memory": memory, "estimate": "one-pass", "exploration": 0.3}
        found[f"theorem {rounds:g}"] = dw.make("SCB-WeightUCB", **known)
    return found


def click_banks(world: World) -> dict[str, object]:
    """The default for clicks with levels, without, and the bank of discounts that is given S."""
    return {
        "levels": auto(world, levels=True, link="logistic"), "no levels": auto(world, levels=False, link="logistic"),
        "bank": dw.make("Bank+SCB-WeightUCB", **told(world)),
    }  # fmt: skip


def head(*columns: str) -> None:
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|", flush=True)


def against(title: str, worlds: list[World], seed: int, clicks: bool = False) -> None:
    """A row: best fixed one in hindsight, the banks, and the ratios that are asked for."""
    made, told_all = (click_banks, fixed_clicks) if clicks else (banks, fixed)
    seen = losses(worlds, lambda world: {**made(world), **told_all(world)}, seed)
    mean = {name: float(row.mean()) for name, row in seen.items()}
    best = min((name for name in mean if name.startswith(("posterior", "theorem"))), key=lambda name: mean[name])
    spread = float(seen["levels"].std(ddof=1) / math.sqrt(len(worlds))) if len(worlds) > 1 else math.nan
    cells = [
        f"{mean[best]:.0f} ({best})", f"{mean['bank']:.0f}", f"{mean['no levels']:.0f}",
        f"{mean['levels']:.0f} ± {spread:.0f}", f"{mean['levels'] / mean[best]:.2f}",
        f"{mean['levels'] / mean['bank']:.2f}", f"{mean['levels'] / mean['no levels']:.2f}",
    ]  # fmt: skip
    print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


AGAINST = ("best fixed", "bank", "Auto, no levels", "Auto, levels", "/best fixed", "/bank", "/no levels")


def levels(trials: int, seed: int) -> None:
    """A level that moves, preferences that stay."""
    head("level", *AGAINST)
    for basis in (False, True):
        for name in LEVELS:
            for noise in (1.0, 0.3):
                title = f"{name}, noise {noise:g}{', basis of 20' if basis else ''}"
                worlds: list[World] = [level_world(name, seed, k, noise, basis=basis) for k in range(trials)]
                against(title, worlds, seed)
    print()


def weak(trials: int, seed: int) -> None:
    """Worlds where a level and preferences are hard to distinguish: two arms, fresh arms."""
    head("weak spot", *AGAINST)
    for name in ("still", "seasons", "blocks", "walk"):
        for noise in (1.0, 0.3):
            two: list[World] = [level_world(name, seed, k, noise, arms=2) for k in range(trials)]
            against(f"{name}, two arms, noise {noise:g}", two, seed)
            basis: list[World] = [level_world(name, seed, k, noise, arms=2, basis=True) for k in range(trials)]
            against(f"{name}, basis of 2, noise {noise:g}", basis, seed)
            fresh: list[World] = [level_world(name, seed, k, noise, fresh=True) for k in range(trials)]
            against(f"{name}, fresh arms, noise {noise:g}", fresh, seed)
    print()


def clicks(trials: int, seed: int) -> None:
    """A level inside the link: worlds with one, and weak spots."""
    head("level of log odds", *AGAINST)
    spots: list[tuple[str, dict[str, object]]] = [
        ("", {}), (", basis of 20", {"arms": 20, "basis": True}), (", fresh arms", {"fresh": True}),
        (", 3% clicks", {"rate": -3.9}), (", 0.25 turns", {"turns": 0.25}), (", two arms", {"arms": 2}),
        (", basis of 2", {"arms": 2, "basis": True}),
    ]  # fmt: skip
    for more, fields in spots:
        for name in CLICK_LEVELS:
            worlds: list[World] = [click_world(name, seed, k, **fields) for k in range(trials)]  # type: ignore[arg-type]
            against(name + more, worlds, seed, clicks=True)
    print()


def hidden_rise(rng: np.random.Generator, noise: float, rises: bool) -> Given:
    """Basis arms; one that is far from the best rises above all at half time."""
    values = np.tile(rng.uniform(0.0, 0.5, 10), (T, 1))
    values[:, 0] = 0.7
    if rises:
        values[T // 2 :, 1] = 1.0
    return Given(arms=np.eye(10), theta=values, tape=rng.standard_normal(T), noise=noise)


def audits(trials: int, seed: int) -> None:
    """An arm that is not played rises at half time; and the cost of audits where no arm rises."""
    sizes = (0.0, 0.5, 1.0, 2.0, 4.0)
    head("world", *(f"audit={a:g}" for a in sizes))
    for noise in (1.0, 0.3):
        for rises in (True, False):
            made = [hidden_rise(np.random.default_rng([seed, k]), noise, rises) for k in range(trials)]
            seen = losses(list(made), lambda world: {f"{a:g}": auto(world, audit=a) for a in sizes}, seed)
            cells = " | ".join(f"{row.mean():.0f}" for row in seen.values())
            print(f"| {'hidden rise' if rises else 'still'}, noise {noise:g} | {cells} |", flush=True)
    for title in ("still", "one turn", "3 jumps", "still, d=5"):
        world = linear_worlds()[title]
        run = dw.simulate(
            {f"{a:g}": auto(world, audit=a) for a in sizes}, world, trials=trials, seed=seed, record="last",
            progress=False,
        )  # fmt: skip
        print(f"| {title} | " + " | ".join(f"{run.final(f'{a:g}').mean():.0f}" for a in sizes) + " |", flush=True)
    print()


TABLES = {
    "levels": levels, "weak": weak, "clicks": clicks, "audits": audits,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=tuple(TABLES))
    options = parser.parse_args()
    begun = time.time()
    for name, table in TABLES.items():
        if options.only in (None, name):
            table(options.trials, options.seed)
    print(f"{options.trials} trials, seed {options.seed}, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
