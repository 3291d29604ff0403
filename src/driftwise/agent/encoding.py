"""Contexts and items in place of arms, for an agent with features."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from driftwise.errors import BadInput
from driftwise.policies.questions import Asked
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features
from driftwise.tables.fields import name_of

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts
    from driftwise.tables.schema import Floats


def encoder_for(features: object, policy: Asked) -> Locked:
    """An encoder whose vectors the policy accepts."""
    if not isinstance(features, Features):
        raise BadInput("features", features, "a dw.Features", "declare one, or dw.Features.fit(contexts, items)")
    if policy.dim is not None and features.dim != policy.dim:
        wanted = f"dimension {policy.dim}, as the policy has"
        raise BadInput("features", f"vectors of {features.dim} numbers", wanted, "pass dim=features.dim to the policy")
    if features.L > policy.reach:
        raise BadInput("features", f"L = {features.L:g}", f"L of at most {policy.reach:g}", "pass the policy's L")
    return Locked(features)


class Locked(Encoder):
    """An encoder with a lock, for many threads. All threads share the items."""

    def __init__(self, features: Features) -> None:
        super().__init__(features)
        self.lock: Any = threading.RLock()


def encoded(
    parts: AgentParts, arms: Any, items: Sequence[Any] | Mapping[Any, Any] | None, context: Mapping[str, Any] | None
) -> tuple[Floats, list[Any], dict[str, Any]]:
    """The arms of items in a context, the names of the items, and the context as a log stores it."""
    encoder = parts.encoder
    if encoder is None:
        got = "no arms" if context is None else "a context"
        raise BadInput("arms", got, "arms (n, d), or features= for an agent that takes contexts", "pass arms")
    if arms is not None:
        raise BadInput("arms", "arms and a context", "one of the two", "leave out the arms: features make them")
    if items is None or isinstance(items, str):
        raise BadInput("items", items, "the items to choose from", "pass their names, or {name: row}")
    with parts.turn(encoder.lock):
        told = encoder.context({} if context is None else context)
        arms = encoder.arms(told, items)
    return arms, list(items), told


def candidates(items: Sequence[Any], places: Any) -> tuple[str, ...]:
    """The names of the allowed items, as a log stores them; empty for an item without a name."""
    chosen = items if places is None else [items[place] for place in places.tolist()]
    return tuple("" if one is None else name_of(one) for one in chosen)
