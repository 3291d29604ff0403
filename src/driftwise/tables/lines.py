"""Logs as JSON lines, readable by people: one object per row, times in ISO 8601, null for missing values.

A last line without a line break is read if it is complete. If it is not, the process ended while it wrote the line: the
line is left out, with a warning.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from driftwise.errors import BadInput
from driftwise.tables.columns import Place, column_of
from driftwise.tables.logs import ROWS, Filed
from driftwise.tables.schema import COLUMNS, ORIGIN, Batch, asked_columns, bad_row
from driftwise.tables.seals import line_holds


class LinesPart(Filed):
    """A part of JSON lines."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of its first row; all rows of a log have the same columns."""
        found = next(self._objects(), {})
        return tuple(name for name in COLUMNS if name in found)

    @property
    def origin(self) -> str | None:
        found = next(self._objects(), {}).get(ORIGIN)
        return found if isinstance(found, str) else None

    @cached_property
    def rows(self) -> int:
        return sum(1 for _ in self._texts())

    def _texts(self) -> Iterator[bytes]:
        """The complete lines that are not blank."""
        try:
            with self.path.open("rb") as file:
                for line in file:
                    if not line.strip():
                        continue
                    if not line.endswith(b"\n") and _object(line) is None:
                        told = f"{self.name}: the last line is cut and left out: {line[:40]!r}"
                        warnings.warn(told, RuntimeWarning, stacklevel=2)
                    else:
                        yield line
        except OSError as error:
            raise BadInput("log", f"{self.name}: {error.strerror}", "a file that can be read", "check it") from None

    def _objects(self) -> Iterator[dict[str, Any]]:
        for row, line in enumerate(self._texts()):
            found, wanted, way_out = _object(line), "one JSON object per line", "correct or leave out the line"
            if found is not None and not line_holds(line):
                found, wanted, way_out = None, "a line as it was written", "remove its seal if you changed it"
            if found is None:
                raise BadInput("log", f"{line[:40]!r} in row {row} of {self.name}", wanted, way_out)
            yield found

    def batches(self, columns: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
        names = [name for name in asked_columns(columns) if name in self.columns]
        start, waiting = 0, []
        for one in self._objects():
            waiting.append(one)
            if len(waiting) == rows:
                yield self._batch(start, waiting, names)
                start, waiting = start + rows, []
        if waiting:
            yield self._batch(start, waiting, names)

    def _batch(self, start: int, objects: list[dict[str, Any]], names: list[str]) -> Batch:
        made = {}
        for name in names:
            values = [one.get(name) for one in objects]
            if not COLUMNS[name].nullable and None in values:
                raise bad_row(self.name, start + values.index(None), name, "nothing at all", "a value in every row")
            made[name] = column_of(Place(self.name, start, name), values)
        return Batch(self.name, start, len(objects), **made)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
