"""docs/speed.md and its picture: where time goes, what was gained over an older commit, and how cost grows.

    python bench/speed.py [--before 185c368] [--repeats 7] [--long 10000000]

`--before` names the commit that rounds of banks, compiling and starting are compared with: its sources are put beside
these, and both take turns in processes of their own. Everything else alternates within one process. Only ratios of one
run mean anything: the machines are shared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import driftwise as dw
from driftwise._internal.python_first import compile_at_once
from driftwise.draw.plots import pyplot
from driftwise.kernels import kernel
from driftwise.kernels.lanes import load_four, store_

ROOT = Path(__file__).resolve().parent.parent
BANKS = (("Bank+LB-WeightUCB", 10, 100, 600), ("Bank+LB-WeightUCB", 50, 200, 150), ("Auto", 10, 100, 300),
         ("Auto", 50, 200, 60))  # fmt: skip
# Targets as shares of the time before: 6 of 12 s, 30 of 59 and of 63.
COLD = (("LB-WeightUCB", "gaussian", 0.50), ("GLB-WeightUCB", "bernoulli", 0.51), ("SCB-WeightUCB", "bernoulli", 0.48))
ROUNDS = """
import json, sys, driftwise as dw
name, d, n, T = json.loads(sys.argv[1])
world = dw.worlds.Turn(dim=d, arms=n, horizon=T)
policy = dw.make(name, **world.facts)
dw.simulate({"it": policy}, world, trials=1, jobs=1, record="last", progress=False)
found = dw.simulate({"it": policy}, world, trials=3, jobs=1, record="last", progress=False)
print(float(found.seconds["it"].min()) / T)
"""
PAGE = """# Speed

Written by `python bench/speed.py`. CPU time, medians of interleaved turns on two shared cores, first uses once each;
the load was {load} while it was measured. Ratios and targets are for 512-bit vectors.

`driftwise bench` measures every row of the catalogue beside NumPy and C compiled on the spot, `bench/peers.py` other
packages. `bench/guard.py` fails if one of these ratios grows by half. `bench/against.py REV` compares its sides with
those of an older revision, in turns in one run, and first uses from an empty cache (`--first`).

## Where the time goes

{shares}

A full round scores every arm. Where widths are carried ([the proof](lazy.md)) only arms that can win are scored, so a
share above 100% is work that was skipped. At d = 2 roots, an argmax and a chain of divisions take most of the time;
eight trials at a time share it.

## Beside C

{linear}

## Tiles, and only what can win

{tiles}

## Eight trials at a time

{trials}

## Banks, first uses and starts, beside commit {before}

{gained}

## How cost grows

![Cost of a round over arms and features, of a run over rounds, of a simulation over trials, on logarithmic
scales](speed.png)

## Long runs

{long}
"""
FIRST = """
import json, sys, driftwise as dw
name, reward = json.loads(sys.argv[1])
world = dw.worlds.Turn(horizon=50, reward=reward)
dw.simulate({"it": dw.make(name, **world.facts)}, world, trials=1, jobs=1, progress=False)
"""


def child(source: Path, program: str, argument: object, cache: str) -> tuple[float, str]:
    """CPU seconds of a fresh Python on these sources, and what it printed."""
    told = dict(os.environ, PYTHONPATH=str(source), NUMBA_CACHE_DIR=cache)
    told.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", program, json.dumps(argument)]
    done = subprocess.run(command, env=told, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def turns(sides: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Medians, taken in turns."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            found[name].append(side())
    return {name: statistics.median(one) for name, one in found.items()}


def bank(source: Path, one: tuple[str, int, int, int], cache: str) -> Callable[[], float]:
    """CPU seconds a round, on these sources."""
    return lambda: float(child(source, ROUNDS, one, cache)[1])


def against_before(old: Path, folder: str, repeats: int) -> list[str]:
    """Banks, first uses and starts, beside those of the older sources."""
    trees = {"now": ROOT / "src", "before": old / "src"}
    lines = ["| what | now of before | target |", "|---|---|---|"]
    for one in BANKS:
        sides = {name: bank(tree, one, f"{folder}/{name}") for name, tree in trees.items()}
        for side in sides.values():
            side()
        found = turns(sides, repeats)
        ratio = found["now"] / found["before"]
        lines.append(f"| a round of {one[0]}, d = {one[1]}, {one[2]} arms | {ratio:.2f} | 0.60 |")
    lines += ["", "| first use from an empty cache | CPU s now | before | ratio | target |", "|---|---|---|---|---|"]
    for name, reward, target in COLD:
        found = {}
        for tree, source in trees.items():
            with tempfile.TemporaryDirectory() as empty:
                found[tree] = child(source, FIRST, (name, reward), empty)[0]
        now, before = found["now"], found["before"]
        lines.append(f"| {name} | {now:.1f} | {before:.1f} | {now / before:.2f} | {target:.2f} |")
    warm = f"{folder}/now"
    child(ROOT / "src", FIRST, COLD[0][:2], warm)
    starts = {
        "import numba": lambda: child(ROOT / "src", "import numba", 0, warm)[0],
        "import driftwise": lambda: child(ROOT / "src", "import driftwise", 0, warm)[0],
        "policies": lambda: child(ROOT / "src", "import driftwise as dw; dw.make, dw.simulate, dw.worlds", 0, warm)[0],
        "first": lambda: child(ROOT / "src", FIRST, COLD[0][:2], warm)[0],
    }
    found = turns(starts, repeats)
    unit = found["import numba"]
    lines += [
        "", "| start from a full cache | of `import numba` | target |", "|---|---|---|",
        f"| `import driftwise`; names are imported on first use | {found['import driftwise'] / unit:.2f} | 1.5 |",
        f"| and `make`, `simulate`, worlds imported | {found['policies'] / unit:.2f} | |",
        f"| and a first `simulate` of LB-WeightUCB | {found['first'] / unit:.2f} | 2.5 |",
    ]  # fmt: skip
    return lines


@kernel
def products_(A, out, times):  # type: ignore[no-untyped-def]
    """Four chains of separate multiplications and subtractions, four eights wide: the peak of the processor."""
    a, b, c, d = load_four(A, 0), load_four(A, 32), load_four(A, 64), load_four(A, 96)
    m = load_four(A, 128)
    for _ in range(times):
        a = a - m * a
        b = b - m * b
        c = c - m * c
        d = d - m * d
    store_(out, 0, a)
    store_(out, 32, b)
    store_(out, 64, c)
    store_(out, 96, d)


def peak() -> float:
    """Multiplications and subtractions a second of one core."""
    A, out, times = np.full(160, 1e-9), np.empty(128), 200_000
    products_(A, out, 10)
    best = math.inf
    for _ in range(9):
        begun = time.thread_time()
        products_(A, out, times)
        best = min(best, time.thread_time() - begun)
    return 2 * 128 * times / best


def round_ns(d: int, n: int, T: int, trials: int = 1) -> float:
    """CPU nanoseconds a round of LB-WeightUCB, the better of three runs."""
    world = dw.worlds.Turn(dim=d, arms=n, horizon=T)
    policy = dw.make("LB-WeightUCB", dim=d, horizon=6000, path_length=6.283)
    best = math.inf
    for _ in range(3):
        found = dw.simulate({"it": policy}, world, trials=trials, jobs=1, record="last", progress=False)
        best = min(best, float(found.seconds["it"].sum()) / (T * trials) * 1e9)
    return best


def shares() -> list[str]:
    """What plain rounds would compute, as a share of the peak."""
    top = peak()
    lines = [
        f"One core does {top / 1e9:.0f} billion separate multiplications and subtractions a second here.", "",
        "| d | arms | ns a round | operations of a full round | share of the peak |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for d, n, T in ((2, 50, 3000), (10, 100, 1500), (50, 200, 400), (32, 1000, 200)):
        ns = round_ns(d, n, T)
        operations = n * d * (d - 1) + 5 * n * d + d**3 / 3 + 3 * d * d
        lines.append(f"| {d} | {n} | {ns:,.0f} | {operations:,.0f} | {operations / (ns * 1e-9) / top:.0%} |")
    return lines


def growth(target: Path) -> None:
    """How cost grows in arms, features, rounds and trials."""
    plot = pyplot()
    picture, panels = plot.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    arms, dims = (10, 30, 100, 300, 1000, 3000, 10_000), (2, 5, 10, 20, 50, 100)
    rounds, trials = (100, 1000, 10_000, 100_000), (1, 8, 64, 512)
    cost = (
        ("arms, d = 10", arms, [round_ns(10, n, max(30, 200_000 // n)) for n in arms]),
        ("features, 100 arms", dims, [round_ns(d, 100, max(60, 30_000 // d)) for d in dims]),
        ("rounds, d = 2, 50 arms", rounds, [round_ns(2, 50, T) * T for T in rounds]),
        ("trials of 1,000 rounds, d = 2", trials, [round_ns(2, 50, 1000, many) * 1000 * many for many in trials]),
    )
    for panel, (name, x, y) in zip(panels, cost, strict=True):
        panel.loglog(x, np.asarray(y) / 1e3, "o-", markersize=4)
        slope = np.polyfit(np.log(x[len(x) // 2 :]), np.log(y[len(x) // 2 :]), 1)[0]
        panel.set_title(f"{name}\nslope {slope:.2f} at the end", fontsize=9)
        panel.set_xlabel(name.split(",")[0].split(" of")[0])
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("CPU µs")
    picture.savefig(target)
    plot.close(picture)


def long(rounds: int) -> str:
    """So many rounds in one process: memory, and the sums beside the weighted sums in long doubles."""
    world = dw.worlds.Turn(horizon=rounds)
    policy = dw.make("LB-WeightUCB", **world.facts)
    state, total, held = policy.start(), 0.0, []
    far = int(60.0 / policy.memory.forget)
    recent: list[tuple[np.ndarray, np.ndarray]] = []
    for tape in world.tapes():
        size = len(tape.theta)
        chosen, regret = np.empty(size, dtype=np.int64), np.empty(size)
        policy.play(state, *tape, world.link_code, world.reward_code, world.noise, total, chosen, regret)
        total = float(regret[-1])
        X = tape.arms[0].T[chosen]
        recent.append((X, (X * tape.theta).sum(axis=1) + tape.draws))
        while sum(len(one) for one, _ in recent[1:]) > far:
            recent.pop(0)
        held.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    X = np.concatenate([one for one, _ in recent])
    rewards = np.concatenate([one for _, one in recent])
    weights = np.power(np.longdouble(1.0 - policy.memory.forget), np.arange(len(X))[::-1].astype(np.longdouble))
    b = (weights[:, None] * (X.astype(np.longdouble) * rewards[:, None])).sum(axis=0)
    G = (weights[:, None, None] * (X[:, :, None].astype(np.longdouble) * X[:, None, :])).sum(axis=0)
    off = max(float(np.abs(state.b[0] - b).max() / np.abs(b).max()),
              float(np.abs(np.tril(state.G[0] - G)).max() / np.abs(G).max()))  # fmt: skip
    grown = held[-1] - held[len(held) // 10]
    return (
        f"{rounds:,} rounds in one process: {grown:.1f} MB more memory at the end than after a tenth of them, and\n"
        f"sums within {off:.0e} of the weighted sums in long doubles (1e-9 wanted)."
    )


def printed(script: str, *words: str) -> list[str]:
    """What another bench prints."""
    command = [sys.executable, str(ROOT / "bench" / script), *words]
    told = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT / "bench")]))
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=told)
    return [f"`python bench/{' '.join([script, *words])}`", "", "```text", *done.stdout.splitlines(), "```"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="185c368")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--long", type=int, default=10_000_000)
    options = parser.parse_args()
    compile_at_once()
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--detach", str(old), options.before], cwd=ROOT, check=True,
                       capture_output=True)  # fmt: skip
        try:
            gained = against_before(old, folder, options.repeats)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(old)], cwd=ROOT, check=True)
    growth(ROOT / "docs" / "speed.png")
    repeats = str(options.repeats)
    told = {
        "load": f"{os.getloadavg()[0]:.1f}", "before": options.before, "shares": "\n".join(shares()),
        "linear": "\n".join(printed("linear.py", "--repeats", repeats)),
        "tiles": "\n".join(printed("tiles.py", "--repeats", repeats)), "gained": "\n".join(gained),
        "trials": "\n".join(printed("trials.py", "--repeats", repeats, "--many", "100000")), "long": long(options.long),
    }  # fmt: skip
    page = PAGE.format_map(told)
    (ROOT / "docs" / "speed.md").write_text(page, encoding="utf-8")
    print("wrote docs/speed.md and docs/speed.png")


if __name__ == "__main__":
    main()
