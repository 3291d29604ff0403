"""Policies as plain data: what a file says of one, and the digest it is known by."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from driftwise.container import digest


def described(thing: Any) -> Any:
    """A policy, or anything of one, as plain data that says what it was; what JSON has no word for as a string.

    Whole numbers are written as floats, so that 2 and 2.0 are one policy.
    """
    if isinstance(thing, (tuple, list)):
        return [described(one) for one in thing]
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"type": type(thing).__name__} | {one.name: described(getattr(thing, one.name)) for one in fields(thing)}
    if isinstance(thing, (str, bool, type(None))):
        return thing
    if isinstance(thing, (int, float)) and math.isfinite(thing):
        return float(thing)
    return getattr(thing, "__qualname__", str(thing))


def policy_digest(policy: Any) -> str:
    """What a policy is known by: equal numbers, equal digest."""
    return digest(described(policy))
