"""Logs with full information: what policies play and see, and what is refused."""

import numpy as np
import pytest

import driftwise as dw
from driftwise import Outcomes, backtest
from driftwise._internal.rng import key
from driftwise.data.outcomes import block_means
from refusing import refused


def small(rounds=300, fresh=False, seed=0, holes=True):
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((rounds, 4, 3) if fresh else (4, 3)) / 4.0
    paid = rng.random((rounds, 4))
    if holes:
        paid[rng.random((rounds, 4)) < 0.3] = np.nan
        paid[:, 2] = rng.random(rounds)
    return Outcomes(arms=arms, rewards=paid)


class Witness:
    """Plays arms in turn and records everything that it is shown."""

    def start(self, seed=0):
        return []

    def choose(self, state, arms):
        return len(state) % len(arms)

    def learn(self, state, arms, arm, reward):
        state.append((np.array(arms), arm, reward))


@pytest.mark.parametrize("fresh", [False, True])
def test_a_policy_sees_the_arms_on_offer_and_the_reward_of_the_one_it_played(fresh):
    log, witness = small(fresh=fresh), Witness()
    seen = []
    witness.start = lambda seed=0: seen
    found = backtest({"witness": witness}, log)
    for t, (arms, arm, reward) in enumerate(seen):
        numbers = np.flatnonzero(~np.isnan(log.paid[t]))
        np.testing.assert_array_equal(arms, log._sets[t if fresh else 0][numbers])
        assert found.arms["witness"][t] == numbers[arm]
        assert reward == log.paid[t, numbers[arm]] == found.rewards["witness"][t]


def test_a_backtest_is_the_simulation_of_the_same_rewards():
    """On rewards that a world could have paid, stepping through outcomes gives the arms of `simulate`."""
    rng, T = np.random.default_rng(1), 400
    arms, theta = rng.standard_normal((5, 2)) / 3.0, rng.standard_normal((T, 2)) / 2.0
    world = dw.worlds.Given(arms=arms, theta=theta, tape=np.zeros(T), noise=0.0)
    policies = {"fade": dw.LinearUCB(dim=2, memory=dw.Fade(0.05), lam=1.0, L=3.0), "auto": dw.make("Auto", dim=2)}
    run = dw.simulate(policies, world, trials=1, seed=0)
    found = backtest(policies, Outcomes(arms=arms, rewards=theta @ arms.T), seed=key(0, "policy", 0))
    for name in policies:
        np.testing.assert_array_equal(found.arms[name], run.arms[name][0])


def test_shuffling_keeps_the_rows_together():
    log = small(fresh=True)
    mixed = log.shuffled(3)
    order = np.random.default_rng(3).permutation(log.rounds)
    np.testing.assert_array_equal(mixed.paid, log.paid[order])
    np.testing.assert_array_equal(mixed._sets, log._sets[order])
    assert not np.array_equal(mixed.paid, log.paid, equal_nan=True)


@pytest.mark.parametrize("fresh", [False, True])
def test_other_orders_of_arms_keep_arms_rewards_and_names_together(fresh):
    log = small(fresh=fresh, holes=False)
    other = log.reordered(0)
    assert other.names != log.names
    for place, name in enumerate(other.names):
        np.testing.assert_array_equal(other.paid[:, place], log.paid[:, int(name)])
        np.testing.assert_array_equal(other._sets[:, place], log._sets[:, int(name)])


def test_stretches_of_time_share_all_rounds():
    values = np.random.default_rng(0).random(103)
    means = block_means(values, 10)
    assert len(means) == 10
    edges = np.linspace(0, 103, 11).astype(int)
    np.testing.assert_allclose((means * np.diff(edges)).sum(), values.sum())
    assert len(block_means(values[:3], 10)) == 3


def test_the_result_reads_as_a_table_and_as_plain_numbers():
    found = backtest({"witness": Witness(), "again": Witness()}, small())
    text = str(found)
    assert "witness" in text
    assert "+0.0000 ± 0.0000 against witness" in text
    assert found.to_dict()["mean"]["again"] == found.mean("witness")


def test_bad_outcomes_get_the_one_sentence():
    good = np.ones((5, 2))
    with refused("rewards", "shape"):
        Outcomes(arms=np.eye(2), rewards=np.ones(5))
    with refused("rewards", "round 3"):
        Outcomes(arms=np.eye(2), rewards=np.where(np.arange(5)[:, None] == 3, np.nan, good))
    with refused("arms", "shape"):
        Outcomes(arms=np.eye(3), rewards=good)
    with refused("names", "2"):
        Outcomes(arms=np.eye(2), rewards=good, names=["one"])
    with refused("log", "dw.evaluate"):
        backtest({"witness": Witness()}, good)
    with refused("policies", "at least one"):
        backtest({}, Outcomes(arms=np.eye(2), rewards=good))
    with refused("policies['it']", "start, choose and learn"):
        backtest({"it": 3}, Outcomes(arms=np.eye(2), rewards=good))
    with refused("blocks", "at least 2"):
        block_means(np.ones(5), 1)
