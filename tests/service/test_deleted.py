"""A deleted stream is gone permanently, on both stores: its name is not used again, and verify reports the time."""

import asyncio
from contextlib import closing

import pytest

from driftwise.service.core.verify import verify
from driftwise.service.stores.opening import open_store
from driftwise.service.wire.protocol import DecideBody, Refusal, RewardBody
from service.living import ARMS, BODY, living, soon


@pytest.fixture(params=["sqlite", "postgres"])
def db(request, tmp_path):
    return tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("database")


def delete(asked, **body):
    return asked.ask("DELETE", "home", json=body)


def gone(asked):
    """Whether all its routes answer 410."""
    answers = [asked.decide("b"), asked.ask("GET", "home"), asked.put(), asked.reward("a", 1.0)]
    return {(one.status_code, one.json()["code"]) for one in answers} == {(410, "stream_deleted")}


def test_a_deleted_stream_is_gone_for_good_and_an_event_says_so(db):
    with living(db) as asked:
        assert asked.put().status_code == 201 and asked.decide("a").status_code == 200
        assert asked.ask("PUT", "other", json=BODY).status_code == 201
        assert asked.decide("c", stream="other").status_code == 200
        told = asked.get("/v1/streams").json()
        assert [one["stream"] for one in told["streams"]] == ["home", "other"] and told["deleted"] == []
        assert delete(asked, name="hone").status_code == 422
        assert (waits := delete(asked, name="home")).status_code == 409 and waits.json()["code"] == "open_decisions"
        assert asked.reward("a", 1.0).status_code == 200
        assert delete(asked, name="home").json() == {"deleted": "home"}
        assert gone(asked) and delete(asked, name="home").status_code == 410
    with living(db) as asked:
        assert gone(asked) and asked.decide("d", stream="other").status_code == 200
        told = asked.get("/v1/streams").json()
        assert [one["stream"] for one in told["streams"]] == ["other"] and told["deleted"] == ["home"]
    other, home = verify(db)
    assert home.name == "home" and home.deleted and not home.differs and "deleted at 20" in str(home)
    assert other.name == "other" and other.decisions == 2 and not other.differs
    with closing(open_store(db, writes=False)) as store:
        assert not store.has_rows(store.deleted()["home"])
        assert [one.kind for one in store.events(store.deleted()["home"])] == ["deleted"]


def test_a_deleted_stream_with_open_decisions_needs_force_and_is_erased_after_a_kill(db):
    with living(db) as asked:
        assert asked.put().status_code == 201 and asked.decide("a").status_code == 200

        async def killed(number):
            """As a server that is killed before it has erased anything."""

        asked.service.erase = killed
        assert delete(asked, name="home", force=True).status_code == 200 and gone(asked)
        number = asked.service.deleted["home"]
    with closing(open_store(db, writes=False)) as store:
        assert store.has_rows(number)
    with living(db) as asked:
        assert gone(asked)

        def left():
            with closing(open_store(db, writes=False)) as store:
                return store.has_rows(number)

        assert soon(lambda: not left())


def test_another_replica_hears_of_a_deletion(database):
    with living(database) as a, living(database) as b:
        assert a.put().status_code == 201 and soon(lambda: b.decide("a").status_code == 200)
        assert delete(a, name="home", force=True).status_code == 200
        assert soon(lambda: gone(b))


def test_a_request_that_waited_while_the_stream_was_deleted_is_refused(tmp_path):
    with living(tmp_path / "a.db") as asked:
        assert asked.put().status_code == 201 and asked.decide("a").status_code == 200
        stream, submit = asked.service.stream("home"), asked.service.engine.submit
        body = DecideBody(id="b", arms=ARMS)
        offer = stream.offers.offer(body)
        assert delete(asked, name="home", force=True).status_code == 200

        async def waited(work):
            return await submit(work)

        for work in (lambda: stream.decide(body, offer, 1.0), lambda: stream.reward(RewardBody(id="a", value=1), 1.0)):
            with pytest.raises(Refusal, match="deleted"):
                asked.wait(waited(work))
        with pytest.raises(Refusal, match="deleted"):
            asked.wait(asked.service.changed(asked.service._pause, stream, True, None))


def erase_later(one, other):
    """One replica erases the rows of the stream that it deletes when the other knows that it is deleted."""
    erase = one.service.erase

    async def later(number):
        while "home" not in other.service.deleted:
            await asyncio.sleep(0.02)
        await erase(number)

    one.service.erase = later


@pytest.mark.parametrize("verb", ["decide", "reward", "pause", "reset", "delete", "put", "expire"])
def test_every_write_on_another_replica_sees_a_deletion_in_its_own_transaction(database, verb):
    more = {"expire_after": 1, "default_reward": 0.0} if verb == "expire" else {}
    with living(database) as a, living(database) as b:
        expire = b.service.expire
        a.service.expire = lambda: None
        b.service.expire = lambda: expire() if "home" in a.service.deleted else None
        assert a.put(**more).status_code == 201 and soon(lambda: b.decide("a").status_code == 200)
        for one in "cd":
            assert b.decide(one).status_code == b.reward(one, 1.0).status_code == 200
        b.service.watch.refresh = lambda: None  # it neither listens nor polls any more
        if verb == "expire":
            erase_later(a, b)
        assert delete(a, name="home", force=True).status_code == 200
        number = a.service.deleted["home"]
        if verb != "expire":  # which it does by itself
            assert "home" not in b.service.deleted
            asked = {
                "decide": lambda: b.decide("b"), "reward": lambda: b.reward("a", 1.0), "put": lambda: b.put(**more),
                "pause": lambda: b.ask("POST", "home/pause"), "delete": lambda: delete(b, name="home", force=True),
                "reset": lambda: b.ask("POST", "home/reset"),
            }[verb]()  # fmt: skip
            assert (asked.status_code, asked.json()["code"]) == (410, "stream_deleted")
        assert soon(lambda: "home" in b.service.deleted) and b.decide("b").status_code == 410
        assert gone(a) and gone(b)
        with closing(open_store(database, writes=False)) as store:
            assert not store.has_rows(number)
            assert [one.kind for one in store.events(number)] == ["deleted"]
    (found,) = verify(database)
    assert found.deleted and not found.differs


def test_two_events_of_one_deletion_are_no_damage(tmp_path):
    """Two replicas of an earlier version wrote one each."""
    with living(tmp_path / "a.db") as asked:
        assert asked.put().status_code == 201 and delete(asked, name="home").status_code == 200
    with closing(open_store(tmp_path / "a.db")) as store:
        (event,) = store.events(1)
        store.begin()
        store.add_events([event._replace(seq=2)])
        store.commit()
    (found,) = verify(tmp_path / "a.db")
    assert found.deleted and not found.differs
