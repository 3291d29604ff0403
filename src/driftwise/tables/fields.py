"""Kinds of fields: how one value of a context or an item becomes numbers with norm at most 1."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from driftwise._internal.validate import is_integer, is_moment, real, text, whole
from driftwise.errors import BadInput
from driftwise.tables.schema import Floats

OTHER = "other"
# Whole numbers beyond this have no text that Python writes.
_MOST = 10**300


def text_of(value: Any, field: str = "level") -> str | None:
    """A level as text: 3, 3.0 and "3" are the same, and so are true and "true"; None if it is missing."""
    if isinstance(value, np.generic) and not is_moment(value):  # which would become a number of some unit
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return text(field, str(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (int, float)) or (isinstance(value, int) and abs(value) > _MOST):
        raise BadInput(field, value, "text, a truth value, a number or nothing", "pass str(value)")
    return str(int(value)) if float(value).is_integer() else str(value)


def name_of(item: Any) -> str:
    """The name of an item as text, whole numbers too."""
    if isinstance(item, str):
        return text("items", str(item))
    if not is_integer(item):
        raise BadInput("items", item, "names that are text or whole numbers", "pass str(name)")
    return str(int(item)) if abs(int(item)) <= _MOST else f"{int(item):x}"


def listed(name: str, values: Any, wanted: str) -> list[Any]:
    """A list, or another sequence that is not a single text."""
    row = isinstance(values, np.ndarray) and values.ndim == 1
    if not row and not isinstance(values, (list, tuple)):
        raise BadInput(name, values, wanted, "pass a list")
    return list(values)


@dataclass(frozen=True)
class Number:
    """(value - mean) / scale, cut off at ±clip and divided by it."""

    mean: float = 0.0
    scale: float = 1.0
    clip: float = 3.0
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for name, low in (("mean", -math.inf), ("scale", 0.0), ("clip", 0.0)):
            real(name, getattr(self, name), low, low_open=True)

    def put(self, field: str, value: Any, out: Floats) -> None:
        if value is not None:
            out[0] = max(-1.0, min(1.0, (value - self.mean) / self.scale / self.clip))

    def names(self, field: str) -> list[str]:
        return [field]


@dataclass(frozen=True)
class LevelsField:
    """One place per level, and a last one for all others."""

    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        found = tuple(str(text_of(one, "levels")) for one in listed("levels", self.levels, "a list of levels"))
        if not found or len(set(found)) != len(found):
            raise BadInput("levels", self.levels, "levels that differ, at least one", "name each once")
        object.__setattr__(self, "levels", found)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {level: place for place, level in enumerate(self.levels)}

    @property
    def width(self) -> int:
        return len(self.levels) + 1

    def put(self, field: str, value: Any, out: Floats) -> None:
        level = text_of(value)
        if level is not None:
            out[self._places.get(level, len(self.levels))] = 1.0

    def names(self, field: str) -> list[str]:
        return [f"{field}={level}" for level in (*self.levels, OTHER)]


@dataclass(frozen=True)
class Hashed:
    """Too many levels to name: each is +1 or -1 at one of `width` places, by a digest of its text."""

    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", whole("width", self.width, 1))

    def put(self, field: str, value: Any, out: Floats) -> None:
        level = text_of(value)
        if level is not None:
            raw = hashlib.blake2b(f"{field}\0{level}".encode("utf-8", "replace"), digest_size=8).digest()
            drawn = int.from_bytes(raw, "little")
            out[(drawn >> 1) % self.width] = 1.0 if drawn & 1 else -1.0

    def names(self, field: str) -> list[str]:
        return [f"{field}#{place}" for place in range(self.width)]


Field: TypeAlias = Number | LevelsField | Hashed
KINDS: dict[str, Any] = {"number": Number, "levels": LevelsField, "hashed": Hashed}
