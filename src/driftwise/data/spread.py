"""Reduces the parts of a log on an executor, in chunks of about ten seconds: paths are sent, and sums return as
bytes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal import work
from driftwise.data.parts import Recipe, Shelf, once, reduced
from driftwise.data.sums import Sums
from driftwise.errors import BadInput
from driftwise.tables.logs import Filed, Log, Part, read_log

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
