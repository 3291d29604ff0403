"""Any sequence of events against a dictionary and direct weighted sums."""

import copy
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import driftwise as dw
from agent.living import Hand, linear, unit_arms
from driftwise._internal import files
from refusing import refused

ARMS = unit_arms(6, 2, 11)
FORGET, DEADLINE, ROOM, TICK = 0.05, 6.0, 5, 2.0
VALUES = st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0])


class Killed(BaseException):
    """Raised where the process would have been killed."""


class Model:
    """A dictionary of decisions, and every lesson."""

    def __init__(self):
        self.open, self.closed, self.made, self.lessons = {}, {}, {}, []
        self.tick = self.learned = 0
        self.number = self.merged = self.repeated = 0
        self.zero = math.inf  # the tick of the decision that was learned first


class Life(RuleBasedStateMachine):
    """LinearUCB on one clock, with a deadline and a default: all events of an agent, in any order."""

    clock = "rounds"
    default = None
    forget = FORGET

    def __init__(self):
        super().__init__()
        self.hand = Hand(100.0)
        self.agent, self.model = self.made(self.hand), Model()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "agent.dw"
        self.saved = None  # the bytes and the model of the last save

    def teardown(self):
        shutil.rmtree(self.folder)

    def made(self, hand):
        wall = self.clock == "wall"
        memory = dw.Fade(self.forget) if self.forget else dw.Keep()
        return dw.Agent(
            linear(memory), rewards=(-1, 1), clock=self.clock, tick=TICK if wall else None, max_open=ROOM,
            expire_after=DEADLINE * (TICK if wall else 1.0), default_reward=self.default, epsilon=0.2, seed=3, now=hand,
        )

    # The model's clock.
    def read(self):
        if self.clock == "wall":
            self.model.tick = max(self.model.tick, math.floor(self.hand.at / TICK))
        elif self.clock == "rewards":
            self.model.tick = self.model.learned + 1
        return self.model.tick

    def learn(self, id, value, verdict):
        born, arm = self.model.open.pop(id)
        self.model.learned = self.model.learned + 1 if self.clock == "rewards" else self.model.tick
        self.model.zero = self.model.zero if self.model.lessons else born
        self.model.lessons.append((born, ARMS[arm], value))
        self.model.closed[id] = (verdict, value)

    def expire(self):
        now = self.read()
        while self.model.open:
            id = next(iter(self.model.open))
            if not now - self.model.open[id][0] > DEADLINE:
                return
            if self.default is None:
                del self.model.open[id]
                self.model.closed[id] = ("expired", None)
            else:
                self.learn(id, self.default, "defaulted")

    @rule(allowed=st.sets(st.integers(0, 5), min_size=1))
    def decide(self, allowed):
        self.expire()
        self.model.number += 1
        id = f"d{self.model.number}"
        made = self.agent.decide(ARMS, list("abcdef"), id=id, allowed=sorted(allowed))
        born = {"rounds": self.model.tick + 1, "wall": self.model.tick, "rewards": self.model.learned + 1}[self.clock]
        if self.clock == "rounds":
            self.model.tick += 1
        if len(self.model.open) >= ROOM:
            oldest = next(iter(self.model.open))
            del self.model.open[oldest]
            self.model.closed[oldest] = ("expired", None)
        self.model.open[id] = (born, made.arm)
        self.model.made[id] = made, sorted(allowed)
        assert (made.id, made.seq, made.born, made.n, made.item) == (id, self.model.number, born, len(allowed),
                                                                     "abcdef"[made.arm])
        assert made.arm in allowed

    @precondition(lambda self: self.model.open or self.model.closed)
    @rule(data=st.data())
    def decide_again(self, data):
        id = data.draw(st.sampled_from([*self.model.open, *self.model.closed]))
        self.expire()
        made, allowed = self.model.made[id]
        assert self.agent.decide(ARMS, list("abcdef"), id=id, allowed=allowed) == made
        self.model.repeated += 1
        with refused("id", "other arms"):
            self.agent.decide(ARMS[:2], id=id)

    @rule(data=st.data(), value=VALUES)
    def reward(self, data, value):
        ids = [*self.model.open, *self.model.closed, "nobody"]
        id = data.draw(st.sampled_from(ids))
        self.expire()
        if id in self.model.open:
            assert self.agent.reward(id, value) == "learned"
            self.learn(id, value, "learned")
        elif id == "nobody":
            with refused("id"):
                self.agent.reward(id, value)
        elif self.model.closed[id][0] == "cancelled":
            with refused("id", "cancelled"):
                self.agent.reward(id, value)
        elif self.model.closed[id][0] != "learned":
            assert self.agent.reward(id, value) == "late"
        elif self.model.closed[id][1] == value:
            assert self.agent.reward(id, value) == "duplicate"
        else:
            with refused("value", "the first reward stands"):
                self.agent.reward(id, value)

    @precondition(lambda self: self.model.open)
    @rule(data=st.data())
    def cancel(self, data):
        id = data.draw(st.sampled_from(list(self.model.open)))
        self.agent.cancel(id)
        del self.model.open[id]
        self.model.closed[id] = ("cancelled", None)

    @rule(jump=st.sampled_from([0.5, 3.0, 30.0, 1e6, -20.0, -1e6]))
    def time_jumps(self, jump):
        self.hand.at = max(0.0, self.hand.at + jump)

    @precondition(lambda self: self.model.open and self.clock != "rewards")
    @rule(value=VALUES)
    def let_the_oldest_expire(self, value):
        """Send its reward when it is overdue."""
        id = next(iter(self.model.open))
        if self.clock == "wall":
            self.hand.at = max(self.hand.at, (self.model.open[id][0] + DEADLINE + 1.0) * TICK)
        while self.clock == "rounds" and id in self.model.open:  # or it is evicted
            self.decide({0})
        self.expire()
        assert self.model.closed[id][0] in ("expired", "defaulted")
        assert self.agent.reward(id, value) == "late"

    @rule()
    def live_on_as_bytes(self):
        data = self.agent.to_bytes()
        self.agent = dw.Agent.from_bytes(data, now=self.hand)
        assert self.agent.to_bytes() == data

    @rule()
    def save(self):
        self.agent.save(self.path)
        self.saved = self.agent.to_bytes(), copy.deepcopy(self.model)

    @precondition(lambda self: self.saved)
    @rule()
    def load(self):
        """Everything since the save is undone."""
        self.agent = dw.Agent.load(self.path, now=self.hand)
        data, model = self.saved
        assert self.agent.to_bytes() == data
        self.model = copy.deepcopy(model)

    @precondition(lambda self: self.saved)
    @rule(moment=st.sampled_from(["half written", "written", "synced"]))
    def die_while_saving(self, moment):
        """The process ends before the file is renamed and leaves a temporary one; the next one finds the last save."""
        def torn(file):
            os.ftruncate(file, os.fstat(file).st_size // 2)
            raise Killed

        death = {
            "half written": mock.patch.object(files.os, "fsync", torn),
            "written": mock.patch.object(files.os, "fsync", side_effect=Killed),
            "synced": mock.patch.object(files.Path, "replace", side_effect=Killed),
        }[moment]
        for one in self.folder.glob("*.tmp"):  # of a save that failed before, in the same process
            one.unlink()
        with death, mock.patch.object(files.Path, "unlink"), pytest.raises(Killed):  # no cleaning up
            self.agent.save(self.path)
        left = [one for one in self.folder.iterdir() if one != self.path]
        assert len(left) == 1 and left[0].stat().st_size > 0
        self.load()

    @rule(arm=st.integers(0, 5), value=VALUES)
    def merge(self, arm, value):
        other = self.made(self.hand)
        made = other.decide(ARMS, allowed=[arm])
        other.reward(made.id, value)
        if self.forget and self.clock != "wall":
            with refused("clock", "wall"):
                self.agent.merge(other)
            return
        self.agent.merge(other)
        with refused("other", "source"):
            self.agent.merge(other)
        self.model.lessons.append((made.born, ARMS[arm], value))
        self.model.zero = min(self.model.zero, made.born)
        self.model.merged += 1
        if self.clock == "wall":
            self.model.learned = max(self.model.learned, made.born)
            self.model.tick = max(self.model.tick, self.model.learned)

    @invariant()
    def sums_are_direct_weighted_sums(self):
        state, now = self.agent.state, self.model.learned
        weights = [(1.0 - self.forget) ** (now - born) for born, _, _ in self.model.lessons]
        lessons = list(zip(weights, self.model.lessons, strict=True))
        G = sum((w * np.outer(x, x) for w, (_, x, _) in lessons), np.zeros((2, 2)))
        b = sum((w * r * x for w, (_, x, r) in lessons), np.zeros(2))
        np.testing.assert_allclose(np.tril(state.G[0]), np.tril(G), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(state.b[0], b, rtol=1e-10, atol=1e-12)
        zero = self.model.zero if self.clock == "wall" and self.model.lessons else 0
        assert state.clock == now - zero
        assert state.observations == len(self.model.lessons)

    @invariant()
    def the_books_agree(self):
        counts = self.agent.counts
        model = self.model
        assert (counts["decided"], counts["merged"], counts["repeated"]) == (model.number, model.merged, model.repeated)
        assert list(self.agent._parts.book.open) == list(model.open)
        assert counts["open"] == len(self.model.open)
        for word in ("learned", "defaulted", "expired", "cancelled"):
            assert counts[word] == sum(verdict == word for verdict, _ in self.model.closed.values())


class Kept(Life):
    forget = 0.0


class Wall(Life):
    clock, default = "wall", -0.25


class Rewards(Life):
    clock, default = "rewards", 0.5


TestRounds = Life.TestCase
TestKept = Kept.TestCase
TestWall = Wall.TestCase
TestRewards = Rewards.TestCase
for machine in (TestRounds, TestKept, TestWall, TestRewards):
    machine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
del machine  # or pytest would collect it once more


def test_a_save_that_fails_leaves_the_snapshot_before_and_nothing_beside_it(tmp_path):
    agent, path = dw.Agent(linear(), rewards=(-1, 1)), tmp_path / "agent.dw"
    agent.save(path)
    whole = path.read_bytes()
    agent.decide(ARMS)
    with mock.patch.object(files.Path, "replace", side_effect=OSError("no")), pytest.raises(OSError):
        agent.save(path)
    assert path.read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["agent.dw"]


CHILD = """
import sys
import numpy as np
import driftwise as dw
path, arms = sys.argv[1], np.eye(3)
agent = dw.Agent.load(path)
while True:
    agent.reward(agent.decide(arms).id, 0.5)
    agent.save(path)
    print(agent.counts["learned"], flush=True)
"""


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_a_process_that_is_killed_leaves_its_last_save_or_the_one_it_was_writing(kills, tmp_path):
    path, chance = tmp_path / "agent.dw", np.random.default_rng(7)
    dw.Agent(linear(dim=3), rewards=(-1, 1)).save(path)
    told = 0
    for _ in range(kills):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(int(chance.integers(1, 12))):
            told = int(child.stdout.readline())
        time.sleep(chance.random() * 0.01)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")
        child.wait()
        child.stdout.close()
        told = max([told, *(int(line) for line in rest[:-1])])
        agent = dw.Agent.load(path)
        assert agent.counts["learned"] in (told, told + 1)  # every reported save is there, complete
        assert agent.state.observations == agent.counts["learned"] == agent.counts["decided"]
