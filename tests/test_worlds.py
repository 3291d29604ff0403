"""Worlds: their facts match their tapes, and tapes do not depend on the length of a stretch."""

import collections
import copy
import itertools
import math

import numpy as np
import pytest
from scipy import stats

import driftwise as dw
from driftwise import theory
from driftwise.worlds import Given, Jumps, Still, StopAndGo, Turn, Walk, base

HORIZON = 403  # not a multiple of a stretch
WORLDS = {
    "turn": Turn(horizon=HORIZON),
    "turn backwards, d = 5": Turn(horizon=HORIZON, dim=5, turns=-2.5, radius=3.0),
    "stop and go": StopAndGo(horizon=HORIZON, turns=0.25, go=(0.2, 0.7)),
    "walk": Walk(horizon=HORIZON, step=0.05, radius=2.0),
    "walk, d = 1": Walk(horizon=HORIZON, dim=1, step=0.8),
    "walk, d = 20": Walk(horizon=HORIZON, dim=20, step=0.02, path_seed=5),
    "jumps": Jumps(horizon=HORIZON, jumps=7),
    "jumps, d = 1": Jumps(horizon=HORIZON, jumps=9, dim=1),
    "jumps in the first and last round": Jumps(horizon=HORIZON, jumps=2, at=(1, HORIZON - 1), dim=3),
    "still": Still(horizon=HORIZON, dim=3, radius=0.5),
    "still, d = 1": Still(horizon=HORIZON, dim=1),
    "fresh arms": Walk(horizon=HORIZON, fresh=True, arms=7, dim=3),
    "given": Given(arms=np.eye(2), theta=np.random.default_rng(0).standard_normal((HORIZON, 2))),
}
worlds = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def whole_tape(world, seed=0, trial=0):
    """All stretches joined."""
    parts = list(world.tapes(seed, trial))
    arms = np.concatenate([p.arms for p in parts]) if world.fresh else parts[0].arms
    return arms, *(np.concatenate([getattr(p, name) for p in parts]) for name in ("theta", "draws", "best"))


@worlds
def test_a_world_has_the_shapes_it_says(world):
    arms, theta, draws, best = whole_tape(world)
    assert arms.shape == (HORIZON if world.fresh else 1, world.dim, world.arms)
    assert theta.shape == world.theta().shape == (HORIZON, world.dim)
    assert draws.shape == best.shape == (HORIZON,)
    assert (theta == world.theta()).all()
    assert all(part.flags.c_contiguous and part.dtype == np.float64 for part in (arms, theta, draws, best))


@worlds
def test_path_length_and_changes_are_those_of_the_path(world):
    theta = world.theta()
    assert world.path_length == pytest.approx(np.linalg.norm(np.diff(theta, axis=0), axis=1).sum(), rel=1e-12)
    assert world.changes == (np.diff(theta, axis=0) != 0.0).any(axis=1).sum() == theory.change_number(theta)
    assert world.facts["path_length"] == world.path_length
    assert world.facts["changes"] == world.changes


@worlds
def test_no_theta_is_longer_than_S_and_no_arm_longer_than_L(world):
    arms, theta, _, _ = whole_tape(world)
    assert np.linalg.norm(theta, axis=1).max() <= world.S * (1 + 1e-12)
    assert np.linalg.norm(arms, axis=1).max() <= world.L * (1 + 1e-12)


@worlds
def test_best_is_the_mean_of_the_best_arm(world):
    arms, theta, _, best = whole_tape(world)
    value = np.einsum("tdn,td->tn", np.broadcast_to(arms, (HORIZON, *arms.shape[1:])), theta)
    np.testing.assert_allclose(best, value.max(axis=1), rtol=1e-12, atol=1e-14)


@worlds
@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_the_size_of_a_stretch_changes_no_number(world, rounds, monkeypatch):
    before, length, changes = whole_tape(world), world.path_length, world.changes
    monkeypatch.setattr("driftwise.worlds.base._ROUNDS", rounds)
    world = copy.copy(world)
    for kept in ("_kept_path", "_kept_best"):
        vars(world).pop(kept, None)
    assert len(list(world.tapes())) == math.ceil(HORIZON / rounds)
    for old, new in zip(before, whole_tape(world), strict=True):
        np.testing.assert_array_equal(old, new)
    total, jumps = type(world)._measured.func(world)  # without the cache: measured again over short stretches
    assert jumps == changes
    assert total == pytest.approx(length, rel=1e-12)


@worlds
def test_trials_differ_in_tape_and_repeat_exactly(world):
    arms, theta, draws, _ = whole_tape(world, seed=3, trial=1)
    again = whole_tape(world, seed=3, trial=1)
    other = whole_tape(world, seed=3, trial=2)
    assert (arms == again[0]).all()
    assert (draws == again[2]).all()
    assert (theta == other[1]).all()  # the path belongs to the world
    assert (draws != other[2]).any()
    if not isinstance(world, Given) and world.dim > 1:  # in one dimension unit arms are ±1
        assert (arms != other[0]).any()


@pytest.mark.parametrize("shared", [True, False])
def test_path_and_best_means_are_computed_once_for_the_trials_that_share_them(shared, monkeypatch):
    """With the bits of a world that has played no other trial."""
    counts = collections.Counter()
    for name in ("best_means_", "best_of_eight_"):
        real = getattr(base, name)
        monkeypatch.setattr(base, name, lambda *given, of=real, name=name: (counts.update([name]), of(*given))[1])
    turns = Turn.path
    monkeypatch.setattr(Turn, "path", lambda self: (counts.update(["path"]), turns(self))[1])
    world = Turn(horizon=HORIZON, arms_of=3 if shared else None)

    def played(world, seed, trial):
        return [*world.tapes(seed, trial), *world.tapes_of_eight(seed, range(trial, trial + 8))]

    found = [played(world, seed, trial) for seed in (0, 1) for trial in range(4)]
    assert counts == {"path": 1, "best_means_": 2 if shared else 8, "best_of_eight_": 2 if shared else 8}
    again = [played(Turn(horizon=HORIZON, arms_of=world.arms_of), seed, trial) for seed in (0, 1) for trial in range(4)]
    for one, other in zip(itertools.chain(*found), itertools.chain(*again), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_arms_and_tape_are_streams_of_their_own():
    few, many = Turn(horizon=50, arms=3), Turn(horizon=50, arms=30, fresh=True)
    assert (whole_tape(few)[2] == whole_tape(many)[2]).all()


@pytest.mark.parametrize("draw", ["normal", "cube"])
@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 6])
def test_norms_of_arms_are_unit_clipped_or_divided_by_the_longest(dim, fresh, draw):
    def lengths(norm):
        arms = whole_tape(Still(horizon=30, dim=dim, arms=40, fresh=fresh, norm=norm, draw=draw))[0]
        return arms, np.linalg.norm(arms, axis=1)

    unit, clip, longest = lengths("unit"), lengths("clip"), lengths("max")
    np.testing.assert_allclose(unit[1], 1.0, rtol=1e-14)
    assert clip[1].max() <= 1.0 + 1e-14
    assert clip[1].min() < 0.9
    np.testing.assert_allclose(longest[1].max(axis=1), 1.0, rtol=1e-14)  # the longest of every set, not of all sets
    assert longest[1].min() < 0.9
    inside = clip[1] < 1.0 - 1e-12  # the same draws, so the same directions; what lay in the ball stays where it was
    for lengths_now, lengths_clipped, kept in zip(longest[1], clip[1], inside, strict=True):
        ratio = lengths_now[kept] / lengths_clipped[kept]
        assert np.ptp(ratio) < 1e-12 if ratio.size else True
    np.testing.assert_allclose(clip[0] / clip[1][:, None], unit[0], rtol=1e-12)


def test_cube_arms_are_uniform_and_normal_arms_are_normal():
    # Kolmogorov-Smirnov on 20,000 numbers each, fixed seed: a false alarm once in 1000.
    wide = {"horizon": 1, "dim": 1, "arms": 20_000, "norm": "clip"}
    cube = whole_tape(Still(draw="cube", **wide))[0].ravel()
    assert stats.kstest(cube, stats.uniform(-1, 2).cdf).pvalue > 1e-3
    normal = whole_tape(Still(draw="normal", **wide))[0].ravel()
    inside = np.abs(normal) < 1.0
    assert stats.kstest(normal[inside], stats.truncnorm(-1, 1).cdf).pvalue > 1e-3
    assert stats.binomtest(int(inside.sum()), inside.size, stats.norm.cdf(1) - stats.norm.cdf(-1)).pvalue > 1e-3


def test_fixed_arms_are_one_set_and_fresh_arms_one_a_round():
    fixed, fresh = Turn(horizon=20, arms=4), Turn(horizon=20, arms=4, fresh=True)
    assert len(whole_tape(fixed)[0]) == 1
    sets = whole_tape(fresh)[0]
    assert len({part.tobytes() for part in sets}) == 20


def test_the_papers_turn_stands_at_angle_two_pi_t_minus_1_over_T():
    world, T = Turn(), 6000
    assert (world.dim, world.arms, world.horizon, world.noise) == (2, 50, T, 1.0)
    theta = world.theta()
    assert (theta[0] == [1.0, 0.0]).all()
    for t in (1, 2, 1501, 3001, 6000):
        angle = 2 * math.pi * (t - 1) / T
        np.testing.assert_allclose(theta[t - 1], [math.cos(angle), math.sin(angle)], atol=1e-12)
    assert world.path_length == pytest.approx(2 * math.pi * 5999 / 6000, rel=1e-6)
    assert world.changes == 5999


def test_turns_and_radius_scale_angle_and_length():
    world = Turn(dim=4, horizon=100, turns=-0.5, radius=5.0)
    theta = world.theta()
    np.testing.assert_allclose(theta[50], [0.0, -5.0, 0.0, 0.0], atol=1e-12)
    assert (theta[:, 2:] == 0.0).all()
    assert world.S == 5.0


def test_stop_and_go_stands_turns_and_stands():
    theta = StopAndGo(horizon=1000, turns=0.25, go=(0.2, 0.6)).theta()
    angle = np.arctan2(theta[:, 1], theta[:, 0])
    assert (theta[:201] == [1.0, 0.0]).all()
    np.testing.assert_allclose(angle[200:600], math.pi / 2 * np.arange(400) / 400, atol=1e-12)
    np.testing.assert_allclose(theta[600:], np.tile([0.0, 1.0], (400, 1)), atol=1e-12)
    assert StopAndGo(horizon=1000, turns=0.25, go=(0.2, 0.6)).changes == 400


def test_russacs_slow_world_moves_for_3000_rounds_from_0_to_half_pi():
    theta = StopAndGo(turns=0.25, go=(0.0, 0.5)).theta()
    np.testing.assert_allclose(theta[1500], [math.sqrt(0.5)] * 2, atol=1e-12)
    np.testing.assert_allclose(theta[3000:], np.tile([0.0, 1.0], (3000, 1)), atol=1e-12)


def test_jumps_are_where_and_to_what_they_are_told():
    turns = ((1.0, 0.0), (-2.0, 0.0), (0.0, 0.5), (0.0, -1.0))
    world = Jumps(jumps=3, at=(1000, 2000, 3000), directions=turns, radius=2.0)
    theta = world.theta()
    for start, stop, value in [(0, 1000, [2, 0]), (1000, 2000, [-2, 0]), (2000, 3000, [0, 2]), (3000, 6000, [0, -2])]:
        assert (theta[start:stop] == value).all()
    assert world.changes == 3
    assert world.path_length == pytest.approx(4.0 + 2 * math.sqrt(2.0) + 4.0)


def test_jumps_left_to_themselves_are_equally_spaced_and_on_the_sphere():
    world = Jumps(horizon=1000, jumps=4, dim=3, radius=2.0, path_seed=1)
    theta = world.theta()
    at = np.flatnonzero((np.diff(theta, axis=0) != 0).any(axis=1)) + 1
    assert at.tolist() == [200, 400, 600, 800]
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 2.0, rtol=1e-14)
    assert (theta != Jumps(horizon=1000, jumps=4, dim=3, radius=2.0, path_seed=2).theta()).any()
    assert Jumps(horizon=10, jumps=0).changes == 0
    assert Jumps(horizon=3, jumps=2).changes == 2


@pytest.mark.parametrize("dim", [1, 2, 9])
def test_a_walk_stays_on_its_sphere(dim):
    theta = Walk(dim=dim, horizon=500, radius=1.7, step=0.3).theta()
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1.7, rtol=1e-13)


def test_a_walk_takes_steps_of_the_size_it_says():
    # A step of size s·N(0, I_d) on the sphere has squared length about s²·(d-1): 5000 of them, to 10% (5 sigma).
    step = np.diff(Walk(dim=3, horizon=5001, radius=2.0, step=0.01).theta(), axis=0)
    assert (step**2).sum(axis=1).mean() == pytest.approx(2 * (2.0 * 0.01) ** 2, rel=0.1)
    assert Walk(horizon=100, step=0.0).changes == 0
    assert (Walk(horizon=50, path_seed=1).theta() != Walk(horizon=50, path_seed=2).theta()).any()


class First:
    """Plays arm 0 and records its rewards."""

    def __init__(self):
        self.rewards = []

    def start(self, seed=0):
        return None

    def choose(self, state, arms):
        return 0

    def learn(self, state, arms, arm, reward):
        self.rewards.append(reward)


def paid(world):
    policy = First()
    dw.simulate(policy, world, trials=1, jobs=1, record="last")
    return np.array(policy.rewards)


@pytest.mark.parametrize(("link", "mean"), [("logistic", 1 / (1 + math.exp(-0.8))), ("probit", stats.norm.cdf(0.8))])
def test_bernoulli_rewards_come_as_often_as_the_link_says(link, mean):
    # Exact binomial test on 20,000 rewards, fixed seed: a false alarm once in 1000.
    rewards = paid(Given(arms=[[1.0]], theta=np.full((20_000, 1), 0.8), reward="bernoulli", link=link))
    assert set(rewards) == {0.0, 1.0}
    assert stats.binomtest(int(rewards.sum()), 20_000, mean).pvalue > 1e-3


def test_poisson_rewards_have_the_poisson_frequencies():
    # Chi-squared over the counts of 20,000 rewards, fixed seed: a false alarm once in 1000.
    rewards = paid(Given(arms=[[1.0]], theta=np.full((20_000, 1), 1.1), reward="poisson"))
    mean, top = math.exp(1.1), 9
    seen = np.bincount(np.minimum(rewards, top).astype(int), minlength=top + 1)
    expected = stats.poisson(mean).pmf(np.arange(top))
    expected = 20_000 * np.append(expected, 1 - expected.sum())
    assert stats.chisquare(seen, expected).pvalue > 1e-3


def test_gaussian_rewards_have_the_mean_and_noise_asked_for():
    # Kolmogorov-Smirnov on 20,000 rewards, fixed seed: a false alarm once in 1000.
    rewards = paid(Still(dim=1, horizon=20_000, arms=1, radius=0.4, noise=2.5))
    mean = 0.4 * whole_tape(Still(dim=1, horizon=1, arms=1))[0].item()
    assert stats.kstest(rewards, stats.norm(mean, 2.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("reward", "tape", "expected"),
    [
        ("gaussian", [-1.0, 0.0, 2.0], [0.5 - 0.3, 0.5, 0.5 + 0.6]),
        ("bernoulli", [0.0, 0.62245, 0.62247], [1.0, 1.0, 0.0]),  # 1 if u < mean = 0.622459...
        ("poisson", [0.192295, 0.192297, 0.9995], [0.0, 1.0, 7.0]),  # e^-e^0.5 = 0.1922956...
    ],
)
def test_a_given_tape_is_read_by_inversion(reward, tape, expected):
    world = Given(arms=[[0.5]], theta=np.ones((3, 1)), tape=tape, reward=reward, noise=0.3)
    np.testing.assert_allclose(paid(world), expected, rtol=1e-15)
    if reward == "poisson":
        assert (stats.poisson(math.exp(0.5)).ppf(tape) == expected).all()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("n", "d"), [(5, 3), (1, 3), (5, 1), (1, 1)])
def test_given_arrays_are_used_exactly_and_left_alone(fresh, n, d):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, n, d) if fresh else (n, d))
    TH, U = rng.standard_normal((30, d)), rng.standard_normal(30)
    copies = [A.copy(), TH.copy(), U.copy()]
    world = Given(arms=A, theta=TH, tape=U)
    arms, theta, draws, _ = whole_tape(world, seed=9, trial=4)
    assert (arms.transpose(0, 2, 1) == A).all()
    assert (theta == TH).all()
    assert (draws == U).all()
    assert (world.dim, world.arms, world.horizon, world.fresh) == (d, n, 30, fresh)
    assert world.L == pytest.approx(np.linalg.norm(A, axis=-1).max(), rel=1e-14)
    assert world.S == pytest.approx(np.linalg.norm(TH, axis=-1).max(), rel=1e-14)
    dw.simulate(dw.make("OFUL", **world.facts), world, trials=2)
    assert all((now == before).all() for now, before in zip((A, TH, U), copies, strict=True))


@pytest.mark.parametrize(("n", "d"), [(4, 3), (4, 1)])
def test_a_given_world_is_not_changed_by_what_its_maker_does_later(n, d):
    rng = np.random.default_rng(0)
    A, TH, U = rng.standard_normal((n, d)), rng.standard_normal((20, d)), rng.standard_normal(20)
    world = Given(arms=A, theta=TH, tape=U)
    before = [part.copy() for part in whole_tape(world)]
    A *= 2
    TH *= 2
    U *= 2
    for old, new in zip(before, whole_tape(world), strict=True):
        np.testing.assert_array_equal(old, new)


def test_given_worlds_of_different_arrays_are_different():
    theta = np.ones((5, 2))
    assert Given(arms=np.eye(2), theta=theta) != Given(arms=-np.eye(2), theta=theta)


def test_a_given_world_without_a_tape_draws_one_per_trial():
    world = Given(arms=np.eye(2), theta=np.ones((50, 2)))
    assert (whole_tape(world, trial=0)[2] != whole_tape(world, trial=1)[2]).all()
    assert (whole_tape(world)[2] == whole_tape(Turn(horizon=50))[2]).all()  # the stream a drawn world would read


def test_a_world_given_its_own_numbers_back_is_the_same_world():
    for made in (Turn(horizon=200, fresh=True, arms=6), Walk(horizon=200, dim=3, arms=6)):
        arms, theta, draws, _ = whole_tape(made, seed=2, trial=5)
        A = arms.transpose(0, 2, 1) if made.fresh else arms[0].T
        given = Given(arms=A, theta=theta, tape=draws)
        policy = dw.make("LB-WeightUCB", **made.facts | {"L": 1.1})
        assert given.path_length == pytest.approx(made.path_length, rel=1e-12)
        theirs = dw.simulate(policy, made, trials=6, seed=2)
        ours = dw.simulate(policy, given, trials=1)
        assert (ours.arms["LinearUCB"][0] == theirs.arms["LinearUCB"][5]).all()
        assert (ours.regret["LinearUCB"][0] == theirs.regret["LinearUCB"][5]).all()


def test_whole_numbers_may_be_written_as_floats():
    world = Turn(horizon=1e2, arms=5.0, dim=2.0)
    assert world.theta().shape == (100, 2)
    assert (world.theta() == Turn(horizon=100).theta()).all()
    assert Jumps(horizon=100, jumps=2.0).changes == 2
