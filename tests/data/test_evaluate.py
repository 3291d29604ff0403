"""Estimates of what another policy would have earned: equal to their definitions, with the promised coverage, or an
error."""

import math

import numpy as np
import pytest

import driftwise as dw
import naive_evaluate as naive
from driftwise.data.page import verdict
from driftwise.tables import log_of
from refusing import refused

D = 3


def logged(rows=120, seed=0, epsilon=0.4, late=0, noise=0.3, drift=0.0):
    """A log by a rule that mostly plays arm 0 of three or four fresh arms; and the mean rewards of all arms."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(D)
    arms, arm, propensity, reward, means = [], [], [], [], []
    for t in range(rows):
        n = int(rng.integers(3, 5))
        X = rng.standard_normal((n, D)) / 4.0
        shares = np.full(n, epsilon / n)
        shares[0] += 1.0 - epsilon
        a = int(rng.choice(n, p=shares))
        now = theta + drift * t / rows * np.array([1.0, -1.0, 0.0])
        arms.append(X), arm.append(a), propensity.append(shares[a]), means.append(X @ now)
        reward.append(float(means[-1][a] + noise * rng.standard_normal()))
    columns = {"arms": arms, "arm": arm, "propensity": propensity, "reward": reward}
    if late:
        born = np.arange(1, rows + 1)
        columns |= {"born": born, "reward_tick": born + rng.integers(0, late, rows)}
    return columns, means


@pytest.mark.parametrize("late", [0, 9])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_estimates_are_what_their_definitions_say(late, epsilon):
    columns, _ = logged(late=late)
    found = dw.evaluate(naive.Ranking(D), log_of(**columns), epsilon=epsilon, blocks=3)
    rows = naive.walk(naive.Ranking(D), *(columns[name] for name in ("arms", "arm", "propensity", "reward")), epsilon,
                      columns.get("born"), columns.get("reward_tick"))  # fmt: skip
    w = np.array([one[0] for one in rows])
    for name, value in (("IPS", naive.ips(rows)), ("SNIPS", naive.snips(rows)), ("DR", naive.doubly_robust(rows))):
        assert found.estimates[name].value == pytest.approx(value, rel=0, abs=1e-12)
        assert found.estimates[name].effective == pytest.approx(w.sum() ** 2 / (w * w).sum(), rel=1e-12)
        assert found.gains[name].value == pytest.approx(value - np.mean(columns["reward"]), rel=0, abs=1e-12)
    terms = [expected + w * (r - q) for w, q, expected, r in rows]
    assert found.estimates["DR"].error == pytest.approx(naive.error_of_mean(terms), rel=1e-12)
    assert found.estimates["IPS"].error == pytest.approx(naive.error_of_mean([w * r for w, _, _, r in rows]), rel=1e-12)
    assert found.blocks[1].estimates["SNIPS"].value == pytest.approx(naive.snips(rows[40:80]), rel=0, abs=1e-12)
    half = np.exp2(-np.arange(len(rows) - 1, -1, -1) / found.half_life)
    assert found.discounted.estimates["DR"].value == pytest.approx((half @ terms) / half.sum(), rel=0, abs=1e-12)


def test_a_ridge_of_its_own_is_the_ridge():
    columns, _ = logged()
    own = dw.evaluate(naive.Greedy(D), log_of(**columns), model="ridge")
    ranks = dw.evaluate(naive.Ranking(D), log_of(**columns))
    assert own.estimates["DR"].value == pytest.approx(ranks.estimates["DR"].value, rel=0, abs=1e-12)
    assert "DR" not in dw.evaluate(naive.Greedy(D), log_of(**columns)).estimates


def test_the_error_of_a_ratio_is_that_of_its_bootstrap():
    """The influence function's error of SNIPS lies within 10% of the spread of 2000 resamples (3 standard errors)."""
    columns, _ = logged(600, noise=1.0)
    found = dw.evaluate(naive.Greedy(D), log_of(**columns))
    w, r, rng = found.terms.weight, found.terms.reward, np.random.default_rng(0)
    draws = rng.integers(0, len(w), (2000, len(w)))
    resampled = (w * r)[draws].sum(axis=1) / w[draws].sum(axis=1)
    assert found.estimates["SNIPS"].error == pytest.approx(resampled.std(), rel=0.1)


def test_replay_is_what_its_algorithm_says():
    columns, _ = logged(epsilon=1.0)
    found = dw.evaluate(naive.Greedy(D), log_of(**columns), method="replay")
    matched = naive.replayed(naive.Greedy(D), columns["arms"], columns["arm"], columns["reward"])
    assert found.estimates["replay"].effective == len(matched)
    assert found.estimates["replay"].value == pytest.approx(np.mean(matched), rel=0, abs=1e-12)


class Fixed:
    """Plays by a fixed θ and learns nothing; q̂ is the prediction of that θ."""

    def start(self, seed=0):
        return None

    def choose(self, state, arms):
        return int(np.argmax(arms @ np.ones(D)))

    def learn(self, state, arms, arm, reward):
        pass

    def scores(self, state, arms):
        return dw.Scores(arms @ np.ones(D), np.zeros(len(arms)))


def mean_of_fixed():
    """E[x] of the arm that Fixed plays, over newly drawn contexts: its value is this times θ."""
    rng = np.random.default_rng(99)
    total = np.zeros(D)
    for n in (3, 4):
        X = rng.standard_normal((400_000, n, D)) / 4.0
        total += X[np.arange(len(X)), (X @ np.ones(D)).argmax(axis=1)].mean(axis=0) / 2.0
    return total


def hits_of_fixed(logs, rows):
    """How often each estimate's interval covers the value of a fixed policy, in worlds without drift."""
    expected, missed = mean_of_fixed(), {"IPS": [], "SNIPS": [], "DR": []}
    for seed in range(logs):
        theta = np.random.default_rng(seed).standard_normal(D)  # the first numbers that `logged` draws
        found = dw.evaluate(Fixed(), log_of(**logged(rows, seed=seed, noise=0.5)[0]), progress=False, blocks=1)
        for name, one in found.estimates.items():
            missed[name].append(one.low <= expected @ theta <= one.high)
    return {name: np.sum(row) for name, row in missed.items()}


def test_intervals_cover_at_their_rate():
    """40 logs with known truth. Binomial at 95%: fewer than 33 hits come by chance in 1 of 500 cases."""
    for name, hits in hits_of_fixed(40, 250).items():
        assert hits >= 33, name


@pytest.mark.slow
def test_intervals_cover_at_their_rate_on_long_logs():
    """1000 logs of 600 rows: less than 927 hits come by chance in less than 1 of 500 cases."""
    for name, hits in hits_of_fixed(1000, 600).items():
        assert hits >= 927, name


def test_intervals_of_a_policy_that_learns_cover_what_its_choices_were_worth():
    """40 logs with drift, and a policy that learns as it goes. Its value in exactly these rows is covered at least as
    often as promised; more is fine, because the interval counts contexts and drift as chance too."""
    policy = dw.LinearUCB(dim=D, memory=dw.Fade(0.02), lam=1.0, L=3.0)
    hits = dict.fromkeys(("IPS", "SNIPS", "DR"), 0)
    for seed in range(40):
        columns, means = logged(200, seed=seed, noise=0.5, drift=1.0)
        found = dw.evaluate(policy, log_of(**columns), progress=False, blocks=1)
        value = float(np.mean([mean[arm] for mean, arm in zip(means, found.arms, strict=True)]))
        for name, one in found.estimates.items():
            hits[name] += one.low <= value <= one.high
    assert min(hits.values()) >= 35, hits


def test_the_doubly_robust_one_is_narrower():
    columns, _ = logged(1000, noise=0.1)
    found = dw.evaluate(dw.LinearUCB(dim=D, memory=dw.Keep(), lam=0.1, L=3.0, R=0.1), log_of(**columns))
    assert found.estimates["DR"].error < 0.7 * found.estimates["IPS"].error


def test_the_policy_that_logged_gains_nothing():
    """Where weights are all 1, IPS and SNIPS are the logged mean and the gain is 0 without an error."""
    columns, _ = logged(200, epsilon=0.4)
    found = dw.evaluate(naive.First(), log_of(**columns), epsilon=0.4)
    for name in ("IPS", "SNIPS"):
        assert found.estimates[name].value == pytest.approx(np.mean(columns["reward"]), rel=0, abs=1e-12)
        assert found.gains[name].value == pytest.approx(0.0, abs=1e-12)
        assert found.gains[name].error == pytest.approx(0.0, abs=1e-12)
    assert "is worth 200 rows" in verdict(found) and "a larger epsilon, gives a narrower interval" in verdict(found)


def test_blocks_and_discounts_see_drift():
    """The best arm's value rises along the log: the last block and the discounted estimate lie above the whole."""
    rng, n = np.random.default_rng(0), 1500
    arm = rng.integers(0, 2, n)
    reward = np.where(arm == 1, np.arange(n) / n, 0.1) + 0.1 * rng.standard_normal(n)
    log = log_of(arms=[np.eye(2)] * n, arm=arm, propensity=np.full(n, 0.5), reward=reward)
    found = dw.evaluate(dw.LinearUCB(dim=2, memory=dw.Fade(0.02), lam=1.0), log, half_life=200)
    for name in found.estimates:
        assert found.blocks[-1].estimates[name].low > found.blocks[4].estimates[name].high
        assert found.discounted.estimates[name].low > found.estimates[name].high


@pytest.mark.parametrize("name", ["D-LinTS", "D-RandLinUCB"])
def test_rules_that_sample_are_weighed_by_their_propensities(name):
    columns, _ = logged(60)
    policy = dw.make(name, dim=D, horizon=100, memory=dw.Fade(0.01), L=3.0)
    found = dw.evaluate(policy, log_of(**columns))
    state, arms = policy.start(0), columns["arms"][0]
    first = policy.propensities(state, arms, 1).shares[columns["arm"][0]] / columns["propensity"][0]
    assert found.terms.weight[0] == pytest.approx(first, rel=1e-12)
    assert len(np.unique(found.terms.weight)) > 10


def test_candidates_with_items_are_arms():
    columns, _ = logged(60)
    rng = np.random.default_rng(1)
    items = {f"item {k}": rng.standard_normal(D) / 4.0 for k in range(5)}
    named = [[f"item {k}" for k in rng.permutation(5)[: len(X)]] for X in columns["arms"]]
    by_name = {**{k: v for k, v in columns.items() if k != "arms"}, "candidates": named}
    by_arms = {**columns, "arms": [np.stack([items[one] for one in names]) for names in named]}
    one = dw.evaluate(naive.Ranking(D), log_of(**by_name), items=items)
    two = dw.evaluate(naive.Ranking(D), log_of(**by_arms))
    assert one.to_dict() == two.to_dict()
    assert one.blocks[0].estimates["SNIPS"].rows == 6
    del items["item 3"]
    with refused("log", "item 3", "items="):
        dw.evaluate(naive.Ranking(D), log_of(**by_name), items=items)


def test_candidates_with_features_are_the_arms_that_were_logged(tmp_path):
    """A log without arms, its contexts and candidates, and the features: the evaluation of the log with arms."""
    F = dw.Features
    features = F(context={"hour": F.number(mean=12, scale=6)}, item={"price": F.number(mean=20, scale=10)},
                 cross=[("hour", "price")])  # fmt: skip
    items = {"cup": {"price": 10.0}, "plate": {"price": 25.0}, "fork": {"price": 5.0}}
    policy, found = dw.LinearUCB(dim=features.dim, memory=dw.Fade(0.01), lam=1.0), []
    for arms in (True, False):
        agent, rng = dw.Agent(policy, rewards=(0.0, 1.0), epsilon=0.3, features=features), np.random.default_rng(0)
        folder = tmp_path / str(arms)
        with agent.log_to(folder, arms=arms, format="jsonl"):
            for visit in range(60):
                names = items if not visit else [list(items)[k] for k in rng.permutation(3)[: 2 + visit % 2]]
                shown = agent.decide(context={"hour": visit % 24}, items=names)
                agent.reward(shown.id, float(rng.random() < 0.5))
        more = {} if arms else {"features": features, "items": items}
        found.append(dw.evaluate(policy, folder, epsilon=0.3, blocks=1, progress=False, **more))
    assert found[0].to_dict() == found[1].to_dict()
    assert (found[1].terms.weight == 1.0).all()
    with refused("log", "candidates", "fork", "items="):
        dw.evaluate(policy, folder, features=features, items={k: v for k, v in items.items() if k != "fork"})
    with refused("log", "column x", "features="):
        dw.evaluate(policy, folder, features=features, items={**items, "fork": {"price": 6.0}})
    with refused("log", "candidates", "features="):
        dw.evaluate(policy, folder)
    with refused("features", "dw.Features"):
        dw.evaluate(policy, folder, features=3)


def test_a_range_of_rewards_can_be_told():
    columns, _ = logged(80)
    found = dw.evaluate(naive.Ranking(D), log_of(**columns), rewards=(-5.0, 5.0), blocks=1)
    assert found.terms.range == (-5.0, 5.0)
    with refused("rewards", "rewards of the log"):
        dw.evaluate(naive.Ranking(D), log_of(**columns), rewards=(0.0, 0.1))
    with refused("rewards", "least and the largest"):
        dw.evaluate(naive.Ranking(D), log_of(**columns), rewards=3)


def test_tables_call_policies_by_the_name_they_are_asked_for_by():
    columns, _ = logged(40)
    assert dw.evaluate(dw.make("Auto", dim=D), log_of(**columns), blocks=1).policy == "Auto"


def test_rows_without_reward_are_counted_and_left_out():
    columns, _ = logged(80)
    short = {name: value[:79] for name, value in columns.items()}
    columns["reward"][79] = math.nan
    found, less = (dw.evaluate(naive.Ranking(D), log_of(**one)) for one in (columns, short))
    assert found.missing == 1
    assert found.estimates == less.estimates


def test_the_result_reads_as_tables_and_plain_numbers():
    columns, _ = logged()
    found = dw.evaluate(naive.Ranking(D), log_of(**columns), blocks=4)
    text = str(found)
    for word in ("Ranking", "logged", "DR", "90–119"):
        assert word in text
    plain = found.to_dict()
    assert plain["estimates"]["DR"]["low"] < plain["estimates"]["DR"]["value"] < plain["estimates"]["DR"]["high"]
    assert len(plain["blocks"]) == 4


def test_refusals_are_sentences():
    columns, _ = logged()
    policy = naive.Ranking(D)

    def without(*names):
        return log_of(**{name: value for name, value in columns.items() if name not in names})

    def changed(name, row, value):
        values = list(columns[name])
        values[row] = value
        return log_of(**{**columns, name: values})

    with refused("log", "propensity", "epsilon=0.05", "arms=True"):
        dw.evaluate(policy, without("propensity"))
    with refused("log", "candidates with items", "arms=True"):
        dw.evaluate(policy, without("arms"))
    with refused("log", "nothing is known about other arms", "epsilon="):
        dw.evaluate(policy, log_of(**{**columns, "propensity": np.ones(120)}))
    with refused("log", "1/n in every row", 'method="weights"'):
        dw.evaluate(policy, log_of(**columns), method="replay")
    with refused("log", "row 7", "column propensity"):
        dw.evaluate(policy, changed("propensity", 7, 0.0))
    with refused("log", "row 9", "column propensity", "nothing"):
        dw.evaluate(policy, changed("propensity", 9, math.nan))
    with refused("log", "row 3", "column arm"):
        dw.evaluate(policy, changed("arm", 3, 11))
    with refused("log", "at least two"):
        dw.evaluate(policy, log_of(**{name: value[:1] for name, value in columns.items()}))
    with refused("policy", "start, choose and learn"):
        dw.evaluate(3, log_of(**columns))
    with refused("method", "weights"):
        dw.evaluate(policy, log_of(**columns), method="ips")
    with refused("epsilon", "[0, 1]"):
        dw.evaluate(policy, log_of(**columns), epsilon=2.0)
    with refused("half_life", "rows"):
        dw.evaluate(policy, log_of(**columns), half_life=0.0)

    class Dice(naive.Greedy):
        deterministic = False

    with refused("policy", "propensities(state, arms, draw)"):
        dw.evaluate(Dice(D), log_of(**columns))


def test_what_a_model_says_outside_the_range_puts_no_bias_into_the_doubly_robust_estimate():
    """Clipped arm by arm: Σπq̂ clipped as a whole is not the mean of w q̂ clipped row by row."""
    rng, n = np.random.default_rng(0), 4000
    arms = rng.standard_normal((n, 4, D))
    arms /= np.linalg.norm(arms, axis=2, keepdims=True)
    arm, chances = rng.integers(0, 4, n), np.clip(0.9 * arms[:, :, 0], 0.0, 1.0)  # a linear model predicts -0.9 to 0.9
    reward = (rng.random(n) < chances[np.arange(n), arm]).astype(float)
    log = log_of(arms=list(arms), arm=arm, propensity=np.full(n, 0.25), reward=reward)
    found = dw.evaluate(dw.make("OFUL", dim=D, horizon=n), log, epsilon=1.0, blocks=1).estimates["DR"]
    assert found.value == pytest.approx(0.225, abs=0.02) and found.low < 0.225 < found.high
    assert found.error < 0.01


@pytest.mark.parametrize("least", [5e-324, 1e-160, 1e-100])
def test_a_propensity_too_small_to_be_weighed_is_refused(least):
    columns, _ = logged()
    columns["propensity"][7] = least
    with refused("log", "row 7", "column propensity", "1e-50"):
        dw.evaluate(naive.Ranking(D), log_of(**columns), epsilon=0.5)


def test_rewards_that_no_agent_takes_are_refused_by_evaluate():
    columns, _ = logged()
    with refused("rewards", "1e+100"):
        dw.evaluate(dw.make("Auto", dim=D), log_of(**columns), rewards=(-1e200, 1e200))
    columns["reward"][7] = 1e200
    with refused("log", "row 7", "column reward", "1e+100"):
        dw.evaluate(dw.make("Auto", dim=D), log_of(**columns))


def test_a_model_that_says_no_number_is_refused():
    class Lost(naive.Ranking):
        def estimate(self, state, arms):
            return np.array(super().estimate(state, arms)) * math.nan

    columns, _ = logged()
    with refused("policy", "NaN", "ridge"):
        dw.evaluate(Lost(D), log_of(**columns))


@pytest.mark.parametrize("said", [math.nan, math.inf, -0.5, 0.9, 0.0, "a", [1.0], None])
def test_shares_that_are_no_distribution_over_the_arms_are_refused(said):
    class Dice(naive.Greedy):
        deterministic = False

        def propensities(self, state, arms, draw):
            return said if said is None or isinstance(said, list) else [said] * len(arms)

    columns, _ = logged()
    with refused("propensities", "whose sum is 1"):
        dw.evaluate(Dice(D), log_of(**columns))


@pytest.mark.parametrize("said", [None, 1.0, dw.Scores([0.0], [0.0]), dw.Scores(["a"] * 3, ["b"] * 3)])
def test_scores_that_are_none_for_these_arms_are_refused(said):
    class Silent(naive.Greedy):
        def scores(self, state, arms):
            return said

    columns, _ = logged()
    with refused("scores", "a mean and a bonus for each of"):
        dw.evaluate(Silent(D), log_of(**columns))
