"""Weighted sums and weighted atoms under the memories, in the three phases of learning: run, absorb, turn.

An observation born at time s counts at time t with weight 1 (Keep), γ^(t-s) (Fade, Trend), 1 while t-s < length
(Window), 1 if s lies after the last multiple of the period up to t (Restart). G = Σ w x x' (lower triangle),
twin = Σ w² x x' where a rule asks for it, b = Σ w r x; the ridge is never inside. A lane of Trend whose stiffness is
above 0 also has the sums with w·lag and w·lag², lag = t-s. An observation is handed on as column `arm` of X[at], so
that nothing is copied.

Atoms are the distinct vectors played: columns 0..cursor[USED]-1 are in use. A vector is known by its value (-0 is 0),
so fixed, duplicate, vanishing and fresh arms are one structure. Looking one up is a walk over the first coordinates,
which is little beside the estimate, whose cost is a walk over everything.
"""

from __future__ import annotations

import math

from driftwise.kernels import entry, piece, routine
from driftwise.kernels.groups import AT_BEHIND_ROOMS, AT_ROOMS
from driftwise.kernels.point import (
    CLOCK,
    COUNT,
    DAMAGED,
    DROPPED,
    FADE,
    FINE,
    GAMMA,
    HEAD,
    LENGTH,
    LOG_GAMMA,
    LOST,
    MEMORY,
    REMOVED,
    RESTART,
    RULE,
    SINCE,
    SIZE,
    SQUARES,
    STIFFNESS,
    TREND,
    TWO_AS_PUBLISHED,
    USED,
    WEIGHT,
    WINDOW,
    Floats,
    History,
    Ints,
    Lesson,
    Point,
    Sums,
    history_of,
    sound_cursor,
)

# ------------------------------------------------------------------------------------------ sums


@piece
def decay(table: Floats, row: int, ticks: float) -> float:
    """γ^ticks, and γ itself at one tick."""
    if ticks == 1.0:
        return float(table[row, GAMMA])
    return math.exp(ticks * table[row, LOG_GAMMA])


@piece
def scale_(lane: int, factor: float, sums: Sums) -> None:
    """All weights times factor; the twin, a sum of squares, times its square."""
    square = factor * factor
    for i in range(sums.b.shape[1]):
        sums.b[lane, i] *= factor
        for j in range(i + 1):
            sums.G[lane, i, j] *= factor
    if sums.twin.shape[0] > 0:
        for i in range(sums.b.shape[1]):
            for j in range(i + 1):
                sums.twin[lane, i, j] *= square


@piece
def blend_(lane: int, factor: float, weight: float, lesson: Lesson, sums: Sums) -> None:
    """All weights times factor, then one more observation: the two steps of a round in one pass over the sums."""
    X, at, arm = lesson.X, lesson.at, lesson.arm
    for i in range(sums.b.shape[1]):
        xi = weight * X[at, i, arm]
        sums.b[lane, i] = factor * sums.b[lane, i] + lesson.reward * xi
        for j in range(i + 1):
            sums.G[lane, i, j] = factor * sums.G[lane, i, j] + xi * X[at, j, arm]
    if sums.twin.shape[0] > 0:
        square = factor * factor
        for i in range(sums.b.shape[1]):
            xi = weight * weight * X[at, i, arm]
            for j in range(i + 1):
                sums.twin[lane, i, j] = square * sums.twin[lane, i, j] + xi * X[at, j, arm]


@piece
def blend_offset_(
    lane: int, factor: float, weight: float, lesson: Lesson, center: Floats, row: int, level: float, sums: Sums
) -> None:
    """The same for what the observation is besides center[row] and a level."""
    X, at, arm, reward = lesson.X, lesson.at, lesson.arm, lesson.reward - level
    for i in range(sums.b.shape[1]):
        xi = weight * (X[at, i, arm] - center[row, i])
        sums.b[lane, i] = factor * sums.b[lane, i] + reward * xi
        for j in range(i + 1):
            sums.G[lane, i, j] = factor * sums.G[lane, i, j] + xi * (X[at, j, arm] - center[row, j])


@piece
def shift_lags_(lane: int, factor: float, ticks: float, sums: Sums) -> None:
    """Every lag grows by `ticks` while weights fade by factor; G and b stand where they stood, and fade after this."""
    square = ticks * ticks
    for i in range(sums.b.shape[1]):
        sums.lag_reward[lane, i] = factor * (sums.lag_reward[lane, i] + ticks * sums.b[lane, i])
        for j in range(i + 1):
            g, l1 = sums.G[lane, i, j], sums.lag[lane, i, j]
            sums.lag_square[lane, i, j] = factor * (sums.lag_square[lane, i, j] + 2.0 * ticks * l1 + square * g)
            sums.lag[lane, i, j] = factor * (l1 + ticks * g)


@piece
def blend_lags_(lane: int, weight: float, lesson: Lesson, sums: Sums) -> None:
    """One more observation in the lagged sums; one of age 0 has no lag and would change nothing."""
    X, at, arm, age = lesson.X, lesson.at, lesson.arm, lesson.age
    for i in range(sums.b.shape[1]):
        xi = age * weight * X[at, i, arm]
        sums.lag_reward[lane, i] += lesson.reward * xi
        for j in range(i + 1):
            sums.lag[lane, i, j] += xi * X[at, j, arm]
            sums.lag_square[lane, i, j] += age * xi * X[at, j, arm]


@piece
def sloped(point: Point, row: int) -> bool:
    """Whether a lane follows a trend."""
    return bool(point.flags[MEMORY] == TREND and point.table[row, STIFFNESS] > 0.0)


@piece
def clear_(lane: int, sums: Sums) -> None:
    """Forget every observation of a lane; the clock goes on."""
    scale_(lane, 0.0, sums)
    sums.counters[lane, COUNT] = 0.0
    sums.counters[lane, WEIGHT] = 0.0
    sums.counters[lane, SQUARES] = 0.0


@piece
def fresh_lane_(lane: int, sums: Sums, history: History) -> None:
    """A lane begins anew, its clock included."""
    clear_(lane, sums)
    sums.counters[lane, CLOCK] = 0.0
    sums.counters[lane, SINCE] = -math.inf
    if history.ring.shape[0] > 0:
        history.cursor[HEAD] = 0
        history.cursor[SIZE] = 0
        history.cursor[REMOVED] = 0


@piece
def follow_(lane: int, other: int, sums: Sums) -> None:
    """A lane drops its observations for those of another."""
    for i in range(sums.b.shape[1]):
        sums.b[lane, i] = sums.b[other, i]
        for j in range(i + 1):
            sums.G[lane, i, j] = sums.G[other, i, j]
            if sums.twin.shape[0] > 0:
                sums.twin[lane, i, j] = sums.twin[other, i, j]
    if sums.lag.shape[0] > 0:  # those of a lane without a slope are 0, and so a trend that follows it begins flat
        for i in range(sums.b.shape[1]):
            sums.lag_reward[lane, i] = sums.lag_reward[other, i]
            for j in range(i + 1):
                sums.lag[lane, i, j] = sums.lag[other, i, j]
                sums.lag_square[lane, i, j] = sums.lag_square[other, i, j]
    sums.counters[lane, COUNT] = sums.counters[other, COUNT]
    sums.counters[lane, WEIGHT] = sums.counters[other, WEIGHT]
    sums.counters[lane, SQUARES] = sums.counters[other, SQUARES]


# ------------------------------------------------------------------------------------------ a window's ring


@routine
def move_(lane: int, sign: float, place: int, sums: Sums, ring: Floats) -> None:
    """Add (+1) or take away (-1) the observation at a place of the ring."""
    d = sums.b.shape[1]
    for i in range(d):
        xi = sign * ring[place, i]
        sums.b[lane, i] += xi * ring[place, d]
        for j in range(i + 1):
            sums.G[lane, i, j] += xi * ring[place, j]
    if sums.twin.shape[0] > 0:
        for i in range(d):
            for j in range(i + 1):
                sums.twin[lane, i, j] = sums.G[lane, i, j]


@routine
def rebuild_(lane: int, sums: Sums, history: History) -> None:
    """The sums anew from the ring: what rounding left behind after many removals goes."""
    scale_(lane, 0.0, sums)
    for p in range(history.cursor[SIZE]):
        move_(lane, 1.0, (history.cursor[HEAD] + p) % history.ring.shape[0], sums, history.ring)
    history.cursor[REMOVED] = 0


@routine
def forget_oldest_(lane: int, sums: Sums, history: History) -> None:
    """Take the oldest observation out of the window; rebuild once per window's worth of removals."""
    cursor = history.cursor
    move_(lane, -1.0, cursor[HEAD], sums, history.ring)
    cursor[HEAD] = (cursor[HEAD] + 1) % history.ring.shape[0]
    cursor[SIZE] -= 1
    cursor[REMOVED] += 1
    sums.counters[lane, COUNT] -= 1.0
    sums.counters[lane, WEIGHT] -= 1.0
    sums.counters[lane, SQUARES] -= 1.0
    if cursor[REMOVED] >= cursor[SIZE]:
        rebuild_(lane, sums, history)


@routine
def age_out_(point: Point, row: int, lane: int, sums: Sums, history: History) -> None:
    """Take every observation that has reached the window's length out of it."""
    oldest = sums.counters[lane, CLOCK] - point.table[row, LENGTH]
    while history.cursor[SIZE] > 0 and history.ring[history.cursor[HEAD], sums.b.shape[1] + 1] <= oldest:
        forget_oldest_(lane, sums, history)


@routine
def remember_(lane: int, lesson: Lesson, born: float, sums: Sums, history: History) -> None:
    """Put an observation into a ring with room, which is sorted by birth: late ones move up from the young end."""
    d = sums.b.shape[1]
    ring, cursor = history.ring, history.cursor
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
        ring[place, i] = lesson.X[lesson.at, i, lesson.arm]
    ring[place, d] = lesson.reward
    ring[place, d + 1] = born
    cursor[SIZE] += 1
    move_(lane, 1.0, place, sums, ring)


# ------------------------------------------------------------------------------------------ the phases


@piece
def restart_(lane: int, boundary: float, sums: Sums) -> None:
    """Clear if a multiple of the period lies between the last restart and this boundary."""
    if boundary > 0.0 and boundary > sums.counters[lane, SINCE]:
        clear_(lane, sums)
        sums.counters[lane, SINCE] = boundary


@piece
def run_(point: Point, row: int, lane: int, ticks: float, sums: Sums, history: History) -> float:
    """Phase one: time passes; old observations age out or fall behind a restart. Returns by what the rest fades."""
    memory = point.flags[MEMORY]
    sums.counters[lane, CLOCK] += ticks
    if memory == FADE or memory == TREND:
        factor = decay(point.table, row, ticks)
        sums.counters[lane, WEIGHT] *= factor
        sums.counters[lane, SQUARES] *= factor * factor
        if sloped(point, row):
            shift_lags_(lane, factor, ticks, sums)
        return factor
    if memory == WINDOW:
        age_out_(point, row, lane, sums, history)
    elif memory == RESTART:
        period = point.table[row, LENGTH]
        restart_(lane, period * (math.ceil(sums.counters[lane, CLOCK] / period) - 1.0), sums)
    return 1.0


@piece
def accepts(point: Point, row: int, lane: int, age: float, sums: Sums, history: History) -> bool:
    """Whether an observation of this age still counts: in the window and with a place there, or after the restart."""
    memory = point.flags[MEMORY]
    born = sums.counters[lane, CLOCK] - age
    if memory == WINDOW:
        ring, cursor = history.ring, history.cursor
        full = cursor[SIZE] == ring.shape[0]
        return age < point.table[row, LENGTH] and not (full and born <= ring[cursor[HEAD], ring.shape[1] - 1])
    return not (memory == RESTART and born <= sums.counters[lane, SINCE])


@piece
def evicts(point: Point, history: History) -> bool:
    """Whether the next observation accepted pushes the oldest out of a full window."""
    return bool(point.flags[MEMORY] == WINDOW and history.cursor[SIZE] == history.ring.shape[0])


@piece
def weight_of(point: Point, row: int, age: float) -> float:
    """The weight an observation accepted at this age enters with."""
    fades = point.flags[MEMORY] == FADE or point.flags[MEMORY] == TREND
    return decay(point.table, row, age) if fades and age > 0.0 else 1.0


@piece
def absorb_(
    point: Point, row: int, lane: int, factor: float, lesson: Lesson, sums: Sums, history: History
) -> bool:
    """Phase two: fade by factor, and one observation, born `age` ago, with the weight its age leaves it; or neither.

    Whether it was taken; if not, the caller fades.
    """
    count, age = sums.counters, lesson.age
    if not accepts(point, row, lane, age, sums, history):
        count[lane, DROPPED] += 1.0
        return False
    if evicts(point, history):
        count[lane, DROPPED] += 1.0
        forget_oldest_(lane, sums, history)
    count[lane, COUNT] += 1.0
    if point.flags[MEMORY] == WINDOW:
        count[lane, WEIGHT] += 1.0
        count[lane, SQUARES] += 1.0
        remember_(lane, lesson, count[lane, CLOCK] - age, sums, history)
        return True
    weight = weight_of(point, row, age)
    blend_(lane, factor, weight, lesson, sums)
    if age > 0.0 and sloped(point, row):
        blend_lags_(lane, weight, lesson, sums)
    count[lane, WEIGHT] += weight
    count[lane, SQUARES] += weight * weight
    return True


@piece
def turn_(point: Point, row: int, lane: int, sums: Sums) -> None:
    """Phase three: a restart due exactly now, so that the next choice starts afresh."""
    if point.flags[MEMORY] == RESTART:
        period = point.table[row, LENGTH]
        restart_(lane, period * math.floor(sums.counters[lane, CLOCK] / period), sums)


@piece
def twin_as_published_(point: Point, row: int, lane: int, lesson: Lesson, sums: Sums) -> None:
    """The published code's slip: the twin starts from the *new* G, not from the old twin (MATH.md 1)."""
    X, at, arm = lesson.X, lesson.at, lesson.arm
    fade = decay(point.table, row, lesson.ticks)
    weight = weight_of(point, row, lesson.age) if arm >= 0 else 0.0
    for i in range(sums.G.shape[1]):
        for j in range(i + 1):
            sums.twin[lane, i, j] = fade * fade * sums.G[lane, i, j]
            if arm >= 0:
                sums.twin[lane, i, j] += weight * weight * X[at, i, arm] * X[at, j, arm]


@piece
def learn_(point: Point, row: int, lane: int, lesson: Lesson, sums: Sums, history: History) -> None:
    """Run, absorb, turn."""
    factor = run_(point, row, lane, lesson.ticks, sums, history)
    taken = False
    if lesson.arm >= 0:
        taken = absorb_(point, row, lane, factor, lesson, sums, history)
    if not taken and factor != 1.0:
        scale_(lane, factor, sums)
    if point.flags[RULE] == TWO_AS_PUBLISHED:
        twin_as_published_(point, row, lane, lesson, sums)
    turn_(point, row, lane, sums)


# ------------------------------------------------------------------------------------------ atoms


@piece
def find_atom(lesson: Lesson, history: History) -> int:
    """The column of a lesson's vector, or -1."""
    X, at, arm, atoms = lesson.X, lesson.at, lesson.arm, history.atoms
    first = X[at, 0, arm]
    for a in range(history.cursor[USED]):
        if atoms[0, a] == first:
            same = True
            for i in range(1, atoms.shape[0]):
                if atoms[i, a] != X[at, i, arm]:
                    same = False
                    break
            if same:
                return a
    return -1


@piece
def find_in_ring(place: int, history: History) -> int:
    """The column of the vector at a place of the ring, or -1."""
    ring, atoms = history.ring, history.atoms
    for a in range(history.cursor[USED]):
        same = True
        for i in range(atoms.shape[0]):
            if atoms[i, a] != ring[place, i]:
                same = False
                break
        if same:
            return a
    return -1


@piece
def drop_atom_(a: int, history: History) -> None:
    """Free a column; the last one in use moves there."""
    atoms, weights, targets = history.atoms, history.weights, history.targets
    last = history.cursor[USED] - 1
    for i in range(atoms.shape[0]):
        atoms[i, a] = atoms[i, last]
    for k in range(weights.shape[0]):
        weights[k, a] = weights[k, last]
        targets[k, a] = targets[k, last]
        weights[k, last] = 0.0
        targets[k, last] = 0.0
    history.cursor[USED] = last


@piece
def lightest_atom(weights: Floats, used: int) -> int:
    """The column with the least weight over all lanes."""
    least, place = math.inf, 0
    for a in range(used):
        total = 0.0
        for k in range(weights.shape[0]):
            total += weights[k, a]
        if total < least:
            least, place = total, a
    return place


@piece
def place_atom_(lesson: Lesson, count: Floats, history: History) -> int:
    """The column of a lesson's vector, made if need be; a full table loses its lightest atom and accounts for it."""
    a = find_atom(lesson, history)
    if a >= 0:
        return a
    atoms, weights, cursor = history.atoms, history.weights, history.cursor
    if cursor[USED] == atoms.shape[1]:
        a = lightest_atom(weights, cursor[USED])
        for k in range(weights.shape[0]):
            count[k, LOST] += weights[k, a]
        drop_atom_(a, history)
    a = int(cursor[USED])
    for i in range(atoms.shape[0]):
        atoms[i, a] = lesson.X[lesson.at, i, lesson.arm] + 0.0  # -0 becomes 0
    cursor[USED] = a + 1
    return a


@piece
def fade_atoms_(lane: int, factor: float, count: Floats, history: History) -> None:
    """All weights of a lane times factor; what was lost fades too."""
    for a in range(history.cursor[USED]):
        history.weights[lane, a] *= factor
        history.targets[lane, a] *= factor
    count[lane, LOST] *= factor


@piece
def clear_atoms_(lane: int, count: Floats, history: History) -> None:
    """A lane forgets everything; columns that no lane needs any more are freed."""
    fade_atoms_(lane, 0.0, count, history)
    a = history.cursor[USED] - 1
    while a >= 0:
        needed = False
        for k in range(history.weights.shape[0]):
            if history.weights[k, a] != 0.0:
                needed = True
        if not needed:
            drop_atom_(a, history)
        a -= 1


@routine
def recount_atoms_(lane: int, history: History) -> None:
    """The sums of the atoms anew from the ring: what rounding left behind after many removals goes."""
    d = history.atoms.shape[0]
    weights, targets, cursor = history.weights, history.targets, history.cursor
    for a in range(cursor[USED]):
        weights[lane, a] = 0.0
        targets[lane, a] = 0.0
    for p in range(cursor[SIZE]):
        place = (cursor[HEAD] + p) % history.ring.shape[0]
        a = find_in_ring(place, history)
        if a >= 0:
            weights[lane, a] += 1.0
            targets[lane, a] += history.ring[place, d]


@piece
def leave_atom_(lane: int, place: int, history: History) -> None:
    """Take the observation at a place of the ring out of its atom; an atom without observations goes."""
    a = find_in_ring(place, history)
    if a >= 0:
        history.weights[lane, a] -= 1.0
        history.targets[lane, a] -= history.ring[place, history.atoms.shape[0]]
        if history.weights[lane, a] < 0.5:
            drop_atom_(a, history)


# ------------------------------------------------------------------------------------------ a whole state


@entry
def renew_(flags: Ints, floats: Floats, ints: Ints, to_floats: Floats, to_ints: Ints) -> int:
    """The one packed state becomes the other: all that a lesson reads or may have written, not the room beyond it."""
    history, other = history_of(flags, floats, ints), history_of(flags, to_floats, to_ints)
    if not (sound_cursor(history) and sound_cursor(other)):
        return DAMAGED
    ring, cursor, d = history.ring, history.cursor, history.atoms.shape[0]
    if cursor.size > 0:
        for k in range(history.weights.shape[0]):  # an atom is added to a place that holds no weight
            for a in range(cursor[USED], other.cursor[USED]):
                other.weights[k, a] = 0.0
                other.targets[k, a] = 0.0
    for i in range(flags[AT_ROOMS]):
        to_floats[i] = floats[i]
    for i in range(flags[AT_BEHIND_ROOMS], floats.size):
        to_floats[i] = floats[i]
    for i in range(ints.size):
        to_ints[i] = ints[i]
    if cursor.size > 0:
        for p in range(min(cursor[SIZE] + 1, ring.shape[0])):
            place = (cursor[HEAD] + p) % ring.shape[0]
            for i in range(ring.shape[1]):
                other.ring[place, i] = ring[place, i]
        used = min(cursor[USED] + 1, history.atoms.shape[1])
        for i in range(d):
            for a in range(used):
                other.atoms[i, a] = history.atoms[i, a]
        for k in range(history.weights.shape[0]):
            for a in range(used):
                other.weights[k, a] = history.weights[k, a]
                other.targets[k, a] = history.targets[k, a]
    return FINE
