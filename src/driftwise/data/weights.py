"""Whether the weights of a log have mean 1, as they have where its propensities are those of its choices.

A test by betting (docs/math.md#weights): against weights of mean 1 nobody wins a thousandfold, but in one log of a
thousand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftwise.kernels.point import Floats, Ints

# Bets as shares of the largest one that can never lose everything.
BETS = np.array([0.95, *(2.0**-k for k in range(1, 12))])
# Rows in which a choice was likelier than this count as if their weight were 1 at least, in a bet on a mean below 1.
LIKELY = (0.8, 0.95, 1.0)
# The capital at which the mean is not 1, valid at .1% however long the log is (Ville's inequality).
SURE = 1000.0
_AT_ONCE = 65_536


class Weights(NamedTuple):
    """Weights in the order of time, with the propensities of the choices and the numbers of arms. No weight is larger
    than `most`, infinite if that is unknown."""

    weight: Floats
    propensity: Floats
    n: Ints
    most: float

    def wagers(self) -> list[tuple[float, Floats, Floats]]:
        """Shares of the capital, what is bet, and on which weights: half of it on a mean above 1, half below.

        An arm that was not played is taken to have had an equal share of what the choice left, 1 - p. So the largest
        weight of a row is (n-1)/(1-p), which is known where the choice was not too likely.
        """
        found = [(0.5, BETS, self.weight)]
        p, others = self.propensity, self.n - 1
        for limit in LIKELY:
            likely = p > limit
            with np.errstate(divide="ignore", invalid="ignore"):
                unseen = np.where(likely | (others == 0), 1.0, others / np.maximum(1.0 - p, 0.0))
            most = max(self.most, float(unseen.max()))
            weight = np.where(likely, np.maximum(self.weight, 1.0), self.weight)
            found.append((0.5 / len(LIKELY), -BETS / max(most - 1.0, 1.0), weight))
        return found

    def capital(self) -> float:
        """The log of the largest capital that the wagers reach."""
        wagers, best = self.wagers(), 0.0
        now = [np.full(len(BETS), math.log(share / len(BETS))) for share, _, _ in wagers]
        for start in range(0, len(self.weight), _AT_ONCE):
            every = []
            for k, (_, bets, weight) in enumerate(wagers):
                won = np.log1p(bets[:, None] * (weight[start : start + _AT_ONCE] - 1.0)).cumsum(axis=1)
                every.append(now[k][:, None] + won)
                now[k] = every[-1][:, -1]
            grown = np.concatenate(every)
            top = grown.max(axis=0)
            best = max(best, float((top + np.log(np.exp(grown - top).sum(axis=0))).max()))
        return best

    def misfit(self) -> str | None:
        """The reason why nothing can be told from weights whose mean is not 1; None where it may be 1."""
        if self.capital() < math.log(SURE):
            return None
        mean = float(self.weight.mean())
        return f"the propensities do not fit the choices: weights have mean {mean:.3g} instead of 1"
