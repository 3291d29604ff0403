"""Figures in one style: colour-blind safe, labels at the ends of lines, one colour per algorithm everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.experiments.results import Line, Outcome

# Okabe and Ito's palette, and two more that stay apart from it; an algorithm keeps its colour in every figure.
_PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F", "#8C564B", "#B2A300",
)  # fmt: skip
_FAMILY = (
    ("e=1", 9), ("PW-WeightUCB convex", 7), ("PW-WeightUCB", 3), ("origin", 7), ("SC-D", 1), ("OFULog", 5),
    ("Bank", 3), ("BOB", 8), ("MASTER+OFUL n=0", 1), ("MASTER", 4), ("Weight", 0),
    ("D-LinUCB as published", 7), ("D-LinUCB", 1), ("BVD", 1), ("Restart", 2), ("SW", 5), ("OFUL", 6), ("GLM-UCB", 6),
    ("LogUCB1", 6),
)  # fmt: skip


def colour(label: str) -> str:
    """The colour of an algorithm, by the kind of forgetting in its name."""
    for part, place in _FAMILY:
        if part in label:
            return _PALETTE[place]
    return _PALETTE[7]


def pyplot() -> Any:
    """matplotlib.pyplot without a screen, or the one sentence."""
    try:
        import matplotlib
    except ImportError:
        raise BadInput("plot", "no matplotlib", "matplotlib for figures", 'pip install "driftwise[plot]"') from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw(outcomes: Sequence[Outcome], target: Path) -> None:
    """One picture per panel side by side: mean, min–max band, and the published curve dashed."""
    plt = pyplot()
    across = min(2, len(outcomes))
    down = -(-len(outcomes) // across)
    figure, axes = plt.subplots(down, across, figsize=(7.5 * across, 5.0 * down), squeeze=False)
    for place, outcome in zip(axes.flat, outcomes, strict=False):
        _panel(place, outcome)
    for unused in axes.flat[len(outcomes) :]:
        unused.set_visible(False)
    figure.tight_layout()
    figure.savefig(target, dpi=150)
    plt.close(figure)


def _panel(axes: Any, outcome: Outcome) -> None:
    shown = [line for entry, line in zip(outcome.panel.entries, outcome.lines, strict=True) if entry.drawn]
    for line in shown:
        hue = colour(line.label)
        mean = line.regret.mean(axis=0)
        axes.fill_between(outcome.rounds, line.regret.min(axis=0), line.regret.max(axis=0), color=hue, alpha=0.13, lw=0)
        axes.plot(outcome.rounds, mean, color=hue, lw=1.8)
        if line.curve is not None:
            axes.plot(line.curve.rounds, line.curve.mean, color=hue, lw=1.0, ls=(0, (4, 3)))
    _labels(axes, shown, float(outcome.rounds[-1]))
    axes.set_title(outcome.panel.title)
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret  (solid: ours, mean and min–max; dashed: published)", fontsize=8)
    axes.set_xlim(0, outcome.rounds[-1])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _labels(axes: Any, lines: Sequence[Line], end: float) -> None:
    """Names at the line ends, pushed apart where they would overlap."""
    order = sorted(lines, key=lambda line: line.mean)
    gap = 0.045 * max(line.high for line in lines)
    wanted = np.array([line.mean for line in order])
    places = wanted.copy()
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    for line, place in zip(order, places, strict=True):
        text = f"{line.label}  {line.mean:.0f}"
        axes.annotate(
            text, (end, line.mean), xytext=(end * 1.015, place), color=colour(line.label), fontsize=8, va="center",
            annotation_clip=False,
        )  # fmt: skip
