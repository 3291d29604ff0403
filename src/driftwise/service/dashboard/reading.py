"""Reads the newest decisions of a stream from the log, only as many as a page needs."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftwise.kernels.point import Floats, Ints

WINDOW = 20_000  # decisions of a page: reading them takes a tenth of a second, beside the thread that decides
LATEST = 12  # decisions that are listed
BINS = 24
SHOWN = 6  # arms that have a colour of their own
# The upper ends of the bins of delays, in seconds, and their names.
DELAYS = (
    (0.01, "10 ms"), (0.1, "0.1 s"), (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"),
    (3600.0, "1 h"), (21600.0, "6 h"), (86400.0, "1 day"), (604800.0, "1 week"), (math.inf, "more"),
)  # fmt: skip
REST = "all others"

# Only narrow columns, read by primary key and by the unique index of ids. Only folds check seals.
_NEWEST = """
SELECT d.seq, d.at, d.arm, d.item, d.cohort, d.unit, d.explored, d.proposed, d.born, r.value, r.at, r.verdict
FROM decision d LEFT JOIN reward r ON r.stream = d.stream AND r.event_id = d.event_id
WHERE d.stream = ? AND d.seq > ? AND d.seq <= ? ORDER BY d.seq
"""
_LISTED = """
SELECT d.seq, d.event_id, d.at, d.arm, d.item, d.cohort, d.propensity, r.value, r.verdict
FROM decision d LEFT JOIN reward r ON r.stream = d.stream AND r.event_id = d.event_id
WHERE d.stream = ? AND d.seq <= ? ORDER BY d.seq DESC LIMIT ?
"""


class NewestDecision(NamedTuple):
    """A decision in the list of the newest."""

    seq: int
    id: str
    at: float
    arm: int
    item: str | None
    cohort: str
    propensity: float | None
    value: float | None
    verdict: str | None


class Newest(NamedTuple):
    """The newest decisions as columns; a reward that has not come is NaN."""

    seq: Ints
    at: Floats
    arms: list[str]  # the item, or the arm's number where arms have no names
    cohort: npt.NDArray[np.str_]
    units: list[int | None]  # None if no units were held back, or if the unit was forgotten
    explored: Ints
    agreed: npt.NDArray[np.bool_]  # the arm played is the policy's own
    born: Ints
    value: Floats
    delay: Floats
    late: npt.NDArray[np.bool_]
    defaulted: npt.NDArray[np.bool_]  # no reward came, and the stream's default is its value

    def __len__(self) -> int:
        return len(self.seq)


def newest(store: Any, stream: int, last: int, window: int = WINDOW) -> Newest:
    """The newest decisions up to number `last`."""
    rows = store.run(_NEWEST, values=(stream, last - window, last)).fetchall()
    seq, at, arm, item, cohorts, unit, explored, proposed, born, value, came, verdict = (
        zip(*rows, strict=True) if rows else [()] * 12
    )
    defaulted = np.array([one == "defaulted" for one in verdict], dtype=np.bool_)
    took = np.array(came, dtype=np.float64) - np.array(at, dtype=np.float64)
    return Newest(
        np.array(seq, dtype=np.int64), np.array(at, dtype=np.float64),
        [f"arm {a}" if i is None else i for a, i in zip(arm, item, strict=True)],
        np.array(cohorts, dtype=np.str_), list(unit),
        np.array(explored, dtype=np.int64), np.array(arm, dtype=np.int64) == np.array(proposed, dtype=np.int64),
        np.array(born, dtype=np.int64), np.array(value, dtype=np.float64),
        np.where(defaulted, np.nan, np.maximum(took, 0.0)),
        np.array([one == "late" for one in verdict], dtype=np.bool_), defaulted,
    )  # fmt: skip


def latest_decisions(store: Any, stream: int, last: int) -> list[NewestDecision]:
    """The last few decisions up to number `last`, the newest first."""
    return [NewestDecision(*row) for row in store.run(_LISTED, values=(stream, last, LATEST))]


def bins(found: Newest, most: int = BINS) -> list[slice]:
    """Consecutive stretches with about equally many decisions."""
    count = len(found)
    edges = np.unique(np.linspace(0, count, min(most, max(1, count)) + 1).astype(int))
    return [slice(a, b) for a, b in itertools.pairwise(edges.tolist())]


def means(found: Newest, who: str) -> list[float]:
    """The mean reward of a cohort in each stretch; NaN where none has come."""
    out = []
    for part in bins(found):
        values = found.value[part][found.cohort[part] == who]
        values = values[~np.isnan(values)]
        out.append(float(values.mean()) if values.size else math.nan)
    return out


def shares(found: Newest, most: int = BINS) -> tuple[list[str], Floats]:
    """The arms that were played most, and their shares in every stretch. The sum of the others comes last."""
    counts: dict[str, int] = {}
    for name in found.arms:
        counts[name] = counts.get(name, 0) + 1
    top = sorted(counts, key=lambda name: (-counts[name], name))[:SHOWN]
    place = {name: number for number, name in enumerate(top)}
    rest = len(counts) > len(top)
    table = np.zeros((len(bins(found, most)), len(top) + rest))
    for row, part in enumerate(bins(found, most)):
        for name in found.arms[part]:
            table[row, place.get(name, len(top))] += 1.0
    return [*top, *([REST] if rest else [])], table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)


def expired(found: Newest, tick: int, after: float | None) -> int:
    """The number of decisions without a reward at their deadline."""
    if after is None:
        return 0
    return int((found.defaulted | (np.isnan(found.value) & (tick - found.born > after))).sum())


def delays(found: Newest) -> tuple[list[int], list[float]]:
    """The counts of rewards by delay (see DELAYS), and the median, 90% and 99% quantiles in seconds."""
    took = found.delay[~np.isnan(found.delay)]
    ends = np.array([end for end, _ in DELAYS])
    counts = np.bincount(np.searchsorted(ends, took), minlength=len(ends))
    quantiles = np.quantile(took, [0.5, 0.9, 0.99]).tolist() if took.size else [math.nan] * 3
    return counts.tolist(), quantiles
