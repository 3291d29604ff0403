"""The report in a real browser: wide and narrow, light and dark, without a script, a request or a complaint."""

import io
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from colours import luminance

SCREENSHOTS = Path(__file__).resolve().parent.parent / "build" / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
TALLEST = 8000  # Chromium draws no picture taller than 16384 pixels


@pytest.fixture(scope="session")
def playwright():
    """What drives the system's own Chromium; without either there is nothing to test, and no report to make."""
    if CHROMIUM is None:
        pytest.skip("the report is not looked at: install chromium (apt install chromium)")
    reason = 'the report is not looked at: install playwright (pip install "playwright>=1.45")'
    return pytest.importorskip("playwright.sync_api", reason=reason).sync_playwright


@pytest.fixture
def browser(playwright):
    """Chromium as the system has it; nothing is downloaded. Closed after each test, and its event loop with it."""
    with playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_is_whole(browser, report, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=False
    )
    page = context.new_page()
    complaints, asked = [], []
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url[:200]))
    page.on("request", lambda request: asked.append(request.url[:200]))
    address = (report / "report.html").as_uri()
    page.goto(address)
    picture(page, f"report-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = luminance(np.array(page.evaluate(GROUND)) / 255)
    assert ground < 0.1 if scheme == "dark" else ground > 0.9
    figures = page.locator("figure img").all()
    assert figures
    for figure in figures:
        assert figure.evaluate("image => image.complete && image.naturalWidth > 0")
        box = figure.bounding_box()
        assert box["width"] >= 250 and box["height"] >= 100
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        seen = light(figure.screenshot())
        # The ground follows the scheme, and so does the ink: a black line on a dark page passes by the mean alone.
        if scheme == "dark":
            assert seen.mean() < 0.3 and seen.max() > 0.7
        else:
            assert seen.mean() > 0.7 and seen.min() < 0.2
    assert not complaints
    assert [url for url in asked if not url.startswith("data:")] == [address]
    context.close()


GROUND = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"


def picture(page, name):
    """The whole page as build/screenshots/{name}.png, and -2, -3 where it is too tall for one."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    wide, tall = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    for part in range(math.ceil(tall / TALLEST)):
        top = part * TALLEST
        clip = {"x": 0, "y": top, "width": wide, "height": min(TALLEST, tall - top)}
        page.screenshot(path=SCREENSHOTS / f"{name}{f'-{part + 1}' if part else ''}.png", full_page=True, clip=clip)


def light(png):
    """The luminance of every pixel of a screenshot."""
    from matplotlib.image import imread

    return luminance(imread(io.BytesIO(png))[..., :3].astype(float))
