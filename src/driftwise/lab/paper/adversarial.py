"""Restarts of an adversarial linear bandit, which bypass the gap in the analysis of windows (Cheung et al. 2022, Remark
4): EXP2 with an exploration basis, begun again after every block."""

from __future__ import annotations

import math

import numpy as np

from driftwise._internal.validate import Floats
from driftwise.worlds import World


def restarted(world: World, seed: int = 0, trials: int = 10) -> Floats:
    """Final regret of EXP2 in a world of fixed arms, restarted with the block that balances d√(HT²/H²) and H·P_T."""
    block = max(1, int((world.dim * world.horizon / max(world.path_length, 1e-9)) ** (2.0 / 3.0)))
    return np.array([_trial(world, seed, trial, min(block, world.horizon)) for trial in range(trials)])


def _trial(world: World, seed: int, trial: int, block: int) -> float:
    rng, lost, t = np.random.default_rng([seed, trial]), 0.0, 0
    for tape in world.tapes(seed, trial):
        arms = np.ascontiguousarray(tape.arms[0].T)
        n, d = arms.shape
        rate = min(0.5, math.sqrt(math.log(n) / (3.0 * d * block)))
        share = min(0.5, rate * d)  # of exploration, so that estimates stay within 1/rate
        for theta, draw, best in zip(tape.theta, tape.draws, tape.best, strict=True):
            if t % block == 0:
                score = np.zeros(n)
            chance = np.exp(rate * (score - score.max()))
            chance = (1.0 - share) * chance / chance.sum() + share / n
            arm = int(min(np.searchsorted(np.cumsum(chance), rng.random()), n - 1))
            mean = float(arms[arm] @ theta)
            second = (arms * chance[:, None]).T @ arms
            score += arms @ np.linalg.solve(second, arms[arm]) * (mean + world.noise * draw)
            lost += float(best) - mean
            t += 1
    return lost
