"""The linear family against its slow twin: the naive policy replays the fast one's arms (CONTRIBUTING.md#laws)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftwise as dw
from naive import NaiveLinear
from replaying import in_the_ball, lives, memories, same_choice

# name -> (memory of both, fields of the fast policy, fields of the naive one)
ALGORITHMS = {
    "OFUL": ("keep", {}, {}),
    "LB-WeightUCB": ("fade", {}, {}),
    "D-LinUCB": ("fade", {"two_matrix": "correct"}, {"bonus": "two"}),
    "D-LinUCB as published": ("fade", {"two_matrix": "as-published"}, {"bonus": "two-as-published"}),
    "SW-UCB": ("window", {"radius": "cheung"}, {"radius": "cheung"}),
    "a window with the weighted radius": ("window", {}, {}),
    "a window with two matrices": ("window", {"two_matrix": "correct"}, {"bonus": "two"}),
    "RestartUCB": ("restart", {}, {}),
    "restarts with two matrices": ("restart", {"two_matrix": "correct"}, {"bonus": "two"}),
}
# (γ, rounds of window and period, λ): the ends of the ranges and some of the middle.
SETTINGS = [(0.5, 1, 1e-6), (0.9, 7, 1.0), (0.99, 25, 1e-3), (1.0, 1000, 100.0), (0.95, 40, 1e-6), (1.0, 12, 0.1)]
CLOSE = 1e-9


def twins(name, *, dim, gamma, rounds, lam, capacity=None, **numbers):
    """A fast policy and its naive twin."""
    kind, fast, slow = ALGORITHMS[name]
    ours, theirs = memories(kind, gamma, rounds, capacity)
    common = {"dim": dim, "lam": lam, "delta": 0.01, **numbers}
    return dw.LinearUCB(memory=ours, **common, **fast), NaiveLinear(memory=theirs, **common, **slow)


@pytest.mark.parametrize("fresh", [False, True], ids=["fixed arms", "fresh arms"])
@pytest.mark.parametrize("dim", [1, 2, 5, 20])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_choice_is_that_of_the_direct_weighted_sums(name, dim, fresh):
    for number, (gamma, rounds, lam) in enumerate(SETTINGS):
        rng = np.random.default_rng([dim, fresh, number])
        fast, slow = twins(name, dim=dim, gamma=gamma, rounds=rounds, lam=lam, S=0.7, L=1.5, R=0.3, exploration=0.8)
        state, arms = fast.start(), in_the_ball(rng, 9, dim, 1.5)
        theta = 0.7 * in_the_ball(rng, 1, dim)[0]
        for _ in range(60):
            arms = in_the_ball(rng, 9, dim, 1.5) if fresh else arms
            arm = same_choice(fast, slow, state, arms, CLOSE)
            reward = arms[arm] @ theta + 0.3 * rng.standard_normal()
            fast.learn(state, arms, arm, reward)
            slow.learn(arms, arm, reward)
            theta = theta + 0.02 * rng.standard_normal(dim)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_hundreds_of_rounds_later_the_sums_are_still_the_direct_ones(name):
    # Carried sums must not drift: windows turn over many times here.
    rng = np.random.default_rng(4)
    fast, slow = twins(name, dim=3, gamma=0.97, rounds=20, lam=1e-3)
    state, arms = fast.start(), in_the_ball(rng, 6, 3)
    for t in range(600):
        arm = same_choice(fast, slow, state, arms, CLOSE) if t % 20 == 19 else int(fast.choose(state, arms).arm)
        reward = arms[arm] @ np.array([0.6, 0.0, -0.5]) + rng.standard_normal()
        fast.learn(state, arms, arm, reward)
        slow.learn(arms, arm, reward)


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    life=lives([1.0, 2.5, 8.0, 40.0], 60), dim=st.sampled_from([1, 2, 5, 20]), fresh=st.booleans(),
    seed=st.integers(0, 999),
    gamma=st.sampled_from([0.5, 0.8, 0.97, 1.0 - 1e-9, 1.0]), lam=st.sampled_from([1e-6, 0.01, 1.0, 100.0]),
)  # fmt: skip
def test_late_and_disordered_rewards_give_the_direct_sums_too(name, life, dim, fresh, seed, gamma, lam):
    rng, (rounds, steps) = np.random.default_rng(seed), life
    fast, slow = twins(name, dim=dim, gamma=gamma, rounds=rounds, lam=lam, capacity=100)
    state, arms, theta = fast.start(), in_the_ball(rng, 4, dim), in_the_ball(rng, 1, dim)[0]
    undecided = []
    for what, ticks, extra in steps:
        if what == "decide":
            fast.advance(state, ticks)
            slow.advance(ticks)
            arms = in_the_ball(rng, 4, dim) if fresh else arms
            undecided.append((arms, same_choice(fast, slow, state, arms, CLOSE), slow.clock))
        elif what == "advance":
            fast.advance(state, ticks)
            slow.advance(ticks)
        elif what == "reward" and undecided:
            shown, arm, decided = undecided.pop(int(extra) % len(undecided))
            age, reward = max(0.0, slow.clock + ticks - decided), shown[arm] @ theta + rng.standard_normal()
            fast.learn(state, shown, arm, reward, ticks=ticks, age=age)
            slow.learn(shown, arm, reward, ticks=ticks, age=age)
        elif what == "backfill":
            fast.learn(state, arms, 0, 0.5, ticks=ticks, age=extra)
            slow.learn(arms, 0, 0.5, ticks=ticks, age=extra)
        weights = slow.weights()
        assert state.clock == slow.clock
        assert state.squares == pytest.approx(slow.squares(), rel=1e-9, abs=1e-12)
        if slow.memory[0] != "fade":
            assert state.observations == np.count_nonzero(weights)
            assert state.observations + state.dropped <= len(weights)
    same_choice(fast, slow, state, arms, CLOSE)
