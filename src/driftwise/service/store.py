"""What is written down, and what a store of it must do; tests/service/test_store.py holds every store to it.

A store has one transaction at a time: `begin`, rows, `commit`. What is committed is on disk. Rows carry a seal of their
numbers, so that one that was changed since is an error that names the place, and never a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from driftwise.errors import BadInput, DriftwiseError

_Opened = TypeVar("_Opened")


class StreamRow(NamedTuple):
    """A stream by its name."""

    id: int
    name: str
    created: float
    paused: bool


class EraRow(NamedTuple):
    """From a decision on, a policy plays: its state is the fold of the rewards after number `first`.

    An era begins with the stream, with a reset (`first` is then the newest reward), with another policy or with a
    refold by another machine; `reason` says which. Where rows were forgotten, the fold goes on from the snapshot at
    `base`. `probe` and `sources` say which machine and which version computed it (origin.py); version 1 of the tables
    recorded neither.
    """

    stream: int
    number: int
    after: int  # the last decision of the era before
    first: int
    begun_at: int  # the newest reward when it began
    origin: int  # the tick at which its state starts, or AT_FIRST_LESSON
    body: str
    policy: str  # the digest of its numbers
    base: int = 0
    reason: str | None = None
    probe: str | None = None
    sources: str | None = None


# The origin of an era whose state starts at the birth of the decision that it learns from first (agent/states.py). Wall
# clocks of before start at tick 0, in 1970.
AT_FIRST_LESSON = -1


class DecisionRow(NamedTuple):
    """A decision; score, mean, bonus, `share` (its propensity), explored and draws are of the policy's own arm,
    `proposed`, which is `arm` unless the caller or a baseline played."""

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
    unit: int | None  # a keyed hash of who is held back or not: lift counts units, and need not know them
    context: str | None
    candidates: str | None


LESSONS = ("learned", "defaulted")  # verdicts of rewards that a fold takes


class RewardRow(NamedTuple):
    """A reward, learned at `tick` or late; `learned` counts those learned up to and with it. x is the vector played.

    Where none came in time and the stream has a default, that is the reward: `defaulted`, or `expired` where the policy
    could not learn it.
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


class OpenRow(NamedTuple):
    """A decision that no reward has come for."""

    seq: int
    id: str
    born: int


class SnapshotRow(NamedTuple):
    """The state of an era after so many rewards."""

    stream: int
    era: int
    seq: int
    tick: int
    data: bytes


class DigestRow(NamedTuple):
    """What the state of an era after so many rewards is known by."""

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
    """The store failed: this concerns the group, not only the request in which it showed."""


class Full(Failed):
    """There is no room for what was to be written; nothing of it was."""


class Held(Failed):
    """Another process holds a lock that the group needs: nothing of the group was written."""

    exit_code = 3


class Rejected(Failed):
    """The store does not accept a row of the group: nothing of the group was written."""


class Broken(Failed):
    """The store can promise nothing any more: the process must end."""


class Lost(Failed):
    """The connection to the store broke: what was to be written may be there or not, and may be sent again."""


class Conflict(Broken):
    """Somebody else wrote this id or number first, in a store that several share: nothing of the group was written."""


class Damaged(BadInput):
    """Bytes were changed since they were written."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what, "rows as they were written", "restore a backup; driftwise verify names all of it")


def viewed(open_: Callable[[], _Opened]) -> _Opened:
    """Another view of a store that is being served. Where it does not open, descriptors or the server are lacking now:
    the caller of a request asked for nothing wrong."""
    try:
        return open_()
    except Damaged:
        raise
    except BadInput as slip:
        raise Lost(str(slip)) from None


class Taken(BadInput):
    """Another process has the store."""

    exit_code = 3


class Store(Protocol):
    """Where decisions and rewards are written; `shared` says whether several servers do."""

    shared: bool

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...
    def aside(self) -> Store:
        """Another connection: each of its reads sees what is committed by then, and none waits for this store."""

    def add_stream(self, name: str, at: float) -> int: ...
    def set_paused(self, stream: int, paused: bool) -> None: ...
    def add_era(self, row: EraRow) -> None: ...
    def arm_set(self, digest: bytes, n: int, data: bytes) -> int:
        """The number of a set of arms of this sha256, which is written where it is new."""

    def arm_sets(self, wanted: Sequence[tuple[bytes, int, bytes]]) -> list[int]:
        """The same of many."""

    def add_decisions(self, rows: Sequence[Sequence[Any]]) -> None:
        """Rows as DecisionRow has them."""

    def add_rewards(self, rows: Sequence[RewardRow]) -> None: ...
    def add_digests(self, rows: Sequence[DigestRow]) -> None: ...
    def add_snapshot(self, row: SnapshotRow) -> None:
        """Write a snapshot; only the newest three of an era stay, and that at its base."""

    def add_items(self, stream: int, rows: Sequence[tuple[str, str]]) -> None: ...

    def streams(self) -> list[StreamRow]: ...
    def eras(self, stream: int) -> list[EraRow]: ...
    def items(self, stream: int) -> list[tuple[str, str]]: ...
    def keys(self) -> list[KeyRow]:
        """All keys there ever were, revoked ones too, in the order they were made."""

    def decision(self, stream: int, id: str) -> DecisionRow | None: ...
    def reward(self, stream: int, id: str) -> RewardRow | None: ...
    def open_decisions(self, stream: int, after: int, upto: int, most: int) -> list[OpenRow]:
        """The first few decisions after a number that have no reward."""

    def defaults(self, stream: int, upto: int = 2**62) -> dict[str, int]:
        """How many rewards up to a number were not sent but defaults, by verdict: `defaulted` or `expired`."""

    def last_decision(self, stream: int) -> DecisionRow | None: ...
    def last_reward(self, stream: int) -> RewardRow | None: ...
    def decisions(self, stream: int, era: int | None = None) -> Iterator[DecisionRow]:
        """In the order of the states they were chosen on."""

    def rewards(self, stream: int, after: int = 0, upto: int | None = None) -> Iterator[RewardRow]: ...
    def arms(self, number: int) -> tuple[bytes, int, bytes] | None:
        """sha256, n and data of a set of arms; none where it was forgotten."""

    def snapshots(self, stream: int, era: int) -> list[SnapshotRow]:
        """The newest first."""

    def digests(self, stream: int, era: int) -> dict[int, str]: ...
