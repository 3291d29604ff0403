"""The report in a real browser: wide and narrow, light and dark, without a script, a request or a console error."""

import io
import shutil
from pathlib import Path

import numpy as np
import pytest

from colours import luminance

SCREENSHOTS = Path(__file__).resolve().parent.parent / "build" / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
TALLEST = 4000  # of one picture; Chromium draws none above 16384 pixels


@pytest.fixture(scope="session")
def playwright():
    """Playwright, with the system's own Chromium. Without either the tests are skipped, and no report is made."""
    if CHROMIUM is None:
        pytest.skip("the report is not looked at: install chromium (apt install chromium)")
    reason = 'the report is not looked at: install playwright (pip install "playwright>=1.45")'
    return pytest.importorskip("playwright.sync_api", reason=reason).sync_playwright


@pytest.fixture
def browser(playwright):
    """The system's Chromium; nothing is downloaded. It is closed after each test, with its event loop."""
    with playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"), pytest.param(1280, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow), (390, "dark"),
    ],
)  # fmt: skip
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
    shown = picture(page, f"report-{width}-{scheme}")
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
        left, top, right, low = (
            round(edge) for edge in (box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])
        )
        seen = luminance(shown[top:low, left:right] / 255)
        # Background and ink follow the scheme. The mean alone would accept a black line on a dark page.
        if scheme == "dark":
            assert seen.mean() < 0.3 and seen.max() > 0.7
        else:
            assert seen.mean() > 0.7 and seen.min() < 0.2
    assert not complaints
    assert [url for url in asked if not url.startswith("data:")] == [address]
    context.close()


GROUND = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"


def picture(page, name):
    """The whole page as build/screenshots/{name}.png, and -2, -3 where it is too tall for one; its pixels.

    Scrolling a tall window takes a third of the time of Playwright's full-page pictures.
    """
    from PIL import Image

    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    before = page.viewport_size
    page.set_viewport_size({**before, "height": TALLEST})
    tall, parts = page.evaluate("document.documentElement.scrollHeight"), []
    for top in range(0, tall, TALLEST):
        page.evaluate(f"scrollTo({{top: {top}, behavior: 'instant'}})")
        path = SCREENSHOTS / f"{name}{f'-{len(parts) + 1}' if parts else ''}.png"
        shot = np.asarray(Image.open(io.BytesIO(page.screenshot(path=path))).convert("RGB"))
        parts.append(shot[-(tall - top) :] if parts and tall - top < TALLEST else shot)  # the last is scrolled less far
    page.set_viewport_size(before)
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    return np.concatenate(parts)
