"""The wire (docs/contract.md#the-wire): requests, answers, the one shape of an error, and the limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from driftwise.errors import BadInput, DriftwiseError
from driftwise.service.stores.records import Damaged, Failed, Rejected
from driftwise.service.wire.codes import CODES, STATUS

MOST_BODY = 1 << 20  # bytes of a request
MOST_HEAD = 32 << 10  # bytes of its URL and headers
MOST_HEADERS = 100
MOST_CHUNKS = 4096  # chunks of a body
MOST_PIPELINED = 64  # requests that a connection may send before an answer is read
MOST_ARMS = 10_000
MOST_NUMBERS = 1_000_000  # n·d of one set of arms
MOST_BATCH = 1_000
MOST_WAITING = 256  # requests that may wait for their group; more are refused

Mode = Literal["live", "shadow", "holdback"]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
Text = Annotated[str, Meta(max_length=1000)]
Row = Annotated[list[float], Meta(min_length=1)]
_NUL = b"\\u0000"  # the only form in JSON
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class Wire(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The base of all bodies: fields by name; unknown fields are refused."""


class GuardrailBody(Wire):
    """A metric sent with rewards that the policy must not worsen by more than a margin."""

    margin: Annotated[float, Meta(ge=0.0)]
    better: Literal["lower", "higher"] = "lower"


class StreamBody(Wire):
    """A stream: its policy, the range of rewards, its clock, and its mode."""

    policy: dict[str, Any]
    rewards: tuple[float, float]
    clock: Literal["wall", "rewards"] = "rewards"
    half_life: float | str | None = None
    tick: float | str | None = None
    epsilon: Share = 0.0
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 0
    expire_after: float | str | None = None
    default_reward: float | None = None
    mode: Mode = "live"
    holdback: Share = 0.1
    baseline: Literal["first", "uniform"] = "first"
    features: dict[str, Any] | None = None
    ramp: Annotated[list[Share], Meta(max_length=20)] | None = None
    margin: float = 0.0
    guardrails: Annotated[dict[Text, GuardrailBody], Meta(max_length=10)] | None = None
    keep_out: Share = 0.0


class PauseBody(Wire):
    """The arm that is played while the stream is paused: an item, or the index of an arm. Without it, no decisions are
    made.
    """

    fallback: Count | Text | None = None


class DecideBody(Wire):
    """Arms as rows of numbers, as base64 of little-endian float64 rows with their number n, or as items in a context.

    In shadow mode `action` is the arm that the caller plays, with the caller's `propensity`. In holdback mode `unit`
    says which unit may be held back; without it the id is used. `allowed` is a boolean for each arm, or indices of the
    arms that may be played; `cost` of each arm is subtracted from its score.
    """

    id: Id | None = None
    arms: Annotated[list[Row], Meta(min_length=1, max_length=MOST_ARMS)] | None = None
    arms64: str | None = None
    n: Annotated[int, Meta(ge=1, le=MOST_ARMS)] | None = None
    context: dict[Text, float | Text | bool | None] | None = None
    items: Annotated[list[Text], Meta(min_length=1, max_length=MOST_ARMS)] | None = None
    action: Count | None = None
    propensity: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    unit: Text | None = None
    allowed: Annotated[list[bool | Count], Meta(max_length=MOST_ARMS)] | None = None
    cost: Annotated[list[float], Meta(max_length=MOST_ARMS)] | None = None


class RewardBody(Wire):
    """The reward of a decision."""

    id: Id
    value: float
    metrics: Annotated[dict[Text, float], Meta(max_length=10)] | None = None


class ForgetBody(Wire):
    """The time before which closed decisions are forgotten, or the unit whose decisions are forgotten."""

    before: Annotated[str, Meta(max_length=64)] | None = None
    unit: Text | None = None


class DeleteBody(Wire):
    """The name of the stream, as confirmation. `force` deletes it also if decisions wait for their rewards."""

    name: str
    force: bool = False


class ItemsBody(Wire):
    """Rows of items by name. Decisions refer to the names."""

    items: dict[Text, dict[Text, float | Text | bool | None]]


class Decided(Wire, gc=False):
    """A decision. `cohort` says who chose; `proposed` is the policy's own arm if another was played."""

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
    cohort: Literal["live", "shadow", "baseline", "fallback"]
    proposed: int | None = None


class Rewarded(Wire, gc=False):
    """The verdict on a reward, and its number among the rewards of the stream."""

    verdict: Literal["learned", "duplicate", "late", "kept"]
    seq: int


class Counts(Wire):
    """Events of a stream since it was made: decisions, first rewards learned, rewards that came after their decision
    had expired or got its default, decisions that wait, and defaults learned.

    If the stream has a default, no row is written for a reward that comes after it. `late` counts such rewards since
    the server (of several replicas, the one that answers) started.
    """

    decided: int
    learned: int
    late: int
    open: int
    defaulted: int = 0
    kept: int = 0


class RampAnswer(Wire):
    """The step of a ramp: the share of units that get the policy now, and whether it was stopped."""

    place: int
    share: float
    stopped: bool


class StreamAnswer(Wire):
    """The state of a stream: `digest` is that of the state after `state_seq` rewards."""

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
    ramp: RampAnswer | None = None


class Arm(Wire):
    """An arm as the policy saw it when it decided: score = mean + bonus - cost."""

    arm: int
    item: str | None
    score: float
    mean: float
    bonus: float
    cost: float | None = None


class Streams(Wire):
    """The streams that the caller may see, by name, and the names of deleted streams."""

    streams: list[StreamAnswer]
    deleted: list[str]


class Explained(Wire):
    """One decision recomputed from the log: the arms by score, the best first, and its reward.

    `recomputed` says that arm, score and propensity are equal to the last bit. It is null if the arms or earlier
    rewards were forgotten, and if another machine computed the decision and the result differs here.
    """

    decision: Decided
    born: int
    at: float
    policy: str
    arms: list[Arm]
    recomputed: bool | None
    reward: float | None = None
    verdict: str = "open"
    trace: str | None = None


class Error(Wire):
    """The one shape of a refusal: a stable code, and a sentence that may change. Members of a batch have `status`."""

    code: Annotated[str, Meta(extra_json_schema={"enum": list(STATUS)})]
    error: str
    field: str
    hint: str
    status: int = 0


class Health(Wire):
    """Whether the server is healthy; if not, why."""

    status: Literal["fine", "starting", "full", "away", "stopping"]
    reason: str = ""


# The hint for a ball, a box or a curve that is sent as arms.
_HINTS = {"arms": "send lists of numbers, one per arm; continuous sets work only with a dw.Agent"}


class Refusal(DriftwiseError):
    """A refused request: its code (codes.py), and texts that replace the code's own."""

    def __init__(self, code: str, error: str = "", field: str = "", hint: str = "", retry_after: int = 0) -> None:
        told = CODES[code]
        super().__init__(error or told.meaning)
        self.status, self.retry_after = told.status, retry_after or told.retry_after
        self.answer = Error(code=code, error=str(self), field=field or told.field, hint=hint or told.hint)


class Stale(Refusal):
    """The stream changed while a change to it was computed. Nothing was written, and the change is computed again."""

    def __init__(self) -> None:
        super().__init__("stream_changed")


def other_result(what: object, field: str = "") -> Refusal:
    """The refusal if a recomputation differs from the log."""
    return Refusal("other_result", f"recomputing the log gives another result than was written: {what}", field)


def decoder(kind: Any) -> Callable[[bytes | bytearray], Any]:
    """A function that decodes a body of one type. A NUL in any text is refused, because PostgreSQL cannot store it."""
    decode = msgspec.json.Decoder(kind).decode

    def decoded(raw: bytes | bytearray) -> Any:
        body = decode(raw)
        if _NUL in raw:
            plain = msgspec.to_builtins(body)
            for field, value in plain.items() if isinstance(plain, dict) else [("body", plain)]:
                if _has_nul(value):
                    raise Refusal("nul_character", field=field)
        return body

    return decoded


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(name) or _has_nul(one) for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value


def refusal_of(error: BaseException) -> Refusal:
    """The refusal for an exception that was raised on purpose."""
    if isinstance(error, Refusal):
        return error.with_traceback(None)  # the frames of a traceback would keep the body in memory
    if isinstance(error, Damaged):
        return Refusal("database_damaged", str(error), hint=error.way_out)
    if isinstance(error, Rejected):
        return Refusal("rejected_row", f"the database does not accept the row: {error}")
    if isinstance(error, Failed):  # of a request that only reads; the engine answers groups
        return Refusal("database_unreadable")
    if isinstance(error, BadInput):
        sentence = str(error).removesuffix(f"; {error.way_out}")
        return Refusal("invalid_value", sentence, error.parameter, error.way_out)
    if isinstance(error, msgspec.ValidationError):
        what, _, where = str(error).partition(" - at `$")
        field = where.strip("`.")
        return Refusal("invalid_field", what, field, _HINTS.get(field, ""))
    if isinstance(error, (msgspec.DecodeError, UnicodeError, RecursionError)):
        return Refusal("invalid_json", f"not JSON: {error}"[:200])
    if isinstance(error, DriftwiseError):
        return Refusal("not_learned", str(error))
    raise error


def error_of(error: BaseException) -> Error:
    """The entry of a batch for an exception that was raised on purpose."""
    refusal = refusal_of(error)
    return msgspec.structs.replace(refusal.answer, status=refusal.status)


def checked_name(name: str) -> str:
    """The name of a stream."""
    if not _NAME.fullmatch(name):
        raise Refusal("invalid_name")
    return name
