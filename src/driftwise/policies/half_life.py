"""The length of a memory in four units: half-life, forget = 1-γ, rounds remembered, and the window alike.

A weight of γ^age halves after log 2/log(1/γ) ticks. All weights of a reward a tick add up to 1/forget, the rounds
remembered. A window of (1+γ)/(1-γ) ticks has the mean age and the effective observations (Σw)²/Σw² of the fade.
Spans are counted in ticks, or given as time ("90s", "30m", "12h", "14d", "2w") with the tick they are counted in.
"""

from __future__ import annotations

import math
import re
from typing import Literal

from driftwise._internal.elementary import LN2, expm1, log1p
from driftwise._internal.validate import one_of, real
from driftwise.errors import BadInput

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", re.ASCII)


def seconds(name: str, span: object) -> float:
    """A time in seconds: a number of them, or a text such as "14d"."""
    if isinstance(span, str):
        found = _SPAN.fullmatch(span)
        if found is None or not len(span) < 40:
            raise BadInput(name, span, 'a span of time such as "90s", "30m", "12h", "14d" or "2w"', 'pass "14d", say')
        span = float(found[1]) * _UNITS[found[2]]
    return real(name, span, 0.0, 1e12, low_open=True, way_out='pass seconds, or a span such as "14d"')


class Timed(float):
    """A number of a memory that was given as a time, such as "7d", before the length of a tick is known.

    As a number it has the value for ticks of a second, so that a policy can be made and checked; kernels never see it
    (`Memory.numbers`). `halves`: the time is the half-life of a fade, and the number its forget.
    """

    __slots__ = ("halves", "span")
    span: str
    halves: bool

    def __new__(cls, name: str, span: str, halves: bool = False) -> Timed:
        known = cls._number(seconds(name, span), halves)
        made = super().__new__(cls, known)
        made.span, made.halves = span, halves
        return made

    @staticmethod
    def _number(ticks: float, halves: bool) -> float:
        return convert_memory(ticks, "half_life", "forget") if halves else ticks

    def in_ticks(self, tick: float) -> float:
        """The number itself, with ticks of so many seconds."""
        return self._number(self.seconds / tick, self.halves)

    @property
    def seconds(self) -> float:
        """The span in seconds."""
        return seconds("span", self.span)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timed) and (self.span, self.halves) == (other.span, other.halves)

    def __hash__(self) -> int:
        return hash((self.span, self.halves))

    def __repr__(self) -> str:
        return repr(self.span)

    def __reduce__(self) -> tuple[type[Timed], tuple[str, str, bool]]:
        return Timed, ("span", self.span, self.halves)


def ticks(name: str, span: object, tick: object = None) -> float:
    """A time or a number in ticks; a time needs the length of a tick."""
    if isinstance(span, str) or tick is not None:
        if tick is None:
            raise BadInput(name, span, "a number of ticks where no tick is given", 'pass tick="20m", say, or a number')
        return seconds(name, span) / seconds("tick", tick)
    return real(name, span, 0.0, low_open=True, way_out="pass a number of rounds, e.g. 500")


Unit = Literal["forget", "half_life", "rounds", "window"]
UNITS = ("forget", "half_life", "rounds", "window")


def convert_memory(
    value: float | str, source: Unit | None = None, target: Unit | None = None, *, tick: float | str | None = None
) -> float:
    """The length of a fading memory in another unit.

    The units are "forget" (1-γ, the share of weight that an observation loses in a tick), "half_life" (ticks in which a
    weight halves, log 2/log(1/γ)), "rounds" (rounds remembered, 1/forget) and "window" (the length of the window with
    the same mean age and effective observations, 2/forget - 1). A value of the last three may be a time such as "14d";
    `tick` is then the length of a tick. forget = 0 is an infinite length in the other units.
    """
    for name, unit in (("source", source), ("target", target)):
        if unit is None:
            wanted = "the units of the value and of the result: " + ", ".join(UNITS)
            raise BadInput(name, "nothing", wanted, 'pass convert_memory(500, "half_life", "forget")')
        one_of(name, unit, UNITS)
    forget = _forget_of(value, source, tick)
    if target == "forget":
        return forget
    if forget == 0.0:
        return math.inf
    if target == "half_life":
        return LN2 / -log1p(-forget)
    return 1.0 / forget if target == "rounds" else 2.0 / forget - 1.0


def _forget_of(value: float | str, source: Unit | None, tick: float | str | None) -> float:
    """forget of a memory in another unit."""
    if source == "forget":
        if tick is not None:
            raise BadInput("tick", tick, "no tick beside forget, which is a share and no time", "leave it out")
        way_out = "γ = 1 - forget must lie in (0, 1]"
        return real("forget", value, 0.0, 1.0, high_open=True, way_out=way_out)
    if source == "half_life":
        return -expm1(-LN2 / ticks("half_life", value, tick))
    if source == "rounds" and value == math.inf:
        return 0.0
    name = "rounds" if source == "rounds" else "length"
    length = real(name, ticks(name, value, tick), 1.0, low_open=True, way_out="pass more than one round")
    return 1.0 / length if source == "rounds" else 2.0 / (length + 1.0)
