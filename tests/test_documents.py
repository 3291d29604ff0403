"""README and docs: their Python runs, their tables match the catalogue, and commands do what the pages say."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import driftwise as dw
from driftwise import cli

ROOT = Path(__file__).resolve().parent.parent


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.S)


def test_the_README_runs_from_top_to_bottom(capsys):
    space = {"np": np, "dw": dw}
    for block in blocks("README.md"):
        exec(compile(block, "README.md", "exec"), space)
    printed = capsys.readouterr().out
    assert "'LB-WeightUCB': 1053, 'OFUL': 4360" in printed
    assert "politics learned" in printed and space["shown"].item == "politics"


def test_the_README_fits_on_its_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_READMEs_evidence_is_that_of_its_page():
    def rows(name):
        lines = re.findall(r"^\| *(\w+)[,:][^|]*\|(.*)\|$", (ROOT / name).read_text(encoding="utf-8"), flags=re.M)
        return {first: [cell.strip() for cell in rest.split("|")] for first, rest in lines}

    page, shown = rows("docs/lab/evidence.md"), rows("README.md")
    assert shown and set(shown) == set(page) - {"set"}
    for name, (*rewards, gain) in shown.items():
        static, auto = (float(page[name][i]) for i in (1, 2))
        assert rewards == [f"{static:.3f}", f"{auto:.3f}"], name
        assert gain.split(",")[0] == f"{100.0 * (auto / static - 1.0):+.0f}%".replace("-", "\N{MINUS SIGN}"), name


def groups():
    """The pages of the site by their group, from the tables of contents of docs/index.md."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for group, tree in re.findall(r"```\{toctree\}\n:hidden:\n:caption: (\w+)\n\n(.*?)```", text, flags=re.S):
        yield from ((group, line.split("<")[-1].rstrip(">")) for line in tree.splitlines())


@pytest.mark.parametrize("page", [page for group, page in groups() if group in ("Use", "Operate")])
def test_a_page_for_engineers_fits_on_a_few_screens_and_has_no_laboratory_numbers(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 190, "four screens: move the rest to another page"
    measured = re.search(r"\d ± [.\d]|\bbench/\w+\.py", text)
    assert not measured, f"{measured}: measurements belong to the laboratory"


def test_docs_theory_prints_the_horizon_it_names(capsys):
    for block in blocks("docs/theory.md"):
        exec(compile(block, "theory.md", "exec"), {})
    assert capsys.readouterr().out == "874761 35751 29959\n"
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    assert "T ≈ 875,000" in text and "35,751" in text and "29,959" in text


def test_the_spec_in_the_docs_is_one_with_either_sweep():
    from driftwise.lab.run.spec import parse

    text = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    spec, sweeps = re.findall(r"```toml\n(.*?)```", text, flags=re.S)
    assert len(parse(spec, "speed.toml").entries) == 3
    swept = parse(spec.replace('label = "forgets', 'label = "also forgets') + sweeps, "speed.toml")
    assert [sweep.over for sweep in swept.sweeps] == ["world.turns", "policies.path_length"]


def test_the_page_of_algorithms_names_all_of_them():
    text = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    for row in dw.catalogue():
        name = row["name"]
        family = re.sub(r"\+.*", "+X", name)
        assert name in text or family in text, name


def command(*words, ok=0):
    out, told = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(told), pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    assert (ended.value.code or 0) == ok, told.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=told.getvalue())


def test_reproduce_writes_figure_curves_and_summary(tmp_path):
    done = command("reproduce", "lb", "--trials", "2", "--out", str(tmp_path / "deep" / "out"))
    out = tmp_path / "deep" / "out"
    assert {"figure.png", "figure.svg", "curves.npz", "summary.json"} <= {path.name for path in out.iterdir()}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["panels"][0]["trials"] == 2 and summary["versions"]["driftwise"] == dw.__version__
    with np.load(out / "curves.npz") as curves:
        assert curves["LB/LB-WeightUCB"].shape == (2, 120)
    assert "LB-WeightUCB" in done.stdout and "wrote" in done.stderr
    assert (out / "figure.png").read_bytes()[:4] == b"\x89PNG"


def test_a_closed_output_is_none_to_write_to():
    words = f"{sys.executable} -m driftwise.cli tune --dim 2 --horizon 60 --path-length 1 >&-"
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_sentence(unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}  # "" is as if it were not set
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "driftwise.cli", "tune", "--dim", "2", "--horizon", "60", "--path-length", "1"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert done.returncode == 2 and done.stderr.startswith("driftwise: output: ") and done.stderr.count("\n") == 1


def test_list_and_tune_print_tables():
    listed = command("list", "--all").stdout
    assert all(row["name"] in listed for row in dw.catalogue())
    for _, _, call in cli._CHOICES:  # what a product chooses from runs as it stands
        assert call.replace('"', "") in command("list").stdout.replace('"', "")
        assert isinstance(eval(call), dw.Agent)
    tuned = command("tune", "--dim", "2", "--horizon", "6000", "--path-length", "6.283").stdout
    assert "0.977118" in tuned and "34" in tuned


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reproduce", "xx"), "experiment"),
        (("reproduce", "lb", "--trials", "0"), "trials"),
        (("reproduce", "lb", "--out", "/proc/nothing"), "out"),
        (("tune", "--dim", "2", "--horizon", "10", "--path-length", "1000"), "path_length"),
        (("tune", "--dim", "0", "--horizon", "10", "--path-length", "1"), "dim"),
        (("tune", "--dim", "2"), "--horizon"),
        (("nope",), "nope"),
    ],
)
def test_a_bad_command_ends_in_one_sentence_and_status_2(words, said):
    done = command(*words, ok=2)
    assert done.stdout == ""
    assert done.stderr.startswith("driftwise: ") and done.stderr.count("\n") == 1 and said in done.stderr


@pytest.mark.parametrize("words", [["--only", "LB-WeightUCB"], pytest.param([], marks=pytest.mark.slow)], ids=len)
def test_bench_says_what_a_round_costs_relative_to_LB_WeightUCB(words):
    printed = command("bench", "--horizon", "200", "--repeats", "1", *words).stdout
    assert "LB-WeightUCB" in printed and "1.00" in printed and "NumPy" in printed
