"""Views of packed arrays without ownership, into which entries cut a state and their scratch.

NumPy's slicing and reshape count references and check whether a copy is needed: a round of clicks that cut its state
again took 220 ns longer. A view from here is an address and a shape; the owner of the packed array keeps it alive.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from driftwise._internal.compiling import intrinsic

Floats = npt.NDArray[np.float64]
# Arrays that Python passes to entries: the type of their numbers, and their axes.
Vector = Annotated[Floats, "float64", 1]
Matrix = Annotated[Floats, "float64", 2]
Stack = Annotated[Floats, "float64", 3]
Fours = Annotated[Floats, "float64", 4]
Ints = Annotated[npt.NDArray[np.int64], "int64", 1]
IntMatrix = Annotated[npt.NDArray[np.int64], "int64", 2]


def interpreted_cut(packed: npt.NDArray[Any], start: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    size = math.prod(shape)
    assert start + size <= packed.size, "the packed array is too short"
    return packed[start : start + size].reshape(shape)


cut: Any = intrinsic(interpreted_cut, "cut")
"""cut(packed, start, shape): the C-contiguous view of that shape that begins there. Unchecked where compiled."""
