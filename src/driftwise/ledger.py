"""What becomes of a decision and of its rewards (docs/contract.md#rewards): the rules that agents and streams share.

All functions are pure: they read no clock, write nothing and wait for nothing. An agent adds locks and a book, a stream
of the service adds transactions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from driftwise._internal.validate import real
from driftwise.errors import BadInput
from driftwise.tables.schema import LESSONS, VERDICTS

__all__ = ["CLOSED", "LESSONS", "Conflict", "Terms", "Verdict", "settle", "terms_of"]


class Verdict(StrEnum):
    """What became of a reward, or of a decision."""

    OPEN = "open"
    LEARNED = "learned"
    DUPLICATE = "duplicate"
    LATE = "late"
    DEFAULTED = "defaulted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    KEPT = "kept"  # written by a service and not learned: of a unit that is kept out of training, or of a fallback


# What can be written down of a decision, in the order of the codes in a snapshot.
CLOSED = tuple(map(Verdict, VERDICTS))


class Conflict(StrEnum):
    """Why a reward is refused: the decision has another one, or was never carried out."""

    OTHER = "other reward"
    CANCELLED = "cancelled"


class Terms(NamedTuple):
    """What rewards may be, how old in ticks a decision may be when its reward comes, and what is learned of one that
    is older."""

    low: float
    high: float
    expire_after: float | None = None
    default: float | None = None

    def checked(self, value: object) -> float:
        """A reward in its range, or the one sentence."""
        if type(value) is float and self.low <= value <= self.high:
            return value
        number = float(value) if isinstance(value, (bool, np.bool_)) else value
        return real("value", number, self.low, self.high, way_out="leave it out, or declare other rewards=")

    def overdue(self, born: int, tick: int) -> bool:
        """Whether the time of a decision is over."""
        return self.expire_after is not None and tick - born > self.expire_after

    def limit(self, tick: int) -> float:
        """The time of what was born before this tick is over."""
        return -np.inf if self.expire_after is None else tick - self.expire_after


def terms_of(low: float, high: float, expire_after: float | None, default: float | None) -> Terms:
    """Terms whose default is a reward that can become due, or the one sentence."""
    if default is not None:
        if expire_after is None:
            raise BadInput("default_reward", default, "expire_after= with it", "say when it is due")
        default = real("default_reward", default, low, high)
    return Terms(low, high, expire_after, default)


def settle(verdict: Verdict, first: float, value: float, overdue: bool = False) -> Verdict | Conflict:
    """What a reward gets whose decision has this verdict, of the reward `first` where one came.

    The first reward of an open decision is learned, or late where its time is over. The same reward again changes
    nothing; another is refused, because the first stands. After a default or an expiry all are late.
    """
    if verdict is Verdict.OPEN:
        return Verdict.LATE if overdue else Verdict.LEARNED
    if verdict is Verdict.CANCELLED:
        return Conflict.CANCELLED
    if verdict in (Verdict.DEFAULTED, Verdict.EXPIRED):
        return Verdict.LATE
    if first != value:
        return Conflict.OTHER
    return Verdict.LATE if verdict is Verdict.LATE else Verdict.DUPLICATE
