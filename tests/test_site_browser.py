"""The site in a real browser: wide and narrow, light and dark, without console errors or findings of axe."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from test_browser import GROUND, QUIET, browser, luminance, picture, playwright  # noqa: F401 - fixtures

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site" / "html"
AXE = ROOT / "build" / "axe"
# Rules that are about a whole page; colour contrast is among them.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# These pages get a picture, one of each kind; the others are only measured.
SHOWN = {"index.html", "which.html", "glossary.html", "cluster.html", "sets.html", "lazy.html", "gallery/index.html",
         "gallery/jump.html", "api/theory.html", "api/policies.html", "lab/report/report.html", "agent.html",
         "search.html"}  # fmt: skip


@pytest.fixture(scope="module")
def site():
    """The site as `make docs` builds it, with the gallery's small sizes if it was not built before."""
    pytest.importorskip("sphinx", reason='the site is not built: pip install "driftwise[docs]"')
    pytest.importorskip("furo", reason='the site is not built: pip install "driftwise[docs]"')
    words = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), "--quick"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr + done.stdout
    return SITE


def pages(folder):
    return sorted(str(page.relative_to(folder)) for page in folder.rglob("*.html") if not page.name.startswith("_"))


@pytest.fixture(scope="module")
def axe():
    """axe-core's script, from npm, stored in build/; without npm the test is skipped."""
    script = AXE / "package" / "axe.min.js"
    if not script.exists():
        if shutil.which("npm") is None:
            pytest.skip("axe-core is not run: install npm")
        AXE.mkdir(parents=True, exist_ok=True)
        words = ["npm", "pack", "--silent", "axe-core@4"]
        done = subprocess.run(words, cwd=AXE, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip("axe-core is not run: npm could not fetch it")
        with tarfile.open(AXE / done.stdout.split()[-1]) as archive:
            archive.extractall(AXE, filter="data")
    return script.read_text(encoding="utf-8")


def opened(browser, width, scheme):  # noqa: F811
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page, complaints = context.new_page(), []
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url[:200]))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
    return context, page, complaints


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_whole(site, browser, width, scheme):  # noqa: F811
    context, page, complaints = opened(browser, width, scheme)
    for name in pages(site):
        page.goto((site / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert not complaints, (name, complaints)
        ground = luminance(np.array(page.evaluate(GROUND)) / 255)
        assert ground < 0.1 if scheme == "dark" else ground > 0.9, name
        broken = "[...document.images].filter(i => i.offsetParent && i.complete && !i.naturalWidth).map(i => i.src)"
        assert page.evaluate(broken) == [], name
        if name in SHOWN:
            picture(page, f"site-{name.replace('/', '-').removesuffix('.html')}-{width}-{scheme}")
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site, browser, axe, scheme):  # noqa: F811
    context, page, _ = opened(browser, 1280, scheme)
    found = {}
    for name in pages(site):
        page.goto((site / name).as_uri())
        page.evaluate(axe)
        told = page.evaluate("tags => axe.run({runOnly: tags})", TAGS)
        for one in told["violations"]:
            found.setdefault(one["id"], []).append((name, len(one["nodes"]), one["nodes"][0]["html"][:120]))
    context.close()
    assert not found, json.dumps({rule: ones[:3] for rule, ones in found.items()}, indent=1)


@pytest.mark.slow
def test_searching_finds_a_page(site, browser):  # noqa: F811
    context, page, complaints = opened(browser, 1280, "light")
    page.goto((site / "search.html").as_uri() + "?q=half-life")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    assert page.locator("#search-results li").count() >= 3 and not complaints
    context.close()


class Outline(html.parser.HTMLParser):
    """Headings in order, pictures without a text, repeated ids."""

    def __init__(self):
        super().__init__()
        self.levels, self.silent, self.ids, self.language = [], [], [], None

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        if tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.levels.append(int(tag[1]))
        if tag == "img" and not (told.get("alt") or "").strip():
            self.silent.append(told.get("src"))
        if tag == "html":
            self.language = told.get("lang")
        if "id" in told:
            self.ids.append(told["id"])


def test_a_small_site_has_headings_in_order_and_words_for_pictures(tmp_path):
    """Three pages, one of them with all directives of the site, built in seconds; a warning is an error."""
    pytest.importorskip("furo", reason='the site is not built: pip install "driftwise[docs]"')
    pytest.importorskip("myst_parser", reason='the site is not built: pip install "driftwise[docs]"')
    source, out = tmp_path / "source", tmp_path / "html"
    source.mkdir()
    tree, drawing = "```{toctree}\nglossary\nmemory\n```", "```{drawing} lb\nRegret over rounds\n```"
    (source / "index.md").write_text(f"# Start\n\n{tree}\n\n{drawing}\n\n$\\sqrt{{\\lambda}}S$\n")
    linked = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")  # to pages that are not here
    (source / "glossary.md").write_text(re.sub(r"\]\([^)#]+[^)]*\)", "]", linked), encoding="utf-8")
    shutil.copy(ROOT / "docs" / "api" / "memory.md", source / "memory.md")
    settings = str(ROOT / "docs" / "site")
    words = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "--keep-going", "-c", settings, str(source), str(out)]
    interpreted = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(words, env=interpreted, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in ("index.html", "glossary.html", "memory.html"):
        text = (out / name).read_text(encoding="utf-8")
        outline = Outline()
        outline.feed(text)
        assert outline.levels[0] == 1 and outline.levels.count(1) == 1 and not outline.silent, name
        assert all(after <= before + 1 for before, after in zip(outline.levels, outline.levels[1:], strict=False)), name
        assert outline.language == "en" and len(set(outline.ids)) == len(outline.ids), name
    assert "<math" in (out / "index.html").read_text() and "<math" in (out / "memory.html").read_text()
    assert "driftwise.Fade" in (out / "memory.html").read_text()
