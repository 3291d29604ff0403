"""Types of what the client sends and gets, for editors and type checkers. They need no package, because a client does
not install msgspec, which the wire's own structs (wire/protocol.py) need. A test holds both to the same names.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

Verdict = Literal["learned", "duplicate", "late", "kept"]
Mode = Literal["live", "shadow", "holdback"]


class Settings(TypedDict, total=False):
    """The settings of a stream: its policy, the range of rewards, its clock, and its mode."""

    policy: Mapping[str, Any]
    rewards: Sequence[float]
    clock: Literal["wall", "rewards"]
    half_life: str | float | None
    tick: str | float | None
    epsilon: float
    seed: int
    expire_after: str | float | None
    default_reward: float | None
    mode: Mode
    holdback: float
    baseline: Literal["first", "uniform"]
    features: Mapping[str, Any] | None
    ramp: Sequence[float] | None
    margin: float
    guardrails: Mapping[str, Mapping[str, Any]] | None
    keep_out: float


class Decided(TypedDict):
    """A decision. `proposed` is set if another arm than the policy's own was played."""

    id: str
    arm: int
    item: str | None
    score: float
    mean: float
    bonus: float
    propensity: float | None
    explored: bool
    seq: int
    state_seq: int
    cohort: str
    proposed: NotRequired[int | None]


class Rewarded(TypedDict):
    """The verdict on a reward."""

    verdict: Verdict
    seq: int


class Refusal(TypedDict):
    """The entry of a batch for a member that was refused."""

    code: str
    error: str
    field: str
    hint: str
    status: NotRequired[int]


class Items(TypedDict):
    """How many items a stream knows."""

    items: int


class Counts(TypedDict):
    """Events of a stream since it was made."""

    decided: int
    learned: int
    late: int
    open: int
    defaulted: NotRequired[int]
    kept: NotRequired[int]


class RampAnswer(TypedDict):
    """The step of a ramp: the share of units that get the policy now, and whether it was stopped."""

    place: int
    share: float
    stopped: bool


class StreamAnswer(TypedDict):
    """The current state of a stream."""

    stream: str
    mode: Mode
    clock: Literal["wall", "rewards"]
    policy: str
    era: int
    paused: bool
    seq: int
    state_seq: int
    digest: str
    counts: Counts
    ramp: NotRequired[RampAnswer | None]


class Streams(TypedDict):
    """The streams that the key may see, and the names of deleted streams."""

    streams: list[StreamAnswer]
    deleted: list[str]


class Deleted(TypedDict):
    """The name of a deleted stream."""

    deleted: str


class Arm(TypedDict):
    """An arm as the policy saw it when it decided: score = mean + bonus - cost."""

    arm: int
    item: str | None
    score: float
    mean: float
    bonus: float
    cost: NotRequired[float | None]


class Explained(TypedDict):
    """A decision recomputed from the log; `recomputed` is None if it cannot be computed here."""

    decision: Decided
    born: int
    at: float
    policy: str
    arms: list[Arm]
    recomputed: bool | None
    reward: NotRequired[float | None]
    verdict: NotRequired[str]
    trace: NotRequired[str | None]
