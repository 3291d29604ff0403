"""What is forgotten: the weight of an observation of a given age."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from driftwise.border import keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels import point


@dataclass(frozen=True)
class Keep:
    """Nothing is forgotten: weight 1 at every age."""

    code = point.KEEP

    def numbers(self) -> tuple[float, float, float]:
        """γ, log γ and length, for the table."""
        return 1.0, 0.0, math.inf

    def room(self) -> int:
        """Places needed to keep single observations."""
        return 0

    def weight(self, age: float) -> float:
        """The weight of an observation of this age."""
        return 1.0


@dataclass(frozen=True)
class Fade:
    """Weight γ^age, γ = 1 - forget. forget = 0 keeps everything; 1/forget is the memory in rounds."""

    forget: float
    code = point.FADE

    def __post_init__(self) -> None:
        real("forget", self.forget, 0.0, 1.0, high_open=True, way_out="γ = 1 - forget must lie in (0, 1]")

    def numbers(self) -> tuple[float, float, float]:
        return 1.0 - self.forget, math.log1p(-self.forget), math.inf

    def room(self) -> int:
        return 0

    def weight(self, age: float) -> float:
        return math.exp(age * math.log1p(-self.forget))


@dataclass(frozen=True)
class Window:
    """Weight 1 for observations younger than `length`, 0 after.

    `capacity` is how many observations can be held at once, by default one per round of the window; when a
    live system has more, the oldest goes first and is counted.
    """

    length: float
    capacity: int | None = None
    code = point.WINDOW

    def __post_init__(self) -> None:
        real("length", self.length, 0.0, 2.0**53, low_open=True, way_out="pass rounds, e.g. 100")
        if self.capacity is not None:
            keep_whole(self, "capacity")

    def numbers(self) -> tuple[float, float, float]:
        return 1.0, 0.0, float(self.length)

    def room(self) -> int:
        return self.capacity if self.capacity is not None else max(1, math.ceil(self.length))

    def weight(self, age: float) -> float:
        return 1.0 if age < self.length else 0.0


@dataclass(frozen=True)
class Restart:
    """Everything is forgotten whenever the clock passes a multiple of `period`."""

    period: float
    code = point.RESTART

    def __post_init__(self) -> None:
        real("period", self.period, 0.0, low_open=True, way_out="pass rounds, e.g. 100")

    def numbers(self) -> tuple[float, float, float]:
        return 1.0, 0.0, float(self.period)

    def room(self) -> int:
        return 0

    def weight(self, age: float) -> float:
        """Within one period; what lies behind a restart has weight 0 whatever its age."""
        return 1.0 if age < self.period else 0.0


Memory: TypeAlias = Keep | Fade | Window | Restart


def checked_memory(memory: object) -> Memory:
    """A memory, or the one sentence."""
    if not isinstance(memory, (Keep, Fade, Window, Restart)):
        raise BadInput("memory", memory, "Keep(), Fade(forget), Window(length) or Restart(period)", "pass dw.Keep()")
    return memory
