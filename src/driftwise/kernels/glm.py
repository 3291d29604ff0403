"""A lane of the GLM families: GLB, SCB, SC-D-GLUCB and posterior by flag (docs/math.md#generalized-linear).

`learn` runs and absorbs as in the linear family, keeps the history as atoms (or folds it in one pass), and in its last
phase solves the estimate, so that `choose` only reads: theta is θ̂, shown the point that the rule uses. If the flags
say that the estimate is solved OUTSIDE, by Python with compiled solvers, the lesson stops before that.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from driftwise.kernels import formula, part, piece, routine
from driftwise.kernels.adapt.lane import LaneLearn
from driftwise.kernels.algebra import factor_, forward_
from driftwise.kernels.groups import EstimateBundle, History, Sums
from driftwise.kernels.index import ScoreScratch, lift_, roots_, whiten_
from driftwise.kernels.linear import confidence
from driftwise.kernels.links import CUSTOM
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memories.any import atoms as lessons
from driftwise.kernels.memories.atoms import clear_atoms_, fade_atoms_, place_atom_
from driftwise.kernels.memories.phases import Phases
from driftwise.kernels.memories.sums import scale_
from driftwise.kernels.point import (
    BALL,
    CLOCK,
    ESTIMATE,
    EXACT,
    EXPLORE,
    FAILED,
    FORGET,
    GLB,
    HORIZON,
    INSIDE,
    LAM,
    LINK,
    ONE_PASS,
    POSTERIOR,
    RANGE,
    REG,
    RULE,
    SC_D,
    SCB,
    SINCE,
    SLOPE_LEAST,
    SLOPE_MOST,
    SOLVER,
    SQUARES,
    USED,
    Floats,
    L,
    Lesson,
    Point,
    R,
    S,
)
from driftwise.kernels.scratch import Shapes, carved
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.ball import length_of, nearest_
from driftwise.kernels.solvers.newton import NewtonScratch, hessian_, newton_shapes, solve_
from driftwise.kernels.solvers.one_pass import one_pass_, one_pass_fade_
from driftwise.kernels.solvers.project import project_
from driftwise.theory.constants import glm_multiplier, scb_multiplier
from driftwise.theory.radius import glb_radius, sc_d_glucb_radius, scb_radius

# The posterior rule ranks by this many standard deviations of x'θ at exploration 1.
QUANTILE = 1.5
# S of log odds where none is given.
ODDS = 3.0


class LessonScratch(NamedTuple):
    """Scratch of a lesson: that of Newton's steps, a factor, pivot and z, a row, two quadratic forms, and every lane's
    surprise."""

    newton: NewtonScratch
    low: Floats
    pivot: Floats
    z: Floats
    row: Floats
    Q: Floats
    surprise: Floats


@formula
def lesson_shapes(d: int, capacity: int, lanes: int) -> Shapes:
    """The shapes of its fields."""
    return newton_shapes(d, capacity), (d, d), (d,), (d,), (1, d), (2, d, d), (lanes,)


lesson_scratch_size, lesson_scratch_of = carved(LessonScratch, lesson_shapes)


class Lanes(NamedTuple):
    """Lanes of the generalized linear families, and scratch of their lessons."""

    sums: Sums
    history: History
    estimate: EstimateBundle
    work: LessonScratch
    surprise: Floats


@piece
def glm_radius(point: Point, row: int, squares: float, clock: float, d: int, inside: bool) -> float:
    """The multiplier of ‖x‖: (2k/c)β̄, 2√(1+2SL)(k/√c)β̃, or β/√c of SC-D-GLUCB, times the exploration factor."""
    table, rule = point.table, point.flags[RULE]
    k, c = table[row, SLOPE_MOST], table[row, SLOPE_LEAST]
    log_delta, reach, length = confidence(table, row, clock), table[row, S], table[row, L]
    beta, factor = math.nan, 1.0
    if rule == GLB:
        beta = glb_radius(squares, float(d), table[row, LAM], log_delta, reach, length, table[row, R], c)
        factor = glm_multiplier(k, c)
    elif rule == SCB:
        beta = scb_radius(squares, float(d), table[row, REG], log_delta, reach, length, table[row, RANGE], k)
        factor = scb_multiplier(k, c, reach, length)
    elif rule == SC_D:
        # Written for L = 1: the problem with arms x/L and parameter Lθ has ridge λ/L² and radius SL.
        ridge = table[row, REG] / (length * length)
        beta = sc_d_glucb_radius(
            inside, float(d), ridge, log_delta, reach * length, table[row, RANGE], k, table[row, FORGET],
            table[row, HORIZON],
        )  # fmt: skip
        factor = 1.0 / math.sqrt(c)
    return float(table[row, EXPLORE] * factor * beta)


@piece
def predict_(matrix: Floats, lane: int, ridge: float, theta: Floats, X: Floats, at: int, scores: ScoreScratch) -> None:
    """mean = x'θ and bonus = ‖x‖², in the inverse of matrix[lane] + ridge·I, of every arm."""
    factor_(matrix, lane, ridge, scores.low, scores.pivot)
    mean = scores.mean
    for i in range(theta.shape[1]):
        scores.z[i] = 0.0
    whiten_(scores, X, at)
    for i in range(theta.shape[1]):
        t = theta[lane, i]
        for a in range(mean.size):
            mean[a] += t * X[at, i, a]


@piece
def posterior_scores_(
    point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, estimate: EstimateBundle, scores: ScoreScratch
) -> None:
    """The mean μ(x'θ̂) of every arm, and how far a quantile of the Laplace posterior is above it."""
    predict_(estimate.H, lane, 0.0, estimate.theta, X, at, scores)
    lift_(point.flags[LINK], QUANTILE * point.table[row, EXPLORE], scores.mean, scores.bonus)


@piece
def optimistic_scores_(
    point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, estimate: EstimateBundle, scores: ScoreScratch
) -> None:
    """Mean μ(x'θ̃) (for a user's own link x'θ̃ itself) and bonus of every arm."""
    table, link, mean = point.table, point.flags[LINK], scores.mean
    predict_(sums.G, lane, table[row, LAM], estimate.shown, X, at, scores)
    if link != CUSTOM:
        for a in range(mean.size):
            mean[a] = link_mean(link, mean[a])
    inside = length_of(estimate.theta, lane) <= table[row, S]
    count = sums.counters
    radius = glm_radius(point, row, count[lane, SQUARES], count[lane, CLOCK], sums.G.shape[1], inside)
    roots_(radius, scores.bonus)


@piece
def glm_scores_(
    point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, estimate: EstimateBundle, scores: ScoreScratch
) -> None:
    """Either, by the rule in the flags."""
    if point.flags[RULE] == POSTERIOR:
        posterior_scores_(point, row, lane, X, at, sums, estimate, scores)
    else:
        optimistic_scores_(point, row, lane, X, at, sums, estimate, scores)


# ------------------------------------------------------------------------------------------ estimates

class Add(Protocol):
    """What an observation adds to an estimate."""

    def __call__(
        self, point: Point, row: int, lane: int, factor: float, weight: float, taken: bool, lesson: Lesson,
        lanes: Lanes,
    ) -> None: ...


class FadeEstimate(Protocol):
    """How an estimate fades without observations."""

    def __call__(self, point: Point, row: int, lane: int, factor: float, lanes: Lanes) -> None: ...


class Solve(Protocol):
    """How an estimate is solved in the end; the status of the solver."""

    def __call__(self, point: Point, row: int, lane: int, lanes: Lanes) -> int: ...


class Confine(Protocol):
    """How a rule brings an estimate into the ball; the status of the last solver."""

    def __call__(self, point: Point, row: int, lane: int, status: int, lanes: Lanes) -> int: ...


class EstimatePieces(NamedTuple):
    """The pieces of an estimate under a rule. Those named `any_` branch on the flags."""

    add_: Add
    fade_: FadeEstimate
    solve_: Solve
    confine_: Confine


@piece
def exact_add_(
    point: Point, row: int, lane: int, factor: float, weight: float, taken: bool, lesson: Lesson, lanes: Lanes
) -> None:
    """An observation adds weight to its atom."""
    if taken:
        a = place_atom_(lesson, lanes.sums.counters, lanes.history)
        lanes.history.weights[lane, a] += weight
        lanes.history.targets[lane, a] += weight * lesson.reward


@piece
def one_pass_add_(
    point: Point, row: int, lane: int, factor: float, weight: float, taken: bool, lesson: Lesson, lanes: Lanes
) -> None:
    """An observation is a Newton step of θ̂ and H; one that no longer counts has weight 0."""
    x, estimate = lanes.work.z, lanes.estimate
    for i in range(x.size):
        x[i] = lesson.X[lesson.at, i, lesson.arm]
    if point.flags[SOLVER] == INSIDE:
        status = one_pass_(
            point.flags[LINK], estimate.H, estimate.theta, lane, x, lesson.reward, factor, weight,
            point.table[row, REG], lanes.work.newton,
        )  # fmt: skip
        if status != 0:
            lanes.sums.counters[lane, FAILED] += 1.0


@piece
def any_add_(
    point: Point, row: int, lane: int, factor: float, weight: float, taken: bool, lesson: Lesson, lanes: Lanes
) -> None:
    """By the flags."""
    if point.flags[ESTIMATE] == ONE_PASS:
        one_pass_add_(point, row, lane, factor, weight, taken, lesson, lanes)
    else:
        exact_add_(point, row, lane, factor, weight, taken, lesson, lanes)


@piece
def exact_fade_(point: Point, row: int, lane: int, factor: float, lanes: Lanes) -> None:
    """Nothing to do: atoms have faded already."""


@piece
def one_pass_wane_(point: Point, row: int, lane: int, factor: float, lanes: Lanes) -> None:
    """θ̂ and H fade."""
    reg, estimate = point.table[row, REG], lanes.estimate
    if point.flags[SOLVER] == INSIDE:
        if one_pass_fade_(estimate.H, estimate.theta, lane, factor, reg, lanes.work.newton.M) != 0:
            lanes.sums.counters[lane, FAILED] += 1.0


@piece
def any_fade_(point: Point, row: int, lane: int, factor: float, lanes: Lanes) -> None:
    """By the flags."""
    if point.flags[ESTIMATE] == ONE_PASS:
        one_pass_wane_(point, row, lane, factor, lanes)


@piece
def atoms_of(point: Point, row: int, lane: int, history: History) -> Atoms:
    """A lane's history in the form of solvers."""
    return Atoms(
        point.flags[LINK], history.atoms, history.weights, history.targets, lane, history.cursor[USED],
        point.table[row, REG], point.table[row, S],
    )  # fmt: skip


@piece
def exact_solve_(point: Point, row: int, lane: int, lanes: Lanes) -> int:
    """θ̂ from all atoms."""
    atoms, estimate = atoms_of(point, row, lane, lanes.history), lanes.estimate
    return solve_(atoms, estimate.theta, lanes.work.newton, estimate.H[lane])


@piece
def posterior_solve_(point: Point, row: int, lane: int, lanes: Lanes) -> int:
    """θ̂ from all atoms, and the Hessian there."""
    atoms, estimate = atoms_of(point, row, lane, lanes.history), lanes.estimate
    status = solve_(atoms, estimate.theta, lanes.work.newton, estimate.H[lane])
    hessian_(atoms, estimate.theta, lanes.work.newton, estimate.H[lane])
    return status


@piece
def one_pass_solve_(point: Point, row: int, lane: int, lanes: Lanes) -> int:
    """Nothing to do: θ̂ is up to date."""
    return 0


@piece
def any_solve_(point: Point, row: int, lane: int, lanes: Lanes) -> int:
    """By the flags."""
    if point.flags[ESTIMATE] == ONE_PASS:
        return one_pass_solve_(point, row, lane, lanes)
    if point.flags[RULE] == POSTERIOR:
        return posterior_solve_(point, row, lane, lanes)
    return exact_solve_(point, row, lane, lanes)


@routine
def nearest_estimate_(
    point: Point, row: int, lane: int, sums: Sums, estimate: EstimateBundle, work: LessonScratch
) -> int:
    """One pass keeps no history, so g(θ)-b is approximated by H(θ-θ̂): the norm is H, or HV⁻¹H for GLB."""
    H, Q, z, rhs = estimate.H, work.Q, work.z, work.row
    d = z.size
    for i in range(d):
        for j in range(i + 1):
            Q[0, i, j] = H[lane, i, j]
            Q[1, i, j] = H[lane, i, j]
            Q[1, j, i] = H[lane, i, j]
    if point.flags[RULE] == GLB:
        factor_(sums.G, lane, point.table[row, LAM], work.low, work.pivot)
        for j in range(d):  # column j of low⁻¹H, kept as row j of Q[1]
            for i in range(d):
                rhs[0, i] = Q[1, j, i]
            forward_(work.low, work.pivot, rhs, 0, z)
            for i in range(d):
                Q[1, j, i] = z[i]
        for i in range(d):
            for j in range(i + 1):
                total = 0.0
                for k in range(d):
                    total += Q[1, i, k] * Q[1, j, k]
                Q[0, i, j] = total
    return nearest_(Q, point.table[row, S], estimate.shown, lane, work.low, work.pivot, z, rhs)


@piece
def exact_confine_(point: Point, row: int, lane: int, status: int, lanes: Lanes) -> int:
    """The point of the ball nearest to θ̂ in the rule's norm of g(θ)-b, if θ̂ is outside; returns the status of the
    last solver."""
    if length_of(lanes.estimate.theta, lane) <= point.table[row, BALL]:
        return status
    work, atoms = lanes.work, atoms_of(point, row, lane, lanes.history)
    factor_(lanes.sums.G, lane, point.table[row, LAM], work.low, work.pivot)
    found, _ = project_(point.flags[RULE] == GLB, atoms, work.low, lanes.estimate.shown, work.newton)
    return found


@piece
def one_pass_confine_(point: Point, row: int, lane: int, status: int, lanes: Lanes) -> int:
    """The same without a history."""
    if length_of(lanes.estimate.theta, lane) <= point.table[row, BALL]:
        return status
    return nearest_estimate_(point, row, lane, lanes.sums, lanes.estimate, lanes.work)


@piece
def no_confine_(point: Point, row: int, lane: int, status: int, lanes: Lanes) -> int:
    """SC-D-GLUCB and the posterior use θ̂ itself."""
    return status


@piece
def any_confine_(point: Point, row: int, lane: int, status: int, lanes: Lanes) -> int:
    """By the flags."""
    if not (point.flags[RULE] == GLB or point.flags[RULE] == SCB):
        return status
    if point.flags[ESTIMATE] == EXACT:
        return exact_confine_(point, row, lane, status, lanes)
    return one_pass_confine_(point, row, lane, status, lanes)


ANY = EstimatePieces(any_add_, any_fade_, any_solve_, any_confine_)


def estimating(rule: int, estimate: int) -> EstimatePieces:
    """The pieces of an estimate under a rule; those that branch on the flags if either is of a kind unknown here."""
    if rule not in (GLB, SCB, SC_D, POSTERIOR) or estimate not in (EXACT, ONE_PASS):
        return ANY
    if estimate == ONE_PASS:
        made = EstimatePieces(one_pass_add_, one_pass_wane_, one_pass_solve_, one_pass_confine_)
    else:
        solve = posterior_solve_ if rule == POSTERIOR else exact_solve_
        made = EstimatePieces(exact_add_, exact_fade_, solve, exact_confine_)
    return made if rule in (GLB, SCB) else made._replace(confine_=no_confine_)


# ------------------------------------------------------------------------------------------ the phases of a lesson


@piece
def forget_(lane: int, reg: float, count: Floats, history: History, estimate: EstimateBundle) -> None:
    """Clear a lane: no atoms, θ̂ = 0, and for one pass H = reg·I."""
    clear_atoms_(lane, count, history)
    for i in range(estimate.theta.shape[1]):
        estimate.theta[lane, i] = 0.0
        for j in range(estimate.theta.shape[1]):
            estimate.H[lane, i, j] = reg if i == j else 0.0


def glm_lane_of(phases: Phases, estimate: EstimatePieces) -> LaneLearn[Lanes]:
    """A lane's lesson with the pieces of a memory and an estimate."""
    run_, weight, turn_, take_ = phases.memory.run_, phases.memory.weight, phases.memory.turn_, phases.take_
    add_, fade_, solve_, confine_ = estimate.add_, estimate.fade_, estimate.solve_, estimate.confine_

    @part
    def glm_run_(point: Point, row: int, lane: int, ticks: float, lanes: Lanes) -> float:
        """Phase one on sums and atoms; returns the factor by which the sums still have to fade."""
        count, history = lanes.sums.counters, lanes.history
        since = count[lane, SINCE]
        factor = run_(point, row, lane, ticks, lanes.sums, history)
        if count[lane, SINCE] != since:
            forget_(lane, point.table[row, REG], count, history, lanes.estimate)
        if factor != 1.0:
            fade_atoms_(lane, factor, count, history)
        return factor

    @part
    def glm_absorb_(point: Point, row: int, lane: int, factor: float, lesson: Lesson, lanes: Lanes) -> bool:
        """Phase two on sums and atoms, or on θ̂ and H in one pass; returns whether the observation was accepted."""
        taken = take_(point, row, lane, factor, lesson, lanes.sums, lanes.history)
        w = weight(point, row, lesson.age) if taken else 0.0
        add_(point, row, lane, factor, w, taken, lesson, lanes)
        return taken

    @part
    def glm_turn_(point: Point, row: int, lane: int, lanes: Lanes) -> None:
        """Phase three: a restart that is due now, then θ̂, and the point of the ball that the rule uses."""
        count, estimate = lanes.sums.counters, lanes.estimate
        since = count[lane, SINCE]
        turn_(point, row, lane, lanes.sums)
        if count[lane, SINCE] != since:
            forget_(lane, point.table[row, REG], count, lanes.history, estimate)
        if point.flags[SOLVER] == INSIDE:
            status = solve_(point, row, lane, lanes)
            for i in range(estimate.theta.shape[1]):
                estimate.shown[lane, i] = estimate.theta[lane, i]
            if confine_(point, row, lane, status, lanes) != 0:
                count[lane, FAILED] += 1.0

    @part
    def glm_lane_(point: Point, row: int, lane: int, lesson: Lesson, lanes: Lanes) -> None:
        """Run, absorb, turn."""
        factor = glm_run_(point, row, lane, lesson.ticks, lanes)
        taken = False
        if lesson.arm >= 0:
            taken = glm_absorb_(point, row, lane, factor, lesson, lanes)
        if not taken and factor != 1.0:
            scale_(lane, factor, lanes.sums)
            if lesson.arm < 0:
                fade_(point, row, lane, factor, lanes)
        glm_turn_(point, row, lane, lanes)

    return glm_lane_


glm_lane_ = glm_lane_of(lessons, ANY)
