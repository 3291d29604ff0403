"""Checks of the arguments of an agent's calls."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driftwise._internal.validate import array, check_unmasked, real
from driftwise.agent.record import Item, checked_item
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.arms import ActionSet
from driftwise.policies.questions import Asked


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
