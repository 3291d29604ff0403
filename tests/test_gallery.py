"""The gallery: each program shows what its text says, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def build():
    return module(DOCS / "site" / "build.py")


# What each program must show at the small size of the tests.
SHOWN = {
    "news": lambda found: found["agent"].mean() > 1.2 * found["blind"].mean(),
    "prices": lambda found: found["earned"][2] < found["earned"][0] < found["earned"][1],
    "curve": lambda found: 0.7 < found["any price of the curve"].min() <= 1.0 and len(found["looks"]) == 3,
    "models": lambda found: found["always medium"] < found["agent"] < found["best"],
    "variants": lambda found: found["the agent"].sum() < 0.6 * found["all alike"].sum(),
    "notifications": lambda found: found["got"][0] > 1.2 * found["got"][2],
    "audits": lambda found: found["the third rises", "Auto"][-1] < found["the third rises", "never forced"][-1]
    and found["nothing changes", "never forced"][-1] < found["nothing changes", "Auto"][-1],
    "season": lambda found: found["Auto"][-1] < found["a memory of 100 rounds"][-1],
    "jump": lambda found: found["Auto"][-1] < found["LB-WeightUCB"][-1] < found["OFUL"][-1],
    "half_life": lambda found: found["Auto"] < min(found["lost"][[0, -1]]) and 16 <= found["best"] <= 512,
    "delays": lambda found: found["at once"][-1] < found["up to 800 late"][-1],
    "thousand": lambda found: found["1000 arms"][-1] < 4.0 * found["10 arms"][-1],
    "logbook": lambda found: found["forgets nothing"][1] < found["forgets nothing"][3] < found["forgets nothing"][2],
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_program_of_the_gallery_shows_what_it_says(name, build, capsys):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    program = module(DOCS / "gallery" / f"{name}.py")
    found = program.main(**build.GALLERY[name])
    assert capsys.readouterr().out.strip()
    assert SHOWN[name](found), {key: np.ravel(value)[-1] for key, value in found.items()}
    axes = Figure().subplots()
    program.draw(axes, found)
    drawn = [line.get_ydata() for line in axes.lines]
    assert axes.get_xlabel() and len(drawn) >= 2
    assert all(np.isfinite(np.asarray(one, dtype=float)).all() for one in drawn)
    assert program.__doc__.count("\n\n") == 1, "a title, and a paragraph"


def test_every_program_of_the_gallery_is_tried_and_on_the_site(build):
    assert {path.stem for path in (DOCS / "gallery").glob("*.py")} == set(SHOWN) == set(build.GALLERY)
