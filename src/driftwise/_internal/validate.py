"""Checks of arguments. Each returns the value in the type that the library uses, or raises BadInput."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise.errors import BadInput

Floats = npt.NDArray[np.float64]


def is_integer(value: object) -> bool:
    """Whether a value is a whole number by its type. numpy calls spans of time integers too."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: object) -> bool:
    """Whether a value is a number by its type."""
    return is_integer(value) or isinstance(value, (float, np.floating))


def is_moment(value: object) -> bool:
    """Whether a value is a time or a span of time of numpy, which it converts to a number of its own unit."""
    return isinstance(value, (np.datetime64, np.timedelta64))


def _number(value: Any) -> float:
    """The value as a float. NaN, which every check refuses, if it is not a number."""
    if is_number(value):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return math.nan


# A larger number cannot be the length of an array, and a loop of that length does not end.
_MOST = 10**15


def whole(name: str, value: object, least: int = 1, way_out: str = "pass a larger one") -> int:
    """A whole number from `least` up."""
    number = _number(value)
    if number > _MOST:
        raise BadInput(name, value, f"a whole number of at most {_MOST}", "pass a smaller one")
    if not math.isfinite(number) or number != int(number) or number < least:
        raise BadInput(name, value, f"a whole number of at least {least}", way_out)
    return int(number)


def keep_whole(thing: object, name: str, least: int = 1, way_out: str = "pass a larger one") -> None:
    """A field of a frozen dataclass that is a whole number, stored as an int even if it was given as 2.0."""
    object.__setattr__(thing, name, whole(name, getattr(thing, name), least, way_out))


def real(
    name: str, value: object, low: float, high: float = math.inf, *, low_open: bool = False, high_open: bool = False,
    way_out: str = "pass a number in that range",
) -> float:
    """A finite number in an interval whose ends are open or closed."""
    number = _number(value)
    above = number > low if low_open else number >= low
    below = number < high if high_open else number <= high
    if not (math.isfinite(number) and above and below):
        start = "(" if low_open or low == -math.inf else "["
        end = ")" if high_open or high == math.inf else "]"
        raise BadInput(name, value, f"a number in {start}{low:g}, {high:g}{end}", way_out)
    return number


def one_of(name: str, value: object, choices: Sequence[object]) -> None:
    """One of a few named values. The error message suggests the nearest one."""
    try:
        if value in choices:
            return
    except (TypeError, ValueError):  # == of an array gives an array
        pass
    words = [str(choice) for choice in choices]
    near = get_close_matches(str(value), words, n=3, cutoff=0.4)
    hint = f"the nearest: {', '.join(near)}" if near else f"pass {words[0]!r} for example" if words else "there is none"
    listed = words if len(words) <= 14 else [*words[:8], f"and {len(words) - 8} more"]
    raise BadInput(name, value, "one of " + ", ".join(listed), hint)


def text(name: str, value: str) -> str:
    """Text that UTF-8 can encode. A lone surrogate (half of an emoji) cannot be encoded, and so cannot be stored."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            wanted, way_out = "text without lone surrogates", 'pass text.encode("utf-8", "replace").decode(), say'
            raise BadInput(name, value, wanted, way_out) from None
    return value


def check_unmasked(name: str, value: object) -> None:
    """Refuse masked values: conversion to a plain array would expose the values that the mask hides."""
    rows = [value, *value] if isinstance(value, (list, tuple)) else [value]
    for row in rows:
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            place = [int(i) for i in np.argwhere(np.ma.getmaskarray(row))[0]]
            raise BadInput(name, f"a masked value at {place}", "an array without masked values", "fill or remove them")


def contiguous(value: npt.ArrayLike) -> Floats:
    """Numbers as machine code takes them: float64, C-contiguous and aligned; a copy where they are not."""
    made: Floats = np.ascontiguousarray(value, dtype=np.float64)
    return made if made.flags.aligned else made.copy()


def array(name: str, value: object, shape: Sequence[int | None], way_out: str) -> Floats:
    """A finite float64 array, C-contiguous, with the given shape (None: any length of at least 1)."""
    check_unmasked(name, value)
    wanted = "(" + ", ".join("any" if size is None else str(size) for size in shape) + ")"
    try:
        raw = np.asarray(value)
        kind = raw.dtype.kind
        if kind not in "biufO" or (kind == "O" and any(is_moment(one) for one in raw.flat)):
            raise TypeError
        result = contiguous(raw)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(name, value, f"an array of numbers of shape {wanted}", way_out) from None
    fits = result.ndim == len(shape) and all(
        have >= 1 if want is None else have == want for have, want in zip(result.shape, shape, strict=True)
    )
    if not fits:
        raise BadInput(name, f"shape {result.shape}", f"an array of shape {wanted}", way_out)
    if not np.isfinite(result).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise BadInput(name, f"{result[place]} at {list(place)}", "finite numbers", "remove or replace it")
    return result
