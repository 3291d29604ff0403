"""The values of rewards, when a reward counts, and its verdict (docs/contract.md#rewards)."""

import dataclasses
import datetime
import hashlib
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import driftwise as dw
from agent.living import Hand, linear, unit_arms
from refusing import refused

ARMS = unit_arms(5, 2, 3)


def agent_of(**options):
    return dw.Agent(linear(), rewards=(-1, 1), **options)


def test_the_table_of_events():
    agent = agent_of(expire_after=3)
    one = agent.decide(ARMS)
    before = agent.state.to_bytes()
    for bad in (math.nan, math.inf, 1.5, "1", None, 1.7e308):
        with refused("value"):
            agent.reward(one.id, bad)
    for unknown in ("nobody", 7, [one.id]):
        with refused("id"):
            agent.reward(unknown, 0.5)
    assert agent.state.to_bytes() == before
    assert agent.reward(one.id, 0.5) == "learned"
    learned = agent.state.to_bytes()
    assert learned != before
    assert agent.reward(one.id, 0.5) == "duplicate"
    with refused("value", "0.5", "the first reward stands"):
        agent.reward(one.id, 0.25)
    two = agent.decide(ARMS)
    for _ in range(4):
        agent.cancel(agent.decide(ARMS).id)
    assert agent.reward(two.id, 0.5) == "late"
    with refused("id", "cancelled"):
        agent.reward(agent._parts.book.closed and list(agent._parts.book.closed)[-2], 0.0)
    assert agent.state.to_bytes() == learned
    counts = agent.counts
    wanted = {"decided": 6, "learned": 1, "duplicate": 1, "conflicting": 2, "unknown": 3, "out_of_range": 6}
    assert wanted.items() <= counts.items()
    assert (counts["late"], counts["expired"], counts["cancelled"], counts["open"]) == (1, 1, 4, 0)


def test_what_was_learned_cannot_be_cancelled_and_a_cancelled_one_can_be_again():
    agent = agent_of()
    one, two = agent.decide(ARMS), agent.decide(ARMS)
    agent.reward(one.id, 0.0)
    with refused("id", "learned"):
        agent.cancel(one.id)
    assert agent.cancel(two.id) == agent.cancel(two.id) == "cancelled"
    with refused("id"):
        agent.cancel("nobody")


def test_a_default_reward_is_learned_once_when_it_is_due():
    agent, twin = agent_of(expire_after=2, default_reward=0.25), agent_of()
    for each in (agent, twin):
        one = each.decide(ARMS, id="one")
        for number in range(3):
            each.decide(ARMS, id=f"d{number}")
    twin.reward("one", 0.25)
    assert agent.reward("one", 1.0) == "late"
    assert agent.state.to_bytes() == twin.state.to_bytes()
    assert agent.counts["defaulted"] == 1
    assert one.born == 1
    with refused("default_reward", "expire_after"):
        agent_of(default_reward=0.0)
    with refused("default_reward"):
        agent_of(default_reward=2.0, expire_after=3)


def test_open_decisions_are_bounded_and_closed_ones_forgotten():
    agent = agent_of(max_open=3, remember=2)
    made = [agent.decide(ARMS) for _ in range(5)]
    assert (agent.counts["open"], agent.counts["crowded_out"]) == (3, 2)
    assert agent.reward(made[0].id, 0.0) == "late"
    for one in made[2:]:
        assert agent.reward(one.id, 0.0) == "learned"
    with refused("id", "remember"):
        agent.reward(made[0].id, 0.0)
    assert agent.reward(made[4].id, 0.0) == "duplicate"


def test_an_id_is_an_idempotency_key():
    agent = agent_of()
    first = agent.decide(ARMS, id="order 7")
    assert agent.decide(ARMS.copy(), id="order 7") == first
    with refused("id", "other arms"):
        agent.decide(ARMS[:3], id="order 7")
    with refused("id", "other arms"):
        agent.decide(ARMS, id="order 7", allowed=[0, 1])
    agent.reward("order 7", 1.0)
    assert agent.decide(ARMS, id="order 7") == first
    assert agent.counts["decided"] == 1
    for bad in ("", "a\nb", "x" * 129, "\ud800", 7):
        with refused("id"):
            agent.decide(ARMS, id=bad)


def test_an_id_of_the_first_snapshots_is_known_by_its_digest():
    agent = agent_of()
    agent.decide(ARMS, id="old", allowed=[1, 2])
    found = hashlib.blake2b(dw.ArmSet(ARMS).columns.data, digest_size=16)
    for part in (np.array([1, 2]).tobytes(), b"-"):
        found.update(part)
    agent._parts.book.open["old"].mark = found.hexdigest()
    assert agent.decide(ARMS, id="old", allowed=[1, 2]).id == "old"
    with refused("id", "other arms"):
        agent.decide(ARMS, id="old", allowed=[1, 3])


@given(place=st.integers(0, 9), bit=st.integers(0, 63))
def test_any_bit_of_the_arms_is_another_decision(place, bit):
    other = ARMS.copy()
    bits = other.view(np.uint64).ravel()
    bits[place] ^= np.uint64(1 << bit)
    assume((np.abs(other) <= 1.0).all() and (np.linalg.norm(other, axis=1) <= 1.0).all())
    agent = agent_of()
    agent.decide(ARMS, id="a")
    with refused("id", "other arms"):
        agent.decide(other, id="a")


def test_ids_of_two_loads_of_one_snapshot_never_meet():
    data = agent_of().to_bytes()
    one, two = (dw.Agent.from_bytes(data).decide(ARMS) for _ in range(2))
    assert one.seq == two.seq and one.id != two.id
    assert one.id.startswith("1.") and len(one.id) == 10


def test_masks_and_costs():
    agent = agent_of()
    only = agent.decide(ARMS, items=list("abcde"), allowed=[3])
    assert (only.arm, only.item, only.n) == (3, "d", 1)
    mask = np.array([True, False, True, False, False])
    assert agent.decide(ARMS, allowed=mask).arm in (0, 2)
    scores = linear().scores(agent.state, ARMS).score
    price = np.zeros(5)
    price[np.argmax(scores)] = 10.0
    dear = agent.decide(ARMS, cost=price)
    assert dear.arm != np.argmax(scores) and dear.score == pytest.approx(dear.mean + dear.bonus)
    for bad in ([], [5], [-1], [0.5], [True], np.zeros(5, dtype=bool), "ab", [[0], [1, 2]], {0}):
        with refused("allowed"):
            agent.decide(ARMS, allowed=bad)
    before = agent.to_bytes()
    for bad in ([0, 0, 1, 0, 0], [0, 0, 1], np.array([1, 0, 0, 1, 0]), [0, True], (np.True_, 2), [2, 1, 2],
                np.ma.array([0, 1], mask=[True, False])):  # fmt: skip
        with refused("allowed"):
            agent.decide(ARMS, allowed=bad)
    assert agent.to_bytes() == before
    with refused("cost"):
        agent.decide(ARMS, cost=[1.0])
    assert agent.decide(ARMS, items=np.array(list("abcde"))).item in "abcde"
    for items in (["a"], "abcde", [1.5] * 5, 5, iter("abcde"), set("abcde")):
        with refused("items"):
            agent.decide(ARMS, items=items)
    dw.Agent.for_clicks(2).decide(ARMS, cost=price)
    bank = dw.Agent(dw.make("Bank+SCB-WeightUCB", dim=2), rewards=(0.0, 1.0))
    with refused("cost", "click banks"):
        bank.decide(ARMS, cost=price)


def test_exploration_is_a_pure_draw_with_an_exact_propensity():
    agent, again = (agent_of(epsilon=0.3, seed=5) for _ in range(2))
    made = [agent.decide(ARMS) for _ in range(4000)]
    assert [one[1:] for one in made[:50]] == [again.decide(ARMS, now=d.at)[1:] for d in made[:50]]
    # Nothing is learned, so the best arm stays: 4000 draws, bounds of 5 standard deviations (1e-6).
    best = made[[one.explored for one in made].index(False)].arm
    drawn = sum(one.explored for one in made)
    assert abs(drawn - 1200) < 5 * math.sqrt(4000 * 0.3 * 0.7)
    for arm in range(5):
        share = 0.06 + 0.7 * (arm == best)
        assert all(one.propensity == pytest.approx(share, abs=1e-15) for one in made if one.arm == arm)
        assert abs(sum(one.arm == arm for one in made) - 4000 * share) < 5 * math.sqrt(4000 * share * (1 - share))
    assert agent.counts["explored"] == drawn


def test_many_at_once_is_one_after_the_other():
    many, single = agent_of(), agent_of()
    made = many.decide_many([ARMS, ARMS, ARMS], ids=["a", "b", "c"])
    assert [one.arm for one in made] == [single.decide(ARMS, id=id).arm for id in "abc"]
    verdicts = many.reward_many([("a", 0.5), ("nobody", 0.5), ("a", 0.5), ("c", 0.0)])
    assert [verdicts[0], verdicts[2], verdicts[3]] == ["learned", "duplicate", "learned"]
    assert isinstance(verdicts[1], dw.BadInput)
    single.reward("a", 0.5)
    single.reward("c", 0.0)
    assert many.state.to_bytes() == single.state.to_bytes()
    with refused("ids"):
        many.decide_many([ARMS], ids=["a", "b"])
    assert isinstance(many.reward_many([("a",)])[0], dw.BadInput)
    mixed = many.decide_many([ARMS, np.full((2, 2), np.nan), ARMS[:2], ARMS], ids=["d", "e", "a", "d"])
    assert mixed[0] == mixed[3] and mixed[0].id == "d"  # a refusal does not stop the others
    assert all(isinstance(one, dw.BadInput) for one in mixed[1:3])


def test_refused_arms_leave_everything_as_it_was():
    agent = agent_of()
    before = agent.to_bytes()
    for bad in (np.zeros((2, 3)), np.full((2, 2), np.nan), np.full((2, 2), 9.0), np.zeros((0, 2)), "arms"):
        with refused("arms"):
            agent.decide(bad)
    assert agent.to_bytes() == before


def test_a_lesson_that_fails_leaves_no_trace_and_the_decision_open():
    policy = dw.make("SCB-WeightUCB", dim=2, horizon=100, path_length=1.0)
    agent = dw.Agent(policy, rewards=(0, 1))
    one, two = agent.decide(ARMS), agent.decide(ARMS)
    before = agent.state.to_bytes()
    agent._parts.states.back.counters[0, 7] = 1.0  # a solver's failure
    with pytest.raises(dw.NumericalError):
        agent.reward(one.id, 1.0)
    assert agent.state.to_bytes() == before
    assert (agent.counts["failed"], agent.counts["open"]) == (1, 2)
    assert agent.reward(one.id, 1.0) == agent.reward(two.id, 0.0) == "learned"


LAWS = {
    "linear": (lambda: linear(dw.Fade(0.05), dim=3), 1e-12),
    "window": (lambda: linear(dw.Window(12, capacity=40), dim=3), 1e-12),
    "restart": (lambda: linear(dw.Restart(12), dim=3), 1e-12),
    "two matrices": (lambda: linear(dw.Fade(0.05), dim=3, two_matrix="correct"), 1e-12),
    "clicks": (lambda: dw.make("SCB-WeightUCB", dim=3, horizon=300, path_length=1.5, capacity=60), 1e-8),
}


@pytest.mark.parametrize("clock", ["rounds", "wall"])
@pytest.mark.parametrize("name", list(LAWS))
@given(order=st.permutations(list(range(20))), seed=st.integers(0, 99))
def test_the_order_of_arrivals_does_not_matter(name, clock, order, seed):
    """On the wall clock rewards also come at other ticks, and time passes in between and afterwards."""
    make, tolerance = LAWS[name]
    chance = np.random.default_rng(seed)
    arms, values = unit_arms(6, 3, seed), chance.integers(0, 2, 20).astype(float)
    found, wall = [], {"clock": "wall", "tick": 1.0} if clock == "wall" else {}
    for arrivals in (range(20), order):
        hand = Hand(100.0)
        agent = dw.Agent(make(), rewards=(0, 1), now=hand, **wall)
        for number in range(20):
            hand.at += 0.3
            agent.decide(arms, id=str(number), allowed=[number % 6])
        for number in arrivals:
            hand.at += 0.4
            agent.reward(str(number), values[number])
        found.append(agent.explain(arms, now=115.0))
    np.testing.assert_allclose(found[0].theta, found[1].theta, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found[0].score, found[1].score, rtol=10 * tolerance, atol=10 * tolerance)


def test_a_wall_clock_that_jumps_moves_nothing_but_later_verdicts():
    hand = Hand(1000.0)
    policy = linear(dw.Keep(), delta=0.01)
    agent = dw.Agent(policy, rewards=(-1, 1), clock="wall", half_life="100s", expire_after="50s", now=hand)
    assert agent.policy.memory == dw.Fade(dw.convert_memory(1000.0, "half_life", "forget"))
    one = agent.decide(ARMS)
    assert one.born == 10_000
    hand.at = 10.0  # backwards
    two = agent.decide(ARMS)
    assert two.born == 10_000 and two.at == 10.0
    assert agent.reward(one.id, 0.5) == "learned"
    assert agent._parts.states.tick == 10_000 and agent.state.clock == 0.0
    hand.at = 1051.0
    assert agent.reward(two.id, 0.5) == "late"
    with refused("now"):
        agent.decide(ARMS, now=-5.0)
    with refused("now"):
        agent.decide(ARMS, now=math.nan)


def test_a_half_life_halves():
    hand = Hand(0.0)
    agent = dw.Agent(linear(dw.Keep()), rewards=(-1, 1), clock="wall", half_life="14d", now=hand)
    agent.reward(agent.decide(ARMS).id, 1.0)
    hand.at = 14 * 86400.0
    agent.cancel(agent.decide(ARMS).id)
    one = agent.decide(ARMS)
    agent.reward(one.id, 1.0)
    assert agent.state.weight == pytest.approx(1.5, rel=1e-12)
    assert agent.explain(ARMS).days == pytest.approx(14 / math.log(2), rel=1e-3)


def test_combinations_without_meaning_are_refused():
    fade, keep = linear(), linear(dw.Keep())
    for policy, parameter, options in (
        (fade, "half_life", {"half_life": 10}),
        (dw.make("Bank+LB-WeightUCB", dim=2), "half_life", {"half_life": 10}),
        (keep, "half_life", {"half_life": "14d", "clock": "rounds"}),
        (keep, "half_life", {"half_life": "14 moons", "clock": "wall"}),
        (keep, "half_life", {"half_life": -1}),
        (fade, "tick", {"clock": "wall"}),
        (fade, "tick", {"tick": 5.0, "clock": "rounds"}),
        (dw.make("Bank+LB-WeightUCB", dim=2), "tick", {"clock": "wall"}),
        (linear(dw.Window(10)), "memory", {"clock": "wall", "tick": 1.0}),
        (dw.make("MASTER+OFUL", dim=2, horizon=9), "clock", {"clock": "wall", "tick": 1.0}),
        (dw.make("SCB-WeightUCB", dim=2, horizon=9, path_length=1), "capacity", {"clock": "wall", "tick": 1.0,
                                                                                 "rewards": (0, 1)}),
        (fade, "clock", {"clock": "sun"}),
        (fade, "rewards", {"rewards": (1, 0)}),
        (fade, "rewards", {"rewards": (0, 1e300)}),
        (fade, "rewards", {"rewards": 1}),
        (dw.make("SCB-WeightUCB", dim=2, horizon=9, path_length=1), "rewards", {"rewards": (-1, 1)}),
        (fade, "epsilon", {"epsilon": 1.5}),
        (fade, "seed", {"seed": -1}),
        (fade, "expire_after", {"expire_after": "1d", "clock": "rounds"}),
        (fade, "max_open", {"max_open": 0}),
        (fade, "remember", {"remember": -1}),
        (fade, "now", {"now": 5}),
        ("LinUCB", "policy", {}),
    ):
        with refused(parameter):
            dw.Agent(policy, **{"rewards": (-1, 1), **options})


def test_conversions_go_there_and_back():
    for rounds in (2.0, 10.0, 1000.0):
        forget = dw.convert_memory(rounds, "rounds", "forget")
        assert dw.convert_memory(forget, "forget", "rounds") == pytest.approx(rounds)
        for unit in ("half_life", "window"):
            there = dw.convert_memory(forget, "forget", unit)
            assert dw.convert_memory(there, unit, "forget") == pytest.approx(forget)
        gamma, length = 1.0 - forget, dw.convert_memory(forget, "forget", "window")
        weights = gamma ** np.arange(100_000)
        assert weights.sum() ** 2 / (weights**2).sum() == pytest.approx(length, rel=1e-6)
    assert dw.convert_memory("14d", "half_life", "forget", tick="1h") == pytest.approx(1 - 0.5 ** (1 / 336))
    assert all(dw.convert_memory(0.0, "forget", unit) == math.inf for unit in ("rounds", "half_life", "window"))
    with refused("half_life", "tick"):
        dw.convert_memory("14d", "half_life", "forget")
    with refused("rounds"):
        dw.convert_memory(0.5, "rounds", "forget")


def test_one_function_converts_between_all_units():
    forget = dw.convert_memory("14d", "half_life", "forget", tick="1h")
    assert dw.convert_memory("14d", "half_life", "window", tick="1h") == dw.convert_memory(forget, "forget", "window")
    for source in ("half_life", "rounds", "window"):
        forget = dw.convert_memory(50.0, source, "forget")
        assert dw.convert_memory(forget, "forget", source) == pytest.approx(50.0)
    assert dw.convert_memory(math.inf, "rounds", "half_life") == math.inf
    for parameter, call in (
        ("source", lambda: dw.convert_memory(1.0, "weeks", "forget")),
        ("source", lambda: dw.convert_memory("two weeks")),
        ("target", lambda: dw.convert_memory("2w", "half_life", tick="1h")),
        ("half_life", lambda: dw.convert_memory("two weeks", "half_life", "forget", tick="1h")),
        ("target", lambda: dw.convert_memory(0.5, "forget", "weeks")),
        ("tick", lambda: dw.convert_memory(0.5, "forget", "rounds", tick="1h")),
        ("forget", lambda: dw.convert_memory(1.0, "forget", "rounds")),
    ):
        with refused(parameter):
            call()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coin(dw.LinearUCB):
    """A rule that samples: arm 0 in one of four draws, otherwise arm 1."""

    deterministic = False

    def choose(self, state, arms, draw=None):
        scores = self.scores(state, arms)
        arm = 0 if draw % 4 == 0 else 1
        return dw.Choice(arm, float(scores.score[arm]), float(scores.mean[arm]), float(scores.bonus[arm]))


def test_a_rule_that_samples_draws_by_the_decisions_number_and_its_propensity_is_counted():
    agent = dw.Agent(Coin(dim=2, memory=dw.Keep(), lam=1.0, delta=0.1), rewards=(-1, 1), epsilon=0.1)
    made = [agent.decide(ARMS) for _ in range(40)]
    assert all(one.arm == (one.seq % 4 != 0) for one in made if not one.explored)
    for one in made:  # 1000 draws: 5 standard deviations are 0.07 (1e-6 a decision)
        wanted = 0.02 + 0.9 * {0: 0.25, 1: 0.75}.get(one.arm, 0.0)
        assert abs(one.propensity - wanted) < 0.07
        assert one.draws == 1000  # the record says that it was counted, and over how many draws
    assert agent_of(epsilon=0.1).decide(ARMS).draws == 0
    loaded = dw.Agent.from_bytes(agent.to_bytes(), policy=agent.policy)
    assert loaded._parts.book.open[made[0].id].decision == made[0]
    with refused("cost", "sample"):
        agent.decide(ARMS, cost=np.zeros(5))


def test_now_may_be_a_datetime():
    moment = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    agent = dw.Agent(linear(), rewards=(-1, 1), clock="wall", tick="1h")
    assert agent.decide(ARMS, now=moment).born == moment.timestamp() // 3600


def test_a_clock_that_tells_no_time_is_refused_and_changes_nothing():
    for told in (None, "noon", math.nan, math.inf, 1e300):
        agent = agent_of(now=lambda told=told: told)
        before = agent.to_bytes()
        with refused("now"):
            agent.decide(ARMS)
        assert agent.to_bytes() == before


def test_an_id_of_the_callers_is_never_one_of_the_agents_own(tmp_path, monkeypatch):
    """A decision with the agent's next automatic id would be overwritten, and its reward learned for another one."""
    agent = agent_of()
    first = agent.decide(ARMS)
    suffix = first.id.split(".")[1]
    for id in (f"2.{suffix}", f"3.{suffix}", "1f.0a1b2c3d"):
        with refused("id", id, "another id"):
            agent.decide(ARMS, id=id)
    assert isinstance(agent.decide_many([ARMS], ids=[f"2.{suffix}"])[0], dw.BadInput)
    assert agent.counts["decided"] == agent.counts["open"] == 1
    for id in (f"02.{suffix}", f"2.{suffix.upper()}G", f"2.{suffix}0", f"x2.{suffix}"):
        assert agent.decide(ARMS, id=id).id == id
    second = agent.decide(ARMS)
    assert agent.reward(second.id, 0.5) == agent.reward(first.id, 0.25) == "learned"
    with monkeypatch.context() as older:  # as in a snapshot of an earlier version: still known
        older.setattr("driftwise.agent.agent.check_not_automatic", lambda id: None)
        old = agent.decide(ARMS, id="ff.0a1b2c3d")
    agent.save(tmp_path / "a.dw")
    again = dw.Agent.load(tmp_path / "a.dw")
    assert again.decide(ARMS, id=old.id) == old and again.reward(old.id, 0.5) == "learned"
