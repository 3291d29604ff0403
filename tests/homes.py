"""Finds the places of a formula by its shape in the syntax tree, not by a name. test_homes.py counts them.

A detector takes a function and its module and returns whether the function has the formula. Names of variables and
functions do not matter to it; operations, loops and indices do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "driftwise"
Function = ast.FunctionDef
Detector = Callable[[Function, ast.AST], bool]


@cache
def modules(*folders: str) -> dict[str, ast.Module]:
    """The modules of these folders or files, by path."""
    paths: list[Path] = []
    for one in folders:
        paths += (SOURCES / one).rglob("*.py") if not one.endswith(".py") else SOURCES.glob(one)
    return {str(path.relative_to(SOURCES)): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(paths)}


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a module, walked once."""
    return list(ast.walk(tree))


@cache
def functions(tree: ast.AST) -> list[Function]:
    """All functions, each without those that are defined in it: a factory is not what it makes."""
    return [_without_inner(node) for node in nodes(tree) if isinstance(node, ast.FunctionDef)]


def _without_inner(node: Function) -> Function:
    own = [one for one in node.body if not isinstance(one, ast.FunctionDef)]
    return node if own == node.body else ast.FunctionDef(**{**dict(ast.iter_fields(node)), "body": own})


def homes(found: Detector, trees: dict[str, ast.Module]) -> list[str]:
    """Every function that a detector accepts."""
    return [f"{path}: {one.name}" for path, tree in trees.items() for one in functions(tree) if found(one, tree)]


# ------------------------------------------------------------------------------------------ small functions


def called(node: ast.AST) -> str | None:
    """The last name of the function that a call calls."""
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def loops(node: ast.AST) -> Iterator[ast.For]:
    """`for i in range(…)` anywhere below."""
    for one in ast.walk(node):
        if isinstance(one, ast.For) and isinstance(one.target, ast.Name) and called(one.iter) == "range":
            yield one


def inner(loop: ast.For) -> list[ast.For]:
    return [one for one in loops(loop) if one is not loop]


def backwards(loop: ast.For) -> bool:
    """Whether a loop counts down."""
    step = loop.iter.args[2] if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 3 else None
    return isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub)


def root(node: ast.AST) -> bool:
    """A square root: math.sqrt, np.sqrt, the lanes' roots, or a power of a half."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return isinstance(node.right, ast.Constant) and node.right.value == 0.5
    return called(node) in ("sqrt", "roots", "put_pivot_")


def reads(node: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """Arrays that an expression reads with the names in their index: a[i, k], load(a, (i, k)), or get_at(a, i, k)."""
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript):
            yield ast.unparse(one.value), names(one.slice)
        elif isinstance(one, ast.Call) and (called(one) or "").startswith(("load", "get")) and len(one.args) > 1:
            yield ast.unparse(one.args[0]), set().union(*(names(index) for index in one.args[1:]))


def writes(node: ast.AST) -> Iterator[tuple[str, set[str], ast.AST]]:
    """Arrays that statements write with the names in the index, and what is written: a[i] = …, or store_(a, i, …)."""
    for one in ast.walk(node):
        if isinstance(one, (ast.Assign, ast.AugAssign)):
            for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                if isinstance(target, ast.Subscript):
                    yield ast.unparse(target.value), names(target.slice), one
        elif isinstance(one, ast.Call) and (called(one) or "").startswith(("store", "put_")) and len(one.args) > 2:
            yield ast.unparse(one.args[0]), set().union(*(names(index) for index in one.args[1:-1])), one


def bound(node: ast.AST) -> dict[str, ast.AST]:
    """The last values of plain names below a node; tuples are unpacked."""
    found: dict[str, ast.AST] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Assign):
            for target in one.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = one.value
                elif isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    pairs = zip(target.elts, one.value.elts, strict=False)
                    found |= {part.id: value for part, value in pairs if isinstance(part, ast.Name)}
    return found


def taken_off(node: ast.AST) -> Iterator[ast.BinOp]:
    """Products that are subtracted: v -= a * b, v = v - a * b - c * d."""
    for one in ast.walk(node):
        product = None
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Sub):
            product = one.value
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
            product = one.right
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
            yield product


def factors(product: ast.BinOp, known: dict[str, ast.AST]) -> list[set[tuple[str, frozenset[str]]]]:
    """The arrays that both sides of a product read, directly or through a name."""
    sides = []
    for side in (product.left, product.right):
        side = known.get(side.id, side) if isinstance(side, ast.Name) else side
        sides.append({(array, frozenset(index)) for array, index in reads(side)})
    return sides


# ------------------------------------------------------------------------------------------ shapes


def plays_rounds(function: Function, tree: ast.AST) -> bool:
    """A loop over the first axis of an array that calls a function (a choice), reads something of round t (a reward),
    and calls again (a lesson)."""
    for loop in loops(function):
        limit = loop.iter.args[-1] if isinstance(loop.iter, ast.Call) else None
        if not (isinstance(limit, ast.Subscript) and getattr(limit.value, "attr", None) == "shape"):
            continue
        calls = [one.value for one in loop.body if isinstance(one, (ast.Assign, ast.Expr))]
        calls = [one for one in calls if isinstance(one, ast.Call) and not (called(one) or "").startswith("store")]
        asked = [len(one.args) > 2 and loop.target.id in {getattr(arg, "id", "") for arg in one.args} for one in calls]
        if any(asked[1:-1]):
            return True
    return False


@cache
def subtracting(tree: ast.AST) -> frozenset[str]:
    """The functions of a module that have a loop which subtracts products."""
    return frozenset(one.name for one in functions(tree) if any(True for loop in loops(one) for _ in taken_off(loop)))


def factors_a_matrix(function: Function, tree: ast.AST) -> bool:
    """Cholesky: below one loop, products of an array with itself are subtracted, in a loop or by a function with such a
    loop, the rest is written there, and a root is taken."""
    helpers = subtracting(tree)
    for loop in loops(function):
        if not any(root(one) for one in ast.walk(loop)):
            continue
        written = {array for array, _, _ in writes(loop)}
        for below in inner(loop):
            known = bound(below)
            for product in taken_off(below):
                left, right = ({array for array, index in side if below.target.id in index}
                               for side in factors(product, known))  # fmt: skip
                if left & right & written:
                    return True
        for call in (one for one in ast.walk(loop) if isinstance(one, ast.Call) and called(one) in helpers):
            given = [ast.unparse(arg) for arg in call.args]
            if any(given.count(array) > 1 for array in written):
                return True
    return False


@cache
def substitutes(function: Function, tree: ast.AST) -> bool:
    """Forward substitution: loop i writes at i what its inner loop k < i read at k and subtracted, times a factor.

    By rows (v -= low[i, k]·out[k], then out[i] = v·pivot[i]) or by columns (out[i] -= U[k, i]·v, v being out[k]).
    """
    return any(_substitutes(loop, below) for loop in loops(function) if not backwards(loop) for below in inner(loop))


def _substitutes(loop: ast.For, below: ast.For) -> bool:
    i, k, known = loop.target.id, below.target.id, bound(loop) | bound(below)
    within = {id(one) for one in ast.walk(below)}
    scaled = {array for array, at, node in writes(loop) if i in at and id(node) not in within}
    spread = {array for array, at, _ in writes(below) if k in at}
    for product in taken_off(below):
        sides = factors(product, known)
        for own, other in (sides, sides[::-1]):
            for array, index in own:
                if array in scaled and array not in {one for one, _ in other}:
                    by_rows, by_columns = k in index and i not in index, i in index and k not in index
                    if by_rows or (by_columns and array in spread):
                        return True
    return False


def whitens(function: Function, tree: ast.AST) -> bool:
    """The index of x from a factor: y = low⁻¹x, and the sums of y·z and of y·y."""
    squares = any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult) and ast.unparse(one.left) == ast.unparse(one.right)
        for one in ast.walk(function)
    )
    return squares and substitutes(function, tree)


def scales_a_root(function: Function, tree: ast.AST) -> bool:
    """A bonus: a plain number (a radius) times the root of one."""
    known = {name for name, value in bound(function).items() if root(value)}

    def of_root(node: ast.AST) -> bool:
        return root(node) or (isinstance(node, ast.Name) and node.id in known)

    def number(node: ast.AST) -> bool:
        return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not of_root(node)

    products = [one for one in ast.walk(function) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
    pairs = [pair for one in products for pair in ((one.left, one.right), (one.right, one.left))]
    return any(of_root(one) and number(other) for one, other in pairs)


def lays_out(function: Function, tree: ast.AST) -> bool:
    """A layout by hand: several views of one packed array, at computed offsets."""
    cuts: dict[str, set[str]] = {}
    for one in ast.walk(function):
        if not isinstance(one, ast.Call):
            continue
        part = one.func.value if called(one) == "reshape" and isinstance(one.func, ast.Attribute) else None
        if len(one.args) == 3 and isinstance(one.args[2], ast.Tuple):
            cuts.setdefault(ast.unparse(one.args[0]), set()).add(ast.unparse(one.args[1]))
        elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice):
            cuts.setdefault(ast.unparse(part.value), set()).add(ast.unparse(part.slice))
    return any(len(places) > 1 for places in cuts.values())


# ------------------------------------------------------------------------------------------ names that are imported


def aliases(tree: ast.Module, wanted: set[str]) -> set[str]:
    """The local names of these names in a module, imported or defined there."""
    found = {one.name for one in functions(tree)} & wanted
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {one.asname or one.name for one in node.names if one.name in wanted}
    return found


def callers(wanted: set[str], trees: dict[str, ast.Module]) -> list[str]:
    """Modules that call one of these functions, under any name."""
    found = []
    for path, tree in trees.items():
        known = aliases(tree, wanted) | wanted
        if any(called(one) in known for one in nodes(tree)):
            found.append(path)
    return found


def kinds_below(root_class: str, trees: dict[str, ast.Module]) -> set[str]:
    """A class and all classes that derive from it."""
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {root_class}
    while True:
        named = {one.name: {ast.unparse(base).split("[")[0].split(".")[-1] for base in one.bases} for one in classes}
        more = {name for name, bases in named.items() if found & bases}
        if more <= found:
            return found
        found |= more


@cache
def questions(tree: ast.Module) -> list[set[str]]:
    """The classes of every type check: isinstance, type(x) is, or a match."""
    meant: dict[str, str] = {}
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            meant |= {one.asname: one.name for one in node.names if one.asname}
        elif isinstance(node, ast.Call) and called(node) in ("isinstance", "issubclass") and len(node.args) == 2:
            found.append(node.args[1])
        elif isinstance(node, ast.Compare) and called(node.left) == "type":
            found += node.comparators
        elif isinstance(node, ast.MatchClass):
            found.append(node.cls)
    spelt = [names(one) | {part.attr for part in ast.walk(one) if isinstance(part, ast.Attribute)} for one in found]
    return [{meant.get(name, name) for name in one} for one in spelt]


# The layout of a state for kernels, and the compiled form of a policy. Types, chance and links are not layout.
LAYOUT = {
    "layout", "point", "counters", "cursor", "floats", "ints", "in_use", "vetted", "marks", "gauge",
    "level_counters", "level_scores", "evidence", "groups", "spare", "_live", "hold",
}  # fmt: skip
OPEN = {"Floats", "Ints"}
LAID_OUT = tuple(f"driftwise.kernels.{one}" for one in ("point", "groups", "adapt", "memor"))


def layout_reads(tree: ast.Module) -> list[str]:
    """The parts of a state's layout that a module reads: attributes, and names imported from the kernels' layout."""
    found = [
        one.attr for one in ast.walk(tree)
        if isinstance(one, ast.Attribute) and one.attr in LAYOUT and not _belongs(one)
    ]  # fmt: skip
    for one in ast.walk(tree):
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith(LAID_OUT):
            found += [name.name for name in one.names if name.name not in OPEN]
    return found


def _belongs(one: ast.Attribute) -> bool:
    """Exceptions: `found.groups()` of a regular expression, `made.cursor()` of a database, and self.… of its own."""
    return isinstance(one.value, ast.Name) and one.value.id in ("self", "found", "made")


def asked_kind(kinds: set[str], tree: ast.Module) -> int:
    """How often a module checks whether something is of one of these classes."""
    return sum(bool(one & kinds) for one in questions(tree))
