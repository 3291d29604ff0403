"""One hash of the source files on which compiled code, a stored number or a chunk of work depends."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

PACKAGE = Path(__file__).resolve().parents[1]
# The sources of compiled code.
COMPILED = ("kernels", "theory", "_internal/elementary.py", "_internal/intrinsics.py")


@cache
def source_hash(*within: str, without: tuple[str, ...] = ()) -> str:
    """Hash of the sources in the folders or files `within` (all of the package if none is named), except `without`."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        name = source.relative_to(PACKAGE)
        named = not within or any(name.is_relative_to(one) for one in within)
        if named and not any(name.is_relative_to(one) for one in without):
            digest.update(str(name).encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def cache_folders(chosen: str) -> list[Path]:
    """Where compiled code of these sources may be: in the folder that NUMBA_CACHE_DIR names, or else beside the
    sources and in the user's cache."""
    roots = [Path(chosen)] if chosen else [PACKAGE / "kernels" / "__pycache__", *_user_cache()]
    return [root / f"driftwise-{source_hash(*COMPILED)}" for root in roots]


def _user_cache() -> list[Path]:
    """The user's cache folder, if there is a user: a container may have neither HOME nor a line in passwd."""
    try:
        return [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftwise"]
    except RuntimeError:
        return []


def was_compiled(name: str) -> bool:
    """Whether numba has stored compiled code of the entry of this name. Nothing is imported for the answer."""
    folders, digits = cache_folders(os.environ.get("NUMBA_CACHE_DIR", "")), "[0-9a-f]" * DIGITS
    stored = (f"*.{name}-*.nbi", f"*.{name}_{digits}-*.nbi")  # of a module's own functions, and of factories'
    return any(True for folder in folders for one in stored for _ in folder.rglob(one))


# ------------------------------------------------------------------------------------------ one function

DIGITS = 16


def names_in(code: CodeType) -> set[str]:
    """The names in code that may be global, those of functions inside it included."""
    return set(code.co_names).union(*(names_in(one) for one in code.co_consts if isinstance(one, CodeType)))


_digests: dict[FunctionType, str] = {}


def digest_of(function: FunctionType) -> str:
    """A digest of a function's code and of everything that it calls or reads by name: globals, and the pieces that a
    factory was given. Two functions of one factory with different pieces differ, wherever the pieces were defined."""
    if function not in _digests:
        _digests[function] = ""  # one that calls itself
        code, names = function.__code__, names_in(function.__code__)
        read = {name: function.__globals__[name] for name in sorted(names & function.__globals__.keys())}
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        read |= {name: cell.cell_contents for name, cell in cells}
        parts = [*_told_of(code), *(f"{name}={_told(one, names)}" for name, one in read.items())]
        _digests[function] = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]
    return _digests[function]


def _told_of(code: CodeType) -> Iterable[str]:
    yield code.co_code.hex()
    yield from code.co_names
    for one in code.co_consts:
        yield from _told_of(one) if isinstance(one, CodeType) else (repr(one),)


def _told(one: object, names: set[str]) -> str:
    """What a function reads, in text that is the same in every process; of a module, what the function names."""
    function = getattr(one, "py_func", one)
    if isinstance(function, FunctionType):
        return f"{digest_of(function)}{getattr(one, 'decorated', '')}"
    if isinstance(one, ModuleType):
        own = sorted(names & vars(one).keys()) if one.__name__.startswith("driftwise") else []
        return ",".join([one.__name__, *(_told(vars(one)[name], names) for name in own)])
    if isinstance(one, type):
        return f"{one.__module__}.{one.__qualname__}{getattr(one, '_fields', '')}"
    if isinstance(one, (tuple, list)):
        return ",".join(_told(part, names) for part in one)
    if hasattr(one, "tobytes") and hasattr(one, "dtype") and hasattr(one, "shape"):  # an array
        return f"{one.dtype}{one.shape}{one.tobytes().hex()}"
    return repr(one) if isinstance(one, (int, float, complex, str, bytes, type(None))) else type(one).__qualname__
