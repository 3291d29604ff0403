"""Scratch of kernels, declared once and cut out of one packed array.

A declaration is a NamedTuple, and a function from sizes that a caller knows to the shape of each field:

    class ScoreScratch(NamedTuple):
        mean: Floats
        Y: Floats
        slots: LaneScratch  # a declaration within

    @formula
    def score_shapes(d: int, n: int) -> Shapes:
        return (n,), (d, n), lane_shapes(d, 1)

    score_scratch_size, score_scratch_of = carved(ScoreScratch, score_shapes)

One field follows the other, each from a cache line on. `score_scratch_of(scratch, d, n)` cuts views from the beginning
of scratch; what `carved_from` makes, from a place that is named first. Compiled code does not check that scratch is
long enough: the code that allocates it uses the size of the same declaration. Interpreted, a cut that is too long
raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

from driftwise._internal.compiling import bundles_in, intrinsic
from driftwise.kernels import formula, piece
from driftwise.kernels.cut import Floats, interpreted_cut

T = TypeVar("T")
Sizes = TypeVarTuple("Sizes")
Shapes = tuple["int | Shapes", ...]

# The numbers of a cache line.
EIGHT = 8


@formula
def line(size: int) -> int:
    """The size rounded up to whole cache lines, so that what follows begins on one: loops over arms are a third slower
    if they cross lines."""
    return (size + 7) // 8 * 8


def _whole(size: int) -> int:
    return (size + 7) // 8 * 8


def interpreted_length(shapes: Any) -> int:
    """The numbers of an array of this shape, or of a declaration's fields."""
    if all(isinstance(one, tuple) for one in shapes):
        return sum(_whole(interpreted_length(one)) for one in shapes)
    return math.prod(shapes)


def interpreted_lengths(shapes: Any) -> tuple[int, ...]:
    return tuple(map(interpreted_length, shapes))


def interpreted_carve(bundle: type[T], packed: Floats, start: int, shapes: Any) -> T:
    fields = []
    for kind, shape in zip(bundles_in(bundle), shapes, strict=True):
        start = _whole(start)
        fields.append(interpreted_cut(packed, start, shape) if kind is None else
                      interpreted_carve(kind, packed, start, shape))  # fmt: skip
        start += interpreted_length(shape)
    return bundle(*fields)


numbers_of: Any = intrinsic(interpreted_length, "numbers_of")
"""numbers_of(shapes): how many numbers they take, the fields of a declaration each in whole cache lines."""
lengths: Any = intrinsic(interpreted_lengths, "lengths")
"""lengths(shapes): the numbers of each field."""
carve: Any = intrinsic(interpreted_carve, "carve")
"""carve(bundle, packed, start, shapes): the bundle of views of these shapes, one after the other."""


def carved(
    bundle: type[T], shapes: Callable[[*Sizes], Shapes]
) -> tuple[Callable[[*Sizes], int], Callable[[Floats, *Sizes], T]]:
    """The function of a declaration's size, and the piece that cuts it from the beginning of scratch."""

    @piece
    def of(scratch: Floats, *sizes: *Sizes) -> T:
        made: T = carve(bundle, scratch, 0, shapes(*sizes))
        return made

    return _size_of(shapes), of


def carved_from(
    bundle: type[T], shapes: Callable[[*Sizes], Shapes]
) -> tuple[Callable[[*Sizes], int], Callable[[Floats, int, *Sizes], T]]:
    """The same for a piece that cuts from a place of scratch on."""

    @piece
    def of(scratch: Floats, start: int, *sizes: *Sizes) -> T:
        made: T = carve(bundle, scratch, start, shapes(*sizes))
        return made

    return _size_of(shapes), of


def views(of: Callable[[*Sizes], T]) -> Callable[[*Sizes], T]:
    """The function that cuts, for Python: views that keep their array alive."""
    made: Callable[[*Sizes], T] = getattr(of, "py_func", of)
    return made


def _size_of(shapes: Callable[[*Sizes], Shapes]) -> Callable[[*Sizes], int]:
    @formula
    def size(*sizes: *Sizes) -> int:
        return int(numbers_of(shapes(*sizes)))

    return size
