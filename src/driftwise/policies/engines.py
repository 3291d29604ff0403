"""By which engine rounds are played: one table, asked by policies, simulations and benchmarks.

An engine plays the same bits as the plain one, faster, for the pieces that it declares: families, rules, memories,
radii, kinds of sets. A policy with a piece that an engine does not declare is played by the next one of the table, and
by the plain engine in the end, which plays everything. Sizes say which of those that fit is the fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from driftwise._internal.compiling import compiles
from driftwise._internal.shipped import code_of
from driftwise.kernels import point, rounds, tiled, trials
from driftwise.kernels.entries import LIST
from driftwise.kernels.linear import CONSTANT, LINEAR, WEIGHTED
from driftwise.kernels.point import Point
from driftwise.kernels.rounds import Family
from driftwise.kernels.tiles import WORTH_TILES

# Arms from which a round goes by tiles; features and multiply-adds n·d² from which it is lazy where it can be.
TILED_ARMS = 8
LAZY_DIM, LAZY_WORK = 12, 20_000
# Rounds below which carrying widths does not pay; a stretch of none is what has an entry compiled.
LAZY_ROUNDS = 16
# Those from which a live choice goes by tiles where numba compiles: below, what it spares is little beside a first use.
TILED_WORK = 20_000
# Beyond these docs/lazy.md proves nothing: a smaller ridge or weight, longer arms.
LEAST_RIDGE, LEAST_GAMMA, MOST_LENGTH = 1e-100, 1e-6, 1e70
# Eight trials at a time take as long as two or three one by one: they go together from so many on, for every thread.
FEWEST = 4
# Beyond so many features what eight trials have to remember leaves the fastest cache.
MOST_FEATURES = 20


class Sizes(NamedTuple):
    """What is to be played: sets of arms (1 where they stay), features, arms, rounds, trials for a thread."""

    sets: int
    dim: int
    arms: int
    rounds: int
    trials: int = 1


class Engine(NamedTuple):
    """An engine: the pieces that it binds the loop to, what it declares to know (None is everything), which numbers it
    is proven for, and the sizes for which it is the fastest of those that fit."""

    name: str
    pieces: Callable[[Family], dict[str, Callable[..., Any]]]
    families: tuple[Family, ...] | None = None
    rules: tuple[int, ...] | None = None
    memories: tuple[int, ...] | None = None
    radii: tuple[int, ...] | None = None
    fresh: bool = True  # whether every round may have a set of its own
    plays_eight: bool = False  # whether it plays several trials at once, in states of its own
    features: tuple[float, float] = (1, math.inf)  # it plays from so many on, and fewer than so many
    proves: Callable[[Point], bool] = lambda at: True
    worth: Callable[[Sizes], bool] = lambda sizes: True

    def knows(self, family: Family, at: Point) -> bool:
        """Whether it plays these pieces."""
        declared = (point.RULE, self.rules), (point.MEMORY, self.memories), (point.RADIUS, self.radii)
        pieces = all(known is None or int(at.flags[place]) in known for place, known in declared)
        return (self.families is None or family in self.families) and pieces and self.proves(at)


def _carries(at: Point) -> bool:
    """Whether widths can be carried."""
    row = at.table[0]
    fades = at.flags[point.MEMORY] != point.FADE or row[point.GAMMA] >= LEAST_GAMMA
    return bool(fades and row[point.LAM] >= LEAST_RIDGE and row[point.L] <= MOST_LENGTH)


def _lazy_pays(sizes: Sizes) -> bool:
    few = 0 < sizes.rounds < LAZY_ROUNDS or sizes.arms < TILED_ARMS
    return sizes.dim >= LAZY_DIM and sizes.arms * sizes.dim * sizes.dim >= LAZY_WORK and not few


PLAIN = Engine("plain", rounds.plain)
TILED = Engine(
    "tiled", tiled.tiled, (LINEAR,), rules=(point.ONE_MATRIX,),
    features=(1, WORTH_TILES), worth=lambda sizes: sizes.arms >= TILED_ARMS,
)  # fmt: skip
TILED_WIDE = TILED._replace(name="tiled_wide", pieces=tiled.tiled_wide, features=(WORTH_TILES, math.inf))
# Memories that take observations back one by one leave no bound.
LAZY = Engine(
    "lazy", tiled.lazy, (LINEAR,), (point.ONE_MATRIX,), (point.KEEP, point.FADE, point.RESTART),
    fresh=False, proves=_carries, worth=_lazy_pays,
)  # fmt: skip
# Eight trials share one radius, which data may not change.
EIGHT = Engine(
    "eight", trials.eight_trials, (LINEAR,), (point.ONE_MATRIX, point.TWO_MATRIX),
    (point.KEEP, point.FADE, point.RESTART), (WEIGHTED, CONSTANT), fresh=False, plays_eight=True,
    worth=lambda sizes: sizes.dim <= MOST_FEATURES and sizes.trials >= FEWEST,
)  # fmt: skip
ENGINES = (EIGHT, LAZY, TILED, TILED_WIDE, PLAIN)

_forced: str | None = None
_without: tuple[str, ...] = ()


@contextmanager
def forced(engine: str | None, without: tuple[str, ...] = ()) -> Iterator[None]:
    """For comparisons: this engine wherever it fits, whatever the size, and the next of the table where it does not.

    None leaves it to sizes. Engines in `without` are not played.
    """
    global _forced, _without
    before = _forced, _without
    _forced, _without = engine, without
    try:
        yield
    finally:
        _forced, _without = before


def fitting(family: Family, at: Point, sizes: Sizes) -> list[Engine]:
    """The engines that play these pieces on such sets, the plain one last."""
    able = [one for one in ENGINES if (one.fresh or sizes.sets == 1) and (sizes.trials > 1 or not one.plays_eight)]
    known = [one for one in able if one.knows(family, at) and one.name not in _without and _ready(one, family)]
    return [one for one in known if one.features[0] <= sizes.dim < one.features[1]]


def _ready(engine: Engine, family: Family) -> bool:
    """Whether its loop can be compiled here or is in the list; the plain engine says what is missing."""
    return compiles() or engine is PLAIN or _listed(engine, family) in LIST


def _listed(engine: Engine, family: Family) -> str:
    return f"play_{family.name}_{engine.name}"


def engine_of(family: Family, at: Point, sizes: Sizes) -> Engine:
    """The engine that plays: the fastest of those that fit."""
    fits = fitting(family, at, sizes)
    if _forced is None:
        return next(one for one in fits if one.worth(sizes))
    names = [one.name for one in ENGINES]
    return next(one for one in fits if names.index(one.name) >= names.index(_forced))


@cache
def _loop(engine: Engine, family: Family) -> Callable[..., Any]:
    return rounds.play(f"play_{family.name}_{engine.name}", **engine.pieces(family))


def bound(engine: Engine, family: Family, at: Point) -> Callable[..., Any]:
    """The loop bound to an engine's pieces for a policy of a family; without numba the one of the list, which asks the
    flags."""
    listed = _listed(engine, family)
    if not compiles() and listed in LIST:
        return LIST[listed].call
    return _loop(engine, family.bound(family, at.flags))


def many(family: Family, at: Point, dim: int) -> float:
    """The arms from which a live choice goes by tiles; where their entry has to be compiled, more."""
    work = 0 if code_of("score_tiled_") else TILED_WORK
    return max(TILED_ARMS, work / (dim * dim)) if TILED.knows(family, at) else math.inf
