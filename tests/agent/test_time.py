"""Memories given as times: an agent on the wall clock counts them in its ticks; everything else refuses them."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

import driftwise as dw
from agent.living import Hand, linear, unit_arms
from driftwise.policies.plain import described, kinds_of, restored
from refusing import refused

ARMS = unit_arms(5, 2, 3)
DAY = 86400.0
TIMED = {"fade": dw.Fade("14d"), "window": dw.Window("7d", capacity=60), "restart": dw.Restart("1d")}
SAME = {  # in ticks of an hour
    "fade": dw.Fade(dw.convert_memory(14 * 24, "half_life", "forget")),
    "window": dw.Window(7 * 24, capacity=60),
    "restart": dw.Restart(24),
}


@pytest.mark.parametrize("name", list(TIMED))
def test_a_memory_in_time_is_the_one_in_ticks(name):
    found = []
    for memory in (TIMED[name], SAME[name]):
        hand, agent = Hand(100 * DAY), None
        agent = dw.Agent(linear(memory), rewards=(-1, 1), clock="wall", tick="1h", now=hand)
        for turn in range(60):
            hand.at += 7 * 3600.0
            agent.reward(agent.decide(ARMS, id=str(turn)).id, float(turn % 3 - 1))
        found.append(agent)
    timed, ticked = found
    assert timed.policy == ticked.policy and timed.policy.digest == ticked.policy.digest
    assert timed.state.to_bytes() == ticked.state.to_bytes()
    days = {"fade": 14 / math.log(2), "window": 7.0, "restart": 1.0}[name]
    assert timed.explain(ARMS).days == timed.drift().days == pytest.approx(days, rel=2e-3)


@pytest.mark.parametrize("name", list(TIMED))
def test_a_tick_is_a_thousandth_of_it_unless_given(name):
    agent = dw.Agent(linear(TIMED[name]), rewards=(-1, 1), clock="wall")
    seconds = {"fade": 14 * DAY, "window": 7 * DAY, "restart": DAY}[name]
    assert agent._parts.clock.tick == pytest.approx(seconds / 1000.0)


def test_a_restart_of_a_day_forgets_at_midnight():
    hand = Hand(100 * DAY + 20 * 3600)
    agent = dw.Agent(linear(dw.Restart("1d")), rewards=(-1, 1), clock="wall", tick="1h", now=hand)
    for hours, left in ((1, 1), (2, 2), (2, 1)):  # 21:00, 23:00, 01:00
        hand.at += hours * 3600.0
        agent.reward(agent.decide(ARMS).id, 1.0)
        assert agent.state.weight == left


@pytest.mark.parametrize("name", list(TIMED))
def test_it_outlives_copies_plain_data_and_snapshots(name):
    memory = TIMED[name]
    policy = linear(memory)
    for other in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory)), dataclasses.replace(memory)):
        assert other == memory and hash(other) == hash(memory) and repr(other) == repr(memory)
    again = restored(described(policy), kinds_of(type(policy), type(memory)))
    assert again == policy and again.digest == policy.digest
    assert policy.digest != linear(SAME[name]).digest
    agent = dw.Agent(policy, rewards=(-1, 1), clock="wall", tick="1h", now=Hand(DAY))
    agent.reward(agent.decide(ARMS).id, 1.0)
    data = agent.to_bytes()
    assert dw.Agent.from_bytes(data).to_bytes() == data
    assert dw.Agent.from_bytes(data, policy=policy).to_bytes() == data
    with refused("policy", "digest"):
        dw.Agent.from_bytes(data, policy=linear(dw.Fade("3d")))


@pytest.mark.parametrize("name", list(TIMED))
def test_nobody_else_takes_it(name):
    policy = linear(TIMED[name])
    with refused("memory", "wall clock"):
        policy.start()
    with refused("memory", "wall clock"):
        policy.choose(linear(SAME[name]).start(), ARMS)
    with refused("memory", "wall clock"):
        dw.simulate({"it": policy}, dw.worlds.Turn(horizon=9, arms=3, dim=2), trials=1, jobs=1)
    for clock in ("rounds", "rewards"):
        with refused("memory", 'clock="wall"'):
            dw.Agent(policy, rewards=(-1, 1), clock=clock)
    with refused("half_life", "Keep"):
        dw.Agent(policy, rewards=(-1, 1), clock="wall", half_life="3d")


def test_words_that_are_no_time_are_refused_by_the_memory():
    for words in ("7 moons", "", "7", "0d", "-1d", "1e999d"):
        for make, name in ((dw.Window, "length"), (dw.Restart, "period"), (dw.Fade, "forget")):
            with refused(name):
                make(words)
    with refused("memory", "capacity"):
        dw.Agent(linear(dw.Window("7d")), rewards=(-1, 1), clock="wall")


def test_clicks_forget_in_time_too():
    policy = dw.research.GLMUCB(dim=2, memory=dw.Fade("2d"), lam=2.0, delta=0.1, S=2.0, capacity=40)
    hand = Hand(50 * DAY)
    agent = dw.Agent(policy, rewards=(0, 1), clock="wall", now=hand)
    agent.reward(agent.decide(ARMS).id, 1.0)
    hand.at += 2 * DAY
    agent.reward(agent.decide(ARMS).id, 0.0)
    assert agent.state.weight == pytest.approx(1.5, rel=1e-9)
    assert np.isfinite(agent.explain(ARMS).score).all()
