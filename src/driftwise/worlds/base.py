"""A world has a path of θ; each trial has its own arms and its own tape.

Arms are drawn in sets, scaled, and laid out with the arms as the contiguous axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from driftwise._internal.rng import Turns, checked_seed, stream
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.errors import BadInput
from driftwise.kernels import chance
from driftwise.kernels.lanes import EIGHT, FOUR
from driftwise.kernels.linear import best_means_
from driftwise.kernels.links import LINKS
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import Floats
from driftwise.kernels.tapes import CLIP, MAX, UNIT, lay_out_, normals
from driftwise.kernels.trials import best_of_eight_
from driftwise.policies.questions import WorldFacts
from driftwise.policies.regions import Region
from driftwise.theory.bounds import change_number, path_length

NORMS = {"unit": UNIT, "clip": CLIP, "max": MAX}
DRAWS = ("normal", "cube", "disc", "basis")


def draw_arms(rng: np.random.Generator, sets: int, n: int, d: int, draw: str, norm: str, spread: float) -> Floats:
    """`sets` sets of n arms in d dimensions as (sets, d, n): coordinates normal, or uniform on [-1, 1]; uniform in the
    unit ball ("disc"); or the vectors of the standard basis. All are multiplied by `spread`."""
    out = np.empty((sets, d, n))
    raw = _raw(rng, sets, n, d, draw)
    if spread != 1.0:
        raw *= spread
    lay_out_(raw, NORMS[norm], np.empty(n), out)
    return out


def _raw(rng: np.random.Generator, sets: int, n: int, d: int, draw: str) -> Floats:
    if draw == "cube":
        return np.asarray(-1.0 + 2.0 * rng.random((sets, n, d)))
    if draw == "basis":
        return np.ascontiguousarray(np.broadcast_to(np.eye(n, d), (sets, n, d)))
    if draw == "normal":
        return normals(rng, (sets, n, d))
    # The first d coordinates of a point on the sphere in d + 2 dimensions are uniform in the ball.
    raw = normals(rng, (sets, n, d + 2))
    square = np.zeros((sets, n))
    for i in range(d + 2):  # one after the other, because NumPy's sums have another order
        square += raw[..., i] * raw[..., i]
    return np.ascontiguousarray(raw[..., :d] / np.sqrt(square)[..., None])


def arm_tiles(sets: Sequence[Floats]) -> Floats:
    """Up to eight sets (d, n) as lanes of tiles of four arms (n/4, d, 4, 8). Unused lanes repeat the last set. Unused
    places of the last tile repeat the first arm, which no tie chooses."""
    d, n = sets[0].shape
    tiles = -(-n // FOUR)
    rows = np.empty((d, tiles * FOUR, EIGHT))
    for lane in range(EIGHT):
        one = sets[min(lane, len(sets) - 1)]
        rows[:, :n, lane] = one
        rows[:, n:, lane] = one[:, :1]
    return np.ascontiguousarray(rows.reshape(d, tiles, FOUR, EIGHT).transpose(1, 0, 2, 3))


REWARDS = {"gaussian": chance.GAUSSIAN, "bernoulli": chance.BERNOULLI, "poisson": chance.POISSON}
# The links that rewards of each kind may have; the first is the default.
_FITTING = {kind: [name for name, row in LINKS.items() if kind in row.rewards] for kind in REWARDS}
_USUAL = {kind: next(name for name in _FITTING[kind] if LINKS[name].rewards[0] == kind) for kind in REWARDS}
# Above this the inversion of a Poisson distribution underflows (kernels/chance.py).
_LARGEST_LOG_COUNT = 6.0

# Rounds per stretch: enough to hide the cost of a call, few enough that fresh arms fit in memory.
_ROUNDS, _NUMBERS = 4096, 1 << 20
_NO_ARMS = np.empty(0)


class Tape(NamedTuple):
    """A stretch of rounds: arms (1 or B, d, n) or the Region, theta (B, d), draws (B,), and the best arm's mean
    (B,)."""

    arms: Any
    theta: Floats
    draws: Floats
    best: Floats


class EightTrials(NamedTuple):
    """A stretch of rounds of eight trials: arms in tiles (n/4, d, 4, 8), theta (B, d), draws and best (B, 8)."""

    arms: Floats
    theta: Floats
    draws: Floats
    best: Floats


@dataclass(frozen=True, kw_only=True)
class World:
    """The base class of all worlds. A subclass defines `path`, which yields θ in stretches.

    Every trial draws its own arms, or all trials use those of the trial numbered `arms_of`. arms=dw.Ball(2), or another
    continuous set, is that set in every round; the best mean is then μ of the largest x'θ in it. draw="disc" is uniform
    in the unit ball and needs norm="clip" or "max"; draw="basis" is the standard basis, with arms = dim. Coordinates
    are multiplied by `spread` before norm="clip" shortens arms longer than 1. With chance="rare", rewards of round t
    have the noise Bernoulli(1/(2t)) - 1/(2t), times `noise`, instead of a normal one.
    """

    dim: int = 2
    arms: int | Region = 50
    horizon: int = 6000
    radius: float = 1.0
    reward: Literal["gaussian", "bernoulli", "poisson"] = "gaussian"
    noise: float = 1.0
    norm: Literal["unit", "clip", "max"] = "unit"
    fresh: bool = False
    link: str | None = None
    draw: Literal["normal", "cube", "disc", "basis"] = "normal"
    path_seed: int = 0
    arms_of: int | None = None
    chance: Literal["normal", "rare"] = "normal"
    spread: float = 1.0

    def __post_init__(self) -> None:
        keep_whole(self, "dim")
        region = self.region
        if region is not None:
            self._check_region(region)
        else:
            keep_whole(self, "arms", 1, "pass at least one arm, or a set such as dw.Ball(2)")
        keep_whole(self, "horizon", 1, "pass the number of rounds")
        real("radius", self.radius, 0.0, way_out="pass the norm of θ")
        real("noise", self.noise, 0.0, way_out="pass the standard deviation of the noise")
        one_of("reward", self.reward, list(REWARDS))
        one_of("norm", self.norm, list(NORMS))
        one_of("draw", self.draw, list(DRAWS))
        if self.draw == "disc" and self.norm == "unit":
            raise BadInput("norm", "unit", 'norm="clip" or "max" with draw="disc"', "unit norms undo the draw")
        if self.draw == "basis" and region is None and self.count != self.dim:
            raise BadInput("arms", self.arms, f'dim = {self.dim} arms with draw="basis"', "pass arms equal to dim")
        real("spread", self.spread, 0.0, low_open=True, way_out="pass the factor on drawn coordinates")
        if self.spread != 1.0 and self.norm != "clip":
            raise BadInput("spread", self.spread, '1 unless norm="clip"', "other norms undo the factor")
        one_of("fresh", self.fresh, [True, False])
        one_of("chance", self.chance, ["normal", "rare"])
        if self.chance == "rare" and self.reward != "gaussian":
            raise BadInput("chance", "rare", "rewards that are a mean and noise", 'leave reward="gaussian"')
        checked_seed(self.path_seed, "path_seed")
        if self.arms_of is not None:
            checked_seed(self.arms_of, "arms_of")
        self._check_link()

    def _check_region(self, region: Region) -> None:
        if region.dim != self.dim:
            raise BadInput("arms", f"a set of dimension {region.dim}", f"dimension {self.dim}", "match arms and dim")
        if self.fresh or self.arms_of is not None:
            raise BadInput("arms", "a set with fresh or arms_of", "one set for all rounds", "leave both out")

    def _check_link(self) -> None:
        if self.link is not None:
            one_of("link", self.link, list(LINKS))
            if self.link not in _FITTING[self.reward]:
                wanted = " or ".join(_FITTING[self.reward])
                raise BadInput("link", self.link, f"{wanted} for {self.reward} rewards", "leave link out")
        if self.reward == "poisson" and self.S * self.L > _LARGEST_LOG_COUNT:
            wanted = f"at most {_LARGEST_LOG_COUNT:g} for poisson rewards (means up to e^{_LARGEST_LOG_COUNT:g})"
            raise BadInput("radius", self.S * self.L, wanted, "pass a smaller radius")

    # Known facts of a world.
    @property
    def S(self) -> float:
        """Largest norm of θ."""
        return float(self.radius)

    @property
    def L(self) -> float:
        """Largest norm of an arm."""
        return 1.0 if self.region is None else float(self.region.reach)

    @cached_property
    def path_length(self) -> float:
        """P_T, the length of the path of θ."""
        return self._measured[0]

    @cached_property
    def changes(self) -> int:
        """Γ_T, the number of rounds at which θ changes."""
        return self._measured[1]

    @property
    def problem(self) -> WorldFacts:
        """The facts that a policy must fit to play the world."""
        return WorldFacts(self.dim, self.L, self.link_name, self.reward, self.region)

    @property
    def region(self) -> Region | None:
        """The continuous set of arms; None if arms are a list."""
        return self.arms if isinstance(self.arms, Region) else None

    @property
    def count(self) -> int:
        """The number of arms of a list; 0 for a continuous set."""
        return self.arms.count if isinstance(self.arms, Region) else self.arms

    @property
    def contents(self) -> str:
        """What its fields do not contain: a digest of the arrays that it was given."""
        return ""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that a policy needs to be tuned with full knowledge: `make(name, **world.facts)`."""
        known = {"dim": self.dim, "horizon": self.horizon, "path_length": self.path_length, "changes": self.changes}
        known |= {"S": self.S, "L": self.L}
        # Noise that takes two values 1 apart is sub-Gaussian with 1/2.
        spread = self.noise if self.chance == "normal" else 0.5 * self.noise
        return known | ({"R": spread} if self.reward == "gaussian" else {})

    @cached_property
    def _measured(self) -> tuple[float, int]:
        total, changes = 0.0, 0
        last = np.empty((0, self.dim))
        for stretch in self._path():
            joined = np.concatenate([last, stretch])
            total += path_length(joined)
            changes += change_number(joined)
            last = stretch[-1:]
        return total, changes

    # The rounds.
    @property
    def stretch(self) -> int:
        """Rounds per stretch."""
        if not self.fresh:
            return _ROUNDS
        return int(np.clip(_NUMBERS // (self.count * self.dim), 1, _ROUNDS))

    @property
    def link_name(self) -> str:
        """The link of the means, by name."""
        return self.link or _USUAL[self.reward]

    @property
    def link_code(self) -> int:
        return LINKS[self.link_name].code

    @property
    def reward_code(self) -> int:
        return REWARDS[self.reward]

    def path(self) -> Iterator[Floats]:
        """θ in stretches (B, d)."""
        raise NotImplementedError

    def theta(self) -> Floats:
        """The whole path (T, d)."""
        return np.concatenate(list(self._path()))

    def _path(self) -> Iterable[Floats]:
        """The path, kept for all trials unless it is long."""
        return self._kept_path if self._keeps else self.path()

    @property
    def _keeps(self) -> bool:
        return self.horizon * self.dim <= _NUMBERS

    @cached_property
    def _kept_path(self) -> tuple[Floats, ...]:
        return tuple(self.path())

    @cached_property
    def _kept_best(self) -> dict[tuple[int, tuple[int, ...]], tuple[Floats, Floats]]:
        """Arms and best means, by the first round of a stretch and the shape of the arms."""
        return {}

    def _best(self, arms: Floats, start: int, compute: Callable[[], Floats]) -> Floats:
        """The best means of a stretch, computed once for all trials where trials share their arms."""
        if not (self._shares_arms and self._keeps):
            return compute()
        kept = self._kept_best.get((start, arms.shape))
        if kept is None or not np.array_equal(kept[0], arms):  # of another seed
            kept = self._kept_best[start, arms.shape] = arms, compute()
        return kept[1]

    @property
    def _shares_arms(self) -> bool:
        """Whether all trials have the same arms in all rounds."""
        return not self.fresh and (self.arms_of is not None or self.draw == "basis" or self.region is not None)

    def tapes(self, seed: int = 0, trial: int = 0) -> Iterator[Tape]:
        """The rounds of a trial, in stretches; the same for every policy."""
        drawn = trial if self.arms_of is None else self.arms_of
        chance_of_arms, tape = stream(seed, "arms", drawn), stream(seed, "tape", trial)
        region = self.region
        fixed = None if self.fresh or region is not None else self._arms(chance_of_arms, 0, 1)
        start = 0
        for theta in self._path():
            rounds = len(theta)
            if region is not None:
                best = self._best(_NO_ARMS, start, partial(self._supports, region, theta))
                yield Tape(region, theta, self._draws(tape, start, rounds), best)
                start += rounds
                continue
            arms = self._arms(chance_of_arms, start, rounds) if fixed is None else fixed
            best = self._best(arms, start, partial(self._best_means, arms, theta))
            yield Tape(arms, theta, self._draws(tape, start, rounds), best)
            start += rounds

    def _supports(self, region: Region, theta: Floats) -> Floats:
        return np.array([link_mean(self.link_code, one) for one in region.support(theta)])

    def _best_means(self, arms: Floats, theta: Floats) -> Floats:
        best = np.empty(len(theta))
        best_means_(arms, theta, self.link_code, np.empty(arms.shape[2]), best)
        return best

    @property
    def plays_eight(self) -> bool:
        """Whether `tapes_of_eight` gives the same as `tapes`: arms are a fixed list, and `tapes` is not overridden."""
        return not self.fresh and self.region is None and type(self).tapes is World.tapes

    def tapes_of_eight(self, seed: int, trials: Sequence[int]) -> Iterator[EightTrials]:
        """The rounds of up to eight trials side by side, in stretches. Unused lanes repeat the last trial."""
        drawn = trials if self.arms_of is None else [self.arms_of] * len(trials)
        turns, start = Turns(), 0
        arms = arm_tiles([self._arms(turns.begin(seed, "arms", trial), 0, 1)[0] for trial in drawn])
        marks = [(turns.begin(seed, "tape", trial), turns.mark())[1] for trial in trials]
        for theta in self._path():
            rounds = len(theta)
            draws = np.empty((rounds, EIGHT))
            for lane, mark in enumerate(marks):
                draws[:, lane] = self._draws(turns.resume(mark), start, rounds)
                marks[lane] = turns.mark()
            draws[:, len(marks) :] = draws[:, len(marks) - 1 : len(marks)]
            best = self._best(arms, start, partial(self._best_of_eight, arms, theta))
            yield EightTrials(arms, theta, draws, best)
            start += rounds

    def _best_of_eight(self, arms: Floats, theta: Floats) -> Floats:
        best = np.empty((len(theta), EIGHT))
        best_of_eight_(arms, theta, self.link_code, np.empty((FOUR, EIGHT)), best)
        return best

    def _arms(self, rng: np.random.Generator, start: int, sets: int) -> Floats:
        return draw_arms(rng, sets, self.count, self.dim, self.draw, self.norm, float(self.spread))

    def _draws(self, rng: np.random.Generator, start: int, rounds: int) -> Floats:
        if self.chance == "rare":
            share = 0.5 / np.arange(start + 1, start + rounds + 1)
            return np.asarray((rng.random(rounds) < share) - share)
        return normals(rng, rounds) if self.reward == "gaussian" else rng.random(rounds)
