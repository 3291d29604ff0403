"""Prices: a shop that asks one of nine prices, on the wall clock, and is restarted every night.

    python examples/prices.py [FOLDER]

What a customer may pay drifts with the season, so the memory is "two weeks". The reward is the margin, which comes when
the order is settled, a day or two later. The agent is saved after every day and loaded the next morning, open decisions
and all. A price is described by how near it is to each of six, so that neighbours learn from each other.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import driftwise as dw

DAY, DAYS, CUSTOMERS = 86400.0, 60, 40
PRICES = np.linspace(0.2, 1.0, 9)
NEAR = np.exp(-(((PRICES[:, None] - np.linspace(0.2, 1.0, 6)) / 0.12) ** 2))
ARMS = NEAR / np.linalg.norm(NEAR, axis=1, keepdims=True)


def main(folder: str | Path, days: int = DAYS, seed: int = 0) -> dict[str, float]:
    chance, path = np.random.default_rng(seed), Path(folder) / "prices.agent"
    first = dw.Agent.for_values(6, 0.0, 1.0, half_life="2w", expire_after="7d", default_reward=0.0)
    first.save(path)
    settled: list[tuple[float, str, float]] = []
    earned = by_chance = best = 0.0
    for day in range(days):
        now = 1.8e9 + day * DAY
        agent = dw.Agent.load(path)  # a new process, every morning
        limit = 0.6 + 0.3 * np.sin(2.0 * np.pi * day / 90.0)  # what a customer pays on average
        margins = PRICES / (1.0 + np.exp((PRICES - limit) / 0.08))
        for customer in range(CUSTOMERS):
            now += DAY / CUSTOMERS
            for due, id, margin in [one for one in settled if one[0] <= now]:
                agent.reward(id, margin, now=now)
                settled.remove((due, id, margin))
            asked = agent.decide(ARMS, items=[f"{price:.1f}" for price in PRICES], id=f"{day}/{customer}", now=now)
            bought = chance.random() < margins[asked.arm] / PRICES[asked.arm]
            margin = float(PRICES[asked.arm]) if bought else 0.0
            settled.append((now + DAY * (0.5 + 1.5 * chance.random()), asked.id, margin))
            earned, by_chance, best = earned + margin, by_chance + margins.mean(), best + margins.max()
        agent.save(path)
    agent = dw.Agent.load(path)
    told = agent.explain(ARMS, items=[f"{price:.1f}" for price in PRICES], now=now)
    print(told)
    print(f"earned {earned:.0f}, best {best:.0f}, by chance {by_chance:.0f}; counts: {agent.counts}")
    return {"earned": earned, "best": best, "by chance": by_chance, "days": told.days or 0.0, **agent.counts}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as spare:
        main(sys.argv[1] if len(sys.argv) > 1 else spare)
