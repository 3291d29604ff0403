"""Measured slopes beside Table 1 and beside the text, and the theorems' bounds beside the measured regret."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.validate import Floats
from driftwise.draw.figure import Figure, Guide, Line, Reference
from driftwise.kernels.links import LINKS
from driftwise.kernels.links import mean as link_mean
from driftwise.lab.paper.claims import NO, OPEN, YES, Measured
from driftwise.lab.paper.inequalities import logistic
from driftwise.lab.paper.theorems import THEOREMS, Setting, Theorem
from driftwise.simulation import half_width
from driftwise.theory.orders import LOWER, ORDERS, PREVIOUS, Order
from driftwise.worlds import World

# The largest excess of a measured slope over the exponent.
SLACK = 0.02
_QUANTITIES = {"horizon": "T", "dim": "d", "turns": "drift", "jumps": "drift", "radius": "1/c"}
# Orders by policy: those of Table 1, of its rivals, and of the adaptive algorithms as the text states them.
_ORDERS = {theorem.policy: ORDERS[family] for family, theorem in THEOREMS.items()} | {
    "BVD-GLM-UCB": PREVIOUS["GLB"], "SC-D-GLUCB": PREVIOUS["PW"], "BOB+LB-WeightUCB": ORDERS["LB"],
    "MASTER+OFUL": Order(0.0, 0.0, 1.0, 1 / 3, 2 / 3),
}  # fmt: skip
_GROWTH = {"LB": "growth_LB", "GLB": "growth_clicks", "SCB": "growth_clicks", "PW": "growth_PW"}
# An exponent is a statement about large values, so the verdict uses the slope of the last points.
_LAST = 3
# Regret above this share of random play's can hardly grow further.
SATURATED = 1 / 3
# Enough rounds to estimate the regret of random play per round.
_SAMPLE = 3000


class Slope(NamedTuple):
    """How regret grows with one quantity, beside the exponent of Table 1; `bound` is the bound's own slope, or NaN."""

    family: str
    quantity: str
    theory: float
    measured: tuple[float, float]
    overall: tuple[float, float]
    bound: float
    verdict: str
    command: str


def slopes(found: Measured) -> list[Slope]:
    """Table 1 as measured."""
    return [
        _slope(found, family, theorem, number)
        for family, theorem in THEOREMS.items()
        for number in range(len(found.outcome(_GROWTH[family]).figures))
    ]


def _slope(found: Measured, family: str, theorem: Theorem, number: int) -> Slope:
    outcome = found.outcome(_GROWTH[family])
    figure, contests = outcome.figures[number], outcome.spec.contests[number]
    quantity = _quantity(figure)
    settings = [_setting(family, contest.world) for contest in contests]
    at = np.log([{"T": s.horizon, "d": s.dim, "drift": s.drift}[quantity] for s in settings])
    regret = np.maximum(figure.line(theorem.policy).regret, 1e-9)
    bound = np.array([theorem.at(s) for s in settings])
    broken, saturated = bool((regret > bound).any()), _saturated(found, _GROWTH[family], number, theorem.policy)
    if quantity == "d":  # in more dimensions arms differ less along θ, and every policy has less regret
        regret = regret / [random_loss(contest.world, outcome.spec.seed) for contest in contests]
    measured = fitted_slope(at[-_LAST:], regret[:, -_LAST:])
    theory = theorem.exponents[quantity]
    verdict = YES if sum(measured) <= theory + SLACK and not saturated else NO if broken else OPEN
    return Slope(
        family, {"drift": "Γ_T" if family == "PW" else "P_T"}.get(quantity, quantity), theory, measured,
        fitted_slope(at, regret), fitted_slope(at[-_LAST:], bound[None, -_LAST:])[0], verdict,
        found.command(_GROWTH[family]),
    )  # fmt: skip


def _saturated(found: Measured, key: str, number: int, label: str) -> bool:
    """Whether the regret at one of the last values is so near random play's that a small slope says nothing."""
    spec, lost = found.outcome(key).spec, found.outcome(key).figures[number].line(label).regret.mean(axis=0)
    last = zip(lost[-_LAST:], spec.contests[number][-_LAST:], strict=True)
    return any(mean > SATURATED * random_loss(contest.world, spec.seed) for mean, contest in last)


def further(found: Measured) -> list[Slope]:
    """The exponent of c in Table 1, in worlds that grow with S, and the text's exponents of BOB and MASTER."""
    return [
        _further(found, key, number, label)
        for key in ("growth_c", "growth_c_PW", "growth_adaptive")
        for number, figure in enumerate(found.outcome(key).figures)
        for label in [line.label for line in figure.lines]
    ]


def _further(found: Measured, key: str, number: int, label: str) -> Slope:
    outcome = found.outcome(key)
    worlds, line = [contest.world for contest in outcome.spec.contests[number]], outcome.figures[number].line(label)
    order, quantity = _ORDERS[label], _quantity(outcome.figures[number])
    regret = np.maximum(line.regret, 1e-9)
    theory = {"T": order.T, "drift": order.drift, "1/c": abs(order.c)}[quantity]
    if quantity == "1/c":  # P_T grows with S, so its contribution is divided out
        at = np.log([1.0 / LINKS["logistic"].slopes(world.S * world.L)[1] for world in worlds])
        if key == "growth_c":
            regret = regret / np.array([world.path_length for world in worlds]) ** order.drift
    else:
        at = np.log([float(world.horizon) if quantity == "T" else world.path_length for world in worlds])
    measured = fitted_slope(at[-_LAST:], regret[:, -_LAST:])
    verdict = YES if sum(measured) <= theory + SLACK and not _saturated(found, key, number, label) else OPEN
    named = {"drift": "P_T"}.get(quantity, quantity)
    return Slope(label, named, theory, measured, fitted_slope(at, regret), math.nan, verdict, found.command(key))


def _quantity(figure: Figure) -> str:
    assert figure.axis is not None
    return _QUANTITIES[figure.axis.field]


def fitted_slope(at: Floats, rows: Floats) -> tuple[float, float]:
    """Slope of the logarithm of the mean over trials, and the half-width of its 95% interval by the jackknife.

    The slope of a single trial means little: its regret can be near 0 at one value by chance of its arms.
    """
    centred = at - at.mean()

    def fitted(some: Floats) -> float:
        return float(np.log(some.mean(axis=0)) @ centred / (centred @ centred))

    n = len(rows)
    if n < 2:
        return fitted(rows), math.inf
    without = np.array([fitted(np.delete(rows, trial, axis=0)) for trial in range(n)])
    return fitted(rows), half_width(math.sqrt((n - 1) * float(without.var())), n)


def _setting(family: str, world: World) -> Setting:
    drift = float(world.changes) if family == "PW" else world.path_length
    return Setting(world.dim, float(world.horizon), drift, world.S, world.L)


@cache
def random_loss(world: World, seed: int, trials: int = 5) -> float:
    """The approximate regret of uniformly random play in a world, from a shorter world of the same kind."""
    shorter = dataclasses.replace(world, horizon=min(world.horizon, _SAMPLE))
    code = world.link_code
    mean: Any = logistic if world.link_name == "logistic" else np.vectorize(lambda z: link_mean(code, z))
    mean = np.asarray if world.link_name == "identity" else mean
    lost = 0.0
    for trial in range(trials):
        for tape in shorter.tapes(seed, trial):  # θ moves little from round to round, so every tenth round is enough
            means = mean(tape.theta[::10] @ tape.arms[0])
            lost += float((tape.best[::10, None] - means).mean()) * len(tape.theta)
    return lost / trials * world.horizon / shorter.horizon


def guided(found: Measured, key: str) -> tuple[Figure, ...]:
    """Figures of growth with the exponent of Table 1 as a dashed line through the last point of each curve.

    Guides are the bound before it, through the last point of the first curve where its slope is another, and the lower
    bound for linear bandits, through its first point: regret may not fall below it.
    """
    families = [family for family in _GROWTH if _GROWTH[family] == key]

    def figure(one: Figure) -> Figure:
        quantity = _quantity(one)
        if quantity == "1/c":
            return one
        at = np.array(one.at, dtype=np.float64)

        def power(line: Line, order: Order, place: int = -1) -> Floats:
            return np.asarray(line.regret[:, place].mean() * (at / at[place]) ** getattr(order, quantity))

        lines = []
        for each in one.lines:
            guide = power(each, _ORDERS[each.label])
            lines.append(dataclasses.replace(each, curve=Reference(at, guide, guide, guide)))
        guides, dashed = [], "the slope of Table 1"
        for family in families[:1]:
            if getattr(PREVIOUS[family], quantity) == getattr(_ORDERS[one.lines[0].label], quantity):
                dashed += " and of the bound before"
            else:
                guides.append(Guide("the bound before", at, power(one.lines[0], PREVIOUS[family])))
        if families == ["LB"]:
            guides.append(Guide("the lower bound", at, power(one.lines[0], LOWER, 0)))
        return dataclasses.replace(one, lines=tuple(lines), dashed=dashed, guides=tuple(guides))

    return tuple(map(figure, found.outcome(key).figures))


class Bound(NamedTuple):
    """A theorem's bound, the largest regret of any trial, the regret of random play, and the largest possible
    regret."""

    theorem: str
    world: str
    largest: float
    bound: float
    printed: float
    random: float
    most: float
    informative: float
    verdict: str
    command: str


def bounds(found: Measured) -> list[Bound]:
    """Every theorem in every panel that it covers, and Theorem 1 at a T at which it is informative."""
    panels = {"LB": ("LB",), "GLB": ("GLB_S1", "GLB_S5"), "SCB": ("SCB_S1", "SCB_S5"), "PW": ("PW_S1", "PW_S5")}
    rows = [_bound(found, family, key) for family, keys in panels.items() for key in keys]
    return [rows[0], _bound(found, "LB", "growth_LB", last=True), *rows[1:]]


def _bound(found: Measured, family: str, key: str, last: bool = False) -> Bound:
    theorem, outcome = THEOREMS[family], found.outcome(key)
    world = outcome.spec.contests[0][-1 if last else 0].world
    setting = _setting(family, world)
    largest, bound = outcome.figures[0].line(theorem.policy).high, theorem.at(setting)
    random, most = random_loss(world, outcome.spec.seed), theorem.gap(setting) * setting.horizon
    # A bound above the regret of random play holds for every policy.
    verdict = NO if largest > bound else YES if bound < random else OPEN
    return Bound(
        f"{theorem.name}, {theorem.policy}", f"{world.reward} rewards, S = {world.S:g}, T = {world.horizon:,}", largest,
        bound, theorem.at(setting, uniform=False), random, most, theorem.informative(setting), verdict,
        found.command(key),
    )  # fmt: skip
