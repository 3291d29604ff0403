"""F6 on a real full disk: a small tmpfs, if the test may mount one."""

import contextlib
import subprocess

import httpx
import numpy as np
import pytest

from driftwise.cli import main
from service.living import living, soon
from service.loading import Clients, Server, wrong
from service.nursery import Nursery


def test_a_full_database_is_full_after_a_restart_too_and_says_when_there_is_room(tmp_path):
    rng = np.random.default_rng(0)
    with living(tmp_path / "a.db", pages=100) as asked:
        assert asked.put().status_code == 201
        while asked.decide(arms=(rng.normal(size=(200, 2)) / 10).tolist()).status_code == 200:
            pass
    with living(tmp_path / "a.db", pages=100) as asked:
        assert soon(lambda: asked.get("/healthz").json()["status"] == "full", 20.0)
        asked.service.store.run("PRAGMA max_page_count=10000")
        assert soon(lambda: asked.get("/healthz").json()["status"] == "fine", 20.0)


@pytest.fixture
def small(tmp_path):
    """A disk of one megabyte, and how to make it larger."""
    place = tmp_path / "small"
    place.mkdir()

    def mount(options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False)

    try:
        if mount("size=1m").returncode:
            pytest.skip("no right to mount a tmpfs here")
    except FileNotFoundError:
        pytest.skip("no mount here")
    yield place, lambda size: mount(f"remount,size={size}")
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("there", [False, True])
def test_a_server_that_finds_no_room_at_all_says_so_and_leaves_no_new_file(small, capsys, there):
    place, _ = small
    if there:
        with living(place / "a.db") as asked:
            assert asked.put().status_code == 201 and asked.decide("a").status_code == 200
    with contextlib.suppress(OSError), (place / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--db", str(place / "a.db"), "--port", "0"])
    told = capsys.readouterr().err
    assert ended.value.code == 2 and "db: wanted" in told and "make room" in told and "backup" not in told
    assert there or [one.name for one in place.iterdir()] == ["fill"]
    (place / "fill").unlink()
    if there:
        with living(place / "a.db") as asked:
            assert asked.stream()["counts"]["decided"] == 1


def test_a_disk_that_is_full_refuses_and_goes_on_when_there_is_room(small):
    place, grow = small
    server, clients, rng = Server(place / "a.db", nursery=Nursery()), Clients(6), np.random.default_rng(0)
    assert server.put().status_code == 201
    with httpx.Client(base_url=server.url, timeout=60) as caller:

        def decide(id):
            body = {"id": id, "arms": (rng.normal(size=(200, 2)) / 10).tolist()}
            answer = caller.post("/v1/streams/home/decide", json=body)
            if answer.status_code == 200:
                clients.decided[id] = answer.json()
            return answer.status_code

        statuses = [decide("0")]
        while statuses[-1] == 200 and len(statuses) < 2000:
            statuses.append(decide(str(len(statuses))))
        assert statuses[-1] == 507 and len(statuses) > 20
        health = caller.get("/healthz")
        assert health.status_code == 503 and health.json()["status"] == "full"
        before = server.stream()
        assert [decide(f"full-{number}") for number in range(5)] == [507] * 5 and server.stream() == before
        assert grow("16m").returncode == 0
        assert [decide(f"more-{number}") for number in range(50)] == [200] * 50
        assert caller.get("/healthz").json() == {"status": "fine"}
    clients.run(server.port, 0.3)
    assert wrong(server.db, clients, server.stream()["digest"]) == []
    assert "Traceback" not in server.stop() and server.process.returncode == 0
