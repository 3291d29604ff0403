"""Calls of an agent inside its own calls: they are answered or refused, and never wait for themselves."""

import copy
import pickle
import threading

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear
from refusing import refused

ARMS = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.1], [0.1, 0.2, 0.9]])


def linear_agent():
    return dw.Agent(linear(dim=3), rewards=(0.0, 1.0))


class Calls:
    """A policy that does something else while it chooses or learns."""

    def __init__(self):
        self.in_choose = self.in_learn = lambda: None

    def start(self, seed=0):
        return []

    def choose(self, state, arms):
        self.in_choose()
        return 0

    def learn(self, state, arms, arm, reward):
        self.in_learn()
        state.append(reward)


INNER = {
    "decide": lambda agent: agent.decide(ARMS),
    "reward": lambda agent: agent.reward("open", 1.0),
    "cancel": lambda agent: agent.cancel("open"),
    "state": lambda agent: agent.state,
    "to_bytes": lambda agent: agent.to_bytes(),
    "drift": lambda agent: agent.drift(),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", ["choose", "learn"])
def test_a_call_inside_a_call_is_answered_or_refused_and_never_waits_for_itself(outer, inner):
    policy, found = Calls(), []
    agent = dw.Agent(policy, rewards=(0.0, 1.0))
    agent.decide(ARMS, id="open")
    agent.decide(ARMS, id="other")

    def nested():
        policy.in_choose = policy.in_learn = lambda: None
        try:
            INNER[inner](agent)
        except dw.BadInput as refusal:
            found.append(refusal)

    setattr(policy, f"in_{outer}", nested)
    act = (lambda: agent.decide(ARMS)) if outer == "choose" else (lambda: agent.reward("other", 1.0))
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    if inner in ("reward", "cancel") or (outer == "choose" and inner in ("decide", "state")):
        assert "inside another" in str(found[0])
    assert agent.reward("open", 1.0) in ("learned", "duplicate")
    assert agent.counts["learned"] == len(agent.state) == (2 if outer == "learn" else 1)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_agent_is_copied_by_its_bytes_alone(made):
    with refused("agent", "from_bytes"):
        made(linear_agent())


def test_a_state_inside_a_state_of_your_own_is_copied():
    policy = linear(dim=3)
    state = {"inner": policy.start()}
    twin = copy.deepcopy(state)["inner"]
    policy.learn(twin, ARMS, 0, 1.0)
    assert state["inner"].observations == 0 and twin.observations == 1
