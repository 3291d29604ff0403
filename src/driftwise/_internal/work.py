"""Work in chunks for any `concurrent.futures.Executor`. A chunk is plain data, its answer is bytes, and only the driver
writes files.

A chunk is JSON. It contains what the worker must have as well: the hash of the sources and the versions of libraries.
The answer is a container (container.py), also for a refusal, so no class of driftwise is pickled into a result. The
functions that work on chunks are module functions, so that they are pickled by name.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, CancelledError, Executor, Future, wait
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Generic, NoReturn, TypeVar

from driftwise._internal import compile_notice, container
from driftwise._internal.sources import source_hash
from driftwise.errors import BadInput, DriftwiseError, NumericalError

T = TypeVar("T")
Arrays = Mapping[str, Any]
# The result of a chunk: plain facts and arrays.
Found = tuple[Any, Arrays]

# Intended seconds of a chunk: longer on other machines, short in this process, where a lost chunk should cost little.
SECONDS = 10.0
SECONDS_HERE = 1.0

_AGAIN = "run it again: finished chunks are kept where there is a folder for them"


@functools.cache
def sources() -> dict[str, str]:
    """What two processes must have in common to compute the same numbers: sources, versions and kind of machine."""
    found = {"sources": source_hash(), "python": platform.python_version(), "machine": platform.machine()}
    return found | {name: version(name) for name in ("numpy", "numba") if find_spec(name)}


def me() -> str:
    """The name of this process: host and process id, with the Dask worker's name if it is a worker."""
    name, dask = f"{socket.gethostname()}/{os.getpid()}", sys.modules.get("distributed")
    if dask is not None:
        try:
            return f"{dask.get_worker().name} ({name})"
        except ValueError:  # not in a Dask worker
            pass
    return name


def chunk(work: Any) -> bytes:
    """Plain data as a chunk."""
    return json.dumps({"needs": sources(), "work": work}).encode()


def answering(work: Callable[[Any], Found]) -> Callable[[bytes], bytes]:
    """The function that workers run: check that this worker may do the chunk, and return the result or refusal as
    bytes."""
    @functools.wraps(work)
    def answer(data: bytes) -> bytes:
        asked = json.loads(data)
        try:
            _agree(asked["needs"])
            facts, arrays = work(asked["work"])
        except DriftwiseError as error:
            return container.pack("answer", {"refused": _told(error)}, {})
        return container.pack("answer", {"facts": facts}, arrays)

    return answer


def _agree(needs: Mapping[str, str]) -> None:
    """Raise BadInput unless this process has the sources and versions of the driver."""
    have = sources()
    other = [name for name in needs if have.get(name) != needs[name]]
    if other:
        got = ", ".join(f"{name} {have.get(name)}" for name in other)
        wanted = "those of the driver, " + ", ".join(f"{name} {needs[name]}" for name in other)
        raise BadInput("worker", f"{got} on {me()}", wanted, "install the same driftwise there, and restart it")


class _Shown(str):
    """A value of another process, as its error message shows it."""

    __repr__ = str.__str__


def _told(error: DriftwiseError) -> list[str]:
    if isinstance(error, BadInput):
        return [error.parameter, _shown(error), error.wanted, error.way_out]
    return [type(error).__name__, str(error)]


def _shown(error: BadInput) -> str:
    """The refused value as the message shows it."""
    start, end = f"{error.parameter}: wanted {error.wanted}, got ", f"; {error.way_out}"
    return str(error).removeprefix(start).removesuffix(end)


def opened(answer: bytes) -> Found:
    """The facts and arrays of an answer. The refusal of a worker is raised again here."""
    about, arrays = container.unpack("answer", answer, _AGAIN)
    if "refused" in about:
        _refuse(about["refused"])
    return about["facts"], arrays


def _refuse(told: list[str]) -> NoReturn:
    if len(told) == 4:
        parameter, got, wanted, way_out = told
        raise BadInput(parameter, _Shown(got), wanted, way_out)
    kind, sentence = told
    raise (NumericalError if kind == "NumericalError" else DriftwiseError)(sentence)


def slots(executor: Executor) -> int:
    """How many chunks to give an executor at once: one for each worker, and some more if workers are on other
    machines."""
    client = getattr(executor, "_client", None)
    if client is not None:
        threads = sum(client.nthreads().values())
        return int(threads + max(2, threads // 4))
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


@compile_notice.one_for_all()
def run(
    function: Callable[[bytes], bytes], cut: Callable[[int], bytes | None], take: Callable[[Any, Arrays], None],
    executor: Executor, what: str,
) -> None:  # fmt: skip
    """Run chunks on an executor until `cut` returns none. `cut` gets the number of chunks that may run at once, and
    `take` gets the answers.

    Answers arrive in any order, in this thread. If the run ends early, chunks that are running are finished first.
    """
    under_way: set[Future[bytes]] = set()
    try:
        while True:
            room = slots(executor)
            while len(under_way) < room and (data := cut(room)) is not None:
                under_way.add(executor.submit(function, data))
            if not under_way:
                return
            done, under_way = _wait(under_way, executor, FIRST_COMPLETED)
            failed = _take_all(done, take) if done else CancelledError("what was under way will not be finished")
            if failed is not None:
                raise failed
    except BaseException as error:
        try:
            if isinstance(error, KeyboardInterrupt):
                print(f"driftwise: stopping after the {what} under way; again to stop at once", file=sys.stderr)
            _take_all(_wait(under_way, executor, ALL_COMPLETED)[0], take)
        except KeyboardInterrupt:  # files are complete at any point, so the process may end here
            os._exit(130)
        raise


Waited = tuple[set[Future[bytes]], set[Future[bytes]]]


def _wait(under_way: set[Future[bytes]], executor: Executor, until: str) -> Waited:
    """The futures that are done and the others. If none is done, none will be.

    A Dask client that has lost its scheduler cancels the futures it knows, but not those submitted before it noticed.
    """
    client = getattr(executor, "_client", None)
    while True:
        done, left = wait(under_way, timeout=None if client is None else 1.0, return_when=until)
        lost = client is not None and client.status in ("closing", "closed")
        if lost or not left or (done and until == FIRST_COMPLETED):
            return done, left


def _take_all(done: set[Future[bytes]], take: Callable[[Any, Arrays], None]) -> BaseException | None:
    """Take every complete answer, and return the first error."""
    first: BaseException | None = None
    for future in done:
        try:
            take(*opened(future.result()))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            first = first or error
    return first


class WorkQueue(Generic[T]):
    """Tasks that are handed out in stretches of about `seconds`, by the expected time of each task."""

    def __init__(self, things: Iterable[T], seconds: float, expected: Callable[[T], float]) -> None:
        self._left, self._seconds, self._expected = deque(things), seconds, expected

    def stretch(self, room: int) -> list[T]:
        """The next tasks: a single one while its time is unknown (infinite), and fewer towards the end.

        `room` is the number of stretches that run at once; they should all end at about the same time.
        """
        if not self._left:
            return []
        found = [self._left.popleft()]
        spent = self._expected(found[0])
        limit = min(self._seconds, spent * (len(self._left) + 1) / (2 * room))
        while self._left and (spent := spent + self._expected(self._left[0])) <= limit:
            found.append(self._left.popleft())
        return found
