"""What is drawn and tabulated: figures of lines, a row per trial in each, and what they are held to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftwise._internal.validate import Floats


@dataclass(frozen=True)
class Reference:
    """What a line is held to: a mean and a band over rounds or swept values."""

    at: Floats
    mean: Floats
    low: Floats
    high: Floats

    @property
    def final(self) -> float:
        return float(self.mean[-1])


@dataclass(frozen=True)
class Line:
    """One policy of one figure: regret (trials, rounds or swept values), and a curve to hold it to.

    `times` are seconds of the fastest run, the one that the machine's other work disturbed least: one number, or one
    for each value of an axis; NaN where nothing was timed. `published_seconds` are those someone else's run took.
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
    """A line that no policy made, such as the slope of a bound: its name and its values."""

    name: str
    at: Floats
    values: Floats


# How values are spaced on an axis; "even" is for words, and for numbers of no particular scale.
SCALES = ("even", "log", "linear")


def is_number(value: object) -> bool:
    """What has a place on a scale that is not even."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class Axis:
    """What a figure's values are: those of a field, with other words below if its name will not do, and their scale.

    With `times`, they are multiples of what is true of the world.
    """

    field: str
    times: bool = False
    words: str = ""
    scale: str = "even"


@dataclass(frozen=True)
class Figure:
    """Lines on one pair of axes: regret over rounds, or with an axis the regret at the horizon over its values.

    `dashed` says what the curves are that lines are held against. `guides` are drawn in grey, dotted and then
    dash-dotted. `what` stands for "regret" where something else is drawn.
    """

    key: str
    title: str
    at: tuple[Any, ...]
    lines: tuple[Line, ...]
    axis: Axis | None = None
    dashed: str = "published"
    guides: tuple[Guide, ...] = ()
    what: str = ""

    def line(self, label: str) -> Line:
        return next(line for line in self.lines if line.label == label)

    @property
    def drawn(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.drawn)
