"""Scratch of kernels, declared once and cut out of one packed array.

A declaration is a NamedTuple and the shapes of its fields, in sizes that a caller knows:

    class ScoreScratch(NamedTuple):
        mean: Floats
        Y: Floats
        slots: LaneScratch  # a declaration within, with its own sizes
        work: LessonScratch  # without a shape: passed to score_scratch_of after the sizes

    score_scratch_size, score_scratch_of = carved(ScoreScratch, "d, n", mean="n", Y="| d, n", slots="d, 1")

One field follows the other. | lets it begin on a cache line, as an inner declaration does. A size is whole cache lines,
so that what follows begins on one. `score_scratch_of(scratch, d, n)` cuts views from the beginning of scratch, or from
`start` on if that is named as the first size. Compiled code does not check that scratch is long enough: the code that
allocates it uses the size of the same declaration. Interpreted, a cut that is too long raises an error.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from driftwise.kernels import formula, piece
from driftwise.kernels.cut import cut, interpreted_cut, written

T = TypeVar("T")

# The numbers of a cache line.
EIGHT = 8


@formula
def line(size: int) -> int:
    """The size rounded up to whole cache lines, so that what follows begins on one: loops over arms are a third slower
    if they cross lines."""
    return (size + 7) // 8 * 8


class _Field(NamedTuple):
    name: str
    kind: Any
    shape: list[str]
    on_a_line: bool

    @property
    def inner(self) -> str:
        """The name of an inner declaration, or ""."""
        within = self.shape and isinstance(self.kind, type) and issubclass(self.kind, tuple)
        return _name(self.kind) if within else ""

    @property
    def size(self) -> str:
        """The source of its length."""
        if not self.shape:
            return "0"
        if self.inner:
            return f"{self.inner}_size({', '.join(self.shape)})"
        return " * ".join(f"({one})" for one in self.shape)

    def view(self, start: str) -> str:
        """The source of its view."""
        if not self.shape:
            return self.name
        if self.inner:
            return f"{self.inner}_of(scratch, {start}, {', '.join(self.shape)})"
        return f"cut(scratch, {start}, ({', '.join(self.shape)},))"


_DECLARED: dict[type, dict[str, Any]] = {}


def _name(bundle: type) -> str:
    """The class's name in lower case, its words joined by underscores."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bundle.__name__).lower()


def _fields(bundle: type, shapes: dict[str, str]) -> list[_Field]:
    kinds = get_type_hints(bundle)
    assert [name for name in kinds if name in shapes] == list(shapes), f"shapes in the order of {bundle.__name__}"
    fields = []
    for name, kind in kinds.items():
        text = shapes.get(name, "")
        shape: Any = ast.parse(f"({text.removeprefix('| ')},)" if text else "()", mode="eval").body
        on_a_line = text.startswith("| ") or (text != "" and isinstance(kind, type) and issubclass(kind, tuple))
        fields.append(_Field(name, kind, [ast.unparse(one) for one in shape.elts], on_a_line))
    return fields


def _sources(bundle: type, fields: list[_Field], sizes: str, behind: str) -> dict[str, str]:
    """The sources of the size, of the function that cuts, and of the offsets."""
    name, given = _name(bundle), sizes.removeprefix("start, ")
    begin = "start" if given != sizes else behind
    places, last = [], begin
    for number, field in enumerate(fields):
        places.append(f"    at{number} = line({last})" if field.on_a_line else f"    at{number} = {last}")
        last = f"at{number} + {field.size}"
    body = "\n".join(places)
    views = ", ".join(field.view(f"at{number}") for number, field in enumerate(fields))
    inside = body.replace("at0 = line(start)", "at0 = line(0)").replace("at0 = start", "at0 = 0")
    arguments = ", ".join(["scratch", sizes, *(field.name for field in fields if not field.shape)])
    known = ", ".join(f"{field.name!r}: at{number}" for number, field in enumerate(fields))
    return {
        f"{name}_size": f"def {name}_size({given}):\n{inside}\n    return line({last})\n",
        f"{name}_of": f"def {name}_of({arguments}):\n{body}\n    return {bundle.__name__}({views})\n",
        f"{name}_places": f"def {name}_places({given}):\n{inside}\n    return {{{known}}}\n",
    }


def carved(
    bundle: type[T], sizes: str, behind: Callable[..., int] | None = None, names: dict[str, Any] | None = None,
    **shapes: str,
) -> tuple[Callable[..., int], Callable[..., T]]:
    """The function of a declaration's size, and the piece that cuts it.

    It begins at 0, or after the numbers of another size. Shapes may use the names of their module and these names.
    """
    known = {**vars(sys.modules[bundle.__module__]), "line": line, "EIGHT": EIGHT, "behind": behind, **(names or {})}
    fields = _fields(bundle, shapes)
    within = {_name(field.kind): _DECLARED[field.kind] for field in fields if field.inner}
    for other, its in within.items():
        known |= {name: its[name] for name in (f"{other}_size", f"{other}_of")}
    sources, name = _sources(bundle, fields, sizes, f"behind({sizes})" if behind else "0"), _name(bundle)
    made = {one: written(source, one, {**known, "cut": cut}) for one, source in sources.items()}
    size, of = formula(made[f"{name}_size"]), piece(made[f"{name}_of"])
    inner = {f"{other}_of": its["plain"] for other, its in within.items()}
    plain = written(sources[f"{name}_of"], f"{name}_of", {**known, **inner, "cut": interpreted_cut})
    _DECLARED[bundle] = {**made, f"{name}_size": size, f"{name}_of": of, "plain": plain, "known": known, "sizes": sizes,
                         "fields": fields}  # fmt: skip
    return size, of


def places(bundle: type) -> Callable[..., dict[str, int]]:
    """The function from a declaration's sizes to the offset of each field, for Python."""
    made: Callable[..., dict[str, int]] = _DECLARED[bundle][f"{_name(bundle)}_places"]
    return made


def views(bundle: type[T]) -> Callable[..., T]:
    """The function that cuts, for Python: views that keep their array alive."""
    made: Callable[..., T] = _DECLARED[bundle]["plain"]
    return made


def fits(bundle: type) -> Callable[..., bool]:
    """The piece of a declaration and its sizes that says whether every field is as long as declared, or longer."""
    name, sizes = f"{_name(bundle)}_fits", _DECLARED[bundle]["sizes"].removeprefix("start, ")
    demands = [
        f"given.{field.name}.shape[{axis}] >= {size}"
        for field in _DECLARED[bundle]["fields"] for axis, size in enumerate(field.shape)
    ]  # fmt: skip
    source = f"def {name}(given, {sizes}):\n    return bool({' and '.join(demands)})\n"
    made: Callable[..., bool] = piece(written(source, name, dict(_DECLARED[bundle]["known"])))
    return made


def owned(bundle: type[T]) -> Callable[..., T]:
    """The function from a declaration's sizes to a bundle of separate arrays of zeros."""
    name, sizes = f"{_name(bundle)}_owned", _DECLARED[bundle]["sizes"].removeprefix("start, ")
    arrays = ", ".join(f"np.zeros(({', '.join(field.shape)},))" for field in _DECLARED[bundle]["fields"])
    source = f"def {name}({sizes}):\n    return {bundle.__name__}({arrays})\n"
    made: Callable[..., T] = formula(written(source, name, {**_DECLARED[bundle]["known"], "np": np}))
    return made
