"""Running specs so that nothing finished is lost: a policy's trial is one file, there whole or not at all.

A file is named by everything its numbers depend on (world, policy, seed, rounds kept, versions, sources), so a run that
was interrupted, or a spec that has changed in part, does again only what is not there, and finds the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import driftwise
from driftwise.border import Floats, whole
from driftwise.errors import BadInput, NumericalError
from driftwise.experiments.run.folder import sweep_out
from driftwise.experiments.run.results import Outcome, figures, plain, versions
from driftwise.experiments.run.spec import Spec
from driftwise.files import keep
from driftwise.policies.adapt import Bank
from driftwise.policies.base import Compiled
from driftwise.progress import bar
from driftwise.simulation import Record, simulate
from driftwise.worlds import World

# A round costs about so many times a linear one; only the estimate of the time left depends on it.
_STEPPED, _GENERALIZED = 400.0, 10.0


def play(specs: Sequence[Spec], folder: Path, jobs: int | None = None, progress: bool | None = None) -> list[Outcome]:
    """Play what the store in `folder` does not hold yet, and gather all. Who calls is alone in the folder."""
    workers = whole("jobs", jobs) if jobs is not None else os.cpu_count() or 1
    sweep_out(folder)
    store = Store(folder)
    missing = _missing(specs, store)
    with bar("trials", sum(one.cost for one in missing), progress) as tick:
        _play_all(missing, store, workers, tick)
    return [_gather(spec, store) for spec in specs]


@dataclass(frozen=True)
class Job:
    """A trial of a world for the policies that have not played it yet, by their identities."""

    world: World
    seed: int
    record: Record
    trial: int
    policies: dict[str, Compiled] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        return self.world.horizon * sum(map(_cost, self.policies.values()))


def _cost(policy: Compiled) -> float:
    """Of a round, in rounds of one linear lane."""
    base = getattr(policy, "base", policy)
    each = _STEPPED if policy.stepped else _GENERALIZED if hasattr(base, "link") else 1.0
    return each * policy.lanes if isinstance(policy, Bank) else each


class Store:
    """Finished trials: trials/<identity>/<number>.npz, and how long each took in timings.jsonl."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder / "trials", folder / "timings.jsonl"
        self._lock = threading.Lock()

    def _file(self, identity: str, trial: int) -> Path:
        return self.folder / identity / f"{trial:05d}.npz"

    def get(self, identity: str, trial: int, rounds: int) -> Floats | None:
        """The regret of a finished trial; nothing if it is not there, or spoiled, which a checksum tells."""
        try:
            with np.load(io.BytesIO(self._file(identity, trial).read_bytes()), allow_pickle=False) as found:
                row: Floats = found["regret"]
        except Exception:  # whatever has happened to the file, the trial can be played again
            return None
        return row if row.shape == (rounds,) and row.dtype == np.float64 and np.isfinite(row).all() else None

    def put(self, identity: str, trial: int, regret: Floats, seconds: float) -> None:
        """Keep a trial."""
        data = io.BytesIO()
        np.savez(data, regret=regret)
        # A line of its own even after one that a killed process left unfinished.
        line = "\n" + json.dumps({"run": identity, "trial": trial, "seconds": seconds})
        with self._lock, self._log.open("a", encoding="utf-8") as log:
            log.write(line)
        keep(self._file(identity, trial), data.getvalue())

    def seconds(self) -> dict[tuple[str, int], float]:
        """How long finished trials took."""
        found = {}
        if self._log.exists():
            for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    one = json.loads(line)
                    found[one["run"], one["trial"]] = float(one["seconds"])
                except (ValueError, KeyError, TypeError, RecursionError):  # a process was killed in this line
                    continue
        return found


def identity(world: World, policy: Compiled, seed: int, rounds: Sequence[int]) -> str:
    """A name for what a trial's numbers depend on, its own number apart."""
    about = [plain(world), plain(policy), seed, list(map(int, rounds)), versions(), _sources()]
    text = json.dumps(about, sort_keys=True)
    return f"{type(policy).__name__}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


# What stands beside the sources that decide a number, and decides none.
_ASIDE = (
    "agent", "checks.py", "cli.py", "commands.py", "data", "doctor.py", "draw", "experiments", "files.py",
    "interrupts.py", "progress.py", "service", "student.py", "tables", "terminal.py",
)  # fmt: skip


@cache
def _sources() -> str:
    """Hash of every source that decides a number, and of the kind of machine."""
    root, digest = Path(driftwise.__file__).parent, hashlib.sha256(platform.machine().encode())
    for source in sorted(root.rglob("*.py")):
        if source.relative_to(root).parts[0] not in _ASIDE:
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


class Wanted(NamedTuple):
    """One policy's trial: where it belongs in the outcome, who plays where, and the name it is kept under."""

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
                name = identity(contest.world, policy, spec.seed, rounds)
                one = Wanted(figure, place, entry.label, contest.world, policy, name, len(rounds))
                everyone.append((one, spec.trials_of(entry)))
    for trial in range(spec.trials):
        yield from (one._replace(trial=trial) for one, trials in everyone if trial < trials)


def _missing(specs: Sequence[Spec], store: Store) -> list[Job]:
    """One job per world and trial, for all policies of all specs that have not played it."""
    jobs: dict[tuple[str, int, str, int], Job] = {}
    seen: set[tuple[str, int]] = set()
    for spec in specs:
        for one in _wanted(spec):
            if (one.name, one.trial) in seen or store.get(one.name, one.trial, one.rounds) is not None:
                continue
            seen.add((one.name, one.trial))
            place = (repr(one.world), spec.seed, str(spec.record), one.trial)
            job = jobs.setdefault(place, Job(one.world, spec.seed, spec.record, one.trial))
            job.policies[one.name] = one.policy
    return list(jobs.values())


def _play_all(missing: Sequence[Job], store: Store, workers: int, tick: Callable[[float], None]) -> None:
    def one(job: Job) -> None:
        result = simulate(
            job.policies, job.world, trials=[job.trial], seed=job.seed, record=job.record, jobs=1, progress=False
        )
        for name in job.policies:
            regret = result.regret[name][0]
            if not np.isfinite(regret).all():
                raise NumericalError(f"{name}: its regret in trial {job.trial} is no number; change its fields")
            store.put(name, job.trial, regret, float(result.seconds[name][0]))
        tick(job.cost)

    pool = ThreadPoolExecutor(workers)
    try:
        futures = [pool.submit(one, job) for job in missing]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            if future.done():
                future.result()
    except KeyboardInterrupt:
        print("driftwise: stopping after the trials under way; again to stop at once", file=sys.stderr)
        raise
    finally:
        try:
            pool.shutdown(cancel_futures=True)
        except KeyboardInterrupt:  # the files are whole whenever the process ends
            os._exit(130)


def _gather(spec: Spec, store: Store) -> Outcome:
    """The outcome of a spec whose trials are all there."""
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
        # A sweep keeps the last round of each contest; otherwise the one contest's rounds.
        regrets[where] = np.array([np.concatenate([regret for regret, _ in row]) for row in grid])
        times[where] = np.fmin.reduce([[taken for _, taken in row] for row in grid], axis=0)
    return figures(spec, regrets, times)
