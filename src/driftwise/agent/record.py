"""An agent's records of decisions: the open ones, the closed ones, and a count of every event."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from driftwise._internal.validate import text
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.ledger import LESSONS, Verdict
from driftwise.policies.arms import ArmSet

if TYPE_CHECKING:
    from driftwise.agent.drift import Meter
    from driftwise.agent.replay import Lesson
    from driftwise.agent.writing import AgentLog
    from driftwise.tables.write import LogRow

Item: TypeAlias = str | int | None


class Decision(NamedTuple):
    """What was chosen, and all that is needed to learn from it and to check it (docs/contract.md#decisions).

    `born` is its tick, `at` the time in seconds, `n` the number of allowed arms, `policy` the digest of the policy.
    `draws` is the number of draws over which the propensity of a rule that samples was counted; 0 if it is exact.

    For a continuous set `arm` is -1 and `n` is 0. `x` is the vector to play, `number` its place on a curve. If the
    point was drawn, the propensity is a density per unit of `measure`. A snapshot keeps the x of open decisions.
    """

    id: str
    seq: int
    arm: int
    item: Item
    score: float
    mean: float
    bonus: float
    propensity: float
    explored: bool
    born: int
    at: float
    n: int
    policy: str
    draws: int = 0
    x: Any = None
    number: float | None = None
    measure: str | None = None


class Logged(NamedTuple):
    """What a log has of a decision in addition to its record: the number of rewards before it, the place among the
    allowed arms, and, if they are logged, these arms, the context and the candidates; and the unit of a propensity that
    is a density."""

    state_seq: int
    place: int
    arms: ArmSet | None = None
    context: dict[str, Any] | None = None
    candidates: tuple[str, ...] | None = None
    measure: str | None = None


class Entry:
    """A decision in the book. While it is open it has what its update needs: the vector played, or all arms for a
    policy of the user's own; a checksum of its arms if the caller gave the id; and what the log will have of it."""

    __slots__ = ("decision", "mark", "shown", "value", "verdict", "x")

    def __init__(self, decision: Decision, x: Any, mark: str | None, shown: Logged | None = None) -> None:
        self.decision, self.x, self.mark, self.shown = decision, x, mark, shown
        self.value = 0.0
        self.verdict = Verdict.OPEN


COUNTED = (
    "decided", "repeated", "explored", "learned", "duplicate", "conflicting", "unknown", "out_of_range", "late",
    "defaulted", "expired", "cancelled", "crowded_out", "failed", "merged",
)  # fmt: skip


class Taught(NamedTuple):
    """What a drift meter gets of a lesson: the lesson, and its history, stride and wait after it (`Meter.weighed`)."""

    meter: Meter
    lessons: tuple[Lesson, ...]
    weighed: tuple[list[tuple[int, Floats]], int, int] | None


class Book:
    """Open decisions in the order of birth, the last `remember` closed ones in the order of closing, and counts."""

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self.open: dict[str, Entry] = {}
        self.closed: dict[str, Entry] = {}
        self.counts = dict.fromkeys(COUNTED, 0)
        self.log: AgentLog | None = None
        self.unlogged = 0  # rows that closed logs could not hold
        self.told_at = 0.0  # the arrival time of the reward that is being learned

    @property
    def lessons(self) -> int:
        """How many rewards and defaults were learned."""
        return sum(self.counts[word] for word in LESSONS)

    def find(self, id: str) -> Entry | None:
        return self.open.get(id) or self.closed.get(id)

    def close(
        self, entry: Entry, verdict: Verdict, value: float = 0.0, taught: Taught | None = None, crowded: int = 0
    ) -> None:
        """Settle an open decision. The oldest closed one beyond `remember` is dropped. `taught` is what the meter gets
        of its lesson, and `crowded` is 1 for a decision that was crowded out."""
        log, id, name, waiting = self.log, entry.decision.id, verdict.value, []
        rows: list[LogRow] = []
        if log is not None:
            waiting, rows = log.waiting, [log.row(entry, verdict, value)]
        oldest = next(iter(self.closed)) if len(self.closed) >= self.remember > 0 else None
        # No function is called from here on, so Ctrl-C cannot interrupt between these assignments.
        if taught is not None:
            meter = taught.meter
            meter.recent += taught.lessons
            if taught.weighed is not None:
                meter.history, meter.stride, meter.waited = taught.weighed
        waiting += rows
        del self.open[id]
        entry.verdict, entry.value, entry.x, entry.shown = verdict, value, None, None
        self.counts[name] += 1
        self.counts["crowded_out"] += crowded
        if self.remember:
            if oldest is not None:
                del self.closed[oldest]
            self.closed[id] = entry
        if log is not None:
            log.added()

    def oldest(self, besides: Entry | None = None) -> Entry | None:
        """The oldest open decision, except one."""
        return next((entry for entry in self.open.values() if entry is not besides), None)


class Shown(NamedTuple):
    """Arms that a decision was made among, the names and places of all there were, which of them was played, and what
    they cost."""

    id: str
    arms: ArmSet
    items: Sequence[Item] | None
    places: Ints | None
    place: int
    costs: Floats | None = None


# The number of last decisions whose arms are kept for explanations, and the total of their numbers: 16 MB.
SHOWN, SHOWN_NUMBERS = 64, 2_000_000


class Recent:
    """Arms of the last decisions, as many as SHOWN and SHOWN_NUMBERS allow. The oldest are dropped first."""

    def __init__(self) -> None:
        self._kept: dict[str, Shown] = {}
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, one: Shown) -> None:
        """Keep arms, unless they are larger than the limit."""
        size = one.arms.count * one.arms.dim
        if size > SHOWN_NUMBERS:
            return
        if one.id in self._kept:  # the id may have been dropped and used again
            self._drop(one.id)
        self._numbers += size
        self._kept[one.id] = one
        while len(self._kept) > SHOWN or self._numbers > SHOWN_NUMBERS:
            self._drop(next(iter(self._kept)))

    def _drop(self, id: str) -> None:
        arms = self._kept[id].arms
        self._numbers -= arms.count * arms.dim  # Ctrl-C cannot interrupt before the next line, which calls nothing
        del self._kept[id]

    def find(self, id: str) -> Shown | None:
        """The arms of a decision, if they are kept."""
        return self._kept.get(id)


def checked_id(id: object) -> str:
    """An id of the caller's: opaque text of at most 128 bytes."""
    if type(id) is str and id.isascii() and id.isprintable() and 0 < len(id) <= 128:
        return id
    wanted = "text of 1 to 128 bytes of UTF-8 without control characters"
    if not isinstance(id, str) or not id:
        raise BadInput("id", id, wanted, "pass a str such as a request's id, or leave it out")
    try:
        length = len(id.encode())
    except UnicodeEncodeError:
        raise BadInput("id", "a lone surrogate", wanted, "pass text that UTF-8 can hold") from None
    if length > 128 or any(not (c.isprintable() or c == "\u00a0") for c in id):
        raise BadInput("id", id, wanted, "pass a shorter or cleaner one")
    return str(id)


# The form of the ids that agents and streams give themselves: the decision's number and 8 digits of the process.
_AUTOMATIC = re.compile(r"[1-9a-f][0-9a-f]*\.[0-9a-f]{8}", re.ASCII)


def new_process() -> str:
    """Eight digits that distinguish the automatic ids of this process from those of others."""
    return os.urandom(4).hex()


def automatic_id(seq: int, process: str) -> str:
    """The id of a decision for which the caller gave none."""
    return f"{seq:x}.{process}"


def is_automatic(id: str) -> bool:
    """Whether an id has the form of an automatic one."""
    return _AUTOMATIC.fullmatch(id) is not None


def check_not_automatic(id: str) -> None:
    """Refuse a new id that a later automatic id could equal."""
    if is_automatic(id):
        wanted = "an id of another form than automatic ones have (1f.0a1b2c3d), unless it was already decided"
        raise BadInput("id", id, wanted, "pass another id, or leave it out")


# Python writes no whole number of more than 4,300 digits as text, which logs and snapshots need.
_MOST_ITEM = 10**300


def checked_item(item: object) -> Item:
    """The name of an arm: text, a whole number of at most 300 digits, or none."""
    if item is None or (type(item) is str and item.isascii()):
        return item
    if isinstance(item, str):  # numpy's, say
        return text("items", str(item))
    try:
        if not isinstance(item, bool) and abs(operator.index(item)) <= _MOST_ITEM:  # type: ignore[arg-type]
            return operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise BadInput("items", item, "names that are text or whole numbers of at most 300 digits", "pass str(name)")
