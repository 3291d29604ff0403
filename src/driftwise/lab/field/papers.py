"""Reads papers.toml and published.csv: the papers of the page, their specs, and their published numbers."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from driftwise._internal.validate import one_of
from driftwise.lab.paper.panels import built_in
from driftwise.lab.run.spec import Spec


@dataclass(frozen=True)
class Paper:
    """One paper of the page.

    `runs` is the number of runs behind its figures, 0 if that could not be read. `verdict` is for the overview.
    `tried` has a row for every hypothesis about a difference: what was changed, what it gave, and what follows.
    """

    key: str
    name: str
    setting: str
    reason: str
    verdict: str
    specs: tuple[str, ...]
    tried: tuple[tuple[str, str, str], ...] = ()
    runs: int = 0
    surrogate: bool = False


@dataclass(frozen=True)
class Published:
    """A number read off a figure, and the relative error of the reading."""

    at: int
    regret: float
    error: float


@cache
def papers() -> dict[str, Paper]:
    """All papers by their name on the command line."""
    text = (files("driftwise.lab.field") / "papers.toml").read_text(encoding="utf-8")
    return {
        key: Paper(key, **{
            **row, "specs": tuple(row["specs"]), "tried": tuple(map(tuple, row.get("tried", ()))),
            "reason": " ".join(row["reason"].split()),
        })
        for key, row in tomllib.loads(text).items()
    }


ALL = "field"


def chosen(name: str, option: str = "experiment") -> list[Paper]:
    """The papers that a name on the command line stands for: one, or all for "field"."""
    one_of(option, name, [*papers(), ALL])
    return list(papers().values()) if name == ALL else [papers()[name]]


def specs_of(found: list[Paper]) -> list[Spec]:
    """The specs of these papers, in the order of the page."""
    return [built_in(name) for paper in found for name in paper.specs]


@cache
def published() -> dict[tuple[str, str], tuple[Published, ...]]:
    """All published numbers by spec and algorithm, in the order of their horizons."""
    rows: dict[tuple[str, str], list[Published]] = {}
    with (files("driftwise.lab.field") / "published.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            one = Published(int(row["at"]), float(row["regret"]), float(row["error"]))
            rows.setdefault((row["spec"], row["algorithm"]), []).append(one)
    return {key: tuple(sorted(ones, key=lambda one: one.at)) for key, ones in rows.items()}
