"""The entries of the linear family that score arms by tiles: the arms, means and bonuses of kernels/linear.py, sooner.

They are entries of their own because who plays few arms should not wait for them to be compiled. One covariance only.
"""

from __future__ import annotations

from driftwise.kernels import entry, piece
from driftwise.kernels.chance import Record, Rounds, reward_, set_of
from driftwise.kernels.lazy import begin_lazy_, choose_lazily_, forget_widths_, lazy_of, nothing_known
from driftwise.kernels.linear import linear_radius
from driftwise.kernels.memory import learn_
from driftwise.kernels.point import (
    CLOCK,
    DAMAGED,
    FADE,
    FINE,
    GAMMA,
    LAM,
    MEMORY,
    SINCE,
    SQUARES,
    Floats,
    Ints,
    Lesson,
    Point,
    Sums,
    history_of,
    sound_cursor,
    sums_of,
)
from driftwise.kernels.tiles import believe_tiles_, best_tiled_, pack_, tiles_of


@piece
def radius_now(point: Point, sums: Sums, lane: int) -> float:
    """The multiplier of the bonus, of a lane that is its own row."""
    count = sums.counters
    return linear_radius(point, lane, count[lane, SQUARES], count[lane, CLOCK], sums.b.shape[1])


@entry
def score_tiled_(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats) -> int:
    """`score_linear_`: mean and bonus of every arm, and the best arm."""
    first, sums = X.size - X.size, sums_of(flags, floats)
    tiles = tiles_of(scratch, X.shape[1], X.shape[2])
    believe_tiles_(sums.G, sums.b, first, table[first, LAM], tiles)
    return best_tiled_(tiles, X, first, False, radius_now(Point(flags, table), sums, first), True)


@entry
def play_tiled_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints,
) -> int:
    """`play_linear_`; arms that stay are packed once."""
    rounds, record = Rounds(arms, path, draws, best, link, kind, noise), Record(chosen, regret, used)
    point, sums, history = Point(flags, table), sums_of(flags, floats), history_of(flags, floats, ints)
    if not sound_cursor(history):
        return DAMAGED
    tiles, packed = tiles_of(scratch, arms.shape[1], arms.shape[2]), arms.shape[0] == 1
    lane = chosen.size - chosen.size
    if packed:
        pack_(arms, lane, lane, tiles.arms.shape[0], tiles.arms)
    for t in range(path.shape[0]):
        at = set_of(rounds, t)
        believe_tiles_(sums.G, sums.b, lane, table[lane, LAM], tiles)
        arm = best_tiled_(tiles, arms, at, packed, radius_now(point, sums, lane), False)
        reward = reward_(rounds, t, arm, total, record)
        total = regret[t]
        used[t] = lane
        learn_(point, lane, lane, Lesson(arms, at, arm, reward, 1.0, 0.0), sums, history)
    return FINE


@entry
def play_lazily_(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints,
) -> int:
    """`play_linear_` for arms that stay and memories that take nothing back but by a restart: Keep, Fade, Restart."""
    rounds, record = Rounds(arms, path, draws, best, link, kind, noise), Record(chosen, regret, used)
    point, sums, history = Point(flags, table), sums_of(flags, floats), history_of(flags, floats, ints)
    d, n, lane = arms.shape[1], arms.shape[2], chosen.size - chosen.size
    tiles, lazy, trust = tiles_of(scratch, d, n), lazy_of(scratch, d, n), nothing_known()
    gamma = table[lane, GAMMA] if flags[MEMORY] == FADE else 1.0
    ridge, since = table[lane, LAM], sums.counters[lane, SINCE]
    pack_(arms, lane, lane, tiles.arms.shape[0], tiles.arms)
    longest = begin_lazy_(arms, ridge, lazy)
    for t in range(path.shape[0]):
        radius = radius_now(point, sums, lane)
        arm, trust = choose_lazily_(gamma, ridge, radius, longest, lane, n, trust, sums, tiles, lazy)
        reward = reward_(rounds, t, arm, total, record)
        total = regret[t]
        used[t] = lane
        learn_(point, lane, lane, Lesson(arms, lane, arm, reward, 1.0, 0.0), sums, history)
        if sums.counters[lane, SINCE] != since:
            since, trust = sums.counters[lane, SINCE], nothing_known()
            forget_widths_(n, lazy)
    return FINE
