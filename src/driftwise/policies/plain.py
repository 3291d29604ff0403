"""Policies as plain data, for files, and their digests."""

from __future__ import annotations

import math
import re
from dataclasses import field, fields, is_dataclass
from typing import Any

from driftwise._internal.container import short_digest
from driftwise.errors import BadInput
from driftwise.policies.half_life import Timed


def later(default: Any) -> Any:
    """A field that was added later: it is left out of what is written if it has its default, and absent means the
    default.

    So digests, snapshots and specs from before it do not change.
    """
    return field(default=default, metadata={"later": True})


def described(thing: Any) -> Any:
    """A policy, or a part of one, as plain data with its type; values that JSON does not have are written as strings.

    Whole numbers are written as floats, so that 2 and 2.0 are one policy.
    """
    if isinstance(thing, (tuple, list)):
        return [described(one) for one in thing]
    if is_dataclass(thing) and not isinstance(thing, type):
        said = {one.name: getattr(thing, one.name) for one in fields(thing)
                if not one.metadata.get("later") or getattr(thing, one.name) != one.default}  # fmt: skip
        return {"type": type(thing).__name__} | {name: described(value) for name, value in said.items()}
    if isinstance(thing, (str, bool, type(None))):
        return thing
    if isinstance(thing, Timed):
        return thing.span
    if isinstance(thing, (int, float)) and math.isfinite(thing):
        return float(thing)
    return getattr(thing, "__qualname__", str(thing))


def revision_of(thing: Any) -> int:
    """1, and one more for every revision of the arithmetic or the state of a policy or of a part of it.

    A class says its own in `revision`, which is no field. Equal numbers of two revisions are two policies.
    """
    if isinstance(thing, (tuple, list)):
        return 1 + sum(revision_of(one) - 1 for one in thing)
    if not is_dataclass(thing) or isinstance(thing, type):
        return 1
    parts = {one.name: getattr(thing, one.name) for one in fields(thing)}
    own = 1 if "revision" in parts else getattr(thing, "revision", 1)
    return revision_of(list(parts.values())) + (own - 1 if type(own) is int else 0)


def policy_digest(policy: Any) -> str:
    """What a policy is known by: equal numbers, equal digest. A revision but the first is written behind it."""
    revision = revision_of(policy)
    return short_digest(described(policy)) + (f"-{revision}" if revision > 1 else "")


_DIGEST = re.compile(r"([0-9a-f]{20})(?:-([0-9]{1,9}))?")


def revision_in(digest: str) -> int:
    """The revision of the policy that is known by a digest."""
    found = _DIGEST.fullmatch(digest)
    return int(found[2] or 1) if found else 1


def check_revision(digest: str, own: str) -> None:
    """Refuse what another revision of the policy that is known by `own` has learned."""
    theirs, mine = _DIGEST.fullmatch(digest), _DIGEST.fullmatch(own)
    if digest != own and theirs and mine and theirs[1] == mine[1]:
        got = f"one of revision {revision_in(digest)}, whose arithmetic is another"
        way_out = "make a new one and let it learn the log, agent.learn_log(log)"
        raise BadInput("state", got, f"a state of revision {revision_in(own)} of its policy", way_out)


def restored(data: Any, kinds: dict[str, type], way_out: str = "pass policy=") -> Any:
    """The policy that `described` wrote, one of these kinds, or a BadInput."""
    if isinstance(data, list):
        return tuple(restored(one, kinds, way_out) for one in data)
    if data == "inf":
        return math.inf
    if not isinstance(data, dict):
        return data
    name = data.get("type")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadInput("policy", name, "a policy of this driftwise, and no function of your own", way_out)
    given = {one: restored(value, kinds, way_out) for one, value in data.items() if one != "type"}
    known = {one.name for one in fields(kind)}
    needed = {one.name for one in fields(kind) if not one.metadata.get("later")}
    if not needed <= set(given) <= known:
        odd = sorted((set(given) - known) | (needed - set(given)))
        raise BadInput("policy", f"{name} with other fields: {', '.join(odd)}", f"the fields of {name}", way_out)
    return kind(**given)


def kinds_of(*roots: type) -> dict[str, type]:
    """The classes of driftwise itself that are derived from these, by name."""
    found: dict[str, type] = {}
    waiting = list(roots)
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("driftwise.") and is_dataclass(kind):
            found[kind.__name__] = kind
    return found
