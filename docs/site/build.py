"""Builds the site: python docs/site/build.py [--quick], into build/site/html. A warning is an error.

Pages are the Markdown of docs/ as it stands; this adds what is made by running: the gallery's figures and what its
programs print, and the paper's linear figure. --quick plays smaller sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
BUILD = ROOT / "build" / "site"
STAGE = BUILD / "source"
DRAWINGS = STAGE / "static" / "drawings"
# In the order of the gallery, with what a quick look plays.
GALLERY = {
    "news": {"readers": 800}, "prices": {"days": 30}, "curve": {"hours": 300, "trials": 1},
    "models": {"requests": 800}, "variants": {"visitors": 2000}, "notifications": {"days": 12},
    "audits": {"trials": 4}, "season": {"trials": 1}, "jump": {"trials": 2}, "half_life": {"trials": 2},
    "delays": {"rounds": 600, "trials": 1}, "thousand": {"trials": 2}, "logbook": {"rounds": 800},
}  # fmt: skip


def program(name: str):
    """A program of the gallery as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "gallery" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def titled(name: str) -> tuple[str, str]:
    """The first line of a program's docstring without its full stop, and the rest."""
    title, _, words = program(name).__doc__.strip().partition("\n")
    return title.rstrip("."), words.strip()


def play(name: str, quick: bool = False) -> str:
    """Run a program, draw its figure four times (wide and narrow, light and dark), and write its page."""
    module, began = program(name), time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        found = module.main(**(GALLERY[name] if quick else {}))
    alt = picture(name, lambda axes: module.draw(axes, found))
    title, words = titled(name)
    code = (DOCS / "gallery" / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2].strip()
    page = [f"# {title}", words, f"```{{drawing}} {name}\n{title}: {alt}\n```", "It prints",
            f"```text\n{printed.getvalue()}```", f"The whole program, `docs/gallery/{name}.py`:",
            f"```python\n{code}\n```"]  # fmt: skip
    (STAGE / "docs" / "gallery" / f"{name}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    return f"{name}: {time.perf_counter() - began:.1f} s"


RC = {
    "font.family": "DejaVu Sans", "text.color": "#1a1a1a", "axes.edgecolor": "#1a1a1a", "axes.labelcolor": "#1a1a1a",
    "xtick.color": "#1a1a1a", "ytick.color": "#1a1a1a", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#d0d0d0", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "svg.hashsalt": "driftwise", "legend.frameon": False, "lines.linewidth": 1.8,
}  # fmt: skip


def picture(name: str, draw) -> str:
    """{name}.svg and its three kin; what it shows comes back in words."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for tail, size, points in (("", (8.0, 4.0), 10.0), ("-narrow", (3.9, 3.9), 8.6)):
        with plt.style.context(["default", {**RC, "font.size": points}]):
            figure, axes = plt.subplots(figsize=size, layout="constrained")
            draw(axes)
            if axes.get_legend_handles_labels()[1]:
                figure.legend(loc="outside upper left", ncols=2 if tail else 4, handlelength=1.5, columnspacing=1.2)
            data = io.StringIO()
            figure.savefig(data, format="svg", transparent=True, metadata={"Date": None})
            plt.close(figure)
        both(data.getvalue(), f"{name}{tail}")
    labels = ", ".join(axes.get_legend_handles_labels()[1])
    against = f"{axes.get_ylabel() or 'policies'} against {axes.get_xlabel()}"
    return f"{against}; {labels}".replace("\n", " ")


def both(svg: str, stem: str) -> None:
    """A drawing, and the same for a dark page."""
    from driftwise.draw.page import DARK

    DRAWINGS.mkdir(parents=True, exist_ok=True)
    (DRAWINGS / f"{stem}.svg").write_text(svg, encoding="utf-8")
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda ink: DARK.get(ink[0], ink[0]), svg)
    (DRAWINGS / f"{stem}-dark.svg").write_text(dark, encoding="utf-8")


def linear(trials: int) -> str:
    """The paper's linear figure, drawn anew."""
    from driftwise.cli import main
    from driftwise.draw.plots import draw_each
    from driftwise.lab.paper.published import beside_published, panel_parts
    from driftwise.lab.run import results

    began, folder = time.perf_counter(), BUILD / "lb"
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(["reproduce", "lb", "--trials", str(trials), "--out", str(folder)])
    outcomes, _ = results.read_results(folder)
    draw_each(panel_parts(beside_published(outcomes[0]).figures[0])[0], folder)
    for tail in ("", "-narrow"):
        both((folder / f"LB{tail}.svg").read_text(encoding="utf-8"), f"lb{tail}")
    return f"lb: {time.perf_counter() - began:.1f} s"


def math_font() -> None:
    """STIX Two Math, which equations need to stand straight, cut down to the characters they have."""
    import ziamath
    from fontTools import subset
    from fontTools.ttLib import TTFont
    from latex2mathml.converter import convert

    text = "".join(map(convert, tomllib.loads((HERE / "equations.toml").read_text(encoding="utf-8")).values()))
    points = {*map(ord, html.unescape(text)), *range(0x20, 0x7F), *range(0x391, 0x3CA)}
    slanted = {*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C), 0x210E, 0x221A}  # what letters become, and √
    font = TTFont(Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf")
    options = subset.Options(flavor="woff", layout_features=["ssty"], notdef_outline=True)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=points | slanted)
    cutter.subset(font)
    font.flavor = "woff"
    (STAGE / "static").mkdir(parents=True, exist_ok=True)
    font.save(STAGE / "static" / "math.woff")


def stage() -> None:
    """The sources beside what is made: pages and pictures as they stand, and every page in some table of contents."""
    docs = STAGE / "docs"
    shutil.rmtree(docs, ignore_errors=True)
    kept = shutil.ignore_patterns("site", "__pycache__", "*.py")
    shutil.copytree(DOCS, docs, ignore=kept)
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, STAGE / name)
    for page in [*docs.rglob("*.md"), STAGE / "CONTRIBUTING.md"]:
        page.write_text(within(page.read_text(encoding="utf-8")), encoding="utf-8")
    start = docs / "index.md"
    start.write_text(with_rest(start.read_text(encoding="utf-8"), docs), encoding="utf-8")
    gallery = docs / "gallery" / "index.md"
    cards = "\n\n".join(
        f"## {title}\n\n```{{drawing}} {name}\n:link: {name}\nFigure: {title}\n```\n\n{words}"
        for name, (title, words) in ((name, titled(name)) for name in GALLERY)
    )
    tree = "```{toctree}\n:hidden:\n\n" + "\n".join(GALLERY) + "\n```\n"
    gallery.write_text(f"{gallery.read_text(encoding='utf-8')}\n{cards}\n\n{tree}", encoding="utf-8")


def within(text: str) -> str:
    """Links to what is no page of the site: those to SECURITY.md have one, those into the sources keep their words."""
    text = text.replace("](SECURITY.md)", "](docs/security.md)")
    return re.sub(r"\[([^\]]+)\]\(\.\./(?:src|bench|tests|deploy)/[^)]*\)", r"\1", text)


def with_rest(text: str, docs: Path) -> str:
    """The start page, with pages that no table of contents names in the place kept for them."""
    named = {
        line.strip().split("<")[-1].rstrip(">")
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.S)
        for line in tree.splitlines()
        if line.strip() and not line.startswith(":")
    }
    pages = {str(page.relative_to(docs).with_suffix("")) for page in docs.glob("*.md")} - {"index"}
    return text.replace("REST\n", "".join(f"{page}\n" for page in sorted(pages - named)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look at the pages")
    parser.add_argument("--links", action="store_true", help="ask every address that the pages name, and build nothing")
    told = parser.parse_args()
    quick = told.quick or told.links
    began = time.perf_counter()
    stage()
    math_font()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(linear, 2 if quick else 20), *(pool.submit(play, name, quick) for name in GALLERY)]
        for task in tasks:
            print(task.result(), flush=True)
    print(f"figures: {time.perf_counter() - began:.1f} s", flush=True)
    sphinx("linkcheck" if told.links else "html")
    print(f"built {BUILD / 'html' / 'index.html'} in {time.perf_counter() - began:.1f} s")


def sphinx(builder: str) -> None:
    """Pages from the staged sources; a warning is an error."""
    words = ["-W", "-n", "-q", "--keep-going", "-c", str(HERE), "-d", str(BUILD / "doctrees")]
    command = [sys.executable, "-m", "sphinx", "-b", builder, *words, str(STAGE / "docs"), str(BUILD / builder)]
    done = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
