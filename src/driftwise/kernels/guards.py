"""Guards: whether the arrays handed to an entry are as long as its flags and indices say.

Compiled code does not check bounds. The C module of a wheel (release/machine.py) calls the guard of an entry first and
refuses what it refuses. Lengths follow from the declarations of groups (kernels/groups.py) and of scratch.
"""

from __future__ import annotations

import ast
from typing import Any

from driftwise.kernels import entry, piece
from driftwise.kernels.adapt.belief import forecast_size
from driftwise.kernels.adapt.linear import bank_scratch_size
from driftwise.kernels.binding import bind, unbound
from driftwise.kernels.cut import written
from driftwise.kernels.glm import lesson_scratch_size
from driftwise.kernels.groups import COUNTERS, GROUP_AT, GROUPS, INT_GROUPS, KEY, MOMENTS, SIZE_AT
from driftwise.kernels.index import score_scratch_size
from driftwise.kernels.lazy import lazy_size
from driftwise.kernels.level import level_forecast_size
from driftwise.kernels.point import (
    ADAPT,
    ATOMS,
    COLUMNS,
    CURSORS,
    DIM,
    FILTERS,
    FLAGS,
    LANES,
    LEVELS,
    MASTER,
    USED,
    Floats,
    Ints,
)
from driftwise.kernels.search.index_form import index_form_size
from driftwise.kernels.solvers.newton import newton_scratch_size
from driftwise.kernels.solvers.secular import set_scratch_size
from driftwise.kernels.tiles import tiles_size

need_of = unbound("need_of", "says how much scratch a lesson needs")
round_size = unbound("round_size", "says how much scratch the scores of a round need")

# No size of a state is larger, and no dimension: products of three sizes, two of them dimensions, fit in 64 bits.
MOST, MOST_DIM = 2**31, 46_340
CURSOR_AT = GROUP_AT["cursor"]


def _holds() -> Any:
    """The piece that compares the places and shapes of all groups with the lengths of a packed state."""
    lines = [f"    if flags.size < {FLAGS}:\n        return False\n"]
    for name, at in SIZE_AT.items():
        most = MOST_DIM if name == "dim" else MOST
        lines.append(f"    {name} = flags[{at}]\n    if {name} < 0 or {name} > {most}:\n        return False\n")
    for name, group in GROUPS.items():
        shape: Any = ast.parse(f"({group.shape},)", mode="eval").body
        cells = " * ".join(f"({ast.unparse(one)})" for one in shape.elts)
        packed, first = "ints" if group in INT_GROUPS else "floats", f"flags[{GROUP_AT[name]}]"
        lines.append(f"    if {first} < 0 or {cells} > {packed}.size - {first}:\n        return False\n")
    source = f"def holds(flags, floats, ints):\n{''.join(lines)}    return dim > 0\n"
    names = {"COUNTERS": COUNTERS, "MOMENTS": MOMENTS, "KEY": KEY, "__name__": __name__}
    return piece(written(source, "holds", names))


holds = _holds()


@piece
def offers(flags: Ints, table: Floats, floats: Floats, ints: Ints, X: Floats) -> bool:
    """A state as long as its flags say, a table with all columns, and arms of its dimension."""
    if not holds(flags, floats, ints) or table.shape[0] < 1 or table.shape[1] < COLUMNS:
        return False
    return bool(X.shape[0] > 0 and X.shape[1] == flags[DIM] and X.shape[2] > 0)


@piece
def capacity_of(flags: Ints, ints: Ints) -> int:
    """Atoms that a lesson can end with: those in use, which an entry checks itself, and one more."""
    if flags[CURSORS] <= USED:
        return 1
    return int(min(max(ints[flags[CURSOR_AT] + USED], 0), flags[ATOMS])) + 1


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


NEEDS = {
    "linear": no_need, "sampled_linear": no_need, "adaptive_linear": adaptive_need, "belief": belief_need,
    "glm": glm_need, "sampled_glm": glm_need, "bvd": bvd_need,
}  # fmt: skip

ROUNDS = {"plain": score_scratch_size, "tiled": tiles_size, "tiled_wide": tiles_size, "lazy": lazy_size}

# ------------------------------------------------------------------------------------------ entries that take a state


@entry
def guard_score(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats) -> bool:
    return bool(offers(flags, table, floats, ints, X) and scratch.size >= score_scratch_size(X.shape[1], X.shape[2]))


@entry
def guard_tiled(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats) -> bool:
    return bool(offers(flags, table, floats, ints, X) and scratch.size >= tiles_size(X.shape[1], X.shape[2]))


@entry
def guard_sample(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, draw: int, tries: int,
    shares: Floats,
) -> bool:
    good = offers(flags, table, floats, ints, X) and scratch.size >= score_scratch_size(X.shape[1], X.shape[2])
    return bool(good and (shares.size == 0 or shares.size == X.shape[2]))


def _learn(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, at: int, arm: int,
    reward: float, ticks: float, age: float,
) -> bool:
    good = offers(flags, table, floats, ints, X) and at >= 0 and at < X.shape[0] and arm < X.shape[2]
    return bool(good and scratch.size >= need_of(flags, capacity_of(flags, ints)))


def _adapt(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, at: int, arm: int,
    reward: float, ticks: float, age: float, rho: Floats, largest: float,
) -> bool:
    good = offers(flags, table, floats, ints, X) and at >= 0 and at < X.shape[0] and arm < X.shape[2]
    good = good and (flags[ADAPT] != MASTER or arm < 0 or rho.size > 0)
    return bool(good and scratch.size >= need_of(flags, capacity_of(flags, ints)))


def _play(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints, rho: Floats,
) -> bool:
    T, d, n = path.shape[0], arms.shape[1], arms.shape[2]
    if not offers(flags, table, floats, ints, arms) or path.shape[1] != d:
        return False
    if arms.shape[0] > 1 and arms.shape[0] < T:
        return False
    if min(draws.size, best.size, chosen.size, regret.size, used.size) < T:
        return False
    if flags[ADAPT] == MASTER and rho.size == 0:
        return False
    return bool(scratch.size >= round_size(d, n) + need_of(flags, int(flags[ATOMS]) + 1))


@entry
def guard_fold(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, X: Floats, rewards: Floats,
    ticks: Floats, ages: Floats,
) -> bool:
    if not holds(flags, floats, ints) or table.shape[0] < 1 or table.shape[1] < COLUMNS:
        return False
    good = X.shape[1] == flags[DIM] and X.shape[2] > 0
    return bool(good and min(X.shape[0], ticks.size, ages.size) >= rewards.size)


@entry
def guard_renew(flags: Ints, floats: Floats, ints: Ints, to_floats: Floats, to_ints: Ints) -> bool:
    good = holds(flags, floats, ints) and holds(flags, to_floats, to_ints)
    return bool(good and to_floats.size == floats.size and to_ints.size == ints.size)


@entry
def guard_form(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, whose: int) -> bool:
    good = holds(flags, floats, ints) and table.shape[0] >= 1 and table.shape[1] >= COLUMNS
    return bool(good and scratch.size >= index_form_size(flags[DIM]) and whose < flags[LANES])


@entry
def guard_drawn_form(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, draw: int) -> bool:
    good = holds(flags, floats, ints) and table.shape[0] >= 1 and table.shape[1] >= COLUMNS
    return bool(good and scratch.size >= index_form_size(flags[DIM]))


@entry
def guard_best(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, F: Floats, straight: bool, out: Floats
) -> bool:
    if not holds(flags, floats, ints) or table.shape[0] < 1 or table.shape[1] < COLUMNS:
        return False
    d = flags[DIM]
    return bool(out.size == d and scratch.size >= index_form_size(d) and spans(F, straight, d))


def guard_learn(family: str) -> Any:
    """That of the lessons of a family."""
    return entry(bind(_learn, f"guard_learn_{family}", need_of=NEEDS[family]))


def guard_adapt(family: str) -> Any:
    """That of lessons that MASTER's tests follow."""
    return entry(bind(_adapt, f"guard_adapt_{family}", need_of=NEEDS[family]))


def guard_play(family: str, engine: str = "plain") -> Any:
    """That of the rounds of a family by an engine."""
    pieces = {"need_of": NEEDS[family], "round_size": ROUNDS[engine]}
    return entry(bind(_play, f"guard_play_{family}_{engine}", **pieces))


# ------------------------------------------------------------------------------------------ arrays without a state


@piece
def spans(F: Floats, straight: bool, d: int) -> bool:
    """Whether F is a matrix of so many rows and columns; one number where it is straight."""
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
