"""Writing a log: parts in a folder, each whole or absent, in the order in which decisions closed.

Rows gather in memory and a separate thread writes them, so closing a decision never waits for a disk. A process that is
killed loses the rows since the last part, never a part. `flush` returns when all rows are on disk. A process that ends
without `close` flushes.

If the disk cannot be written, rows are kept and tried again, and `flush` raises. A row that cannot be encoded is set
aside and counted, and the others are written. Each case gives one warning, and `status` has it.
"""

from __future__ import annotations

import atexit
import io
import json
import threading
import time
import warnings
import weakref
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.files import HALF, keep_durably
from driftwise._internal.validate import one_of, real, whole
from driftwise.errors import BadInput
from driftwise.tables.claim import FolderClaim
from driftwise.tables.logs import read_log
from driftwise.tables.schema import COLUMNS, MARK, ORIGIN, VERSION
from driftwise.tables.seals import BLANK, SEAL, sealed_file, sealed_line

# The errors of a format's encoder for a value that it cannot store. For any other error the row is not at fault, and
# waits.
_UNFIT = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, NotImplementedError, RecursionError)
FORMATS = ("parquet", "jsonl")
# Columns that are left out if no row of a part has a value: `measure` for continuous sets, `cohort` for streams,
# `trace` for decisions that were sent with a traceparent, the others for streams with such rewards, units and costs.
_RARE = ("measure", "cohort", "trace", "reward_sent", "unit_hash", "unit_seeds", "costs")


class LogRow(NamedTuple):
    """A row of the log, one value per column. Times are seconds since 1970, vectors are arrays of any shape."""

    seq: int
    decision_id: str
    stream: str | None
    at: float
    born: int
    arm: int | None
    item: str | None
    n: int
    x: Any
    propensity: float
    explored: bool
    score: float
    mean: float
    bonus: float
    policy: str
    state_seq: int | None
    reward: float | None
    reward_at: float | None
    reward_tick: int | None
    reward_seq: int | None
    verdict: str
    context: dict[str, Any] | None = None
    candidates: Sequence[str] | None = None
    arms: Any = None  # (n, d)
    measure: str | None = None
    cohort: str | None = None
    upon: int | None = None
    draws: int | None = None
    trace: str | None = None
    reward_sent: float | None = None
    unit_hash: int | None = None
    unit_seeds: Sequence[float] | None = None
    costs: Any = None  # (n,)


class Status(NamedTuple):
    """Rows on disk, rows that wait, rows set aside because they cannot be written, and the reason why rows wait or were
    set aside."""

    written: int
    waiting: int
    aside: int
    reason: str


# Writers that were not closed yet, for the end of the process.
_OPEN: weakref.WeakSet[Writer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for writer in list(_OPEN):
        try:
            writer.close()
        except BadInput as error:
            _tell(f"rows of a log are lost at the end of the process: {error}")


def _tell(text: str) -> None:
    """Warn, without ending the writing thread if warnings are errors."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        pass


class Writer:
    """An append-only log in a folder: `begin` it, `add` rows, `flush` them to disk, `close` it.

    A part is written when `rows` rows have gathered, or `seconds` after the first of them. `fields` are those of
    contexts, each a name and whether it is a number. `origin` is the agent that writes.
    """

    def __init__(
        self, folder: str | Path, *, format: str | None = None, rows: int = 50_000, seconds: float = 60.0,
        arms: bool = False, fields: dict[str, bool] | None = None, origin: str | None = None,
    ) -> None:
        self.folder = Path(folder)
        chosen = format or ("parquet" if find_spec("pyarrow") else "jsonl")
        one_of("format", chosen, FORMATS)
        if chosen == "parquet" and not find_spec("pyarrow"):
            raise BadInput("format", "parquet without pyarrow", "pyarrow, or jsonl", "pip install driftwise[logs]")
        if chosen == "parquet":
            import concurrent.futures.thread  # noqa: F401 - which pyarrow needs, and which cannot be imported at exit

            import pyarrow.parquet  # noqa: F401
        self.format = chosen
        self.arms, self.fields, self.origin = arms, fields, origin
        self._most = whole("rows", rows, 1)
        self._seconds = real("seconds", seconds, 0.0, low_open=True)
        self._claim: FolderClaim | None = None
        self._number = 0
        self._unsettled: tuple[Path, int] | None = None  # the part that is being written, and how many rows it has
        self.waiting: list[LogRow] = []  # always the same list: rows are appended, and removed at its beginning
        self._since = 0.0
        self._failure: Exception | None = None
        self._written = self._aside = 0
        self._reason = ""
        self._closed = False
        self._lock, self._writing = threading.RLock(), threading.Lock()  # Condition's own `with` is Python
        self._due = threading.Condition(self._lock)
        self._thread = threading.Thread(target=self._run, name="driftwise log", daemon=True)

    def begin(self) -> Writer:
        """Claim the folder and start the thread. `close` undoes what of it was done."""
        self._number = self._begin()
        _OPEN.add(self)
        self._thread.start()
        return self

    @property
    def status(self) -> Status:
        """How many rows were written, wait, or were set aside."""
        error = self._failure
        return Status(self._written, len(self.waiting), self._aside, self._reason if error is None else _why(error))

    def _begin(self) -> int:
        """The number of the next part. Files that a killed process left incomplete are removed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._claim = FolderClaim(self.folder)
            self._claim.renew()
            for half in self.folder.glob(f"part-*{HALF}"):
                half.unlink(missing_ok=True)
            numbers = [int(one.name[5:13]) for one in self.folder.glob("part-*.*") if one.name[5:13].isdigit()]
        except OSError as error:
            raise BadInput("path", str(self.folder), "a folder that can be written", str(error.strerror)) from None
        return max(numbers, default=0) + 1

    def add(self, row: LogRow) -> None:
        """Add a row. It is on disk when a part is full, or after `flush`."""
        self.waiting.append(row)
        self.added()

    def added(self) -> None:
        """Notify the thread of a row that was appended to `waiting`."""
        if len(self.waiting) == 1 or len(self.waiting) == self._most:
            with self._lock:
                self._since = time.monotonic()
                self._due.notify()

    def flush(self) -> None:
        """Write all rows; they are on disk when this returns."""
        self._write(1)
        if self._failure is not None:
            error, self._failure = self._failure, None
            first = "make the folder again" if isinstance(error, FileNotFoundError) else "make room"
            what, way_out = f"{self.folder}: {_why(error)}", f"{first}; the rows are kept, flush again"
            raise BadInput("path", what, "a folder that can be written", way_out)

    def close(self) -> None:
        """Flush, and end the thread."""
        with self._lock:
            self._closed = True
            self._due.notify()
        if self._thread.is_alive():
            self._thread.join()
        self.flush()
        if self._claim is not None:
            self._claim.release()
        _OPEN.discard(self)

    def disown(self) -> None:
        """In the child of a fork: rows and thread belong to the parent, and this process writes nothing."""
        self.waiting, self._failure, self._closed = [], None, True
        self._lock, self._writing = threading.RLock(), threading.Lock()
        self._due = threading.Condition(self._lock)
        _OPEN.discard(self)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._closed and not self._ready():
                    left = self._since + self._seconds - time.monotonic() if self.waiting else None
                    self._due.wait(left)
                if self._closed:
                    return
                least = 1 if time.monotonic() >= self._since + self._seconds else self._most
            self._write(least)
            if self._failure is not None:
                time.sleep(1.0)  # the rows are kept and tried again

    def _ready(self) -> bool:
        many = len(self.waiting)
        return many >= self._most or (many > 0 and time.monotonic() >= self._since + self._seconds)

    def _write(self, least: int) -> None:
        """Write the waiting rows as parts of at least `least` rows. If a part cannot be written, all of them wait."""
        with self._writing:
            if self._unsettled is not None and self._unsettled[0].exists():  # Ctrl-C came when it was on disk
                self._settle(self._unsettled[1])
            while len(self.waiting) >= least:
                try:
                    self._part(self.waiting[: self._most])
                except Exception as error:
                    if self._failure is None:
                        _tell(f"the log in {self.folder} cannot be written, its rows wait: {_why(error)}")
                    self._failure = error
                    return
                self._failure = None
                self._since = time.monotonic()

    def _part(self, rows: list[LogRow]) -> None:
        """Write the first waiting rows as a part. A row that cannot be encoded is left out, and parts are made around
        it."""
        try:
            data = (_parquet if self.format == "parquet" else _lines)(rows, self.arms, self.fields, self.origin)
        except _UNFIT as error:
            if len(rows) > 1:
                self._part(rows[: len(rows) // 2])
                self._part(rows[len(rows) // 2 :])
                return
            self._aside += 1
            self._reason = f"decision {rows[0].decision_id!r}: {_why(error)}"
            if self._aside == 1:
                _tell(f"the log in {self.folder} cannot hold a row, which is set aside: {self._reason}")
            del self.waiting[:1]
        else:
            assert self._claim is not None
            self._claim.renew()
            self._keep(data, len(rows))

    def _keep(self, data: bytes, many: int) -> None:
        """Write the next part with the first `many` rows, never over an existing file."""
        while True:
            part = self.folder / f"part-{self._number:08d}.{self.format}"
            if not part.exists():
                self._unsettled = part, many
                with suppress(FileExistsError):
                    keep_durably(part, data, new=True)
                    self._settle(many)
                    return
                self._unsettled = None
            self._number += 1

    def _settle(self, many: int) -> None:
        """Count the first waiting rows as written. Rows are only appended meanwhile, and Ctrl-C cannot interrupt in
        between, because nothing is called."""
        del self.waiting[:many]
        self._written += many
        self._number += 1
        self._unsettled = None


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def last_lesson(folder: Path) -> int:
    """The number of the last update in the parts of a folder; 0 if there is none."""
    if not folder.is_dir() or not any(one.suffix.lstrip(".") in FORMATS for one in folder.iterdir()):
        return 0
    for part in reversed(read_log(folder).parts):
        found = [int(batch.reward_seq.max()) for batch in part.batches(["reward_seq"]) if batch.reward_seq is not None]
        if max(found, default=0) > 0:
            return max(found)
    return 0


# ------------------------------------------------------------------------------------------ formats


def _lines(rows: list[LogRow], arms: bool, fields: dict[str, bool] | None, origin: str | None) -> bytes:
    """Rows as JSON lines."""
    made: list[bytes] = []
    for row in rows:
        one = {name: _plain(value) for name, value in row._asdict().items()}
        one["at"], one["reward_at"] = _iso(row.at), None if row.reward_at is None else _iso(row.reward_at)
        one["x"] = np.ravel(row.x).tolist()
        if not arms:
            del one["arms"]
        if fields is None:
            del one["context"]
        for name in _RARE:
            if one[name] is None:
                del one[name]
        if origin is not None and not made:
            one[ORIGIN] = origin
        made.append(sealed_line(json.dumps(one, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()))
    return b"\n".join(made) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return np.asarray(value).tolist() if isinstance(value, np.ndarray) else value


def _micros(seconds: Any) -> Any:
    """Microseconds, within 64 bits."""
    return np.clip(np.rint(np.asarray(seconds, dtype=np.float64) * 1e6), -(2.0**62), 2.0**62)


def _iso(seconds: float) -> str:
    return f"{_micros(seconds).astype('int64').astype('datetime64[us]')}Z"


def _parquet(rows: list[LogRow], arms: bool, fields: dict[str, bool] | None, origin: str | None) -> bytes:
    """Rows as a Parquet file of the schema's own types."""
    import pyarrow as pa
    import pyarrow.parquet

    columns: dict[str, Any] = dict(zip(LogRow._fields, zip(*rows, strict=True), strict=True))
    x = np.concatenate([np.ravel(one) for one in columns["x"]]).astype(np.float64, copy=False)
    vector = pa.list_(pa.float64(), x.size // len(rows))
    made: dict[str, Any] = {}
    for name, column in COLUMNS.items():
        values = columns[name]
        if name == "x":
            made[name] = pa.FixedSizeListArray.from_arrays(x, type=vector)
        elif name == "arms":
            if arms:
                made[name] = _arms(values, vector)
        elif name in _RARE and all(value is None for value in values):
            continue
        elif name == "context":
            if fields is not None:
                kinds = [(one, pa.float64() if number else pa.string()) for one, number in fields.items()]
                made[name] = pa.array(values, pa.struct(kinds))
        elif column.kind == "time":
            known = np.array([value is not None for value in values])
            micros = _micros([0.0 if value is None else value for value in values]).astype(np.int64)
            made[name] = pa.array(micros, mask=~known).cast(pa.timestamp("us", "UTC"))
        else:
            kind = {
                "int": pa.int32() if name in ("arm", "n") else pa.int64(), "float": pa.float64(), "bool": pa.bool_(),
                "text": pa.string(), "texts": pa.list_(pa.string()), "numbers": pa.list_(pa.float64()),
            }[column.kind]  # fmt: skip
            made[name] = pa.array(values, kind, from_pandas=column.kind == "float")
    named = {} if origin is None else {ORIGIN: origin}
    table = pa.table(made).replace_schema_metadata({MARK: str(VERSION), **named, SEAL: BLANK})
    sink = io.BytesIO()
    pa.parquet.write_table(table, sink, compression="zstd", compression_level=1, write_page_checksum=True)
    return sealed_file(sink.getvalue())


def _arms(values: Sequence[Any], vector: Any) -> Any:
    """The arms of every row; None for a row without them."""
    import pyarrow as pa

    counts = [0 if one is None else len(one) for one in values]
    given = [np.ascontiguousarray(one).ravel() for one in values if one is not None]
    flat = np.concatenate(given) if given else np.zeros(0)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.FixedSizeListArray.from_arrays(flat, type=vector))
