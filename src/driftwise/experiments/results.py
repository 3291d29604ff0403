"""What an experiment leaves: lines with a row per trial, as curves.npz and summary.json."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.experiments import published
from driftwise.experiments.spec import Entry, Spec, Sweep
from driftwise.kernels.point import Floats


@dataclass(frozen=True)
class Line:
    """One policy of one figure: regret (trials, rounds or swept values), and a curve to hold it to.

    `times` are seconds of the fastest run, the one that the machine's other work disturbed least: one number, or one
    for each value of a sweep; NaN where nothing was timed.
    """

    label: str
    regret: Floats
    times: Floats
    curve: published.Curve | None = None
    drawn: bool = True

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
class Figure:
    """Lines on one pair of axes: regret over rounds, or with a sweep the regret at the horizon over its values.

    `dashed` says what the curves are that lines are held against.
    """

    key: str
    title: str
    at: tuple[Any, ...]
    lines: tuple[Line, ...]
    sweep: Sweep | None = None
    dashed: str = "published"

    def line(self, label: str) -> Line:
        return next(line for line in self.lines if line.label == label)

    @property
    def drawn(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.drawn)


@dataclass(frozen=True)
class Outcome:
    """A spec after its trials: one figure, or one for each of its sweeps."""

    spec: Spec
    figures: tuple[Figure, ...]


def interval(values: Floats) -> tuple[float, float]:
    """Mean and the half-width of its 95% interval; of a difference or a ratio when that is what is handed in."""
    if len(values) < 2:
        return float(values.mean()), math.inf
    from scipy.stats import t as student

    width = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean()), float(width)


def figures(spec: Spec, regret: dict[tuple[int, str], Floats], times: dict[tuple[int, str], Floats]) -> Outcome:
    """An outcome from regret and times by (number of the figure, label)."""
    curves = published.curves()

    def line(number: int, entry: Entry) -> Line:
        curve = curves.get((spec.key, entry.published)) if entry.published and not spec.sweeps else None
        where = number, entry.label
        return Line(entry.label, regret[where], times[where], curve, entry.drawn)

    def lines(number: int) -> tuple[Line, ...]:
        return tuple(line(number, entry) for entry in spec.entries)

    if not spec.sweeps:
        return Outcome(spec, (Figure(spec.key, spec.title, tuple(spec.rounds_of(spec.points[0][0].world)), lines(0)),))
    return Outcome(
        spec,
        tuple(
            Figure(f"{spec.key}-{sweep.over}", sweep.title or spec.title, sweep.values, lines(number), sweep)
            for number, sweep in enumerate(spec.sweeps)
        ),
    )


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
    """specs/*.toml, curves.npz and summary.json: all that `read` needs, and the same bytes for the same trials.

    What differs from run to run, the seconds, goes to seconds.json.
    """
    (folder / "specs").mkdir(exist_ok=True)
    for outcome in outcomes:
        (folder / "specs" / f"{outcome.spec.key}.toml").write_text(outcome.spec.text, encoding="utf-8")
    arrays = {f"{figure.key}/{line.label}": line.regret for figure, line in _all_lines(outcomes)}
    arrays |= {f"{figure.key}/rounds": np.array(figure.at) for one in outcomes for figure in one.figures
               if figure.sweep is None}  # fmt: skip
    np.savez_compressed(folder / "curves.npz", **arrays)  # type: ignore[arg-type]
    _json(folder / "summary.json", {
        "command": command, "versions": versions(), "panels": [_panel(outcome) for outcome in outcomes],
    })  # fmt: skip
    taken: dict[str, dict[str, list[float | None]]] = {}
    for figure, line in _all_lines(outcomes):
        plain_times = [float(time) if math.isfinite(time) else None for time in line.times]
        taken.setdefault(figure.key, {})[line.label] = plain_times
    _json(folder / "seconds.json", taken)


def _all_lines(outcomes: Sequence[Outcome]) -> Iterator[tuple[Figure, Line]]:
    for outcome in outcomes:
        for figure in outcome.figures:
            for line in figure.lines:
                yield figure, line


def _json(target: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    target.write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> list[Outcome]:
    """What `write` left, to be drawn again."""
    from driftwise.experiments.spec import parse

    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        seconds = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        outcomes = []
        with np.load(folder / "curves.npz") as arrays:
            for panel in summary["panels"]:
                name = f"{panel['panel']}.toml"
                spec = parse((folder / "specs" / name).read_text(encoding="utf-8"), name)
                spec = spec.repeated(panel["trials"], panel["seed"])
                keys = [f"{spec.key}-{sweep.over}" for sweep in spec.sweeps] or [spec.key]
                places = [(number, key, entry.label) for number, key in enumerate(keys) for entry in spec.entries]
                regret = {(number, label): arrays[f"{key}/{label}"] for number, key, label in places}
                times = {
                    (number, label): np.array(seconds[key][label], dtype=np.float64) for number, key, label in places
                }
                outcomes.append(figures(spec, regret, times))
    except (OSError, KeyError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        wanted = "a folder that `driftwise run` or `driftwise reproduce` has filled"
        raise BadInput("folder", str(folder), wanted, f"{type(error).__name__}: {error}") from None
    return outcomes


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
    """Parameters and final numbers of a spec."""
    spec = outcome.spec
    found: dict[str, Any] = {
        "panel": spec.key, "title": spec.title, "seed": spec.seed, "trials": spec.trials, "notes": list(spec.notes),
    }  # fmt: skip
    if spec.sweeps:
        return found | {
            "sweeps": [
                {"over": figure.sweep.over, "at": list(figure.at), "times": figure.sweep.times,
                 "regret": {line.label: line.regret.mean(axis=0).tolist() for line in figure.lines}}
                for figure in outcome.figures if figure.sweep
            ]
        }  # fmt: skip
    (figure,), world = outcome.figures, spec.points[0][0].world
    policies = spec.points[0][0].policies
    return found | {
        "world": plain(world) | {"path_length": world.path_length, "changes": world.changes},
        "policies": [
            {
                "label": line.label,
                "policy": plain(policies[line.label]),
                "trials": len(line.regret),
                "regret": {"mean": line.mean, "min": line.low, "max": line.high},
                "published": line.curve.final if line.curve else None,
            }
            for line in figure.lines
        ],
    }


def plain(thing: Any) -> Any:
    """A dataclass as a dictionary that says what it was."""
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing if isinstance(thing, (str, int, float, bool, type(None))) else str(thing)
    values = {one.name.rstrip("_"): plain(getattr(thing, one.name)) for one in fields(thing)}
    return {"type": type(thing).__name__} | values
