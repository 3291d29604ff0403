"""Views of packed arrays that own nothing: what entries cut a state and their scratch into.

NumPy's slicing and reshape count references and check whether a copy is needed: a click's round that cut its state anew
took 220 ns longer. A view from here is an address and a shape: whoever hands out the packed array keeps it alive.
"""

from __future__ import annotations

import importlib
import linecache
import math
from typing import Any

import numba
import numpy.typing as npt
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

config: Any = numba.config
unpack_tuple: Any = cgutils.unpack_tuple


def _compiled_cut() -> Any:
    @intrinsic
    def cut(typing: Any, packed: Any, start: Any, shape: Any) -> Any:
        if not isinstance(packed, types.Array) or packed.ndim != 1:
            raise TypingError("cut takes a packed array")
        result = types.Array(packed.dtype, len(shape), "C")

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays: Any = importlib.import_module("numba.np.arrayobj")  # here: it takes as long as all of ours
            make_array, populate_array = arrays.make_array, arrays.populate_array
            source = make_array(signature.args[0])(context, builder, values[0])
            first = context.cast(builder, values[1], signature.args[1], types.intp)
            lengths = [
                context.cast(builder, value, kind, types.intp)
                for value, kind in zip(unpack_tuple(builder, values[2]), signature.args[2], strict=True)
            ]
            size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(packed.dtype)))
            strides: list[Any] = []
            step = size
            for length in reversed(lengths):
                strides.insert(0, step)
                step = builder.mul(step, length)
            view, data = make_array(result)(context, builder), builder.gep(source.data, [first])
            populate_array(view, data=data, shape=lengths, strides=strides, itemsize=size, meminfo=None)
            return view._getvalue()

        return result(packed, start, shape), build

    return cut


def interpreted_cut(packed: npt.NDArray[Any], start: int, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    size = math.prod(shape)
    assert start + size <= packed.size, "the packed array is too short"
    return packed[start : start + size].reshape(shape)


cut: Any = interpreted_cut if config.DISABLE_JIT else _compiled_cut()
"""cut(packed, start, shape): the C-contiguous view of that shape that begins there. Unchecked where compiled."""


def written(source: str, name: str, names: dict[str, Any]) -> Any:
    """The function of this name in a source made from a declaration, with these globals; tracebacks show the source."""
    file = f"<driftwise: {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[name]
