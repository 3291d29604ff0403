"""Only arms that can win: exact optimism over a fixed set, with one number per arm carried from round to round.

The number is an upper bound of the arm's width ‖low⁻¹x‖. A round that only fades and adds leaves V' ⪰ γV + (1-γ)λI, so
a width w becomes at most the smaller of w/√γ and γw + (1-γ)‖x‖/√λ. An arm whose x'θ̂ plus a slope times that bound is
below a score that was computed is not the best, nor ties with it, and its quadratic form is left out. Those that remain
are scored as all would be. What rounding may do to either side is bounded by numbers computed in every round, from the
factor itself: docs/lab/lazy.md has the proof, whose letters are used here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.compiling import intrinsic
from driftwise.kernels import formula, piece, routine
from driftwise.kernels.groups import Sums
from driftwise.kernels.index import bonus_of
from driftwise.kernels.lanes import EIGHT, Lanes, eight, load, store_, where_above
from driftwise.kernels.linear import linear_scale
from driftwise.kernels.point import ONLY, Floats, Point
from driftwise.kernels.scratch import Shapes, carved_from, line
from driftwise.kernels.tiles import Tiles, factor_tiles_, tiles_size, weigh

# Rounding of one operation, and what exceeds any sum of underflows.
UNIT, TINY = 2.0**-53, 2.0**-400
# The smallest eigenvalue is computed again after this number of rounds.
OFTEN = 1000
# With larger margins than these every arm is scored.
MOST_KAPPA, MOST_SHARE = 2.0**-10, 2.0**-4


class Lazy(NamedTuple):
    """Scratch after the tiles: upper bounds of widths, cap = ‖x‖/√λ and bounds of scores of all arms, θ̂, a tile of
    selected arms, and their means, squared widths and indices."""

    wide: Floats
    cap: Floats
    bound: Floats
    theta: Floats
    pack: Floats
    mean: Floats
    square: Floats
    picks: Floats


@formula
def lazy_shapes(d: int, n: int) -> Shapes:
    """The shapes of its fields."""
    return (line(n),), (line(n),), (line(n),), (line(d),), (1, line(d), EIGHT), (EIGHT,), (EIGHT,), (EIGHT,)


_own_size, _lazy_from = carved_from(Lazy, lazy_shapes)


@formula
def lazy_size(d: int, n: int) -> int:
    """The size of both."""
    return tiles_size(d, n) + _own_size(d, n)


@piece
def lazy_of(scratch: Floats, d: int, n: int) -> Lazy:
    """Its scratch, which is behind the tiles."""
    return _lazy_from(scratch, tiles_size(d, n), d, n)


class Trust(NamedTuple):
    """What is known of V from round to round: a lower bound of its stored eigenvalues, the possible error of the last
    factor and the last lesson, in norm, and the number of rounds for which that bound has been carried."""

    least: float
    factor: float
    lesson: float
    age: int


class Margin(NamedTuple):
    """The factors of a round: a carried width is multiplied by grow, or by keep with rest times its cap; a computed
    width by lift; the slope of the bounds. `sound`: whether all of this is proven."""

    grow: float
    keep: float
    rest: float
    lift: float
    slope: float
    sound: bool


def _interpreted_below(lanes: Lanes, number: float) -> bool:
    return bool(np.all(lanes < number))


all_below: Any = intrinsic(_interpreted_below, "all_below")
"""Whether all eight lie below a number: none of them is NaN."""


# ------------------------------------------------------------------------------------------ what rounding may do


@piece
def nothing_known() -> Trust:
    """Before the first round, and after a restart: no width is carried, so the last V does not matter."""
    return Trust(math.inf, 0.0, 0.0, 0)


@piece
def begin_lazy_(arms: Floats, ridge: float, lazy: Lazy) -> float:
    """No width is known yet; returns the largest squared norm. The arms that fill the last tile are never selected."""
    d, n, longest = arms.shape[1], arms.shape[2], 0.0
    for a in range(n):
        square = 0.0
        for i in range(d):
            square += arms[0, i, a] * arms[0, i, a]
        longest = max(longest, square)
        lazy.cap[a] = math.sqrt(square / ridge) * (1.0 + (d + 8) * UNIT) + TINY
    for a in range(n, lazy.cap.size):
        lazy.cap[a] = 0.0
    forget_widths_(n, lazy)
    return longest


@piece
def forget_widths_(n: int, lazy: Lazy) -> None:
    """Score every arm in the next round."""
    for a in range(lazy.wide.size):
        lazy.wide[a] = math.inf if a < n else 0.0


@routine
def weigh_pack_(tiles: Tiles, lazy: Lazy) -> None:
    """Mean and squared width of the eight arms of the pack."""
    first = int(ONLY)
    mean, square = weigh(tiles, lazy.pack, first)
    store_(lazy.mean, first, mean)
    store_(lazy.square, first, square)


@piece
def least_of_factor_(total: float, tiles: Tiles, lazy: Lazy) -> float:
    """A lower bound of the eigenvalues of low low', from the inverse, whose columns are those of I as arms; or 0."""
    d, size = tiles.U.shape[0], 0.0
    for start in range(0, d, EIGHT):
        for i in range(d):
            for a in range(EIGHT):
                lazy.pack[0, i, a] = 1.0 if i == start + a else 0.0
        weigh_pack_(tiles, lazy)
        for a in range(min(EIGHT, d - start)):
            size += lazy.square[a]
    if not 2.0 * (d + 2) * UNIT * math.sqrt(total * size) <= 0.125:
        return 0.0
    return 0.75 / size


@piece
def trust_of(
    gamma: float, ridge: float, raised: float, longest: float, before: Trust, sums: Sums, lane: int, tiles: Tiles,
    lazy: Lazy,
) -> tuple[Trust, float]:
    """What is known of V now, and an upper bound of the trace of its factor."""
    d, trace = tiles.U.shape[0], 0.0
    for i in range(d):
        trace += abs(sums.G[lane, i, i])
    total = (trace + d * ridge + raised) * (1.0 + 4.0 * (d + 4) * UNIT)
    factor = 4.0 * (d + 2) * UNIT * total + raised
    kept = gamma * before.least + (1.0 - gamma) * ridge
    least, age = kept - before.lesson, before.age + 1
    if age >= OFTEN or not least > max(0.5 * kept, 0.25 * ridge / d):
        age = 0
        least = least_of_factor_(total, tiles, lazy) - factor
    return Trust(least * (1.0 - 8.0 * UNIT), factor, 8.0 * UNIT * (total + longest), age), total


@piece
def margin_of(gamma: float, radius: float, before: Trust, now: Trust, total: float, size: float, d: int) -> Margin:
    """The margins of a round, from what is known of the last V and of this one; size is ‖z‖²."""
    held, least = max(before.least - before.factor, TINY), max(now.least - now.factor, TINY)
    share = (before.factor + before.lesson + now.factor) / (gamma * held)
    kappa = 2.0 * (d + 2) * UNIT * math.sqrt(total / least)
    sound = share <= MOST_SHARE and kappa <= MOST_KAPPA and size < 1e300
    worse = 1.0 + share + 16.0 * UNIT
    slope = (radius * (1.0 + 4.0 * kappa) + 8.0 * kappa * math.sqrt(size)) * (1.0 + 8.0 * UNIT) + TINY
    lift = 1.0 + 2.0 * kappa + 2.0 * (d + 4) * UNIT
    return Margin(worse / math.sqrt(gamma), gamma * worse, (1.0 - gamma) * worse, lift, slope, sound)


# ------------------------------------------------------------------------------------------ a round


@piece
def backward_tiles_(tiles: Tiles, lazy: Lazy) -> float:
    """theta = low⁻ᵀ z, in any order; returns ‖z‖²."""
    U, pivot, z, theta = tiles.U, tiles.pivot, tiles.z, lazy.theta
    d, size = U.shape[0], 0.0
    for i in range(d, theta.size):
        theta[i] = 0.0
    for i in range(d - 1, -1, -1):
        size += z[i] * z[i]
        edge = i - i % EIGHT + EIGHT
        rest = eight(0.0)
        for k in range(edge, d, EIGHT):
            rest = rest + load(U, (i, k)) * load(theta, k)
        store_(lazy.mean, int(ONLY), rest)
        v = z[i]
        for k in range(i + 1, min(d, edge)):
            v -= U[i, k] * theta[k]
        s = lazy.mean
        theta[i] = (v - ((s[0] + s[1]) + (s[2] + s[3])) - ((s[4] + s[5]) + (s[6] + s[7]))) * pivot[i]
    return size


@piece
def bounds_(margin: Margin, tiles: Tiles, lazy: Lazy) -> None:
    """Carry every width into this round and bound every score; select the most promising arm of every lane."""
    arms, theta, first = tiles.arms, lazy.theta, int(ONLY)
    top, who = eight(-math.inf), eight(0.0)
    for t in range(arms.shape[0]):
        mean = eight(0.0)
        for i in range(arms.shape[1]):
            mean = mean + load(arms, (t, i)) * theta[i]
        wide, cap = load(lazy.wide, t * EIGHT), load(lazy.cap, t * EIGHT)
        grown, faded = wide * margin.grow, wide * margin.keep + cap * margin.rest
        wide = where_above(grown, faded, faded, grown)
        store_(lazy.wide, t * EIGHT, wide)
        bound = mean + wide * margin.slope
        store_(lazy.bound, t * EIGHT, bound)
        who = where_above(bound, top, float(t), who)
        top = where_above(bound, top, bound, top)
    store_(lazy.picks, first, who)


@piece
def score_picks_(
    count: int, radius: float, lift: float, best: float, arm: int, tiles: Tiles, lazy: Lazy
) -> tuple[float, int]:
    """Score the selected arms, the first again if there are fewer than eight; returns the best score and arm with
    them."""
    first = int(ONLY)
    for a in range(EIGHT):
        place = int(lazy.picks[a if a < count else first])
        t, lane = place // EIGHT, place % EIGHT
        for i in range(tiles.U.shape[0]):
            lazy.pack[first, i, a] = tiles.arms[t, i, lane]
    weigh_pack_(tiles, lazy)
    for a in range(count):
        place = int(lazy.picks[a])
        lazy.wide[place] = bonus_of(lift, lazy.square[a]) + TINY
        score = lazy.mean[a] + bonus_of(radius, lazy.square[a])
        if score > best or (score == best and place < arm):
            best, arm = score, place
    return best, arm


@piece
def best_that_can_(radius: float, lift: float, n: int, tiles: Tiles, lazy: Lazy) -> int:
    """Score the selected arms, then all whose bound reaches the best score; returns the best, the first one of a
    tie."""
    for a in range(EIGHT):
        place = min(int(lazy.picks[a]) * EIGHT + a, n - 1)
        lazy.picks[a] = place
        lazy.bound[place] = -math.inf
    best, arm, count, start, end = -math.inf, 0, EIGHT, 0, lazy.bound.size
    while count > 0:
        best, arm = score_picks_(count, radius, lift, best, arm, tiles, lazy)
        count = 0
        while start < end and count < EIGHT:
            tile = start - start % EIGHT
            if start == tile and all_below(load(lazy.bound, start), best):
                start += EIGHT
            else:
                if start < n and not lazy.bound[start] < best:
                    lazy.picks[count] = start
                    count += 1
                start += 1
    return arm


@piece
def choose_lazily_(
    point: Point, gamma: float, ridge: float, longest: float, lane: int, n: int, before: Trust, sums: Sums,
    tiles: Tiles, lazy: Lazy,
) -> tuple[int, Trust]:
    """The arm that a round of tiles would choose, and what is known of V."""
    raised = factor_tiles_(sums.G, sums.b, lane, ridge, tiles.U, tiles.pivot, tiles.z, tiles.column)
    radius = linear_scale(point, lane, lane, sums, tiles.pivot)
    now, total = trust_of(gamma, ridge, raised, longest, before, sums, lane, tiles, lazy)
    size = backward_tiles_(tiles, lazy)
    margin = margin_of(gamma, radius, before, now, total, size, tiles.U.shape[0])
    if not margin.sound:
        forget_widths_(n, lazy)
    bounds_(margin, tiles, lazy)
    return best_that_can_(radius, margin.lift if margin.sound else math.inf, n, tiles, lazy), now
