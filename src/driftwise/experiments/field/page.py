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
PUBLIC = """
On one stream every arm is that of the public code, and θ̂ to 1e-9. Linear, 400 rounds with a jump: D-LinUCB with its
slip, SW-LinUCB, LinUCB and dLinUCB of YRussac/WeightedLinearBandits at 9cc1edf, and D-LinUCB of
baekjin-kim/NonstationaryLB at 7f8d7d1, which does not have the slip. Clicks: GLM-UCB and LogUCB1 of
louisfaury/logistic_bandit at 286335b, 300 rounds, and OFUGLB of nick-jhlee/logistic_bandit at 8434b6d, 120 rounds,
whose θ̂ is a solver's and was not compared. OFULog-r of that code stops its planning after 20 steps, so that its
choices are not those of the set it describes. The code of Russac et al. 2020 and 2021, of Wang et al. 2025 and of
Gerogiannis et al. 2025 was not found."""
MISSING = (
    """**Restarted SAVE+** (Wang et al. 2025), **GLB-OMD** (Zhang, Xu, Zhao, Sugiyama 2025) and **DOMD-GLB**: not
    implemented; beyond abstracts their texts could not be read.""",
    """**DAL** (Gerogiannis et al. 2025): its forced plays could not be read. `GLR+OFUL` has the GLR test of QCD+ and
    forced plays that stand in for them, on a list of arms that stays.""",
    """**D-GLUCB**, **SW-GLUCB** (Russac, Cappé, Garivier 2020): the text could not be read. They are GLM-UCB's rule
    with a fade or a window, the ridge λ/c in V with λ = 1, and 1-γ = (Γ_T/(dT))^(2/3), the order that the
    abstract states. Their slow twins are of the same formulas.""",
    """β and σ̄ of **Restarted-WeightedOFUL+** and the exploration rate of **EXP3.S** were written from memory, and no
    public text or code was found to hold them to. EXP3.S's update is that of the public notes on Auer et al.
    2002, Figure 6 (Bandits.jl).""",
    """Constants of Restarted-WeightedOFUL+ and of Modified EXP3.S in the published runs, and γ, λ and δ of Zhao et al.
    and of Russac et al. 2021: could not be read. Sections say which were taken. Of the eight horizons
    three of Cheung et al. and two of Wang et al. are played.""",
)
KIN = (
    "**Trend** beside fcTS (Naghdi, Baheri 2026), which carries old rewards to the present by a slope and samples.",
    "**Levels** beside ISD-linUCB (Lazzaretto, Peters, Pfister 2026), which learns what stays from past data.",
    "**The one-pass estimate under a fade** beside DOMD-GLB (Lee, Oh 2026), discounted mirror descent with a theorem.",
    """**The bank of discounts** beside Jacobsen and Cutkosky 2024, who learn the discount of online regression over a
    grid. Hu 2026 could not be found.""",
)
OWN_POLICY = """
`driftwise compare --policy mypackage:MyPolicy --out DIR` plays it on the worlds of the page, beside the policies
there, and writes the page with its rank and intervals. `--worlds russac2019` takes the worlds of one paper. A class
or function gets those of dim, horizon, path_length, changes, S, L, R, arms, link and reward that it has arguments
for."""


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
        yield Bullets([*(_sentence(note) for note in outcome.spec.notes), f"`driftwise run {key}`"])
    yield Text(f"**Where it differs.** {paper.reason}")


def _sentence(note: str) -> str:
    """A capital and a full stop; θ stays θ."""
    return f"{note[:1].upper() if note[:1].isascii() else note[:1]}{note[1:]}."


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
    yield Heading("Public code, choice by choice")
    yield Text(PUBLIC)
    yield Heading("What is missing")
    yield Bullets(MISSING)
    yield Heading("Your own policy")
    yield Text(OWN_POLICY)
    yield Heading("Kin")
    yield Text("Features of driftwise that resemble others' work; of these papers we read the abstracts.")
    yield Bullets(KIN)


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
