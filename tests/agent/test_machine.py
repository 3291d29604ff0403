"""Any sequence of events against a dictionary and direct weighted sums."""

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import driftwise as dw
from agent.living import Hand, linear, unit_arms
from driftwise import files
from refusing import refused

ARMS = unit_arms(6, 2, 11)
FORGET, DEADLINE, ROOM, TICK = 0.05, 6.0, 5, 2.0
VALUES = st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0])


class Life(RuleBasedStateMachine):
    """LinearUCB that fades, on one clock, with a deadline and a default: the model keeps every lesson."""

    clock = "rounds"
    default = None

    def __init__(self):
        super().__init__()
        self.hand = Hand(100.0)
        self.agent = self.made(self.hand)
        self.open, self.closed, self.lessons = {}, {}, []
        self.tick = self.learned = 0
        self.number = 0

    def made(self, hand):
        wall = self.clock == "wall"
        return dw.Agent(
            linear(dw.Fade(FORGET)), rewards=(-1, 1), clock=self.clock, tick=TICK if wall else None, max_open=ROOM,
            expire_after=DEADLINE * (TICK if wall else 1.0), default_reward=self.default, epsilon=0.2, seed=3, now=hand,
        )

    # The model's clock.
    def read(self):
        if self.clock == "wall":
            self.tick = max(self.tick, math.floor(self.hand.at / TICK))
        elif self.clock == "rewards":
            self.tick = self.learned + 1
        return self.tick

    def learn(self, id, value, verdict):
        born, arm, _ = self.open.pop(id)
        self.learned = self.learned + 1 if self.clock == "rewards" else self.tick
        self.lessons.append((born, ARMS[arm], value))
        self.closed[id] = (verdict, value)

    def expire(self):
        now = self.read()
        while self.open:
            id = next(iter(self.open))
            if not now - self.open[id][0] > DEADLINE:
                return
            if self.default is None:
                del self.open[id]
                self.closed[id] = ("expired", None)
            else:
                self.learn(id, self.default, "defaulted")

    @rule(allowed=st.sets(st.integers(0, 5), min_size=1))
    def decide(self, allowed):
        self.expire()
        self.number += 1
        id = f"d{self.number}"
        made = self.agent.decide(ARMS, list("abcdef"), id=id, allowed=sorted(allowed))
        born = {"rounds": self.tick + 1, "wall": self.tick, "rewards": self.learned + 1}[self.clock]
        if self.clock == "rounds":
            self.tick += 1
        if len(self.open) >= ROOM:
            oldest = next(iter(self.open))
            del self.open[oldest]
            self.closed[oldest] = ("expired", None)
        self.open[id] = (born, made.arm, made)
        assert (made.id, made.seq, made.born, made.n, made.item) == (id, self.number, born, len(allowed),
                                                                     "abcdef"[made.arm])
        assert made.arm in allowed

    @precondition(lambda self: self.open or self.closed)
    @rule(data=st.data())
    def decide_again(self, data):
        id = data.draw(st.sampled_from([*self.open, *self.closed]))
        self.expire()
        with refused("id", "other arms"):
            self.agent.decide(ARMS[:2], id=id)

    @rule(data=st.data(), value=VALUES)
    def reward(self, data, value):
        ids = [*self.open, *self.closed, "nobody"]
        id = data.draw(st.sampled_from(ids))
        self.expire()
        if id in self.open:
            assert self.agent.reward(id, value) == "learned"
            self.learn(id, value, "learned")
        elif id == "nobody":
            with refused("id"):
                self.agent.reward(id, value)
        elif self.closed[id][0] == "cancelled":
            with refused("id", "cancelled"):
                self.agent.reward(id, value)
        elif self.closed[id][0] != "learned":
            assert self.agent.reward(id, value) == "late"
        elif self.closed[id][1] == value:
            assert self.agent.reward(id, value) == "duplicate"
        else:
            with refused("value", "the first reward stands"):
                self.agent.reward(id, value)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data):
        id = data.draw(st.sampled_from(list(self.open)))
        self.agent.cancel(id)
        del self.open[id]
        self.closed[id] = ("cancelled", None)

    @rule(jump=st.sampled_from([0.5, 3.0, 30.0, -20.0]))
    def time_passes(self, jump):
        self.hand.at = max(0.0, self.hand.at + jump)

    @rule()
    def save_and_load(self):
        data = self.agent.to_bytes()
        self.agent = dw.Agent.from_bytes(data, now=self.hand)
        assert self.agent.to_bytes() == data

    @precondition(lambda self: self.clock == "wall")
    @rule(arm=st.integers(0, 5), value=VALUES)
    def merge(self, arm, value):
        other = self.made(self.hand)
        made = other.decide(ARMS, allowed=[arm])
        other.reward(made.id, value)
        self.agent.merge(other)
        with refused("other", "source"):
            self.agent.merge(other)
        self.lessons.append((made.born, ARMS[arm], value))
        self.learned = max(self.learned, made.born)
        self.tick = max(self.tick, self.learned)

    @invariant()
    def sums_are_direct_weighted_sums(self):
        state, now = self.agent.state, self.learned
        weights = [(1.0 - FORGET) ** (now - born) for born, _, _ in self.lessons]
        G = sum((w * np.outer(x, x) for w, (_, x, _) in zip(weights, self.lessons, strict=True)), np.zeros((2, 2)))
        b = sum((w * r * x for w, (_, x, r) in zip(weights, self.lessons, strict=True)), np.zeros(2))
        np.testing.assert_allclose(np.tril(state.G[0]), np.tril(G), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(state.b[0], b, rtol=1e-10, atol=1e-12)
        assert state.clock == now
        assert state.observations == len(self.lessons)

    @invariant()
    def the_books_agree(self):
        counts = self.agent.counts
        assert counts["open"] == len(self.open)
        for word in ("learned", "defaulted", "expired", "cancelled"):
            assert counts[word] == sum(verdict == word for verdict, _ in self.closed.values())


class Wall(Life):
    clock, default = "wall", -0.25


class Rewards(Life):
    clock, default = "rewards", 0.5


TestRounds = Life.TestCase
TestWall = Wall.TestCase
TestRewards = Rewards.TestCase
for machine in (TestRounds, TestWall, TestRewards):
    machine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)


def test_a_kill_between_write_and_rename_leaves_the_snapshot_before(tmp_path, monkeypatch):
    agent, path = Life().agent, tmp_path / "agent.dw"
    agent.decide(ARMS, id="a")
    agent.save(path)
    whole = path.read_bytes()
    agent.reward("a", 1.0)

    class Killed(BaseException):
        pass

    def kill(self, target):
        raise Killed

    monkeypatch.setattr(files.Path, "replace", kill)
    try:
        agent.save(path)
    except Killed:
        pass
    monkeypatch.undo()
    assert path.read_bytes() == whole
    assert dw.Agent.load(path).counts["open"] == 1
    assert [one.name for one in tmp_path.iterdir()] == ["agent.dw"]
