"""The compiled entries of generalized linear policies, alone or adapting: scores, a lesson, whole stretches of rounds.

One set of entries serves a policy that stands alone (one lane) and MASTER, BOB and the bank over it (many): what costs
is the estimate below them, and compiling it once is enough.
"""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import (
    kernel,
    part,
    piece,
    routine,
)
from driftwise.kernels.adapt import (
    ACTIVE,
    ALONE,
    BANK,
    BOB,
    FIRST_,
    GAP_,
    KAPPA_,
    LAST_,
    MASTER,
    RETURN_,
    RIDGE_,
    ROUND,
    SCORES,
    SHARE_,
    TAKEN_OVER,
    TEST_,
    acting_lane,
    acting_row,
    bank_best,
    bank_pay_,
    bob_turn_,
    master_lane,
    master_test_,
    master_turn_,
    to_clear_,
)
from driftwise.kernels.chance import (
    mean_of,
    reward_of,
)
from driftwise.kernels.cholesky import (
    factor_,
)
from driftwise.kernels.glm import (
    forget_,
    glm_lane_,
    glm_scores_,
)
from driftwise.kernels.gram import (
    decay,
    fresh_lane_,
)
from driftwise.kernels.index import (
    first_best,
    whiten_,
)
from driftwise.kernels.links import (
    PROBIT,
)
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.one_pass import one_pass_, one_pass_fade_
from driftwise.kernels.point import (
    ADAPT,
    CLOCK,
    COUNT,
    DROPPED,
    EXPLORE,
    FAILED,
    LINK,
    REG,
    SQUARES,
    USED,
    Floats,
    Ints,
)


@piece
def glm_bank_scores_(
    flags: Ints, table: Floats, X: Floats, at: int, G: Floats, count: Floats, theta: Floats, shown: Floats, H: Floats,
    notes: Floats, settings: Floats, low: Floats, pivot: Floats, z: Floats, Y: Floats, mean: Floats, bonus: Floats,
    proposed: Ints,
) -> None:
    """The bank's choice: every memory proposes arms by its own index, the best-weighted one judges the proposals.

    A memory proposes at the explorations e, 1 and e² (one arm where they agree). The judge's score of a proposal is
    μ(x'θ + κ‖x‖) by its scoring estimate; an arm nobody proposes has bonus -1, which puts it below all others.
    """
    lanes, n = G.shape[0], mean.size
    for a in range(n):
        proposed[a] = 0
    for k in range(lanes):
        glm_scores_(flags, table, k, k, X, at, G, count, theta, shown, low, pivot, z, Y, mean, bonus)
        e = table[k, EXPLORE]
        for attempt in range(3 if e != 1.0 else 1):
            factor = 1.0
            if attempt == 1:
                factor = 1.0 / e if e > 0.0 else 1.0
            elif attempt == 2:
                factor = e
            top, arm = -math.inf, 0
            for a in range(n):
                score = mean[a] + factor * bonus[a]
                if score > top:
                    top, arm = score, a
            proposed[arm] = 1
    judge = lanes + bank_best(notes, lanes)
    factor_(H, judge, 0.0, low, pivot)
    for i in range(theta.shape[1]):
        z[i] = 0.0
    whiten_(low, pivot, z, X, at, Y, mean, bonus)
    for i in range(theta.shape[1]):
        t = theta[judge, i]
        for a in range(n):
            mean[a] += t * X[at, i, a]
    for a in range(n):
        top = link_mean(flags[LINK], mean[a] + settings[KAPPA_] * math.sqrt(bonus[a]))
        mean[a] = link_mean(flags[LINK], mean[a])
        bonus[a] = top - mean[a] if proposed[a] != 0 else -1.0


@piece
def glm_index_(
    flags: Ints, table: Floats, X: Floats, at: int, G: Floats, count: Floats, theta: Floats, shown: Floats, H: Floats,
    marks: Ints, notes: Floats, settings: Floats, low: Floats, pivot: Floats, z: Floats, Y: Floats, mean: Floats,
    bonus: Floats, proposed: Ints,
) -> int:
    """Mean and bonus of every arm by the lane that acts, which is returned; by the judge's where the bank has many."""
    lanes = G.shape[0]
    if flags[ADAPT] == BANK and lanes > 1:
        glm_bank_scores_(
            flags, table, X, at, G, count, theta, shown, H, notes, settings, low, pivot, z, Y, mean, bonus, proposed
        )
        return bank_best(notes, lanes)
    lane = acting_lane(flags, marks, notes, settings, lanes)
    row = acting_row(flags, marks, lane)
    glm_scores_(flags, table, row, lane, X, at, G, count, theta, shown, low, pivot, z, Y, mean, bonus)
    return lane if lane > row else row


@kernel
def glm_scores(
    flags: Ints, table: Floats, X: Floats, G: Floats, count: Floats, theta: Floats, shown: Floats, H: Floats,
    marks: Ints, notes: Floats, settings: Floats,
) -> tuple[Floats, Floats]:
    """Mean and bonus of every arm of X (1, d, n)."""
    d, n = X.shape[1], X.shape[2]
    mean, bonus, proposed = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    low, pivot, z, Y = np.empty((d, d)), np.empty(d), np.empty(d), np.empty((d, n))
    first = n - n  # 0, but not a literal, for which everything below would be compiled again
    glm_index_(
        flags, table, X, first, G, count, theta, shown, H, marks, notes, settings, low, pivot, z, Y, mean, bonus,
        proposed,
    )  # fmt: skip
    return mean, bonus


@part
def glm_surprise_(
    flags: Ints, X: Floats, at: int, arm: int, reward: float, theta: Floats, H: Floats, lanes: int, low: Floats,
    pivot: Floats, z: Floats, surprise: Floats,
) -> None:
    """-log p(r) of every memory by its scoring estimate, z = x'θ with variance s²: μ(z/√(1+πs²/8)), Φ(z/√(1+s²))."""
    d = theta.shape[1]
    for k in range(lanes):
        factor_(H, lanes + k, 0.0, low, pivot)
        value, square = 0.0, 0.0
        for i in range(d):
            v = X[at, i, arm]
            value += v * theta[lanes + k, i]
            for j in range(i):
                v -= low[i, j] * z[j]
            z[i] = v * pivot[i]
            square += z[i] * z[i]
        wide = 1.0 + (square if flags[LINK] == PROBIT else math.pi / 8.0 * square)
        chance = link_mean(flags[LINK], value / math.sqrt(wide))
        chance = min(max(chance, 1e-12), 1.0 - 1e-12)
        surprise[k] = -(reward * math.log(chance) + (1.0 - reward) * math.log1p(-chance))


@part
def glm_take_over_(
    G: Floats, twin: Floats, b: Floats, count: Floats, weights: Floats, targets: Floats, theta: Floats, shown: Floats,
    H: Floats, cursor: Ints, marks: Ints, notes: Floats, settings: Floats,
) -> None:
    """A longer memory far behind the best one drops its data for that one's."""
    lanes, d = b.shape
    best = bank_best(notes, lanes)
    behind = notes[SCORES + best] * math.exp(-settings[GAP_])
    for k in range(best + 1, lanes):
        if notes[SCORES + k] < behind:
            for half in range(2):  # the estimate played, and the one that scores
                source, target = best + half * lanes, k + half * lanes
                for i in range(d):
                    theta[target, i] = theta[source, i]
                    for j in range(d):
                        H[target, i, j] = H[source, i, j]
            for i in range(d):
                b[k, i] = b[best, i]
                shown[k, i] = shown[best, i]
                for j in range(i + 1):
                    G[k, i, j] = G[best, i, j]
            for a in range(cursor[USED]):
                weights[k, a] = weights[best, a]
                targets[k, a] = targets[best, a]
            count[k, COUNT] = count[best, COUNT]
            count[k, SQUARES] = count[best, SQUARES]
            notes[SCORES + k] = notes[SCORES + best] * math.exp(-settings[RETURN_])
            marks[TAKEN_OVER] += 1


@part
def glm_before_(
    flags: Ints, table: Floats, X: Floats, at: int, arm: int, reward: float, ticks: float, age: float, count: Floats,
    theta: Floats, H: Floats, marks: Ints, notes: Floats, settings: Floats, low: Floats, pivot: Floats, z: Floats,
    P: Floats, M: Floats, surprise: Floats, lanes: int,
) -> int:
    """What an adaptation does before its lanes learn; returns the lane that takes the lesson, -1 all, -2 none."""
    clock = notes.size - 1
    if flags[ADAPT] == MASTER:
        taker = int(marks[ACTIVE])
        if arm >= 0 and age > 0.0:
            taker = master_lane(marks, math.ceil(notes[clock] - age) - 1)
            if taker < 0:
                count[0, DROPPED] += 1.0
                return -2
        return taker
    if flags[ADAPT] == BOB:
        if arm >= 0 and age > 0.0 and count[0, CLOCK] + ticks - age <= 0.0 and marks[ROUND] > 0:
            count[0, DROPPED] += 1.0
            return -2
        return -1
    if flags[ADAPT] == BANK and lanes > 1:
        if arm >= 0:
            glm_surprise_(flags, X, at, arm, reward, theta, H, lanes, low, pivot, z, surprise)
            bank_pay_(notes, lanes, surprise, settings[SHARE_])
            for i in range(z.size):
                z[i] = X[at, i, arm]
        for k in range(lanes):
            factor = decay(table, k, ticks)
            if arm >= 0:
                weight = decay(table, k, age) if age > 0.0 else 1.0
                one_pass_(flags[LINK], H, theta, lanes + k, z, reward, factor, weight, settings[RIDGE_], P, M)
            else:
                one_pass_fade_(H, theta, lanes + k, factor, settings[RIDGE_], M)
    return -1


@routine
def glm_learn_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, arm: int, reward: float, ticks: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints, atoms: Floats,
    weights: Floats, targets: Floats, theta: Floats, shown: Floats, H: Floats, marks: Ints, notes: Floats,
    settings: Floats, rho: Floats, largest: float, low: Floats, pivot: Floats, z: Floats, Z: Floats, P: Floats,
    M: Floats, Q: Floats, rhs: Floats, surprise: Floats,
) -> None:
    """A lesson for the lanes that take it, then the adaptation's turn; arm < 0 lets time pass. row and lane are unused.

    `largest` is the index the choice was made with, for MASTER's tests.
    """
    lanes = G.shape[0]
    adaptation = flags[ADAPT]
    turns = 0
    if adaptation != ALONE:
        clock = notes.size - 1
        before = math.floor(notes[clock])
        notes[clock] += ticks
        turns = int(math.floor(notes[clock]) - before)
    taker = glm_before_(
        flags, table, X, at, arm, reward, ticks, age, count, theta, H, marks, notes, settings, low, pivot, z, P, M,
        surprise, lanes,
    )  # fmt: skip
    for k in range(lanes):
        if adaptation == MASTER and k != taker:
            count[k, CLOCK] += ticks  # frozen otherwise
            continue
        glm_lane_(
            flags, table, acting_row(flags, marks, k), k, X, at, arm if taker > -2 else -1, reward, ticks, age, G,
            twin, b, count, ring, cursor, atoms, weights, targets, theta, shown, H, low, pivot, z, Z, P, M, Q, rhs,
        )  # fmt: skip
    if adaptation == BANK and lanes > 1:
        glm_take_over_(G, twin, b, count, weights, targets, theta, shown, H, cursor, marks, notes, settings)
    fired = False
    if adaptation == MASTER and arm >= 0:
        fired = master_test_(marks, notes, largest, reward, rho, settings[TEST_])
    for turn in range(turns):
        if adaptation == MASTER:
            master_turn_(marks, notes, fired and turn == 0, int(settings[FIRST_]), int(settings[LAST_]))
        elif adaptation == BOB:
            bob_turn_(marks, notes, reward if turn == 0 and arm >= 0 else 0.0, table.shape[0], settings)
        if adaptation == MASTER or adaptation == BOB:
            for k in range(lanes):
                if to_clear_(marks, k):
                    ticked = count[k, CLOCK]
                    fresh_lane_(k, G, twin, b, count, cursor)
                    if adaptation == MASTER:
                        count[k, CLOCK] = ticked
                    forget_(flags, k, table[0, REG], atoms, weights, targets, theta, H, count, cursor)
                    for i in range(b.shape[1]):
                        shown[k, i] = 0.0


@kernel
def play_glm_(
    flags: Ints, table: Floats, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints,
    atoms: Floats, weights: Floats, targets: Floats, theta: Floats, shown: Floats, H: Floats, marks: Ints,
    notes: Floats, settings: Floats, rho: Floats, arms: Floats, path: Floats, draws: Floats, best: Floats, link: int,
    kind: int, noise: float, total: float, chosen: Ints, regret: Floats, used: Ints,
) -> None:
    """Play len(path) rounds; regret is cumulative and starts from total; used says which row acted.

    Stops where the solver fails.
    """
    d, n = arms.shape[1], arms.shape[2]
    low, pivot, z = np.empty((d, d)), np.empty(d), np.empty(d)
    Y, mean, bonus, proposed = np.empty((d, n)), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    Z, P, M = np.zeros((6, max(1, atoms.shape[1]))), np.zeros((11, d)), np.zeros((4, d, d))
    Q, rhs, surprise = np.empty((2, d, d)), np.empty((1, d)), np.empty(G.shape[0])
    fresh = arms.shape[0] > 1
    nothing = chosen.size - chosen.size  # 0, but not a literal, for which everything below would be compiled again
    for t in range(path.shape[0]):
        at = t if fresh else 0
        used[t] = glm_index_(
            flags, table, arms, at, G, count, theta, shown, H, marks, notes, settings, low, pivot, z, Y, mean, bonus,
            proposed,
        )  # fmt: skip
        arm = first_best(mean, bonus)
        value = mean_of(link, arms, at, arm, path, t)
        total += best[t] - value
        chosen[t] = arm
        regret[t] = total
        reward = reward_of(kind, value, noise, draws[t])
        glm_learn_(
            flags, table, nothing, nothing, arms, at, arm, reward, 1.0, 0.0, G, twin, b, count, ring, cursor, atoms,
            weights, targets, theta, shown, H, marks, notes, settings, rho, mean[arm] + bonus[arm], low, pivot, z, Z,
            P, M, Q, rhs, surprise,
        )  # fmt: skip
        for k in range(count.shape[0]):
            if count[k, FAILED] > 0.0:
                return
