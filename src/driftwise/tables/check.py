"""Check of a log: every row follows the schema, or an error names row and column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driftwise.tables.logs import Log, read_log
from driftwise.tables.schema import COHORTS, COLUMNS, LESSONS, UNLEARNED, VERDICTS, Batch, Ints, bad_row

# A rule that a row breaks: the column that is named, which rows keep it, what was found, and what is wanted.
_Rule = tuple[str, Any, Any, str]


def check_log(source: Any) -> Log:
    """Read a log from end to end. Returns the log if every row follows the schema."""
    log = read_log(source)
    dim, last = log.dim, 0
    numbers: dict[str | None, list[tuple[str, int, Ints]]] = {}
    for batch in log.batches(COLUMNS):
        for column, good, found, wanted in _rules(batch, dim):
            if not np.all(good):
                row = int(np.argmin(good))
                raise batch.bad(row, column, _at(found, row), wanted)
        last = _check_order(batch, last)
        _gather(batch, numbers)
    _check_numbers(numbers)
    return log


def _at(found: Any, row: int) -> Any:
    value = found[row]
    return value.item() if isinstance(value, np.generic) else value


def _rules(batch: Batch, dim: int | None) -> Iterator[_Rule]:
    """The rules for a single row."""
    if batch.x is not None:
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
        good = np.isnan(p) | ((p > 0.0) & ((p <= 1.0) | dense))
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


def _check_order(batch: Batch, last: int) -> int:
    """Check that rewards are numbered in the order of rows."""
    if batch.reward is None or batch.reward_seq is None:
        return last
    rows = np.flatnonzero(~np.isnan(batch.reward))
    found = batch.reward_seq[rows]
    steps = np.diff(found, prepend=last)
    if (steps <= 0).any():
        place = int(np.argmax(steps <= 0))
        wanted = "numbers that rise from row to row"
        raise batch.bad(int(rows[place]), "reward_seq", int(found[place]), wanted, "sort the log by reward_seq")
    return int(found[-1]) if found.size else last


def _gather(batch: Batch, numbers: dict[str | None, list[tuple[str, int, Ints]]]) -> None:
    """Collect the numbers of decisions by stream; 8 bytes per row are kept."""
    if batch.seq is None:
        return
    streams = None if batch.stream is None else np.asarray(batch.stream, dtype=object)
    names = {None} if streams is None else set(streams.tolist())
    for name in names:
        if streams is None or len(names) == 1:
            numbers.setdefault(name, []).append((batch.part, batch.start, batch.seq))
        else:
            for row in np.flatnonzero(streams == name).tolist():
                numbers.setdefault(name, []).append((batch.part, batch.start + row, batch.seq[row : row + 1]))


def _check_numbers(numbers: dict[str | None, list[tuple[str, int, Ints]]]) -> None:
    """Check that each decision of a stream has one row."""
    for found in numbers.values():
        every = np.concatenate([values for _, _, values in found])
        order = np.argsort(every, kind="stable")
        twice = np.flatnonzero(np.diff(every[order]) == 0)
        if twice.size:
            place = int(order[twice[0] + 1])
            starts = np.cumsum([0, *(len(values) for _, _, values in found)])
            stretch = int(np.searchsorted(starts, place, side="right")) - 1
            part, start, _ = found[stretch]
            row = start + place - int(starts[stretch])
            raise bad_row(part, row, "seq", int(every[place]), "one row per decision", "leave out the second row")
