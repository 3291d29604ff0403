"""Real data: whether forgetting helps, and what it costs where it does not.

    python bench/real.py [--only flights|bikes|prompts] [--draws 10] [--bikes WHEEL]

Every policy plays the same rounds and sees the reward of the arm it played (dw.backtest). `static` is a posterior
LinearUCB that keeps everything; differences to it are paired. A draw is an order of the arms, because ties go to the
first and a policy that hardly explores owes its reward to that; for flights also which flight stands for its carrier in
an hour. Two 95% intervals: over draws (these rounds again), and over 40 stretches of time, draws averaged (other rounds
like these). `shuffled` is the same rows in a random order each draw, intervals over draws. Rows "best of" are the best
of a grid in hindsight, by the first six draws in the order of time. Markdown on stdout; docs/real-data.md holds what it
printed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import driftwise as dw
from driftwise.data import sets
from driftwise.data.outcomes import block_means
from driftwise.simulation import t_interval

MEMORIES = (32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0)
Maker = Callable[[dw.Outcomes], Any]


class Persistence:
    """Plays the arm with the largest reward at its last play; an arm that was never played comes first."""

    def start(self, seed: int = 0) -> dict[bytes, float]:
        return {}

    def choose(self, state: dict[bytes, float], arms: np.ndarray) -> int:
        return int(np.argmax([state.get(self._key(x), math.inf) for x in arms]))

    def learn(self, state: dict[bytes, float], arms: np.ndarray, arm: int, reward: float) -> None:
        state[self._key(arms[arm])] = reward

    def _key(self, x: np.ndarray) -> bytes:
        """The features that an arm has, whatever the context: its block."""
        return np.packbits(x.reshape(self.blocks, -1).any(axis=1)).tobytes()

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks


class Bayesian:
    """Thompson sampling with bayesianbandits' NormalInverseGammaRegressor, one shared learner, and its forgetting."""

    def __init__(self, dim: int, rounds: float) -> None:
        self.dim, self.rounds = dim, rounds

    def start(self, seed: int = 0) -> Any:
        from bayesianbandits import ExponentialForgetting, NormalInverseGammaRegressor

        fades = None if math.isinf(self.rounds) else ExponentialForgetting(1.0 - 1.0 / self.rounds)
        return NormalInverseGammaRegressor(forgetting=fades, random_state=seed)

    def choose(self, state: Any, arms: np.ndarray) -> int:
        return int(np.argmax(np.asarray(state.sample(np.ascontiguousarray(arms), size=1)).reshape(-1)))

    def learn(self, state: Any, arms: np.ndarray, arm: int, reward: float) -> None:
        state.partial_fit(np.ascontiguousarray(arms[arm : arm + 1]), np.array([reward]))


def untold(log: dw.Outcomes) -> dict[str, Any]:
    return {"dim": log.dim, "radius": "posterior", "R": "learn", "S": None, "L": None}


def told(log: dw.Outcomes) -> dict[str, Any]:
    """The facts that a theorem needs: rewards in [0, 1] have noise of at most 1/2, and √n bounds n values in [0, 1]."""
    return {"dim": log.dim, "S": math.sqrt(len(log.names)), "R": 0.5, "L": log.longest}


def memory(rounds: float) -> dw.Fade:
    return dw.Fade(0.0 if math.isinf(rounds) else 1.0 / rounds)


def contenders(log: dw.Outcomes, clicks: bool) -> dict[str, Any]:
    """Every policy by name."""
    found: dict[str, Any] = {
        "static": dw.LinearUCB(memory=dw.Keep(), **untold(log)),
        "Auto": dw.make("Auto", dim=log.dim),
        "Auto, no levels": dw.make("Auto", dim=log.dim, levels=False),
        "Auto, logistic": dw.make("Auto", dim=log.dim, link="logistic") if clicks else None,
        "OFUL": dw.make("OFUL", horizon=log.rounds, **told(log)),
        "bank (LB-WeightUCB)": dw.make("Bank+LB-WeightUCB", **told(log)),
        "persistence": Persistence(len(log.names)),
    }
    return {name: policy for name, policy in found.items() if policy is not None}


def grids(log: dw.Outcomes) -> dict[str, dict[str, Any]]:
    """Rivals that are chosen in hindsight, each from a grid."""
    found: dict[str, dict[str, Any]] = {"static, best exploration": {}, "fade": {}, "SW-UCB": {}}
    for e in (0.25, 0.5, 1.0, 2.0, 4.0):
        kept = dw.LinearUCB(memory=dw.Keep(), **{**untold(log), "exploration": e})
        found["static, best exploration"][f"e {e:g}"] = kept
        for rounds in MEMORIES:
            fade = dw.LinearUCB(memory=memory(rounds), **{**untold(log), "exploration": e})
            found["fade"][f"{rounds:g} rounds, e {e:g}"] = fade
    for rounds in MEMORIES[2:]:
        for e in (0.1, 0.3, 1.0):
            window = dw.make("SW-UCB", memory=dw.Window(rounds), exploration=e, horizon=log.rounds, **told(log))
            found["SW-UCB"][f"{rounds:g} rounds, e {e:g}"] = window
    try:
        import bayesianbandits  # noqa: F401
    except ImportError:
        return found
    found["bayesianbandits"] = {f"{n:g} rounds": Bayesian(log.dim, n) for n in (128.0, 512.0, 2048.0, math.inf)}
    return found


def earned(policies: dict[str, Any], logs: list[dw.Outcomes]) -> dict[str, np.ndarray]:
    """What each policy earns, (logs, rounds)."""
    runs = [dw.backtest(policies, log, seed=number, progress=False) for number, log in enumerate(logs)]
    return {name: np.array([run.rewards[name] for run in runs]) for name in policies}


def in_hindsight(logs: list[dw.Outcomes]) -> dict[str, Any]:
    """The best of each grid on six of the logs. On fewer, a rule that stays with the first arm may win by luck."""
    chosen: dict[str, Any] = {}
    for title, grid in grids(logs[0]).items():
        means = {name: rows.mean() for name, rows in earned(grid, logs[:6]).items()}
        best = max(means, key=lambda name: means[name])
        chosen[f"best of {title} ({best})"] = grid[best]
    return chosen


def signed(mean: float, width: float) -> str:
    return f"{mean:+.4f} ± {width:.4f}".replace("-", "\N{MINUS SIGN}")


def compare(title: str, logs: list[dw.Outcomes], clicks: bool) -> None:
    begun = time.process_time()
    policies = {**contenders(logs[0], clicks), **in_hindsight(logs)}
    rows = earned(policies, logs)
    mixed = earned(policies, [log.shuffled(number) for number, log in enumerate(logs)])
    best = np.mean([np.nanmax(log.paid, axis=1).mean() for log in logs])
    alone = float(np.nanmean(logs[0].paid, axis=0).max())
    print(f"\n{title}: {logs[0].rounds} rounds, {len(logs[0].names)} arms, d = {logs[0].dim}. The best arm of every "
          f"round pays {best:.4f}, the best arm when on offer {alone:.4f}.\n")  # fmt: skip
    print("| policy | reward | less static, over draws | over time | shuffled: reward | shuffled: less static |")
    print("|---" * 6 + "|")
    for name in policies:
        cells = [f"{rows[name].mean():.4f}"]
        apart, other = rows[name] - rows["static"], mixed[name] - mixed["static"]
        both = t_interval(apart.mean(axis=1)), t_interval(block_means(apart.mean(axis=0), 40))
        cells += ["" if name == "static" else signed(*one) for one in both]
        cells += [f"{mixed[name].mean():.4f}", "" if name == "static" else signed(*t_interval(other.mean(axis=1)))]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n({time.process_time() - begun:.0f} CPU-seconds)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("flights", "bikes", "prompts"))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--bikes", default=None)
    asked = parser.parse_args()
    if asked.only in (None, "flights"):
        compare("Flights", [sets.flights(seed=k).reordered(k) for k in range(asked.draws)], clicks=True)
    if asked.only in (None, "bikes"):
        bikes = sets.bikes(path=asked.bikes)
        compare("Bikes", [bikes.reordered(k) for k in range(asked.draws)], clicks=False)
    if asked.only in (None, "prompts"):
        prompts = sets.prompts()
        compare("Prompts", [prompts.reordered(k) for k in range(asked.draws)], clicks=False)


if __name__ == "__main__":
    main()
