"""Machine code from the wheel: the level that this processor runs, and its functions.

Levels are those of x86-64, v2 to v4, or v8 on aarch64, which every such processor has. A released wheel has all of
them, one that pip built here only the highest. Machine code that was made from other sources than those beside it is
not used, so a changed checkout never runs old code. DRIFTWISE_MACHINE=off switches machine code off. v2, v3, v4 or v8
requires that level; an error says if it is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from driftwise._internal.compiling import INTERPRETED
from driftwise._internal.sources import COMPILED, source_hash
from driftwise.errors import BadInput

LEVELS = ("v2", "v3", "v4", "v8")


class Shipped(NamedTuple):
    """A level and its module; `why` is the reason if there is none, or why no higher level runs."""

    level: str | None
    module: Any
    why: str


class Unloadable(ImportError):
    """A file of machine code is there and cannot be loaded."""


def _module(level: int) -> Any:
    """The module of a level, or None if it is not installed; Unloadable if its file is damaged or of another platform.

    A file that was cut off is not loaded: the process would end when it reaches a page that is missing."""
    name = f"driftwise._machine.v{level}"
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    try:
        if not _whole(Path(spec.origin)):
            raise ImportError("the file is not whole")
        return import_module(name)
    except (ImportError, OSError) as slip:
        told = str(slip).rpartition(": ")[2]  # without the path
        raise Unloadable(f"v{level} cannot be loaded ({told}): install driftwise again") from None


def _whole(file: Path) -> bool:
    """Whether an ELF file reaches to the end of its table of sections, which linkers write last."""
    with file.open("rb") as opened:
        head = opened.read(64)
    start, size, count = (int.from_bytes(head[at:upto], "little") for at, upto in ((40, 48), (58, 60), (60, 62)))
    return head[:4] == b"\x7fELF" and start + size * count <= file.stat().st_size


@cache
def shipped() -> Shipped:
    """The machine code that this process runs."""
    wanted = os.environ.get("DRIFTWISE_MACHINE", "")
    if wanted not in ("", "off", *LEVELS):
        raise BadInput("DRIFTWISE_MACHINE", wanted, "off, v2, v3, v4 or v8", "unset it")
    if INTERPRETED or wanted == "off":
        return Shipped(None, None, "switched off")
    found = _found(wanted)
    if wanted and found.level != wanted:
        raise BadInput("DRIFTWISE_MACHINE", wanted, f"a level that runs here: {found.level or found.why}", "unset it")
    return found


def _found(wanted: str) -> Shipped:
    """The highest level that is installed and that the processor supports, up to the required one."""
    try:
        known = ((int(level[1:]), _module(int(level[1:]))) for level in LEVELS)
        lowest, first = next((one for one in known if one[1] is not None), (0, None))
    except Unloadable as slip:
        return Shipped(None, None, str(slip))
    if first is None:
        return Shipped(None, None, "this installation has none")
    if first.sources != source_hash(*COMPILED):
        return Shipped(None, None, "it was made from other sources")
    highest, why = min(first.level(), int(wanted[1:])) if wanted else first.level(), ""
    for level in range(highest, lowest - 1, -1):
        try:
            module = _module(level)
        except Unloadable as slip:
            why = why or str(slip)
            continue
        if module is not None and module.sources == first.sources:
            return Shipped(f"v{level}", module, why)
    return Shipped(None, None, f"that of this installation is v{lowest}, above v{highest}")


def buffer_of(array: Any) -> Any:
    """An array for many calls of entries: machine code then gets its buffer only once."""
    module = shipped().module
    return array if module is None else module.hold(array)


def code_of(name: str) -> Callable[..., Any] | None:
    """The machine code of an entry, if there is some."""
    found: Callable[..., Any] | None = getattr(shipped().module, name, None)
    return found
