"""The choice of the engine that plays rounds: one table for policies, simulations and benchmarks.

An engine plays the same bits as the plain one, faster, for the pieces that it declares: families, rules, memories,
radii, kinds of sets. A policy with a piece that an engine does not declare is played by the next engine of the table.
The plain engine, which plays everything, is the last. Among the engines that fit, sizes decide which is fastest.
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
from driftwise.kernels.rounds import AnyFamily, AnyPieces
from driftwise.kernels.tiles import WORTH_TILES

# The number of arms from which rounds use tiles; the features and multiply-adds n·d² from which they are lazy if
# possible.
TILED_ARMS = 8
LAZY_DIM, LAZY_WORK = 12, 20_000
# The rounds below which carrying widths does not pay. A stretch of no rounds only compiles an entry.
LAZY_ROUNDS = 16
# The arms from which a live choice uses tiles if numba compiles: with fewer, it saves little compared with the compile.
TILED_WORK = 20_000
# The proof in docs/lab/lazy.md does not cover a smaller ridge or weight, or longer arms.
LEAST_RIDGE, LEAST_GAMMA, MOST_LENGTH = 1e-100, 1e-6, 1e70
# Eight trials together take as long as two or three one by one: from this number per thread on they are played
# together.
FEWEST = 4
# With more features the data of eight trials do not fit in the fastest cache.
MOST_FEATURES = 20


class Sizes(NamedTuple):
    """The sizes of a run: sets of arms (1 if they stay), features, arms, rounds, trials per thread."""

    sets: int
    dim: int
    arms: int
    rounds: int
    trials: int = 1


class Engine(NamedTuple):
    """An engine: the pieces of which it makes the loop, what it declares (None: everything), the numbers for which it
    is proven, and the sizes for which it is the fastest of those that fit."""

    name: str
    pieces: Callable[[AnyFamily], AnyPieces]
    families: tuple[AnyFamily, ...] | None = None
    rules: tuple[int, ...] | None = None
    memories: tuple[int, ...] | None = None
    radii: tuple[int, ...] | None = None
    fresh: bool = True  # whether every round may have another set
    plays_eight: bool = False  # whether it plays several trials together, in its own states
    features: tuple[float, float] = (1, math.inf)  # the least number of features, and the first that is too large
    proves: Callable[[Point], bool] = lambda at: True
    worth: Callable[[Sizes], bool] = lambda sizes: True

    def knows(self, family: AnyFamily, at: Point) -> bool:
        """Whether it declares these pieces."""
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
# Memories that remove observations one by one allow no bound.
LAZY = Engine(
    "lazy", tiled.lazy, (LINEAR,), (point.ONE_MATRIX,), (point.KEEP, point.FADE, point.RESTART),
    fresh=False, proves=_carries, worth=_lazy_pays,
)  # fmt: skip
# Eight trials share one radius, which must not depend on data.
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
    """For comparisons: use this engine wherever it fits, for any size, and the next of the table where it does not.

    None lets sizes decide. Engines in `without` are not used.
    """
    global _forced, _without
    before = _forced, _without
    _forced, _without = engine, without
    try:
        yield
    finally:
        _forced, _without = before


def setting() -> tuple[str | None, tuple[str, ...]]:
    """What `forced` has set."""
    return _forced, _without


def fitting(family: AnyFamily, at: Point, sizes: Sizes) -> list[Engine]:
    """The engines that play these pieces on such sets, the plain one last."""
    able = [one for one in ENGINES if (one.fresh or sizes.sets == 1) and (sizes.trials > 1 or not one.plays_eight)]
    known = [one for one in able if one.knows(family, at) and one.name not in _without]
    fits = [one for one in known if one.features[0] <= sizes.dim < one.features[1]]
    # As Python, where lanes are arrays, the plain engine is the fastest.
    return [one for one in fits if compiles() or one is PLAIN or code_of(_listed(one, family)) is not None]


def _listed(engine: Engine, family: AnyFamily) -> str:
    return f"play_{family.name}_{engine.name}"


def engine_of(family: AnyFamily, at: Point, sizes: Sizes) -> Engine:
    """The engine to use: the fastest of those that fit."""
    fits = fitting(family, at, sizes)
    if _forced is None:
        return next(one for one in fits if one.worth(sizes))
    names = [one.name for one in ENGINES]
    return next(one for one in fits if names.index(one.name) >= names.index(_forced))


@cache
def _loop(engine: Engine, family: AnyFamily) -> Callable[..., Any]:
    return rounds.playing(_listed(engine, family), engine.pieces(family))


def bound(engine: Engine, family: AnyFamily, at: Point) -> Callable[..., Any]:
    """The loop made of an engine's pieces for a policy of a family. The loop of the list, which branches on the flags,
    is played where it is machine code, and where nothing compiles."""
    listed = _listed(engine, family)
    if listed in LIST and (code_of(listed) is not None or not compiles()):
        return LIST[listed].call
    return _loop(engine, family.bound(family, at.flags))


def many(family: AnyFamily, at: Point, dim: int) -> float:
    """The number of arms from which a live choice uses tiles; larger if the entry must be compiled."""
    work = 0 if code_of("score_tiled_") else TILED_WORK
    return max(TILED_ARMS, work / (dim * dim)) if TILED.knows(family, at) else math.inf
