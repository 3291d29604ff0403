"""Eight trials of a policy at once. `simulate` uses it where policy, world and size allow it; the bits are the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.point import Floats, Ints
from driftwise.kernels.trials import FourRecord, FourRounds, eight_states_size
from driftwise.policies import engines
from driftwise.policies.base import Compiled
from driftwise.policies.engines import Sizes, bound
from driftwise.policies.live import NO_TESTS, on_a_line
from driftwise.policies.own import asked
from driftwise.policies.state import NO_SCRATCH
from driftwise.worlds.base import EightTrials, World

NO_INTS = np.zeros(0, dtype=np.int64)


def plays_eight(policy: object, world: World, trials: int = EIGHT) -> bool:
    """Whether this number of trials of a policy in a world is played eight at a time."""
    return world.plays_eight and asked(policy).plays_eight(Sizes(1, world.dim, world.count, world.horizon, trials))


def compile_eight(policy: Compiled, world: World) -> None:
    """Compile the entry, or load it from the cache, before times are measured."""
    none = np.zeros((0, EIGHT))
    nothing = EightTrials(np.zeros((0, world.dim, 4, EIGHT)), np.zeros((0, world.dim)), none, none)
    _play(policy, on_a_line(eight_states_size(world.dim)), world, nothing, np.zeros((0, EIGHT), dtype=np.int64), none)


def play_eight(
    named: Mapping[str, Compiled], world: World, trials: Sequence[int], rows: range, result: Any,
    tick: Callable[[float], None],
) -> None:
    """Play up to eight trials, given by their numbers, into rows of the result. Each gets its share of the seconds."""
    states = {name: on_a_line(eight_states_size(world.dim)) for name in named}
    count, done = len(rows), 0
    where = slice(rows.start, rows.stop)
    for tapes in world.tapes_of_eight(result.seed, trials):
        size = len(tapes.theta)
        chosen, regret = np.empty((size, EIGHT), dtype=np.int64), np.empty((size, EIGHT))
        first, last = np.searchsorted(result.rounds, [done + 1, done + size + 1])
        kept = result.rounds[first:last] - done - 1
        for name, policy in named.items():
            begun = time.thread_time()
            _play(policy, states[name], world, tapes, chosen, regret)
            result.seconds[name][where] += (time.thread_time() - begun) / count
            result.regret[name][where, first:last] = regret[kept, :count].T
            result.arms[name][where, first:last] = chosen[kept, :count].T
            tick(size * count)
        done += size


def _play(
    policy: Compiled, states: Floats, world: World, tapes: EightTrials, chosen: Ints, regret: Floats
) -> None:
    """Play a stretch of rounds in compiled code. `states` has the states of the eight trials."""
    rounds = FourRounds(*tapes, world.link_code, world.reward_code, float(world.noise))
    entry = bound(engines.EIGHT, policy.entries.family, policy.point)
    record = FourRecord(chosen, regret, NO_INTS)
    entry(*policy.point, states, NO_INTS, NO_SCRATCH, rounds, 0.0, record, NO_TESTS)
