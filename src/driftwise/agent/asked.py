"""What an agent is asked, checked at the border."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driftwise._internal.validate import real
from driftwise.agent.record import Item, checked_item
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.arms import ActionSet
from driftwise.policies.questions import Asked


def checked_range(policy: Asked, rewards: object) -> tuple[float, float]:
    """The declared rewards, which the policy must be able to take."""
    pair = rewards if isinstance(rewards, (tuple, list)) and len(rewards) == 2 else (None, None)
    low, high = policy.reward_range
    way_out = "pass rewards=(least, largest)"
    first, last = (real("rewards", value, low, high, way_out=way_out) for value in pair)
    if not first < last:
        raise BadInput("rewards", rewards, "the least reward below the largest", way_out)
    return first, last


def unknown(id: object) -> BadInput:
    """What is said of an id nobody knows."""
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
    try:
        found = np.asarray(allowed)
    except ValueError:  # rows of several lengths
        raise BadInput("allowed", allowed, wanted, "pass a mask (n,)") from None
    if found.dtype == np.bool_ and found.shape == (count,):
        places = np.flatnonzero(found)
    elif found.dtype.kind in "iu" and found.ndim == 1 and found.size and 0 <= found.min() and found.max() < count:
        places = np.unique(found)
    else:
        raise BadInput("allowed", allowed, wanted, "pass a mask (n,)")
    if not places.size:
        raise BadInput("allowed", "no arm", wanted, "decide nothing where nothing is allowed")
    return places.astype(np.int64)


def check_set(policy: Asked, offered: ActionSet, items: object, allowed: object, cost: object) -> None:
    """What a set that is no list cannot have, and who cannot play one."""
    for name, value in (("items", items), ("allowed", allowed), ("cost", cost)):
        if value is not None:
            raise BadInput(name, value, "a list of arms, each of which has its own", "leave it out with a set")
    policy.check_set(offered)


def density_of(arms: ActionSet, explored: bool) -> str | None:
    """What a propensity is a density per unit of; nothing where it is a chance."""
    return arms.measure if explored and arms.measure != "count" else None


def checksum(arms: ActionSet, places: Ints | None, price: Floats | None) -> str:
    """What a caller's decision is about, to know it again by.

    It guards against a caller's slip, not against an enemy of their own requests: 32 bits of CRC are four times as fast
    as a digest, and a set that was prepared is summed up once.
    """
    found = arms.crc
    for part in (places, price):
        found = zlib.crc32(b"-" if part is None else part.tobytes(), found)
    return f"{arms.count:x}.{arms.dim:x}.{found:08x}"


def same_arms(mark: str | None, arms: ActionSet, places: Ints | None, price: Floats | None) -> bool:
    """Whether a decision of this mark was about these arms."""
    if mark is None or "." in mark or not arms.listed:
        return mark == checksum(arms, places, price)
    found = hashlib.blake2b(arms.arms.columns.data, digest_size=16)  # what the first snapshots hold
    for part in (places, price):
        found.update(b"-" if part is None else part.tobytes())
    return mark == found.hexdigest()
