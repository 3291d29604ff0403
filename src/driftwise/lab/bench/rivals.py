"""The references for the time of a round: LB-WeightUCB written in NumPy, and in C, which is compiled here."""

from __future__ import annotations

import shutil
import subprocess
import time
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.policies.names import make
from driftwise.worlds import World

_FLAGS = ("-O3", "-march=native", "-ffp-contract=off")


def numpy_round(world: World, count: int) -> float:
    """CPU seconds per round of LB-WeightUCB in plain NumPy."""
    policy: Any = make("LB-WeightUCB", **world.facts)
    tape = next(world.tapes())
    arms, d = np.ascontiguousarray(tape.arms[0].T), world.dim
    gamma, lam = 1.0 - policy.memory.forget, policy.lam
    G, b, E = np.zeros((d, d)), np.zeros(d), 0.0
    begun = time.thread_time()
    for t in range(count):
        inverse = np.linalg.inv(G + lam * np.eye(d))
        beta = np.sqrt(lam) + np.sqrt(-2.0 * np.log(policy.delta) + d * np.log1p(E / (lam * d)))
        square = ((arms @ inverse) * arms).sum(axis=1)
        x = arms[np.argmax(arms @ (inverse @ b) + beta * np.sqrt(square))]
        reward = x @ tape.theta[t] + tape.draws[t]
        G, b, E = gamma * G + np.outer(x, x), gamma * b + reward * x, gamma**2 * E + 1.0
    return (time.thread_time() - begun) / count


def c_compiler() -> str | None:
    """A C compiler of this machine."""
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def compile_limit(folder: Path, cc: str) -> Path | None:
    """Compile the loop in C; None if the compiler fails."""
    source = resources.files(__package__).joinpath("limit.c")
    target = folder / "limit"
    with resources.as_file(source) as file:
        built = subprocess.run([cc, *_FLAGS, str(file), "-o", str(target), "-lm"], check=False, capture_output=True)
    return target if built.returncode == 0 else None


def c_round(program: Path, d: int, n: int, horizon: int, runs: int) -> float:
    """Seconds per round of the C loop, in the best of its runs."""
    command = [str(program), *map(str, (d, n, horizon, runs))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[1]) * 1e-9
