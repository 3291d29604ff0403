"""The paper side by side: verdicts follow from numbers, and the page holds all that it should."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from driftwise.experiments import claims, paper
from driftwise.experiments.claims import NO, OPEN, YES, Measured, below, decide
from driftwise.experiments.results import figures
from driftwise.experiments.theorems import THEOREMS, Problem


def outcome(name, value, trials=8):
    """An outcome of a built-in spec whose regret is value(figure, label, place, trial) at the end."""
    spec = paper.built_in(name).repeated(trials, None)
    regret, seconds = {}, {}
    for number, points in enumerate(spec.points):
        for entry in spec.entries:
            count = spec.trials_of(entry)
            places = range(len(points))
            ends = [[value(number, entry.label, place, trial) for place in places] for trial in range(count)]
            width = 1 if spec.sweeps else len(spec.rounds_of(points[0].world))
            regret[number, entry.label] = np.repeat(np.array(ends, dtype=float), width, axis=1)
            seconds[number, entry.label] = np.full(count, 0.001)
    return figures(spec, regret, seconds)


def test_a_verdict_needs_the_whole_interval():
    clear, unclear = np.array([-3.0, -2.0, -3.0, -2.5]), np.array([-3.0, 2.0, -1.0, 1.5])
    assert (decide(clear), decide(-clear), decide(unclear)) == (YES, NO, OPEN)
    assert decide(np.array([-5.0])) == OPEN, "one trial has no interval"
    assert decide(clear + 10.0, limit=10.0) == YES


def test_differences_are_paired_and_use_the_trials_that_both_have():
    # Trials differ by hundreds and the two by one: only pairing can tell.
    found = Measured([outcome("pw_s1", lambda _, label, place, trial: 100.0 * trial + (label == "LogUCB1"))])
    assert len(found.line("PW_S1", "SCB-PW-WeightUCB").final) < len(found.line("PW_S1", "LogUCB1").final)
    claim = below(found, "", ("PW_S1", "SCB-PW-WeightUCB"), ("PW_S1", "LogUCB1"))
    assert claim.verdict == YES and "difference \N{MINUS SIGN}1 ± 0" in claim.numbers
    assert claim.command == "`driftwise run pw_s1 --trials 8`"


def growing(power, wobble=0.001):
    """All three growth specs with regret value**power."""
    def value(name):
        points = paper.built_in(name).points

        def at(number, label, place, trial):
            world = points[number][place].world
            family = "PW" if name == "growth_pw" else "LB"
            problem = claims._problem(family, world)
            quantity = (problem.horizon, problem.drift, problem.dim)[number]
            return quantity**power * (1.0 + wobble * (-1) ** trial * place)
        return at

    return Measured([outcome(name, value(name)) for name in paper.GROWTH])


@pytest.mark.parametrize(("power", "verdicts"), [(0.2, {YES}), (0.76, {YES, OPEN}), (0.95, {OPEN})])
def test_slopes_are_those_of_the_data(power, verdicts):
    rows = claims.slopes(growing(power))
    assert len(rows) == 12 and {row.verdict for row in rows} == verdicts
    assert [row.quantity for row in rows] == ["T", "P_T", "d"] * 3 + ["T", "Γ_T", "d"]
    for row in rows:
        assert row.measured[0] == pytest.approx(power, abs=0.02)
        if power == 0.76:
            assert row.verdict == (YES if row.theory + claims.SLACK >= power + row.measured[1] else OPEN)


def test_regret_above_a_bound_is_not_reproduced():
    rows = claims.slopes(growing(4.0))
    assert any(row.verdict == NO for row in rows)


def test_a_bound_is_reproduced_only_where_it_says_something():
    names = ("lb", "growth_lb", "glb_s1", "glb_s5", "scb_s1", "scb_s5", "pw_s1", "pw_s5")
    small = claims.bounds(Measured([outcome(name, lambda *_: 1000.0) for name in names]))
    assert [row.verdict for row in small] == [OPEN, YES] + [OPEN] * 6
    assert small[0].informative == 383015 and small[0].trivial == 12000.0
    large = claims.bounds(Measured([outcome(name, lambda *_: 1e12) for name in names]))
    assert {row.verdict for row in large} == {NO}


@pytest.mark.parametrize("family", THEOREMS)
def test_the_bounds_grow_as_table_1_says(family):
    """At sizes where logarithms no longer matter the theorem's own tuning gives the exponents of Table 1."""
    theorem, powers = THEOREMS[family], {"T": "horizon", "drift": "drift"}
    base = Problem(dim=2, horizon=1e40, drift=3.0)
    for quantity, field in powers.items():
        large = dataclasses.replace(base, **{field: getattr(base, field) * 1e4})
        slope = math.log(theorem.at(large) / theorem.at(base)) / math.log(1e4)
        assert slope == pytest.approx(theorem.exponents[quantity], abs=0.03), quantity
    assert theorem.at(Problem(dim=2, horizon=2.0, drift=100.0)) == math.inf


pytest.importorskip("matplotlib")


def test_the_page_holds_every_panel_claim_and_table(report):
    html, text = ((report / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    pictures = re.findall(r"!\[[^\]]*\]\((figures/[^)]+\.png)\)", text)
    assert len(pictures) == len(set(pictures)) == 21 == html.count("<figure>")
    for picture in pictures:
        for ending in (".png", ".svg", "-narrow.svg"):
            assert (report / (picture[:-4] + ending)).stat().st_size > 1000
    for word in (
        "LB-WeightUCB is over 1.5 times faster than D-LinUCB", "MASTER with n = 0", "S = 5: SCB-WeightUCB",
        "S = 1: the weighted GLB-WeightUCB outperforms the static GLM-UCB", "Slips of the sources", "Theorem 4",
        "growth_clicks", "norms of the arms", "LB: arm norms", "GLB, S = 5: noise told", "SCB, S = 1: confidence",
    ):  # fmt: skip
        assert word in text, word
    rows = [line for line in text.splitlines() if re.search(r"\| (reproduced|not reproduced|cannot be told) \|", line)]
    assert len(rows) == 1 + 28 + 12 + 8
    assert sum("`driftwise run " in row for row in rows) == 28 + 12 + 8
    assert "--trials 2" in rows[-1]
    for forbidden in ("<script", "<link", "@import", "url(http", "nan", "None"):
        assert forbidden not in re.sub(r"base64,[^\"]*", "", html), forbidden


def test_what_the_folder_holds_can_be_read_back(report):
    summary = json.loads((report / "summary.json").read_text(encoding="utf-8"))
    assert [panel["panel"] for panel in summary["panels"]] == [paper.built_in(name).key for name in paper.ALL]
    assert {path.stem for path in (report / "specs").glob("*.toml")} == {panel["panel"] for panel in summary["panels"]}
