"""simulate: paired, repeatable, the same bits however it is run, and small in memory."""

import dataclasses
import io
import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

import driftwise as dw
from refusing import refused

LINEAR = ["LB-WeightUCB", "OFUL", "D-LinUCB", "SW-UCB", "RestartUCB"]


def family(world, **fields):
    """Every linear algorithm of the catalogue, and those that only exist by hand."""
    policies = {name: dw.make(name, **world.facts, **fields) for name in LINEAR}
    policies["as published"] = dw.make("D-LinUCB", **world.facts, two_matrix="as-published", **fields)
    policies["window, weighted"] = dw.make("SW-UCB", **world.facts, radius="weighted", **fields)
    policies["window, two"] = dw.make("SW-UCB", **world.facts, radius="weighted", two_matrix="correct", **fields)
    policies["restart, two"] = dw.make("RestartUCB", **world.facts, two_matrix="correct", **fields)
    return policies


WORLDS = {
    "turn": dw.worlds.Turn(horizon=400, arms=12),
    "fresh arms, d = 5": dw.worlds.Walk(horizon=400, dim=5, arms=9, fresh=True, norm="clip"),
    "d = 1": dw.worlds.Jumps(horizon=400, dim=1, arms=6, norm="max", radius=2.0),
    "bernoulli": dw.worlds.Turn(horizon=400, arms=7, reward="bernoulli", norm="clip"),
    "poisson": dw.worlds.StopAndGo(horizon=400, arms=7, reward="poisson", norm="max"),
    "one arm": dw.worlds.Turn(horizon=60, arms=1),
}
worlds = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def same(one, other):
    """Both results bit for bit."""
    assert one.regret.keys() == other.regret.keys()
    for name in one.regret:
        np.testing.assert_array_equal(one.regret[name], other.regret[name])
        np.testing.assert_array_equal(one.arms[name], other.arms[name])


class Mine:
    """A policy of the user's own: ridge regression and nothing else."""

    def __init__(self, dim, answer=int):
        self.dim, self.answer = dim, answer

    def start(self, seed=0):
        return {"V": np.eye(self.dim), "b": np.zeros(self.dim)}

    def choose(self, state, arms):
        return self.answer(np.argmax(arms @ np.linalg.solve(state["V"], state["b"])))

    def learn(self, state, arms, arm, reward):
        state["V"] += np.outer(arms[arm], arms[arm])
        state["b"] += reward * arms[arm]


class Noting:
    """A built-in policy with the interface of a user's own: start, choose and learn, and a record of its input."""

    def __init__(self, policy):
        self.policy, self.seen, self.seeds = policy, [], []

    def start(self, seed=0):
        self.seeds.append(seed)
        return self.policy.start(seed)

    def choose(self, state, arms):
        return self.policy.choose(state, arms)

    def learn(self, state, arms, arm, reward):
        self.seen.append((arms.tobytes(), reward))
        self.policy.learn(state, arms, arm, reward)


@worlds
def test_a_stepped_run_plays_the_arms_of_the_compiled_one(world):
    policies = family(world)
    same(
        dw.simulate(policies, world, trials=2, seed=5, jobs=1),
        dw.simulate(policies, world, trials=2, seed=5, jobs=1, stepped=True),
    )


@worlds
def test_threads_change_no_bit(world):
    policies = family(world) | {"mine": Mine(world.dim)}
    one, two = (dw.simulate(policies, world, trials=5, seed=1, jobs=jobs) for jobs in (1, 2))
    same(one, two)
    same(two, dw.simulate(policies, world, trials=5, seed=1))


@worlds
def test_two_names_for_one_policy_meet_the_same_tape(world):
    policy = dw.make("LB-WeightUCB", **world.facts)
    result = dw.simulate({"one": policy, "other": policy}, world, trials=3)
    assert (result.arms["one"] == result.arms["other"]).all()
    assert (result.regret["one"] == result.regret["other"]).all()


def test_company_changes_nothing_for_a_policy():
    world = WORLDS["fresh arms, d = 5"]
    policies = family(world)
    together = dw.simulate(policies, world, trials=2)
    for name, policy in policies.items():
        alone = dw.simulate({name: policy}, world, trials=2)
        assert (alone.arms[name] == together.arms[name]).all()


def test_all_policies_of_a_trial_see_the_same_arms_and_the_same_noise():
    world = dw.worlds.Walk(horizon=100, arms=5, fresh=True)
    greedy = Noting(dw.make("OFUL", **world.facts, exploration=0.0))
    bold = Noting(dw.make("OFUL", **world.facts))
    result = dw.simulate({"greedy": greedy, "bold": bold}, world, trials=2, jobs=1)
    assert [arms for arms, _ in greedy.seen] == [arms for arms, _ in bold.seen]
    theta = np.tile(world.theta(), (2, 1))
    noise = {}
    for name, policy in {"greedy": greedy, "bold": bold}.items():
        played = result.arms[name].ravel()
        mean = [np.frombuffer(x).reshape(5, 2)[a] @ h for (x, _), a, h in zip(policy.seen, played, theta, strict=True)]
        noise[name] = np.array([reward for _, reward in policy.seen]) - mean
    np.testing.assert_allclose(noise["greedy"], noise["bold"], atol=1e-12)
    assert (result.arms["greedy"] != result.arms["bold"]).any()
    assert greedy.seeds == bold.seeds
    assert len(set(greedy.seeds)) == 2


def test_seeds_and_trials_give_other_tapes_and_more_trials_keep_the_first_ones():
    world = WORLDS["turn"]
    policy = dw.make("LB-WeightUCB", **world.facts)
    few, many, other = (
        dw.simulate(policy, world, trials=trials, seed=seed).regret["LinearUCB"]
        for trials, seed in [(2, 0), (4, 0), (2, 1)]
    )
    assert (few == many[:2]).all()
    assert len(np.unique(np.concatenate([many, other])[:, -1])) == 6


@pytest.mark.parametrize("horizon", [1, 6, 7, 8, 400])
def test_what_is_recorded_is_part_of_the_whole(horizon, monkeypatch):
    monkeypatch.setattr("driftwise.worlds.base._ROUNDS", 10)  # records must line up across stretches
    world = dw.worlds.Turn(horizon=horizon, arms=5)
    policies = {"ours": dw.make("OFUL", **world.facts), "mine": Mine(2)}
    whole, some, last = (dw.simulate(policies, world, trials=3, record=r) for r in ("all", 7, "last"))
    assert whole.rounds.tolist() == list(range(1, horizon + 1))
    assert some.rounds.tolist() == sorted({*range(7, horizon + 1, 7), horizon})
    assert last.rounds.tolist() == [horizon]
    for part in (whole, some, last):
        for name in policies:
            assert part.regret[name].shape == part.arms[name].shape == (3, len(part.rounds))
            assert (part.regret[name] == whole.regret[name][:, part.rounds - 1]).all()
            assert (part.arms[name] == whole.arms[name][:, part.rounds - 1]).all()
            assert (part.final(name) == whole.regret[name][:, -1]).all()


def test_the_size_of_a_stretch_changes_no_choice(monkeypatch):
    for world in (WORLDS["turn"], WORLDS["fresh arms, d = 5"]):
        policies = family(world)
        before = dw.simulate(policies, world, trials=2)
        with monkeypatch.context() as patch:
            patch.setattr("driftwise.worlds.base._ROUNDS", 7)
            same(before, dw.simulate(policies, world, trials=2))


@worlds
def test_regret_is_what_the_best_arm_would_have_brought_more(world):
    link = {"gaussian": lambda z: z, "bernoulli": lambda z: 1 / (1 + np.exp(-z)), "poisson": np.exp}[world.reward]
    result = dw.simulate(dw.make("SW-UCB", **world.facts), world, trials=1, seed=8)
    parts = list(world.tapes(seed=8, trial=0))
    theta = np.concatenate([part.theta for part in parts])
    arms = np.concatenate([part.arms for part in parts]) if world.fresh else parts[0].arms
    means = link(np.einsum("tdn,td->tn", np.broadcast_to(arms, (world.horizon, *arms.shape[1:])), theta))
    played = result.arms["LinearUCB"][0]
    lost = means.max(axis=1) - means[np.arange(world.horizon), played]
    np.testing.assert_allclose(result.regret["LinearUCB"][0], np.cumsum(lost), atol=1e-9)
    assert (np.diff(result.regret["LinearUCB"][0]) >= 0.0).all()


@pytest.mark.parametrize("answer", [int, np.int64, lambda arm: dw.Choice(int(arm), 0.0, 0.0, 0.0)])
def test_a_policy_of_ones_own_runs_whatever_shape_its_answer_has(answer):
    world = WORLDS["fresh arms, d = 5"]
    result = dw.simulate({"mine": Mine(5, answer)}, world, trials=3)
    equal = dw.LinearUCB(dim=5, memory=dw.Keep(), lam=1.0, delta=0.1, exploration=0.0)
    theirs = dw.simulate({"mine": equal}, world, trials=3)
    assert (result.arms["mine"] == theirs.arms["mine"]).all()
    np.testing.assert_allclose(result.regret["mine"], theirs.regret["mine"], rtol=1e-12)


def test_a_single_policy_needs_no_name_and_gets_that_of_its_class():
    world = WORLDS["one arm"]
    assert list(dw.simulate(Mine(2), world, trials=1).regret) == ["Mine"]
    result = dw.simulate(dw.make("OFUL", **world.facts), world, trials=1)
    assert (result.regret["LinearUCB"] == 0.0).all()  # a single arm is always the best


def test_a_policy_of_ones_own_cannot_change_what_others_see():
    class Vandal(Mine):
        def choose(self, state, arms):
            arms[:] = 0.0
            return 0

    for world in (WORLDS["turn"], WORLDS["d = 1"], WORLDS["one arm"]):
        with pytest.raises(ValueError, match="read-only"):
            dw.simulate(Vandal(world.dim), world, trials=1)


@pytest.mark.parametrize("wrong", [-1, 12, 1.5, None, math.nan, "0"])
def test_an_arm_that_is_not_there_is_one_sentence(wrong):
    with pytest.raises(dw.BadInput, match="choose: wanted an arm from 0 to 11"):
        dw.simulate(Mine(2, lambda arm: wrong), WORLDS["turn"], trials=1)


def test_an_error_in_a_policy_of_ones_own_comes_out_of_threads_too():
    class Broken(Mine):
        def learn(self, state, arms, arm, reward):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        dw.simulate(Broken(2), WORLDS["one arm"], trials=4, jobs=2)


def peak_of(action):
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("world", "trials"),
    [
        (dw.worlds.Turn(horizon=10**6, arms=10), 1),
        (dw.worlds.Turn(horizon=20_000, arms=50, fresh=True), 2),
        (dw.worlds.Walk(horizon=2_000, dim=20, arms=500, fresh=True), 2),
    ],
    ids=["a million rounds", "fresh arms", "many fresh arms"],
)
def test_memory_does_not_grow_with_the_horizon_when_only_the_end_is_kept(world, trials):
    policies = {name: dw.make(name, **world.facts) for name in ("LB-WeightUCB", "OFUL")}
    results = []
    # A compiler allocates too.
    dw.simulate(policies, dataclasses.replace(world, horizon=20), trials=trials, jobs=2, record="last")
    peak = peak_of(lambda: results.append(dw.simulate(policies, world, trials=trials, jobs=2, record="last")))
    assert peak < 50
    assert results[0].regret["OFUL"].shape == (trials, 1)


def test_many_trials_fit_in_memory_too():
    world = dw.worlds.Turn(horizon=20, arms=5)
    policy = dw.make("OFUL", **world.facts)
    assert peak_of(lambda: dw.simulate(policy, world, trials=2_000, jobs=2, record="last")) < 5


def test_seconds_are_the_rounds_alone():
    world = dw.worlds.Turn(horizon=2_000)
    policies = {"ours": dw.make("OFUL", **world.facts), "mine": Mine(2)}
    result = dw.simulate(policies, world, trials=3, jobs=1)
    for name in policies:
        assert result.seconds[name].shape == (3,)
        assert (result.seconds[name] > 0.0).all()
    assert (result.seconds["ours"] < result.seconds["mine"]).all()  # nothing is compiled while the clock runs


def test_the_interval_is_students_and_paired_when_asked():
    world = WORLDS["turn"]
    result = dw.simulate(
        {"a": dw.make("LB-WeightUCB", **world.facts), "b": dw.make("OFUL", **world.facts)}, world, trials=8
    )
    a, b = result.final("a"), result.final("b")
    mean, width = result.interval("a")
    expected = stats.t.interval(0.95, 7, loc=a.mean(), scale=stats.sem(a))
    assert (mean - width, mean + width) == pytest.approx(expected)
    mean, width = result.interval("a", against="b")
    paired = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (mean - width, mean + width) == pytest.approx((paired.low, paired.high))
    alone = dw.simulate({"a": dw.make("OFUL", **world.facts)}, world, trials=1)
    assert alone.interval("a") == (alone.final("a")[0], math.inf)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_is_silent_when_stderr_is_no_terminal(capfd):
    world = dw.worlds.Turn(horizon=600_000, arms=2)
    policy = dw.make("OFUL", **world.facts)
    dw.simulate({"a": policy, "b": policy}, world, trials=1, record="last")
    assert capfd.readouterr() == ("", "")


def test_the_bar_is_on_stderr_alone_and_can_be_had_or_refused(monkeypatch, capfd):
    world = dw.worlds.Turn(horizon=600_000, arms=2)
    policies = {name: dw.make("OFUL", **world.facts) for name in "ab"}

    def shown(world, **options):
        screen = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr", screen)
            dw.simulate(policies, world, trials=1, record="last", **options)
        return screen.getvalue()

    assert "rounds" in shown(world)
    assert shown(world, progress=False) == ""
    short = dw.worlds.Turn(horizon=10)
    assert shown(short) == ""
    assert "rounds" in shown(short, progress=True)
    assert capfd.readouterr() == ("", "")


def test_the_bar_changes_no_number(capfd):
    world = WORLDS["turn"]
    policies = family(world)
    same(
        dw.simulate(policies, world, trials=4, jobs=2, progress=True),
        dw.simulate(policies, world, trials=4, jobs=2, progress=False),
    )


COUNTS = dw.worlds.Still(horizon=30, arms=4, reward="poisson", radius=0.5)
CLICKS = dw.worlds.Still(horizon=30, arms=4, reward="bernoulli")


def made_for(world, name, **fields):
    return dw.make(name, dim=2, horizon=world.horizon, path_length=0.1, **fields)


@pytest.mark.parametrize(
    ("world", "name", "fields", "words"),
    [
        (COUNTS, "GLB-WeightUCB", {}, ("logistic", "poisson")),
        (CLICKS, "GLB-WeightUCB", {"link": "probit"}, ("probit", "logistic")),
        (CLICKS, "BOB+SCB-WeightUCB", {"link": "probit", "S": 0.9}, ("probit", "logistic")),
        (dw.worlds.Still(horizon=30, link="logistic"), "SCB-WeightUCB", {}, ("gaussian rewards", "[0, 1]")),
        (CLICKS, "SCB-WeightUCB", {"m": 0.5}, ("bernoulli rewards", "[0, 0.5]")),
    ],
)
def test_a_policy_is_not_played_against_rewards_it_is_not_for(world, name, fields, words):
    with refused("policies['it']", *words):
        dw.simulate({"it": made_for(world, name, **fields)}, world, trials=1)


@pytest.mark.parametrize("world", [COUNTS, CLICKS, dw.worlds.Still(horizon=30, link="probit")])
def test_linear_policies_play_every_world(world):
    names = ("LB-WeightUCB", "Bank+LB-WeightUCB")
    result = dw.simulate({name: made_for(world, name) for name in names}, world, trials=1)
    assert set(result.regret) == set(names)


def test_a_policy_plays_a_world_with_its_link():
    probit = dw.worlds.Still(horizon=30, arms=4, reward="bernoulli", link="probit")
    for world, fields in ((COUNTS, {"link": "poisson", "R": 1.0}), (probit, {"link": "probit"}), (CLICKS, {"m": 2.0})):
        result = dw.simulate({"it": made_for(world, "GLB-WeightUCB", **fields)}, world, trials=1)
        assert result.regret["it"].shape == (1, 30)
