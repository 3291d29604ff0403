"""Rows L9 (docs/contract.md#load) and F9 (docs/contract.md#faults): two replicas on a PostgreSQL server that syncs."""

from __future__ import annotations

import asyncio
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from service import loading  # noqa: E402
from service import noop as load  # noqa: E402
from service.loading import Clients, wrong  # noqa: E402
from service.nursery import Nursery  # noqa: E402
from service.server import Server as Postgres  # noqa: E402
from service.server import missing  # noqa: E402

Told = tuple[str, bool]
CLIENTS, SECONDS = 32, 3.0


class Replica:
    """A server as users start it, on a file or an address."""

    def __init__(self, db: object) -> None:
        self.port = loading.free_port()
        words = ["serve", "--db", str(db), "--port", str(self.port)]
        self.process = subprocess.Popen([sys.executable, "-m", "driftwise.cli", *words], stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60.0
        while time.monotonic() < until and self.process.poll() is None:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            time.sleep(0.05)
        raise SystemExit("the server did not start")

    def stream(self) -> Any:
        return httpx.get(f"http://127.0.0.1:{self.port}/v1/streams/bench", timeout=60)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:  # an overloaded machine
            self.process.kill()
            self.process.wait()


def l9(share: float) -> Told:
    """The same clients on one server with SQLite, and on two replicas, in interleaved pairs."""
    if missing():
        return missing(), False
    postgres = Postgres(sync=True)
    made, url = load.bodies(), postgres.database()
    body = {"policy": {"name": "OFUL", "dim": load.DIM, "horizon": 100_000}, "rewards": [0, 1], "half_life": 1000}

    async def rate(ports: list[int], tag: str) -> float:
        each = CLIENTS // len(ports)
        began = time.perf_counter()
        found = await asyncio.gather(
            *(load.phase(port, each, SECONDS, made, "mix", f"{tag}{port}") for port in ports)
        )
        return sum(map(len, found)) / (time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as name:
        alone, replicas = Replica(Path(name) / "a.db"), [Replica(url) for _ in range(2)]
        try:
            for one in (alone, replicas[0]):
                httpx.put(f"http://127.0.0.1:{one.port}/v1/streams/bench", json=body, timeout=300).raise_for_status()
            time.sleep(1.0)
            ratios, rates = [], []
            for number in range(max(3, round(7 * share))):
                one = asyncio.run(rate([alone.port], f"s{number}"))
                two = asyncio.run(rate([replica.port for replica in replicas], f"p{number}"))
                ratios.append(two / one)
                rates.append((two, one))
            behind = time.monotonic()
            while len({replica.stream().json()["digest"] for replica in replicas}) > 1:
                if time.monotonic() - behind > 10.0:
                    return "the digests differ", False
            behind = time.monotonic() - behind
            digest = replicas[0].stream().json()["digest"]
        finally:
            for one in (alone, *replicas):
                one.stop()
    from driftwise.service.core.verify import verify

    (found,) = verify(url)
    postgres.close()
    ratio, (two, one) = statistics.median(ratios), rates[len(rates) // 2]
    told = (f"{ratio:.2f} ({two:.0f} of {one:.0f} /s, 70% decide), equal digests after {behind:.2f} s, "
            f"{found.rewards} rewards, {len(found.differs)} wrong")  # fmt: skip
    return told, ratio >= 0.5 and not found.differs and found.digest == digest


def f9(share: float) -> Told:
    """A replica killed, connections cut, the server restarted, in turns under load; then everything is checked."""
    if missing():
        return missing(), False
    postgres, nursery, rng = Postgres(sync=True), Nursery(), random.Random(9)
    url, times = postgres.database(), max(2, round(10 * share))
    replicas = [loading.Server(url, "often", nursery=nursery) for _ in range(2)]
    replicas[0].put()
    time.sleep(1.0)
    clients = [Clients(seed, clients=8) for seed in (1, 2)]
    slowest, done = 0.0, {"kill": 0, "cut": 0, "restart": 0}
    for number in range(3 * times):
        kind = ("kill", "cut", "restart")[number % 3]
        threads = [
            threading.Thread(target=one.run, args=(replica.port, 1.5))
            for one, replica in zip(clients, replicas, strict=True)
        ]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.2, 1.0))
        if kind == "kill":
            replicas[0].kill()
        elif kind == "cut":
            postgres.cut("/")
        else:
            postgres.stop()
            postgres.start()
        for thread in threads:
            thread.join()
        if kind == "kill":
            replicas[0] = loading.Server(url, "often", nursery=nursery)
        done[kind] += 1
        began = time.monotonic()
        while len({_digest(replica) for replica in replicas}) > 1 and time.monotonic() - began < 20.0:
            time.sleep(0.02)
        slowest = max(slowest, time.monotonic() - began)
    for one, replica in zip(clients, replicas, strict=True):
        one.run(replica.port, 0.3)  # clients without an answer send the request again
    time.sleep(1.0)
    digest = _digest(replicas[0])
    found = [what for one in clients for what in wrong(url, one, digest)]
    events = sum(len(one.decided) + len(one.rewarded) for one in clients)
    statuses = {status: sum(one.statuses.get(status, 0) for one in clients) for status in (200, 404, 503)}
    for replica in replicas:
        replica.stop()
    postgres.close()
    told = (f"{done['kill']} kills, {done['cut']} cuts, {done['restart']} restarts; {events} acknowledged, {statuses}, "
            f"equal digests within {slowest:.2f} s; {len(found)} wrong")  # fmt: skip
    return told, not found and slowest <= 1.0


def _digest(replica: Any) -> str:
    while True:
        answer = httpx.get(f"{replica.url}/v1/streams/home", timeout=60)
        if answer.status_code == 200:
            return str(answer.json()["digest"])
        time.sleep(0.05)


L9 = ("PostgreSQL, two replicas, one stream, of SQLite's rate", "≥ 0.5, no gap, equal digests", l9)
F9 = ("PostgreSQL: replica killed, connections cut, server restarted", "no gap, equal digests within 1 s, nothing lost",
      f9)  # fmt: skip
