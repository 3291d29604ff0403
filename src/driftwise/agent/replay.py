"""Predicts the last rewards again, each before it is learned, with memories of several lengths.

Linear policies use ridge regressions, scored by the log density of N(x'θ, R²(1+‖x‖²)). Generalized linear ones use
μ(x'θ) of an estimate with one Newton step per reward, as in a bank. It is scored by the log of the probability of a
click, or by a normal log density for rewards that are not probabilities. All fade with the memory and start empty.
"""

from __future__ import annotations

import math

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
