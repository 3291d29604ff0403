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
from driftwise.data.outcomes import Outcomes, block_means, walk
from driftwise.data.sets import Listed
from driftwise.kernels.point import Floats
from driftwise.policies.half_life import half_life_to_forget
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Fade, Keep
from driftwise.policies.names import make
from driftwise.policies.own import asked

# The number of stretches of time whose means are stored.
STRETCHES = 200
HALF_LIVES = (125, 500, 2000, 8000, 32000)
STATIC, AUTO, CLICKS, HALF_LIFE, PERSISTENCE = "static", "Auto", "Auto, clicks", "half-life 2000", "persistence"
# Sources of Auto only: a change of them does not repeat the plays of static policies.
_ADAPTIVE = ("kernels/adapt", "kernels/belief.py", "kernels/level.py", "kernels/foretell.py", "policies/adapt.py",
             "policies/trend_bank.py")  # fmt: skip


@dataclass(frozen=True)
class Play:
    """One play in stretches of time: rewards per round, memories in rounds (NaN: none), and shares of arms."""

    reward: Floats
    memory: Floats
    shares: Floats


@dataclass(frozen=True)
class Contender:
    """A contender: the digest of its sources, the function that plays a log with a seed, and whether it also plays
    shuffled rows."""

    digest: str
    play: Callable[[Outcomes, int], Play]
    shuffled: bool = True


def contenders(dim: int, clicks: bool) -> dict[str, Contender]:
    """Our policies for a set of this dimension, and persistence, by name."""
    untold: dict[str, Any] = {"dim": dim, "radius": "posterior", "R": "learn", "S": None, "L": None}
    found: dict[str, Any] = {STATIC: LinearUCB(memory=Keep(), **untold)}
    for rounds in HALF_LIVES:
        found[f"half-life {rounds}"] = LinearUCB(memory=Fade(half_life_to_forget(rounds)), **untold)
    found[AUTO] = make("Auto", dim=dim)
    if clicks:
        found[CLICKS] = make("Auto", dim=dim, link="logistic")
    made = {name: _ours(name, policy) for name, policy in found.items()}
    return {**made, PERSISTENCE: Contender(_digest("persistence 2"), lambda log, seed: _persistence(log))}


def _ours(name: str, policy: Any) -> Contender:
    adaptive = name in (AUTO, CLICKS)
    sources = source_hash("kernels", "theory", "policies", without=() if adaptive else _ADAPTIVE)
    mixed = name == HALF_LIFE or not name.startswith("half-life")
    return Contender(_digest(f"{sources} {policy!r}"), lambda log, seed: played_set(policy, log, seed), mixed)


def _digest(text: str) -> str:
    return hashlib.sha256(f"{source_hash('data/sets', 'data/outcomes.py')} {text}".encode()).hexdigest()[:16]


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
    """Sum rounds into stretches of time, with arms in the order of their names."""
    count = min(STRETCHES, log.rounds)
    place = np.argsort(np.argsort(log.names))[arms]
    shares = np.zeros((count, len(log.names)))
    edges = _edges(log.rounds)
    for i in range(count):
        shares[i] = np.bincount(place[edges[i] : edges[i + 1]], minlength=len(log.names)) / (edges[i + 1] - edges[i])
    return Play(block_means(earned, count), np.full(count, math.nan) if memory is None else memory, shares)


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


def facts_of(log: Outcomes) -> Facts:
    order, edges = np.argsort(log.names), _edges(log.rounds)
    known = ~np.isnan(log.paid[:, order])
    sums = np.add.reduceat(np.where(known, log.paid[:, order], 0.0), edges[:-1])
    counts = np.add.reduceat(known, edges[:-1], dtype=np.int64)
    paid = np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)
    names = tuple(log.names[place] for place in order)
    return Facts(log.rounds, log.dim, names, paid, float(np.nanmax(log.paid, axis=1).mean()))


class Plays:
    """The folder with the plays of one set."""

    def __init__(self, name: str, listed: Listed, folder: Path) -> None:
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
        path = self.folder / f"facts-{_digest('facts 1')}.npz"
        if not path.is_file():
            one = facts_of(self.draw(0))
            _save(path, paid=one.paid, names=np.array(one.names), rest=np.array([one.rounds, one.dim, one.best]))
        with np.load(path) as kept:
            rounds, dim, best = kept["rest"].tolist()
            return Facts(int(rounds), int(dim), tuple(kept["names"].tolist()), kept["paid"], best)

    def missing(self, who: Mapping[str, Contender], draws: int) -> Iterator[tuple[str, bool, int]]:
        """The plays that are not stored yet, draw by draw."""
        for number in range(draws):
            for shuffled in (False, True):
                for name, one in who.items():
                    if (one.shuffled or not shuffled) and not self.path(name, one.digest, shuffled, number).is_file():
                        yield name, shuffled, number

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
