"""Weighted sums under the four memories, in the three phases of learning: run, absorb, turn.

An observation born at time s counts at time t with weight 1 (Keep), γ^(t-s) (Fade), 1 while t-s < length
(Window), 1 if s lies after the last multiple of the period up to t (Restart). G = Σ w x x' (lower triangle),
twin = Σ w² x x' where a rule asks for it, b = Σ w r x; the ridge is never inside. An observation is handed
on as column `arm` of X[at], so that nothing is copied.
"""

from __future__ import annotations

import math

from driftwise.kernels import kernel, piece
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    DROPPED,
    FADE,
    GAMMA,
    HEAD,
    LENGTH,
    LOG_GAMMA,
    MEMORY,
    REMOVED,
    RESTART,
    RULE,
    SINCE,
    SIZE,
    SQUARES,
    TWO_AS_PUBLISHED,
    WINDOW,
    Floats,
    Ints,
)


@piece
def decay(table: Floats, row: int, ticks: float) -> float:
    """γ^ticks, and γ itself at one tick."""
    if ticks == 1.0:
        return float(table[row, GAMMA])
    return math.exp(ticks * table[row, LOG_GAMMA])


@piece
def scale_(lane: int, factor: float, G: Floats, twin: Floats, b: Floats) -> None:
    """All weights times factor; the twin, a sum of squares, times its square."""
    square = factor * factor
    for i in range(b.shape[1]):
        b[lane, i] *= factor
        for j in range(i + 1):
            G[lane, i, j] *= factor
    if twin.shape[0] > 0:
        for i in range(b.shape[1]):
            for j in range(i + 1):
                twin[lane, i, j] *= square


@piece
def blend_(
    lane: int, factor: float, weight: float, X: Floats, at: int, arm: int, reward: float, G: Floats, twin: Floats,
    b: Floats,
) -> None:
    """All weights times factor, then one more observation: the two steps of a round in one pass over the sums."""
    for i in range(b.shape[1]):
        xi = weight * X[at, i, arm]
        b[lane, i] = factor * b[lane, i] + reward * xi
        for j in range(i + 1):
            G[lane, i, j] = factor * G[lane, i, j] + xi * X[at, j, arm]
    if twin.shape[0] > 0:
        square = factor * factor
        for i in range(b.shape[1]):
            xi = weight * weight * X[at, i, arm]
            for j in range(i + 1):
                twin[lane, i, j] = square * twin[lane, i, j] + xi * X[at, j, arm]


@piece
def clear_(lane: int, G: Floats, twin: Floats, b: Floats, count: Floats) -> None:
    """Forget every observation of a lane; the clock goes on."""
    scale_(lane, 0.0, G, twin, b)
    count[lane, COUNT] = 0.0
    count[lane, SQUARES] = 0.0


@piece
def fresh_lane_(
    lane: int, G: Floats, twin: Floats, b: Floats, count: Floats, cursor: Ints
) -> None:
    """A lane begins anew, its clock included."""
    clear_(lane, G, twin, b, count)
    count[lane, CLOCK] = 0.0
    count[lane, SINCE] = -math.inf
    cursor[HEAD] = 0
    cursor[SIZE] = 0
    cursor[REMOVED] = 0


@kernel
def move_(lane: int, sign: float, ring: Floats, place: int, G: Floats, twin: Floats, b: Floats) -> None:
    """Add (+1) or take away (-1) the observation at a place of the ring."""
    d = b.shape[1]
    for i in range(d):
        xi = sign * ring[place, i]
        b[lane, i] += xi * ring[place, d]
        for j in range(i + 1):
            G[lane, i, j] += xi * ring[place, j]
    if twin.shape[0] > 0:
        for i in range(d):
            for j in range(i + 1):
                twin[lane, i, j] = G[lane, i, j]


@kernel
def rebuild_(lane: int, G: Floats, twin: Floats, b: Floats, ring: Floats, cursor: Ints) -> None:
    """The sums anew from the ring: what rounding left behind after many removals goes."""
    scale_(lane, 0.0, G, twin, b)
    for p in range(cursor[SIZE]):
        move_(lane, 1.0, ring, (cursor[HEAD] + p) % ring.shape[0], G, twin, b)
    cursor[REMOVED] = 0


@kernel
def forget_oldest_(
    lane: int, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints
) -> None:
    """Take the oldest observation out of the window; rebuild once per window's worth of removals."""
    move_(lane, -1.0, ring, cursor[HEAD], G, twin, b)
    cursor[HEAD] = (cursor[HEAD] + 1) % ring.shape[0]
    cursor[SIZE] -= 1
    cursor[REMOVED] += 1
    count[lane, COUNT] -= 1.0
    count[lane, SQUARES] -= 1.0
    if cursor[REMOVED] >= cursor[SIZE]:
        rebuild_(lane, G, twin, b, ring, cursor)


@kernel
def age_out_(
    table: Floats, row: int, lane: int, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints
) -> None:
    """Take every observation that has reached the window's length out of it."""
    oldest = count[lane, CLOCK] - table[row, LENGTH]
    while cursor[SIZE] > 0 and ring[cursor[HEAD], b.shape[1] + 1] <= oldest:
        forget_oldest_(lane, G, twin, b, count, ring, cursor)


@kernel
def remember_(
    lane: int, X: Floats, at: int, arm: int, reward: float, born: float, G: Floats, twin: Floats, b: Floats,
    ring: Floats, cursor: Ints,
) -> None:
    """Put an observation into a ring with room, which is sorted by birth: late ones move up from the young end."""
    d = b.shape[1]
    capacity = ring.shape[0]
    p = cursor[SIZE]
    place = (cursor[HEAD] + p) % capacity
    while p > 0:
        before = (cursor[HEAD] + p - 1) % capacity
        if ring[before, d + 1] <= born:
            break
        for i in range(d + 2):
            ring[place, i] = ring[before, i]
        place = before
        p -= 1
    for i in range(d):
        ring[place, i] = X[at, i, arm]
    ring[place, d] = reward
    ring[place, d + 1] = born
    cursor[SIZE] += 1
    move_(lane, 1.0, ring, place, G, twin, b)


@piece
def restart_(lane: int, boundary: float, G: Floats, twin: Floats, b: Floats, count: Floats) -> None:
    """Clear if a multiple of the period lies between the last restart and this boundary."""
    if boundary > 0.0 and boundary > count[lane, SINCE]:
        clear_(lane, G, twin, b, count)
        count[lane, SINCE] = boundary


@piece
def run_(
    flags: Ints, table: Floats, row: int, lane: int, ticks: float, G: Floats, twin: Floats, b: Floats, count: Floats,
    ring: Floats, cursor: Ints,
) -> float:
    """Phase one: time passes; old observations age out or fall behind a restart. Returns by what the rest fades."""
    memory = flags[MEMORY]
    count[lane, CLOCK] += ticks
    if memory == FADE:
        factor = decay(table, row, ticks)
        count[lane, SQUARES] *= factor * factor
        return factor
    if memory == WINDOW:
        age_out_(table, row, lane, G, twin, b, count, ring, cursor)
    elif memory == RESTART:
        period = table[row, LENGTH]
        restart_(lane, period * (math.ceil(count[lane, CLOCK] / period) - 1.0), G, twin, b, count)
    return 1.0


@piece
def accepts(
    flags: Ints, table: Floats, row: int, lane: int, age: float, count: Floats, ring: Floats, cursor: Ints
) -> bool:
    """Whether an observation of this age still counts: in the window and with a place there, or after the restart."""
    memory = flags[MEMORY]
    born = count[lane, CLOCK] - age
    if memory == WINDOW:
        full = cursor[SIZE] == ring.shape[0]
        return age < table[row, LENGTH] and not (full and born <= ring[cursor[HEAD], ring.shape[1] - 1])
    return not (memory == RESTART and born <= count[lane, SINCE])


@piece
def evicts(flags: Ints, ring: Floats, cursor: Ints) -> bool:
    """Whether the next observation accepted pushes the oldest out of a full window."""
    return bool(flags[MEMORY] == WINDOW and cursor[SIZE] == ring.shape[0])


@piece
def weight_of(flags: Ints, table: Floats, row: int, age: float) -> float:
    """The weight an observation accepted at this age enters with."""
    return decay(table, row, age) if flags[MEMORY] == FADE and age > 0.0 else 1.0


@piece
def absorb_(
    flags: Ints, table: Floats, row: int, lane: int, factor: float, X: Floats, at: int, arm: int, reward: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints,
) -> None:
    """Phase two: fade by factor, and one observation, born `age` ago, with the weight its age leaves it."""
    if not accepts(flags, table, row, lane, age, count, ring, cursor):
        count[lane, DROPPED] += 1.0
        return
    if evicts(flags, ring, cursor):
        count[lane, DROPPED] += 1.0
        forget_oldest_(lane, G, twin, b, count, ring, cursor)
    count[lane, COUNT] += 1.0
    if flags[MEMORY] == WINDOW:
        count[lane, SQUARES] += 1.0
        remember_(lane, X, at, arm, reward, count[lane, CLOCK] - age, G, twin, b, ring, cursor)
        return
    weight = weight_of(flags, table, row, age)
    blend_(lane, factor, weight, X, at, arm, reward, G, twin, b)
    count[lane, SQUARES] += weight * weight


@piece
def turn_(
    flags: Ints, table: Floats, row: int, lane: int, G: Floats, twin: Floats, b: Floats, count: Floats
) -> None:
    """Phase three: a restart due exactly now, so that the next choice starts afresh."""
    if flags[MEMORY] == RESTART:
        period = table[row, LENGTH]
        restart_(lane, period * math.floor(count[lane, CLOCK] / period), G, twin, b, count)


@piece
def twin_as_published_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, arm: int, ticks: float, age: float,
    G: Floats, twin: Floats,
) -> None:
    """The published code's slip: the twin starts from the *new* G, not from the old twin (MATH.md 1)."""
    fade = decay(table, row, ticks)
    weight = weight_of(flags, table, row, age) if arm >= 0 else 0.0
    for i in range(G.shape[1]):
        for j in range(i + 1):
            twin[lane, i, j] = fade * fade * G[lane, i, j]
            if arm >= 0:
                twin[lane, i, j] += weight * weight * X[at, i, arm] * X[at, j, arm]


@piece
def learn_(
    flags: Ints, table: Floats, row: int, lane: int, X: Floats, at: int, arm: int, reward: float, ticks: float,
    age: float, G: Floats, twin: Floats, b: Floats, count: Floats, ring: Floats, cursor: Ints,
) -> None:
    """Run, absorb, turn; arm < 0 lets time pass without an observation."""
    factor = run_(flags, table, row, lane, ticks, G, twin, b, count, ring, cursor)
    if arm >= 0:
        absorb_(flags, table, row, lane, factor, X, at, arm, reward, age, G, twin, b, count, ring, cursor)
    elif factor != 1.0:
        scale_(lane, factor, G, twin, b)
    if flags[RULE] == TWO_AS_PUBLISHED:
        twin_as_published_(flags, table, row, lane, X, at, arm, ticks, age, G, twin)
    turn_(flags, table, row, lane, G, twin, b, count)
