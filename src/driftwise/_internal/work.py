"""Work cut into chunks for any `concurrent.futures.Executor`: plain data goes out, bytes come back, one process writes.

A chunk is JSON and carries what its worker must agree with: the hash of the sources and the versions below them. What
comes back is a container (container.py), a refusal included; no class of driftwise is ever pickled into a result. The
functions that chunks are for belong to modules, so that they travel by their names.
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

from driftwise._internal import container
from driftwise._internal.sources import source_hash
from driftwise.errors import BadInput, DriftwiseError, NumericalError

T = TypeVar("T")
Arrays = Mapping[str, Any]
# What the work of a chunk returns: plain facts and arrays.
Found = tuple[Any, Arrays]

# A chunk is to take so long where it travels; where it does not, losing it should cost little.
SECONDS = 10.0
SECONDS_HERE = 1.0

_AGAIN = "run it again: finished chunks are kept where there is a folder for them"


@functools.cache
def sources() -> dict[str, str]:
    """What two processes must share to find the same numbers: the sources, versions and the kind of machine."""
    found = {"sources": source_hash(), "python": platform.python_version(), "machine": platform.machine()}
    return found | {name: version(name) for name in ("numpy", "numba") if find_spec(name)}


def me() -> str:
    """What this process is known by: its Dask worker's name where it is one, its machine and number."""
    name, dask = f"{socket.gethostname()}/{os.getpid()}", sys.modules.get("distributed")
    if dask is not None:
        try:
            return f"{dask.get_worker().name} ({name})"
        except ValueError:  # no worker of Dask's
            pass
    return name


def chunk(work: Any) -> bytes:
    """Plain data as a chunk."""
    return json.dumps({"needs": sources(), "work": work}).encode()


def answering(work: Callable[[Any], Found]) -> Callable[[bytes], bytes]:
    """The function of a chunk: whether this worker may do it, and what was found, or the refusal, as bytes."""
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
    """This process has what the driver has, or the sentence that names it."""
    have = sources()
    other = [name for name in needs if have.get(name) != needs[name]]
    if other:
        got = ", ".join(f"{name} {have.get(name)}" for name in other)
        wanted = "those of the driver, " + ", ".join(f"{name} {needs[name]}" for name in other)
        raise BadInput("worker", f"{got} on {me()}", wanted, "install the same driftwise there, and start it anew")


class _Shown(str):
    """What was got somewhere else, as it is shown."""

    __repr__ = str.__str__


def _told(error: DriftwiseError) -> list[str]:
    if isinstance(error, BadInput):
        return [error.parameter, _shown(error), error.wanted, error.way_out]
    return [type(error).__name__, str(error)]


def _shown(error: BadInput) -> str:
    """What was got, as the sentence has it."""
    start, end = f"{error.parameter}: wanted {error.wanted}, got ", f"; {error.way_out}"
    return str(error).removeprefix(start).removesuffix(end)


def opened(answer: bytes) -> Found:
    """The facts and arrays of an answer; a refusal is raised here as it was there."""
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
    """How many chunks an executor should have: one for each of its workers, and where they travel some in reserve."""
    client = getattr(executor, "_client", None)
    if client is not None:
        threads = sum(client.nthreads().values())
        return int(threads + max(2, threads // 4))
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def run(
    function: Callable[[bytes], bytes], cut: Callable[[int], bytes | None], take: Callable[[Any, Arrays], None],
    executor: Executor, what: str,
) -> None:  # fmt: skip
    """Have an executor do chunks until `cut`, told how many there may be at once, gives no more; `take` gets answers.

    Answers come in any order, to this thread. Whatever ends it early, what was under way is taken in first.
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
        except KeyboardInterrupt:  # files are whole whenever the process ends
            os._exit(130)
        raise


Waited = tuple[set[Future[bytes]], set[Future[bytes]]]


def _wait(under_way: set[Future[bytes]], executor: Executor, until: str) -> Waited:
    """What is done and what is not; with nothing done, nothing will be.

    A Dask client that has lost its scheduler cancels what it knows, but not what it was sent while it was noticing.
    """
    client = getattr(executor, "_client", None)
    while True:
        done, left = wait(under_way, timeout=None if client is None else 1.0, return_when=until)
        lost = client is not None and client.status in ("closing", "closed")
        if lost or not left or (done and until == FIRST_COMPLETED):
            return done, left


def _take_all(done: set[Future[bytes]], take: Callable[[Any, Arrays], None]) -> BaseException | None:
    """Take in all that came whole; the first that did not comes back."""
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
    """Things to do, handed out in stretches of about so many seconds by what is expected of each at the time."""

    def __init__(self, things: Iterable[T], seconds: float, expected: Callable[[T], float]) -> None:
        self._left, self._seconds, self._expected = deque(things), seconds, expected

    def stretch(self, room: int) -> list[T]:
        """The next things: one where nothing is known yet (an infinite time), and fewer towards the end.

        `room` is how many stretches are worked on at a time; all are to end at about the same time.
        """
        if not self._left:
            return []
        found = [self._left.popleft()]
        spent = self._expected(found[0])
        limit = min(self._seconds, spent * (len(self._left) + 1) / (2 * room))
        while self._left and (spent := spent + self._expected(self._left[0])) <= limit:
            found.append(self._left.popleft())
        return found
