"""Several servers on one PostgreSQL database (docs/contract.md#the-service): no gap, no duplicate, equal digests."""

import asyncio
import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import numpy as np
import pytest

from driftwise import Features
from driftwise.service.core import forgetting
from driftwise.service.core.verify import verify
from driftwise.service.core.waiting import leading
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import Lost
from driftwise.service.wire.protocol import DecideBody, RewardBody
from service.desk import arms_of
from service.living import ARMS, BODY, living, soon
from service.loading import Clients, Server, wrong
from service.nursery import Nursery

NURSERY = Nursery()
WALL = {"clock": "wall", "half_life": "100s", "tick": 1.0}


@pytest.fixture
def two(database):
    with living(database) as a, living(database) as b:
        yield a, b


def digests(*replicas):
    return {(one.stream()["state_seq"], one.stream()["digest"]) for one in replicas}


def made(a, b, **changes):
    assert a.put(**changes).status_code == 201
    assert soon(lambda: b.ask("GET", "home").status_code == 200)
    assert b.put(**changes).status_code == 200


@pytest.mark.parametrize("changes", [{"epsilon": 0.1}, WALL], ids=["rewards", "wall"])
def test_two_replicas_learn_all_rewards_in_one_order(database, two, changes):
    a, b = two
    made(a, b, **changes)
    rng, ids = random.Random(0), []
    for number in range(60):
        one, other = rng.sample(two, 2)
        ids.append(one.decide(id=f"{number}" if number % 2 else None).json()["id"])
        if number % 3:
            assert other.reward(ids[-1], float(number % 2)).json()["verdict"] == "learned"
            assert one.reward(ids[-1], float(number % 2)).json()["verdict"] == "duplicate"
            assert one.reward(ids[-1], 0.5).status_code == 409
    assert soon(lambda: len(digests(a, b)) == 1)
    assert a.stream()["counts"] == b.stream()["counts"] == {"decided": 60, "learned": 40, "late": 0, "open": 20}
    (found,) = verify(database)
    assert found.differs == [] and found.rewards == 40 and found.decisions == 60
    assert found.digest == a.stream()["digest"]
    with_state = {one.stream()["state_seq"] for one in two}
    assert with_state == {40}


def test_one_id_is_one_decision_on_every_replica(two):
    a, b = two
    made(a, b)
    first = a.decide("one").json()
    assert b.decide("one").json() == first
    assert b.decide("one", [[0.0, 1.0], [1.0, 0.0]]).status_code == 409
    answers = []

    def ask(one):
        answers.extend((n, one.decide(f"raced {n}").json()) for n in range(20))

    threads = [threading.Thread(target=ask, args=(one,)) for one in (a, b, a, b)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(20):
        told = [answer for number, answer in answers if number == n]
        assert len(told) == 4 and all(one == told[0] and "arm" in one for one in told)


def test_what_one_replica_is_told_the_other_knows(two):
    a, b = two
    made(a, b)
    for n in range(8):
        a.reward(a.decide(str(n)).json()["id"], 1.0)
    assert a.ask("POST", "home/pause").status_code == 200
    assert soon(lambda: b.decide().status_code == 409)
    assert b.ask("POST", "home/resume").status_code == 200
    assert soon(lambda: a.decide().status_code == 200)
    assert b.ask("POST", "home/reset").status_code == 200
    assert soon(lambda: a.stream()["era"] == 2)
    a.reward(a.decide("after").json()["id"], 0.0)
    assert soon(lambda: len(digests(a, b)) == 1 and b.stream()["state_seq"] == 9)
    changed = {**a.service.stream("home").setup.body.policy, "lam": 3.0}
    body = {"policy": changed, "rewards": [0, 1], "half_life": 50}
    assert a.ask("PUT", "home/policy", json=body).status_code == 200
    assert soon(lambda: b.stream()["era"] == 3 and len(digests(a, b)) == 1)
    b.reward(b.decide("last").json()["id"], 1.0)
    assert soon(lambda: len(digests(a, b)) == 1)
    (found,) = verify(a.service.store.url)
    assert found.differs == [] and found.eras == 3


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_that_nobody_knows_of_is_asked_for_again_by_its_id(two, monkeypatch, committed):
    a, b = two
    made(a, b)
    decided = a.decide("known").json()
    store = a.service.store
    run, cuts = store._run, []

    def cut(statement, *more, **rows):
        if statement != "COMMIT" or cuts:
            return run(statement, *more, **rows)
        cuts.append(statement)
        if committed:
            run(statement)
        store._database.close()
        raise Lost("the connection broke")

    for kind, asked in (("decide", lambda: a.decide("one")), ("reward", lambda: a.reward("known", 1.0))):
        cuts.clear()
        monkeypatch.setattr(store, "_run", cut)
        answer = asked()
        assert cuts and answer.status_code == 503 and answer.headers["retry-after"] == "1", kind
        monkeypatch.undo()
        assert asked().status_code == 200
    assert a.decide("known").json() == decided
    assert a.decide("one").json() == b.decide("one").json()
    assert b.reward("known", 1.0).json() == {"verdict": "duplicate", "seq": 1}
    assert soon(lambda: len(digests(a, b)) == 1)
    (found,) = verify(store.url)
    assert found.differs == [] and (found.decisions, found.rewards) == (2, 1)


@pytest.mark.parametrize("where", ["arm_sets", "add_decisions", "lock", "add_rewards", "commit"])
def test_a_group_that_is_lost_half_way_was_never_decided(two, monkeypatch, where):
    """Decisions are in the transaction before its rewards. Wherever it ends, no decision is known afterwards."""
    a, b = two
    made(a, b)
    a.decide("known")
    stream, store = a.service.stream("home"), a.service.store
    asked, rewarded = DecideBody(id="one", arms=ARMS), RewardBody(id="known", value=1.0)

    def lost(*given):
        store._database.close()
        raise Lost("the connection broke")

    async def together():
        offer = stream.offers.offer(asked)
        works = lambda: stream.decide(asked, offer, 1.0), leading(stream, lambda: stream.reward(rewarded, 1.0))
        return await asyncio.gather(*map(a.service.engine.submit, works), return_exceptions=True)

    monkeypatch.setattr(store, where, lost)
    assert [answer.status for answer in a.wait(together())] == [503, 503]
    monkeypatch.undo()
    assert "one" not in stream.known
    assert a.decide("one").status_code == 200 and a.reward("known", 1.0).json() == {"verdict": "learned", "seq": 1}
    (found,) = verify(store.url)
    assert found.differs == [] and (found.decisions, found.rewards) == (2, 1)


def test_connections_that_are_cut_and_a_server_that_restarts_cost_answers_and_nothing_else(server, database):
    arms = arms_of(np.random.default_rng(0), 3, 2)
    with ExitStack() as stack:
        a, b = (stack.enter_context(living(database)) for _ in range(2))
        made(a, b)
        acknowledged, number = {}, 0
        for disturb in (None, lambda: server.cut(a.service.store.name), lambda: (server.stop(), server.start())):
            if disturb is not None:
                disturb()
            else:
                server.stop()
                assert a.decide("while it is away").status_code == 503
                health = a.get("/healthz")
                assert health.status_code == 503 and health.json()["status"] == "away"
                server.start()
            until = time.monotonic() + 400.0
            fine = 0
            while fine < 20 and time.monotonic() < until:
                number += 1
                one = (a, b)[number % 2]
                answer = one.decide(str(number), arms)
                assert answer.status_code in (200, 503)
                if answer.status_code == 200 and one.reward(str(number), float(number % 2)).status_code == 200:
                    acknowledged[str(number)] = answer.json()
                    fine += 1
            assert fine == 20
        assert soon(lambda: len(digests(a, b)) == 1)
        assert a.get("/healthz").json()["status"] == "fine"
        store = open_store(database, writes=False)
        assert all(store.decision(1, id).seq == answer["seq"] for id, answer in acknowledged.items())
        assert all(store.reward(1, id) is not None for id in acknowledged)
        store.close()
        (found,) = verify(database)
        assert found.differs == [] and found.digest == a.stream()["digest"]


def test_a_replica_that_is_killed_under_load_leaves_no_gap(database):
    """In separate processes: one is killed, the other continues, and a third reads what both wrote."""
    replicas = [Server(database, "often", nursery=NURSERY) for _ in range(2)]
    replicas[0].put(epsilon=0.1)
    assert soon(lambda: httpx.get(f"{replicas[1].url}/v1/streams/home").status_code == 200)
    clients = [Clients(seed, clients=4) for seed in (1, 2)]
    pairs = zip(clients, replicas, strict=True)
    threads = [threading.Thread(target=one.run, args=(replica.port, 1.0)) for one, replica in pairs]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    replicas[0].kill()
    for thread in threads:
        thread.join()
    third = Server(database, nursery=NURSERY)
    clients[0].run(third.port, 0.3)  # clients without an answer send the request again
    clients[1].run(replicas[1].port, 0.3)
    assert soon(lambda: replicas[1].stream()["digest"] == third.stream()["digest"])
    digest = third.stream()["digest"]
    one, other = clients
    assert len(one.decided) > 5 and len(other.decided) > 5
    one.decided |= other.decided
    one.rewarded |= other.rewarded
    one.repeats += other.repeats
    assert wrong(database, one, digest) == []
    third.stop()
    replicas[1].stop()


def test_the_pages_say_how_far_behind_a_replica_is(two):
    a, b = two
    made(a, b)
    a.reward(a.decide("one").json()["id"], 1.0)
    assert soon(lambda: len(a.service.stream("home").peers.heard) == 2)
    assert soon(lambda: b.service.stream("home").peers.lag == 0 and b.stream()["state_seq"] == 1)
    assert 'driftwise_replica_lag{stream="home"} 0.0' in b.get("/metrics").text
    assert soon(lambda: "the last is 0 rewards behind" in b.get("/streams/home").text)
    assert soon(lambda: "replicas</dt><dd>2" in b.get("/streams/home").text)


def test_the_password_of_an_address_is_not_shown():
    from driftwise.service.stores.connection import shown

    assert shown("postgresql://me:secret@host:5432/db?x=1") == "postgresql://me:…@host:5432/db?x=1"
    assert shown("postgresql://me@host/db") == "postgresql://me@host/db"


def test_a_decision_whose_time_is_over_is_learned_as_its_default_once(database, two):
    a, b = two
    made(a, b, expire_after=3, default_reward=0.25)
    for n in range(6):
        assert a.decide(f"left {n}").status_code == 200
    for n in range(8):
        assert (a, b)[n % 2].decide(f"paid {n}").status_code == 200
        assert (b, a)[n % 2].reward(f"paid {n}", 1.0).status_code == 200
    settled = soon(lambda: b.stream()["counts"].get("defaulted") == 6 and len(digests(a, b)) == 1)
    assert settled, (a.stream(), b.stream())
    assert a.reward("left 3", 1.0).json()["verdict"] == b.reward("left 3", 1.0).json()["verdict"] == "late"
    (found,) = verify(database)
    assert found.differs == [] and found.rewards == 14


def test_a_replica_forgets_while_all_decide_and_the_others_let_go_too(database, monkeypatch):
    monkeypatch.setattr(forgetting, "STRETCH", 7)
    now, rng, secret = [1_700_000_000.0], np.random.default_rng(2), [[0.123456789, 0.2], [0.1, 0.2]]
    with ExitStack() as stack:
        a, b = (stack.enter_context(living(database, now=lambda: now[0])) for _ in range(2))
        made(a, b)
        for number in range(40):
            now[0] += 1.0
            (a, b)[number % 2].decide(str(number), secret if number == 3 else arms_of(rng, 3, 2))
            if number % 4:
                (b, a)[number % 3 % 2].reward(str(number), float(number % 3 == 0))
        assert soon(lambda: len(digests(a, b)) == 1)
        before, known = b.stream()["digest"], b.service.stream("home").known
        assert "3" in known
        found = a.ask("POST", "home/forget", json={"before": "2023-11-14T22:13:50"})  # half a minute later
        assert found.json() == {"forgotten": 21}
        assert soon(lambda: "3" not in known) and "39" in known and b.stream()["digest"] == before
        assert b.ask("POST", "home/forget", json={"before": "2023-11-14T22:13:50"}).json() == {"forgotten": 0}
        assert b.decide("3", secret).status_code == 409  # its arms are gone and cannot be compared
        assert b.decide("new", secret).status_code == 200  # a set that another dropped is written again
        assert a.reward("new", 1.0).json()["verdict"] == b.reward("0", 1.0).json()["verdict"] == "learned"
        assert soon(lambda: len(digests(a, b)) == 1)
        with living(database) as third:
            assert third.stream()["digest"] == a.stream()["digest"]
        (found,) = verify(database)
        assert found.differs == [] and found.digest == a.stream()["digest"] and found.forgotten >= 21


def test_a_replica_that_slept_goes_on_from_the_snapshot_of_what_was_forgotten(database, two):
    a, b = two
    made(a, b)
    decided = b.decide("mine").json()["id"]
    b.service.watch.refresh = lambda: None  # it neither listens nor polls any more
    for number in range(20):
        a.reward(a.decide(str(number)).json()["id"], 1.0)
    assert a.ask("POST", "home/forget", json={"before": "2100-01-01"}).json() == {"forgotten": 20}
    assert b.service.stream("home").rewarded < 20  # what a poll that had begun still read
    assert b.reward(decided, 1.0).json() == {"verdict": "learned", "seq": 21}
    assert b.reward("7", 1.0).json() == {"verdict": "duplicate", "seq": 8}
    assert soon(lambda: len(digests(a, b)) == 1)
    (found,) = verify(database)
    assert found.differs == [] and found.rewards == 21


def test_changes_on_two_replicas_are_one_history(database, two):
    """A policy change and a reset within .4 s, in any order: both are there afterwards, and everything is
    recomputed."""
    a, b = two
    made(a, b)
    rng, names = random.Random(8), itertools.count()

    def change(one, lam):
        policy = {**BODY["policy"], "lam": lam}
        return one.ask("PUT", "home/policy", json={**BODY, "policy": policy})

    def play(count):
        for _ in range(count):
            one, other = rng.sample(two, 2)
            name = str(next(names))
            assert one.decide(name).status_code == other.reward(name, float(rng.random() < 0.5)).status_code == 200

    def later(seconds, work, *arguments):
        time.sleep(seconds)
        return work(*arguments).status_code

    def at_one():
        return len(digests(a, b)) == 1 and a.stream()["era"] == b.stream()["era"]

    for turn in range(12):
        play(3)
        one, other = rng.sample(two, 2)
        lam = 2.0 + turn
        second = (change, other, lam + 0.5) if turn % 3 == 2 else (other.ask, "POST", "home/reset")
        with ThreadPoolExecutor(2) as pool:
            works = [pool.submit(later, rng.uniform(0, 0.1), *work) for work in ((change, one, lam), second)]
            assert {work.result() for work in works} == {200}
        assert soon(at_one) and a.stream()["era"] == 2 * turn + 3
        played = a.service.stream("home").setup.body.policy["lam"]
        assert played in ((lam, lam + 0.5) if turn % 3 == 2 else (lam,))  # neither undoes the other
    play(3)
    assert soon(lambda: len(digests(a, b)) == 1)
    (found,) = verify(database)
    assert found.differs == [] and found.eras == 25 and found.digest == a.stream()["digest"]


def test_two_replicas_that_make_one_stream_make_it_once(two):
    for number in range(4):
        with ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(one.put, f"s{number}") for one in two]
        assert sorted(one.result().status_code for one in answers) == [200, 201]


def test_pauses_and_items_of_two_replicas_are_the_last_ones_on_both(two):
    a, b = two
    features = Features(context={}, item={"kind": Features.levels(("news", "sport"))})
    made(a, b, policy={"name": "OFUL", "dim": features.dim, "horizon": 1000}, features=features.to_dict())
    kinds = itertools.cycle(("news", "sport"))
    for turn in range(6):
        rows = [{"items": {"a": {"kind": next(kinds)}}} for _ in range(2)]
        works = [lambda one=one, body=body: one.ask("PUT", "home/items", json=body).status_code
                 for one, body in zip(two, rows, strict=True)]  # fmt: skip
        works += [lambda one=one, what=what: one.ask("POST", f"home/{what}").status_code
                  for one, what in zip(two, ("pause", "resume"), strict=True)]  # fmt: skip
        with ThreadPoolExecutor(4) as pool:
            assert {one.result() for one in [pool.submit(work) for work in works]} == {200}, turn
        assert soon(lambda: a.stream()["paused"] == b.stream()["paused"])

        def known(one):
            return {name: dict(row) for name, row in one.service.stream("home").offers.encoder.rows.items()}

        assert soon(lambda: known(a) == known(b) and a.service.watch._seen == b.service.watch._seen)


def test_one_forgets_again_and_again_while_another_decides_and_nobody_waits_for_ever(database, two):
    a, b = two
    made(a, b)
    ended, dropped = threading.Event(), []

    def drop():
        while not ended.is_set():
            dropped.append(a.ask("POST", "home/forget", json={"before": "2100-01-01"}).status_code)

    thread = threading.Thread(target=drop)
    thread.start()
    for number in range(25):  # its arms are in no other decision that is open
        assert b.decide(str(number)).status_code == 200
        assert b.reward(str(number), 1.0).status_code == 200
    ended.set()
    thread.join()
    assert set(dropped) == {200}
    assert b.decide("open").status_code == a.decide("too").status_code == 200
    (found,) = verify(database)
    assert found.differs == [] and found.decisions == 27 and found.forgotten < 27
