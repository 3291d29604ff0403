"""Eight doubles side by side: one 512-bit register where the machine has them, two or four smaller ones elsewhere.

`load` eight consecutive numbers of an array, combine them with each other or with a number by + - * / and the functions
below, `store_` them. Four eights at once (`load_four`) share loads and wait less; beside them, eight lanes count as
four times the same. Every lane is rounded after every operation, as a single number is: nothing is contracted or
reordered, so a lane has the bits that it would have alone. Interpreted, lanes are a NumPy array (8,) or (4, 8).

An index is that of the first of the eight; zeros at its end may be left out: of an array (d, d, 8) it is (i, j).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise._internal.compiling import intrinsic

ndarray: Any = np.ndarray

Lanes = Any  # a type of ours where compiled, a NumPy array where interpreted

EIGHT, FOUR = 8, 4


class _Interpreted(ndarray):  # type: ignore[misc]
    """Lanes whose `a -= b` is `a = a - b`, as it is where compiled."""

    __iadd__ = ndarray.__add__
    __isub__ = ndarray.__sub__
    __imul__ = ndarray.__mul__
    __itruediv__ = ndarray.__truediv__


def _numbers(array: npt.NDArray[Any], index: Any, count: int) -> npt.NDArray[Any]:
    """The view of so many numbers that begins at an index."""
    assert array.flags.c_contiguous and array.dtype == np.float64, "lanes live in contiguous arrays of doubles"
    given = index if isinstance(index, tuple) else (index,)
    place = 0
    for size, number in zip(array.shape, (*given, *[0] * (array.ndim - len(given))), strict=True):
        assert 0 <= number < size, "an index out of range"
        place = place * size + int(number)
    assert place + count <= array.size, "so many numbers are not left there"
    return array.reshape(-1)[place : place + count]


def _load(array: npt.NDArray[Any], index: Any) -> Lanes:
    return _numbers(array, index, EIGHT).copy().view(_Interpreted)


def _load_four(array: npt.NDArray[Any], index: Any) -> Lanes:
    return _numbers(array, index, FOUR * EIGHT).reshape(FOUR, EIGHT).copy().view(_Interpreted)


def _store_(array: npt.NDArray[Any], index: Any, lanes: Lanes) -> None:
    _numbers(array, index, lanes.size)[:] = lanes.reshape(-1)


def _eight(number: float) -> Lanes:
    return np.full(EIGHT, float(number)).view(_Interpreted)


def _four_eights(number: float) -> Lanes:
    return np.full((FOUR, EIGHT), float(number)).view(_Interpreted)


def _roots(lanes: Lanes) -> Lanes:
    return np.sqrt(lanes)


def _where_above(one: Lanes, other: Lanes, then: Lanes, otherwise: Lanes) -> Lanes:
    chosen: Lanes = np.where(np.greater(one, other), then, otherwise)
    return chosen.view(_Interpreted)


load: Any = intrinsic(_load, "load")
"""load(array, index): eight numbers from there on. Unchecked where compiled."""
load_four: Any = intrinsic(_load_four, "load_four")
"""load_four(array, index): four eights from there on. Unchecked where compiled."""
store_: Any = intrinsic(_store_, "store_")
"""store_(array, index, lanes): the lanes from there on. Unchecked where compiled."""
eight: Any = intrinsic(_eight, "eight")
"""eight(number): it in eight lanes."""
four_eights: Any = intrinsic(_four_eights, "four_eights")
"""four_eights(number): it in four times eight lanes."""
roots: Any = intrinsic(_roots, "roots")
"""roots(lanes): the square root of each."""
where_above: Any = intrinsic(_where_above, "where_above")
"""where_above(a, b, x, y): x in the lanes where a > b, otherwise y."""
