"""Rounds of LB-WeightUCB: the plain loop beside the same in C, tiles and lazy rounds beside the plain loop, a choice
among 100,000 arms beside NumPy, all in one run.

    python bench/rounds.py [--repeats 9] [--quick]

The sides alternate, and ratios are those of medians; of C, and of ours beside it, those of the best. Times are the
processor's, and targets are for vectors of 512 bits. The last lines say what share of the arms lazy rounds score, and
what it would be if widths were bounded by growth and the ridge alone (docs/lab/lazy.md).
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported: its side has one thread, like ours

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

import driftwise as dw
from driftwise.kernels.chance import Rounds
from driftwise.lab.bench.rivals import c_compiler, c_round, compile_limit
from driftwise.policies import engines
from driftwise.policies.base import Compiled
from driftwise.worlds import Tape, World

# Features, arms, rounds, and what tiles and lazy rounds may take of a plain one.
SIZES = (
    (2, 50, 6000, 0.70, None), (10, 100, 4000, 0.72, None), (50, 200, 600, 0.56, 0.30), (32, 1000, 300, 0.50, 0.20),
    (32, 10_000, 60, None, 0.16), (32, 100_000, 16, 0.25, None),
)  # fmt: skip
IN_C = ((2, 50, 6000), (10, 100, 6000), (50, 200, 1000))
HORIZON, PATH, LONG = 6000, 6.283, 200_000
CHOICE = 0.3


def medians(sides: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Median seconds of every side, taken in turns."""
    for side in sides.values():
        side()
    times = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            times[name].append(side())
    return {name: float(np.median(one)) for name, one in times.items()}


def tape_of(world: World) -> Tape:
    """All rounds of a world with fixed arms as one stretch."""
    parts = list(world.tapes())
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in ("theta", "draws", "best"))
    return Tape(parts[0].arms, *joined)


def made(d: int, n: int, T: int) -> tuple[Compiled, Tape]:
    world = dw.worlds.Turn(dim=d, arms=n, horizon=T)
    return dw.make("LB-WeightUCB", dim=d, horizon=HORIZON, path_length=PATH), tape_of(world)


def played(policy: Compiled, tape: Tape, road: str, seen: dict[str, bytes]) -> Callable[[], float]:
    """Seconds of all rounds by one engine; its arms and regret are compared with those of the others."""
    T = len(tape.theta)
    chosen, regret = np.empty(T, dtype=np.int64), np.empty(T)

    def once() -> float:
        state = policy.start()
        with engines.forced(road):
            begun = time.thread_time()
            policy.play(state, Rounds(*tape, 0, 0, 1.0), 0.0, chosen, regret)
            spent = time.thread_time() - begun
        seen[road] = chosen.tobytes() + regret.tobytes()
        return spent

    return once


def beside_c(repeats: int) -> None:
    """A round of the plain engine beside one of the C loop, and rounds late in a long run beside early ones."""
    with tempfile.TemporaryDirectory() as folder:
        cc = c_compiler()
        program = compile_limit(Path(folder), cc) if cc else None
        for d, n, T in IN_C if program else ():
            policy, tape = made(d, n, T)
            side, runs = played(policy, tape, "tiled", {}), max(1, 20_000_000 // (T * n * d * d))
            side()
            pairs = [(min(side() for _ in range(runs)) / T, c_round(program, d, n, T, runs)) for _ in range(repeats)]
            ours, theirs = (1e9 * min(one) for one in zip(*pairs, strict=True))
            print(f"({d}, {n}): {ours:.1f} ns a round, C {theirs:.1f}, ratio {ours / theirs:.2f}", flush=True)
    policy, tape = made(2, 50, LONG)
    state, spent = policy.start(), []
    for first in range(0, LONG, LONG // 10):
        piece = Tape(tape.arms, *(field[first : first + LONG // 10] for field in tape[1:]))
        begun = time.thread_time()
        results = np.empty(LONG // 10, dtype=np.int64), np.empty(LONG // 10)
        policy.play(state, Rounds(*piece, 0, 0, 1.0), 0.0, *results)
        spent.append(time.thread_time() - begun)
    print(f"the last tenth of {LONG:,} rounds, of the second: {spent[-1] / spent[1]:.2f}")


def rounds(repeats: int, quick: bool) -> None:
    print(f"{'d':>4} {'n':>7} {'plain µs':>10} {'tiled':>7} {'target':>7} {'lazy':>7} {'target':>7}  bits")
    for d, n, T, tiled, lazy in SIZES:
        if quick and n > 2000:
            continue
        policy, tape = made(d, n, T)
        seen: dict[str, bytes] = {}
        sides = {road: played(policy, tape, road, seen) for road in ("plain", "tiled", "lazy")}
        spent = medians(sides, max(3, repeats // 2) if n > 2000 else repeats)
        plain = spent["plain"]
        shown = [f"{plain / T * 1e6:>10.3f}"]
        for name, target in (("tiled", tiled), ("lazy", lazy)):
            shown += [f"{spent[name] / plain:>7.2f}", f"{target:>7.2f}" if target else f"{'-':>7}"]
        print(f"{d:>4} {n:>7} {' '.join(shown)}  {'same' if len(set(seen.values())) == 1 else 'DIFFER'}", flush=True)


def choice(repeats: int, d: int = 32, n: int = 100_000) -> None:
    """A live choice on a prepared set, against A@θ, a triangular solve and row norms."""
    from scipy.linalg import cho_solve, solve_triangular

    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    A *= 0.999 / np.linalg.norm(A, axis=1, keepdims=True)
    arms, policy = dw.ArmSet(A), dw.make("LB-WeightUCB", dim=d, horizon=HORIZON, path_length=PATH)
    state = policy.start()
    for _ in range(300):
        a = int(rng.integers(n))
        policy.learn(state, arms, a, float(A[a, 0] + rng.standard_normal()))
    V = np.tril(state.G[0]) + np.tril(state.G[0], -1).T + policy.lam * np.eye(d)
    beta, found = policy.multiplier(state.squares), {}

    def ours() -> float:
        begun = time.thread_time()
        found["ours"] = policy.choose(state, arms).arm
        return time.thread_time() - begun

    def numpys() -> float:
        begun = time.thread_time()
        low = np.linalg.cholesky(V)
        theta = cho_solve((low, True), state.b[0])
        Y = solve_triangular(low, A.T, lower=True, check_finite=False)
        found["numpy"] = int(np.argmax(A @ theta + beta * np.sqrt(np.einsum("ij,ij->j", Y, Y))))
        return time.thread_time() - begun

    spent = medians({"ours": ours, "numpy": numpys}, repeats)
    mine, theirs = spent["ours"], spent["numpy"]
    print(f"choose on an ArmSet ({n}, {d}): {mine * 1e3:.2f} ms, NumPy {theirs * 1e3:.2f}, ratio {mine / theirs:.2f} "
          f"(target {CHOICE}), arms {found['ours']} and {found['numpy']}")  # fmt: skip


def shares(d: int, n: int, T: int) -> None:
    """The shares of arms whose bound reaches the best score, for both bounds of a width; in plain NumPy."""
    policy, tape = made(d, n, T)
    X, lam, gamma, beta = tape.arms[0].T, float(policy.lam), 1.0 - policy.memory.forget, policy.multiplier
    cap = np.linalg.norm(X, axis=1) / math.sqrt(lam)
    G, b, squares, used = np.zeros((d, d)), np.zeros(d), 0.0, np.zeros(2)
    wide = [cap.copy(), cap.copy()]
    for t in range(T):
        inverse = np.linalg.inv(G + lam * np.eye(d))
        mean, width = X @ inverse @ b, np.sqrt(np.einsum("ij,jk,ik->i", X, inverse, X, optimize=True))
        arm = int(np.argmax(mean + beta(squares) * width))
        for way, bound in enumerate(wide):
            reached = mean + beta(squares) * bound >= mean[arm] + beta(squares) * width[arm]
            bound[reached] = width[reached]
            used[way] += reached.mean() if t >= T // 4 else 0.0
        wide[0] = np.minimum(wide[0] / math.sqrt(gamma), gamma * wide[0] + (1.0 - gamma) * cap)
        wide[1] = np.minimum(wide[1] / math.sqrt(gamma), cap)
        x, reward = X[arm], float(X[arm] @ tape.theta[t] + tape.draws[t])
        G, b, squares = gamma * G + np.outer(x, x), gamma * b + reward * x, gamma * gamma * squares + 1.0
    ours, simple = 100.0 * used / (T - T // 4)
    print(f"({d}, {n}): {ours:.1f}% of the arms are scored; {simple:.1f}% by growth and ridge alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="leave out sets of more than 2000 arms")
    options = parser.parse_args()
    print(llvm.get_host_cpu_name())
    beside_c(options.repeats)
    rounds(options.repeats, options.quick)
    if not options.quick:
        choice(options.repeats)
    for d, n, T in ((50, 200, 800), (32, 1000, 800)):
        shares(d, n, T)


if __name__ == "__main__":
    main()
