"""The choice of an arm and its propensity: the policy's own choice, or a uniform draw (docs/contract.md#decisions)."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from driftwise._internal.rng import key
from driftwise.errors import BadInput
from driftwise.kernels.chance import WORD, uniform
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ActionSet, ArmSet, Choice
from driftwise.policies.questions import Asked
from driftwise.policies.sampling import TRIES as DRAWS

# A choice, its propensity, the number of draws from which that was estimated (0: it is exact), and whether it explored.
Picked: TypeAlias = tuple[Choice, float, int, bool]


class Chooser:
    """Choices of a policy, a share epsilon of them uniform. Draws are hashes of the seed and a decision's number."""

    __slots__ = ("epsilon", "key", "policy", "seed")

    def __init__(self, policy: Asked, epsilon: float, seed: int) -> None:
        drawn = key(seed, "explore")
        self.policy, self.epsilon, self.seed, self.key = policy, epsilon, seed, (drawn & WORD, (drawn >> 32) & WORD)

    def choose(self, state: Any, offered: ActionSet, costs: Floats | None, seq: int) -> Picked:
        """The choice of decision number `seq` among these arms, with costs subtracted from their scores."""
        if not offered.listed:
            return self._from_set(state, offered, seq)
        policy, arms, epsilon = self.policy, offered.arms, self.epsilon
        count = arms.count
        draw = None if policy.deterministic else seq
        explored = epsilon > 0.0 and uniform(*self.key, seq, 0, 0) < epsilon
        shares: Floats | None = None
        if costs is None:
            best = policy.choose(state, arms, draw)
            if epsilon == 0.0 and draw is None:
                return best, 1.0, 0, False
        else:
            best, shares = policy.priced(state, arms, costs, draw)
        arm = int(arms.draw(*self.key, seq).number or 0) if explored else best.arm
        if shares is not None or draw is None:
            share, draws = float(arm == best.arm if shares is None else shares[arm]), 0
        else:
            share, draws = self._share(state, arms, arm, draw)
        found = best
        if explored:
            scores = policy.scores(state, arms, draw)
            mean, bonus = float(scores.mean[arm]), float(scores.bonus[arm])
            if bonus < 0.0 and draw is None:  # a bank for clicks gives arms that no memory proposes no bonus
                bonus = 0.0
            found = Choice(arm, mean + bonus - (0.0 if costs is None else float(costs[arm])), mean, bonus)
        return found, epsilon / count + (1.0 - epsilon) * share, draws, explored

    def _from_set(self, state: Any, region: ActionSet, seq: int) -> Picked:
        """The choice from a continuous set. The policy's own point has a probability. A point that is drawn uniformly
        has a density, epsilon divided by the set's volume. The density of a rule that samples is not computed."""
        policy, epsilon = self.policy, self.epsilon
        draw = None if policy.deterministic else seq
        if epsilon > 0.0 and region.measure is None:
            wanted = "epsilon=0: a draw from several kinds of parts has neither a probability nor a density"
            raise BadInput("arms", region, wanted, "pass one set, or a list")
        if epsilon > 0.0 and uniform(*self.key, seq, 0, 0) < epsilon:
            drawn = region.draw(*self.key, seq)
            at = policy.scores(state, drawn.x[None], draw)
            mean, bonus = float(at.mean[0]), float(at.bonus[0])
            found = Choice.of_set(mean + bonus, mean, bonus, drawn.x, drawn.number, math.inf)
            return found, epsilon * drawn.share, 0, True
        return policy.choose(state, region, draw), 1.0 - epsilon if draw is None else math.nan, 0, False

    def _share(self, state: Any, arms: ArmSet, arm: int, draw: int) -> tuple[float, int]:
        """How often a rule that samples plays an arm: as it reports itself, or counted over this draw and further draws
        (see `Sampling.propensities`)."""
        policy = self.policy
        known = policy.propensity(state, arms, arm, draw)
        if known is not None:
            return known
        others = (key(self.seed, "propensity", draw, number) >> 1 for number in range(1, DRAWS))
        return sum(policy.choose(state, arms, one).arm == arm for one in (draw, *others)) / DRAWS, DRAWS
