"""A replica that is stopped or cut off does not block others for long, and reports that it cannot work."""

import os
import signal
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from driftwise.service.core.verify import verify
from driftwise.service.replica import watch as replica
from service.living import ARMS, living, soon
from service.loading import Server
from service.nursery import Nursery

NURSERY = Nursery()


class Line:
    """A network between replicas and a PostgreSQL server that can be cut without notice to either side."""

    def __init__(self, server):
        self.target = str(server.folder / ".s.PGSQL.5432")
        self.whole, self._ends = threading.Event(), []
        self.whole.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self, database):
        name = database.rpartition("/")[2] if "?" not in database else database.partition("?")[0].rpartition("/")[2]
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def _accept(self):
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one, other):
        try:
            while data := one.recv(1 << 16):
                self.whole.wait()
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.whole.set()
        self._listening.close()
        for end in self._ends:
            end.close()


@pytest.fixture
def line(server):
    made = Line(server)
    yield made
    made.close()


@pytest.mark.parametrize("point", ["in-lock", "in-copy"])
def test_a_replica_that_is_stopped_with_a_streams_lock_keeps_the_others_for_seconds(database, point):
    stopped = Server(database, f"stop:{point}:1", nursery=NURSERY)
    assert stopped.put().status_code == 201
    with living(database) as home:
        assert all(home.decide(name).status_code == 200 for name in ("one", "two"))
        pid, answers = stopped.process.pid, []

        def ask():
            body = {"id": "one", "value": 1.0}
            answers.append(httpx.post(f"{stopped.url}/v1/streams/home/reward", json=body, timeout=60))

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            assert soon(lambda: Path(f"/proc/{pid}/stat").read_text().split()[2] == "T")
            answer = home.reward("two", 1.0)
            assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
            assert home.get("/healthz").json()["status"] == "away"
            assert home.decide("three").status_code == 200  # decisions need no lock
            assert soon(lambda: home.reward("two", 1.0).status_code == 200)
            assert soon(lambda: home.get("/healthz").status_code == 200)
        finally:
            os.kill(pid, signal.SIGCONT)
        asking.join()
        assert answers[0].status_code == 503  # its transaction was ended
        ask()
        assert answers[1].json() == {"verdict": "learned", "seq": 2}
        assert soon(lambda: stopped.stream()["digest"] == home.stream()["digest"])
        assert home.stream()["state_seq"] == 2
    stopped.stop()
    (found,) = verify(database)
    assert found.differs == [] and (found.decisions, found.rewards) == (3, 2)


def test_a_replica_that_is_cut_off_says_so_and_goes_on_when_the_line_is_back(line, database, monkeypatch):
    monkeypatch.setattr(replica, "NO_ANSWER", 3.0)
    with living(line.address(database)) as home:
        home.put()
        assert home.decide("before").status_code == 200
        line.whole.clear()
        answer = home.decide("one")
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert soon(lambda: home.get("/healthz").json()["status"] == "away")
        assert home.reward("before", 1.0).status_code == home.decide("two").status_code == 503
        line.whole.set()
        assert soon(lambda: home.reward("before", 1.0).status_code == 200)
        assert home.decide("one").status_code == home.decide("two").status_code == 200
        assert soon(lambda: home.get("/healthz").status_code == 200)
    (found,) = verify(database)
    assert found.differs == [] and (found.decisions, found.rewards) == (3, 1)


def test_a_replica_whose_database_hangs_ends_when_it_is_told_to(line, database):
    server = Server(line.address(database), nursery=NURSERY)
    assert server.put().status_code == 201
    with httpx.Client(base_url=server.url, timeout=30) as caller:
        assert caller.post("/v1/streams/home/decide", json={"arms": ARMS}).status_code == 200
        line.whole.clear()
        answers = []

        def ask():
            body = {"id": "cut off", "arms": ARMS}
            answers.append(httpx.post(f"{server.url}/v1/streams/home/decide", json=body, timeout=30).status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.5)
        server.process.terminate()
        assert server.process.wait(200) == 0
        asking.join()
        assert answers == [503]
    told = server.end()
    assert "Traceback" not in told
    line.whole.set()
    assert verify(database)[0].differs == []
