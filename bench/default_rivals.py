"""Rivals of the default policy in one compiled loop: ridge regression and the logistic posterior, with a fade.

`practical(stream, rewards, seed)` is what a user has without tuning, and is told nothing. `grid(stream, rewards, seed)`
is what hindsight chooses from: posterior UCBs with a fixed memory and a fixed quantile, told the noise, the scale of
every feature and the scale of the means. Neither has an intercept of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from default_unseen import Array, Stream

VERSION = 1
"""Change it with the loop or a rival: the runner's cache forgets what other versions found."""
MEMORIES = (*(float(2**i) for i in range(4, 14)), math.inf)
QUANTILES = (1.0, 1.3, 1.65, 2.0)
UCB, SAMPLE, STUDENT, EPSILON = range(4)
GREEDY = 0.05
"""The share of random arms of ε-greedy."""


class Rival(NamedTuple):
    """How a rival plays: rounds it remembers, rule, multiple of the posterior's width, variance of the prior and of
    the noise (with a logistic likelihood the noise is not used)."""

    rounds: float
    rule: int
    width: float
    prior: Array
    noise: float
    logistic: bool


@njit(cache=True)
def factor_(G: Array, ridge: Array, scale: float, low: Array) -> None:
    """Cholesky factor of scale G + diag(ridge); G has its lower triangle."""
    for i in range(ridge.size):
        for j in range(i + 1):
            v = scale * G[i, j]
            if i == j:
                v += ridge[i]
            for k in range(j):
                v -= low[i, k] * low[j, k]
            low[i, j] = math.sqrt(max(v, 1e-300)) if i == j else v / low[j, j]


@njit(cache=True)
def forward_(low: Array, b: Array, z: Array) -> None:
    """z = low⁻¹ b."""
    for i in range(b.size):
        v = b[i]
        for k in range(i):
            v -= low[i, k] * z[k]
        z[i] = v / low[i, i]


@njit(cache=True)
def backward_(low: Array, z: Array, theta: Array) -> None:
    """theta = low⁻ᵀ z."""
    for i in range(z.size - 1, -1, -1):
        v = z[i]
        for k in range(i + 1, z.size):
            v -= low[k, i] * theta[k]
        theta[i] = v / low[i, i]


@njit(cache=True)
def widths_(low: Array, X: Array, Y: Array, width: Array) -> None:
    """‖low⁻¹ x‖ of the columns x of X (d, n)."""
    d, n = X.shape
    width[:] = 0.0
    for i in range(d):
        for a in range(n):
            Y[i, a] = X[i, a]
        for k in range(i):
            v = low[i, k]
            if v != 0.0:
                for a in range(n):
                    Y[i, a] -= v * Y[k, a]
        v = 1.0 / low[i, i]
        for a in range(n):
            Y[i, a] *= v
            width[a] += Y[i, a] * Y[i, a]
    for a in range(n):
        width[a] = math.sqrt(width[a])


@njit(cache=True)
def add_(G: Array, b: Array, x: Array, weight: float, value: float) -> None:
    """G += weight x x', b += value x."""
    for i in range(x.size):
        if x[i] != 0.0:
            b[i] += value * x[i]
            for j in range(i + 1):
                G[i, j] += weight * x[i] * x[j]


@njit(cache=True)
def odds_(x: Array, theta: Array) -> tuple[float, float, float]:
    """x'θ, the probability of a click, and its variance."""
    z = 0.0
    for i in range(x.size):
        z += x[i] * theta[i]
    z = min(max(z, -12.0), 12.0)
    p = 1.0 / (1.0 + math.exp(-z))
    return z, p, p * (1.0 - p)


@njit(cache=True)
def newton_(
    G: Array, b: Array, seen: Array, got: Array, t: int, gamma: float, ridge: Array, low: Array, z: Array, theta: Array
) -> None:
    """The logistic posterior's mode and curvature from all that is remembered of t rounds, from theta on."""
    first = 0 if gamma == 1.0 else max(0, t - int(10.0 / (1.0 - gamma)))
    last = np.empty_like(theta)
    for _ in range(8):
        G[:] = 0.0
        b[:] = 0.0
        weight = 1.0
        for s in range(t - 1, first - 1, -1):
            at, p, v = odds_(seen[s], theta)
            add_(G, b, seen[s], weight * v, weight * (v * at + got[s] - p))
            weight *= gamma
        last[:] = theta
        factor_(G, ridge, 1.0, low)
        forward_(low, b, z)
        backward_(low, z, theta)
        if np.abs(theta - last).max() <= 1e-2 * (1e-9 + np.abs(theta).max()):
            break


@njit(cache=True)
def play(
    arms: Array, means: Array, rewards: Array, prior: Array, noise: float, rounds: float, rule: int, width: float,
    logistic: bool, seed: int,
) -> float:
    """Regret of a rival; arms (1 or T, d, n)."""
    np.random.seed(seed)
    T, n = means.shape
    d = prior.size
    gamma, ridge, scale = 1.0 - 1.0 / rounds, 1.0 / prior, 1.0 if logistic else 1.0 / noise
    G, low, Y = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, n))
    b, z, theta, draw, score, wide = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(n), np.zeros(n)
    seen, got, x = np.zeros((T if logistic else 1, d)), np.zeros(T), np.zeros(d)
    regret, squares, due = 0.0, 0.0, 4
    for t in range(T):
        X = arms[t if arms.shape[0] > 1 else 0]
        factor_(G, ridge, scale, low)
        forward_(low, scale * b, z)
        backward_(low, z, theta)
        draw[:] = theta
        if rule == SAMPLE or rule == STUDENT:
            sd = width
            if rule == STUDENT:  # normal-inverse-gamma with a = b = 0.1: σ² is drawn too
                rest = max(squares - (z * z).sum(), 0.0)
                sd = math.sqrt((0.1 + 0.5 * rest) / np.random.gamma(0.1 + 0.5 * t, 1.0)) if t else 1.0
            for i in range(d):
                z[i] = np.random.normal()
            backward_(low, z, draw)
            for i in range(d):
                draw[i] = theta[i] + sd * draw[i]
        score[:] = 0.0
        for i in range(d):
            v = draw[i]
            for a in range(n):
                score[a] += v * X[i, a]
        if rule == UCB:
            widths_(low, X, Y, wide)
            for a in range(n):
                score[a] += width * wide[a]
        arm = np.argmax(score)
        if rule == EPSILON and np.random.random() < width:
            arm = np.random.randint(n)
        regret += means[t].max() - means[t, arm]
        r = rewards[t, arm]
        for i in range(d):
            x[i] = X[i, arm]
        if gamma < 1.0:
            G *= gamma
            b *= gamma
        squares += r * r
        if logistic:
            seen[t], got[t] = x, r
            at, p, v = odds_(x, theta)
            add_(G, b, x, v, v * at + r - p)
            if t + 1 >= due:
                newton_(G, b, seen, got, t + 1, gamma, ridge, low, z, theta)
                due = t + 1 + max(4, int(min(t + 1.0, rounds) / 4.0))
        else:
            add_(G, b, x, 1.0, r)
    return regret


def facts(stream: Stream, rewards: str) -> tuple[Array, float]:
    """What hindsight is told: the prior's variance of every weight, by the features' root mean squares and that of the
    means (of their log odds for clicks), and the variance of the noise."""
    arms, means, got = stream
    d = arms.shape[-1]
    p = np.clip(means, 1e-3, 1.0 - 1e-3)
    felt = np.log(p / (1.0 - p)) if rewards == "clicks" else means
    sizes = np.abs(arms.reshape(-1, d))
    usual = np.minimum(sizes, np.quantile(sizes, 0.999, axis=0))  # so that one mistaken decision is no scale
    square = (usual**2).mean(axis=0)
    worth = float((felt**2).mean())
    prior = worth / (d * np.where(square > 0.0, square, 1.0))
    return prior, max(float(((got - means) ** 2).mean()), 1e-6 * worth)


def columns(arms: Array) -> Array:
    """Arms (1 or T, d, n)."""
    return np.ascontiguousarray((arms if arms.ndim == 3 else arms[None]).transpose(0, 2, 1))


def regrets(stream: Stream, rivals: dict[str, Rival], seed: int) -> dict[str, float]:
    """What each rival loses on a stream."""
    X = columns(stream.arms)
    return {
        name: float(play(
            X, stream.means, stream.rewards, one.prior, one.noise, one.rounds, one.rule, one.width, one.logistic,
            1000 * seed + number,
        ))
        for number, (name, one) in enumerate(rivals.items())
    }  # fmt: skip


def practical(stream: Stream, rewards: str, seed: int) -> dict[str, float]:
    """Rivals that are told nothing, with their usual settings."""
    d, clicks = stream.arms.shape[-1], rewards == "clicks"
    ones = np.ones(d)
    return regrets(stream, {
        "LinUCB": Rival(math.inf, UCB, 1.0, ones, 1.0, False),
        "ε-greedy": Rival(math.inf, EPSILON, GREEDY, ones, 1.0, False),
        "D-LinTS": Rival(100.0, SAMPLE, 1.0, ones, 1.0, False),
        "static posterior": Rival(math.inf, UCB, 2.0, ones / d, 1.0, clicks),
        "bayesianbandits": Rival(math.inf, SAMPLE if clicks else STUDENT, 1.0, ones, 1.0, clicks),
    }, seed)  # fmt: skip


def grid(stream: Stream, rewards: str, seed: int, only: Iterable[str] | None = None) -> dict[str, float]:
    """Posterior UCBs by memory and quantile, named "64 1.3"; those in `only`, or all."""
    prior, noise = facts(stream, rewards)
    rivals = {
        f"{rounds:g} {c:g}": Rival(rounds, UCB, c, prior, noise, rewards == "clicks")
        for rounds in MEMORIES
        for c in QUANTILES
    }
    return regrets(stream, {name: rivals[name] for name in (rivals if only is None else only)}, seed)


def random_play(stream: Stream) -> float:
    """What an arm drawn at random loses on average."""
    return float((stream.means.max(axis=1) - stream.means.mean(axis=1)).sum())
