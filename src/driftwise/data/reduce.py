"""A log reduced to sums part by part; what was reduced before is kept as a file, what is too old is not read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driftwise import container
from driftwise.border import whole
from driftwise.data.sums import ANEW, Sums, check_policy, nothing
from driftwise.errors import BadInput
from driftwise.files import keep_durably
from driftwise.policies.linear import LinearUCB
from driftwise.tables.logs import Log, Part, read_log
from driftwise.tables.schema import Batch

COLUMNS = ("born", "x", "reward", "reward_tick")
# What is older than so many half-lives weighs less than 2^-40 < 1e-12.
HALF_LIVES = 40.0
ENDING = ".sums"


def sums(log: Any, policy: LinearUCB, out: str | Path | None = None, *, tick: int | None = None) -> Sums:
    """Reduce a log to the sums of a linear policy that keeps or fades.

    The tick is that of the last reward, or a later one. With a folder `out` the sums of each part are kept there as a
    file named by the part's digest and the memory: a part that was reduced before is not read again. Parquet parts, and
    row groups, whose rows are all older than 40 half-lives are left out with a warning.
    """
    forget, found = check_policy(policy), read_log(log)
    found.require(COLUMNS, "which sums are made of")
    if found.dim is not None and found.dim != policy.dim:
        raise BadInput("log", f"vectors of {found.dim} numbers", f"{policy.dim}, the policy's dim", "match them")
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    span = HALF_LIVES * math.log(2.0) / -math.log1p(-forget) if forget else math.inf
    names = _digests(found)
    ranges = [_tick_range(part) if forget else None for part in found.parts]
    last = max((one[1] for one in ranges if one), default=None)
    total, skipped = None, 0
    for part, name, known in zip(found.parts, names, ranges, strict=True):
        if known and last is not None and last - known[0] > span and known[1] < last:
            skipped += part.rows
            one = nothing(policy, known[1], frozenset([name]), known[2])
        else:
            one, left_out = _reduced(part, name, policy, span, folder)
            skipped += left_out
        total = one if total is None else total + one
    if total is None:
        raise BadInput("log", "no parts", "at least one", "pass a log with rows")
    if skipped:
        told = f"{skipped} rows are older than {HALF_LIVES:g} half-lives, weigh less than 1e-12, and were not read"
        warnings.warn(told, stacklevel=2)
    return total if tick is None else total.at(whole("tick", tick, 0, "pass a tick no earlier than the last reward"))


def last_tick(log: Log) -> int:
    """The tick of the last reward."""
    log.require(("reward", "reward_tick"), "which says when rewards came")
    last = 0
    for batch in log.batches(("reward", "reward_tick")):
        assert batch.reward is not None and batch.reward_tick is not None
        last = max(last, int(batch.reward_tick[~np.isnan(batch.reward)].max(initial=0)))
    return last


def _digests(log: Log) -> list[str]:
    """What the parts are known by; the same rows twice are refused before anything is read."""
    names: list[str] = []
    for part in log.parts:
        name = part.digest()
        if name in names:
            first = log.parts[names.index(name)].name
            wanted = "each part once: its rewards would count twice"
            raise BadInput("log", f"{part.name}, which holds what {first} does", wanted, "leave one out")
        names.append(name)
    return names


def _reduced(part: Part, name: str, policy: LinearUCB, span: float, folder: Path | None) -> tuple[Sums, int]:
    """The sums of a part, from their file where there is one, and how many rows were not read for it."""
    memory = container.digest(["sums", policy.dim, float(policy.memory.forget)])
    path = None if folder is None else folder / f"{name[:32]}-{memory}{ENDING}"
    if path is not None and path.exists():
        kept = Sums.from_bytes(path.read_bytes())
        if kept.parts != {name} or kept.forget != policy.memory.forget or kept.dim != policy.dim:
            raise BadInput("out", str(path), f"the sums of {part.name}", ANEW)
        return kept, 0
    groups, left_out, count = _recent(part, span)
    found = _fold(groups, policy, name)
    found = replace(found, n=found.n + count)
    if path is not None:
        keep_durably(path, found.to_bytes())
    return found, left_out


def _fold(batches: Iterator[Batch], policy: LinearUCB, name: str) -> Sums:
    """Batch by batch, each at the tick of its own last reward."""
    log_gamma, found = math.log1p(-float(policy.memory.forget)), None
    low, high = policy._reward_range()
    for batch in batches:
        born, X, reward, paid_at = batch.born, batch.x, batch.reward, batch.reward_tick
        assert born is not None and X is not None and reward is not None and paid_at is not None
        lessons = ~np.isnan(reward)
        _check_rows(batch, lessons, policy, low, high)
        if not lessons.all():
            born, X, reward, paid_at = born[lessons], X[lessons], reward[lessons], paid_at[lessons]
        if not len(reward):
            continue
        tick = int(paid_at.max())
        root = np.exp(0.5 * log_gamma * (tick - born))
        scaled = X * root[:, np.newaxis]
        w = root * root
        G, b = scaled.T @ scaled, scaled.T @ (root * reward)
        scaled *= root[:, np.newaxis]
        twin = scaled.T @ scaled if policy.two_matrix else np.zeros_like(G)
        one = Sums(policy.memory.forget, tick, G, twin, b, float(w.sum()), float(w @ w), len(w), frozenset())
        found = one if found is None else found + one
    return replace(found or nothing(policy, 0, frozenset()), parts=frozenset([name]))


def _check_rows(batch: Batch, lessons: Any, policy: LinearUCB, low: float, high: float) -> None:
    """Rewards in range, arms no longer than L, and no reward before its choice; or the sentence with the row."""
    born, X, reward, paid_at = batch.born, batch.x, batch.reward, batch.reward_tick
    assert born is not None and X is not None and reward is not None and paid_at is not None
    wrong = lessons & ~((reward >= low) & (reward <= high))
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "reward", float(reward[row]), f"a reward from {low:g} to {high:g}")
    wrong = lessons & ((paid_at < born) | (paid_at >= 2**53))
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "reward_tick", int(paid_at[row]), f"a tick from {born[row]}, its choice's, up")
    lengths = np.einsum("ij,ij->i", X, X)
    wrong = lessons & (lengths > (policy.reach * (1.0 + 1e-6)) ** 2)
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "x", f"norm {math.sqrt(lengths[row]):g}", f"norm at most L = {policy.reach:g}")


def _tick_range(part: Part) -> tuple[int, int, int] | None:
    """The newest birth and the newest reward of a Parquet part, and how many rewards it has, by statistics alone."""
    groups = part.row_groups()
    if not groups:
        return None
    return max(one.born for one in groups), max(one.paid for one in groups), sum(one.rewards for one in groups)


def _recent(part: Part, span: float) -> tuple[Iterator[Batch], int, int]:
    """Batches of a part without row groups that are too old; rows left out, and rewards among them."""
    groups = part.row_groups() if math.isfinite(span) else None
    last = max((one.paid for one in groups or ()), default=0)
    old = [number for number, one in enumerate(groups or ()) if last - one.born > span]
    if groups is None or not old:
        return part.batches(COLUMNS), 0, 0
    kept = [number for number in range(len(groups)) if number not in set(old)]
    left_out = [groups[number] for number in old]
    return part.only(kept).batches(COLUMNS), sum(one.rows for one in left_out), sum(one.rewards for one in left_out)
