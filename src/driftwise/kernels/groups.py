"""The groups of numbers in a state, declared once.

A state is two packed arrays, floats and ints, cut into named groups. A group's shape is written in the sizes of the
state. The declaration defines the places of sizes and groups in a policy's flags, the functions that cut a bundle of
groups out of a packed state, the layout that Python allocates (policies/state.py), the checks of a loaded state
(policies/vetting.py), and which numbers are unused space, so that equal memories have equal bytes.

Files contain sizes and groups in this order: a new one comes last among its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from driftwise.kernels import piece
from driftwise.kernels.cut import Floats, Ints, cut, written

T = TypeVar("T")

# Columns of a lane's counters, moments of a level's filter, numbers of a key: kernels/point.py names each.
COUNTERS, MOMENTS, KEY = 8, 6, 2


class Group(NamedTuple):
    """A group of a state: its shape in sizes, the checks of policies/vetting.py, and the cursor's count (`ring` or
    `atoms`) beyond which it is unused space."""

    name: str
    shape: str
    demands: tuple[str, ...] = ()
    room: str = ""


# Features, lanes, lanes with a twin, places of the ring, atoms, estimates that are played, all estimates (a bank also
# has those that score), the lengths of scores, before, limits and notes, of the cursor, of marks, lanes with lagged
# sums, the length of the gauge, lanes with a separate level, and levels.
SIZES = (
    "dim", "lanes", "twins", "room", "atoms", "played", "estimates", "scores", "before", "limits", "notes", "cursors",
    "marks", "lags", "gauges", "levels", "filters",
)  # fmt: skip
# Files always have the sizes before this one; the others were added later.
FIRST_LATER_SIZE = SIZES.index("lags")

_SUM, _SQUARES = ("sum", "products", "squares"), ("squares",)

FLOAT_GROUPS = (
    Group("G", "lanes, dim, dim", _SUM),
    Group("twin", "twins, dim, dim", _SQUARES),
    Group("b", "lanes, dim", ("sum",)),
    Group("counters", "lanes, COUNTERS", ("-inf since", "counters")),
    Group("ring", "room, dim + 2", ("observations",), "ring"),
    Group("atoms", "dim, atoms", ("arms",), "atoms"),
    Group("weights", "played, atoms", ("weights",), "atoms"),
    Group("targets", "played, atoms", (), "atoms"),
    Group("theta", "estimates, dim"),
    Group("shown", "played, dim"),
    Group("H", "estimates, dim, dim", ("positive",)),
    Group("notes", "notes", ("inf least", "clock")),
    Group("scores", "scores", ("scores",)),
    Group("before", "before"),
    Group("limits", "limits", ("inf",)),
    Group("lag", "lags, dim, dim", ("sum", "products with lags", "squares")),
    Group("lag_square", "lags, dim, dim", _SUM),
    Group("lag_reward", "lags, dim", ("sum",)),
    Group("gauge", "gauges", ("gauge",)),
    Group("level_G", "levels, dim, dim", _SUM),
    Group("level_b", "levels, dim", ("sum",)),
    Group("level_counters", "levels, COUNTERS", ("counters",)),
    Group("filters", "filters, MOMENTS + 2 * (dim + 1)", ("sum", "filters")),
    Group("level_scores", "levels", ("shares",)),
    Group("evidence", "min(levels, 1)"),
)
INT_GROUPS = (
    Group("key", "KEY", ("key",)),
    Group("cursor", "cursors", ("cursor",)),
    Group("marks", "marks"),  # checked where they are used
)
GROUPS = {group.name: group for group in (*FLOAT_GROUPS, *INT_GROUPS)}

# Places in the flags of a policy: the kinds of its pieces, then sizes, then the offset of each group.
_SETTINGS = 8
SIZE_AT = {name: _SETTINGS + number for number, name in enumerate(SIZES)}
GROUP_AT = {name: _SETTINGS + len(SIZES) + number for number, name in enumerate(GROUPS)}
FIRST_SIZE, FIRST_GROUP = _SETTINGS, _SETTINGS + len(SIZES)
LAST_GROUP = FIRST_GROUP + len(GROUPS) - 1

_ROOMS = [place for place, group in enumerate(FLOAT_GROUPS) if group.room]
assert _ROOMS == list(range(_ROOMS[0], _ROOMS[-1] + 1)), "groups with unused room follow each other"
# The offsets of the groups with unused space, and of those after them.
AT_ROOMS, AT_BEHIND_ROOMS = FIRST_GROUP + _ROOMS[0], FIRST_GROUP + _ROOMS[-1] + 1


def group_shapes(sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The shape of every group, from the sizes in their order. Groups that a family does not use are empty."""
    names = dict(zip(SIZES, sizes, strict=True))
    return {name: eval(f"({group.shape},)", globals(), names) for name, group in GROUPS.items()}


# ------------------------------------------------------------------------------------------ bundles


def _cut_of(name: str) -> str:
    """The source that cuts a group."""
    packed = "ints" if GROUPS[name] in INT_GROUPS else "floats"
    return f"cut({packed}, flags[{GROUP_AT[name]}], ({GROUPS[name].shape},))"


def _nothing_like(name: str) -> str:
    """The source of an empty view with as many axes as a group; its 0 is not a literal, which would have another
    type."""
    axes = GROUPS[name].shape.split(",")
    return f"cut(floats, dim - dim, ({', '.join(['dim - dim', *axes[1:]])},))"


def _fields_of(bundle: type, named: Mapping[str, Any]) -> str:
    fields: list[str] = []
    for field in bundle._fields:  # type: ignore[attr-defined]
        group = named.get(field, field)
        if isinstance(group, tuple):
            inner, places = group
            fields.append(_fields_of(inner, places))
        else:
            fields.append(_cut_of(group) if group else _nothing_like(field))
    return f"{bundle.__name__}({', '.join(fields)})"


def bundle_of(bundle: type[T], arrays: str, **named: Any) -> Callable[..., T]:
    """The piece (flags, then `arrays`) that cuts a NamedTuple of groups out of a packed state.

    A field is the group of its name, or of the name given for it; None makes it empty; (NamedTuple, {field: name}) is a
    bundle within.
    """
    name = f"{bundle.__name__.lower()}_of"
    sizes = "\n".join(f"    {size} = flags[{place}]" for size, place in SIZE_AT.items())
    source = f"def {name}(flags, {arrays}):\n{sizes}\n    return {_fields_of(bundle, named)}\n"
    inner = {group[0].__name__: group[0] for group in named.values() if isinstance(group, tuple)}
    constants = {"cut": cut, "COUNTERS": COUNTERS, "MOMENTS": MOMENTS, "KEY": KEY, "__name__": bundle.__module__}
    made: Callable[..., T] = piece(written(source, name, {**constants, **inner, bundle.__name__: bundle}))
    return made


class Sums(NamedTuple):
    """Weighted sums: G (K, d, d) and its twin of squared weights (lower triangles), b (K, d), counters (K, 8).

    A memory that follows a trend has them also with every weight times the lag, and times its square.
    """

    G: Floats
    twin: Floats
    b: Floats
    counters: Floats
    lag: Floats
    lag_square: Floats
    lag_reward: Floats


class History(NamedTuple):
    """Observations one by one, and as atoms.

    ring (capacity, d+2) holds x, reward and birth; atoms (d, capacity) the distinct vectors, weights and targets
    (K, capacity) their Σw and Σwr.
    """

    ring: Floats
    cursor: Ints
    atoms: Floats
    weights: Floats
    targets: Floats


class EstimateBundle(NamedTuple):
    """theta (K, d) is θ̂, shown (K, d) the point that the rule uses, H (K, d, d) the Hessian."""

    theta: Floats
    shown: Floats
    H: Floats


class Adapting(NamedTuple):
    """The data of an adaptation: a key for draws, integers and floats, a score per memory, MASTER's `before`."""

    key: Ints
    marks: Ints
    notes: Floats
    scores: Floats
    before: Floats


sums_of = bundle_of(Sums, "floats")
history_of = bundle_of(History, "floats, ints")
estimate_of = bundle_of(EstimateBundle, "floats")
adapting_of = bundle_of(Adapting, "floats, ints")
