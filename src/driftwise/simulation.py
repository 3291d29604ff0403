"""A policy against a world: paired trials, compiled where the policy is, the same bits serial or parallel."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftwise.border import whole
from driftwise.errors import BadInput
from driftwise.kernels.chance import reward_of
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.base import NORM_SLACK, Compiled, Policy
from driftwise.rng import checked_seed, key
from driftwise.worlds.base import Tape, World

Record = Literal["all", "last"] | int


@dataclass(frozen=True)
class Result:
    """What came of a simulation. `rounds` are the 1-based rounds recorded; every array has a row per trial.

    `memory` says, for policies that choose among memories as they go, with how many effective rounds they played;
    `report` what MASTER did in each trial: blocks, restarts, firings of its tests.
    """

    regret: dict[str, Floats]
    arms: dict[str, npt.NDArray[np.int32]]
    seconds: dict[str, Floats]
    rounds: Ints
    seed: int
    memory: dict[str, Floats]
    report: dict[str, list[dict[str, int]]]

    def final(self, name: str) -> Floats:
        """Regret at the horizon, a number per trial."""
        return self.regret[name][:, -1]

    def interval(self, name: str, against: str | None = None) -> tuple[float, float]:
        """Mean final regret and the half-width of its 95% interval; of the paired difference if `against` is given."""
        values = self.final(name) - (self.final(against) if against else 0.0)
        if len(values) < 2:
            return float(values.mean()), math.inf
        from scipy.stats import t as student

        width = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        return float(values.mean()), float(width)


def simulate(
    policies: Mapping[str, Policy] | Policy, world: World, *, trials: int = 20, seed: int = 0, jobs: int | None = None,
    record: Record = "all", stepped: bool = False, progress: bool | None = None,
) -> Result:
    """Play every policy in every trial of a world; all policies of a trial meet the same arms and the same tape.

    record: "all" rounds, every k-th and the last (an int k), or "last". jobs: threads, by default one per core.
    stepped: run built-in policies a call at a time too, as a policy of your own is. progress: a bar on stderr, by
    default when that is a terminal.
    """
    named = dict(policies) if isinstance(policies, Mapping) else {type(policies).__name__: policies}
    _check(named, world)
    trials, seed = whole("trials", trials), checked_seed(seed)
    workers = min(trials, whole("jobs", jobs) if jobs is not None else os.cpu_count() or 1)
    rounds = recorded_rounds(record, world.horizon)
    result = Result(
        regret={name: np.empty((trials, len(rounds))) for name in named},
        arms={name: np.empty((trials, len(rounds)), dtype=np.int32) for name in named},
        seconds={name: np.zeros(trials) for name in named},
        rounds=rounds,
        seed=seed,
        memory={name: np.empty((trials, len(rounds))) for name, one in named.items() if _effective(one, stepped)},
        report={name: [{}] * trials for name, policy in named.items() if hasattr(policy, "report")},
    )
    for policy in named.values():
        if _compiled(policy, stepped):
            _compile(policy, world)  # type: ignore[arg-type]
    with _bar(progress, trials * world.horizon * len(named)) as tick:
        def run(trial: int) -> None:
            _trial(named, world, trial, result, stepped, tick)

        if workers == 1:
            for trial in range(trials):
                run(trial)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run, range(trials)))
    return result


def recorded_rounds(record: Record, horizon: int) -> Ints:
    """The 1-based rounds that are kept; the last one always is."""
    if record == "all":
        return np.arange(1, horizon + 1)
    if record == "last":
        return np.array([horizon])
    if isinstance(record, str):
        raise BadInput("record", record, '"all", "last" or a whole number k', "pass record=50 for every 50th round")
    every = whole("record", record, 1, 'pass "all", "last" or a whole number')
    kept = np.arange(every, horizon + 1, every)
    return kept if len(kept) and kept[-1] == horizon else np.append(kept, horizon)


def _check(named: Mapping[str, Policy], world: World) -> None:
    if not isinstance(world, World):
        raise BadInput("world", world, "a world, e.g. dw.worlds.Turn()", "wrap arrays in dw.worlds.Given")
    if not named:
        raise BadInput("policies", named, "at least one policy", 'pass {"name": policy}')
    for name, policy in named.items():
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise BadInput(f"policies[{name!r}]", policy, "an object with start, choose and learn", "see dw.checks")
        if isinstance(policy, Compiled):
            if policy.dim != world.dim:
                wanted = f"dim = {world.dim}, the world's"
                raise BadInput(f"policies[{name!r}]", f"dim = {policy.dim}", wanted, "make it for this world")
            if world.L > policy.L * (1.0 + NORM_SLACK):
                wanted = f"L of at least {world.L:g}, the world's longest arm"
                raise BadInput(f"policies[{name!r}]", f"L = {policy.L:g}", wanted, "pass a larger L")


def _compiled(policy: Policy, stepped: bool) -> bool:
    return isinstance(policy, Compiled) and not stepped and not policy.stepped


def _effective(policy: Policy, stepped: bool) -> bool:
    """Whether a policy plays by several memories and says which."""
    return _compiled(policy, stepped) and len(getattr(policy, "effective", list)()) > 1


def _compile(policy: Compiled, world: World) -> None:
    """Have the entry compiled, or loaded from the cache, before any clock runs."""
    nothing = Tape(np.zeros((1, world.dim, 1)), np.zeros((0, world.dim)), np.zeros(0), np.zeros(0))
    _play(policy, policy.start(0), world, nothing, 0.0, np.zeros(0, dtype=np.int64), np.zeros(0))


def _trial(
    named: Mapping[str, Policy], world: World, trial: int, result: Result, stepped: bool, tick: Callable[[int], None]
) -> None:
    states = {name: policy.start(seed=key(result.seed, "policy", trial)) for name, policy in named.items()}
    totals = dict.fromkeys(named, 0.0)
    done = 0
    for tape in world.tapes(result.seed, trial):
        size = len(tape.theta)
        chosen, regret = np.empty(size, dtype=np.int64), np.empty(size)
        first, last = np.searchsorted(result.rounds, [done + 1, done + size + 1])
        kept = result.rounds[first:last] - done - 1
        for name, policy in named.items():
            play = _play if _compiled(policy, stepped) else _step
            begun = time.perf_counter()
            used = play(policy, states[name], world, tape, totals[name], chosen, regret)  # type: ignore[arg-type]
            result.seconds[name][trial] += time.perf_counter() - begun
            totals[name] = float(regret[-1])
            result.regret[name][trial, first:last] = regret[kept]
            result.arms[name][trial, first:last] = chosen[kept]
            if name in result.memory:
                result.memory[name][trial, first:last] = policy.effective()[used[kept]]  # type: ignore[attr-defined, index]
            tick(size)
        done += size
    for name in result.report:
        result.report[name][trial] = named[name].report(states[name])  # type: ignore[attr-defined]


def _play(
    policy: Compiled, state: Any, world: World, tape: Tape, total: float, chosen: Ints, regret: Floats
) -> Any:
    """A stretch of rounds in compiled code."""
    return policy.play(state, *tape, world.link_code, world.reward_code, float(world.noise), total, chosen, regret)


def _step(
    policy: Policy, state: Any, world: World, tape: Tape, total: float, chosen: Ints, regret: Floats
) -> None:
    """A stretch of rounds a call at a time: what a policy of the user's own gets."""
    fresh = len(tape.arms) > 1
    rows = _rows(tape.arms[0])
    for t in range(len(tape.theta)):
        arms = _rows(tape.arms[t]) if fresh else rows
        choice = policy.choose(state, arms)
        arm = getattr(choice, "arm", choice)
        if not isinstance(arm, (int, np.integer)) or not 0 <= arm < len(arms):
            wanted = f"an arm from 0 to {len(arms) - 1}, or something with such an .arm"
            raise BadInput("choose", choice, wanted, "return the index of the arm")
        value = 0.0
        for i in range(world.dim):  # in the order of the compiled loop, so that both see the same bits
            value += arms[arm, i] * tape.theta[t, i]
        value = link_mean(world.link_code, value)
        total += tape.best[t] - value
        chosen[t], regret[t] = arm, total
        reward = reward_of(world.reward_code, value, float(world.noise), tape.draws[t])
        policy.learn(state, arms, int(arm), reward)


def _rows(columns: Floats) -> Floats:
    """Arms (n, d), read-only: a policy must not change what others will see."""
    rows = np.ascontiguousarray(columns.T)
    rows.flags.writeable = False
    return rows


@contextmanager
def _bar(progress: bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr for long work; nothing when stderr is no terminal or the work is short."""
    wanted = sys.stderr.isatty() if progress is None else progress
    if not wanted or (progress is None and total < 10**6):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("rounds"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rounds", total=total)
        yield lambda rounds: bar.advance(task, rounds)
