"""Memories: the weight of an observation of a given age, and what other code needs to know of a memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from driftwise._internal.elementary import exp, log, log1p
from driftwise._internal.validate import array, keep_whole, real
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.policies.half_life import Timed
from driftwise.policies.plain import later

# The place of lessons within a tick of the wall clock: near the middle, but not at a half, at which a period may end.
INSIDE = 0.5 + 2.0**-10


@dataclass(frozen=True)
class Memory:
    """The interface of a memory. No code checks the type of a memory. A subclass overrides what differs.

    `code` is that of its file in kernels/memories. `geometric`: weights are γ^age whatever the clock, so sums only
    fade. `sliding`: weights are 1 up to the age `length` and 0 after it. `one_pass`: an estimate without a history can
    follow it. `forget` is 1-γ, the share that a tick removes
    from all weights. `length` is the age, or the time on the clock, at which observations are dropped. A memory that
    keeps single observations has `room` for that many. A field given as a time ("7d") is `timed`, and counts nothing
    before `in_ticks` is given a tick.
    """

    code: ClassVar[int]
    geometric: ClassVar[bool] = False
    sliding: ClassVar[bool] = False
    one_pass: ClassVar[bool] = True
    forget = 0.0
    length = math.inf

    @classmethod
    def lasting(cls, rounds: float) -> Memory:
        """A memory of its kind that forgets nothing before the clock shows this number of rounds."""
        raise NotImplementedError

    def weight(self, age: float, now: float = math.inf) -> float:
        """The weight at time `now` of an observation of this age."""
        raise NotImplementedError

    @property
    def rounds(self) -> float:
        """Rounds remembered: the sum of all weights with one reward per round."""
        raise NotImplementedError

    def room(self) -> int:
        """Places for single observations, for memories that remove or weigh them one by one."""
        return 0

    def full(self) -> str:
        """The advice for a caller with more observations than there is room for."""
        name = type(self).__name__
        return (
            f"{name} with room for {self.room()} observations is full and drops the oldest, which still count: "
            f"pass a larger capacity= to {name}"
        )

    def span(self, least: float) -> float:
        """The number of observations, one per tick, that can weigh `least` or more at a time."""
        return self.rounds

    @property
    def listed(self) -> tuple[float, ...]:
        """Times on the clock that are stored after the columns of the table."""
        return ()

    def numbers(self) -> tuple[float, float, float]:
        """γ, log γ and length, for the table."""
        if self.timed:
            wanted = "a memory counted in rounds: only an agent on the wall clock knows how long a tick is"
            raise BadInput("memory", self, wanted, 'pass rounds, or dw.Agent(policy, clock="wall", rewards=…)')
        return 1.0 - self.forget, log1p(-self.forget), self.length

    @property
    def timed(self) -> dict[str, Timed]:
        """The fields that were given in time."""
        return {one.name: value for one in fields(self) if isinstance(value := getattr(self, one.name), Timed)}

    def in_ticks(self, tick: float) -> Memory:
        """The memory with its times counted in ticks of this many seconds."""
        return replace(self, **{name: value.in_ticks(tick) for name, value in self.timed.items()})

    def phase(self, tick: float) -> float:
        """The clock of a state that starts at this tick of the wall clock. It differs from 0 only where a time of day
        matters."""
        return 0.0

    def _take_time(self, name: str, halves: bool = False) -> None:
        """If a field was given as text, store the time it means."""
        given: Any = getattr(self, name)
        if isinstance(given, str):
            object.__setattr__(self, name, Timed(name, given, halves))


@dataclass(frozen=True)
class Keep(Memory):
    """Nothing is forgotten: weight 1 at every age."""

    code = point.KEEP
    geometric = True

    @classmethod
    def lasting(cls, rounds: float) -> Keep:
        return cls()

    def weight(self, age: float, now: float = math.inf) -> float:
        return 1.0

    @property
    def rounds(self) -> float:
        return math.inf


@dataclass(frozen=True)
class Fade(Memory):
    """Weight γ^age, γ = 1 - forget. forget = 0 keeps everything; 1/forget is the memory in rounds.

    For an agent on the wall clock, Fade("14d") is the fade with that half-life.
    """

    forget: float = field()
    code = point.FADE
    geometric = True
    if TYPE_CHECKING:

        def __init__(self, forget: float | str) -> None: ...

    def __post_init__(self) -> None:
        self._take_time("forget", halves=True)
        real("forget", self.forget, 0.0, 1.0, high_open=True, way_out="γ = 1 - forget must lie in (0, 1]")

    @classmethod
    def lasting(cls, rounds: float) -> Fade:
        return cls(0.0)

    def weight(self, age: float, now: float = math.inf) -> float:
        return exp(age * log1p(-self.forget))

    @property
    def rounds(self) -> float:
        return math.inf if self.forget == 0.0 else 1.0 / self.forget

    def span(self, least: float) -> float:
        if self.forget == 0.0 or least <= 0.0:
            return math.inf
        return max(0.0, log(1.0 / least)) / -log1p(-self.forget)


@dataclass(frozen=True)
class Window(Memory):
    """Weight 1 for observations younger than `length`, 0 after.

    `capacity` is how many observations can be held at once, by default one per round of the window. If more arrive, the
    oldest is dropped and counted. For an agent on the wall clock the length may be a time such as "7d".
    """

    length: float = field()
    capacity: int | None = None
    code = point.WINDOW
    sliding = True
    one_pass = False
    if TYPE_CHECKING:

        def __init__(self, length: float | str, capacity: int | None = None) -> None: ...

    def __post_init__(self) -> None:
        self._take_time("length")
        real("length", self.length, 0.0, 2.0**53, low_open=True, way_out="pass rounds, e.g. 100")
        if self.capacity is not None:
            keep_whole(self, "capacity")

    @classmethod
    def lasting(cls, rounds: float) -> Window:
        return cls(rounds)

    def weight(self, age: float, now: float = math.inf) -> float:
        return 1.0 if age < self.length else 0.0

    @property
    def rounds(self) -> float:
        return float(self.length)

    def room(self) -> int:
        return self.capacity if self.capacity is not None else max(1, math.ceil(self.length))

    def full(self) -> str:
        return (
            f"a window with room for {self.room()} observations is full and drops some that are younger than its "
            "length: pass capacity= to Window, the rewards that come in one length"
        )

    def span(self, least: float) -> float:
        return self.room()


@dataclass(frozen=True)
class Restart(Memory):
    """Everything is forgotten when the clock passes a multiple of `period`: rounds, or a time such as "1d".

    On the wall clock multiples count from 1970, so a period of a day ends at midnight UTC. The first tick of a period
    belongs to it. Restart(at=(1000, 2000)) forgets at these rounds instead: what was learned in the first 1000 rounds
    is gone before round 1001 is chosen. It is the oracle that knows when θ jumps.
    """

    period: float | None = field(default=None, metadata={"offered": True})
    at: tuple[float, ...] = later(())
    if TYPE_CHECKING:

        def __init__(self, period: float | str | None = None, at: Iterable[float] = ()) -> None: ...

    def __post_init__(self) -> None:
        if self.period is not None or not self._listed():
            self._take_time("period")
            real("period", self.period, 0.0, low_open=True, way_out="pass rounds, e.g. 100, or at=(1000, 2000)")
        if self.period is not None and self.at != ():
            raise BadInput("at", self.at, "a period or at, not both", "leave one of them out")

    def _listed(self) -> bool:
        """Store `at` as a tuple of increasing numbers. Returns whether there are any."""
        if isinstance(self.at, tuple) and not self.at:
            return False
        rows = array("at", self.at, (None,), "pass the rounds after which to restart, e.g. at=(1000, 2000)")
        if not rows.size or (np.diff(rows, prepend=0.0) <= 0.0).any():
            raise BadInput("at", self.at, "rising numbers above 0", "pass at=(1000, 2000), say")
        object.__setattr__(self, "at", tuple(map(float, rows)))
        return True

    @property
    def code(self) -> int:  # type: ignore[override]
        return point.RESTART_AT if self.at else point.RESTART

    @classmethod
    def lasting(cls, rounds: float) -> Restart:
        return cls(rounds)

    def weight(self, age: float, now: float = math.inf) -> float:
        """Observations up to the last restart have weight 0; without a clock, those older than one period."""
        if self.at:
            last = max((one for one in self.at if one <= now), default=0.0)
            return 1.0 if last <= 0.0 or math.isinf(now) or now - age > last else 0.0
        if math.isinf(now):
            return 1.0 if age < self.rounds else 0.0
        last = self.rounds * math.floor(now / self.rounds)
        return 1.0 if last <= 0.0 or now - age > last else 0.0

    def phase(self, tick: float) -> float:
        """The time since the last multiple of the period, plus INSIDE a tick: what is learned at the tick of a multiple
        comes after it. (On the round clock the round of a multiple is the last of its period.)"""
        if self.at:
            raise BadInput("memory", self, "Restart(period) on the wall clock", "at= counts rounds")
        return tick % self.rounds + INSIDE

    @property
    def rounds(self) -> float:
        return math.inf if self.period is None else float(self.period)

    @property
    def length(self) -> float:  # type: ignore[override]
        return self.rounds

    @property
    def listed(self) -> tuple[float, ...]:
        return self.at


# Every memory by name: what a spec may name, a sentence offer, and a law be tried on.
KINDS: dict[str, type[Memory]] = {one.__name__: one for one in (Keep, Fade, Window, Restart)}


def _needed(one: Field[Any]) -> bool:
    return one.default is MISSING or bool(one.metadata.get("offered"))


def offered(kinds: Iterable[type[Memory]]) -> str:
    """Memories with their fields, for an error message."""
    *most, last = (
        f"{kind.__name__}({', '.join(one.name for one in fields(kind) if _needed(one))})" for kind in kinds
    )
    return f"{', '.join(most)} or {last}"


def checked_memory(memory: object) -> Memory:
    """A memory, or BadInput."""
    if not isinstance(memory, Memory):
        raise BadInput("memory", memory, offered(KINDS.values()), "pass dw.Keep()")
    return memory
