"""Converts Python values to the numpy columns of a batch, or raises an error that names row and column.

All formats use it. Values that are not an array of the right type are converted together. If that fails, they are
examined one by one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from driftwise._internal.validate import is_number
from driftwise.tables.schema import COLUMNS, Floats, Ints, Ragged, Times, bad_row, null_of

_INT64 = np.iinfo(np.int64)


class Place(NamedTuple):
    """The place of values: the part, the first row, and the column."""

    part: str
    start: int
    column: str

    def no(self, row: int, got: object, wanted: str) -> NoReturn:
        raise bad_row(self.part, self.start + row, self.column, got, wanted)

    @property
    def nullable(self) -> bool:
        return COLUMNS[self.column].nullable


def column_of(place: Place, values: Any) -> Any:
    """The values of a column, an array or a sequence, in the type of a batch."""
    return _MAKERS[COLUMNS[place.column].kind](place, values)


def _null(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def _array(values: Any, kinds: str) -> Any:
    """The values as one array of numbers of these kinds, or None."""
    if isinstance(values, np.ndarray):
        hidden = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)  # refused one by one
        return values if values.dtype.kind in kinds and not hidden else None
    try:
        if kinds != "b" and bool in set(map(type, values)):  # numpy takes it for 0 and 1 among numbers
            return None
        found = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.dtype.kind in kinds else None


def ints(place: Place, values: Any) -> Ints:
    """Whole numbers of 64 bits. Whole floats are accepted, because data frames make them of columns with nulls."""
    found = _array(values, "iuf")
    if found is not None and found.ndim == 1:
        if found.dtype.kind == "i":
            return np.ascontiguousarray(found, dtype=np.int64)
        if found.dtype.kind == "u" and (not found.size or found.max() <= _INT64.max):
            return np.asarray(found, dtype=np.int64)
    made = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        if _null(value):
            if not place.nullable:
                place.no(row, "nothing at all", "a whole number")
            made[row] = null_of(place.column)
            continue
        if not is_number(value) or not _INT64.min <= value <= _INT64.max or value != int(value):
            place.no(row, _shown(value), "a whole number of 64 bits")
        made[row] = int(value)
    return made


def floats(place: Place, values: Any) -> Floats:
    """Finite numbers; NaN is null."""
    found = _array(values, "iuf")
    if found is None or found.ndim != 1:
        made = np.empty(len(values))
        for row, value in enumerate(values):
            if value is None:
                made[row] = math.nan
                continue
            if not is_number(value):
                place.no(row, _shown(value), "a number")
            try:
                made[row] = float(value)
            except OverflowError:
                place.no(row, _shown(value), "a number that a double holds")
        found = made
    result = np.ascontiguousarray(found, dtype=np.float64)
    good = np.isfinite(result)
    if place.nullable:
        good |= np.isnan(result)
    if not good.all():
        row = int(np.argmin(good))
        place.no(row, float(result[row]), "a finite number")
    return result


def bools(place: Place, values: Any) -> Any:
    """Truth values."""
    found = _array(values, "b")
    if found is not None and found.ndim == 1:
        return np.ascontiguousarray(found)
    for row, value in enumerate(values):
        if not isinstance(value, (bool, np.bool_)):
            place.no(row, _shown(value), "true or false")
    return np.array([bool(value) for value in values], dtype=np.bool_)


def texts(place: Place, values: Any) -> list[str | None]:
    """Text that UTF-8 can hold."""
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    for row, value in enumerate(listed):
        if type(value) is not str:
            if not (_null(value) and place.nullable):
                place.no(row, _shown(value), "text")
            listed[row] = None
    _check_utf8(place, listed, lambda value: value or "")
    return listed


def _check_utf8(place: Place, values: Sequence[Any], text_of: Callable[[Any], str]) -> None:
    """Check all text together; only if that fails, one by one."""
    try:
        "".join(text_of(value) for value in values).encode()
    except UnicodeEncodeError:
        for row, value in enumerate(values):
            try:
                text_of(value).encode()
            except UnicodeEncodeError:
                place.no(row, "a lone surrogate", "text that UTF-8 can hold")


def stamps(place: Place, values: Any) -> Times:
    """Microseconds since 1970, UTC. Text in ISO 8601 is accepted."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        made = values.astype("datetime64[us]")
        if not place.nullable and np.isnat(made).any():
            place.no(int(np.argmax(np.isnat(made))), "nothing at all", "a time")
        return made
    return np.array([_time(place, row, value) for row, value in enumerate(values)], dtype="datetime64[us]")


def _time(place: Place, row: int, value: Any) -> Any:
    if _null(value) or (isinstance(value, np.datetime64) and np.isnat(value)):
        if not place.nullable:
            place.no(row, "nothing at all", "a time")
        return np.datetime64("NaT", "us")
    try:
        if isinstance(value, np.datetime64):
            return value.astype("datetime64[us]")
        moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime.datetime):
            if moment.tzinfo is not None:
                moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
            return np.datetime64(moment, "us")
    except (ValueError, OverflowError):
        pass
    place.no(row, _shown(value), 'a time such as "2026-05-04T12:00:00Z"')


def vectors(place: Place, values: Any) -> Floats:
    """One vector of finite numbers per row, all of one length."""
    found = _array(values, "iuf")
    if found is None or found.ndim != 2 or found.shape[1] == 0:
        width = None
        for row, value in enumerate(values):
            one = _array(value, "iuf")
            if one is None or one.ndim != 1 or not one.size:
                place.no(row, _shown(value), "a vector of numbers")
            width = one.size if width is None else width
            if one.size != width:
                place.no(row, f"{one.size} numbers", f"{width} numbers, as in the rows before it")
        found = np.array([np.asarray(value, dtype=np.float64) for value in values]).reshape(len(values), width or 0)
    result = np.ascontiguousarray(found, dtype=np.float64)
    check_finite(place, result, None)
    return result


def check_finite(place: Place, values: Floats, offsets: Ints | None) -> None:
    """Vectors without NaN and infinities; `offsets` says where the rows of a ragged column begin."""
    with np.errstate(over="ignore", invalid="ignore"):
        doubtful = values.size > 0 and not np.isfinite(values.sum())  # no array is made
    if doubtful and not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values).all(axis=1)))
        number = values[at][~np.isfinite(values[at])][0]
        row = at if offsets is None else int(np.searchsorted(offsets, at, side="right")) - 1
        place.no(row, f"{number} among the numbers", "finite numbers")


def ragged(place: Place, values: Any) -> Ragged:
    """Several vectors per row, all of one length; no vectors if the value is null."""
    if isinstance(values, Ragged):
        rows, offsets = vectors(place, values.values), ints(place, values.offsets)
        steps = np.diff(offsets)
        if not offsets.size or offsets[0] != 0 or offsets[-1] != len(rows) or (steps < 0).any():
            place.no(0, "offsets that do not cut the rows", "offsets from 0 to the number of vectors")
        return Ragged(rows, offsets)
    found = _array(values, "iuf")
    if found is not None and found.ndim == 3 and found.size:
        count, each, width = found.shape
        flat = np.ascontiguousarray(found, dtype=np.float64).reshape(count * each, width)
        made = Ragged(flat, np.arange(0, count * each + 1, each, dtype=np.int64))
        check_finite(place, *made)
        return made
    parts: list[Floats] = []
    for row, value in enumerate(values):
        one = np.zeros((0, 0)) if _null(value) else _array(_plain(value), "iuf")
        if one is None or one.ndim != 2 or (not _null(value) and not one.size):
            place.no(row, _shown(value), "vectors of numbers, one per arm and all of one length")
        width = next((len(part[0]) for part in parts if len(part)), one.shape[1])
        if len(one) and one.shape[1] != width:
            place.no(row, f"vectors of {one.shape[1]} numbers", f"{width} numbers, as in the rows before it")
        parts.append(np.asarray(one, dtype=np.float64))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    filled = [part for part in parts if len(part)]
    flat = np.ascontiguousarray(np.concatenate(filled)) if filled else np.zeros((0, 0))
    check_finite(place, flat, offsets)
    return Ragged(flat, offsets)


def number_lists(place: Place, values: Any) -> list[Floats | None]:
    """Several finite numbers per row."""
    made: list[Floats | None] = []
    for row, value in enumerate(values):
        if _null(value):
            made.append(None)
            continue
        one = _array(value, "iuf")
        if one is None or one.ndim != 1 or not np.isfinite(one).all():
            place.no(row, _shown(value), "a list of finite numbers")
        made.append(np.asarray(one, dtype=np.float64))
    return made


def _plain(value: Any) -> Any:
    """Arrays of arrays, which data frames make of nested lists, as lists."""
    if not isinstance(value, np.ndarray):
        return value
    return [list(one) if isinstance(one, np.ndarray) else one for one in value]


def lists(place: Place, values: Any) -> list[list[str] | None]:
    """Several texts per row."""
    made: list[list[str] | None] = []
    for row, value in enumerate(values):
        if _null(value):
            made.append(None)
            continue
        listed = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) for one in listed):
            place.no(row, _shown(value), "a list of texts")
        made.append(list(listed))
    _check_utf8(place, made, lambda value: "".join(value or ()))
    return made


def fields(place: Place, values: Any) -> list[dict[str, Any] | None]:
    """Named values of a row: numbers, texts, truth values or nothing."""
    made: list[dict[str, Any] | None] = []
    for row, value in enumerate(values):
        if _null(value):
            made.append(None)
            continue
        if not isinstance(value, dict):
            place.no(row, _shown(value), "named values")
        for name, one in value.items():
            if not isinstance(name, str) or not (one is None or isinstance(one, (str, bool, int, float))):
                place.no(row, f"{_shown(one)} under {str(name)[:20]!r}", "numbers, texts, truth values or nothing")
        made.append(dict(value))
    _check_utf8(place, made, _texts_of)
    return made


def _texts_of(value: dict[str, Any] | None) -> str:
    return "".join(f"{name}{one if isinstance(one, str) else ''}" for name, one in (value or {}).items())


def _shown(value: Any) -> str:
    """A value as short text for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, say
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 60 else text[:57] + "..."


_MAKERS: dict[str, Callable[[Place, Any], Any]] = {
    "int": ints, "float": floats, "bool": bools, "text": texts, "time": stamps, "vector": vectors, "vectors": ragged,
    "numbers": number_lists, "texts": lists, "fields": fields,
}  # fmt: skip
