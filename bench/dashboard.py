"""Makes the picture of docs/service.md: the dashboard of a front page whose readers change their preferences.

    python bench/dashboard.py [--decisions 6000] [--out docs/dashboard.png]

Needs chromium and playwright. Arms have an intercept, so that a level which all items share differs from preferences.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.service.client import Client

PORT, UNITS, TOGETHER, HEIGHT = 8765, 400, 20, 1290
ITEMS = ("new arrivals", "autumn sale", "clearance", "journal", "for you", "gift cards", "tickets", "recipes")
BODY = {"policy": {"name": "Auto", "dim": 5}, "rewards": [0, 1], "epsilon": 0.05, "mode": "holdback", "holdback": 0.2,
        "baseline": "uniform"}  # fmt: skip


class Readers:
    """The readers, the value of each item for them, and how it changes."""

    def __init__(self, client: Client) -> None:
        self.client, self.number = client, 0
        self.chance = np.random.default_rng(0)
        topics = self.chance.standard_normal((len(ITEMS), 4))
        topics *= 0.8 / np.linalg.norm(topics, axis=1, keepdims=True)
        self.arms = np.column_stack([topics, np.full(len(ITEMS), 0.6)])  # the last is the intercept
        self.late: list[tuple[str, float]] = []

    def come(self, turn: float) -> None:
        """A few readers at a time; some clicks come with the next ones."""
        taste = np.array([np.cos(turn), np.sin(turn), 0.3, 0.0])
        worth = np.clip(0.45 + 0.5 * self.arms[:, :4] @ taste, 0.02, 0.98)
        asked: list[dict[str, Any]] = [
            {"id": f"visit-{self.number + place}", "unit": f"reader-{self.chance.integers(UNITS)}",
             "arms": self.arms.tolist(), "items": list(ITEMS)}
            for place in range(TOGETHER)
        ]  # fmt: skip
        self.number += TOGETHER
        told = self.client.decide_many("front-page", asked)
        rewards, self.late = self.late, []
        for one in told:
            value = float(self.chance.random() < worth[one["arm"]])
            (rewards if self.chance.random() < 0.7 else self.late).append((one["id"], value))
        self.client.reward_many("front-page", rewards)


def taken(url: str, out: Path) -> None:
    """A screenshot of the page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{url}/streams/front-page", timeout=120_000)
        page.wait_for_function("document.querySelector('#live').innerText.includes('live')", timeout=120_000)
        page.screenshot(path=out)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=6000)
    parser.add_argument("--out", type=Path, default=Path("docs/dashboard.png"))
    options = parser.parse_args()
    url = f"http://127.0.0.1:{PORT}"
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "driftwise.cli", "serve", "--db", f"{name}/a.db", "--port", str(PORT)]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        stop = threading.Event()
        try:
            with Client(url, tries=30, timeout=60.0) as client:
                client.put("front-page", **BODY)
                readers = Readers(client)
                while readers.number < options.decisions:
                    readers.come(1.5 * np.pi * readers.number / options.decisions)

                def go_on() -> None:
                    while not stop.is_set():
                        readers.come(1.5 * np.pi)
                        time.sleep(0.2)

                traffic = threading.Thread(target=go_on)
                traffic.start()
                taken(url, options.out)
                stop.set()
                traffic.join()
        except BadInput as error:
            raise SystemExit(str(error)) from None
        finally:
            stop.set()
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
