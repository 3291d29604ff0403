"""The projection of BVD-GLM-UCB (Faury, Russac, Abeille, Calauzènes 2021), in the three stages of MATH.md section 2.

E(θ) = {θ': ‖g(θ')-g(θ)‖_{Ṽ⁻¹} ≤ β̄}. (i) θ̂ in the ball. (ii) E(θ̂) meets the ball: its point nearest to θ̂ in that
very norm. (iii) Else the joint program: least ‖g(θ')+β̄Ṽ^{1/2}η-b‖_{V⁻²} over ‖θ'‖ ≤ S, ‖η‖ ≤ 1; for a given θ' the η
is a secular equation, and what is left is smooth in θ'. Any root R of Ṽ will do for Ṽ^{1/2}: η turns with it.
"""

from __future__ import annotations

import math

from driftwise.kernels import kernel, part
from driftwise.kernels.point import Floats
from driftwise.kernels.secular import (
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
    Atoms,
    Desk,
    backward_,
    clip_,
    copy_,
    descend_,
    desk,
    dot,
    evaluate_,
    factor_,
    forward_,
)

NEAREST, ORIGIN = 0, 1


@kernel
def invert_(z: Desk, M: Floats, ridge: float, to: Floats) -> None:
    """to = (M + ridge·I)⁻¹, both triangles, from the lower one of M."""
    spare, low = z.vec[SPARE], z.mat[LOW]
    factor_(M, ridge, low)
    for j in range(spare.size):
        for i in range(spare.size):
            spare[i] = 1.0 if i == j else 0.0
        forward_(low, spare)
        backward_(low, spare)
        for i in range(spare.size):
            to[i, j] = spare[i]


@part
def joint_(z: Desk, lam: float, G: Floats, twin: Floats, beta: float) -> None:
    """What ELLIPSOID measures with: V⁻², β̄R and β̄²R'V⁻²R with RR' = Ṽ."""
    metric, root, inner = z.mat[METRIC], z.mat[ROOT], z.mat[INNER]
    d = G.shape[0]
    invert_(z, G, lam, inner)
    for i in range(d):
        for j in range(d):
            t = 0.0
            for k in range(d):
                t += inner[k, i] * inner[k, j]
            metric[i, j] = t
            root[i, j] = 0.0
    factor_(twin, lam, root)
    for i in range(d):
        for j in range(i + 1):
            root[i, j] *= beta
    for i in range(d):
        for j in range(d):
            t = 0.0
            for k in range(i, d):
                for m in range(j, d):
                    t += root[k, i] * metric[k, m] * root[m, j]
            inner[i, j] = t


@part
def project_(
    link: int,
    A: Floats,
    w: Floats,
    s: Floats,
    lane: int,
    used: int,
    reg: float,
    theta: Floats,
    S: float,
    lam: float,
    G: Floats,
    twin: Floats,
    beta: float,
    tie: int,
    out: Floats,
) -> tuple[int, float, float, float]:
    """out (d,) = θ̃; the stage (1, 2, 3), ‖g-b‖_{Ṽ⁻¹} at θ̃ (q in (iii)), the least of the joint program, the last step.

    theta (lanes, d) is θ̂; V = G + lam·I and Ṽ = twin + lam·I, of which lower triangles are read. "Any point of the
    intersection" of the ball with E(θ̂) is, in stages (i) and (ii): for NEAREST θ̂ or q; for ORIGIN 0 wherever it belongs
    to E(θ̂), θ̂ in the ball or not, else θ̂ or q. In (iii) the intersection is a point. A last step above 1e-7 (1+‖θ‖) is
    a failure.
    """
    d = A.shape[0]
    p = Atoms(link, A, w, s, lane, used, reg, S)
    z = desk(d, used)
    here, hat = z.vec[THETA], z.vec[HAT]
    copy_(theta[lane], hat)
    copy_(hat, out)
    stage = 1 if dot(hat, hat) <= S * S else 2
    if stage == 2 or tie == ORIGIN:
        invert_(z, twin, lam, z.mat[METRIC])
    if tie == ORIGIN:
        copy_(z.vec[ZERO], here)
        norm = math.sqrt(2.0 * max(0.0, evaluate_(int(FIXED), p, z, int(HERE))))
        if norm <= beta:
            copy_(here, out)
            return stage, norm, 0.0, 0.0
    if stage == 1:
        return stage, 0.0, 0.0, 0.0
    copy_(hat, here)
    clip_(here, S)
    value, _, step = descend_(int(FIXED), p, z, 0.0, STEP)
    norm, least = math.sqrt(2.0 * max(0.0, value)), 0.0
    if norm > beta:
        stage = 3
        joint_(z, lam, G, twin, beta)
        value, _, step = descend_(int(ELLIPSOID), p, z, 0.0, STEP)
        least = math.sqrt(2.0 * max(0.0, value))
    copy_(here, out)
    return stage, norm, least, step
