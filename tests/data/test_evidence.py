"""`driftwise evidence`: plays of a few hundred rows in each set's format, kept, resumed and told."""

import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from data import set_formats as formats
from driftwise.cli import app
from driftwise.data import sets
from driftwise.data.outcomes import Outcomes
from driftwise.errors import BadInput
from driftwise.experiments.evidence import plays, rows, run


@pytest.fixture
def small(monkeypatch, tmp_path):
    """All sets, small."""
    for name in sets.SETS:
        formats.small(monkeypatch, tmp_path / "packages", name)
    return tmp_path / "out"


def gathered(folder, only=(), draws=2):
    return run.evidence(only, folder, draws, command="driftwise evidence", who=cheap, progress=False)


def cheap(one):
    """Static and persistence alone."""
    found = run.ours(one)
    return {name: found[name] for name in (plays.STATIC, plays.PERSISTENCE)}


def test_every_set_gets_its_rows_and_its_terms(small, monkeypatch):
    monkeypatch.setattr(run.page, "can_draw", lambda: False)
    found = gathered(small, draws=1)
    assert list(found["sets"]) == list(sets.SETS)
    assert json.loads((small / "results.json").read_text()) == found
    page = (small / "evidence.md").read_text()
    for name, one in found["sets"].items():
        assert [row["policy"] for row in one["rows"]] == ["static", "persistence"]
        assert f"## {name}" in page
        assert one["terms"].split(";")[0] in page


def test_the_command_plays_auto_half_lives_and_static(small):
    told = CliRunner().invoke(app, ["evidence", "--only", "tafeng", "--draws", "2", "--out", str(small)])
    assert told.exit_code == 0, told.output
    found = json.loads((small / "results.json").read_text())["sets"]["tafeng"]
    names = [row["policy"] for row in found["rows"]]
    assert names == ["static", *(f"half-life {n}" for n in plays.HALF_LIVES), "Auto", "Auto, clicks", "persistence"]
    auto = found["rows"][names.index("Auto")]
    assert auto["draws"] == 2
    assert auto["shuffled_less_static"] is not None
    assert auto["over_time"] is not None
    assert "Auto, clicks" in told.output
    assert {path.name for path in (small / "figures").iterdir()} == {"tafeng.svg", "tafeng-narrow.svg", "tafeng.png"}


def test_what_was_played_is_not_played_again_until_its_digest_changes(small, monkeypatch):
    first, asked, whole = gathered(small, ["elec2"]), [], plays.Plays.play

    def play(self, who, name, *more):
        asked.append(name)
        whole(self, who, name, *more)

    monkeypatch.setattr(plays.Plays, "play", play)
    assert gathered(small, ["elec2"]) == first
    assert not asked
    real = plays._ours
    monkeypatch.setattr(plays, "_ours", lambda name, policy: plays.Contender("another", real(name, policy).play))
    assert gathered(small, ["elec2"]) == first
    assert set(asked) == {plays.STATIC}


def test_a_change_of_auto_does_not_play_static_again(monkeypatch):
    before, real = plays.contenders(3, True), plays.source_hash

    def changed(*within, without=()):
        return real(*within, without=without) + (" changed" if "policies" in within and not without else "")

    monkeypatch.setattr(plays, "source_hash", changed)
    after = plays.contenders(3, True)
    assert {name for name in before if before[name].digest != after[name].digest} == {plays.AUTO, plays.CLICKS}


def test_a_set_that_cannot_be_fetched_is_a_row_that_says_so(small, monkeypatch, capsys):
    def no(name, pin):
        raise BadInput(name, "no network", "the file", "go online")

    monkeypatch.setattr(sets.shops, "data", no)
    found = gathered(small, ["retail", "elec2"])
    assert "go online" in found["missing"]["retail"]
    assert list(found["sets"]) == ["elec2"]
    assert "retail: not played" in (small / "evidence.md").read_text()
    assert "go online" in capsys.readouterr().err


def test_intervals_are_of_paired_differences():
    def play(*reward):
        return plays.Play(np.array(reward), np.full(len(reward), math.nan), np.ones((len(reward), 1)))

    static, better = [play(0.1, 0.2), play(0.5, 0.6)], [play(0.2, 0.3), play(0.6, 0.7)]
    one = rows.rows({"static": static, "Auto": better}, {})[1]
    assert one.reward == pytest.approx(0.45)
    assert one.less_static == pytest.approx(0.1)
    assert one.over_draws == pytest.approx(0.0, abs=1e-12)
    assert one.to_dict()["shuffled"] is None


def test_the_story_names_the_change_when_auto_noticed_and_what_it_cost():
    paid = np.zeros((20, 2))
    paid[:10, 0] = paid[10:, 1] = 1.0
    facts = plays.Facts(200, 2, ("a", "b"), paid, 1.0)
    moved = np.where(np.arange(20)[:, np.newaxis] < 13, [1.0, 0.0], [0.0, 1.0])
    auto = plays.Play((moved * paid).sum(axis=1), np.full(20, 50.0), moved)
    static = plays.Play(paid[:, 0], np.full(20, math.inf), np.tile([1.0, 0.0], (20, 1)))
    one = rows.story(facts, {"Auto": [auto], "static": [static]})
    assert (one.at, one.before, one.after, one.noticed) == (10, "a", "b", 13)
    assert one.cost == pytest.approx(30.0)  # three stretches of ten rounds
    assert one.saved == pytest.approx(70.0)


def test_persistence_repeats_what_paid():
    log = Outcomes(arms=np.eye(2), rewards=[[0, 1], [0, 1], [0, 1], [1, 0], [1, 0]])
    np.testing.assert_array_equal(plays._persistence(log).reward, [0, 1, 1, 0, 1])
    turns = Outcomes(arms=np.eye(2), rewards=[[0, 1], [1, 0], [0, 1], [0, 1], [0, 1]])
    np.testing.assert_array_equal(plays._persistence(turns).reward, [0, 0, 0, 1, 1])  # of two that failed, the other


@pytest.fixture(scope="module")
def bench():
    """bench/evidence.py, which is not part of the package."""
    path = Path(__file__).parents[2] / "bench" / "evidence.py"
    spec = importlib.util.spec_from_file_location("bench_evidence", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules[spec.name]


def test_rivals_see_the_one_context_that_all_arms_share(bench, monkeypatch, tmp_path):
    formats.small(monkeypatch, tmp_path, "elec2")
    log = sets.elec2()
    context = bench.context_of(log.reordered(1))
    assert context.shape == (log.rounds, log.dim // 2)
    np.testing.assert_array_equal(context, log._sets[:, 0, : log.dim // 2])
    formats.small(monkeypatch, tmp_path, "tafeng")
    assert (bench.context_of(sets.tafeng()) == 1.0).all()


def test_a_rival_plays_in_a_process_of_its_own_and_is_named_where_it_is_best(bench, small, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "environment", lambda rival, folder: sys.executable)
    everyone = bench.everyone(tmp_path, ["LiteLLM"])

    def few(one):
        played = ("static", "half-life 125", "LiteLLM: tier 2", "LiteLLM: tier 1")
        return {name: who for name, who in everyone(one).items() if name in played}

    results = run.evidence(["tafeng"], small, 1, command="bench", who=few, progress=False)
    names = [row["policy"] for row in results["sets"]["tafeng"]["rows"]]
    assert names[-2:] == ["LiteLLM: tier 2", "LiteLLM: tier 1"]
    lines = bench.hindsight(results).splitlines()
    assert lines[2].startswith("| tafeng |")
    assert "| LiteLLM: tier" in lines[2]
    assert "not played" in lines[2]
