"""A request that the store rejects is refused alone, and no id of a caller can end a server; on both stores."""

import asyncio
import json
import threading
import time
from contextlib import closing

import msgspec
import pytest

from driftwise.service.core import stream as streams
from driftwise.service.core.verify import verify
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import Rejected
from driftwise.service.wire.protocol import DecideBody
from service.living import ARMS, living


@pytest.fixture(params=["sqlite", "postgres"])
def path(request, tmp_path):
    return tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.fixture
def home(path):
    with living(path) as asked:
        asked.path = path
        assert asked.put().status_code == 201
        yield asked


@pytest.fixture
def picky(home, monkeypatch):
    """A store that does not accept decisions and rewards whose ids begin with "bad"."""
    store = home.service.store
    decisions, rewards = store.add_decisions, store.add_rewards

    def some(add, place):
        def checked(rows):
            if any(row[place].startswith("bad") for row in rows):
                raise Rejected("no such row")
            add(rows)

        return checked

    monkeypatch.setattr(store, "add_decisions", some(decisions, 2))
    return lambda: monkeypatch.setattr(store, "add_rewards", some(rewards, 2))


def together(home, asks):
    """Requests that come at the same time: pairs of a path and a body."""

    async def all_of_them():
        return await asyncio.gather(*(home.client.post(f"/v1/streams/{path}", json=body) for path, body in asks))

    return home.wait(all_of_them())


def sound(home):
    found = verify(home.path)
    assert [one.differs for one in found] == [[]] * len(found)
    return found


def test_one_bad_row_costs_none_of_its_neighbours(home, picky):
    assert home.put("away").status_code == 201
    asks = []
    for number in range(60):
        name = f"bad {number}" if number in (7, 40, 41) else f"good {number}"
        body = {"arms": ARMS} if number % 5 == 0 else {"id": name, "arms": ARMS}
        asks.append((f"{('home', 'away')[number % 2]}/decide", body))
    found = together(home, asks)
    wrong = [number for number, one in enumerate(found) if one.status_code != 200]
    assert wrong == [7, 41] and {found[number].status_code for number in wrong} == {422}  # 40 has no id
    assert "does not accept" in found[7].json()["error"]
    if not home.service.store.shared:
        seqs = [sorted(one.json()["seq"] for one in found[place::2] if one.status_code == 200) for place in (0, 1)]
        assert seqs == [list(range(1, 31)), list(range(1, 29))]
    assert home.decide("bad 7").status_code == 422 and home.decide("good 8", stream="home").status_code == 200
    sound(home)


def test_one_bad_member_of_a_batch_is_refused_alone(home, picky):
    batch = [{"id": f"bad {n}" if n == 617 else f"{n}", "arms": ARMS} for n in range(1000)]
    alone, other = together(home, [("home/decide/batch", batch), ("home/decide", {"id": "other", "arms": ARMS})])
    assert alone.status_code == other.status_code == 200
    answers = alone.json()
    assert len(answers) == 1000 and [n for n, one in enumerate(answers) if "error" in one] == [617]
    assert answers[617]["status"] == 422 and [one.get("id") for one in answers[:3]] == ["0", "1", "2"]
    picky()
    assert home.decide("good").status_code == 200
    assert home.ask("POST", "home/decide/batch", json=[{"id": "bad", "arms": ARMS}]).json()[0]["status"] == 422
    rewards = [{"id": str(n), "value": 1.0} for n in range(20)] + [{"id": "nobody", "value": 1.0}]
    answers = home.ask("POST", "home/reward/batch", json=rewards).json()
    assert [one.get("verdict") for one in answers] == ["learned"] * 20 + [None]
    assert [one["seq"] for one in answers[:20]] == list(range(1, 21))
    with closing(home.service.store.reader()) as reader:  # the server's own connection is in use
        assert reader.last_reward(1).seq == 20
    (found,) = sound(home)
    assert found.decisions == 1001 and found.rewards == 20


def test_a_reward_that_is_not_accepted_is_not_learned_and_its_neighbours_are(home, picky, monkeypatch):
    monkeypatch.undo()
    for name in ("bad", "good", "fine"):
        assert home.decide(name).status_code == 200
    picky()
    found = together(home, [("home/reward", {"id": name, "value": 1.0}) for name in ("good", "bad", "fine")])
    assert [one.status_code for one in found] == [200, 422, 200]
    assert [one.json()["seq"] for one in (found[0], found[2])] == [1, 2]
    monkeypatch.undo()
    assert home.reward("bad", 1.0).json() == {"verdict": "learned", "seq": 3}
    (told,) = sound(home)
    assert told.digest == home.stream()["digest"]


def test_a_slip_of_ours_in_one_request_costs_none_of_its_neighbours(home, monkeypatch):
    inside = streams.Stream.decide

    def slips(self, asked, offer, at, trace=None):
        answer = inside(self, asked, offer, at, trace)
        if asked.id == "slip":
            raise ZeroDivisionError
        return answer

    monkeypatch.setattr(streams.Stream, "decide", slips)
    found = together(home, [("home/decide", {"id": name, "arms": ARMS}) for name in ("a", "slip", "b", "c")])
    assert [one.status_code for one in found] == [200, 503, 200, 200]
    assert home.log.getvalue().count("ZeroDivisionError") == 1
    sound(home)


def test_defaults_that_are_due_are_learned_once_when_their_group_is_done_again(home, picky):
    home.put("due", expire_after=3, default_reward=0.5)
    for n in range(4):
        assert home.decide(f"left {n}", stream="due").status_code == 200
    for n in range(4):
        home.decide(f"paid {n}", stream="due")
    asks = [("due/reward", {"id": f"paid {n}", "value": 1.0}) for n in range(4)]
    found = together(home, [*asks, ("home/decide", {"id": "bad", "arms": ARMS})])
    assert [one.status_code for one in found] == [200] * 4 + [422]
    until = time.monotonic() + 100.0
    while home.stream("due")["counts"].get("defaulted") != 4 and time.monotonic() < until:
        time.sleep(0.05)
    assert home.stream("due")["counts"] == {"decided": 8, "learned": 4, "late": 0, "open": 0, "defaulted": 4}
    sound(home)


def test_a_nul_is_refused_wherever_it_comes(home):
    nul, before = "a\0b", home.stream()
    for method, path, body in (
        ("POST", "home/decide", {"arms": ARMS, "items": [nul, "b", "c"]}),
        ("POST", "home/decide", {"context": {nul: 1.0}, "items": ["a"]}),
        ("POST", "home/decide", {"context": {"a": nul}, "items": ["a"]}),
        ("POST", "home/decide", {"arms": ARMS, "unit": nul}),
        ("POST", "home/decide/batch", [{"arms": ARMS}, {"arms": ARMS, "items": ["a", "b", nul]}]),
        ("POST", "home/reward", {"id": nul, "value": 1.0}),
        ("PUT", "home/items", {"items": {nul: {}}}),
        ("PUT", "home/items", {"items": {"a": {"b": nul}}}),
        ("PUT", "other", {"policy": {"name": "OFUL", "dim": 2, nul: 1}, "rewards": [0, 1]}),
        ("PUT", "other", {"policy": {"name": "OFUL", "dim": 2}, "rewards": [0, 1], "features": {"a": [nul]}}),
    ):
        answer = home.ask(method, path, json=body)
        assert answer.status_code == 422 and "NUL" in answer.json()["error"], answer.text
    assert home.ask("GET", "home/explain/a%00b").status_code == 422
    assert home.ask("PUT", "a%00b", json={}).status_code == 422
    assert home.stream() == before
    assert home.decide("literal", items=["\\u0000", "b", "c"]).status_code == 200  # six characters, not one


def test_half_a_pair_of_surrogates_is_refused_wherever_it_comes(home):
    for half in ("\\ud800", "\\udc00", "\\ud83d\\ud83d", "\\ud800\\u0041"):
        for body in (f'{{"arms": {json.dumps(ARMS)}, "items": ["{half}", "b", "c"]}}',
                     f'{{"arms": {json.dumps(ARMS)}, "unit": "{half}"}}',
                     f'{{"arms": {json.dumps(ARMS)}, "id": "{half}"}}',
                     f'{{"context": {{"{half}": 1}}, "items": ["a"]}}'):  # fmt: skip
            answer = home.ask("POST", "home/decide", content=body, headers={"content-type": "application/json"})
            assert answer.status_code == 400
    raw = json.dumps({"arms": ARMS, "items": ["\ud83d\ude00", "b", "c"]})  # a whole one
    answer = home.ask("POST", "home/decide", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 200


def test_a_text_that_only_the_store_refuses_is_refused_alone(home):
    """Past the checks of requests: text that PostgreSQL cannot store, and text that UTF-8 cannot encode."""
    engine, stream = home.service.engine, home.service.stream("home")
    nul = DecideBody(id="nul", arms=ARMS, items=["a\0"] * 3)
    half = DecideBody(id="half", arms=ARMS, items=["\ud800"] * 3)
    good = [DecideBody(id=str(n), arms=ARMS, items=["a"] * 3) for n in range(6)]

    async def all_of_them():
        works = [lambda one=one: stream.decide(one, stream.offers.offer(one), 1.0) for one in [*good, nul, half]]
        return await asyncio.gather(*map(engine.submit, works), return_exceptions=True)

    *fine, first, second = home.wait(all_of_them())
    assert [one.id for one in fine] == [str(n) for n in range(6)]
    assert getattr(first, "status", 200) == (422 if home.service.store.shared else 200)
    assert second.status in (422, 503)
    sound(home)


# ------------------------------------------------------------------------------------------ automatic ids


def test_a_callers_id_of_the_automatic_form_is_refused_and_the_server_goes_on(home):
    first = home.decide().json()
    number, suffix = first["id"].split(".")
    assert home.decide(first["id"]).json() == first  # one that is known is answered
    for id in (f"3.{suffix}", f"{int(number, 16) + 1:x}.{suffix}", "1f.0a1b2c3d"):
        answer = home.decide(id)
        assert answer.status_code == 422 and answer.json()["field"] == "id", id
    assert home.decide("03.0a1b2c3d").status_code == home.decide("3.0A1B2C3D").status_code == 200
    assert home.decide().status_code == home.decide().status_code == 200
    assert home.reward(first["id"], 1.0).json()["verdict"] == "learned"
    batch = home.ask("POST", "home/decide/batch", json=[{"id": "9.0a1b2c3d", "arms": ARMS}, {"arms": ARMS}]).json()
    assert batch[0]["status"] == 422 and "arm" in batch[1]
    sound(home)


def test_an_id_that_another_version_let_through_costs_neither_the_server_nor_a_number(home, path, monkeypatch):
    """A database may have ids of the automatic form: the next automatic ids differ."""
    monkeypatch.setattr(streams, "check_not_automatic", lambda id: None)
    first = home.decide().json()
    suffix = first["id"].split(".")[1]
    taken = [home.decide(f"{first['seq'] + n:x}.{suffix}").json()["id"] for n in (2, 3)]
    monkeypatch.undo()
    found = [home.decide().json() for _ in range(3)]
    assert len({one["id"] for one in found} | set(taken)) == 5
    if not home.service.store.shared:
        assert [one["seq"] for one in found] == [4, 5, 6]
    assert home.decide(taken[0]).json()["id"] == taken[0]
    assert home.reward(taken[1], 1.0).json()["verdict"] == "learned"
    sound(home)


def test_a_row_that_is_there_already_is_looked_up_again_and_refuses_one_request(tmp_path):
    """UNIQUE fails in SQLite for an unexpected reason: another process wrote the id."""
    with living(tmp_path / "a.db") as home:
        home.put()
        home.decide("one")
        stream = home.service.stream("home")
        inside = stream.find
        stream.find = lambda id: None  # as if its index had not been read
        found = together(home, [("home/decide", {"id": id, "arms": ARMS}) for id in ("two", "one", "three")])
        assert [one.status_code for one in found] == [200, 422, 200]
        stream.find = inside
        assert home.decide("one").json()["seq"] == 1 and home.decide().json()["seq"] == 4
    assert not verify(tmp_path / "a.db")[0].differs


def test_a_request_that_comes_while_a_group_is_done_again_is_served_after_it(home, picky):
    answers = []

    def ask(names):
        answers.extend(home.decide(name).status_code for name in names)

    threads = [threading.Thread(target=ask, args=([f"bad {n} {m}" if m % 4 == 0 else f"{n} {m}" for m in range(12)],))
               for n in range(6)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * 54 + [422] * 18
    (found,) = sound(home)
    assert found.decisions == 54


def test_what_a_stream_stores_as_text_can_be_read_again(home):
    """A body with any text but NUL is written, folded and verified."""
    told = ["\u007f", "\u2028", "\U0001f600"]
    assert home.decide("text", items=told, unit="\u0001").status_code == 200
    store = open_store(home.path, writes=False)
    assert msgspec.json.decode(store.decision(1, "text").candidates) == told
    store.close()
