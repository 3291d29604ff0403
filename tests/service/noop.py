"""The service beside a no-op endpoint of the same server, for the load rows of bench/reliability.py (L1 to L5).

The no-op is an ordinary Starlette handler that reads the same body and answers a constant. Server on one core, clients
on the other; pairs of the two are interleaved, and medians of their ratios told. A pair is no result where the no-op's
own rate moved by more than a factor of two.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

DIM, ARMS, BODIES = 10, 10, 20_000


def serve(db: Path, port: int) -> None:
    """The service with a no-op beside it."""
    from starlette.responses import Response
    from starlette.routing import Route

    from driftwise.service.core.serving import Service
    from driftwise.service.http.app import app
    from driftwise.service.http.logs import ServerLog
    from driftwise.service.http.run import run, settle_heap
    from driftwise.service.stores.sqlite import SQLiteStore

    constant = json.dumps({"id": "abcdef", "arm": 1, "score": 0.1234567, "propensity": 1.0, "seq": 12345}).encode()

    async def noop(request):
        await request.body()
        return Response(constant, media_type="application/json")

    made = app(Service(SQLiteStore(db)), ServerLog(), settle_heap)
    made.inside.router.routes.insert(0, Route("/noop", noop, methods=["POST"]))
    run(made, "127.0.0.1", port)


class Server:
    """The server in a process of its own, on the first core."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.db = folder / "bench.db"
        command = [sys.executable, __file__, "--serve", str(self.db), "--port", str(self.port)]
        self.process = subprocess.Popen(command)
        os.sched_setaffinity(self.process.pid, {0})
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server did not start")

    def cpu(self) -> float:
        """Seconds of CPU it has used, all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


def bodies() -> list[bytes]:
    """Arms that differ from request to request, as contexts make them, without the brace and id before them."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(BODIES):
        arms = rng.normal(size=(ARMS, DIM))
        arms /= np.linalg.norm(arms, axis=1)[:, None] * 1.001
        made.append(('"arms":' + json.dumps(arms.round(6).tolist()) + "}").encode())
    return made


HEAD = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


async def ask(reader, writer, path: bytes, body: bytes) -> bytes:
    writer.write(HEAD % (path, len(body)) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.lower().index(b"content-length:") + 15
    answer = await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"refused: {head[:30]!r} {answer[:200]!r}")
    return answer


async def phase(port: int, clients: int, seconds: float, made: list[bytes], kind: str, tag: str) -> list[float]:
    """Latencies of all requests of so many clients in a closed loop; of a mix three in ten are rewards."""
    spent: list[float] = []
    fresh = itertools.count(int.from_bytes(hashlib.sha256(tag.encode()).digest()[:4]))
    until = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while time.perf_counter() < until:
            count += 1
            id = f"{tag}-{number}-{count}"
            body = b'{"id":"%s",' % id.encode() + made[next(fresh) % BODIES]
            path = b"/noop" if kind == "noop" else b"/v1/streams/bench/decide"
            if kind == "mix" and count % 10 in (3, 6, 9):
                before = f"{tag}-{number}-{count - 1}"
                path, body = b"/v1/streams/bench/reward", json.dumps({"id": before, "value": 1.0}).encode()
            began = time.perf_counter()
            await ask(reader, writer, path, body)
            spent.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return spent


def fdatasync(folder: Path, times: int = 200, quantile: float = 0.99) -> float:
    """A quantile of the time to write and sync a page."""
    file, spent = os.open(folder / "sync", os.O_RDWR | os.O_CREAT), []
    for _ in range(times):
        os.write(file, b"x" * 4096)
        began = time.perf_counter()
        os.fdatasync(file)
        spent.append(time.perf_counter() - began)
    os.close(file)
    return float(np.quantile(spent, quantile))


class Pairs(NamedTuple):
    """Medians of interleaved pairs of a no-op (floor) and the real thing."""

    clients: int
    kind: str
    ratio: float
    floor: float
    cpu: float
    floor_micros: float
    tail: float
    floor_tail: float
    steady: bool

    def __str__(self) -> str:
        return (
            f"{self.clients:4d} clients, {self.kind:6s}: rate/no-op {self.ratio:.2f} ({self.ratio * self.floor:.0f} of "
            f"{self.floor:.0f} /s), CPU/no-op {self.cpu:.2f} (of {self.floor_micros:.0f} µs), "
            f"p99 {self.tail * 1e3:.1f} ms (no-op {self.floor_tail * 1e3:.1f} ms)"
            + ("" if self.steady else "  [no result: the no-op rate moved by more than 2]")
        )


def pairs(server: Server, clients: int, kind: str, seconds: float, count: int, made: list[bytes]) -> Pairs:
    """One row: the ratios of so many interleaved pairs."""
    rates, cpus, tails, floors, lows, micros = [], [], [], [], [], []
    for pair in range(count):
        told = {}
        for what in ("noop", kind):
            used = server.cpu()
            spent = asyncio.run(phase(server.port, clients, seconds, made, what, f"{kind}{clients}.{pair}"))
            used = server.cpu() - used
            told[what] = len(spent) / seconds, used / len(spent), float(np.quantile(spent, 0.99))
        (rate, cpu, tail), (floor, idle, low) = told[kind], told["noop"]
        micros.append(idle * 1e6)
        rates.append(rate / floor), cpus.append(cpu / idle), tails.append(tail), floors.append(floor), lows.append(low)
    middle, steady = statistics.median, max(floors) <= 2.0 * min(floors)
    numbers = (middle(one) for one in (rates, floors, cpus, micros, tails, lows))
    return Pairs(clients, kind, *numbers, steady)


def make_stream(server: Server, policy: str) -> None:
    """Make the stream that gets the requests."""
    import httpx

    body = {"policy": {"name": policy, "dim": DIM}, "rewards": [0, 1], "clock": "rewards"}
    if policy == "OFUL":
        body = {**body, "policy": {**body["policy"], "horizon": 100_000}, "half_life": 1000}
    httpx.put(f"http://127.0.0.1:{server.port}/v1/streams/bench", json=body, timeout=120).raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    serve(options.serve, options.port)


if __name__ == "__main__":
    main()
