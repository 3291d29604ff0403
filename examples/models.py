"""Language models: which of them should answer a request, when the good ones cost more and all of them change.

    python examples/models.py

Quality, from 0 to 1, is what a reviewer says of an answer; cost is known beforehand and taken off the score. One
decision in twenty is drawn at random, with its propensity on record, so that another policy can be judged on the log
later. Features are the model crossed with the request's difficulty. Halfway the cheap model is improved.
"""

from __future__ import annotations

import numpy as np

import driftwise as dw

MODELS = ("small", "medium", "large")
COST = np.array([0.02, 0.10, 0.30])


def arms(difficulty: float) -> np.ndarray:
    """A row per model: which one it is, and how hard the request is for it."""
    rows = np.zeros((3, 6))
    for model in range(3):
        rows[model, 2 * model : 2 * model + 2] = 0.7, 0.7 * difficulty
    return rows


def quality(model: int, difficulty: float, improved: bool) -> float:
    skill = (0.55 if improved else 0.1, 0.4, 0.9)[model]
    return float(np.clip(0.95 - (1.0 - skill) * difficulty, 0.0, 1.0))


def main(requests: int = 4000, seed: int = 0) -> dict[str, float]:
    chance = np.random.default_rng(seed)
    agent = dw.Agent.for_values(6, 0.0, 1.0, epsilon=0.05)
    won = {"agent": 0.0, "best": 0.0, **dict.fromkeys(MODELS, 0.0)}
    asked = {half: dict.fromkeys(MODELS, 0) for half in (0, 1)}
    for request in range(requests):
        difficulty, improved = float(chance.random()), request >= requests // 2
        worth = np.array([quality(model, difficulty, improved) for model in range(3)]) - COST
        one = agent.decide(arms(difficulty), items=MODELS, cost=COST)
        seen = quality(one.arm, difficulty, improved) + 0.1 * chance.standard_normal()
        agent.reward(one.id, float(np.clip(seen, 0.0, 1.0)))
        won["agent"] += worth[one.arm]
        won["best"] += worth.max()
        for model, name in enumerate(MODELS):
            won[name] += worth[model]
        asked[int(improved)][str(one.item)] += 1
    print(agent.explain(arms(0.5), items=MODELS))
    print(agent.drift())
    print({name: round(total) for name, total in won.items()}, asked)
    return {**won, "small before": asked[0]["small"], "small after": asked[1]["small"], **agent.counts}


if __name__ == "__main__":
    main()
