"""The order of a log's replay: which rewards a choice knew, and the tick of the state on which it was made.

A log is read twice: here its numbers, in full, and then its arms, in batches. A choice knew the number of rewards in
`state_seq`; if that is not logged, those that had come before it by time or by tick. It was made on the state at the
tick `upon`; if that is not logged (version 1), at the tick that the clock implies (docs/contract.md#ticks).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwise.data.parts import once
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.questions import MOST_REWARD
from driftwise.policies.sampling import TRIES
from driftwise.tables.check import Checker
from driftwise.tables.logs import Log
from driftwise.tables.schema import Batch

HOW = "log with dw.Agent(…, epsilon=0.05) and agent.log_to(path, arms=True)"
_NEEDED = ("arm", "reward", "propensity")
_MAY_HAVE = (
    "seq", "born", "upon", "state_seq", "reward_tick", "reward_seq", "at", "reward_at", "n", "cohort", "draws",
    "decision_id", "stream", "verdict", "measure",
)  # fmt: skip
# The largest relative difference between a propensity and 1/n on a log that explored uniformly.
_UNIFORM = 1e-6
# A choice less likely than this never occurs. The fourth power of its weight, which intervals need, would be infinite.
_LEAST = 1e-50
# The number of distinct propensities that uniform draws among several numbers of arms may have.
_FEW = 10


@dataclass(frozen=True, eq=False)
class Ledger:
    """Rows with a reward, in the order of the log.

    `row` is the number of each among all rows of the log, `known` the number of `lessons` that its choice knew,
    `counts` whether estimates use it: those of the live cohort or, if that never explored, of the baseline. The policy
    learns from the other rows too. Ticks are those of the `wall` clock, or counted from the state of the first choice.
    """

    row: Ints
    seq: Ints
    born: Ints
    upon: Ints
    paid: Ints
    known: Ints
    arm: Ints
    n: Ints
    propensity: Floats
    reward: Floats
    draws: Ints
    counts: Any
    lessons: Ints
    cohort: str | None
    missing: int
    wall: bool

    def __len__(self) -> int:
        return len(self.row)

    @property
    def choices(self) -> Ints:
        """Rows in the order of the states on which they were chosen."""
        return np.lexsort((self.seq, self.born, self.known))

    @property
    def in_time(self) -> Ints:
        """Rows in the order of time."""
        return np.lexsort((np.arange(len(self)), self.seq, self.born))

    def range(self) -> tuple[float, float]:
        """The default range of rewards: 0 to 1 if all rewards are in that range and one is at an end, otherwise from
        the smallest to the largest reward."""
        low, high = float(self.reward.min()), float(self.reward.max())
        if low >= 0.0 and high <= 1.0 and (low == 0.0 or high == 1.0):
            return 0.0, 1.0
        return (low, high) if low < high else (low - 0.5, high + 0.5)

    def most(self) -> float:
        """The largest possible weight: n divided by the smallest share of uniform draws that an arm had. Infinite if
        propensities were counted, see `_lossy`."""
        p, n = self.propensity[self.counts], self.n[self.counts]
        return math.inf if _lossy(p, self.draws[self.counts]) else float(n.max() / (p * n).min())

    def check_uniform(self) -> None:
        """Refuse a log for replay whose choices were not drawn uniformly; the error names the first such row."""
        off = np.abs(self.propensity * self.n - 1.0) > _UNIFORM
        if off.any():
            one = int(np.argmax(off))
            got = f"propensity {self.propensity[one]:g} among {self.n[one]} arms in row {one} with a reward"
            raise BadInput("log", got, "1/n in every row for replay", 'pass method="weights", or log at epsilon=1')


def _lossy(propensity: Floats, draws: Ints) -> bool:
    """Whether weights may have a mean below 1. A propensity counted as k of D draws has an inverse of mean (1 -
    (1-p)^D)/p, because an arm that was played is counted at least once. If a share of choices is also drawn uniformly,
    the mean is 1. Logs of version 1 do not contain D; agents count over 1000 draws."""
    tries = np.where(draws > 0, draws, TRIES)
    whole = np.abs(propensity * tries - np.rint(propensity * tries)) < 1e-9
    if (draws >= 0).all():
        return bool((draws > 0).any() and whole[draws > 0].all())
    return bool(whole.all() and len(np.unique(propensity)) > _FEW)


def read_events(log: Log) -> Ledger:
    """The ledger of a log, or a BadInput."""
    if "propensity" not in log.columns:
        raise BadInput("log", "no column propensity", "the propensity of each choice", HOW)
    log.require(_NEEDED, "which estimates need")
    names = [name for name in (*_NEEDED, *_MAY_HAVE) if name in log.columns]
    if "n" not in names:
        names.append("arms" if "arms" in log.columns else "candidates")
    blind = "stream" in log.columns and "score" in log.columns and "cohort" not in log.columns
    if "seq" not in log.columns:
        once(log, [part.digest() for part in log.parts])
    found = [_numbers(batch, number) for batch, number in _numbered(log, [*names, *(("score",) * blind)])]
    every = {name: np.concatenate([one.pop(name) for one in found]) for name in list(found[0])} if found else {}
    if not found or every["paying"].sum() < 2:
        rows = int(every["paying"].sum()) if found else 0
        raise BadInput("log", f"{rows} rows with a reward", "at least two", "wait for more rewards")
    return _ordered(every)


def _numbered(log: Log, names: list[str]) -> Iterator[tuple[Batch, int]]:
    """Batches with the number of their first row among all rows of the log. They are checked after each is used."""
    number, checker = 0, Checker(log, ordered=False)
    for batch in log.batches(names):
        yield batch, number
        checker.check(batch)
        number += batch.rows
    checker.end()


def _numbers(batch: Batch, number: int) -> dict[str, Any]:
    """The numbers of all rows of a batch. Those with a reward are checked."""
    rows = np.arange(number, number + batch.rows)
    reward, arm, propensity = batch.reward, batch.arm, batch.propensity
    assert reward is not None and arm is not None and propensity is not None
    paying, missing = ~np.isnan(reward), np.full(batch.rows, -1)
    n = _counts(batch)
    _check(batch, arm, n, propensity, reward, paying)
    made: dict[str, Any] = {
        "row": rows, "paying": paying, "reward": reward, "arm": arm, "n": n, "propensity": propensity,
        "seq": rows + 1 if batch.seq is None else batch.seq,
        "draws": missing if batch.draws is None else batch.draws,
        "state_seq": missing if batch.state_seq is None else batch.state_seq,
        "reward_seq": rows + 1 if batch.reward_seq is None else batch.reward_seq,
        "upon": missing if batch.upon is None else batch.upon,
        "born": missing if batch.born is None else batch.born,
        "paid": missing if batch.reward_tick is None else batch.reward_tick,
        "at": np.full(batch.rows, np.datetime64("NaT", "us")) if batch.at is None else batch.at,
        "reward_at": np.full(batch.rows, np.datetime64("NaT", "us")) if batch.reward_at is None else batch.reward_at,
        "cohort": np.full(batch.rows, None) if batch.cohort is None else np.array(batch.cohort, dtype=object),
    }  # fmt: skip
    if batch.seq is None:
        made["seq"] = -rows - 1  # numbered again after rows without a reward are left out
    made["foreign"], made["streamed"] = np.zeros(batch.rows, dtype=bool), np.zeros(batch.rows, dtype=bool)
    if batch.stream is not None and batch.score is not None:
        made["streamed"] = np.array([one is not None for one in batch.stream])
        made["foreign"] = made["streamed"] & np.isnan(batch.score)
    return made


def _counts(batch: Batch) -> Ints:
    """The number of arms of each choice."""
    if batch.n is not None:
        return batch.n
    if batch.arms is not None:
        return np.diff(batch.arms.offsets)
    named = batch.candidates if batch.candidates is not None else [None] * batch.rows
    return np.array([len(one or ()) for one in named], dtype=np.int64)


def _check(batch: Batch, arm: Ints, n: Ints, propensity: Floats, reward: Floats, paying: Any) -> None:
    """Check arms, propensities and rewards of rows with a reward."""
    with np.errstate(invalid="ignore"):
        rules = (
            ("arms", n > 0, "no arms at all", "the arms that were allowed"),
            ("arm", (arm >= 0) & (arm < n), None, "an arm from 0 to n - 1"),
            ("propensity", (propensity >= _LEAST) & (propensity <= 1.0 + 1e-9), None,
             f"a number in (0, 1] and at least {_LEAST:g}, how likely the choice was"),
            ("reward", np.abs(reward) <= MOST_REWARD, None, f"a number from {-MOST_REWARD:g} to {MOST_REWARD:g}"),
        )  # fmt: skip
    for column, good, got, wanted in rules:
        bad = paying & ~good
        if bad.any():
            row = int(np.argmax(bad))
            value = got or {"arm": arm, "propensity": propensity, "reward": reward}[column][row].item()
            way_out = "rescale rewards" if column == "reward" else HOW
            raise batch.bad(row, column, "nothing" if value != value else value, wanted, way_out)
    if batch.reward_tick is not None and batch.born is not None:
        bad = paying & (batch.reward_tick < batch.born)
        if bad.any():
            row = int(np.argmax(bad))
            wanted = f"a tick of at least {batch.born[row]}, that of its choice"
            raise batch.bad(row, "reward_tick", int(batch.reward_tick[row]), wanted)


def _ordered(every: dict[str, Any]) -> Ledger:
    """The ledger of all rows."""
    paying = every["paying"]
    one = dict(every) if paying.all() else {name: values[paying] for name, values in every.items()}
    count = len(one["row"])
    if (one["seq"] < 0).any():
        one["seq"] = np.arange(1, count + 1)
    if (one["born"] < 0).any():
        one["born"] = np.arange(1, count + 1)
        one["upon"] = one["paid"] = np.full(count, -1)
    one["paid"] = np.where(one["paid"] < 0, one["born"], one["paid"])
    one["upon"] = np.where(one["upon"] < 0, _upon(one), one["upon"])
    known, lessons = _known(one)
    wall = bool((one["upon"] == one["born"]).any())
    zero = 0 if wall else int(one["upon"].min())
    if (every["upon"] >= 0).any():  # the first choice may have no reward
        zero = min(zero, int(every["upon"][every["upon"] >= 0].min()))
    counts, cohort = _counted(one)
    return Ledger(
        one["row"], one["seq"], one["born"] - zero, one["upon"] - zero, one["paid"] - zero, known, one["arm"],
        one["n"], one["propensity"], one["reward"], one["draws"], counts, lessons, cohort, int((~paying).sum()), wall,
    )  # fmt: skip


def _upon(one: dict[str, Any]) -> Ints:
    """The tick of the state on which a choice was made, from the tick of the decision: on clocks that count decisions
    or rewards the decision is one tick later, on the wall clock both are equal."""
    born: Ints = one["born"]
    counted = np.array_equal(born, one["seq"]) or np.array_equal(born, one["state_seq"] + 1)
    if counted or len(np.unique(born)) == len(born):
        return born - 1
    return born


def _known(one: dict[str, Any]) -> tuple[Ints, Ints]:
    """The number of rewards that each choice knew, and the rows in the order of their rewards."""
    numbers, paid = one["reward_seq"], one["paid"]
    numbered = len(np.unique(numbers)) == len(numbers)
    lessons = np.lexsort((numbers, paid))
    by_number = numbered and bool((np.diff(numbers[lessons]) > 0).all())
    known = np.searchsorted(paid[lessons], one["born"], side="left")
    if not np.isnat(one["at"]).any() and not np.isnat(one["reward_at"]).any():
        come = np.maximum.accumulate(one["reward_at"][lessons])
        known = np.searchsorted(come, one["at"], side="right")
    told = (one["state_seq"] >= 0) & by_number
    known = np.where(told, np.searchsorted(numbers[lessons], one["state_seq"], side="right"), known)
    turn = np.empty(len(lessons), dtype=np.int64)
    turn[lessons] = np.arange(len(lessons))
    return np.minimum(known, turn), lessons  # no choice knew its own reward


def _counted(one: dict[str, Any]) -> tuple[Any, str | None]:
    """The rows that estimates use, and the name of their cohort."""
    propensity, n, cohort = one["propensity"], one["n"], one["cohort"]
    _check_mixed(one)
    drawn = (propensity != 1.0) | (n == 1)
    named = np.array([name is not None for name in cohort])
    if not named.any():
        groups: list[tuple[Any, str | None]] = [(np.ones(len(n), dtype=bool), None)]
    else:
        base = cohort == "baseline"
        groups = [(~base, "shadow" if (cohort[~base] == "shadow").all() else "live"), (base, "baseline")]
    for rows, name in groups:
        if rows.sum() >= 2 and drawn[rows].any():
            return rows, name
    wanted = "choices some of which were drawn: with propensity 1 nothing is known about other arms"
    raise BadInput("log", "propensity 1 in every row", wanted, HOW)


def _check_mixed(one: dict[str, Any]) -> None:
    """Refuse an export of version 1, which has no cohorts, of a stream with a holdback. It has two kinds of
    propensities: rows with another arm than the policy's are all drawn uniformly, or all the first arm for certain,
    unlike the others."""
    foreign, own = one["foreign"], one["streamed"] & ~one["foreign"]
    if not foreign.any() or not own.any():
        return
    p, n, first = one["propensity"], one["n"], one["arm"] == 0
    for baseline in ((p == 1.0) & first, np.abs(p * n - 1.0) < _UNIFORM):
        if baseline[foreign].all() and not baseline[own].all():
            got = "an export of a stream with a holdback, without the column cohort"
            raise BadInput("log", got, "the cohort of every choice", "export the stream again, with this version")
