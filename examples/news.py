"""News: which article to show, when clicks come minutes later or never and articles are gone by tomorrow.

    python examples/news.py

Every reader gets five articles to choose from. A click that has not come after 200 more readers will not come: the
agent then learns a 0 by itself.
"""

from __future__ import annotations

import numpy as np

import driftwise as dw

DIM, SHOWN, READERS = 6, 8, 4000


def articles(chance: np.random.Generator, count: int) -> np.ndarray:
    """Topics of articles as vectors of norm 1; the last feature is the same for all."""
    topics = np.column_stack([chance.standard_normal((count, DIM - 1)), np.full(count, 1.0)])
    return topics / np.linalg.norm(topics, axis=1, keepdims=True)


def main(readers: int = READERS, seed: int = 0) -> dict[str, float]:
    chance = np.random.default_rng(seed)
    agent = dw.Agent.for_clicks(DIM, click_rate=(0.02, 0.6), expire_after=200, default_reward=0.0)
    taste = np.array([2.0, -1.5, 0.0, 1.0, 0.0, -1.5])
    page, names = articles(chance, SHOWN), [f"article {number}" for number in range(SHOWN)]
    coming: list[tuple[int, str]] = []
    clicks = by_chance = 0.0
    for reader in range(readers):
        if reader == readers // 2:
            taste = np.array([-1.5, 2.0, 1.0, 0.0, 0.0, -1.5])  # an election: readers want other topics
        if reader % 25 == 24:  # an article goes, another comes
            place = int(chance.integers(SHOWN))
            page[place], names[place] = articles(chance, 1)[0], f"article {SHOWN + reader}"
        rates = 1.0 / (1.0 + np.exp(-2.0 * page @ taste))
        shown = agent.decide(page, items=names)
        by_chance += rates.mean()
        if chance.random() < rates[shown.arm]:
            clicks += 1.0
            coming.append((reader + int(chance.integers(150)), shown.id))
        for due, id in [one for one in coming if one[0] <= reader]:
            agent.reward(id, 1.0)
            coming.remove((due, id))
    print(agent.explain(page, items=names, features=["politics", "sport", "tech", "local", "travel", "all"]))
    print(agent.drift())
    print(f"clicks: {clicks:.0f}, by chance {by_chance:.0f}; counts: {agent.counts}")
    return {"clicks": clicks, "by chance": by_chance, **agent.counts}


if __name__ == "__main__":
    main()
