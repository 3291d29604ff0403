"""The only module that calls numba's compiler, and the folder of compiled code.

numba considers a compiled function valid as long as *its own* file is unchanged, so a caller becomes stale when a
function in another module changes. Each version of the sources therefore has its own cache folder, named by a hash of
all of them.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core.registry import cpu_target

from driftwise._internal import compile_notice, numba_text
from driftwise._internal.sources import cache_folders, digest_of

config: Any = numba.config

_KEEP_VERSIONS = 3
_private: list[str] = []  # copies of compiled code, removed at the end of the process


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
    folders = cache_folders(config.CACHE_DIR)
    for folder in folders:
        if _usable(folder):
            _prune(folder.parent, folder.name)
            return folder
    for folder in folders:
        copy = _copied(folder)
        if copy is not None:
            return copy
    warnings.warn(
        "driftwise found no writable folder for compiled code and will compile again in every process; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=3,
    )
    return None


def _copied(folder: Path) -> Path | None:
    """A private copy of compiled code that can be read but not added to. It is removed at the end of the process."""
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
    """Whether the next process will find what is compiled now."""
    return FOLDER is not None and not _private


def _prune(root: Path, current: str) -> None:
    """Remove the compiled code of old versions. A failure only costs disk space."""
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


def dispatcher_of(kernel: Any) -> Any:
    """numba's function of a kernel for compiled callers. For calls from Python see `called_of`."""
    import_module("driftwise._internal.intrinsics")  # it registers the instructions before numba needs them
    if kernel.inside and numba_text.possible:
        return numba_text.llvm_text(_known_by_pieces(kernel.py_func), kernel.polished, _COMMON | kernel.options)
    return _compiled(kernel)


def called_of(kernel: Any) -> Any:
    """numba's function of a kernel for calls from Python."""
    return _compiled(kernel) if kernel.inside else kernel.dispatcher


def type_of(name: str) -> Any:
    """numba's type of an intrinsic."""
    found = getattr(import_module("driftwise._internal.intrinsics"), name)
    context: Any = cpu_target.typing_context
    return context.resolve_value_type(found)


def _known_by_pieces(function: FunctionType) -> FunctionType:
    """The function under a name that has the digest of its pieces if a factory made it: of equal names, code that was
    loaded and code that is compiled now could be taken for each other."""
    ending = f"_{digest_of(function)}" if function.__closure__ else ""
    if not function.__qualname__.endswith(ending):
        function.__qualname__ += ending
    return function


def _find_by_pieces(compiled: Any) -> None:
    """Let numba find stored code by the digest of all pieces: its own key has the bytes of a closure's cells, which
    differ between processes."""
    kept, digest = compiled._cache, digest_of(compiled.py_func)
    kept._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), digest)


def _compiled(kernel: Any) -> Any:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(FOLDER) if FOLDER else before
    try:
        compiler: Any = numba.njit
        tuned = numba_text.ROLLED if kernel.rolled else {}
        of_a_file = not kernel.py_func.__code__.co_filename.startswith("<")  # numba caches nothing else
        kept = FOLDER is not None and of_a_file
        compiled = compiler(cache=kept, **_COMMON, **kernel.options, **tuned)(_known_by_pieces(kernel.py_func))
        if kept:
            _find_by_pieces(compiled)
    finally:
        config.CACHE_DIR = before
    numba_text.load_lightly(compiled)
    return compiled
