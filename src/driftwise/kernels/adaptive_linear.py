"""The compiled entries of linear policies that adapt: MASTER, BOB and the bank over lanes of the linear family."""

from __future__ import annotations

import math

import numpy as np

from driftwise.kernels import kernel, part, piece
from driftwise.kernels.adapt import (
    ACTIVE,
    BOB,
    FIRST_,
    GAP_,
    LAST_,
    MASTER,
    NOISE_,
    RETURN_,
    RIDGE_,
    ROUND,
    ROW,
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
from driftwise.kernels.chance import mean_of, reward_of
from driftwise.kernels.cholesky import factor_, forward_
from driftwise.kernels.gram import clear_, fresh_lane_, learn_
from driftwise.kernels.index import first_best
from driftwise.kernels.play import linear_scores_
from driftwise.kernels.point import (
    ADAPT,
    CLOCK,
    COUNT,
    DROPPED,
    SQUARES,
    Floats,
    Ints,
)


@kernel
def adaptive_linear_scores(
    flags: Ints, table: Floats, X: Floats, G: Floats, twin: Floats, b: Floats, count: Floats, marks: Ints,
    notes: Floats, settings: Floats,
) -> tuple[Floats, Floats]:
    """Mean and bonus of every arm of X (1, d, n), by the lane that acts."""
    d, n = X.shape[1], X.shape[2]
    mean, bonus = np.empty(n), np.empty(n)
    lane = acting_lane(flags, marks, notes, settings, G.shape[0])
    row = acting_row(flags, marks, lane)
    first = n - n  # 0, but not a literal, for which everything below would be compiled again
    linear_scores_(
        flags, table, row, lane, X, first, G, twin, b, count, np.empty((d, d)), np.empty((d, d)), np.empty(d),
        np.empty(d), np.empty((d, n)), mean, bonus,
    )  # fmt: skip
    return mean, bonus


@part
def score_lanes_(
    X: Floats, at: int, arm: int, reward: float, G: Floats, b: Floats, settings: Floats,
    low: Floats, pivot: Floats, z: Floats, y: Floats, surprise: Floats,
) -> None:
    """How surprised every memory is: -log N(r; x'θ, R²(1 + ‖x‖²)) up to a constant, θ and ‖x‖ by G + ridge·I."""
    d = b.shape[1]
    noise = settings[NOISE_]
    for k in range(G.shape[0]):
        factor_(G, k, settings[RIDGE_], low, pivot)
        forward_(low, pivot, b, k, z)
        value, square = 0.0, 0.0
        for i in range(d):
            v = X[at, i, arm]
            for j in range(i):
                v -= low[i, j] * y[j]
            y[i] = v * pivot[i]
            value += y[i] * z[i]
            square += y[i] * y[i]
        error = (reward - value) / noise
        surprise[k] = 0.5 * (math.log1p(square) + error * error / (1.0 + square))


@part
def take_over_(G: Floats, twin: Floats, b: Floats, count: Floats, marks: Ints, notes: Floats, settings: Floats) -> None:
    """A longer memory far behind the best one drops its data for that one's: after a jump all start from what holds."""
    lanes, d = b.shape
    best = bank_best(notes, lanes)
    behind = notes[SCORES + best] * math.exp(-settings[GAP_])
    for k in range(best + 1, lanes):
        if notes[SCORES + k] < behind:
            for i in range(d):
                b[k, i] = b[best, i]
                for j in range(i + 1):
                    G[k, i, j] = G[best, i, j]
                    if twin.shape[0] > 0:
                        twin[k, i, j] = twin[best, i, j]
            count[k, COUNT] = count[best, COUNT]
            count[k, SQUARES] = count[best, SQUARES]
            notes[SCORES + k] = notes[SCORES + best] * math.exp(-settings[RETURN_])
            marks[TAKEN_OVER] += 1


@piece
def adaptive_linear_learn_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, arm: int, reward: float, ticks: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints, marks: Ints,
    notes: Floats, settings: Floats, rho: Floats, largest: float, low: Floats, pivot: Floats, z: Floats, y: Floats,
    surprise: Floats,
) -> None:
    """A lesson for the lanes that take it, then the adaptation's turn; arm < 0 lets time pass. row and lane are unused.

    `largest` is the index the choice was made with.
    """
    lanes = G.shape[0]
    clock = notes.size - 1
    before = math.floor(notes[clock])
    notes[clock] += ticks
    turns = int(math.floor(notes[clock]) - before)
    if flags[ADAPT] == MASTER:
        taker = int(marks[ACTIVE])
        if arm >= 0 and age > 0.0:
            taker = master_lane(marks, math.ceil(notes[clock] - age) - 1)
        for k in range(lanes):
            if k != taker:
                count[k, CLOCK] += ticks  # frozen otherwise
        if taker >= 0:
            learn_(flags, table, 0, taker, X, at, arm, reward, ticks, age, G, twin, b, count, ring, cursor)
        fired = False
        if arm >= 0:
            fired = master_test_(marks, notes, largest, reward, rho, settings[TEST_])
            if taker < 0:
                count[0, DROPPED] += 1.0
        for turn in range(turns):
            master_turn_(marks, notes, fired and turn == 0, int(settings[FIRST_]), int(settings[LAST_]))
            for k in range(lanes):
                if to_clear_(marks, k):
                    clear_(k, G, twin, b, count)
    elif flags[ADAPT] == BOB:
        late = arm >= 0 and age > 0.0 and count[0, CLOCK] + ticks - age <= 0.0 and marks[ROUND] > 0
        if late:
            count[0, DROPPED] += 1.0
        takes = -1 if late else arm
        learn_(flags, table, int(marks[ROW]), 0, X, at, takes, reward, ticks, age, G, twin, b, count, ring, cursor)
        for turn in range(turns):
            bob_turn_(marks, notes, reward if turn == 0 and arm >= 0 else 0.0, table.shape[0], settings)
            if to_clear_(marks, 0):
                fresh_lane_(0, G, twin, b, count, cursor)
    else:
        if arm >= 0 and lanes > 1:
            score_lanes_(X, at, arm, reward, G, b, settings, low, pivot, z, y, surprise)
            bank_pay_(notes, lanes, surprise, settings[SHARE_])
        for k in range(lanes):
            learn_(flags, table, k, k, X, at, arm, reward, ticks, age, G, twin, b, count, ring, cursor)
        take_over_(G, twin, b, count, marks, notes, settings)


@kernel
def play_adaptive_linear_(
    flags: Ints, table: Floats, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints,
    marks: Ints, notes: Floats, settings: Floats, rho: Floats, arms: Floats, theta: Floats, draws: Floats,
    best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats, used: Ints,
) -> None:
    """Play len(theta) rounds; regret is cumulative and starts from total; used says which lane acted."""
    d, n = arms.shape[1], arms.shape[2]
    low, other, pivot, z, y = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d)
    Y, mean, bonus, surprise = np.empty((d, n)), np.empty(n), np.empty(n), np.empty(G.shape[0])
    fresh = arms.shape[0] > 1
    for t in range(theta.shape[0]):
        at = t if fresh else 0
        lane = acting_lane(flags, marks, notes, settings, G.shape[0])
        row = acting_row(flags, marks, lane)
        linear_scores_(
            flags, table, row, lane, arms, at, G, twin, b, count, low, other, pivot, z, Y, mean, bonus
        )
        arm = first_best(mean, bonus)
        value = mean_of(link, arms, at, arm, theta, t)
        total += best[t] - value
        chosen[t] = arm
        regret[t] = total
        if used.size > 0:
            used[t] = lane if lane > row else row
        reward = reward_of(kind, value, noise, draws[t])
        adaptive_linear_learn_(
            flags, table, row, lane, arms, at, arm, reward, 1.0, 0.0, G, twin, b, count, ring, cursor, marks, notes,
            settings, rho, mean[arm] + bonus[arm], low, pivot, z, y, surprise,
        )  # fmt: skip
