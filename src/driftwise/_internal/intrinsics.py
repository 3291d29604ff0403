"""The instructions that compiled code has for some of our functions: views, eight numbers side by side, casts of bits.

The functions themselves, as Python runs them, are in kernels/cut.py, kernels/lanes.py, kernels/lazy.py and
elementary.py; numba finds these here by their names (compiling.Inside).
"""

from __future__ import annotations

import importlib
import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing import templates
from numba.extending import intrinsic, lower_builtin, models, register_model

from driftwise._internal.compiling import bundles_in

unpack_tuple: Any = cgutils.unpack_tuple
tuple_type: Any = types.UniTuple
named_type: Any = types.NamedTuple
item_pointer: Any = cgutils.get_item_pointer
declared: Any = cgutils.get_or_insert_function
on_the_stack: Any = cgutils.alloca_once
lowering: Any = lower_builtin
infer_global: Any = templates.infer_global
signature: Any = templates.signature

EIGHT, FOUR = 8, 4

# ------------------------------------------------------------------------------------------ bits


def _cast(source: Any, result: Any, kind: Any) -> Any:
    @intrinsic
    def cast(typing: Any, value: Any) -> Any:
        if not isinstance(value, (types.Float, types.Integer)):
            raise TypingError(f"{source} is cast to {result}, not {value}")

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.bitcast(context.cast(builder, values[0], signature.args[0], source), kind)

        return result(value), build

    return cast


bits_of: Any = _cast(types.float64, types.int64, ir.IntType(64))
number_of: Any = _cast(types.int64, types.float64, ir.DoubleType())

# ------------------------------------------------------------------------------------------ views


def _view(context: Any, builder: Any, kind: Any, packed: Any, first: Any, lengths: list[Any]) -> Any:
    """A view of a packed array of that kind, of these lengths."""
    arrays: Any = importlib.import_module("numba.np.arrayobj")  # here: it takes as long as all of ours
    source = arrays.make_array(kind)(context, builder, packed)
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides: list[Any] = []
    step = size
    for length in reversed(lengths):
        strides.insert(0, step)
        step = builder.mul(step, length)
    view = arrays.make_array(types.Array(kind.dtype, len(lengths), "C"))(context, builder)
    data = builder.gep(source.data, [first])
    arrays.populate_array(view, data=data, shape=lengths, strides=strides, itemsize=size, meminfo=None)
    return view._getvalue()


def _lengths(context: Any, builder: Any, kind: Any, shape: Any) -> list[Any]:
    parts = zip(unpack_tuple(builder, shape), kind, strict=True)
    return [context.cast(builder, value, one, types.intp) for value, one in parts]


@intrinsic
def cut(typing: Any, packed: Any, start: Any, shape: Any) -> Any:
    if not isinstance(packed, types.Array) or packed.ndim != 1:
        raise TypingError("cut takes a packed array")

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = context.cast(builder, values[1], signature.args[1], types.intp)
        return _view(context, builder, packed, values[0], first, _lengths(context, builder, shape, values[2]))

    return types.Array(packed.dtype, len(shape), "C")(packed, start, shape), build


def _whole(builder: Any, size: Any) -> Any:
    """A size in whole cache lines."""
    return builder.and_(builder.add(size, size.type(EIGHT - 1)), size.type(-EIGHT))


def _fields(builder: Any, kind: Any, shapes: Any) -> Any:
    """The shapes of a declaration's fields, each with its kind; nothing for an array's."""
    declares = all(isinstance(one, types.BaseTuple) for one in kind)
    return zip(unpack_tuple(builder, shapes), kind, strict=True) if declares else None


def _length(context: Any, builder: Any, kind: Any, shapes: Any) -> Any:
    total, fields = context.get_constant(types.intp, 0), _fields(builder, kind, shapes)
    if fields is not None:
        for shape, one in fields:
            total = builder.add(total, _whole(builder, _length(context, builder, one, shape)))
        return total
    total = context.get_constant(types.intp, 1)
    for one in _lengths(context, builder, kind, shapes):
        total = builder.mul(total, one)
    return total


@intrinsic
def numbers_of(typing: Any, shapes: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _length(context, builder, shapes, values[0])

    return types.intp(shapes), build


@intrinsic
def lengths(typing: Any, shapes: Any) -> Any:
    result = tuple_type(types.intp, len(shapes))

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        parts = zip(unpack_tuple(builder, values[0]), shapes, strict=True)
        return context.make_tuple(builder, result, [_length(context, builder, kind, one) for one, kind in parts])

    return result(shapes), build


def _bundle_type(bundle: Any, packed: Any, shapes: Any) -> Any:
    """The type of a bundle of views."""
    kinds = bundles_in(bundle)
    fields = [
        types.Array(packed.dtype, len(shape), "C") if kind is None else _bundle_type(kind, packed, shape)
        for kind, shape in zip(kinds, shapes, strict=True)
    ]
    return named_type(fields, bundle)


def _carve(context: Any, builder: Any, result: Any, packed: tuple[Any, Any], start: Any, shapes: Any) -> Any:
    """A bundle of views of a packed array, its kind and value, from a place on."""
    fields = []
    for made, (shape, one) in zip(result, _fields(builder, *shapes), strict=True):
        start = _whole(builder, start)
        if isinstance(made, types.Array):
            fields.append(_view(context, builder, *packed, start, _lengths(context, builder, one, shape)))
        else:
            fields.append(_carve(context, builder, made, packed, start, (one, shape)))
        start = builder.add(start, _length(context, builder, one, shape))
    return context.make_tuple(builder, result, fields)


@intrinsic
def carve(typing: Any, bundle: Any, packed: Any, start: Any, shapes: Any) -> Any:
    result = _bundle_type(bundle.instance_class, packed, shapes)

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = context.cast(builder, values[2], signature.args[2], types.intp)
        return _carve(context, builder, result, (packed, values[1]), first, (shapes, values[3]))

    return result(bundle, packed, start, shapes), build


# ------------------------------------------------------------------------------------------ sizes of arguments


def _sizes(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The axes of arrays and the whole numbers in an argument."""
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        parts = zip(kinds, unpack_tuple(builder, value), strict=True)
        return [size for one, part in parts for size in _sizes(context, builder, one, part)]
    if isinstance(kind, types.Array):
        arrays: Any = importlib.import_module("numba.np.arrayobj")
        sizes: list[Any] = unpack_tuple(builder, arrays.make_array(kind)(context, builder, value).shape)
        return sizes
    return [] if isinstance(kind, types.Float) else [context.cast(builder, value, kind, types.int64)]


@intrinsic
def size_at(typing: Any, given: Any, place: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        sizes = _sizes(context, builder, given, values[0])
        kept = on_the_stack(builder, ir.IntType(64), size=len(sizes))
        for number, size in enumerate(sizes):
            builder.store(size, builder.gep(kept, [ir.Constant(ir.IntType(64), number)]))
        at = context.cast(builder, values[1], signature.args[1], types.int64)
        return builder.load(builder.gep(kept, [at]))

    return types.int64(given, place), build


# ------------------------------------------------------------------------------------------ eight numbers


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


load: Any = _compiled_load(EIGHT)
load_four: Any = _compiled_load(FOUR * EIGHT)
store_: Any = _compiled_store()
eight: Any = _compiled_fill(EIGHT)
four_eights: Any = _compiled_fill(FOUR * EIGHT)
roots: Any = _compiled_roots()
where_above: Any = _compiled_where_above()


@intrinsic
def all_below(typing: Any, lanes: Any, number: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        top = builder.insert_element(ir.Constant(values[0].type, ir.Undefined), values[1], ir.IntType(32)(0))
        nowhere = ir.Constant(ir.VectorType(ir.IntType(32), EIGHT), [0] * EIGHT)
        tops = builder.shuffle_vector(top, top, nowhere)
        below = builder.bitcast(builder.fcmp_ordered("<", values[0], tops), ir.IntType(EIGHT))
        return builder.icmp_unsigned("==", below, ir.IntType(EIGHT)(255))

    return types.boolean(lanes, types.float64), build

