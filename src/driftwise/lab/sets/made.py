"""Parts that the sets share: blocks of features, baskets, tiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from driftwise.data.outcomes import Outcomes
from driftwise.kernels.point import Floats


def blocks(context: Floats, count: int) -> Floats:
    """Arms (T, count, count·k) from contexts (T, k): one block of features per arm, the longest of norm 1."""
    rounds, k = context.shape
    scaled = context / np.sqrt((context * context).sum(axis=1).max())
    arms = np.zeros((rounds, count, count, k))
    for arm in range(count):
        arms[:, arm, arm] = scaled
    return arms.reshape(rounds, count, count * k)


def baskets(bought: Sequence[Iterable[str]], count: int) -> Outcomes:
    """Rounds are baskets in this order. Arms are the most frequent items; an item pays 1 if the basket contains it."""
    held = Counter(item for basket in bought for item in basket)
    items = sorted(held, key=lambda item: (-held[item], item))[:count]
    paid = np.array([[float(item in basket) for item in items] for basket in bought])
    return Outcomes(arms=np.eye(len(items)), rewards=paid, names=items)


def tiers_of(demand: Floats, tiers: int) -> tuple[Floats, list[str]]:
    """The reward of each tier of demand in each round, 1 minus its distance from the actual tier, and the tiers' names.

    Tiers have equally many rounds each.
    """
    tier = np.searchsorted(np.quantile(demand, np.arange(1, tiers) / tiers), demand, side="right")
    paid = 1.0 - np.abs(tier[:, np.newaxis] - np.arange(tiers)) / (tiers - 1)
    return paid, [f"tier {number + 1}" for number in range(tiers)]


def harmonics(hour: Floats) -> list[npt.NDArray[np.float64]]:
    """Two harmonics of the hour of the day."""
    angle = 2.0 * np.pi * hour / 24.0
    return [np.sin(angle), np.cos(angle), np.sin(2.0 * angle), np.cos(2.0 * angle)]
