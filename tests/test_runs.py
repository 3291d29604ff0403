"""Runs that are interrupted, killed, damaged or repeated: finished trials are kept, and the bytes are the same."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise._internal import compile_notice
from driftwise.cli import main
from driftwise.errors import BadInput
from driftwise.lab.run import results, trials
from driftwise.lab.run.folder import alone, writable
from driftwise.lab.run.spec import parse

# Two kinds of policy, one of them played call by call, and a slow one with fewer trials.
TEXT = """\
title = "Short"
trials = 6
seed = 3
record = 20

[world]
kind = "Turn"
horizon = 300
reward = "bernoulli"

[[policies]]
name = "SCB-WeightUCB"

[[policies]]
name = "GLM-UCB"

[[policies]]
name = "SCB-PW-WeightUCB"
changes = 3
trials = 4
"""
SWEPT = TEXT.replace("record = 20\n", "") + '\n[[sweep]]\nover = "world.turns"\nvalues = [0.0, 1.0]\n'
LONG = TEXT.replace("horizon = 300", "horizon = 1500")  # enough rounds that the run can be killed
# The only files that may differ between two runs: they hold seconds.
TIMED = {"seconds.json", "timings.jsonl"}


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in TIMED
    }


def finished(out):
    """How many policies' trials a folder holds."""
    store = trials.TrialStore(out)
    return sum(len(store._rows(path.name)) for path in out.glob("trials/*") if path.name != "incoming")


def played(out):
    """The trials that were played, with repetitions."""
    lines = (out / "timings.jsonl").read_text().split("\n")[1:]
    return [(one["run"], one["trial"]) for one in map(json.loads, lines)]


def command(spec, out, *words):
    return [sys.executable, "-m", "driftwise.cli", "run", str(spec), "--out", str(out), *words]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A spec and the folder of one unbroken run of it."""
    folder = tmp_path_factory.mktemp("unbroken")
    spec = folder / "short.toml"
    spec.write_text(TEXT, encoding="utf-8")
    subprocess.run(command(spec, folder / "out"), check=True, capture_output=True)
    return spec, folder / "out"


def test_a_run_writes_what_simulate_gives(written):
    _, out = written
    assert {path.name for path in out.iterdir()} == {
        ".lock", "trials", "specs", "timings.jsonl", "seconds.json", "curves.npz", "summary.json", "figure.png",
        "figure.svg", "figure.pdf",
    }  # fmt: skip
    world = dw.worlds.Turn(horizon=300, reward="bernoulli")
    policy = dw.make("SCB-WeightUCB", **world.facts)
    expected = dw.simulate({"it": policy}, world, trials=6, seed=3, record=20).regret["it"]
    with np.load(out / "curves.npz") as arrays:
        assert (arrays["short/SCB-WeightUCB"] == expected).all()
        assert arrays["short/SCB-PW-WeightUCB"].shape == (4, 15)
        assert arrays["short/rounds"].tolist() == list(range(20, 301, 20))
    assert json.loads((out / "summary.json").read_text())["panels"][0]["policies"][2]["trials"] == 4


def test_a_trial_by_its_number_is_that_trial_of_many():
    world = dw.worlds.Turn(horizon=300)
    policy = {"it": dw.make("LB-WeightUCB", **world.facts)}
    many = dw.simulate(policy, world, trials=4, record=50).regret["it"]
    some = dw.simulate(policy, world, trials=[3, 1], record=50).regret["it"]
    assert (some == many[[3, 1]]).all()
    for bad in ([], [-1], [0.5], "ab"):
        with pytest.raises(BadInput, match="trials"):
            dw.simulate(policy, world, trials=bad)


def test_more_trials_keep_the_finished_ones_and_end_the_same(written, tmp_path):
    spec, out = written
    subprocess.run(command(spec, tmp_path, "--trials", "2"), check=True, capture_output=True)
    assert len(played(tmp_path)) == finished(tmp_path) == 2 * 3
    subprocess.run(command(spec, tmp_path), check=True, capture_output=True)
    assert len(played(tmp_path)) == len(set(played(tmp_path))) == finished(tmp_path) == 6 + 6 + 4
    assert contents(tmp_path) == contents(out)


@pytest.mark.parametrize("spoil", [
    lambda good: b"", lambda good: good[:90], lambda good: b"not an array",
    lambda good: good[:-200] + bytes([good[-200] ^ 1]) + good[-199:],
])  # fmt: skip
def test_a_spoiled_or_cut_file_is_played_again(tmp_path, spoil):
    spec = parse(TEXT, "short.toml")
    trials.play([spec], tmp_path)
    files = sorted(tmp_path.glob("trials/*/*.rows"))
    good = [path.read_bytes() for path in files]
    assert len(files) == 3
    files[0].write_bytes(spoil(good[0]))
    files[1].write_bytes(good[2])  # another policy's trials are not taken for this one's
    (tmp_path / "trials" / "incoming").mkdir()
    (tmp_path / "trials" / "incoming" / "000000.rows").write_bytes(spoil(good[0]))
    (files[2].parent / "0000000.123.tmp").write_bytes(b"half")
    with (tmp_path / "timings.jsonl").open("a") as log:
        log.write('{"run": "half a li')
    outcome = trials.play([spec], tmp_path)[0]
    assert [path.read_bytes() for path in files] == good
    assert not list(tmp_path.glob("trials/*/*.tmp"))
    assert all(np.isfinite(line.times).all() for line in outcome.figures[0].lines)


def test_a_folder_of_an_earlier_version_goes_on(tmp_path, monkeypatch):
    """A file per trial, as before shards: it is read, left unchanged, and not played again."""
    spec = parse(TEXT, "short.toml")
    outcome = trials.play([spec], writable(tmp_path / "new"))[0]
    for path in (tmp_path / "new").glob("trials/*/*.rows"):
        for number, row in trials.TrialStore(tmp_path / "new")._rows(path.parent.name).items():
            if number < 3:
                (tmp_path / "old" / "trials" / path.parent.name).mkdir(parents=True, exist_ok=True)
                np.savez(tmp_path / "old" / "trials" / path.parent.name / f"{number:05d}.npz", regret=row)
    spoiled, missing = sorted((tmp_path / "old").glob("trials/*/*.npz"))[:2]
    spoiled.write_bytes(spoiled.read_bytes()[:-300])
    np.savez(missing, regret=np.full(15, np.nan))
    before = contents(tmp_path / "old")
    again = trials.play([spec], tmp_path / "old")[0]
    assert len(played(tmp_path / "old")) == 3 + 3 + 1 + 2
    assert before.items() <= contents(tmp_path / "old").items()
    for one, other in zip(outcome.figures[0].lines, again.figures[0].lines, strict=True):
        assert (one.regret == other.regret).all()


def test_a_changed_spec_plays_only_what_changed(tmp_path):
    trials.play([parse(TEXT, "short.toml")], tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("trials/*/*.rows")}
    changed = parse(TEXT.replace('name = "GLM-UCB"', 'name = "GLM-UCB"\nlam = 5.0'), "short.toml")
    outcome = trials.play([changed], tmp_path)[0]
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    assert len(list(tmp_path.glob("trials/*/*.rows"))) == len(before) + 1
    assert len(played(tmp_path)) == 16 + 6
    fresh = trials.play([changed], writable(tmp_path / "fresh"))[0]
    for one, other in zip(outcome.figures[0].lines, fresh.figures[0].lines, strict=True):
        assert (one.regret == other.regret).all()


def test_what_decides_no_number_names_no_trial():
    """A renamed folder that is missing in the list would give every stored trial another name."""
    root = Path(dw.__file__).parent
    rooms = [path for path in root.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    inside = {f"_internal/{path.name}" for path in root.glob("_internal/*.py")}
    here = {path.name for path in rooms} - {"_internal"} | inside
    inner = ("__init__", "compiling", "container", "elementary", "intrinsics", "jit", "numba_text", "products",
             "python_first", "rng", "shipped", "validate")  # fmt: skip
    numbers = {"__init__.py", "eight.py", "errors.py", "kernels", "policies", "simulation.py", "theory", "worlds",
               "_machine"}  # fmt: skip
    assert here == numbers | {f"_internal/{one}.py" for one in inner} | set(trials._ASIDE)


def test_one_thread_or_two_give_the_same_sweep(tmp_path):
    spec = parse(SWEPT, "swept.toml")
    one = trials.play([spec], writable(tmp_path / "a"), jobs=1)
    two = trials.play([spec], writable(tmp_path / "b"), jobs=2)
    for outcome, name in ((one, "a"), (two, "b")):
        results.write_results(outcome, tmp_path / name, "test")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    lines = one[0].figures[0].lines
    assert [line.regret.shape for line in lines] == [(6, 2), (6, 2), (4, 2)]


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with alone(tmp_path), pytest.raises(BadInput, match="no other run"), alone(tmp_path):
        pass


def test_plot_draws_the_same_from_what_is_stored(written, tmp_path, capsys):
    _, out = written
    before = contents(out)
    for name in ("figure.png", "figure.svg"):
        (out / name).unlink()
    with pytest.raises(SystemExit) as caught:
        main(["plot", str(out)])
    assert caught.value.code == 0 and "figure.png" in capsys.readouterr().err
    assert contents(out) == before


@pytest.mark.parametrize(
    ("name", "data"),
    [("", b""), ("curves.npz", b""), ("curves.npz", b"PK"), ("summary.json", b"[]"), ("summary.json", b"{"),
     ("seconds.json", b"null"), ("seconds.json", b"{}"), ("specs/short.toml", b"title = 3")],
)  # fmt: skip
def test_plot_of_a_spoiled_folder_is_one_sentence(written, tmp_path, capsys, name, data):
    folder = tmp_path / "copy"
    if name:
        shutil.copytree(written[1], folder)
        (folder / name).write_bytes(data)
    else:
        folder.mkdir()
    with pytest.raises(SystemExit) as caught:
        main(["plot", str(folder)])
    assert caught.value.code == 2 and capsys.readouterr().err.count("\n") == 1


def test_results_of_another_run_are_not_taken_for_these(written, tmp_path, capsys):
    folder = tmp_path / "copy"
    shutil.copytree(written[1], folder)
    with np.load(folder / "curves.npz") as arrays:
        np.savez_compressed(folder / "curves.npz", **{key: 2 * arrays[key] for key in arrays.files})
    with pytest.raises(SystemExit, match="2"):
        main(["plot", str(folder)])
    assert "curves.npz does not belong" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["curves.npz", "figure.png", "specs", ".lock", "timings.jsonl"])
def test_what_cannot_be_written_is_one_sentence(written, tmp_path, capsys, name):
    """A folder stands where a file should, or a file where a folder should."""
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_bytes(b"") if name == "specs" else (out / name).mkdir()
    with pytest.raises(SystemExit) as caught:
        main(["run", str(written[0]), "--trials", "1", "--out", str(out)])
    said = capsys.readouterr().err
    assert caught.value.code == 2 and said.startswith("driftwise: out: ") and said.count("\n") == 1


def test_strange_words_are_shown_as_they_are(tmp_path, capsys):
    spec = tmp_path / "my strange spec.toml"
    text = TEXT.replace('"Short"', '"[/] [red]"')
    text = text.replace('name = "GLM-UCB"', 'name = "GLM-UCB"\nlabel = "[/b] :smile: ±"')
    spec.write_text("\ufeff" + text.replace("\n", "\r\n"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(SystemExit, match="0"):
            main(["run", str(spec), "--trials", "2", "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert "[/] [red]" in shown and "[/b] :smile: ±" in shown
    assert (tmp_path / "out" / "specs" / "my_strange_spec.toml").exists()


def test_fields_without_end_are_written(tmp_path):
    spec = parse(TEXT + '\n[[policies]]\nname = "MASTER+LogUCB1"\ntest_scale = inf\n', "short.toml").repeated(1, None)
    outcomes = trials.play([spec], tmp_path)
    results.write_results(outcomes, tmp_path, "test")
    policy = json.loads((tmp_path / "summary.json").read_text())["panels"][0]["policies"][3]["policy"]
    assert policy["test_scale"] == "inf"
    assert results.read_results(tmp_path)[0][0].figures[0].lines[3].mean == outcomes[0].figures[0].lines[3].mean


def test_an_interrupted_run_says_so_and_can_go_on(tmp_path):
    spec = tmp_path / "short.toml"
    spec.write_text(LONG.replace("trials = 6", "trials = 60"), encoding="utf-8")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command(spec, tmp_path / "out"), **pipes)
    while not list((tmp_path / "out").glob("trials/*/*.rows")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert [line for line in said.splitlines() if line != compile_notice._ONCE] == [
        "driftwise: stopping after the trials under way; again to stop at once",
        "driftwise: interrupted; the same command continues where it stopped",
    ]


def killed(spec, out, times, total):
    """Kill runs at random moments. Returns how many were killed before all trials were played."""
    rng, unfinished = random.Random(times), 0
    for _ in range(times):
        process = subprocess.Popen(command(spec, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.5, 3.0))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        unfinished += (finished(out) if out.exists() else 0) < total
    return unfinished


@pytest.mark.parametrize(("times", "trials"), [(4, 8), pytest.param(30, 80, marks=pytest.mark.slow)])
def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path, times, trials):
    spec = tmp_path / "short.toml"
    spec.write_text(LONG.replace("trials = 6", f"trials = {trials}").replace("trials = 4\n", ""), encoding="utf-8")
    subprocess.run(command(spec, tmp_path / "unbroken"), check=True, capture_output=True)
    assert killed(spec, tmp_path / "broken", times, 3 * trials) >= times // 3
    subprocess.run(command(spec, tmp_path / "broken"), check=True, capture_output=True)
    assert contents(tmp_path / "broken") == contents(tmp_path / "unbroken")
