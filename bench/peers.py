"""Rounds beside other packages that choose among arms with features, each used as its documentation says.

    python bench/peers.py [--horizon 2000] [--repeats 7] [--only NAME]

A peer is made for a world and then chooses and learns a round at a time. Those that can forget are told our γ; what
they cannot be told (drift, noise) they are not told. Only what is installed is asked. Settings are the packages' own
defaults but for what a linear world needs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import util
from typing import Any, NamedTuple, Protocol

import numpy as np

import driftwise as dw
from driftwise._internal.terminal import table
from driftwise.experiments.bench import rounds
from driftwise.kernels.point import Floats
from driftwise.worlds import Turn


class Peer(Protocol):
    """A player of another package."""

    def choose(self, arms: Floats) -> int: ...

    def learn(self, arms: Floats, arm: int, reward: float) -> None: ...


class River:
    """river: Bayesian linear regression with its own forgetting, asked for mean and spread arm by arm."""

    def __init__(self, dim: int, n: int, forget: float) -> None:
        from river import linear_model

        self.model = linear_model.BayesianLinearRegression(smoothing=1.0 - forget)
        self.names = [f"x{i}" for i in range(dim)]

    def choose(self, arms: Floats) -> int:
        scores = []
        for row in arms.tolist():
            guess = self.model.predict_one(dict(zip(self.names, row, strict=True)), with_dist=True)
            scores.append(guess.mu + guess.sigma)
        return int(np.argmax(scores))

    def learn(self, arms: Floats, arm: int, reward: float) -> None:
        self.model.learn_one(dict(zip(self.names, arms[arm].tolist(), strict=True)), reward)


class Vowpal:
    """Vowpal Wabbit: contextual bandit with action features (--cb_explore_adf), one example of text a round."""

    def __init__(self, dim: int, n: int, forget: float) -> None:
        from vowpalwabbit import Workspace

        self.model = Workspace("--cb_explore_adf --squarecb --quiet --random_seed 1")
        self.chance, self.random = 1.0, np.random.default_rng(1)

    def _lines(self, arms: Floats, arm: int = -1, cost: float = 0.0) -> list[str]:
        rows = ["|a " + " ".join(f"f{i}:{x:.9g}" for i, x in enumerate(row)) for row in arms.tolist()]
        if arm >= 0:
            rows[arm] = f"0:{cost:.9g}:{self.chance:.9g} {rows[arm]}"
        return ["shared |s bias", *rows]

    def choose(self, arms: Floats) -> int:
        share = np.asarray(self.model.predict("\n".join(self._lines(arms))), dtype=float)
        arm = int(self.random.choice(len(share), p=share / share.sum()))
        self.chance = float(share[arm])
        return arm

    def learn(self, arms: Floats, arm: int, reward: float) -> None:
        self.model.learn("\n".join(self._lines(arms, arm, -reward)))


class Coba:
    """coba: its LinUCB learner over action features."""

    def __init__(self, dim: int, n: int, forget: float) -> None:
        from coba.learners import LinUCBLearner

        self.model = LinUCBLearner(alpha=1, features=["a"])

    def choose(self, arms: Floats) -> int:
        rows = arms.tolist()
        return int(rows.index(list(self.model.predict(None, rows)[0])))

    def learn(self, arms: Floats, arm: int, reward: float) -> None:
        self.model.learn(None, arms[arm].tolist(), reward, 1.0)


class Mabwiser:
    """MABWiser: LinUCB with one model per arm; the context is a constant, because it has no features of arms."""

    def __init__(self, dim: int, n: int, forget: float) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self.model = MAB(list(range(n)), LearningPolicy.LinUCB(alpha=1.0))
        self.context = np.ones((1, dim))
        self.model.fit([0], [0.0], self.context)

    def choose(self, arms: Floats) -> int:
        return int(self.model.predict(self.context))

    def learn(self, arms: Floats, arm: int, reward: float) -> None:
        self.model.partial_fit([arm], [reward], self.context)


class Bayesian:
    """bayesianbandits: one regressor for all arms through their features, upper confidence bounds."""

    def __init__(self, dim: int, n: int, forget: float) -> None:
        from bayesianbandits import Arm, FunctionArmFeaturizer, LipschitzContextualAgent, NormalRegressor
        from bayesianbandits import UpperConfidenceBound as Bound

        self.arms = np.zeros((n, dim))
        features = FunctionArmFeaturizer(lambda context, tokens: self.arms[np.asarray(tokens)].T[np.newaxis])
        self.model = LipschitzContextualAgent(
            [Arm(a) for a in range(n)], Bound(), features, NormalRegressor(alpha=1.0, beta=1.0), random_seed=1
        )
        self.context, self.keep = np.zeros((1, 1)), 1.0 - forget

    def choose(self, arms: Floats) -> int:
        self.arms = arms
        return int(self.model.pull(self.context)[0])

    def learn(self, arms: Floats, arm: int, reward: float) -> None:
        self.model.decay(decay_rate=self.keep)
        self.model.select_for_update(arm).update(self.context, np.array([reward]))


class Contextual:
    """contextualbandits: LinUCB with one model per arm; the context is constant, because it has no features of arms."""

    def __init__(self, dim: int, n: int, forget: float) -> None:
        from contextualbandits.online import LinUCB

        self.model, self.context = LinUCB(nchoices=n, alpha=1.0), np.ones((1, dim))
        self.model.fit(np.ones((n, dim)), np.arange(n), np.zeros(n))

    def choose(self, arms: Floats) -> int:
        return int(self.model.predict(self.context)[0])

    def learn(self, arms: Floats, arm: int, reward: float) -> None:
        self.model.partial_fit(self.context, np.array([arm]), np.array([reward]))


class Kind(NamedTuple):
    """A package and how one of its players is made."""

    module: str
    make: Callable[[int, int, float], Any]


PEERS = {
    "bayesianbandits": Kind("bayesianbandits", Bayesian),
    "Vowpal Wabbit": Kind("vowpalwabbit", Vowpal),
    "river": Kind("river", River),
    "coba": Kind("coba", Coba),
    "MABWiser": Kind("mabwiser", Mabwiser),
    "contextualbandits": Kind("contextualbandits", Contextual),
}


def turns(kind: Kind, world: Turn) -> rounds.Turns:
    """A turn of a peer: the same tape as ours, and only its own calls are timed."""
    forget = dw.make(rounds.UNIT, **world.facts).memory.forget

    def turn(row: rounds.BenchRow) -> None:
        player = kind.make(row.dim, row.arms, forget)
        tape = next(world.tapes())
        arms, seconds, regret = np.ascontiguousarray(tape.arms[0].T), 0.0, 0.0
        for t in range(row.rounds):
            means = arms @ tape.theta[t]
            begun = time.thread_time()
            arm = player.choose(arms)
            player.learn(arms, arm, float(means[arm] + tape.draws[t]))
            seconds += time.thread_time() - begun
            regret += float(means.max() - means[arm])
        row.ns.append(seconds / row.rounds * 1e9)
        row.regret = regret / row.rounds

    return turn


def installed() -> dict[str, Callable[[Turn], rounds.Turns]]:
    """The installed peers, as `rounds.measure` takes them."""
    there = {name: kind for name, kind in PEERS.items() if util.find_spec(kind.module) is not None}
    return {name: lambda world, kind=kind: turns(kind, world) for name, kind in there.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", action="append", help="a name of the catalogue; may be given again")
    options = parser.parse_args()
    found = rounds.measure(
        horizon=options.horizon, repeats=options.repeats, names=options.only, others=installed()
    )
    columns, lines = rounds.bench_table(found)
    table("CPU time of a round, spread, × LB-WeightUCB, regret", columns, lines, numeric=range(1, len(columns)))


if __name__ == "__main__":
    main()
