"""Binding: one function, written with names for its pieces, becomes another function with those pieces in it.

Function arguments defeat numba's cache, and flags compile everything that any policy might need. A function whose
global names are replaced has the same code, caches under its own name, and compiles only what it plays.

    step_ = unbound("step_", "moves the state by a tick")

    def _run(state): ...  # calls step_(state)

    run_fade = entry(bind(_run, "run_fade", step_=fade_step_))

numba finds a cached function by its file, first line and name. Two bindings of one function therefore need two names.
The globals are copied when the function is bound: bind below everything that the function uses.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from driftwise.kernels.cut import written


class Unbound:
    """The place of a piece that `bind` has to fill."""

    def __init__(self, name: str, what: str) -> None:
        self.name, self.what = name, what

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name} is a piece that {self.what}; bind it before you call this function")


def unbound(name: str, what: str) -> Any:
    """A placeholder for a piece, for the module that holds the function: calling it raises."""
    return Unbound(name, what)


def bind(function: Callable[..., Any], name: str, **pieces: Any) -> Callable[..., Any]:
    """The function with its global names bound to these pieces, undecorated, under a name of its own.

    A bound function may be a piece of another one. A decorated function is bound by the Python function it was made of.
    A piece that is missing, or that the function does not name, is refused.
    """
    plain: Any = getattr(function, "py_func", function)
    known = {**plain.__globals__, **pieces}
    used = _names(plain.__code__)
    missing = [one for one in sorted(used) if isinstance(known.get(one), Unbound)]
    if missing:
        what = "; ".join(f"{one} {known[one].what}" for one in missing)
        raise TypeError(f"{name} lacks the pieces {', '.join(missing)} of {plain.__qualname__}: {what}")
    unused = sorted(set(pieces) - used)
    if unused:
        raise TypeError(f"{name} was given {', '.join(unused)}, which {plain.__qualname__} does not name")
    made = FunctionType(plain.__code__, known, name, plain.__defaults__, plain.__closure__)
    made.__qualname__, made.__module__, made.__doc__ = name, plain.__module__, plain.__doc__
    made.__kwdefaults__, made.__annotations__ = plain.__kwdefaults__, plain.__annotations__
    return made


def bind_named(function: Callable[..., Any], name: str, **pieces: Any) -> Callable[..., Any]:
    """`bind` with those of these pieces that the function names."""
    used = _names(getattr(function, "py_func", function).__code__)
    return bind(function, name, **{one: piece for one, piece in pieces.items() if one in used})


def branching(name: str, flag: int, own: Mapping[int, Callable[..., Any]], other: Callable[..., Any]) -> Any:
    """A function that branches at run time on a policy's flag: `own` by its values, `other` for all other values.

    All take the arguments of `other`, one of which is `point`. The text has a line per value: a chain of functions,
    each for one value, has the same code and takes longer to compile.
    """
    arguments = ", ".join(inspect.signature(getattr(other, "py_func", other)).parameters)
    lines = "".join(f"    if asked == {value}:\n        return own{value}({arguments})\n" for value in own)
    text = f"def {name}({arguments}):\n    asked = point.flags[{flag}]\n{lines}    return other({arguments})\n"
    return written(text, name, {"other": other, **{f"own{value}": one for value, one in own.items()}})


@cache
def _names(code: CodeType) -> frozenset[str]:
    """The global names that code loads, functions inside it included. Code is bound several times, and dis is slow."""
    steps = dis.get_instructions(code)
    loaded = frozenset(str(step.argval) for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return loaded.union(*(_names(one) for one in code.co_consts if isinstance(one, CodeType)))
