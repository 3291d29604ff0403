"""The law of a memory's file (kernels/memories): an observation has the weight that `Memory.weight` gives its age."""

import math

import numpy as np
import pytest

import driftwise as dw
from driftwise.policies.memory import KINDS
from interpreting import interpreted

# Ages are sums of binary fractions, so an observation exactly as old as a window is so for both sides.
MEMORIES = [dw.Keep(), dw.Fade(0.1), dw.Window(2.75), dw.Restart(3.0), dw.Restart(at=(1.25, 4.5, 5.0))]
ARM = np.array([[0.6, -0.3]])
STEPS = (0.0, 0.25, 0.5, 1.0, 1.0, 1.75, 3.0, 8.0)
LATE = (0.0, 0.25, 1.0, 2.5, 2.75, 6.0)
memories = pytest.mark.parametrize("memory", MEMORIES, ids=repr)


def held_to_its_weight(memory, learn, pass_time, weighed):
    """One observation learned at an age: as time passes, its weight in the kernels is that of the memory."""
    for start in (0.0, 1.0, 4.5):
        for late in LATE:
            state, clock = learn(start, late), start
            born = clock - late
            for step, ticks in enumerate((0.0, *STEPS)):
                if step > 0:  # and at once, before the passing of time could correct an error
                    pass_time(state, ticks)
                clock += ticks
                expected, place = memory.weight(clock - born, clock), f"{start, late, clock}"
                np.testing.assert_allclose(weighed(state), expected, rtol=1e-12, atol=1e-15, err_msg=place)


def by_policy(memory, policy, weighed):
    """The same for the compiled entries of a policy."""

    def learn(start, late):
        state = policy.start()
        policy.learn(state, ARM, 0, 0.5, ticks=start, age=late)
        return state

    held_to_its_weight(memory, learn, policy.advance, weighed)


@memories
def test_the_sums_hold_an_observation_with_the_weight_of_its_age(memory):
    policy = dw.LinearUCB(dim=2, memory=memory, lam=1.0, delta=0.1)
    by_policy(memory, policy, lambda state: np.array([
        state.G[0, 0, 0] / 0.36, state.G[0, 1, 0] / -0.18, state.G[0, 1, 1] / 0.09, state.b[0, 0] / 0.3, state.weight,
        math.sqrt(state.squares),
    ]))  # fmt: skip


@memories
def test_the_atoms_hold_an_observation_with_the_weight_of_its_age(memory):
    policy = dw.research.GLMUCB(dim=2, memory=memory, lam=1.0, delta=0.1, horizon=50)
    by_policy(memory, policy, lambda state: np.array([state.weights[0].sum(), 2.0 * state.targets[0].sum()]))


def test_every_memory_is_held_to_its_weight():
    assert {type(memory) for memory in MEMORIES} == set(KINDS.values())


# ----------------------------------------------------------------------------------- one memory's pieces, and mistakes


def by_phases(memory, own, atoms=False):
    """The same for the phases of one memory's pieces, interpreted."""
    from driftwise.kernels.memories.phases import phases_of
    from driftwise.kernels.point import Lesson, history_of, sums_of

    known = {"dim": 2, "memory": memory, "lam": 1.0, "delta": 0.1}
    policy = dw.research.GLMUCB(**known, horizon=50) if atoms else dw.LinearUCB(**known, radius="posterior")
    learns, X = phases_of(own).learn_, ARM.T[None].copy()

    def lesson(state, arm, ticks, age=0.0):
        flags = policy.layout.flags
        sums, history = sums_of(flags, state.floats), history_of(flags, state.floats, state.ints)
        learns(policy.point, 0, 0, Lesson(X, 0, arm, 0.5, ticks, age), sums, history)

    def learn(start, late):
        state = policy.start()
        lesson(state, 0, start, late)
        return state

    weighed = lambda state: np.array([state.G[0, 0, 0] / 0.36, state.b[0, 1] / -0.15, state.weight])  # noqa: E731
    held_to_its_weight(memory, learn, lambda state, ticks: lesson(state, -1, ticks), weighed)


def try_phases():
    from driftwise.kernels.memories import any, fade, keep, restart, window

    assert {memory.code for memory in MEMORIES} == any.MEMORIES.keys()
    for memory in MEMORIES:
        kind = any.MEMORIES[memory.code]
        by_phases(memory, kind.sums)
        by_phases(memory, kind.atoms or kind.sums, atoms=True)
    keeps = keep.KIND.sums
    mistakes = [
        (fade, {"weight": keeps.weight}), (fade, {"run_": keeps.run_}), (window, {"run_": keeps.run_}),
        (window, {"accepts": keeps.accepts}), (restart, {"turn_": keeps.turn_, "run_": keeps.run_}),
        (restart, {"accepts": keeps.accepts}),
    ]  # fmt: skip
    for file, pieces in mistakes:
        memory = next(one for one in MEMORIES if one.code == file.KIND.code)
        try:
            by_phases(memory, file.KIND.sums._replace(**pieces))
        except AssertionError:
            continue
        raise SystemExit(f"{file.__name__} with {pieces} has another weight than {memory}, and was not found out")


def test_the_phases_made_of_one_memorys_pieces_keep_the_law_and_mistakes_in_it_are_found_out():
    interpreted("import test_memories; test_memories.try_phases()")
