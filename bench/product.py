"""A simulated product: rewards late by 0 to 500 rounds, one in ten lost, items that come and go, a taste that jumps.

    python bench/product.py [--rounds 6000] [--trials 6] [--out docs/agent]

Against the same agent whose rewards come at once. Allowed: 1.3 times its regret, and once per start and jump the mean
delay times the mean regret of uniform play. With --out, draws the figure of docs/lab/measured.md.
"""

from __future__ import annotations

import argparse
import heapq
from pathlib import Path

import numpy as np

import driftwise as dw
from driftwise._internal.validate import Floats

DIM, SHELF, MOST_DELAY, LOST, NOISE = 5, 30, 500, 0.1, 0.3


def live(rounds: int, jumps: int, seed: int, late: bool, uniform: bool = False) -> Floats:
    """Cumulative regret of an agent, or of uniform play."""
    chance = np.random.default_rng(seed)  # the same product for all agents of a seed
    taste = chance.standard_normal((jumps + 1, DIM))
    taste /= np.linalg.norm(taste, axis=1, keepdims=True)
    shelf = _items(chance, SHELF)
    agent = dw.Agent.for_values(DIM, -2.0, 2.0, now=float)
    waiting: list[tuple[int, str, float]] = []
    regret, total = np.empty(rounds), 0.0
    for t in range(rounds):
        if t % 20 == 19:  # an item is replaced
            shelf[chance.integers(SHELF)] = _items(chance, 1)[0]
        noise, delay = NOISE * chance.standard_normal(), int(chance.integers(MOST_DELAY + 1))
        lost, drawn = chance.random() < LOST, int(chance.integers(SHELF))
        theta = taste[t * (jumps + 1) // rounds]
        means = shelf @ theta
        one = None if uniform else agent.decide(shelf)
        arm = drawn if one is None else one.arm
        total += means.max() - means[arm]
        regret[t] = total
        if one is None:
            continue
        value = float(np.clip(means[arm] + noise, -2.0, 2.0))
        if not late:
            agent.reward(one.id, value)
        elif not lost:
            heapq.heappush(waiting, (t + delay, one.id, value))
        while waiting and waiting[0][0] <= t:
            _, id, value = heapq.heappop(waiting)
            agent.reward(id, value)
    return regret


def _items(chance: np.random.Generator, count: int) -> Floats:
    rows = chance.standard_normal((count, DIM))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def allowed(prompt: float, by_chance: float, rounds: int, jumps: int) -> float:
    """The allowed regret of the delayed agent."""
    return 1.3 * prompt + MOST_DELAY / 2 * by_chance / rounds * (1 + jumps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6000)
    parser.add_argument("--jumps", type=int, default=2)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    T, jumps = options.rounds, options.jumps
    kinds = {"at once": (False, False), "late and lost": (True, False), "uniform": (False, True)}
    found = {name: np.array([live(T, jumps, seed, *kind) for seed in range(options.trials)])
             for name, kind in kinds.items()}
    for name, rows in found.items():
        print(f"{name:>14}: {rows[:, -1].mean():.0f}")
    most = allowed(found["at once"][:, -1].mean(), found["uniform"][:, -1].mean(), T, jumps)
    print(f"{'allowed':>14}: {most:.0f}")
    if options.out:
        from driftwise.draw.figure import Figure, Line
        from driftwise.draw.plots import draw

        every = np.arange(49, T, 50)
        lines = tuple(Line(name, found[name][:, every], np.array([np.nan])) for name in ("at once", "late and lost"))
        title = f"Rewards late by 0–{MOST_DELAY} rounds, 10% lost, items that come and go"
        draw([Figure("agent", title, tuple(int(t) + 1 for t in every), lines)], options.out)


if __name__ == "__main__":
    main()
