"""A level separate from preferences, audits, and the drift meter for both: laws, and tests of their power."""

import math

import numpy as np
import pytest
from scipy import special

import driftwise as dw
from driftwise.agent.drift import LevelDrift
from driftwise.agent.replay import lacks_level, level_moves
from driftwise.kernels import point
from driftwise.worlds import Given
from interpreting import both_ways
from naive_belief import naive_level_moves
from refusing import refused


def bank(dim=3, **fields):
    """A TrendBank without given noise or scale."""
    base = dw.LinearUCB(dim=dim, memory=dw.Keep(), radius="posterior", R="learn", S=None, L=None)
    return dw.research.TrendBank(base=base, **{"levels": True, **fields})


def seasons(rounds, *, seed=1, swing=0.5, noise=0.3, arms=20):
    """Arms with a constant feature, whose weight swings ten times; preferences stay."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((arms, 2))
    X = np.column_stack([np.ones(arms), z / np.linalg.norm(z, axis=1, keepdims=True)])
    level = swing * np.sin(20.0 * np.pi * np.arange(rounds) / rounds)
    theta = np.column_stack([level, np.full(rounds, 0.4), np.full(rounds, 0.3)])
    return Given(arms=X, theta=theta, tape=rng.standard_normal(rounds), noise=noise)


def played(policy, world, seed=0):
    """Final regret."""
    run = dw.simulate({"it": policy}, world, trials=1, seed=seed, record="last", progress=False)
    return float(run.final("it")[0])


def lived(policy, rounds, *, noise=0.2, swing=2.0, seed=3):
    """A state after so many rounds of a swinging level; and the arms."""
    rng = np.random.default_rng(seed)
    arms, state = rng.standard_normal((8, policy.dim)), policy.start(5)
    for t in range(rounds):
        arm = policy.choose(state, arms).arm
        reward = arms[arm, 0] + swing * math.sin(t / 6.0) + noise * rng.standard_normal()
        policy.learn(state, arms, arm, float(reward))
    return state, arms


# --------------------------------------------------------------------------------------------------------- levels


def test_a_season_does_not_cost_the_ranking():
    world = seasons(3000)
    with_levels, without = played(bank(), world), played(bank(levels=False), world)
    assert with_levels < 0.4 * without


def test_no_level_is_believed_in_where_none_moves():
    policy = bank(dim=2)
    state, _ = lived(policy, 400, swing=0.0)
    assert policy.report(state)["evidence"] < 1.0
    moving = policy.report(lived(policy, 400)[0])
    assert moving["evidence"] > 1.5 and moving["level"] <= 16.0 and moving["memory"] >= 512.0


def test_while_one_arm_is_played_nothing_speaks_for_a_level():
    # A value that swings may be a level or the preference for that arm: only other arms can distinguish them.
    policy = bank(dim=2)
    state, arms = policy.start(), np.eye(2)
    for t in range(60):
        policy.learn(state, arms, t % 2, 0.3)
    before = float(state.evidence[0])
    for t in range(400):
        policy.learn(state, arms, 0, 0.3 + math.sin(t / 10.0))
    assert float(state.evidence[0]) < before + 3.0  # the first few rewards after the other arm
    for t in range(100):
        policy.learn(state, arms, t % 2, 0.3 + math.sin(t / 10.0))
    assert float(state.evidence[0]) > before + 10.0


def test_rewards_that_come_late_do_not_speak_for_a_level():
    # First all clicks, later all defaults: a level that moves because of the reporting, not of the world.
    policy = bank(dim=2)
    late, prompt = policy.start(), policy.start()
    arms, rng = np.eye(2), np.random.default_rng(2)
    for t in range(200):
        reward = float(t < 100) + 0.1 * rng.standard_normal()
        policy.learn(prompt, arms, t % 2, reward)
        policy.learn(late, arms, t % 2, reward, age=min(t, 30.0))
    assert float(prompt.evidence[0]) > 1.0 > abs(float(late.evidence[0]))


def test_a_turn_of_preferences_is_not_taken_for_a_level():
    # In this trial it was believed, and cost 906, when rewards of a repeated arm counted as much as those of another.
    world = dw.worlds.Turn(horizon=6000, dim=5, noise=0.1)
    pair = {"with": dw.make("Auto", dim=5), "without": dw.make("Auto", dim=5, levels=False)}
    run = dw.simulate(pair, world, trials=40, seed=0, record="last", progress=False)
    assert run.final("with").max() < 3.0 * run.final("without").max()


def test_a_bank_without_levels_is_what_it_was():
    policy = bank(levels=False)
    state = policy.start()
    assert "level_G" not in state.groups() and "evidence" not in policy.report(state)
    assert len(policy.rows) == policy.lanes == len(state.scores)
    assert len(bank().rows) == policy.lanes + 16


def test_the_means_of_two_arms_differ_by_the_estimate():
    # For every lane that may be played: with a trend, without one, or with a level.
    policy = bank(dim=2)
    state, arms = lived(policy, 120)
    for row in range(len(policy.rows)):
        apart = row >= policy.lanes
        weights, lane = (state.level_scores, row - policy.lanes) if apart else (state.scores, row)
        weights[:], state.evidence[:] = 0.0, 2.0 if apart else -2.0
        weights[lane] = 1.0
        assert policy.played(state) == row
        mean = policy.scores(state, arms).mean
        assert mean - mean[0] == pytest.approx((arms - arms[0]) @ policy.theta(state), rel=1e-6, abs=1e-9)


def test_a_saved_level_goes_on_as_it_was():
    policy = bank(dim=2)
    state, arms = lived(policy, 90)
    again = dw.State.from_bytes(state.to_bytes())
    for one in (state, again):
        policy.learn(one, arms, 2, 0.7, ticks=3.0, age=2.0)
        policy.advance(one, 11.0)
    assert again.to_bytes() == state.to_bytes()


@pytest.mark.parametrize(("group", "value"), [
    ("level_scores", -1.0), ("level_scores", 0.0), ("filters", 0.0), ("filters", -3.0), ("filters", math.nan),
    ("level_counters", -1.0), ("level_G", -1.0), ("evidence", math.inf),
])  # fmt: skip
def test_a_damaged_level_is_refused(group, value):
    policy = bank(dim=2)
    state = lived(policy, 20)[0]
    getattr(state, group)[:] = value
    with refused(f"state.{group}"):
        policy.report(dw.State.from_bytes(state.to_bytes()))


def test_levels_are_on_or_off_and_audits_are_shares():
    with refused("levels"):
        bank(levels="yes")
    for wrong in (-1.0, math.nan, math.inf, "1"):
        with refused("audit"):
            bank(audit=wrong)


# --------------------------------------------------------------------------------------------------------- clicks


def clicks(dim=3, link="logistic", **fields):
    """The same for clicks."""
    return dw.make("Auto", dim=dim, link=link, **{"levels": True, **fields})


def base_rate(rounds, swing, *, seed=1, arms=20, link="logistic"):
    """Arms with a constant feature, whose weight in log odds swings five times; preferences stay."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((arms, 2))
    X = np.column_stack([np.ones(arms), z / np.linalg.norm(z, axis=1, keepdims=True)])
    level = swing * np.sin(10.0 * np.pi * np.arange(rounds) / rounds) - 1.0
    theta = np.column_stack([level, np.full(rounds, 1.2), np.full(rounds, 0.9)])
    return Given(arms=X, theta=theta, tape=rng.random(rounds), reward="bernoulli", link=link)


def clicked(policy, rounds, *, swing=4.0, seed=3):
    """A state after so many rounds of clicks whose rate swings; and the arms."""
    rng = np.random.default_rng(seed)
    arms, state = rng.standard_normal((8, policy.dim)), policy.start(5)
    for t in range(rounds):
        arm = policy.choose(state, arms).arm
        odds = arms[arm, 0] + swing * math.sin(t / 12.0)
        policy.learn(state, arms, arm, float(rng.random() < 1.0 / (1.0 + math.exp(-odds))))
    return state, arms


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_a_season_in_the_click_rate_does_not_cost_the_ranking(link):
    world = base_rate(3000, 2.0, link=link)
    with_levels, without = played(clicks(link=link), world), played(clicks(link=link, levels=False), world)
    assert with_levels < 0.4 * without


def test_memories_of_clicks_shorten_without_a_level_and_not_with_one():
    policy, plain = clicks(dim=2), clicks(dim=2, levels=False)
    moving, evidence = [], []
    for seed in range(3, 9):
        assert plain.report(clicked(plain, 500, seed=seed)[0])["memory"] < 64.0
        moving.append(policy.report(clicked(policy, 500, seed=seed)[0]))
        evidence.append(policy.report(clicked(policy, 500, swing=0.0, seed=seed)[0])["evidence"])
    assert all(said["memory"] >= 512.0 and said["level"] <= 64.0 for said in moving)
    assert np.median([said["evidence"] for said in moving]) > 10.0 and max(evidence) < 1.0


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_log_odds_of_two_arms_differ_by_the_estimate(link):
    policy = clicks(dim=2, link=link)
    state, arms = clicked(policy, 120)
    for row in range(policy.lanes, len(policy.rows)):
        state.level_scores[:], state.evidence[:] = 0.0, 2.0
        state.level_scores[row - policy.lanes] = 1.0
        assert policy.played(state) == row
        mean = policy.scores(state, arms).mean
        odds = special.logit(mean) if link == "logistic" else special.ndtri(mean)
        assert odds - odds[0] == pytest.approx((arms - arms[0]) @ policy.theta(state), rel=1e-6, abs=1e-8)


def test_a_click_moves_a_level_by_what_it_weighs():
    # 1000 rounds with hardly any click: each has the weight μ', so a filter of 64 rounds has little information.
    policy = clicks(dim=2)
    state, arms = policy.start(), np.array([[1.0, 0.0], [0.0, 1.0]])
    for t in range(1000):
        policy.learn(state, arms, t % 2, float(t % 50 == 0))
    mass = state.filters[:, point.MASS]
    assert len(mass) == 16 and (mass[[2, 6, 10, 14]] == pytest.approx(64 * 0.02 * 0.98, rel=0.5))


def test_rare_clicks_and_sure_ones_stay_finite():
    for link in ("logistic", "probit"):
        policy = clicks(dim=1, link=link)
        for usual in (0.0, 1.0):
            state, arms = policy.start(), np.array([[1.0], [30.0]])
            for t in range(400):
                policy.learn(state, arms, t % 2, usual if t % 200 else 1.0 - usual)
            policy.advance(state, 1e9)
            policy.learn(state, arms, 0, 1.0 - usual)
            assert all(np.isfinite(one).all() for one in (state.filters, state.level_G, state.level_b))
            assert np.isfinite(policy.scores(state, arms).score).all()
            assert policy.report(dw.State.from_bytes(state.to_bytes())) == policy.report(state)


def test_a_saved_level_of_clicks_goes_on_as_it_was():
    policy = clicks(dim=2)
    state, arms = clicked(policy, 90)
    again = dw.State.from_bytes(state.to_bytes())
    for one in (state, again):
        policy.learn(one, arms, 2, 1.0, ticks=3.0, age=2.0)
        policy.advance(one, 11.0)
    assert again.to_bytes() == state.to_bytes()
    assert "filters" not in clicks(dim=2, levels=False).start().groups()


SCRIPT = """
import math
import numpy as np
import driftwise as dw
for link in ("logistic", "probit"):
    policy = dw.make("Auto", dim=2, link=link, levels=True)
    rng = np.random.default_rng(0)
    arms, state = rng.standard_normal((5, 2)), policy.start(5)
    for t in range(250):
        arm = policy.choose(state, arms).arm
        click = float(rng.random() < 1.0 / (1.0 + math.exp(-arms[arm, 0] - 4.0 * math.sin(t / 12.0))))
        policy.learn(state, arms, arm, click, ticks=1.0 + 2.5 * (t % 9 == 0), age=0.5 * (t % 7 == 0))
    policy.advance(state, 40.0)
    print(policy.played(state) >= policy.lanes, state.to_bytes().hex())
"""


def test_compiled_levels_of_clicks_are_interpreted_ones_to_the_bit():
    compiled, interpreted = both_ways(SCRIPT)
    assert compiled == interpreted and "True" in compiled


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_stepped_levels_of_clicks_are_those_of_compiled_runs(link):
    policy, world = clicks(link=link), base_rate(400, 3.0, link=link)
    fast = dw.simulate({"it": policy}, world, trials=1, seed=2, progress=False)

    class Stepped:
        """The same policy, a call at a time."""

        start, learn, choose = (staticmethod(one) for one in (policy.start, policy.learn, policy.choose))

    slow = dw.simulate({"it": Stepped()}, world, trials=1, seed=2, progress=False)
    assert np.array_equal(fast.regret["it"], slow.regret["it"])
    assert max(fast.memory["it"][0]) >= 64.0


def test_the_meter_tells_the_level_of_clicks_from_preferences():
    believed = {}
    for swing in (4.0, 0.0):
        agent, rng = dw.Agent(clicks(dim=3), rewards=(0.0, 1.0)), np.random.default_rng(0)
        arms = np.column_stack([np.ones(10), rng.standard_normal((10, 2))])
        for t in range(500):
            decision = agent.decide(arms)
            odds = 0.5 * arms[decision.arm, 1] + swing * math.sin(t / 15.0)
            agent.reward(decision.id, float(rng.random() < 1.0 / (1.0 + math.exp(-odds))))
        believed[swing] = agent.drift().level
    assert believed[4.0].believed and believed[4.0].level <= 64.0 and believed[4.0].preferences >= 512.0
    assert not believed[0.0].believed


# --------------------------------------------------------------------------------------------------------- audits


def test_audits_are_as_many_as_promised_and_repeat():
    policy = bank(dim=2, audit=2.0)
    state = lived(policy, 99)[0]
    draws = [policy.audited(state, draw) for draw in range(4000)]
    assert draws == [policy.audited(state, draw) for draw in range(4000)]
    assert np.mean(draws) == pytest.approx(0.2, abs=5 * math.sqrt(0.16 / 4000))  # one false alarm in 10^6
    other = policy.start(6)
    assert all(policy.audited(other, draw) for draw in range(50))  # a/√1 is more than 1
    assert not any(bank(dim=2).audited(lived(bank(dim=2), 5)[0], draw) for draw in range(50))


def tried(rounds=200, **fields):
    """A bank after rounds with two of three arms, the first of which is better; the third was played ten times, long
    ago. Returns its state and the arms."""
    policy = bank(dim=3, **fields)
    state, arms, rng = policy.start(), np.eye(3), np.random.default_rng(1)
    for _ in range(10):
        policy.learn(state, arms, 2, -1.0 + 0.01 * float(rng.standard_normal()))
    for _ in range(rounds):
        policy.learn(state, arms, 0, 1.0 + 0.01 * float(rng.standard_normal()))
        policy.learn(state, arms, 1, 0.2 + 0.01 * float(rng.standard_normal()))
    return policy, state, arms


def test_a_look_is_at_what_is_hidden_and_never_at_the_arm_that_would_be_played():
    policy, state, arms = tried(audit=1e9)  # every decision is a look
    assert policy.scores(state, arms).best().arm == 0
    shares = policy.shares(state, arms, 0, 0)
    assert shares[0] < 1e-200 and shares[2] > 0.9 and shares.sum() == pytest.approx(1.0)


def test_where_no_arm_is_hidden_one_look_in_eight_is_made():
    policy, state, arms = tried(audit=1e9)
    shares = policy.shares(state, arms[:2], 0, 0)
    assert shares == pytest.approx([7 / 8, 1 / 8])


def test_an_unknown_arm_that_pays_more_than_foretold_is_looked_at_again():
    policy, state, arms = tried(audit=1e-9)
    quiet = policy.shares(state, arms, 0, 0).max()
    policy.learn(state, arms, 2, 40.0)
    chances = [1.0 - policy.shares(state, arms, 0, 0).max()]
    for _ in range(14):  # rewards as predicted
        policy.learn(state, arms, 0, 1.0)
        chances.append(1.0 - policy.shares(state, arms, 0, 0).max())
    assert quiet == pytest.approx(1.0, abs=1e-8)
    audited = np.mean([policy.audited(state, draw) for draw in range(200)])
    assert audited == 0.0 and chances[-1] < 1e-8  # 0.8^15 is below 0.05


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_stepped_audits_are_those_of_compiled_runs(link):
    policy = dw.make("Auto", dim=2, audit=3.0, **({} if link == "identity" else {"link": link}))
    rng = np.random.default_rng(4)
    arms, T = rng.standard_normal((6, 2)), 300
    tape = rng.random(T) if link == "logistic" else rng.standard_normal(T)
    reward = "bernoulli" if link == "logistic" else "gaussian"
    world = Given(arms=arms, theta=np.tile([0.6, 0.3], (T, 1)), tape=tape, reward=reward)
    fast = dw.simulate({"it": policy}, world, trials=1, seed=2, progress=False)

    class Stepped:
        """The same policy, a call at a time."""

        start, learn = staticmethod(policy.start), staticmethod(policy.learn)
        choose = staticmethod(policy.choose)

    slow = dw.simulate({"it": Stepped()}, world, trials=1, seed=2, progress=False)
    assert np.array_equal(fast.regret["it"], slow.regret["it"])


def test_the_propensity_of_an_audit_is_exact():
    policy = bank(dim=2, audit=5.0)
    state, arms = lived(policy, 60)
    shares = np.array([policy.share_of(state, arms, arm) for arm in range(len(arms))])
    assert shares.sum() == pytest.approx(1.0)
    counted = np.bincount([policy.choose(state, arms, draw).arm for draw in range(2000)], minlength=len(arms)) / 2000
    assert np.abs(counted - shares).max() < 5 * math.sqrt(0.25 / 2000)
    agent = dw.Agent(policy, rewards=(-9.0, 9.0))
    for _ in range(30):
        decision = agent.decide(arms)
        assert decision.propensity == pytest.approx(policy.share_of(agent.state, arms, decision.arm))
        agent.reward(decision.id, float(arms[decision.arm, 0]))


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_the_propensity_of_a_decision_with_costs_is_exact(link):
    rng = np.random.default_rng(2)
    arms = dw.ArmSet(rng.standard_normal((5, 2)))
    policy = dw.make("Auto", dim=2, audit=5.0, **({} if link == "identity" else {"link": link}))
    state, level = policy.start(), policy.start()
    for t in range(60):
        policy.learn(state, arms, t % 5, float(t % 2))
        policy.learn(level, arms, t % 5, float(t % 20 < 10))
    costs, moved = np.array([0.0, 0.4, 0.1, 0.3, 0.2]), []
    for one in (state, level):
        shares = policy.priced(one, arms, costs, 0)[1]
        assert shares.sum() == pytest.approx(1.0) and (shares > 0.0).all()
        counted = np.bincount([policy.priced(one, arms, costs, draw)[0].arm for draw in range(2000)], minlength=5)
        assert np.abs(counted / 2000 - shares).max() < 5 * math.sqrt(0.25 / 2000)
        moved.append(np.abs(shares - policy.shares(one, arms, 0, 0)).max())
    assert max(moved) > 0.05


@pytest.mark.parametrize("link", ["identity", "logistic"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_prices_of_nothing_change_no_decision(link, epsilon):
    rng = np.random.default_rng(1)
    many = rng.standard_normal((150, 4, 2))
    policy = dw.make("Auto", dim=2, audit=2.0, **({} if link == "identity" else {"link": link}))
    free, priced = (dw.Agent(policy, rewards=(0, 1), epsilon=epsilon, now=lambda: 0.0) for _ in range(2))
    for t, arms in enumerate(many):
        one, other = free.decide(arms, id=f"n{t}"), priced.decide(arms, id=f"n{t}", cost=np.zeros(4))
        assert one == other
        free.reward(one.id, float(t % 2))
        priced.reward(one.id, float(t % 2))
    assert free.state.to_bytes() == priced.state.to_bytes()


@pytest.mark.parametrize("price", [None, [0.0, 0.0, 0.0], [0.0, 0.02, 0.04]], ids=["free", "of nothing", "priced"])
def test_a_risen_arm_is_found_at_any_price(price):
    """Looks are made of decisions with costs too. Without them the third arm was never played again."""
    agent, rng, found = dw.Agent.for_clicks(3, seed=3), np.random.default_rng(3), 0
    arms, rates = dw.ArmSet(np.eye(3)), np.array([0.60, 0.55, 0.50])
    for t in range(3000):
        if t == 1000:
            rates[2] = 0.95
        one = agent.decide(arms, cost=price)
        found += t >= 2000 and one.arm == 2
        agent.reward(one.id, float(rng.random() < rates[one.arm]))
    assert found > 700


def test_audits_find_the_arm_that_nobody_plays():
    T, regret = 4000, {0.0: 0.0, 2.0: 0.0}
    values = np.tile(np.linspace(0.0, 0.5, 6), (T, 1))
    values[T // 2 :, 0] = 1.0
    for seed in range(6):
        tape = np.random.default_rng(seed).standard_normal(T)
        world = Given(arms=np.eye(6), theta=values, tape=tape, noise=0.2)
        for audit in regret:
            regret[audit] += played(bank(dim=6, audit=audit), world, seed)
    assert regret[2.0] < 0.8 * regret[0.0]


# ------------------------------------------------------------------------------------------------------ the meter


def told(swing, rounds=300):
    """The drift meter of an agent where a level swings, and the agent."""
    agent, rng = dw.Agent(dw.make("Auto", dim=3, levels=True), rewards=(-9.0, 9.0)), np.random.default_rng(0)
    arms = np.column_stack([np.ones(10), rng.standard_normal((10, 2))])
    for t in range(rounds):
        decision = agent.decide(arms)
        value = 0.5 * arms[decision.arm, 1] + swing * math.sin(t / 10.0) + 0.1 * rng.standard_normal()
        agent.reward(decision.id, float(value))
    return agent.drift(), agent


def test_the_meter_tells_a_level_from_preferences():
    drift, agent = told(2.0)
    assert drift.level.believed and drift.level.level <= 16.0 and drift.level.preferences >= 512.0
    assert drift.remembers == drift.level.preferences and drift.best < 128.0
    assert drift.level.moves and "a common level moves" in str(drift)
    assert dw.Agent.from_bytes(agent.to_bytes()).drift().level == drift.level
    assert agent.explain(np.eye(3)).memory == drift.remembers
    still, _ = told(0.0)
    assert not still.level.believed and "no common level moves" in str(still)
    assert still.weights.shape == (len(still.at), len(still.memories)) and still.memories[-1] == math.inf


def without_intercept(seed, swing, clicks):
    """The meter of a world whose vectors have no level, while rewards have one; it stays where swing is 0."""
    rng = np.random.default_rng(seed)
    arms, theta = rng.uniform(0.2, 1.0, (8, 3)), 0.4 * rng.standard_normal(3)
    agent = dw.Agent.for_clicks(3, seed=seed) if clicks else dw.Agent.for_values(3, -9, 9, seed=seed)
    for t in range(500):
        one = agent.decide(arms)
        value = 2.0 + arms[one.arm] @ theta + swing * math.sin(t / 15.0) + 0.3 * rng.standard_normal()
        odds = -2.0 - arms[one.arm] @ theta + swing * math.sin(t / 15.0)
        agent.reward(one.id, float(rng.random() < 1.0 / (1.0 + math.exp(-odds))) if clicks else float(value))
    return agent.drift().level


@pytest.mark.parametrize("clicks", [False, True], ids=["values", "clicks"])
def test_a_level_that_stays_is_none_that_moves_where_vectors_have_no_intercept(clicks):
    found = [without_intercept(seed, 0.0, clicks) for seed in range(6)]
    assert any(one.believed for one in found) and not any(one.moves for one in found)
    missing = [str(one) for one in found if one.believed]
    assert all("give each a feature that is always 1" in one and "level moves" not in one for one in missing)
    moving = [without_intercept(seed, 3.0, clicks) for seed in range(3)]
    assert all(one.moves and str(one).startswith("a common level moves") for one in moving)


def test_nobody_is_told_to_add_a_feature_that_is_there():
    agent, rng = dw.Agent.for_clicks(3, seed=0), np.random.default_rng(0)
    for _ in range(300):
        one = agent.decide(np.eye(3))  # three features that add up to 1
        agent.reward(one.id, float(rng.random() < 0.1 + 0.05 * one.arm))
    parts = agent._parts
    told = level_moves(list(parts.meter.recent))
    assert not lacks_level(list(parts.meter.recent)) and told < 1.0
    assert lacks_level([(1, 1, np.ones((1, 1, 1)), 0.0), (2, 2, np.full((1, 1, 1), 2.0), 0.0)])
    quiet = LevelDrift(3.0, True, 64.0, 512.0, 0.5, False)
    assert "no common level moves" in str(quiet)


def test_the_level_of_the_meter_is_its_slow_twin():
    rng, lessons, tick = np.random.default_rng(8), [], 0
    for _ in range(40):
        tick += int(rng.integers(0, 4))
        born, x = tick - int(rng.integers(0, 3)), rng.standard_normal((1, 2, 1))
        lessons.append((tick, born, x, float(rng.standard_normal())))
    assert level_moves(lessons) == pytest.approx(naive_level_moves(lessons), rel=1e-9, abs=1e-9)


def test_the_meter_of_a_bank_without_levels_says_nothing_of_them():
    agent = dw.Agent(dw.make("Auto", dim=2, levels=False), rewards=(-9.0, 9.0))
    for _ in range(20):
        agent.reward(agent.decide(np.eye(2)).id, 1.0)
    assert agent.drift().level is None and len(agent.drift().at) == 20
