"""Hostile tests: features, values and times together that no list of pairs names."""

import json
import threading
import time
from contextlib import closing

import pytest

from driftwise.errors import BadInput
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.operate.importing import import_log
from driftwise.service.stores.opening import open_store
from driftwise.tables.check import check_log
from service.living import ARMS, BODY, living

WALL = {"clock": "wall", "half_life": "1d", "tick": "10s", "expire_after": "1h"}


@pytest.fixture(params=["sqlite", "postgres"])
def dbs(request, tmp_path):
    """Three databases, for a stream, its copy and the copy's copy."""
    if request.param == "sqlite":
        return [tmp_path / f"{name}.db" for name in "abc"]
    server = request.getfixturevalue("server")
    return [server.database() for _ in "abc"]


def moved(db, copy, folder, **body):
    """Export a stream and import it into another database."""
    export(db, folder)
    check_log(folder)
    with living(copy) as asked:
        assert asked.put(**body).status_code == 201
    return import_log(copy, "home", folder).digest


def sound(*dbs):
    return not [told for db in dbs for found in verify(db) for told in (*found.differs, *found.foreign)]


@pytest.mark.parametrize("steps", [[0, 10, 5 * 3600, -3 * 86400, 5, 3600, -7200, 50], [0, -1e6, 10, 1e7, -1e7, 20]])
def test_a_stream_whose_clock_was_set_back_and_ahead_survives_a_restart_and_an_import(tmp_path, steps):
    now, made = [1_700_000_000.0], 0
    with living(tmp_path / "a.db", now=lambda: now[0]) as asked:
        asked.put(**WALL)
        for number, step in enumerate(steps * 3):
            now[0] += step
            assert asked.decide(f"d{number}").status_code == 200
            now[0] += step / 3
            if number % 3:
                made += asked.reward(f"d{number}", number % 2).json()["verdict"] == "learned"
        before = asked.stream()
    with living(tmp_path / "a.db", now=lambda: now[0] - 5e5) as asked:
        assert asked.stream()["digest"] == before["digest"] and made > 3
        assert asked.decide("after").status_code == asked.reward("after", 1.0).status_code == 200
        before = asked.stream()
    assert moved(tmp_path / "a.db", tmp_path / "b.db", tmp_path / "log", **WALL) == before["digest"]
    assert sound(tmp_path / "a.db", tmp_path / "b.db")


@pytest.mark.parametrize("tick", ["2s", "200s"])
def test_a_log_of_other_ticks_than_the_stream_has_is_refused(tmp_path, tick):
    now = [1_700_000_000.0]
    with living(tmp_path / "a.db", now=lambda: now[0]) as asked:
        asked.put(**WALL)
        for number in range(5):
            now[0] += 60.0
            asked.decide(f"d{number}"), asked.reward(f"d{number}", 1.0)
    with pytest.raises(BadInput, match=f"ticks of {float(tick[:-1])} seconds"):
        moved(tmp_path / "a.db", tmp_path / "b.db", tmp_path / "log", **{**WALL, "tick": tick})


def test_a_unit_is_found_in_a_copy_of_a_copy_of_a_stream_that_had_another_seed(dbs, tmp_path):
    first, copy, last = dbs
    with living(first) as asked:
        asked.put(seed=1)
        asked.decide("a", unit="alice"), asked.reward("a", 1.0)
        asked.decide("open", unit="alice")
        assert asked.ask("PUT", "home/policy", json={**BODY, "seed": 2}).status_code == 200
        asked.decide("b", unit="alice"), asked.reward("b", 1.0)
        asked.decide("c", unit="bob"), asked.reward("c", 1.0)
        digest = asked.stream()["digest"]
    assert moved(first, copy, tmp_path / "one", seed=2) == moved(copy, last, tmp_path / "two", seed=2) == digest
    for db in (last, copy, first):
        with living(db) as asked:
            assert asked.ask("POST", "home/forget", json={"unit": "alice"}).json() == {"forgotten": 3}
            assert asked.ask("POST", "home/forget", json={"unit": "bob"}).json() == {"forgotten": 1}
    assert sound(first, copy, last)


def test_the_name_of_the_item_that_was_played_is_forgotten_too(tmp_path):
    db, items = tmp_path / "a.db", ["secret-a", "secret-b", "secret-c"]
    with living(db) as asked:
        asked.put()
        asked.ask("POST", "home/decide", json={"id": "a", "arms": ARMS, "items": items, "unit": "u"})
        asked.reward("a", 1.0)
        asked.ask("POST", "home/pause", json={"fallback": "plain"})
        asked.ask("POST", "home/decide", json={"id": "b", "arms": ARMS, "items": [*items[:2], "plain"], "unit": "u"})
        assert asked.ask("POST", "home/forget", json={"unit": "u"}).json() == {"forgotten": 2}
        assert asked.ask("GET", "home/explain/a").json()["decision"]["item"] is None
        assert asked.get("/streams/home/decisions/a").status_code == asked.get("/streams/home").status_code == 200
    assert not [one.name for one in tmp_path.glob("a.db*") if b"secret" in one.read_bytes()]
    assert sound(db)


def test_exports_and_checks_of_a_stream_that_is_being_written_are_whole(tmp_path):
    db, ended = tmp_path / "a.db", threading.Event()
    with living(db) as asked:
        asked.put()

        def work():
            number = 0
            while not ended.is_set():
                asked.decide(f"d{number}"), asked.reward(f"d{number}", number % 2)
                number += 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for number in range(5):
                time.sleep(0.02)
                export(db, tmp_path / f"log{number}")
                check_log(tmp_path / f"log{number}")
                assert sound(db)
        finally:
            ended.set()
            thread.join()


NUMBERS = (
    "-0.0", "5e-324", "-1e-320", "1e15", "1e16", "1e154", "1e308", "-1.7976931348623157e308", "1e400", "NaN",
    "-Infinity", "123456789012345678901234567890", "1.0000000000000002", "true", "null", '"1"', "[1]", "{}",
)  # fmt: skip


def test_no_number_in_any_place_makes_an_error_of_the_server_or_a_database_that_cannot_be_recomputed(tmp_path):
    places = (
        '{"arms": [[X, 0], [0, 1]]}', '{"arms": [[1, 0], [0, 1]], "cost": [X, 0]}',
        '{"arms": [[1, 0], [0, 1]], "cost": [X, X]}', '{"arms": [[1, 0], [0, 1]], "allowed": [X]}',
        '{"arms": [[1, 0], [0, 1]], "propensity": X, "action": 0}', '{"arms64": "AAAAAAAA8D8AAAAAAAAAAA==", "n": X}',
        '{"context": {"a": X}, "items": ["b"]}',
    )  # fmt: skip
    bodies = ('"seed": X', '"epsilon": X', '"rewards": [X, 1]', '"rewards": [0, X]', '"half_life": X', '"holdback": X',
              '"expire_after": X', '"default_reward": X, "expire_after": 9', '"margin": X', '"keep_out": X',
              '"tick": X, "clock": "wall"', '"ramp": [X]', '"guardrails": {"a": {"margin": X}}')  # fmt: skip
    lines = ('"lam": X', '"dim": X', '"delta": X', '"L": X', '"S": X', '"horizon": X', '"R": X')
    statuses, db = [], tmp_path / "a.db"
    with living(db) as asked:

        def send(method, path, text, number):
            answer = asked.wait(asked.client.request(method, f"/v1/streams/{path}", content=text.replace("X", number)))
            statuses.append(answer.status_code)
            assert answer.status_code in (200, 201, 400, 404, 409, 422), (method, path, text, number, answer.text)
            return answer

        asked.put(), asked.put("wide", policy={**BODY["policy"], "L": 1e140}), asked.put("shadow", mode="shadow")
        for number in NUMBERS:
            for place in places:
                for stream in ("home", "wide", "shadow"):
                    made = send("POST", f"{stream}/decide", place, number)
                    if made.status_code == 200:
                        id = json.dumps(made.json()["id"])
                        send("POST", f"{stream}/reward", f'{{"id": {id}, "value": 0.5, "metrics": {{"a": X}}}}', number)
                        send("POST", f"{stream}/reward", f'{{"id": {id}, "value": X}}', number)
            for place, body in enumerate((*bodies, *lines)):
                if place < len(bodies):
                    text = f"{json.dumps(BODY)[:-1]}, {body}}}"
                else:
                    text = f'{{"rewards": [0, 1], "policy": {{"name": "OFUL", "dim": 2, "horizon": 1000, {body}}}}}'
                name = f"n{len(statuses)}"
                if send("PUT", name, text, number).status_code == 201:
                    send("POST", f"{name}/decide", '{"id": "a", "arms": [[0.5, 0], [0, 0.5]]}', number)
                    send("POST", f"{name}/reward", '{"id": "a", "value": X}', number)
                    send("POST", f"{name}/reward", '{"id": "a", "value": 0.5}', number)
        told = [json.loads(line) for line in asked.log.getvalue().splitlines()]
        assert not [line for line in told if line["event"] == "unexpected"]
    assert min(map(statuses.count, (200, 201, 400, 422))) > 20
    assert sound(db)


def test_a_reward_is_sent_again_after_policies_with_another_range_and_other_guardrails(dbs):
    with living(dbs[0]) as asked:
        asked.put(rewards=[0, 2], expire_after=1)
        sent = [{"id": "a", "value": 2.0, "metrics": {"ms": 1.0}}, {"id": "b", "value": 0.5}, {"id": "c", "value": 2.0}]
        for one in sent:
            asked.decide(one["id"])
        told = [asked.ask("POST", "home/reward", json=one).json()["verdict"] for one in sent]
        assert told == ["learned", "learned", "late"]
        asked.ask("POST", "home/reset")
        for more in ({}, {"guardrails": {"errors": {"margin": 1}}}):
            assert asked.ask("PUT", "home/policy", json={**BODY, **more}).status_code == 200
            asked.decide("open"), asked.decide("a")
            again = [asked.ask("POST", "home/reward", json=one).json()["verdict"] for one in sent]
            assert again == ["duplicate", "duplicate", "late"]
            for id, value in (("a", 1.5), ("open", 2.0), ("nobody", 2.0)):
                assert asked.reward(id, value).status_code == 422
    assert sound(dbs[0])


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_database_has_nothing_of_a_stream_made_while_another_of_its_name_is_deleted(tmp_path, request, shared):
    db = request.getfixturevalue("server").database() if shared else tmp_path / "a.db"
    with living(db) as asked:
        asked.put()
        for number in range(30):
            asked.decide(f"d{number}", unit="u")
        sent = [("DELETE", "home", {"name": "home", "force": True}), ("PUT", "home", BODY),
                ("POST", "home/decide", {"id": "late", "arms": ARMS}), ("POST", "home/reset", {}),
                ("POST", "home/forget", {"unit": "u"}), ("PUT", "home/policy", BODY)]  # fmt: skip
        threads = [threading.Thread(target=lambda one=one: asked.ask(*one[:2], json=one[2])) for one in sent]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert asked.stream()["code"] == "stream_deleted"
    with closing(open_store(db, writes=False)) as store:
        assert not store.has_rows(store.deleted()["home"])
        assert [one.kind for one in store.events(store.deleted()["home"])][-1:] == ["deleted"]
    assert sound(db)
