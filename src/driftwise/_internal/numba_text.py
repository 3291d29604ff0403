"""What numba does beyond what is needed here, left out: half of the time of a first use and of a later start.

It optimises each function it meets and makes machine code of it, also of one that is then pasted into its caller, where
it is optimised again. Here a function for the inside of others ends as LLVM's text; what is compiled with it is
optimised as a whole, once, and alone becomes machine code. When Python does call one, as tests do, it is compiled as
any other. All of it is numba's private side: where that looks otherwise, things are left as numba does them, which
takes longer and gives the same numbers.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import numba

JITCodeLibrary: Any = object
Compiler: Any = object
_runtime: Any = None
_llvm: Any = None
with contextlib.suppress(ImportError):  # a numba built otherwise
    _dynfunc: Any = importlib.import_module("numba._dynfunc")
    JITCodeLibrary = importlib.import_module("numba.core.codegen").JITCodeLibrary
    Compiler = importlib.import_module("numba.core.compiler").Compiler
    _runtime = importlib.import_module("numba.core.runtime").rtsys
    _llvm = importlib.import_module("llvmlite.binding")

_RELIED_ON = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "finalize")

possible = all(hasattr(JITCodeLibrary, name) for name in _RELIED_ON) and hasattr(Compiler, "compile_extra")
tunable = possible and hasattr(_llvm, "create_pipeline_tuning_options")


class _Text(JITCodeLibrary):  # type: ignore[misc]
    """A library of code that is linked into others and never run; optimising it is left to them."""

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Polished(_Text):
    """The same, optimised before it is linked in."""

    def _optimize_final_module(self) -> None:
        JITCodeLibrary._optimize_final_module(self)


class _Rolled(JITCodeLibrary):  # type: ignore[misc]
    """Machine code whose loops are not unrolled: half of the code and of the time, and no slower in rounds.

    Where unrolling was seen to matter a `loop` is unrolled before it is linked in.
    """

    def _optimize_final_module(self) -> None:
        tuned = _llvm.create_pipeline_tuning_options()
        tuned.speed_level, tuned.loop_unrolling, tuned.loop_interleaving = 3, False, False
        passes = _llvm.create_pass_builder(self._codegen._tm, tuned)
        passes.getModulePassManager().run(self._final_module, passes)


class Rolled(Compiler):  # type: ignore[misc]
    """numba's compiler for functions that Python calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _Rolled(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


ROLLED: dict[str, Any] = {"pipeline_class": Rolled} if tunable else {}


class _Inside(Compiler):  # type: ignore[misc]
    """numba's compiler up to the text."""

    library = _Text

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state.targetctx.get_executable = _nothing_to_run  # on numba's own copy for this function

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _InsideLoop(_Inside):
    library = _Polished


def _nothing_to_run(library: Any, fndesc: Any, env: Any) -> Any:
    """numba knows a compiled function by its entry: this one leads nowhere, and a `Kernel` (compiling.py) sees to it
    that nobody goes there."""
    return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "inside", 0, env, (library,))


def text_of(function: Callable[..., Any], polished: bool, options: dict[str, Any]) -> Any:
    """The function for compiled callers; Python never calls it."""
    pipeline = _InsideLoop if polished else _Inside
    compiler: Any = numba.njit
    return compiler(no_cpython_wrapper=True, pipeline_class=pipeline, **options)(function)


def load_lightly(compiled: Any) -> None:
    """Have code from the cache loaded without all that compiling would need, which takes longer than importing numba.

    Before it compiles, numba prepares itself anyway.
    """
    kept: Any = getattr(compiled, "_cache", None)
    if not all(hasattr(kept, name) for name in ("_load_overload", "_guard_against_spurious_io_errors")) or not _runtime:
        return

    def load(signature: Any, target: Any) -> Any:
        _runtime.initialize(target)
        with kept._guard_against_spurious_io_errors():
            return kept._load_overload(signature, target)

    kept.load_overload = load
