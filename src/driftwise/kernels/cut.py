"""Views of packed arrays that own nothing: what entries cut a state and their scratch into.

NumPy's slicing and reshape count references and check whether a copy is needed: a click's round that cut its state anew
took 220 ns longer. A view from here is an address and a shape: whoever hands out the packed array keeps it alive.
"""

from __future__ import annotations

import linecache
import math
from typing import Any

import numpy.typing as npt

from driftwise._internal.compiling import intrinsic


def interpreted_cut(packed: npt.NDArray[Any], start: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    size = math.prod(shape)
    assert start + size <= packed.size, "the packed array is too short"
    return packed[start : start + size].reshape(shape)


cut: Any = intrinsic(interpreted_cut, "cut")
"""cut(packed, start, shape): the C-contiguous view of that shape that begins there. Unchecked where compiled."""


def written(source: str, name: str, names: dict[str, Any]) -> Any:
    """The function of this name in a source made from a declaration, with these globals; tracebacks show the source."""
    file = f"<driftwise: {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[name]
