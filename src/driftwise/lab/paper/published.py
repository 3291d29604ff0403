"""The paper's published curves, read out of its figures (mean and band every 50 rounds, error about 2)."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np

from driftwise.draw.figure import Figure, Line, Reference
from driftwise.lab.run.results import Outcome

# Seconds per run of 6,000 rounds in the paper's bar chart, which is of the LB panel.
SECONDS = {
    "OFUL": 3.88,
    "RestartUCB": 3.59,
    "MASTER+OFUL n=0": 2.77,
    "MASTER+OFUL n=13": 4.87,
    "D-LinUCB": 6.21,
    "LB-WeightUCB": 4.09,
}


@cache
def published_curves() -> dict[tuple[str, str], Reference]:
    """All published curves by (panel, algorithm)."""
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    with (files("driftwise.lab.paper") / "published.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            numbers = tuple(float(row[name]) for name in ("t", "mean_regret", "band_low", "band_high"))
            rows.setdefault((row["panel"], row["algorithm"]), []).append(numbers)
    return {key: Reference(*np.array(values).T) for key, values in rows.items()}


def beside_published(outcome: Outcome) -> Outcome:
    """The outcome with the published values of its lines: the curves that its spec names, and the seconds of LB."""
    spec = outcome.spec
    if spec.sweeps:
        return outcome
    (figure,), seconds = outcome.figures, SECONDS if spec.key == "LB" else {}
    lines = tuple(
        replace(
            line,
            curve=published_curves().get((spec.key.removesuffix("_probe"), entry.published or "")),
            published_seconds=seconds.get(entry.label),
        )
        for line, entry in zip(figure.lines, spec.entries, strict=True)
    )
    return replace(outcome, figures=(replace(figure, lines=lines),))


def panel_parts(figure: Figure) -> tuple[Figure, ...]:
    """A panel in two: the first line of each published curve, and all others, which the paper does not have."""
    first: dict[int, Line] = {}
    for line in figure.drawn:
        if line.curve is not None:
            first.setdefault(id(line.curve), line)
    kept = set(map(id, first.values()))
    rest = tuple(replace(line, curve=None) for line in figure.drawn if id(line) not in kept)
    if not first or not rest:
        return (figure,)
    own = replace(figure, key=f"{figure.key}_own", title=f"{figure.title}: what the paper does not have", lines=rest)
    return replace(figure, lines=tuple(first.values())), own
