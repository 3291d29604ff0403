"""The worlds for judging adaptation to unknown drift: named lists, and levels that all arms share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from driftwise.worlds import Given, Jumps, Still, StopAndGo, Turn, Walk, World

HORIZON = 6000


def linear_worlds(horizon: int = HORIZON) -> dict[str, World]:
    """Linear worlds: slow, fast, sudden and no drift, two dimensions and five, loud and quiet, fixed and fresh arms."""
    T = horizon
    return {
        "still": Still(horizon=T),
        "quarter turn": Turn(horizon=T, turns=0.25),
        "one turn": Turn(horizon=T),
        "four turns": Turn(horizon=T, turns=4.0),
        "3 jumps": Jumps(horizon=T, jumps=3),
        "5 jumps": Jumps(horizon=T, jumps=5),
        "20 jumps": Jumps(horizon=T, jumps=20),
        "half still, half fast": StopAndGo(horizon=T, turns=2.0),
        "walk .002": Walk(horizon=T, step=0.002),
        "walk .005": Walk(horizon=T, step=0.005),
        "walk .02": Walk(horizon=T, step=0.02),
        "still, quiet": Still(horizon=T, noise=0.3),
        "one turn, quiet": Turn(horizon=T, noise=0.3),
        "3 jumps, quiet": Jumps(horizon=T, jumps=3, noise=0.3),
        "still, fresh": Still(horizon=T, fresh=True),
        "one turn, fresh": Turn(horizon=T, fresh=True),
        "still, d=5": Still(horizon=T, dim=5),
        "one turn, d=5": Turn(horizon=T, dim=5),
        "20 jumps, d=5": Jumps(horizon=T, dim=5, jumps=20),
        "walk .005, d=5": Walk(horizon=T, dim=5, step=0.005),
        "one turn, d=5, fresh": Turn(horizon=T, dim=5, fresh=True),
        "still, d=5, quiet": Still(horizon=T, dim=5, noise=0.3),
    }


def logistic_worlds(horizon: int = HORIZON, radii: tuple[float, ...] = (1.0, 5.0)) -> dict[str, World]:
    """Worlds of clicks, with θ of these norms."""
    T = horizon
    worlds: dict[str, World] = {}
    for S in radii:
        worlds[f"still, S={S:.0f}"] = Still(horizon=T, radius=S, reward="bernoulli")
        worlds[f"one turn, S={S:.0f}"] = Turn(horizon=T, radius=S, reward="bernoulli")
        worlds[f"quarter turn, S={S:.0f}"] = Turn(horizon=T, turns=0.25, radius=S, reward="bernoulli")
        worlds[f"four turns, S={S:.0f}"] = Turn(horizon=T, turns=4.0, radius=S, reward="bernoulli")
        worlds[f"3 jumps, S={S:.0f}"] = Jumps(horizon=T, jumps=3, radius=S, reward="bernoulli")
        worlds[f"20 jumps, S={S:.0f}"] = Jumps(horizon=T, jumps=20, radius=S, reward="bernoulli")
        worlds[f"walk .005, S={S:.0f}"] = Walk(horizon=T, step=0.005, radius=S, reward="bernoulli")
    return worlds


T = HORIZON
Levels = Callable[[np.random.Generator], np.ndarray]
LEVELS: dict[str, Levels] = {
    "still": lambda rng: np.zeros(T),
    "seasons": lambda rng: 0.5 * np.sin(20.0 * np.pi * np.arange(T) / T),
    "blocks": lambda rng: np.repeat(0.3 * rng.standard_normal(T // 50), 50),
    "walk": lambda rng: np.clip(0.02 * np.cumsum(rng.standard_normal(T)), -0.7, 0.7),
}


def sphere(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Unit vectors."""
    z = rng.standard_normal(shape)
    return np.asarray(z / np.linalg.norm(z, axis=-1, keepdims=True))


def level_world(
    level: str, seed: int, trial: int, noise: float, arms: int = 20, turns: float = 0.0, basis: bool = False,
    fresh: bool = False,
) -> Given:
    """Arms (1, z)/√2 with a level for the first feature and preferences of norm .5 for z, which may turn; or the basis,
    an arm each, whose values all move with the level."""
    rng = np.random.default_rng([seed, trial])
    z, v, a = sphere(rng, *((T, arms) if fresh else (arms,)), 2), 0.5 * sphere(rng, 2), LEVELS[level](rng)
    angle = 2.0 * np.pi * turns * np.arange(T) / T
    v = np.stack([v[0] * np.cos(angle) - v[1] * np.sin(angle), v[0] * np.sin(angle) + v[1] * np.cos(angle)], axis=1)
    tape = rng.standard_normal(T)
    if basis:
        return Given(arms=np.eye(arms), theta=a[:, None] + v @ z.T, tape=tape, noise=noise)
    features = np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1) / math.sqrt(2.0)
    return Given(arms=features, theta=math.sqrt(2.0) * np.column_stack([a, v]), tape=tape, noise=noise)


# The level of log odds, about -1.5.
CLICK_LEVELS: dict[str, Levels] = {
    "still": lambda rng: np.zeros(T),
    "seasons": lambda rng: 1.5 * np.sin(20.0 * np.pi * np.arange(T) / T),
    "blocks": lambda rng: np.repeat(1.2 * rng.standard_normal(T // 50), 50),
    "walk": lambda rng: np.clip(0.06 * np.cumsum(rng.standard_normal(T)), -2.5, 2.5),
}


def click_world(
    level: str, seed: int, trial: int, arms: int = 20, turns: float = 0.0, basis: bool = False, fresh: bool = False,
    rate: float = -1.5,
) -> Given:
    """level_world for clicks: log odds `rate` and a level, and preferences of norm 1.5."""
    rng = np.random.default_rng([seed, trial])
    z, v = sphere(rng, *((T, arms) if fresh else (arms,)), 2), 1.5 * sphere(rng, 2)
    a = CLICK_LEVELS[level](rng) + rate
    angle = 2.0 * np.pi * turns * np.arange(T) / T
    v = np.stack([v[0] * np.cos(angle) - v[1] * np.sin(angle), v[0] * np.sin(angle) + v[1] * np.cos(angle)], axis=1)
    tape = rng.random(T)
    if basis:
        return Given(arms=np.eye(arms), theta=a[:, None] + v @ z.T, tape=tape, reward="bernoulli")
    features = np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1) / math.sqrt(2.0)
    return Given(arms=features, theta=math.sqrt(2.0) * np.column_stack([a, v]), tape=tape, reward="bernoulli")


def hidden_rise(rng: np.random.Generator, noise: float, rises: bool) -> Given:
    """Basis arms; one that is far from the best rises above all at half time."""
    values = np.tile(rng.uniform(0.0, 0.5, 10), (T, 1))
    values[:, 0] = 0.7
    if rises:
        values[T // 2 :, 1] = 1.0
    return Given(arms=np.eye(10), theta=values, tape=rng.standard_normal(T), noise=noise)
