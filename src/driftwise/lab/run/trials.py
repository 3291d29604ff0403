"""Runs specs on any executor and stores every trial as soon as it is finished. One process writes.

A trial is stored under a name that depends on everything that decides its numbers: world, policy, seed, recorded
rounds, versions and sources. After an interruption, or after a change of a part of the spec, only missing trials are
played, and the bytes are the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal import work
from driftwise._internal.progress import bar
from driftwise._internal.sources import source_hash
from driftwise._internal.validate import Floats, whole
from driftwise.errors import BadInput
from driftwise.lab.run import chunks
from driftwise.lab.run.chunks import Job, Seat
from driftwise.lab.run.folder import sweep_out
from driftwise.lab.run.results import Outcome, figures, plain_results, versions
from driftwise.lab.run.spec import Spec
from driftwise.lab.run.store import TrialStore
from driftwise.policies.base import Compiled
from driftwise.policies.own import asked
from driftwise.policies.plain import revision_of
from driftwise.worlds import World


def play(
    specs: Sequence[Spec], folder: Path, jobs: int | None = None, progress: bool | None = None,
    executor: Executor | None = None,
) -> list[Outcome]:  # fmt: skip
    """Play the trials that the store in `folder` does not have, and gather all. The caller must hold the folder's lock.

    `jobs` threads play (by default one per core), or an executor. The bytes are the same.
    """
    workers = whole("jobs", jobs) if jobs is not None else os.cpu_count() or 1
    if executor is not None and jobs is not None:
        raise BadInput("jobs", jobs, "none beside an executor, which has its own workers", "leave it out")
    sweep_out(folder)
    store = TrialStore(folder)
    missing = _missing(specs, store)
    with bar("trials", sum(one.cost for one in missing), progress) as tick:
        if executor is not None:
            _play_all(specs, missing, store, executor, tick)
        else:
            with ThreadPoolExecutor(workers) as pool:
                _play_all(specs, missing, store, pool, tick)
    store.pack()
    return [_gather(spec, store) for spec in specs]


def trial_identity(world: World, policy: Compiled, seed: int, rounds: Sequence[int]) -> str:
    """A name for everything that a trial's numbers depend on, except its own number."""
    worlds = [plain_results(world), world.contents]
    about = [*worlds, plain_results(policy), revision_of(policy), seed, list(map(int, rounds)), versions(), _sources()]
    text = json.dumps(about, sort_keys=True)
    return f"{type(policy).__name__}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


# Sources that do not decide a number.
_ASIDE = (
    "agent", "checks.py", "cli.py", "cluster.py", "commands.py", "data", "doctor.py", "draw", "lab",
    "ledger.py", "lift", "research.py", "service", "tables",
    *(f"_internal/{one}.py" for one in (
        "compile_notice", "files", "interrupts", "intervals", "machine", "progress", "sources", "terminal", "work")),
)  # fmt: skip


def _sources() -> str:
    """The hash of every source that decides a number, and the kind of machine."""
    return f"{source_hash(without=_ASIDE)} {platform.machine()}"


class Wanted(NamedTuple):
    """One policy's trial: its place in the outcome, the contest, and the name under which it is stored."""

    figure: int
    place: int
    label: str
    world: World
    policy: Compiled
    name: str
    rounds: int
    trial: int = 0


def _wanted(spec: Spec) -> Iterator[Wanted]:
    """Every trial of a spec, the first trial of all policies first."""
    everyone: list[tuple[Wanted, int]] = []
    for figure, contests in enumerate(spec.contests):
        for place, contest in enumerate(contests):
            rounds = spec.rounds_of(contest.world)
            for entry in spec.entries:
                policy = contest.policies[entry.label]
                name = trial_identity(contest.world, policy, spec.seed, rounds)
                one = Wanted(figure, place, entry.label, contest.world, policy, name, len(rounds))
                everyone.append((one, spec.trials_of(entry)))
    for trial in range(spec.trials):
        yield from (one._replace(trial=trial) for one, trials in everyone if trial < trials)


def _missing(specs: Sequence[Spec], store: TrialStore) -> list[Job]:
    """One job per world and trial, for all policies of all specs that have not played it."""
    jobs: dict[tuple[str, int, str, int], Job] = {}
    seen: set[tuple[str, int]] = set()
    for number, spec in enumerate(specs):
        for one in _wanted(spec):
            if (one.name, one.trial) in seen or store.get(one.name, one.trial, one.rounds) is not None:
                continue
            seen.add((one.name, one.trial))
            place = (repr(one.world) + one.world.contents, spec.seed, str(spec.record), one.trial)
            job = jobs.setdefault(place, Job(spec.seed, one.trial))
            job.seats[one.name] = Seat(number, one.figure, one.place, one.label)
            job.costs[one.name] = one.world.horizon * asked(one.policy).cost
    return list(jobs.values())


def _play_all(
    specs: Sequence[Spec], missing: Sequence[Job], store: TrialStore, executor: Executor, tick: Callable[[float], None]
) -> None:
    """Send chunks to the executor and store the answers. Only this process writes."""
    costs = {(name, job.trial): cost for job in missing for name, cost in job.costs.items()}
    pace, seconds = Pace(), work.SECONDS_HERE if isinstance(executor, ThreadPoolExecutor) else work.SECONDS
    queue, texts = work.WorkQueue(missing, seconds, pace.expected), chunks.spec_texts(specs)

    def cut(room: int) -> bytes | None:
        jobs = queue.stretch(room)
        return chunks.trial_chunk(texts, jobs) if jobs else None

    def take(facts: Any, arrays: work.Arrays) -> None:
        played = chunks.played(facts, arrays)
        store.put(played)
        for one in played:
            cost = costs[one.name, one.trial]
            pace.learn(one.name, cost, one.seconds)
            tick(cost)

    work.run(chunks.play_chunk, cut, take, executor, "trials")


class Pace:
    """The time of trials, estimated from finished ones."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, float]] = {}
        self._cost = self._seconds = 0.0

    def learn(self, name: str, cost: float, seconds: float) -> None:
        count, total = self._of.get(name, (0, 0.0))
        self._of[name] = count + 1, total + seconds
        self._cost += cost
        self._seconds += seconds

    def expected(self, job: Job) -> float:
        """The expected seconds of a job: from trials of the same policies, otherwise from the cost of other rounds."""
        if not self._cost:
            return math.inf
        seconds = 0.0
        for name, cost in job.costs.items():
            count, total = self._of.get(name, (0, 0.0))
            seconds += total / count if count else cost * self._seconds / self._cost
        return seconds


def _gather(spec: Spec, store: TrialStore) -> Outcome:
    """The outcome of a spec whose trials are all stored."""
    log = store.seconds()
    rows: dict[tuple[int, str], dict[tuple[int, int], tuple[Floats, float]]] = {}
    for one in _wanted(spec):
        regret = store.get(one.name, one.trial, one.rounds)
        if regret is None:
            raise BadInput("out", str(store.folder), "the trials just written", "it was changed meanwhile: run again")
        kept = regret, log.get((one.name, one.trial), np.nan)
        rows.setdefault((one.figure, one.label), {})[one.trial, one.place] = kept
    regrets, times = {}, {}
    for where, found in rows.items():
        trials, places = (max(each) + 1 for each in zip(*found, strict=True))
        grid = [[found[trial, place] for place in range(places)] for trial in range(trials)]
        # A sweep has the last round of each contest; otherwise there is one contest with its rounds.
        regrets[where] = np.array([np.concatenate([regret for regret, _ in row]) for row in grid])
        times[where] = np.fmin.reduce([[taken for _, taken in row] for row in grid], axis=0)
    return figures(spec, regrets, times)
