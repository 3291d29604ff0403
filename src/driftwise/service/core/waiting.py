"""The queue of requests. All requests that arrive while a group is committed form the next group.

The next commit starts before the last group is answered. If syncs take long, it waits at most a quarter of a sync for
the clients that were just answered to send their next requests: two small groups in turn would cost each client two
syncs.

The time of a server is here too: its machine's clock, unless that jumps ahead. If a wall clock is set ahead by mistake,
everything that was learned would look old, and the server's time would not advance until the wrong time is reached. So
a time more than a minute ahead of the monotonic clock is held back. The first time after a start is accepted, because
only the machine's clock knows how long the server was stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from driftwise.errors import DriftwiseError
from driftwise.service.stores.records import Failed
from driftwise.service.wire.protocol import MOST_WAITING, Refusal, error_of

SHORT, LONG = 0.0005, 0.002  # seconds: syncs shorter than the first need no wait and no thread; the second is the most
_LOOKS = 8  # turns of the event loop without a new request, after which a group is complete


class Waiting(NamedTuple):
    """Work on the streams, and the future or callback that gets its answer or its exception."""

    work: Callable[[], Any]
    tell: Callable[[Any], None]


class WorkBatch:
    """Work of many members, each with its own answer. A refused member does not stop the others."""

    def __init__(self, works: Sequence[Callable[[], Any]], leads: Any = None) -> None:
        self.works = works
        if leads is not None:
            self.leads = leads

    def __call__(self) -> list[Any]:
        answers = (answer_of(work) for work in self.works)
        return [error_of(answer) if isinstance(answer, DriftwiseError) else answer for answer in answers]

    def part(self, begin: int, end: int) -> WorkBatch:
        return WorkBatch(self.works[begin:end], getattr(self, "leads", None))


def answer_of(work: Callable[[], Any]) -> Any:
    """The answer of work, or the refusal that it raised. A failure of the store concerns the whole group and is
    raised."""
    try:
        return work()
    except Failed:
        raise
    except DriftwiseError as error:
        return error


def leading(stream: Any, work: Callable[[], Any]) -> Callable[[], Any]:
    """Mark work that learns with its stream. With replicas the stream is locked before the group is processed."""
    work.leads = stream  # type: ignore[attr-defined]
    return work


def halves(group: list[Waiting]) -> list[list[Waiting]]:
    """The two halves of a group, or of a batch that is alone in it; nothing if it cannot be divided."""
    if len(group) > 1:
        middle = len(group) // 2
        return [group[:middle], group[middle:]]
    if not group:
        return []
    batch, told = group[0].work, group[0].tell
    if not isinstance(batch, WorkBatch) or len(batch.works) < 2:
        return []
    middle = len(batch.works) // 2
    parts: list[list[Any]] = [[], []]

    def tell(place: int, size: int, answer: Any) -> None:
        parts[place] = [error_of(answer)] * size if isinstance(answer, BaseException) else answer
        if all(parts):
            told(parts[0] + parts[1])

    cuts = ((0, 0, middle), (1, middle, len(batch.works)))
    return [[Waiting(batch.part(begin, end), partial(tell, place, end - begin))] for place, begin, end in cuts]


class Queue:
    """The waiting requests. `turn` is called on the event loop with the next group, but not while `busy`."""

    def __init__(self, turn: Callable[[list[Waiting]], None]) -> None:
        self._turn = turn
        self.waiting: list[Waiting] = []
        self.again: list[list[Waiting]] = []  # parts of a failed group, which come before all waiting requests
        self.busy = False  # whether a thread works on a group
        self.expected = 1  # the number of requests in the last group
        self.patience = 0.0  # seconds to wait for as many requests
        self.shut: Callable[[], Refusal] | None = None  # why requests are refused now
        self._due = False
        self._held: asyncio.TimerHandle | None = None  # the turn that waits for more to come

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Do work with the next group. The future has the answer when it is on disk."""
        future = asyncio.get_running_loop().create_future()
        self.enter(work, partial(resolve, future))
        return future

    def enter(self, work: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        """`submit` with a callback instead of a future."""
        if self.shut is not None:
            raise self.shut()
        if len(self.waiting) >= MOST_WAITING:
            raise Refusal("overloaded")
        self.waiting.append(Waiting(work, tell))
        if not self.busy and (not self._due or self._held is not None):
            self._gather()

    def _gather(self) -> None:
        """Start the next group when as many requests wait as in the last one, or when none has come for a while."""
        loop = asyncio.get_running_loop()
        if self.patience >= SHORT and len(self.waiting) < self.expected:
            if self._held is None:
                self._held = loop.call_later(self.patience, self.take)
        else:
            if self._held is not None:
                self._held.cancel()
                self._held = None
            loop.call_soon(self._look, loop, 0, 0)
        self._due = True

    def _look(self, loop: asyncio.AbstractEventLoop, seen: int, idle: int) -> None:
        """Start the group, or wait one more turn of the event loop for new requests; a timer would wait longer."""
        count = len(self.waiting)
        idle = 0 if count > seen else idle + 1
        if count < self.expected and idle < _LOOKS:
            loop.call_soon(self._look, loop, count, idle)
        else:
            self.take()

    def take(self) -> None:
        """Start the next group: a part of a failed one, or all waiting requests."""
        self._due, self._held = False, None
        if self.again:
            group = self.again.pop(0)
        else:
            group, self.waiting = self.waiting, []
        self._turn(group)

    def take_in(self, seconds: float) -> None:
        """Start the next group after some seconds."""
        self._due = True
        asyncio.get_running_loop().call_later(seconds, self.take)

    def next(self) -> None:
        """Start the next group if a request waits."""
        if self.busy or self._due:
            return
        if self.again:
            self._due = True
            asyncio.get_running_loop().call_soon(self.take)
        elif self.waiting:
            self._gather()

    def done(self, count: int) -> None:
        """Note that a group of this size is on disk: about as many clients will send the next requests."""
        self.expected = min(count + len(self.waiting), MOST_WAITING // 2)

    def refuse(self, refusal: Refusal) -> None:
        """Answer all waiting requests with a refusal."""
        waiting = [*(one for part in self.again for one in part), *self.waiting]
        self.again, self.waiting = [], []
        settle_group(waiting, [refusal] * len(waiting))

    async def idle(self) -> None:
        """When nothing waits and nothing is being committed."""
        while self.waiting or self.again or self.busy or self._due:
            await asyncio.sleep(0.002)


def settle_group(group: list[Waiting], answers: list[Any]) -> None:
    """Give each request of a group its answer."""
    for one, answer in zip(group, answers, strict=True):
        one.tell(answer)


def resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():  # the client has disconnected
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


AHEAD = 60.0  # seconds that a clock may be set ahead at once


# Monotonic seconds, with the time in which the machine was suspended if the system counts it.
PASSED: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


class Steady:
    """The time `wall`, held back if it is more than AHEAD beyond the largest time so far plus the monotonic time since.

    `held` counts how often it was held back, and `ahead` is by how many seconds the last time. A clock that is set back
    is accepted, and may return to where it was.
    """

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = PASSED) -> None:
        self._wall, self._passed = wall, passed
        self._offset: float | None = None  # the largest difference between the two clocks
        self.held, self.ahead = 0, 0.0

    def __call__(self) -> float:
        now, since = self._wall(), self._passed()
        offset = now - since
        if self._offset is None or offset <= self._offset + AHEAD:
            self._offset = offset if self._offset is None else max(self._offset, offset)
            self.ahead = 0.0
            return now
        self.held, self.ahead = self.held + 1, offset - self._offset
        return since + self._offset

    @property
    def word(self) -> str:
        """The warning about the clock; empty if there is none."""
        if not self.ahead:
            return ""
        return f"the machine's clock jumped {self.ahead:.0f} s ahead and is held back; restart if its time is right"


def steady(now: Callable[[], float] | None) -> Steady:
    """The machine's clock, held back; a clock that was given is used unchanged."""
    if now is None:
        return Steady()
    return now if isinstance(now, Steady) else Steady(now, now)
