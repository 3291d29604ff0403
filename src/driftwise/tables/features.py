"""Features: declared, plain-data rules that turn contexts and rows of items into arm vectors.

A vector has an intercept, the context's fields, the item's fields, crosses of a field of one with a field of the other,
and blocks: for each named item its own copy of (1, context). Every term has norm 1 at most, and all are scaled by one
number so that ‖x‖ ≤ L. A missing value is 0, which for a number is its mean. An undeclared level is "other". An item
without a block shares the block "other". An undeclared field or an item that was never described is refused, because it
is most likely a typing error; with unknown="allow" the field is ignored, and the item has no item fields.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

from driftwise._internal.validate import array, one_of, real, text, whole
from driftwise.errors import BadInput
from driftwise.tables.fields import KINDS, OTHER, Field, Hashed, LevelsField, Number, listed, name_of, text_of

UNKNOWN = ("refuse", "allow")


@dataclass(frozen=True, kw_only=True)
class Features:
    """The declaration: fields of contexts and of items by name, pairs (context field, item field) to cross, and items
    with a block of their own. `unknown` says whether undeclared fields and items are refused or allowed."""

    context: Mapping[str, Field]
    item: Mapping[str, Field]
    cross: Sequence[tuple[str, str]] = ()
    blocks: Sequence[str] = ()
    intercept: bool = True
    L: float = 1.0
    unknown: Literal["refuse", "allow"] = "refuse"

    number: ClassVar[type[Number]] = Number
    levels: ClassVar[type[LevelsField]] = LevelsField
    hashed: ClassVar[type[Hashed]] = Hashed

    def __post_init__(self) -> None:
        for name in ("context", "item"):
            given = getattr(self, name)
            good = isinstance(given, Mapping) and all(isinstance(field, str) for field in given)
            if not good or not all(isinstance(kind, Field) for kind in given.values()):
                wanted = "fields by name, each a Features.number, .levels or .hashed"
                raise BadInput(name, given, wanted, "pass {'age': Features.number(40, 20)}, say")
            object.__setattr__(self, name, {text(name, field): kind for field, kind in given.items()})
        pairs = listed("cross", self.cross, "pairs of fields")
        for pair in pairs:
            good = isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
            if not good or pair[0] not in self.context or pair[1] not in self.item:
                raise BadInput("cross", pair, "a field of the context and one of the item", "declare both first")
        object.__setattr__(self, "cross", tuple((mine, theirs) for mine, theirs in pairs))
        blocks = listed("blocks", self.blocks, "names of items")
        object.__setattr__(self, "blocks", tuple(name_of(one) for one in blocks))
        real("L", self.L, 0.0, low_open=True, way_out="pass the L of the policy")
        one_of("unknown", self.unknown, UNKNOWN)
        if not self.dim:
            raise BadInput("features", "nothing", "at least an intercept, a field or a block", "declare one")

    @cached_property
    def names(self) -> list[str]:
        """The name of each number of a vector."""
        context = [name for field, kind in self.context.items() for name in kind.names(field)]
        item = [name for field, kind in self.item.items() for name in kind.names(field)]
        crossed = [
            f"{one} × {other}" for mine, theirs in self.cross
            for one in self.context[mine].names(mine) for other in self.item[theirs].names(theirs)
        ]  # fmt: skip
        owners = [*self.blocks, OTHER] if self.blocks else []
        blocks = [f"{owner}: {name}" for owner in owners for name in ("1", *context)]
        return [*(["1"] if self.intercept else []), *context, *item, *crossed, *blocks]

    @cached_property
    def dim(self) -> int:
        """The length of a vector. It is counted without making the names, because a width may be far larger than a
        policy takes."""
        context, item = (sum(kind.width for kind in side.values()) for side in (self.context, self.item))
        crossed = sum(self.context[mine].width * self.item[theirs].width for mine, theirs in self.cross)
        blocks = (len(self.blocks) + 1) * (1 + context) if self.blocks else 0
        return bool(self.intercept) + context + item + crossed + blocks

    @cached_property
    def scale(self) -> float:
        """L divided by the largest norm that the terms, of norm 1 each, can add up to."""
        terms = self.intercept + len(self.context) + len(self.item) + len(self.cross)
        return self.L / math.sqrt(terms + (1 + len(self.context) if self.blocks else 0))

    @property
    def fields(self) -> dict[str, bool]:
        """The fields of a context, and whether each is a number, as a log writes them."""
        return {field: isinstance(kind, Number) for field, kind in self.context.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON. Equal features give equal data."""
        made: dict[str, Any] = {"intercept": bool(self.intercept), "L": float(self.L), "blocks": list(self.blocks)}
        made["unknown"] = self.unknown
        for name in ("context", "item"):
            made[name] = [
                [field, next(kind for kind, made_by in KINDS.items() if type(one) is made_by),
                 json.loads(json.dumps(asdict(one)))]  # tuples become lists, as in a file
                for field, one in getattr(self, name).items()
            ]  # fmt: skip
        return made | {"cross": [list(pair) for pair in self.cross]}

    @classmethod
    def from_dict(cls, data: Any) -> Features:
        """The features that `to_dict` wrote, or BadInput. Data of earlier versions, which have no `unknown`, allow what
        is unknown."""
        try:
            rest = {name: data[name] for name in ("cross", "blocks", "intercept", "L")}
            rest["unknown"] = data.get("unknown", "allow")
            sides: dict[str, Any] = {
                name: {field: KINDS[kind](**numbers) for field, kind, numbers in data[name]}
                for name in ("context", "item")
            }
            if {*data, "unknown"} != {*rest, *sides} or type(data["intercept"]) is not bool:
                raise KeyError
            return cls(**sides, **rest)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput("features", data, "what Features.to_dict wrote", "write it again") from None

    @classmethod
    def fit(
        cls, contexts: Any, items: Any, *, cross: Sequence[tuple[str, str]] = (), blocks: bool = False,
        most_levels: int = 32, width: int = 32, L: float = 1.0, unknown: Literal["refuse", "allow"] = "refuse",
    ) -> Features:
        """Features suggested by data. contexts are rows (dicts, or a data frame), items are rows by name.

        A number gets its mean and standard deviation. Texts and booleans get one place per level; levels beyond the
        `most_levels` most frequent are "other". If there are ten times as many levels, they are hashed with signs into
        `width` places.
        """
        rows = dict(items) if isinstance(items, Mapping) else dict(enumerate(rows_of_table(items)))
        sides = {"context": rows_of_table(contexts), "item": rows_of_table(list(rows.values()))}
        found = {name: _fitted(side, whole("most_levels", most_levels), width) for name, side in sides.items()}
        owners = tuple(name_of(name) for name in rows) if blocks else ()
        return cls(context=found["context"], item=found["item"], cross=cross, blocks=owners, L=L, unknown=unknown)


def rows_of_table(table: Any) -> list[dict[str, Any]]:
    """Rows as dicts, also of a data frame."""
    if hasattr(table, "columns"):
        if not find_spec("narwhals"):
            way_out = 'pip install "driftwise[logs]", or pass a list of {field: value}'
            raise BadInput("rows", "a data frame without narwhals", "narwhals, which reads data frames", way_out)
        import narwhals

        return list(narwhals.from_native(table, eager_only=True).iter_rows(named=True))
    rows = listed("rows", table, "a list of rows, or a data frame")
    if not all(isinstance(row, dict) and all(isinstance(field, str) for field in row) for row in rows):
        raise BadInput("rows", table, "rows of fields by name, or a data frame", "pass a list of {field: value}")
    return rows


def _fitted(rows: list[dict[str, Any]], most: int, width: int) -> dict[str, Field]:
    made: dict[str, Field] = {}
    for field in dict.fromkeys(name for row in rows for name in row):
        values = [row[field] for row in rows if text_of(row.get(field), field) is not None]
        if values and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            each = array(field, values, (None,), "leave out what is too large")
            spread = float(each.std())
            made[field] = Number(float(each.mean()), spread if spread > 0.0 else 1.0)
        elif values:
            counted = Counter(str(text_of(value)) for value in values)
            often = [level for level, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))]
            made[field] = Hashed(width) if len(often) > 10 * most else LevelsField(tuple(often[:most]))
    return made
