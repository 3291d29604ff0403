"""A policy evaluated on its own log gets what it earned: on every clock, with every delay, memory and mode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import driftwise as dw
from driftwise.tables import read_log

D = 2
MEMORIES = {
    "keep": lambda: dw.LinearUCB(dim=D, memory=dw.Keep(), lam=1.0),
    "fade": lambda: dw.LinearUCB(dim=D, memory=dw.Fade(0.1), lam=1.0),
    "window": lambda: dw.LinearUCB(dim=D, memory=dw.Window(9, capacity=200), lam=1.0),
    "restart": lambda: dw.LinearUCB(dim=D, memory=dw.Restart(7), lam=1.0),
    "bank": lambda: dw.make("Bank+LB-WeightUCB", dim=D),
    "auto": lambda: dw.make("Auto", dim=D),
    "sampling": lambda: dw.make("D-LinTS", dim=D, horizon=100, memory=dw.Fade(0.1)),
}
DELAYS = ("immediate", "bursts", "random", "expiring")


def live(agent, log, delay, seed, rounds=60):
    """Play; rewards come at once, in bursts, at random times or not at all."""
    chance, now, waiting = np.random.default_rng(seed), 1000.0, []
    for number in range(rounds):
        now += float(chance.exponential(40.0))
        arms = chance.uniform(-0.7, 0.7, (3, D))
        made = agent.decide(arms, now=now)
        waiting.append((made.id, float(chance.random() < 0.3 + 0.5 * arms[made.arm, 0])))
        due = {
            "immediate": [0], "bursts": list(range(len(waiting))) if number % 10 == 9 else [],
            "random": [k for k in range(len(waiting)) if chance.random() < 0.2],
            "expiring": [0] if number % 3 else [],
        }[delay]  # fmt: skip
        for k in reversed(due):
            id, value = waiting.pop(k)
            agent.reward(id, value, now=now + 1.0)
    log.close()


@settings(max_examples=15, deadline=None)
@given(
    memory=st.sampled_from(sorted(MEMORIES)), clock=st.sampled_from(["rounds", "wall", "rewards"]),
    delay=st.sampled_from(DELAYS), epsilon=st.sampled_from([0.1, 0.5]), seed=st.integers(0, 5),
)
@example(memory="fade", clock="rounds", delay="bursts", epsilon=0.1, seed=0)
@example(memory="fade", clock="wall", delay="immediate", epsilon=0.1, seed=0)
@example(memory="restart", clock="wall", delay="bursts", epsilon=0.1, seed=0)
@example(memory="auto", clock="wall", delay="random", epsilon=0.1, seed=0)
@example(memory="bank", clock="rewards", delay="expiring", epsilon=0.1, seed=0)
@example(memory="sampling", clock="rounds", delay="random", epsilon=0.1, seed=0)
def test_a_policy_on_its_own_log_gets_what_it_earned(memory, clock, delay, epsilon, seed, tmp_path_factory):
    more = {"tick": 60.0} if clock == "wall" else {}
    if delay == "expiring":
        more |= {"expire_after": 5, "default_reward": 0.0}
    agent = dw.Agent(MEMORIES[memory](), rewards=(0.0, 1.0), clock=clock, epsilon=epsilon, seed=3, **more)
    folder = tmp_path_factory.mktemp("own")
    live(agent, agent.log_to(folder, arms=True, format="jsonl"), delay, seed)
    (batch,) = read_log(folder).batches(["reward", "explored", "arm", "seq"])
    paid = ~np.isnan(batch.reward)
    found = dw.evaluate(agent.policy, folder, epsilon=epsilon, seed=3, progress=False, blocks=1)
    assert (found.terms.weight == 1.0).all()
    for name in ("IPS", "SNIPS"):
        assert found.estimates[name].value == pytest.approx(batch.reward[paid].mean(), abs=1e-12)
        assert found.gains[name].value == pytest.approx(0.0, abs=1e-12)
    order = np.argsort(batch.seq[paid])
    own = ~batch.explored[paid][order]
    np.testing.assert_array_equal(found.arms[own], batch.arm[paid][order][own])
