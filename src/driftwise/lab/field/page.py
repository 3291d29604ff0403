"""Writes the page of `driftwise reproduce field` in HTML and in Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from driftwise._internal.files import keep
from driftwise.draw import plots
from driftwise.draw.figure import Figure
from driftwise.draw.page import Block, Bullets, Heading, Page, Picture, Table, Text, html, markdown
from driftwise.draw.tables import plus_minus
from driftwise.lab.field import slips
from driftwise.lab.field.papers import Paper, chosen
from driftwise.lab.field.verdicts import DIFFERS, OPEN, SAME, JudgedNumber, judged_numbers, within
from driftwise.lab.run.results import Outcome, versions
from driftwise.simulation import t_interval

LEAD = """
This page repeats experiments of the papers around [Wang, Zhao, Zhou 2023](https://arxiv.org/abs/2303.02691) with the
code of driftwise. It puts the results beside the numbers that were read off the published figures.
`driftwise reproduce field` plays all experiments and writes this page; `driftwise reproduce russac2019`, or the name of
another paper below, plays those of one paper. Both continue after an interruption. In the figures solid lines and bands
are ours (mean, min-max), and dashed lines are the published curves."""
VERDICTS = """
A verdict is **same** when two intervals meet. Ours is the 95% interval of the mean over our trials. The published
interval is the number read, ±2% if it was read by eye. If the paper's number of runs is known, it is wider by the
half-width that the mean over those runs would have with the spread of our trials. The verdict is **cannot be told**
where our line has one trial, or the data is a surrogate. One published number can have several lines of ours, which
differ in what the source does not state; the column "within 5%" counts the published numbers to which some line comes
that near. numbers.csv has every number that was read, beside ours, and hypotheses.csv what was tried where they
differ."""
TRIED = """
A hypothesis about a difference is likely when it comes from a source and brings the numbers close. A number that was
chosen to meet the published ones is called fitted; a fit shows that this number could be the reason, not that it is."""
CODES = (
    ("YRussac/WeightedLinearBandits", "9cc1edf", "D-LinUCB (with its error), SW-LinUCB, LinUCB, dLinUCB",
     "400 each", "all arms; θ̂ to 1e-9"),
    ("baekjin-kim/NonstationaryLB", "7f8d7d1", "D-LinUCB (without that error)", "400", "all arms; θ̂ to 1e-9"),
    ("louisfaury/logistic_bandit", "286335b", "GLM-UCB, LogUCB1", "300 each",
     "all arms; θ̂ to 1e-9; radius to 1e-9, relative"),
    ("nick-jhlee/logistic_bandit", "8434b6d", "OFUGLB", "120",
     "all arms; radius to 1e-9, relative; θ̂ is that of a solver and is not compared"),
    ("SMPyBandits/SMPyBandits", "012fc13", "EXP3.S", "400", "probabilities of all arms to 1e-9"),
)  # fmt: skip
PUBLIC = """
The codes ran outside this repository at the commits below; their choices are recorded in tests/published, and
tests/test_neighbours.py plays the same streams. OFULog-r of logistic_bandit stops its planning after 20 steps, so its
choices are not those of the set it describes, and they were not recorded. Code of Russac et al. 2020 and 2021, Wang et
al. 2025, Zhang et al. 2025 and Gerogiannis et al. 2025 was not found."""
READ = """
The proceedings of Cheung et al. 2019, Zhao et al. 2020, Kim and Tewari 2020, Russac et al. 2021, Abeille et al. 2021
and Wang et al. 2025 were read; settings on this page are theirs unless a note says otherwise. This is what could not
be read, or is not here:"""
MISSING = (
    """λ and δ of Zhao et al. 2020 and of Russac et al. 2021, δ and ridges of Abeille et al. 2021, and the number of
    runs of Cheung et al. 2019 are not stated in these papers. Each section says which were taken.""",
    """**DOMD-GLB** (Lee, Oh 2026) is not implemented; only its abstract could be read.""",
    """**DAL** (Gerogiannis et al. 2025): its forced plays could not be read. `GLR+OFUL` has the GLR test of QCD+, and
    forced plays that stand in for those of DAL, on a list of arms that does not change.""",
    """**D-GLUCB** and **SW-GLUCB** (Russac, Cappé, Garivier 2020): the text could not be read. They are GLM-UCB's rule
    with a fade or a window, the ridge λ/c in V with λ = 1, and 1-γ = (Γ_T/(dT))^(2/3), the order that the abstract
    states. Their slow twins have the same formulas.""",
    """**GLB-OMD** (Zhang, Xu, Zhao, Sugiyama 2025): the stored text has the algorithm, η and λ, but not the formula of
    the radius β. Ours is the sum of the proof's steps: 4λS² for the start; 2η log(1/δ) by Ville's inequality;
    2η(3η + 1/2) log(det H/λ^d) for the mixture N(θ, 3ηH⁻¹/2), of which 3η is 2 · 3η/2 from Lemma 7; the terms in
    ‖θ_s - θ_(s+1)‖² cancel as λ ≥ 6ηRSL_μ. One point is open: whether the paper bounds log det by
    d log(1 + L_μ t/λ), as here, or by the smaller d log(1 + L_μ t/(λd)).""",
    """Equation (5) of Wang et al. 2025, the radius of **Restarted-WeightedOFUL+**, has a bracket at two places in one
    and the same expression. Ours is log(γ²/α) + 1 in both, as in its second term.""",
    """EXP3.S is held to public code (above); its exploration rate, min(1, (4VK log(KT)/((e-1)²T))^(1/3)), is the one in
    a public reimplementation of Cheung et al. 2019 (liangzp), which cites Besbes, Gur, Zeevi.""",
)
KIN = (
    "**Trend** resembles fcTS (Naghdi, Baheri 2026), which carries old rewards to the present by a slope and samples.",
    "**Levels** resemble ISD-linUCB (Lazzaretto, Peters, Pfister 2026), which learns from past data what stays.",
    "**The one-pass estimate under a fade** resembles DOMD-GLB (Lee, Oh 2026), discounted mirror descent.",
    """**The bank of discounts** resembles Jacobsen and Cutkosky 2024, who learn the discount of online regression
    over a grid.""",
    "Hu 2026, which was named to us as kin of the bank, was not found.",
)
OWN_RANKS = """
Ranks are by mean regret at the end, or at the longest horizon, among the lines of the first figure of each world. The
tables below have the number of trials; with few trials a rank can be chance where intervals overlap."""
OWN_POLICY = """
`driftwise compare --policy mypackage:MyPolicy --out DIR` plays your policy on the worlds of this page, beside the
policies of the page, and writes the page with your policy's rank and intervals. `--worlds russac2019` takes the worlds
of one paper. Your class or function gets those of dim, horizon, path_length, changes, S, L, R, arms, link and reward
that it has arguments for."""


def write_field(
    name: str, outcomes: Sequence[Outcome], folder: Path, own: Mapping[str, Sequence[str]] | None = None,
    label: str = "",
) -> Table:  # fmt: skip
    """Write field.html, field.md, numbers.csv, hypotheses.csv and the figures, and return the table of papers.

    `own` has the rank of the user's policy by spec, and `label` is its name.
    """
    found = {outcome.spec.key: outcome for outcome in outcomes}
    for outcome in outcomes:
        for figure in outcome.figures:
            plots.draw_each(figure, folder / "figures")
    papers = chosen(name)
    judged = {paper.key: [one for key in paper.specs for one in judged_numbers(found[key], paper)] for paper in papers}
    overview = _overview(papers, judged)
    blocks: list[Block] = [Heading("In short"), overview, Text(VERDICTS)]
    if any(paper.tried for paper in papers):
        blocks.append(Text(TRIED))
    if own:
        columns = ("world", "rank", "regret ± 95%", "best other policy")
        rows = [[key, *row] for key, row in own.items()]
        blocks += [Heading(f"Your policy: {label}"), Text(OWN_RANKS), Table(columns, rows, (1, 2))]
    for paper in papers:
        blocks += _paper(paper, found)
    blocks += _slips() if name == "field" else []
    blocks += _made(f"compare --worlds {name}" if own else f"reproduce {name}", outcomes)
    page = Page("The field, side by side", LEAD, blocks)
    keep(folder / "field.html", html(page, folder))
    keep(folder / "field.md", markdown(page))
    keep(folder / "numbers.csv", _all_numbers(papers, found))
    tried = [(paper.key, *row) for paper in papers for row in paper.tried]
    keep(folder / "hypotheses.csv", _comma_separated(("paper", "hypothesis", "what it gave", "finding"), tried))
    return overview


def _comma_separated(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue().encode()


def _all_numbers(papers: Sequence[Paper], found: Mapping[str, Outcome]) -> bytes:
    """Every published number beside ours, those along the curves too, as CSV."""
    columns = ("spec", "line", "at", "published", "published_half", "ours", "ours_half", "trials", "verdict")
    rows = []
    for paper in papers:
        for key in paper.specs:
            for one in judged_numbers(found[key], paper, whole=True):
                halves = [f"{value:.6g}" for pair in (one.theirs, one.ours) for value in pair]
                rows.append((key, one.label, one.at, *halves, one.trials, one.verdict))
    return _comma_separated(columns, rows)


def _overview(papers: Sequence[Paper], judged: Mapping[str, Sequence[JudgedNumber]]) -> Table:
    """One row per paper: how many of its numbers have which verdict, and the trials of ours and of the source."""
    rows = []
    for paper in papers:
        ones = judged[paper.key]
        counts = [sum(one.verdict == word for one in ones) for word in (SAME, DIFFERS, OPEN)]
        every, near = within(ones)
        last = f"{near} of {every}", _trials(paper, ones), paper.verdict
        rows.append([paper.name, f"`{paper.key}`", str(len(ones)), *map(str, counts), *last])
    return Table(("paper", "name", "lines", SAME, DIFFERS, OPEN, "within 5%", "trials", "reasons"), rows, range(2, 7))


def _trials(paper: Paper, ones: Sequence[JudgedNumber]) -> str:
    """The fewest and the most trials behind our numbers, and the runs of the source if they are known."""
    least, most = min(one.trials for one in ones), max(one.trials for one in ones)
    ours = str(least) if least == most else f"{least} to {most}"
    return f"{ours}, source {paper.runs}" if paper.runs else ours


def _paper(paper: Paper, found: Mapping[str, Outcome]) -> Iterator[Block]:
    yield Heading(paper.name)
    yield Text(f"{paper.setting}.")
    notes: dict[str, None] = {}  # specs of one paper share most of their notes
    for key in paper.specs:
        yield from map(_picture, found[key].figures)
        notes |= dict.fromkeys(map(_sentence, found[key].spec.notes))
    yield Bullets([*notes, "Played by " + ", ".join(f"`driftwise run {key}`" for key in paper.specs) + "."])
    yield Text(f"**Where it differs.** {paper.reason}")


def _sentence(note: str) -> str:
    """Give a note a capital letter and a full stop. A first letter outside ASCII, such as θ, stays as it is."""
    return f"{note[:1].upper() if note[:1].isascii() else note[:1]}{note[1:]}."


def _picture(figure: Figure) -> Picture:
    ends = ", ".join(f"{line.label} {line.mean:.0f}" for line in figure.drawn)
    return Picture(figure.key, f"{figure.title}.", f"{figure.title}: regret at the end {ends}")


def _slips() -> Iterator[Block]:
    yield Heading("Errors in the sources")
    yield Text("A program shows each of them: `python -m driftwise.lab.field.slips`.")
    rows = [[one.source, one.statement, one.printed, one.repaired] for one in slips.source_errors()]
    yield Table(("source", "what", "as published", "as meant"), rows)
    yield Heading("Public code, choice by choice")
    yield Text(PUBLIC)
    yield Table(("public code", "commit", "algorithms", "choices", "agreement"), list(map(list, CODES)))
    yield Heading("What is missing")
    yield Text(READ)
    yield Bullets(MISSING)
    yield Heading("Your own policy")
    yield Text(OWN_POLICY)
    yield Heading("Related work")
    yield Text("These features of driftwise resemble work of others. Of these papers we read the abstracts.")
    yield Bullets(KIN)


def _made(command: str, outcomes: Sequence[Outcome]) -> Iterator[Block]:
    yield Heading("How this page was made")
    named = ", ".join(f"{what} {version}" for what, version in versions().items())
    yield Text(f"`driftwise {command}`, seed {outcomes[0].spec.seed}: {named}.")


def ranks(outcome: Outcome, label: str) -> list[str]:
    """The rank of a line among the drawn lines at the end of the first figure, its interval, and the best other."""
    figure = outcome.figures[0]
    lines = sorted(figure.drawn, key=lambda line: line.mean)
    mine = figure.line(label)
    best = next(line for line in lines if line.label != label)
    place = [line.label for line in lines].index(label) + 1
    told = f"{best.label} {plus_minus(*t_interval(best.final))}"
    return [f"{place} of {len(lines)}", plus_minus(*t_interval(mine.final)), told]
