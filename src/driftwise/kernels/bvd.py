"""BVD-GLM-UCB (Faury, Russac, Abeille, Calauzènes 2021): its projection in three stages, and its entries.

The stages are those of docs/math.md#generalized-linear.

E(θ) = {θ': ‖g(θ')-g(θ)‖_{Ṽ⁻¹} ≤ β̄}. (i) θ̂ in the ball. (ii) E(θ̂) meets the ball: its point nearest to θ̂ in that
very norm. (iii) Otherwise the joint program: the smallest ‖g(θ')+β̄Ṽ^{1/2}η-b‖_{V⁻²} over ‖θ'‖ ≤ S, ‖η‖ ≤ 1; for a
given θ' the η solves a secular equation, and the rest is smooth in θ'. Any root R of Ṽ can replace Ṽ^{1/2}: η turns
with it.

Its scores are those of GLM-UCB. The entries are separate from adapt/glm.py, which would otherwise compile the
projection into every policy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import kernel, part, routine
from driftwise.kernels.adapt.glm import GLM, lesson_alone, score_alone
from driftwise.kernels.algebra import multiply_turned_
from driftwise.kernels.glm import glm_scores_
from driftwise.kernels.groups import estimate_of, history_of, sums_of
from driftwise.kernels.memories.atoms import fade_atoms_, place_atom_
from driftwise.kernels.memories.fade import decay
from driftwise.kernels.memories.fade import weight as weight_of
from driftwise.kernels.memories.sums import blend_, scale_
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    DAMAGED,
    FAILED,
    FINE,
    LAM,
    LINK,
    LOG_DELTA,
    ONLY,
    REG,
    SLOPE_LEAST,
    SQUARES,
    TIE,
    USED,
    WEIGHT,
    Floats,
    Ints,
    L,
    Lesson,
    Point,
    R,
    S,
    sound_cursor,
)
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.ball import length_of
from driftwise.kernels.solvers.newton import CONVERGED, newton_scratch_of, newton_scratch_size, solve_
from driftwise.kernels.solvers.secular import (
    ELLIPSOID,
    FIXED,
    HAT,
    HERE,
    INNER,
    LOW,
    METRIC,
    ROOT,
    SPARE,
    STEP,
    THETA,
    ZERO,
    SetScratch,
    clip_,
    copy_,
    descend_,
    evaluate_,
    secular_backward_,
    secular_factor_,
    secular_forward_,
    set_scratch_of,
    set_scratch_size,
    vector_dot,
)
from driftwise.theory.radius import glb_radius

NEAREST, ORIGIN = 0, 1


@kernel
def invert_ridged_(z: SetScratch, M: Floats, ridge: float, to: Floats) -> None:
    """to = (M + ridge·I)⁻¹, both triangles, from the lower one of M."""
    spare, low = z.vec[SPARE], z.mat[LOW]
    secular_factor_(M, ridge, low)
    for j in range(spare.size):
        for i in range(spare.size):
            spare[i] = 1.0 if i == j else 0.0
        secular_forward_(low, spare)
        secular_backward_(low, spare)
        for i in range(spare.size):
            to[i, j] = spare[i]


class Way(NamedTuple):
    """What the projection uses: V = G + lam·I and Ṽ = twin + lam·I (lower triangles), β̄, and the rule for ties."""

    G: Floats
    twin: Floats
    lam: float
    beta: float
    tie: int


@part
def joint_(z: SetScratch, way: Way) -> None:
    """The matrices of ELLIPSOID: V⁻², β̄R and β̄²R'V⁻²R with RR' = Ṽ."""
    metric, root, inner = z.mat[METRIC], z.mat[ROOT], z.mat[INNER]
    d = way.G.shape[0]
    invert_ridged_(z, way.G, way.lam, inner)
    multiply_turned_(inner, inner, metric)
    for i in range(d):
        for j in range(d):
            root[i, j] = 0.0
    secular_factor_(way.twin, way.lam, root)
    for i in range(d):
        for j in range(i + 1):
            root[i, j] *= way.beta
    for i in range(d):
        for j in range(d):
            t = 0.0
            for k in range(i, d):
                for m in range(j, d):
                    t += root[k, i] * metric[k, m] * root[m, j]
            inner[i, j] = t


@part
def confine_(p: Atoms, theta: Floats, way: Way, z: SetScratch, out: Floats) -> tuple[int, float, float, float]:
    """out (d,) = θ̃; the stage (1, 2, 3), ‖g-b‖_{Ṽ⁻¹} at θ̃ (q in (iii)), the least of the joint program, the last
    step.

    theta (lanes, d) is θ̂, z empty scratch. "Any point of the intersection" of the ball with E(θ̂) is, in stages (i)
    and (ii): for NEAREST θ̂ or q; for ORIGIN 0 wherever it belongs to E(θ̂), θ̂ in the ball or not, else θ̂ or q. In
    (iii) the intersection is a point. A last step above 1e-7 (1+‖θ‖) is a failure.
    """
    lam, S = way.lam, p.S
    here, hat = z.vec[THETA], z.vec[HAT]
    copy_(theta[p.lane], hat)
    copy_(hat, out)
    stage = 1 if vector_dot(hat, hat) <= S * S else 2
    if stage == 2 or way.tie == ORIGIN:
        invert_ridged_(z, way.twin, lam, z.mat[METRIC])
    if way.tie == ORIGIN:
        copy_(z.vec[ZERO], here)
        norm = math.sqrt(2.0 * max(0.0, evaluate_(int(FIXED), p, z, int(HERE))))
        if norm <= way.beta:
            copy_(here, out)
            return stage, norm, 0.0, 0.0
    if stage == 1:
        return stage, 0.0, 0.0, 0.0
    copy_(hat, here)
    clip_(here, S)
    value, _, step = descend_(int(FIXED), p, z, 0.0, STEP)
    norm, least = math.sqrt(2.0 * max(0.0, value)), 0.0
    if norm > way.beta:
        stage = 3
        joint_(z, way)
        value, _, step = descend_(int(ELLIPSOID), p, z, 0.0, STEP)
        least = math.sqrt(2.0 * max(0.0, value))
    copy_(here, out)
    return stage, norm, least, step


@routine
def lesson_bvd_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, lesson: Lesson
) -> int:
    """A lesson that ends with θ̂ in theta and θ̃ in shown; arm < 0 lets time pass without an observation.

    The phases of kernels/memories are written out for the one memory that is possible here: with windows and restarts
    in it, compiling took half as long again.
    """
    lane, point = int(ONLY), Point(flags, table)
    sums, history, estimate = sums_of(flags, floats), history_of(flags, floats, ints), estimate_of(flags, floats)
    if not sound_cursor(history):
        return DAMAGED
    d, capacity = lesson.X.shape[1], history.cursor[USED] + 1
    newton, rest = newton_scratch_of(scratch, lane, d, capacity), scratch[newton_scratch_size(d, capacity) :]
    count, theta, shown = sums.counters, estimate.theta, estimate.shown
    factor = decay(table, lane, lesson.ticks)
    count[lane, CLOCK] += lesson.ticks
    count[lane, WEIGHT] *= factor
    count[lane, SQUARES] *= factor * factor
    fade_atoms_(lane, factor, count, history)
    if lesson.arm >= 0:
        weight = weight_of(point, lane, lesson.age)
        count[lane, COUNT] += 1.0
        count[lane, WEIGHT] += weight
        count[lane, SQUARES] += weight * weight
        blend_(lane, factor, weight, lesson, sums)
        a = place_atom_(lesson, count, history)
        history.weights[lane, a] += weight
        history.targets[lane, a] += weight * lesson.reward
    else:
        scale_(lane, factor, sums)
    lam, reach = table[lane, LAM], table[lane, S]
    atoms = Atoms(
        flags[LINK], history.atoms, history.weights, history.targets, lane, history.cursor[USED], table[lane, REG],
        reach,
    )  # fmt: skip
    good = solve_(atoms, theta, newton, estimate.H[lane]) == CONVERGED
    for i in range(theta.shape[1]):
        shown[lane, i] = theta[lane, i]
    if good:
        beta = glb_radius(
            count[lane, SQUARES], float(theta.shape[1]), lam, table[lane, LOG_DELTA], reach, table[lane, L],
            table[lane, R], table[lane, SLOPE_LEAST],
        )  # fmt: skip
        way = Way(sums.G[lane], sums.twin[lane], lam, beta, flags[TIE])
        for i in range(set_scratch_size(d, atoms.used)):
            rest[i] = 0.0
        _, _, _, last = confine_(atoms, theta, way, set_scratch_of(rest, lane, d, atoms.used), shown[lane])
        good = last <= 1e-7 * (1.0 + length_of(shown, lane))
    if not good:
        count[lane, FAILED] += 1.0
    return FINE


# ------------------------------------------------------------------------------------------ the family


BVD = GLM._replace(
    name="bvd", score_=score_alone(glm_scores_), lesson_=lesson_alone(lesson_bvd_), bound=lambda family, flags: family
)
