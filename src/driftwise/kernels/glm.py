"""A lane of the generalized linear families: GLB, SCB and SC-D-GLUCB by flag (MATH.md 2-4).

`learn` runs and absorbs as in the linear family, keeps the history as atoms (or folds it into one pass), and in its
last phase solves the estimate, so that `choose` only reads: theta holds θ̂, shown the point the rule plays with.
"""

from __future__ import annotations

import math

from driftwise.kernels import kernel, part, piece, routine
from driftwise.kernels.atoms import clear_atoms_, fade_atoms_, leave_atom_, place_atom_, recount_atoms_
from driftwise.kernels.ball import nearest_
from driftwise.kernels.cholesky import factor_, forward_
from driftwise.kernels.gram import (
    absorb_,
    accepts,
    evicts,
    forget_oldest_,
    run_,
    scale_,
    turn_,
    weight_of,
)
from driftwise.kernels.index import roots_, whiten_
from driftwise.kernels.links import CUSTOM
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.newton import solve_
from driftwise.kernels.one_pass import one_pass_, one_pass_fade_
from driftwise.kernels.play import confidence
from driftwise.kernels.point import (
    CLOCK,
    ESTIMATE,
    EXPLORE,
    FAILED,
    FORGET,
    GLB,
    HEAD,
    HORIZON,
    LAM,
    LENGTH,
    LINK,
    MEMORY,
    ONE_PASS,
    RANGE,
    REG,
    REMOVED,
    RULE,
    SC_D,
    SINCE,
    SIZE,
    SLOPE_LEAST,
    SLOPE_MOST,
    SQUARES,
    USED,
    WINDOW,
    Floats,
    Ints,
    L,
    R,
    S,
)
from driftwise.kernels.project import project_
from driftwise.theory.constants import glm_multiplier, scb_multiplier
from driftwise.theory.radius import glb_radius, sc_d_glucb_radius, scb_radius


@piece
def glm_radius(
    flags: Ints, table: Floats, row: int, squares: float, clock: float, d: int, inside: bool
) -> float:
    """The multiplier of ‖x‖: (2k/c)β̄, 2√(1+2SL)(k/√c)β̃, or β/√c of SC-D-GLUCB, times the exploration factor."""
    k, c = table[row, SLOPE_MOST], table[row, SLOPE_LEAST]
    log_delta, reach, length = confidence(table, row, clock), table[row, S], table[row, L]
    if flags[RULE] == GLB:
        beta = glb_radius(squares, float(d), table[row, LAM], log_delta, reach, length, table[row, R], c)
        factor = glm_multiplier(k, c)
    elif flags[RULE] == SC_D:
        # Written for L = 1: the problem with arms x/L and parameter Lθ has ridge λ/L² and radius SL.
        ridge = table[row, REG] / (length * length)
        beta = sc_d_glucb_radius(
            inside, float(d), ridge, log_delta, reach * length, table[row, RANGE], k, table[row, FORGET],
            table[row, HORIZON],
        )  # fmt: skip
        factor = 1.0 / math.sqrt(c)
    else:
        beta = scb_radius(squares, float(d), table[row, REG], log_delta, reach, length, table[row, RANGE], k)
        factor = scb_multiplier(k, c, reach, length)
    return float(table[row, EXPLORE] * factor * beta)


@piece
def norm_of(theta: Floats, lane: int) -> float:
    """‖θ‖ of a lane."""
    square = 0.0
    for i in range(theta.shape[1]):
        square += theta[lane, i] * theta[lane, i]
    return math.sqrt(square)


@piece
def glm_scores_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, G: Floats, count: Floats, theta: Floats,
    shown: Floats, low: Floats, pivot: Floats, z: Floats, Y: Floats, mean: Floats, bonus: Floats,
) -> None:
    """Mean μ(x'θ̃), for a user's own link x'θ̃ itself, and bonus of every arm."""
    d = G.shape[1]
    factor_(G, lane, table[row, LAM], low, pivot)
    for i in range(d):
        z[i] = 0.0
    whiten_(low, pivot, z, X, at, Y, mean, bonus)
    for i in range(d):
        t = shown[lane, i]
        for a in range(mean.size):
            mean[a] += t * X[at, i, a]
    link = flags[LINK]
    if link != CUSTOM:
        for a in range(mean.size):
            mean[a] = link_mean(link, mean[a])
    inside = norm_of(theta, lane) <= table[row, S]
    roots_(glm_radius(flags, table, row, count[lane, SQUARES], count[lane, CLOCK], d, inside), bonus)


@piece
def forget_(
    flags: Ints, lane: int, reg: float, atoms: Floats, weights: Floats, targets: Floats, theta: Floats, H: Floats,
    count: Floats, cursor: Ints,
) -> None:
    """A lane starts afresh: no atoms, θ̂ = 0, and for one pass H = reg·I."""
    clear_atoms_(lane, atoms, weights, targets, count, cursor)
    for i in range(theta.shape[1]):
        theta[lane, i] = 0.0
        for j in range(theta.shape[1]):
            H[lane, i, j] = reg if i == j else 0.0


@part
def glm_run_(
    flags: Ints, table: Floats, row: int, lane: int, ticks: float, G: Floats, twin: Floats, b: Floats, count: Floats,
    ring: Floats, cursor: Ints, atoms: Floats, weights: Floats, targets: Floats, theta: Floats, H: Floats,
) -> float:
    """Phase one on sums and atoms; returns by what the sums still have to fade."""
    if flags[MEMORY] == WINDOW:
        oldest = count[lane, CLOCK] + ticks - table[row, LENGTH]
        while cursor[SIZE] > 0 and ring[cursor[HEAD], ring.shape[1] - 1] <= oldest:
            leave_atom_(lane, ring, cursor[HEAD], atoms, weights, targets, cursor)
            forget_oldest_(lane, G, twin, b, count, ring, cursor)
            if cursor[REMOVED] == 0:
                recount_atoms_(lane, ring, atoms, weights, targets, cursor)
    since = count[lane, SINCE]
    factor = run_(flags, table, row, lane, ticks, G, twin, b, count, ring, cursor)
    if count[lane, SINCE] != since:
        forget_(flags, lane, table[row, REG], atoms, weights, targets, theta, H, count, cursor)
    if factor != 1.0:
        fade_atoms_(lane, factor, weights, targets, count, cursor)
    return factor


@part
def glm_absorb_(
    flags: Ints, table: Floats, row: int, lane: int, factor: float, X: Floats, at: int, arm: int, reward: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints, atoms: Floats,
    weights: Floats, targets: Floats, theta: Floats, H: Floats, x: Floats, P: Floats, M: Floats,
) -> None:
    """Phase two on sums and atoms, or on θ̂ and H in one pass."""
    taken = accepts(flags, table, row, lane, age, count, ring, cursor)
    if taken and evicts(flags, ring, cursor):
        leave_atom_(lane, ring, cursor[HEAD], atoms, weights, targets, cursor)
    absorb_(flags, table, row, lane, factor, X, at, arm, reward, age, G, twin, b, count, ring, cursor)
    weight = weight_of(flags, table, row, age) if taken else 0.0
    if flags[ESTIMATE] == ONE_PASS:
        for i in range(x.size):
            x[i] = X[at, i, arm]
        if flags[LINK] != CUSTOM:
            status = one_pass_(flags[LINK], H, theta, lane, x, reward, factor, weight, table[row, REG], P, M)
            if status != 0:
                count[lane, FAILED] += 1.0
    elif taken:
        a = place_atom_(X, at, arm, atoms, weights, targets, count, cursor)
        weights[lane, a] += weight
        targets[lane, a] += weight * reward


@part
def glm_turn_(
    flags: Ints, table: Floats, row: int, lane: int, G: Floats, twin: Floats, b: Floats, count: Floats, cursor: Ints,
    atoms: Floats, weights: Floats, targets: Floats, theta: Floats, shown: Floats, H: Floats, low: Floats,
    pivot: Floats, z: Floats, Z: Floats, P: Floats, M: Floats, Q: Floats, rhs: Floats,
) -> None:
    """Phase three: a restart due now, then θ̂, and the point of the ball that the rule plays with."""
    since = count[lane, SINCE]
    turn_(flags, table, row, lane, G, twin, b, count)
    if count[lane, SINCE] != since:
        forget_(flags, lane, table[row, REG], atoms, weights, targets, theta, H, count, cursor)
    link = flags[LINK]
    if link == CUSTOM:  # its owner evaluates it in Python and goes on from here
        return
    exact = flags[ESTIMATE] != ONE_PASS
    status = 0
    if exact:
        status = solve_(
            link, atoms, weights, targets, cursor[USED], lane, table[row, REG], theta, Z, P, M, H[lane]
        )
    for i in range(theta.shape[1]):
        shown[lane, i] = theta[lane, i]
    if flags[RULE] != SC_D and norm_of(theta, lane) > table[row, S]:
        if not exact:
            status = nearest_estimate_(
                flags, table, row, lane, G, theta, shown, H, low, pivot, z, Q, rhs
            )
        else:
            factor_(G, lane, table[row, LAM], low, pivot)
            status, _ = project_(
                flags[RULE] == GLB, link, atoms, weights, targets, cursor[USED], lane, table[row, REG], table[row, S],
                low, shown, Z, P, M,
            )  # fmt: skip
    if status != 0:
        count[lane, FAILED] += 1.0


@kernel
def nearest_estimate_(
    flags: Ints, table: Floats, row: int, lane: int, G: Floats, theta: Floats, shown: Floats, H: Floats, low: Floats,
    pivot: Floats, z: Floats, Q: Floats, rhs: Floats,
) -> int:
    """One pass keeps no history, so g(θ)-b is taken as H(θ-θ̂): the norm is H, or HV⁻¹H for GLB."""
    d = theta.shape[1]
    for i in range(d):
        for j in range(i + 1):
            Q[0, i, j] = H[lane, i, j]
            Q[1, i, j] = H[lane, i, j]
            Q[1, j, i] = H[lane, i, j]
    if flags[RULE] == GLB:
        factor_(G, lane, table[row, LAM], low, pivot)
        for j in range(d):  # column j of low⁻¹H, kept as row j of Q[1]
            for i in range(d):
                rhs[0, i] = Q[1, j, i]
            forward_(low, pivot, rhs, 0, z)
            for i in range(d):
                Q[1, j, i] = z[i]
        for i in range(d):
            for j in range(i + 1):
                total = 0.0
                for k in range(d):
                    total += Q[1, i, k] * Q[1, j, k]
                Q[0, i, j] = total
    return nearest_(Q, table[row, S], shown, lane, low, pivot, z, rhs)


@routine
def glm_lane_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, arm: int, reward: float, ticks: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints, atoms: Floats,
    weights: Floats, targets: Floats, theta: Floats, shown: Floats, H: Floats, low: Floats, pivot: Floats, z: Floats,
    Z: Floats, P: Floats, M: Floats, Q: Floats, rhs: Floats,
) -> None:
    """Run, absorb, turn, with scratch handed in; arm < 0 lets time pass without an observation."""
    factor = glm_run_(
        flags, table, row, lane, ticks, G, twin, b, count, ring, cursor, atoms, weights, targets, theta, H
    )
    if arm >= 0:
        glm_absorb_(
            flags, table, row, lane, factor, X, at, arm, reward, age, G, twin, b, count, ring, cursor, atoms, weights,
            targets, theta, H, z, P, M,
        )  # fmt: skip
    elif factor != 1.0:
        scale_(lane, factor, G, twin, b)
        if flags[ESTIMATE] == ONE_PASS and flags[LINK] != CUSTOM:
            if one_pass_fade_(H, theta, lane, factor, table[row, REG], M) != 0:
                count[lane, FAILED] += 1.0
    glm_turn_(
        flags, table, row, lane, G, twin, b, count, cursor, atoms, weights, targets, theta, shown, H, low, pivot, z,
        Z, P, M, Q, rhs,
    )  # fmt: skip
