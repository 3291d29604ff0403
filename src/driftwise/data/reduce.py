"""Reduce a log to sums part by part. Finished parts are kept as files, and parts that are too old are not read.

An executor reduces parts in chunks of about ten seconds: paths are sent, and sums return as bytes.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal import work
from driftwise._internal.validate import whole
from driftwise.data.parts import COLUMNS, HALF_LIVES, Recipe, Shelf, once, reduced
from driftwise.data.sums import Sums, nothing
from driftwise.errors import BadInput
from driftwise.policies.linear import LinearUCB
from driftwise.policies.own import asked
from driftwise.tables.logs import Filed, Log, Part, read_log


def sums(
    log: Any, policy: LinearUCB, out: str | Path | None = None, *, tick: int | None = None,
    executor: Executor | None = None,
) -> Sums:  # fmt: skip
    """Reduce a log to the sums of a linear policy that keeps or fades.

    The tick is that of the last reward, or a later one. With a folder `out` the sums of each part are kept there in a
    file named by the part's digest and the memory, so a part is read once. Parquet parts and row groups whose rows are
    all older than 40 half-lives are left out with a warning. An executor reduces parts that are files; its workers must
    see them at the same paths. Only this process writes.
    """
    forget, found = asked(policy).check_sums(), read_log(log)
    found.require(COLUMNS, "which sums need")
    if found.dim is not None and found.dim != policy.dim:
        raise BadInput("log", f"vectors of {found.dim} numbers", f"{policy.dim}, the policy's dim", "match them")
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    recipe = Recipe.of(policy)
    ranges = [_tick_range(part) if forget else None for part in found.parts]
    last = max((one[1] for one in ranges if one), default=None)
    old = [bool(one and last is not None and last - one[0] > recipe.span and one[1] < last) for one in ranges]
    shelf = Shelf(folder, recipe)
    work = (found, recipe, shelf, old)
    reduced = _here(*work) if executor is None else spread_parts(*work, executor)
    total, skipped = None, 0
    for part, (name, one, left_out), known in zip(found.parts, reduced, ranges, strict=True):
        if one is None:
            assert known is not None
            one, left_out = nothing(policy, known[1], frozenset([name]), known[2]), part.rows
        skipped += left_out
        total = one if total is None else total + one
    if total is None:
        raise BadInput("log", "no parts", "at least one", "pass a log with rows")
    if skipped:
        told = f"{skipped} rows are older than {HALF_LIVES:g} half-lives, weigh less than 1e-12 and were not read"
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


def _here(log: Log, recipe: Recipe, shelf: Shelf, old: Sequence[bool]) -> Iterator[Reduced]:
    """Reduce part by part in this thread."""
    for part, name, skipped in zip(log.parts, _digests(log), old, strict=True):
        if skipped:
            yield name, None, 0
            continue
        kept, left_out = shelf.get(name, part.name), 0
        if kept is None:
            kept, left_out = reduced(part, name, recipe)
            shelf.put(name, kept)
        yield name, kept, left_out


def _digests(log: Log) -> list[str]:
    """The digests of the parts. Equal parts are refused before anything is read."""
    names = [part.digest() for part in log.parts]
    once(log, names)
    return names


def _tick_range(part: Part) -> tuple[int, int, int] | None:
    """The newest decision and reward of a Parquet part, and its number of rewards, from its statistics."""
    groups = part.row_groups()
    if not groups:
        return None
    return max(one.born for one in groups), max(one.paid for one in groups), sum(one.rewards for one in groups)


# The result for a part: its digest, its sums (None if it is too old to be read), and the number of rows not read.
Reduced = tuple[str, Sums | None, int]


def spread_parts(log: Log, recipe: Recipe, shelf: Shelf, old: Sequence[bool], executor: Executor) -> Iterator[Reduced]:
    """Reduce every part on some worker, and yield the results in the order of parts, so that they add up to the same
    bits."""
    paths = [_path(part) for part in log.parts]
    sizes = [path.stat().st_size for path in paths]
    known, found = shelf.names(), dict[int, Reduced]()
    taken = [0.0, 0.0]  # bytes read, and the seconds it took
    queue = work.WorkQueue(range(len(paths)), work.SECONDS, lambda number: _expected(sizes[number], taken))

    def cut(room: int) -> bytes | None:
        numbers = queue.stretch(room)
        parts = [[number, str(paths[number]), old[number]] for number in numbers]
        return work.chunk({"recipe": recipe, "known": known, "parts": parts}) if parts else None

    def take(facts: Any, arrays: work.Arrays) -> None:
        for number, name, left_out, seconds in facts:
            taken[0] += sizes[number]
            taken[1] += seconds
            one = Sums.from_bytes(arrays[str(number)].tobytes()) if str(number) in arrays else None
            if one is not None:
                shelf.put(name, one)
            elif not old[number]:
                one = shelf.get(name, log.parts[number].name)
            found[number] = name, one, left_out

    work.run(reduce_parts, cut, take, executor, "parts")
    once(log, [found[number][0] for number in range(len(paths))])
    yield from (found[number] for number in range(len(paths)))


def _expected(size: int, taken: Sequence[float]) -> float:
    return size * taken[1] / taken[0] if taken[0] else math.inf


def _path(part: Part) -> Path:
    if not isinstance(part, Filed):
        wanted = "parts that are files, which workers can read"
        raise BadInput("log", f"{part.name}, which is not a file", wanted, "write it to Parquet, or leave executor out")
    return part.path.resolve()


@work.answering
def reduce_parts(asked: Any) -> work.Found:
    """Reduce the parts of a chunk. For parts that are known or too old, only the digest is computed."""
    recipe, known = Recipe(*asked["recipe"]), set(asked["known"])
    facts, arrays = [], {}
    for number, path, old in asked["parts"]:
        begun = time.perf_counter()
        (part,) = read_log(path).parts
        name, left_out = part.digest(), 0
        if not old and name[:32] not in known:
            sums, left_out = reduced(part, name, recipe)
            arrays[str(number)] = np.frombuffer(sums.to_bytes(), dtype=np.uint8)
        facts.append((number, name, left_out, time.perf_counter() - begun))
    return facts, arrays
