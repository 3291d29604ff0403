"""Eight trials of a linear policy together, one trial per lane (docs/math.md#linear).

All have the same policy, path and noise, and each its own arms and tape. The counters of a memory do not depend on
data, so one row of counters serves all eight. Every lane does the operations of kernels/linear.py in their order, and
so has its bits: latency is paid once for eight.

Arms come in tiles of four (n/4, d, 4, 8); what fills up the last are copies of the first arm, which ties never choose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise.kernels import entry, formula, piece
from driftwise.kernels.algebra import divide_eight_, factor_eight_, forward_eight_
from driftwise.kernels.chance import GAUSSIAN, Record, Rounds, reward_of
from driftwise.kernels.cut import Fours, IntMatrix, Matrix
from driftwise.kernels.groups import COUNTERS
from driftwise.kernels.index import bonuses_of
from driftwise.kernels.lanes import EIGHT, FOUR, Lanes, eight, four_eights, load, load_four, store_, where_above
from driftwise.kernels.linear import shared_scale
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.memories.restart import last_before, last_until
from driftwise.kernels.point import (
    CLOCK,
    DIM,
    FADE,
    GAMMA,
    LAM,
    LENGTH,
    MEMORY,
    ONE_MATRIX,
    ONLY,
    RESTART,
    RULE,
    SINCE,
    SQUARES,
    Floats,
    Ints,
    Lesson,
    Point,
)
from driftwise.kernels.rounds import AnyFamily, Pieces
from driftwise.kernels.scratch import Shapes, carved


class EightStates(NamedTuple):
    """Eight states and the scratch of their rounds.

    Sums; counters, which all share; regrets so far. Factors, pivot and z; y of four arms; the best of every fourth arm,
    which it is, and the first ones; vectors, means and rewards of the arms chosen.
    """

    G: Floats
    twin: Floats
    low: Floats
    other: Floats
    b: Floats
    pivot: Floats
    z: Floats
    y: Floats
    x: Floats
    counters: Floats
    total: Floats
    best: Floats
    arm: Floats
    first: Floats
    value: Floats
    reward: Floats


@formula
def eight_shapes(d: int) -> Shapes:
    """The shapes of its fields."""
    square, column, four = (d, d, EIGHT), (d, EIGHT), (FOUR, EIGHT)
    sums = square, square, square, square, column, column, column, (d, FOUR, EIGHT), column
    return *sums, (COUNTERS,), (EIGHT,), four, four, four, (EIGHT,), (EIGHT,)


eight_states_size, eight_states_of = carved(EightStates, eight_shapes)


class FourRounds(NamedTuple):
    """The Rounds of eight trials: arms (n/4, d, 4, 8) by fours, draws and best (rounds, 8)."""

    arms: Fours
    path: Matrix
    draws: Matrix
    best: Matrix
    link: int
    kind: int
    noise: float


class FourRecord(NamedTuple):
    """The Record of eight trials: chosen and regret (rounds, 8)."""

    chosen: IntMatrix
    regret: Matrix
    used: Ints


# ------------------------------------------------------------------------------------------ four arms


@piece
def whiten_four_(X: Floats, a: int, own: EightStates) -> tuple[Lanes, Lanes]:
    """y = low⁻¹x of the arms of tile a, two rows a pass; y'z and ‖y‖² (`whiten_` of kernels/index.py)."""
    low, pivot, z, y = own.low, own.pivot, own.z, own.y
    d, mean, square = pivot.shape[0], four_eights(0.0), four_eights(0.0)
    for i in range(0, d - 1, 2):
        v, w = load_four(X, (a, i)), load_four(X, (a, i + 1))
        for k in range(i):
            above = load_four(y, k)
            v -= load(low, (i, k)) * above
            w -= load(low, (i + 1, k)) * above
        v *= load(pivot, i)
        w = (w - load(low, (i + 1, i)) * v) * load(pivot, i + 1)
        store_(y, i, v)
        store_(y, i + 1, w)
        mean = mean + load(z, i) * v + load(z, i + 1) * w
        square = square + v * v + w * w
    if d % 2 == 1:
        v = load_four(X, (a, d - 1))
        for k in range(d - 1):
            v -= load(low, (d - 1, k)) * load_four(y, k)
        v *= load(pivot, d - 1)
        store_(y, d - 1, v)
        mean += load(z, d - 1) * v
        square += v * v
    return mean, square


@piece
def shape_four_(own: EightStates) -> Lanes:
    """‖other'y‖² of four arms: `shape_` and `squares_` of kernels/index.py."""
    other, y = own.other, own.y
    square = four_eights(0.0)
    for i in range(other.shape[0]):
        v = load_four(y, i) * load(other, (i, i))
        for k in range(i + 1, other.shape[0]):
            v += load(other, (k, i)) * load_four(y, k)
        square += v * v
    return square


@piece
def first_of_four(best: Floats, arm: Floats) -> Lanes:
    """In every lane the first arm of the largest score, of four that are each the first of their own."""
    top, first = load(best, 0), load(arm, 0)
    for f in range(1, FOUR):
        score, other = load(best, f), load(arm, f)
        earlier = where_above(first, other, other, first)
        first = where_above(score, top, other, where_above(top, score, first, earlier))
        top = where_above(score, top, score, top)
    return first


# ------------------------------------------------------------------------------------------ a round


@piece
def choose_lanes_(point: Point, row: int, X: Floats, own: EightStates) -> None:
    """The arm that every trial plays: the first of largest mean + bonus."""
    two = point.flags[RULE] != ONE_MATRIX
    ridge = eight(point.table[row, LAM])
    if two:
        factor_eight_(own.twin, row, ridge, own.other, own.pivot)
    factor_eight_(own.G, row, ridge, own.low, own.pivot)
    forward_eight_(own.low, own.pivot, own.b, row, own.z)
    if two:
        divide_eight_(own.low, own.pivot, own.other, own.other)
    radius = eight(shared_scale(point, row, own.counters, own.pivot.shape[0]))
    best, arm = four_eights(-math.inf), load_four(own.first, 0)
    now = arm
    for a in range(X.shape[0]):
        mean, square = whiten_four_(X, a, own)
        if two:
            square = shape_four_(own)
        score = mean + bonuses_of(radius, square)
        arm = where_above(score, best, now, arm)
        best = where_above(score, best, score, best)
        now += float(FOUR)
    store_(own.best, 0, best)
    store_(own.arm, 0, arm)
    store_(own.arm, 0, first_of_four(own.best, own.arm))


@piece
def rewards_(rounds: Rounds, record: Record, t: int, own: EightStates) -> None:
    """The rewards of the arms chosen, recorded as `reward_` of kernels/chance.py does."""
    X, path, kind = rounds.arms, rounds.path, rounds.kind
    d = path.shape[1]
    for lane in range(EIGHT):
        arm = int(own.arm[0, lane])
        record.chosen[t, lane] = arm
        for i in range(d):
            own.x[i, lane] = X[arm // FOUR, i, arm % FOUR, lane]
    value = eight(0.0)
    for i in range(d):
        value += load(own.x, i) * path[t, i]
    if rounds.link == IDENTITY and kind == GAUSSIAN:
        store_(own.reward, 0, value + rounds.noise * load(rounds.draws, t))
    else:
        store_(own.value, 0, value)
        for lane in range(EIGHT):
            own.value[lane] = link_mean(rounds.link, own.value[lane])
            own.reward[lane] = reward_of(kind, own.value[lane], rounds.noise, rounds.draws[t, lane])
        value = load(own.value, 0)
    total = load(own.total, 0) + (load(rounds.best, t) - value)
    store_(own.total, 0, total)
    store_(record.regret, t, total)


@piece
def restart_lanes_(boundary: float, own: EightStates) -> None:
    """`restart_` of kernels/memories/restart.py: all eight forget if a boundary is after the last restart."""
    if boundary > 0.0 and boundary > own.counters[SINCE]:
        for i in range(own.b.shape[0]):
            store_(own.b, i, load(own.b, i) * 0.0)
            for j in range(i + 1):
                store_(own.G, (i, j), load(own.G, (i, j)) * 0.0)
                store_(own.twin, (i, j), load(own.twin, (i, j)) * 0.0)
        own.counters[SQUARES] = 0.0
        own.counters[SINCE] = boundary


@piece
def blend_lanes_(factor: float, two: bool, own: EightStates) -> None:
    """`blend_` of kernels/memories/sums.py in every lane, the weight being 1."""
    x, reward = own.x, load(own.reward, 0)
    for i in range(x.shape[0]):
        xi = load(x, i)
        store_(own.b, i, factor * load(own.b, i) + reward * xi)
        for j in range(i + 1):
            store_(own.G, (i, j), factor * load(own.G, (i, j)) + xi * load(x, j))
    if two:
        square = factor * factor
        for i in range(x.shape[0]):
            xi = load(x, i)
            for j in range(i + 1):
                store_(own.twin, (i, j), square * load(own.twin, (i, j)) + xi * load(x, j))


@piece
def learn_lanes_(point: Point, row: int, own: EightStates) -> None:
    """`learn_` of kernels/memories/phases.py for a tick and a reward of age 0, of the memories played here."""
    memory, count, factor = point.flags[MEMORY], own.counters, 1.0
    count[CLOCK] += 1.0
    period = point.table[row, LENGTH]
    if memory == FADE:
        factor = point.table[row, GAMMA]
        count[SQUARES] *= factor * factor
    elif memory == RESTART:
        restart_lanes_(last_before(count[CLOCK], period), own)
    if memory != RESTART or count[CLOCK] > count[SINCE]:
        blend_lanes_(factor, point.flags[RULE] != ONE_MATRIX, own)
        count[SQUARES] += 1.0
    if memory == RESTART:
        restart_lanes_(last_until(count[CLOCK], period), own)


# ------------------------------------------------------------------------------------------ the engine


class Eight(NamedTuple):
    """Eight states of one policy, whose row is 0."""

    point: Point
    lanes: EightStates
    row: int


@piece
def eight_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> Eight:
    """floats are eight states and their scratch."""
    return Eight(Point(flags, table), eight_states_of(floats, flags[DIM]), int(ONLY))


@piece
def eight_sound(view: Eight) -> bool:
    """Eight states have neither cursors nor marks."""
    return True


@piece
def eight_begin_(view: Eight, scratch: Floats, arms: Floats) -> tuple[Eight, int]:
    """The numbers of the first four arms."""
    for f in range(FOUR):
        store_(view.lanes.first, f, eight(f))
    return view, view.row


@piece
def eight_choose_(own: Eight, kept: int, arms: Floats, at: int) -> tuple[int, int, int]:
    """Every trial's arm is noted among the lanes."""
    choose_lanes_(own.point, own.row, arms, own.lanes)
    return own.row, own.row, kept


@piece
def eight_pay_(
    own: Eight, rounds: Rounds, record: Record, t: int, arm: int, row: int, total: float
) -> tuple[float, float]:
    """Eight rewards, noted among the lanes, and eight regrets; the row that acted is always the same."""
    rewards_(rounds, record, t, own.lanes)
    return total, total


@piece
def eight_learn_(own: Eight, kept: int, rho: Floats, lesson: Lesson) -> int:
    """Every trial learns its own reward."""
    learn_lanes_(own.point, own.row, own.lanes)
    return kept


def eight_trials(family: AnyFamily) -> Pieces[Eight, Eight, int]:
    """The pieces by which the loop plays eight trials of the linear family at once."""
    return Pieces(eight_view, eight_sound, eight_begin_, eight_choose_, eight_learn_, pay_=eight_pay_)


# ------------------------------------------------------------------------------------------ entries


@entry
def best_of_eight_(X: Fours, path: Matrix, link: int, four: Matrix, best: Matrix) -> None:
    """The mean of the best arm of every round of eight trials, from the same sums as those of the arms played; four
    (4, 8) is scratch."""
    for t in range(path.shape[0]):
        top = four_eights(-math.inf)
        for a in range(X.shape[0]):
            value = four_eights(0.0)
            for i in range(X.shape[1]):
                value += load_four(X, (a, i)) * path[t, i]
            top = where_above(value, top, value, top)
        store_(four, 0, top)
        for lane in range(EIGHT):
            best[t, lane] = link_mean(link, max(four[0, lane], four[1, lane], four[2, lane], four[3, lane]))
