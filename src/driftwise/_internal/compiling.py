"""The decorators that mark what is compiled, and who runs it: shipped machine code, numba, or Python.

A decorated function is a `Kernel`. Compiled callers see numba's function of it; numba is imported when the first one is
needed (jit.py). Where Python calls an entry of the closed list (kernels/entries.py), machine code from the wheel runs
if there is some for this processor (shipped.py). Both have the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from driftwise.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or 0))
"""Whether everything runs as Python, as tests ask for."""


@cache
def can_compile() -> bool:
    """Whether numba is there to compile loops and functions of the user's own."""
    found = find_spec("numba")
    return not INTERPRETED and found is not None and found.origin is not None  # a folder of that name is no package


def compiles() -> bool:
    """Whether loops for one policy's pieces can be made here, compiled or interpreted; otherwise the wheel's play."""
    return INTERPRETED or can_compile()


def compiler(what: str) -> Any:
    """jit.py, or the one sentence where numba is not installed."""
    try:
        return import_module("driftwise._internal.jit")
    except ImportError:
        raise _missing(what) from None


def need_compiler(what: str) -> None:
    """Refuse what only numba compiles, where it is not installed."""
    if not compiles():
        raise _missing(what)


def _missing(what: str) -> BadInput:
    return BadInput(what, "no numba", "numba, which compiles it", 'pip install "driftwise[jit]"')


class Kernel:
    """A function that is compiled when it is needed."""

    __name__: str

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], inside: bool = False, polished: bool = False,
        plain: bool = False, rolled: bool = False,
    ) -> None:  # fmt: skip
        update_wrapper(self, function)
        self.py_func, self.options = function, options
        self.inside, self.polished, self.plain, self.rolled = inside, polished, plain, rolled
        self.shipped: Callable[..., Any] | None = None  # machine code, where entries.py found some

    @cached_property
    def dispatcher(self) -> Any:
        """numba's function for compiled callers."""
        return compiler(self.__name__).dispatcher_of(self)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """What runs where Python calls it."""
        if self.shipped is None and import_module("driftwise._internal.shipped").shipped().module is not None:
            import_module("driftwise.kernels.entries")  # gives entries their machine code
        if self.shipped is not None:
            return self.shipped
        if self.plain:
            return self.py_func
        called: Callable[..., Any] = compiler(self.__name__).called_of(self)
        return called

    def ship(self, code: Callable[..., Any]) -> None:
        """From now on Python's calls run this machine code."""
        self.shipped = code
        self.__dict__.pop("call", None)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> Any:
        """By which numba knows what to paste in."""
        return self.dispatcher.targetoptions

    def __reduce__(self) -> tuple[Any, ...]:
        """A policy that travels to another process brings names along, not code."""
        return _named, (self.__module__, self.__name__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __repr__(self) -> str:
        return f"<{self.__name__}, compiled when it is needed>"


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


class Inside:
    """A function that Python runs as written, and for which compiled code has instructions of its own
    (intrinsics.py, by the same name)."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        update_wrapper(self, function)
        self.py_func, self.name = function, name

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)

    @property
    def _numba_type_(self) -> Any:
        return compiler(self.name).type_of(self.name)


def intrinsic(function: Callable[..., Any], name: str) -> Any:
    """A function with instructions of its own where it is compiled."""
    return function if INTERPRETED else Inside(function, name)


def at_hand(function: F) -> F:
    """What a function runs, for callers that call it often."""
    return cast(F, function.call) if isinstance(function, Kernel) else function


def _kernel(
    function: F, inside: bool = False, polished: bool = False, plain: bool = False, rolled: bool = False, **options: Any
) -> F:
    if INTERPRETED:
        return function
    return cast(F, Kernel(function, options, inside, polished, plain, rolled))


def kernel(function: F) -> F:
    """Compile a loop: cached, without the GIL, IEEE arithmetic kept as written (no fastmath, no contraction)."""
    return _kernel(function)


def entry(function: F) -> F:
    """A kernel that Python calls with all it needs, once a round or once a run: it may not allocate.

    What is said of pieces that return views holds here too.
    """
    return _kernel(function, rolled=True, _nrt=False)


def routine(function: F) -> F:
    """A larger kernel for the inside of a round, without reference counts: it may not allocate, and is not inlined.

    numba would paste it in all the same wherever its caller is pasted in. Where everything ended up in one function,
    compiling took two and three times as long.
    """
    return _kernel(function, inside=True, forceinline=False, _nrt=False)


def piece(function: F) -> F:
    """A kernel for the inside of a round: always inlined and without reference counts, so it may not allocate.

    At d = 2 handing on arrays and counting references to them took longer than the arithmetic. One that returns views
    (kernels/cut.py) hands out what it does not own: pieces, routines and entries may call it, never Python.
    """
    return _kernel(function, inside=True, forceinline=True, _nrt=False)


def loop(function: F) -> F:
    """A piece that is optimised before it is pasted in: inside a long caller the optimiser loses sight of its loops.

    Only where that was seen to matter: it is what takes the time in compiling.
    """
    return _kernel(function, inside=True, polished=True, forceinline=True, _nrt=False)


def part(function: F) -> F:
    """A stretch of one longer kernel, written apart to be read; pasted into it, so that it is not compiled twice.

    numba optimises a function together with everything below it, and again for every caller: depth costs.
    """
    return _kernel(function, inline="always")


def formula(function: F) -> F:
    """A scalar formula: compiled inside kernels, plain Python outside, where compiling would take longer."""
    return _kernel(function, inside=True, plain=True)


def scalar(function: F) -> F:
    """A formula that reads constant tables (_internal/elementary.py): it may not allocate."""
    return _kernel(function, inside=True, plain=True, _nrt=False)


def inner(function: F) -> F:
    """A scalar that is always inlined."""
    return _kernel(function, inside=True, plain=True, forceinline=True, _nrt=False)


def outside(function: F) -> F:
    """A routine as Python calls it, beside the one that compiled code calls."""
    return _kernel(getattr(function, "py_func", function), _nrt=False)
