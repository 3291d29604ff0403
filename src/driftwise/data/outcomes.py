"""Full information: the reward of every available arm is known, and policies are played against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise._internal.progress import bar
from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import array, check_unmasked, whole
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ArmSet
from driftwise.policies.names import called
from driftwise.policies.own import asked
from driftwise.policies.questions import Asked, Policy
from driftwise.simulation import t_interval


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcomes:
    """A log in which every arm's reward is known: arms (n, d), or (T, n, d) for other arms in each round, and rewards
    (T, n), NaN if an arm was not available.

    Rounds are in the order of time. `names` are those of the arms.
    """

    arms: npt.ArrayLike
    rewards: npt.ArrayLike
    names: Sequence[str] = ()
    _sets: Floats = field(init=False, repr=False)
    _paid: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_unmasked("rewards", self.rewards)
        try:
            paid = np.array(self.rewards, dtype=np.float64)
        except (TypeError, ValueError):
            paid = np.zeros(0)
        if paid.ndim != 2 or 0 in paid.shape or np.isinf(paid).any():
            wanted = "finite numbers (T, n), NaN if an arm was not available"
            way_out = "pass the reward of each arm in each round"
            raise BadInput("rewards", f"shape {np.shape(paid)}", wanted, way_out)
        rounds, count = paid.shape
        empty = np.flatnonzero(np.isnan(paid).all(axis=1))
        if len(empty):
            raise BadInput("rewards", f"no arm in round {empty[0]}", "an available arm in every round", "leave it out")
        fresh = np.ndim(self.arms) == 3
        shape = (rounds, count, None) if fresh else (count, None)
        wanted = f"pass an array ({count}, d), or ({rounds}, {count}, d) for other arms each round"
        sets = array("arms", self.arms, shape, wanted)
        names = tuple(map(str, self.names)) or tuple(map(str, range(count)))
        if len(names) != count:
            raise BadInput("names", f"{len(names)} of them", f"{count}, one per arm", "leave them out, or name all")
        for name, value in (("_sets", sets if fresh else sets[np.newaxis]), ("_paid", paid), ("names", names)):
            object.__setattr__(self, name, value)

    @property
    def rounds(self) -> int:
        return len(self._paid)

    @property
    def dim(self) -> int:
        return int(self._sets.shape[2])

    @property
    def longest(self) -> float:
        """The norm of the longest arm."""
        return float(np.sqrt((self._sets * self._sets).sum(axis=2).max()))

    @property
    def paid(self) -> Floats:
        """The reward of each arm in each round, NaN if it is not available."""
        return self._paid

    def shuffled(self, seed: int) -> Outcomes:
        """The same rounds in random order: drift is removed, and nothing else changes."""
        order = np.random.default_rng(checked_seed(seed)).permutation(self.rounds)
        arms = self._sets[order] if len(self._sets) > 1 else self._sets[0]
        return Outcomes(arms=arms, rewards=self._paid[order], names=self.names)

    def reordered(self, seed: int) -> Outcomes:
        """The same with the arms in another order. Ties go to the first arm, so the order may decide the
        reward of a policy that explores little. Compare policies over several orders."""
        order = np.random.default_rng(checked_seed(seed)).permutation(len(self.names))
        arms = self._sets[:, order] if len(self._sets) > 1 else self._sets[0][order]
        return Outcomes(arms=arms, rewards=self._paid[:, order], names=[self.names[place] for place in order])

    def offers(self) -> Callable[[int], tuple[ArmSet, npt.NDArray[np.int64]]]:
        """A function from a round to the available arms and their numbers. Sets that occur again are prepared once."""
        kept: dict[bytes, tuple[ArmSet, npt.NDArray[np.int64]]] = {}
        open_, fresh = ~np.isnan(self._paid), len(self._sets) > 1

        def offered(t: int) -> tuple[ArmSet, npt.NDArray[np.int64]]:
            key = b"" if fresh else open_[t].tobytes()
            if fresh or key not in kept:
                numbers = np.flatnonzero(open_[t])
                found = ArmSet(self._sets[t if fresh else 0][numbers]), numbers
                if fresh:
                    return found
                kept[key] = found
            return kept[key]

        return offered


@dataclass(frozen=True)
class Backtest:
    """Rewards and arms of each policy, (rounds,) by name, and the reports of the policies at the end.
    """

    rewards: dict[str, Floats]
    arms: dict[str, npt.NDArray[np.int64]]
    best: Floats
    report: dict[str, dict[str, Any]]

    def mean(self, name: str) -> float:
        """Mean reward per round."""
        return float(self.rewards[name].mean())

    def difference(self, name: str, against: str, blocks: int = 40) -> tuple[float, float]:
        """Mean reward per round minus that of another policy, and the half-width of its 95% interval.

        Rounds near each other are correlated. The interval is Student's over `blocks` stretches of time of nearly equal
        length, as if the stretches were independent.
        """
        return t_interval(block_means(self.rewards[name] - self.rewards[against], blocks))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers: the mean of each policy, of the best arm of every round, and the reports."""
        means = {name: self.mean(name) for name in self.rewards}
        return {"rounds": len(self.best), "mean": means, "best": float(self.best.mean()), "report": self.report}

    def __str__(self) -> str:
        first = next(iter(self.rewards))
        lines = [f"{len(self.best)} rounds; the best arm of every round pays {self.best.mean():.4f}"]
        wide = max(map(len, self.rewards))
        for name in self.rewards:
            line = f"  {name:<{wide}}  {self.mean(name):.4f}"
            if name != first and len(self.best) > 1:
                apart, width = self.difference(name, first)
                line += f"  {apart:+.4f} ± {width:.4f} against {first}"
            lines.append(line)
        return "\n".join(lines)


def block_means(values: Floats, blocks: int) -> Floats:
    """The means of `blocks` consecutive stretches, whose lengths differ by at most one."""
    blocks = min(whole("blocks", blocks, 2, "pass how many stretches of time to compare, e.g. 40"), len(values))
    edges = np.linspace(0, len(values), blocks + 1).astype(np.int64)
    return np.asarray(np.add.reduceat(values, edges[:-1]) / np.diff(edges))


def backtest(
    policies: Mapping[str, Policy] | Policy, log: Outcomes, *, seed: int = 0, progress: bool | None = None
) -> Backtest:
    """Play every policy through a log with full information. A policy sees the reward of the arm it plays and no other.

    Arms that are not available in a round are not shown; `choose` returns an index among the arms shown.
    """
    named = dict(policies) if isinstance(policies, Mapping) else {called(policies): policies}
    if not isinstance(log, Outcomes):
        wanted = "a log in which every arm's reward is known"
        raise BadInput("log", log, wanted, "pass dw.Outcomes(arms=…, rewards=…), or dw.evaluate a log of choices")
    if not named:
        raise BadInput("policies", named, "at least one policy", 'pass {"name": policy}')
    about = {name: asked(policy, f"policies[{name!r}]") for name, policy in named.items()}
    seed, rewards, arms, report = checked_seed(seed), {}, {}, {}
    with bar("rounds", log.rounds * len(named), progress, least=3e4) as tick:
        for name, policy in about.items():
            state = policy.start(seed=seed)
            rewards[name], arms[name] = walk(policy, state, log, tick)
            if policy.reports:
                report[name] = policy.report(state)
    return Backtest(rewards, arms, np.nanmax(log.paid, axis=1), report)


def walk(
    policy: Asked, state: Any, log: Outcomes, tick: Callable[[float], None], watch: Callable[[int], None] | None = None
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Play one policy through all rounds. Returns its rewards and arms. `watch` is called before each round."""
    earned, played = np.empty(log.rounds), np.empty(log.rounds, dtype=np.int64)
    offered, paid = log.offers(), log.paid
    for t in range(log.rounds):
        if watch is not None:
            watch(t)
        shown, numbers = offered(t)
        choice = policy.choose(state, shown)
        played[t] = numbers[choice.arm]
        earned[t] = paid[t, played[t]]
        policy.learn(state, shown, choice.arm, float(earned[t]))
        if t % 1000 == 999:
            tick(1000)
    tick(log.rounds % 1000)
    return earned, played
