"""How long a memory lasts, in the words people use: half-life, forget = 1-γ, rounds remembered, and the window alike.

A weight of γ^age halves after log 2/log(1/γ) ticks. All weights of a reward a tick add up to 1/forget, the rounds
remembered. A window of (1+γ)/(1-γ) ticks has the mean age and the effective observations (Σw)²/Σw² of the fade.
Spans are counted in ticks, or given as time ("90s", "30m", "12h", "14d", "2w") with the tick they are counted in.
"""

from __future__ import annotations

import math
import re

from driftwise._internal.validate import real
from driftwise.errors import BadInput

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", re.ASCII)


def seconds(name: str, span: object) -> float:
    """A span of time as seconds: a number of them, or a word such as "14d"."""
    if isinstance(span, str):
        found = _SPAN.fullmatch(span)
        if found is None or not len(span) < 40:
            raise BadInput(name, span, 'a span of time such as "90s", "30m", "12h", "14d" or "2w"', 'pass "14d", say')
        span = float(found[1]) * _UNITS[found[2]]
    return real(name, span, 0.0, 1e12, low_open=True, way_out='pass seconds, or a span such as "14d"')


class Timed(float):
    """A number of a memory that was given in time: words such as "7d", until somebody says what a tick is.

    As a number it is what it would be with ticks of a second, so that a policy can be made of it and checked; kernels
    never see it (`Memory.numbers`). `halves`: the span is the half-life of a fade, and the number its forget.
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
        return half_life_to_forget(ticks) if halves else ticks

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
    """A span in ticks; time needs to be told the tick."""
    if isinstance(span, str) or tick is not None:
        if tick is None:
            raise BadInput(name, span, "a number of ticks where no tick is given", 'pass tick="20m", say, or a number')
        return seconds(name, span) / seconds("tick", tick)
    return real(name, span, 0.0, low_open=True, way_out="pass a number of rounds, e.g. 500")


def span_to_ticks(span: float | str, *, tick: float | str) -> float:
    """A span of time in ticks of this length."""
    return ticks("span", span, tick)


def half_life_to_forget(half_life: float | str, *, tick: float | str | None = None) -> float:
    """forget = 1-γ of the memory in which a weight halves in this time."""
    return -math.expm1(-math.log(2.0) / ticks("half_life", half_life, tick))


def forget_to_half_life(forget: float) -> float:
    """Ticks in which a weight halves; infinite where nothing is forgotten."""
    forget = _checked(forget)
    return math.inf if forget == 0.0 else math.log(2.0) / -math.log1p(-forget)


def rounds_to_forget(rounds: float | str, *, tick: float | str | None = None) -> float:
    """forget = 1-γ of the memory of so many rounds, at least one: 1/rounds, and 0 for infinitely many."""
    if rounds == math.inf:
        return 0.0
    return 1.0 / real("rounds", ticks("rounds", rounds, tick), 1.0, low_open=True, way_out="pass more than one round")


def forget_to_rounds(forget: float) -> float:
    """Rounds remembered, 1/forget; infinite where nothing is forgotten."""
    forget = _checked(forget)
    return math.inf if forget == 0.0 else 1.0 / forget


def window_to_forget(length: float | str, *, tick: float | str | None = None) -> float:
    """forget = 1-γ of the fade that is like a window of this length: 2/(length+1)."""
    length = real("length", ticks("length", length, tick), 1.0, low_open=True, way_out="pass more than one round")
    return 2.0 / (length + 1.0)


def forget_to_window(forget: float) -> float:
    """The length of the window that is like this fade: 2/forget - 1; infinite where nothing is forgotten."""
    forget = _checked(forget)
    return math.inf if forget == 0.0 else 2.0 / forget - 1.0


def _checked(forget: float) -> float:
    return real("forget", forget, 0.0, 1.0, high_open=True, way_out="γ = 1 - forget must lie in (0, 1]")
