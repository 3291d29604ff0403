"""The page "The paper, side by side": the results of `driftwise reproduce all` in HTML and in Markdown."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal.files import keep
from driftwise.draw import plots
from driftwise.draw.figure import Figure
from driftwise.draw.page import Block, Bullets, Folded, Heading, Page, Picture, Table, Text, html, markdown
from driftwise.draw.tables import comma_separated, plus_minus, text_table
from driftwise.lab.paper import claims, growth, lemmas, remarks, searched, slips
from driftwise.lab.paper.claims import Claim, Measured
from driftwise.lab.paper.panels import GROWTH, OWN, PANELS, PRINTED, SENSITIVITY, SLIPS, UNIFORM
from driftwise.lab.paper.published import SECONDS, panel_parts
from driftwise.lab.run.results import Outcome, versions
from driftwise.simulation import t_interval

# "Near" the published value: within this factor.
_NEAR = 1.15


@cache
def _words() -> dict[str, Any]:
    """The sentences of the page, from a data file."""
    return tomllib.loads((files("driftwise.lab.paper") / "report.toml").read_text(encoding="utf-8"))


def _say(key: str, **facts: Any) -> str:
    return str(_words()[key]).format(**facts)


def write_report(outcomes: Sequence[Outcome], folder: Path) -> Table:
    """Write report.html, report.md, tables and figures. Returns the table of counts of verdicts."""
    found = Measured(outcomes)
    heart, seen = lemmas.heart(found)
    for figure in (*_figures(found), heart, searched.likelihood_figure()):
        plots.draw_each(figure, folder / "figures")
    for name, sheet in _sheets(found).items():
        plots.draw_sheet(sheet, folder / "figures", name)
    said, slopes, bounds = claims.text_claims(found), growth.slopes(found), growth.bounds(found)
    beside, further, held = list(remarks.remarks(found)), growth.further(found), lemmas.lemma_claims(found, seen)
    counts = _counts(
        {"statements of the text": said, "remarks": beside, "lemmas": held, "exponents of Table 1": slopes,
         "other exponents": further, "theorems' bounds": bounds}
    )  # fmt: skip
    blocks: list[Block] = [
        *_summary(found, counts, [*said, *beside]),
        *_arms(),
        *_open(),
        Heading("Appendix"),
        *(block for key in found.keys(PANELS) for block in _panel(found, key)),
        *_lemmas(heart, held),
        *_uniform(found),
        *_table_1(found, slopes, further),
        *_theorems(bounds),
        *_slips(found),
        *_sensitivity(found),
        *_made(found),
    ]
    spec = found.outcome("LB").spec
    page = Page(_say("title"), _say("lead", trials=spec.trials, seed=spec.seed), blocks)
    keep(folder / "report.html", html(page, folder))
    keep(folder / "report.md", markdown(page))
    for block in blocks:
        if isinstance(block, Folded):
            keep(folder / block.file, comma_separated(block.table.columns, block.table.rows))
    return counts


def _figures(found: Measured) -> Iterator[Figure]:
    """All figures that are drawn for themselves; the probe's are in the sheet of panels alone."""
    for key in found.keys((*PANELS, *SLIPS)):
        for figure in () if key.endswith("_probe") else found.outcome(key).figures:
            yield from panel_parts(figure)
    for key in found.keys(GROWTH):
        yield from growth.guided(found, key)
    yield _slip(found)


def _sheets(found: Measured) -> dict[str, list[Figure]]:
    """The paper's panels, each beside its probe; and what the paper does not have, in the text's setting."""
    split = [panel_parts(found.figure(key)) for key in found.keys(PRINTED)]
    return {"panels": [one[0] for one in split], "own": [one[1] for one in split[::2]]}


def _slip(found: Measured) -> Figure:
    """The LB panel with both versions of D-LinUCB, and LB-WeightUCB, which the published one equals."""
    names = ("D-LinUCB", "D-LinUCB as published", "LB-WeightUCB")
    figure = found.figure("LB")
    lines = tuple(figure.line(name) for name in names)
    return dataclasses.replace(figure, key="slip", title="D-LinUCB, correct and as published", lines=lines)


def _counts(judged: Mapping[str, Sequence[Claim | growth.Slope | growth.Bound]]) -> Table:
    """How many statements of each kind were reproduced, were not, or cannot be told."""
    words = (claims.YES, claims.NO, claims.OPEN)
    rows = [
        [about, *(str(sum(one.verdict == word for one in ones)) for word in words)] for about, ones in judged.items()
    ]
    return Table(("of the", *words), rows, range(1, 4))


def _summary(found: Measured, counts: Table, said: Sequence[Claim]) -> Iterator[Block]:
    yield Heading("In short")
    yield counts
    yield Text(_say("verdicts", margin=claims.MARGIN - 1.0, timer=claims.TIMER - 1.0))
    yield Text(_fit(found))
    failed = [[one.text, one.numbers, one.otherwise, _reason(one)] for one in said if one.verdict == claims.NO]
    yield Table(("not reproduced", "numbers", "turns with", "reason"), failed)
    rows = [[one.text, one.verdict, one.numbers, one.otherwise, one.command] for one in said]
    columns = ("statement", "verdict", "numbers", "turns with", "command")
    yield Folded(f"All {len(said)} statements", Table(columns, rows), "statements.csv")
    yield Heading("The panels")
    yield Picture("panels", _say("panels"), "The paper's panels with the text's arms and with the probe's")
    yield Picture("own", _say("own_panels"), "Policies that the paper does not have, in the same worlds")
    yield Bullets(_words()["names"])


def _reason(claim: Claim) -> str:
    return next((why for words, why in _words()["reasons"] if words in claim.text), "not found")


def _fit(found: Measured) -> str:
    """How close our final values are to the published ones."""
    near, far = [], []
    for probe in (False, True):
        figures = [panel_parts(found.figure(key))[0] for key in found.keys(PRINTED) if key.endswith("_probe") == probe]
        ratios = {f"{line.label} ({one.key} {ratio:.2f})": ratio for one in figures for line in one.lines
                  if line.curve for ratio in [line.mean / line.curve.final]}  # fmt: skip
        far.append([name for name, ratio in ratios.items() if not 1 / _NEAR < ratio < _NEAR])
        near.append(len(ratios) - len(far[-1]))
    return _say("fit", near=near[0], probe=near[1], within=_NEAR - 1.0, far=", ".join(far[0]))


def _arms() -> Iterator[Block]:
    """The search over sets of arms, and over tunings of one policy."""
    yield Heading("What the arms were")
    yield Text(_say("quoted"))
    yield Bullets(_words()["found"])
    yield Folded("All settings", searched.settings_table(), "arms.csv")
    yield Picture(searched.KEY, _say("likelihood"), "Log-likelihood by the number of unit arms")
    yield Heading("SCB-WeightUCB at S = 5")
    yield Text(_say("scb"))


def _panel(found: Measured, key: str) -> Iterator[Block]:
    outcome = found.outcome(key)
    spec = outcome.spec
    if key.endswith("_probe"):  # its picture is above
        yield Folded(spec.title, text_table(found.figure(key)), f"{key}.csv")
        return
    yield Heading(spec.title, 3)
    for number, figure in enumerate(outcome.figures):
        drawn = panel_parts(figure)
        yield _picture(drawn[0], _world(outcome, number))
        if len(drawn) > 1:
            yield Picture(drawn[1].key, drawn[1].title, drawn[1].title)
        yield Folded("Regret at the end", text_table(figure), f"{figure.key}.csv")
    if key == "LB":
        yield Text(_say("speed"))
        yield Folded("Seconds of a run", _speed(found.figure("speed"), "LB-WeightUCB"), "speed.csv")
    fewer = {entry.label: spec.trials_of(entry) for entry in spec.entries if spec.trials_of(entry) < spec.trials}
    notes = [note[:1].upper() + note[1:] + "." for note in spec.notes]
    if fewer:
        named = ", ".join(f"{label} {trials}" for label, trials in fewer.items())
        notes.append(f"Fewer trials than {spec.trials}, because a run takes long: {named}.")
    if notes:
        yield Bullets(notes)


def _speed(figure: Figure, unit: str) -> Table:
    """Times of a sweep as multiples of one policy's, beside those of the paper's bar chart."""
    at, one = [f"d = {value}" for value in figure.at], figure.line(unit)
    rows = [
        [line.label, *(f"{ratio:.2f}" for ratio in line.times / one.times),
         f"{SECONDS[line.label] / SECONDS[unit]:.2f}" if line.label in SECONDS else "–"]
        for line in figure.lines
    ]  # fmt: skip
    return Table([f"seconds of a run, {unit} = 1", *at, "published, d = 2"], rows, range(1, len(at) + 2))


def _picture(figure: Figure, caption: str) -> Picture:
    return Picture(figure.key, caption, figure.title)


def _world(outcome: Outcome, number: int = 0) -> str:
    """The world of a figure in one line, without the field that is swept."""
    sweep, world = (outcome.spec.sweeps or [None])[number], outcome.spec.contests[number][0].world
    swept = sweep.over.split(".") if sweep else ["", ""]
    facts = {"dim": f"d = {world.dim}", "horizon": f"T = {world.horizon:,}", "arms": f"{world.arms} arms",
             "radius": f"θ of norm {world.radius:g}"}  # fmt: skip
    if swept[1] not in ("turns", "jumps", "horizon", "dim", "radius"):
        facts["turns"] = f"P_T = {world.path_length:.2f}, Γ_T = {world.changes:,}"
    drawn = {"gaussian": f"rewards with noise N(0, {world.noise:g}²)", "bernoulli": "clicks", "poisson": "counts"}
    kept = [text for field, text in facts.items() if field != swept[1]]
    return f"{type(world).__name__}: " + ", ".join([*kept, drawn[world.reward]]) + "."


def _lemmas(heart: Figure, held: Sequence[Claim]) -> Iterator[Block]:
    """The lemmas: the estimation error in one norm."""
    yield Heading("The lemmas", 3)
    yield Text(_say("lemmas"))
    yield _picture(heart, _say("heart"))
    rows = [[one.text, one.verdict, one.numbers, one.command] for one in held]
    yield Folded("Lemmas", Table(("statement", "verdict", "numbers", "command"), rows), "lemmas.csv")
    yield Text(_say("crossings"))
    yield Folded("Runs that cross", lemmas.crossing_table(), "crossings.csv")


def _uniform(found: Measured) -> Iterator[Block]:
    """The regret with radii that hold, and the rivals with the tunings of their own sources."""
    yield Heading("Radii that hold, and the rivals' own tunings", 3)
    yield Text(_say("uniform"))
    for key in found.keys(UNIFORM):
        yield Folded(found.figure(key).title, _beside(found.figure(key)), f"{key}.csv")
    yield Text(_say("own"))
    for key in found.keys(OWN):
        yield Folded("Own tunings", text_table(found.figure(key)), f"{key}.csv")


def _beside(figure: Figure) -> Table:
    """A row per policy: regret with the printed radius, with the uniform one, and their ratio in pairs."""
    rows = []
    for line in figure.lines:
        printed, wide = line.regret.T
        ratio = plus_minus(*t_interval(wide / np.maximum(printed, 1e-9)), digits=2)
        both = [plus_minus(*t_interval(one)) for one in (printed, wide)]
        rows.append([line.label, str(len(printed)), *both, ratio])
    return Table(("algorithm", "trials", "printed", "uniform=True", "ratio"), rows, range(1, 5))


def _table_1(
    found: Measured, slopes: Sequence[growth.Slope], further: Sequence[growth.Slope]
) -> Iterator[Block]:
    yield Heading("Table 1: how regret grows", 3)
    yield Text(_say("growth", slack=growth.SLACK))
    for key in found.keys(GROWTH):
        outcome = found.outcome(key)
        for number, figure in enumerate(outcome.figures):
            yield _picture(figure, _world(outcome, number))
    columns = ("family", "in", "Table 1", "last three points", "all points", "the bound itself", "verdict", "command")
    yield Folded("Exponents", Table(columns, [_slope_row(one) for one in slopes], range(2, 6)), "exponents.csv")
    yield Text(_say("further"))
    columns = ("algorithm", "in", "stated", *columns[3:])
    yield Folded("Others", Table(columns, [_slope_row(one) for one in further], range(2, 6)), "exponents-others.csv")


def _slope_row(one: growth.Slope) -> list[str]:
    bound = "–" if math.isnan(one.bound) else f"{one.bound:.3f}"
    return [one.family, one.quantity, f"{one.theory:.3f}", plus_minus(*one.measured, 3), plus_minus(*one.overall, 3),
            bound, one.verdict, one.command]  # fmt: skip


def _theorems(bounds: Sequence[growth.Bound]) -> Iterator[Block]:
    yield Heading("The theorems' bounds", 3)
    yield Text(_say("theorems"))
    rows = [
        [one.theorem, one.world, f"{one.largest:,.0f}", _large(one.bound), _large(one.printed), f"{one.random:,.0f}",
         f"{one.most:,.0f}", _large(one.informative), one.verdict, one.command]
        for one in bounds
    ]  # fmt: skip
    columns = ("theorem", "world", "largest regret", "bound", "as printed", "random play", "at most", "from T ≈",
               "verdict", "command")  # fmt: skip
    yield Folded("Bounds", Table(columns, rows, range(2, 8)), "bounds.csv")


def _large(value: float) -> str:
    """A number with three digits; a bound is not more precise."""
    return f"{float(f'{value:.3g}'):,.0f}" if value < 1e8 else f"{value:.1e}"


def _slips(found: Measured) -> Iterator[Block]:
    slow, abrupt = found.figure("russac_slow"), found.figure("russac_abrupt")
    yield Heading("Errors in the sources", 3)
    yield Text(_say("slip", slow=_both(slow), abrupt=_both(abrupt)))
    yield _picture(_slip(found), "D-LinUCB, correct and with the error, in the paper's linear world.")
    yield _picture(slow, "The same on the slow drift of Russac et al. 2019.")
    yield _picture(abrupt, "The same on the jumps of Russac et al. 2019.")
    yield Folded("Others", Table(("error, and what is done",), [[one] for one in _words()["slips"]]), "errors.csv")
    yield Text(_say("proofs"))
    rows = [[one.statement, one.printed, one.repaired] for one in slips.found()]
    yield Folded("Steps that fail", Table(("statement", "as printed", "repaired"), rows), "slips.csv")


def _both(figure: Figure) -> str:
    """D-LinUCB, correct against as published."""
    return f"{figure.line('D-LinUCB').mean:.0f} against {figure.line('D-LinUCB as published').mean:.0f}"


def _open() -> Iterator[Block]:
    yield Heading("What the text leaves open")
    yield Table(("question", "choice here", "why"), _words()["choices"])


def _sensitivity(found: Measured) -> Iterator[Block]:
    yield Heading("How much the choices matter", 3)
    yield Text(_say("sensitivity"))
    for key in found.keys(SENSITIVITY):
        for figure in found.outcome(key).figures:
            yield Folded(figure.title, text_table(figure), f"{figure.key}.csv")


def _made(found: Measured) -> Iterator[Block]:
    spec = found.outcome("LB").spec
    yield Heading("How this page was made", 3)
    named = ", ".join(f"{name} {version}" for name, version in versions().items())
    yield Text(_say("made", trials=spec.trials, seed=spec.seed, versions=named))
