"""Regret when nobody says how fast the world drifts: against the drift rate, and for a rival told the wrong rate."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.experiments import plots, results
from driftwise.kernels.point import Floats
from driftwise.policies.base import Policy
from driftwise.policies.names import make
from driftwise.simulation import simulate
from driftwise.worlds import Turn, World

TURNS = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)
FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Sweep:
    """Final regret (points, trials) of each policy at each point."""

    at: tuple[float, ...]
    regret: dict[str, Floats]


@dataclass(frozen=True)
class Found:
    """The two halves of the experiment."""

    rates: Sweep
    misspecified: Sweep
    seed: int
    trials: int


def contenders(world: World) -> dict[str, Policy]:
    """Who is told nothing, and the one who is told P_T."""
    names: dict[str, dict[str, Any]] = {
        "BOB+LB-WeightUCB": {},
        "MASTER+OFUL n=13": {"n0": 13, "test_scale": math.inf},
        "Bank+LB-WeightUCB": {},
    }
    policies: dict[str, Policy] = {"LB-WeightUCB told P_T": make("LB-WeightUCB", **world.facts)}
    policies["Bank+LB-WeightUCB e=1"] = make("Bank+LB-WeightUCB", exploration=1.0, **world.facts)
    for name, fields in names.items():
        policies[name] = make(name.split(" ")[0], **fields, **world.facts)
    return policies


def run(*, trials: int, seed: int, jobs: int | None = None) -> Found:
    """Both sweeps, every trial paired."""

    def final(world: World, policies: dict[str, Policy]) -> dict[str, Floats]:
        result = simulate(policies, world, trials=trials, seed=seed, jobs=jobs, record="last")
        return {name: result.final(name) for name in policies}

    rows = [final(world, contenders(world)) for world in (Turn(turns=turns) for turns in TURNS)]
    rates = Sweep(TURNS, {name: np.array([row[name] for row in rows]) for name in rows[0]})
    world = Turn()
    told = {
        f"{factor:g}": make("LB-WeightUCB", **{**world.facts, "path_length": factor * world.path_length})
        for factor in FACTORS
    }
    rivals = contenders(world)
    found = final(world, {**told, **rivals})
    curves = {"LB-WeightUCB": np.array([found[f"{factor:g}"] for factor in FACTORS])}
    for name in rivals:
        if not name.startswith("LB"):
            curves[name] = np.array([found[name]] * len(FACTORS))
    return Found(rates, Sweep(FACTORS, curves), seed, trials)


def write(found: Found, folder: Path, command: str) -> None:
    """curves.npz and summary.json."""
    arrays: dict[str, Any] = {}
    data: dict[str, Any] = {"command": command, "versions": results.versions(), "seed": found.seed}
    data["trials"] = found.trials
    for key, sweep in (("rates", found.rates), ("misspecified", found.misspecified)):
        arrays[f"{key}/at"] = np.array(sweep.at)
        for name, values in sweep.regret.items():
            arrays[f"{key}/{name}"] = values
        means = {name: values.mean(axis=1).tolist() for name, values in sweep.regret.items()}
        data[key] = {"at": list(sweep.at), "mean": means}
    np.savez_compressed(folder / "curves.npz", **arrays)
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def draw(found: Found, target: Path) -> None:
    """Left: regret against turns of θ over the horizon. Right: the price of telling LB-WeightUCB a wrong P_T."""
    plt = plots.pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(15, 5))
    places = np.arange(len(found.rates.at), dtype=np.float64)
    _lines(left, places, found.rates)
    left.set_xticks(places, [f"{turns:g}" for turns in found.rates.at])
    left.set_xlabel("turns of θ in 6,000 rounds")
    left.set_title("Regret against the drift rate")
    _lines(right, np.array(found.misspecified.at), found.misspecified)
    right.set_xscale("log")
    right.set_xlabel("path length told / true path length")
    right.set_title("LB-WeightUCB told a wrong P_T, one turn")
    figure.tight_layout()
    figure.savefig(target, dpi=150)
    plt.close(figure)


def _lines(axes: Any, places: Floats, sweep: Sweep) -> None:
    for name, values in sweep.regret.items():
        hue = plots.colour(name)
        mean = values.mean(axis=1)
        axes.fill_between(places, values.min(axis=1), values.max(axis=1), color=hue, alpha=0.13, lw=0)
        axes.plot(places, mean, color=hue, lw=1.8, marker="o", ms=3)
        axes.annotate(
            name, (places[-1], mean[-1]), xytext=(6, 0), textcoords="offset points", color=hue, fontsize=8,
            va="center", annotation_clip=False,
        )  # fmt: skip
    axes.set_ylabel("regret after 6,000 rounds (mean, min–max)", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
