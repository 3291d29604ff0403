"""The decorators that mark what is compiled. A decorated function runs as shipped machine code, by numba, or as Python.

A decorated function is a `Kernel`. Compiled callers see its numba function; numba is imported when the first one is
needed (jit.py). `Kernel.call` decides what runs when Python calls it: machine code if the wheel has some for this
processor (shipped.py), or else what numba compiles if it is installed, or else Python. All three give the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any, TypeVar, cast, get_type_hints

from driftwise._internal import compile_notice
from driftwise._internal.python_first import Spent, as_python, tried_as_python
from driftwise.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or 0))
"""Whether everything runs as Python, as some tests do."""


@cache
def can_compile() -> bool:
    """Whether numba is installed and can compile loops and functions of the user's own."""
    try:
        found = find_spec("numba")
    except ImportError:  # a finder of somebody's forbids it
        return False
    return not INTERPRETED and found is not None and found.origin is not None  # else it is only a folder


def compiles() -> bool:
    """Whether loops for one policy's pieces can be made here, compiled or interpreted. If not, those of the wheel are
    used.
    """
    return INTERPRETED or can_compile()


def compiler(what: str) -> Any:
    """The module jit.py, or a BadInput if numba is not installed."""
    try:
        return import_module("driftwise._internal.jit")
    except ImportError:
        raise _missing(what) from None


def need_compiler(what: str) -> None:
    """Raise BadInput if numba, which this needs, is not installed."""
    if not compiles():
        raise _missing(what)


def _missing(what: str) -> BadInput:
    found = import_module("driftwise._internal.shipped").shipped()
    got = "no numba" if found.module else f"no numba and no machine code: {found.why}"
    return BadInput(what, got, "numba, which compiles it", 'pip install "driftwise[jit]"')


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
        self.shipped: Callable[..., Any] | None = None  # machine code, if entries.py found some
        self.spent, self.late = Spent(function.__name__), False  # the time as Python, and whether calls begin so

    @property
    def decorated(self) -> str:
        """How it is compiled, in text."""
        return f"{self.options}{self.inside}{self.polished}{self.plain}{self.rolled}"

    @cached_property
    def dispatcher(self) -> Any:
        """numba's function for compiled callers."""
        return compiler(self.__name__).dispatcher_of(self)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function that runs when Python calls it."""
        if self.shipped is None and import_module("driftwise._internal.shipped").shipped().module is not None:
            import_module("driftwise.kernels.entries")  # gives entries their machine code
        if self.shipped is not None:
            return self.shipped
        if self.plain:
            return self.py_func
        if not can_compile():
            compile_notice.say_slow(import_module("driftwise._internal.shipped").shipped().why)
            return self._call_as_python
        if self.late and self.spent.is_early():
            return self._call_first
        called: Callable[..., Any] = compiler(self.__name__).called_of(self)
        return called

    @cached_property
    def python(self) -> Callable[..., Any]:
        """The function as Python, as are all that it calls: nothing is compiled, and the bits are the same."""
        return as_python(cast(FunctionType, self.py_func))

    def is_early(self, steps: int) -> bool:
        """Whether so many steps as Python take less time than compiling would."""
        ready = self.shipped is not None or "call" in vars(self)
        return not ready and can_compile() and self.spent.is_early(steps=steps)

    def run_as_python(self, args: tuple[Any, ...]) -> tuple[bool, Any]:
        """Whether it could run as Python, and what it returned."""
        return tried_as_python(self.python, args, self.spent)

    def _call_as_python(self, *args: Any) -> Any:
        """Run as Python, where there is neither numba nor machine code."""
        done, found = self.run_as_python(args)
        if not done:  # Python raised where compiled code gives inf or NaN
            raise _missing(self.__name__)
        return found

    def _call_first(self, *args: Any) -> Any:
        """Run as Python while that takes less time than compiling."""
        if self.spent.is_early(args):
            done, found = self.run_as_python(args)
            if done:
                return found
        self.spent.ended = True
        if vars(self).get("call") == self._call_first:  # callers that hold this method come here later too
            self.__dict__.pop("call", None)  # another thread may have been here first
        return self.call(*args)

    def ship(self, code: Callable[..., Any]) -> None:
        """From now on, calls from Python run this machine code."""
        self.shipped = code
        self.__dict__.pop("call", None)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def targetoptions(self) -> Any:
        """numba reads the inlining options here."""
        return self.dispatcher.targetoptions

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name and not the code: another process finds its own."""
        return _named, (self.__module__, self.__name__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __repr__(self) -> str:
        return f"<{self.__name__}, compiled on first use>"


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


class Inside:
    """A function that Python runs as written, and for which compiled code uses special instructions (intrinsics.py has
    them under the same name)."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        update_wrapper(self, function)
        self.py_func, self.name = function, name

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)

    @property
    def _numba_type_(self) -> Any:
        return compiler(self.name).type_of(self.name)


def intrinsic(function: Callable[..., Any], name: str) -> Any:
    """A function for which compiled code uses special instructions."""
    return function if INTERPRETED else Inside(function, name)


_kinds: dict[type, list[Any]] = {}


def bundles_in(bundle: type) -> list[Any]:
    """The bundle that each field of a bundle is, or None for an array."""
    if bundle not in _kinds:
        kinds = get_type_hints(bundle).values()
        _kinds[bundle] = [kind if isinstance(kind, type) and issubclass(kind, tuple) else None for kind in kinds]
    return _kinds[bundle]


def at_hand(function: F) -> F:
    """The function that a kernel runs, for callers that call it often."""
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
    """A kernel that Python calls with everything it needs, once per round or once per run. It may not allocate.

    The rule for pieces that return views applies here too.
    """
    return _kernel(function, rolled=True, _nrt=False)


def stored_as(name: str) -> Callable[[F], F]:
    """Name a function that a factory makes, so that what numba stores of it is found again."""

    def made(function: F) -> F:
        function.__name__ = function.__qualname__ = name
        return function

    return made


def late(function: F) -> F:
    """Let a kernel that Python calls run as Python for about a second before it is compiled (python_first.py)."""
    if isinstance(function, Kernel):
        function.late = True
    return function


def routine(function: F) -> F:
    """A larger kernel for the inside of a round, without reference counts. It may not allocate, and is not inlined.

    numba would inline it nevertheless wherever its caller is inlined. With everything in one function, compiling took
    two to three times as long.
    """
    return _kernel(function, inside=True, forceinline=False, _nrt=False)


def piece(function: F) -> F:
    """A kernel for the inside of a round: always inlined and without reference counts, so it may not allocate.

    At d = 2, passing arrays and counting references to them took longer than the arithmetic. A piece that returns views
    (kernels/cut.py) returns memory that it does not own: pieces, routines and entries may call it, Python may not.
    """
    return _kernel(function, inside=True, forceinline=True, _nrt=False)


def loop(function: F) -> F:
    """A piece that is optimised before it is inlined: inside a long caller the optimiser does not recognise its loops.

    Use it only where that was measured to matter, because it makes compiling slow.
    """
    return _kernel(function, inside=True, polished=True, forceinline=True, _nrt=False)


def part(function: F) -> F:
    """A section of a longer kernel, written separately for readability. It is inlined, so it is not compiled twice.

    numba optimises a function together with everything it calls, and again for every caller, so depth is expensive.
    """
    return _kernel(function, inline="always")


def formula(function: F) -> F:
    """A scalar formula: compiled inside kernels, plain Python elsewhere, where compiling would take longer."""
    return _kernel(function, inside=True, plain=True)


def scalar(function: F) -> F:
    """A formula that reads constant tables (_internal/elementary.py). It may not allocate."""
    return _kernel(function, inside=True, plain=True, _nrt=False)


def inner(function: F) -> F:
    """A scalar that is always inlined."""
    return _kernel(function, inside=True, plain=True, forceinline=True, _nrt=False)


def outside(function: F) -> F:
    """A routine for calls from Python, beside the one that compiled code calls."""
    return _kernel(getattr(function, "py_func", function), _nrt=False)
