"""The papers of the page: their specs, and what was published of them."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from driftwise._internal.validate import one_of
from driftwise.experiments.paper.panels import built_in
from driftwise.experiments.run.spec import Spec


@dataclass(frozen=True)
class Paper:
    """One row of the page. `runs` are those of its figures, 0 where that could not be read."""

    key: str
    name: str
    setting: str
    reason: str
    specs: tuple[str, ...]
    runs: int = 0
    surrogate: bool = False


@dataclass(frozen=True)
class Published:
    """A number read off a figure, with the relative error of reading it."""

    at: int
    regret: float
    error: float


@cache
def papers() -> dict[str, Paper]:
    """All of them by the name on the command line."""
    text = (files("driftwise.experiments.field") / "papers.toml").read_text(encoding="utf-8")
    return {
        key: Paper(key, **{**row, "specs": tuple(row["specs"]), "reason": " ".join(row["reason"].split())})
        for key, row in tomllib.loads(text).items()
    }


ALL = "field"


def chosen(name: str) -> list[Paper]:
    """The papers of an experiment by its name on the command line."""
    one_of("experiment", name, [*papers(), ALL])
    return list(papers().values()) if name == ALL else [papers()[name]]


def specs_of(found: list[Paper]) -> list[Spec]:
    """Their specs, in order."""
    return [built_in(name) for paper in found for name in paper.specs]


@cache
def published() -> dict[tuple[str, str], tuple[Published, ...]]:
    """What was published, by spec and algorithm."""
    rows: dict[tuple[str, str], list[Published]] = {}
    with (files("driftwise.experiments.field") / "published.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            one = Published(int(row["at"]), float(row["regret"]), float(row["error"]))
            rows.setdefault((row["spec"], row["algorithm"]), []).append(one)
    return {key: tuple(sorted(ones, key=lambda one: one.at)) for key, ones in rows.items()}
