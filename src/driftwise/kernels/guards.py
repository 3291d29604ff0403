"""Guards: whether the arrays passed to an entry are as long as its flags and indices say.

Compiled code does not check bounds. The C module of a wheel (release/machine.py) calls the guard of an entry first and
refuses the call if the guard does. Lengths follow from the declarations of groups (kernels/groups.py) and scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Protocol, get_args, get_origin, get_type_hints

import numpy as np

from driftwise._internal.compiling import intrinsic
from driftwise.kernels import entry, piece, stored_as
from driftwise.kernels.adapt.book import LANE_MARKS, NOTE_PLACES, ORDER, PER_LANE
from driftwise.kernels.adapt.linear import bank_scratch_size
from driftwise.kernels.auto.gauge import gauge_size
from driftwise.kernels.auto.lane import cell, coordinates
from driftwise.kernels.auto.lesson import auto_scratch_size
from driftwise.kernels.glm import lesson_scratch_size
from driftwise.kernels.groups import AT_CURSOR, FIRST_GROUP, FIRST_SIZE, FLOAT_GROUPS, KEY, shapes_of
from driftwise.kernels.index import score_scratch_size
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.lanes import FOUR as FOUR_ARMS
from driftwise.kernels.lazy import lazy_size
from driftwise.kernels.point import (
    ADAPT,
    ALONE,
    ATOMS,
    BANK,
    BEFORE,
    BELIEFS,
    BOB,
    COLUMNS,
    CURSOR,
    CURSORS,
    DIM,
    ESTIMATE,
    ESTIMATES,
    FLAGS,
    GAUGES,
    LANES,
    MARKS,
    MASTER,
    MEMORY,
    NOTES,
    ONE_PASS,
    PLAYED,
    ROOM,
    RULE,
    SCORES,
    SHORT,
    SPREADS,
    TWINS,
    TWO_AS_PUBLISHED,
    TWO_MATRIX,
    USED,
    WINDOW,
    Adapting,
    Floats,
    Ints,
    Point,
)
from driftwise.kernels.scratch import lengths
from driftwise.kernels.search.index_form import index_form_size
from driftwise.kernels.solvers.newton import newton_scratch_size, newton_shapes
from driftwise.kernels.solvers.secular import set_scratch_size
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
    good = good and pointed(flags)
    two = flags[RULE] == TWO_MATRIX or flags[RULE] == TWO_AS_PUBLISHED
    good = good and (flags[TWINS] >= lanes or (flags[TWINS] == 0 and not two))
    return bool(good and table.shape[0] >= rows)


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
def auto_need(flags: Ints, capacity: int) -> int:
    return int(auto_scratch_size(flags[DIM], flags[BELIEFS]))


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
def auto_groups(flags: Ints, table: Floats) -> bool:
    """A row of the table, a mean and a covariance for every lane, and a gauge."""
    lanes, numbers, point = flags[BELIEFS], 0, Point(flags, table)
    if lanes <= 0 or lanes != table.shape[0] or flags[GAUGES] < gauge_size(flags[DIM]):
        return False
    for k in range(lanes):
        numbers += cell(coordinates(point, k, flags[DIM]), 0)
    return bool(flags[SPREADS] >= numbers and table[0, SHORT] >= 0.0 and table[0, SHORT] < lanes)


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
    "linear": sums_alone, "sampled_linear": sums_alone, "adaptive_linear": sums_alone, "auto": auto_groups,
    "glm": estimates_kept, "sampled_glm": estimates_kept, "bvd": both_kept,
}  # fmt: skip
STANDS = {family: standing(own_groups) for family, own_groups in _GROUPS.items()}
linear_stands = STANDS["linear"]

# ------------------------------------------------------------------------------------------ scratch by family

NEEDS = {
    "linear": no_need, "sampled_linear": no_need, "adaptive_linear": adaptive_need, "auto": auto_need,
    "glm": glm_need, "sampled_glm": glm_need, "bvd": bvd_need,
}  # fmt: skip

ROUNDS = {"plain": score_scratch_size, "tiled": tiles_size, "tiled_wide": tiles_size, "lazy": lazy_size}

# ------------------------------------------------------------------------------------------ what is said of arguments

# Operations on a size: it equals another, is as large, is larger, is smaller, is nothing or equal, is one or as large.
EQUAL, LEAST, ABOVE, BELOW, NONE_OR, ONE_OR = range(6)
_SIGNS = {"+": LEAST, "<": ABOVE, ">": BELOW, "?": NONE_OR, "~": ONE_OR}
# What stands for a number, or for a size of the state, among the places of sizes.
_NUMBER, _DIM, _LANES = -1, -2, -3
Said = str | Mapping[str, str]
Guard = Callable[..., bool]


def _words(kinds: Mapping[str, object], said: Mapping[str, Said]) -> Iterator[tuple[str, str]]:
    """The name and what is said of every size among arguments, in the order of `size_at`: axes and whole numbers."""
    for name, kind in kinds.items():
        told = said.get(name, "")
        if isinstance(kind, type) and issubclass(kind, tuple):
            yield from _words(get_type_hints(kind, include_extras=True), {} if isinstance(told, str) else told)
        elif get_origin(kind) is Annotated:
            axes = get_args(kind)[2]
            words = str(told).split(", ") if told else ["_"] * axes
            assert len(words) == axes, f"{name} has other axes"
            yield from (("", word) for word in words)
        elif kind is not float:
            yield name, str(told) or "_"


def demands_of(kinds: Mapping[str, object], said: Mapping[str, Said]) -> tuple[Ints, dict[str, int]]:
    """Comparisons of sizes, (place, operation, other place, number) each, and the place of every name.

    What is said of an array has a word per axis, and that of a whole number is one word: a number or a name, and a sign
    behind it (+ as large, < larger, > smaller, ? nothing or equal, ~ one or as large). A name is that of a whole
    number, or of the first axis that it is said of; d and n are at least 1.
    """
    rows, at = [], {"dim": _DIM, "lanes": _LANES}
    words = list(_words(kinds, said))
    for place, (name, word) in enumerate(words):
        if name or (word.isidentifier() and word != "_"):
            at.setdefault(name or word, place)
    for place, (_, word) in enumerate(words):
        name = word.rstrip("+<>?~")
        if name == "_":
            continue
        sign = _SIGNS.get(word[len(name) :], EQUAL)
        if name.isdigit():
            rows.append((place, sign, _NUMBER, int(name)))
        elif at[name] != place:
            rows.append((place, sign, at[name], 0))
        elif name in ("d", "n"):
            rows.append((place, LEAST, _NUMBER, 1))
    return np.array(rows, dtype=np.int64).reshape(-1, 4), at


def interpreted_size_at(given: object, place: int) -> int:
    return list(_sizes_in(given))[place]


def _sizes_in(given: object) -> Iterator[int]:
    if isinstance(given, tuple):
        for one in given:
            yield from _sizes_in(one)
    elif isinstance(given, np.ndarray):
        yield from given.shape
    elif isinstance(given, (int, np.integer, np.bool_)):
        yield int(given)


size_at: Any = intrinsic(interpreted_size_at, "size_at")
"""size_at(given, place): the size of this number, of the axes of arrays and the whole numbers among arguments."""


@piece
def agree(given: object, demands: Ints, dim: int, lanes: int) -> bool:
    """Whether sizes are as demanded."""
    for row in range(demands.shape[0]):
        size, operation, other = size_at(given, demands[row, 0]), demands[row, 1], demands[row, 2]
        if other == _NUMBER:
            wanted = demands[row, 3]
        else:
            wanted = dim if other == _DIM else lanes if other == _LANES else size_at(given, other)
        if operation == LEAST:
            good = size >= wanted
        elif operation == ABOVE:
            good = size > wanted
        elif operation == BELOW:
            good = size < wanted
        elif operation == ONE_OR:
            good = size == 1 or (size > 0 and size >= wanted)
        else:
            good = size == wanted or (operation == NONE_OR and size == 0)
        if not good:
            return False
    return True


# ------------------------------------------------------------------------------------------ guards by what is said


class Need(Protocol):
    """The least length of scratch for a policy, its state, and a list of n arms."""

    def __call__(self, flags: Ints, ints: Ints, n: int) -> int: ...


@piece
def nothing_needed(flags: Ints, ints: Ints, n: int) -> int:
    """None."""
    return 0


@piece
def form_need(flags: Ints, ints: Ints, n: int) -> int:
    """That of an index on a continuous set."""
    return int(index_form_size(flags[DIM]))


def scores_need(engine: str) -> Need:
    """That of scores."""
    round_size = ROUNDS[engine]

    @piece
    def need(flags: Ints, ints: Ints, n: int) -> int:
        return round_size(flags[DIM], n)

    return need


def lesson_need(family: str) -> Need:
    """That of a lesson."""
    need_of = NEEDS[family]

    @piece
    def need(flags: Ints, ints: Ints, n: int) -> int:
        return need_of(flags, capacity_of(flags, ints))

    return need


def play_need(family: str, engine: str) -> Need:
    """That of rounds."""
    round_size, need_of = ROUNDS[engine], NEEDS[family]

    @piece
    def need(flags: Ints, ints: Ints, n: int) -> int:
        return round_size(flags[DIM], n) + need_of(flags, int(flags[ATOMS]) + 1)

    return need


def guarding_state(call: Callable[..., object], family: str, need: Need, **said: Said) -> Guard:
    """The guard of an entry that takes a policy, a state of this family and scratch, from what is said of the rest."""
    kinds = list(get_type_hints(getattr(call, "py_func", call), include_extras=True).items())[5:-1]
    demands, at = demands_of(dict(kinds), said)
    stands, arms, tests = STANDS[family], at.get("n", 0), at.get("tests", _NUMBER)

    @entry
    @stored_as(f"guard_{call.__name__}")
    def guard(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, *given: object) -> bool:
        if not stands(flags, table, floats, ints) or not agree(given, demands, flags[DIM], flags[LANES]):
            return False
        if tests >= 0 and flags[ADAPT] == MASTER and size_at(given, tests) == 0:
            return False
        return bool(scratch.size >= need(flags, ints, size_at(given, arms)))

    return guard


def guarding(
    call: Callable[..., object], form: str = "", kinds: Mapping[str, object] | None = None, **said: Said
) -> Guard:
    """The guard of an entry without a state. `form` is the dimension of the index for which its first argument is
    scratch, and `kinds` are those of arguments whose annotation is wider."""
    all_kinds = {**get_type_hints(getattr(call, "py_func", call), include_extras=True), **(kinds or {})}
    demands, at = demands_of({name: kind for name, kind in all_kinds.items() if name != "return"}, said)
    features = at.get(form, _NUMBER)

    @entry
    @stored_as(f"guard_{call.__name__}")
    def guard(*given: object) -> bool:
        if not agree(given, demands, 0, 0):
            return False
        return bool(features < 0 or size_at(given, 0) >= index_form_size(size_at(given, features)))

    return guard


# ------------------------------------------------------------------------------------------ what bundles need

ARMS = "1+, dim, n"
ROUNDS_HELD = {"arms": "T~, dim, n", "path": "T, dim", "draws": "T+", "best": "T+"}
RECORDED = {"chosen": "T+", "regret": "T+", "used": "T+"}
LESSON = {"X": "at<, dim, arm<", "at": "0+"}
FIRST_ROW = {"flags": f"{FLAGS}+", "table": f"1+, {COLUMNS}+"}
ROW = {"flags": f"{FLAGS}+", "table": f"row<, {COLUMNS}+"}
ATOMS_HELD = {"A": "d, used+", "w": "lane<, used+", "s": "lane<, used+", "lane": "0+", "used": "0+"}
_Z, _P, _M = newton_shapes(0, 0)
SOLVER = {"Z": f"{_Z[0]}+, used+", "P": f"{_P[0]}+, d", "M": f"{_M[0]}+, d, d"}
FIRST_DRAW = {"key": f"{KEY}+", "notes": f"{NOTE_PLACES}+", "scores": "1+", "marks": f"{LANE_MARKS + PER_LANE}+"}

# ------------------------------------------------------------------------------------------ guards by hand


@entry
def guard_renew(flags: Ints, floats: Floats, ints: Ints, to_floats: Floats, to_ints: Ints) -> bool:
    good = holds(flags, floats, ints) and holds(flags, to_floats, to_ints) and pointed(flags)
    return bool(good and to_floats.size == floats.size and to_ints.size == ints.size)


@entry
def guard_best_linear(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, F: Floats, straight: bool, out: Floats
) -> bool:
    if not linear_stands(flags, table, floats, ints):
        return False
    d = flags[DIM]
    return bool(out.size == d and scratch.size >= index_form_size(d) and spans(F, straight, d))


@piece
def spans(F: Floats, straight: bool, d: int) -> bool:
    """Whether F is a d × d matrix; one number if it is a multiple of I."""
    least = 1 if straight else d
    return bool(F.shape[0] >= least and F.shape[1] >= least)


@entry
def guard_summit(scratch: Floats, F: Floats, straight: bool, out: Floats) -> bool:
    return bool(out.size > 0 and scratch.size >= index_form_size(out.size) and spans(F, straight, out.size))


@entry
def guard_waves(angles: Floats, terms: int, rows: Floats) -> bool:
    return bool(rows.shape[0] >= angles.size and terms < MOST and rows.shape[1] > 2 * terms)


@piece
def by_fours(X: Floats, d: int) -> bool:
    """Arms of eight trials by fours."""
    return bool(X.shape[1] == d and X.shape[2] == FOUR_ARMS and X.shape[3] == EIGHT)


@piece
def columns_of_eight(array: Floats | Ints, rounds: int) -> bool:
    """A column per trial, as long as the rounds."""
    return bool(array.shape[0] >= rounds and array.shape[1] == EIGHT)


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
