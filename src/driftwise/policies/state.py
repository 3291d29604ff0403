"""The state of a policy: named groups of plain arrays, packed into one array of floats and one of integers."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal import container
from driftwise._internal.rng import checked_seed
from driftwise._internal.shipped import buffer_of
from driftwise.errors import BadInput
from driftwise.kernels import groups, point
from driftwise.kernels.adapt.book import TICK
from driftwise.kernels.point import CLOCK, FLAGS, HEAD, KEY_HIGH, KEY_LOW, SINCE, SIZE, USED, Floats, Ints

NO_SCRATCH = np.zeros(0)

# Files always have the sizes before this one.
FIRST_LATER_SIZE = groups.StateSizes._fields.index("beliefs")
# A larger state is most likely an error in a window or a horizon.
MOST_NUMBERS = 2**31


class GroupPlace(NamedTuple):
    """The place of a group in its packed array."""

    start: int
    stop: int
    shape: tuple[int, ...]


class Layout:
    """The groups of a family's states. `flags` has their sizes and offsets, for the kernels."""

    def __init__(self, sizes: Sequence[int]) -> None:
        sizes = [*sizes, *[0] * (len(groups.StateSizes._fields) - len(sizes))]  # files omit the last zeros
        shapes = groups.group_shapes(groups.StateSizes(*sizes))._asdict()
        self.numbers = sum(math.prod(shape) for shape in shapes.values())
        if self.numbers > MOST_NUMBERS:
            raise self.too_large()
        self.flags = np.zeros(FLAGS, dtype=np.int64)
        self.sizes[:] = sizes
        self.floats, floats = self._place(groups.FLOAT_GROUPS, shapes)
        self.ints, ints = self._place(groups.INT_GROUPS, shapes)
        self.groups = {"floats": floats, "ints": ints}

    def too_large(self) -> BadInput:
        """The error for a state that does not fit in memory."""
        wanted = f"a state that fits in memory, of at most {MOST_NUMBERS * 8 / 2**30:.0f} GiB"
        way_out = 'pass a shorter window, period or horizon, a smaller capacity, or estimate="one-pass"'
        return BadInput("state", f"{self.numbers / 2**27:.3g} GiB of numbers", wanted, way_out)

    @property
    def sizes(self) -> Ints:
        return self.flags[groups.FIRST_SIZE : groups.FIRST_GROUP]

    def written_sizes(self) -> list[int]:
        """The sizes as files have them: sizes that were added later are left out if they and all after them are 0, so
        that states of older policies do not change."""
        sizes: list[int] = self.sizes.tolist()
        while len(sizes) > FIRST_LATER_SIZE and sizes[-1] == 0:
            sizes.pop()
        return sizes

    def _place(
        self, declared: Sequence[str], shapes: dict[str, tuple[int, ...]]
    ) -> tuple[int, dict[str, GroupPlace]]:
        """Place one group after the other. Returns the total length, and the groups that are not empty."""
        start, placed = 0, {}
        for name in declared:
            stop = start + math.prod(shapes[name])
            self.flags[groups.FIRST_GROUP + groups.GroupShapes._fields.index(name)] = start
            if stop > start:
                placed[name] = GroupPlace(start, stop, shapes[name])
            start = stop
        return start, placed

    def start(self, seed: int, owner: str) -> State:
        """An empty state: the clock is 0 and there was no restart. The seed is the key for draws."""
        key = checked_seed(seed)
        try:
            floats, ints = np.zeros(self.floats), np.zeros(self.ints, dtype=np.int64)
        except MemoryError:
            raise self.too_large() from None
        state = State(self, floats, ints, owner, vetted=True)
        state.counters[:, SINCE] = -math.inf
        state.key[KEY_LOW], state.key[KEY_HIGH] = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
        return state

    def state(self, floats: Any, ints: Any, owner: str, way_out: str) -> State:
        """A state of these arrays, or a BadInput. Its numbers are checked when a policy first uses it."""
        for name, array, kind, length in (("floats", floats, "f8", self.floats), ("ints", ints, "i8", self.ints)):
            if array is None or array.dtype != np.dtype(kind) or array.shape != (length,):
                raise BadInput("data", f"{name} of other sizes", f"{length} numbers of a state of this policy", way_out)
        return State(self, floats, ints, owner, vetted=False)


def layout(dim: int, lanes: int = 1, **sizes: int) -> Layout:
    """The layout of states with these sizes, named as in kernels/groups.py; missing sizes are 0."""
    given = {"dim": dim, "lanes": lanes, **sizes}
    return Layout(groups.StateSizes(**(dict.fromkeys(groups.StateSizes._fields, 0) | given)))


def _counter(column: int, kind: type, what: str) -> Any:
    """A counter of the first lane."""
    return property(lambda state: kind(state.counters[0, column]), doc=what)


class State:
    """The state of a policy: K lanes of sums, changed in place and never rebound (CONTRIBUTING.md#how-a-policy-runs).

    A state has the groups that its family needs, each a plain array under its name. G (K, d, d) and its twin have sums
    of x x' with weights and with squared weights, in the lower triangle; b (K, d) has the weighted sum of rewards;
    counters (K, 8) has clock, observations, weights, squared weights, last restart, and what was dropped, lost or
    failed; the key is for draws. A window adds ring and cursor. Generalized linear policies add the history as atoms
    (d, capacity) with weights and targets (K, capacity), the estimate theta, the point of the ball shown to the rule,
    and its Hessian H. Policies that adapt add marks, notes and scores. Auto has no sums; it has mean, spread and trust
    of its lanes, and a gauge.

    One thread at a time: a state in use refuses a second one. `owner` is the digest of the policy it belongs to.
    """

    __slots__ = (
        "floats", "form", "in_use", "ints", "layout", "outside", "owner", "packed", "ready", "scratch", "spare",
        "vetted", "warned",
    )  # fmt: skip

    def __init__(self, layout: Layout, floats: Floats, ints: Ints, owner: str, *, vetted: bool) -> None:
        self.layout, self.floats, self.ints, self.owner, self.vetted = layout, floats, ints, owner, vetted
        self.in_use = threading.Lock()
        self.spare: State | None = None  # the copy to which a failed lesson is rolled back
        self.packed = buffer_of(floats), buffer_of(ints)  # the same arrays, as entries take them
        # The number of arms scored last, scratch for them, the offset of the bonuses, and scratch as entries take it.
        self.scratch = (0, NO_SCRATCH, 0, NO_SCRATCH)
        self.ready: Any = None  # arms that were used last, or what live calls with the same arms need (live.py)
        self.form: Any = None  # the Index of a search over a continuous set, which is scratch too
        self.outside = 0  # consecutive lessons with the estimate outside the ball
        self.warned = False  # whether a warning about dropped observations was given

    def __getattr__(self, name: str) -> Any:
        if name not in State.__slots__:
            for packed, groups in self.layout.groups.items():
                if name in groups:
                    group = groups[name]
                    return getattr(self, packed)[group.start : group.stop].reshape(group.shape)
        raise AttributeError(f"this state has no {name}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.groups()]

    def groups(self) -> dict[str, Any]:
        """Every group by name."""
        return {name: getattr(self, name) for groups in self.layout.groups.values() for name in groups}

    @property
    def clock(self) -> float:
        """Time in ticks. A policy that adapts keeps it separate from the clocks of its lanes."""
        adapts = "notes" in self.layout.groups["floats"]
        return float(self.notes[TICK] if adapts else self.counters[0, CLOCK])

    observations = _counter(point.COUNT, int, "Observations the estimate rests on, whatever their weight.")
    weight = _counter(point.WEIGHT, float, "Sum of weights.")
    squares = _counter(point.SQUARES, float, "Sum of squared weights, E.")
    dropped = _counter(point.DROPPED, int, "Observations that came too late to count, or found no place.")
    lost = _counter(point.LOST, float, "Weight of the history that found no place among atoms, faded like the rest.")

    def set_clock(self, clock: float) -> None:
        """Set the clocks of all lanes."""
        self.counters[:, CLOCK] = clock

    def begin(self, phase: float) -> None:
        """Bring a new state to a time of its first period, which began at 0."""
        self.counters[:, CLOCK], self.counters[:, SINCE] = phase, 0.0

    def release(self) -> None:
        """End a use that was interrupted, if no other thread has the state."""
        if self.in_use.locked():
            self.in_use.release()

    def become(self, other: State) -> None:
        """Take over all numbers of another state of the same layout."""
        self.floats[:], self.ints[:] = other.floats, other.ints

    def add_atoms(self, other: State) -> None:
        """Add the weights of atoms that both states have. The others need free places; otherwise BadInput."""
        atoms, weights, targets = self.atoms, self.weights, self.targets
        used, room = int(self.cursor[USED]), atoms.shape[1]
        places = {atoms[:, a].tobytes(): a for a in range(used)}
        for a in range(int(other.cursor[USED])):
            at = places.get(other.atoms[:, a].tobytes(), used)
            if at == used:
                if used == room:
                    raise BadInput("capacity", room, "room for the vectors of both agents", "pass a larger capacity=")
                atoms[:, at] = other.atoms[:, a]
                weights[:, at], targets[:, at] = 0.0, 0.0
                used += 1
            weights[:, at] += other.weights[:, a]
            targets[:, at] += other.targets[:, a]
        self.cursor[USED] = used
        assert np.isfinite(weights).all()

    def copy(self) -> State:
        """An independent copy."""
        try:
            return State(self.layout, self.floats.copy(), self.ints.copy(), self.owner, vetted=self.vetted)
        except MemoryError:
            raise self.layout.too_large() from None

    def clear_room(self) -> None:
        """Set unused space to 0, so that equal memories have equal bytes."""
        for name, values in self.groups().items():
            room = groups.ROOMS.get(name)
            if room == "ring":
                head, size = int(self.cursor[HEAD]), int(self.cursor[SIZE])
                values[(head + np.arange(size, len(values))) % len(values)] = 0.0
            elif room == "atoms":
                values[:, int(self.cursor[USED]) :] = 0.0

    def __copy__(self) -> State:
        return self.copy()

    def __deepcopy__(self, memo: object) -> State:
        return self.copy()

    def to_bytes(self) -> bytes:
        """The state as one container (docs/contract.md#snapshots): numbers, the policy's digest, a digest of all."""
        facts = {"policy": self.owner, "sizes": self.layout.written_sizes()}
        return container.pack("state", facts, {"floats": self.floats, "ints": self.ints})

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """The state that `to_bytes` wrote, bit for bit. Its numbers are checked when a policy first uses it."""
        facts, arrays = container.unpack("state", data, _ANEW)
        sizes, owner = facts.get("sizes"), facts.get("policy")
        floats, ints = arrays.get("floats"), arrays.get("ints")
        least, most = FIRST_LATER_SIZE, len(groups.StateSizes._fields)
        if not isinstance(sizes, list) or len(sizes) < least or not isinstance(owner, str):
            raise BadInput("data", "no sizes or no policy", "the header of a state", _ANEW)
        if len(sizes) > most:
            wanted = f"a state of this version, which has at most {most}"
            raise BadInput("data", f"{len(sizes)} sizes", wanted, "make a new one and let it learn the log")
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise BadInput("data", "sizes out of range", "the sizes of a state's groups", _ANEW)
        return Layout(sizes).state(floats, ints, owner, _ANEW)


_ANEW = "save the state again"
