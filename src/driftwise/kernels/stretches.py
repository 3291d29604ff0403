"""Rounds on fixed arms for policies that otherwise run call by call: the same formulas, in one compiled loop.

Experiments of neighbouring papers have up to 240,000 rounds a run, and a call from Python per round takes 30 times as
long. Every loop chooses and learns as its policy does, so the bits are those of single calls.
"""

from __future__ import annotations

import math

from driftwise._internal.elementary import exp
from driftwise.kernels import formula, kernel
from driftwise.kernels.chance import reward_of
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats, Ints
from driftwise.kernels.ridge import ridge_scores_, ridge_take_
from driftwise.theory.radius import rare_deviation, weighted_deviation


@formula
def exp3_chances_(weights: Floats, mix: float, out: Floats) -> float:
    """out <- the probability of every arm: (1-mix)w/Σw + mix/n. Returns Σw."""
    total = 0.0
    for i in range(weights.size):
        total += weights[i]
    for i in range(weights.size):
        out[i] = (1.0 - mix) * weights[i] / total + mix / weights.size
    return total


@formula
def exp3_drawn(chances: Floats, level: float) -> int:
    """The first arm whose cumulative probability exceeds the level; the last one if rounding leaves none."""
    sum_ = 0.0
    for i in range(chances.size - 1):
        sum_ += chances[i]
        if sum_ > level:
            return i
    return int(chances.size - 1)


@formula
def exp3_take_(weights: Floats, total: float, chance: float, arm: int, gain: float, mix: float, share: float) -> None:
    """The weights after a gain in [0, 1] of an arm. The largest becomes 1: a common factor changes no probability."""
    n = weights.size
    weights[arm] *= exp(mix * gain / chance / n)
    most = 0.0
    for i in range(n):
        weights[i] += math.e * share / n * total
        most = max(most, weights[i])
    for i in range(n):
        weights[i] /= most


@kernel
def exp3_rounds_(
    weights: Floats, chances: Floats, levels: Floats, mix: float, share: float, low: float, high: float,
    X: Floats, theta: Floats, best: Floats, draws: Floats, link: int, kind: int, noise: float, total: float,
    chosen: Ints, regret: Floats,
) -> None:  # fmt: skip
    """Rounds of EXP3.S; `levels` are uniform numbers that draw the arms."""
    for t in range(theta.shape[0]):
        sum_ = exp3_chances_(weights, mix, chances)
        arm = exp3_drawn(chances, levels[t])
        value = _mean_of(X, arm, theta, t, link)
        total += best[t] - value
        chosen[t], regret[t] = arm, total
        gain = (reward_of(kind, value, noise, draws[t]) - low) / (high - low)
        exp3_take_(weights, sum_, chances[arm], arm, min(1.0, max(0.0, gain)), mix, share)


@formula
def _mean_of(X: Floats, arm: int, theta: Floats, t: int, link: int) -> float:
    value = 0.0
    for i in range(X.shape[1]):
        value += X[arm, i] * theta[t, i]
    return link_mean(link, value)


@kernel
def weighted_rounds_(
    V: Floats, b: Floats, done: int, window: int, lam: float, alpha: float, gamma: float, beta: float, sigma: float,
    low: Floats, rows: Floats, out: Floats, X: Floats, theta: Floats, best: Floats, draws: Floats, link: int, kind: int,
    noise: float, total: float, chosen: Ints, regret: Floats,
) -> None:  # fmt: skip
    """Rounds of Restarted-WeightedOFUL+ with a constant β; a negative sigma is that of rare noise."""
    for t in range(theta.shape[0]):
        ridge_scores_(V, 0, b, X, low, rows, out)
        arm = 0
        for a in range(1, X.shape[0]):
            if out[0, a] + beta * out[1, a] > out[0, arm] + beta * out[1, arm]:
                arm = a
        value = _mean_of(X, arm, theta, t, link)
        total += best[t] - value
        chosen[t], regret[t] = arm, total
        k = done + t + 1
        known = sigma if sigma >= 0.0 else rare_deviation(k)
        deviation = weighted_deviation(known, alpha, gamma, out[1, arm])
        ridge_take_(V, 0, b, X[arm], reward_of(kind, value, noise, draws[t]), 1.0 / (deviation * deviation))
        if (k + 1) % window == 0:
            b[:] = 0.0
            V[:] = 0.0
            for i in range(X.shape[1]):
                V[0, i, i] = lam


@kernel
def save_rounds_(
    V: Floats, b: Floats, heard: Floats, done: int, window: int, low: Floats, rows: Floats, out: Floats, X: Floats,
    theta: Floats, best: Floats, draws: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints,
    regret: Floats,
) -> None:  # fmt: skip
    """Rounds of Restarted SAVE+ with β = 2^(1-l) in layer l."""
    layers = V.shape[0]
    for t in range(theta.shape[0]):
        for layer in range(layers):
            ridge_scores_(V, layer, b, X, low, rows, out[layer])
        arm, most = 0, -math.inf
        for a in range(X.shape[0]):
            least, scale = math.inf, 1.0
            for layer in range(layers):
                least = min(least, out[layer, 0, a] + scale * out[layer, 1, a])
                scale *= 0.5
            if least > most:
                arm, most = a, least
        value = _mean_of(X, arm, theta, t, link)
        total += best[t] - value
        chosen[t], regret[t] = arm, total
        reward, scale = reward_of(kind, value, noise, draws[t]), 0.5
        for layer in range(layers):
            width = out[layer, 1, arm]
            if width >= scale:
                weight = (scale / width) * (scale / width)
                ridge_take_(V, layer, b, X[arm], reward, weight)
                heard[layer, 0] += weight * reward * reward
                heard[layer, 1] += 1.0
                break
            scale *= 0.5
        if (done + t + 2) % window == 0:
            b[:] = 0.0
            V[:] = 0.0
            heard[:] = 0.0
            scale = 1.0
            for layer in range(layers):
                scale *= 0.25
                for i in range(X.shape[1]):
                    V[layer, i, i] = scale
