"""Paths of θ on the sphere of the world's radius."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from driftwise._internal.elementary import power
from driftwise._internal.products import length
from driftwise._internal.rng import stream
from driftwise._internal.validate import array, keep_whole, one_of, real
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.kernels.tapes import normals, turn_, walk_
from driftwise.worlds.base import World


def _stretches(horizon: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, horizon, size):
        yield start, min(start + size, horizon)


def _direction(rng: np.random.Generator, dim: int) -> Floats:
    x = normals(rng, dim)
    return np.asarray(x / length(x))


@dataclass(frozen=True, kw_only=True)
class Still(World):
    """θ stays at [radius, 0, …]."""

    def path(self) -> Iterator[Floats]:
        for start, stop in _stretches(self.horizon, self.stretch):
            theta = np.zeros((stop - start, self.dim))
            theta[:, 0] = self.radius
            yield theta


@dataclass(frozen=True, kw_only=True)
class _Angle(World):
    """θ turns in the plane of the first two coordinates."""

    turns: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        real("turns", self.turns, -math.inf, way_out="pass the number of revolutions over the horizon")
        if self.dim < 2:
            raise BadInput("dim", self.dim, "at least 2, because θ cannot turn in one dimension", "use Jumps or Walk")

    def _share(self, rounds: Floats) -> Floats:
        """The share of the way before each 0-based round."""
        raise NotImplementedError

    def path(self) -> Iterator[Floats]:
        for start, stop in _stretches(self.horizon, self.stretch):
            angle = 2.0 * math.pi * self.turns * self._share(np.arange(start, stop, dtype=np.float64))
            theta = np.zeros((stop - start, self.dim))
            turn_(angle, float(self.radius), theta)
            yield theta


@dataclass(frozen=True, kw_only=True)
class Turn(_Angle):
    """θ turns at constant speed from [radius, 0, …]: angle 2π·turns·(t-1)/T at round t (the paper's world)."""

    def _share(self, rounds: Floats) -> Floats:
        return rounds / self.horizon


@dataclass(frozen=True, kw_only=True)
class StopAndGo(_Angle):
    """θ turns only between the shares `go` of the horizon, and is constant outside: (0.5, 1) is constant, then
    turning."""

    go: tuple[float, float] = (0.5, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        pair = array("go", self.go, (2,), "pass go=(0.5, 1.0)")
        if not 0.0 <= pair[0] < pair[1] <= 1.0:
            raise BadInput("go", self.go, "two shares of the horizon, 0 <= start < stop <= 1", "pass go=(0.5, 1.0)")

    def _share(self, rounds: Floats) -> Floats:
        start, stop = (share * self.horizon for share in self.go)
        return np.clip((rounds - start) / (stop - start), 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Sine(World):
    """Coordinates oscillate, neighbours with opposite signs.

    At round t they are radius·(centre ± swing·sin(2π·waves·T^power·t/T)). With the defaults, 2 arms and draw="basis" it
    is the world of Cheung, Simchi-Levi, Zhu 2019 at B = 1; with power=1/3 at B = T^(1/3).
    """

    centre: float = 0.5
    swing: float = 0.3
    waves: float = 2.5
    power: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("centre", "swing", "waves", "power"):
            real(name, getattr(self, name), -math.inf, way_out="pass a number")

    @property
    def S(self) -> float:
        ends = [
            [self.centre + (sign if i % 2 else -sign) * self.swing for i in range(self.dim)] for sign in (1.0, -1.0)
        ]
        return float(self.radius) * max(math.sqrt(sum(x * x for x in one)) for one in ends)

    def path(self) -> Iterator[Floats]:
        way = np.where(np.arange(self.dim) % 2, -self.swing, self.swing)
        waves = self.waves * power(float(self.horizon), float(self.power))
        for start, stop in _stretches(self.horizon, self.stretch):
            circle = np.empty((stop - start, 2))
            turn_(2.0 * math.pi * waves * np.arange(start + 1, stop + 1) / self.horizon, 1.0, circle)
            yield self.radius * (self.centre + circle[:, 1:] * way)


@dataclass(frozen=True, kw_only=True)
class Walk(World):
    """A random walk on the sphere: θ + radius·step·N(0, I), scaled back to the radius, every round."""

    step: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        real("step", self.step, 0.0, way_out="pass the size of a step relative to the radius, e.g. 0.01")

    def path(self) -> Iterator[Floats]:
        rng = stream(self.path_seed, "walk")
        last = self.radius * _direction(rng, self.dim)
        for start, stop in _stretches(self.horizon, self.stretch):
            steps = self.radius * self.step * normals(rng, (stop - start, self.dim))
            if start == 0:
                steps[0] = 0.0
            theta = np.empty((stop - start, self.dim))
            theta[-1] = last
            walk_(theta, steps, float(self.radius))
            last = theta[-1]
            yield theta


@dataclass(frozen=True, kw_only=True)
class Jumps(World):
    """θ is constant between `jumps` equally spaced jumps, each to a random direction.

    `directions` fixes the parameters of the segments instead (one row each, scaled to the radius, or with scaled=False
    times the radius), `at` the 0-based rounds of the jumps.
    """

    jumps: int = 3
    at: tuple[int, ...] | None = None
    directions: tuple[tuple[float, ...], ...] | None = None
    scaled: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_whole(self, "jumps", 0, "pass the number of jumps")
        if self.jumps >= self.horizon:
            raise BadInput("jumps", self.jumps, f"fewer than horizon = {self.horizon}", "pass fewer")
        if self.at is not None and (self.jumps or np.size(self.at)):
            at = array("at", self.at, (self.jumps,), "leave it out for equal spacing")
            if (np.diff(at, prepend=0.0) <= 0.0).any() or at[-1] >= self.horizon or (at != np.floor(at)).any():
                wanted = f"{self.jumps} rising whole rounds from 1 to {self.horizon - 1}"
                raise BadInput("at", self.at, wanted, "leave it out for equal spacing")
        if self.directions is not None:
            rows = array("directions", self.directions, (self.jumps + 1, self.dim), "leave it out for random ones")
            if not rows.any(axis=1).all():
                raise BadInput("directions", self.directions, "rows that are not all 0", "leave it out")
        one_of("scaled", self.scaled, [True, False])
        if not self.scaled and self.directions is None:
            raise BadInput("scaled", False, "directions with scaled=False", "pass both, or neither")

    @property
    def S(self) -> float:
        if self.scaled or self.directions is None:
            return float(self.radius)
        return float(self.radius) * max(math.sqrt(sum(x * x for x in row)) for row in self.directions)

    def path(self) -> Iterator[Floats]:
        rng = stream(self.path_seed, "jumps")
        if self.directions is None:
            rows = [_direction(rng, self.dim) for _ in range(self.jumps + 1)]
        else:
            norms = [math.sqrt(sum(x * x for x in row)) if self.scaled else 1.0 for row in self.directions]
            rows = [np.array(row) / norm for row, norm in zip(self.directions, norms, strict=True)]
        segments = self.radius * np.array(rows)
        spaced = [round(j * self.horizon / (self.jumps + 1)) for j in range(1, self.jumps + 1)]
        at = np.array(spaced if self.at is None else self.at)
        for start, stop in _stretches(self.horizon, self.stretch):
            yield segments[np.searchsorted(at, np.arange(start, stop), side="right")]
