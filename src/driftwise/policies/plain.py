"""Policies as plain data: what a file says of one, and the digest it is known by."""

from __future__ import annotations

import math
from dataclasses import Field, field, fields, is_dataclass
from typing import Any

from driftwise._internal.container import short_digest
from driftwise.errors import BadInput
from driftwise.policies.half_life import Timed


def later(default: Any) -> Any:
    """A field that came later: left out of what is written where it has its default, and absent is the default.

    Digests, snapshots and specs from before it stay what they were.
    """
    return field(default=default, metadata={"later": True})


def _is_said(thing: Any, one: Field[Any]) -> bool:
    return not one.metadata.get("later") or getattr(thing, one.name) != one.default


def described(thing: Any) -> Any:
    """A policy, or anything of one, as plain data that says what it was; what JSON has no word for as a string.

    Whole numbers are written as floats, so that 2 and 2.0 are one policy.
    """
    if isinstance(thing, (tuple, list)):
        return [described(one) for one in thing]
    if is_dataclass(thing) and not isinstance(thing, type):
        said = (one.name for one in fields(thing) if _is_said(thing, one))
        return {"type": type(thing).__name__} | {name: described(getattr(thing, name)) for name in said}
    if isinstance(thing, (str, bool, type(None))):
        return thing
    if isinstance(thing, Timed):
        return thing.span
    if isinstance(thing, (int, float)) and math.isfinite(thing):
        return float(thing)
    return getattr(thing, "__qualname__", str(thing))


def policy_digest(policy: Any) -> str:
    """What a policy is known by: equal numbers, equal digest."""
    return short_digest(described(policy))


def restored(data: Any, kinds: dict[str, type]) -> Any:
    """The policy that `described` wrote, one of these kinds, or the one sentence."""
    if isinstance(data, list):
        return tuple(restored(one, kinds) for one in data)
    if data == "inf":
        return math.inf
    if not isinstance(data, dict):
        return data
    name = data.get("type")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadInput("policy", name, "a policy of this driftwise, and no function of your own", "pass policy=")
    given = {one: restored(value, kinds) for one, value in data.items() if one != "type"}
    known = {one.name for one in fields(kind)}
    needed = {one.name for one in fields(kind) if not one.metadata.get("later")}
    if not needed <= set(given) <= known:
        odd = sorted((set(given) - known) | (needed - set(given)))
        raise BadInput("policy", f"{name} with other fields: {', '.join(odd)}", f"the fields of {name}", "pass policy=")
    return kind(**given)


def kinds_of(*roots: type) -> dict[str, type]:
    """What driftwise itself derives from these, by name."""
    found: dict[str, type] = {}
    waiting = list(roots)
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("driftwise.") and is_dataclass(kind):
            found[kind.__name__] = kind
    return found
