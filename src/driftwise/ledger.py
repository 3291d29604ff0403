"""The rules for decisions and their rewards that agents and streams share (docs/contract.md#rewards).

All functions are pure: they read no clock, write nothing and never block. An agent adds locks and a book; a stream of
the service adds transactions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from driftwise._internal.validate import real
from driftwise.errors import BadInput
from driftwise.tables.schema import LESSONS

__all__ = ["CLOSED", "LESSONS", "NOT_SENT", "Conflict", "Terms", "Verdict", "settle", "terms_of"]


class Verdict(StrEnum):
    """The result of a reward, or the status of a decision."""

    OPEN = "open"
    LEARNED = "learned"
    DUPLICATE = "duplicate"
    LATE = "late"
    DEFAULTED = "defaulted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    KEPT = "kept"  # stored and not learned: the unit is excluded from training, or it was a fallback


# The statuses of a decision, in the order of their codes in a snapshot.
CLOSED = (Verdict.OPEN, Verdict.LEARNED, Verdict.DEFAULTED, Verdict.EXPIRED, Verdict.CANCELLED)
# The statuses of a decision that closed before a reward was sent.
NOT_SENT = (Verdict.DEFAULTED, Verdict.EXPIRED)


class Conflict(StrEnum):
    """Why a reward is refused: the decision has another reward, or was cancelled."""

    OTHER = "other reward"
    CANCELLED = "cancelled"


class Terms(NamedTuple):
    """The range of rewards, the largest age in ticks at which a reward is learned, and the reward that is learned for
    an older decision."""

    low: float
    high: float
    expire_after: float | None = None
    default: float | None = None

    def checked(self, value: object) -> float:
        """The reward if it is in the range; otherwise BadInput."""
        if type(value) is float and self.low <= value <= self.high:
            return value
        number = float(value) if isinstance(value, (bool, np.bool_)) else value
        return real("value", number, self.low, self.high, way_out="leave it out, or declare other rewards=")

    def overdue(self, born: int, tick: int) -> bool:
        """Whether a decision is too old for its reward."""
        return self.expire_after is not None and tick - born > self.expire_after

    def limit(self, tick: int) -> float:
        """Decisions made before this tick are overdue."""
        return -np.inf if self.expire_after is None else tick - self.expire_after

    def unanswered(self, learned: bool = True) -> Verdict:
        """The verdict of an overdue decision without a reward. `learned` says whether a default could be learned."""
        return Verdict.DEFAULTED if learned and self.default is not None else Verdict.EXPIRED

    def was_due(self, verdict: str, value: float, born: int, tick: int) -> bool:
        """Whether a stored reward may be in a log: a default has the declared value, and its decision was overdue."""
        return verdict != Verdict.DEFAULTED or (value == self.default and self.overdue(born, tick))


def terms_of(low: float, high: float, expire_after: float | None, default: float | None) -> Terms:
    """Terms, or BadInput if there is a default reward that can never become due."""
    if default is not None:
        if expire_after is None:
            raise BadInput("default_reward", default, "expire_after= with it", "say when it is due")
        default = real("default_reward", default, low, high)
    return Terms(low, high, expire_after, default)


def settle(
    verdict: Verdict, first: float, value: float, overdue: bool = False, kept_out: bool = False
) -> Verdict | Conflict:
    """The verdict of a reward for a decision with this verdict, whose first reward was `first` if it had one.

    The first reward of an open decision is learned; it is late if the decision is overdue, and only stored if the
    decision is kept out of training. The same reward again changes nothing. Another reward is refused, because the
    first one stands. After a default or an expiry every reward is late.
    """
    if verdict is Verdict.OPEN:
        return Verdict.LATE if overdue else Verdict.KEPT if kept_out else Verdict.LEARNED
    if verdict is Verdict.CANCELLED:
        return Conflict.CANCELLED
    if verdict in NOT_SENT:
        return Verdict.LATE
    if first != value:
        return Conflict.OTHER
    return Verdict.LATE if verdict is Verdict.LATE else Verdict.DUPLICATE
