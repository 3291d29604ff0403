"""Eight doubles side by side: one 512-bit register where the machine has them, two or four smaller ones elsewhere.

`load` eight consecutive numbers of an array, combine them with each other or with a number by + - * / and the functions
below, `store_` them. Four eights at once (`load_four`) share what is loaded and wait less; beside them eight lanes
stand for four times the same. Every lane is rounded after every operation, as a number is: nothing is contracted or
reordered, so a lane has the bits that it would have alone. Interpreted, lanes are a NumPy array (8,) or (4, 8).

An index is that of the first of the eight; zeros at its end may be left out: of an array (d, d, 8) it is (i, j).
"""

from __future__ import annotations

import importlib
import operator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing import templates
from numba.extending import intrinsic, lower_builtin, models, register_model

config: Any = numba.config
unpack_tuple: Any = cgutils.unpack_tuple
item_pointer: Any = cgutils.get_item_pointer
declared: Any = cgutils.get_or_insert_function
lowering: Any = lower_builtin
infer_global: Any = templates.infer_global
signature: Any = templates.signature
ndarray: Any = np.ndarray

Lanes = Any  # a type of ours where compiled, a NumPy array where interpreted

EIGHT, FOUR = 8, 4


class LanesType(types.Type):
    """So many doubles, in numba's eyes."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"lanes({count})")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind.count))  # type: ignore[no-untyped-call]


def _vector(count: int) -> Any:
    return ir.VectorType(ir.DoubleType(), count)


# ------------------------------------------------------------------------------------------ arithmetic


def _widest(kinds: Any) -> Any:
    """Lanes as many as the widest of these has, or nothing if one is neither lanes nor a number."""
    counts = [one.count for one in kinds if isinstance(one, LanesType)]
    numbers = [one for one in kinds if isinstance(one, (types.Float, types.Integer))]
    return LanesType(max(counts)) if counts and len(counts) + len(numbers) == len(kinds) else None


def _spread(context: Any, builder: Any, count: int, kind: Any, value: Any) -> Any:
    """So many lanes: as they are, four times eight, or a number in each."""
    if isinstance(kind, LanesType) and kind.count == count:
        return value
    if isinstance(kind, LanesType):
        source, order = value, [lane % kind.count for lane in range(count)]
    else:
        number = context.cast(builder, value, kind, types.float64)
        nothing = ir.Constant(_vector(EIGHT), ir.Undefined)
        source = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        order = [0] * count
    places = ir.Constant(ir.VectorType(ir.IntType(32), count), order)
    return builder.shuffle_vector(source, ir.Constant(source.type, ir.Undefined), places)


def _define(operation: Any, instruction: str) -> None:
    """Teach numba an operation between lanes, or lanes and a number."""

    @infer_global(operation)
    class _Typing(templates.AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            result = _widest(args)
            return signature(result, *args) if len(args) == 2 and result else None

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        count = signature.return_type.count
        sides = (_spread(context, builder, count, *one) for one in zip(signature.args, values, strict=True))
        return getattr(builder, instruction)(*sides)

    for kinds in ((LanesType, LanesType), (LanesType, types.Number), (types.Number, LanesType)):
        lowering(operation, *kinds)(build)


for _instruction, _operations in {
    "fadd": (operator.add, operator.iadd), "fsub": (operator.sub, operator.isub),
    "fmul": (operator.mul, operator.imul), "fdiv": (operator.truediv, operator.itruediv),
}.items():  # fmt: skip
    for _operation in _operations:
        _define(_operation, _instruction)


# ------------------------------------------------------------------------------------------ compiled


def _check(array: Any, index: Any) -> None:
    depth = len(index) if isinstance(index, types.BaseTuple) else 1
    good = isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"
    if not good or depth > array.ndim:
        raise TypingError("lanes are loaded from and stored to contiguous arrays of doubles")


def _address(context: Any, builder: Any, signature: Any, values: Any, count: int) -> Any:
    """Where the lanes begin."""
    kind, place = signature.args[:2]
    arrays: Any = importlib.import_module("numba.np.arrayobj")  # here: importing it takes long
    whole = arrays.make_array(kind)(context, builder, values[0])
    tupled = isinstance(place, types.BaseTuple)
    given = unpack_tuple(builder, values[1]) if tupled else [values[1]]
    kinds = list(place) if tupled else [place]
    numbers = [context.cast(builder, value, one, types.intp) for value, one in zip(given, kinds, strict=True)]
    numbers += [context.get_constant(types.intp, 0)] * (kind.ndim - len(numbers))
    pointer = item_pointer(context, builder, kind, whole, numbers, wraparound=False)
    return builder.bitcast(pointer, _vector(count).as_pointer())


def _compiled_load(count: int) -> Any:
    @intrinsic
    def load(typing: Any, array: Any, index: Any) -> Any:
        _check(array, index)

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = builder.load(_address(context, builder, signature, values, count))
            found.align = 8
            return found

        return LanesType(count)(array, index), build

    return load


def _compiled_store() -> Any:
    @intrinsic
    def store_(typing: Any, array: Any, index: Any, lanes: Any) -> Any:
        _check(array, index)

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            builder.store(values[2], _address(context, builder, signature, values, lanes.count)).align = 8
            return context.get_dummy_value()

        return types.void(array, index, lanes), build

    return store_


def _compiled_fill(count: int) -> Any:
    @intrinsic
    def fill(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _spread(context, builder, count, signature.args[0], values[0])

        return LanesType(count)(number), build

    return fill


def _compiled_roots() -> Any:
    @intrinsic
    def roots(typing: Any, lanes: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            vector = _vector(lanes.count)
            root = declared(builder.module, ir.FunctionType(vector, [vector]), f"llvm.sqrt.v{lanes.count}f64")
            return builder.call(root, values)

        return lanes(lanes), build

    return roots


def _compiled_where_above() -> Any:
    @intrinsic
    def where_above(typing: Any, one: Any, other: Any, then: Any, otherwise: Any) -> Any:
        result = _widest((one, other, then, otherwise))

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            pairs = zip(signature.args, values, strict=True)
            a, b, x, y = (_spread(context, builder, result.count, *pair) for pair in pairs)
            return builder.select(builder.fcmp_ordered(">", a, b), x, y)

        return result(one, other, then, otherwise), build

    return where_above


# ------------------------------------------------------------------------------------------ interpreted


class _Interpreted(ndarray):  # type: ignore[misc]
    """Lanes whose `a -= b` is `a = a - b`, as it is where compiled."""

    __iadd__ = ndarray.__add__
    __isub__ = ndarray.__sub__
    __imul__ = ndarray.__mul__
    __itruediv__ = ndarray.__truediv__


def _numbers(array: npt.NDArray[Any], index: Any, count: int) -> npt.NDArray[Any]:
    """The view of so many numbers that begins at an index."""
    assert array.flags.c_contiguous and array.dtype == np.float64, "lanes live in contiguous arrays of doubles"
    given = index if isinstance(index, tuple) else (index,)
    place = 0
    for size, number in zip(array.shape, (*given, *[0] * (array.ndim - len(given))), strict=True):
        assert 0 <= number < size, "an index out of range"
        place = place * size + int(number)
    assert place + count <= array.size, "so many numbers are not left there"
    return array.reshape(-1)[place : place + count]


def _load(array: npt.NDArray[Any], index: Any) -> Lanes:
    return _numbers(array, index, EIGHT).copy().view(_Interpreted)


def _load_four(array: npt.NDArray[Any], index: Any) -> Lanes:
    return _numbers(array, index, FOUR * EIGHT).reshape(FOUR, EIGHT).copy().view(_Interpreted)


def _store_(array: npt.NDArray[Any], index: Any, lanes: Lanes) -> None:
    _numbers(array, index, lanes.size)[:] = lanes.reshape(-1)


def _eight(number: float) -> Lanes:
    return np.full(EIGHT, float(number)).view(_Interpreted)


def _four_eights(number: float) -> Lanes:
    return np.full((FOUR, EIGHT), float(number)).view(_Interpreted)


def _roots(lanes: Lanes) -> Lanes:
    return np.sqrt(lanes)


def _where_above(one: Lanes, other: Lanes, then: Lanes, otherwise: Lanes) -> Lanes:
    chosen: Lanes = np.where(np.greater(one, other), then, otherwise)
    return chosen.view(_Interpreted)


load: Any = _load if config.DISABLE_JIT else _compiled_load(EIGHT)
"""load(array, index): eight numbers from there on. Unchecked where compiled."""
load_four: Any = _load_four if config.DISABLE_JIT else _compiled_load(FOUR * EIGHT)
"""load_four(array, index): four eights from there on. Unchecked where compiled."""
store_: Any = _store_ if config.DISABLE_JIT else _compiled_store()
"""store_(array, index, lanes): the lanes from there on. Unchecked where compiled."""
eight: Any = _eight if config.DISABLE_JIT else _compiled_fill(EIGHT)
"""eight(number): it in eight lanes."""
four_eights: Any = _four_eights if config.DISABLE_JIT else _compiled_fill(FOUR * EIGHT)
"""four_eights(number): it in four times eight lanes."""
roots: Any = _roots if config.DISABLE_JIT else _compiled_roots()
"""roots(lanes): the square root of each."""
where_above: Any = _where_above if config.DISABLE_JIT else _compiled_where_above()
"""where_above(a, b, x, y): x in the lanes where a > b, otherwise y."""
