"""The field, side by side: what `driftwise reproduce field` found, as one page in HTML and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from driftwise._internal.files import keep
from driftwise.draw import plots
from driftwise.draw.figure import Figure
from driftwise.draw.page import Block, Bullets, Heading, Page, Picture, Table, Text, html, markdown
from driftwise.draw.tables import plus_minus, text_table
from driftwise.experiments.field import slips
from driftwise.experiments.field.papers import Paper, chosen
from driftwise.experiments.field.verdicts import DIFFERS, OPEN, SAME, JudgedNumber, judged_numbers
from driftwise.experiments.run.results import Outcome, versions
from driftwise.simulation import t_interval

LEAD = """
The experiments of the papers around [Wang, Zhao, Zhou 2023](https://arxiv.org/abs/2303.02691), again, with the code of
driftwise, beside the numbers that were read off their figures. Solid lines and bands are ours (mean, min–max), dashed
ones the published curves."""
VERDICTS = """
A verdict is **same** when two intervals meet. Ours is the 95% interval of the mean over our trials. Theirs is the
number read, ±2% where it was read by eye, widened by the half-width that the mean over their runs would have with the
spread of ours. It is **cannot be told** where our line has one trial, or the data is a surrogate."""
MISSING = (
    "**Restarted SAVE+** (Wang et al. 2025) and **GLB-OMD** (2025): not implemented.",
    """**DAL** and **QCD+** (Gerogiannis et al. 2025): the text of DAL's forced plays could not be read; neither is
    implemented. **OFUGLB** (Lee, Yun, Jun 2024): not implemented; its public code is among the slips below.""",
    """**D-GLUCB**, **SW-GLUCB** (Russac, Cappé, Garivier 2020): the text could not be read. They are GLM-UCB's rule
    with a fade or a window, the ridge λ/c in V with λ = 1, and 1-γ = (Γ_T/(dT))^(2/3), the order that the abstract
    states.""",
    """Constants of Restarted-WeightedOFUL+ and of Modified EXP3.S in the published runs, and γ, λ and δ of Zhao et al.
    and of Russac et al. 2021: could not be read. Sections say which were taken.""",
)


def write_field(
    name: str, outcomes: Sequence[Outcome], folder: Path, own: Mapping[str, Sequence[str]] | None = None
) -> Table:
    """field.html, field.md and their figures; the table of papers comes back. `own` has a reader's rank by spec."""
    found = {outcome.spec.key: outcome for outcome in outcomes}
    for outcome in outcomes:
        for figure in outcome.figures:
            plots.draw_each(figure, folder / "figures")
    papers = chosen(name)
    judged = {paper.key: [one for key in paper.specs for one in judged_numbers(found[key], paper)] for paper in papers}
    overview = _overview(papers, judged)
    blocks: list[Block] = [Heading("In short"), overview, Text(VERDICTS)]
    if own:
        columns = ("world", "rank", "regret ± 95%", "best of the catalogue")
        blocks += [Heading("Your policy"), Table(columns, [[key, *row] for key, row in own.items()], (1, 2))]
    for paper in papers:
        blocks += _paper(paper, found, judged[paper.key])
    blocks += _slips() if name == "field" else []
    blocks += _made(name, outcomes)
    page = Page("The field, side by side", LEAD, blocks)
    keep(folder / "field.html", html(page, folder))
    keep(folder / "field.md", markdown(page))
    return overview


def _overview(papers: Sequence[Paper], judged: Mapping[str, Sequence[JudgedNumber]]) -> Table:
    """A row a paper: how many of its numbers are the same, and the last of each line beside ours."""
    rows = []
    for paper in papers:
        ones = judged[paper.key]
        counts = [sum(one.verdict == word for one in ones) for word in (SAME, DIFFERS, OPEN)]
        rows.append([paper.name, paper.setting, str(len(ones)), *map(str, counts), _verdict(paper, counts)])
    return Table(("paper", "setting", "numbers", SAME, DIFFERS, OPEN, "reason"), rows, range(2, 6))


def _verdict(paper: Paper, counts: Sequence[int]) -> str:
    if paper.surrogate:
        return "a surrogate: orders only"
    if not counts[1] and not counts[2]:
        return "all the same"
    return "found in part, or not found: see its section" if "ot found" in paper.reason else "see its section"


def _paper(paper: Paper, found: Mapping[str, Outcome], ones: Sequence[JudgedNumber]) -> Iterator[Block]:
    yield Heading(paper.name)
    yield Text(f"{paper.setting}.")
    for key in paper.specs:
        outcome = found[key]
        for figure in outcome.figures:
            yield _picture(figure)
            mine = [one for one in ones if one.spec == key]
            yield _numbers(mine) if mine else text_table(figure)
        yield Bullets([*(note[:1].upper() + note[1:] + "." for note in outcome.spec.notes), f"`driftwise run {key}`"])
    yield Text(f"**Where it differs.** {paper.reason}")


def _picture(figure: Figure) -> Picture:
    ends = ", ".join(f"{line.label} {line.mean:.0f}" for line in figure.drawn)
    return Picture(figure.key, f"{figure.title}.", f"{figure.title}: regret at the end {ends}")


def _numbers(ones: Sequence[JudgedNumber]) -> Table:
    rows = [
        [one.label, f"{one.at:,}", plus_minus(*one.theirs), plus_minus(*one.ours), str(one.trials), f"{one.ratio:.2f}",
         one.verdict]
        for one in ones
    ]  # fmt: skip
    return Table(("algorithm", "at", "published", "ours ± 95%", "trials", "ratio", "verdict"), rows, range(1, 6))


def _slips() -> Iterator[Block]:
    yield Heading("Slips of the sources")
    yield Text("Each is shown by a program: `python -m driftwise.experiments.field.slips`.")
    rows = [[one.source, one.statement, one.printed, one.repaired] for one in slips.source_slips()]
    yield Table(("source", "what", "as published", "as meant"), rows)
    yield Heading("What is missing")
    yield Bullets(MISSING)


def _made(name: str, outcomes: Sequence[Outcome]) -> Iterator[Block]:
    yield Heading("How this page was made")
    named = ", ".join(f"{what} {version}" for what, version in versions().items())
    yield Text(f"`driftwise reproduce {name}`, seed {outcomes[0].spec.seed}: {named}.")


def ranks(outcome: Outcome, label: str) -> list[str]:
    """Of one line among the drawn ones at the last value: its rank, its interval, and the best other."""
    figure = outcome.figures[0]
    lines = sorted(figure.drawn, key=lambda line: line.mean)
    mine = figure.line(label)
    best = next(line for line in lines if line.label != label)
    place = [line.label for line in lines].index(label) + 1
    told = f"{best.label} {plus_minus(*t_interval(best.final))}"
    return [f"{place} of {len(lines)}", plus_minus(*t_interval(mine.final)), told]
