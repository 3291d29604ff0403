"""The log's columns (docs/contract.md#logs), and a range of its rows as numpy columns.

`arm` is an index among the `n` allowed arms, which `arms` and `candidates` list in that order. If the arms were a
continuous set, n is 0, x is the action, and a propensity with a `measure` is a density per unit of that measure. A row
with a reward was learned: its verdict is "learned" or "defaulted", and `reward_seq` is its number among all of these.

Version 2 adds who chose (`cohort`, in a log of a service), the tick of the state on which the choice was made (`upon`)
and the number of draws from which a propensity was estimated (`draws`, 0 if it is exact). Version 1 has none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from driftwise._internal.validate import one_of
from driftwise.errors import BadInput

VERSION = 2
# Versions that are read.
READABLE = (1, 2)
# The key of the version in the metadata of a file.
MARK = "driftwise.log"
# The key of the agent that wrote a part: in the metadata of a Parquet file, in the first of its JSON lines.
ORIGIN = "driftwise.origin"

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Times: TypeAlias = npt.NDArray[np.datetime64]

COHORTS = ("live", "baseline", "shadow", "fallback")
VERDICTS = ("open", "learned", "defaulted", "expired", "cancelled", "late", "kept")
LESSONS = ("learned", "defaulted")
UNLEARNED = ("expired", "late", "kept")  # verdicts of a reward that came to a service and was not learned


class Column(NamedTuple):
    """A column: its kind, whether it may be null in a row, and what needs it."""

    name: str
    kind: str  # int, float, bool, text, time, vector, vectors, numbers, texts or fields
    nullable: bool
    needed: tuple[str, ...] = ()


COLUMNS = {
    column.name: column
    for column in (
        Column("seq", "int", False),
        Column("decision_id", "text", False),
        Column("stream", "text", True),
        Column("at", "time", False),
        Column("born", "int", False, ("fold", "sums")),
        Column("arm", "int", True, ("evaluate",)),
        Column("item", "text", True),
        Column("n", "int", False),
        Column("x", "vector", False, ("fold", "sums")),
        Column("propensity", "float", True, ("evaluate",)),
        Column("explored", "bool", False),
        Column("score", "float", True),
        Column("mean", "float", True),
        Column("bonus", "float", True),
        Column("policy", "text", True),
        Column("state_seq", "int", True),
        Column("reward", "float", True, ("fold", "sums", "evaluate")),
        Column("reward_at", "time", True),
        Column("reward_tick", "int", True, ("fold", "sums")),
        Column("reward_seq", "int", True, ("fold",)),
        Column("verdict", "text", False),
        Column("context", "fields", True),
        Column("candidates", "texts", True),
        Column("arms", "vectors", True, ("evaluate",)),
        Column("measure", "text", True),
        Column("cohort", "text", True),
        Column("upon", "int", True),
        Column("draws", "int", True),
        Column("trace", "text", True),
        Column("reward_sent", "float", True),
        Column("unit_hash", "int", True),
        Column("unit_seeds", "numbers", True),
        Column("costs", "numbers", True),
    )
}

# The whole numbers that stand for null: no arm is -1, no reward has number 0.
_NULLS = {"arm": -1, "state_seq": -1, "upon": -1, "draws": -1}


def null_of(name: str) -> int:
    """The whole number that stands for a null."""
    return _NULLS.get(name, 0)


class Ragged(NamedTuple):
    """Rows of several lengths: row i is `values[offsets[i] : offsets[i + 1]]`."""

    values: Floats  # (total, d)
    offsets: Ints  # (rows + 1,)

    def __getitem__(self, row: int) -> Floats:  # type: ignore[override]
        return self.values[self.offsets[row] : self.offsets[row + 1]]


@dataclass(frozen=True)
class Batch:
    """A range of rows, from row `start` of a part. A column is None if it was not requested or is absent.

    Nulls: NaN in floats, NaT in times, None in texts, contexts, candidates and costs; 0 in `reward_tick` and
    `reward_seq`, -1 in `arm`, `state_seq`, `upon` and `draws`; no arms at all in `arms`. Everything else is finite.
    """

    part: str
    start: int
    rows: int
    seq: Ints | None = None
    decision_id: Sequence[str] | None = None
    stream: Sequence[str | None] | None = None
    at: Times | None = None
    born: Ints | None = None
    arm: Ints | None = None
    item: Sequence[str | None] | None = None
    n: Ints | None = None
    x: Floats | None = None  # (rows, d), C-contiguous
    propensity: Floats | None = None
    explored: npt.NDArray[np.bool_] | None = None
    score: Floats | None = None
    mean: Floats | None = None
    bonus: Floats | None = None
    policy: Sequence[str | None] | None = None
    state_seq: Ints | None = None
    reward: Floats | None = None
    reward_at: Times | None = None
    reward_tick: Ints | None = None
    reward_seq: Ints | None = None
    verdict: Sequence[str] | None = None
    context: Sequence[dict[str, Any] | None] | None = None
    candidates: Sequence[list[str] | None] | None = None
    arms: Ragged | None = None
    measure: Sequence[str | None] | None = None
    cohort: Sequence[str | None] | None = None
    upon: Ints | None = None
    reward_sent: Floats | None = None
    unit_hash: Ints | None = None
    draws: Ints | None = None
    trace: Sequence[str | None] | None = None
    unit_seeds: Sequence[Floats | None] | None = None
    costs: Sequence[Floats | None] | None = None

    def bad(
        self, row: int, column: str, got: object, wanted: str, way_out: str = "correct or leave out the row"
    ) -> BadInput:
        """The error for row `row` of this batch."""
        return bad_row(self.part, self.start + row, column, got, wanted, way_out)


def bad_row(
    part: str, row: int, column: str, got: object, wanted: str, way_out: str = "correct or leave out the row"
) -> BadInput:
    """The error about a row of a log, counted from 0, and a column."""
    shown = got if isinstance(got, str) else repr(got)
    return BadInput("log", f"{shown[:60]} in row {row}, column {column} of {part}", wanted, way_out)


def asked_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Names of columns, which must be in the schema."""
    if isinstance(columns, str):
        raise BadInput("columns", columns, "a list of names", f"pass [{columns!r}]")
    names = tuple(columns)
    for name in names:
        one_of("columns", name, list(COLUMNS))
    return names
