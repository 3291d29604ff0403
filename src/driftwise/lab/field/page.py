"""Writes the page of `driftwise reproduce field` in HTML and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from driftwise._internal.files import keep
from driftwise.draw import plots
from driftwise.draw.page import Block, Heading, Page, Picture, Table, Text, html, markdown
from driftwise.draw.tables import comma_separated, plus_minus
from driftwise.lab.field import slips
from driftwise.lab.field.papers import Paper, chosen
from driftwise.lab.field.verdicts import DIFFERS, OPEN, SAME, JudgedNumber, judged_numbers, within
from driftwise.lab.run.results import Outcome, versions
from driftwise.simulation import t_interval

LEAD = """
Experiments of the papers around [Wang, Zhao, Zhou 2023](https://arxiv.org/abs/2303.02691), played with the code of
driftwise, beside the numbers that were read off the published figures. `driftwise reproduce field` plays all of them
and writes this page; `driftwise reproduce russac2019`, or another name below, those of one paper. Both continue after
an interruption. Solid lines and bands are ours (mean, min-max), dashed lines the published curves."""
VERDICTS = """
A verdict is **same** when two intervals meet: the 95% interval of our mean, and the number read, ±2% if it was read
by eye and wider by the half-width that the paper's number of runs would have with the spread of our trials. It
**cannot be told** where our line has one trial or the data is a surrogate. A published number can have several lines
of ours, which differ in what the source does not state; "within 5%" counts the published numbers to which some line
comes that near."""
FILES = """
Beside this page: numbers.csv has every number that was read, beside ours, settings.csv what was set in each world,
and hypotheses.csv what was tried where numbers differ. A hypothesis is likely when it comes from a source and brings
the numbers close; a number that was chosen to meet the published ones is called fitted."""
WHOLE = """
errors.csv has errors in the sources, each shown by `python -m driftwise.lab.field.slips`. codes.csv has the public
codes that ours is held to choice by choice (tests/published, tests/test_neighbours.py), missing.csv what could not be
read and what stands in for it. OFULog-r of logistic_bandit stops its planning after 20 steps and was not recorded. No
code was found of Russac et al. 2020 and 2021, Wang et al. 2025, Zhang et al. 2025 and Gerogiannis et al. 2025."""
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
MISSING = (
    ("DOMD-GLB", "Lee, Oh 2026", "not implemented; only its abstract could be read"),
    ("DAL", "Gerogiannis et al. 2025", "forced plays could not be read; GLR+OFUL has the GLR test of QCD+ and others"),
    ("D-GLUCB, SW-GLUCB", "Russac, Cappé, Garivier 2020",
     "could not be read; GLM-UCB's rule with a fade or a window, the ridge λ/c in V with λ = 1, and the abstract's "
     "1-γ = (Γ_T/(dT))^(2/3)"),
    ("GLB-OMD", "Zhang, Xu, Zhao, Sugiyama 2025",
     "the formula of its radius could not be read; ours is the sum of the proof's steps (GLBOMD.radius), the paper may "
     "bound log det by the smaller d log(1 + L_μ t/(λd))"),
    ("Restarted-WeightedOFUL+", "Wang et al. 2025", "equation (5) has a bracket at two places; log(γ²/α) + 1 in both"),
    ("EXP3.S", "Cheung et al. 2019",
     "its rate of exploration, min(1, (4VK log(KT)/((e-1)²T))^(1/3)), is that of a public reimplementation (liangzp)"),
)  # fmt: skip
OWN_RANKS = """
Ranks are by mean regret at the end, or at the longest horizon, among the lines of the first figure of each world. The
tables below have the number of trials; with few trials a rank can be chance where intervals overlap."""
OWN_POLICY = """
`driftwise compare --policy mypackage:MyPolicy --out DIR` plays your policy on the worlds of this page, beside the
others, and writes the page with its rank and intervals. `--worlds russac2019` takes the worlds of one paper. Your
class or function gets those of dim, horizon, path_length, changes, S, L, R, arms, link and reward that it has
arguments for."""


def write_field(
    name: str, outcomes: Sequence[Outcome], folder: Path, own: Mapping[str, Sequence[str]] | None = None,
    label: str = "",
) -> Table:  # fmt: skip
    """Write field.html, field.md, the tables beside them and the figures, and return the table of papers.

    `own` has the rank of the user's policy by spec, and `label` is its name.
    """
    found = {outcome.spec.key: outcome for outcome in outcomes}
    for outcome in outcomes:
        for figure in outcome.figures:
            plots.draw_each(figure, folder / "figures")
    papers = chosen(name)
    judged = {paper.key: [one for key in paper.specs for one in judged_numbers(found[key], paper)] for paper in papers}
    overview = _overview(papers, judged)
    blocks: list[Block] = [Heading("In short"), overview, Text(VERDICTS), Text(FILES)]
    if own:
        heads = ("world", "rank", "regret ± 95%", "best other policy")
        ranked = [[key, *row] for key, row in own.items()]
        blocks += [Heading(f"Your policy: {label}"), Text(OWN_RANKS), Table(heads, ranked, (1, 2))]
    for paper in papers:
        blocks += _paper(paper, found)
    blocks += _rest() if name == "field" else []
    blocks += _made(f"compare --worlds {name}" if own else f"reproduce {name}", outcomes)
    page = Page("The field, side by side", LEAD, blocks)
    keep(folder / "field.html", html(page, folder))
    keep(folder / "field.md", markdown(page))
    keep(folder / "numbers.csv", _all_numbers(papers, found))
    for file, (columns, rows) in _beside(papers, found).items():
        keep(folder / file, comma_separated(columns, rows))
    return overview


def _beside(
    papers: Sequence[Paper], found: Mapping[str, Outcome]
) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """The tables that the page names, by their files: columns and rows."""
    tried = [(paper.key, *row) for paper in papers for row in paper.tried]
    notes = [(paper.key, key, note) for paper in papers for key in paper.specs for note in found[key].spec.notes]
    return {
        "hypotheses.csv": (("paper", "hypothesis", "what it gave", "finding"), tried),
        "settings.csv": (("paper", "spec", "setting"), notes),
        "errors.csv": (("source", "what", "as published", "as meant"), slips.source_errors()),
        "codes.csv": (("public code", "commit", "algorithms", "choices", "agreement"), CODES),
        "missing.csv": (("algorithm", "source", "what is missing, and what is here"), MISSING),
    }


def _all_numbers(papers: Sequence[Paper], found: Mapping[str, Outcome]) -> bytes:
    """Every published number beside ours, those along the curves too, as CSV."""
    columns = ("spec", "line", "at", "published", "published_half", "ours", "ours_half", "trials", "verdict")
    rows = []
    for paper in papers:
        for key in paper.specs:
            for one in judged_numbers(found[key], paper, whole=True):
                halves = [f"{value:.6g}" for pair in (one.theirs, one.ours) for value in pair]
                rows.append((key, one.label, one.at, *halves, one.trials, one.verdict))
    return comma_separated(columns, rows)


def _overview(papers: Sequence[Paper], judged: Mapping[str, Sequence[JudgedNumber]]) -> Table:
    """One row per paper: how many of its numbers have which verdict, and the trials of ours and of the source."""
    rows = []
    for paper in papers:
        ones = judged[paper.key]
        counts = [sum(one.verdict == word for one in ones) for word in (SAME, DIFFERS, OPEN)]
        every, near = within(ones)
        last = _trials(paper, ones), paper.verdict
        rows.append([paper.name, f"`{paper.key}`", f"{near} of {every}", str(len(ones)), *map(str, counts), *last])
    return Table(("paper", "name", "within 5%", "lines", SAME, DIFFERS, OPEN, "trials", "reasons"), rows, range(2, 7))


def _trials(paper: Paper, ones: Sequence[JudgedNumber]) -> str:
    """The fewest and the most trials behind our numbers, and the runs of the source if they are known."""
    least, most = min(one.trials for one in ones), max(one.trials for one in ones)
    ours = str(least) if least == most else f"{least} to {most}"
    return f"{ours}, source {paper.runs}" if paper.runs else ours


def _paper(paper: Paper, found: Mapping[str, Outcome]) -> Iterator[Block]:
    yield Heading(paper.name)
    played = ", ".join(f"`driftwise run {key}`" for key in paper.specs)
    yield Text(f"{paper.setting}. Played by {played}.")
    for key in paper.specs:
        yield from (Picture(figure.key, f"{figure.title}.", f"{figure.title}.") for figure in found[key].figures)
    yield Text(f"**Where it differs.** {paper.reason}")


def _rest() -> Iterator[Block]:
    yield Heading("Sources and what is missing")
    yield Text(WHOLE)
    yield Heading("Your own policy")
    yield Text(OWN_POLICY)


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
