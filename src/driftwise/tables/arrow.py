"""Logs in Parquet and Arrow, and data frames: batches of pyarrow as batches of numpy columns.

Columns of the schema's own types are used without a copy. Others are converted through Python values (columns.py),
which has the error messages. Bytes from a file are validated in full before they are used, because pyarrow trusts the
offsets of a damaged file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.tables.columns import Place, check_finite, column_of
from driftwise.tables.logs import ROWS, Filed, Part, RowGroup
from driftwise.tables.schema import COLUMNS, MARK, ORIGIN, READABLE, VERSION, Batch, Ragged, asked_columns, null_of
from driftwise.tables.seals import file_holds

try:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError:
    way_out = "pip install driftwise[logs], or use .jsonl"
    raise BadInput("log", "no pyarrow", "pyarrow, which reads and writes tables", way_out) from None


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn pyarrow's errors about an unreadable file into BadInput."""
    try:
        yield
    except BadInput:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError, MemoryError) as error:
        words = " ".join(str(error).split())[:70] or type(error).__name__
        raise BadInput("log", f"{name}: {words}", "a whole Parquet or Arrow file", "write it again") from None


class ArrowBased(Part):
    """A part that pyarrow reads."""

    def _schema(self) -> Any:
        raise NotImplementedError

    def _record_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        raise NotImplementedError

    @cached_property
    def columns(self) -> tuple[str, ...]:
        with told(self.name):
            schema = self._schema()
            said = (schema.metadata or {}).get(MARK.encode(), str(VERSION).encode())
            names = list(schema.names)
        if said not in [str(one).encode() for one in READABLE]:
            got = f"version {said[:20]!r} in {self.name}"
            raise BadInput("log", got, f"version {VERSION} of logs or an older one", "update driftwise")
        twice = next((name for name in COLUMNS if names.count(name) > 1), None)
        if twice:
            raise BadInput("log", f"two columns {twice} in {self.name}", "each column once", "rename one of them")
        return tuple(name for name in COLUMNS if name in names)

    @property
    def origin(self) -> str | None:
        with told(self.name):
            found = (self._schema().metadata or {}).get(ORIGIN.encode())
        return None if found is None else found.decode("utf-8", "replace")

    def batches(self, columns: Iterable[str], rows: int = ROWS) -> Iterator[Batch]:
        names = [name for name in asked_columns(columns) if name in self.columns]
        start = 0
        with told(self.name):
            for found in self._record_batches(names, rows):
                for first in range(0, found.num_rows, rows):
                    batch = found.slice(first, rows)
                    if not batch.num_rows:
                        continue
                    batch.validate(full=True)
                    made = {name: self._column(start, name, batch.column(name)) for name in names}
                    yield Batch(self.name, start, batch.num_rows, **made)
                    start += batch.num_rows

    def _column(self, start: int, name: str, values: Any) -> Any:
        place = Place(self.name, start, name)
        column = COLUMNS[name]
        if values.null_count and not column.nullable:
            row = int(np.argmax(np.asarray(values.is_null().to_numpy(zero_copy_only=False))))
            place.no(row, "nothing at all", "a value in every row")
        made = _FAST[column.kind](place, values) if column.kind in _FAST else None
        return made if made is not None else column_of(place, _listed(column.kind, values))


class ParquetPart(Filed, ArrowBased):
    """A part that is a Parquet file. Only the part of a row group that a batch needs is in memory."""

    groups: list[int] | None = None  # those that are read

    def only(self, groups: list[int]) -> ParquetPart:
        made = type(self)(self.path)
        made.groups, made._proven = groups, self._proven
        return made

    def row_groups(self) -> list[RowGroup] | None:
        with told(self.name), self._open() as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            found = [_group(one) for one in groups]
        return None if None in found else found  # type: ignore[return-value]

    @cached_property
    def _proven(self) -> bool:
        """Whether a seal shows that all bytes are as written; False without a seal. Changed bytes raise BadInput."""
        holds = file_holds(self.path)
        if holds is False:
            got, wanted = f"changed bytes in {self.name}", "a part as it was written"
            raise BadInput("log", got, wanted, "take it from a copy, or leave out this part and those after it")
        return holds is True

    def _open(self) -> Any:
        """The open file. Without a seal, pages with a checksum are checked."""
        return pa.parquet.ParquetFile(
            self.path, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=not self._proven
        )

    def _schema(self) -> Any:
        with self._open() as file:
            return file.schema_arrow

    @cached_property
    def rows(self) -> int:
        with told(self.name), self._open() as file:
            return int(file.metadata.num_rows)

    def _record_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._open() as file:
            yield from file.iter_batches(batch_size=rows, row_groups=self.groups, columns=names, use_threads=False)


def _group(group: Any) -> RowGroup | None:
    """The ranges of a row group from its statistics; None without statistics, and then the rows are read."""
    columns: dict[str, Any] = {}
    missing: Any = None
    for k in range(group.num_columns):
        columns[group.column(k).path_in_schema] = group.column(k).statistics
    born, paid, reward = (columns.get(name, missing) for name in ("born", "reward_tick", "reward"))
    known = all(getattr(one, "has_min_max", False) and type(one.max) is int for one in (born, paid))
    if not known or not getattr(reward, "has_null_count", False):
        return None
    return RowGroup(group.num_rows, group.num_rows - reward.null_count, born.max, paid.max)


class ArrowPart(Filed, ArrowBased):
    """A part that is an Arrow file or stream, or a Feather file, which is one too."""

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        with self.path.open("rb") as head:
            is_file = head.read(6) == b"ARROW1"
        with pa.OSFile(str(self.path), "rb") as source:
            yield pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)

    def _schema(self) -> Any:
        with self._reader() as reader:
            return reader.schema

    @cached_property
    def rows(self) -> int:
        with told(self.name):
            return sum(batch.num_rows for batch in self._record_batches([], ROWS))

    def _record_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        with self._reader() as reader:
            if hasattr(reader, "num_record_batches"):
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
            else:
                yield from reader


class TablePart(ArrowBased):
    """A part that is a table in memory."""

    def __init__(self, table: Any, name: str = "table") -> None:
        self.table, self.name = table, name

    def _schema(self) -> Any:
        return self.table.schema

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def digest(self) -> str:
        """The sha256 of the table as an Arrow stream of one batch, whichever batches it has."""
        sink = pa.BufferOutputStream()
        whole = self.table.combine_chunks()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole)
        return hashlib.sha256(sink.getvalue()).hexdigest()

    def _record_batches(self, names: list[str], rows: int) -> Iterator[Any]:
        yield from self.table.select(names).to_batches(max_chunksize=rows)


def from_frame(source: Any) -> Part:
    """A data frame of any kind that narwhals knows, or a pyarrow table."""
    wanted = "a path, a pyarrow table, a data frame or a dict of columns"
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return TablePart(source)
    try:
        import narwhals
    except ImportError:
        raise BadInput("log", type(source).__name__, wanted, "pip install driftwise[logs]") from None
    try:
        frame = narwhals.from_native(source)
    except TypeError:
        raise BadInput("log", f"a {type(source).__name__}", wanted, "pass one of these") from None
    with told(type(source).__name__):
        if isinstance(frame, narwhals.LazyFrame):
            frame = frame.collect()
        present = [name for name in frame.columns if name in COLUMNS]
        table = frame.select(present).to_arrow()
    return TablePart(table, type(source).__module__.split(".")[0])


# ------------------------------------------------------------------------------------------ columns


def _ints(place: Place, values: Any) -> Any:
    if not pa.types.is_integer(values.type) or pa.types.is_uint64(values.type):
        return None
    if values.null_count:
        values = values.fill_null(null_of(place.column)) if not pa.types.is_unsigned_integer(values.type) else None
    return None if values is None else values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _floats(place: Place, values: Any) -> Any:
    if not (pa.types.is_float64(values.type) or pa.types.is_float32(values.type)):
        return None
    return column_of(place, values.to_numpy(zero_copy_only=False))


def _bools(place: Place, values: Any) -> Any:
    return values.to_numpy(zero_copy_only=False) if pa.types.is_boolean(values.type) and not values.null_count else None


def _times(place: Place, values: Any) -> Any:
    if not pa.types.is_timestamp(values.type):
        return None
    # A finer unit is truncated to microseconds. The zone affects only how a time is shown.
    return column_of(place, values.cast(pa.timestamp("us", values.type.tz), safe=False).to_numpy(zero_copy_only=False))


def _rows(place: Place, values: Any) -> Any:
    """Vectors (rows, d) of a list column whose lengths are equal."""
    kind = values.type
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)) or values.null_count:
        return None
    inner = values.flatten()
    if not pa.types.is_float64(inner.type) or inner.null_count or not len(values):
        return None
    width = kind.list_size if fixed else len(inner) // len(values)
    if width == 0 or len(inner) != width * len(values):
        return None
    if not fixed and (np.diff(values.offsets.to_numpy()) != width).any():
        return None
    return inner.to_numpy(zero_copy_only=False).reshape(len(values), width)


def _vectors(place: Place, values: Any) -> Any:
    found = _rows(place, values)
    if found is not None:
        found = np.ascontiguousarray(found)
        check_finite(place, found, None)
    return found


def _ragged(place: Place, values: Any) -> Any:
    if not (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)) or values.null_count:
        return None
    found = _rows(place, values.flatten())
    if found is None:
        return None
    offsets = values.offsets.to_numpy().astype(np.int64)
    made = Ragged(np.ascontiguousarray(found), offsets - offsets[0])
    check_finite(place, *made)
    return made


def _texts(place: Place, values: Any) -> Any:
    """Repeating words, as an array that shares equal words."""
    if not pa.types.is_string(values.type) or place.column not in _REPEATED:
        return None
    coded = values.dictionary_encode()
    words = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    return words[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]


_REPEATED = ("verdict", "policy", "stream")
_FAST = {
    "text": _texts, "int": _ints, "float": _floats, "bool": _bools, "time": _times, "vector": _vectors,
    "vectors": _ragged,
}  # fmt: skip


def _listed(kind: str, values: Any) -> list[Any]:
    """The Python values of a column. A context may be stored as JSON text."""
    listed: list[Any] = values.to_pylist()
    if kind == "fields" and (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return [value if value is None else _parsed(value) for value in listed]
    return listed


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
