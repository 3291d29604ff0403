"""Arms of a context. Rows of items are encoded once and kept, so a decision costs a few array operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import numpy as np

from driftwise._internal.validate import is_moment
from driftwise.errors import BadInput
from driftwise.tables.features import Features
from driftwise.tables.fields import Field, Number, listed, name_of, text_of
from driftwise.tables.schema import Floats

# The number of item rows that are kept. The row that was encoded first is evicted first.
MOST_ITEMS = 100_000
# How many names are compared for the nearest one, how much of a name is compared, and how many names a message lists.
_LOOKED, _LONG, _SHOWN = 1_000, 40, 5


class Encoder:
    """Features in use: `arms` of a context and items, given by name or as rows by name.

    A row that was given once is known by its name. Another row replaces it. Only one thread may use it at a time.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.rows: dict[str, dict[str, Any]] = {}  # declared fields of items, as numbers and texts
        self._given: dict[str, dict[str, Any]] = {}
        self._kept: dict[str, tuple[Floats, int]] = {}  # item fields encoded, and the item's block
        self._owners = {name: place for place, name in enumerate(features.blocks)}
        context, self._context = 0, {}
        for field, kind in features.context.items():
            self._context[field] = slice(context, context + kind.width)
            context += kind.width
        item, self._item = 0, {}
        for field, kind in features.item.items():
            self._item[field] = slice(item, item + kind.width)
            item += kind.width
        self._widths = context, item
        self._unknown, self._refuses = np.zeros(item), features.unknown == "refuse"

    def know(self, items: Mapping[Any, Mapping[str, Any]]) -> None:
        """Encode the rows of items that are new or changed."""
        for name, row in items.items():
            key = name_of(name)
            if not isinstance(row, Mapping):
                raise BadInput("items", row, "a row of fields for each item", "pass {name: {field: value}}")
            if _same(self._given.get(key), row):
                continue
            self._check_fields("items", self.features.item, row)
            kept = _plain(self.features.item, row)
            made = np.zeros(self._widths[1])
            for field, kind in self.features.item.items():
                kind.put(field, kept[field], made[self._item[field]])
            given, owner = dict(row), self._owners.get(key, len(self._owners))
            oldest = next(iter(self.rows)) if len(self.rows) >= MOST_ITEMS and key not in self.rows else None
            # No function is called from here on, so that Ctrl-C cannot interrupt in between.
            if oldest is not None:
                del self.rows[oldest], self._given[oldest], self._kept[oldest]
            self.rows[key], self._given[key], self._kept[key] = kept, given, (made, owner)

    def context(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """The declared fields of a context as a log stores them: numbers and texts."""
        if not isinstance(context, Mapping):
            raise BadInput("context", context, "fields by name", 'pass {"hour": 12}, or {} for none')
        self._check_fields("context", self.features.context, context)
        return _plain(self.features.context, context)

    def arms(self, context: Mapping[str, Any], items: Sequence[Any] | Mapping[Any, Mapping[str, Any]]) -> Floats:
        """Vectors (n, d) of items in a context."""
        if isinstance(items, Mapping):
            self.know(items)
        else:
            items = listed("items", items, "names of items, or their rows by name")
        spec, (wide, deep) = self.features, self._widths
        known = [self._kept.get(one if type(one) is str else name_of(one)) for one in items]
        if not known:
            raise BadInput("items", items, "at least one item", "pass the names of the items to choose from")
        if self._refuses and None in known:
            self._check_described(items, known)
        told, given = self.context(context), np.zeros(wide)
        for field, kind in spec.context.items():
            kind.put(field, told[field], given[self._context[field]])
        given *= spec.scale
        rows = np.array([self._unknown if one is None else one[0] for one in known]).reshape(len(known), deep)
        made = np.zeros((len(known), spec.dim))
        at = 0
        if spec.intercept:
            made[:, 0], at = spec.scale, 1
        made[:, at : at + wide] = given
        made[:, at + wide : at + wide + deep] = rows * spec.scale
        at += wide + deep
        for mine, theirs in spec.cross:
            left, right = given[self._context[mine]], rows[:, self._item[theirs]]
            size = left.size * right.shape[1]
            made[:, at : at + size] = (left[None, :, None] * right[:, None, :]).reshape(len(known), size)
            at += size
        if spec.blocks:
            places = np.array([self._owner(one, name) for one, name in zip(known, items, strict=True)])
            first = at + places * (wide + 1)
            every = np.arange(len(known))
            made[every, first] = spec.scale
            made[every[:, None], first[:, None] + 1 + np.arange(wide)] = given
        return made

    def _check_fields(self, what: str, declared: Mapping[str, Field], row: Mapping[str, Any]) -> None:
        """Refuse undeclared fields, unless they are allowed."""
        if self._refuses and not row.keys() <= declared.keys():
            field = next(name for name in row if name not in declared)
            raise _unheard(what, "field", field, "declared fields", declared)

    def _check_described(self, items: Iterable[Any], known: Sequence[object]) -> None:
        """Refuse items that were never described: items without a row or, if items have blocks and no fields, items
        without a block. If items have neither, nothing is refused."""
        if not self.features.item and not self._owners:
            return
        for one, found in zip(items, known, strict=True):
            name = name_of(one)
            if found is None and (self.features.item or name not in self._owners):
                described = {**self.rows, **self._owners}
                raise _unheard("items", "item", name, "items that were described by a row", described)

    def _owner(self, known: tuple[Floats, int] | None, name: Any) -> int:
        return known[1] if known is not None else self._owners.get(name_of(name), len(self._owners))


def _unheard(what: str, kind: str, name: Any, wanted: str, known: Iterable[str]) -> BadInput:
    """The error for an undeclared name; it offers the nearest declared one."""
    listed = list(islice(known, _LOOKED))
    near = get_close_matches(str(name)[:_LONG], listed, n=1, cutoff=0.4)
    few = ", ".join(one[:_LONG] for one in listed[:_SHOWN]) + (", …" if len(listed) > _SHOWN else "")
    wanted = f"{wanted}: {few}" if few else wanted
    hint = f"the nearest is {near[0][:_LONG]!r}; " if near else ""
    return BadInput(what, f"the {kind} {name!r}", wanted, f'{hint}Features(unknown="allow") takes any')


def _same(known: dict[str, Any] | None, row: Mapping[str, Any]) -> bool:
    try:
        return bool(known == row)
    except ValueError:  # == of an array is an array
        return False


def _plain(fields: Mapping[str, Field], row: Mapping[str, Any]) -> dict[str, Any]:
    """The declared fields of a row as numbers and texts; None for a missing field."""
    made: dict[str, Any] = {}
    for field, kind in fields.items():
        value = row.get(field)
        made[field] = _number(field, value) if isinstance(kind, Number) else text_of(value, field)
    return made


def _number(field: str, value: Any) -> float | None:
    try:
        if is_moment(value):
            raise TypeError
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(field, value, "a number or nothing", "declare it by levels, or correct it") from None
    if math.isinf(number):
        raise BadInput(field, value, "a finite number or nothing", "correct it")
    return None if math.isnan(number) else number
