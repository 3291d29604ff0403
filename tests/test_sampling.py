"""Rules that sample: slow twins with the same normal numbers, and the properties of draws."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import driftwise as dw
from driftwise import checks, research
from driftwise.kernels.chance import normal, uniform
from naive_sampling import NaiveGLMTSL, NaiveLinTS, NaiveRandLinUCB
from refusing import refused
from replaying import in_the_ball, memories

KNOWN = {"horizon": 300, "path_length": 1.5}
ROWS = ["D-LinTS", "D-RandLinUCB", "D-GLM-TSL"]
SEED = 5 + (9 << 32)


def normals(seed, draw, count, attempt=0):
    """The normal numbers of a state with this seed."""
    return np.array([normal(seed & 0xFFFFFFFF, seed >> 32, draw, i, 2 * attempt) for i in range(count)])


# ------------------------------------------------------------------------------------------------ normal numbers


def test_normal_numbers_are_box_and_mullers_of_keyed_uniforms():
    for draw, i, c in [(0, 0, 0), (7, 3, 0), (2**40 + 1, 1, 6)]:
        u, v = uniform(1, 2, draw, i, c), uniform(1, 2, draw, i, c + 1)
        assert normal(1, 2, draw, i, c) == pytest.approx(math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v))


@pytest.mark.parametrize("counter", range(5), ids=["low", "high", "draw", "feature", "try"])
def test_normal_numbers_are_normal_along_every_counter_and_not_alike(counter):
    # Two tests of 20,000 numbers for each counter, each with a false alarm of 1e-6.
    def along(k):
        given = [3, 4, 5, 6, 0]
        given[counter] += 2 * k if counter == 4 else k
        return normal(*given)

    found = np.array([along(k) for k in range(20_000)])
    assert stats.kstest(found, "norm").pvalue > 1e-6
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 4.9 / math.sqrt(len(found))


# ------------------------------------------------------------------------------------------------ the slow twins

LINEAR = {  # fields of the fast policy, class and fields of the slow one
    "D-LinTS": ({}, NaiveLinTS, {"bonus": "two"}),
    "D-LinTS, one matrix": ({"two_matrix": None}, NaiveLinTS, {}),
    "D-LinTS at the theorem's radius": ({"radius": "weighted"}, NaiveLinTS, {"bonus": "two", "scale": "weighted"}),
    "D-RandLinUCB": ({"drawn": "multiplier", "radius": "weighted"}, NaiveRandLinUCB, {"bonus": "two"}),
    "D-RandLinUCB, one matrix": (
        {"drawn": "multiplier", "radius": "weighted", "two_matrix": None}, NaiveRandLinUCB, {},
    ),
    "D-RandLinUCB, optimistic": (
        {"drawn": "multiplier", "radius": "weighted", "optimistic": True}, NaiveRandLinUCB,
        {"bonus": "two", "optimistic": True},
    ),
    "a multiplier of the noise": (
        {"drawn": "multiplier", "radius": "noise"}, NaiveRandLinUCB, {"bonus": "two", "scale": "noise"},
    ),
}  # fmt: skip


def linear_twins(name, dim, kind="fade", lam=0.7, **numbers):
    fast, slow, more = LINEAR[name]
    ours, theirs = memories(kind, 0.95, 20)
    common = {"dim": dim, "lam": lam, "delta": 0.05, "S": 0.7, "L": 1.5, "R": 0.4, "exploration": 0.8, **numbers}
    return research.LinearSampling(memory=ours, **common, **fast), slow(memory=theirs, **common, **more)


def click_twins(dim, kind="fade", **fields):
    ours, theirs = memories(kind, 0.95, 20)
    common = {"dim": dim, "S": 2.0, "exploration": 0.8, **fields}
    return research.PosteriorSampling(memory=ours, L=1.5, horizon=100, **common), NaiveGLMTSL(memory=theirs, **common)


def same_draw(fast, slow, state, arms, draw, tolerance):
    """The arm played is naive's best by the same normals, or ties with it; mean and bonus of every arm agree."""
    choice, scores = fast.choose(state, arms, draw), fast.scores(state, arms, draw)
    number = 1 + int(state.clock) if draw is None else draw
    mean, bonus = slow.drawn(arms, normals(SEED, number, arms.shape[1]))
    close = tolerance * np.maximum(1.0, np.abs(mean + bonus))
    assert (np.abs(scores.mean - mean) <= close).all() and (np.abs(scores.bonus - bonus) <= close).all()
    ranked = np.sort(mean + bonus)[::-1]
    assert (mean + bonus)[choice.arm] >= ranked[0] - close[choice.arm]
    if len(ranked) == 1 or ranked[0] - ranked[1] > close.max():
        assert choice.arm == int(np.argmax(mean + bonus))
    return choice.arm


def replayed(fast, slow, dim, *, fresh, tolerance, clicks, rounds=60):
    """Choices by the clock and by draw numbers, rewards that come late or never."""
    rng = np.random.default_rng([dim, fresh])
    state, arms, theta = fast.start(SEED), in_the_ball(rng, 8, dim, 1.5), 0.7 * in_the_ball(rng, 1, dim)[0]
    for t in range(rounds):
        arms = in_the_ball(rng, 8, dim, 1.5) if fresh else arms
        same_draw(fast, slow, state, arms, 1000 * t + 7, tolerance)
        arm = same_draw(fast, slow, state, arms, None, tolerance)
        mean = arms[arm] @ theta
        reward = float(rng.random() < 1 / (1 + np.exp(-mean))) if clicks else mean + 0.4 * rng.standard_normal()
        late = {"ticks": 0.5 * (t % 3), "age": float(t % 4)} if t % 5 == 0 else {}
        fast.learn(state, arms, arm, reward, **late)
        slow.learn(arms, arm, reward, **late)
        if t % 7 == 0:
            fast.advance(state, 1.5)
            slow.advance(1.5)
        theta = theta + 0.02 * rng.standard_normal(dim)


@pytest.mark.parametrize("fresh", [False, True], ids=["fixed arms", "fresh arms"])
@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("kind", ["keep", "fade", "window", "restart"])
@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_choice_is_that_of_the_formula_with_the_same_normals(name, kind, dim, fresh):
    replayed(*linear_twins(name, dim, kind), dim, fresh=fresh, tolerance=1e-9, clicks=False)


@pytest.mark.parametrize("link", ["logistic", pytest.param("probit", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "estimate"), [
    ("keep", "exact"), ("fade", "exact"), ("window", "exact"), ("restart", "exact"),
    ("keep", "one-pass"), ("fade", "one-pass"), ("restart", "one-pass"),
])  # fmt: skip
def test_every_choice_of_clicks_is_that_of_the_laplace_posterior_with_the_same_normals(kind, estimate, link):
    for dim, fresh in [(1, False), (3, True)]:
        twins = click_twins(dim, kind, link=link, estimate=estimate)
        replayed(*twins, dim, fresh=fresh, tolerance=1e-6, clicks=True, rounds=30)


# ------------------------------------------------------------------------------------------------ what is drawn


def taught(fast, slow, dim, clicks):
    """Both after forty rewards of fixed arms."""
    rng, state = np.random.default_rng(2), fast.start(SEED)
    arms = in_the_ball(rng, 8, dim, 1.5)
    for t in range(40):
        reward = float(rng.random() < 0.6) if clicks else rng.standard_normal()
        fast.learn(state, arms, t % 8, reward)
        slow.learn(arms, t % 8, reward)
    return state


@pytest.mark.parametrize("name", ["D-LinTS", "D-LinTS, one matrix", "clicks"])
def test_what_is_drawn_has_the_mean_and_covariance_of_the_formula(name):
    dim, count = 3, 20_000
    fast, slow = click_twins(dim) if name == "clicks" else linear_twins(name, dim)
    state = taught(fast, slow, dim, name == "clicks")
    basis = np.eye(dim)  # arms that show θ̃ itself
    found = np.array([fast.scores(state, basis, draw).score for draw in range(count)])
    if name == "clicks":
        found = np.log(found / (1 - found))
    centre, wanted = slow.theta_hat() if name == "clicks" else slow.theta(), slow.covariance()
    white = np.linalg.solve(np.linalg.cholesky(wanted), (found - centre).T).T
    # Whitened, a mean has a standard error of 1/√n, a second moment at most √(2/n); 9 numbers, 5 of these: 1e-5.
    assert np.abs(white.mean(axis=0)).max() < 5 / math.sqrt(count)
    assert np.abs(white.T @ white / count - np.eye(dim)).max() < 5 * math.sqrt(2 / count)
    off = np.linalg.solve(np.linalg.cholesky(1.1**2 * wanted), (found - centre).T).T  # an error of a tenth fails
    assert np.abs(off.T @ off / count - np.eye(dim)).max() > 5 * math.sqrt(2 / count)


@pytest.mark.parametrize("name", ["D-RandLinUCB", "D-RandLinUCB, one matrix", "D-RandLinUCB, optimistic"])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_propensities_of_one_multiplier_are_exact(name, dim):
    rng = np.random.default_rng(dim)
    for exploration in (0.05, 0.8, 3.0):
        fast, slow = linear_twins(name, dim, exploration=exploration)
        state = taught(fast, slow, dim, False)
        arms = in_the_ball(rng, 12, dim, 1.5)
        arms = np.concatenate([arms, arms[:2], np.zeros((1, dim))])  # twice the same, and nothing at all
        shares, tries = fast.propensities(state, arms)
        assert tries == 0 and shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert shares == pytest.approx(slow.shares(arms), abs=1e-9)
        count = 4000  # 15 shares, 5 standard errors: 1e-5
        chosen = [fast.choose(state, arms, draw).arm for draw in range(count)]
        counted = np.bincount(chosen, minlength=len(arms)) / count
        assert (np.abs(counted - shares) <= 5 * np.sqrt(shares * (1 - shares) / count) + 1e-9).all()


@pytest.mark.parametrize("optimistic", [False, True])
def test_far_tails_keep_their_digits(optimistic):
    policy = dw.make("D-RandLinUCB", dim=2, **KNOWN, exploration=0.05, optimistic=optimistic)
    state = policy.start()
    for _ in range(60):
        policy.learn(state, np.eye(2), 0, 1.0)
    shares, _ = policy.propensities(state, np.eye(2))
    mean, width = (getattr(policy.scores(state, np.eye(2), 0), name) for name in ("mean", "bonus"))
    z = normals(0, 0, 1)[0]
    cut = (mean[0] - mean[1]) / ((width[1] - width[0]) / (abs(z) if optimistic else z))
    wanted = stats.norm.sf(cut) * (2 if optimistic else 1)
    assert shares[1] == pytest.approx(wanted, rel=1e-9) and 0.0 < wanted < 1e-6


def test_nothing_explored_is_played_for_sure():
    for optimistic in (False, True):
        policy = dw.make("D-RandLinUCB", dim=2, **KNOWN, exploration=0.0, optimistic=optimistic)
        state = policy.start()
        policy.learn(state, np.eye(2), 1, 1.0)
        assert policy.propensities(state, np.eye(2)).shares.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", ["D-LinTS", "clicks"])
def test_the_propensities_of_thompson_sampling_are_counted_with_its_own_draw_among_them(name):
    dim = 3
    fast, slow = click_twins(dim) if name == "clicks" else linear_twins(name, dim)
    state, arms = taught(fast, slow, dim, name == "clicks"), in_the_ball(np.random.default_rng(3), 6, dim, 1.5)
    for draw in (0, 11):
        shares, tries = fast.propensities(state, arms, draw)
        tops = [slow.drawn(arms, normals(SEED, draw, dim, attempt)) for attempt in range(1000)]
        wanted = np.bincount([int(np.argmax(mean + bonus)) for mean, bonus in tops], minlength=6) / 1000
        assert tries == 1000 and shares == pytest.approx(wanted, abs=1e-12)
        assert shares[fast.choose(state, arms, draw).arm] >= 1 / 1000
    inverse = []
    rare = int(np.argmin(np.where(shares > 0.01, shares, 1.0)))
    for draw in range(2000):
        if fast.choose(state, arms, draw).arm == rare:
            inverse.append(1 / fast.propensities(state, arms, draw).shares[rare])
    # Importance weights: 1/share, summed over the draws that play an arm, is the number of draws (5 standard errors).
    assert len(inverse) > 20
    assert abs(sum(inverse) - 2000) < 5 * math.sqrt(len(inverse)) * np.mean(inverse)


# ------------------------------------------------------------------------------------------------ draws and agents


@pytest.mark.parametrize("name", ROWS)
def test_a_draw_is_a_function_of_key_and_number_alone(name):
    policy, arms = dw.make(name, dim=3, **KNOWN), in_the_ball(np.random.default_rng(0), 9, 3)
    one, other = policy.start(1), policy.start(1)
    policy.learn(one, arms, 2, 1.0)
    policy.learn(other, arms, 2, 1.0)
    first = [policy.choose(one, arms, draw) for draw in range(50)]
    assert first[::-1] == [policy.choose(other, arms, draw) for draw in range(49, -1, -1)]
    assert len({choice.arm for choice in first}) > 1
    assert policy.choose(one, arms) == policy.choose(one, arms, 2)  # it is the second round
    assert first != [policy.choose(policy.start(2), arms, draw) for draw in range(50)]
    for bad in (-1, 2**63, 1.5, "1", True):
        with refused("draw"):
            policy.choose(one, arms, bad)


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_simulations_repeat_and_other_seeds_draw_otherwise(name, stepped):
    world = dw.worlds.Turn(dim=2, arms=10, horizon=60, reward="bernoulli")
    policy = dw.make(name, **world.facts)
    one, two, other = (
        dw.simulate({"it": policy}, world, trials=2, seed=seed, stepped=stepped).arms["it"] for seed in (3, 3, 4)
    )
    assert (one == two).all() and (one != other).any()


@pytest.mark.parametrize("name", ROWS)
def test_an_agent_draws_by_decision_and_says_its_propensity(name):
    policy, arms = dw.make(name, dim=3, **KNOWN), in_the_ball(np.random.default_rng(0), 9, 3)
    agent = dw.Agent(policy, rewards=(0, 1), epsilon=0.2, seed=3)
    made = [agent.decide(arms) for _ in range(60)]
    state = policy.start(3)
    assert len({one.arm for one in made}) > 1  # between rewards
    for one in made:
        choice, (shares, tries) = policy.choose(state, arms, one.seq), policy.propensities(state, arms, one.seq)
        assert one.explored or one.arm == choice.arm
        assert one.propensity == pytest.approx(0.2 / 9 + 0.8 * shares[one.arm], abs=1e-15)
        assert one.draws == tries == (0 if name == "D-RandLinUCB" else 1000)
        scores = policy.scores(state, arms, one.seq)
        assert (one.mean, one.bonus) == (scores.mean[one.arm], scores.bonus[one.arm])
    assert any(one.bonus < 0 for one in made)
    for one in made:
        agent.reward(one.id, 1.0)
    loaded = dw.Agent.from_bytes(agent.to_bytes())
    before, after = agent.decide(arms, id="next"), loaded.decide(arms, id="next")
    assert before.arm == after.arm and before.propensity == after.propensity
    assert agent.explain(arms).chosen == agent.policy.choose(agent.state, arms, agent._parts.seq + 1).arm
    assert len(agent.drift().weights)
    with refused("cost", "sample"):
        agent.decide(arms, cost=np.zeros(9))


def test_bases_that_sample_are_refused_by_whoever_adapts():
    linear = research.LinearSampling(dim=2, memory=dw.Keep(), lam=1.0)
    clicks = research.PosteriorSampling(dim=2, memory=dw.Keep(), estimate="one-pass")
    for base in (linear, clicks):
        with refused("base", "sample"):
            research.FadeBank(base=base)
        for wrap in (research.Master, research.BanditOverBandit):
            with refused("base", "sample"):
                wrap(base=base, horizon=100)
    with refused("name"):
        dw.make("Bank+D-LinTS", dim=2)


def test_bad_fields_get_the_sentence():
    good = {"dim": 2, "memory": dw.Fade(0.1), "lam": 1.0}
    with refused("drawn", "multiplier"):
        research.LinearSampling(**good, drawn="arm")
    with refused("optimistic"):
        research.LinearSampling(**good, drawn="multiplier", optimistic=2)
    with refused("optimistic", "multiplier"):
        research.LinearSampling(**good, optimistic=True)
    with refused("radius", "noise"):
        research.LinearSampling(**good, radius="posterior")
    with refused("R"):
        research.LinearSampling(**good, R="learn")
    with refused("lam"):
        research.LinearSampling(dim=2, memory=dw.Keep())
    link = research.Link(mean=np.tanh, slope=np.cosh, k=1.0, c=0.1)
    with refused("link"):
        research.PosteriorSampling(dim=2, memory=dw.Fade(0.1), link=link)
    assert dw.make("D-GLM-TSL", dim=2, **KNOWN, L=None, S=None).reach > 1e50


# ------------------------------------------------------------------------------------------------ the law of checks


@dataclasses.dataclass
class Says:
    """A policy of the user's own that plays arm 1 with probability `plays`, and records `says`."""

    plays: float
    says: float
    deterministic = False

    def start(self, seed=0):
        return [seed]

    def choose(self, state, arms, draw=None):
        return int(uniform(state[0], 0, draw or 0, 0, 0) < self.plays)

    def learn(self, state, arms, arm, reward):
        pass

    def propensities(self, state, arms, draw=None):
        return np.array([1.0 - self.says, self.says] + [0.0] * (len(arms) - 2))


def law(policy, dim=2):
    checks.propensities_are_the_shares_of_draws(policy, checks._Stream(dim, 20, 0, 1.0))


def test_a_propensity_that_is_not_the_share_of_draws_is_found():
    law(Says(0.3, 0.3))
    with pytest.raises(AssertionError, match=r"propensity 0\.67"):
        law(Says(0.3, 0.33))


@pytest.mark.parametrize("name", [*ROWS, "Auto"])
def test_propensities_are_the_shares_of_draws_in_every_state(name):
    law(dw.make(name, dim=2, **(KNOWN if name != "Auto" else {})))


@pytest.mark.parametrize("optimistic", [False, True])
def test_arms_that_nearly_tie_are_played_as_often_as_is_recorded(optimistic):
    """Widths that differ by a rounding: the sums of means and bonuses tied, and a tie goes to the first arm."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 3))
    arms = dw.ArmSet(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    for name in ("D-RandLinUCB", "one matrix"):
        more = {"two_matrix": None} if name == "one matrix" else {}
        policy = research.LinearSampling(
            dim=3, memory=dw.Fade(0.1), lam=1.0, drawn="multiplier", exploration=0.8, optimistic=optimistic, **more
        )
        state = policy.start(4)
        for silence in (0.0, 200.0):  # a new state, and one that has forgotten nearly everything
            if silence:
                policy.learn(state, arms, 3, 1.0)
                policy.advance(state, silence)
            shares = policy.propensities(state, arms).shares
            counted = np.bincount([policy.choose(state, arms, draw).arm for draw in range(10_000)], minlength=30) / 1e4
            assert np.abs(counted - shares).max() < 5 * math.sqrt(0.25 / 1e4)
