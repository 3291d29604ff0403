"""Remarks of the text: c over R^d, restarts of an adversarial bandit, finer measures of drift."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from driftwise._internal.validate import Floats
from driftwise.draw.tables import plus_minus
from driftwise.kernels.links import LINKS
from driftwise.lab.paper.claims import NO, OPEN, YES, Claim, Measured, decide
from driftwise.lab.paper.growth import SATURATED, SLACK, fitted_slope, random_loss
from driftwise.policies.names import make
from driftwise.simulation import simulate, t_interval
from driftwise.worlds import Jumps, World

TRIALS = 10


def restarted(world: World, seed: int = 0) -> Floats:
    """Final regret of EXP2 with uniform exploration, one number per trial, begun again after blocks of (dT/P_T)^(2/3)
    rounds, which balance d√(T/H) of the blocks with the drift H·P_T within them."""
    arms = np.stack([next(iter(world.tapes(seed, trial))).arms[0].T for trial in range(TRIALS)])
    rng, theta, (n, d) = np.random.default_rng(seed), world.theta(), arms.shape[1:]
    block = max(1, math.floor((d * world.horizon / world.path_length) ** (2.0 / 3.0)))
    rate = min(0.5, math.sqrt(math.log(n) / (3.0 * d * block)))
    share, rows = min(0.5, rate * d), np.arange(TRIALS)  # estimates then stay within about 1/rate
    score, lost = np.zeros((TRIALS, n)), np.zeros(TRIALS)
    for t in range(world.horizon):
        if t % block == 0:
            score[:] = 0.0
        chance = np.exp(rate * (score - score.max(axis=1, keepdims=True)))
        chance = (1.0 - share) * chance / chance.sum(axis=1, keepdims=True) + share / n
        played = np.minimum((np.cumsum(chance, axis=1) < rng.random((TRIALS, 1))).sum(axis=1), n - 1)
        means, x = arms @ theta[t], arms[rows, played]
        second = np.swapaxes(arms * chance[:, :, None], 1, 2) @ arms
        rewards = means[rows, played] + world.noise * rng.standard_normal(TRIALS)
        score += np.einsum("knd,kd->kn", arms, np.linalg.solve(second, (x * rewards[:, None])[:, :, None])[:, :, 0])
        lost += means.max(axis=1) - means[rows, played]
    return lost


def second_order(theta: Floats) -> float:
    """The sum of ‖θ_{t+1} - 2θ_t + θ_{t-1}‖: a discrete measure of second derivatives (Sobolev, Hölder)."""
    return float(np.linalg.norm(np.diff(theta, n=2, axis=0), axis=1).sum())


def remarks(found: Measured) -> Iterator[Claim]:
    """The three remarks, in the linear panel's world."""
    spec = found.outcome("LB").spec
    world, command = spec.contests[0][0].world, found.command("LB")
    small, large, whole = (LINKS["logistic"].slopes(S)[1] for S in (1.0, 5.0, 1000.0))
    numbers = f"1/c is {1 / small:.1f} at S = 1 and {1 / large:.1f} at S = 5; over R^d the least slope is {whole:g}"
    yield Claim("A bound with 1/c over the ball is smaller than one with 1/c over R^d",
                YES if whole < large < small else NO, numbers, "`driftwise advise`")  # fmt: skip
    sizes = [dataclasses.replace(world, horizon=times * world.horizon) for times in (1, 4, 16)]
    lost = np.array([restarted(one, spec.seed) for one in sizes]).T
    slope = fitted_slope(np.log([one.horizon for one in sizes]), lost)
    most = [SATURATED * random_loss(one, spec.seed) for one in sizes]
    full = bool((lost.mean(axis=0) > most).any())
    numbers = f"slope in T {plus_minus(*slope, digits=3)} of a stated 2/3; "
    numbers += f"regret {plus_minus(*t_interval(lost[:, 0]))}, LB-WeightUCB {found.line('LB', 'LB-WeightUCB').mean:.0f}"
    yield Claim("Restarts of an adversarial linear bandit grow as T^(2/3) (Cheung et al. 2022, Remark 4)",
                YES if sum(slope) <= 2 / 3 + SLACK and not full else OPEN, numbers, command)  # fmt: skip
    fields = {name: getattr(world, name) for name in ("dim", "arms", "horizon", "noise", "norm", "spread")}
    quarters = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0))
    ratios, told = [], []
    for one in (world, Jumps(**fields, jumps=4, directions=quarters)):
        policies = {name: make(name, **one.facts) for name in ("LB-WeightUCB", "RestartUCB")}
        result = simulate(policies, one, trials=spec.trials, seed=spec.seed, record="last", progress=False)
        ratios.append(result.final("LB-WeightUCB") / result.final("RestartUCB"))
        told.append(f"{type(one).__name__}: P_T {one.path_length:.2f}, second order {second_order(one.theta()):.2g}, "
                    f"weights lose {plus_minus(*t_interval(ratios[-1]), digits=2)} of restarts")  # fmt: skip
    yield Claim("P_T does not tell gradual from abrupt drift; weights gain more on restarts where it is gradual",
                decide(ratios[0] - ratios[1]), "; ".join(told), command)  # fmt: skip
