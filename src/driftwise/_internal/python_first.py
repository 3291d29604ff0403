"""Entries run as Python before they are compiled: a short run then needs neither compiler nor numba.

Compiling an entry takes 2 to 15 seconds, and a round of a simulation as Python takes a third of a millisecond to a few
milliseconds. An entry of which numba has stored no compiled code therefore runs as Python until that has taken
DRIFTWISE_PATIENCE seconds of processor time, 1 if the variable is not set; 0 compiles at once. Both give the same bits.
A server, which must not compile between requests, and benchmarks call `compile_at_once`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache, cached_property
from types import CellType, FunctionType
from typing import Any

import numpy as np

from driftwise._internal.sources import names_in, was_compiled
from driftwise.errors import BadInput

_MOST_NUMBERS = 20_000  # of a call's arrays: with more of them a single call could take long
_STEP = 0.25e-6  # seconds, about, of an operation on a number of an array
_at_once = False


def compile_at_once() -> None:
    """From now on, compile every entry before its first call."""
    global _at_once
    _at_once = True


@cache
def patience() -> float:
    """The seconds for which an entry runs as Python."""
    given = os.environ.get("DRIFTWISE_PATIENCE", "1")
    try:
        return max(0.0, float(given))
    except ValueError:
        raise BadInput("DRIFTWISE_PATIENCE", given, "seconds, 0 or more", "unset it") from None


class Spent:
    """The time for which an entry has run as Python."""

    def __init__(self, name: str) -> None:
        self.name, self.seconds, self.ended = name, 0.0, False

    def is_early(self, args: tuple[Any, ...] = (), steps: int = 0) -> bool:
        """Whether a call with these arguments, or so many steps, should run as Python."""
        if self.ended or _at_once or self.seconds + steps * _STEP >= patience() or self._stored:
            return False
        return bool(sum(one.size for one in arrays_of(args)) <= _MOST_NUMBERS)

    @cached_property
    def _stored(self) -> bool:
        return was_compiled(self.name)


def arrays_of(args: tuple[Any, ...]) -> list[Any]:
    """The arrays among arguments, those of bundles included."""
    found: list[Any] = []
    for one in args:
        if isinstance(one, tuple):
            found += arrays_of(one)
        elif isinstance(one, np.ndarray):
            found.append(one)
    return found


def tried_as_python(run: Callable[..., Any], args: tuple[Any, ...], spent: Spent) -> tuple[bool, Any]:
    """Whether the call ran as Python, and what it returned, in the types that compiled code returns.

    Where Python raises and compiled code gives inf or NaN, the arrays are put back. The same happens where the user
    interrupts the call: a state is never left with half of an update. Compiled code cannot be interrupted.
    """
    arrays = [one for one in arrays_of(args) if one.flags.writeable]
    before = [one.copy() for one in arrays]
    begun = time.thread_time()
    try:
        with np.errstate(all="ignore"):
            return True, _returned(run(*args))
    except BaseException as error:
        for array, one in zip(arrays, before, strict=True):
            array[...] = one
        if not isinstance(error, (ArithmeticError, ValueError)):
            raise
        return False, None
    finally:
        spent.seconds += time.thread_time() - begun


def _returned(found: Any) -> Any:
    if isinstance(found, tuple):
        parts = [_returned(one) for one in found]
        return type(found)._make(parts) if hasattr(found, "_make") else tuple(parts)
    return found.item() if isinstance(found, np.generic) else found


_copies: dict[FunctionType, FunctionType] = {}


def as_python(function: FunctionType) -> FunctionType:
    """A copy of the function that calls Python functions where it names kernels."""
    if function not in _copies:
        known, cells = dict(function.__globals__), function.__closure__ or ()
        own = tuple(CellType() for _ in cells)
        made = FunctionType(function.__code__, known, function.__name__, function.__defaults__, own)
        _copies[function] = made
        for name in names_in(function.__code__):
            if name in known:
                known[name] = _python(known[name])
        for cell, one in zip(own, cells, strict=True):
            cell.cell_contents = _python(one.cell_contents)
    return _copies[function]


def _python(one: object) -> object:
    """The Python function of a kernel or of special instructions; anything else as it is."""
    function = getattr(one, "py_func", None)
    return as_python(function) if isinstance(function, FunctionType) else one
