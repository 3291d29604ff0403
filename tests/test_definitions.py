"""Memories by their definition: kernels carry the sums that `weight` defines, and their other properties hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

import driftwise as dw
from driftwise.kernels.point import WEIGHT
from driftwise.policies.memory import KINDS

# Ages and clocks are sums of binary fractions, so an observation exactly as old as a window is so for both sides.
MEMORIES = [
    dw.Keep(), dw.Fade(0.0), dw.Fade(0.1), dw.Fade(0.5), dw.Window(1, capacity=200), dw.Window(2.75, capacity=200),
    dw.Window(8, capacity=200), dw.Restart(0.75), dw.Restart(3), dw.Restart(16),
    dw.Restart(at=(0.75, 2.0, 9.0)),
]  # fmt: skip
WHOLE = [
    dw.Keep(), dw.Fade(0.0), dw.Fade(0.04), dw.Fade(0.5), dw.Window(2), dw.Window(30), dw.Restart(2), dw.Restart(30),
]  # fmt: skip
memories = pytest.mark.parametrize("memory", MEMORIES, ids=repr)
whole = pytest.mark.parametrize("memory", WHOLE, ids=repr)

ARMS = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, -0.6, 0.5], [-0.3, 0.2, 0.9], [0.0, 0.0, 0.0]])
times = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 2.75, 3.0, 8.0, 40.0])
arms = st.none() | st.integers(0, len(ARMS) - 1)
rewards = st.floats(-10.0, 10.0)


def linear(memory, two_matrix=None):
    """A linear policy with this memory."""
    return dw.LinearUCB(dim=3, memory=memory, lam=1.0, delta=0.1, two_matrix=two_matrix)


def check_stream(memory, steps):
    """A stream of (ticks, age, arm, reward), arm None for time alone: after each step every sum is the direct one."""
    policy = linear(memory, two_matrix="correct")
    state, clock, seen = policy.start(), 0.0, []
    for ticks, age, arm, reward in steps:
        clock += ticks
        if arm is None:
            policy.advance(state, ticks)
        else:
            policy.learn(state, ARMS, arm, reward, ticks=ticks, age=age)
            seen.append((ARMS[arm], reward, clock - age))
        assert state.clock == clock
        w = np.array([memory.weight(clock - born, clock) for _, _, born in seen])
        x = np.array([x for x, _, _ in seen]).reshape(-1, 3)
        r = np.array([reward for _, reward, _ in seen])
        near = {"rtol": 1e-9, "atol": 1e-11 * max(1.0, float(np.abs(r).sum()))}
        np.testing.assert_allclose(np.tril(state.G[0]), np.tril((x.T * w) @ x), **near)
        np.testing.assert_allclose(np.tril(state.twin[0]), np.tril((x.T * w**2) @ x), **near)
        np.testing.assert_allclose(state.b[0], x.T @ (w * r), **near)
        assert state.weight == state.counters[0, WEIGHT] == pytest.approx(w.sum(), rel=1e-9, abs=1e-12)
        assert state.squares == pytest.approx((w**2).sum(), rel=1e-9, abs=1e-12)


@memories
@given(steps=st.lists(st.tuples(times, times, arms, rewards), max_size=40))
def test_sums_are_the_weighted_sums_over_all_observations_seen(memory, steps):
    check_stream(memory, steps)


@memories
def test_long_streams_are_weighted_as_short_ones(memory):
    # Windows turn over many times, which a list that hypothesis draws does not.
    rng = np.random.default_rng(0)
    check_stream(memory, [
        (float(rng.choice([0.0, 0.5, 1.0, 1.0])), float(rng.choice([0.0, 0.0, 0.0, 1.5, 6.0])),
         int(rng.integers(len(ARMS))) if rng.random() < 0.9 else None, float(rng.normal()))
        for _ in range(400)
    ])  # fmt: skip


def test_a_weight_that_is_a_little_off_would_be_found_out():
    class Off(dw.Fade):
        def weight(self, age, now=math.inf):
            return super().weight(age, now) * (1.0 + 1e-6 * age)

    class Late(dw.Restart):
        def weight(self, age, now=math.inf):
            return super().weight(age, now + 0.25)

    steps = [(1.0, 0.0, 0, 1.0)] * 9
    for memory in (Off(0.1), Late(3)):
        with pytest.raises(AssertionError):
            check_stream(memory, steps)


@memories
@given(age=st.floats(0.0, 1e6))
def test_an_observation_weighs_from_0_to_1(memory, age):
    assert 0.0 <= memory.weight(age) <= memory.weight(0.0) == 1.0


def total(memory, rounds=3000):
    """Σ of the weights of ages 0, 1, 2, …"""
    return math.fsum(memory.weight(float(age)) for age in range(rounds))


@whole
def test_the_rounds_remembered_are_the_sum_of_weights_of_a_reward_a_tick(memory):
    if math.isinf(memory.rounds):
        assert total(memory, 500) == 500.0
    else:
        assert total(memory) == pytest.approx(memory.rounds, rel=1e-12)
    if memory.forget:
        assert memory.rounds == 1.0 / memory.forget


def steady(memory, rounds, **fields):
    """A state after so many rounds with a reward each."""
    policy = linear(memory, **fields)
    state = policy.start()
    for _ in range(rounds):
        policy.learn(state, ARMS, 0, 1.0)
    return state


@whole
def test_a_state_comes_to_weigh_the_rounds_remembered(memory):
    ended = isinstance(memory, dw.Restart)  # the last state of a period lacks the round that ends it
    rounds = int(memory.rounds) - 1 if ended else 700
    assert steady(memory, rounds).weight + ended == pytest.approx(min(memory.rounds, 700.0), rel=1e-12)


@pytest.mark.filterwarnings("ignore:a window with room:RuntimeWarning")
@pytest.mark.parametrize("length", [0.5, 1.0, 2.5, 3.0, 17.0])
def test_there_is_room_for_a_reward_a_tick_and_not_for_less(length):
    window = dw.Window(length)
    assert steady(window, 60).dropped == 0
    assert steady(window, 60).observations == window.room()
    if window.room() > 1:
        assert steady(dw.Window(length, capacity=window.room() - 1), 60).dropped > 0


def test_only_what_is_taken_out_one_by_one_needs_room_and_forbids_one_pass():
    for memory in WHOLE:
        taken_out = False
        for now in range(1, 100):
            born = range(1, now + 1)
            before = [memory.weight(float(now - one), float(now)) for one in born]
            after = [memory.weight(float(now + 1 - one), float(now + 1)) for one in born]
            factors = [b / a for a, b in zip(before, after, strict=True) if a > 0.0]
            # If all weights change by one factor (0 at a restart), sums can follow; else observations must be removed.
            taken_out |= bool(factors) and max(factors) - min(factors) > 1e-12
        assert memory.one_pass is not taken_out, memory
        assert bool(memory.room()) is not memory.one_pass, memory


@whole
def test_one_pass_is_refused_exactly_where_it_cannot_follow(memory):
    known = {"dim": 3, "memory": memory, "lam": 1.0, "delta": 0.1}
    if memory.one_pass:
        dw.research.GLMUCB(**known, estimate="one-pass")
    else:
        with pytest.raises(dw.BadInput, match=r"Keep\(\), Fade\(forget\) or Restart\(period\)"):
            dw.research.GLMUCB(**known, estimate="one-pass")


@pytest.mark.parametrize("kind", KINDS.values())
def test_a_lasting_memory_forgets_nothing_while_it_lasts(kind):
    memory = kind.lasting(50.0)
    assert type(memory) is kind
    ages = [(float(now - born), float(now)) for now in range(50) for born in range(1, now + 1)]
    assert all(memory.weight(*one) == pytest.approx(1.0, rel=1e-14) for one in ages)


def test_every_memory_is_defined_here():
    assert {type(memory) for memory in MEMORIES} == {type(memory) for memory in WHOLE} == set(KINDS.values())


@pytest.mark.parametrize("memory", [dw.Keep(), dw.Fade(0.1), dw.Restart(7)], ids=repr)
def test_one_pass_follows_a_memory_with_a_link_of_the_users_own_as_with_ours(memory):
    # Here Python fades, clears and projects, as compiled code does for others. A small ridge moves θ̂ out of the ball.
    link = dw.research.Link(mean=expit, slope=lambda z: expit(z) * expit(-z), k=0.25, c=float(expit(1.0) * expit(-1.0)))
    known = {"dim": 2, "memory": memory, "lam": 0.7, "delta": 0.1, "R": 0.5, "estimate": "one-pass"}
    pair = [dw.research.GLMUCB(**known, link=one) for one in (link, "logistic")]
    states, left = [policy.start() for policy in pair], 0
    for t in range(30):
        for policy, state in zip(pair, states, strict=True):
            policy.learn(state, ARMS[:4, :2], t % 4, float(t % 4 < 2), ticks=0.5 + t % 2, age=float(t % 4 == 1))
        np.testing.assert_allclose(states[0].theta, states[1].theta, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(states[0].shown, states[1].shown, rtol=1e-6, atol=1e-7)
        left += np.linalg.norm(states[0].theta) > 1.0
    assert left > 5
