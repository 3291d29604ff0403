"""A decision without a reward at its deadline is learned as the stream's default, as in an agent."""

import re
import shutil
import sqlite3
import time

import msgspec
import numpy as np
import pytest

import driftwise as dw
from driftwise.service.core import peers as overdue
from driftwise.service.core.fold import digest
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.stores.records import RewardRow
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.stores.store import seal
from service.desk import LINEAR, Desk, arms_of
from service.living import BODY, living

REWARDS = {**LINEAR, "expire_after": 6, "default_reward": 0.25}
WALL = {**LINEAR, "half_life": "100s", "tick": 1.0, "clock": "wall", "expire_after": "8s", "default_reward": 0.0}


def agent_of(data):
    """The agent that corresponds to a stream of this body."""
    more = {name: data[name] for name in ("half_life", "tick", "expire_after", "default_reward") if name in data}
    return dw.Agent(dw.make(**data["policy"]), rewards=data["rewards"], clock=data.get("clock", "rewards"), **more)


def life(seed, rounds=120):
    """Decisions: most get a reward soon, some too late, some never."""
    rng, coming, now = np.random.default_rng(seed), [], 1000.0
    for number in range(rounds):
        now += float(rng.uniform(0.0, 2.0))
        yield "decide", str(number), arms_of(rng), now
        drawn = rng.random()
        if drawn < 0.8:
            wait = rng.uniform(0.0, 4.0 if drawn < 0.6 else 30.0)
            coming.append((now + float(wait), str(number), float(drawn < 0.3)))
        for one in sorted(one for one in coming if one[0] <= now):
            coming.remove(one)
            yield "reward", one[1], one[2], now


def lived(desk, agent, events):
    """Both through the same events, an event a group; their answers are the same. An agent learns what is due and then
    decides on it; a stream decides on what is on disk, and so has a group of its own for that."""
    for kind, id, what, now in events:
        if kind == "decide":
            desk.stream.peers.expire(now)
            desk.commit()
            found = desk.decide(what, id=id, at=now)
            if agent is not None:
                made = agent.decide(what, id=id, now=now)
                assert (made.arm, made.score, made.born) == (found.arm, found.score, desk.stream.known[id].born)
        else:
            verdict = desk.reward(id, what, at=now).verdict
            if agent is not None:
                assert agent.reward(id, what, now=now).value == verdict
        desk.commit()


@pytest.mark.parametrize("data", (REWARDS, WALL), ids=("rewards", "wall"))
def test_a_stream_with_a_default_is_the_agent_with_it(tmp_path, data):
    desk, agent = Desk(tmp_path / "a.db", data), agent_of(data)
    lived(desk, agent, life(1))
    counts = desk.stream.answer().counts
    assert counts.defaulted == agent.counts["defaulted"] > 10 and counts.late == agent.counts["late"] > 2
    for name in ("decided", "learned", "open"):
        assert getattr(counts, name) == agent.counts[name]
    assert desk.stream.fold.digest() == digest(agent.policy, agent._parts.states.front) == desk.refolded()
    desk.close()
    (found,) = verify(tmp_path / "a.db")
    assert not found.differs
    export(tmp_path / "a.db", tmp_path / "log")
    other = agent_of(data)
    other.learn_log(tmp_path / "log")
    assert other.counts["defaulted"] == counts.defaulted
    assert digest(other.policy, other._parts.states.front) == found.digest


def test_counts_survive_a_restart_but_for_rewards_that_no_row_tells_of(tmp_path):
    """A reward after the default has no row: it is counted since the server started."""
    for data, kept in ((REWARDS, False), ({**LINEAR, "expire_after": 6}, True)):
        path = tmp_path / f"{kept}.db"
        desk = Desk(path, data)
        for event in life(1):
            kind, id, what, now = event
            desk.decide(what, id=id, at=now) if kind == "decide" else desk.reward(id, what, at=now)
            desk.commit()
        before = desk.stream.counts
        assert before.late > 2 and (before.defaulted > 10) != kept
        desk.close()
        desk = Desk(path)
        assert desk.stream.counts == msgspec.structs.replace(before, late=before.late if kept else 0)
        desk.close()


def test_defaults_stay_counted_as_defaults_when_a_policy_without_one_follows(tmp_path):
    body = {"policy": {"name": "OFUL", "dim": 2, "horizon": 1000}, "expire_after": 2, "default_reward": 0.0}
    with living(tmp_path / "a.db") as asked:
        assert asked.put(**body).status_code == 201
        for id in "abcdef":
            asked.decide(id)
        for id in "bcdef":
            assert asked.reward(id, 1.0).status_code == 200
        before = asked.stream()["counts"]
        assert before["defaulted"] > 0 and before["learned"] > 0
        found = asked.ask("PUT", "home/policy", json={**BODY, **body, "default_reward": None})
        assert found.status_code == 200, found.text
        assert asked.stream()["counts"] == before
    with living(tmp_path / "a.db") as asked:
        assert asked.stream()["counts"] == {**before, "late": 0}


@pytest.mark.parametrize("stretch", (1, 3, 1000))
def test_a_restart_changes_no_row(tmp_path, monkeypatch, stretch):
    """The number of rows per read does not matter either."""
    events = list(life(2))
    whole = Desk(tmp_path / "whole.db", REWARDS)
    lived(whole, None, events)
    monkeypatch.setattr(overdue, "STRETCH", stretch)
    for start in range(0, len(events), 17):
        desk = Desk(tmp_path / "parts.db", REWARDS)
        lived(desk, None, events[start : start + 17])
        desk.close()
    again = SQLiteStore(tmp_path / "parts.db", writes=False)
    assert list(again.rewards(1)) == list(whole.store.rewards(1))
    again.close()
    whole.close()


def test_a_group_that_could_not_be_written_has_defaulted_nobody(tmp_path):
    desk, rng = Desk(tmp_path / "a.db", REWARDS), np.random.default_rng(0)
    for number in range(12):
        desk.decide(arms_of(rng), id=str(number))
        desk.commit()
    for number in range(5, 12):
        desk.reward(str(number), 1.0)
        desk.commit()
    desk.decide(arms_of(rng), id="12")
    desk.commit()
    digest = desk.stream.fold.digest()
    desk.reward("12", 1.0)
    desk.fail()
    assert desk.stream.counts.defaulted == 0 and desk.stream.fold.digest() == digest == desk.refolded()
    desk.reward("12", 1.0)
    desk.commit()
    rows = list(desk.store.rewards(1))
    assert [row.id for row in rows[-6:]] == ["0", "1", "2", "3", "4", "12"]
    assert [row.verdict for row in rows[-6:]] == ["defaulted"] * 5 + ["learned"]
    assert desk.stream.fold.digest() == desk.refolded()
    desk.close()


def test_more_than_expire_at_a_time_expire_in_the_end_and_no_reward_slips_through(tmp_path, monkeypatch):
    monkeypatch.setattr(overdue, "MOST", 2)
    desk, rng = Desk(tmp_path / "a.db", WALL), np.random.default_rng(0)
    for number in range(9):
        desk.decide(arms_of(rng), id=str(number), at=1000.0)
    desk.commit()
    assert desk.reward("7", 1.0, at=2000.0).verdict == "late"
    desk.commit()
    assert [row.id for row in desk.store.rewards(1)] == ["0", "1", "7"]
    for _ in range(4):
        desk.stream.peers.expire(2000.0)
        desk.commit()
    assert [row.id for row in desk.store.rewards(1)] == ["0", "1", "7", "2", "3", "4", "5", "6", "8"]
    desk.close()


def test_a_look_goes_on_where_the_last_one_ended(tmp_path, monkeypatch):
    """After a start no request waits for a scan of all decisions."""
    desk, rng = Desk(tmp_path / "a.db", WALL), np.random.default_rng(0)
    for number in range(10):
        desk.decide(arms_of(rng), id=str(number), at=1000.0)
        desk.commit()
        if number < 9:
            desk.reward(str(number), 1.0, at=1000.0)
            desk.commit()
    desk.close()
    monkeypatch.setattr(overdue, "LOOKED", 4)
    desk = Desk(tmp_path / "a.db")
    for look in range(3):
        assert desk.stream.counts.defaulted == 0
        desk.stream.peers.expire(2000.0)
        desk.commit()
        assert desk.stream.counts.defaulted == (look == 2)
    desk.close()


def test_defaults_are_learned_while_nobody_asks(tmp_path):
    now = [1000.0]
    body = {"policy": {"name": "OFUL", "dim": 2, "horizon": 1000}, "clock": "wall", "half_life": "100s", "tick": 1.0,
            "expire_after": "8s", "default_reward": 0.0}  # fmt: skip
    with living(tmp_path / "a.db", now=lambda: now[0]) as asked:
        assert asked.put(**body).status_code == 201
        asked.decide("a")
        now[0] += 30.0
        until = time.monotonic() + 400.0
        while asked.stream()["counts"].get("defaulted", 0) == 0 and time.monotonic() < until:
            time.sleep(0.05)
        before = asked.stream()
        assert before["counts"] == {"decided": 1, "learned": 0, "late": 0, "open": 0, "defaulted": 1}
        assert asked.reward("a", 1.0).json() == {"verdict": "late", "seq": 1}
        assert asked.stream() == {**before, "counts": {**before["counts"], "late": 1}}
        for verdict, many in (("learned", 0), ("defaulted", 1), ("late", 1)):
            line = f'driftwise_rewards_total{{stream="home",verdict="{verdict}"}} {many}.0'
            assert line in asked.get("/metrics").text
        page = asked.get("/streams/home").text
        assert re.search(r"<dt>late</dt>\s*<dd>1\b", page) and re.search(r"<dt>rewards learned</dt>\s*<dd>0\b", page)
        assert asked.ask("GET", "home/explain/a").json()["verdict"] == "defaulted"
        for wrong in ({"default_reward": 0.5, "expire_after": None}, {"default_reward": 7.0}):
            found = asked.put("other", **{**body, **wrong})
            assert found.status_code == 422 and found.json()["field"] == "default_reward"


def test_a_span_without_a_wall_clock_is_refused_with_a_way_out_that_works(tmp_path):
    body = {"policy": {"name": "Auto", "dim": 2}, "half_life": None, "expire_after": "1h", "default_reward": 0.0}
    with living(tmp_path / "a.db") as asked:
        found = asked.put(**body).json()
        assert found["field"] == "expire_after" and found["hint"].startswith('pass clock="wall"')
        assert asked.put(**body, clock="wall").status_code == 201


def test_verify_finds_a_default_that_was_not_due(tmp_path):
    desk = Desk(tmp_path / "a.db", REWARDS)
    lived(desk, None, life(3, 60))
    rows = list(desk.store.rewards(1))
    desk.close()
    defaulted = next(row for row in rows if row.verdict == "defaulted")
    learned = next(row for row in rows if row.verdict == "learned")
    for row in (defaulted._replace(value=0.5), learned._replace(verdict="defaulted", value=0.25)):
        shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
        raw = sqlite3.connect(tmp_path / "b.db")
        names = ", ".join(f"{name} = ?" for name in ("value", "verdict", "seal"))
        values = (row.value, row.verdict, seal(RewardRow(*row)), row.seq)
        raw.execute(f"UPDATE reward SET {names} WHERE seq = ?", values)
        raw.commit()
        raw.close()
        assert any("not due" in told for told in verify(tmp_path / "b.db")[0].differs)
