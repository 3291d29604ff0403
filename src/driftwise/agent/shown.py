"""The parts of a snapshot that only agents with features or a log have: item rows, and log data of open decisions.

Snapshots of other agents have none of these arrays, and the same bytes as in earlier versions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwise.agent.record import Book, Logged
from driftwise.agent.sections import no, packed, plain_section
from driftwise.policies.arms import ArmSet
from driftwise.tables.encoder import Encoder


def arrays(encoder: Encoder | None, book: Book, dim: int) -> dict[str, Any]:
    """The arrays; none if there is nothing to keep."""
    made: dict[str, Any] = {}
    if encoder is not None:
        made["items"] = packed(list(encoder.rows.items()))
    entries = [entry.shown for entry in book.open.values()]
    if any(one is not None for one in entries):
        rows = [one.arms.columns[0].T for one in entries if one is not None and one.arms is not None]
        made["logged"] = packed([None if one is None else _plain(one) for one in entries])
        made["logged_arms"] = np.concatenate(rows) if rows else np.zeros((0, dim))
    return made


def _plain(one: Logged) -> list[Any]:
    named = None if one.candidates is None else list(one.candidates)
    more = [] if one.measure is None else [one.measure]
    return [one.state_seq, one.place, 0 if one.arms is None else one.arms.count, one.context, named, *more]


def fill(encoder: Encoder | None, book: Book, dim: int, found: dict[str, Any]) -> None:
    """Encode item rows again, and check the log data of open decisions against them."""
    if encoder is not None:
        encoder.know(dict(plain_section(found["items"])))
    if "logged" not in found:
        return
    entries, listed = list(book.open.values()), plain_section(found["logged"])
    rows, at = found["logged_arms"], 0
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
        good = good and (context is None or (encoder is not None and encoder.context(context) == context))
        good = good and (named is None or (len(named) == n and all(isinstance(name, str) for name in named)))
        if not good:
            raise no(f"a log's row that does not fit decision {entry.decision.id!r}")
        arms = ArmSet(rows[at : at + count]) if count else None
        at += count
        entry.shown = Logged(state_seq, place, arms, context, None if named is None else tuple(named), *more)
