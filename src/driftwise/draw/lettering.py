"""The text of a figure: labels of lines, how they are shortened, and their width."""

from __future__ import annotations

import re
from typing import Any

from driftwise._internal.validate import is_number
from driftwise.draw.figure import Figure


def number_text(value: Any) -> str:
    if not is_number(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def caption(figure: Figure) -> str:
    """The label of the vertical axis."""
    counts = sorted({len(line.regret) for line in figure.drawn})
    trials = str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    what = figure.what or ("cumulative regret" if figure.axis is None else "regret at the horizon")
    how = figure.how or ("one trial" if counts == [1] else f"mean, 95% and min–max of {trials} trials")
    curves = [line.curve for line in figure.drawn if line.curve is not None]
    banded = any((curve.low < curve.high).any() for curve in curves)
    dashed = f"; dashed: {figure.dashed}{', hatched: its band' if banded else ''}" if curves else ""
    ways = zip(("dotted", "dash-dotted"), figure.guides, strict=False)
    guides = "".join(f"; {way}: {guide.name}" for way, guide in ways)
    return f"{what}, {how}{dashed}{guides}"


_SHORTER = (
    (r"^(MASTER|BOB|Bank)\+\S+", r"\1"),
    (r"^(LB|GLB|SCB)-", ""),
    (r"^((?:PW-)?Weight|Restart|SW|BVD-GLM)-?UCB", r"\1"),
    (r"^Logistic-UCB-2", "Logistic-2"),
    (" as published", " publ."),
)


def line_names(figure: Figure, short: bool) -> list[str]:
    """The labels at the ends of lines: a name, shortened if it stays unique, and the final mean."""
    full = [line.label for line in figure.drawn]
    names = list(full)
    if short:
        for pattern, less in _SHORTER:
            names = [re.sub(pattern, less, name) for name in names]
        names = [name if names.count(name) == 1 else label for name, label in zip(names, full, strict=True)]
    if figure.axis is not None:
        return names
    means = (number_text(round(line.mean, 0 if line.mean >= 10 else 1)) for line in figure.drawn)
    return [f"{name}  {mean}" for name, mean in zip(names, means, strict=True)]


def inches(text: str, size: float, weight: str = "normal") -> float:
    """The width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0]) / 72


def fitted(text: str, width: float, size: float) -> str:
    """The text, or as much of its name as fits before the number."""
    name, _, number = text.partition("  ")
    rest = f"…  {number}" if number else "…"
    while inches(text, size) > width and len(name) > 1:
        name = name[:-1]
        text = name.rstrip() + rest
    return text


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Rows that fit into the width: one row, or a row per clause, or rows broken between words."""
    if inches(text, size, weight) > width and "; " in text:
        return [row for clause in text.split("; ") for row in wrapped(clause, width, size, weight)]
    rows: list[str] = []
    for word in text.split():
        if rows and inches(f"{rows[-1]} {word}", size, weight) <= width:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows
