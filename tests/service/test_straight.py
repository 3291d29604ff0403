"""Decisions and rewards on the fast path get the same answers as on the normal path, byte for byte.

A query, which has no meaning here, sends a request to the normal path.
"""

import base64
import json
import socket
import sys
import time
import tomllib
from pathlib import Path

import httpx
import pytest
import uvicorn
from packaging.requirements import Requirement
from packaging.version import Version

from driftwise.errors import BadInput
from driftwise.service.core.verify import verify
from driftwise.service.http import run, straight
from driftwise.service.operate.keeping import create_key
from service.loading import Server
from service.test_bad_bytes import BAD

JSON = {"content-type": "application/json"}
ARMS = [[0.6, 0.0], [0.0, 0.6], [0.3, 0.4]]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("straight") / "a.db")
    made.put()
    yield made
    made.stop()
    assert not verify(made.db)[0].differs


def request(kind, body, way="", version="1.1", *more):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST /v1/streams/home/{kind}{way} HTTP/{version}", "host: localhost",
            "content-type: application/json", f"content-length: {len(raw)}", *more]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + raw


def answer(caller):
    """One whole answer."""
    told = b""
    while b"\r\n\r\n" not in told:
        more = caller.recv(1 << 16)
        if not more:
            return told
        told += more
    length = int(told.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(told) < told.index(b"\r\n\r\n") + 4 + length:
        told += caller.recv(1 << 16)
    return told


def ask(server, raw):
    with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
        caller.sendall(raw)
        return answer(caller)


@pytest.mark.parametrize("name", BAD)
def test_the_same_refusal_comes_either_way(server, name):
    body, status = BAD[name]
    straight, ordinary = ask(server, request("decide", body)), ask(server, request("decide", body, "?"))
    assert straight == ordinary and straight.startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(("old", "new", "status"), (
    ("host: localhost", "host: evil.test", 421), ("host: localhost", "host: a@localhost", 421),
    ("host: localhost", "host: localhost\r\nhost: localhost", 400), ("host: localhost", "x: y", 400),
    ("application/json", "text/plain", 415), ("content-type: application/json", "x: y", 415),
    ("application/json", "Application/json;charset=utf-8", 200),
    ("x: y", "origin: http://evil.test", 403), ("x: y", "origin: null", 403), ("x: y", "origin: http://localhost", 200),
    ("x: y", "sec-fetch-site: cross-site", 403), ("HTTP/1.1\r\nhost: localhost", "HTTP/1.0", 200),
))  # fmt: skip
def test_a_page_of_another_site_is_refused_either_way(server, old, new, status):
    before = server.stream()["seq"]
    asked = {"id": "a page", "arms": ARMS}
    told = [ask(server, request("decide", asked, way, "1.1", "x: y").replace(old.encode(), new.encode()))
            for way in ("", "?")]  # fmt: skip
    assert told[0] == told[1] and told[0].startswith(b"HTTP/1.1 %d " % status)
    assert server.stream()["seq"] == before or status == 200


def test_the_same_answer_comes_either_way(server):
    asked = {"id": "both ways", "arms": ARMS}
    straight, ordinary = (ask(server, request("decide", asked, way)) for way in ("", "?"))
    assert straight == ordinary and straight.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
    reward = {"id": "both ways", "value": 1.0}
    assert b'"learned"' in ask(server, request("reward", reward))
    assert ask(server, request("reward", reward)) == ask(server, request("reward", reward, "?"))
    for refused in ({"id": "nobody", "value": 1.0}, {"id": "both ways", "value": 0.0}, {"id": "both ways"}):
        assert ask(server, request("reward", refused)) == ask(server, request("reward", refused, "?"))
    other = request("decide", asked).replace(b"home", b"away")
    assert ask(server, other).startswith(b"HTTP/1.1 404") and ask(server, other) == ask(
        server, request("decide", asked, "?").replace(b"home", b"away")
    )


def test_a_request_in_pieces_is_the_request(server):
    raw = request("decide", {"id": "pieces", "arms": ARMS + [[0.1, 0.2]] * 5_000})
    whole = ask(server, raw)
    with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
        for piece in (raw[:30], raw[30:80], raw[80:100], raw[100:30_000], raw[30_000:]):
            caller.sendall(piece)
            time.sleep(0.02)
        assert answer(caller) == whole and whole.startswith(b"HTTP/1.1 200")


def test_requests_before_the_last_is_answered_are_answered_in_their_order(server):
    names = [f"row {number}" for number in range(6)]
    with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
        caller.sendall(b"".join(request("decide", {"id": name, "arms": ARMS}) for name in names))
        told = b""
        while told.count(b"HTTP/1.1 200 OK") < 6 or not told.endswith(b"}"):
            told += caller.recv(1 << 16)
    assert [told.index(name.encode()) for name in names] == sorted(told.index(name.encode()) for name in names)


@pytest.mark.parametrize("how", (("1.0",), ("1.1", "connection: close")))
def test_who_wants_the_connection_closed_gets_his_answer_and_the_end(server, how):
    body = {"id": f"last {how}", "arms": ARMS}
    for way in ("", "?"):
        with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
            caller.sendall(request("decide", body, way, *how))
            told = answer(caller)
            assert told.startswith(b"HTTP/1.1 200") and b"connection: close" in told and caller.recv(10) == b""


def test_who_leaves_before_the_answer_holds_up_nobody(server):
    for number in range(20):
        with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
            caller.sendall(request("decide", {"id": f"gone {number}", "arms": ARMS}))
    assert ask(server, request("decide", {"id": "stays", "arms": ARMS})).startswith(b"HTTP/1.1 200")


UPGRADE = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__")


@pytest.mark.parametrize("offer", [UPGRADE, ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13")])
@pytest.mark.parametrize("way", ["", "?"])
def test_an_upgrade_is_ignored_and_the_body_is_the_request_s(server, offer, way):
    raw = request("decide", {"arms": ARMS}, way, "1.1", *offer)
    plain = request("decide", {"arms": ARMS})
    head = raw.index(b"\r\n\r\n") + 4
    chunked = raw[:head].replace(b"content-length: %d" % (len(raw) - head), b"transfer-encoding: chunked")
    chunked += b"%x\r\n%b\r\n0\r\n\r\n" % (len(raw) - head, raw[head:])
    for pieces in ([raw], [raw[:head], raw[head:]], [raw[: head - 3], raw[head - 3 : -5], raw[-5:]], [chunked]):
        with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
            for piece in pieces:
                caller.sendall(piece)
                time.sleep(0.02)
            assert answer(caller).startswith(b"HTTP/1.1 200")
            caller.sendall(plain)
            assert answer(caller).startswith(b"HTTP/1.1 200")


def test_a_body_behind_an_upgrade_is_no_second_request(server):
    inner = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"
    raw = request("decide", inner, "", "1.1", *UPGRADE)
    with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
        caller.sendall(raw[: -len(inner)])
        time.sleep(0.05)
        caller.sendall(inner + request("decide", {"arms": ARMS}))
        assert answer(caller).startswith(b"HTTP/1.1 400")
        assert answer(caller).startswith(b"HTTP/1.1 200")  # not the numbers of /metrics


def test_connect_is_refused_and_nothing_behind_it_is_read(server):
    head = b"CONNECT /v1/streams/home HTTP/1.1\r\nhost: localhost\r\n\r\n"
    told = ask(server, head + request("decide", {"arms": ARMS}))
    assert told.startswith(b"HTTP/1.1 405") and told.count(b"HTTP/1.1") == 1


def test_a_key_is_asked_for_either_way(server):
    key = create_key(server.db, "decide", "*", "")
    asked, until = request("decide", {"id": "key", "arms": ARMS}), time.monotonic() + 200.0
    while not ask(server, asked).startswith(b"HTTP/1.1 401") and time.monotonic() < until:
        time.sleep(0.1)
    assert ask(server, asked) == ask(server, request("decide", {"id": "key", "arms": ARMS}, "?"))
    named = request("decide", {"id": "key", "arms": ARMS}, "", "1.1", f"authorization: Bearer {key}")
    assert ask(server, named).startswith(b"HTTP/1.1 200")
    password = base64.b64encode(f"me:{key}".encode()).decode()  # which a browser would send by itself
    basic = [request("decide", {"id": "key", "arms": ARMS}, way, "1.1", f"authorization: Basic {password}")
             for way in ("", "?")]  # fmt: skip
    assert ask(server, basic[0]).startswith(b"HTTP/1.1 401") and ask(server, basic[0]) == ask(server, basic[1])
    head, _, body = named.replace(b"\r\ncontent-length: %d" % len(named.partition(b"\r\n\r\n")[2]),
                                  b"\r\ntransfer-encoding: chunked").partition(b"\r\n\r\n")  # fmt: skip
    trailed = head + b"\r\n\r\n%x\r\n%s\r\n0\r\nauthorization: Bearer another\r\n\r\n" % (len(body), body)
    assert ask(server, trailed).startswith(b"HTTP/1.1 200")  # a trailer is no header
    wrong = request("reward", {"id": "key", "value": 1.0}, "", "1.1", f"authorization: Bearer {key}")
    assert ask(server, wrong).startswith(b"HTTP/1.1 403")


def test_uvicorns_private_side_is_the_one_that_was_tested():
    """A version below the bound in pyproject.toml, of which CI installs the newest, has all names that are used."""
    told = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    wanted = next(one for one in told["project"]["optional-dependencies"]["serve"] if one.startswith("uvicorn"))
    assert Version(uvicorn.__version__) in Requirement(wanted).specifier and "<" in wanted
    assert straight.missing() == [] and run.connection() == (straight.HttpConnection, "")
    assert all(hasattr(uvicorn.Server, name) for name in ("startup", "handle_exit", "run"))


@pytest.mark.parametrize("name", ("on_response_complete", "_unset_keepalive_if_required", "on_header"))
def test_a_name_that_uvicorn_no_longer_has_is_noticed(monkeypatch, tmp_path, name):
    monkeypatch.delattr(straight.HttpToolsProtocol, name)
    way, why = run.connection()
    assert way == "h11" and name in why
    with pytest.raises(BadInput, match=f"uvicorn.* has no {name}"):
        run.serve(tmp_path / "a.db", "0.0.0.0")
    assert not (tmp_path / "a.db").exists()


def test_fields_that_uvicorn_no_longer_has_are_noticed(monkeypatch):
    monkeypatch.setattr(straight, "_FIELDS", (*straight._FIELDS, "lane"))
    assert run.connection()[0] == "h11"
    monkeypatch.setitem(sys.modules, "driftwise.service.http.straight", None)  # as where an import fails
    assert run.connection()[0] == "h11"


def test_the_service_works_without_uvicorns_private_side(tmp_path):
    made = Server(tmp_path / "a.db", "changed")
    try:
        made.put()
        url = f"{made.url}/v1/streams/home"
        first, again = (httpx.post(f"{url}/decide", json={"id": "a", "arms": ARMS}) for _ in range(2))
        assert first.status_code == 200 and again.json() == first.json()
        assert httpx.post(f"{url}/reward", json={"id": "a", "value": 1.0}).json()["verdict"] == "learned"
        assert httpx.post(f"{url}/reward", json={"id": "a", "value": 0.0}).json()["code"] == "other_reward"
        assert httpx.post(f"{url}/decide", content=b"x" * (2 << 20), headers=JSON).status_code == 413
        assert httpx.post(f"{url}/decide", json={}, headers={"host": "evil.test"}).status_code == 421
    finally:
        told = made.stop()
    assert '"event":"unbounded"' in told and "on_response_complete" in told and '"event":"stopped"' in told
    assert not verify(made.db)[0].differs
