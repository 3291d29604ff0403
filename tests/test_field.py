"""The page of related papers, at small sizes: worlds, verdicts, errors in sources, and a user's own policy."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import driftwise as dw
from driftwise.cli import main
from driftwise.lab.field import board, page, slips
from driftwise.lab.field.papers import papers, published
from driftwise.lab.field.verdicts import DIFFERS, OPEN, SAME, JudgedNumber, judged_numbers, within
from driftwise.lab.paper.panels import built_in
from driftwise.lab.run.results import figures
from driftwise.lab.run.spec import parse


def test_cheungs_world_swings_as_its_formula_says():
    world = dw.worlds.Sine(arms=2, draw="basis", horizon=1000, waves=2.5 * 4)
    t = np.arange(1, 1001)
    wave = 0.3 * np.sin(5 * 4 * np.pi * t / 1000)
    np.testing.assert_allclose(world.theta(), np.stack([0.5 + wave, 0.5 - wave], axis=1), atol=1e-12)
    np.testing.assert_array_equal(next(iter(world.tapes())).arms[0], np.eye(2))
    assert world.S == pytest.approx(math.sqrt(0.8**2 + 0.2**2))
    grown = dw.worlds.Sine(arms=2, draw="basis", horizon=1000, power=1 / 3)
    np.testing.assert_allclose(grown.theta()[:, 0], 0.5 + 0.3 * np.sin(50 * np.pi * t / 1000), atol=1e-9)


def test_rare_noise_is_a_centred_coin_of_the_round():
    world = dw.worlds.Sine(arms=2, draw="basis", horizon=5000, noise=1.0, chance="rare")
    draws = np.concatenate([tape.draws for trial in range(4) for tape in world.tapes(0, trial)]).reshape(4, -1)
    share = 0.5 / np.arange(1, 5001)
    assert (np.isclose(draws, -share) | np.isclose(draws, 1 - share)).all()
    assert (draws[:, 1000:] > 0).mean() < 0.001 and world.facts["R"] == 0.5


def test_arms_in_the_disc_are_uniform_there_and_do_not_depend_on_the_stretch():
    world = dw.worlds.Turn(horizon=3000, fresh=True, draw="disc", norm="clip", arms=9)
    arms = np.concatenate([tape.arms for tape in world.tapes()])
    norms = np.sqrt((arms**2).sum(axis=1)).ravel()
    assert norms.max() <= 1.0
    assert np.mean(norms <= 0.5) == pytest.approx(0.25, abs=0.01)  # area grows with the square
    with pytest.raises(dw.BadInput, match="disc"):
        dw.worlds.Turn(draw="disc")
    with pytest.raises(dw.BadInput, match="basis"):
        dw.worlds.Turn(draw="basis")


def test_spread_scales_arms_before_they_are_clipped():
    wide, narrow = (
        np.concatenate([tape.arms for tape in dw.worlds.Still(horizon=9, fresh=True, norm="clip", spread=one).tapes()])
        for one in (1.0, 0.05)
    )
    inside = (wide * wide).sum(axis=1) < 1.0 - 1e-9
    assert 0.2 < inside.mean() < 0.6 and (narrow * narrow).sum(axis=1).max() < 1.0
    np.testing.assert_allclose(narrow.transpose(0, 2, 1)[inside], 0.05 * wide.transpose(0, 2, 1)[inside], rtol=1e-12)


def test_a_spec_can_hold_a_world_of_arrays_and_tells_two_of_them_apart():
    text = """
title = "arrays"
trials = 2
[world]
kind = "Given"
arms = [[1.0, 0.0], [0.0, 1.0]]
theta = [[1.0, 0.0], [0.0, {last}]]
[[policies]]
name = "OFUL"
"""
    one, same, other = (parse(text.replace("{last}", last), "arrays.toml") for last in ("1.0", "1.0", "0.5"))
    assert one.contests == same.contests and one.contests != other.contests
    assert one.contests[0][0].world.contents != other.contests[0][0].world.contents


def test_every_published_number_has_a_line_that_is_held_to_it():
    known = {entry for paper in papers().values() for name in paper.specs
             for entry in ((built_in(name).key, one.published) for one in built_in(name).entries)}  # fmt: skip
    assert not {key for key in published() if key not in known}
    assert len(papers()) == 7 and sum(map(len, published().values())) > 700


def test_a_verdict_is_same_when_intervals_meet():
    def verdict(ours, theirs, **more):
        return JudgedNumber("key", "label", 10, 5, ours, theirs, **more).verdict

    assert verdict((100.0, 2.0), (105.0, 3.0)) == SAME
    assert verdict((100.0, 2.0), (105.1, 3.0)) == DIFFERS
    assert verdict((100.0, math.inf), (105.0, 3.0)) == OPEN
    assert verdict((100.0, 2.0), (100.0, 3.0), surrogate=True) == OPEN


def test_a_published_number_counts_once_and_by_its_nearest_line():
    ones = [JudgedNumber("key", "line", at, 5, (ours, 1.0), (100.0, 0.0), published=name)
            for name, at, ours in (("A", 10, 96.0), ("A", 10, 150.0), ("A", 20, 94.0), ("B", 10, 104.0))]  # fmt: skip
    assert within(ones) == (3, 2) and within(ones, 0.1) == (3, 3)


def test_the_slips_are_there_and_their_repairs_differ():
    found = slips.source_errors()
    assert len(found) == 9 and all(one.printed != one.repaired for one in found)
    slipped, meant = slips.second_matrix()
    assert slipped > 1.5 * meant
    assert slips.flipped()[0] > 0.3 and slips.flipped()[1] < -0.9
    assert slips.shared_out()[0] < 1e-6 < 1e-3 < slips.shared_out()[1]
    many, few = slips.blind()
    assert many > 3.0 and few < 0.3


def test_published_russac_numbers_come_out_again():
    """Few trials, so intervals are wide; the page has 100."""
    spec = built_in("russac_abrupt")
    ((contest,),) = spec.contests
    for label, value in {"SW-UCB": 745, "LinUCB": 4170, "LinUCB restarted by an oracle": 155}.items():
        result = dw.simulate({label: contest.policies[label]}, contest.world, trials=6, record="last", progress=False)
        mean, half = result.interval(label)
        assert abs(mean - value) <= half + 0.02 * value + 15.0, label


OWN = """
import numpy as np

class Greedy:
    def __init__(self, dim, horizon):
        self.dim, self.horizon = dim, horizon
    def start(self, seed=0):
        return {"V": np.eye(self.dim), "b": np.zeros(self.dim)}
    def choose(self, state, arms):
        return int(np.argmax(arms @ np.linalg.solve(state["V"], state["b"])))
    def learn(self, state, arms, arm, reward):
        state["V"] += np.outer(arms[arm], arms[arm])
        state["b"] += reward * arms[arm]
"""


@pytest.mark.slow
def test_a_readers_policy_gets_a_rank_and_the_page(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--policy", "mine:Greedy", "--worlds", "russac2019", "--trials", "2", "--out", "board"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "Greedy" in said and "russac_slow" in said and " of " in said
    page = (tmp_path / "board" / "field.md").read_text(encoding="utf-8")
    assert "## Your policy" in page and "Greedy" in page


class Stubborn:
    def __init__(self, dim, secret=None):
        self.dim = dim

    def start(self, seed=0):
        return {}

    def choose(self, state, arms):
        return len(arms)

    def learn(self, state, arms, arm, reward):
        pass


@pytest.mark.parametrize(
    ("maker", "said"),
    [(Stubborn, "an arm from 0 to 49"), (lambda dim, secret: None, "secret"), (lambda dim: 3, "an object with start"),
     (lambda: 1 / 0, "ZeroDivisionError")],
)  # fmt: skip
def test_a_policy_that_cannot_play_is_refused_before_the_others_play(maker, said):
    with pytest.raises(dw.BadInput, match=said) as refused:
        board.rehearse(maker, "mine:Mine", [built_in("russac_slow")])
    assert "russac_slow" in str(refused.value) and "mine:Mine" in str(refused.value)


def test_a_policy_that_plays_is_rehearsed_in_every_world_of_a_paper():
    class Fine(Stubborn):
        heard: ClassVar = []

        def choose(self, state, arms):
            self.heard.append(arms.shape)
            return 0

    board.rehearse(Fine, "mine:Fine", [built_in("russac_slow"), built_in("cheung_b1")], rounds=2)
    assert Fine.heard == [(50, 2)] * 2 + [(2, 2)] * 16  # eight horizons


def test_a_policy_that_is_not_there_is_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--policy", "nowhere:Nothing", "--out", str(tmp_path)])
    assert "package:Policy" in capsys.readouterr().err


def test_a_difference_has_at_least_two_hypotheses_and_each_has_a_finding():
    findings = ("explains", "does not explain", "fitted", "fits", "likely", "repairs")
    for paper in papers().values():
        assert len(paper.tried) >= 2 or paper.surrogate or paper.verdict == "none", paper.key
        assert all(finding.startswith(findings) for _, _, finding in paper.tried), paper.key


def test_the_tables_beside_the_page_are_what_the_program_writes():
    """Those that need no trial; the page names each."""
    folder = Path(__file__).parents[1] / "docs" / "lab" / "field"
    specs = {name: SimpleNamespace(spec=built_in(name)) for paper in papers().values() for name in paper.specs}
    text = (folder / "index.md").read_text(encoding="utf-8")
    for name, (columns, rows) in page._beside(list(papers().values()), specs).items():
        assert (folder / name).read_bytes() == page.comma_separated(columns, rows), name
        assert name in text, name


def test_numbers_along_a_curve_are_judged_at_the_recorded_round_that_is_near():
    """All numbers that were read are judged, but for those far from a recorded round: round 2 of these curves."""
    spec = built_in("zhao_gradual")
    rounds = [500 * number for number in range(1, 101)]
    ours = {(0, entry.label): np.outer([1.0, 1.1], rounds) for entry in spec.entries}
    outcome = figures(spec, ours, dict.fromkeys(ours, np.zeros(1)))
    last, every = (list(judged_numbers(outcome, papers()["zhao2020"], whole=whole)) for whole in (False, True))
    assert len(last) == 4 and {one.at for one in last} == {49_504}
    assert len(every) == 4 * 33 and min(one.at for one in every) == 1502
    for one in every:
        assert one.ours[0] == pytest.approx(1.05 * one.at, rel=0.002) and one.trials == 2
