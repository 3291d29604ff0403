"""The cost of a generalized linear round: in LB-WeightUCB rounds, with fresh arms, and after a million rounds.

    python bench/glm.py [--repeats 7] [--horizon 1000000]

Sides alternate, and the best of several repeats counts on all: the machines are shared.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import driftwise as dw
from driftwise.policies.base import Compiled, State
from driftwise.worlds import Tape, World

ALLOWED = 25.0


def tape_of(world: World) -> Tape:
    """All rounds of a world with fixed arms as one stretch."""
    parts = list(world.tapes())
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("theta", "draws", "best"))
    return Tape(parts[0].arms, *joined)


def play(policy: Compiled, state: State, world: World, tape: Tape) -> float:
    """Nanoseconds a round over one stretch."""
    size = len(tape.theta)
    chosen, regret = np.empty(size, dtype=np.int64), np.empty(size)
    begun = time.perf_counter()
    policy.play(state, *tape, world.link_code, world.reward_code, world.noise, 0.0, chosen, regret)
    return (time.perf_counter() - begun) / size * 1e9


def in_linear_rounds(repeats: int) -> None:
    """One round with fixed arms, d = 2, n = 50, the paper's settings, against an LB-WeightUCB round."""
    linear = dw.worlds.Turn()
    sides = {"LB-WeightUCB": (dw.make("LB-WeightUCB", **linear.facts), linear, tape_of(linear))}
    for S in (1.0, 5.0):
        world = dw.worlds.Turn(radius=S, reward="bernoulli")
        tape = tape_of(world)
        for name in ("GLB-WeightUCB", "SCB-WeightUCB"):
            sides[f"{name}, S = {S:g}"] = (dw.make(name, **world.facts), world, tape)
            one_pass = dw.make(name, **world.facts, estimate="one-pass")
            sides[f"{name}, S = {S:g}, one pass"] = (one_pass, world, tape)
    best = dict.fromkeys(sides, np.inf)
    for _ in range(repeats + 1):  # the first is to warm up
        for name, (policy, world, tape) in sides.items():
            best[name] = min(best[name], play(policy, policy.start(), world, tape))
    print(f"{'a round, d = 2, n = 50, fixed arms':<36} {'ns':>8} {'in LB rounds':>13} {'allowed':>8}")
    for name, ns in best.items():
        print(f"{name:<36} {ns:>8.1f} {ns / best['LB-WeightUCB']:>13.2f} {ALLOWED:>8.1f}")


def flatness(horizon: int) -> None:
    """Fresh arms in one pass: the rounds after the first thousand against as many before the horizon."""
    world = dw.worlds.Turn(reward="bernoulli", fresh=True, horizon=horizon)
    policies = {name: dw.make(name, **world.facts, estimate="one-pass") for name in ("GLB-WeightUCB", "SCB-WeightUCB")}
    states = {name: policy.start() for name, policy in policies.items()}
    early, late = (1_000, horizon // 10 + 1_000), (horizon - horizon // 10, horizon)
    seen: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in policies}
    done = 0
    for tape in world.tapes():
        for name, policy in policies.items():
            ns = play(policy, states[name], world, tape)
            for found, (start, stop) in zip(seen[name], (early, late), strict=True):
                if start <= done and done + len(tape.theta) <= stop:
                    found.append(ns)
        done += len(tape.theta)
    for name, parts in seen.items():
        (first, least), (last, least_late) = ((float(np.median(part)), min(part)) for part in parts)
        print(
            f"{name}, one pass, fresh arms: rounds {early[0]:,}-{early[1]:,} {first:.0f} ns each (best stretch "
            f"{least:.0f}), {late[0]:,}-{late[1]:,} {last:.0f} ({least_late:.0f}); ratio {last / first:.2f} "
            f"(best {least_late / least:.2f}; wanted about 1)"
        )


def bounded(repeats: int) -> None:
    """Fresh arms, exact: once W atoms are there the cost of a round stays; it is W's share that is paid."""
    for name, fade in (("GLB-WeightUCB", 0.1), ("SCB-WeightUCB", 0.1), ("GLB-WeightUCB", 0.02)):
        probe = dw.make(name, dim=2, horizon=100_000, path_length=6.28, memory=dw.Fade(fade))
        W = probe.start().atoms.shape[1]
        world = dw.worlds.Turn(reward="bernoulli", fresh=True, horizon=6 * W)
        policy = dw.make(name, **world.facts | {"horizon": 100_000}, memory=dw.Fade(fade))
        parts = list(world.tapes())
        whole = Tape(*(np.concatenate([getattr(part, field) for part in parts]) for field in Tape._fields))
        best = [np.inf] * 6
        for _ in range(repeats):
            state = policy.start()
            for n in range(6):
                piece = Tape(*(field[n * W : (n + 1) * W] for field in whole))
                best[n] = min(best[n], play(policy, state, world, piece))
        shown = " ".join(f"{ns / 1e3:.1f}" for ns in best)
        print(
            f"{name}, exact, fresh arms, γ = {1 - fade:g}, W = {W}: microseconds a round in six stretches of W: "
            f"{shown}; last to second {best[5] / best[1]:.2f} (wanted about 1); {best[5] / W:.1f} ns an atom"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--horizon", type=int, default=1_000_000)
    options = parser.parse_args()
    in_linear_rounds(options.repeats)
    bounded(max(2, options.repeats // 2))
    flatness(options.horizon)


if __name__ == "__main__":
    main()
