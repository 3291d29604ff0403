"""Worlds against which rounding margins are tried: near ties of a few ulp, duplicates, zeros, tiny ridges, flips."""

import math

import numpy as np

import driftwise as dw
from driftwise.kernels.chance import Rounds
from driftwise.policies import engines

KINDS = ("sphere", "cube", "duplicates", "zeros", "basis", "tiny", "near ties", "clip")
PATHS = ("still", "turn", "jumps", "flip", "walk")


def arms_of(rng, kind, n, d):
    """Arms (n, d) in the unit ball."""
    X = rng.standard_normal((n, d))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    X = {
        "sphere": lambda: unit,
        "cube": lambda: rng.integers(-1, 2, (n, d)) / math.sqrt(d),
        "duplicates": lambda: unit[rng.integers(0, max(1, n // 4), n)],
        "zeros": lambda: unit * rng.integers(0, 2, (n, 1)),
        "basis": lambda: np.eye(d)[rng.integers(0, d, n)] * rng.choice([-1.0, 1.0], (n, 1)),
        "tiny": lambda: unit * 10.0 ** rng.uniform(-8, 0, (n, 1)),
        "near ties": lambda: unit[:1] * (1.0 + rng.integers(-3, 4, (n, d)) * 2.0**-52),
        "clip": lambda: X / np.linalg.norm(X, axis=1).max(),
    }[kind]()
    return X / max(1.0, np.linalg.norm(X, axis=1).max())


def path_of(rng, kind, T, d):
    theta = np.zeros((T, d))
    theta[:, 0] = 1.0
    if kind == "turn" and d > 1:
        angle = np.linspace(0.0, 2.0 * math.pi * rng.integers(1, 50), T)
        theta[:, 0], theta[:, 1] = np.cos(angle), np.sin(angle)
    if kind == "jumps":
        theta = np.repeat(rng.standard_normal((20, d)), -(-T // 20), axis=0)[:T]
    if kind == "flip":
        theta[1::2, 0] = -1.0
    if kind == "walk":
        theta = np.cumsum(0.05 * rng.standard_normal((T, d)), axis=0)
    return theta


def memory_of(rng):
    if rng.random() < 0.2:
        return dw.Restart(int(rng.integers(2, 300)))
    forget = float(rng.choice([0.0, 1e-4, 1e-3, 0.023, 0.2, 0.7]))
    return dw.Fade(forget) if forget else dw.Keep()


def drawn(rng, T, dims=(1, 2, 3, 5, 7, 8, 9, 12, 16, 17), sizes=(1, 3, 8, 9, 20, 50, 64, 130), kinds=KINDS):
    """A policy and its rounds (arms, path, draws, noise)."""
    d, n, noise, radius = (rng.choice(one) for one in (dims, sizes, (0.0, 0.1, 1.0, 100.0), (0.0, 1.0, 1.0, 1e4)))
    lam, exploration = rng.choice([1e-6, 1e-3, 1.0, d, 1e3]), rng.choice([0.0, 0.01, 0.1, 0.3, 1.0, 10.0])
    X = arms_of(rng, rng.choice(kinds), int(n), int(d))
    theta = radius * path_of(rng, rng.choice(PATHS), T, int(d))
    draws = rng.standard_normal(T)
    if rng.random() < 0.3:
        draws = np.round(draws)  # coarse rewards: exact ties last longer
    policy = dw.LinearUCB(
        dim=int(d), memory=memory_of(rng), lam=float(lam), delta=1 / T, S=max(float(radius), 1e-3), R=float(noise),
        exploration=float(exploration),
    )  # fmt: skip
    return policy, (np.ascontiguousarray(X.T[None]), theta, draws, float(noise))


def by(road, policy, arms, theta, draws, noise):
    """Arms, regret and sums of the rounds with one engine."""
    T = len(theta)
    chosen, regret, state = np.empty(T, dtype=np.int64), np.empty(T), policy.start()
    with engines.forced(road):
        policy.play(state, Rounds(arms, theta, draws, np.zeros(T), 0, 0, noise), 0.0, chosen, regret)
    return chosen, regret, state.floats


def differing(seed, rounds, T, **sizes):
    """The rounds in which a lazy play chooses another arm than a plain one, the worlds in which bits differ, and the
    number of rounds."""
    rng = np.random.default_rng(seed)
    arms, bits = 0, 0
    for _ in range(rounds // T):
        policy, world = drawn(rng, T, **sizes)
        plain, lazy = by("plain", policy, *world), by("lazy", policy, *world)
        arms += int((plain[0] != lazy[0]).sum())
        bits += any(one.tobytes() != other.tobytes() for one, other in zip(plain, lazy, strict=True))
    return arms, bits
