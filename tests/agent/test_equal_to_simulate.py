"""With immediate rewards the agent is the papers' loop, bit for bit."""

import pytest

import driftwise as dw
from agent.living import linear, tape_of, unit_arms
from driftwise._internal.rng import key
from laws.test_catalogue import variants
from refusing import refused

HORIZON = 60


@pytest.mark.parametrize("clock", ["rounds", "rewards"])
@pytest.mark.parametrize("name", list(variants(3)))
def test_the_arms_are_those_of_simulate_for_every_row_of_the_catalogue(name, clock):
    policy = variants(3)[name]
    if clock == "rewards" and name.startswith(("MASTER", "BOB")):
        with refused("clock", "rounds"):
            dw.Agent(policy, rewards=(0, 1), clock=clock)
        return
    world = dw.worlds.Turn(horizon=HORIZON, arms=6, dim=3, reward="bernoulli")
    told = dw.simulate({"it": policy}, world, trials=1, jobs=1).arms["it"][0].tolist()
    agent, played = dw.Agent(policy, rewards=(0, 1), clock=clock, seed=key(0, "policy", 0)), []
    rows, reward = tape_of(world)
    for t in range(HORIZON):
        decision = agent.decide(rows[t])
        assert (decision.seq, decision.born, decision.n) == (t + 1, t + 1, 6)
        assert decision.propensity == 1.0 if policy.deterministic else 0.0 < decision.propensity <= 1.0
        assert agent.reward(decision.id, reward(t, decision.arm)) == "learned"
        played.append(decision.arm)
    assert played == told


@pytest.mark.parametrize("name", ["LB-WeightUCB", "SW-UCB", "RestartUCB", "Bank+LB-WeightUCB"])
def test_gaussian_rewards_and_fresh_arms_too(name):
    world = dw.worlds.Walk(horizon=150, arms=5, dim=4, fresh=True)
    policy = dw.make(name, **world.facts)
    told = dw.simulate({"it": policy}, world, trials=1, jobs=1).arms["it"][0].tolist()
    agent, (rows, reward) = dw.Agent(policy, rewards=(-9, 9), seed=key(0, "policy", 0)), tape_of(world)
    played = []
    for t in range(150):
        decision = agent.decide(rows[t])
        agent.reward(decision.id, reward(t, decision.arm))
        played.append(decision.arm)
    assert played == told


def test_a_late_reward_is_learned_at_its_age_on_the_state_brought_to_the_newest_decision():
    policy, arms = linear(), unit_arms(5, 2, 1)
    agent, state = dw.Agent(policy, rewards=(-5, 5)), policy.start()
    first, second = agent.decide(arms), agent.decide(arms)
    for decision, rewarded in ((second, 1.0), (first, 0.5)):
        agent.reward(decision.id, rewarded)
        policy.learn(state, arms, decision.arm, rewarded, ticks=2.0 - state.clock, age=2.0 - decision.born)
    assert agent.state.to_bytes() == state.to_bytes()


def test_decision_k_is_chosen_on_the_state_at_tick_k_minus_1():
    policy, arms = linear(dw.Fade(0.3)), unit_arms(5, 2, 1)
    agent, state = dw.Agent(policy, rewards=(-5, 5)), policy.start()
    first = agent.decide(arms)
    agent.reward(first.id, 1.0)
    policy.learn(state, arms, first.arm, 1.0)
    for passed in range(4):  # no reward comes, and time passes
        there = state.copy()
        if passed:
            policy.advance(there, float(passed))
        assert agent.decide(arms)[4:7] == policy.choose(there, arms)[1:]
    assert agent.state.to_bytes() == state.to_bytes()


def test_master_and_bob_play_one_open_decision_at_a_time():
    for name in ("MASTER+OFUL", "BOB+LB-WeightUCB"):
        agent, arms = dw.Agent(dw.make(name, dim=2, horizon=100), rewards=(-1, 1)), unit_arms(4, 2, 0)
        first = agent.decide(arms, id="a")
        with refused("decide", "'a'"):
            agent.decide(arms)
        assert agent.decide(arms, id="a") == first
        agent.cancel("a")
        second = agent.decide(arms)
        assert agent.state.clock == 1.0  # the round that was cancelled has passed
        agent.reward(second.id, 0.5)
        assert agent.state.clock == 2.0
