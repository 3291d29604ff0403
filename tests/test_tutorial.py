"""docs/tutorial.md runs from top to bottom and prints what it shows, and its statements are true."""

import re
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw

for needed in ("pandas", "pyarrow", "matplotlib"):
    pytest.importorskip(needed)

DOCS = Path(__file__).resolve().parent.parent / "docs"
TEXT = (DOCS / "tutorial.md").read_text(encoding="utf-8")
STEPS = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```\n)?", TEXT, flags=re.S)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The names at the end of the page, the folder it ran in, and the output of each step."""
    import contextlib
    import io
    import os

    import matplotlib

    folder, space, printed, before = tmp_path_factory.mktemp("tutorial"), {}, [], os.getcwd()
    drawn = matplotlib.get_backend()
    os.chdir(folder)
    matplotlib.use("agg")
    try:
        for code, _ in STEPS:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(code, "tutorial.md", "exec"), space)
            printed.append(said.getvalue())
    finally:
        os.chdir(before)
        matplotlib.use(drawn)
    return space, folder, printed


def test_every_step_prints_what_stands_below_it(told):
    assert [wanted for _, wanted in STEPS] == told[2]
    assert sum(len(re.findall(r"\d", wanted)) for _, wanted in STEPS) > 300  # there are numbers to compare


def test_the_words_around_it_are_true_of_what_it_printed(told):
    space, folder, _ = told
    counts, log = space["agent"].counts, folder / "log"
    assert counts["learned"] + counts["defaulted"] + counts["open"] == counts["decided"] == space["VISITS"]
    assert counts["late"] > 0 and space["lost"].any()
    shown = space["agent"].explain("visit 3999")
    mean = dict(zip(shown.items, shown.mean, strict=True))
    bonus = dict(zip(shown.items, shown.bonus, strict=True))
    assert shown.items[shown.chosen] == "opera" and shown.items[shown.runner_up] == "budget"
    assert mean["opera"] < min(mean["budget"], mean["vote"]) and bonus["opera"] > max(bonus["budget"], bonus["vote"])
    assert bonus["vote"] < 1e-3
    found = dw.evaluate(space["static"], log, blocks=3)
    assert all(one.high < 0.0 for one in found.gains.values())
    *first, last = [one.estimates["DR"].value - one.logged.value for one in found.blocks]
    assert min(first) > 0.0 > last
    assert space["kept"].mean() < space["earned"].mean() < space["best"].mean()


def test_the_commands_it_names_make_the_same_agent_and_a_page(told, capsys):
    from driftwise.cli import main

    space, folder, _ = told
    for words in (
        ["learn", str(folder / "log"), "--clicks", "--seed", "1", "--out", str(folder / "agent.dw")],
        ["explain", str(folder / "agent.dw")],
        ["evaluate", str(folder / "log"), "--clicks", "--out", str(folder / "page")],
    ):
        with pytest.raises(SystemExit, match="0"):
            main(words)
    assert dw.Agent.load(folder / "agent.dw").state.to_bytes() == space["agent"].state.to_bytes()
    assert (folder / "page" / "report.html").is_file()


def test_it_is_short_and_its_picture_is_the_one_it_draws(told):
    from matplotlib.image import imread

    assert len(TEXT.splitlines()) <= 150
    kept, drawn = imread(DOCS / "tutorial.png"), imread(told[1] / "tutorial.png")
    assert kept.shape == drawn.shape
    # Lettering may differ between versions of matplotlib and move the axes a little; the agent's line may not differ.
    heights = [_heights(picture, (0x00, 0x72, 0xB2)) for picture in (kept, drawn)]
    assert np.isfinite(heights).all(axis=0).sum() > 300  # the rest is behind the static policy's
    assert np.nanmax(np.abs(heights[0] - heights[1])) <= 4.0


def _heights(picture, colour):
    """The height of this colour in each column of pixels, NaN where it is not visible; without the legend."""
    seen = np.abs(picture[..., :3] - np.array(colour) / 255).max(axis=2) < 0.05
    seen[:, : seen.shape[1] // 6] = False
    rows = np.arange(len(seen))[:, None]
    return np.where(seen.any(axis=0), (seen * rows).sum(axis=0) / np.maximum(seen.sum(axis=0), 1), np.nan)
