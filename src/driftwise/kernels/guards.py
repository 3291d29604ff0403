"""Guards: whether the arrays passed to an entry are as long as its flags and indices say.

Compiled code does not check bounds. The C module of a wheel (release/machine.py) calls the guard of an entry first and
refuses the call if the guard does. Lengths follow from the declarations of groups (kernels/groups.py) and scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Protocol

from driftwise.kernels import entry, piece, stored_as
from driftwise.kernels.adapt.belief import forecast_size
from driftwise.kernels.adapt.book import LANE_MARKS, NOTE_PLACES, ORDER, PER_LANE
from driftwise.kernels.adapt.linear import bank_scratch_size
from driftwise.kernels.belief import GAUGE, UNITS, Gauge, gauge_size
from driftwise.kernels.chance import Record, Rounds
from driftwise.kernels.glm import lesson_scratch_size
from driftwise.kernels.groups import AT_CURSOR, FIRST_GROUP, FIRST_SIZE, FLOAT_GROUPS, KEY, shapes_of
from driftwise.kernels.index import score_scratch_size
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.lanes import FOUR as FOUR_ARMS
from driftwise.kernels.lazy import lazy_size
from driftwise.kernels.level import FOUR, level_forecast_size
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import (
    ADAPT,
    ALONE,
    ATOMS,
    BANK,
    BEFORE,
    BOB,
    COLUMNS,
    CURSOR,
    CURSORS,
    DIM,
    ESTIMATE,
    ESTIMATES,
    FILTERS,
    FLAGS,
    GAUGES,
    LAGS,
    LAM,
    LANES,
    LEARNS,
    LEVELS,
    LINK,
    MARKS,
    MASTER,
    MEMORY,
    NOTES,
    ONE_PASS,
    PLAYED,
    ROOM,
    RULE,
    SCORES,
    TREND,
    TWINS,
    TWO_AS_PUBLISHED,
    TWO_MATRIX,
    USED,
    WINDOW,
    Adapting,
    Floats,
    Ints,
    Lesson,
    Point,
)
from driftwise.kernels.scratch import lengths
from driftwise.kernels.search.index_form import index_form_size
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.kernels.solvers.newton import NewtonScratch, newton_scratch_size, newton_shapes
from driftwise.kernels.solvers.secular import set_scratch_size
from driftwise.kernels.solvers.sets import COLUMNS as SET_ROWS
from driftwise.kernels.tiles import tiles_size
from driftwise.kernels.trials import FourRecord, FourRounds, eight_states_size

# The largest sizes and dimensions: products of three sizes, two of them dimensions, fit in 64 bits.
MOST, MOST_DIM = 2**31, 46_340
# The same where eight of a matrix lie side by side.
MOST_EIGHT = 2**14
FLOATS = len(FLOAT_GROUPS)


@piece
def holds(flags: Ints, floats: Floats, ints: Ints) -> bool:
    """Whether a packed state is as long as the places and shapes of its groups say."""
    if flags.size < FLAGS:
        return False
    for place in range(FIRST_SIZE, FIRST_GROUP):
        if flags[place] < 0 or flags[place] > MOST:
            return False
    if flags[DIM] <= 0 or flags[DIM] > MOST_DIM:
        return False
    sizes = lengths(shapes_of(flags))
    for number in range(len(sizes)):
        first, packed = flags[FIRST_GROUP + number], floats.size if number < FLOATS else ints.size
        if first < 0 or sizes[number] > packed - first:
            return False
    return True


@piece
def pointed(flags: Ints) -> bool:
    """A cursor where there is a ring or atoms."""
    return bool(flags[CURSORS] >= CURSOR or (flags[CURSORS] == 0 and flags[ROOM] == 0 and flags[ATOMS] == 0))


@piece
def agrees(flags: Ints, table: Floats) -> bool:
    """Sizes that follow from what the policy is: what its memory, its rule and its adaptation keep of each lane, and a
    row of the table for each that can act."""
    lanes, adaptation, rows = flags[LANES], flags[ADAPT], 1
    good = lanes > 0 and table.shape[1] >= COLUMNS
    if adaptation != ALONE:
        good = good and flags[NOTES] >= NOTE_PLACES and flags[MARKS] >= LANE_MARKS + PER_LANE * lanes
    if adaptation == MASTER:
        good = good and flags[BEFORE] == lanes
    elif adaptation == BOB:
        rows = flags[SCORES]
        good = good and rows > 0
    elif adaptation == BANK:
        rows = lanes
        good = good and flags[SCORES] == lanes
    good = good and (flags[ROOM] > 0 or flags[MEMORY] != WINDOW)
    good = good and pointed(flags) and (flags[LAGS] >= lanes or (flags[LAGS] == 0 and flags[MEMORY] != TREND))
    two = flags[RULE] == TWO_MATRIX or flags[RULE] == TWO_AS_PUBLISHED
    good = good and (flags[TWINS] >= lanes or (flags[TWINS] == 0 and not two))
    return bool(good and table.shape[0] >= rows + max(flags[LEVELS], flags[FILTERS]))


@piece
def gauged(size: int) -> bool:
    """Whether a gauge has all the numbers of its kind."""
    return bool(size == GAUGE or size >= UNITS)


class Agrees(Protocol):
    """Says whether a family's own groups are as large as it needs them."""

    def __call__(self, flags: Ints, table: Floats) -> bool: ...


class Stands(Protocol):
    """Says whether a state of a family is as long as its flags say, and agrees with the policy."""

    def __call__(self, flags: Ints, table: Floats, floats: Floats, ints: Ints) -> bool: ...


def standing(own_groups: Agrees) -> Stands:
    """The piece that asks a state of a family."""

    @piece
    def stands(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> bool:
        return bool(holds(flags, floats, ints) and agrees(flags, table) and own_groups(flags, table))

    return stands


@piece
def takes(flags: Ints, X: Floats) -> bool:
    """Sets of arms of a policy's dimension."""
    return bool(X.shape[0] > 0 and X.shape[1] == flags[DIM] and X.shape[2] > 0)


@piece
def capacity_of(flags: Ints, ints: Ints) -> int:
    """The number of atoms after a lesson: those in use, which an entry checks itself, and one more."""
    if flags[CURSORS] <= USED:
        return 1
    return int(min(max(ints[flags[AT_CURSOR] + USED], 0), flags[ATOMS])) + 1


# ------------------------------------------------------------------------------------------ scratch of lessons


@piece
def no_need(flags: Ints, capacity: int) -> int:
    """Sums alone."""
    return 0


@piece
def adaptive_need(flags: Ints, capacity: int) -> int:
    return int(bank_scratch_size(flags[DIM], flags[LANES]))


@piece
def belief_need(flags: Ints, capacity: int) -> int:
    d = flags[DIM]
    return int(forecast_size(d, flags[LANES]) + level_forecast_size(d, flags[LEVELS], flags[FILTERS]))


@piece
def glm_need(flags: Ints, capacity: int) -> int:
    return int(lesson_scratch_size(flags[DIM], capacity, flags[LANES]))


@piece
def bvd_need(flags: Ints, capacity: int) -> int:
    return int(newton_scratch_size(flags[DIM], capacity) + set_scratch_size(flags[DIM], capacity))


# ------------------------------------------------------------------------------------------ groups of families


@piece
def sums_alone(flags: Ints, table: Floats) -> bool:
    return True


@piece
def belief_groups(flags: Ints, table: Floats) -> bool:
    """A gauge where noise or scale are learned; levels in fours, each with a filter where rewards are clicks."""
    levels, filters = flags[LEVELS], flags[FILTERS]
    good = gauged(flags[GAUGES]) or (flags[GAUGES] == 0 and table[0, LAM] > 0.0 and table[0, LEARNS] == 0.0)
    good = good and (flags[GAUGES] <= GAUGE or flags[GAUGES] >= gauge_size(flags[DIM]))
    good = good and levels % FOUR == 0 and (levels == 0 or (flags[ADAPT] == BANK and filters >= FOUR))
    return bool(good and (flags[LINK] == IDENTITY or filters >= levels))


@piece
def estimates_kept(flags: Ints, table: Floats) -> bool:
    """An estimate that is played of each lane, and of a bank another that scores; atoms to solve for it."""
    lanes = flags[LANES]
    good = flags[PLAYED] >= lanes and flags[CURSORS] >= CURSOR and (flags[ATOMS] > 0 or flags[ESTIMATE] == ONE_PASS)
    return bool(good and flags[ESTIMATES] >= (2 * lanes if flags[ADAPT] == BANK else lanes))


@piece
def both_kept(flags: Ints, table: Floats) -> bool:
    return bool(estimates_kept(flags, table) and flags[TWINS] >= flags[LANES] and flags[ATOMS] > 0)


_GROUPS = {
    "linear": sums_alone, "sampled_linear": sums_alone, "adaptive_linear": sums_alone, "belief": belief_groups,
    "glm": estimates_kept, "sampled_glm": estimates_kept, "bvd": both_kept,
}  # fmt: skip
STANDS = {family: standing(own_groups) for family, own_groups in _GROUPS.items()}

# ------------------------------------------------------------------------------------------ scratch by family

NEEDS = {
    "linear": no_need, "sampled_linear": no_need, "adaptive_linear": adaptive_need, "belief": belief_need,
    "glm": glm_need, "sampled_glm": glm_need, "bvd": bvd_need,
}  # fmt: skip

ROUNDS = {"plain": score_scratch_size, "tiled": tiles_size, "tiled_wide": tiles_size, "lazy": lazy_size}

# ------------------------------------------------------------------------------------------ entries that take a state

Size = Callable[[int, int], int]
Need = Callable[[Ints, int], int]
Guard = Callable[..., bool]


def guard_score(name: str, stands: Stands, round_size: Size) -> Guard:
    @entry
    @stored_as(name)
    def guard(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats) -> bool:
        good = stands(flags, table, floats, ints) and takes(flags, X)
        return bool(good and scratch.size >= round_size(X.shape[1], X.shape[2]))

    return guard


def guard_look(name: str, stands: Stands) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, purpose: int, costs: Floats
    ) -> bool:
        good = stands(flags, table, floats, ints) and takes(flags, X) and (costs.size == 0 or costs.size == X.shape[2])
        return bool(good and scratch.size >= score_scratch_size(X.shape[1], X.shape[2]))

    return guard


def guard_sample(name: str, stands: Stands) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, draw: int, tries: int,
        shares: Floats,
    ) -> bool:
        good = stands(flags, table, floats, ints) and takes(flags, X)
        good = good and scratch.size >= score_scratch_size(X.shape[1], X.shape[2])
        return bool(good and (shares.size == 0 or shares.size == X.shape[2]))

    return guard


def guard_learn(name: str, stands: Stands, need_of: Need) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, arm: int, reward: float,
        ticks: float, age: float,
    ) -> bool:
        good = stands(flags, table, floats, ints) and takes(flags, X) and arm < X.shape[2]
        return bool(good and scratch.size >= need_of(flags, capacity_of(flags, ints)))

    return guard


def guard_adapt(name: str, stands: Stands, need_of: Need) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, lesson: Lesson, rho: Floats,
        largest: float,
    ) -> bool:
        good = stands(flags, table, floats, ints) and takes(flags, lesson.X) and lesson.arm < lesson.X.shape[2]
        good = good and lesson.at >= 0 and lesson.at < lesson.X.shape[0]
        good = good and (flags[ADAPT] != MASTER or lesson.arm < 0 or rho.size > 0)
        return bool(good and scratch.size >= need_of(flags, capacity_of(flags, ints)))

    return guard


def guard_play(name: str, stands: Stands, need_of: Need, round_size: Size) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, rounds: Rounds, total: float,
        record: Record, rho: Floats,
    ) -> bool:
        arms, path = rounds.arms, rounds.path
        T, d, n = path.shape[0], arms.shape[1], arms.shape[2]
        if not stands(flags, table, floats, ints) or not takes(flags, arms) or path.shape[1] != d:
            return False
        if arms.shape[0] > 1 and arms.shape[0] < T:
            return False
        if min(rounds.draws.size, rounds.best.size, record.chosen.size, record.regret.size, record.used.size) < T:
            return False
        if flags[ADAPT] == MASTER and rho.size == 0:
            return False
        return bool(scratch.size >= round_size(d, n) + need_of(flags, int(flags[ATOMS]) + 1))

    return guard


def guard_fold(name: str, stands: Stands) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, rewards: Floats,
        ticks: Floats, ages: Floats,
    ) -> bool:
        if not stands(flags, table, floats, ints):
            return False
        good = X.shape[1] == flags[DIM] and X.shape[2] > 0
        return bool(good and min(X.shape[0], ticks.size, ages.size) >= rewards.size)

    return guard


@entry
def guard_renew(flags: Ints, floats: Floats, ints: Ints, to_floats: Floats, to_ints: Ints) -> bool:
    good = holds(flags, floats, ints) and holds(flags, to_floats, to_ints) and pointed(flags)
    return bool(good and to_floats.size == floats.size and to_ints.size == ints.size)


def guard_form(name: str, stands: Stands) -> Guard:
    @entry
    @stored_as(name)
    def guard(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, whose: int) -> bool:
        good = stands(flags, table, floats, ints)
        return bool(good and scratch.size >= index_form_size(flags[DIM]) and whose < flags[LANES])

    return guard


def guard_drawn_form(name: str, stands: Stands) -> Guard:
    @entry
    @stored_as(name)
    def guard(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, draw: int) -> bool:
        good = stands(flags, table, floats, ints)
        return bool(good and scratch.size >= index_form_size(flags[DIM]))

    return guard


def guard_best(name: str, stands: Stands) -> Guard:
    @entry
    @stored_as(name)
    def guard(
        flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, F: Floats, straight: bool, out: Floats
    ) -> bool:
        if not stands(flags, table, floats, ints):
            return False
        d = flags[DIM]
        return bool(out.size == d and scratch.size >= index_form_size(d) and spans(F, straight, d))

    return guard


@cache
def guard_of(what: str, family: str, engine: str = "plain") -> Guard:
    """The guard of an entry of a family: `what` is score, look, tiled, sample, fold, form, drawn_form, best, learn,
    adapt or play, the last by an engine."""
    stands, need_of, name = STANDS[family], NEEDS[family], f"guard_{what}_{family}"
    if what == "play":
        return guard_play(f"{name}_{engine}", stands, need_of, ROUNDS[engine])
    if what in ("score", "tiled"):
        return guard_score(name, stands, ROUNDS["plain" if what == "score" else what])
    if what in ("learn", "adapt"):
        return (guard_learn if what == "learn" else guard_adapt)(name, stands, need_of)
    made = {
        "look": guard_look, "sample": guard_sample, "fold": guard_fold, "form": guard_form,
        "drawn_form": guard_drawn_form, "best": guard_best,
    }  # fmt: skip
    return made[what](name, stands)


# ------------------------------------------------------------------------------------------ arrays without a state


@piece
def spans(F: Floats, straight: bool, d: int) -> bool:
    """Whether F is a d × d matrix; one number if it is a multiple of I."""
    least = 1 if straight else d
    return bool(F.shape[0] >= least and F.shape[1] >= least)


@entry
def guard_columns(rows: Floats, columns: Floats) -> bool:
    good = columns.shape[0] > 0 and columns.shape[1] >= rows.shape[1]
    return bool(good and columns.shape[2] >= rows.shape[0])


@entry
def guard_checksum(words: Ints, sums: Ints) -> bool:
    return bool(sums.size >= 2)


@entry
def guard_summit(scratch: Floats, F: Floats, straight: bool, out: Floats) -> bool:
    return bool(out.size > 0 and scratch.size >= index_form_size(out.size) and spans(F, straight, out.size))


@entry
def guard_corner(scratch: Floats, low: Floats, high: Floats, out: Floats) -> bool:
    d = low.size
    return bool(d > 0 and high.size == d and out.size == d and scratch.size >= index_form_size(d))


@entry
def guard_climb(scratch: Floats, low: Floats, high: Floats, starts: Floats, out: Floats) -> bool:
    d = low.size
    good = d > 0 and high.size == d and out.size == d and starts.shape[1] == d
    return bool(good and scratch.size >= index_form_size(d))


@entry
def guard_values(scratch: Floats, X: Floats, out: Floats) -> bool:
    return bool(X.shape[1] > 0 and scratch.size >= index_form_size(X.shape[1]) and out.size >= X.shape[0])


@entry
def guard_eigen(A: Floats, values: Floats, rows: Floats, beside: Floats) -> bool:
    d = values.size
    return bool(d > 0 and min(A.shape[0], A.shape[1], rows.shape[0], rows.shape[1], beside.size) >= d)


@entry
def guard_normals(words: Ints, below: Ints, width: Floats, height: Floats, begun: int, out: Floats) -> bool:
    return bool(min(below.size, width.size, height.size) >= 256 and begun >= 0)


@entry
def guard_turn(angles: Floats, radius: float, path: Floats) -> bool:
    return bool(path.shape[0] >= angles.size and path.shape[1] >= 2)


@entry
def guard_waves(angles: Floats, terms: int, rows: Floats) -> bool:
    return bool(rows.shape[0] >= angles.size and terms < MOST and rows.shape[1] > 2 * terms)


@entry
def guard_walk(theta: Floats, steps: Floats, radius: float) -> bool:
    return bool(steps.shape[0] >= theta.shape[0] and steps.shape[1] >= theta.shape[1])


@entry
def guard_lay_out(raw: Floats, norm: int, length: Floats, out: Floats) -> bool:
    good = length.size >= raw.shape[1] and out.shape[0] >= raw.shape[0]
    return bool(good and out.shape[1] >= raw.shape[2] and out.shape[2] >= raw.shape[1])


@entry
def guard_best_means(arms: Floats, theta: Floats, link: int, value: Floats, best: Floats) -> bool:
    T, n = theta.shape[0], arms.shape[2]
    good = n > 0 and theta.shape[1] >= arms.shape[1] and arms.shape[0] >= (T if arms.shape[0] > 1 else 1)
    return bool(good and value.size >= n and best.size >= T)


@piece
def by_fours(X: Floats, d: int) -> bool:
    """Arms of eight trials by fours."""
    return bool(X.shape[1] == d and X.shape[2] == FOUR_ARMS and X.shape[3] == EIGHT)


@piece
def columns_of_eight(array: Floats | Ints, rounds: int) -> bool:
    """A column per trial, as long as the rounds."""
    return bool(array.shape[0] >= rounds and array.shape[1] == EIGHT)


@entry
def guard_best_of_eight(X: Floats, path: Floats, link: int, four: Floats, best: Floats) -> bool:
    good = by_fours(X, path.shape[1]) and four.shape[0] >= FOUR_ARMS and four.shape[1] == EIGHT
    return bool(good and columns_of_eight(best, path.shape[0]))


@entry
def guard_eight(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, rounds: FourRounds, total: float,
    record: FourRecord, rho: Floats,
) -> bool:
    if flags.size < FLAGS or table.shape[0] < 1 or table.shape[1] < COLUMNS:
        return False
    arms, path, T, d = rounds.arms, rounds.path, rounds.path.shape[0], flags[DIM]
    good = d > 0 and d <= MOST_EIGHT and path.shape[1] == d and by_fours(arms, d) and (T == 0 or arms.shape[0] > 0)
    good = good and columns_of_eight(rounds.draws, T) and columns_of_eight(rounds.best, T)
    good = good and columns_of_eight(record.regret, T) and columns_of_eight(record.chosen, T)
    return bool(good and floats.size >= eight_states_size(d))


# ------------------------------------------------------------------------------------------ bundles


@piece
def tabled(point: Point, row: int) -> bool:
    """A policy with all flags, and a table that has this row and all columns."""
    good = point.flags.size >= FLAGS and point.table.shape[1] >= COLUMNS
    return bool(good and row >= 0 and row < point.table.shape[0])


@piece
def kept(own: Adapting, lanes: int) -> bool:
    """What an adaptation keeps: a key, notes, and marks of so many lanes."""
    good = own.key.size >= KEY and own.notes.size >= NOTE_PLACES and lanes >= 0 and lanes <= own.marks.size
    return bool(good and own.marks.size >= LANE_MARKS + PER_LANE * lanes)


@entry
def guard_bob_draw(point: Point, own: Adapting, block: int) -> bool:
    return bool(tabled(point, 0) and kept(own, 1) and own.scores.size > 0)


@entry
def guard_begin_block(own: Adapting, order: int) -> bool:
    return bool(kept(own, own.before.size))


@entry
def guard_schedule(own: Adapting) -> bool:
    if not kept(own, own.before.size):
        return False
    return bool(own.marks[ORDER] >= 0 and own.marks[ORDER] < min(own.before.size, 62))


@entry
def guard_to_clear(own: Adapting, lane: int) -> bool:
    return bool(lane >= 0 and lane < own.marks.size and kept(own, lane + 1))


@entry
def guard_level_pick(weights: Floats) -> bool:
    return bool(weights.size % FOUR == 0)


@entry
def guard_level_lane(weights: Floats, evidence: Floats) -> bool:
    return bool(weights.size == 0 or (weights.size % FOUR == 0 and evidence.size > 0))


@entry
def guard_purpose(
    point: Point, own: Adapting, known: Floats, evidence: Floats, number: int, count: float
) -> bool:
    return bool(tabled(point, 0) and own.key.size >= KEY and gauged(known.size))


@entry
def guard_trial_chance(point: Point, known: Floats, evidence: Floats, count: float) -> bool:
    return bool(tabled(point, 0) and gauged(known.size))


@entry
def guard_audit_chance(point: Point, known: Floats, count: float) -> bool:
    return bool(tabled(point, 0) and gauged(known.size))


@entry
def guard_prior(point: Point, row: int, gauge: Gauge, d: int) -> bool:
    if not tabled(point, row):
        return False
    return bool(point.table[row, LAM] > 0.0 or gauged(gauge.known.size))


@entry
def guard_linear_radius(point: Point, row: int, squares: float, clock: float, d: int) -> bool:
    return bool(tabled(point, row))


@entry
def guard_glm_radius(point: Point, row: int, squares: float, clock: float, d: int, inside: bool) -> bool:
    return bool(tabled(point, row))


@piece
def atoms_held(p: Atoms, theta: Floats) -> bool:
    """Atoms in use that there are, with weights and targets in their lane, and an estimate of it."""
    used, lane = p.used, p.lane
    good = p.A.shape[0] > 0 and used >= 0 and used <= min(p.A.shape[1], p.w.shape[1], p.s.shape[1])
    good = good and lane >= 0 and lane < min(p.w.shape[0], p.s.shape[0], theta.shape[0])
    return bool(good and theta.shape[1] == p.A.shape[0])


@piece
def newton_held(newton: NewtonScratch, d: int, used: int) -> bool:
    """Scratch of a solver: vectors and matrices of d numbers exactly, because loops go by their lengths."""
    Z, P, M = newton_shapes(d, used)
    good = newton.Z.shape[0] >= Z[0] and newton.Z.shape[1] >= Z[1] and newton.P.shape[0] >= P[0]
    good = good and newton.P.shape[1] == d and newton.M.shape[0] >= M[0]
    return bool(good and newton.M.shape[1] == d and newton.M.shape[2] == d)


@entry
def guard_solve(p: Atoms, theta: Floats, newton: NewtonScratch, H: Floats) -> bool:
    d = p.A.shape[0]
    return bool(atoms_held(p, theta) and newton_held(newton, d, p.used) and H.shape[0] == d and H.shape[1] == d)


@entry
def guard_project(by_v: bool, p: Atoms, low: Floats, theta: Floats, newton: NewtonScratch) -> bool:
    d = p.A.shape[0]
    good = not by_v or (low.shape[0] == d and low.shape[1] == d)
    return bool(good and atoms_held(p, theta) and newton_held(newton, d, p.used))


@entry
def guard_optimist(
    kind: int, p: Atoms, theta: Floats, L: float, rho: float, X: Floats, prune: bool, table: Floats, centre: Floats,
    best: Floats,
) -> bool:
    d, n = p.A.shape[0], X.shape[1]
    good = atoms_held(p, theta) and X.shape[0] == d and n > 0 and centre.size == d and best.size == d
    return bool(good and table.shape[0] >= SET_ROWS and table.shape[1] >= n)


@entry
def guard_narrow(p: Atoms, theta: Floats, Y: Floats, limit: Floats, count: int, out: Floats) -> bool:
    d = p.A.shape[0]
    good = atoms_held(p, theta) and Y.shape[0] >= d and out.size == d
    return bool(good and count >= 0 and count <= min(Y.shape[1], limit.size))


@piece
def in_stack(G: Floats, lane: int, d: int) -> bool:
    """Whether a stack of matrices has this one, of d rows and columns at least."""
    return bool(d > 0 and lane >= 0 and lane < G.shape[0] and G.shape[1] >= d and G.shape[2] >= d)


@entry
def guard_factor(G: Floats, at: int, ridge: float, low: Floats, pivot: Floats) -> bool:
    d = low.shape[0]
    return bool(in_stack(G, at, d) and low.shape[1] >= d and pivot.size >= d)


@entry
def guard_one_pass_fade(H: Floats, theta: Floats, k: int, gamma: float, reg: float, M: Floats) -> bool:
    d = theta.shape[1]
    good = in_stack(H, k, d) and k < theta.shape[0] and M.shape[0] >= 2
    return bool(good and M.shape[1] == d and M.shape[2] == d)


@entry
def guard_one_pass_aim(theta: Floats, k: int, x: Floats, newton: NewtonScratch) -> bool:
    d = x.size
    good = d > 0 and k >= 0 and k < theta.shape[0] and theta.shape[1] == d
    return bool(good and newton_held(newton, d, 0))


@entry
def guard_one_pass_take(H: Floats, theta: Floats, k: int, x: Floats, c: float, h: float, P: Floats) -> bool:
    d = x.size
    good = in_stack(H, k, d) and k < theta.shape[0] and theta.shape[1] == d
    return bool(good and P.shape[0] > 0 and P.shape[1] >= d)


@entry
def guard_ridge_scores(V: Floats, at: int, b: Floats, X: Floats, low: Floats, rows: Floats, out: Floats) -> bool:
    d = low.shape[0]
    good = in_stack(V, at, d) and at < b.shape[0] and b.shape[1] >= d and X.shape[1] == d and low.shape[1] >= d
    good = good and rows.shape[0] >= 3 and rows.shape[1] >= d
    return bool(good and out.shape[0] >= 2 and out.shape[1] >= X.shape[0])


@entry
def guard_ridge_take(V: Floats, at: int, b: Floats, x: Floats, reward: float, weight: float) -> bool:
    return bool(in_stack(V, at, x.size) and at < b.shape[0] and b.shape[1] >= x.size)
