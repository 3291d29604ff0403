"""The data of figures and tables: lines with a row per trial, and the references they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftwise._internal.validate import Floats


@dataclass(frozen=True)
class Reference:
    """The reference of a line: a mean and a band over rounds or swept values."""

    at: Floats
    mean: Floats
    low: Floats
    high: Floats

    @property
    def final(self) -> float:
        return float(self.mean[-1])


@dataclass(frozen=True)
class Line:
    """One policy of one figure: regret (trials, rounds or swept values), and a reference curve.

    `times` are the seconds of the fastest run, which other processes disturbed least: one number, or one for each value
    of an axis; NaN where nothing was timed. `published_seconds` are the seconds that the source published.
    """

    label: str
    regret: Floats
    times: Floats
    curve: Reference | None = None
    drawn: bool = True
    published_seconds: float | None = None

    @property
    def final(self) -> Floats:
        """The regret at the end, a number per trial."""
        return self.regret[:, -1]

    @property
    def mean(self) -> float:
        return float(self.final.mean())

    @property
    def low(self) -> float:
        return float(self.final.min())

    @property
    def high(self) -> float:
        return float(self.final.max())


@dataclass(frozen=True)
class Guide:
    """A line that is not a policy's, such as the slope of a bound: its name and its values."""

    name: str
    at: Floats
    values: Floats


# How values are spaced on an axis. "even" is for words, and for numbers without a scale.
SCALES = ("even", "log", "linear")


@dataclass(frozen=True)
class Axis:
    """The axis of a figure: the values of a field, their scale, and a label if the name of the field is not enough.

    With `times`, values are multiples of the true value of the world.
    """

    field: str
    times: bool = False
    words: str = ""
    scale: str = "even"


@dataclass(frozen=True)
class Figure:
    """Lines on one pair of axes: regret over rounds, or with an axis the regret at the horizon over its values.

    `dashed` describes the reference curves. `guides` are drawn in grey, dotted and then dash-dotted. `what` replaces
    "regret" if something else is drawn, and `how` what is said of trials.
    """

    key: str
    title: str
    at: tuple[Any, ...]
    lines: tuple[Line, ...]
    axis: Axis | None = None
    dashed: str = "published"
    guides: tuple[Guide, ...] = ()
    what: str = ""
    how: str = ""

    def line(self, label: str) -> Line:
        return next(line for line in self.lines if line.label == label)

    @property
    def drawn(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.drawn)
