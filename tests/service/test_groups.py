"""Groups: many requests at once, overload, a group that fails, slow callers."""

import asyncio
import os
import socket
import time

import pytest

from driftwise.service.core.stream import Stream
from driftwise.service.core.verify import verify
from driftwise.service.http.logs import ServerLog
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.wire.protocol import MOST_WAITING, DecideBody
from service.living import ARMS, living
from service.loading import HEAD, Server


def many(asked, bodies, kind="decide"):
    async def all_of_them():
        asks = (asked.client.post(f"/v1/streams/home/{kind}", json=body) for body in bodies)
        return await asyncio.gather(*asks)

    return asked.wait(all_of_them())


def test_those_that_come_together_are_one_group_and_each_gets_its_own(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        commits = sum(asked.service.engine.commits)
        found = many(asked, [{"id": str(number), "arms": ARMS} for number in range(50)])
        assert [one.json()["id"] for one in found] == [str(number) for number in range(50)]
        assert sorted(one.json()["seq"] for one in found) == list(range(1, 51))
        assert sum(asked.service.engine.commits) - commits <= 3
        told = many(asked, [{"id": str(number % 25), "value": 1.0} for number in range(50)], "reward")
        verdicts = [one.json()["verdict"] for one in told]
        assert verdicts.count("learned") == verdicts.count("duplicate") == 25
        twice = many(asked, [{"id": "same", "arms": ARMS}] * 20)
        assert len({one.text for one in twice}) == 1
    assert not verify(tmp_path / "a.db")[0].differs


def test_when_syncs_are_slow_two_halves_of_the_callers_become_one_group(tmp_path, monkeypatch):
    inside, times = SQLiteStore.commit, 12

    def slow(self):
        time.sleep(0.02)
        inside(self)

    with living(tmp_path / "a.db") as asked:
        asked.put()
        monkeypatch.setattr(SQLiteStore, "commit", slow)
        engine, stream = asked.service.engine, asked.service.stream("home")
        body = DecideBody(arms=ARMS)
        offer, before = stream.offers.offer(body), sum(engine.commits)

        async def caller(later):
            await asyncio.sleep(later)
            for _ in range(times):
                await engine.submit(lambda: stream.decide(body, offer, 0.0))

        async def all_of_them():
            await asyncio.gather(*(caller(0.005 * (number % 2)) for number in range(8)))

        asked.wait(all_of_them())
        assert sum(engine.commits) - before <= times + 3  # one after the other they would need twice as many
        monkeypatch.undo()
    assert not verify(tmp_path / "a.db")[0].differs


def test_more_than_can_wait_are_told_to_come_again_and_lose_nothing(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        found = many(asked, [{"id": str(number), "arms": ARMS} for number in range(MOST_WAITING + 60)])
        statuses = [one.status_code for one in found]
        assert set(statuses) == {200, 503} and statuses.count(503) <= 60
        assert all(one.headers["retry-after"] == "1" for one in found if one.status_code == 503)
        assert asked.stream()["seq"] == statuses.count(200)


def test_a_slip_of_ours_undoes_its_group_and_is_told_without_what_was_sent(tmp_path, monkeypatch):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        asked.decide("before")
        state, inside = asked.stream(), Stream.reward

        def slips(self, body, at):
            inside(self, body, at)
            raise ZeroDivisionError(body.id)

        monkeypatch.setattr(Stream, "reward", slips)
        assert asked.reward("before", 1.0).status_code == 503
        assert asked.stream() == state and "ZeroDivisionError" in asked.log.getvalue()
        monkeypatch.undo()
        assert asked.reward("before", 1.0).json() == {"verdict": "learned", "seq": 1}
        assert "before" not in asked.log.getvalue()
    assert not verify(tmp_path / "a.db")[0].differs


def test_a_log_that_nobody_reads_holds_up_nobody():
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as out:
        log, began = ServerLog(out=out), time.monotonic()
        for number in range(5_000):  # a pipe holds a few hundred of these
            log.event("said", number=number, padding="x" * 200)
        assert time.monotonic() - began < 60.0 and log.left_out > 1_000
        told = b""
        while b"left_out" not in told:
            told += os.read(reading, 1 << 16)
            log.event("more")
        log.close()
    os.close(reading)


@pytest.mark.parametrize(
    "sent", (b"", HEAD[:50], HEAD % (b"decide", 9) + b"{"), ids=("nothing", "half a head", "half a body")
)
def test_slow_callers_are_cut_off_and_others_are_not(hasty, sent):
    head = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"
    with socket.create_connection(("127.0.0.1", hasty.port)) as slow:
        slow.settimeout(100.0)
        began = time.monotonic()
        slow.sendall(sent)
        assert slow.recv(1000) == b"" and time.monotonic() - began > 0.3
    with socket.create_connection(("127.0.0.1", hasty.port)) as patient:
        patient.settimeout(100.0)
        for _ in range(2):
            patient.sendall(head)
            told = b""
            while not told.endswith(b"}"):
                told += patient.recv(1000)
            assert told.startswith(b"HTTP/1.1 200 ")
            time.sleep(0.7)  # waiting between requests is allowed


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("hasty") / "a.db", "hasty")
    yield server
    server.kill()
