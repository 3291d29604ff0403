"""Policies of the user's own: an object with start, choose and learn can be played live."""

import dataclasses
import json
import math
import threading

import numpy as np
import pytest

import driftwise as dw
from agent.living import Hand, linear, tape_of, unit_arms
from refusing import refused

ARMS = unit_arms(6, 3, 5)


class Greedy:
    """Ridge regression without a bonus. It returns the index alone, and has no notion of time."""

    def start(self, seed=0):
        return {"V": np.eye(3), "b": np.zeros(3), "lessons": []}

    def choose(self, state, arms):
        return int(np.argmax(arms @ np.linalg.solve(state["V"], state["b"])))

    def learn(self, state, arms, arm, reward):
        state["V"] += np.outer(arms[arm], arms[arm])
        state["b"] += reward * arms[arm]
        state["lessons"].append((len(arms), arm, reward))


@dataclasses.dataclass(frozen=True)
class Counting:
    """Uses the index of an arm and nothing else, fades on a clock of ticks, scores, and can be saved."""

    forget: float = 0.1
    dim: int = 3

    def start(self, seed=0):
        return {"sum": [0.0] * 6, "weight": [0.0] * 6, "clock": 0.0}

    def scores(self, state, arms):
        total, weight = (np.array(state[name])[: len(arms)] for name in ("sum", "weight"))
        return dw.Scores(total / np.maximum(weight, 1e-9), 1.0 / np.sqrt(1.0 + weight))

    def choose(self, state, arms):
        return self.scores(state, arms).best()

    def advance(self, state, ticks=1.0):
        for name in ("sum", "weight"):
            state[name] = [one * (1.0 - self.forget) ** ticks for one in state[name]]
        state["clock"] += ticks

    def learn(self, state, arms, arm, reward, ticks=1.0, age=0.0):
        self.advance(state, ticks)
        share = (1.0 - self.forget) ** age
        state["sum"][arm] += share * reward
        state["weight"][arm] += share

    def state_to_bytes(self, state):
        return json.dumps(state).encode()

    def state_from_bytes(self, data):
        return json.loads(data)


@pytest.mark.parametrize("policy", [Greedy(), Counting()], ids=lambda one: type(one).__name__)
def test_with_immediate_rewards_the_arms_are_those_of_simulate(policy):
    world = dw.worlds.Turn(horizon=80, arms=6, dim=3)
    told = dw.simulate({"it": policy}, world, trials=1, jobs=1).arms["it"][0].tolist()
    agent, (rows, reward), played = dw.Agent(policy, rewards=(-9, 9)), tape_of(world), []
    assert agent.policy is policy
    for t in range(80):
        one = agent.decide(rows[t])
        assert agent.reward(one.id, reward(t, one.arm)) == "learned"
        played.append(one.arm)
    assert played == told


def test_late_rewards_are_learned_in_the_order_they_come_with_all_arms_and_the_index():
    agent = dw.Agent(Greedy(), rewards=(-1, 1), expire_after=9)
    made = [agent.decide(ARMS, items=list("abcdef"), allowed=[2, 4, 5]), agent.decide(ARMS[:4])]
    assert made[0].item == "c" and (made[0].n, made[1].n) == (3, 4)
    assert all(math.isnan(one.score) and one.propensity == 1.0 for one in made)
    assert agent.reward(made[1].id, 0.5) == agent.reward(made[0].id, -0.5) == "learned"
    assert agent.reward(made[0].id, -0.5) == "duplicate"
    assert agent.state["lessons"] == [(4, 0, 0.5), (3, 0, -0.5)]


def test_one_that_knows_of_time_is_told_ticks_and_ages():
    hand = Hand(1000.0)
    agent = dw.Agent(Counting(), rewards=(0, 1), clock="wall", tick=10.0, now=hand)
    one = agent.decide(ARMS, allowed=[3])
    hand.at = 1040.0
    assert agent.decide(ARMS).bonus > 0.0
    agent.reward(one.id, 1.0)
    state = agent.state
    assert state["clock"] == 4.0 and state["sum"][0] == pytest.approx(0.9**4)
    hand.at = 1070.0
    assert agent.decide(ARMS, allowed=[0]).mean == pytest.approx(1.0)
    assert agent.decide(ARMS, allowed=[0]).bonus == pytest.approx(1 / math.sqrt(1 + 0.9**7))
    assert agent.state["clock"] == 4.0
    with refused("tick", "ticks"):
        dw.Agent(Counting(), rewards=(0, 1), clock="wall")
    dw.Agent(Greedy(), rewards=(0, 1), clock="wall")  # it counts no ticks, so any value is fine


def test_a_lesson_that_fails_leaves_no_trace():
    class Fragile(Greedy):
        def learn(self, state, arms, arm, reward):
            state["b"] += 1.0
            if reward < 0.0:
                raise RuntimeError("no")

    agent = dw.Agent(Fragile(), rewards=(-1, 1), expire_after=5, default_reward=-1.0)
    one = agent.decide(ARMS)
    with pytest.raises(RuntimeError):
        agent.reward(one.id, -0.5)
    assert (agent.state["b"] == 0.0).all() and agent.counts["failed"] == 1
    for _ in range(7):  # the default fails too, which must not fail the decision
        agent.decide(ARMS)
    assert agent.counts["expired"] >= 1 and (agent.state["b"] == 0.0).all()
    agent.reward(agent.decide(ARMS).id, 0.5)
    assert (agent.state["b"] == 1.0).all()


def test_what_is_no_policy_and_what_is_no_arm_is_said():
    class Lost(Greedy):
        def choose(self, state, arms):
            return len(arms)

    for bad in (Greedy, object(), "LinUCB", None):
        with refused("policy", "start, choose and learn"):
            dw.Agent(bad, rewards=(0, 1))
    with refused("choose", "an arm from 0 to 5"):
        dw.Agent(Lost(), rewards=(0, 1)).decide(ARMS)
    agent = dw.Agent(Greedy(), rewards=(0, 1))
    agent.decide(ARMS)
    with refused("arms", "dimension 3"):
        agent.decide(ARMS[:, :2])
    with refused("half_life"):
        dw.Agent(Greedy(), rewards=(0, 1), half_life=5)
    with refused("policy", "linear"):
        agent.merge(dw.Agent(Greedy(), rewards=(0, 1)))


def test_it_is_explained_by_its_scores_and_its_drift_by_predictions():
    agent = dw.Agent(Counting(), rewards=(0, 1), epsilon=0.3, seed=2)
    for turn in range(50):
        one = agent.decide(ARMS, cost=np.zeros(6))
        assert one.explored or one.propensity == pytest.approx(0.05 + 0.7)
        agent.reward(one.id, float(turn % 2))
    told, meter = agent.explain(ARMS), agent.drift()
    assert np.isfinite(told.score).all() and told.theta.size == 0 and not told.pulls
    assert "estimate" in str(told) and "remembers" not in str(told)
    assert math.isnan(meter.remembers) and meter.weights.shape == (50, 4) and meter.advantage[-1] == 0.0
    assert "predicts best" in str(meter) and "nan" not in str(meter)
    silent = dw.Agent(Greedy(), rewards=(0, 1))
    silent.reward(silent.decide(ARMS).id, 1.0)
    assert silent.drift().weights.shape == (1, 4)
    with refused("policy", "scores"):
        silent.explain(ARMS)
    with refused("cost"):
        silent.decide(ARMS, cost=np.zeros(6))


def test_it_is_saved_where_it_can_write_its_state_and_passed_again(tmp_path):
    agent = dw.Agent(Counting(), rewards=(0, 1), epsilon=0.2, seed=3)
    for turn in range(30):
        one = agent.decide(ARMS, list("abcdef"), id=f"n{turn}", now=float(turn))
        if turn % 3:
            agent.reward(one.id, float(turn % 2), now=float(turn))
    agent.save(tmp_path / "own")
    twin = dw.Agent.load(tmp_path / "own", policy=Counting())
    for turn in range(30, 50):
        made = [each.decide(ARMS, list("abcdef"), id=f"n{turn}", now=float(turn)) for each in (agent, twin)]
        assert made[0] == made[1]
        open_id = next(iter(agent._parts.book.open))
        for each in (agent, twin):
            assert each.reward(open_id, 1.0, now=float(turn)) == "learned"
    assert twin.to_bytes() == agent.to_bytes()
    with refused("policy"):
        dw.Agent.load(tmp_path / "own")
    with refused("policy", "digest"):
        dw.Agent.load(tmp_path / "own", policy=Counting(forget=0.2))
    with refused("policy", "digest"):
        dw.Agent.load(tmp_path / "own", policy=linear(dim=3))
    with refused("policy", "state_to_bytes"):
        dw.Agent(Greedy(), rewards=(0, 1)).save(tmp_path / "other")


def test_one_that_says_nothing_is_saved_too():
    class Silent(Greedy):
        def state_to_bytes(self, state):
            return b"".join([state["V"].tobytes(), state["b"].tobytes()])

        def state_from_bytes(self, data):
            numbers = np.frombuffer(data).copy()
            return {"V": numbers[:9].reshape(3, 3), "b": numbers[9:], "lessons": []}

    agent = dw.Agent(Silent(), rewards=(0, 1))
    assert dw.Agent.from_bytes(agent.to_bytes(), policy=Silent()).to_bytes() == agent.to_bytes()
    made = [agent.decide(ARMS), agent.decide(ARMS[:2])]
    agent.reward(made[0].id, 1.0)
    data = agent.to_bytes()
    twin = dw.Agent.from_bytes(data, policy=Silent())
    assert twin.to_bytes() == data
    assert twin.reward(made[1].id, 0.0) == "learned" and twin.state["lessons"] == [(2, made[1].arm, 0.0)]

    class Forgetful(Silent):
        def state_from_bytes(self, data):
            raise KeyError("V")

    Forgetful.__qualname__ = Silent.__qualname__
    with refused("data", "cannot read"):
        dw.Agent.from_bytes(data, policy=Forgetful())


def test_many_threads():
    agent = dw.Agent(Counting(), rewards=(0, 1))

    def work():
        for turn in range(60):
            one = agent.decide(ARMS)
            if turn % 6:
                assert agent.reward(one.id, 1.0) == "learned"

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (agent.counts["decided"], agent.counts["learned"], agent.counts["open"]) == (240, 200, 40)
    assert agent.state["clock"] == agent._parts.states.tick


class Dice(Greedy):
    """Samples by the draw that it gets."""

    deterministic = False

    def choose(self, state, arms, draw=0):
        return draw % 3 % len(arms)


class Moody(Greedy):
    """Samples from its state, so its propensities are unknown."""

    deterministic = False


def test_propensities_of_those_that_sample_say_what_they_are_worth():
    dice, moody = dw.Agent(Dice(), rewards=(0, 1)), dw.Agent(Moody(), rewards=(0, 1))
    for _ in range(9):
        one = dice.decide(ARMS)
        assert one.arm == one.seq % 3 and one.draws == 1000
        assert abs(one.propensity - 1 / 3) < 0.075  # 5 standard deviations
    assert math.isnan(moody.decide(ARMS).propensity) and moody.decide(ARMS).draws == 0
    assert dw.Agent(Greedy(), rewards=(0, 1)).decide(ARMS).draws == 0


class Returns:
    """Returns the choice that the test sets."""

    def __init__(self, choice):
        self.choice = choice

    def start(self, seed=0):
        return []

    def choose(self, state, arms):
        return self.choice

    def learn(self, state, arms, arm, reward):
        state.append(arm)


@dataclasses.dataclass
class Told:
    arm: int = 1
    score: object = 1.0
    mean: object = None


@pytest.mark.parametrize("index", [1, np.int64(1), np.uint8(1), np.argmax([0.0, 1.0])])
def test_an_index_of_numpy_is_an_index(index):
    agent = dw.Agent(Returns(index), rewards=(0.0, 1.0))
    shown = agent.decide(ARMS)
    assert (shown.arm, type(shown.arm)) == (1, int)
    assert math.isnan(shown.score) and math.isnan(shown.mean)
    assert agent.reward(shown.id, 1.0) == "learned" and agent.state == [1]


def test_a_choice_tells_numbers_or_nothing():
    shown = dw.Agent(Returns(Told()), rewards=(0.0, 1.0)).decide(ARMS)
    assert shown.score == 1.0 and math.isnan(shown.mean) and math.isnan(shown.bonus)
    agent = dw.Agent(Returns(Told(score="high")), rewards=(0.0, 1.0))
    with refused("choose: score", "high"):
        agent.decide(ARMS)
    assert agent.counts["decided"] == 0
