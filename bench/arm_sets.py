"""Which set of arms the paper's figures were made with: readings of its text, and fewer directions as a probe.

    python bench/arm_sets.py [--out results/arm_sets] [--sets 12000] [--write]

The text: 50 arms "sampled from the normal distribution N(0,1) and subsequently rescaled to satisfy L = 1"; θ_1 is
[1, 0] and turns counterclockwise. A setting is a reading of "rescaled", or a number of unit arms (the probe). For each:

1. new sets in each trial, all 24 published curves;
2. one set for all trials and panels: many sets by one trial of OFUL, RestartUCB and LB-WeightUCB; the best of them by
   one trial of S = 1 too (static, restarted, weighted); the best of those by eight new trials of all 15 curves of LB
   and S = 1. The best is the chosen set, and S = 5 judges it. The best by all 24 curves is the fitted set.

N(0, 1) has no direction: another start or direction of θ is another set, except where columns are scaled. There the
start and the direction are drawn with the set. Sets are ranked by the root mean square of what a curve gains in each
1,000 rounds, minus what the published one gains, over the published end.

Every finished part is a file in --out, and a second start goes on. --write puts the table into the package.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftwise as dw
from driftwise.kernels.tapes import turn_
from driftwise.lab import paper
from driftwise.lab.paper.panels import built_in
from driftwise.lab.paper.published import published_curves
from driftwise.worlds.base import draw_arms

Floats = np.ndarray[Any, np.dtype[np.float64]]
# Points are recorded every so many rounds and gains are over stretches of four; the paper's figures have so many runs.
EVERY, POINTS, RUNS = 250, 4, 20
FAST = ("OFUL", "RestartUCB", "LB-WeightUCB")
QUICK = {"lb": FAST, "glb_s1": ("GLM-UCB", "GLB-RestartUCB", "GLB-WeightUCB"),
         "scb_s1": ("LogUCB1", "SCB-RestartUCB", "SCB-WeightUCB")}  # fmt: skip
NEW, AGAIN, LAST = RUNS, 8, RUNS
PER_FIRST, PER_SECOND = 240, 8
# The policies with a published curve, by panel.
CURVES = {
    "LB": ("OFUL", "RestartUCB", "D-LinUCB as published", "LB-WeightUCB", "MASTER+OFUL n=0", "MASTER+OFUL n=13"),
    "GLB_S1": ("GLM-UCB", "GLB-RestartUCB", "GLB-WeightUCB", "MASTER+GLM-UCB", "BVD-GLM-UCB"),
    "SCB_S1": ("LogUCB1", "SCB-RestartUCB", "SCB-WeightUCB", "MASTER+LogUCB1"),
    "GLB_S5": ("GLM-UCB", "GLB-RestartUCB", "GLB-WeightUCB", "MASTER+GLM-UCB", "BVD-GLM-UCB"),
    "SCB_S5": ("LogUCB1", "SCB-RestartUCB", "SCB-WeightUCB", "MASTER+LogUCB1"),
}
SCALES = np.geomspace(0.003, 0.5, 120)


def published(name: str) -> Any:
    """The published curve of a panel's policy."""
    panel, label = name.split(" ", 1)
    return published_curves()[panel, label.removesuffix(" as published")]


def gains(curve: Floats) -> Floats:
    """What each stretch adds, from points every 250 rounds."""
    return np.diff(curve[..., POINTS - 1 :: POINTS], axis=-1, prepend=0.0)


def misses(name: str, regret: Floats) -> Floats:
    """Gains minus the published ones, over the published end, for each trial or a mean."""
    curve = published(name)
    at = np.arange(EVERY, EVERY * regret.shape[-1] + 1, EVERY)
    return np.asarray((gains(regret) - gains(np.interp(at, curve.at, curve.mean))) / curve.final)


def distances(found: Mapping[str, Floats]) -> Floats:
    """The root mean square of all curves' misses, for each trial alone."""
    return np.asarray(np.sqrt(np.mean([(misses(*one) ** 2).mean(axis=-1) for one in found.items()], axis=0)))


def distance(found: Mapping[str, Floats]) -> float:
    """The root mean square of the misses of mean curves."""
    return float(distances({name: regret.mean(axis=0) for name, regret in found.items()}))


class Misses(NamedTuple):
    """Misses of mean curves, and their variance: that of our mean and of a mean of as many runs as published."""

    mean: dict[str, Floats]
    variance: dict[str, Floats]

    def likelihood(self, names: Sequence[str]) -> float:
        """The log-likelihood of curves, misses normal and independent; the scale of what is left unexplained is the one
        that makes them likeliest."""
        mean, variance = (np.concatenate([one[name] for name in names]) for one in self)
        total = variance + SCALES[:, None] ** 2
        return float((-0.5 * (np.log(2.0 * np.pi * total) + mean**2 / total).sum(axis=1)).max())


def missed(found: Mapping[str, Floats]) -> Misses:
    each = {name: misses(name, regret) for name, regret in found.items()}
    spread = {name: one.var(axis=0, ddof=1) * (1.0 / len(one) + 1.0 / RUNS) for name, one in each.items()}
    return Misses({name: one.mean(axis=0) for name, one in each.items()}, spread)


@dataclass(frozen=True, kw_only=True)
class Turned(dw.worlds.Turn):
    """The paper's world with columns or coordinates of the arms scaled, and another start and direction of θ."""

    columns: str = "none"

    def _turned(self, rng: np.random.Generator) -> Floats:
        angle = np.array([2.0 * math.pi * rng.random()])
        row = np.empty((1, 2))
        turn_(angle, 1.0, row)
        (c, s), flip = row[0], 1.0 if rng.random() < 0.5 else -1.0
        return np.array([[c, s], [-flip * s, flip * c]])

    def _arms(self, rng: np.random.Generator, start: int, sets: int) -> Floats:
        raw = draw_arms(rng, sets, self.count, self.dim, self.draw, "clip", 1e-9) * 1e9
        if self.columns == "cut":
            scaled = np.clip(raw, -1.0, 1.0) / math.sqrt(self.dim)
        else:
            size = np.abs(raw).max(axis=2) if self.columns == "max" else np.sqrt((raw * raw).sum(axis=2))
            scaled = raw / size[:, :, None]
        return np.ascontiguousarray(np.einsum("ij,sjn->sin", self._turned(rng), scaled))


SETTINGS: dict[str, dict[str, Any]] = {
    "each arm to 1": {},
    "longer than 1 to 1": {"norm": "clip"},
    **{f"by {by:g}, longer than 1 to 1": {"norm": "clip", "spread": 1.0 / by} for by in (1.5, 1.75, 2.0, 2.5, 3.0)},
    "longest arm to 1": {"norm": "max"},
    "column by its largest entry": {"columns": "max"},
    "column by its norm": {"columns": "norm"},
    "coordinates cut to 1, by √2": {"columns": "cut"},
    **{f"{n} unit arms": {"arms": n} for n in (5, 7, 8, 10, 12, 15, 25)},
}


def world_of(panel: str, setting: str, shared: int | None = None) -> dw.worlds.World:
    """A panel's world with a setting's arms."""
    spec, changed = built_in(panel).contests[0][0].world, SETTINGS[setting]
    if "columns" in changed:
        facts = {name: getattr(spec, name) for name in ("radius", "reward", "noise", "horizon")}
        return Turned(**facts, **changed, arms_of=shared)
    return replace(spec, **{"norm": "unit", "spread": 1.0, **changed}, arms_of=shared)


def played(panel: str, setting: str, trials: Sequence[int], shared: int | None = None,
           names: Sequence[str] = ()) -> dict[str, Floats]:  # fmt: skip
    """Regret (trials, points) of the policies of a panel with a published curve, or of those named."""
    spec = built_in(panel)
    policies = {label: policy for label, policy in spec.contests[0][0].policies.items()
                if label in (names or CURVES[spec.key])}  # fmt: skip
    result = dw.simulate(policies, world_of(panel, setting, shared), trials=trials, record=EVERY,
                         jobs=1, progress=False)  # fmt: skip
    return {f"{spec.key} {name}": values for name, values in result.regret.items()}


def kept(file: Path, panels: Sequence[str], *args: Any, names: dict[str, Sequence[str]] | None = None) -> Any:
    """What several panels give, from the file if an earlier start has played it."""
    if not file.exists():
        found: dict[str, Floats] = {}
        for panel in panels:
            found |= played(panel, *args, names=names[panel] if names else ())
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file.with_suffix(".part.npz"), **found)
        file.with_suffix(".part.npz").rename(file)
        print(file.name, flush=True)
    with np.load(file) as stored:
        return dict(stored)


CHOOSING, JUDGING = ("lb", "glb_s1", "scb_s1"), ("glb_s5", "scb_s5")


def new_sets(out: Path, setting: str, trials: int) -> dict[str, Floats]:
    rows = range(trials)
    return kept(out / f"{setting}, new, {trials}.npz", (*CHOOSING, *JUDGING), setting, rows)


def tried(out: Path, setting: str, sets: int) -> dict[str, Floats]:
    """One trial of three curves on every set."""
    return kept(out / f"{setting}, first, {sets}.npz", ("lb",), setting, range(sets), names={"lb": FAST})


def first(out: Path, setting: str, sets: int) -> list[int]:
    """The best sets by that trial."""
    return [int(one) for one in np.argsort(distances(tried(out, setting, sets)))[:PER_FIRST]]


def second(out: Path, setting: str, sets: int) -> list[int]:
    """The best of those by one trial of nine curves."""
    best = first(out, setting, sets)
    found = kept(out / f"{setting}, second, {sets}.npz", CHOOSING, setting, best, names=QUICK)
    return [best[place] for place in np.argsort(distances(found))[:PER_SECOND]]


def again(out: Path, setting: str, shared: int, panels: Sequence[str], trials: int, what: str) -> dict[str, Floats]:
    """New trials of one set."""
    numbers = range(10**6, 10**6 + trials)
    return kept(out / f"{setting}, set {shared}, {what}, {trials}.npz", panels, setting, numbers, shared)


def third(out: Path, setting: str, sets: int) -> tuple[int, int]:
    """The best of those by new trials of all curves of LB and S = 1, and by all 24 curves."""
    best = second(out, setting, sets)
    seen = {one: again(out, setting, one, CHOOSING, AGAIN, "choosing") for one in best}
    chosen = min(best, key=lambda one: distance(seen[one]))
    for one in best:
        seen[one] |= again(out, setting, one, JUDGING, AGAIN // 2, "judging")
    return chosen, min(best, key=lambda one: distance(seen[one]))


def last(out: Path, setting: str, shared: int) -> dict[str, Floats]:
    return again(out, setting, shared, (*CHOOSING, *JUDGING), LAST, "all")


def judged(found: Mapping[str, Floats], reference: Misses) -> dict[str, str]:
    """What a row says of regret: log-likelihoods above the reference's, with standard errors over curves, and ends."""
    row, ours = {}, missed(found)
    groups = {"LB and S = 1": [one for one in found if "_S5" not in one],
              "S = 5": [one for one in found if "_S5" in one], "all": list(found)}  # fmt: skip
    for what, names in groups.items():
        def above(names: Sequence[str]) -> float:
            return ours.likelihood(names) - reference.likelihood(names)

        rng = np.random.default_rng(0)
        drawn = [above(list(rng.choice(names, len(names)))) for _ in range(200)]
        row |= {what: f"{above(names):.1f}", f"± {what}": f"{np.std(drawn):.1f}"}
    ends = {name: regret[:, -1] for name, regret in found.items()}
    ratios = {name: float(end.mean()) / published(name).final for name, end in ends.items()}
    near = [name for name, ratio in ratios.items() if 1 / 1.15 < ratio < 1.15]
    inside = [name for name, end in ends.items() if published(name).low[-1] <= end.mean() <= published(name).high[-1]]
    widths = [np.ptp(end[:LAST]) / (published(name).high[-1] - published(name).low[-1]) for name, end in ends.items()]
    row |= {"within 15%": str(len(near)), "within 15%, S = 5": str(sum("_S5" in one for one in near)),
            "in the band": str(len(inside)), "width of bands": f"{np.median(widths):.2f}",
            "mean |log|": f"{np.mean(np.abs(np.log(list(ratios.values())))):.3f}"}  # fmt: skip
    return row | {name: f"{ratio:.2f}" for name, ratio in ratios.items()}


def table(out: Path, sets: int) -> list[dict[str, str]]:
    reference = missed(new_sets(out, "each arm to 1", NEW))
    rows = []
    for setting in SETTINGS:
        about = {"setting": setting, "sets": "new", "drawn": str(NEW)}
        rows.append({**about, **judged(new_sets(out, setting, NEW), reference)})
        fast = tried(out, setting, sets)
        for what, one in zip(("chosen", "fitted"), third(out, setting, sets), strict=True):
            found = last(out, setting, one)
            afresh = {name: found[name] for name in fast}
            told = {"by one trial": f"{distances(fast)[one]:.4f}", "by 20 new ones": f"{distance(afresh):.4f}"}
            rows.append({"setting": setting, "sets": what, "set": str(one), "drawn": str(sets), **told,
                         **judged(found, reference)})  # fmt: skip
    return rows


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, default=Path("results/arm_sets"))
    words.add_argument("--sets", type=int, default=12000, help="sets that are drawn for each setting")
    words.add_argument("--write", action="store_true", help="write the table into the package")
    asked = words.parse_args()
    for setting in SETTINGS:
        second(asked.out, setting, asked.sets)
    for setting in SETTINGS:
        for one in third(asked.out, setting, asked.sets):
            last(asked.out, setting, one)
    for setting in SETTINGS:
        new_sets(asked.out, setting, NEW)
    rows = table(asked.out, asked.sets)
    target = Path(paper.__file__).with_name("arm_sets.csv") if asked.write else asked.out / "arm_sets.csv"
    with target.open("w", encoding="utf-8", newline="") as file:
        names = list(dict.fromkeys(name for row in (rows[1], *rows) for name in row))
        lines = csv.DictWriter(file, names, lineterminator="\n")
        lines.writeheader()
        lines.writerows(rows)
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
