"""The webhook: off by default, one address, signed, retried from the database, and never in the way of an answer."""

import hashlib
import hmac
import json
import re
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from driftwise.errors import BadInput
from driftwise.service.core.telling import Telling
from driftwise.service.core.verify import verify
from driftwise.service.http import webhook as sending
from driftwise.service.http.webhook import Webhook, webhook_of
from driftwise.service.stores.opening import open_store
from service.living import living, soon
from service.loading import free_port
from service.test_ramps import db, play, step  # noqa: F401 - a fixture

SECRET = "a secret of the tests"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, value in (("_FIRST", 0.05), ("_LONGEST", 0.2), ("_PAUSE", 0.02), ("_TIMEOUT", 2.0)):
        monkeypatch.setattr(sending, name, value)


@contextmanager
def receiver(port=0, answers=(), delay=0.0):
    """A receiver that records messages and answers with these statuses, then with 204."""
    came, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            came.append((self.path, dict(self.headers.items()), body))
            time.sleep(delay)
            self.send_response(left.pop(0) if left else 204)
            self.send_header("location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook?a=1", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def notices(path):
    with closing(open_store(path, writes=False)) as store:
        return store.notices(2.0**40)


def kinds(came):
    return [json.loads(body)["kind"] for _, _, body in came]


def test_a_stop_is_told_once_signed_and_without_items_or_keys(db):  # noqa: F811
    with receiver() as (url, came), living(db, webhook=Webhook(url, SECRET)) as asked:
        asked.put()
        asked.decide("order-7", items=["a", "b", "c"])
        asked.ask("POST", "home/pause", json={"fallback": "b"})
        assert soon(lambda: came) and soon(lambda: not notices(db))
        asked.ask("POST", "home/resume")
        time.sleep(0.1)
        assert len(came) == 1
    path, headers, body = came[0]
    assert path == "/hook?a=1" and headers["content-type"] == "application/json"
    at, given = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", headers["driftwise-signature"]).groups()
    assert given == hmac.new(SECRET.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert abs(int(at) - time.time()) < 60
    told = json.loads(body)
    assert (told["kind"], told["stream"], told["what"], told["facts"]) == ("stop", "home", "paused", {})
    assert b"order-7" not in body and b'"b"' not in body and SECRET not in str(headers)


def test_without_a_webhook_nothing_is_kept_to_be_sent(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        asked.ask("POST", "home/pause")
    assert notices(tmp_path / "a.db") == []


def test_a_receiver_that_fails_redirects_or_is_down_is_tried_again_also_after_a_restart(tmp_path):
    port = free_port()
    hook = Webhook(f"http://127.0.0.1:{port}/hook", SECRET)
    with living(tmp_path / "a.db", webhook=hook) as asked:
        asked.put()
        asked.ask("POST", "home/pause")
        assert soon(lambda: [one.tries for one in notices(tmp_path / "a.db")] > [1])
    with receiver(port, answers=(500, 302)) as (_, came), living(tmp_path / "a.db", webhook=hook) as asked:
        assert soon(lambda: not notices(tmp_path / "a.db"))
        assert len(came) == 3 and {path for path, _, _ in came} == {"/hook"}
        assert len({json.loads(body)["id"] for _, _, body in came}) == 1
        lines = [json.loads(line) for line in asked.log.getvalue().splitlines()]
        assert [line["why"] for line in lines if line["event"] == "webhook"] == ["status 500", "status 302"]
        assert 'driftwise_webhook_total{outcome="failed"} 2.0' in asked.get("/metrics").text


def test_a_slow_receiver_delays_no_answer(tmp_path):
    with receiver(delay=1.5) as (url, came), living(tmp_path / "a.db", webhook=Webhook(url, SECRET)) as asked:
        asked.put()
        asked.put("other")
        asked.ask("POST", "other/pause")
        assert soon(lambda: came)
        began, spent = time.monotonic(), []
        while time.monotonic() - began < 0.3:
            assert asked.decide().status_code == 200
            spent.append(time.monotonic() - began - sum(spent))
        assert min(spent) < 1.0 and notices(tmp_path / "a.db")  # it waits for the receiver all that time
        assert soon(lambda: not notices(tmp_path / "a.db"))


def test_a_lift_that_is_certain_is_told_once_and_computed_again(db):  # noqa: F811
    with receiver() as (url, came), living(db, webhook=Webhook(url, SECRET)) as asked:
        asked.put(mode="holdback", holdback=0.5)
        play(asked, 0, 1_000, 0.05, 0.6)
        telling = Telling(asked.service)
        for _ in range(2):
            asked.wait(telling.look())
        assert soon(lambda: kinds(came) == ["lift"])
    facts = json.loads(came[0][2])["facts"]
    assert facts["policy"] == "worse" and facts["difference"][2] < 0.0
    (found,) = verify(db)
    assert not found.differs


def test_the_stop_of_a_ramp_is_told(tmp_path):
    with receiver() as (url, came), living(tmp_path / "a.db", webhook=Webhook(url, SECRET)) as asked:
        asked.put(mode="holdback", ramp=[0.5, 1])
        play(asked, 0, 1_000, 0.05, 0.6)
        assert step(asked)["stopped"] and soon(lambda: "stop" in kinds(came))


def test_drift_is_told_when_the_memory_of_a_bank_becomes_short(tmp_path):
    rng = np.random.default_rng(0)
    with receiver() as (url, came), living(tmp_path / "a.db", webhook=Webhook(url, SECRET)) as asked:
        asked.put(policy={"name": "Auto", "dim": 2}, half_life=None, mode="shadow")
        for start in range(0, 500, 100):
            turns = np.arange(start, start + 100) / 15.0  # preferences make one turn in 94 rewards
            arms = rng.uniform(-0.7, 0.7, (100, 2, 2))
            bodies = [{"id": f"d{start + n}", "arms": arms[n].tolist(), "action": n % 2} for n in range(100)]
            asked.ask("POST", "home/decide/batch", json=bodies)
            values = [0.5 + 0.5 * float(arms[n, n % 2] @ [np.cos(turns[n]), np.sin(turns[n])]) for n in range(100)]
            rewards = [{"id": f"d{start + n}", "value": value} for n, value in enumerate(values)]
            asked.ask("POST", "home/reward/batch", json=rewards)
            asked.wait(Telling(asked.service).look())
        assert soon(lambda: "drift" in kinds(came))
    with closing(open_store(tmp_path / "a.db")) as store:
        told = [json.loads(one.body) for one in store.events(1)]
        assert told and told[0]["before"] is None and told[0]["memory"] <= 0.5 * told[0]["lived"]
        assert not verify(tmp_path / "a.db")[0].differs
        store.begin()
        event = store.events(1)[0]
        store.run("DELETE FROM event")
        store.add_events([event._replace(body=event.body.replace('"lived":', '"lived":1'))])
        store.commit()
    assert any("drift, differs when it is recomputed" in one for one in verify(tmp_path / "a.db")[0].differs)


@pytest.mark.parametrize("url", (
    "ftp://host/", "host", "http://", "http://user:key@host/", "http://h/#a", "http://h/\n", "http://h:99999/",
    "http://h:port/", "http://[::1/",
))  # fmt: skip
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(BadInput, match="webhook"):
        Webhook(url, SECRET)


def test_a_secret_is_needed_and_is_in_no_repr(tmp_path, monkeypatch):
    monkeypatch.delenv(sending.SECRET, raising=False)
    assert webhook_of(None, None) is None
    with pytest.raises(BadInput, match="secret"):
        webhook_of("https://host/", None)
    (tmp_path / "secret").write_text(SECRET + "\n")
    assert SECRET not in repr(webhook_of("https://host/", tmp_path / "secret"))
    monkeypatch.setenv(sending.SECRET, SECRET)
    hook = webhook_of("https://host/", None)
    assert hook.signature(b"{}", 5) == Webhook("http://other/", SECRET).signature(b"{}", 5)
