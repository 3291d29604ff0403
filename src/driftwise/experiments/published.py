"""The paper's published curves, read out of its figures (mean and band every 50 rounds, error about 2)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from driftwise.kernels.point import Floats

# Seconds per run of 6,000 rounds in the paper's bar chart (LB only).
SECONDS = {
    "OFUL": 3.88,
    "RestartUCB": 3.59,
    "MASTER+OFUL n=0": 2.77,
    "MASTER+OFUL n=13": 4.87,
    "D-LinUCB": 6.21,
    "LB-WeightUCB": 4.09,
}


@dataclass(frozen=True)
class Curve:
    """A published regret curve."""

    rounds: Floats
    mean: Floats
    low: Floats
    high: Floats

    @property
    def final(self) -> float:
        return float(self.mean[-1])


@cache
def curves() -> dict[tuple[str, str], Curve]:
    """All published curves by (panel, algorithm)."""
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    with (files("driftwise.experiments") / "data" / "published.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            numbers = tuple(float(row[name]) for name in ("t", "mean_regret", "band_low", "band_high"))
            rows.setdefault((row["panel"], row["algorithm"]), []).append(numbers)
    return {key: Curve(*np.array(values).T) for key, values in rows.items()}
