"""Forgetting by unit or by time erases arms, contexts, vectors, traces and guardrails; on both stores."""

from contextlib import closing

import pytest

from driftwise.service.core.forgetting import forget
from driftwise.service.core.verify import verify
from driftwise.service.stores.opening import open_store
from service.living import ARMS, living
from service.test_allowed import TRACE

NOW = 1_700_000_000.0


@pytest.fixture(params=["sqlite", "postgres"])
def db(request, tmp_path):
    return tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("database")


def live(asked, count=40):
    """Decisions of four units, each with a trace, a cost and a guardrail; two of unit u1 are open."""
    asked.put(mode="holdback", holdback=0.5, guardrails={"ms": {"margin": 5}})
    for number in range(count):
        trace = f"00-{number + 1:032x}{TRACE[35:]}"
        body = {"id": f"d{number}", "arms": ARMS, "unit": f"u{number % 4}", "cost": [0.0, 0.125, 0.0]}
        told = asked.ask("POST", "home/decide", json=body, headers={"traceparent": trace})
        assert told.status_code == 200
        if number not in (count - 3, count - 7):
            reward = {"id": f"d{number}", "value": number % 2, "metrics": {"ms": 1000.0 + number}}
            assert asked.ask("POST", "home/reward", json=reward).status_code == 200


def left(db):
    """Which decisions still have their arms, their details and their guardrails."""
    with closing(open_store(db, writes=False)) as store:
        rows = list(store.decisions(1))
        rewards = {one.id: one for one in store.rewards(1)}
        held = {one.id for one in rows if one.arm_set is not None}
        assert held == {one.id for one in rows if one.unit is not None}
        assert {id for id, one in rewards.items() if one.x is not None} == held & set(rewards)
        details = {one.id for one in rows if store.detail(1, one.seq) is not None}
        ids = {one.seq: id for id, one in rewards.items()}
        return held, details, {ids[one.seq] for one in store.guardrails(1, 0, 2**40)}


def test_a_unit_is_forgotten_by_a_server_with_its_open_decisions(db):
    with living(db, now=lambda: NOW) as asked:
        live(asked)
        before = asked.stream()
        assert asked.ask("POST", "home/forget", json={"unit": "u1"}).json() == {"forgotten": 10}
        assert asked.ask("POST", "home/forget", json={"unit": "u1"}).json() == {"forgotten": 0}
        for wrong in ({}, {"unit": "u1", "before": "2026-01-01"}):
            assert asked.ask("POST", "home/forget", json=wrong).status_code == 422
        after = asked.stream()
        assert (after["digest"], after["counts"]) == (before["digest"], before["counts"])
        assert asked.reward("d37", 1.0).json()["code"] == "forgotten_decision"
        assert asked.decide("d0", unit="u0", cost=[0.0, 0.125, 0.0]).status_code == 200
    rest = {f"d{number}" for number in range(40) if number % 4 != 1}
    held, details, guardrails = left(db)
    assert held == rest and details == rest and guardrails == rest
    (found,) = verify(db)
    assert not found.differs and found.digest == before["digest"] and found.forgotten >= 10
    with living(db, now=lambda: NOW) as asked:
        assert asked.stream()["digest"] == before["digest"]
        assert asked.decide("next", unit="u1").status_code == 200


def test_nothing_of_a_forgotten_unit_or_time_is_in_the_file(tmp_path):
    db = tmp_path / "a.db"
    now = [NOW]
    with living(db, now=lambda: now[0]) as asked:
        live(asked)
        digest = asked.stream()["digest"]
    marks = {number: f"{number + 1:032x}".encode() for number in range(40)}
    assert all(mark in db.read_bytes() for mark in marks.values())
    assert forget(db, "u1") == {"home": 10}
    raw = db.read_bytes()
    assert {number for number, mark in marks.items() if mark in raw} == {n for n in range(40) if n % 4 != 1}
    (once,) = verify(db)
    assert forget(db, NOW + 1.0) == {"home": 30}
    raw = db.read_bytes()
    assert not [number for number, mark in marks.items() if mark in raw]
    assert left(db) == (set(), set(), set())
    (found,) = verify(db)
    assert not found.differs and not once.differs and found.forgotten == 40
    assert {once.digest, found.digest} == {digest}
    assert verify(db)[0] == found
