"""Levels that all arms share, distinguished from preferences; and audits of arms that are not played.

    python bench/levels.py [--trials 20] [--seed 0] [--only levels|turning|jumps|weak|ordinary|clicks|audits|late]

Every table is Markdown on stdout; docs/unknown-drift-tables.md holds what it printed. A trial of the level worlds has
its own arms, preferences, level and noise.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

import driftwise as dw
from drifts import linear_worlds, logistic_worlds
from driftwise.worlds import Given, Jumps, World
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


def auto(world: World, **fields: object) -> dw.TrendBank:
    """The default, with levels and without."""
    policy = dw.make("Auto", dim=world.dim, **fields)
    assert isinstance(policy, dw.TrendBank)
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


def turning(trials: int, seed: int) -> None:
    """A level that moves, and preferences that turn slowly."""
    head("level, turning", *AGAINST)
    for name in LEVELS:
        for turns in (0.25, 1.0):
            for noise in (1.0, 0.3):
                worlds: list[World] = [level_world(name, seed, k, noise, turns=turns) for k in range(trials)]
                against(f"{name}, {turns:g} turns, noise {noise:g}", worlds, seed)
    print()


def jumps(trials: int, seed: int) -> None:
    """Jumps of preferences that a level must not absorb."""
    head("jumps", "Auto, no levels", "Auto, levels", "worst trial")
    for noise in (0.1, 0.3, 1.0):
        world = Jumps(horizon=T, jumps=3, noise=noise)
        run = dw.simulate(
            {name: auto(world, levels=on) for name, on in (("off", False), ("on", True))}, world, trials=trials,
            seed=seed, record="last", progress=False,
        )  # fmt: skip
        off, on = run.final("off"), run.final("on")
        print(f"| 3, noise {noise:g} | {off.mean():.0f} | {on.mean():.0f} | {on.max():.0f} |", flush=True)
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


def beside(worlds: dict[str, World], trials: int, seed: int, **fields: object) -> None:
    """Worlds none of which has a level, without levels and with."""
    head("world", "no levels", "levels", "ratio")
    ratios = []
    for title, world in worlds.items():
        pair = {"off": auto(world, levels=False, **fields), "on": auto(world, levels=True, **fields)}
        run = dw.simulate(pair, world, trials=trials, seed=seed, record="last", progress=False)
        off, on = float(run.final("off").mean()), float(run.final("on").mean())
        ratios.append(on / off)
        print(f"| {title} | {off:.0f} | {on:.0f} | {on / off:.2f} |", flush=True)
    print(f"| **mean** | | | {np.mean(ratios):.3f} |\n| **max** | | | {max(ratios):.2f} |\n")


def ordinary(trials: int, seed: int) -> None:
    """The worlds of bench/drifts.py."""
    beside(linear_worlds(), trials, seed)


def clicks(trials: int, seed: int) -> None:
    """A level inside the link: worlds with one, weak spots, and the ordinary worlds of clicks."""
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
    beside(logistic_worlds(radii=(1.0, 3.0, 5.0)), trials, seed, link="logistic")


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


def reported(policy: object, trial: tuple[int, int], delay: float, deadline: int, turns: float) -> float:
    """Regret of an agent whose readers differ, whose clicks come late, and which learns a 0 at the deadline."""
    rng, visits, arms = np.random.default_rng(trial), 4000, 6
    items, readers = sphere(rng, arms, 3), sphere(rng, visits, 3)
    tape, delays = rng.random(visits), rng.exponential(delay, visits)
    agent = dw.Agent(policy, rewards=(0.0, 1.0), expire_after=deadline, default_reward=0.0)
    coming: dict[int, list[str]] = {}
    lost = 0.0
    for visit, reader in enumerate(readers):
        for id in coming.pop(visit, ()):
            agent.reward(id, 1.0)
        angle = 2.0 * np.pi * turns * visit / visits
        turned = np.array([
            [math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0], [0.0, 0.0, 1.0],
        ])  # fmt: skip
        clicked = 1.0 / (1.0 + np.exp(1.0 - 3.0 * (reader @ turned @ items.T)))
        crossed = (reader[None, :, None] * items[:, None, :]).reshape(arms, 9)
        shown = agent.decide(np.column_stack([np.ones(arms), crossed]) / math.sqrt(2.0))
        lost += float(clicked.max() - clicked[shown.arm])
        if tape[visit] < clicked[shown.arm] and delays[visit] < deadline:
            coming.setdefault(visit + max(1, math.ceil(delays[visit])), []).append(shown.id)
    return lost


def late(trials: int, seed: int) -> None:
    """Late clicks, and defaults at a deadline: only the level of what is reported moves."""
    def static(memory: dw.Keep | dw.Fade) -> object:
        return dw.PosteriorUCB(dim=10, memory=memory, S=None, L=None, estimate="one-pass")

    made = {
        "Auto": dw.make("Auto", dim=10, link="logistic"),
        "no levels": dw.make("Auto", dim=10, link="logistic", levels=False),
        "static": static(dw.Keep()), "half-life 300": static(dw.Fade(1.0 - 0.5 ** (1.0 / 300.0))),
    }  # fmt: skip
    head("mean delay, deadline, turns", *made)
    for delay, deadline in ((15.0, 60), (60.0, 300)):
        for turns in (0.0, 0.5):
            cells = []
            for policy in made.values():
                seen = [reported(policy, (seed, trial), delay, deadline, turns) for trial in range(max(2, trials // 3))]
                cells.append(f"{np.mean(seen):.0f} ± {np.std(seen, ddof=1) / math.sqrt(len(seen)):.0f}")
            print(f"| {delay:g}, {deadline}, {turns:g} | {' | '.join(cells)} |", flush=True)
    print()


TABLES = {
    "levels": levels, "turning": turning, "jumps": jumps, "weak": weak, "ordinary": ordinary, "clicks": clicks,
    "audits": audits, "late": late,
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
