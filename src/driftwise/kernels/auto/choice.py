"""How Auto chooses: the likeliest lane's index, and a look now and then at an arm that is hidden."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftwise._internal.elementary import log1p
from driftwise.kernels import formula, loop, piece
from driftwise.kernels.auto.gauge import EVIDENCE, SEEN, UNKNOWN, Gauge, scale_of, usual_of
from driftwise.kernels.auto.lane import Beliefs, begin_of, cell, is_level, rounds_of, times_packed_
from driftwise.kernels.chance import uniform
from driftwise.kernels.cut import Vector
from driftwise.kernels.index import ScoreScratch, first_less
from driftwise.kernels.links import IDENTITY, slope
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import KEY_HIGH, KEY_LOW, LINK, LOOKS, SHORT, Floats, Ints, Point

# Nats of evidence from which on lanes with a level play.
BELIEVED = 4.0
# A look is drawn after ten rewards, among arms of which a short memory knows four times less than of those played. Half
# as likely is one that seems to lose a third of a standard deviation.
FIRST_LOOK, HIDDEN, FAR = 10.0, 4.0, 0.1
# Of an arm of zeros, which has no length, that much of the offset's variance is rounding.
ROUNDING = 1e-12
# What is learned serves for as many rounds as were played, and twenty more.
AHEAD = 20.0
# What tells the draws of looks from others by the same key.
DRAWS_LOOKS = 1


@piece
def acting(point: Point, gauge: Gauge, beliefs: Beliefs) -> int:
    """The likeliest lane of the family that is believed."""
    level, best = gauge.known[EVIDENCE] > BELIEVED, -1
    for k in range(beliefs.trust.size):
        if is_level(point, k) == level and (best < 0 or beliefs.trust[k] > beliefs.trust[best]):
            best = k
    return max(best, 0)


@piece
def gittins(u: float) -> float:
    """Standard deviations of bonus where what is learned lasts for u = N s²/R²: √(u/2) where u is small, as Gittins'
    index has it, and less than it where u is large."""
    return math.sqrt(0.5 * log1p(u))


@piece
def life_of(point: Point, k: int, gauge: Gauge) -> float:
    """The rounds that what a lane learns now will serve."""
    return float(min(rounds_of(point, k), gauge.known[SEEN] + AHEAD))


@piece
def given_last_(first: int, C: Floats, gauge: Gauge, y: Floats) -> float:
    """y = C times the arm played last, and the variance of its value."""
    D = gauge.bar.size
    return max(times_packed_(first, D, D, C, gauge.bar, y), 1e-300)


class Widths(NamedTuple):
    """Mean and variance of every arm's value, and two more numbers of it as scratch."""

    mean: Floats
    square: Floats
    cross: Floats
    term: Floats


@loop
def widths_(
    X: Floats, at: int, k: int, first: int, prior: float, gauge: Gauge, beliefs: Beliefs, y: Floats, variance: float,
    arms: Widths,
) -> None:
    """Mean and variance of every arm's value as a lane believes; the variance is that given the value of the arm
    played last, so that an offset common to all costs no exploration."""
    mean, square, cross, term = arms
    C, m, d, n = beliefs.spread, beliefs.mean, gauge.counts.size, mean.size
    row = first + cell(d, 0)
    for a in range(n):  # the offset
        mean[a], square[a], cross[a] = m[k, d], C[row + d], y[d]
    for i in range(d):
        u = gauge.inverse[i]
        own, both, mi, yi = C[first + cell(i, i)] * u, 2.0 * C[row + i], m[k, i] * u, y[i] * u
        for a in range(n):
            x = X[at, i, a]
            term[a] = own * x + both
            mean[a] += mi * x
            cross[a] += yi * x
        here = first + cell(i, 0)
        whole = i - i % 4
        for j in range(0, whole, 4):
            c0, c1 = 2.0 * C[here + j] * gauge.inverse[j], 2.0 * C[here + j + 1] * gauge.inverse[j + 1]
            c2, c3 = 2.0 * C[here + j + 2] * gauge.inverse[j + 2], 2.0 * C[here + j + 3] * gauge.inverse[j + 3]
            for a in range(n):
                near, far = c0 * X[at, j, a] + c1 * X[at, j + 1, a], c2 * X[at, j + 2, a] + c3 * X[at, j + 3, a]
                term[a] += near + far
        for j in range(whole, i):
            c0 = 2.0 * C[here + j] * gauge.inverse[j]
            for a in range(n):
                term[a] += c0 * X[at, j, a]
        for a in range(n):
            square[a] += term[a] * (X[at, i, a] * u)
    for a in range(n):
        square[a] = max(square[a] - cross[a] * cross[a] / variance, 0.0)
    for i in range(d):
        if gauge.counts[i] == 0.0:
            for a in range(n):
                square[a] += prior if X[at, i, a] != 0.0 else 0.0


@piece
def length_at(X: Floats, at: int, a: int, gauge: Gauge) -> float:
    """The squared length of an arm of a list, in usual sizes of its features."""
    total = 0.0
    for i in range(gauge.counts.size):
        if gauge.counts[i] > 0.0:
            x = X[at, i, a] * gauge.inverse[i]
            total += x * x / usual_of(i, gauge)
    return total


@piece
def weigh_arms_(
    point: Point, X: Floats, at: int, gauge: Gauge, beliefs: Beliefs, costs: Floats, scores: ScoreScratch
) -> int:
    """Mean and bonus of every arm by the lane that acts, and the chance with which a look would play each hidden arm:
    together that of the one which could gain most. Gives the lane."""
    mean, bonus, share, d = scores.mean, scores.bonus, scores.proposed, gauge.counts.size
    link, scale, k, short = point.flags[LINK], scale_of(point.flags[LINK], gauge), acting(point, gauge, beliefs), 0
    rough, cross, term, y, unknown = scores.more[0], scores.more[1], scores.more[2], scores.column, gauge.known[UNKNOWN]
    short = int(point.table[0, SHORT])
    first = begin_of(point, short, d)
    rounding = ROUNDING * beliefs.spread[first + cell(d, d)]
    variance = given_last_(first, beliefs.spread, gauge, y)
    widths_(X, at, short, first, scale.prior, gauge, beliefs, y, variance, Widths(rough, share, cross, term))
    first = begin_of(point, k, d)
    variance = given_last_(first, beliefs.spread, gauge, y)
    widths_(X, at, k, first, scale.prior, gauge, beliefs, y, variance, Widths(mean, bonus, cross, term))
    life, top, total, most = life_of(point, k, gauge), -math.inf, 0.0, 0.0
    for a in range(mean.size):
        told = scale.noise / scale.now if link == IDENTITY else slope(link, mean[a])
        bonus[a] = math.sqrt(bonus[a] * scale.noise) * gittins(life * bonus[a] * told)
        cross[a] = 1.0 if share[a] > HIDDEN * unknown * length_at(X, at, a, gauge) + rounding else 0.0
        share[a] = math.sqrt(share[a] * scale.noise)
        if link != IDENTITY:
            bonus[a], share[a] = link_mean(link, mean[a] + bonus[a]), link_mean(link, rough[a] + share[a])
            mean[a], rough[a] = link_mean(link, mean[a]), link_mean(link, rough[a])
            bonus[a], share[a] = bonus[a] - mean[a], share[a] - rough[a]
    best = first_less(mean, bonus, costs)
    for a in range(mean.size):
        term[a] = costs[a] if costs.size > 0 else 0.0
        top = max(top, mean[a] - term[a])
    for a in range(mean.size):
        gap, square = max(top - (max(rough[a], mean[a]) - term[a]), 0.0), share[a] * share[a]
        share[a] = FAR * square / (gap * gap + FAR * square) if cross[a] > 0.0 and a != best and square > 0.0 else 0.0
        total, most = total + share[a], max(most, share[a])
    for a in range(mean.size):
        share[a] = share[a] / total * most if total > 0.0 else 0.0
    return k


@formula
def look_chance(point: Point, known: Vector) -> float:
    """How likely the next decision is a look: a/√t for the t-th reward to come."""
    looks = point.table[0, LOOKS]
    return min(1.0, looks / math.sqrt(known[SEEN] + 1.0)) if known[SEEN] >= FIRST_LOOK else 0.0


@formula
def is_look(key: Ints, chance: float, number: int) -> bool:
    """Whether decision `number` is a look, by a draw of the key's."""
    return bool(chance > 0.0 and uniform(key[KEY_LOW], key[KEY_HIGH], number, DRAWS_LOOKS, 0) < chance)


@formula
def looked_at(key: Ints, number: int, share: Vector) -> int:
    """The arm that a look plays; -1 if it plays what would be played anyway."""
    drawn, below = uniform(key[KEY_LOW], key[KEY_HIGH], number, DRAWS_LOOKS, 1), 0.0
    for a in range(share.size):
        below += share[a]
        if drawn < below:
            return a
    return -1
