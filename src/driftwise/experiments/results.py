"""Running a panel, and what is kept of it: curves.npz, summary.json."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.experiments import published
from driftwise.experiments.paper import Entry, Panel
from driftwise.kernels.point import Floats
from driftwise.simulation import simulate

# The published curves have a point every 50 rounds, and so have ours.
EVERY = 50


@dataclass(frozen=True)
class Line:
    """One policy of one panel: its regret (trials, rounds), seconds per trial, and the published curve."""

    label: str
    regret: Floats
    seconds: Floats
    curve: published.Curve | None

    @property
    def mean(self) -> float:
        return float(self.regret[:, -1].mean())

    @property
    def low(self) -> float:
        return float(self.regret[:, -1].min())

    @property
    def high(self) -> float:
        return float(self.regret[:, -1].max())


@dataclass(frozen=True)
class Outcome:
    """A panel after its trials."""

    panel: Panel
    rounds: Floats
    lines: tuple[Line, ...]
    seed: int


def run(panel: Panel, *, trials: int, seed: int, jobs: int | None = None) -> Outcome:
    """Play a panel."""
    policies = {entry.label: entry.policy for entry in panel.entries}
    result = simulate(policies, panel.world, trials=trials, seed=seed, jobs=jobs, record=EVERY)
    curves = published.curves()

    def line(entry: Entry) -> Line:
        curve = curves.get((panel.key, entry.published)) if entry.published else None
        return Line(entry.label, result.regret[entry.label], result.seconds[entry.label], curve)

    return Outcome(panel, result.rounds.astype(np.float64), tuple(map(line, panel.entries)), seed)


def writable(folder: Path) -> Path:
    """The folder, made if need be; found out before hours of work, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".driftwise-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInput("out", str(folder), "a folder that can be written", f"{reason}: pass another --out") from None
    return folder


def write(outcomes: Sequence[Outcome], folder: Path, command: str) -> None:
    """curves.npz and summary.json."""
    arrays: dict[str, Any] = {}
    for outcome in outcomes:
        arrays[f"{outcome.panel.key}/rounds"] = outcome.rounds
        for line in outcome.lines:
            arrays[f"{outcome.panel.key}/{line.label}"] = line.regret
    np.savez_compressed(folder / "curves.npz", **arrays)
    text = json.dumps(summary(outcomes, command), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def summary(outcomes: Sequence[Outcome], command: str) -> dict[str, Any]:
    """Versions, seeds, parameters and final numbers, as plain data."""
    return {"command": command, "versions": versions(), "panels": [_panel(outcome) for outcome in outcomes]}


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    import numba
    import scipy

    import driftwise

    return {
        "driftwise": driftwise.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }


def _panel(outcome: Outcome) -> dict[str, Any]:
    panel = outcome.panel
    entries = zip(panel.entries, outcome.lines, strict=True)
    return {
        "panel": panel.key,
        "title": panel.title,
        "seed": outcome.seed,
        "trials": len(outcome.lines[0].regret),
        "world": plain(panel.world) | {"path_length": panel.world.path_length, "changes": panel.world.changes},
        "notes": list(panel.notes),
        "policies": [
            {
                "label": line.label,
                "policy": plain(entry.policy),
                "regret": {"mean": line.mean, "min": line.low, "max": line.high},
                "seconds": float(line.seconds.mean()),
                "published": line.curve.final if line.curve else None,
            }
            for entry, line in entries
        ],
    }


def plain(thing: Any) -> Any:
    """A dataclass as a dictionary that says what it was."""
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing if isinstance(thing, (str, int, float, bool, type(None))) else str(thing)
    values = {one.name.rstrip("_"): plain(getattr(thing, one.name)) for one in fields(thing)}
    return {"type": type(thing).__name__} | values
