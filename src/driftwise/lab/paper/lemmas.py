"""Lemmas 1-3 in the paper's own runs: the error of an estimate beside the bound, and how often radii are crossed."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from driftwise import theory as th
from driftwise._internal.validate import Floats
from driftwise.draw.figure import Figure, Line
from driftwise.draw.page import Table
from driftwise.kernels.links import mean as link_mean
from driftwise.lab.paper import slips
from driftwise.lab.paper.claims import NO, OPEN, YES, Claim, Measured
from driftwise.lab.paper.inequalities import HISTORIES, largest_ratios
from driftwise.policies.base import Compiled
from driftwise.worlds import World

# Rounds between two measurements.
EVERY = 50
_PANELS = {1: ("LB", "LB-WeightUCB"), 2: ("GLB_S1", "GLB-WeightUCB"), 3: ("SCB_S1", "SCB-WeightUCB")}
_HELD = {
    4: "what the path of θ adds to the error in V⁻¹, linear", 6: "the same for generalized linear rewards",
    8: "the same in H(θ_t)⁻¹", 11: "the weighted potential lemma", 12: "the determinant inequality",
    13: "mean slopes of a self-concordant link", 14: "G(θ₁, θ₂) is at least H(θ₁)/(1+2SL)",
}  # fmt: skip
_RADII = {  # rows of the table of crossings: family, norm, and what it is called
    ("LB", "V"): "Lemma 1, β in V⁻¹",
    ("LB", "two matrices"): "D-LinUCB, β in Ṽ⁻¹",
    ("GLB", "V"): "Lemma 2, β̄ in V⁻¹",
    ("BVD", "two matrices"): "BVD-GLM-UCB, β̄ in Ṽ⁻¹",
    ("SCB", "H"): "Lemma 3, β̃ in H(θ_t)⁻¹",
    ("PW", "H"): "Lemma 10, ρ in H(θ_t)⁻¹",
}


class Errors(NamedTuple):
    """Measured rounds; means over arms of the error, the bias term, the noise term and the two-norm bound; and the
    largest ratio of error to bound of any arm."""

    rounds: Floats
    error: Floats
    bias: Floats
    noise: Floats
    two_norms: Floats
    worst: float


def errors(number: int, world: World, policy: Any, twin: Compiled | None = None, seed: int = 0) -> Errors:
    """The errors of one trial beside a lemma. `twin`, if given, learns the same rewards with two matrices."""
    bias_factor = _bias_factor(number, policy)
    code, theta, t, found, worst = world.link_code, world.theta(), 0, [], 0.0
    mean = np.vectorize(lambda z: link_mean(code, z)) if world.link_name != "identity" else np.asarray
    state, beside = policy.start(), twin.start() if twin else None
    for tape in world.tapes(seed):
        arms = np.ascontiguousarray(tape.arms[0].T)
        for draw in tape.draws:
            values = arms @ theta[t]
            if t % EVERY == EVERY - 1:
                truth = np.asarray(mean(values), dtype=np.float64)
                scores = policy.scores(state, arms)
                error = np.abs(scores.mean - truth)
                bias = bias_factor * th.bias_bound(theta[: t + 1], policy.memory.forget, policy.lam, policy.L)
                worst = max(worst, float((error / (bias + scores.bonus)).max()))
                two = 0.0
                if twin is not None and beside is not None:
                    two = _window_bias(theta[: t + 1], policy) + float(twin.scores(beside, arms).bonus.mean())
                found.append((t + 1.0, error.mean(), bias, scores.bonus.mean(), two))
            arm = policy.choose(state, arms).arm
            played = float(mean(values[arm]))
            noisy = played + world.noise * draw if world.reward == "gaussian" else float(draw < played)
            policy.learn(state, arms, arm, float(noisy))
            if twin is not None and beside is not None:
                twin.learn(beside, arms, arm, float(noisy))
            t += 1
    columns = np.array(found, dtype=np.float64).reshape(-1, 5).T
    return Errors(columns[0], columns[1], columns[2], columns[3], columns[4], worst)


def _bias_factor(number: int, policy: Any) -> float:
    """The factor of the bias term in Lemmas 2 and 3."""
    if number == 1:
        return 1.0
    return float(2.0 * policy.k**2 / policy.c * (math.sqrt(1.0 + 2.0 * policy.S * policy.L) if number == 3 else 1.0))


def _window_bias(theta: Floats, policy: Any) -> float:
    """The bias term of the earlier analysis at its best virtual window."""
    delays = np.unique(np.geomspace(1, max(2.0, 20.0 / policy.memory.forget), 60).astype(int))
    return min(
        th.virtual_window_bias(theta, policy.memory.forget, policy.lam, int(delay), S=policy.S, L=policy.L)
        for delay in delays
    )


@cache
def crossings() -> tuple[Mapping[str, str], ...]:
    """The table that bench/crossings.py printed."""
    with (files("driftwise.lab.paper") / "crossings.csv").open(encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


def crossed(family: str, norm: str, part: str, radius: str = "printed") -> tuple[int, int] | None:
    """The smallest and the largest number of crossing runs in 1,000, over the settings of the table; None without
    any."""
    wanted = {"family": family, "norm": norm, "part": part, "radius": radius}
    counts = [int(row["crossed"]) for row in crossings() if wanted.items() <= row.items()]
    return (min(counts), max(counts)) if counts else None


def crossing_table() -> Table:
    """A row per radius and part."""
    def cell(found: tuple[int, int] | None) -> str:
        return "–" if found is None else f"{found[0]}–{found[1]}"

    rows = [
        [text, part, *(cell(crossed(family, norm, part, radius)) for radius in ("printed", "horizon", "anytime"))]
        for (family, norm), text in _RADII.items()
        for part in ("noise", "whole")
    ]
    return Table(("radius", "part", "printed", "δ/T a round", "δ/(2t(1+log t)²)"), rows, range(2, 5))


def _panel(found: Measured, number: int) -> tuple[World, Any, str]:
    key, name = _PANELS[number]
    contest = found.outcome(key).spec.contests[0][0]
    return contest.world, contest.policies[name], key


def heart(found: Measured) -> tuple[Figure, Errors]:
    """The paper's linear run: the error, Lemma 1's bound and its parts in one norm, and the earlier two-norm bound."""
    world, policy, key = _panel(found, 1)
    twin = found.outcome(key).spec.contests[0][0].policies["D-LinUCB"]
    seen = errors(1, world, policy, twin)
    lines = {"LB-WeightUCB bound": seen.bias + seen.noise, "LB-WeightUCB bias term": seen.bias,
             "LB-WeightUCB noise term": seen.noise, "LB-WeightUCB error": seen.error,
             "D-LinUCB two-norm bound": seen.two_norms}  # fmt: skip
    figure = Figure(
        "lemma_1", "Lemma 1 in the paper's linear world", tuple(int(one) for one in seen.rounds),
        tuple(Line(name, values[None], np.array([math.nan])) for name, values in lines.items()),
        what="|x'(θ̂-θ)| and its bounds, mean of all arms",
    )  # fmt: skip
    return figure, seen


def lemma_claims(found: Measured, first: Errors) -> list[Claim]:
    """A row for each lemma.

    A lemma that failed more often than δ allows is "not reproduced". A lemma that held, but whose printed proof fails,
    is "cannot be told". The lemmas without chance are tried on random histories.
    """
    program, table = "`python -m driftwise.lab.paper.slips`", "`python bench/crossings.py`"
    small = slips.share_crossed("V")
    one_arm = f"crossed in {small.printed:.0%} of runs with one arm, γ = 0.9 and a small S, where δ allows 5%"
    jumped = f"exceeded in {slips.lemma_9().printed:.0%} of runs one round after a jump of θ (d = 1, S = 10)"
    rows = [_estimation(found, number, first if number == 1 else None) for number in _PANELS]
    rows[0] = rows[0]._replace(verdict=NO, numbers=f"{one_arm}; {rows[0].numbers}")
    noise = (
        ("Lemma 5: β covers noise and ridge at all rounds", NO, f"{one_arm}; noise {_counted('LB', 'V')}", program),
        ("Lemma 7: β̄ covers noise and ridge at all rounds", NO,
         f"the same program with the identity as link; noise of clicks {_counted('GLB', 'V')}", program),
        ("Lemma 9: β̃ covers noise and ridge where θ drifts", NO, jumped, program),
        ("Lemma 10: ρ covers θ_t at all rounds far from a change", OPEN, _counted("PW", "H", "whole"), table),
    )  # fmt: skip
    return [*rows, *(Claim(*row) for row in noise), *map(_inequality, _HELD)]


def _inequality(number: int) -> Claim:
    ratio = largest_ratios()[number]
    numbers = f"largest ratio of left to right side {ratio:.3f} over {HISTORIES:,} random histories"
    text, program = f"Lemma {number}: {_HELD[number]}", "`python -m driftwise.lab.paper.inequalities`"
    return Claim(text, YES if ratio <= 1.0 + 1e-9 else NO, numbers, program)  # equality up to rounding


def _counted(family: str, norm: str, part: str = "noise") -> str:
    least, most = crossed(family, norm, part) or (0, 0)
    return f"crossed in {least}–{most} of 1,000 runs, where δ allows {1000 * slips.DELTA:.0f}"


def _estimation(found: Measured, number: int, seen: Errors | None) -> Claim:
    world, policy, key = _panel(found, number)
    seen = seen or errors(number, world, policy)
    family, norm = list(_RADII)[{1: 0, 2: 2, 3: 4}[number]]
    counts = crossed(family, norm, "whole") or (0, 0)
    failed = seen.worst > 1.0 or counts[1] > 1000 * slips.DELTA
    numbers = f"largest error in the panel's run {seen.worst:.2f} of the bound; elsewhere "
    numbers += _counted(family, norm, "whole")
    text = f"Lemma {number}: the estimation error of {_PANELS[number][1]} is below its bound at all rounds"
    return Claim(text, NO if failed else OPEN, numbers, found.command(key))
