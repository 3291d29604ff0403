"""What only agents with features or a log keep in a snapshot: item rows, and what open decisions will be logged with.

Agents without them have none of these arrays, and the bytes they always had.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise.agent.record import Logged
from driftwise.errors import BadInput
from driftwise.policies.arms import ArmSet

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent


def arrays(agent: Agent) -> dict[str, Any]:
    """The arrays, where there is something to keep."""
    made: dict[str, Any] = {}
    if agent._encoder is not None:
        made["items"] = _bytes(list(agent._encoder.rows.items()))
    entries = [entry.shown for entry in agent._book.open.values()]
    if any(one is not None for one in entries):
        rows = [one.arms.columns[0].T for one in entries if one is not None and one.arms is not None]
        made["logged"] = _bytes([None if one is None else _plain(one) for one in entries])
        made["logged_arms"] = np.concatenate(rows) if rows else np.zeros((0, agent._policy.dim or 1))
    return made


def _plain(one: Logged) -> list[Any]:
    named = None if one.candidates is None else list(one.candidates)
    more = [] if one.measure is None else [one.measure]
    return [one.state_seq, one.place, 0 if one.arms is None else one.arms.count, one.context, named, *more]


def _bytes(data: Any) -> Any:
    return np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)


def fill(agent: Agent, found: dict[str, Any], no: Callable[[str], BadInput]) -> None:
    """Item rows are encoded anew; what open decisions will be logged with is checked against them."""
    if agent._encoder is not None:
        agent._encoder.know(dict(_read(found["items"], no)))
    if "logged" not in found:
        return
    entries, listed = list(agent._book.open.values()), _read(found["logged"], no)
    rows, at, dim = found["logged_arms"], 0, agent._policy.dim or 1
    good = len(entries) == len(listed) and rows.dtype == np.dtype("f8") and rows.ndim == 2
    if not good or not np.isfinite(rows).all() or rows.shape[1] != dim:
        raise no("arms or rows that do not fit its open decisions")
    for entry, one in zip(entries, listed, strict=True):
        if one is None:
            continue
        state_seq, place, count, context, named, *more = one
        n = entry.decision.n
        good = all(type(number) is int and number >= 0 for number in (state_seq, count)) and type(place) is int
        good = good and (0 <= place < n or (place == -1 and n == 0)) and (not more or more[0] in ("volume", "length"))
        good = good and count in (0, n) and at + count <= len(rows)
        good = good and (context is None or (agent._encoder is not None and agent._encoder.context(context) == context))
        good = good and (named is None or (len(named) == n and all(isinstance(name, str) for name in named)))
        if not good:
            raise no(f"a log's row that does not fit decision {entry.decision.id!r}")
        arms = ArmSet(rows[at : at + count]) if count else None
        at += count
        entry.shown = Logged(state_seq, place, arms, context, None if named is None else tuple(named), *more)


def _read(raw: Any, no: Callable[[str], BadInput]) -> Any:
    try:
        return plain(raw)
    except (ValueError, RecursionError):
        raise no("rows that are no plain data") from None


def plain(raw: Any) -> Any:
    """Plain data from the bytes of an array."""
    text = raw.tobytes()
    found = json.loads(text.decode())
    if b"\\ud" in text:  # earlier versions let lone surrogates into names: they are read as "?"
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return found
