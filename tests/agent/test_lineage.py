"""No lesson counts twice in a merge, whether it came live, from a log, from sums of a log, or from another merge."""

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from driftwise.agent import parts as lineage
from driftwise.data.reduce import sums
from driftwise.tables import read_log
from refusing import refused

ARMS = unit_arms(4, 3, 0)


def agent_of():
    return dw.Agent(linear(dw.Keep(), dim=3), rewards=(0, 1))


def lived(agent, rounds, seed=0):
    chance = np.random.default_rng(seed)
    for _ in range(rounds):
        agent.reward(agent.decide(ARMS).id, float(chance.random() < 0.5))
    return agent


def logged(folder, format="parquet", rounds=30):
    """An agent that wrote a log of three parts."""
    agent = agent_of()
    with agent.log_to(folder, format=format, rows=10**6) as log:
        for _ in range(3):
            lived(agent, rounds // 3)
            log.flush()
    return agent


def kept(agent, again):
    """The agent itself, or the one that its snapshot gives."""
    return dw.Agent.from_bytes(agent.to_bytes()) if again else agent


@pytest.mark.parametrize("again", [False, True], ids=["live", "saved"])
@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_lessons_of_a_common_log_are_not_merged(format, again, tmp_path):
    writer = logged(tmp_path, format)
    one, two, third = agent_of(), lived(agent_of(), 5, 1), lived(agent_of(), 5, 2)
    one.learn_log(tmp_path)
    two.learn_log(tmp_path, gaps=True)
    first = read_log(tmp_path).parts[0].path
    third.learn_log(first, gaps=True)
    one, two, third, writer = (kept(each, again) for each in (one, two, third, writer))
    pairs = [(one, two), (one, third), (writer, one), (one, writer), (two, writer)]
    for mine, other in pairs:
        before = mine.to_bytes()
        with refused("other", "on both sides", "would count twice"):
            mine.merge(other)
        assert mine.to_bytes() == before
    fresh = lived(agent_of(), 3, 3)
    fresh.merge(one)
    assert fresh.counts["merged"] == 30 and fresh.state.observations == 33
    with refused("other"):  # nor through a third agent
        fresh.merge(kept(two, again))


def test_different_parts_of_one_log_are_merged(tmp_path):
    writer = logged(tmp_path)
    parts = [part.path for part in read_log(tmp_path).parts]
    halves = [agent_of(), agent_of()]
    for half, paths in zip(halves, (parts[:2], parts[2:]), strict=True):
        for path in paths:
            half.learn_log(path, gaps=True)
    halves[0].merge(halves[1])
    np.testing.assert_allclose(np.tril(halves[0].state.G[0]), np.tril(writer.state.G[0]), rtol=1e-12)


def test_common_sums_are_not_merged(tmp_path):
    policy = linear(dw.Keep(), dim=3)
    logged(tmp_path)
    reduced = sums(tmp_path, policy)
    one, two = (reduced.agent(policy, rewards=(0, 1)) for _ in range(2))
    folded = agent_of()
    folded.learn_log(tmp_path)
    for other in (two, folded, dw.Agent.from_bytes(two.to_bytes())):
        with refused("other", "part", "on both sides"):
            one.merge(other)
    one.merge(lived(agent_of(), 4, 5))
    assert one.state.observations == 34


def test_a_long_list_of_parts_is_kept_short_and_still_meets_another(monkeypatch):
    monkeypatch.setattr(lineage, "MOST_PARTS", 8)
    one, two, third = (lineage.Lineage({name * 16}) for name in "abc")
    one.learned(f"part {number}" for number in range(100))
    two.learned(f"part {number}" for number in range(50))
    third.learned(f"other {number}" for number in range(100))
    assert len(one.parts) == len(two.parts) == 8
    with refused("other", "part"):
        one.check_apart(two)
    one.check_apart(third)


def test_an_agent_that_learned_no_log_has_the_facts_it_always_had():
    agent = agent_of()
    assert agent._parts.lineage.facts() == {"sources": [agent._parts.origin]}
