"""Trials as chunks of work for a worker: a spec is sent as its text, and regrets return as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal import work
from driftwise.errors import BadInput, NumericalError
from driftwise.lab.run.spec import Spec, parse
from driftwise.lab.run.store import Played
from driftwise.simulation import simulate


class Seat(NamedTuple):
    """The place of a policy: the number of its spec, the figure, the place in the figure, and its label there."""

    spec: int
    figure: int
    place: int
    label: str


@dataclass(frozen=True)
class Job:
    """A trial of a world for the policies that have not played it yet, by the names under which they are stored."""

    seed: int
    trial: int
    seats: dict[str, Seat] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        return sum(self.costs.values())


def spec_texts(specs: Sequence[Spec]) -> list[list[str]]:
    """The text of each spec and a file name, from which a worker builds the same spec."""
    found = []
    for spec in specs:
        file = f"{spec.key}.toml"
        if _spec(spec.text, file).contests != spec.contests:
            raise BadInput("spec", spec.key, "worlds and policies that its text names", "change the text instead")
        found.append([spec.text, file])
    return found


@lru_cache(maxsize=64)
def _spec(text: str, file: str) -> Spec:
    return parse(text, file)


def trial_chunk(texts: Sequence[list[str]], jobs: Sequence[Job]) -> bytes:
    """Jobs as plain data, with the texts of their specs."""
    needed = sorted({seat.spec for job in jobs for seat in job.seats.values()})
    listed = [[job.seed, job.trial, list(job.seats.items())] for job in jobs]
    return work.chunk({"specs": [[number, *texts[number]] for number in needed], "jobs": listed})


@work.answering
def play_chunk(asked: Any) -> work.Found:
    """Play the trials of a chunk. Trials of the same policies in the same world are played together."""
    specs = {number: _spec(text, file) for number, text, file in asked["specs"]}
    together: dict[str, tuple[int, Any, list[int]]] = {}
    for seed, trial, seats in asked["jobs"]:
        together.setdefault(json.dumps([seed, seats]), (seed, seats, []))[2].append(trial)
    facts: list[tuple[str, int, float]] = []
    rows = []
    for seed, seats, trials in together.values():
        spec, figure, place, _ = seats[0][1]
        world, record = specs[spec].contests[figure][place].world, specs[spec].record
        policies = {
            name: specs[spec].contests[figure][place].policies[label] for name, (spec, figure, place, label) in seats
        }
        result = simulate(policies, world, trials=trials, seed=seed, record=record, jobs=1, progress=False)
        for (row, trial), name in product(enumerate(trials), policies):
            regret = result.regret[name][row]
            if not np.isfinite(regret).all():
                raise NumericalError(f"{name}: its regret in trial {trial} is not a number; change its fields")
            facts.append((name, trial, float(result.seconds[name][row])))
            rows.append(regret)
    return facts, {"rounds": np.array([len(row) for row in rows]), "regret": np.concatenate(rows)}


def played(facts: Any, arrays: work.Arrays) -> list[Played]:
    """The trials in the answer of a chunk."""
    rows = np.split(arrays["regret"], np.cumsum(arrays["rounds"])[:-1])
    return [Played(name, trial, row, seconds) for (name, trial, seconds), row in zip(facts, rows, strict=True)]
