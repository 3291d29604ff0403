"""Clients that record what was acknowledged, a server to kill, and the check of the database afterwards."""

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx

from driftwise.service.core.verify import verify
from driftwise.service.stores.opening import open_store
from service.nursery import Forked

BROKEN = Path(__file__).with_name("broken.py")
BODY = {"policy": {"name": "OFUL", "dim": 2, "horizon": 1000}, "rewards": [0, 1], "half_life": 50, "epsilon": 0.1}
HEAD = (b"POST /v1/streams/home/%s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n")  # fmt: skip


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A server in a separate process: forked from a nursery if there is one, otherwise started from scratch."""

    def __init__(self, db, *what, wait=True, nursery=None, env=None):
        self.db, self.port = db, free_port()
        if nursery is not None:
            self.process = nursery.start(db, self.port, *what)
        else:
            command = [sys.executable, str(BROKEN), str(db), str(self.port), *what]
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
        if wait:
            self.wait()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def wait(self, path="/readyz"):
        """Wait until it is ready, or answers at another path."""
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            with suppress(httpx.TransportError):
                if httpx.get(self.url + path, timeout=10).is_success:
                    return
            time.sleep(0.02)
        raise AssertionError(f"no server: {self.end()}")

    def put(self, **changes):
        return httpx.put(f"{self.url}/v1/streams/home", json={**BODY, **changes}, timeout=60)

    def stream(self):
        return httpx.get(f"{self.url}/v1/streams/home", timeout=60).json()

    def kill(self):
        self.process.kill()
        return self.end()

    def stop(self):
        self.process.terminate()
        return self.end()

    def end(self):
        """Its output when it ended."""
        with self.process.stderr:
            if isinstance(self.process, Forked):  # a file, which is complete when the process has ended
                self.process.wait(30)
            told = self.process.stderr.read()
        self.process.wait(30)
        return told


class Clients:
    """So many clients in a closed loop; the acknowledged requests, and the bodies that got no answer."""

    def __init__(self, seed, clients=16):
        self.rng, self.clients = random.Random(seed), clients
        self.decided, self.rewarded = {}, {}
        self.unanswered = []
        self.repeats = []  # repeated answers for an id, which must be equal
        self.statuses = {}
        self.times = {}  # when an id was first answered, by time.monotonic_ns
        self.number = 0

    def run(self, port, seconds=60.0):
        """Run until the server is gone, or the time is over."""
        asyncio.run(self._all(port, time.monotonic() + seconds))

    async def _all(self, port, until):
        again, self.unanswered = self.unanswered, []
        many = range(self.clients)
        await asyncio.gather(*(self._client(port, until, again[place :: self.clients]) for place in many))

    async def _client(self, port, until, again):
        rng = random.Random(self.rng.random())
        asked = writer = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for asked in again:
                await self._ask(reader, writer, *asked)
            while time.monotonic() < until:
                self.number += 1
                id = f"{self.number}-{rng.random()}"
                arms = [[round(rng.uniform(-0.7, 0.7), 3) for _ in range(2)] for _ in range(3)]
                asked = ("decide", {"id": id, "arms": arms})
                await self._ask(reader, writer, *asked)
                if rng.random() < 0.1:
                    await self._ask(reader, writer, *asked)
                if id in self.decided and rng.random() < 0.7:
                    asked = ("reward", {"id": id, "value": float(rng.random() < 0.5)})
                    await self._ask(reader, writer, *asked)
        except (OSError, EOFError):
            if asked is not None:
                self.unanswered.append(asked)
        finally:
            if writer is not None:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    async def _ask(self, reader, writer, kind, body):
        raw = json.dumps(body).encode()
        writer.write(HEAD % (kind.encode(), len(raw)) + raw)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        now, status = time.monotonic_ns(), int(head.split()[1])
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status != 200:
            return
        known = self.decided if kind == "decide" else self.rewarded
        if kind == "reward":
            answer = {"seq": answer["seq"], "value": body["value"]}
        if body["id"] in known:
            self.repeats.append((known[body["id"]], answer))
        known[body["id"]] = answer
        self.times.setdefault((kind, body["id"]), now)


def wrong(db, clients, live_digest=None):
    """The broken promises: acknowledged requests that are not recorded once, decisions that differ when recomputed."""
    found = []
    store = open_store(db, writes=False)
    for id, answer in clients.decided.items():
        row = store.decision(1, id)
        if row is None:
            found.append(f"decision {id} was acknowledged and is not there")
        elif (row.seq, row.arm, row.score, row.propensity) != tuple(
            answer[name] for name in ("seq", "arm", "score", "propensity")
        ):
            found.append(f"decision {id} is another than was acknowledged")
    for id, answer in clients.rewarded.items():
        row = store.reward(1, id)
        if row is None or (row.seq, row.value) != (answer["seq"], answer["value"]):
            found.append(f"reward {id} was acknowledged and is not there")
    store.close()
    found += [f"two answers to one id: {one} {two}" for one, two in clients.repeats if one != two]
    (told,) = verify(db)
    found += told.differs
    if live_digest is not None and told.digest != live_digest:
        found.append("the live state is not the fold of what is written")
    return found
