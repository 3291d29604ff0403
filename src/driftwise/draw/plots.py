"""Figures in one style: colours for colour-blind readers, labels at the ends of lines, one colour per algorithm."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.files import keep
from driftwise._internal.validate import Floats, is_number
from driftwise.draw.figure import Figure, Line
from driftwise.draw.lettering import caption, fitted, inches, line_names, number_text, wrapped
from driftwise.draw.styles import GRID, INK, Style, styles
from driftwise.errors import BadInput
from driftwise.kernels.point import Ints
from driftwise.simulation import t_interval


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def pyplot() -> Any:
    """matplotlib.pyplot for files, or BadInput if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise BadInput("plot", "no matplotlib", "matplotlib for figures", 'pip install "driftwise[plot]"') from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


class _Look(NamedTuple):
    """Inches of a panel, points of its title and its text, and whether names are shortened."""

    width: float
    height: float
    title: float
    text: float
    short: bool


_WIDE = _Look(9.0, 5.0, 11.0, 9.0, False)
# 8.6 points are 10.7 px when 3.9 inches are shown 350 px wide.
_NARROW = _Look(3.9, 4.8, 10.5, 8.6, True)
# Two of these fit side by side in the width of one wide panel.
_SMALL = _Look(4.6, 3.2, 10.0, 7.4, True)
# Inches: at the edges, between panels, from the axes to the piece of line before a label, and to the label.
_PAD, _GUTTER, _SWATCH, _TEXT = 0.12, 0.3, 0.14, 0.35
# Points of a 95% band, and of a published one; twice as many of min–max.
_FEW = 30
# Dashes of reference curves in turn, so that two in one place are told apart.
_DASHES = ((4, 3), (4, 2, 1, 2), (1.5, 1.5))

_RC = {
    "font.family": "DejaVu Sans", "text.color": INK, "text.parse_math": False, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.linewidth": 0.8, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.6,
    "xtick.major.size": 3.0, "ytick.major.size": 0.0, "path.simplify": True, "path.simplify_threshold": 0.2,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white", "savefig.facecolor": "auto", "svg.fonttype": "path", "svg.hashsalt": "driftwise",
}  # fmt: skip


def draw(figures: Sequence[Figure], stem: Path, look: _Look = _WIDE) -> None:
    """Draw the figures in two columns, as {stem}.png, {stem}.pdf and {stem}.svg."""
    with _picture(figures, look) as picture:
        for kind, untold in (("png", ("Software",)), ("pdf", ("Creator", "Producer", "CreationDate"))):
            data = io.BytesIO()
            picture.savefig(data, format=kind, dpi=150, metadata=dict.fromkeys(untold))
            keep(stem.parent / f"{stem.name}.{kind}", data.getvalue())
        _save_svg(picture, stem.parent / f"{stem.name}.svg")


def draw_each(figure: Figure, folder: Path) -> None:
    """Draw one figure as {key}.png, .pdf, .svg and, for phones, {key}-narrow.svg."""
    draw([figure], folder / figure.key)
    _draw_narrow([figure], folder, figure.key)


def draw_sheet(figures: Sequence[Figure], folder: Path, key: str) -> None:
    """Draw all figures small in one picture, as {key}.png, .pdf, .svg and, in one column, {key}-narrow.svg."""
    draw(figures, folder / key, _SMALL)
    _draw_narrow(figures, folder, key)


def _draw_narrow(figures: Sequence[Figure], folder: Path, key: str) -> None:
    with _picture(figures, _NARROW) as picture:
        _save_svg(picture, folder / f"{key}-narrow.svg")


@contextmanager
def _picture(figures: Sequence[Figure], look: _Look) -> Iterator[Any]:
    """Panels in one picture. Those of a column have the same left and right margins, those of a row the others, so that
    their axes align."""
    plt = pyplot()
    figures = [figure for figure in figures if figure.drawn]
    if not figures:
        raise BadInput("figures", "no line", "at least one line to draw", "leave out drawn = false")
    across = min(1 if look is _NARROW else 2, len(figures))
    down = -(-len(figures) // across)
    wide, high = look.width + _GUTTER, look.height + _GUTTER / 2
    with plt.style.context(["default", _RC]):
        picture = plt.figure(figsize=(wide * across - _GUTTER, high * down - _GUTTER / 2))
        try:
            panels = [
                _Panel(picture, figure, look, wide * (i % across), high * (down - 1 - i // across))
                for i, figure in enumerate(figures)
            ]
            margins = np.array([panel.margins() for panel in panels])
            for i, panel in enumerate(panels):
                row = margins[i - i % across : i - i % across + across]
                panel.place(*margins[i % across :: across, :2].max(axis=0), *row[:, 2:].max(axis=0))
            yield picture
        finally:
            plt.close(picture)


class _Panel:
    """One figure in its rectangle of the picture. All lengths are inches, so text is measured once."""

    def __init__(self, picture: Any, figure: Figure, look: _Look, x: float, y: float) -> None:
        self.picture, self.figure, self.look, self.x, self.y = picture, figure, look, x, y
        self.styles = styles([line.label for line in figure.drawn])
        self.axes = picture.add_axes((0, 0, 1, 1))
        self.axes.patch.set_visible(False)
        self.axes.tick_params(labelsize=look.text)
        (_over_rounds if figure.axis is None else _over_values)(self.axes, figure, self.styles, look)
        self.axes.yaxis.set_major_formatter(lambda value, _: number_text(value))
        width = look.width - 5 * _PAD
        self.title = wrapped(figure.title, width, look.title, "bold")
        self.caption = wrapped(caption(figure), width, look.text)
        longest = 0.46 * look.width - _TEXT
        self.names = [fitted(one, longest, look.text) for one in line_names(figure, look.short)]

    def _span(self, left: float, right: float, top: float, bottom: float) -> None:
        sheet = np.tile(self.picture.get_size_inches(), 2)
        width, height = self.look.width - left - right, self.look.height - top - bottom
        self.axes.set_position(np.array([self.x + left, self.y + bottom, width, height]) / sheet)

    def margins(self) -> tuple[float, float, float, float]:
        """The space at the left, right, top and bottom for ticks, labels, title and lower axis."""
        look, renderer, dpi = self.look, self.picture.canvas.get_renderer(), self.picture.dpi
        right = _PAD + _TEXT + 1.01 * max(inches(name, look.text) for name in self.names)  # a renderer rounds up
        heads = 1.3 * (look.title * len(self.title) + look.text * len(self.caption)) / 72
        top = heads + 0.14
        self._span(0.6, right, top, 0.6)
        if self.figure.axis is not None:
            _untangle(self.axes, renderer)
        box, beside = self.axes.get_window_extent(), self.axes.yaxis.get_tightbbox(renderer)
        below = self.axes.xaxis.get_tightbbox(renderer)
        left, bottom = (box.x0 - min(beside.x0, below.x0)) / dpi, (box.y0 - below.y0) / dpi
        right = max(right, (below.x1 - box.x1) / dpi + _PAD)
        return left + _PAD, right, top, bottom + _PAD

    def place(self, left: float, right: float, top: float, bottom: float) -> None:
        """Place everything, when the margins of all panels are known."""
        self._span(left, right, top, bottom)
        look, at = self.look, self.y + self.look.height - 0.04
        for rows, size, weight in ((self.title, look.title, "bold"), (self.caption, look.text, "normal")):
            for row in rows:
                at -= 1.3 * size / 72
                self._text(self.x + _PAD, at, row, fontsize=size, weight=weight, va="baseline")
        low, high = self.y + bottom, self.y + look.height - top
        self._labels(self.x + look.width - right, low, high)

    def _text(self, x: float, y: float, text: str, **how: Any) -> None:
        self.picture.text(x, y, text, transform=self.picture.dpi_scale_trans, **how)

    def _labels(self, x: float, low: float, high: float) -> None:
        """Write the names beside the ends of lines, moved apart, each with a sample of its line and a thin
        connector."""
        from matplotlib.lines import Line2D

        lines, dpi = self.figure.drawn, self.picture.dpi
        ends = np.array([_end(self.figure, line) for line in lines])
        heights = self.axes.transData.transform([(self.axes.get_xlim()[1], end) for end in ends])[:, 1] / dpi
        size = min(self.look.text, 72 * (high - low) / len(lines) / 1.3)
        order = np.argsort(heights, kind="stable")
        gap = 1.3 * size / 72
        places = np.empty(len(lines))
        places[order] = draw_spread(heights[order], gap, low + 0.3 * gap, high)
        scale: dict[str, Any] = {"transform": self.picture.dpi_scale_trans}
        for line, name, height, place in zip(lines, self.names, heights, places, strict=True):
            style = self.styles[line.label]
            tone = _fillable(style.colour)
            self.picture.add_artist(Line2D([x + 0.02, x + _SWATCH], [height, place], color=tone, lw=0.8, **scale))
            ends_at = (x + _SWATCH, x + _TEXT - 0.05)
            self.picture.add_artist(Line2D(ends_at, [place, place], color=tone, lw=1.8, **scale))
            if style.marker:
                middle = [sum(ends_at) / 2]
                self.picture.add_artist(Line2D(middle, [place], **scale, **_mark(style)))
            self._text(x + _TEXT, place, name, fontsize=size, va="center_baseline", gid="label")


def draw_spread(wanted: Floats, gap: float, low: float, high: float) -> Floats:
    """The least-squares nearest places to the wanted ascending ones, at least a gap apart and between low and high."""
    steps = gap * np.arange(len(wanted))
    blocks: list[tuple[float, int]] = []
    for one in wanted - steps:
        mean, count = float(one), 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean, count = (before * more + mean * count) / (more + count), more + count
        blocks.append((mean, count))
    level = np.concatenate([np.full(count, mean) for mean, count in blocks])
    return np.asarray(np.clip(level, low, max(low, high - steps[-1])) + steps)


def _mark(style: Style) -> dict[str, Any]:
    tone = _fillable(style.hue)
    return {"marker": style.marker, "ms": 4.5, "mfc": tone, "mec": tone, "mew": 0.0, "ls": "none"}


def _fillable(tone: str) -> str:
    """Almost black instead of black. The SVG writer omits a black fill, and an omitted colour cannot be replaced."""
    return "#000001" if tone == "#000000" else tone


def _places(x: Floats, most: int) -> Ints:
    """The places of at most so many points, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, len(x) - 1, min(len(x), most)).round().astype(int))


def _curve(axes: Any, x: Floats, regret: Floats, style: Style, marks: list[int]) -> None:
    """The mean over trials, its 95% interval in the band from least to largest, and the markers of a variant."""
    tone, mean = _fillable(style.colour), regret.mean(axis=0)
    if len(regret) > 1:
        at = _places(x, 2 * _FEW)
        axes.fill_between(x[at], regret[:, at].min(axis=0), regret[:, at].max(axis=0), color=tone, alpha=0.13, lw=0)
        at = _places(x, _FEW)
        half = np.array([t_interval(values)[1] for values in regret[:, at].T])
        axes.fill_between(x[at], mean[at] - half, mean[at] + half, color=tone, alpha=0.3, lw=0)
    axes.plot(x, mean, color=tone, lw=1.8)
    if style.marker:
        axes.plot(x, mean, markevery=marks, clip_on=False, **_mark(style))


def _dashed(axes: Any, line: Line, style: Style, number: int) -> None:
    """Draw the reference curve of a line and its band, with dashes of its own."""
    if line.curve is not None:
        tone, one = _fillable(style.colour), line.curve
        axes.plot(one.at, one.mean, color=tone, lw=1.1, ls=(2.0 * number, _DASHES[number % len(_DASHES)]))
        if (one.low < one.high).any():
            hatched = {"facecolor": "none", "edgecolor": tone, "hatch": "////", "alpha": 0.45, "lw": 0}
            at = _places(one.at, _FEW)
            axes.fill_between(one.at[at], one.low[at], one.high[at], **hatched)


def _over_rounds(axes: Any, figure: Figure, style: dict[str, Style], look: _Look) -> None:
    """Draw regret over rounds from the origin, with the published curves dashed."""
    rounds = np.array(figure.at, dtype=np.float64)
    kept = _places(rounds, 150)
    x = np.append(0.0, rounds[kept])
    every = max(1, len(x) // 10)
    seen: list[Any] = []
    for number, line in enumerate(figure.drawn):
        regret = np.pad(line.regret[:, kept], ((0, 0), (1, 0)))
        # Markers start at another round in each line, so that those of equal lines do not hide each other.
        marks = list(range(every // 2 + 5 * number % every, len(x) - 1, every))
        _curve(axes, x, regret, style[line.label], marks)
        if line.curve is not None and not any(line.curve is one for one in seen):
            _dashed(axes, line, style[line.label], len(seen))
            seen.append(line.curve)
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", nbins=4 if look.short else 7)
    axes.xaxis.set_major_formatter(lambda value, _: number_text(value))
    axes.set_xlabel("round", fontsize=look.text)


def _scale(figure: Figure) -> tuple[str, list[int]]:
    """The scale of a swept axis and the order of its values. It is even for words, for one value, and for values
    without a logarithm."""
    scale, places = figure.axis.scale if figure.axis else "linear", list(range(len(figure.at)))
    if len(figure.at) == 1 or not all(map(is_number, figure.at)) or (scale == "log" and min(figure.at) <= 0):
        scale = "even"
    return scale, places if scale == "even" else sorted(places, key=lambda i: figure.at[i])


def _over_values(axes: Any, figure: Figure, style: dict[str, Style], look: _Look) -> None:
    """Draw regret at the horizon against a swept value."""
    assert figure.axis is not None
    scale, order = _scale(figure)
    x = np.array(order if scale == "even" else [figure.at[i] for i in order], dtype=np.float64)
    for line in figure.drawn:
        one = style[line.label]
        regret = line.regret[:, order]
        _curve(axes, x, regret, one, list(range(len(x))))
        if not one.marker:
            axes.plot(x, regret.mean(axis=0), clip_on=False, **_mark(one._replace(marker="o")) | {"ms": 3.5})
    if scale == "log":
        _logarithmic(axes, min(float(line.regret.mean(axis=0).min()) for line in figure.drawn))
    else:
        axes.set_ylim(bottom=0)
    for number, line in enumerate(figure.drawn):  # after the limits are set, which depend on regret only
        _dashed(axes, line, style[line.label], number)
    for guide, way in zip(figure.guides, (":", "-."), strict=False):
        axes.plot(guide.at, guide.values, color="#767676", lw=1.1, ls=way)
    if scale == "linear":
        axes.locator_params(axis="x", nbins=4 if look.short else 7)
    else:
        axes.set_xticks(x, [number_text(figure.at[i]) for i in order])
        axes.minorticks_off()
    if len(x) > 1:  # lines end at the edge, where their labels begin
        axes.set_xlim(right=x[-1])
    told = " (times the true one)" if figure.axis.times else ""
    axes.set_xlabel(figure.axis.words or figure.axis.field.replace("_", " ") + told, fontsize=look.text)


def _logarithmic(axes: Any, least: float) -> None:
    """Make both axes logarithmic, to show growth; the vertical one only if all means are positive."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    if least <= 0:
        axes.set_ylim(bottom=0)
        return
    low, high = max(axes.dataLim.y0, least / 2) / 1.1, axes.dataLim.y1 * 1.1
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    few, some, many = (1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    axes.yaxis.set_major_locator(LogLocator(subs=many if high < 10 * low else some if high < 1000 * low else few))
    axes.minorticks_off()


def _untangle(axes: Any, renderer: Any) -> None:
    """Rotate labels below the axis that would touch, and remove some if they still touch."""
    ticks = [one for one in axes.get_xticklabels() if one.get_text()]
    boxes = [one.get_window_extent(renderer) for one in ticks]
    if all(a.x1 + a.height / 2 < b.x0 for a, b in pairwise(boxes)):
        return
    apart = axes.get_window_extent().width / len(ticks)
    every = math.ceil(1.5 * boxes[0].height / apart)
    for number, tick in enumerate(ticks):
        tick.set(rotation=38, ha="right", rotation_mode="anchor", visible=number % every == 0)


def _end(figure: Figure, line: Line) -> float:
    """The mean at the right end of a line."""
    return float(line.regret[:, _scale(figure)[1][-1]].mean())


def _save_svg(picture: Any, target: Path) -> None:
    """Save an SVG without background, date or program name. Its ids are unique, because a page may inline several."""
    picture.patch.set_visible(False)
    buffer = io.StringIO()
    picture.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text).replace("#000001", "#000000").replace("DejaVuSans-", "g")
    text = re.sub(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)', _rounded, text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    prefix = re.sub(r"[^\w-]", "-", target.stem)
    text = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    keep(target, text)


def _rounded(found: re.Match[str]) -> str:
    """Round coordinates to a hundredth of a point."""

    def shorter(number: re.Match[str]) -> str:
        return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")

    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", shorter, found.group())
