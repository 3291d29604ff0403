"""Players of other packages for bench/evidence.py. Each runs in an environment of its own, without driftwise.

    ENV/bin/python bench/evidence_rivals.py RIVAL SETTINGS LOG.npz OUT.npz SEED

LOG has `context` (rounds, k) and `paid` (rounds, arms), NaN where an arm is not on offer; OUT gets `earned` and `arms`.
SETTINGS are JSON, empty for the package's defaults. A player is told the context, which arms are on offer and the
reward of the arm it played; what it is not told (noise, drift) stays at its default.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


class Vowpal:
    """Vowpal Wabbit: --cb_explore_adf over shared features and the name of the action, crossed."""

    def __init__(self, k: int, count: int, seed: int, explore: str = "--squarecb", more: str = "") -> None:
        from vowpalwabbit import Workspace

        self.model = Workspace(f"--cb_explore_adf {explore} {more} -q sa --quiet --random_seed {seed + 1}")
        self.random, self.chance = np.random.default_rng(seed), 1.0

    def _lines(self, x: Any, offered: Any, place: int = -1, cost: float = 0.0) -> str:
        rows = [f"|a arm{arm}" for arm in offered]
        if place >= 0:
            rows[place] = f"0:{cost:.9g}:{self.chance:.9g} {rows[place]}"
        shared = "shared |s " + " ".join(f"f{i}:{value:.6g}" for i, value in enumerate(x))
        return "\n".join([shared, *rows])

    def choose(self, x: Any, offered: Any) -> int:
        share = np.asarray(self.model.predict(self._lines(x, offered)), dtype=float)
        place = int(self.random.choice(len(share), p=share / share.sum()))
        self.chance = float(share[place])
        return place

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.learn(self._lines(x, offered, place, -reward))


class Bayesian:
    """bayesianbandits: Thompson sampling from one NormalInverseGammaRegressor, with a block of features an arm.

    One learner for all arms forgets all of them in every round, played or not.
    """

    def __init__(self, k: int, count: int, seed: int, forget: str = "", rate: float = 1.0) -> None:
        import bayesianbandits as bb

        kinds = {"exponential": bb.ExponentialForgetting, "stabilised": bb.StabilizedForgetting}
        rule = kinds[forget](rate) if forget else None
        self.model, self.basis = bb.NormalInverseGammaRegressor(forgetting=rule, random_state=seed), np.eye(count)

    def choose(self, x: Any, offered: Any) -> int:
        return int(np.argmax(np.ravel(self.model.sample(np.kron(self.basis[offered], x), size=1))))

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.partial_fit(np.kron(self.basis[offered[place]], x)[np.newaxis], np.array([reward]))


class Pybandits:
    """pybandits: Thompson sampling for Bernoulli arms; it sees no context here, and draws 0 or 1 from other rewards."""

    def __init__(self, k: int, count: int, seed: int, decay: float | None = None) -> None:
        from pybandits.smab import SmabBernoulli

        more = {} if decay is None else {"decay_factor": decay}
        self.model = SmabBernoulli.cold_start(action_ids={str(arm) for arm in range(count)}, random_seed=seed, **more)
        self.all, self.random = {str(arm) for arm in range(count)}, np.random.default_rng(seed)

    def choose(self, x: Any, offered: Any) -> int:
        names = [str(arm) for arm in offered]
        chosen = self.model.predict(n_samples=1, forbidden_actions=self.all - set(names) or None)[0][0]
        return names.index(chosen)

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.update(actions=[str(offered[place])], rewards=[int(self.random.random() < reward)])


class River:
    """river: LinUCBDisjoint."""

    def __init__(self, k: int, count: int, seed: int, **more: Any) -> None:
        from river import bandit

        self.model = bandit.LinUCBDisjoint(seed=seed, **more)

    def choose(self, x: Any, offered: Any) -> int:
        named = dict(enumerate(x.tolist()))
        arms = offered.tolist()
        return arms.index(self.model.pull(arms, context=named))

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.update(int(offered[place]), dict(enumerate(x.tolist())), reward)


class Mabwiser:
    """MABWiser: LinTS or LinUCB, a model an arm; arms that are not on offer are left out of what it expects."""

    def __init__(self, k: int, count: int, seed: int, kind: str = "LinUCB", alpha: float = 1.0) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self.model = MAB(list(range(count)), getattr(LearningPolicy, kind)(alpha=alpha), seed=seed)
        self.model.fit(list(range(count)), [0.0] * count, np.zeros((count, k)))

    def choose(self, x: Any, offered: Any) -> int:
        expected = self.model.predict_expectations(x[np.newaxis])
        return int(np.argmax([expected[arm] for arm in offered.tolist()]))

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.partial_fit([int(offered[place])], [reward], x[np.newaxis])


class LiteLLM:
    """The rule of LiteLLM's adaptive router (v0) as the README inside its package documents it, without its classifier.

    A Beta cell an arm with a prior of mass 10 and the mean of its tier, Thompson sampling, and a hard cap: an update
    that would take a cell beyond mass 200 is dropped. Costs are alike. A reward, cut to [0, 1], adds to α, else to β.
    """

    def __init__(self, k: int, count: int, seed: int, tier: int = 2) -> None:
        mean = {1: 0.3, 2: 0.5, 3: 0.7}[tier]
        self.cells, self.random = np.tile([10.0 * mean, 10.0 * (1.0 - mean)], (count, 1)), np.random.default_rng(seed)

    def choose(self, x: Any, offered: Any) -> int:
        return int(np.argmax(self.random.beta(*self.cells[offered].T)))

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        cell, good = self.cells[offered[place]], min(max(reward, 0.0), 1.0)
        if cell.sum() + 1.0 <= 200.0:
            cell += good, 1.0 - good


class Pareto:
    """ParetoBandit: its DisjointLinUCBPolicy without costs; features are the set's, not embeddings of prompts."""

    def __init__(self, k: int, count: int, seed: int, **more: Any) -> None:
        from pareto_bandit.policy import DisjointLinUCBPolicy

        self.model = DisjointLinUCBPolicy([str(arm) for arm in range(count)], dim=k, seed=seed, **more)

    def choose(self, x: Any, offered: Any) -> int:
        names = [str(arm) for arm in offered]
        chosen = self.model.select_arm(x, candidates=names)[0]
        self.model.mark_selected(chosen)
        return names.index(chosen)

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.update(str(offered[place]), x, reward)


class Contextual:
    """contextualbandits: LinUCB or LinTS, a model an arm."""

    def __init__(self, k: int, count: int, seed: int, kind: str = "LinUCB", **more: Any) -> None:
        from contextualbandits import online

        self.model, self.count = getattr(online, kind)(nchoices=count, random_state=seed + 1, **more), count
        self.model.fit(np.zeros((count, k)), np.arange(count), np.zeros(count))

    def choose(self, x: Any, offered: Any) -> int:
        scores = np.ravel(self.model.decision_function(x[np.newaxis]))
        return int(np.argmax(scores[offered]))

    def learn(self, x: Any, offered: Any, place: int, reward: float) -> None:
        self.model.partial_fit(x[np.newaxis], np.array([offered[place]]), np.array([reward]))


RIVALS = {
    "vw": Vowpal, "bayesianbandits": Bayesian, "pybandits": Pybandits, "river": River, "mabwiser": Mabwiser,
    "litellm": LiteLLM, "paretobandit": Pareto, "contextualbandits": Contextual,
}  # fmt: skip


def main() -> None:
    name, settings, log, out, seed = sys.argv[1:]
    with np.load(log) as kept:
        context, paid = np.ascontiguousarray(kept["context"]), kept["paid"]
    player = RIVALS[name](context.shape[1], paid.shape[1], int(seed), **json.loads(settings))
    earned, arms, open_ = np.empty(len(paid)), np.empty(len(paid), dtype=np.int64), ~np.isnan(paid)
    for t in range(len(paid)):
        offered = np.flatnonzero(open_[t])
        place = player.choose(context[t], offered)
        arms[t] = offered[place]
        earned[t] = paid[t, arms[t]]
        player.learn(context[t], offered, place, float(earned[t]))
    np.savez(out, earned=earned, arms=arms)


if __name__ == "__main__":
    main()
