"""Numbers on pages equal those that the named command prints today. Commands that take minutes are in the slow suite.

Seconds and ratios of seconds are not compared: they depend on the machine.
"""

import csv
import re
import sys
from pathlib import Path

import pytest

import driftwise as dw
from driftwise.lab.paper import panels

ROOT = Path(__file__).resolve().parent.parent
SLOW = pytest.mark.slow


@pytest.fixture
def bench(monkeypatch):
    """Programs of bench/ by name."""
    monkeypatch.syspath_prepend(ROOT / "bench")
    sys.path_importer_cache.pop(str(ROOT / "bench"), None)
    return lambda name: __import__(name)


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def table(text, first):
    """The first table with a row that begins so: the cells of each row by its first cell."""
    for found in re.findall(r"(?:^\|.*\|\n)+", text, flags=re.M):
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()[2:]]
        if first in (row[0] for row in cells):
            return {row[0]: row[1:] for row in cells}
    raise AssertionError(f"no table has a row {first}")


@pytest.mark.parametrize(
    "name", ["lb", "lb_probe", *(pytest.param(one, marks=SLOW) for one in ("glb_s1", "glb_s5", "scb_s1", "scb_s5"))]
)
def test_the_reports_panel_is_what_a_run_of_its_spec_gives(name):
    spec = panels.built_in(name)
    ((contest,),) = spec.contests
    told = {row[0]: row[1:] for row in csv.reader(page(f"lab/report/{spec.key}.csv").splitlines()[1:])}
    for entry in spec.entries:
        policies, trials = {entry.label: contest.policies[entry.label]}, spec.trials_of(entry)
        found = dw.simulate(policies, contest.world, trials=trials, seed=spec.seed, record="last", progress=False)
        final, (mean, half) = found.final(entry.label), found.interval(entry.label)
        seen = [str(trials), f"{mean:.0f} ± {half:.0f}", f"{final.min():.0f}–{final.max():.0f}"]
        assert told[entry.label][:3] == seen, entry.label
    assert set(told) == {entry.label for entry in spec.entries}


WORLDS = ("one turn", "3 jumps", "still, d=5, quiet")


@pytest.mark.parametrize("worlds", [WORLDS, pytest.param(None, marks=SLOW)], ids=["some", "all"])
def test_what_Auto_loses_is_what_its_page_says(bench, worlds):
    every, told = bench("drifts").linear_worlds(), bench("unknown_drift").told
    lines = table(page("lab/unknown-drift/values.txt"), "one turn")
    assert {name for name in lines if not name.startswith("**")} == set(every)
    for name in worlds or every:
        world = every[name]
        policies = {
            "Auto": dw.make("Auto", dim=world.dim), "bank": dw.make("Bank+LB-WeightUCB", **told(world)),
            "tuned": dw.make("LB-WeightUCB", **world.facts),
        }  # fmt: skip
        found = dw.simulate(policies, world, trials=20, seed=0, record="last", progress=False)
        assert lines[name][:3] == [f"{found.final(one).mean():.0f}" for one in policies], name


@pytest.mark.slow
def test_the_late_product_loses_what_the_page_of_measurements_says(bench, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["product.py"])
    bench("product").main()
    printed = dict(line.split(":") for line in capsys.readouterr().out.strip().splitlines())
    told = [value for (value,) in table(page("lab/measured.md"), "rewards at once").values()]
    assert told == sorted((value.strip() for value in printed.values()), key=float)


@pytest.mark.slow
def test_as_many_arms_are_scored_as_the_page_on_lazy_rounds_says(bench, capsys):
    bench("rounds").shares(32, 1000, 800)
    ours, simple = re.findall(r"([\d.]+)%", capsys.readouterr().out)
    told = f"{ours}% of the arms are scored in a round; with 1. and the cap alone {simple}% would be"
    assert told in page("lab/lazy.md")
