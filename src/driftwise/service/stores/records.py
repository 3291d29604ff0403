"""The rows of a store, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from driftwise.errors import BadInput, DriftwiseError

_Opened = TypeVar("_Opened")


class StreamRow(NamedTuple):
    """A stream by its name."""

    id: int
    name: str
    created: float
    paused: bool


class EraRow(NamedTuple):
    """A policy's time on a stream, from a decision on. Its state has learned the rewards after number `first`.

    A generation begins with the stream, with a reset (`first` is then the newest reward), with another policy, with
    rewards learned again on another machine, or with a revision of its policy; `reason` says which. Where rows were
    forgotten, learning goes on from the snapshot at `base`. `probe` and `sources` say which machine and which version
    computed it (origin.py); version 1 of the tables recorded neither.
    """

    stream: int
    number: int
    after: int  # the last decision of the previous era
    first: int
    begun_at: int  # the newest reward when it began
    origin: int  # the tick at which its state starts, or AT_FIRST_LESSON
    body: str
    policy: str  # the digest of its numbers
    base: int = 0
    reason: str | None = None
    probe: str | None = None
    sources: str | None = None


# The origin of an era whose state starts at the tick of the first decision that it learns from (agent/states.py). Wall
# clocks of earlier versions start at tick 0, in 1970.
AT_FIRST_LESSON = -1


class DecisionRow(NamedTuple):
    """A decision. score, mean, bonus, `share` (its propensity), explored and draws belong to the policy's own arm,
    `proposed`. This is `arm`, unless the caller or a baseline chose."""

    stream: int
    seq: int
    id: str
    era: int
    state_seq: int
    born: int
    at: float
    arm_set: int | None
    n: int
    arm: int
    item: str | None
    propensity: float | None
    proposed: int
    share: float
    score: float
    mean: float
    bonus: float
    explored: int
    draws: int
    cohort: str
    unit: int | None  # a keyed hash of the unit: lift counts units and need not know them
    context: str | None
    candidates: str | None


class RewardRow(NamedTuple):
    """A reward, learned at `tick` or late. `learned` counts the learned rewards up to this one. x is the vector played.

    If none came in time and the stream has a default, the default is the reward: `defaulted`, or `expired` if the
    policy could not learn it.
    """

    stream: int
    seq: int
    id: str
    value: float
    tick: int
    at: float
    verdict: str
    learned: int
    born: int
    x: bytes | None


class EventRow(NamedTuple):
    """A step of a stream that is neither a decision nor a reward, such as a pause or its deletion: its number among
    events, the largest numbers of a decision and of a reward on disk before it, and its content as JSON."""

    stream: int
    seq: int
    at: float
    kind: str
    decided: int
    rewarded: int
    body: str


class DetailRow(NamedTuple):
    """The parts that only some decisions have: a mask of the allowed arms, the cost of each arm as float64, the trace
    that the caller sent, and the share of units for which the policy played."""

    stream: int
    seq: int
    allowed: bytes | None
    cost: bytes | None
    trace: str | None
    ramp: float | None


class GuardrailRow(NamedTuple):
    """A value of another metric that came with a reward, by the reward's number."""

    stream: int
    seq: int
    name: str
    value: float


class NoticeRow(NamedTuple):
    """A message to send at `due`, after so many tries."""

    id: int
    stream: int
    at: float
    due: float
    tries: int
    body: str


class OpenRow(NamedTuple):
    """A decision without a reward."""

    seq: int
    id: str
    born: int


class SnapshotRow(NamedTuple):
    """The state of a generation after `seq` rewards."""

    stream: int
    era: int
    seq: int
    tick: int
    data: bytes


class DigestRow(NamedTuple):
    """The digest of the state of a generation after `seq` rewards."""

    stream: int
    era: int
    seq: int
    digest: str


class KeyRow(NamedTuple):
    """A key: only its sha256 is known. `stream` is a name or "*"; `revoked` is the time of its revocation."""

    id: int
    sha256: bytes
    name: str
    scopes: str
    stream: str
    created: float
    revoked: float | None = None


class Failed(DriftwiseError):
    """The store failed. The whole group fails, not only the request in which it showed."""


class Full(Failed):
    """The disk is full. Nothing of the group was written."""


class Held(Failed):
    """Another process holds a lock that the group needs: nothing of the group was written."""

    exit_code = 3


class Rejected(Failed):
    """The store does not accept a row of the group: nothing of the group was written."""


class Broken(Failed):
    """The state of the store is unknown: the process must end."""


class Lost(Failed):
    """The connection to the store broke. It is unknown whether the group was written; it may be sent again."""


class WriteConflict(Broken):
    """Another replica wrote this id or number first. Nothing of the group was written."""


class Damaged(BadInput):
    """Bytes were changed since they were written."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what, "rows as they were written", "restore a backup; driftwise verify names all of it")


def viewed(open_: Callable[[], _Opened]) -> _Opened:
    """A second connection to a store that is being served. If it does not open, file descriptors or the server are
    missing at the moment; the request was not wrong."""
    try:
        return open_()
    except Damaged:
        raise
    except BadInput as error:
        raise Lost(str(error)) from None


class Taken(BadInput):
    """Another process has the store open."""

    exit_code = 3
