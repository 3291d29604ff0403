"""The compiled entries of BVD-GLM-UCB: a lesson, and whole stretches of rounds. Its scores are those of GLM-UCB.

They are apart from adaptive_glm.py, which would otherwise compile the projection of bvd.py into every policy.
"""

from __future__ import annotations

import numpy as np

from driftwise.kernels import kernel
from driftwise.kernels.atoms import fade_atoms_, place_atom_
from driftwise.kernels.bvd import project_
from driftwise.kernels.chance import mean_of, reward_of
from driftwise.kernels.glm import glm_scores_, norm_of
from driftwise.kernels.gram import blend_, decay, scale_, weight_of
from driftwise.kernels.index import first_best
from driftwise.kernels.newton import CONVERGED, solve_
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    FAILED,
    LAM,
    LINK,
    LOG_DELTA,
    REG,
    SLOPE_LEAST,
    SQUARES,
    TIE,
    USED,
    Floats,
    Ints,
    L,
    R,
    S,
)
from driftwise.theory.radius import glb_radius


@kernel
def learn_bvd_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, arm: int, reward: float, ticks: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, cursor: Ints, atoms: Floats, weights: Floats,
    targets: Floats, theta: Floats, shown: Floats, H: Floats, Z: Floats, P: Floats, M: Floats,
) -> None:
    """A lesson; arm < 0 lets time pass without an observation. Ends with θ̂ in theta and θ̃ in shown.

    The phases of gram.py are written out for the one memory there is here: with windows and restarts in it, this
    took half as long again to compile.
    """
    factor = decay(table, row, ticks)
    count[lane, CLOCK] += ticks
    count[lane, SQUARES] *= factor * factor
    fade_atoms_(lane, factor, weights, targets, count, cursor)
    if arm >= 0:
        weight = weight_of(flags, table, row, age)
        count[lane, COUNT] += 1.0
        count[lane, SQUARES] += weight * weight
        blend_(lane, factor, weight, X, at, arm, reward, G, twin, b)
        a = place_atom_(X, at, arm, atoms, weights, targets, count, cursor)
        weights[lane, a] += weight
        targets[lane, a] += weight * reward
    else:
        scale_(lane, factor, G, twin, b)
    link, used, reg, lam, reach = flags[LINK], cursor[USED], table[row, REG], table[row, LAM], table[row, S]
    good = solve_(link, atoms, weights, targets, used, lane, reg, theta, Z, P, M, H[lane]) == CONVERGED
    for i in range(theta.shape[1]):
        shown[lane, i] = theta[lane, i]
    if good:
        beta = glb_radius(
            count[lane, SQUARES], float(theta.shape[1]), lam, table[row, LOG_DELTA], reach, table[row, L],
            table[row, R], table[row, SLOPE_LEAST],
        )  # fmt: skip
        _, _, _, last = project_(
            link, atoms, weights, targets, lane, used, reg, theta, reach, lam, G[lane], twin[lane], beta, flags[TIE],
            shown[lane],
        )  # fmt: skip
        good = last <= 1e-7 * (1.0 + norm_of(shown, lane))
    if not good:
        count[lane, FAILED] += 1.0


@kernel
def play_bvd_(
    flags: Ints, table: Floats, G: Floats, twin: Floats, b: Floats, count: Floats, cursor: Ints, atoms: Floats,
    weights: Floats, targets: Floats, theta: Floats, shown: Floats, H: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
) -> None:
    """Play len(path) rounds; regret is cumulative and starts from total. Stops where the solver fails."""
    d, n = arms.shape[1], arms.shape[2]
    low, pivot, z, Y = np.empty((d, d)), np.empty(d), np.empty(d), np.empty((d, n))
    mean, bonus = np.empty(n), np.empty(n)
    Z, P, M = np.zeros((6, atoms.shape[1])), np.zeros((11, d)), np.zeros((4, d, d))
    fresh = arms.shape[0] > 1
    lane = chosen.size - chosen.size  # 0, but not a literal, for which everything below would be compiled again
    for t in range(path.shape[0]):
        at = t if fresh else 0
        glm_scores_(flags, table, lane, lane, arms, at, G, count, theta, shown, low, pivot, z, Y, mean, bonus)
        arm = first_best(mean, bonus)
        value = mean_of(link, arms, at, arm, path, t)
        total += best[t] - value
        chosen[t] = arm
        regret[t] = total
        reward = reward_of(kind, value, noise, draws[t])
        learn_bvd_(
            flags, table, lane, lane, arms, at, arm, reward, 1.0, 0.0, G, twin, b, count, cursor, atoms, weights,
            targets, theta, shown, H, Z, P, M,
        )  # fmt: skip
        if count[lane, FAILED] > 0.0:
            return
