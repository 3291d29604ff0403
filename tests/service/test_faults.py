"""Small sizes of the fault table (docs/contract.md#faults): acknowledged requests are on disk once, and recomputed.

A negative control shows the power of each test: the same check finds a server that breaks the promise.
"""

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import httpx
import pytest

from service.loading import HEAD, Clients, Server, wrong
from service.nursery import Nursery

KILLS = 4
NURSERY = Nursery()


def killed_again_and_again(db, *what, kills=KILLS, seed=0):
    """F1: servers on one file, each killed at a random moment. Returns the errors at the end."""
    rng, clients = random.Random(seed), Clients(seed)
    found = []
    for number in range(kills):
        try:
            server = Server(db, *what, nursery=NURSERY)
        except AssertionError as refused:  # the file itself shows it
            return [str(refused)]
        assert server.put().status_code == (200 if number else 201)
        timer = threading.Timer(rng.uniform(0.15, 0.5), server.process.kill)
        timer.start()
        clients.run(server.port)
        timer.join()
        server.end()
    try:
        server = Server(db, *what, nursery=NURSERY)
    except AssertionError as refused:
        return [str(refused)]
    clients.run(server.port, 0.1)  # clients without an answer send the request again
    digest = server.stream()["digest"]
    found += wrong(db, clients, digest)
    server.kill()
    assert len(clients.decided) > 4 * kills and len(clients.rewarded) > kills  # there were requests that could be lost
    return found


@pytest.mark.parametrize("what", ((), ("slow",)), ids=("", "slow"))
def test_killed_at_random_moments_nothing_that_was_acknowledged_is_lost(tmp_path, what):
    assert killed_again_and_again(tmp_path / "a.db", "often", *what) == []


@pytest.mark.parametrize("control", (("early", "slow"), ("twice",), ("forgetful",)), ids=lambda control: control[0])
def test_a_server_that_breaks_the_promise_is_found_out(tmp_path, control):
    """The moment of a kill is random: two servers at a time until one shows the defect. After 20 the test fails."""
    assert any(killed_again_and_again(tmp_path / f"{n}.db", *control, kills=2, seed=n) for n in range(10))


@pytest.mark.parametrize(
    "point", ("before-insert", "before-commit", "after-commit", "before-reply", "in-snapshot", "in-checkpoint")
)
def test_killed_at_a_named_point_nothing_that_was_acknowledged_is_lost(tmp_path, point):
    db, clients = tmp_path / "a.db", Clients(point)
    server = Server(db, "often", f"kill:{point}:25", nursery=NURSERY)
    server.put()
    clients.run(server.port)
    server.end()
    assert server.process.returncode == -9
    server = Server(db, "often", nursery=NURSERY)
    clients.run(server.port, 0.2)
    assert wrong(db, clients, server.stream()["digest"]) == []
    server.kill()


def test_killed_while_it_makes_its_tables_the_next_makes_them(tmp_path):
    server = Server(tmp_path / "a.db", "kill:in-migration:1", wait=False, nursery=NURSERY)
    server.end()
    assert server.process.returncode == -9
    server = Server(tmp_path / "a.db", nursery=NURSERY)
    assert server.put().status_code == 201
    server.kill()


def test_when_a_sync_fails_the_process_ends_and_says_yes_to_nobody(tmp_path):
    clients = Clients(1)
    server = Server(tmp_path / "a.db", "nosync:20", nursery=NURSERY)
    server.put()
    clients.run(server.port)
    told = server.end()
    assert server.process.returncode == 4 and "no answer can be given" in told
    assert set(clients.statuses) == {200} and wrong(tmp_path / "a.db", clients) == []


def test_told_to_stop_it_answers_who_asked_and_ends_well(tmp_path):
    clients = Clients(2)
    server = Server(tmp_path / "a.db", "slow", nursery=NURSERY)
    server.put()
    working = threading.Thread(target=clients.run, args=(server.port, 20.0))
    working.start()
    time.sleep(0.5)
    server.process.terminate()
    assert server.process.wait(100) == 0
    server.end()
    working.join()
    assert set(clients.statuses) <= {200, 503} and clients.statuses[200] > 50
    assert wrong(tmp_path / "a.db", clients) == []


def test_a_second_server_ends_with_3_and_says_who_has_the_file(tmp_path):
    server = Server(tmp_path / "a.db", nursery=NURSERY)
    command = [sys.executable, "-m", "driftwise.cli", "serve", "--db", str(tmp_path / "a.db"), "--port", "0"]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 3 and f"process {server.process.pid} on " in second.stderr
    assert second.stderr.count("\n") == 1
    server.kill()


def test_an_address_that_others_reach_needs_keys(tmp_path):
    command = [sys.executable, "-m", "driftwise.cli", "serve", "--db", str(tmp_path / "a.db"), "--host", "0.0.0.0"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2 and "keys" in found.stderr and found.stderr.count("\n") == 1


def alive(server):
    """The resources of a server without connections: open files by /proc, the rest as it reports."""
    for _ in range(200):
        os.kill(server.process.pid, signal.SIGUSR1)
        line, until = "", time.monotonic() + 600.0
        while not line.startswith('{"tasks"') or not line.endswith("}\n"):
            more = server.process.stderr.readline()
            if not more:
                time.sleep(0.01)
            line = more if line.endswith("\n") else line + more  # a line may come in two parts
            assert more or server.process.poll() is None, "the server has gone"
            assert time.monotonic() < until, "the server does not tell"
        found = json.loads(line)
        if not found["connections"]:
            return {**found, "files": len(os.listdir(f"/proc/{server.process.pid}/fd"))}
        time.sleep(0.1)
    raise AssertionError(f"connections that stay: {found}")


def test_callers_that_go_away_are_recorded_at_most_once_and_leave_nothing_behind(tmp_path):
    """F12: connections are cut after a random byte of a request, closed or reset."""
    rng = random.Random(12)
    server = Server(tmp_path / "a.db", "counted", nursery=NURSERY)
    server.put()
    ids = [f"cut-{number}" for number in range(60)]
    raw = {}
    for id in ids:
        body = json.dumps({"id": id, "arms": [[0.1, 0.2], [0.2, 0.1]]}).encode()
        head = HEAD % (b"decide", len(body))
        raw[id] = head + body
    time.sleep(0.6)  # the first sleep of the watch, 0.4 s, is in the frozen heap and not counted; later ones are
    before = alive(server)
    for id in ids * 5:
        with socket.create_connection(("127.0.0.1", server.port)) as caller:
            if rng.random() < 0.5:
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.sendall(raw[id][: rng.choice((rng.randrange(1, len(raw[id])), len(raw[id])))])
    with httpx.Client(base_url=server.url, headers={"content-type": "application/json"}) as caller:
        bodies = [raw[id].partition(b"\r\n\r\n")[2] for id in ids]
        seqs = [caller.post("/v1/streams/home/decide", content=body).json()["seq"] for body in bodies]
    assert sorted(seqs) == list(range(1, len(ids) + 1)) and server.stream()["seq"] == len(ids)
    assert alive(server) == before
    assert server.stop().count("Traceback") == 0
