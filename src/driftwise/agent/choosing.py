"""The arguments of a decision, checked; the choice of an arm and its propensity: the policy's own choice, or a uniform
draw (docs/contract.md#decisions)."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from driftwise._internal.rng import key
from driftwise._internal.validate import array, check_unmasked, real
from driftwise.agent.record import Item, checked_item
from driftwise.errors import BadInput
from driftwise.kernels.chance import WORD, uniform
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.arms import ActionSet, ArmSet, Choice
from driftwise.policies.questions import Asked
from driftwise.policies.sampling import TRIES as DRAWS

NO_COSTS = np.zeros(0)
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
        if costs is None and (draw is None or not policy.ranks):
            best = policy.choose(state, arms, draw)
            if epsilon == 0.0 and draw is None:
                return best, 1.0, 0, False
        else:  # one score of the list gives the choice and all probabilities
            best, shares = policy.priced(state, arms, NO_COSTS if costs is None else costs, draw)
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


def checked_range(policy: Asked, rewards: object) -> tuple[float, float]:
    """The declared range of rewards, which the policy must accept."""
    pair = rewards if isinstance(rewards, (tuple, list)) and len(rewards) == 2 else (None, None)
    low, high = policy.reward_range
    way_out = "pass rewards=(least, largest)"
    first, last = (real("rewards", value, low, high, way_out=way_out) for value in pair)
    if not first < last:
        raise BadInput("rewards", rewards, "the least reward below the largest", way_out)
    return first, last


def unknown(id: object) -> BadInput:
    """The error for an unknown id."""
    return BadInput("id", id, "the id of a decision this agent remembers", "pass decision.id, or a larger remember=")


def named(items: Sequence[Item], count: int) -> Sequence[Item]:
    """A name for each arm."""
    many = len(items) if hasattr(items, "__len__") and not isinstance(items, (str, dict, set)) else None
    if many != count:
        got = items if many is None else f"{many} names"
        raise BadInput("items", got, f"a name for each of {count} arms, in their order", "pass a list of names")
    return [checked_item(item) for item in items]


def allowed_places(allowed: npt.ArrayLike, count: int) -> Ints:
    """Indices of the arms that may be played, in order."""
    wanted = f"booleans for {count} arms, or indices of arms, at least one"
    check_unmasked("allowed", allowed)
    try:
        if isinstance(allowed, (list, tuple)) and 1 < len({isinstance(one, (bool, np.bool_)) for one in allowed}):
            raise ValueError  # numpy takes booleans among indices for 0 and 1
        found = np.asarray(allowed)
    except ValueError:  # or rows of several lengths
        raise BadInput("allowed", allowed, wanted, "pass a mask (n,)") from None
    if found.dtype == np.bool_ and found.shape == (count,):
        places = np.flatnonzero(found)
    elif found.dtype.kind in "iu" and found.ndim == 1 and found.size and 0 <= found.min() and found.max() < count:
        places = np.unique(found)
        if places.size < found.size:
            got, way_out = "an index twice", "pass a mask of booleans, or each index once"
            raise BadInput("allowed", got, wanted, way_out)
    else:
        raise BadInput("allowed", allowed, wanted, "pass a mask (n,)")
    if not places.size:
        raise BadInput("allowed", "no arm", wanted, "decide nothing where nothing is allowed")
    return places.astype(np.int64)


def checked_price(policy: Asked, cost: npt.ArrayLike, count: int) -> Floats:
    """The cost of each arm, for a policy that can subtract it from a score."""
    if not policy.ranks:
        wanted = "a policy that ranks arms by score, which click banks, MASTER, BOB and rules that sample do not"
        raise BadInput("cost", type(policy.given).__name__, wanted, "subtract the cost from the reward instead")
    return array("cost", cost, (count,), "pass a number for each arm")


def check_set(policy: Asked, offered: ActionSet, items: object, allowed: object, cost: object) -> None:
    """Refuse options that a continuous set cannot have, and policies that cannot play one."""
    for name, value in (("items", items), ("allowed", allowed), ("cost", cost)):
        if value is not None:
            raise BadInput(name, value, "a list of arms for this option", "leave it out with a set")
    policy.check_set(offered)


def density_of(arms: ActionSet, explored: bool) -> str | None:
    """The unit of a propensity that is a density; None if it is a probability."""
    return arms.measure if explored and arms.measure != "count" else None


def checksum(arms: ActionSet, places: Ints | None, price: Floats | None) -> str:
    """A checksum of the arms of a decision, by which a repeated call is recognised.

    It guards against mistakes of the caller, not against attacks on the caller's own requests. A CRC of 32 bits is four
    times as fast as a digest, and a prepared set is summed once.
    """
    found = arms.crc
    for part in (places, price):
        found = zlib.crc32(b"-" if part is None else part.tobytes(), found)
    return f"{arms.count:x}.{arms.dim:x}.{found:08x}"


def same_arms(mark: str | None, arms: ActionSet, places: Ints | None, price: Floats | None) -> bool:
    """Whether a decision with this checksum had these arms."""
    if mark is None or "." in mark or not arms.listed:
        return mark == checksum(arms, places, price)
    found = hashlib.blake2b(arms.arms.columns.data, digest_size=16)  # what the first snapshots hold
    for part in (places, price):
        found.update(b"-" if part is None else part.tobytes())
    return mark == found.hexdigest()
