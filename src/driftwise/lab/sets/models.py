"""Language models: which should answer a prompt, at fixed prices and while prices fall."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any

import numpy as np

from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import real, whole
from driftwise.data.outcomes import Outcomes
from driftwise.kernels.point import Floats
from driftwise.lab.sets.fetched import Pinned, data
from driftwise.lab.sets.made import blocks

TERMS = "paretobandit is Apache-2.0, and the grades with it"
VALIDATION = Pinned(
    "paretobandit", "0.1.1", "pareto_bandit/data/examples/val.jsonl",
    "9590556ee832bb8e27b0e838eb4fd6b656e69e39c99ef067fc6379abc7f168ef", TERMS,
)  # fmt: skip
HOLDOUT = Pinned(
    "paretobandit", "0.1.1", "pareto_bandit/data/examples/test_holdout.jsonl",
    "b2f7e0e034902d254b3620770d98824cb932ad9cbecd38b9ce00345620a70665", TERMS,
)  # fmt: skip
PRICE_TERMS = f"{TERMS}; prices are facts read from tokencost and litellm (both MIT)"

# Dollars per million tokens of output from this day on: the day on which a release of tokencost first had the price, by
# the dates inside its wheels. Two days are not in wheels of tokencost: 2025-06-17 is the release of Gemini 2.5 Pro, and
# 2025-12-02 that of Mistral Large 3, whose price litellm has from 1.85 on (its wheels of that time are not dated).
PRICES: dict[str, tuple[tuple[str, float], ...]] = {
    "google/gemini-2.5-pro": (("2024-07-25", 15.0), ("2024-11-16", 5.0), ("2025-06-17", 10.0)),
    "meta-llama/llama-3.1-8b-instruct": (("2024-07-25", 0.79), ("2024-10-17", 0.08)),
    "mistralai/mistral-large-2512": (("2024-03-26", 24.0), ("2024-06-15", 12.0), ("2024-07-25", 9.0),
                                     ("2025-02-11", 6.0), ("2025-12-02", 1.5)),
}  # fmt: skip
FIRST, LAST = date(2024, 3, 26), date(2026, 10, 11)


def prompts(*, price: float = 0.0) -> Outcomes:
    """Which language model should answer: prompts of public benchmarks, graded for three models (paretobandit).

    A round is a prompt, the validation file before the holdout; their order has no meaning. Arms are models; a model
    pays the grade of its answer in [0, 1] minus `price` times its cost in dollars. Features are one block per model of
    1, the family of benchmarks of the prompt, and the logarithm of its length, scaled to norm at most 1.
    """
    price = real("price", price, 0.0, way_out="pass what a dollar is worth in grades, e.g. 10")
    models, context, grades, costs = _graded()
    return Outcomes(arms=blocks(context, len(models)), rewards=grades - price * costs, names=models)


def prices(*, price: float = 50.0, times: int = 4, seed: int = 0) -> Outcomes:
    """Which language model should answer while prices change: the prompts of paretobandit, the prices of 31 months.

    A round is a prompt. Every prompt comes `times` times, in an order drawn with the seed, spread evenly from March
    2024 to October 2026. Arms are three models. A model pays the grade of its answer minus `price` times its cost in
    dollars, times the price of its line of models on that day relative to the end (`PRICES`: list prices of Mistral
    Large, of Llama 3.1 8B at Groq, and of Gemini Pro, those of first versions before their days). Grades do not change.
    Features are those of `prompts`. With the default `price` the cost decides: the cheap model is best until early
    2025, the middle one afterwards.
    """
    price = real("price", price, 0.0, way_out="pass what a dollar is worth in grades, e.g. 50")
    times = whole("times", times, 1, "pass how often every prompt occurs, e.g. 4")
    models, context, grades, costs = _graded()
    rng, count = np.random.default_rng(checked_seed(seed)), len(grades)
    order = np.concatenate([rng.permutation(count) for _ in range(times)])
    days = np.linspace(FIRST.toordinal(), LAST.toordinal(), len(order))
    factor = np.column_stack([_factors(model, days) for model in models])
    paid = grades[order] - price * factor * costs[order]
    return Outcomes(arms=blocks(context[order], len(models)), rewards=paid, names=models)


def _factors(model: str, days: Floats) -> Floats:
    """The price of a model on these days relative to its price at the end."""
    since = [date.fromisoformat(day).toordinal() for day, _ in PRICES[model]]
    asked = np.array([dollars for _, dollars in PRICES[model]])
    return np.asarray(asked[np.maximum(np.searchsorted(since, days, side="right") - 1, 0)] / asked[-1])


def _graded() -> tuple[list[str], Floats, Floats, Floats]:
    """Models, contexts, grades and costs in dollars."""
    rows: list[Any] = []
    for pin in (VALIDATION, HOLDOUT):
        # Not splitlines(): prompts contain separators of Unicode that JSON does not escape.
        rows += [json.loads(line) for line in data("prompts", pin).decode("utf-8").split("\n") if line]
    models, families = sorted(rows[0]["arms"]), [row["source"].split("/")[0] for row in rows]
    context = np.column_stack([
        np.ones(len(rows)), *([float(own == one) for own in families] for one in sorted(set(families))),
        [math.log(1.0 + len(row["prompt"])) / 10.0 for row in rows],
    ])  # fmt: skip
    of = {name: np.array([[row["arms"][one][name] for one in models] for row in rows]) for name in ("reward", "cost")}
    return models, context, of["reward"], of["cost"]
