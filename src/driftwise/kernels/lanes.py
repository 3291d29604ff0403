"""Eight doubles side by side: one 512-bit register where the machine has them, two or four smaller ones elsewhere.

`load` eight consecutive numbers of an array, combine them with each other or with a number by + - * / and the
functions below, `store_` them. Every lane is rounded after every operation, as a scalar is: nothing is contracted or
reordered, so a lane has the bits that the same sums one after the other would have. Interpreted, lanes are a NumPy
array of eight.

An index is that of the first of the eight; zeros at its end may be left out: of an array (d, d, 8) it is (i, j).
"""

from __future__ import annotations

import operator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing import templates
from numba.extending import intrinsic, lower_builtin, models, register_model
from numba.np import arrayobj

config: Any = numba.config
make_array: Any = arrayobj.make_array
unpack_tuple: Any = cgutils.unpack_tuple
item_pointer: Any = cgutils.get_item_pointer
declared: Any = cgutils.get_or_insert_function
lowering: Any = lower_builtin
infer_global: Any = templates.infer_global
signature: Any = templates.signature
Lanes = Any  # eight doubles: a type of ours where compiled, a NumPy array where interpreted

EIGHT = 8


class LanesType(types.Type):
    """Eight doubles, in numba's eyes."""

    def __init__(self) -> None:
        super().__init__(name="lanes")


_LANES = LanesType()
_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(32)
_VECTOR = ir.VectorType(_DOUBLE, EIGHT)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


# ------------------------------------------------------------------------------------------ arithmetic


def _spread(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Lanes as they are, or a number in every lane."""
    if isinstance(kind, LanesType):
        return value
    number = context.cast(builder, value, kind, types.float64)
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_WORD, EIGHT), [0] * EIGHT))


def _define(operation: Any, instruction: str) -> None:
    """Teach numba an operation between lanes, or lanes and a number."""

    @infer_global(operation)
    class _Typing(templates.AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and _LANES in args and all(one == _LANES or _number(one) for one in args):
                return signature(_LANES, *args)
            return None

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        sides = (_spread(context, builder, *one) for one in zip(signature.args, values, strict=True))
        return getattr(builder, instruction)(*sides)

    for kinds in ((LanesType, LanesType), (LanesType, types.Number), (types.Number, LanesType)):
        lowering(operation, *kinds)(build)


def _number(kind: Any) -> bool:
    return isinstance(kind, (types.Float, types.Integer))


for _instruction, _operations in {
    "fadd": (operator.add, operator.iadd), "fsub": (operator.sub, operator.isub),
    "fmul": (operator.mul, operator.imul), "fdiv": (operator.truediv, operator.itruediv),
}.items():  # fmt: skip
    for _operation in _operations:
        _define(_operation, _instruction)


# ------------------------------------------------------------------------------------------ compiled


def _address(context: Any, builder: Any, kind: Any, array: Any, place: Any, index: Any) -> Any:
    """Where the eight begin."""
    whole = make_array(kind)(context, builder, array)
    tupled = isinstance(place, types.BaseTuple)
    given = unpack_tuple(builder, index) if tupled else [index]
    kinds = list(place) if tupled else [place]
    numbers = [context.cast(builder, value, one, types.intp) for value, one in zip(given, kinds, strict=True)]
    numbers += [context.get_constant(types.intp, 0)] * (kind.ndim - len(numbers))
    pointer = item_pointer(context, builder, kind, whole, numbers, wraparound=False)
    return builder.bitcast(pointer, _VECTOR.as_pointer())


def _fits(array: Any, index: Any) -> None:
    depth = len(index) if isinstance(index, types.BaseTuple) else 1
    good = isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"
    if not good or depth > array.ndim:
        raise TypingError("lanes are loaded from and stored to contiguous arrays of doubles")


def _compiled() -> tuple[Any, ...]:
    @intrinsic
    def load(typing: Any, array: Any, index: Any) -> Any:
        _fits(array, index)

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = builder.load(_address(context, builder, array, values[0], signature.args[1], values[1]))
            found.align = 8
            return found

        return _LANES(array, index), build

    @intrinsic
    def store_(typing: Any, array: Any, index: Any, value: Any) -> Any:
        _fits(array, index)

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            place = _address(context, builder, array, values[0], signature.args[1], values[1])
            builder.store(_spread(context, builder, signature.args[2], values[2]), place).align = 8
            return context.get_dummy_value()

        return types.void(array, index, value), build

    @intrinsic
    def eight(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _spread(context, builder, signature.args[0], values[0])

        return _LANES(number), build

    @intrinsic
    def roots(typing: Any, lanes: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = ir.FunctionType(_VECTOR, [_VECTOR])
            root = declared(builder.module, kind, f"llvm.sqrt.v{EIGHT}f64")
            return builder.call(root, [values[0]])

        return _LANES(lanes), build

    @intrinsic
    def where_above(typing: Any, one: Any, other: Any, then: Any, otherwise: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            a, b, x, y = (_spread(context, builder, *pair) for pair in zip(signature.args, values, strict=True))
            return builder.select(builder.fcmp_ordered(">", a, b), x, y)

        return _LANES(one, other, then, otherwise), build

    return load, store_, eight, roots, where_above


# ------------------------------------------------------------------------------------------ interpreted


def _first(array: npt.NDArray[Any], index: Any) -> int:
    """The place of an index in the flat array."""
    assert array.flags.c_contiguous and array.dtype == np.float64, "lanes live in contiguous arrays of doubles"
    given = index if isinstance(index, tuple) else (index,)
    place = 0
    for size, number in zip(array.shape, (*given, *[0] * (array.ndim - len(given))), strict=True):
        assert 0 <= number < size, "an index out of range"
        place = place * size + int(number)
    assert place + EIGHT <= array.size, "no eight numbers are left there"
    return place


ndarray: Any = np.ndarray


class _Eight(ndarray):  # type: ignore[misc]
    """Lanes whose `a -= b` is `a = a - b`, as it is where compiled."""

    __iadd__ = ndarray.__add__
    __isub__ = ndarray.__sub__
    __imul__ = ndarray.__mul__
    __itruediv__ = ndarray.__truediv__


def _load(array: npt.NDArray[Any], index: Any) -> Lanes:
    start = _first(array, index)
    return array.reshape(-1)[start : start + EIGHT].copy().view(_Eight)


def _store_(array: npt.NDArray[Any], index: Any, value: Lanes) -> None:
    start = _first(array, index)
    array.reshape(-1)[start : start + EIGHT] = value


def _eight(number: float) -> Lanes:
    return np.full(EIGHT, float(number)).view(_Eight)


def _roots(lanes: Lanes) -> Lanes:
    return np.sqrt(lanes)


def _where_above(one: Lanes, other: Lanes, then: Lanes, otherwise: Lanes) -> Lanes:
    chosen: Lanes = np.where(np.broadcast_to(np.greater(one, other), (EIGHT,)), then, otherwise)
    return chosen.view(_Eight)


load: Any
store_: Any
eight: Any
roots: Any
where_above: Any
load, store_, eight, roots, where_above = (
    (_load, _store_, _eight, _roots, _where_above) if config.DISABLE_JIT else _compiled()
)
"""load(array, index), store_(array, index, lanes), eight(number) in every lane, roots(lanes), and where_above(a, b, x,
y): x in the lanes where a > b, otherwise y. Unchecked where compiled."""
