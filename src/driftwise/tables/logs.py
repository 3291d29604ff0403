"""Reading a log: a file, a folder of parts, a table, a data frame or plain columns, always batch by batch.

Everything that leaves this module has the types of the schema. `check_log` and the learning code check the values. Only
one batch of one part is in memory at a time.

JSON lines are readable by people: one object per row, times in ISO 8601, null for missing values. A last line without a
line break is read if it is complete. If it is not, the process ended while it wrote the line: the line is left out,
with a warning.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.files import HALF
from driftwise.errors import BadInput
from driftwise.tables.columns import Place, column_of
from driftwise.tables.schema import COLUMNS, ORIGIN, Batch, Ragged, asked_columns, bad_row
from driftwise.tables.seals import line_holds

# Rows of a batch: 10 MB at d=20. Larger batches are not faster.
ROWS = 65_536

_READABLE = "a .parquet, .arrow, .feather or .jsonl file, a folder of such parts, a table or a data frame"


class RowGroup(NamedTuple):
    """A group of rows that can be skipped: the numbers of rows and rewards, the newest decision and the newest
    reward."""

    rows: int
    rewards: int
    born: int
    paid: int


class Part:
    """A part of a log that is stored as one: a name, columns of the schema, and a digest of its bytes."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the schema that the part has."""
        raise NotImplementedError

    @property
    def rows(self) -> int:
        """How many rows it has."""
        raise NotImplementedError

    @property
    def dim(self) -> int | None:
        """The length of its vectors; None without vectors."""
        for batch in self.batches(["x"], rows=1):
            return None if batch.x is None else int(batch.x.shape[1])
        return None

    def digest(self) -> str:
        """The sha256 of its bytes, in hex."""
        raise NotImplementedError

    @property
    def origin(self) -> str | None:
        """The agent that wrote it, if the part says so."""
        return None

    def batches(self, columns: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
        """Its rows in order, at most `rows` at a time, with these columns."""
        raise NotImplementedError

    def row_groups(self) -> list[RowGroup] | None:
        """Its groups of rows by their stored statistics, without reading them; None if there are none."""
        return None

    def only(self, groups: list[int]) -> Part:
        """The same part, restricted to these groups."""
        raise NotImplementedError


class Filed(Part):
    """A part that is a file."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    def digest(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


class MemoryPart(Part):
    """A part that is numpy columns in memory."""

    def __init__(self, columns: dict[str, Any], name: str = "memory") -> None:
        self.name = name
        columns = {one: values.to_numpy() if _series(values) else values for one, values in columns.items()}
        lengths = {one: _length(values) for one, values in columns.items()}
        self._rows = max(lengths.values(), default=0)
        for one, length in lengths.items():
            if length != self._rows:
                wanted = f"{self._rows} rows, as other columns have"
                raise BadInput("log", f"{length} rows of {one}", wanted, "pass columns of one length")
        self._columns = {one: column_of(Place(name, 0, one), values) for one, values in columns.items()}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(one for one in COLUMNS if one in self._columns)

    @property
    def rows(self) -> int:
        return self._rows

    def digest(self) -> str:
        found = hashlib.sha256()
        for name in self.columns:
            values = self._columns[name]
            found.update(name.encode() + b"\0")
            arrays = values if isinstance(values, Ragged) else (values,)
            for one in arrays:
                found.update(one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode())
        return found.hexdigest()

    def batches(self, columns: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
        names = [name for name in asked_columns(columns) if name in self._columns]
        for start in range(0, self._rows, rows):
            stop = min(start + rows, self._rows)
            yield Batch(
                self.name, start, stop - start, **{name: _cut(self._columns[name], start, stop) for name in names}
            )


def _series(values: Any) -> bool:
    """Whether it is a column of a data frame, which converts itself to an array."""
    return callable(getattr(values, "to_numpy", None)) and not isinstance(values, type)


def _length(values: Any) -> int:
    if isinstance(values, Ragged):
        return len(values.offsets) - 1
    sized = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.ndim > 0)
    if not sized:
        raise BadInput("log", values, "a list or array of values per column", "pass lists or arrays of one length")
    return len(values)


def _cut(values: Any, start: int, stop: int) -> Any:
    if not isinstance(values, Ragged):
        return values[start:stop]
    first, last = values.offsets[start], values.offsets[stop]
    return Ragged(values.values[first:last], values.offsets[start : stop + 1] - first)


class Log:
    """Parts in order, read as one."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def __repr__(self) -> str:
        return f"<Log of {len(self.parts)} parts: {', '.join(self.columns)}>"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that every part has."""
        return tuple(name for name in COLUMNS if all(name in part.columns for part in self.parts))

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(part.rows for part in self.parts)

    @cached_property
    def dim(self) -> int | None:
        """The length of the vectors played; None if there are none."""
        found: int | None = None
        for part in self.parts:
            dim = part.dim
            if dim is not None and found is not None and dim != found:
                got = f"vectors of {dim} numbers in {part.name}"
                raise BadInput("log", got, f"{found} numbers, as in the parts before it", "read them separately")
            found = dim if found is None else found
        return found

    def require(self, columns: Iterable[str], why: str) -> None:
        """Raise BadInput if a column is missing; the error says what the column is for."""
        for name in columns:
            if name not in self.columns:
                got = f"no column {name}; there are {', '.join(self.columns) or 'none'}"
                raise BadInput("log", got, f"the column {name}, {why}", "see docs/logs.md for what a log holds")

    def batches(self, columns: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
        """All rows in order, at most `rows` at a time, with these columns."""
        names = asked_columns(columns)
        for part in self.parts:
            yield from part.batches(names, rows)


def read_log(source: Any) -> Log:
    """A log from a path, a list of paths, a pyarrow table or any data frame.

    A path is a .parquet, .arrow, .feather or .jsonl file, or a folder of such parts, which are read in order of their
    names.
    """
    if isinstance(source, Log):
        return source
    if isinstance(source, (str, Path)):
        return Log(_at(Path(source)))
    if isinstance(source, (list, tuple)):
        return Log([part for one in source for part in read_log(one).parts])
    if isinstance(source, Part):
        return Log([source])
    if isinstance(source, dict):
        return log_of(**source)
    from driftwise.tables.arrow import from_frame

    return Log([from_frame(source)])


def _at(path: Path) -> list[Part]:
    """The parts at a path."""
    try:
        path.stat()
    except (OSError, ValueError):
        raise BadInput("log", str(path), "a path that exists", "check its spelling") from None
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.is_file() and one.suffix in _FORMATS)
        if not found:
            raise BadInput("log", f"{path}, a folder without parts", _READABLE, "pass the folder that log_to wrote")
        return [_FORMATS[one.suffix](one) for one in found]
    if path.suffix not in _FORMATS:
        way_out = "it was never finished" if path.suffix == HALF else "name it by its format"
        raise BadInput("log", str(path), _READABLE, way_out)
    return [_FORMATS[path.suffix](path)]


def log_of(**columns: Any) -> Log:
    """A log of plain columns in memory, named as in the schema. arms are arrays (n, d), one per row, or a `Ragged`."""
    asked_columns(columns)
    return Log([MemoryPart(columns)])


def _parquet(path: Path) -> Part:
    from driftwise.tables.arrow import ParquetPart

    return ParquetPart(path)


def _arrow(path: Path) -> Part:
    from driftwise.tables.arrow import ArrowPart

    return ArrowPart(path)


def _lines(path: Path) -> Part:
    from driftwise.tables.logs import LinesPart

    return LinesPart(path)


_FORMATS = {".parquet": _parquet, ".arrow": _arrow, ".feather": _arrow, ".jsonl": _lines}


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
