"""The dashboard shows what is on disk, escapes what was sent, and lets in whom keys let in."""

import asyncio
import base64
import json
import math
import shutil

import httpx
import pytest

from driftwise.service import keeping
from service.living import ARMS, living
from service.loading import Server


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    with living(tmp_path_factory.mktemp("seen") / "a.db") as asked:
        asked.put("trial", mode="holdback", holdback=0.5, policy={"name": "Auto", "dim": 2}, half_life=None)
        for number in range(120):
            found = asked.decide(f"<b>{number}", stream="trial", items=["<i>x", "y", "z"]).json()
            asked.reward(found["id"], 0.8 if found["cohort"] == "live" else 0.2 + 0.1 * (number % 2), "trial")
            asked.service.past["trial"].note(asked.service.stream("trial"))
        yield asked


def test_the_first_page_lists_streams_with_their_counts(trial):
    text = trial.get("/").text
    assert '<a href="/streams/trial">trial</a>' in text and "<td class=n>120</td>" in text
    assert trial.get("/streams/nobody").status_code == 404


def test_a_streams_page_has_the_lift_and_its_interval(trial):
    text = trial.get("/streams/trial").text
    lift = text.partition("Lift of live over baseline: <b>")[2]
    assert math.isclose(float(lift.split(" ")[0]), 0.55, abs_tol=0.02)
    low, high = (float(word) for word in lift.partition("(")[2].partition(")")[0].split(" to "))
    assert 0.5 < low < 0.55 < high < 0.6
    for word in ("Drift", "remembers", "evidence for a level", "Played lately", "polyline", "reward after"):
        assert word in text, word


def test_what_was_sent_is_text_and_never_a_tag(trial):
    for text in (trial.get("/streams/trial").text, trial.get("/streams/trial/decisions/%3Cb%3E7").text):
        assert "<b>7" not in text and "<i>x" not in text and "&lt;i&gt;x" in text
    explained = trial.get("/streams/trial/decisions/%3Cb%3E7")
    assert "came out again to the last bit" in explained.text
    assert "script-src 'sha256-" in explained.headers["content-security-policy"]
    assert trial.get("/streams/trial/decisions/nobody").status_code == 404


def test_a_browser_is_asked_for_a_key_as_a_password(tmp_path):
    key = keeping.create_key(tmp_path / "a.db", "admin", "*", "")
    with living(tmp_path / "a.db") as asked:
        refused = asked.get("/")
        assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Basic")
        word = base64.b64encode(f"me:{key}".encode()).decode()
        assert asked.wait(asked.client.get("/", headers={"authorization": f"Basic {word}"})).status_code == 200


def test_a_browser_shows_live_traffic_without_a_word_of_complaint(tmp_path):
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("the dashboard is not looked at: install chromium (apt install chromium)")
    from playwright.sync_api import sync_playwright

    server = Server(tmp_path / "a.db")
    server.put()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda slip: complaints.append(str(slip)))
        page.goto(f"{server.url}/streams/home")
        httpx.post(f"{server.url}/v1/streams/home/decide", json={"id": "a", "arms": ARMS, "items": ["x", "y", "z"]})
        page.wait_for_selector("text=100.0%", timeout=10_000)  # the share of the one arm played, by an event
        assert page.evaluate("document.documentElement.scrollWidth") <= 390 and not complaints
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        browser.close()
    server.kill()


def test_pages_are_kept_fresh_while_it_serves_and_let_it_stop(tmp_path):
    server = Server(tmp_path / "a.db")
    server.put()

    async def watched():
        async with httpx.AsyncClient() as client, client.stream("GET", f"{server.url}/live?stream=home") as told:
            lines = told.aiter_lines()
            seen = []
            while len(seen) < 2:
                line = await anext(lines)
                if line.startswith("data: "):
                    seen.append(json.loads(line[6:]))
                    if len(seen) == 1:
                        body = {"id": "a", "arms": ARMS}
                        await client.post(f"{server.url}/v1/streams/home/decide", json=body)
            server.process.terminate()
            async for _ in lines:
                pass
            return seen

    before, after = asyncio.run(watched())
    assert "<td>decided</td><td class=n>0</td>" in before and "<td>decided</td><td class=n>1</td>" in after
    assert server.process.wait(10) == 0
    server.end()
