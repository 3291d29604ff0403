"""The one decorator that compiles, and where compiled code is kept.

numba keeps a compiled function valid as long as *its own* file is unchanged, so a caller goes stale when
a callee in another module changes. Each version of the sources therefore has a cache folder of its own,
named after a hash of all of them.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from driftwise._internal import compile_notice, numba_text
from driftwise._internal.sources import COMPILED, PACKAGE, source_hash

F = TypeVar("F", bound=Callable[..., Any])

config: Any = numba.config

_KEEP_VERSIONS = 3
_private: list[str] = []  # copies of compiled code that go with the process


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _cache_folder() -> Path | None:
    """The first writable of: NUMBA_CACHE_DIR, beside the sources, the user's cache."""
    if config.DISABLE_JIT:
        return None
    roots = [Path(config.CACHE_DIR)] if config.CACHE_DIR else [PACKAGE / "kernels" / "__pycache__", *_user_cache()]
    name = f"driftwise-{source_hash(*COMPILED)}"
    for root in roots:
        if _usable(root / name):
            _prune(root, name)
            return root / name
    for root in roots:
        copy = _copied(root / name)
        if copy is not None:
            return copy
    warnings.warn(
        "driftwise found no writable folder for compiled code and will compile anew in every process; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=3,
    )
    return None


def _copied(folder: Path) -> Path | None:
    """A private copy of compiled code that can be read but not added to, gone with the process."""
    try:
        if not any(folder.rglob("*.nbi")):
            return None
        private = tempfile.TemporaryDirectory(prefix="driftwise-")
        shutil.copytree(folder, private.name, dirs_exist_ok=True)
    except OSError:
        return None
    atexit.register(private.cleanup)
    _private.append(private.name)
    return Path(private.name)


def lasts() -> bool:
    """Whether what is compiled now will be found by the next process."""
    return FOLDER is not None and not _private


def _user_cache() -> list[Path]:
    """The user's cache, where there is a user: a container may have neither HOME nor a line in passwd."""
    try:
        return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftwise"]
    except RuntimeError:
        return []


def _prune(root: Path, current: str) -> None:
    """Drop the compiled code of versions long replaced; a failure to do so costs only disk."""
    def used(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:  # another process pruned it first
            return 0.0

    others = sorted((p for p in root.glob("driftwise-*") if p.name != current), key=used)
    for old in others[: max(0, len(others) - (_KEEP_VERSIONS - 1))]:
        shutil.rmtree(old, ignore_errors=True)


FOLDER = _cache_folder()
compile_notice.watch()


_COMMON = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile a loop: cached, without the GIL, IEEE arithmetic kept as written (no fastmath, no contraction)."""
    return _compiled(function)


def entry(function: F) -> F:
    """A kernel that Python calls with all it needs, once a round or once a run: it may not allocate.

    What is said of pieces that return views holds here too.
    """
    return _compiled(function, _nrt=False, **numba_text.ROLLED)


def routine(function: F) -> F:
    """A larger kernel for the inside of a round, without reference counts: it may not allocate, and is not inlined.

    numba would paste it in all the same wherever its caller is pasted in. Where everything ended up in one function,
    compiling took two and three times as long.
    """
    return _inside(function, forceinline=False, _nrt=False)


def piece(function: F) -> F:
    """A kernel for the inside of a round: always inlined and without reference counts, so it may not allocate.

    At d = 2 handing on arrays and counting references to them took longer than the arithmetic. One that returns views
    (kernels/cut.py) hands out what it does not own: pieces, routines and entries may call it, never Python.
    """
    return _inside(function, forceinline=True, _nrt=False)


def loop(function: F) -> F:
    """A piece that is optimised before it is pasted in: inside a long caller the optimiser loses sight of its loops.

    Only where that was seen to matter: it is what takes the time in compiling.
    """
    return _inside(function, polished=True, forceinline=True, _nrt=False)


def part(function: F) -> F:
    """A stretch of one longer kernel, written apart to be read; pasted into it, so that it is not compiled twice.

    numba optimises a function together with everything below it, and again for every caller: depth costs.
    """
    return _compiled(function, inline="always")


def formula(function: F) -> F:
    """A scalar formula: compiled inside kernels, plain Python outside, where compiling would take longer."""
    return _inside(function, called=lambda: function)


def scalar(function: F) -> F:
    """A formula that reads constant tables (_internal/elementary.py): it may not allocate."""
    return _inside(function, called=lambda: function, _nrt=False)


def inner(function: F) -> F:
    """A scalar that is always inlined."""
    return _inside(function, called=lambda: function, forceinline=True, _nrt=False)


def outside(function: F) -> F:
    """A routine as Python calls it, beside the one that compiled code calls."""
    return _compiled(getattr(function, "py_func", function), _nrt=False)


def _inside(function: F, called: Callable[[], F] | None = None, polished: bool = False, **options: Any) -> F:
    if config.DISABLE_JIT:
        return function
    if not numba_text.possible:
        return _compiled(function, **options)
    otherwise = called or (lambda: _compiled(function, **options))
    return cast(F, numba_text.text_of(function, otherwise, polished, _COMMON | options))


def _compiled(function: F, **options: Any) -> F:
    if config.DISABLE_JIT:
        return function
    before = config.CACHE_DIR
    config.CACHE_DIR = str(FOLDER) if FOLDER else before
    try:
        compiler: Any = numba.njit
        compiled = compiler(cache=FOLDER is not None, **_COMMON, **options)(function)
    finally:
        config.CACHE_DIR = before
    numba_text.load_lightly(compiled)
    return cast(F, compiled)
