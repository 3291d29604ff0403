"""Requests that wait, and when their turn comes: all that came while the last group was committed make the next one.

The next commit is started before the last group is answered, unless syncs take long: then a quarter of a sync is
waited, at most, for those who were just answered to ask again, because two small groups in turn cost each caller two
syncs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from driftwise.errors import DriftwiseError
from driftwise.service.stores.records import Failed
from driftwise.service.wire.protocol import MOST_WAITING, Refusal, error_of

SHORT, LONG = 0.0005, 0.002  # seconds: what is worth neither a wait nor a thread, and the most that is waited
_LOOKS = 8  # turns of the event loop in which nobody came, before a group is complete


class Waiting(NamedTuple):
    """Work on the streams, and who is told what came of it: an answer, or what was raised."""

    work: Callable[[], Any]
    tell: Callable[[Any], None]


class WorkBatch:
    """Work of many members, each with an answer of its own: a member that is refused stops no other."""

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
    """What work answers, or the refusal that it raised; a store that failed concerns the whole group."""
    try:
        return work()
    except Failed:
        raise
    except DriftwiseError as slip:
        return slip


def leading(stream: Any, work: Callable[[], Any]) -> Callable[[], Any]:
    """Work that learns, marked by its stream: where others write too its lock is had before the group is worked on."""
    work.leads = stream  # type: ignore[attr-defined]
    return work


def halves(group: list[Waiting]) -> list[list[Waiting]]:
    """A group in two, a batch that is alone in it in two batches; nothing where nothing can be divided."""
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
    """What waits. `turn` is called on the event loop with the next group, and not while `busy`."""

    def __init__(self, turn: Callable[[list[Waiting]], None]) -> None:
        self._turn = turn
        self.waiting: list[Waiting] = []
        self.again: list[list[Waiting]] = []  # parts of a group that failed, which come before all that waits
        self.busy = False  # whether a group is at work in a thread
        self.expected = 1  # how many asked last
        self.patience = 0.0  # seconds that they are waited for
        self.shut: Callable[[], Refusal] | None = None  # why nothing is taken now
        self._due = False
        self._held: asyncio.TimerHandle | None = None  # the turn that waits for more to come

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Have work done with the next group; the future is its answer, and is there when the answer is on disk."""
        future = asyncio.get_running_loop().create_future()
        self.enter(work, partial(resolve, future))
        return future

    def enter(self, work: Callable[[], Any], tell: Callable[[Any], None]) -> None:
        """`submit` for those who would rather be called than wait."""
        if self.shut is not None:
            raise self.shut()
        if len(self.waiting) >= MOST_WAITING:
            raise Refusal("overloaded")
        self.waiting.append(Waiting(work, tell))
        if not self.busy and (not self._due or self._held is not None):
            self._gather()

    def _gather(self) -> None:
        """Let the turn come: when as many wait as asked last, or nobody came for a while."""
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
        """Take the turn, or look once more for those who were just answered: less than a timer can wait."""
        count = len(self.waiting)
        idle = 0 if count > seen else idle + 1
        if count < self.expected and idle < _LOOKS:
            loop.call_soon(self._look, loop, count, idle)
        else:
            self.take()

    def take(self) -> None:
        """The turn of the next group: a part of one that failed, or all that waits."""
        self._due, self._held = False, None
        if self.again:
            group = self.again.pop(0)
        else:
            group, self.waiting = self.waiting, []
        self._turn(group)

    def take_in(self, seconds: float) -> None:
        """The next turn in a while."""
        self._due = True
        asyncio.get_running_loop().call_later(seconds, self.take)

    def next(self) -> None:
        """Let the next turn come, if something waits for it."""
        if self.busy or self._due:
            return
        if self.again:
            self._due = True
            asyncio.get_running_loop().call_soon(self.take)
        elif self.waiting:
            self._gather()

    def done(self, count: int) -> None:
        """A group of so many is on disk: about as many will ask again."""
        self.expected = min(count + len(self.waiting), MOST_WAITING // 2)

    def refuse(self, refusal: Refusal) -> None:
        """Answer all that waits with a refusal."""
        waiting = [*(one for part in self.again for one in part), *self.waiting]
        self.again, self.waiting = [], []
        settle_group(waiting, [refusal] * len(waiting))

    async def idle(self) -> None:
        """When nothing waits and nothing is being committed."""
        while self.waiting or self.again or self.busy or self._due:
            await asyncio.sleep(0.002)


def settle_group(group: list[Waiting], answers: list[Any]) -> None:
    """Tell each of a group what came of it."""
    for one, answer in zip(group, answers, strict=True):
        one.tell(answer)


def resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():  # whoever asked has gone
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
