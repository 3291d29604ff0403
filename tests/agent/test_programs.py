"""The Python of docs/agent.md runs, and late rewards cost no more than docs/lab/measured.md says."""

import importlib.util
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent


def program(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, space = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8"), {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "agent.md", "exec"), space)
        for line in re.findall(r"print\(.*\)\s+# (value: .*)", block):
            assert line in capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "\n40\n" in f"\n{printed}" or printed.startswith("40\n")
    assert "politics" in printed and "log score" in printed


def test_lateness_costs_no_more_than_allowed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    product = program(ROOT / "bench" / "product.py")
    rounds, jumps = 3000, 1
    prompt, late, by_chance = (
        np.mean([product.live(rounds, jumps, seed, *kind)[-1] for seed in range(3)])
        for kind in ((False, False), (True, False), (False, True))
    )
    assert late <= product.allowed(prompt, by_chance, rounds, jumps)
    assert by_chance > product.allowed(prompt, by_chance, rounds, jumps)  # uniform play would fail this
