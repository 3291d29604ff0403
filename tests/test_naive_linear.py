"""The linear family against its slow twin: the naive policy replays the fast one's arms (STYLE.md)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftwise as dw
from naive import NaiveLinear

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


def memories(kind, gamma, rounds, capacity=None):
    """The same memory for the fast and for the naive policy."""
    if kind == "keep":
        return dw.Keep(), ("keep",)
    if kind == "fade":
        return dw.Fade(1.0 - gamma), ("fade", 1.0 - gamma)
    if kind == "window":
        return dw.Window(rounds, capacity=capacity), ("window", rounds)
    return dw.Restart(rounds), ("restart", rounds)


def twins(name, *, dim, gamma, rounds, lam, capacity=None, **numbers):
    """A fast policy and its naive twin."""
    kind, fast, slow = ALGORITHMS[name]
    ours, theirs = memories(kind, gamma, rounds, capacity)
    common = {"dim": dim, "lam": lam, "delta": 0.01, **numbers}
    return dw.LinearUCB(memory=ours, **common, **fast), NaiveLinear(memory=theirs, **common, **slow)


def in_the_ball(rng, n, dim, L=1.0):
    """Arms of norms up to L, of all lengths."""
    arms = rng.standard_normal((n, dim))
    return arms * (L * rng.uniform(0.05, 1.0, n) / np.linalg.norm(arms, axis=1))[:, None]


def same_choice(fast, slow, state, arms):
    """The arm played is naive's best, or ties with it; mean and bonus of every arm agree. Returns the arm."""
    choice, scores = fast.choose(state, arms), fast.scores(state, arms)
    mean, bonus = slow.scores(arms)
    score = mean + bonus
    best = int(np.argmax(score))
    slack = 1e-9 * max(1.0, abs(score[best]))
    assert score[choice.arm] >= score[best] - slack
    rest = np.delete(score, best)
    if rest.size == 0 or score[best] - rest.max() > slack:
        assert choice.arm == best
    close = 1e-9 * np.maximum(1.0, np.abs(score))
    assert (np.abs(scores.mean - mean) <= close).all()
    assert (np.abs(scores.bonus - bonus) <= close).all()
    assert choice == (choice.arm, scores.score[choice.arm], scores.mean[choice.arm], scores.bonus[choice.arm])
    return choice.arm


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
            arm = same_choice(fast, slow, state, arms)
            reward = arms[arm] @ theta + 0.3 * rng.standard_normal()
            fast.learn(state, arms, arm, reward)
            slow.learn(arms, arm, reward)
            theta = theta + 0.02 * rng.standard_normal(dim)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_hundreds_of_rounds_later_the_sums_are_still_the_direct_ones(name):
    # What is carried from round to round must not drift: windows turn over many times here.
    rng = np.random.default_rng(4)
    fast, slow = twins(name, dim=3, gamma=0.97, rounds=20, lam=1e-3)
    state, arms = fast.start(), in_the_ball(rng, 6, 3)
    for t in range(600):
        arm = same_choice(fast, slow, state, arms) if t % 20 == 19 else int(fast.choose(state, arms).arm)
        reward = arms[arm] @ np.array([0.6, 0.0, -0.5]) + rng.standard_normal()
        fast.learn(state, arms, arm, reward)
        slow.learn(arms, arm, reward)


# Sums of these are exact, so that an observation exactly as old as the window is as old for both.
exact = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 2.75, 60.0])
loose = st.floats(0.0, 3.0).map(lambda x: round(x, 3))


@st.composite
def lives(draw):
    """A window or period, and steps: decide, reward an open decision (late, out of order), let time pass, backfill."""
    rounds = draw(st.sampled_from([1.0, 2.5, 8.0, 40.0]))
    # With ticks whose sums are rounded, an age exactly equal to the window would be a matter of luck.
    kinds = [(exact, exact | st.just(rounds), rounds), (loose, loose, rounds + 1.7e-4)]
    ticks, ages, rounds = draw(st.sampled_from(kinds))
    step = st.one_of(
        st.tuples(st.just("decide"), ticks, st.just(0.0)),
        st.tuples(st.just("decide"), st.just(1.0), st.just(0.0)),
        st.tuples(st.just("reward"), ticks, st.integers(0, 5)),
        st.tuples(st.just("reward"), st.just(0.0), st.integers(0, 5)),
        st.tuples(st.just("advance"), ticks, st.just(0.0)),
        st.tuples(st.just("backfill"), ticks, ages),
    )
    return rounds, draw(st.lists(step, min_size=5, max_size=60))


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    life=lives(), dim=st.sampled_from([1, 2, 5, 20]), fresh=st.booleans(), seed=st.integers(0, 999),
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
            undecided.append((arms, same_choice(fast, slow, state, arms), slow.clock))
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
    same_choice(fast, slow, state, arms)
