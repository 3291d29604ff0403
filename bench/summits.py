"""Whether any of many ascents by SLSQP finds a better point of a ball than a policy chooses.

    python bench/summits.py --out FILE.jsonl [--states 2000] [--starts 200] [--seconds 200]

States of linear policies at d = 5, 10 and 50 are reached in play and made extreme. For each, SLSQP with exact
gradients climbs from many starts, and the points it ends at are scored by the policy as a list. FILE gets a line a
state; a run goes on where the file ends and stops after so many seconds, so that the whole can be done in parts.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

import driftwise as dw

DIMS = (5, 10, 50)
KINDS = ("played", "empty", "one arm", "tiny ridge", "equal eigenvalues", "no rewards", "large rewards")
CLOSE = 1e-9  # of the score, or of 1: what rounding may add to a point that SLSQP found
PATIENT = {"maxiter": 300, "ftol": 1e-13}
Index = tuple[np.ndarray, np.ndarray, float]


def state_of(number: int) -> tuple[int, str, dw.LinearUCB, Any]:
    """A state by its number: dimension, kind, policy and state."""
    dim, kind = DIMS[number % len(DIMS)], KINDS[number // len(DIMS) % len(KINDS)]
    rng = np.random.default_rng([number, 19])
    memories = (dw.Keep(), dw.Fade(10.0 ** rng.uniform(-3, -0.5)), dw.Window(int(rng.integers(2, 3 * dim))))
    memory = dw.Keep() if kind == "equal eigenvalues" else memories[int(rng.integers(3))]
    policy = dw.LinearUCB(
        dim=dim, memory=memory, delta=0.05,
        lam=1e-8 if kind == "tiny ridge" else 10.0 ** rng.uniform(-8, 2), R=10.0 ** rng.uniform(-2, 1),
        two_matrix="correct" if rng.random() < 0.4 else None,
    )  # fmt: skip
    state, ball = policy.start(), dw.Ball(dim)
    scale = {"no rewards": 0.0, "large rewards": 1e4}.get(kind, 1.0)
    theta, one = rng.standard_normal((2, dim)) / math.sqrt(dim)
    rounds = {"empty": 0, "equal eigenvalues": dim}.get(kind, int(rng.integers(1, 4 * dim)))
    for t in range(rounds):
        x = policy.choose(state, ball).x
        if kind == "one arm":
            x = one / math.sqrt(one @ one)
        elif kind == "equal eigenvalues":
            x = np.eye(dim)[t]
        theta = theta + 0.05 * rng.standard_normal(dim)
        policy.learn(state, ball, x, scale * float(x @ theta + policy.noise * rng.standard_normal()))
    return dim, kind, policy, state


def index_of(policy: dw.LinearUCB, state: Any) -> Index:
    """θ̂, the matrix of the bonus and β, from the sums by the formulas."""
    lower = (state.G[0], state.twin[0] if policy.two_matrix else state.G[0])
    V, twin = (np.tril(one) + np.tril(one, -1).T + policy.ridge * np.eye(policy.dim) for one in lower)
    inverse = np.linalg.inv(V)
    A = inverse @ twin @ inverse if policy.two_matrix else inverse
    first = np.eye(policy.dim)[:1]
    beta = float(policy.scores(state, first).bonus[0]) / math.sqrt(A[0, 0])
    return np.linalg.solve(V, state.b[0]), 0.5 * (A + A.T), beta


def climbs(index: Index, starts: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Where SLSQP ends from each of the starts, within the unit ball; indices are divided by a bound of them."""
    theta, A, beta = index
    dim = len(theta)
    unit = math.sqrt(theta @ theta) + beta * math.sqrt(np.linalg.eigvalsh(A)[-1])

    def fall(x: np.ndarray) -> tuple[float, np.ndarray]:
        along = A @ x
        root = math.sqrt(max(float(x @ along), 1e-300))
        return -(float(theta @ x) + beta * root) / unit, -(theta + beta / root * along) / unit

    ball = {"type": "ineq", "fun": lambda x: 1.0 - x @ x, "jac": lambda x: -2.0 * x}
    for _ in range(starts):
        x = rng.standard_normal(dim)
        x *= rng.uniform() ** (1.0 / dim) / math.sqrt(x @ x)
        x = optimize.minimize(fall, x, jac=True, constraints=[ball], method="SLSQP", options=PATIENT).x
        yield x * min(1.0, 1.0 / max(math.sqrt(x @ x), 1e-300))


def compare(number: int, starts: int) -> dict[str, Any]:
    """One state: the score chosen, the best of the ascents, and the choice's own bound."""
    begun = time.process_time()
    dim, kind, policy, state = state_of(number)
    choice = policy.choose(state, dw.Ball(dim))
    points = np.array(list(climbs(index_of(policy, state), starts, np.random.default_rng([number, 20]))))
    best = float(policy.scores(state, points).score.max())
    return {"number": number, "dim": dim, "kind": kind, "starts": starts, "score": choice.score, "best": best,
            "gap": choice.gap, "seconds": time.process_time() - begun}  # fmt: skip


def tell(found: list[dict[str, Any]]) -> None:
    """Print the number of states, how often an ascent was better, by how much at most, and how close ascents came."""
    for dim in DIMS:
        rows = [one for one in found if one["dim"] == dim]
        if not rows:
            continue
        above = [(one["best"] - one["score"]) / max(1.0, abs(one["score"])) for one in rows]
        gaps = [one["gap"] / max(1.0, abs(one["score"])) for one in rows]
        better, met = sum(one > CLOSE for one in above), sum(abs(one) <= CLOSE for one in above)
        print(f"d = {dim:2}: {len(rows)} states; SLSQP better in {better}, by {max(above):.1e} at most, and as good in "
              f"{met}; largest gap {max(gaps):.1e}; {sum(one['seconds'] for one in rows):.0f} s")  # fmt: skip


def main(out: Path, states: int, starts: int, seconds: float) -> None:
    """Continue where the file ends."""
    warnings.simplefilter("ignore", RuntimeWarning)  # SLSQP's own steps out of bounds
    found = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    begun = time.monotonic()
    with out.open("a") as file:
        while len(found) < states and time.monotonic() - begun < seconds:
            found.append(compare(len(found), starts))
            file.write(json.dumps(found[-1]) + "\n")
            file.flush()
    tell(found)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--states", type=int, default=2000)
    asked.add_argument("--starts", type=int, default=200)
    asked.add_argument("--seconds", type=float, default=200.0)
    main(**vars(asked.parse_args()))
