"""Explanations, the drift meter, merging, and the ready-made agents."""

import io
import itertools
import math

import numpy as np
import pytest

import driftwise as dw
from agent.living import Hand, linear, tape_of, unit_arms
from driftwise._internal import progress
from driftwise.agent import record
from driftwise.agent.explain import known
from driftwise.agent.parts import parts_of
from driftwise.agent.record import SHOWN
from driftwise.agent.replay import replayed
from laws.test_catalogue import variants
from refusing import refused

ARMS = unit_arms(6, 3, 5)


def played(policy, rounds=60, theta=(0.9, -0.3, 0.1), seed=0, **options):
    agent, chance = dw.Agent(policy, rewards=(-2, 2), **options), np.random.default_rng(seed)
    for _ in range(rounds):
        one = agent.decide(ARMS)
        agent.reward(one.id, float(np.clip(ARMS[one.arm] @ theta + 0.1 * chance.standard_normal(), -2, 2)))
    return agent


def test_an_explanation_is_the_policys_own_scores():
    agent = played(linear(dw.Fade(0.05), dim=3))
    told = agent.explain(ARMS, items=list("abcdef"), features=["price", "age", "size"])
    state = agent.state
    scores = agent.policy.scores(state, ARMS)
    assert np.array_equal(told.score, scores.score) and told.chosen == scores.best().arm
    G = np.tril(state.G[0]) + np.tril(state.G[0], -1).T
    np.testing.assert_allclose(told.theta, np.linalg.solve(G + np.eye(3), state.b[0]), rtol=1e-12)
    assert told.effective == pytest.approx(state.weight**2 / state.squares)
    assert told.memory == pytest.approx(20.0)
    assert sum(pull for _, pull in told.pulls) == pytest.approx(told.mean[told.chosen] - told.mean[told.runner_up])
    strengths = [abs(pull) for _, pull in told.pulls]
    assert strengths == sorted(strengths, reverse=True)
    text = str(told)
    assert "> " in text and "price" in text and "remembers 20 ticks" in text


def test_a_decision_is_explained_by_the_arms_it_was_chosen_from_also_when_it_has_closed():
    agent = played(linear(dim=3))
    one = agent.decide(ARMS, items=list("abcdef"), allowed=[1, 3, 4])
    told = agent.explain(one)
    assert told.items == ("b", "d", "e") and told.items[told.chosen] == one.item and told.decision == one
    assert np.array_equal(told.score, agent.explain(ARMS).score[[1, 3, 4]])
    two = agent.decide(ARMS)
    among = agent.explain(two.id, ARMS)
    assert among.chosen == two.arm and among.decision == two
    agent.reward(one.id, 0.0)
    assert agent.explain(one).items == told.items
    loaded = dw.Agent.from_bytes(agent.to_bytes())  # arms are not in snapshots: an open decision has its vector
    alone = loaded.explain(two)
    assert alone.items == (two.arm,) and alone.runner_up is None
    assert alone.score[0] == pytest.approx(agent.explain(two).score[two.arm])
    with refused("decision", "arms"):
        loaded.explain(one)
    with refused("decision"):
        agent.explain("nobody")
    with refused("items"):
        agent.explain(ARMS, items=["a"])
    with refused("features"):
        agent.explain(ARMS, features=["a"])


def test_arms_are_kept_for_explanations_in_a_room_that_is_bounded(monkeypatch):
    agent = played(linear(dim=3), 1)
    made = [agent.decide(ARMS) for _ in range(SHOWN + 1)]
    agent.reward(made[0].id, 0.0)
    with refused("decision", "arms"):
        agent.explain(made[0])
    assert len(agent.explain(made[1]).items) == 6 and not agent.explain(made[1]).missing
    monkeypatch.setattr(record, "SHOWN_NUMBERS", 18 * 10)
    large = agent.decide(np.repeat(ARMS, 5, axis=0))  # half of the limit: the oldest are evicted
    assert len(agent.explain(large).items) == 30 and len(agent._parts.shown) == 6
    again = agent.decide(np.repeat(ARMS, 10, axis=0))
    assert len(agent.explain(again).items) == 60 and len(agent._parts.shown) == 1
    larger = agent.decide(np.repeat(ARMS, 11, axis=0))
    told = agent.explain(larger)
    assert len(told.items) == 1 and len(agent._parts.shown) == 1
    assert told.missing.startswith("65 other arms of this decision are not kept") and told.missing in str(told)


def test_two_hundred_arms_of_143_features_are_explained_with_a_reason():
    arms = unit_arms(200, 143, 0)
    agent = dw.Agent(dw.LinearUCB(dim=143, memory=dw.Keep(), lam=1.0, delta=0.1), rewards=(0, 1))
    made = [agent.decide(arms) for _ in range(SHOWN)]
    for one in (made[0], made[-1]):
        told = agent.explain(one)
        assert len(told.items) == 200 and told.runner_up is not None and not told.missing


@pytest.mark.parametrize("again", [False, True], ids=["live", "saved"])
def test_an_agent_driven_by_now_is_asked_at_the_newest_time_it_was_told(again):
    """Its clock shows today, when everything that it learned long ago has faded."""
    agent = dw.Agent(linear(dw.Keep(), dim=3), rewards=(0, 1), half_life="1d")
    for day in range(20):
        agent.reward(agent.decide(ARMS, now=day * 86400.0).id, 1.0, now=day * 86400.0 + 60.0)
    agent = dw.Agent.from_bytes(agent.to_bytes()) if again else agent
    at = agent.explain(ARMS, now=19 * 86400.0 + 60.0)
    assert np.array_equal(agent.explain(ARMS).score, at.score) and at.effective > 1.0
    facts = dict(known(parts_of(agent)).facts)
    assert float(facts["effective observations"]) == pytest.approx(at.effective, abs=0.1)
    assert agent.explain(ARMS, now=1e9).effective < at.effective / 2 or agent.explain(ARMS, now=1e9).mean.max() < 1e-9
    with refused("value"):
        agent.reward("nobody", 7.0, now=1e9)
    assert np.array_equal(agent.explain(ARMS).score, at.score)  # a refused call does not move the clock


def test_long_work_of_the_meter_shows_a_bar_in_a_terminal(monkeypatch):
    agent, shown = played(linear(dim=3), 30), io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", shown)
    agent.drift()
    assert not shown.getvalue()  # short work shows no bar
    clock = itertools.count()
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    agent.drift()
    assert "30 rewards predicted again" in shown.getvalue()


@pytest.mark.parametrize("name", list(variants(3)))
def test_every_policy_can_be_asked(name):
    agent = dw.Agent(variants(3)[name], rewards=(0, 1))
    for turn in range(12):
        agent.reward(agent.decide(ARMS).id, float(turn % 2))
    told, meter = agent.explain(ARMS), agent.drift()
    assert told.theta.shape == (3,) and np.isfinite(told.score).all()
    assert told.effective > 0.0 or name.startswith("MASTER")  # which may have started again
    assert meter.weights.shape == (12, len(meter.memories))
    np.testing.assert_allclose(meter.weights.sum(axis=1), 1.0, rtol=1e-9)
    assert str(told) and str(meter)


def test_figures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    agent = played(dw.make("Bank+LB-WeightUCB", dim=3), 20)
    for name in ("why.png", "why.svg"):
        agent.explain(ARMS).draw(tmp_path / name)
        agent.drift().draw(tmp_path / f"drift-{name}")
        assert (tmp_path / name).stat().st_size > 2000 and (tmp_path / f"drift-{name}").stat().st_size > 2000
    for told in (agent.explain(ARMS), agent.drift()):
        with refused("path", ".png"):
            told.draw(tmp_path / "why.txt")


def test_the_meter_serves_clicks_whose_scale_nobody_told():
    for untold in ({"S": None}, {"L": None}):
        agent = dw.Agent(dw.PosteriorUCB(dim=2, memory=dw.Fade(0.1), **untold), rewards=(0, 1))
        for click in (1.0, 0.0, 1.0):
            agent.reward(agent.decide(np.eye(2)).id, click)
        assert np.isfinite(agent.drift().weights).all()


def test_the_meter_tells_drift_from_rest():
    for world, shorter in ((dw.worlds.Still(dim=2, horizon=800, noise=0.3), False),
                           (dw.worlds.Turn(dim=2, horizon=800, turns=4, noise=0.3), True)):
        agent, (rows, reward) = dw.Agent(linear(dw.Fade(1 / 100), R=0.3), rewards=(-4, 4)), tape_of(world)
        for t in range(800):
            one = agent.decide(rows[t])
            agent.reward(one.id, reward(t, one.arm))
        meter = agent.drift()
        assert meter.remembers == pytest.approx(100.0)
        assert (meter.best < 100.0) == shorter
        assert meter.advantage[meter.memories.index(meter.best)] > 0.0


@pytest.mark.parametrize("name", ["GLB-WeightUCB", "SCB-WeightUCB", "LogUCB1", "MASTER+LogUCB1"])
def test_the_meter_sees_clicks_through_their_link(name):
    """A jump, after which the estimate is wrong, and a still world; rates near 0, where a line predicts badly."""
    alone = {"path_length": 5.0} if "+" not in name else {}
    found = {}
    for jumps in (True, False):
        policy = dw.make(name, dim=2, horizon=900, S=3.0, **alone)
        agent, chance = dw.Agent(policy, rewards=(0, 1), epsilon=1.0), np.random.default_rng(4)
        arms = unit_arms(8, 2, 1)
        for t in range(900):
            theta = np.array([3.0, 0.0]) * (-1.0 if jumps and t >= 600 else 1.0)
            one = agent.decide(arms)
            agent.reward(one.id, float(chance.random() < 1 / (1 + np.exp(-arms[one.arm] @ theta))))
        found[jumps] = agent.drift()
    moved, still = found[True], found[False]
    for meter in (moved, still):
        np.testing.assert_allclose(meter.weights.sum(axis=1), 1.0)
    assert still.best == max(still.memories)
    assert moved.best < still.best
    last = moved.advantage[moved.memories.index(moved.best)] - moved.advantage[-1]
    assert last > 0.005  # nats a reward, which 900 rewards make 4.5


def test_the_meter_predicts_clicks_by_chances_and_not_by_a_line():
    """Where clicks are rare a straight line gives chances below 0. In nats, μ(x'θ) is near the best prediction."""
    policy, chance = dw.make("LogUCB1", dim=2, horizon=1000, S=4.0), np.random.default_rng(0)
    agent = dw.Agent(policy, rewards=(0, 1), epsilon=1.0)
    arms, theta, best = unit_arms(8, 2, 1), np.array([-4.0, 0.0]), []
    for _ in range(1000):
        one = agent.decide(arms)
        p = 1 / (1 + np.exp(-arms[one.arm] @ theta))
        click = float(chance.random() < p)
        agent.reward(one.id, click)
        best.append(np.log(p if click else 1 - p))
    nats = replayed(agent.policy, list(agent._parts.meter.recent), (np.inf,), (0.0, 1.0))[:, 0]
    assert np.mean(best) - 0.03 < nats.mean() < np.mean(best) + 0.01


def test_the_history_of_a_bank_is_bounded():
    agent = played(dw.make("Bank+LB-WeightUCB", dim=3), 1500)
    meter = agent.drift()
    assert 200 < len(meter.at) <= 512 and meter.at[-1] > 1480
    assert meter.remembers in meter.memories


@pytest.mark.parametrize("name", ["linear", "two matrices", "clicks"])
@pytest.mark.parametrize("forget", [0.0, 0.05])
def test_agents_that_learned_apart_merge_to_one_that_learned_all(name, forget):
    memory = dw.Fade(forget) if forget else dw.Keep()
    policy = {
        "linear": linear(memory, dim=3),
        "two matrices": linear(memory, dim=3, two_matrix="correct"),
        "clicks": dw.research.SelfConcordantUCB(dim=3, memory=memory, lam=3.0, delta=0.1, horizon=200, capacity=50),
    }[name]
    hand = Hand(1000.0)
    made = [dw.Agent(policy, rewards=(0, 1), clock="wall", tick=1.0, now=hand) for _ in range(3)]
    for turn in range(40):
        hand.at += 0.7
        for each in (made[turn % 2], made[2]):
            arm = turn % 6
            each.reward(each.decide(ARMS, allowed=[arm]).id, float(turn % 3 == 0))
    one, two, both = made
    one.merge(two)
    assert one.counts["merged"] == 20
    np.testing.assert_allclose(np.tril(one.state.G[0]), np.tril(both.state.G[0]), rtol=1e-11)
    np.testing.assert_allclose(one.state.counters[0, :5], both.state.counters[0, :5], rtol=1e-11)
    np.testing.assert_allclose(one.explain(ARMS).score, both.explain(ARMS).score, rtol=1e-7)
    before = one.to_bytes()
    with refused("other", "source"):
        one.merge(dw.Agent.from_bytes(two.to_bytes()))
    with refused("other"):
        one.merge(one)
    assert one.to_bytes() == before
    assert dw.Agent.from_bytes(before)._parts.lineage.agents == {one._parts.origin, two._parts.origin}


def test_what_does_not_add_up_is_not_merged():
    for policy, parameter in ((linear(), "clock"), (linear(dw.Window(9)), "policy"),
                              (dw.make("Bank+LB-WeightUCB", dim=2), "policy")):
        one, two = (dw.Agent(policy, rewards=(0, 1)) for _ in range(2))
        with refused(parameter):
            one.merge(two)
    one, two = (dw.Agent(linear(dw.Keep(), lam=lam), rewards=(0, 1)) for lam in (1.0, 2.0))
    with refused("other", "policy"):
        one.merge(two)


def test_what_a_bank_for_clicks_draws_at_random_has_its_estimate_and_no_bonus():
    agent = dw.Agent(dw.make("Bank+SCB-WeightUCB", dim=3, S=3.0), rewards=(0.0, 1.0), epsilon=1.0)
    for turn in range(80):
        one = agent.decide(ARMS)
        assert one.explored and one.bonus >= 0.0 and one.score == pytest.approx(one.mean + one.bonus)
        agent.reward(one.id, float(turn % 3 == 0))
    told = agent.explain(ARMS)
    assert told.proposed is not None and told.proposed[told.chosen]
    assert ("not proposed" in str(told)) == (not told.proposed.all())


def test_ready_made_agents():
    clicks, values = dw.Agent.for_clicks(3, click_rate=0.03), dw.Agent.for_values(3, -1.0, 5.0)
    assert isinstance(clicks.policy, dw.research.Auto) and isinstance(values.policy, dw.research.Auto)
    assert clicks.policy.rate == pytest.approx(0.03)
    for agent, value in ((clicks, True), (values, 4.5)):
        assert agent.reward(agent.decide(ARMS).id, value) == "learned"
    hand = Hand(5e8)
    timed = [
        dw.Agent.for_clicks(3, half_life="14d", now=hand),
        dw.Agent.for_values(3, 0.0, 1.0, half_life="14d", now=hand),
    ]
    for agent in timed:
        assert agent.reward(agent.decide(ARMS).id, 1.0) == "learned"
        told = agent.explain(ARMS)
        assert told.days == pytest.approx(14 / math.log(2), rel=1e-3)
        assert told.effective == pytest.approx(1.0)
    rounds = dw.Agent.for_values(3, 0.0, 1.0, half_life=100)
    assert rounds.policy.memory.weight(100) == pytest.approx(0.5)
    with refused("rewards"):
        dw.Agent.for_clicks(3, rewards=(0, 2))
