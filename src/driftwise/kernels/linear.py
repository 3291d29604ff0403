"""The linear family: scores and lessons (docs/math.md#linear).

Rounds (kernels/rounds.py) are made of the pieces of live entries, so both play the same arms.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, Protocol, TypeVar

from driftwise._internal.elementary import log
from driftwise.kernels import entry, late, piece
from driftwise.kernels.algebra import divide_, factor_, forward_
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.groups import History, Sums, history_of, sums_of
from driftwise.kernels.index import ScoreScratch, roots_, shape_, squares_, whiten_
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memories.any import lessons_of
from driftwise.kernels.memories.any import sums as lessons
from driftwise.kernels.memories.fade import decay, weight
from driftwise.kernels.memories.phases import Learn
from driftwise.kernels.point import (
    BETA,
    CLOCK,
    EXPLORE,
    LAM,
    LOG_DELTA,
    MEMORY,
    ONLY,
    RADIUS,
    RULE,
    SQUARES,
    TWO_AS_PUBLISHED,
    TWO_MATRIX,
    Floats,
    Ints,
    L,
    Lesson,
    Point,
    R,
    S,
    sound_cursor,
)
from driftwise.kernels.rounds import Family, Teaches
from driftwise.theory.radius import lb_radius, uniform_log

# Radii.
WEIGHTED, CONSTANT = 0, 1
# Standard deviations in a posterior's bonus.
QUANTILE = 2.0


@piece
def confidence(table: Floats, row: int, clock: float) -> float:
    """log(1/δ). -1 in the table means δ = 1/max(2, t) at round t, for an unknown horizon; from -2 down it is
    -2-log(1/δ), and round t uses the share δ/(2t(1+log t)²)."""
    fixed = table[row, LOG_DELTA]
    if fixed >= 0.0:
        return float(fixed)
    return log(max(2.0, clock + 1.0)) if fixed > -2.0 else float(uniform_log(-2.0 - fixed, clock + 1.0, 0.0))


@piece
def linear_radius(point: Point, row: int, squares: float, clock: float, d: int) -> float:
    """The multiplier of the bonus: β of docs/math.md#linear times the exploration factor."""
    table = point.table
    beta = math.nan
    if point.flags[RADIUS] == CONSTANT:
        beta = table[row, BETA]
    elif point.flags[RADIUS] == WEIGHTED:
        log_delta = confidence(table, row, clock)
        beta = lb_radius(
            squares, float(d), table[row, LAM], log_delta, table[row, S], table[row, L], table[row, R]
        )
    return float(table[row, EXPLORE] * beta)


@piece
def linear_scale(point: Point, row: int, lane: int, sums: Sums, pivot: Floats) -> float:
    """The factor of an arm's width: the radius for the current sums. 1/pivot is the diagonal of V's factor."""
    count = sums.counters
    return linear_radius(point, row, count[lane, SQUARES], count[lane, CLOCK], sums.b.shape[1])


@piece
def shared_scale(point: Point, row: int, count: Floats, d: int) -> float:
    """The same for eight trials, which share their counters: data must not change it (policies/engines.py)."""
    return linear_radius(point, row, count[SQUARES], count[CLOCK], d)


@piece
def two_matrices(point: Point) -> bool:
    """Whether widths use two matrices."""
    return bool(point.flags[RULE] == TWO_MATRIX or point.flags[RULE] == TWO_AS_PUBLISHED)


@piece
def linear_factors_(
    point: Point, row: int, lane: int, sums: Sums, low: Floats, other: Floats, pivot: Floats, z: Floats
) -> None:
    """V = low low', z = low⁻¹b, and for two matrices other = low⁻¹M with Ṽ = MM': ‖x‖ = ‖other' low⁻¹x‖."""
    lam = point.table[row, LAM]
    if two_matrices(point):
        factor_(sums.twin, lane, lam, other, pivot)
    factor_(sums.G, lane, lam, low, pivot)
    forward_(low, pivot, sums.b, lane, z)
    if two_matrices(point):
        divide_(low, pivot, other, other)


@piece
def linear_index_(point: Point, scale: float, X: Floats, at: int, scores: ScoreScratch) -> None:
    """Mean and bonus of every arm by the factors in scores: x'V⁻¹b and scale·‖x‖ in the norm of V⁻¹, or of V⁻¹ṼV⁻¹
    for two matrices."""
    whiten_(scores, X, at)
    if two_matrices(point):
        shape_(scores.other, scores.Y)
        squares_(scores.Y, scores.bonus)
    roots_(scale, scores.bonus)


@piece
def linear_scores_(point: Point, row: int, lane: int, X: Floats, at: int, sums: Sums, scores: ScoreScratch) -> None:
    """Mean and bonus of every arm."""
    linear_factors_(point, row, lane, sums, scores.low, scores.other, scores.pivot, scores.z)
    linear_index_(point, linear_scale(point, row, lane, sums, scores.pivot), X, at, scores)


@piece
def twin_as_published_(point: Point, row: int, lane: int, lesson: Lesson, sums: Sums) -> None:
    """The error of the published code: the twin starts from the *new* G, not from the old twin
    (docs/math.md#linear)."""
    X, at, arm = lesson.X, lesson.at, lesson.arm
    fade = decay(point.table, row, lesson.ticks)
    w = weight(point, row, lesson.age) if arm >= 0 else 0.0
    for i in range(sums.G.shape[1]):
        for j in range(i + 1):
            sums.twin[lane, i, j] = fade * fade * sums.G[lane, i, j]
            if arm >= 0:
                sums.twin[lane, i, j] += w * w * X[at, i, arm] * X[at, j, arm]


def learning(learn_: Learn) -> Learn:
    """A lesson of a memory, and the addition of the rule."""

    @piece
    def linear_learn_(point: Point, row: int, lane: int, lesson: Lesson, sums: Sums, history: History) -> None:
        learn_(point, row, lane, lesson, sums, history)
        if point.flags[RULE] == TWO_AS_PUBLISHED:
            twin_as_published_(point, row, lane, lesson, sums)

    return linear_learn_


linear_learn_ = learning(lessons.learn_)


def learning_of(memory: int, rule: int) -> tuple[str, Learn]:
    """A lesson of one memory under one rule, and its name."""
    one = lessons_of(memory)
    name = one.memory.name
    return (f"{name}_as_published", learning(one.learn_)) if rule == TWO_AS_PUBLISHED else (name, one.learn_)


# ------------------------------------------------------------------------------------------ the family


class Linear(NamedTuple):
    """A state with one lane, which is row 0 of the table."""

    point: Point
    sums: Sums
    history: History
    lane: int


class OneLane(Protocol):
    """What a lesson reads of such a state."""

    @property
    def point(self) -> Point: ...

    @property
    def sums(self) -> Sums: ...

    @property
    def history(self) -> History: ...

    @property
    def lane(self) -> int: ...


Lane = TypeVar("Lane", bound=OneLane)


@piece
def linear_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> Linear:
    """A packed state as the family sees it."""
    return Linear(Point(flags, table), sums_of(flags, floats), history_of(flags, floats, ints), int(ONLY))


@piece
def linear_sound(view: OneLane) -> bool:
    """Whether the cursor lies in range."""
    return sound_cursor(view.history)


@piece
def linear_score_(view: Linear, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Mean and bonus of every arm; the row that acted."""
    linear_scores_(view.point, view.lane, view.lane, X, at, view.sums, scores)
    return view.lane


@piece
def no_lesson_scratch(view: object, scratch: Floats, start: int, d: int) -> int:
    """A lesson of sums needs no scratch."""
    return start


def linear_lesson(learn_: Learn) -> Teaches[OneLane, int]:
    """One lane learns."""

    @piece
    def lesson_(view: OneLane, work: int, rho: Floats, largest: float, lesson: Lesson) -> None:
        learn_(view.point, view.lane, view.lane, lesson, view.sums, view.history)

    return lesson_


def linear_bound(family: Family[Lane, int], flags: Ints) -> Family[Lane, int]:
    """The family with only the lessons of a policy's memory."""
    name, lesson_ = _lesson_of(int(flags[MEMORY]), int(flags[RULE]))
    return family._replace(name=f"{family.name}_{name}", lesson_=lesson_)


@cache
def _lesson_of(memory: int, rule: int) -> tuple[str, Teaches[OneLane, int]]:
    name, learn_ = learning_of(memory, rule)
    return name, linear_lesson(learn_)


LINEAR: Family[Linear, int] = Family(
    "linear", linear_view, linear_sound, linear_score_, no_lesson_scratch, linear_lesson(linear_learn_),
    bound=linear_bound,
)  # fmt: skip


# ------------------------------------------------------------------------------------------ entries


@late
@entry
def best_means_(arms: Stack, theta: Matrix, link: int, value: Vector, best: Vector) -> None:
    """The mean of the best arm of every round, from the same sums as the arm played; value (n) is scratch."""
    d, n = arms.shape[1], arms.shape[2]
    fresh = arms.shape[0] > 1
    for t in range(theta.shape[0]):
        at = t if fresh else 0
        for a in range(n):
            value[a] = 0.0
        for i in range(d):
            h = theta[t, i]
            for a in range(n):
                value[a] += arms[at, i, a] * h
        top = value[0]
        for a in range(1, n):
            if value[a] > top:
                top = value[a]
        best[t] = link_mean(link, top)
