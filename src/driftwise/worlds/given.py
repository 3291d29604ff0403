"""A world made of the user's own arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from driftwise._internal.validate import array, one_of
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.regions import Region
from driftwise.worlds.base import REWARDS, World


def _depth(values: object) -> int:
    """The depth of a nested array-like, also of a ragged one."""
    depth = 0
    while isinstance(values, (list, tuple)) and values:
        depth, values = depth + 1, values[0]
    return depth + int(np.ndim(values))  # type: ignore[arg-type]


def _checked_sets(arms: npt.ArrayLike, fresh: bool, rounds: int, d: int) -> Floats:
    """The user's arms as (1 or T, n, d)."""
    shape = (rounds, None, d) if fresh else (None, d)
    wanted = f"pass an array (n, {d}), or ({rounds}, n, {d}) for fresh arms each round"
    sets = array("arms", arms, shape, wanted)
    return (sets if fresh else sets[np.newaxis]).copy()


class Given(World):
    """Your own arms A (n, d) or (T, n, d), or a set such as dw.Ball(2), path θ (T, d), and tape (T,).

    The tape has one standard normal per round for gaussian rewards, otherwise one uniform. Without a tape every trial
    draws its own.
    """

    def __init__(
        self, *, arms: npt.ArrayLike | Region, theta: npt.ArrayLike, tape: npt.ArrayLike | None = None,
        reward: Literal["gaussian", "bernoulli", "poisson"] = "gaussian", noise: float = 1.0,
        link: str | None = None,
    ) -> None:  # fmt: skip
        one_of("reward", reward, list(REWARDS))
        path = array("theta", theta, (None, None), "pass an array (T, d), one row per round")
        rounds, d = path.shape
        region = arms if isinstance(arms, Region) else None
        fresh = region is None and _depth(arms) == 3
        sets = _checked_sets(arms, fresh, rounds, d) if region is None else np.zeros((1, 1, d))  # type: ignore[arg-type]
        draws = None if tape is None else array("tape", tape, (rounds,), "pass one draw per round")
        if draws is not None and reward != "gaussian" and not ((draws >= 0.0) & (draws < 1.0)).all():
            raise BadInput("tape", "numbers outside [0, 1)", f"uniforms for {reward} rewards", "pass rng.random(T)")
        self._set(_sets=sets, _theta=path.copy(), _tape=None if draws is None else draws.copy())
        self._set(_longest=float(np.sqrt((sets * sets).sum(axis=2)).max()))
        self._set(_norm_of_theta=float(np.sqrt((path * path).sum(axis=1)).max()))
        super().__init__(
            dim=d, arms=sets.shape[1] if region is None else region, horizon=rounds,
            radius=self._norm_of_theta, reward=reward, noise=noise, link=link, fresh=fresh,
        )  # fmt: skip

    _sets: Floats
    _theta: Floats
    _tape: Floats | None
    _longest: float
    _norm_of_theta: float

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.contents == other.contents

    def __hash__(self) -> int:
        return hash(self.contents)

    @cached_property
    def contents(self) -> str:
        arrays = [self._sets, self._theta, *([] if self._tape is None else [self._tape])]
        about = [self.reward, self.noise, self.link, str(self.region), [one.shape for one in arrays]]
        return hashlib.sha256(repr(about).encode() + b"".join(one.tobytes() for one in arrays)).hexdigest()

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def L(self) -> float:
        return self._longest if self.region is None else super().L

    @property
    def _shares_arms(self) -> bool:
        return not self.fresh

    def path(self) -> Iterator[Floats]:
        for start in range(0, self.horizon, self.stretch):
            yield self._theta[start : start + self.stretch]

    def _arms(self, rng: np.random.Generator, start: int, sets: int) -> Floats:
        return np.ascontiguousarray(self._sets[start : start + sets].transpose(0, 2, 1))

    def _draws(self, rng: np.random.Generator, start: int, rounds: int) -> Floats:
        return super()._draws(rng, start, rounds) if self._tape is None else self._tape[start : start + rounds]
