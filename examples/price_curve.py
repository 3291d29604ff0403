"""A price from a curve: demand drifts with the season, and every price between two ends may be asked.

    python examples/price_curve.py [--hours N] [--trials N] [--figure FILE]

A price stands for an hour, in which 25 customers come. Each buys at price p with probability a - bp, where a follows
the season, so that revenue is a parabola in p whose top moves. Four shops see the same customers: one asks any price of
the curve, one of 20 prices described by the same features, one of 20 prices that learn nothing from each other, and one
that plays the curve and forgets nothing.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import driftwise as dw

LOW, HIGH, STEEP, CUSTOMERS = 0.2, 1.0, 0.9, 25
CURVE = dw.Curve(dw.Polynomial(2), LOW, HIGH, tolerance=1e-4)
PRICES = np.linspace(LOW, HIGH, 20)


def season(hours: int) -> Any:
    """a for every hour: two years."""
    return 0.9 + 0.35 * np.sin(4.0 * math.pi * np.arange(hours) / hours)


def revenue(a: Any, price: Any) -> Any:
    """What a customer brings on average."""
    return price * np.clip(a - STEEP * price, 0.0, 1.0)


def shops() -> dict[str, tuple[Any, Any]]:
    """A policy and what it chooses from."""
    auto = dw.make("Auto", dim=3)
    keeps = dw.LinearUCB(dim=3, memory=dw.Keep(), radius="posterior", R="learn", S=None, L=None)
    return {
        "any price of the curve": (auto, CURVE),
        "20 prices, the curve's features": (auto, CURVE.at(PRICES)),
        "20 prices, each for itself": (dw.make("Auto", dim=20), np.eye(20)),
        "the curve, forgetting nothing": (keeps, CURVE),
    }


def trade(policy: Any, arms: Any, hours: int, seed: int, looks: dict[int, Any] | None = None) -> float:
    """Revenue of a shop, as a share of what the best price of every hour would bring."""
    chance = np.random.default_rng(seed).random((hours, CUSTOMERS))
    state, a = policy.start(seed=seed), season(hours)
    earned, most = 0.0, float(sum(revenue(a, np.clip(a / (2 * STEEP), LOW, HIGH))))
    prepared = arms if isinstance(arms, dw.Curve) else dw.ArmSet(arms)
    for t in range(hours):
        if looks is not None and t in looks:
            looks[t] = state.copy()
        choice = policy.choose(state, prepared)
        price = float(PRICES[choice.arm]) if choice.number is None else choice.number
        bought = float((chance[t] < np.clip(a[t] - STEEP * price, 0.0, 1.0)).mean())
        policy.learn(state, prepared, choice.arm if choice.number is None else choice.number, price * bought)
        earned += float(revenue(a[t], price))
    return earned / most


def main(hours: int = 2000, trials: int = 8, figure: str | None = None) -> dict[str, Any]:
    """Shares of the best revenue, a number per trial."""
    found = {
        name: np.array([trade(policy, arms, hours, seed) for seed in range(trials)])
        for name, (policy, arms) in shops().items()
    }
    first = found["any price of the curve"]
    for name, shares in found.items():
        behind = first - shares
        half = 0.0 if trials < 2 else 2.4 * behind.std(ddof=1) / math.sqrt(trials)
        print(f"{name:34} {shares.mean():.3f} of the best; the curve has {behind.mean():+.3f} ± {half:.3f} more")
    if figure:
        draw(hours, figure)
    return found


def draw(hours: int, figure: str) -> None:
    """The index over the curve at three moments, and the revenue it is about."""
    from driftwise.draw.plots import pyplot

    plt = pyplot()
    moments: dict[int, Any] = {hours // 50: None, hours * 3 // 8: None, hours * 5 // 8: None}
    policy = dw.make("Auto", dim=3)
    trade(policy, CURVE, hours, 0, moments)
    numbers = np.linspace(LOW, HIGH, 200)
    picture, panels = plt.subplots(1, 3, figsize=(9.0, 3.2), sharey=True)
    for (t, state), panel in zip(moments.items(), panels, strict=True):
        scores, choice = policy.scores(state, CURVE.at(numbers)), policy.choose(state, CURVE)
        panel.fill_between(numbers, scores.mean, scores.score, color="#0072B2", alpha=0.2, linewidth=0)
        panel.plot(numbers, scores.score, color="#0072B2", label="index")
        panel.plot(numbers, scores.mean, color="#0072B2", linestyle="--", label="estimate")
        panel.plot(numbers, revenue(season(hours)[t], numbers), color="#333333", linewidth=1.0, label="truth")
        panel.axvline(choice.number, color="#D55E00", linewidth=1.0)
        panel.set_title(f"hour {t + 1}: asks {choice.number:.2f}", fontsize=10)
        panel.set_xlabel("price")
    panels[0].set_ylabel("revenue per customer")
    panels[0].set_ylim(-0.1, 0.8)
    panels[0].legend(frameon=False, fontsize=8)
    picture.tight_layout()
    picture.savefig(figure, dpi=110)
    plt.close(picture)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--hours", type=int, default=2000)
    asked.add_argument("--trials", type=int, default=8)
    asked.add_argument("--figure")
    told = asked.parse_args()
    main(told.hours, told.trials, told.figure)
