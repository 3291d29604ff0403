"""Agents for the tests: a clock that the test moves, and rounds against a world."""

import numpy as np

import driftwise as dw
from driftwise.kernels.chance import reward_of
from driftwise.kernels.links import mean as link_mean


class Hand:
    """A clock that does not advance until the test moves it."""

    def __init__(self, at=0.0):
        self.at = at

    def __call__(self):
        return self.at


def linear(memory=None, dim=2, **fields):
    """A linear policy, which fades unless another memory is given."""
    defaults = {"lam": 1.0, "delta": 0.01}
    return dw.LinearUCB(dim=dim, memory=memory or dw.Fade(0.1), **{**defaults, **fields})


def unit_arms(count, dim, seed):
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def tape_of(world, seed=0, trial=0):
    """Arms (n, d) of every round and a function from (round, arm) to reward."""
    (tape,) = world.tapes(seed, trial)
    fresh = len(tape.arms) > 1
    rows = [np.ascontiguousarray(tape.arms[t if fresh else 0].T) for t in range(len(tape.theta))]

    def reward(t, arm):
        value = 0.0
        for i in range(world.dim):  # in the order of the compiled loop
            value += rows[t][arm, i] * tape.theta[t, i]
        return float(reward_of(world.reward_code, link_mean(world.link_code, value), world.noise, tape.draws[t]))

    return rows, reward
