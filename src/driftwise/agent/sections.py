"""Sections of a snapshot. Each part of an agent writes its own section, and reads it with these functions, which check
it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from driftwise.errors import BadInput

ANEW = "load the last snapshot that was saved whole"
MOST = 2**53


def no(what: str, wanted: str = "the snapshot of an agent") -> BadInput:
    """The error for data that are not the snapshot of an agent."""
    return BadInput("data", what, wanted, ANEW)


def section_count(facts: dict[str, Any], name: str, most: int = MOST) -> int:
    """A count in the header."""
    value = facts[name]
    if type(value) is not int or not 0 <= value <= most:
        raise no(f"{name} = {value!r}"[:80], f"a whole number from 0 to {most}")
    return value


def section_table(rows: list[Any], width: int, kind: Any) -> Any:
    """Rows as one array, also for no rows."""
    return np.array(rows, dtype=kind).reshape(len(rows), width)


def shaped(arrays: dict[str, Any], name: str, shape: tuple[int, ...], kind: str, unknown: bool = False) -> Any:
    """An array of the snapshot with this shape. NaN is allowed with `unknown`, for policies without estimates."""
    found = arrays[name]
    if found.shape != shape or found.dtype != np.dtype(kind):
        raise no(f"{name} of shape {found.shape}", f"shape {shape}")
    if kind == "f8" and not (np.isfinite(found) | (np.isnan(found) & unknown)).all():
        raise no(f"{name} with numbers that are not finite", "finite numbers")
    if kind == "i8" and found.size and not (found.min() >= 0 and found.max() <= MOST):
        raise no(f"{name} out of range", "whole numbers from 0 to 2^53")
    return found


def check_vectors(policy: Any, vectors: Any) -> None:
    """Refuse vectors that the policy would not have accepted as arms."""
    longest = policy.reach * (1.0 + 1e-6)
    if (np.abs(vectors) > longest).any() or (np.sqrt((vectors * vectors).sum(axis=1)) > longest).any():
        raise no("a vector longer than L", f"vectors of norm {policy.reach:g} at most")


def packed(data: Any) -> Any:
    """Plain data as the bytes of an array."""
    return np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)


def plain_section(raw: Any, what: str = "rows") -> Any:
    """Plain data from the bytes of an array."""
    try:
        text = raw.tobytes()
        found = json.loads(text.decode())
        if b"\\ud" in text:  # earlier versions accepted lone surrogates in names; they are read as "?"
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        return found
    except (ValueError, RecursionError):
        raise no(f"{what} that are not plain data") from None
