"""The wall clock: where a state's time begins, at which tick a period begins, and the effect of large jumps of time."""

import numpy as np
import pytest

import driftwise as dw
from agent.living import Hand, linear, unit_arms

ARMS = unit_arms(5, 2, 3)
DAY = 86400.0
NOW = 20_000 * DAY + 40_000.0


def wall(memory=None, policy=None, start=NOW, **options):
    hand = Hand(start)
    options = {"tick": "1h", **options}
    return dw.Agent(policy or linear(memory), rewards=(-1, 1), clock="wall", now=hand, **options), hand


def live(agent, hand, turns=60, every=3 * 3600.0):
    """Rewards that come late and out of order, or never: the first decision has none."""
    late = []
    for turn in range(turns):
        hand.at += every
        one = agent.decide(ARMS)
        if turn % 5:
            late.append((one.id, float(turn % 3 - 1)))
        if turn % 4 == 3:
            for id, value in reversed(late):
                agent.reward(id, value)
            late.clear()
    return agent


@pytest.mark.parametrize("tick", ["1d", "12h", "1h", "7h", "16h", "3d"])
@pytest.mark.parametrize("policy", [linear, lambda memory: dw.research.SelfConcordantUCB(
    dim=2, memory=memory, lam=1.0, delta=0.01, link="logistic", S=1.0, L=1.0, estimate="one-pass")],
    ids=["linear", "clicks"])  # fmt: skip
def test_the_first_tick_of_a_period_belongs_to_it(policy, tick):
    hand = Hand(20_000 * DAY - 5 * 3600)
    agent = dw.Agent(policy(dw.Restart("1d")), rewards=(0, 1), clock="wall", tick=tick, now=hand)
    span = agent._parts.clock.tick

    def period(at):
        """The period of the middle of the tick."""
        return np.floor((np.floor(at / span) + 0.501) * span / DAY)

    since = []
    for turn in range(40):
        hand.at += 4 * 3600.0 - (turn % 2) * 7000.0
        assert agent.reward(agent.decide(ARMS).id, 1.0) == "learned"
        since = [*(one for one in since if one == period(hand.at)), period(hand.at)]
        assert agent.state.weight == len(since), turn
    assert agent.state.dropped == 0
    late = agent.decide(ARMS)
    hand.at += max(2 * DAY, 2 * span)
    agent.reward(late.id, 1.0)
    assert agent.state.weight == 0.0 and agent.state.dropped == 1  # it belongs to a period that is over


def test_a_new_agent_has_lived_since_its_first_lesson_was_decided():
    agent, hand = wall(policy=dw.make("Auto", dim=2), tick="1m")
    ticked = dw.Agent(dw.make("Auto", dim=2), rewards=(-1, 1))
    for _ in range(20):
        hand.at += 60.0
        agent.reward(agent.decide(ARMS).id, 0.5)
        ticked.reward(ticked.decide(ARMS).id, 0.5)
    assert agent.state.clock == 19 and ticked.state.clock == 20


MEMORIES = {"fade": dw.Fade("14d"), "window": dw.Window("2d", capacity=60), "restart": dw.Restart("1d")}


@pytest.mark.parametrize("name", [*MEMORIES, "bank"])
def test_a_log_tells_where_the_state_of_its_writer_began(tmp_path, name):
    made = {"policy": dw.make("Auto", dim=2), "tick": "1m"} if name == "bank" else {"memory": MEMORIES[name]}
    agent, hand = wall(**made)
    with agent.log_to(tmp_path / "log", format="jsonl"):
        live(agent, hand)
    other, _ = wall(**made)
    other.learn_log(tmp_path / "log")
    assert other.state.to_bytes() == agent.state.to_bytes()
    assert other._parts.states.zero == agent._parts.states.zero > 0
    offered = unit_arms(7, 2, 8)
    assert other.explain(offered, now=hand.at).score.tolist() == agent.explain(offered, now=hand.at).score.tolist()


@pytest.mark.parametrize("lessons", [0, 30])
@pytest.mark.parametrize("name", MEMORIES)
def test_a_snapshot_keeps_where_its_state_began(name, lessons):
    agent, hand = wall(MEMORIES[name])
    one = agent.decide(ARMS)
    if lessons:
        live(agent, hand, lessons)
    other = dw.Agent.from_bytes(agent.to_bytes(), now=hand)
    assert other.to_bytes() == agent.to_bytes()
    hand.at += 3600.0
    for each in (agent, other):
        each.reward(one.id, 1.0)
        each.reward(each.decide(ARMS, id="next").id, 0.5)
    assert other.state.to_bytes() == agent.state.to_bytes() and other._parts.states.zero == agent._parts.states.zero


def test_a_lesson_that_fails_begins_nothing(monkeypatch):
    agent, hand = wall(dw.Restart("1d"))
    first, second = agent.decide(ARMS), None
    hand.at += 7200.0
    second = agent.decide(ARMS)
    before = agent.state.to_bytes()
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(type(agent.policy), "take", lambda *_: (_ for _ in ()).throw(RuntimeError("no")))
        agent.reward(first.id, 1.0)
    assert agent.state.to_bytes() == before and agent._parts.states.zero is None
    agent.reward(second.id, 1.0)
    assert agent._parts.states.zero == second.born


@pytest.mark.parametrize("delta", [0.01, None])
@pytest.mark.parametrize("memory", [dw.Keep(), dw.Fade("14d")], ids=repr)
def test_agents_that_began_at_other_times_merge_into_the_one_that_learned_it_all(memory, delta):
    def make(start):
        return wall(policy=linear(memory, delta=delta), start=start)

    for starts in ((NOW, NOW + 9 * DAY), (NOW + 9 * DAY, NOW)):
        (mine, hand), (other, later), (whole, all_of_it) = make(starts[0]), make(starts[1]), make(0.0)
        events = []
        for agent, clock in ((mine, hand), (other, later)):
            for turn in range(20):
                clock.at += 3600.0
                agent.reward(agent.decide(ARMS).id, float(turn % 3 - 1))
                events.append((clock.at, agent._parts.meter.recent[-1]))
        mine.merge(other)
        for at, (_, _, x, value) in sorted(events, key=lambda one: one[0]):
            all_of_it.at = at
            whole.reward(whole.decide(x[0].T).id, value)
        assert mine.state.clock == whole.state.clock and mine._parts.states.zero == whole._parts.states.zero
        assert np.allclose(mine.state.G, whole.state.G, rtol=1e-12) and np.allclose(mine.state.b, whole.state.b)
        late = max(hand.at, later.at)
        a, b = (one.explain(ARMS, now=late).score for one in (mine, whole))
        assert np.allclose(a, b, rtol=1e-12)
    fresh = make(NOW)[0]
    fresh.merge(mine)
    assert np.array_equal(fresh.state.G, mine.state.G) and fresh.state.clock == mine.state.clock


# ------------------------------------------------------------------------------------------ jumps of time


def year_ahead(agent, last, **more):
    return agent.decide(ARMS, now=last + 365 * DAY, **more)


@pytest.mark.parametrize("memory", [dw.Fade("1d"), dw.Keep(), dw.Window("1d", capacity=99), None], ids=repr)
def test_a_time_far_ahead_is_refused_and_moves_nothing(memory):
    policy = linear(memory) if memory is not None else dw.make("Auto", dim=2)
    agent, _ = wall(policy=policy, tick="10m", expire_after="2d", default_reward=0.0)
    for turn in range(30):
        agent.reward(agent.decide(ARMS, now=NOW + 600.0 * turn).id, 0.8, now=NOW + 600.0 * turn)
    last = NOW + 600.0 * 29
    one, before = agent.decide(ARMS, now=last), agent.to_bytes()
    for ask in (
        lambda: year_ahead(agent, last), lambda: agent.reward(one.id, 1.0, now=last + 365 * DAY),
    ):  # fmt: skip
        refused = pytest.raises(dw.BadInput, match="jump=True")
        with refused:
            ask()
    (said,) = agent.decide_many([ARMS], now=last + 365 * DAY)
    assert isinstance(said, dw.BadInput)
    (said,) = agent.reward_many([(one.id, 1.0)], now=last + 365 * DAY)
    assert isinstance(said, dw.BadInput)
    assert agent.to_bytes() == before and agent.counts["open"] == 1
    assert year_ahead(agent, last, jump=True).born == (last + 365 * DAY) // 600.0
    assert agent.counts["defaulted"] == 1
    with pytest.raises(dw.BadInput, match="jump=True"):  # a jump is no silence: refused again
        agent.decide(ARMS, now=last + 800 * DAY)
    (made,) = agent.decide_many([ARMS], now=last + 800 * DAY, jump=True)
    assert agent.reward_many([(made.id, 0.5)], now=last + 1400 * DAY, jump=True) == ["late"]


@pytest.mark.parametrize("memory", [dw.Fade("1h"), dw.Keep(), dw.Restart("1d")], ids=repr)
def test_a_long_silence_is_no_leap(memory):
    agent, hand = wall(memory)
    agent.reward(agent.decide(ARMS).id, 1.0)
    hand.at += 90 * DAY  # by its own clock
    agent.reward(agent.decide(ARMS).id, 1.0)
    again = dw.Agent.from_bytes(agent.to_bytes(), now=hand)
    assert again.decide(ARMS, now=hand.at + 800 * DAY).seq == 3  # given, and at most 1,000 times 90 days
    young, _ = wall(memory)
    young.decide(ARMS, now=NOW)
    young.decide(ARMS, now=NOW + 1.0)
    young.decide(ARMS, now=NOW + 0.7 * DAY)  # the first night
    rounds = dw.Agent(linear(dw.Keep()), rewards=(-1, 1))
    rounds.decide(ARMS, now=NOW), rounds.decide(ARMS, now=NOW + 9e9)  # only the wall clock has times
