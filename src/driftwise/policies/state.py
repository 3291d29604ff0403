"""What a policy remembers: named groups of plain arrays, packed into one array of floats and one of whole numbers."""

from __future__ import annotations

import io
import math
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.adapt.book import TICK
from driftwise.kernels.point import CLOCK, COUNT, DROPPED, KEY_HIGH, KEY_LOW, LOST, SINCE, SQUARES, WEIGHT, Floats, Ints
from driftwise.rng import checked_seed


class Group(NamedTuple):
    """Where a group lies in its packed array."""

    start: int
    stop: int
    shape: tuple[int, ...]


class Layout:
    """The groups that a family's states hold. `flags` has their sizes and places, for the kernels to cut by."""

    def __init__(self, sizes: Ints) -> None:
        self.flags = np.zeros(point.FLAGS, dtype=np.int64)
        self.flags[point.DIM : point.AT_G] = sizes
        shapes = point.group_shapes(self.flags)
        self.floats, floats = self._place(point.FLOAT_GROUPS, shapes, point.AT_G)
        self.ints, ints = self._place(point.INT_GROUPS, shapes, point.AT_KEY)
        self.groups = {"floats": floats, "ints": ints}

    @property
    def sizes(self) -> Ints:
        return self.flags[point.DIM : point.AT_G]

    def _place(
        self, names: tuple[str, ...], shapes: dict[str, tuple[int, ...]], at: int
    ) -> tuple[int, dict[str, Group]]:
        """One group behind the other; the length of all, and those that are not empty."""
        start, groups = 0, {}
        for number, name in enumerate(names):
            stop = start + math.prod(shapes[name])
            self.flags[at + number] = start
            if stop > start:
                groups[name] = Group(start, stop, shapes[name])
            start = stop
        return start, groups

    def start(self, seed: int) -> State:
        """Nothing in any group: the clock stands at 0 and no restart has been. The seed is the key to draw with."""
        key = checked_seed(seed)
        state = State(self, np.zeros(self.floats), np.zeros(self.ints, dtype=np.int64))
        state.counters[:, SINCE] = -math.inf
        state.key[KEY_LOW], state.key[KEY_HIGH] = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
        return state


def layout(dim: int, lanes: int = 1, **sizes: int) -> Layout:
    """The layout of states with these sizes, named as in kernels/point.py; those left out are 0."""
    vector = np.zeros(point.AT_G - point.DIM, dtype=np.int64)
    for name, size in {"dim": dim, "lanes": lanes, **sizes}.items():
        vector[getattr(point, name.upper()) - point.DIM] = size
    return Layout(vector)


class State:
    """What a policy remembers: K lanes of sums, changed in place and never rebound (DESIGN.md).

    A state has the groups its family needs, each a plain array under its name: G (K, d, d) and its twin hold weighted
    sums of x x' and their squared-weight twins in the lower triangle, b (K, d) the weighted sum of rewards, counters
    (K, 8) clock, observations, weights, squared weights, last restart, and what was dropped, lost or failed; the key
    is there to draw with. A window adds ring and cursor. Generalized linear policies add the history as atoms
    (d, capacity) with weights and targets (K, capacity), the estimate theta, the point of the ball shown to the rule,
    and its Hessian H; those that adapt add marks, notes and scores of their own.
    """

    __slots__ = ("floats", "ints", "layout")

    def __init__(self, layout: Layout, floats: Floats, ints: Ints) -> None:
        self.layout, self.floats, self.ints = layout, floats, ints

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
        """Time in ticks; a policy that adapts keeps it apart from the clocks of its lanes."""
        adapts = "notes" in self.layout.groups["floats"]
        return float(self.notes[TICK] if adapts else self.counters[0, CLOCK])

    @property
    def observations(self) -> int:
        """Observations the estimate rests on, whatever their weight."""
        return int(self.counters[0, COUNT])

    @property
    def weight(self) -> float:
        """Sum of weights."""
        return float(self.counters[0, WEIGHT])

    @property
    def squares(self) -> float:
        """Sum of squared weights, E."""
        return float(self.counters[0, SQUARES])

    @property
    def dropped(self) -> int:
        """Observations that came too late to count, or found no place."""
        return int(self.counters[0, DROPPED])

    @property
    def lost(self) -> float:
        """Weight of the history that found no place among the atoms, faded like the rest."""
        return float(self.counters[0, LOST])

    def copy(self) -> State:
        """An independent copy."""
        return State(self.layout, self.floats.copy(), self.ints.copy())

    def to_bytes(self) -> bytes:
        """The whole state as one npz archive of plain arrays."""
        out = io.BytesIO()
        np.savez(out, sizes=self.layout.sizes, floats=self.floats, ints=self.ints)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """The state that `to_bytes` wrote, bit for bit."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return cls(Layout(arrays["sizes"]), arrays["floats"], arrays["ints"])
        except (KeyError, ValueError, OSError, EOFError, BadZipFile) as error:
            got = f"{len(data)} bytes ({error})"
            raise BadInput("data", got, "what State.to_bytes wrote", "save the state anew") from None
