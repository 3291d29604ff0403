"""What the paper's text says, each statement against what was measured here, with a verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from driftwise.experiments.paper import ALL, built_in
from driftwise.experiments.published import Curve
from driftwise.experiments.results import Figure, Line, Outcome, interval
from driftwise.experiments.spec import Spec
from driftwise.experiments.theorems import THEOREMS, Problem, Theorem
from driftwise.kernels.point import Floats
from driftwise.worlds import World

YES, NO, OPEN = "reproduced", "not reproduced", "cannot be told"
# "As good as": the regret may be this much larger.
MARGIN = 1.10
# A measured slope may exceed the exponent by so little that it is the logarithms'.
SLACK = 0.02


class Claim(NamedTuple):
    """A statement of the paper, the verdict, the numbers it rests on, and what made them."""

    text: str
    verdict: str
    numbers: str
    command: str


class _BuiltIn(NamedTuple):
    stem: str
    spec: Spec


class Measured:
    """Outcomes by the key of their spec, and the commands that make them."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._by_key = {outcome.spec.key: outcome for outcome in outcomes}
        self._files = {spec.key: _BuiltIn(name, spec) for name in ALL for spec in [built_in(name)]}

    def figure(self, key: str) -> Figure:
        return self._by_key[key].figures[0]

    def outcome(self, key: str) -> Outcome:
        return self._by_key[key]

    def line(self, key: str, label: str) -> Line:
        return self.figure(key).line(label)

    def command(self, *keys: str) -> str:
        """What makes these outcomes; trials and seed are said where they are not the spec's own."""
        return ", ".join(f"`driftwise run {self._files[key].stem}{self._options(key)}`" for key in keys)

    def _options(self, key: str) -> str:
        spec, plain = self._by_key[key].spec, self._files[key].spec
        options = [f" --{name} {getattr(spec, name)}" for name in ("trials", "seed")
                   if getattr(spec, name) != getattr(plain, name)]  # fmt: skip
        return "".join(options)


def decide(values: Floats, limit: float = 0.0) -> str:
    """Whether a mean is below a limit: its whole 95% interval is, none of it is, or neither."""
    mean, width = interval(values)
    return YES if mean + width < limit else NO if mean - width > limit else OPEN


def below(found: Measured, text: str, low: tuple[str, str], high: tuple[str, str]) -> Claim:
    """A claim that one policy loses less than another, by the paired differences of their trials."""
    one, other = found.line(*low), found.line(*high)
    trials = min(len(one.final), len(other.final))
    # Two panels share their trials when their worlds are the same but for who plays.
    difference = one.final[:trials] - other.final[:trials]
    mean, width = interval(difference)
    shown = f" ± {width:.0f}" if math.isfinite(width) else ""
    numbers = f"{one.mean:.0f} against {other.mean:.0f}; difference {mean:+.0f}{shown}"
    keys = dict.fromkeys((low[0], high[0]))
    return Claim(text, decide(difference), _sign(numbers + _published(one, other)), found.command(*keys))


def _published(one: Line, other: Line) -> str:
    if one.curve is None or other.curve is None:
        return ""
    return f" (published {one.curve.final:.0f} against {other.curve.final:.0f})"


def _sign(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def text_claims(found: Measured) -> list[Claim]:
    """Section 6 of the paper, sentence by sentence."""
    return [*_linear(found), *_clicks(found)]


def _linear(found: Measured) -> Iterator[Claim]:
    ours = found.line("LB", "LB-WeightUCB")
    for label, about in (("D-LinUCB", "D-LinUCB"), ("D-LinUCB as published", "D-LinUCB with the slip of its code")):
        other = found.line("LB", label)
        ratio = ours.final / other.final
        mean, width = interval(ratio)
        numbers = f"{ours.mean:.0f} against {other.mean:.0f}; ratio {mean:.3f}"
        numbers += f" ± {width:.3f}" if math.isfinite(width) else ""
        text = f"LB-WeightUCB performs as well as {about} (regret at most {MARGIN - 1:.0%} larger)"
        yield Claim(text, decide(ratio, MARGIN), numbers + _published(ours, other), found.command("LB"))
    slow, fast = found.line("LB", "D-LinUCB").time, ours.time
    numbers = f"{slow * 1e3:.2f} ms against {fast * 1e3:.2f} ms a run, {slow / fast:.2f} times (published 1.52 times)"
    verdict = YES if slow / fast > 1.5 else NO
    yield Claim("LB-WeightUCB is over 1.5 times faster than D-LinUCB", verdict, numbers, found.command("LB"))
    text = "MASTER with a fine-tuned n = 13 performs better than RestartUCB"
    yield below(found, text, ("LB", "MASTER+OFUL n=13"), ("LB", "RestartUCB"))
    text = "MASTER with n = 0 performs worse than RestartUCB"
    yield below(found, text, ("LB", "RestartUCB"), ("LB", "MASTER+OFUL n=0"))
    few, many = (found.line("LB", f"MASTER+OFUL n={n}").time for n in (0, 13))
    numbers = f"{many * 1e3:.2f} ms with n = 13 against {few * 1e3:.2f} ms with n = 0 (published 4.87 s against 2.77 s)"
    verdict = YES if many > 1.1 * few else NO if few > 1.1 * many else OPEN
    yield Claim("A larger initial n of MASTER takes more time", verdict, numbers, found.command("LB"))
    for rival in ("RestartUCB", "MASTER+OFUL n=0", "MASTER+OFUL n=13"):
        text = f"Under slow drift {rival} does not outperform LB-WeightUCB"
        yield below(found, text, ("LB", "LB-WeightUCB"), ("LB", rival))


def _clicks(found: Measured) -> Iterator[Claim]:
    ours = {"GLB": "GLB-WeightUCB", "SCB": "SCB-WeightUCB"}
    static = {"GLB": "GLM-UCB", "SCB": "LogUCB1"}
    for family, weighted in ours.items():
        text = f"S = 1: the weighted {weighted} outperforms the static {static[family]}"
        yield below(found, text, (f"{family}_S1", weighted), (f"{family}_S1", static[family]))
    for label, tie in (("BVD-GLM-UCB", "nearest point"), ("BVD-GLM-UCB origin", "origin")):
        text = f"S = 1: the weighted BVD-GLM-UCB ({tie}) outperforms the static GLM-UCB"
        yield below(found, text, ("GLB_S1", label), ("GLB_S1", "GLM-UCB"))
        for family, weighted in ours.items():
            text = f"S = 1: {weighted} is better than BVD-GLM-UCB ({tie})"
            yield below(found, text, (f"{family}_S1", weighted), ("GLB_S1", label))
    text = "S = 5: SCB-WeightUCB significantly outperforms GLB-WeightUCB"
    yield below(found, text, ("SCB_S5", "SCB-WeightUCB"), ("GLB_S5", "GLB-WeightUCB"))
    for label, tie in (("BVD-GLM-UCB", "nearest point"), ("BVD-GLM-UCB origin", "origin")):
        text = f"S = 5: BVD-GLM-UCB ({tie}) drops behind GLB-WeightUCB"
        yield below(found, text, ("GLB_S5", "GLB-WeightUCB"), ("GLB_S5", label))
    for S in (1, 5):
        for family, weighted in ours.items():
            key = f"{family}_S{S}"
            for rival in (f"MASTER+{static[family]}", f"{family}-RestartUCB"):
                yield below(found, f"S = {S}: {weighted} outperforms {rival}", (key, weighted), (key, rival))


def guided(found: Measured, key: str) -> tuple[Figure, ...]:
    """Figures of growth with the exponent of Table 1 as a dashed line through the last point of each curve."""

    def line(one: Line, at: Floats, quantity: str) -> Line:
        theorem = next(theorem for theorem in THEOREMS.values() if theorem.policy == one.label)
        guide = one.mean * (at / at[-1]) ** theorem.exponents[quantity]
        return dataclasses.replace(one, curve=Curve(at, guide, guide, guide))

    def figure(one: Figure) -> Figure:
        assert one.sweep is not None
        at, quantity = np.array(one.at, dtype=np.float64), _QUANTITIES[one.sweep.over.split(".")[1]]
        lines = tuple(line(each, at, quantity) for each in one.lines)
        return dataclasses.replace(one, lines=lines, dashed="the slope of Table 1")

    return tuple(map(figure, found.outcome(key).figures))


class Slope(NamedTuple):
    """How regret grows with one quantity, beside the exponent of Table 1."""

    family: str
    quantity: str
    theory: float
    measured: tuple[float, float]
    overall: tuple[float, float]
    bound: float
    verdict: str
    command: str


_QUANTITIES = {"horizon": "T", "dim": "d", "turns": "drift", "jumps": "drift"}
_GROWTH = {"LB": "growth_LB", "GLB": "growth_clicks", "SCB": "growth_clicks", "PW": "growth_PW"}
# An exponent is a statement about large values: the slope that counts is that of the last points.
_LAST = 3


def slopes(found: Measured) -> list[Slope]:
    """Table 1 as measured."""
    return [
        _slope(found, family, theorem, number)
        for family, theorem in THEOREMS.items()
        for number in range(len(found.outcome(_GROWTH[family]).figures))
    ]


def _slope(found: Measured, family: str, theorem: Theorem, number: int) -> Slope:
    outcome = found.outcome(_GROWTH[family])
    figure, points = outcome.figures[number], outcome.spec.points[number]
    assert figure.sweep is not None
    quantity = _QUANTITIES[figure.sweep.over.split(".")[1]]
    problems = [_problem(family, point.world) for point in points]
    at = np.log([{"T": p.horizon, "d": p.dim, "drift": p.drift}[quantity] for p in problems])
    regret = np.log(np.maximum(figure.line(theorem.policy).regret, 1e-9))
    bound = np.array([theorem.at(p) for p in problems])
    measured = interval(_fit(at[-_LAST:], regret[:, -_LAST:]))
    theory = theorem.exponents[quantity]
    if float(measured[0] + measured[1]) <= theory + SLACK:
        verdict = YES
    else:
        verdict = NO if (np.exp(regret) > bound).any() else OPEN
    return Slope(
        family, {"drift": "Γ_T" if family == "PW" else "P_T"}.get(quantity, quantity), theory, measured,
        interval(_fit(at, regret)), float(_fit(at[-_LAST:], np.log(bound[None, -_LAST:]))[0]), verdict,
        found.command(_GROWTH[family]),
    )  # fmt: skip


def _fit(at: Floats, rows: Floats) -> Floats:
    """Least-squares slope of every row."""
    centred = at - at.mean()
    return np.asarray(rows @ centred / (centred @ centred))


def _problem(family: str, world: World) -> Problem:
    drift = float(world.changes) if family == "PW" else world.path_length
    return Problem(world.dim, float(world.horizon), drift, world.S, world.L)


class Bound(NamedTuple):
    """A theorem's bound beside the largest regret of any trial."""

    theorem: str
    world: str
    largest: float
    bound: float
    trivial: float
    informative: float
    verdict: str
    command: str


def bounds(found: Measured) -> list[Bound]:
    """Every theorem in every panel it speaks of, and Theorem 1 at a T where it says something."""
    panels = {"LB": ("LB",), "GLB": ("GLB_S1", "GLB_S5"), "SCB": ("SCB_S1", "SCB_S5"), "PW": ("PW_S1", "PW_S5")}
    rows = [_bound(found, family, key) for family, keys in panels.items() for key in keys]
    return [rows[0], _bound(found, "LB", "growth_LB", last=True), *rows[1:]]


def _bound(found: Measured, family: str, key: str, last: bool = False) -> Bound:
    theorem, figure = THEOREMS[family], found.figure(key)
    world = found.outcome(key).spec.points[0][-1 if last else 0].world
    problem = _problem(family, world)
    largest, bound = figure.line(theorem.policy).high, theorem.at(problem)
    trivial = theorem.gap(problem) * problem.horizon
    # A bound above what the worst player loses holds whatever is played.
    verdict = NO if largest > bound else YES if bound < trivial else OPEN
    return Bound(
        f"{theorem.name}, {theorem.policy}", f"{world.reward} rewards, S = {world.S:g}, T = {world.horizon:,}", largest,
        bound, trivial, theorem.informative(problem), verdict, found.command(key),
    )  # fmt: skip


def verdicts(rows: Sequence[str]) -> Mapping[str, int]:
    """How many of each."""
    return {word: sum(row == word for row in rows) for word in (YES, NO, OPEN)}
