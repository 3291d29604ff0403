"""Check of a log: every row follows the schema, or an error names row and column.

`check_log`, `learn_log`, `sums`, `evaluate` and `driftwise import` look at their rows with one `Checker`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from driftwise.tables.logs import Log, Part, read_log
from driftwise.tables.schema import COHORTS, COLUMNS, LESSONS, UNLEARNED, VERDICTS, Batch, Ints, bad_row

# A rule that a row breaks: the column that is named, which rows keep it, what was found, and what is wanted.
_Rule = tuple[str, Any, Any, str]
# The largest difference between x and the arm that it was, relative to x: numbers of 32 bits may have been written.
_SAME = 1e-6
# How far above 1 a probability may be rounded.
_ROUNDED = 1e-9


class _Stretch(NamedTuple):
    """What identifies the rows of a batch, as one number each: 8 bytes per row are kept."""

    part: str
    start: int
    keys: Ints


class Checker:
    """Looks at the rows of a log or a part, batch by batch. A rule is left out where the columns it needs are not read.

    `ordered`: whether rewards must be numbered in the order of rows, as learning needs it.
    """

    def __init__(self, source: Log | Part, ordered: bool = True) -> None:
        self._source, self._ordered = source, ordered
        self._dim: int | None = None
        self._last = 0  # the largest number of a reward
        self._newest: tuple[int, str, int] | None = None  # the largest state_seq, and its row
        self._seen: dict[str, list[_Stretch]] = {"seq": [], "decision_id": []}

    def check(self, batch: Batch) -> None:
        """Raise BadInput about the first row that breaks a rule."""
        if batch.x is not None and batch.rows:
            self._dim = self._dim or batch.x.shape[1]
        check_batch(batch, self._dim)
        self._check_order(batch)
        for name, found in self._seen.items():
            values = getattr(batch, name)
            if values is not None:
                found.append(_Stretch(batch.part, batch.start, _keys(values, batch.stream)))
        self._check_known(batch)

    def end(self) -> None:
        """Raise BadInput if a decision has two rows, or knew a reward that never came."""
        for name, found in self._seen.items():
            self._check_once(name, found)
        if self._last and self._newest is not None and self._newest[0] > self._last:
            seq, part, row = self._newest
            raise bad_row(part, row, "state_seq", seq, f"the learned rewards so far, at most {self._last}")

    def _check_order(self, batch: Batch) -> None:
        if batch.reward is None or batch.reward_seq is None:
            return
        rows = np.flatnonzero(~np.isnan(batch.reward))
        found = batch.reward_seq[rows]
        falls = np.diff(found, prepend=self._last) <= 0
        if self._ordered and falls.any():
            place = int(np.argmax(falls))
            wanted = "numbers that rise from row to row"
            raise batch.bad(int(rows[place]), "reward_seq", int(found[place]), wanted, "sort the log by reward_seq")
        self._last = int(found.max(initial=self._last))

    def _check_known(self, batch: Batch) -> None:
        """A choice knew rewards before its own only."""
        known, numbers = batch.state_seq, batch.reward_seq
        if known is None or not batch.rows:
            return
        if numbers is not None and batch.reward is not None:
            future = ~np.isnan(batch.reward) & (known >= numbers)
            if future.any():
                row = int(np.argmax(future))
                wanted = f"the learned rewards so far, fewer than {numbers[row]}, the number of its own"
                raise batch.bad(row, "state_seq", int(known[row]), wanted)
        row = int(known.argmax())
        if self._newest is None or known[row] > self._newest[0]:
            self._newest = int(known[row]), batch.part, batch.start + row

    def _check_once(self, name: str, stretches: list[_Stretch]) -> None:
        """Equal keys are equal decisions only if the rows say so."""
        if not stretches:
            return
        every = np.concatenate([one.keys for one in stretches])
        order = np.argsort(every, kind="stable")
        starts = np.cumsum([0, *(len(one.keys) for one in stretches)])
        for at in np.flatnonzero(np.diff(every[order]) == 0).tolist():
            first, second = int(order[at]), int(order[at + 1])
            value, other = (self._named(name, place) for place in (first, second))
            if value == other:
                one = int(np.searchsorted(starts, second, side="right")) - 1
                row = stretches[one].start + second - int(starts[one])
                wanted, way_out = "one row per decision", "leave out the second row"
                raise bad_row(stretches[one].part, row, name, value[0], wanted, way_out)

    def _named(self, name: str, place: int) -> tuple[Any, str | None]:
        """The value in a row of all rows, and the stream of the row."""
        columns = [one for one in (name, "stream") if one in self._source.columns]
        for batch in self._source.batches(columns):
            if place < batch.rows:
                value, stream = getattr(batch, name)[place], None if batch.stream is None else batch.stream[place]
                return value.item() if isinstance(value, np.generic) else value, stream
            place -= batch.rows
        raise AssertionError("a row that was read before")


def check_log(source: Any) -> Log:
    """Read a log from end to end. Returns the log if every row follows the schema."""
    log = read_log(source)
    checker = Checker(log)
    for batch in log.batches(COLUMNS):
        checker.check(batch)
    checker.end()
    return log


def check_batch(batch: Batch, dim: int | None = None) -> None:
    """The rules for a single row, over a batch. `dim` is the length of the vectors before it."""
    for column, good, found, wanted in _rules(batch, dim):
        if not np.all(good):
            row = int(np.argmin(good))
            raise batch.bad(row, column, _at(found, row), wanted)


def _keys(values: Any, streams: Any) -> Ints:
    """One number for the number or the id of each row within its stream."""
    if streams is None and isinstance(values, np.ndarray):
        return values
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    pairs = zip(plain, [None] * len(plain) if streams is None else streams, strict=True)
    return np.fromiter(map(hash, pairs), dtype=np.int64, count=len(plain))


def _at(found: Any, row: int) -> Any:
    value = found[row]
    return value.item() if isinstance(value, np.generic) else value


def _rules(batch: Batch, dim: int | None) -> Iterator[_Rule]:
    """The rules for a single row."""
    if batch.x is not None and dim is not None:
        width = np.full(batch.rows, batch.x.shape[1])
        yield "x", width == dim, width, f"{dim} numbers, as in the rows before it"
    for name, least in (("seq", 1), ("n", 1), ("born", -(2**53))):  # below 0: decided before the beginning of the log
        values = getattr(batch, name)
        if values is not None:
            good = values >= least
            if name == "n" and batch.arm is not None:
                good |= (values == 0) & (batch.arm == -1)  # a continuous set, which has no indices
            yield name, good, values, f"a whole number of at least {least}"
    if batch.propensity is not None:
        p = batch.propensity
        dense = np.zeros(batch.rows, dtype=bool)
        if batch.measure is not None:
            dense = np.array([one is not None for one in batch.measure])
        good = np.isnan(p) | ((p > 0.0) & ((p <= 1.0 + _ROUNDED) | dense))
        yield "propensity", good, p, "a probability above 0 and at most 1, a density with a measure, or nothing"
    if batch.verdict is not None:
        known = np.array([one in VERDICTS for one in batch.verdict])
        yield "verdict", known, batch.verdict, f"one of {', '.join(VERDICTS)}"
    if batch.cohort is not None:
        known = np.array([one is None or one in COHORTS for one in batch.cohort])
        yield "cohort", known, batch.cohort, f"one of {', '.join(COHORTS)}, or nothing"
    if batch.draws is not None:
        yield "draws", batch.draws >= -1, batch.draws, "a whole number of at least 0, or nothing"
    if batch.upon is not None and batch.born is not None:
        good = (batch.upon == -1) | ((batch.upon >= 0) & (batch.upon <= batch.born))
        yield "upon", good, batch.upon, "a tick from 0 to that of the decision, or nothing"
    yield from _choices(batch)
    yield from _lessons(batch)


def _choices(batch: Batch) -> Iterator[_Rule]:
    """The rules for the arm and the arms it was chosen from."""
    if batch.arm is not None:
        most = np.full(batch.rows, np.iinfo(np.int64).max) if batch.n is None else batch.n
        good = (batch.arm == -1) | ((batch.arm >= 0) & (batch.arm < most))
        yield "arm", good, batch.arm, "an arm from 0 to n - 1"
    if batch.n is not None and batch.arms is not None:
        many = np.diff(batch.arms.offsets)
        yield "arms", (many == 0) | (many == batch.n), many, "as many arms as n says, or none"
    if batch.n is not None and batch.candidates is not None:
        many = np.array([-1 if one is None else len(one) for one in batch.candidates])
        yield "candidates", (many < 0) | (many == batch.n), many, "as many candidates as n says, or nothing"
    if batch.n is not None and batch.costs is not None:
        many = np.array([-1 if one is None else len(one) for one in batch.costs])
        yield "costs", (many < 0) | (many == batch.n), many, "as many costs as n says, or nothing"
    if batch.x is not None and batch.arms is not None and batch.arm is not None:
        yield "x", _is_arm(batch), ["another vector"] * batch.rows, "the vector of the arm, as arms has it"


def _is_arm(batch: Batch) -> Any:
    """Whether x is arms[arm], where there are arms."""
    x, arms, arm = batch.x, batch.arms, batch.arm
    assert x is not None and arms is not None and arm is not None
    good = np.ones(batch.rows, dtype=bool)
    rows = np.flatnonzero((arm >= 0) & (arm < np.diff(arms.offsets)))
    if rows.size and arms.values.shape[1] != x.shape[1]:
        good[rows] = False
    elif rows.size:
        played = arms.values[arms.offsets[rows] + arm[rows]]
        longest = np.abs(x[rows]).max(axis=1, initial=0.0)
        good[rows] = np.abs(played - x[rows]).max(axis=1, initial=0.0) <= _SAME * longest
    return good


def _lessons(batch: Batch) -> Iterator[_Rule]:
    """A row has a reward, its number and its tick if and only if its verdict says so."""
    if batch.reward is None:
        return
    there = ~np.isnan(batch.reward)
    if batch.verdict is not None:
        told = np.array([one in LESSONS for one in batch.verdict])
        yield "reward", told == there, batch.reward, "a reward where the verdict is learned or defaulted, none else"
        if batch.reward_sent is not None:
            good = np.isnan(batch.reward_sent) | np.array([one in UNLEARNED for one in batch.verdict])
            wanted = f"nothing unless the verdict is one of {', '.join(UNLEARNED)}"
            yield "reward_sent", good, batch.reward_sent, wanted
    for name, least in (("reward_seq", 1), ("reward_tick", 0)):
        values = getattr(batch, name)
        if values is not None:
            good = np.where(there, values >= least, values == 0)
            yield name, good, values, f"a whole number of at least {least} where there is a reward, nothing else"
    if batch.born is not None and batch.reward_tick is not None:
        wanted = "a tick that is not after its reward's"
        yield "born", ~there | (batch.born <= batch.reward_tick), batch.born, wanted
