"""Readiness: kernels are compiled in threads before requests need them, and the server reports that it is starting."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import httpx
import pytest

from driftwise.service.core import serving
from driftwise.service.core.warming import warm
from driftwise.service.http.run import service_of
from driftwise.service.replica import watch as replica
from service.desk import Desk
from service.living import ARMS, BODY, living, soon
from service.loading import Server
from service.nursery import Nursery

TESTS = Path(__file__).parents[1]
NURSERY = Nursery()

# One process per policy, because earlier tests have loaded most kernels. Forks, because importing takes a second.
AFTER_WARM = """
    import gc, os, sys, tempfile
    from pathlib import Path
    import numpy as np
    from numba.core.dispatcher import Dispatcher
    from driftwise import Features
    from driftwise.service.dashboard.looking import why
    from driftwise.service.dashboard.track import Track
    from driftwise.service.core.recompute import explain
    from driftwise.service.core.setup import setup
    from driftwise.service.core.warming import warm
    from service.desk import POLICIES, Desk, arms_of, body_of

    FEATURES = Features(context={"hour": Features.number(12, 6)}, item={"kind": Features.levels(("news", "sport"))})

    CASES = {case: POLICIES[case] for case in ("clicks", "solver", "sampling")} | {
        "values": {"policy": {"name": "Auto", "dim": 3}, "rewards": [-5, 5], "expire_after": 3, "default_reward": 0.5},
        "wall": {**POLICIES["wall"], "epsilon": 0.3, "expire_after": "50s", "default_reward": 0.0},
        "features": {"policy": {"name": "Auto", "dim": FEATURES.dim}, "rewards": [0, 1], "epsilon": 0.3,
                     "features": FEATURES.to_dict()},
    }

    def compiled():
        every = (one for one in gc.get_objects() if isinstance(one, Dispatcher))
        return {(one.py_func.__name__, str(sign)) for one in every for sign in one.overloads}

    def new(what):
        more = compiled() - known
        known.update(more)
        for name, _ in more:
            print(case, what, name)

    def day():
        desk, rng = Desk(Path(tempfile.mkdtemp()) / "a.db", CASES[case]), np.random.default_rng(1)
        dim, encoder = desk.stream.setup.policy.dim, desk.stream.offers.encoder
        if encoder is not None:
            encoder.know({"a": {"kind": "news"}, "b": {"kind": "sport"}})
            desk.decide(None, id="encoded", context={"hour": 3}, items=["a", "b"])
            new("decide with features")
        for number in range(12):
            desk.decide(arms_of(rng, 3 + number, dim), id=str(number), at=1000.0 + number)
            new("decide")
        desk.commit()
        desk.reward("0", 1.0, at=1012.0)
        desk.commit()
        new("a first reward")
        for number in range(1, 12):
            desk.reward(str(number), number % 2, at=1013.0)
        desk.commit()
        new("rewards")
        desk.decide(arms_of(rng, 2000, dim), id="many", at=1e4)
        desk.commit()
        new("decide among many, after some ticks")
        if desk.stream.setup.terms.default is not None:
            for number in range(9):
                desk.decide(arms_of(rng, dim=dim), id=f"due {number}", at=2e4)
            desk.stream.peers.expire(3e4)
            desk.commit()
        desk.reward("many", 1.0, at=3e4)
        desk.commit()
        new("defaults")
        desk.stream.answer(), desk.stream.fold.snapshot_behind()
        explain(desk.store, 1, "many"), why(desk.store, 1, "many")
        new("explain")
        desk.refolded()
        new("fold of many")
        Track(desk.store, desk.stream.era, desk.stream.setup, desk.stream.fold.seq).follow(desk.store, 3)
        new("a page")

    for case in CASES:
        if os.fork() == 0:
            made = setup(body_of(CASES[case]))
            warm(made.policy, made.terms.low)
            known = compiled()
            assert known, "nothing was compiled"
            day()
            sys.stdout.flush()
            os._exit(0)
        assert os.wait()[1] == 0
"""


def test_after_a_warm_no_request_fold_or_page_compiles_anything():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(AFTER_WARM)], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(TESTS), "DRIFTWISE_PATIENCE": "1"},  # a server compiles at once
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


def made(path, lessons=3):
    """A database with a stream."""
    desk = Desk(path, BODY)
    for number in range(lessons):
        desk.decide(ARMS, id=str(number))
        desk.reward(str(number), 1.0)
    desk.commit()
    desk.close()


@pytest.fixture
def compiling(monkeypatch):
    """Compiling waits until this is set."""
    done = threading.Event()

    def slowly(*arguments):
        assert done.wait(30)
        warm(*arguments)

    monkeypatch.setattr(serving, "warm", slowly)
    yield done
    done.set()


def later(monkeypatch):
    monkeypatch.setattr("service.living.service_of", lambda store, *more: service_of(store, *more, later=True))


def test_until_its_streams_are_compiled_a_server_lives_and_is_not_ready(tmp_path, monkeypatch, compiling):
    made(tmp_path / "a.db")
    later(monkeypatch)
    with living(tmp_path / "a.db") as asked:
        assert asked.get("/healthz").json() == {"status": "fine"}
        assert soon(lambda: "home" in asked.get("/readyz").text)
        told = asked.get("/readyz")
        assert told.status_code == 503 and told.json()["status"] == "starting" and "home" in told.json()["reason"]
        for found in (asked.decide("a"), asked.reward("0", 1.0), asked.put("other"), asked.ask("GET", "home"),
                      asked.get("/metrics"), asked.get("/")):  # fmt: skip
            assert found.status_code == 503 and found.headers["retry-after"] == "1"
            assert "starting" in found.text
        assert asked.decide("a").json()["field"] == "ready"
        compiling.set()
        assert soon(lambda: asked.get("/readyz").status_code == 200)
        assert asked.get("/readyz").json() == {"status": "fine"}
        assert asked.decide("a").json()["seq"] == 4 and asked.stream()["counts"]["learned"] == 3


def test_a_server_that_starts_tells_nothing_more_without_a_key(tmp_path, monkeypatch, compiling):
    made(tmp_path / "a.db")
    later(monkeypatch)
    with living(tmp_path / "a.db") as asked:
        asked.service.access.close()
        assert asked.get("/readyz").json() == {"status": "starting"}
        compiling.set()


def test_while_a_new_stream_is_compiled_others_are_served(tmp_path, compiling):
    made(tmp_path / "a.db", 0)
    compiling.set()
    with living(tmp_path / "a.db") as asked:
        compiling.clear()
        body = {**BODY, "policy": {"name": "OFUL", "dim": 2, "horizon": 999}}
        waiting = threading.Thread(target=asked.put, args=("new",), kwargs=body)
        waiting.start()
        assert asked.decide("a").status_code == 200 and asked.reward("a", 1.0).status_code == 200
        assert asked.ask("GET", "new").status_code == 404 and waiting.is_alive()
        compiling.set()
        waiting.join(10)
        assert asked.ask("GET", "new").status_code == 200


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
@pytest.mark.parametrize("when", ("start", "put"))
def test_a_server_that_is_told_to_stop_waits_for_no_compile(tmp_path, number, when):
    if when == "start":
        made(tmp_path / "a.db")
    server = Server(tmp_path / "a.db", "cold", wait=False, nursery=NURSERY)
    server.wait("/healthz")
    if when == "put":
        server.wait()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(server.put()))
        asking.start()
        time.sleep(0.3)
    began = time.monotonic()
    os.kill(server.process.pid, number)
    assert server.process.wait(50) == 0
    spent, told = time.monotonic() - began, server.end()
    assert spent < 40.0, spent  # two seconds on an idle machine; one that waits needs a minute
    assert "Traceback" not in told and '"stopped"' in told
    if when == "put":
        asking.join()
        assert answers[0].status_code == 503 and "stopping" in answers[0].text
    with living(tmp_path / "a.db") as asked:
        assert when == "put" or asked.stream()["counts"]["learned"] == 3


def serve(path, port, environment=None):
    command = [sys.executable, "-m", "driftwise.cli", "serve", "--db", str(path), "--port", str(port)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def test_serving_is_said_when_the_port_is_bound_and_ready_after_it(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = serve(tmp_path / "a.db", taken.getsockname()[1])
        told = process.communicate(timeout=60)[1]
    assert process.returncode == 2 and "address already in use" in told and not list(tmp_path.iterdir())
    assert '"serving"' not in told and "Traceback" not in told
    process = serve(tmp_path / "a.db", 0)
    try:
        lines = [json.loads(process.stderr.readline()) for _ in range(2)]
        assert [line["event"] for line in lines] == ["serving", "ready"] and lines[1]["streams"] == 0
        assert httpx.get(f"http://127.0.0.1:{lines[0]['port']}/readyz").json() == {"status": "fine"}
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_database_that_cannot_be_resumed_ends_the_server_with_a_sentence(tmp_path, monkeypatch):
    made(tmp_path / "a.db")
    store = Desk(tmp_path / "a.db").store
    store._database.execute("DELETE FROM reward WHERE seq = 2")
    store.close()
    found = serve(tmp_path / "a.db", 0)
    told = found.communicate(timeout=60)[1]
    sentences = [line for line in told.splitlines() if not line.startswith("{")]
    assert found.returncode == 2 and len(sentences) == 1 and "home" in sentences[0], told


def test_a_stream_of_another_replica_is_compiled_aside_from_those_that_are_served(database, monkeypatch):
    with living(database) as a, living(database) as b:
        assert a.put().status_code == 201 and soon(lambda: b.decide("x").status_code == 200)
        done = threading.Event()
        monkeypatch.setattr(a.service.watch, "_compiled", lambda *_: True)  # in one process both share compiled kernels
        monkeypatch.setattr(replica, "is_warm", lambda policy: done.is_set())
        monkeypatch.setattr(replica, "warm", lambda *_: done.wait(30))
        try:
            assert a.put("new").status_code == 201
            assert soon(lambda: b.decide("y", stream="new").status_code == 503)
            refused = b.decide("y", stream="new").json()
            assert refused["field"] == "ready" and "compiled" in refused["error"]
            assert a.ask("PUT", "home/policy", json={**BODY, "epsilon": 0.1}).status_code == 200
            assert soon(lambda: b.decide("z").status_code == 503)  # of another era, by a policy that is not compiled
            assert a.decide("w").status_code == 200 and a.reward("w", 1.0).status_code == 200
            assert b.get("/readyz").status_code == 200
        finally:
            done.set()
        assert soon(lambda: b.decide("y", stream="new").status_code == 200)
        assert soon(lambda: b.decide("z").status_code == 200) and not b.service.compiling
        assert soon(lambda: b.stream()["state_seq"] == a.stream()["state_seq"] == 1)
        assert b.stream()["digest"] == a.stream()["digest"]
