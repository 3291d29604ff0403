"""A service in this process, called as over HTTP: one event loop in a thread, as in a server."""

import asyncio
import io
import threading
import time
from contextlib import contextmanager

import httpx

from driftwise.service.http.app import app
from driftwise.service.http.logs import ServerLog
from driftwise.service.http.run import service_of
from driftwise.service.stores.opening import open_store

BODY = {"policy": {"name": "OFUL", "dim": 2, "horizon": 1000}, "rewards": [0, 1], "half_life": 50}
ARMS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]


def soon(what, seconds=100.0):
    """Whether a condition becomes true within a time. The promise is one second, on an idle machine."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Living:
    """A client of a service, with what it logs."""

    def __init__(self, service, client, log, loop):
        self.service, self.client, self.log, self.loop = service, client, log, loop

    def wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def get(self, path):
        return self.wait(self.client.get(path))

    def ask(self, method, path, **more):
        return self.wait(self.client.request(method, f"/v1/streams/{path}", **more))

    def put(self, name="home", **changes):
        return self.ask("PUT", name, json={**BODY, **changes})

    def decide(self, id=None, arms=ARMS, stream="home", **more):
        body = {"arms": arms, **more, "id": id}
        return self.ask("POST", f"{stream}/decide", json={name: one for name, one in body.items() if one is not None})

    def reward(self, id, value, stream="home"):
        return self.ask("POST", f"{stream}/reward", json={"id": id, "value": value})

    def stream(self, name="home"):
        return self.ask("GET", name).json()


class Written:
    """Everything that a log has written so far."""

    def __init__(self, log, out):
        self.log, self.out = log, out

    def getvalue(self):
        while self.log._lines.qsize():
            time.sleep(0.001)
        time.sleep(0.005)
        return self.out.getvalue()


class Passing(httpx.BaseTransport):
    """Requests of a client, passed to the service."""

    def __init__(self, asked):
        self.asked = asked

    def handle_request(self, request):
        found = self.asked.wait(self.asked.client.request(
            request.method, httpx.URL("http://127.0.0.1:8000", raw_path=request.url.raw_path), content=request.read(),
            headers=request.headers,
        ))  # fmt: skip
        return httpx.Response(found.status_code, content=found.content, request=request)


@contextmanager
def living(path, now=None, webhook=None, **options):
    """A service on a database, from start to a clean end."""
    store = open_store(path, **options)
    if not store.shared:
        store._database.execute("PRAGMA synchronous=OFF")  # no power cut is tested here
    service, out = service_of(store) if now is None else service_of(store, now), io.StringIO()
    log = ServerLog(requests=True, out=out)
    made = app(service, log, webhook=webhook)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(made), base_url="http://127.0.0.1:8000",
                               headers={"content-type": "application/json"})  # fmt: skip
    asked = Living(service, client, Written(log, out), loop)
    asked.board, asked.routes = made.board, made.inside.routes
    life = made.inside.router.lifespan_context(made.inside)
    asked.wait(life.__aenter__())
    loop.call_soon_threadsafe(made.prepare)
    try:
        yield asked
    finally:
        asked.wait(client.aclose())
        asked.wait(life.__aexit__(None, None, None))
        log.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
