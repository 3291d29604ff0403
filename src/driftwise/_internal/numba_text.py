"""Shortens numba's compile by half, for a first use and for a later start.

numba optimises every function and makes machine code of it, also of a function that it then inlines into a caller and
optimises again there. Here an inlined function stops as LLVM text. The entry that calls it is optimised once, as a
whole, and only the entry becomes machine code. When Python calls an inlined function directly, as tests do, numba
compiles it in the usual way.

This module uses private parts of numba. Where a version of numba differs, its usual way is kept, which takes longer
and gives the same numbers.
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
with contextlib.suppress(ImportError):  # another build of numba
    _dynfunc: Any = importlib.import_module("numba._dynfunc")
    JITCodeLibrary = importlib.import_module("numba.core.codegen").JITCodeLibrary
    Compiler = importlib.import_module("numba.core.compiler").Compiler
    _runtime = importlib.import_module("numba.core.runtime").rtsys
    _llvm = importlib.import_module("llvmlite.binding")

_RELIED_ON = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "finalize")

possible = all(hasattr(JITCodeLibrary, name) for name in _RELIED_ON) and hasattr(Compiler, "compile_extra")
tunable = possible and hasattr(_llvm, "create_pipeline_tuning_options")


class _Text(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into other libraries and never run itself. The linking library optimises it."""

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Polished(_Text):
    """A `_Text` that is optimised before it is linked."""

    def _optimize_final_module(self) -> None:
        JITCodeLibrary._optimize_final_module(self)


class _Rolled(JITCodeLibrary):  # type: ignore[misc]
    """Machine code without unrolled loops: half of the code and of the compile time, and rounds are as fast.

    Where unrolling was measured to matter, a `loop` is unrolled before it is linked.
    """

    def _optimize_final_module(self) -> None:
        tuned = _llvm.create_pipeline_tuning_options()
        tuned.speed_level, tuned.loop_unrolling, tuned.loop_interleaving = 3, False, False
        passes = _llvm.create_pass_builder(self._codegen._tm, tuned)
        passes.getModulePassManager().run(self._final_module, passes)


class Rolled(Compiler):  # type: ignore[misc]
    """The compiler for functions that Python calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _Rolled(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


ROLLED: dict[str, Any] = {"pipeline_class": Rolled} if tunable else {}


class _Inside(Compiler):  # type: ignore[misc]
    """The compiler for inlined functions: it stops at LLVM text."""

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
    """A placeholder entry. numba requires an entry of each compiled function; a `Kernel` (compiling.py) ensures that
    Python never calls this one."""
    return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "inside", 0, env, (library,))


def llvm_text(function: Callable[..., Any], polished: bool, options: dict[str, Any]) -> Any:
    """The function for compiled callers only."""
    pipeline = _InsideLoop if polished else _Inside
    compiler: Any = numba.njit
    return compiler(no_cpython_wrapper=True, pipeline_class=pipeline, **options)(function)


def load_lightly(compiled: Any) -> None:
    """Load code from the cache without preparing numba's compiler, which takes longer than importing numba.

    numba still prepares the compiler before it compiles.
    """
    kept: Any = getattr(compiled, "_cache", None)
    if not all(hasattr(kept, name) for name in ("_load_overload", "_guard_against_spurious_io_errors")) or not _runtime:
        return

    def load(signature: Any, target: Any) -> Any:
        _runtime.initialize(target)
        with kept._guard_against_spurious_io_errors():
            return kept._load_overload(signature, target)

    kept.load_overload = load
