"""What Python calls of a family, and what a live call looks up of its policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels.point import DAMAGED
from driftwise.kernels.rounds import Family
from driftwise.policies.state import Layout

# ρ̂ of a policy that tests nothing: its family's entries serve MASTER too.
NO_TESTS = np.zeros(0)


class Entries(NamedTuple):
    """The compiled entries of a family. `learn` with arm -1 lets time pass without an observation."""

    scores: Callable[..., Any]
    learn: Callable[..., Any]
    family: Family  # what rounds are bound to
    fold: Callable[..., Any] | None = None  # many lessons in one call
    form: Callable[..., Any] | None = None  # the index as a function of any x
    ball: Callable[..., Any] | None = None  # its largest point on a ball or an ellipsoid, in one call
    score_many: Callable[..., Any] | None = None  # scores of many arms, to the same bits


@dataclass(frozen=True, slots=True)
class Live:
    """What a live call needs of a policy, in slots, which are read faster than a tuple's fields.

    `straight`: a choice is the best of a list by one entry. `plain`: a lesson is one entry and nothing else.
    """

    scores: Callable[..., int]
    learn: Callable[..., int]
    flags: Any  # of the policy's point, as entries take them
    table: Any
    layout: Layout
    dim: int
    L: float
    low: float
    high: float
    straight: bool
    plain: bool
    many: float  # from so many arms on they are scored by another entry, to the same bits
    score_many: Callable[..., int]
    form: Callable[..., int] | None
    ball: Callable[..., int] | None
    judged: bool
    nothing: Any  # no scratch, as entries take it

    @property
    def point(self) -> tuple[Any, Any]:
        return self.flags, self.table


def report(status: int) -> None:
    """What an entry reported by value."""
    if status == DAMAGED:
        wanted = "a state as start() or from_bytes() gave it, changed by its policy alone"
        raise BadInput("state", "a cursor or a mark out of range", wanted, "go on from the last one saved")
