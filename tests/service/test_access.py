"""Access by keys and scopes: a database that had a key is never open again; a revocation takes effect in a second."""

import asyncio
import threading
import time
from contextlib import ExitStack

import pytest

from driftwise.errors import BadInput
from driftwise.service.core import access
from driftwise.service.http import app as http
from driftwise.service.http import run
from driftwise.service.operate import keeping
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.wire.protocol import Refusal
from service.living import ARMS, BODY, living, soon
from service.test_commands import told

PAGES = ("/", "/streams/home", "/streams/home/decisions/x", "/events", "/streams/home/events", "/metrics")


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def statuses(asked, headers=None):
    """The status of every route; a key of the wrong scope may be refused, a request without a key must be."""

    def ask(method, path):
        body = {"json": BODY} if method in ("PUT", "POST") else {}
        found = asked.client.request(method, path, headers=headers, **body)
        return asked.wait(found).status_code

    routes = [(method, path.format(stream="home", id="x")) for method, path, *_ in http.ROUTES]
    return {(method, path): ask(method, path) for method, path in [*routes, *(("GET", page) for page in PAGES)]}


def stored(kind, request, tmp_path):
    return tmp_path / "a.db" if kind == "sqlite" else request.getfixturevalue("database")


@pytest.fixture(params=["sqlite", "postgres"])
def db(request, tmp_path):
    return stored(request.param, request, tmp_path)


@pytest.fixture
def freely(monkeypatch):
    """Failures are not limited."""
    monkeypatch.setattr(access, "_FAILURES", 10**6)


# ------------------------------------------------------------------------------------------ open and closed


def test_a_database_that_ever_had_a_key_never_answers_without_one(db, freely):
    with ExitStack() as stack:
        servers = [stack.enter_context(living(db))]
        if servers[0].service.store.shared:
            servers.append(stack.enter_context(living(db)))
        assert servers[0].put().status_code == 201
        assert all(soon(lambda one=one: one.ask("GET", "home").status_code == 200) for one in servers)  # open
        key = keeping.create_key(db, None, "*", "")
        for one in servers:
            assert soon(lambda one=one: one.ask("GET", "home").status_code == 401)
            assert one.ask("GET", "home", headers=bearer(key)).status_code == 200
        keeping.revoke_key(db, 1)
        for one in servers:
            assert soon(lambda one=one: one.ask("GET", "home", headers=bearer(key)).status_code == 401)
            assert set(statuses(one).values()) == set(statuses(one, bearer(key)).values()) == {401}
            assert one.get("/healthz").json() == {"status": "fine"}
    with living(db) as again:  # and after a restart
        assert set(statuses(again).values()) == {401}
        back = keeping.create_key(db, None, "*", "")  # the owner creates a new key
        assert soon(lambda: again.ask("POST", "home/reset", headers=bearer(back)).status_code == 200)
        assert again.wait(again.client.get("/", headers=bearer(back))).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "example.org"])
def test_a_server_that_other_machines_reach_is_never_open(tmp_path, monkeypatch, host):
    db, served = tmp_path / "a.db", []
    monkeypatch.setattr(run, "run", lambda application, *_: served.append(application))
    with pytest.raises(BadInput, match="valid key"):
        run.serve(db, host)
    keeping.create_key(db, None, "*", "")
    run.serve(db, host)
    service = served[0].api.service
    service.access.take([])  # rows of keys that were deleted by hand
    assert service.access.closed
    service.close()
    keeping.revoke_key(db, 1)
    with pytest.raises(BadInput, match="driftwise keys create"):
        run.serve(db, host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_is_open_until_there_is_a_key(tmp_path, monkeypatch, host):
    served = []
    monkeypatch.setattr(run, "run", lambda application, *_: served.append(application))
    run.serve(tmp_path / "a.db", host)
    assert not served[0].api.service.access.closed
    served[0].api.service.close()


def test_the_first_key_may_do_everything_and_says_what_changes(tmp_path, capsys):
    db = tmp_path / "a.db"
    code, key, err = told(capsys, "keys", "create", db)
    assert code == 0 and len(key.strip()) == 43 and key.strip() not in err
    assert "From now on the server refuses requests without a key" in err
    assert "Key 1 may decide, reward, change streams and open the dashboard: all streams." in err
    assert "Warning" not in err
    code, _, err = told(capsys, "keys", "create", db)
    assert code == 0 and err == ""
    assert [key.scopes for key in keeping.keys(db)] == ["decide,reward,admin", "decide,reward"]
    code, out, err = told(capsys, "keys", "revoke", db, 1)
    assert code == 0 and "key 1 is revoked" in out and "No valid key has the scope admin for all streams" in err
    code, out, err = told(capsys, "keys", "revoke", db, 2)
    assert code == 0 and "401" in err and f"`driftwise keys create {db}` on this machine" in err
    told(capsys, "keys", "create", db)  # the owner gets back in
    assert [key.scopes for key in keeping.keys(db)] == ["decide,reward,admin"]


@pytest.mark.parametrize("words", [("--scopes", "decide"), ("--stream", "home")], ids=["scopes", "stream"])
def test_a_first_key_that_locks_its_owner_out_says_so(tmp_path, capsys, words):
    code, _, err = told(capsys, "keys", "create", tmp_path / "a.db", *words)
    assert code == 0 and "Warning: No valid key has the scope admin for all streams" in err
    assert "--scopes decide,reward,admin" in err


def test_names_of_keys_are_plain_text_or_empty(tmp_path, capsys):
    db = tmp_path / "a.db"
    assert told(capsys, "keys", "create", db, "--name", "")[0] == 0
    for name in ("a\nb", "\x1b[2J", "\udcff", "x" * 201):
        assert told(capsys, "keys", "create", db, "--name", name)[0] == 2
    assert len(keeping.keys(db)) == 1


# ------------------------------------------------------------------------------------------ in time


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("slow", [0.02, 0.05])
def test_a_revocation_takes_less_than_a_second_however_slow_commits_are(
    request, tmp_path, monkeypatch, freely, kind, slow
):
    db = stored(kind, request, tmp_path)
    store = open_store(db)
    inside = type(store).commit
    store.close()
    key, other = (keeping.create_key(db, "decide,reward,admin", "*", "") for _ in range(2))

    def commit(self):
        if self is asked.service.store:
            time.sleep(slow)
        inside(self)

    with living(db) as asked:
        assert asked.ask("PUT", "home", json=BODY, headers=bearer(key)).status_code == 201
        monkeypatch.setattr(type(store), "commit", commit)
        busy = [True]

        async def load():
            while busy:
                await asked.client.post("/v1/streams/home/decide", json={"arms": ARMS}, headers=bearer(other))

        clients = [asyncio.run_coroutine_threadsafe(load(), asked.loop) for _ in range(8)]
        time.sleep(0.5)
        keeping.revoke_key(db, 1)
        began = time.monotonic()
        assert soon(lambda: asked.ask("GET", "home/explain/x", headers=bearer(key)).status_code == 401)
        spent = time.monotonic() - began
        busy.clear()
        for one in clients:
            one.result(30)
        monkeypatch.undo()
    assert spent < 20.0  # a few hundredths of a second on an idle machine


def test_a_command_gets_its_turn_beside_a_busy_server(tmp_path):
    db, busy = tmp_path / "a.db", [True]
    keeping.create_key(db, None, "*", "")

    def write():  # as a server whose commits take 50 ms, with 1 ms between two groups
        held = SQLiteStore(db, lock=False)
        while busy:
            held.begin()
            time.sleep(0.05)
            held.rollback()
            time.sleep(0.001)
        held.close()

    server = threading.Thread(target=write)
    server.start()
    spent = 0.0
    try:
        for _ in range(6):
            time.sleep(0.1)  # the server has the lock again
            began = time.monotonic()
            keeping.create_key(db, "decide", "*", "")
            spent += time.monotonic() - began
    finally:
        busy.clear()
        server.join()
    assert spent < 60.0  # some tenths of a second; where the lock is polled too rarely a key is refused after 5 s


def test_a_key_that_is_revoked_while_its_body_comes_changes_nothing(tmp_path):
    db = tmp_path / "a.db"
    key, other = (keeping.create_key(db, "decide,reward,admin", "*", "") for _ in range(2))
    with living(db) as asked:

        async def body():
            yield b'{"policy": '
            await asyncio.to_thread(keeping.revoke_key, db, 1)
            await asyncio.sleep(1.0)
            yield b'{"name": "OFUL", "dim": 2, "horizon": 1000}, "rewards": [0, 1]}'

        found = asked.wait(asked.client.put("/v1/streams/home", content=body(), headers=bearer(key)))
        assert found.status_code == 401
        assert asked.ask("GET", "home", headers=bearer(other)).status_code == 404


# ------------------------------------------------------------------------------------------ failures


def test_a_valid_key_always_passes_whatever_others_send_from_its_address(tmp_path):
    db = tmp_path / "a.db"
    key = keeping.create_key(db, "decide,reward,admin", "*", "")
    with living(db) as asked:
        found = [asked.ask("GET", "home").status_code for _ in range(12)]
        assert found == [401] * 10 + [429] * 2
        assert asked.put(headers=None).status_code == 429
        assert asked.ask("PUT", "home", json=BODY, headers=bearer(key)).status_code == 201
        assert asked.ask("GET", "home", headers=bearer("guess")).status_code == 429
        assert asked.wait(asked.client.get("/", headers=bearer(key))).status_code == 200


def test_failures_are_limited_to_ten_a_minute_an_address_and_the_table_is_bounded(tmp_path):
    db, now = tmp_path / "a.db", [0.0]
    key = keeping.create_key(db, None, "*", "")
    store = SQLiteStore(db)
    doors = access.Access(store.keys(), now=lambda: now[0])
    store.close()

    def status(caller, header="Bearer guess"):
        try:
            doors.check(caller, header, None, None)
        except Refusal as error:
            return error.status
        return 200

    for _ in range(3):
        assert [status("a") for _ in range(20)] == [401] * 10 + [429] * 10
        assert status("b") == 401 and status("a", f"Bearer {key}") == 200
        now[0] += 61.0
    for number in range(access._MOST_CALLERS + 50):
        status(str(number))
    for _ in range(200):
        status("a")
    assert len(doors._failures) <= access._MOST_CALLERS
    assert max(len(times) for times in doors._failures.values()) <= access._FAILURES


def test_all_keys_are_compared_also_where_failures_are_limited(tmp_path, monkeypatch):
    db, compared = tmp_path / "a.db", []
    keys = [keeping.create_key(db, "decide", "*", "") for _ in range(5)]
    store = SQLiteStore(db)
    doors, inside = access.Access(store.keys()), access.hmac.compare_digest
    store.close()
    monkeypatch.setattr(access.hmac, "compare_digest", lambda *two: compared.append(1) or inside(*two))
    for _ in range(20):
        compared.clear()
        with pytest.raises(Refusal):
            doors.check("a", "Bearer guess", None, None)
        assert len(compared) == 5
    for key in keys:
        compared.clear()
        assert doors.check("a", f"Bearer {key}", None, None) is not None
        assert len(compared) == 5


def test_two_authorization_headers_are_refused(tmp_path):
    db = tmp_path / "a.db"
    key = keeping.create_key(db, None, "*", "")
    with living(db) as asked:
        for path in ("/v1/streams/home", "/", "/metrics"):
            for two in ([key, key], [key, "guess"], ["guess", key]):
                headers = [("authorization", f"Bearer {one}") for one in two]
                assert asked.wait(asked.client.get(path, headers=headers)).status_code == 400
        assert asked.wait(asked.client.get("/healthz", headers=headers)).json() == {"status": "fine"}


# ------------------------------------------------------------------------------------------ messages


def test_metrics_show_the_streams_of_the_key_alone(tmp_path):
    db = tmp_path / "a.db"
    with living(db) as asked:
        asked.put("one"), asked.put("two")
        assert 'stream="one"' in asked.get("/metrics").text  # open
    every, one = keeping.create_key(db, None, "*", ""), keeping.create_key(db, "decide", "one", "")
    with living(db) as asked:

        def text(key):
            return asked.wait(asked.client.get("/metrics", headers=bearer(key))).text

        assert 'stream="one"' in text(every) and 'stream="two"' in text(every)
        assert 'stream="one"' in text(one) and "two" not in text(one) and "driftwise_commit_seconds" in text(one)
        refused = asked.get("/metrics")
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"


def test_health_tells_its_reason_to_callers_with_a_key_alone(tmp_path):
    db = tmp_path / "a.db"

    def health(asked, headers=None):
        return asked.wait(asked.client.get("/healthz", headers=headers)).json()

    with living(db) as asked:
        asked.service._look_for_room = lambda: None  # it would find room
        asked.service.engine.full = f"{db}: full"
        assert health(asked) == {"status": "full", "reason": f"{db}: full"}  # open
        key = keeping.create_key(db, "decide", "home", "")
        assert soon(lambda: health(asked) == {"status": "full"})
        for _ in range(20):
            assert health(asked) == {"status": "full"}  # which is no failure
        assert health(asked, bearer(key)) == {"status": "full", "reason": f"{db}: full"}
        assert [health(asked, bearer("guess")) for _ in range(12)] == [{"status": "full"}] * 12
        assert asked.ask("GET", "home").status_code == 429  # but a wrong key counts there
        asked.service.engine.full = ""
