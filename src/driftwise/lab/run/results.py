"""The results of an experiment: lines with a row per trial, as curves.npz and summary.json."""

from __future__ import annotations

import hashlib
import io
import json
import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal.files import keep
from driftwise._internal.validate import Floats
from driftwise.draw.figure import Axis, Figure, Line
from driftwise.errors import BadInput
from driftwise.lab.run.spec import Spec, Sweep, parse


@dataclass(frozen=True)
class Outcome:
    """A spec after its trials: one figure, or one for each of its sweeps."""

    spec: Spec
    figures: tuple[Figure, ...]


def figures(spec: Spec, regret: dict[tuple[int, str], Floats], times: dict[tuple[int, str], Floats]) -> Outcome:
    """An outcome from regret and times by (number of the figure, label)."""

    def lines(number: int) -> tuple[Line, ...]:
        return tuple(
            Line(entry.label, regret[number, entry.label], times[number, entry.label], drawn=entry.drawn)
            for entry in spec.entries
        )

    if not spec.sweeps:
        rounds = spec.rounds_of(spec.contests[0][0].world)
        return Outcome(spec, (Figure(spec.key, spec.title, tuple(rounds), lines(0)),))
    return Outcome(
        spec,
        tuple(
            Figure(f"{spec.key}-{sweep.over}", sweep.title or spec.title, sweep.values, lines(number), _axis(sweep))
            for number, sweep in enumerate(spec.sweeps)
        ),
    )


def _axis(sweep: Sweep) -> Axis:
    return Axis(sweep.over.split(".")[1], sweep.times, sweep.axis, sweep.scale)


def write_results(outcomes: Sequence[Outcome], folder: Path, command: str, page: str = "") -> None:
    """Write specs/*.toml, curves.npz and summary.json: everything that `read` needs. Equal trials give equal bytes.

    The seconds, which differ from run to run, go to seconds.json. `page` names the page to redraw, if there is one.
    """
    for outcome in outcomes:
        keep(folder / "specs" / f"{outcome.spec.key}.toml", outcome.spec.text)
    arrays = {f"{figure.key}/{line.label}": line.regret for figure, line in _all_lines(outcomes)}
    arrays |= {f"{figure.key}/rounds": np.array(figure.at) for one in outcomes for figure in one.figures
               if figure.axis is None}  # fmt: skip
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    keep(folder / "curves.npz", data.getvalue())
    _json(folder / "summary.json", {
        "command": command, "page": page, "curves": _digest(data.getvalue()), "versions": versions(),
        "panels": [_panel(outcome) for outcome in outcomes],
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


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(target: Path, data: Any) -> None:
    keep(target, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_results(folder: Path) -> tuple[list[Outcome], str]:
    """The results that `write` wrote, to be drawn again, and the name of their page, or ""."""
    try:
        summary, seconds = (
            json.loads((folder / name).read_text(encoding="utf-8")) for name in ("summary.json", "seconds.json")
        )
        data = (folder / "curves.npz").read_bytes()
        if _digest(data) != summary["curves"]:
            raise ValueError("curves.npz does not belong to summary.json")
        with np.load(io.BytesIO(data)) as arrays:
            page = "report" if summary["page"] is True else summary["page"] or ""  # earlier versions stored a boolean
            return [_read(folder, panel, arrays, seconds) for panel in summary["panels"]], str(page)
    except BadInput:
        raise
    except Exception as error:  # for any damage of the files the error names the folder
        wanted = "a folder that `driftwise run` or `driftwise reproduce` has filled"
        way_out = f"run it again ({type(error).__name__}: {' '.join(str(error).split())[:100]})"
        raise BadInput("folder", str(folder), wanted, way_out) from None


def _read(folder: Path, panel: Any, arrays: Any, seconds: Any) -> Outcome:
    name = f"{panel['panel']}.toml"
    spec = parse((folder / "specs" / name).read_text(encoding="utf-8"), name)
    spec = spec.repeated(panel["trials"], panel["seed"])
    keys = [f"{spec.key}-{sweep.over}" for sweep in spec.sweeps] or [spec.key]
    regret, times = {}, {}
    for number, key in enumerate(keys):
        for entry in spec.entries:
            rows = regret[number, entry.label] = arrays[f"{key}/{entry.label}"]
            contests = spec.contests[number]
            wide = len(contests) if spec.sweeps else len(spec.rounds_of(contests[0].world))
            if rows.shape != (spec.trials_of(entry), wide) or not np.isfinite(rows).all():
                raise ValueError(f"the curves of {entry.label} are not those of the spec")
            times[number, entry.label] = np.array(seconds[key][entry.label], dtype=np.float64)
    return figures(spec, regret, times)


def _compiler() -> dict[str, str]:
    """numba's version, if it plays the rounds."""
    try:
        return {"numba": metadata.version("numba")}
    except metadata.PackageNotFoundError:
        return {}


def versions() -> dict[str, str]:
    """The versions on which the numbers depend."""
    import driftwise
    from driftwise._internal.compiling import compiles
    from driftwise._internal.shipped import shipped

    return {
        "driftwise": driftwise.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **_compiler(),
        "machine code": shipped().level or "none",
        "rounds": "machine code of the wheel" if shipped().level or not compiles() else "compiled for each policy",
    }


def _panel(outcome: Outcome) -> dict[str, Any]:
    """The parameters and final numbers of a spec."""
    spec = outcome.spec
    found: dict[str, Any] = {
        "panel": spec.key, "title": spec.title, "seed": spec.seed, "trials": spec.trials, "notes": list(spec.notes),
    }  # fmt: skip
    if spec.sweeps:
        return found | {
            "sweeps": [
                {"over": sweep.over, "at": [plain_results(value) for value in figure.at], "times": sweep.times,
                 "regret": {line.label: line.regret.mean(axis=0).tolist() for line in figure.lines}}
                for figure, sweep in zip(outcome.figures, spec.sweeps, strict=True)
            ]
        }  # fmt: skip
    (figure,), world = outcome.figures, spec.contests[0][0].world
    policies = spec.contests[0][0].policies
    return found | {
        "world": plain_results(world) | {"path_length": world.path_length, "changes": world.changes},
        "policies": [
            {
                "label": line.label,
                "policy": plain_results(policies[line.label]),
                "trials": len(line.regret),
                "regret": {"mean": line.mean, "min": line.low, "max": line.high},
                "published": line.curve.final if line.curve else None,
            }
            for line in figure.lines
        ],
    }


def plain_results(thing: Any) -> Any:
    """A dataclass as a dictionary with its type."""
    if not is_dataclass(thing) or isinstance(thing, type):
        kept = isinstance(thing, (str, int, type(None))) or (isinstance(thing, float) and math.isfinite(thing))
        return thing if kept else str(thing)  # JSON has no infinity
    values = {one.name.rstrip("_"): plain_results(getattr(thing, one.name)) for one in fields(thing)}
    return {"type": type(thing).__name__} | values
