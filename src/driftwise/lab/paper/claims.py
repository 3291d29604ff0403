"""The statements of the paper's text about its experiments, each with a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from driftwise._internal.validate import Floats
from driftwise.draw.figure import Figure, Line
from driftwise.draw.page import VERDICTS
from driftwise.draw.tables import plus_minus
from driftwise.lab.paper.panels import ALL, built_in
from driftwise.lab.paper.published import SECONDS
from driftwise.lab.run.results import Outcome
from driftwise.lab.run.spec import Spec
from driftwise.simulation import t_interval

YES, NO, OPEN = list(VERDICTS)[:3]
# "As good as" and "as fast as" allow this factor. A smaller difference in time does not count.
MARGIN = 1.10
# Times of one machine differ by this factor from run to run.
TIMER = 1.05
# Settings of the arms other than the panels' own, under which every comparison is made again: the place in the sweeps
# of sensitivity, or none for the probe's panels.
OTHERWISE = {"each arm to 1": ("spread", 0), "longer than 1 to 1": ("spread", 1), "one set": ("arms_of", 0),
             "12 unit arms": None}  # fmt: skip


class Claim(NamedTuple):
    """A statement of the paper, the verdict, its numbers, the command that makes them, and where another setting of
    the arms turns the verdict."""

    text: str
    verdict: str
    numbers: str
    command: str
    otherwise: str = "–"


class _BuiltIn(NamedTuple):
    stem: str
    spec: Spec


class Measured:
    """Outcomes by the key of their spec, and the commands that make them."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._by_key = {outcome.spec.key: outcome for outcome in outcomes}
        self._files = {spec.key: _BuiltIn(name, spec) for name in ALL for spec in [built_in(name)]}

    def keys(self, names: Sequence[str]) -> list[str]:
        """The keys of specs that come with the package, by their names."""
        return [next(key for key, file in self._files.items() if file.stem == name) for name in names]

    def outcome(self, key: str) -> Outcome:
        return self._by_key[key]

    def figure(self, key: str) -> Figure:
        return self._by_key[key].figures[0]

    def line(self, key: str, label: str) -> Line:
        return self.figure(key).line(label)

    def final(self, key: str, label: str, setting: str = "") -> Floats:
        """Final regret of a panel's policy, with arms as in the panel or with another setting of `OTHERWISE`."""
        if not setting:
            return self.line(key, label).final
        if (place := OTHERWISE[setting]) is None:
            return self.line(f"{key}_probe", label).final
        figures = self.outcome(f"sensitivity_{key}").figures
        swept = next(one for one in figures if one.axis and one.axis.field == place[0])
        return swept.line(label).regret[:, place[1]]

    def command(self, *keys: str) -> str:
        """The commands that make these outcomes, with trials and seed if they differ from the spec's."""
        return ", ".join(f"`driftwise run {self._files[key].stem}{self._options(key)}`" for key in dict.fromkeys(keys))

    def _options(self, key: str) -> str:
        spec, plain = self._by_key[key].spec, self._files[key].spec
        options = [f" --{name} {getattr(spec, name)}" for name in ("trials", "seed")
                   if getattr(spec, name) != getattr(plain, name)]  # fmt: skip
        return "".join(options)


Who = tuple[str, str]  # a panel and a label


def decide(values: Floats, limit: float = 0.0) -> str:
    """Whether a mean is below a limit: yes if its whole 95% interval is, no if none of it is, and otherwise open."""
    mean, width = t_interval(values)
    return YES if mean + width < limit else NO if mean - width > limit else OPEN


def difference(found: Measured, low: Who, high: Who, setting: str = "") -> Floats:
    """The paired difference over the trials that both have. Panels of one world share arms and random numbers."""
    one, other = found.final(*low, setting), found.final(*high, setting)
    trials = min(len(one), len(other))
    return np.asarray(one[:trials] - other[:trials])


def below(found: Measured, text: str, low: Who, high: Who) -> Claim:
    """A claim that one policy has less regret than another."""
    one, other = found.line(*low), found.line(*high)
    gap = difference(found, low, high)
    numbers = f"{one.mean:.0f} against {other.mean:.0f}; difference {plus_minus(*t_interval(gap), sign='+')}"
    verdict = decide(gap)
    again = _otherwise(verdict, [decide(difference(found, low, high, one)) for one in OTHERWISE])
    return Claim(text, verdict, numbers + _published(one, other), found.command(low[0], high[0]), again)


def _otherwise(verdict: str, others: Sequence[str]) -> str:
    """Where the verdict changes with the setting of the arms."""
    changed = [f"{setting}: {word}" for setting, word in zip(OTHERWISE, others, strict=True) if word != verdict]
    return "; ".join(changed) or "the same"


def _published(one: Line, other: Line) -> str:
    if one.curve is None or other.curve is None:
        return ""
    return f" (published {one.curve.final:.0f} against {other.curve.final:.0f})"


def text_claims(found: Measured) -> list[Claim]:
    """The statements of the section on experiments, and those of abstract and introduction about running time."""
    return [
        *_as_well(found), *_linear(found), *_speed(found), *_static(found), *_clicks(found), *_still(found),
        *_piecewise(found), *_all_three(found), *_own_tuning(found),
    ]  # fmt: skip


def _as_well(found: Measured) -> Iterator[Claim]:
    """LB-WeightUCB against D-LinUCB, correct and as published."""
    ours = found.line("LB", "LB-WeightUCB")
    for label, about in (("D-LinUCB as published", "D-LinUCB with the error of its code"), ("D-LinUCB", "D-LinUCB")):
        other = found.line("LB", label)
        numbers = f"{ours.mean:.0f} against {other.mean:.0f}{_published(ours, other)}"
        worlds = (("LB", "here"), ("russac_slow", "on Russac's slow drift"), ("russac_abrupt", "on its jumps"))
        for key, world in worlds:
            ratio = t_interval(found.final(key, "LB-WeightUCB") / found.final(key, label))
            numbers += f"; {world} {plus_minus(*ratio, digits=3)} times"
        verdicts = [decide(found.final("LB", "LB-WeightUCB", one) / found.final("LB", label, one), MARGIN)
                    for one in ("", *OTHERWISE)]  # fmt: skip
        again = _otherwise(verdicts[0], verdicts[1:])
        text = f"LB-WeightUCB performs as well as {about} (at most {MARGIN - 1:.0%} more regret)"
        yield Claim(text, verdicts[0], numbers, found.command("LB", "russac_slow", "russac_abrupt"), again)


def _linear(found: Measured) -> Iterator[Claim]:
    restart, few, many = "RestartUCB", "MASTER+OFUL n=0", "MASTER+OFUL n=13"
    yield below(found, "MASTER with n = 13 performs better than RestartUCB", ("LB", many), ("LB", restart))
    yield below(found, "MASTER with n = 0 performs worse than RestartUCB", ("LB", restart), ("LB", few))
    yield below(found, "MASTER with n = 13 improves on n = 0", ("LB", many), ("LB", few))
    for rival in (restart, few, many):
        text = f"Under slow drift {rival} does not outperform LB-WeightUCB"
        yield below(found, text, ("LB", "LB-WeightUCB"), ("LB", rival))


def _speed(found: Measured) -> Iterator[Claim]:
    """Running times, as ratios in the same run, at d = 2 and beyond."""

    def claim(text: str, slow: str, fast: str, limit: float, above: bool) -> Claim:
        ratios = found.line("speed", slow).times / found.line("speed", fast).times
        here = ", ".join(f"{ratio:.2f} at d = {d}" for ratio, d in zip(ratios, found.figure("speed").at, strict=True))
        known = slow in SECONDS and fast in SECONDS
        said = f" (published {SECONDS[slow] / SECONDS[fast]:.2f})" if known else ""
        near = limit / TIMER < ratios[0] < limit * TIMER
        verdict = OPEN if near else YES if (ratios[0] > limit) == above else NO
        return Claim(text, verdict, f"{here}{said}", found.command("speed"))

    ours, restart, window = "LB-WeightUCB", "RestartUCB", "SW-UCB"
    yield claim("LB-WeightUCB is over 1.5 times faster than D-LinUCB", "D-LinUCB", ours, 1.5, True)
    for rival in (restart, window):
        yield claim(f"D-LinUCB is less efficient than {rival}", "D-LinUCB", rival, MARGIN, True)
        yield claim(f"LB-WeightUCB is as efficient as {rival}", ours, rival, MARGIN, False)
    text = "A larger initial n of MASTER takes more time"
    yield claim(text, "MASTER+OFUL n=13", "MASTER+OFUL n=0", MARGIN, True)


_OURS = {"GLB": "GLB-WeightUCB", "SCB": "SCB-WeightUCB"}
_STATIC = {"GLB": "GLM-UCB", "SCB": "LogUCB1"}
_BVD = (("BVD-GLM-UCB", "nearest point"), ("BVD-GLM-UCB origin", "origin"))


def _static(found: Measured) -> Iterator[Claim]:
    """Every weighted against every static algorithm at S = 1."""
    weighted = [(f"{family}_S1", name, name) for family, name in _OURS.items()]
    weighted += [("GLB_S1", label, f"BVD-GLM-UCB ({tie})") for label, tie in _BVD]
    for key, label, name in weighted:
        for family, static in _STATIC.items():
            text = f"S = 1: the weighted {name} outperforms the static {static}"
            yield below(found, text, (key, label), (f"{family}_S1", static))


def _clicks(found: Measured) -> Iterator[Claim]:
    for label, tie in _BVD:
        for family, ours in _OURS.items():
            text = f"S = 1: {ours} is better than BVD-GLM-UCB ({tie})"
            yield below(found, text, (f"{family}_S1", ours), ("GLB_S1", label))
    text = "S = 5: SCB-WeightUCB significantly outperforms GLB-WeightUCB"
    yield below(found, text, ("SCB_S5", "SCB-WeightUCB"), ("GLB_S5", "GLB-WeightUCB"))
    for label, tie in _BVD:
        text = f"S = 5: BVD-GLM-UCB ({tie}) drops dramatically, and is behind GLB-WeightUCB"
        yield below(found, text, ("GLB_S5", "GLB-WeightUCB"), ("GLB_S5", label))
    for S in (1, 5):
        for family, ours in _OURS.items():
            key = f"{family}_S{S}"
            for rival in (f"MASTER+{_STATIC[family]}", f"{family}-RestartUCB"):
                yield below(found, f"S = {S}: {ours} outperforms {rival}", (key, ours), (key, rival))


_REGIMES = {"regime_LB": ("LB-WeightUCB", "OFUL"), "regime_clicks": ("SCB-WeightUCB", "LogUCB1")}


def _still(found: Measured) -> Iterator[Claim]:
    """The regimes in which a theorem "recovers" its static algorithm."""
    for key, (ours, static) in _REGIMES.items():
        figure = found.figure(key)
        for place, (world, about) in enumerate((("still", "P_T = 0"), ("nearly still", "0 < P_T < d/T"))):
            one, other = (figure.line(label).regret[:, place] for label in (ours, static))
            ratio = t_interval(one / np.maximum(other, 1e-9))
            numbers = f"{one.mean():.0f} against {other.mean():.0f}; {plus_minus(*ratio, digits=2)} times"
            text = f"{about}: {ours} recovers {static} in a {world} world (at most {MARGIN - 1:.0%} more regret)"
            yield Claim(text, decide(one / np.maximum(other, 1e-9), MARGIN), numbers, found.command(key))


def _piecewise(found: Measured) -> Iterator[Claim]:
    """The improvement on Russac et al. 2021. The text claims it of the bound and plots no measurement."""
    for S in (1, 5):
        low, high = (f"PW_S{S}", "SCB-PW-WeightUCB"), (f"PW_S{S}", "SC-D-GLUCB")
        one, other = (t_interval(found.line(*who).final) for who in (low, high))
        gap = difference(found, low, high)
        apart = plus_minus(*t_interval(gap), sign="+")
        numbers = f"{plus_minus(*one)} against {plus_minus(*other)}; difference {apart}"
        text = f"Piecewise, S = {S}: SCB-PW-WeightUCB improves on SC-D-GLUCB (Russac et al. 2021)"
        yield Claim(text, decide(gap), numbers, found.command(low[0]))


def _all_three(found: Measured) -> Iterator[Claim]:
    """The claim "more efficient for all three models": the two models beside linear bandits, by the times of their
    panels."""
    for text, key, slow, fast in (
        ("GLB: GLB-WeightUCB is more efficient than BVD-GLM-UCB", "GLB_S1", "BVD-GLM-UCB", "GLB-WeightUCB"),
        ("SCB: SCB-WeightUCB is more efficient than SC-D-GLUCB", "PW_S1", "SC-D-GLUCB", "SCB-WeightUCB"),
    ):
        ratio = float(found.line(key, slow).times.min() / found.line(key, fast).times.min())
        verdict = YES if ratio > MARGIN * TIMER else NO if ratio < 1.0 / TIMER else OPEN
        yield Claim(text, verdict, f"{ratio:.2f} times as long", found.command(key))


def _own_tuning(found: Measured) -> Iterator[Claim]:
    """The paper tunes the rivals with d in the formula, and says that D-LinUCB benefits from it."""
    for name in ("D-LinUCB", "SW-UCB", "RestartUCB"):
        low, high = ("own_tuning", name), ("own_tuning", f"{name} by its source")
        gap = difference(found, low, high)
        one, other = found.line(*low).mean, found.line(*high).mean
        numbers = f"{one:.0f} against {other:.0f}; difference {plus_minus(*t_interval(gap), sign='+')}"
        text = f"{name} benefits from the refined tuning, against that of its own source"
        yield Claim(text, decide(gap), numbers, found.command(low[0]))
