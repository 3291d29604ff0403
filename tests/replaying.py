"""A fast policy and its slow twin: memories and arms for both, runs with late rewards, and equal choices."""

import numpy as np
from hypothesis import strategies as st

import driftwise as dw


def memories(kind, gamma, rounds, capacity=None):
    """The same memory for the fast and for the naive policy."""
    return {
        "keep": (dw.Keep(), ("keep",)),
        "fade": (dw.Fade(1.0 - gamma), ("fade", 1.0 - gamma)),
        "window": (dw.Window(rounds, capacity=capacity), ("window", rounds)),
        "restart": (dw.Restart(rounds), ("restart", rounds)),
    }[kind]


def in_the_ball(rng, n, dim, longest=1.0):
    """Arms of all norms up to the longest."""
    arms = rng.standard_normal((n, dim))
    return arms * (longest * rng.uniform(0.05, 1.0, n) / np.linalg.norm(arms, axis=1))[:, None]


def same_choice(fast, slow, state, arms, tolerance):
    """The arm played is naive's best, or ties with it; mean and bonus of every arm agree. Returns the arm."""
    choice, scores = fast.choose(state, arms), fast.scores(state, arms)
    mean, bonus = slow.scores(arms)
    score = mean + bonus
    best = int(np.argmax(score))
    slack = tolerance * max(1.0, abs(score[best]))
    assert score[choice.arm] >= score[best] - slack
    rest = np.delete(score, best)
    if rest.size == 0 or score[best] - rest.max() > slack:
        assert choice.arm == best
    close = tolerance * np.maximum(1.0, np.abs(score))
    assert (np.abs(scores.mean - mean) <= close).all()
    assert (np.abs(scores.bonus - bonus) <= close).all()
    assert choice == (choice.arm, scores.score[choice.arm], scores.mean[choice.arm], scores.bonus[choice.arm])
    return choice.arm


# Sums of these are exact, so an observation that is exactly as old as the window is so for both.
exact = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 2.75, 60.0])
loose = st.floats(0.0, 3.0).map(lambda x: round(x, 3))


@st.composite
def lives(draw, lengths, steps):
    """A window or period, and steps: decide, reward an open decision late or out of order, let time pass, backfill."""
    rounds = draw(st.sampled_from(lengths))
    # With ticks whose sums are rounded, an age exactly equal to the window would depend on rounding.
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
    return rounds, draw(st.lists(step, min_size=5, max_size=steps))
