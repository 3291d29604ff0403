"""Simulation of policies in worlds: paired trials, compiled where the policy is; threads do not change the bits."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftwise import eight
from driftwise._internal.compiling import can_compile
from driftwise._internal.intervals import t_quantile
from driftwise._internal.progress import bar
from driftwise._internal.rng import checked_seed, key
from driftwise._internal.validate import is_integer, one_of, whole
from driftwise.errors import BadInput
from driftwise.kernels.chance import Rounds, reward_of
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats, Ints
from driftwise.policies import engines
from driftwise.policies.base import Compiled
from driftwise.policies.engines import Sizes
from driftwise.policies.neighbours.stepped import FixedRounds
from driftwise.policies.own import asked
from driftwise.policies.questions import Policy
from driftwise.worlds.base import Tape, World

Record = Literal["all", "last"] | int
Tasks = Generator[Callable[[], None], None, None]


@dataclass(frozen=True)
class Result:
    """The result of a simulation. `rounds` are the 1-based rounds recorded; every array has a row per trial.

    `seconds` is the processor time of the rounds alone; too few rounds to compile run as Python, which takes longer.
    `memory` is, for policies that choose among memories, the number of effective rounds that they played with. `report`
    is the report of each policy at the end of each trial: MASTER's blocks, restarts and tests, or learned noise and
    scale. If a world's arms are a continuous set, `x` has the vectors played (trials, rounds recorded, d), and arms are
    -1.
    """

    regret: dict[str, Floats]
    arms: dict[str, npt.NDArray[np.int32]]
    seconds: dict[str, Floats]
    rounds: Ints
    seed: int
    memory: dict[str, Floats]
    report: dict[str, list[dict[str, Any]]]
    x: dict[str, Floats] = field(default_factory=dict)

    def final(self, name: str) -> Floats:
        """Regret at the horizon, one number per trial."""
        return self.regret[name][:, -1]

    def interval(self, name: str, against: str | None = None) -> tuple[float, float]:
        """Mean final regret and the half-width of its 95% interval; of the paired difference if `against` is given."""
        return t_interval(self.final(name) - (self.final(against) if against else 0.0))


def t_interval(values: Floats) -> tuple[float, float]:
    """The mean of one number per trial and the half-width of its 95% interval, infinite for a single trial."""
    n = len(values)
    return float(values.mean()), half_width(float(values.std(ddof=1)) / math.sqrt(n), n) if n > 1 else math.inf


def half_width(error: float, trials: int) -> float:
    """The half-width of a 95% interval, from the standard error of a mean over trials (Student's t)."""
    return t_quantile(trials - 1) * error


def simulate(
    policies: Mapping[str, Policy] | Policy, world: World, *, trials: int | Sequence[int] = 20, seed: int = 0,
    jobs: int | None = None, record: Record = "all", stepped: bool = False, progress: bool | None = None,
) -> Result:
    """Play every policy in every trial of a world. All policies of a trial meet the same arms and the same tape.

    trials: how many, or a list of their numbers (a trial depends on the seed and its number only). record: "all"
    rounds, every k-th and the last (an int k), or "last". jobs: threads, by default one per core. stepped: run built-in
    policies call by call too. progress: a bar on stderr, by default in a terminal.
    """
    named = dict(policies) if isinstance(policies, Mapping) else {type(policies).__name__: policies}
    check_fit(named, world)
    numbers, seed = _numbers(trials), checked_seed(seed)
    one_of("stepped", stepped, [True, False])
    stepped = stepped or world.region is not None  # a continuous set is searched by a call per round
    count = len(numbers)
    workers = min(count, whole("jobs", jobs) if jobs is not None else os.cpu_count() or 1)
    rounds = recorded_rounds(record, world.horizon)
    result = Result(
        regret={name: np.empty((count, len(rounds))) for name in named},
        arms={name: np.empty((count, len(rounds)), dtype=np.int32) for name in named},
        seconds={name: np.zeros(count) for name in named},
        rounds=rounds,
        seed=seed,
        memory={name: np.empty((count, len(rounds))) for name, one in named.items()
                if _compiled(one, stepped) and len(asked(one).effective()) > 1},
        report={name: [{}] * count for name, one in named.items() if asked(one).reports},
        x={name: np.empty((count, len(rounds), world.dim)) for name in named if world.region is not None},
    )
    share = 0 if stepped else count // workers
    wide: dict[str, Any] = {name: one for name, one in named.items() if eight.plays_eight(one, world, share)}
    brief = _compile_all(named, wide, world, count, stepped)
    with bar("rounds", count * world.horizon * len(named), progress, least=1e6) as tick:
        def tasks() -> Tasks:
            for first in range(0, count, EIGHT):
                rows = range(first, min(first + EIGHT, count))
                alone: dict[str, Policy] = named
                if wide and len(rows) >= engines.FEWEST:
                    trials = [numbers[row] for row in rows]
                    yield partial(eight.play_eight, wide, world, trials, rows, result, tick)
                    alone = {name: one for name, one in named.items() if name not in wide}
                for row in rows if alone else ():
                    yield partial(_trial, alone, world, numbers[row], row, result, stepped, brief, tick)

        _work(tasks(), workers)
    return result


def _compile_all(
    named: Mapping[str, Policy], wide: Mapping[str, Any], world: World, count: int, stepped: bool
) -> set[str]:
    """Compile every entry that will be played, or load it from the cache, before times are measured.

    Returns the policies whose rounds are so few that they run as Python: compiling them takes longer.
    """
    brief: set[str] = set()
    if world.region is not None:  # searched by a call per round
        return brief
    for name, policy in named.items():
        if name in wide:
            eight.compile_eight(policy, world)  # type: ignore[arg-type]
        if _compiled(policy, stepped) and (name not in wide or 0 < count % EIGHT < engines.FEWEST):
            one: Any = policy
            sets = world.horizon if world.fresh else 1
            if one.is_brief(Sizes(sets, world.dim, world.count, world.horizon, count)):
                brief.add(name)
                continue
            arms = np.zeros((2 if world.fresh else 1, world.dim, world.count))  # the number of sets selects the entry
            nothing = Tape(arms, np.zeros((0, world.dim)), np.zeros(0), np.zeros(0))
            _play(one, one.start(0), world, nothing, 0.0, np.zeros(0, dtype=np.int64), np.zeros(0))
    return brief


def _work(tasks: Tasks, workers: int) -> None:
    """Do all tasks, each when a thread is free. No more tasks exist at once than threads."""
    lock = threading.Lock()

    def take() -> Callable[[], None] | None:
        with lock:
            return next(tasks, None)

    def work() -> None:
        try:
            while (task := take()) is not None:
                task()
        finally:  # after a failure no task is started
            with lock:
                tasks.close()

    if workers == 1:
        work()
        return
    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in [pool.submit(work) for _ in range(workers)]:
                done.result()
        finally:
            with lock:
                tasks.close()


def _numbers(trials: int | Sequence[int]) -> Sequence[int]:
    """The numbers of the trials to play."""
    if not isinstance(trials, (Sequence, np.ndarray)) or isinstance(trials, str):
        return range(whole("trials", trials))
    if not len(trials):
        raise BadInput("trials", trials, "how many, or at least one number", "pass trials=20")
    return [whole("trials", one, 0, "pass numbers from 0 up") for one in trials]


def recorded_rounds(record: Record, horizon: int) -> Ints:
    """The 1-based rounds that are recorded, always with the last one."""
    if record == "all":
        return np.arange(1, horizon + 1)
    if record == "last":
        return np.array([horizon])
    if isinstance(record, str):
        raise BadInput("record", record, '"all", "last" or a whole number k', "pass record=50 for every 50th round")
    every = whole("record", record, 1, 'pass "all", "last" or a whole number')
    kept = np.arange(every, horizon + 1, every)
    return kept if len(kept) and kept[-1] == horizon else np.append(kept, horizon)


def check_fit(named: Mapping[str, Policy], world: World) -> None:
    """Raise BadInput if there is no policy or no world, or if a policy does not fit the world."""
    if not isinstance(world, World):
        raise BadInput("world", world, "a world, e.g. dw.worlds.Turn()", "wrap arrays in dw.worlds.Given")
    if not named:
        raise BadInput("policies", named, "at least one policy", 'pass {"name": policy}')
    for name, policy in named.items():
        where = f"policies[{name!r}]"
        asked(policy, where).check_problem(where, world.problem)


def _compiled(policy: Policy, stepped: bool) -> bool:
    return not stepped and not asked(policy).stepped


def _trial(
    named: Mapping[str, Policy], world: World, trial: int, row: int, result: Result, stepped: bool, brief: set[str],
    tick: Callable[[float], None],
) -> None:
    """Play the trial of this number into a row of the result; rounds of `brief` policies run as Python."""
    states = {name: policy.start(seed=key(result.seed, "policy", trial)) for name, policy in named.items()}
    totals = dict.fromkeys(named, 0.0)
    done = 0
    for tape in world.tapes(result.seed, trial):
        size = len(tape.theta)
        chosen, regret = np.empty(size, dtype=np.int64), np.empty(size)
        vectors = np.empty((0 if world.region is None else size, world.dim))
        first, last = np.searchsorted(result.rounds, [done + 1, done + size + 1])
        kept = result.rounds[first:last] - done - 1
        for name, policy in named.items():
            play: Any = partial(_play, as_python=name in brief) if _compiled(policy, stepped) else _step
            if not stepped and len(tape.arms) == 1 and can_compile() and getattr(policy, "has_stretch", False):
                play = _stretch
            if world.region is not None:
                play = partial(_search, vectors=vectors)
            begun = time.thread_time()
            used = play(policy, states[name], world, tape, totals[name], chosen, regret)
            result.seconds[name][row] += time.thread_time() - begun
            totals[name] = float(regret[-1])
            result.regret[name][row, first:last] = regret[kept]
            result.arms[name][row, first:last] = chosen[kept]
            if name in result.x:
                result.x[name][row, first:last] = vectors[kept]
            if name in result.memory:
                result.memory[name][row, first:last] = policy.effective()[used[kept]]  # type: ignore[attr-defined]
            tick(size)
        done += size
    for name in result.report:
        result.report[name][row] = named[name].report(states[name])  # type: ignore[attr-defined]


def _play(
    policy: Compiled, state: Any, world: World, tape: Tape, total: float, chosen: Ints, regret: Floats,
    as_python: bool = False,
) -> Any:  # fmt: skip
    """Play a stretch of rounds in one call."""
    return policy.play(state, _rounds(world, tape), total, chosen, regret, as_python)


def _rounds(world: World, tape: Tape) -> Rounds:
    return Rounds(*tape, world.link_code, world.reward_code, float(world.noise))


def _stretch(
    policy: Any, state: Any, world: World, tape: Tape, total: float, chosen: Ints, regret: Floats
) -> None:
    """Play a stretch of rounds on fixed arms in one call of a policy without kernels (policies/neighbours)."""
    policy.stretch(state, FixedRounds(_rounds(world, tape), total, chosen, regret))


def _step(
    policy: Policy, state: Any, world: World, tape: Tape, total: float, chosen: Ints, regret: Floats
) -> None:
    """Play a stretch of rounds by single calls, as for a policy of the user's own."""
    fresh = len(tape.arms) > 1
    rows = _rows(tape.arms[0])
    for t in range(len(tape.theta)):
        arms = _rows(tape.arms[t]) if fresh else rows
        choice = policy.choose(state, arms)
        arm = getattr(choice, "arm", choice)
        if not is_integer(arm) or not 0 <= arm < len(arms):
            wanted = f"an arm from 0 to {len(arms) - 1}, or something with such an .arm"
            raise BadInput("choose", choice, wanted, "return the index of the arm")
        value = 0.0
        for i in range(world.dim):  # in the order of the compiled loop, so that both get the same bits
            value += arms[arm, i] * tape.theta[t, i]
        value = link_mean(world.link_code, value)
        total += tape.best[t] - value
        chosen[t], regret[t] = arm, total
        reward = reward_of(world.reward_code, value, float(world.noise), tape.draws[t])
        policy.learn(state, arms, int(arm), reward)


def _search(
    policy: Policy, state: Any, world: World, tape: Tape, total: float, chosen: Ints, regret: Floats, vectors: Floats
) -> None:
    """Play a stretch of rounds on a continuous set."""
    region = tape.arms
    for t in range(len(tape.theta)):
        choice = policy.choose(state, region)
        number = getattr(choice, "number", None)
        if number is None and not hasattr(choice, "x"):
            wanted = "something with the vector played as .x: the world's arms are a continuous set"
            raise BadInput("choose", choice, wanted, "return dw.Choice.of_set(...), or play a world with listed arms")
        x = region.vector(choice.x if number is None else number)
        value = 0.0
        for i in range(world.dim):
            value += float(x[i]) * float(tape.theta[t, i])
        value = link_mean(world.link_code, value)
        total += tape.best[t] - value
        chosen[t], regret[t], vectors[t] = -1, total, x
        reward = reward_of(world.reward_code, value, float(world.noise), tape.draws[t])
        policy.learn(state, region, x if number is None else number, reward)


def _rows(columns: Floats) -> Floats:
    """Arms (n, d), read-only: a policy must not change the arms of other policies."""
    rows = np.ascontiguousarray(columns.T)
    rows.flags.writeable = False
    return rows
