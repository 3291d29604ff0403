"""Compares our regret with a published number: two intervals, and whether they meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from driftwise._internal.validate import Floats
from driftwise.draw.figure import Figure, Line, Reference
from driftwise.lab.field.papers import Paper, Published, published
from driftwise.lab.run.results import Outcome
from driftwise.simulation import t_interval

SAME, DIFFERS, OPEN = "same", "differs", "cannot be told"


@dataclass(frozen=True)
class JudgedNumber:
    """One published number beside ours; `ours` and `theirs` are a mean and a half-width.

    The published half-width has two parts. One is the error of reading the number. The other is the half-width that a
    mean over the paper's number of runs would have if its runs spread as our trials do. The second is 0 where that
    number is not known. `published` is the name that the source gives to the algorithm.
    """

    spec: str
    label: str
    at: int
    trials: int
    ours: tuple[float, float]
    theirs: tuple[float, float]
    surrogate: bool = False
    published: str = ""

    @property
    def verdict(self) -> str:
        if self.surrogate or not math.isfinite(self.ours[1]):
            return OPEN
        return SAME if abs(self.ours[0] - self.theirs[0]) <= self.ours[1] + self.theirs[1] else DIFFERS

    @property
    def ratio(self) -> float:
        return self.ours[0] / self.theirs[0]


def within(ones: Iterable[JudgedNumber], share: float = 0.05) -> tuple[int, int]:
    """How many published numbers there are, and how many of them some line of ours comes as near as that share."""
    nearest: dict[tuple[str, int, float], float] = {}
    for one in ones:
        key = one.published, one.at, one.theirs[0]
        nearest[key] = min(abs(one.ratio - 1.0), nearest.get(key, math.inf))
    return len(nearest), sum(apart <= share for apart in nearest.values())


def beside(outcome: Outcome) -> Outcome:
    """Add the published curves to the lines of an outcome."""
    figures = []
    for figure in outcome.figures:
        names = {entry.label: entry.published for entry in outcome.spec.entries}
        lines = []
        for line in figure.lines:
            found = _published(outcome, names.get(line.label))
            lines.append(replace(line, curve=_curve(found)) if found else line)
        figures.append(replace(figure, lines=tuple(lines)))
    return replace(outcome, figures=tuple(figures))


def _published(outcome: Outcome, name: str | None) -> tuple[Published, ...]:
    return published().get((outcome.spec.key, name or ""), ())


def _curve(found: tuple[Published, ...]) -> Reference:
    """A curve through the published numbers. A single number becomes a short horizontal line."""
    at, mean = np.array([float(one.at) for one in found]), np.array([one.regret for one in found])
    if len(found) == 1:
        at, mean = np.array([0.94 * at[0], at[0]]), np.repeat(mean, 2)
    return Reference(at, mean, mean, mean)


def judged_numbers(outcome: Outcome, paper: Paper, whole: bool = False) -> Iterator[JudgedNumber]:
    """Judge every published number of a spec whose horizon was played; of a curve over rounds the last, or all."""
    for figure in outcome.figures:
        for entry in outcome.spec.entries:
            found = _published(outcome, entry.published)
            for one in found if whole else _shown(figure, found):
                values = _at(figure, figure.line(entry.label), one.at)
                if values is not None:
                    ours = t_interval(values)
                    spread = ours[1] * math.sqrt(len(values) / paper.runs) if paper.runs and len(values) > 1 else 0.0
                    theirs = (one.regret, one.error * one.regret + spread)
                    name = entry.published or ""
                    yield JudgedNumber(
                        outcome.spec.key, entry.label, one.at, len(values), ours, theirs, paper.surrogate, name
                    )


def _shown(figure: Figure, found: tuple[Published, ...]) -> tuple[Published, ...]:
    """The numbers to judge: all of a sweep, and the last one of a curve over rounds."""
    return found if figure.axis else found[-1:]


def _at(figure: Figure, line: Line, at: int) -> Floats | None:
    """The regret of our trials at that horizon, or at a recorded round at most T/200 away; None if there is none."""
    if figure.axis:
        return line.regret[:, figure.at.index(at)] if at in figure.at else None
    apart = np.abs(np.asarray(figure.at, dtype=float) - at)
    place = int(np.argmin(apart))
    return np.asarray(line.regret[:, place]) if apart[place] <= 0.005 * float(figure.at[-1]) else None
