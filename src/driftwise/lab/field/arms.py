"""Which arms bring Zhao et al. 2020 and Abeille et al. 2021 near their published ends: the sweep of bench/arm_sets.py.

    python -m driftwise.lab.field.arms [--trials 8] [--out results/field-arms.csv]

Numbers and scalings of arms, new in each trial and fixed over it, with the tunings that the sources leave open. A row
has our mean ends over the published ones, and the root mean square of their logarithms, the best row first.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import driftwise as dw
from driftwise.lab.field.papers import published
from driftwise.lab.paper.panels import built_in

SCALINGS: dict[str, dict[str, Any]] = {
    "each arm to 1": {"norm": "unit"}, "longest arm to 1": {"norm": "max"},
    **{f"by {by:g}, longer than 1 to 1": {"norm": "clip", "spread": 1.0 / by} for by in (1.0, 1.5, 2.0, 3.0, 7.35)},
}  # fmt: skip


def _zhao() -> Iterator[tuple[str, list[tuple[str, Any, dict[str, Any]]]]]:
    """Both panels with one setting: its name, and the spec, the world and the tuning of each."""
    for n, (scaling, fields), lam in itertools.product((3, 5, 10, 20), SCALINGS.items(), (1.0, 2.0)):
        pairs = []
        for key in ("zhao_abrupt", "zhao_gradual"):
            world = replace(built_in(key).contests[0][0].world, arms=n, **{"spread": 1.0, **fields})
            pairs.append((key, world, {"lam": lam}))
        yield f"{n} arms, {scaling}, λ = {lam:g}", pairs


def _abeille() -> Iterator[tuple[str, list[tuple[str, Any, dict[str, Any]]]]]:
    plain = built_in("abeille2021").contests[0][0].world
    drawn = SCALINGS | {f"in the {one}": {"draw": one, "norm": "clip"} for one in ("disc", "cube")}
    for n, (scaling, fields), delta in itertools.product((5, 10, 20, 40), drawn.items(), (1e-4, 0.05)):
        world = replace(plain, **{"arms": n, "draw": "normal", "spread": 1.0, **fields})
        yield f"{n} arms, {scaling}, δ = {delta:g}", [("abeille2021", world, {"delta": delta})]


def _ratios(pairs: list[tuple[str, Any, dict[str, Any]]], trials: int, slow: bool) -> dict[str, float]:
    """Our mean ends over the published ones; OFULog, which is slow, only if asked."""
    found = {}
    for key, world, told in pairs:
        for entry in built_in(key).entries:
            quick = entry.name != "OFULog" and not entry.name.endswith("-code")
            if entry.published and (quick or slow) and not {"delta", "lam"} & set(entry.fields):
                code = entry.name.endswith("-code")
                policy = dw.make(entry.name, **{**world.facts, **entry.fields, **({} if code else told)})
                count = trials if quick or code else 4
                ends = dw.simulate(policy, world, trials=count, record="last", jobs=1, progress=False)
                (regret,) = ends.regret.values()
                found[f"{key} {entry.label}"] = float(regret.mean()) / published()[key, entry.published][-1].regret
    return found


def sweep_arms() -> None:
    """Play all settings, print a row of each and keep them in a file."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--trials", type=int, default=8)
    words.add_argument("--out", type=Path, default=Path("results/field-arms.csv"))
    asked = words.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for paper, settings in (("Zhao et al. 2020", _zhao()), ("Abeille et al. 2021", _abeille())):
        found = {}
        for name, pairs in settings:
            near = _ratios(pairs, asked.trials, False)
            found[name] = (float(np.sqrt(np.mean(np.log(list(near.values())) ** 2))), near, pairs)
        best = sorted(found, key=lambda name: found[name][0])
        for place, name in enumerate(best):
            far, near, pairs = found[name]
            if paper.startswith("Abeille") and place < 3:
                near = _ratios(pairs, asked.trials, True)
            rows.append((paper, name, f"{far:.3f}", "; ".join(f"{one} {ratio:.2f}" for one, ratio in near.items())))
            print(*rows[-1], sep=" | ", flush=True)
    with asked.out.open("w", encoding="utf-8", newline="") as file:
        columns = "paper", "setting", "rms of logs", "ours over published"
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


if __name__ == "__main__":
    sweep_arms()
