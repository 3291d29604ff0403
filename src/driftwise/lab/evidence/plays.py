"""Plays of policies on sets. Each is stored in a file, and is not repeated while its sources are the same."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal.files import keep
from driftwise._internal.sources import source_hash
from driftwise.data.outcomes import Outcomes, walk
from driftwise.kernels.point import Floats
from driftwise.lab.sets import ListedSet
from driftwise.policies.auto import Auto
from driftwise.policies.half_life import convert_memory
from driftwise.policies.memory import Fade, Keep
from driftwise.policies.names import make
from driftwise.policies.own import asked

# The number of stretches of time whose means are stored.
STRETCHES = 200
HALF_LIVES = (125, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000)
# The draws on which the best setting of a grid is chosen. Only that one and the default play the other draws.
SCOUTS = 2
STATIC, AUTO, CLICKS, HALF_LIFE, PERSISTENCE = "static", "Auto", "Auto, clicks", "half-life 2000", "persistence"


@dataclass(frozen=True)
class Play:
    """One play in stretches of time: rewards per round, memories in rounds (NaN: none), and shares of arms."""

    reward: Floats
    memory: Floats
    shares: Floats


@dataclass(frozen=True)
class Contender:
    """A contender: the digest of its sources, the function that plays a log with a seed, and whether it also plays
    shuffled rows.

    Contenders with the same `grid` are settings of one method. One that is not the default plays `SCOUTS` draws, and
    the others only if it is the best there.
    """

    digest: str
    play: Callable[[Outcomes, int], Play]
    shuffled: bool = True
    grid: str = ""
    default: bool = True


def contenders(dim: int, clicks: bool) -> dict[str, Contender]:
    """Our policies for a set of this dimension, and persistence, by name."""
    found: dict[str, Any] = {STATIC: Auto(dim=dim, memory=Keep())}
    for rounds in HALF_LIVES:
        found[f"half-life {rounds}"] = Auto(dim=dim, memory=Fade(convert_memory(rounds, "half_life", "forget")))
    found[AUTO] = make("Auto", dim=dim)
    if clicks:
        found[CLICKS] = make("Auto", dim=dim, link="logistic")
    made = {name: _ours(name, policy) for name, policy in found.items()}
    return {**made, PERSISTENCE: Contender(play_digest("persistence 2"), lambda log, seed: _persistence(log))}


def _ours(name: str, policy: Any) -> Contender:
    sources, one_of_many = source_hash("kernels", "theory", "policies"), name.startswith("half-life")
    default = name == HALF_LIFE or not one_of_many
    return Contender(
        play_digest(f"{sources} {policy!r}"), lambda log, seed: played_set(policy, log, seed), shuffled=default,
        grid="half-life" if one_of_many else "", default=default,
    )  # fmt: skip


def play_digest(text: str) -> str:
    """The digest of a play: of this text, and of the definitions of the sets."""
    made = source_hash("lab/sets", "data/outcomes.py", without=("lab/sets/fetched.py",))
    return hashlib.sha256(f"{made} {text}".encode()).hexdigest()[:16]


def played_set(policy: Any, log: Outcomes, seed: int) -> Play:
    """Play a policy on a log."""
    one = asked(policy)
    state, starts = one.start(seed=seed), set(_edges(log.rounds)[:-1].tolist())
    memory: list[float] = []

    def watch(t: int) -> None:
        if t in starts:
            memory.append(one.remembered(state))

    earned, arms = walk(one, state, log, lambda _: None, watch)
    return summed(log, earned, arms, np.array(memory))


def _persistence(log: Outcomes) -> Play:
    """Play the arm with the largest reward at its last play. Ties go to the one played longest ago; new arms come
    first."""
    last, paid, when = np.full(len(log.names), math.inf), log.paid, np.full(len(log.names), -1)
    earned, arms = np.empty(log.rounds), np.empty(log.rounds, dtype=np.int64)
    for t in range(log.rounds):
        score = np.where(np.isnan(paid[t]), -math.inf, last)
        arm = int(np.argmin(np.where(score == score.max(), when, log.rounds)))
        arms[t], earned[t] = arm, paid[t, arm]
        last[arm], when[arm] = earned[t], t
    return summed(log, earned, arms)


def summed(log: Outcomes, earned: Floats, arms: Any, memory: Floats | None = None) -> Play:
    """Sum rounds into stretches of time, with arms in the order of their names.

    `earned` may end before the log does (`first_rounds`): only whole stretches count.
    """
    edges = _edges(log.rounds)
    edges = edges[edges <= len(earned)]
    count, place = len(edges) - 1, np.argsort(np.argsort(log.names))[arms]
    shares, reward = np.zeros((count, len(log.names))), np.zeros(count)
    for i in range(count):
        within = slice(edges[i], edges[i + 1])
        reward[i] = earned[within].mean()
        shares[i] = np.bincount(place[within], minlength=len(log.names)) / (edges[i + 1] - edges[i])
    return Play(reward, np.full(count, math.nan) if memory is None else memory, shares)


def first_rounds(rounds: int, most: int) -> int:
    """The largest number of rounds, at most `most` and at least one stretch, that ends with a stretch of time."""
    edges = _edges(rounds)
    return int(edges[max(1, np.searchsorted(edges, most, side="right") - 1)])


def _edges(rounds: int) -> Any:
    return np.linspace(0, rounds, min(STRETCHES, rounds) + 1).astype(np.int64)


@dataclass(frozen=True)
class Facts:
    """The facts of a set: its size, and the reward of each arm (by name) in stretches of time."""

    rounds: int
    dim: int
    names: tuple[str, ...]
    paid: Floats  # (stretches, arms), NaN where an arm is never available
    best: float  # the mean of the best arm of every round
    whole: bool = True  # every arm is available in every round


def facts_of(log: Outcomes) -> Facts:
    order, edges = np.argsort(log.names), _edges(log.rounds)
    known = ~np.isnan(log.paid[:, order])
    sums = np.add.reduceat(np.where(known, log.paid[:, order], 0.0), edges[:-1])
    counts = np.add.reduceat(known, edges[:-1], dtype=np.int64)
    paid = np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)
    names = tuple(log.names[place] for place in order)
    return Facts(log.rounds, log.dim, names, paid, float(np.nanmax(log.paid, axis=1).mean()), bool(known.all()))


class Plays:
    """The folder with the plays of one set."""

    def __init__(self, name: str, listed: ListedSet, folder: Path) -> None:
        self.name, self.listed, self.folder = name, listed, folder / "plays" / name
        self._log: tuple[int, Outcomes] | None = None

    def draw(self, number: int) -> Outcomes:
        """A draw of the set: its own random numbers, and another order of the arms."""
        if self._log is None or self._log[0] != number:
            self._log = number, self.listed.draw(number).reordered(number)
        return self._log[1]

    def path(self, who: str, digest: str, shuffled: bool, number: int) -> Path:
        slug = "".join(one if one.isalnum() else "-" for one in who)
        return self.folder / f"{slug}-{digest}-{'shuffled' if shuffled else 'time'}-{number}.npz"

    @property
    def facts(self) -> Facts:
        path = self.folder / f"facts-{play_digest('facts 2')}.npz"
        if not path.is_file():
            one = facts_of(self.draw(0))
            rest = np.array([one.rounds, one.dim, one.best, one.whole])
            _save(path, paid=one.paid, names=np.array(one.names), rest=rest)
        with np.load(path) as kept:
            rounds, dim, best, whole = kept["rest"].tolist()
            return Facts(int(rounds), int(dim), tuple(kept["names"].tolist()), kept["paid"], best, bool(whole))

    def missing(self, who: Mapping[str, Contender], draws: int) -> Iterator[tuple[str, bool, int]]:
        """The plays that are not stored yet, draw by draw.

        Which setting of a grid plays all draws is known after `SCOUTS` draws: ask again when these are stored.
        """
        best = self.best(who, draws)
        for number in range(draws):
            for shuffled in (False, True):
                for name, one in who.items():
                    wanted = one.default or number < SCOUTS or best.get(one.grid) == name
                    stored = self.path(name, one.digest, shuffled, number).is_file()
                    if wanted and not stored and (one.shuffled or not shuffled):
                        yield name, shuffled, number

    def best(self, who: Mapping[str, Contender], draws: int) -> dict[str, str]:
        """The best setting of each grid by its mean on the first draws, for grids of which these draws are stored."""
        paid: dict[str, dict[str, float]] = {}
        for name, one in who.items():
            if one.grid:
                found = self.read(name, one.digest, False, range(min(SCOUTS, draws)))
                mean = np.mean([play.reward.mean() for play in found]) if len(found) == min(SCOUTS, draws) else math.nan
                paid.setdefault(one.grid, {})[name] = float(mean)
        return {grid: max(own, key=lambda name: own[name]) for grid, own in paid.items()
                if not any(map(math.isnan, own.values()))}  # fmt: skip

    def play(self, who: Mapping[str, Contender], name: str, shuffled: bool, number: int) -> None:
        """Play one contender and store the result."""
        log = self.draw(number)
        one = who[name].play(log.shuffled(number) if shuffled else log, number)
        path = self.path(name, who[name].digest, shuffled, number)
        _save(path, reward=one.reward, memory=one.memory, shares=one.shares.astype(np.float32))

    def read(self, name: str, digest: str, shuffled: bool, draws: Iterable[int]) -> list[Play]:
        """The stored plays."""
        found = []
        for number in draws:
            if (path := self.path(name, digest, shuffled, number)).is_file():
                with np.load(path) as kept:
                    found.append(Play(kept["reward"], kept["memory"], kept["shares"]))
        return found


def _save(path: Path, **arrays: Any) -> None:
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    keep(path, data.getvalue())
