"""Charts as inline SVG that is stretched to its place. The text around it is HTML, so it stays legible on a phone.

A chart is drawn in a box of 1000 by 100 units. Colours are CSS classes, because the page's content policy forbids
inline styles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from driftwise.draw.markup import Html, tag
from driftwise.service.dashboard.wording import decimal, short

WIDE, TALL = 1000.0, 100.0
COLOURS = 7  # classes c0 … c6; the last is grey


class ChartLine(NamedTuple):
    """A line's name, the number of its colour, and its heights; NaN interrupts it."""

    name: str
    colour: int
    heights: Sequence[float]


def lines(drawn: Sequence[ChartLine], ends: tuple[object, object], alt: str, low: float | None = None) -> Html:
    """Lines over a common axis. `low` is a height that is always visible."""
    known = [y for line in drawn for y in line.heights if math.isfinite(y)]
    if low is not None:
        known.append(low)
    if not known:
        return _nothing()
    bottom, top = _range(min(known), max(known))
    paths: list[Html] = [_grid()]
    if bottom < 0.0 < top:
        y = _height(0.0, bottom, top)
        paths.append(_mark(f"M0 {y:.2f}H{WIDE:.0f}", "zero"))
    for line in drawn:
        paths.append(_mark(_path(line.heights, bottom, top), f"line c{line.colour}"))
    legend = [(line.name, line.colour) for line in drawn]
    return _figure(paths, (decimal(top, 3), decimal((top + bottom) / 2.0, 3), decimal(bottom, 3)), ends, legend, alt)


def stacked(names: Sequence[str], columns: Sequence[Sequence[float]], ends: tuple[object, object], alt: str) -> Html:
    """Shares of one, one column per stretch of time, from the first name at the bottom upwards."""
    if not columns:
        return _nothing()
    width, paths = WIDE / len(columns), []
    for place in range(len(names)):
        pieces = []
        for number, column in enumerate(columns):
            if column[place] > 0.0:
                base = TALL * (1.0 - sum(column[:place]))
                pieces.append(f"M{number * width:.2f} {base:.2f}v{-TALL * column[place]:.2f}h{width:.2f}"
                              f"v{TALL * column[place]:.2f}z")  # fmt: skip
        paths.append(_mark("".join(pieces), f"area c{min(place, COLOURS - 1)}"))
    legend = [(name, min(place, COLOURS - 1)) for place, name in enumerate(names)]
    return _figure(paths, ("100%", "50%", "0%"), ends, legend, alt)


def bars(values: Sequence[float], ends: tuple[object, object], alt: str) -> Html:
    """Counts side by side."""
    most = max(values, default=0.0)
    if most <= 0.0:
        return _nothing()
    width, pieces = WIDE / len(values), []
    for number, value in enumerate(values):
        tall = TALL * value / most
        pieces.append(f"M{number * width + 0.08 * width:.2f} {TALL}v{-tall:.2f}h{0.84 * width:.2f}v{tall:.2f}z")
    heights = (decimal(most), decimal(most / 2.0), "0")
    return _figure([_grid(), _mark("".join(pieces), "area c0")], heights, ends, [], alt)


def interval(value: float, low: float, high: float, alt: str) -> Html:
    """An estimate with its interval, and where 0 is."""
    reach = 1.15 * max(abs(low), abs(high), 1e-300)

    def across(x: float) -> float:
        return WIDE * (0.5 + 0.5 * x / reach)

    kind = "sure" if low > 0.0 else "worse" if high < 0.0 else "unsure"
    marks = [
        _mark(f"M{WIDE / 2:.0f} 0V{TALL:.0f}", "zero"),
        _mark(f"M{across(low):.2f} 30H{across(high):.2f}V70H{across(low):.2f}z", f"range {kind}"),
        _mark(f"M{across(value):.2f} 12V88", f"middle {kind}"),
    ]
    drawing = tag("svg", *marks, viewBox=f"0 0 {WIDE:.0f} {TALL:.0f}", preserveAspectRatio="none", role="img",
                  aria_label=alt)  # fmt: skip
    marks_below = (decimal(-reach, 2), "0", decimal(reach, 2))
    below = tag("div", *(tag("span", one) for one in marks_below), class_="x three")
    return tag("figure", drawing, below, class_="interval")


def meter(share: float, alt: str, colour: int = 0) -> Html:
    """A bar from 0 to 1, for a cell of a table."""
    length = WIDE * min(max(share, 0.0), 1.0)
    mark = _mark(f"M0 0H{length:.2f}V{TALL:.0f}H0z", f"area c{colour}")
    return tag("svg", mark, class_="meter", viewBox=f"0 0 {WIDE:.0f} {TALL:.0f}", preserveAspectRatio="none",
               role="img", aria_label=alt)  # fmt: skip


def _figure(
    marks: Sequence[Html], heights: Sequence[str], ends: tuple[object, object], legend: Sequence[tuple[str, int]],
    alt: str,
) -> Html:
    drawing = tag("svg", *marks, viewBox=f"0 0 {WIDE:.0f} {TALL:.0f}", preserveAspectRatio="none", role="img",
                  aria_label=alt)  # fmt: skip
    upright = tag("div", *(tag("span", height) for height in heights), class_="y", aria_hidden="true")
    along = tag("div", *(tag("span", end) for end in ends), class_="x")
    names = [tag("li", tag("i", class_=f"c{colour}"), short(name), title=name) for name, colour in legend]
    return tag("figure", tag("div", upright, drawing, along, class_="plot"), tag("ul", *names) if names else "")


def _nothing() -> Html:
    return tag("p", "Nothing to draw yet.", class_="soft")


def _grid() -> Html:
    return _mark(f"M0 0H{WIDE:.0f}M0 {TALL / 2:.0f}H{WIDE:.0f}M0 {TALL:.0f}H{WIDE:.0f}", "grid")


def _mark(path: str, kind: str) -> Html:
    return tag("path", d=path, class_=kind)


def _range(low: float, high: float) -> tuple[float, float]:
    """A range with a small margin, and some height if all values are equal."""
    air = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return (low if low == 0.0 else low - air), high + air


def _height(y: float, bottom: float, top: float) -> float:
    return TALL * (top - y) / (top - bottom)


def _path(heights: Sequence[float], bottom: float, top: float) -> str:
    step, pen, pieces = WIDE / max(1, len(heights) - 1), False, []
    for place, y in enumerate(heights):
        if not math.isfinite(y):
            pen = False
            continue
        alone = not pen and (place + 1 == len(heights) or not math.isfinite(heights[place + 1]))
        pieces.append(f"{'L' if pen else 'M'}{place * step:.2f} {_height(y, bottom, top):.2f}{'h1' if alone else ''}")
        pen = True
    return "".join(pieces)


