"""`driftwise evidence`: plays of a few hundred rows in each set's format, stored, resumed and reported."""

import argparse
import dataclasses
import errno
import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from data import set_formats as formats
from driftwise.cli import app, main
from driftwise.data.outcomes import Outcomes, backtest, block_means
from driftwise.errors import BadInput
from driftwise.lab import sets
from driftwise.lab.evidence import plays, rows, run
from driftwise.policies.auto import Auto
from driftwise.policies.half_life import convert_memory
from driftwise.policies.memory import Fade, Keep


@pytest.fixture
def small(monkeypatch, tmp_path):
    """All sets, small."""
    for name in sets.SETS:
        formats.small(monkeypatch, tmp_path / "packages", name)
    return tmp_path / "out"


def gathered(folder, only=(), draws=2):
    return run.evidence(only, folder, draws, command="driftwise evidence", who=cheap, progress=False)


def cheap_of(ours):
    """Static and persistence alone."""
    return lambda one: {name: who for name, who in ours(one).items() if name in (plays.STATIC, plays.PERSISTENCE)}


cheap = cheap_of(run.ours)


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


@pytest.mark.parametrize(
    "words", [("evidence", "--only", "nosuch"), ("evidence", "--draws", "0"), ("reproduce", "lb", "--jobs", "0"),
              ("reproduce", "lb", "--on", "nowhere"), ("reproduce", "lb", "--tls", "keys")],
)  # fmt: skip
def test_a_command_that_is_refused_makes_no_folder(tmp_path, words):
    told = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert told.exit_code != 0 and not list(tmp_path.iterdir())


def test_the_command_plays_auto_half_lives_and_static(small):
    told = CliRunner().invoke(app, ["evidence", "--only", "tafeng", "--draws", "2", "--out", str(small)])
    assert told.exit_code == 0, told.output
    found = json.loads((small / "results.json").read_text())["sets"]["tafeng"]
    names = [row["policy"] for row in found["rows"]]
    assert names == ["static", *(f"half-life {n}" for n in plays.HALF_LIVES), "Auto", "Auto, clicks", "persistence"]
    assert {row["part"] for row in found["rows"]} == {1.0}
    auto = found["rows"][names.index("Auto")]
    assert auto["draws"] == 2
    assert auto["shuffled_less_static"] is not None
    assert auto["over_time"] is not None
    assert "Auto, clicks" in told.output
    drawn = {path.name for path in (small / "figures").iterdir()}
    assert drawn >= {"tafeng.svg", "tafeng-narrow.svg", "tafeng.png"}
    assert ("tafeng-change.svg" in drawn) == (found["story"] is not None)


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


def test_a_change_of_policies_plays_all_of_them_again_and_nothing_else(monkeypatch):
    before, real = plays.contenders(3, True), plays.source_hash

    def changed(*within, without=()):
        return real(*within, without=without) + (" changed" if "policies" in within else "")

    monkeypatch.setattr(plays, "source_hash", changed)
    after = plays.contenders(3, True)
    assert {name for name in before if before[name].digest == after[name].digest} == {plays.PERSISTENCE}


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
    assert one.lost == pytest.approx(30.0)
    assert one.static_lost == pytest.approx(100.0)


def test_the_figure_of_a_change_is_drawn(tmp_path):
    paid = np.zeros((20, 2))
    paid[:10, 0] = paid[10:, 1] = 1.0
    facts, moved = plays.Facts(200, 2, ("a", "b"), paid, 1.0), np.tile([0.5, 0.5], (20, 1))
    both = {name: [plays.Play(np.full(20, 0.5), np.full(20, 50.0), moved)] for name in ("Auto", "static")}
    found = run.page.PlayedSet("made", "A set.", "None.", facts, rows.rows(both, {}), both, rows.story(facts, both))
    run.page.write([found], {}, tmp_path, "driftwise evidence")
    assert {path.name for path in (tmp_path / "figures").glob("made-change*")} == {
        "made-change.svg", "made-change.png", "made-change-narrow.svg",
    }  # fmt: skip
    assert "made-change" in (tmp_path / "evidence.md").read_text()


def test_persistence_repeats_what_paid():
    log = Outcomes(arms=np.eye(2), rewards=[[0, 1], [0, 1], [0, 1], [1, 0], [1, 0]])
    np.testing.assert_array_equal(plays._persistence(log).reward, [0, 1, 1, 0, 1])
    turns = Outcomes(arms=np.eye(2), rewards=[[0, 1], [1, 0], [0, 1], [0, 1], [0, 1]])
    np.testing.assert_array_equal(plays._persistence(turns).reward, [0, 0, 0, 1, 1])  # the other one of two that failed


def test_numbers_are_those_of_a_plain_backtest(small, monkeypatch):
    """Every set at a small size: rewards, differences and both intervals equal those of `dw.backtest`."""
    monkeypatch.setattr(run.page, "can_draw", lambda: False)

    def two(one):
        found = run.ours(one)
        return {name: found[name] for name in (plays.STATIC, plays.HALF_LIFE)}

    found = run.evidence((), small, 2, command="driftwise evidence", who=two, progress=False)
    for name, one in found["sets"].items():
        listed = sets.SETS[name]
        logs = [listed.draw(seed).reordered(seed) for seed in range(2)]
        dim, half = logs[0].dim, Fade(convert_memory(2000, "half_life", "forget"))
        policies = {"static": Auto(dim=dim, memory=Keep()), "fade": Auto(dim=dim, memory=half)}
        played = [backtest(policies, log, seed=seed) for seed, log in enumerate(logs)]
        mixed = [backtest(policies, log.shuffled(seed), seed=seed) for seed, log in enumerate(logs)]
        static, fade = one["rows"]
        blocks = [block_means(play.rewards["static"], plays.STRETCHES) for play in played]
        assert static["reward"] == pytest.approx(np.mean(blocks))
        apart = np.array([block_means(play.rewards["fade"], plays.STRETCHES) for play in played]) - blocks
        assert fade["less_static"] == pytest.approx(apart.mean(), abs=1e-12)
        a, b = apart.mean(axis=1)
        assert fade["over_draws"] == pytest.approx(12.7062 * abs(a - b) / 2, rel=1e-5, abs=1e-12)
        others = [block_means(play.rewards["static"], plays.STRETCHES) for play in mixed]
        assert static["shuffled"] == pytest.approx(np.mean(others))


def test_only_the_best_of_a_grid_plays_all_draws(small):
    asked = []

    def contender(name, reward, **more):
        def play(log, seed):
            asked.append((name, seed))
            return plays.Play(np.full(4, reward), np.full(4, math.nan), np.ones((4, 1)))

        return plays.Contender(name, play, shuffled=False, **more)

    def who(one):
        return {
            "static": contender("static", 0.1), "usual": contender("usual", 0.2, grid="g"),
            "good": contender("good", 0.4, grid="g", default=False),
            "poor": contender("poor", 0.3, grid="g", default=False),
        }  # fmt: skip

    found = run.evidence(["elec2"], small, 4, command="bench", who=who, progress=False)
    assert {row["policy"]: row["draws"] for row in found["sets"]["elec2"]["rows"]} == {
        "static": 4, "usual": 4, "good": 4, "poor": plays.SCOUTS,
    }  # fmt: skip
    assert len(asked) == len(set(asked)) == 14


def test_a_run_that_is_interrupted_or_finds_no_space_goes_on_where_it_was(small, monkeypatch, tmp_path, capsys):
    whole = gathered(tmp_path / "whole", ["elec2", "flights"])
    real, count = plays.Plays.play, 0

    def third(self, *more):
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        real(self, *more)

    monkeypatch.setattr(plays.Plays, "play", third)
    with pytest.raises(KeyboardInterrupt):
        gathered(small, ["elec2", "flights"])
    monkeypatch.setattr(plays.Plays, "play", real)

    def full(target, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as other:
        other.setattr(plays, "keep", full)
        with pytest.raises(SystemExit):
            main(["evidence", "--only", "elec2", "--draws", "2", "--out", str(small)])
    assert "No space left" in capsys.readouterr().err
    assert len(list(small.glob("plays/elec2/*-time-*.npz"))) == 2  # those from before the interrupt, complete
    assert gathered(small, ["elec2", "flights"]) == whole


@pytest.fixture(scope="module")
def bench():
    """bench/evidence.py, which is not part of the package."""
    path = Path(__file__).parents[2] / "bench" / "evidence.py"
    spec = importlib.util.spec_from_file_location("bench_evidence", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(made)
    sys.path.remove(str(path.parent))
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


def only(everyone, *names):
    """Only these contenders."""
    return lambda one: {name: who for name, who in everyone(one).items() if name in names}


def test_a_rival_plays_in_a_process_of_its_own_and_is_named_where_it_is_best(bench, small, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "environment", lambda rival, folder: sys.executable)
    who = only(bench.everyone(tmp_path, ["LiteLLM"]), "static", "half-life 125", "LiteLLM: tier 2", "LiteLLM: tier 1")
    results = run.evidence(["tafeng"], small, 1, command="bench", who=who, progress=False)
    names = [row["policy"] for row in results["sets"]["tafeng"]["rows"]]
    assert names[-2:] == ["LiteLLM: tier 2", "LiteLLM: tier 1"]
    results["rivals"] = {name: {"needs": [], "settings": ["a"], "failed": None} for name in ("LiteLLM", "MABWiser")}
    line = bench.evidence_table.rewards(results)[2]
    assert line.startswith("| tafeng, 105 |")
    assert "| LiteLLM: tier" in line
    assert "| not played |" in line


def test_a_slow_rival_is_compared_with_static_on_the_rounds_that_it_played(bench, small, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "environment", lambda rival, folder: sys.executable)
    slow = dataclasses.replace(bench.RIVALS["LiteLLM"], most=40, settings={"tier 2": {}})
    monkeypatch.setitem(bench.RIVALS, "LiteLLM", slow)
    who = only(bench.everyone(tmp_path, ["LiteLLM"]), "static", "LiteLLM: tier 2")
    found = run.evidence(["elec2"], small, 1, command="bench", who=who, progress=False)["sets"]["elec2"]
    static, rival = found["rows"]
    rounds = plays.first_rounds(found["rounds"], 40)
    assert rounds <= 40 and rival["part"] == pytest.approx(rounds / found["rounds"], rel=0.05)
    one = plays.Plays("elec2", sets.SETS["elec2"], small)
    played = one.read("static", run.ours(one)["static"].digest, False, [0])[0].reward
    count = round(rival["part"] * len(played))
    assert rival["less_static"] == pytest.approx(rival["reward"] - played[:count].mean())
    assert static["part"] == 1.0
    few = dataclasses.replace(slow, pairs=40)  # of a round and one of two arms
    assert few.rounds(sets.elec2()) == plays.first_rounds(found["rounds"], 20)


def test_a_rival_that_fails_is_a_row_that_says_so(bench, small, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "environment", lambda rival, folder: sys.executable)
    monkeypatch.setattr(bench.run, "ours", cheap_of(bench.run.ours))
    monkeypatch.setattr(bench.run.page, "can_draw", lambda: False)
    asked = argparse.Namespace(rivals=True, only=["elec2"], draws=1, out=small, envs=tmp_path)
    broken = dataclasses.replace(bench.RIVALS["LiteLLM"], settings={"tier 9": {"tier": 9}})
    monkeypatch.setitem(bench.RIVALS, "LiteLLM", broken)
    results = bench.gathered(asked, ["LiteLLM"])
    assert results["rivals"]["LiteLLM"]["failed"].startswith("KeyError: 9")
    assert json.loads((small / "results.json").read_text()) == results
    assert "| failed |" in (small / "table.md").read_text()
    assert "LiteLLM: left out: KeyError: 9" in capsys.readouterr().err


def test_the_best_rival_is_named_also_where_it_is_not_us(bench):
    def row(policy, reward, draws=8, part=1.0):
        less = reward - 0.5
        return {
            "policy": policy, "reward": reward, "draws": draws, "part": part, "less_static": less, "over_draws": 0.01,
            "over_time": 0.02, "shuffled": 0.5, "shuffled_less_static": less, "shuffled_over_draws": 0.0,
            "less_auto": reward - 0.6,
        }  # fmt: skip

    rows = [row("static", 0.5), row("Auto", 0.6), row("half-life 500", 0.9, draws=2), row("half-life 2000", 0.7),
            row("VW: default", 0.4), row("VW: b", 0.65), row("VW: c", 0.8, draws=2), row("river: slow", 0.55, part=0.1)]
    rivals = {name: {"needs": [f"{name}==1"], "settings": ["a", "b"], "failed": None} for name in ("VW", "river")}
    made = {"made": {"rounds": 1000, "rows": rows}}
    results = {"sets": made, "missing": {"gone": "no network"}, "rivals": rivals}
    table = bench.evidence_table
    _, _, line, gone = table.rewards(results)
    assert line == ("| made, 1,000 | 8 | 0.5000 | 0.6000 |  | 0.7000, 2000 |  | 0.4000 / 0.6500 "
                    "| 0.5500 on the first 10.0% (static 0.5000) | VW: b | VW |")  # fmt: skip
    assert gone.startswith("| gone | not played: no network |")
    assert table.differences(results)[2].endswith("| +0.1500 ± 0.0100 ± 0.0200: VW: b | +0.0500 |")
    assert table.controls(results)[2] == "| made | 0.5000 | +0.1000 ± 0.0000 |  | +0.2000 ± 0.0000 |"
    rows[-1] = row("river: slow", 0.9, part=0.1)
    assert table.rewards(results)[2].endswith("| VW: b; on the first 10.0% river: slow | VW |")


def test_a_rival_with_few_draws_is_compared_with_auto_on_these(bench, small, monkeypatch, tmp_path):
    def contender(name, *rewards):
        def play(log, seed):
            return plays.Play(np.full(4, rewards[seed]), np.full(4, math.nan), np.ones((4, 1)))

        return plays.Contender(name, play, shuffled=False, grid=name.split(": ")[0] if ": " in name else "")

    def who(one):
        return {"static": contender("static", 0.1, 0.5), "Auto": contender("Auto", 0.4, 0.6),
                "LiteLLM: tier 2": contender("LiteLLM: tier 2", 0.35, 0.0)}  # fmt: skip

    monkeypatch.setattr(run.page, "can_draw", lambda: False)
    run.evidence(["flights"], small, 2, command="bench", who=who, progress=False)
    next(small.glob("plays/flights/LiteLLM*-time-1.npz")).unlink()  # it keeps the draw on which static is poor
    monkeypatch.setattr(plays.Plays, "missing", lambda *_: iter(()))
    results = run.evidence(["flights"], small, 2, command="bench", who=who, progress=False)
    monkeypatch.setattr(bench, "everyone", lambda envs, chosen: who)
    bench.add_less_ours(results, argparse.Namespace(out=small, draws=2, envs=tmp_path), ["LiteLLM"])
    rows = {row["policy"]: row for row in results["sets"]["flights"]["rows"]}
    auto, rival = rows["Auto"], rows["LiteLLM: tier 2"]
    assert (auto["less_static"], rival["less_static"]) == pytest.approx((0.2, 0.25))
    assert rival["less_auto"] == pytest.approx(-0.05)
    assert bench.evidence_table.best_of_all(rows, rival) == "Auto"


@pytest.fixture(scope="module")
def page(bench):
    """docs/lab/evidence.md and the results from which its tables are made."""
    docs = Path(__file__).parents[2] / "docs" / "lab"
    results = json.loads((docs / "evidence.json").read_text(encoding="utf-8"))
    return (docs / "evidence.md").read_text(encoding="utf-8"), results


def test_the_tables_of_the_page_are_those_of_its_results(bench, page):
    text, results = page
    kept = (Path(__file__).parents[2] / "docs" / "lab" / "evidence-tables.txt").read_text(encoding="utf-8")
    assert kept == bench.evidence_table.tables(results), "keep what bench/evidence_table.py prints"
    shown = bench.evidence_table.marked("summary", bench.evidence_table.summary(results))
    assert shown in text and shown in kept, "paste its summary"
    assert set(results["sets"]) | set(results["missing"]) == set(sets.SETS)
    assert set(results["rivals"]) == set(bench.RIVALS)
    for name, one in results["sets"].items():
        assert one["terms"] == sets.SETS[name].terms
