"""Experiments as data: what a spec says is what is run, and a wrong one gets one sentence with its line."""

from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise.cli import main
from driftwise.errors import BadInput
from driftwise.lab.field.papers import papers, published
from driftwise.lab.paper import panels
from driftwise.lab.paper.published import published_curves
from driftwise.lab.run.spec import load, parse

GOOD = """\
# A comment, so that lines are not counted from the first field.
title = "Mine"
trials = 3
seed = 7
notes = [
    "one",
    "two",
]

[world]
kind = "Turn"
horizon = 200
turns = 0.5

[[policies]]
name = "LB-WeightUCB"

[[policies]]
name = "LB-WeightUCB"
label = "by hand"
memory = { kind = "Fade", forget = 0.05 }
lam = 1.0
trials = 2

[[policies]]
name = "MASTER+OFUL"
n0 = 3
test_scale = inf
"""


def test_a_spec_makes_what_it_says():
    spec = parse(GOOD, "mine.toml")
    assert (spec.key, spec.trials, spec.seed, spec.notes) == ("mine", 3, 7, ("one", "two"))
    ((contest,),) = spec.contests
    assert contest.world == dw.worlds.Turn(horizon=200, turns=0.5)
    assert contest.policies["LB-WeightUCB"] == dw.make("LB-WeightUCB", **contest.world.facts)
    by_hand = contest.policies["by hand"]
    assert by_hand.memory == dw.Fade(0.05) and by_hand.lam == 1.0
    assert [spec.trials_of(entry) for entry in spec.entries] == [3, 2, 3]


def test_a_sweep_changes_the_world_or_what_is_told():
    text = GOOD + (
        '\n[[sweep]]\nover = "world.turns"\nvalues = [0.0, 2.0]\n'
        '\n[[sweep]]\nover = "policies.path_length"\nvalues = [0.5, 2.0]\ntimes = true\n'
    )
    spec = parse(text, "mine.toml")
    turns, told = spec.contests
    assert [contest.world.turns for contest in turns] == [0.0, 2.0]
    truth = told[0].world.path_length
    assert {contest.world.turns for contest in told} == {0.5}
    for contest, factor in zip(told, (0.5, 2.0), strict=True):
        wanted = dw.make("LB-WeightUCB", **{**contest.world.facts, "path_length": factor * truth})
        assert contest.policies["LB-WeightUCB"] == wanted


WRONG = [
    # what to replace, by what, the line it must name, a word of the sentence
    ('title = "Mine"', 'titel = "Mine"', 2, "titel"),
    ('title = "Mine"', "title = 3", 2, "title"),
    ("trials = 3", "trials = 0", 3, "trials"),
    ("trials = 3", 'trials = "many"', 3, "trials"),
    ("seed = 7", "seed = -1", 4, "seed"),
    ("seed = 7", "seed = 7\nrecord = 0", 5, "record"),
    ("seed = 7", 'seed = 7\nkey = "a/b"', 5, "key"),
    ('    "two",\n]', '    "two"\n', 10, "TOML"),
    ('kind = "Turn"', 'kind = "Trun"', 11, "Turn"),
    ('kind = "Turn"', "", 10, "kind"),
    ("horizon = 200", "horizont = 200", 12, "horizont"),
    ("horizon = 200", "horizon = 0", 12, "horizon"),
    ("horizon = 200", "step = 0.1", 12, "step"),
    ("turns = 0.5", 'turns = "half"', 13, "turns"),
    ('name = "LB-WeightUCB"\n\n', 'name = "LB-WeihgtUCB"\n\n', 16, "LB-WeightUCB"),
    ('name = "LB-WeightUCB"\n\n', "nmae = 1\n\n", 15, "name"),
    ('label = "by hand"\n', "", 18, "label"),
    ('label = "by hand"', "label = 4", 20, "label"),
    ("forget = 0.05", "forget = 1.5", 21, "forget"),
    ("forget = 0.05", "frget = 0.5", 21, "memory"),
    ('kind = "Fade"', 'kind = "Fad"', 21, "Fade"),
    ("lam = 1.0", "lam = -1.0", 22, "lam"),
    ("lam = 1.0", "lamb = 1.0", 22, "lam"),
    ("trials = 2", "trials = 1.5", 23, "trials"),
    ("n0 = 3", "n0 = 3\ndrawn = 1", 28, "drawn"),
    ("test_scale = inf", 'test_scale = inf\n[[sweep]]\nover = "turns"\nvalues = [1]', 30, "over"),
    ("test_scale = inf", 'test_scale = inf\n[[sweep]]\nover = "world.trns"\nvalues = [1]', 30, "turns"),
    ("test_scale = inf", 'test_scale = inf\n[[sweep]]\nover = "world.turns"\nvalues = []', 31, "values"),
    ("test_scale = inf", 'test_scale = inf\n[[sweep]]\nover = "world.turns"', 29, "values"),
    ("test_scale = inf", 'test_scale = inf\n[[sweep]]\nover = "policies.lam"\nvalues = [-1.0]', 31, "lam"),
    ("test_scale = inf", '[[sweep]]\nover = "policies.name"\nvalues = ["OFUL"]', 29, "over"),
    ("test_scale = inf", '[[sweep]]\nover = "world.turns"\nvalues = ["a"]\ntimes = true', 30, "numbers"),
    ("test_scale = inf", '[[sweep]]\nover = "world.fresh"\nvalues = [2]\ntimes = true', 29, "over"),
    ("test_scale = inf", "sweep = [3]", 28, "sweep"),
    ("test_scale = inf", 'label = "a\\nb"', 28, "label"),
    ("test_scale = inf", 'label = "rounds"', 28, "label"),
    ("test_scale = inf", f'label = "{"x" * 101}"', 28, "label"),
    ("test_scale = inf", "dim = 3", 25, "dim"),
    ("test_scale = inf", "L = 0.5", 25, "L"),
    ("test_scale = inf", "test_scale = 1979-05-27", 28, "test_scale"),
    ("seed = 7", "seed = 99999999999999999999", 4, "64 bits"),
    ("trials = 3", "trials = 1000000000", 3, "trials"),
    ("turns = 0.5", "turns = 0.5\n\u2028 = 1", 14, "TOML"),
    ("test_scale = inf", '[[sweep]]\nover = "world.norm"\nvalues = [1.0]\ntimes = true', 29, "over"),
]


@pytest.mark.parametrize(("old", "new", "line", "word"), WRONG)
def test_a_wrong_field_gets_one_sentence_with_its_line(old, new, line, word):
    assert old in GOOD
    with pytest.raises(BadInput) as caught:
        parse(GOOD.replace(old, new, 1), "mine.toml")
    sentence = str(caught.value)
    assert sentence.startswith(f"mine.toml, line {line}: "), sentence
    assert word in sentence and "wanted" in sentence and "\n" not in sentence


@pytest.mark.parametrize("missing", ["[world]", "[[policies]]"])
def test_a_spec_without_a_world_or_policies_is_refused(missing):
    start = GOOD.index(missing)
    text = GOOD[:start] if missing == "[[policies]]" else GOOD[:start] + GOOD[GOOD.index("[[policies]]") :]
    with pytest.raises(BadInput, match="line 1"):
        parse(text, "mine.toml")


def test_a_file_that_is_not_there_or_not_text_is_one_sentence(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("none.toml", "binary.toml"):
        with pytest.raises(BadInput, match="TOML file that can be read"):
            load(tmp_path / name)


def test_the_command_says_the_same_sentence(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(GOOD.replace("turns = 0.5", "truns = 0.5"), encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["run", str(file), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err
    assert caught.value.code == 2 and said.count("\n") == 1
    assert said.startswith("driftwise: mine.toml, line 13: ") and "turns" in said
    assert not (tmp_path / "out").exists()


def test_every_built_in_spec_is_listed_and_its_published_curves_exist():
    folder = Path(panels.__file__).parents[1] / "specs"
    around = [name for paper in papers().values() for name in paper.specs]
    assert sorted(path.stem for path in folder.glob("*.toml")) == sorted({*panels.ALL, *around})
    specs = [panels.built_in(name) for name in dict.fromkeys((*panels.ALL, *around))]
    assert len({spec.key for spec in specs}) == len(specs)
    shown = {(spec.key.removesuffix("_probe"), entry.published) for spec in specs for entry in spec.entries}
    wanted = {*published_curves(), *published()}
    assert {one for one in shown if one[1]} == wanted, "every published curve is shown, and no other"
    for spec in specs:
        assert spec.seed == 0
        if spec.key not in around:
            assert spec.trials == (3 if spec.key == "speed" else 20)  # runs timed alone are few
        for contests in spec.contests:
            for contest in contests:
                assert np.isfinite(contest.world.path_length)


def test_unknown_specs_and_experiments_name_the_nearest():
    with pytest.raises(BadInput, match="growth_lb"):
        panels.find("growth_bl")
    with pytest.raises(BadInput, match="piecewise"):
        panels.experiment("piecewize")
