"""`driftwise bench`: rounds beside their rivals, and the message if a rival is missing; bench/against.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driftwise.cli import app
from driftwise.lab.bench import rivals, rounds

BENCH = Path(__file__).resolve().parents[1] / "bench"
AGAINST = BENCH / "against.py"
SMALL = {"horizon": 60, "repeats": 3, "sizes": ((2, 8),), "names": ["LB-WeightUCB", "OFUL"]}


def test_rounds_are_measured_beside_numpy_and_c():
    found = {row.name: row for row in rounds.measure(**SMALL, progress=False)}
    assert list(found) == ["LB-WeightUCB", "OFUL", rounds.NUMPY, rounds.C]
    assert len(found["LB-WeightUCB"].ns) == 3 and found["LB-WeightUCB"].regret > 0.0


def test_without_a_compiler_c_is_skipped_with_a_word(monkeypatch):
    monkeypatch.setattr(rivals, "c_compiler", lambda: None)
    found = rounds.measure(**SMALL, progress=False)
    assert [row.word for row in found if row.name == rounds.C] == ["no C compiler here"]
    assert ["the same in C", "no C compiler here"] in rounds.bench_table(found)[1]


def test_a_compiler_that_fails_is_said(monkeypatch):
    monkeypatch.setattr(rivals, "c_compiler", lambda: "false")
    found = rounds.measure(**SMALL, progress=False)
    assert [row.word for row in found if row.name == rounds.C] == ["the C compiler failed"]


def test_medians_and_spreads_by_hand():
    row = rounds.BenchRow("x", 2, 8, 10, ns=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert row.median == 3.0 and row.spread == pytest.approx((4.5 - 1.5) / 2 / 3)


def test_the_command_writes_numbers_and_a_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds.measure, "__kwdefaults__", rounds.measure.__kwdefaults__ | {"sizes": ((2, 8),)})
    words = ["bench", "--horizon", "40", "--repeats", "2", "--only", "OFUL", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "bench.json").read_text())
    assert [row["name"] for row in kept] == ["OFUL", rounds.NUMPY, rounds.C]
    assert (tmp_path / "bench.svg").read_text().startswith("<?xml")


def test_a_name_that_is_not_in_the_catalogue_gets_a_sentence():
    done = CliRunner().invoke(app, ["bench", "--only", "LinUCB"])
    assert done.exit_code != 0


@pytest.mark.skipif(not (AGAINST.parents[1] / ".git").exists(), reason="needs the repository")
@pytest.mark.parametrize(
    ("words", "margin", "code", "seen"),
    [(["--only", "tiles", "--most", "3"], "1000", 0, ["tiles, of the plain loop, (10, 100): one", "(10, 100): other"]),
     (["--only", "for_values", "--first"], "0.001", 1, ["decide and reward, for_values"])],
)  # fmt: skip
def test_a_revision_is_measured_in_turns_and_a_slower_one_ends_with_1(words, margin, code, seen):
    """Against itself, interpreted: it reports SLOWER with a limit that every run exceeds, and not with a large one."""
    command = [sys.executable, str(AGAINST), "HEAD", *words, "--repeats", "1", "--margin", margin]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == code, done.stderr
    assert all(name in done.stdout for name in seen) and ("SLOWER" in done.stdout) == bool(code)


# Each program in a process of its own, as a user starts it: a fork of one that has imported what most of them need.
LOADS = """
import os, runpy, sys, traceback
import driftwise, driftwise.cli, numpy
folder, *programs = sys.argv[1:]
sys.path.insert(0, folder)
for program in programs:
    if os.fork() == 0:
        try:
            runpy.run_path(program, run_name="loaded")
        except BaseException:
            print(program, traceback.format_exc(), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.wait()[1] == 0
"""


def test_every_program_of_bench_finds_what_it_imports():
    """A file that another one reads may have gone."""
    programs = sorted(BENCH.glob("*.py"))
    done = subprocess.run([sys.executable, "-c", LOADS, BENCH, *programs], stderr=subprocess.PIPE, text=True)
    assert len(programs) > 15 and done.returncode == 0, done.stderr
