"""The groups of numbers in a state, declared once.

A state is two packed arrays, floats and ints, cut into named groups. A group's shape follows from the sizes of the
state (`group_shapes`). Bundles of groups are cut out of a packed state by their places among a policy's flags and their
shapes, and Python allocates states by the same shapes (policies/state.py). Also here: the checks of a loaded state
(policies/vetting.py), and which numbers are unused space, so that equal memories have equal bytes.

Files contain sizes and groups in this order: a new one comes last among its kind.
"""

from __future__ import annotations

from typing import NamedTuple

from driftwise.kernels import formula, piece
from driftwise.kernels.cut import Floats, Ints, Vector, cut

# Columns of a lane's counters, numbers of a key: kernels/point.py names each.
COUNTERS, KEY = 8, 2


class StateSizes(NamedTuple):
    """The sizes of a state: features, lanes, lanes with a twin, places of the ring, atoms, estimates that are played,
    all estimates (a bank also has those that score), the lengths of scores, before, limits and notes, of the cursor, of
    marks, lanes that believe, the numbers of their covariances, and the length of the gauge."""

    dim: int
    lanes: int
    twins: int
    room: int
    atoms: int
    played: int
    estimates: int
    scores: int
    before: int
    limits: int
    notes: int
    cursors: int
    marks: int
    beliefs: int  # files always have the sizes before this one; the others were added later
    spreads: int
    gauges: int


One = tuple[int]
Two = tuple[int, int]
Three = tuple[int, int, int]


class GroupShapes(NamedTuple):
    """The shapes of all groups of a state: first the groups of floats, then those of whole numbers."""

    G: Three
    twin: Three
    b: Two
    counters: Two
    ring: Two
    atoms: Two
    weights: Two
    targets: Two
    theta: Two
    shown: Two
    H: Three
    notes: One
    scores: One
    before: One
    limits: One
    mean: Two
    spread: One
    trust: One
    gauge: One
    key: One
    cursor: One
    marks: One


@formula
def group_shapes(size: StateSizes) -> GroupShapes:
    """The shape of every group. GroupShapes that a family does not use are empty: what believes has no sums."""
    d, lanes = size.dim, size.lanes
    sums = lanes if size.beliefs == 0 else 0
    return GroupShapes(
        G=(sums, d, d),
        twin=(size.twins, d, d),
        b=(sums, d),
        counters=(lanes, COUNTERS),
        ring=(size.room, d + 2),
        atoms=(d, size.atoms),
        weights=(size.played, size.atoms),
        targets=(size.played, size.atoms),
        theta=(size.estimates, d),
        shown=(size.played, d),
        H=(size.estimates, d, d),
        notes=(size.notes,),
        scores=(size.scores,),
        before=(size.before,),
        limits=(size.limits,),
        mean=(size.beliefs, 2 * d + 1),
        spread=(size.spreads,),
        trust=(size.beliefs,),
        gauge=(size.gauges,),
        key=(KEY,),
        cursor=(size.cursors,),
        marks=(size.marks,),
    )


INT_GROUPS = ("key", "cursor", "marks")
FLOAT_GROUPS = GroupShapes._fields[: -len(INT_GROUPS)]
# The groups beyond whose count in the cursor (`ring` or `atoms`) there is unused space.
ROOMS = {"ring": "ring", "atoms": "atoms", "weights": "atoms", "targets": "atoms"}

_SUM, _SQUARES = ("squares",), ("squares",)
# The checks of policies/vetting.py. Marks are checked where they are used.
DEMANDS: dict[str, tuple[str, ...]] = {
    "G": _SUM, "twin": _SQUARES, "b": ("sum",), "counters": ("-inf since", "counters"), "ring": ("observations",),
    "atoms": ("arms",), "weights": ("weights",), "H": ("positive",), "notes": ("inf least", "clock"),
    "scores": ("scores",), "limits": ("inf",), "mean": ("sum",), "spread": ("sum",), "trust": ("shares",),
    "gauge": ("gauge",), "key": ("key",), "cursor": ("cursor",),
}  # fmt: skip

# Places in the flags of a policy: the kinds of its pieces, then sizes, then the offset of each group.
FIRST_SIZE = 8
FIRST_GROUP = FIRST_SIZE + len(StateSizes._fields)
LAST_GROUP = FIRST_GROUP + len(GroupShapes._fields) - 1
(
    AT_G, AT_TWIN, AT_B, AT_COUNTERS, AT_RING, AT_ATOMS, AT_WEIGHTS, AT_TARGETS, AT_THETA, AT_SHOWN, AT_H, AT_NOTES,
    AT_SCORES, AT_BEFORE, AT_LIMITS, AT_MEAN, AT_SPREAD, AT_TRUST, AT_GAUGE, AT_KEY, AT_CURSOR, AT_MARKS,
) = range(FIRST_GROUP, LAST_GROUP + 1)  # fmt: skip


@piece
def shapes_of(flags: Ints) -> GroupShapes:
    """The shape of every group, by the sizes among the flags."""
    at = FIRST_SIZE
    return group_shapes(
        StateSizes(
            flags[at], flags[at + 1], flags[at + 2], flags[at + 3], flags[at + 4], flags[at + 5], flags[at + 6],
            flags[at + 7], flags[at + 8], flags[at + 9], flags[at + 10], flags[at + 11], flags[at + 12], flags[at + 13],
            flags[at + 14], flags[at + 15],
        )
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ bundles


class Sums(NamedTuple):
    """Weighted sums: G (K, d, d) and its twin of squared weights (lower triangles), b (K, d), counters (K, 8)."""

    G: Floats
    twin: Floats
    b: Floats
    counters: Floats


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
    notes: Vector
    scores: Vector
    before: Vector


@piece
def sums_of(flags: Ints, floats: Floats) -> Sums:
    """Cut from a packed state, as are the others."""
    shape = shapes_of(flags)
    return Sums(
        cut(floats, flags[AT_G], shape.G),
        cut(floats, flags[AT_TWIN], shape.twin),
        cut(floats, flags[AT_B], shape.b),
        cut(floats, flags[AT_COUNTERS], shape.counters),
    )


@piece
def history_of(flags: Ints, floats: Floats, ints: Ints) -> History:
    """Ring and atoms."""
    shape = shapes_of(flags)
    return History(
        cut(floats, flags[AT_RING], shape.ring),
        cut(ints, flags[AT_CURSOR], shape.cursor),
        cut(floats, flags[AT_ATOMS], shape.atoms),
        cut(floats, flags[AT_WEIGHTS], shape.weights),
        cut(floats, flags[AT_TARGETS], shape.targets),
    )


@piece
def estimate_of(flags: Ints, floats: Floats) -> EstimateBundle:
    """Estimates."""
    shape = shapes_of(flags)
    theta, shown = cut(floats, flags[AT_THETA], shape.theta), cut(floats, flags[AT_SHOWN], shape.shown)
    return EstimateBundle(theta, shown, cut(floats, flags[AT_H], shape.H))


@piece
def adapting_of(flags: Ints, floats: Floats, ints: Ints) -> Adapting:
    """The data of an adaptation."""
    shape = shapes_of(flags)
    return Adapting(
        cut(ints, flags[AT_KEY], shape.key),
        cut(ints, flags[AT_MARKS], shape.marks),
        cut(floats, flags[AT_NOTES], shape.notes),
        cut(floats, flags[AT_SCORES], shape.scores),
        cut(floats, flags[AT_BEFORE], shape.before),
    )
