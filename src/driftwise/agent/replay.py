"""Predicts the last rewards again, each before it is learned, with memories of several lengths, or with a level of all
arms that moves and with one that stays.

Linear policies use ridge regressions, scored by the log density of N(x'θ, R²(1+‖x‖²)). Generalized linear ones use
μ(x'θ) of an estimate with one Newton step per reward, as in a bank. It is scored by the log of the probability of a
click, or by a normal log density for rewards that are not probabilities. All fade with the memory and start empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from driftwise._internal.progress import bar
from driftwise.kernels.point import Floats
from driftwise.policies.questions import Asked, LinkCurve, Predicts

# tick, born, x (1, d, 1), reward
Lesson = tuple[int, int, Floats, float]
# The lower limit of a predicted probability: one surprise must not decide between memories.
LEAST = 1e-4


def replayed(
    policy: Asked, recent: list[Lesson], memories: tuple[float, ...], rewards: tuple[float, float],
    progress: bool | None = False,
) -> Floats:
    """Log densities (rewards, memories) of every reward before it was learned."""
    about, count, dim = policy.predicts, len(memories), recent[0][2].size
    predict: _Linear | _Curved = _Linear(about, count, dim, rewards)
    if about.curve is not None:
        predict = _Curved(about.curve, count, dim)
    rates = np.array([0.0 if math.isinf(memory) else -math.log1p(-1.0 / memory) for memory in memories])
    out, last = np.empty((len(recent), len(memories))), recent[0][0]
    what = f"drift: {len(recent)} rewards predicted again with {count} memories"
    with bar(what, len(recent), progress, after=2.0) as advance:  # seconds to a minute where features are many
        for row, (tick, born, column, value) in enumerate(recent):
            predict.fade(np.exp(-rates * (tick - last)))
            out[row] = predict.learn(column.ravel(), value, np.exp(-rates * (tick - born)))
            last = tick
            advance(1)
    return out


class _Linear:
    """Ridge regressions, one per memory.

    R is the policy's, or half the range of rewards. Rewards are measured from the middle of their range. Otherwise a
    short memory would look worse than it is where no feature is constant.
    """

    def __init__(self, about: Predicts, count: int, dim: int, rewards: tuple[float, float]) -> None:
        low, high = rewards
        self.noise = about.noise if about.noise > 0.0 else (high - low) / 2.0
        L = about.length if math.isfinite(about.length) else 1.0  # not every policy says
        reach = max((high - low) / 2.0, 1e-12) / L
        ridge = max(dim / reach**2 * self.noise**2, 1e-9 * L**2)  # a range that is far too wide must not fail
        self.middle, self.eye = (low + high) / 2.0, ridge * np.eye(dim)
        self.G, self.b = np.zeros((count, dim, dim)), np.zeros((count, dim))

    def fade(self, share: Floats) -> None:
        self.G *= share[:, None, None]
        self.b *= share[:, None]

    def learn(self, x: Floats, value: float, weight: Floats) -> Floats:
        r, count = value - self.middle, len(weight)
        found = np.linalg.solve(self.G + self.eye, np.stack([self.b, np.broadcast_to(x, (count, x.size))], axis=2))
        variance = self.noise**2 * (1.0 + found[:, :, 1] @ x)
        nats = -0.5 * (np.log(variance) + (r - found[:, :, 0] @ x) ** 2 / variance)
        self.G += weight[:, None, None] * np.outer(x, x)
        self.b += weight[:, None] * (r * x)
        return np.asarray(nats)


class _Curved:
    """Estimates with a link, one per memory: θ += H⁻¹x (r - μ(x'θ)). H is the faded sum of μ' xx' plus the ridge
    d/S²."""

    def __init__(self, curve: LinkCurve, count: int, dim: int) -> None:
        self.curve, self.eye = curve, curve.ridge * np.eye(dim)
        self.H, self.theta = np.zeros((count, dim, dim)), np.zeros((count, dim))

    def fade(self, share: Floats) -> None:
        self.H *= share[:, None, None]

    def learn(self, x: Floats, value: float, weight: Floats) -> Floats:
        z = np.clip(self.theta @ x, -self.curve.reach, self.curve.reach)
        before = np.linalg.solve(self.H + self.eye, np.broadcast_to(x[:, None], (len(z), x.size, 1)))[:, :, 0] @ x
        nats = self._paid(z, before, value)
        bend = weight * self.curve.slope(z)
        self.H += bend[:, None, None] * np.outer(x, x)
        step = np.linalg.solve(self.H + self.eye, np.broadcast_to(x[:, None], (len(z), x.size, 1)))[:, :, 0]
        self.theta += (weight * (value - self.curve.mean(z)))[:, None] * step
        return nats

    def _paid(self, z: Floats, variance: Floats, value: float) -> Floats:
        """The log density of a reward, with the uncertainty of the estimate."""
        if not self.curve.chances:
            spread = self.curve.noise**2 + self.curve.slope(z) ** 2 * variance
            return np.asarray(-0.5 * (np.log(spread) + (value - self.curve.mean(z)) ** 2 / spread))
        p = np.clip(self.curve.mean(z / np.sqrt(1.0 + self.curve.widening * variance)), LEAST, 1.0 - LEAST)
        return np.asarray(value * np.log(p) + (1.0 - value) * np.log1p(-p))


# Rounds that a level which moves is remembered for, and preferences beside it; and the memories of one that stays: that
# is remembered as long as preferences, as a feature that is always 1 is.
MOVING = [(level, theta) for level in (4.0, 16.0, 64.0) for theta in (64.0, 512.0, 4096.0, math.inf) if level < theta]
STAYING = [(rounds, rounds) for rounds in (8.0, 16.0, 32.0, 64.0, 512.0, 4096.0, math.inf)]
# The part of weights that is shared per reward, the most that a reward can say, and degrees of freedom of a density.
SHARE, MOST, FREEDOM = 1e-3, 1.0, 8.0
# Of more features than these, one reward in so many is predicted.
FEATURES = 32


def level_moves(recent: list[Lesson]) -> float:
    """Log evidence of the last rewards that a common level moves, against one that stays (docs/math.md#levels)."""
    told = _Levels(recent).predicted(recent)
    errors, spreads, contrasts = (np.array(column) for column in zip(*told, strict=True))
    noise = max(float((errors**2 / spreads).mean(axis=0).min()), 1e-300)
    nats = -0.5 * np.log(spreads) - 0.5 * (FREEDOM + 1.0) * np.log1p(errors**2 / (FREEDOM * noise * spreads))
    paid = _mixed(nats[:, : len(MOVING)]) - _mixed(nats[:, len(MOVING) :])
    return float((contrasts * np.clip(paid, -MOST, MOST)).sum())


def lacks_level(recent: list[Lesson]) -> bool:
    """Whether no combination of features is 1 in all vectors, so that they cannot have a level."""
    rows = np.array([one[2].ravel() for one in recent])
    found = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return bool(np.abs(rows @ found - 1.0).max() > 1e-6)


def _mixed(nats: Floats) -> Floats:
    """The log density of each reward by a family of lanes, weighted by what they predicted before."""
    weights, found = np.full(nats.shape[1], 1.0 / nats.shape[1]), []
    for row in nats:
        shares = weights * np.exp(row - row.max())
        found.append(float(row.max()) + math.log(float(shares.sum())))
        weights = (1.0 - SHARE) * shares / shares.sum() + SHARE / len(weights)
    return np.array(found)


class _Levels:
    """Lanes with a level apart, all at once. Features are in units of their root mean square, and rewards of their
    spread."""

    def __init__(self, recent: list[Lesson]) -> None:
        rows, rewards = np.array([one[2].ravel() for one in recent]), np.array([one[3] for one in recent])
        self.unit = np.sqrt(np.maximum((rows * rows).mean(axis=0), 1e-300))
        self.middle, self.size = float(rewards.mean()), max(float(rewards.std()), 1e-150)
        pairs = np.array(MOVING + STAYING)
        self.rates = [-np.log1p(-1.0 / rounds) for rounds in (pairs[:, 0], pairs[:, 1])]
        count, dim = len(pairs), rows.shape[1]
        self.mass, self.sums = np.full(count, 0.1), np.zeros((count, dim + 1))
        self.G, self.b, self.eye = np.zeros((count, dim, dim)), np.zeros((count, dim)), np.eye(dim)

    def predicted(self, recent: list[Lesson]) -> Iterator[tuple[Floats, Floats, float]]:
        """Of a reward the error and the variance of every lane's prediction, in units of the noise, and how much the
        reward can tell of a level."""
        last, every = recent[0][0], -(-self.b.shape[1] // FEATURES)
        for number, (tick, born, column, value) in enumerate(recent):
            x, r = column.ravel() / self.unit, (value - self.middle) / self.size
            level, theta = (np.exp(-rate * (tick - last)) for rate in self.rates)
            last, level = tick, np.maximum(level, np.minimum(1.0, 1e-6 / self.mass))  # time stands for a faint filter
            self.mass *= level
            self.sums *= level[:, None]
            self.G *= theta[:, None, None]
            self.b *= theta[:, None]
            center, spread = self.sums / self.mass[:, None], 1.0 / self.mass
            y, z = x - center[:, :-1], r - center[:, -1]
            if number % every == 0:
                found = np.linalg.solve(self.G + self.eye, np.stack([self.b, y], axis=2))
                error = z - (y * found[:, :, 0]).sum(axis=1)
                far, square = float((y[0] * y[0]).sum()), float((x * x).sum())
                contrast = min(1.0, 4.0 * far / square) if square > 0.0 else 0.0
                timely = math.exp(-self.rates[0][0] * (tick - born))  # a late reward tells of the level of its own day
                yield error, 1.0 + spread + (y * found[:, :, 1]).sum(axis=1), timely * contrast
            weight = np.exp(-self.rates[1] * (tick - born)) / (1.0 + spread)
            self.G += weight[:, None, None] * (y[:, :, None] * y[:, None, :])
            self.b += (weight * z)[:, None] * y
            self.mass += 1.0
            self.sums += np.append(x, r)
