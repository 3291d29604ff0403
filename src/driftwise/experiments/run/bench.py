"""How long a round takes: every compiled algorithm of the catalogue, in rounds of the same run's LB-WeightUCB."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from driftwise.policies.base import Compiled
from driftwise.policies.names import catalogue, make
from driftwise.simulation import simulate
from driftwise.worlds import Turn, World


def rounds(*, horizon: int, repeats: int) -> list[tuple[str, float, float]]:
    """(name, nanoseconds a round, multiple of LB-WeightUCB), the best of the repeats; a NumPy loop comes last."""
    linear = Turn(horizon=horizon)
    clicks = Turn(horizon=horizon, reward="bernoulli")
    found: list[tuple[str, float]] = []
    for row in catalogue():
        world = linear if row["family"] == "linear" else clicks
        policy = make(row["name"], **world.facts)
        if isinstance(policy, Compiled) and not policy.stepped:
            result = simulate({"it": policy}, world, trials=repeats, jobs=1, record="last", progress=False)
            found.append((row["name"], float(result.seconds["it"].min()) / horizon * 1e9))
    found.append(("the same in NumPy", numpy_round(linear, min(horizon, 2000)) * 1e9))
    unit = found[0][1]
    return [(name, ns, ns / unit) for name, ns in found]


def numpy_round(world: World, count: int) -> float:
    """Seconds a round of LB-WeightUCB as one would write it in NumPy."""
    policy: Any = make("LB-WeightUCB", **world.facts)
    tape = next(world.tapes())
    arms, d = np.ascontiguousarray(tape.arms[0].T), world.dim
    gamma, lam = 1.0 - policy.memory.forget, policy.lam
    G, b, E = np.zeros((d, d)), np.zeros(d), 0.0
    begun = time.perf_counter()
    for t in range(count):
        inverse = np.linalg.inv(G + lam * np.eye(d))
        beta = np.sqrt(lam) + np.sqrt(-2.0 * np.log(policy.delta) + d * np.log1p(E / (lam * d)))
        x = arms[np.argmax(arms @ (inverse @ b) + beta * np.sqrt(np.einsum("ni,ij,nj->n", arms, inverse, arms)))]
        reward = x @ tape.theta[t] + tape.draws[t]
        G, b, E = gamma * G + np.outer(x, x), gamma * b + reward * x, gamma**2 * E + 1.0
    return (time.perf_counter() - begun) / count
