"""Live entries and loops of rounds by machine code and by numba, in turns in one process, on the same arrays.

    python release/machine.py src/driftwise/_machine && python bench/shipped.py [--repeats 9]

Processor time of the thread, medians. Live calls hand over arrays that are held; numba's dispatcher takes arrays.
Rounds are those of `simulate` for one trial: the loop that plays without numba, and numba's plain loop, which is
compiled for the pieces of one policy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

import driftwise as dw
from driftwise._internal import jit
from driftwise._internal.shipped import buffer_of, shipped
from driftwise.policies import engines
from driftwise.policies.engines import Sizes

CASES = (
    ("LB-WeightUCB", 2, 50, {}), ("LB-WeightUCB", 10, 50, {}), ("LB-WeightUCB", 10, 1000, {}), ("D-LinUCB", 10, 50, {}),
    ("SW-UCB", 5, 50, {}), ("Bank+LB-WeightUCB", 10, 50, {}), ("MASTER+OFUL", 5, 50, {}), ("GLB-WeightUCB", 5, 50, {}),
    ("SCB-WeightUCB", 5, 50, {}), ("Auto", 5, 50, {}), ("Auto", 5, 50, {"link": "logistic"}),
)  # fmt: skip


def cost(call: Callable[..., Any], given: tuple[Any, ...], times: int) -> float:
    """Microseconds of a call."""
    begun = time.thread_time()
    for _ in range(times):
        call(*given)
    return (time.thread_time() - begun) / times * 1e6


def made(name: str, d: int, horizon: int, fields: dict[str, Any]) -> Any:
    known = {} if name.startswith(("Auto", "MASTER", "Bank")) else {"path_length": 3.0}
    return dw.make(name, dim=d, horizon=horizon, **known, **fields)


def entries(name: str, d: int, n: int, fields: dict[str, Any]) -> tuple[Any, dict[Any, tuple[Any, ...]]]:
    """A state that has learned something, and the arguments of its scores and lessons."""
    policy = made(name, d, 1000, fields)
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(n, d))
    arms, state = dw.ArmSet(rows / np.linalg.norm(rows, axis=1, keepdims=True) / 1.01), policy.start(0)
    for _ in range(120):
        policy.learn(state, arms, policy.choose(state, arms).arm, float(chance.random() < 0.5))
    scores = policy.entries.score_many if n >= policy.many_arms else policy.entries.scores
    state_of = (*policy.point, state.floats, state.ints)
    room = np.zeros(policy._scratch(policy._atoms_used(state)) + 50_000)
    lesson = (room, arms.columns[:, :, :1].copy(), 0, 0, 0.5, 1.0, 0.0, *policy._beside(state, arms))
    return state, {scores: (*state_of, state.scratch[1], arms.columns), policy.entries.learn: (*state_of, *lesson)}


def rounds(name: str, d: int, n: int, fields: dict[str, Any], repeats: int) -> tuple[str, float, float]:
    """The loop of the wheel; microseconds of a round by it and by numba's plain loop."""
    horizon = 400 if name.startswith(("Auto", "GLB", "SCB")) else 4000
    policies = made(name, d, horizon, fields), made(name, d, horizon, fields)
    link = getattr(getattr(policies[0], "base", policies[0]), "link", "identity")
    place = dw.worlds.Turn(
        dim=d, arms=n, horizon=horizon, link=link, reward="gaussian" if link == "identity" else "bernoulli"
    )
    (tape,) = place.tapes(0, 0)
    sizes = Sizes(1, d, n, horizon)
    with patch.object(engines, "compiles", lambda: False):
        used, played = policies[0].engine(sizes).name, policies[0]._loop(sizes)
    assert played.shipped is not None, name

    def play(policy: Any, forced: str | None) -> tuple[float, bytes]:
        state, arms, lost = policy.start(0), np.empty(horizon, dtype=np.int64), np.empty(horizon)
        with engines.forced(forced):
            begun = time.thread_time()
            policy.play(state, *tape, place.link_code, place.reward_code, 1.0, 0.0, arms, lost)
            return (time.thread_time() - begun) / horizon * 1e6, arms.tobytes()

    seen: list[list[float]] = [[], []]
    for _ in range(repeats + 1):
        both = play(policies[0], None), play(policies[1], "plain")
        assert both[0][1] == both[1][1], f"{name}: other arms"
        for place_of, (took, _arms) in enumerate(both):
            seen[place_of].append(took)
    code, numba = (float(np.median(one[1:])) for one in seen)
    return used, code, numba


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    if shipped().level is None:
        sys.exit(f"no machine code: {shipped().why}")
    print(f"{'policy':<20} {'d':>3} {'arms':>5} {'entry':<24} {shipped().level:>8} {'numba':>8} {'ratio':>6}")
    for name, d, n, fields in CASES:
        state, calls = entries(name, d, n, fields)
        kept = state.copy()
        for entry, given in calls.items():
            held = tuple(buffer_of(one) if isinstance(one, np.ndarray) else one for one in given)
            sides = ((entry.shipped, held), (jit.called_of(entry), given))
            seen: list[list[float]] = [[], []]
            for _ in range(repeats + 1):
                for place, (call, handed) in enumerate(sides):
                    state.become(kept)
                    seen[place].append(cost(call, handed, 300 if name == "Auto" else 1500))
            code, numba = (float(np.median(one[1:])) for one in seen)
            print(f"{name:<20} {d:>3} {n:>5} {entry.__name__:<24} {code:>8.2f} {numba:>8.2f} {code / numba:>6.2f}")
    print(f"{'policy':<20} {'d':>3} {'arms':>5} {'rounds by':<24} {shipped().level:>8} {'plain':>8} {'ratio':>6}")
    for name, d, n, fields in CASES:
        used, code, numba = rounds(name, d, n, fields, repeats)
        print(f"{name:<20} {d:>3} {n:>5} {used:<24} {code:>8.2f} {numba:>8.2f} {code / numba:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
