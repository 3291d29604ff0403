"""Auto against its slow twin (docs/math.md#auto), and its laws."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

import driftwise as dw
from driftwise.kernels.auto import gauge as numbers
from driftwise.kernels.point import KEY_HIGH, KEY_LOW
from driftwise.policies.auto import Auto
from interpreting import both_ways
from naive_auto import Lane, NaiveAuto

CLOSE = 1e-6


class Step(NamedTuple):
    """Arms, the reward of each, ticks and age of the one that is learned, time that passes afterwards, and the arm
    whose reward is learned, if it is not the policy's."""

    arms: np.ndarray
    rewards: np.ndarray
    ticks: float = 1.0
    age: float = 0.0
    pause: float = 0.0
    arm: int | None = None


def stream(seed, rounds, *, dim=3, clicks=False, fresh=True, live=False, how=()):
    """Steps of a world where θ turns. `how` names what else is there: see the lines."""
    rng = np.random.default_rng([seed, dim, fresh, live])
    arms, turned = rng.standard_normal((5, dim)), rng.standard_normal((2, dim))
    for t in range(rounds):
        arms = rng.standard_normal((5, dim)) if fresh else arms
        shown, noise, angle, arm = arms.copy(), 0.3, 0.03 * t, None
        if "hide" in how:  # three of five arms are left alone after they were learned a few times
            shown, arm = np.diag([1.0, 1.2, 0.7, 1.5, 3.0]), t % 5 if 5 < t < 15 else t % 2
        if "one-hot" in how:
            shown = np.eye(dim)[rng.integers(0, dim, 5)]
        if "zeros" in how:
            shown[rng.random(shown.shape) < 0.4] = 0.0
            shown[0] = 0.0
        if "later" in how:  # the last feature is seen from round 15 on, by one arm
            shown[t % 5 if t >= 15 else slice(None), -1] = 0.0
            shown[1:, -1] = 0.0
        if "grown" in how and t < 3:
            shown[:, 0] *= 1e-5
        if "jump" in how:
            angle = math.pi * (t >= rounds // 2)
        theta = turned[0] * math.cos(angle) + turned[1] * math.sin(angle)
        if "loud" in how:
            theta, noise = turned[0], 0.05 if 30 <= t < 105 else 3.0
        if "exact" in how:
            noise = 0.0
        value = shown @ theta + noise * rng.standard_normal() + 100.0 * ("spike" in how and t % 40 == 39)
        if "season" in how:
            value += 4.0 * math.sin(t / 4.0)
        if "offset" in how:
            value += 50.0
        if "units" in how:
            shown, value = shown * np.resize([1e30, 1e-30, 7.0], dim), 1e12 * value
        if clicks:
            value = special.expit(value)
            rewards = np.round(value, 2) if "parts" in how else (rng.random() < value).astype(float)
        else:
            rewards = value * (t >= 4) if "silent" in how else value
        if "strange" in how and t >= 12 and t % 11 in (0, 1):
            rewards = rewards if clicks else 1e9 * rewards
            shown = 1e7 * shown if clicks or t % 3 == 0 else shown
        if "moved" in how and t >= 20:  # all that follows is strange at first
            shown = 3e4 * shown
        step = Step(shown, rewards)
        if live:
            ticks = float(rng.choice([0.0, 0.25, 1.0, 1.0, 1.0, 3.5, 50.0] + [1000.0] * (t > 30)))
            age = float(rng.choice([0.0, 0.0, 0.0, 0.5, 2.0, 30.0]))
            step = Step(shown, rewards, ticks, age, float(rng.choice([0.0, 7.5])) if t % 6 == 0 else 0.0)
        if "old" in how and t % 4 == 3:
            step = step._replace(age=300.0)
        step = step._replace(arm=arm)
        yield step


def covariances(state, sizes):
    """The covariances of lanes as matrices."""
    first = 0
    for size in sizes:
        C, rows = np.zeros((size, size)), np.tril_indices(size)
        C[rows] = state.spread[first : first + len(rows[0])]
        first += len(rows[0])
        yield C + np.tril(C, -1).T


def near(found, wanted, scale=None):
    """Whether all numbers are those wanted, by their own size or another."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    scale = np.abs(wanted) if scale is None else scale
    return found.shape == wanted.shape and bool((np.abs(found - wanted) <= CLOSE * scale + 1e-300).all())


def same_lanes(fast, slow, state):
    """Means, covariances and weights."""
    sizes = [len(lane.m) for lane in slow.lanes]
    for k, (lane, C) in enumerate(zip(slow.lanes, covariances(state, sizes), strict=True)):
        wide = np.sqrt(np.maximum(np.diag(lane.C), 1e-12 * np.diag(lane.C).max()))
        assert near(C, lane.C, np.outer(wide, wide)), k
        assert near(state.mean[k, : sizes[k]], lane.m, np.abs(lane.m) + wide), k
    assert near(state.trust, slow.weights)


def same_gauge(slow, gauge):
    """What is known of rewards."""
    d, (n, q) = slow.dim, slow.counts()
    known = dict(enumerate(gauge[: numbers.KNOWN]))
    assert (known[numbers.SEEN], known[numbers.TURN]) == (slow.t, slow.next)
    assert known[numbers.ACTIVE] == n.sum()
    assert not slow.t or near(known[numbers.AVERAGE], slow.M(), np.abs(slow.rewards).max())
    for place, wanted in (
        (numbers.ERRORS, slow.E), (numbers.ERROR_WEIGHT, slow.W), (numbers.NOW_ERRORS, slow.E_now),
        (numbers.NOW_WEIGHT, slow.W_now), (numbers.BESIDES, sum(slow.apart)), (numbers.UNKNOWN, slow.F),
    ):  # fmt: skip
        assert near(known[place], wanted * (not slow.clicks or place in (numbers.BESIDES, numbers.UNKNOWN))), place
    assert near(known[numbers.NOW_NATS], slow.D_now, 1.0 + slow.D_now)
    assert near(known[numbers.LEANS], slow.leans, 1.0 + abs(slow.leans))
    assert near(known[numbers.EVIDENCE], slow.D, 1.0 + abs(slow.D))
    squares, counts, inverse, bar = (gauge[numbers.KNOWN + i * d :][:d] for i in range(4))
    assert near(squares, q) and (counts == n).all()
    assert (inverse == 1.0 / np.where(slow.unit > 0.0, slow.unit, 1.0)).all()
    assert near(bar, slow.bar, 1.0 + np.abs(slow.bar))
    scale = numbers.scale_of(int(slow.clicks), numbers.Gauge(gauge[: numbers.KNOWN], *[np.zeros(0)] * 5))
    assert near([scale.noise, scale.now, scale.prior], [slow.R2(), slow.R2() * slow.noise_now(), slow.p0()])


def same_choice(fast, slow, state, arms, costs=None):
    """Scores, the chance of every arm with and without costs, and the arm of this decision, which it returns."""
    mean, bonus = slow.scores(arms)
    scores = fast.scores(state, arms)
    size = np.abs(mean).max() + np.abs(bonus).max()
    assert near(scores.mean, mean, size) and near(scores.bonus, bonus, size)
    shares, key = slow.shares(arms), (int(state.key[KEY_LOW]), int(state.key[KEY_HIGH]))
    assert abs(shares.sum() - 1.0) < 1e-12 and (shares >= 0.0).all()
    assert near(fast.shares(state, arms, 0, 0), shares, 1.0)
    if costs is not None:
        found, chances = fast.priced(state, dw.ArmSet(arms), size * costs, 7)
        assert near(chances, slow.shares(arms, size * costs), 1.0)
        assert found.arm == slow.choose(arms, key, size * costs, 7)
    arm = fast.choose(state, arms).arm
    assert arm == slow.choose(arms, key)
    return arm


def replay(fast, slow, steps, every=1, since=0):
    """The twin replays the fast one's arms; all numbers agree after every reward, or some. Returns the most evidence
    for levels and the most nats for noise of now."""
    state, most, loudest = fast.start(), 0.0, 0.0
    for t, step in enumerate(steps):
        arm, now = t % 5, t % every == 0 and t >= since
        if now:
            arm = same_choice(fast, slow, state, step.arms, np.cos(np.arange(5.0) + t))
        arm = arm if step.arm is None else step.arm
        reward = float(step.rewards[arm])
        fast.learn(state, step.arms, arm, reward, ticks=step.ticks, age=step.age)
        slow.learn(step.arms, arm, reward, ticks=step.ticks, age=step.age)
        if step.pause:
            fast.advance(state, step.pause)
            slow.advance(step.pause)
        if now:
            same_lanes(fast, slow, state)
            same_gauge(slow, state.gauge)
        most, loudest = max(most, slow.D), max(loudest, slow.D_now)
    return most, loudest


def pair(dim, link="identity", memory=None, **fields):
    """Auto and its twin."""
    ours = {None: None, math.inf: dw.Keep()}.get(memory, memory and dw.Fade(1.0 / memory))
    fast = Auto(dim=dim, link=link, memory=ours, **fields)
    return fast, NaiveAuto(dim=dim, link=link, memory=memory, **fields)


# ----------------------------------------------------------------------------------------------------- the slow twin

VALUES = [(), ("season",), ("jump",), ("loud",), ("strange",), ("exact",), ("silent",), ("offset",), ("one-hot",),
          ("grown",), ("spike",), ("units", "zeros"), ("zeros", "later", "season")]  # fmt: skip
CLICKS = [(), ("season",), ("parts", "jump"), ("units", "zeros", "later"), ("one-hot", "strange"), ("grown",)]


@pytest.mark.parametrize("live", [False, True], ids=["rounds", "live"])
@pytest.mark.parametrize("how", VALUES, ids="-".join)
def test_auto_is_its_slow_twin(how, live):
    dim = 3 + (how in ((), ("loud",)))
    fast, slow = pair(dim)
    most, loudest = replay(fast, slow, stream(1, 120, dim=dim, live=live, fresh=how != ("offset",), how=how))
    if not live:
        assert how != ("season",) or most > slow.BELIEVED  # levels acted
        assert how != ("loud",) or loudest > 8.0
    assert slow.t == 120 or "strange" in how


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("how", CLICKS, ids="-".join)
def test_auto_of_clicks_is_its_slow_twin(how, link):
    for live in (False, True):
        fast, slow = pair(3, link)
        most, _ = replay(fast, slow, stream(1, 120, clicks=True, live=live, fresh=live, how=how), every=2)
        assert live or how != ("season",) or most > slow.BELIEVED
        assert (slow.t < 120) == ("strange" in how)


@pytest.mark.parametrize(("dim", "link"), [(1, "identity"), (2, "logistic"), (5, "identity"), (12, "identity")])
def test_any_number_of_features_makes_no_difference(dim, link):
    for fresh in (False, True):
        fast, slow = pair(dim, link)
        replay(fast, slow, stream(2, 60, dim=dim, clicks=link != "identity", live=fresh, fresh=fresh), every=3)


@pytest.mark.parametrize("link", ["identity", "logistic"])
@pytest.mark.parametrize("memory", [math.inf, 20.0, 300.0])
def test_one_memory_is_its_slow_twin(memory, link):
    for looks in (None, 2.0):
        fast, slow = pair(3, link, memory, looks=looks)
        how = ("season", "zeros") if looks else ("loud",)
        replay(fast, slow, stream(3, 80, clicks=link != "identity", live=bool(looks), how=how), every=2)


def test_looks_and_rates_are_those_that_are_told():
    fast, slow = pair(2, "logistic", looks=5.0, rate=0.7)
    assert slow.scores(np.eye(2))[0] == pytest.approx(0.7)
    replay(fast, slow, stream(4, 60, dim=2, clicks=True), every=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 11))
def test_auto_stays_its_slow_twin_for_hundreds_of_rounds(seed):
    how, dim = (VALUES[seed % 5], 2 + seed % 3)
    for link in ("identity", "logistic"):
        fast, slow = pair(dim, link)
        replay(fast, slow, stream(seed, 500, dim=dim, clicks=link != "identity", fresh=seed % 2 == 0, how=how), every=9)


def test_what_stays_strange_is_learned_from_the_ninth_on():
    fast, slow = pair(3)
    state, known = fast.start(), []
    for step in stream(1, 40, how=("moved",)):
        fast.learn(state, step.arms, 0, float(step.rewards[0]))
        slow.learn(step.arms, 0, float(step.rewards[0]))
        known.append(slow.t)
        assert state.gauge[numbers.SEEN] == slow.t
    assert known[19] == known[27] == 20 and known[28] == 21 and known[-1] == 32


@pytest.mark.parametrize(("looks", "link"), [(0.0, "identity"), (1e9, "identity"), (0.0, "probit"), (1e9, "logistic")])
def test_the_best_of_a_ball_is_that_of_the_slow_twin(looks, link):
    fast, slow = pair(3, link, looks=looks)
    state, rng = fast.start(), np.random.default_rng(2)
    others = rng.standard_normal((150, 3))
    for t, step in enumerate(stream(2, 60, clicks=link != "identity", how=("later",))):
        fast.learn(state, step.arms, t % 5, float(step.rewards[t % 5]))
        slow.learn(step.arms, t % 5, float(step.rewards[t % 5]))
        if t % 6 == 0:
            found, look = fast.choose(state, dw.Ball(3)), looks > 0.0 and t >= 9
            near_it = others * np.resize([[1.0], [0.1], [1e-3]], (len(others), 1)) + found.x
            best = sum(slow.on_a_set(np.array(found.x), look))
            for x in np.vstack([others, near_it]):
                assert sum(slow.on_a_set(x / np.linalg.norm(x), look)) <= best + 1e-9 * abs(best)
            told = np.ravel(slow.on_a_set(np.array(found.x), look))  # of the form, for its certificate
            assert [found.mean, found.bonus] == pytest.approx(told, rel=CLOSE)


# ------------------------------------------------------------------------------------------------- planted mistakes


def said(value):
    """A method that gives this."""
    return lambda true: lambda self, *args: value


def made(how):
    """A method whose result is changed so."""
    return lambda true: lambda self, *args: how(true(self, *args))


def put(how):
    """Another method, of the object, the true one and the arguments."""
    return lambda true: lambda self, *args: how(self, true, *args)


def only_grows(self, true, gone, level, P):
    by = np.full(len(self.m), gone**-0.5)
    by[self.dim] = level**-0.5
    return by


def joined(self, true, P):
    at, C = self.dim, self.C
    true(self, P)
    self.C[at], self.C[:, at] = C[at], C[:, at]


# The method or number, what it becomes, and where that shows: clicks, live, and what else is there.
LANE_MISTAKES = {
    "θ grows beyond its prior": ("stretch", put(only_grows), "live"),
    "the offset stays joined to what begins anew": ("begin", put(joined), "live"),
    "lanes begin anew too early": ("KEPT", 1 / 4, "live"),
    "no prior is shown": ("shown", said(None), ""),
    "another coordinate is shown": ("later", put(lambda self, true, a, P, i, b: true(self, a, P, i - 1, b)), ""),
    "what has grown keeps its prior": ("settle", said(None), "grown"),
    "a new feature has twice its prior": ("meet", put(lambda self, true, i, p: true(self, i, 2 * p)), "later"),
    "an age counts backwards": ("vector", put(lambda self, true, x, age=0.0: true(self, x, -age)), "live"),
    "the last arm says nothing": ("variance", put(lambda self, true, v, last: true(self, v, None)), ""),
}
MISTAKES = {
    "trends begin like others": ("first", said(0.0), ""),
    "Q is of all and not all but one": ("Q", put(lambda self, true: np.var(self.rewards or [0.0]) or true(self)), ""),
    "R is another": ("R2", made(lambda one: 1.001 * one), ""),
    "B is Q": ("B", put(lambda self, true: self.Q()), ""),
    "B of clicks is 1": ("B", said(1.0), "clicks"),
    "k is d": ("k", put(lambda self, true: self.dim), "zeros"),
    "noise of now is never heard": ("noise_now", said(1.0), "loud"),
    "densities have 8 degrees of freedom": ("nu", said(8.0), ""),
    "errors do not lean": ("lean", said(0.0), ""),
    "they lean the other way": ("lean", made(lambda one: -one), ""),
    "200 rewards do not keep it upright": ("lean", put(lambda self, true: self.leans / (self.W + 1)), ""),
    "the lean is of cubes": ("leant", put(lambda self, true, u: self.kept(u) ** 3), ""),
    "an error leans as far as it is": ("kept", put(lambda self, true, u: u), "spike"),
    "the first loud one counts": ("loud", put(lambda self, true, noise, u: noise), "loud"),
    "everything is learned": ("strange", said(False), "strange"),
    "chances do not widen": ("chance", put(lambda self, true, f, s: true(self, f, 0.0)), "clicks"),
    "clicks are learned where they were foretold": ("mode", put(lambda self, true, f, s, w, r: f), "clicks"),
    "an old choice counts as a new one": ("worth", said(1.0), "live"),
    "a very old choice does not count": ("least_worth", said(math.exp(-300)), "old"),
    "offsets are late too": ("worth", put(lambda self, true, lane, age: (
        true(self, lane, age) * (1.0 - 1.0 / lane.L) ** age)), "live"),
    "one arm tells a level": ("contrast", said(1.0), ""),
    "levels are weighed by all": ("power", said(1.0), ""),
    "levels act late": ("BELIEVED", 40.0, "season"),
    "less is spread": ("SHARE", 5e-4, ""),
    "the index is longer": ("psi", made(lambda one: 1.001 * one), ""),
    "the index is Gittins' of small u": ("psi", put(lambda self, true, u: math.sqrt(u / 2)), ""),
    "what is learned serves longer": ("patience", made(lambda one: 2.0 * one), "clicks"),
    "looks come as often at first": ("look_chance", said(0.05), "hide"),
    "a look always plays what is hidden": ("of_a_look", put(lambda self, true, worth: 1 / worth.sum()), "hide"),
    "a look is one at every arm": ("of_a_look", said(1.0), "hide"),
    "a look gains from afar": ("worth_a_look", put(lambda self, true, kappa, g: true(self, kappa, 0.9 * g)), "hide"),
    "looks ask another lane": ("short", put(lambda self, true: self.lanes[1]), ""),
    "all is hidden": ("hidden", said(True), ""),
    "nothing is hidden": ("hidden", said(False), "hide"),
    "no click is hidden": ("hidden", said(False), "clicks hide"),
    "deviations are longer": ("deviation", made(lambda one: (one[0] + one[1], one[1])), "hide"),
    "deviations of clicks are longer": ("deviation", made(lambda one: (one[0] + one[1], one[1])), "clicks hide"),
    "lengths in other units": ("length", put(lambda self, true, x: x @ x), "units"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", [*LANE_MISTAKES, *MISTAKES])
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    owner = Lane if mistake in LANE_MISTAKES else NaiveAuto
    name, wrong, how = (LANE_MISTAKES | MISTAKES)[mistake]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)) if callable(wrong) else wrong)
    clicks, hides = "clicks" in how, "hide" in how
    fast, slow = pair(5 if hides else 3, "logistic" if clicks else "identity", looks=1.0)
    steps = stream(1, 660 if hides else 150, dim=slow.dim, clicks=clicks, live="live" in how, how=how.split())
    with pytest.raises(AssertionError):
        replay(fast, slow, steps, since=650 * hides)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_hidden_arms_are_those_of_the_slow_twin(link):
    fast, slow = pair(5, link, looks=10.0)
    replay(fast, slow, stream(1, 690, dim=5, clicks=link != "identity", how=("hide",)), since=640, every=2)
    share = slow.looked(np.diag([1.0, 1.2, 0.7, 1.5, 3.0]), 0, 3.0 * (np.arange(5) > 1))
    assert (share > 0.0).sum() > 1 and len(set(share)) > 2 and share.sum() < 0.9


# ------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize(("length", "worth"), [(1.0, 4.0), (8.0, 1.0), (2.0**-30, 2.0**40)])
def test_the_default_does_not_know_the_units_of_rewards_and_features(length, worth):
    # Powers of 2 change no rounding: the same arms and the same weights, bit for bit.
    policy = dw.make("Auto", dim=3)
    state, other = policy.start(), policy.start()
    for step in stream(10, 300, live=True, how=("silent", "loud")):
        arm = policy.choose(state, step.arms).arm
        assert policy.choose(other, length * step.arms).arm == arm
        assert np.array_equal(policy.shares(other, length * step.arms, 0, 0), policy.shares(state, step.arms, 0, 0))
        policy.learn(state, step.arms, arm, float(step.rewards[arm]), ticks=step.ticks, age=step.age)
        policy.learn(other, length * step.arms, arm, worth * float(step.rewards[arm]), ticks=step.ticks, age=step.age)
        assert np.array_equal(state.trust, other.trust) and np.array_equal(state.spread, other.spread)
    said = policy.report(state)
    assert policy.report(other) == {**said, "R": worth * said["R"]}
    assert policy.theta(other) == pytest.approx(policy.theta(state) * worth / length, rel=1e-15)


def lived(policy, rounds, *, swing=0.0, seed=3):
    """A state after so many rounds in which a level may swing; and the arms."""
    rng = np.random.default_rng(seed)
    arms, state = rng.standard_normal((8, policy.dim)), policy.start(5)
    for t in range(rounds):
        arm = policy.choose(state, arms).arm
        value = arms[arm, 0] + swing * math.sin(t / 6.0)
        click = policy.link != "identity"
        reward = rng.random() < special.expit(value) if click else value + 0.2 * rng.standard_normal()
        policy.learn(state, arms, arm, float(reward))
    return state, arms


LINKS = pytest.mark.parametrize("link", ["identity", "logistic"])


@LINKS
def test_arms_in_another_order_have_the_same_scores_and_chances(link):
    policy = dw.make("Auto", dim=4, link=link, looks=2.0)
    state, arms = lived(policy, 80)
    order = np.random.default_rng(1).permutation(len(arms))
    ours, theirs = policy.scores(state, arms[order]), policy.scores(state, arms)
    assert np.array_equal(ours.mean, theirs.mean[order]) and np.array_equal(ours.bonus, theirs.bonus[order])
    found = policy.shares(state, arms[order], 0, 0)
    assert found == pytest.approx(policy.shares(state, arms, 0, 0)[order], rel=1e-12, abs=1e-15)


def tried(link="identity", rounds=600, looks=1e9):
    """A policy, a state after rounds with two of three arms, the first of which is better, and the arms. The third was
    played ten times, long ago."""
    policy = dw.make("Auto", dim=3, link=link, looks=looks)
    state, arms, rng = policy.start(), np.eye(3), np.random.default_rng(1)
    for t in range(rounds):
        arm = t % 3 if t < 30 else t % 2
        value = (1.0, 0.2, -1.0)[arm] + 0.3 * rng.standard_normal()
        policy.learn(state, arms, arm, float(rng.random() < special.expit(value)) if link != "identity" else value)
    return policy, state, arms


@LINKS
def test_a_look_is_at_what_is_hidden_and_never_at_the_arm_that_would_be_played(link):
    policy, state, arms = tried(link)
    best = policy.scores(state, arms).best().arm
    shares = policy.shares(state, arms, 0, 0)
    assert best < 2 and shares[1 - best] == 0.0 and 0.0 < shares[2] < 0.5 and shares[best] == 1.0 - shares[2]
    played = np.bincount([policy.choose(state, arms, draw).arm for draw in range(2000)], minlength=3)
    assert np.abs(played / 2000 - shares).max() < 5 * math.sqrt(shares[2] / 2000)
    # Hidden arms share the chance of the one that could gain most; the more an arm costs, the less likely is a look.
    assert policy.shares(state, arms[[0, 1, 2, 2, 2]], 0, 0)[2:] == pytest.approx(shares[2] / 3)
    dearer = [policy.priced(state, dw.ArmSet(arms), np.array([0.0, 0.0, cost]), 0)[1][2] for cost in range(5)]
    assert dearer == sorted(dearer, reverse=True) and dearer[0] == shares[2] > 5.0 * dearer[4] > 0.0
    # Where none is hidden, a look plays what would be played.
    assert policy.shares(state, arms[:2], 0, 0).max() == 1.0
    assert all(policy.choose(state, arms[:2], draw).arm == best for draw in range(50))


@LINKS
def test_looks_are_as_many_as_promised_and_repeat(link):
    policy, state, _ = tried(link, 99, 2.0)
    draws = [policy.audited(state, draw) for draw in range(4000)]
    assert draws == [policy.audited(state, draw) for draw in range(4000)]
    assert np.mean(draws) == pytest.approx(0.2, abs=5 * math.sqrt(0.16 / 4000))  # one false alarm in 10^6
    assert not any(policy.audited(policy.start(6), draw) for draw in range(50))  # before ten rewards


@LINKS
def test_chances_are_how_often_arms_are_played_at_any_price(link):
    policy, state, arms = tried(link, looks=12.0)
    arms = np.vstack([arms, [[0.0, 0.0, 2.0], [0.5, 0.0, 0.5]]])
    for costs in (np.zeros(5), np.array([0.9, 0.0, 0.4, 0.3, 0.6])):
        shares = policy.priced(state, dw.ArmSet(arms), costs, 0)[1]
        assert shares.sum() == pytest.approx(1.0) and (shares > 0.01).sum() > 1
        played = [policy.priced(state, dw.ArmSet(arms), costs, draw)[0].arm for draw in range(2000)]
        assert np.abs(np.bincount(played, minlength=5) / 2000 - shares).max() < 5 * math.sqrt(0.25 / 2000)
    assert np.array_equal(policy.priced(state, dw.ArmSet(arms), np.zeros(5), 0)[1], policy.shares(state, arms, 0, 0))


@LINKS
def test_a_saved_state_goes_on_as_it_was(link):
    policy = dw.make("Auto", dim=3, link=link)
    state, arms = lived(policy, 90, swing=2.0)
    again = dw.State.from_bytes(state.to_bytes())
    for one in (state, again):
        for t in range(40):
            arm = policy.choose(one, arms).arm
            policy.learn(one, arms, arm, float(t % 2), ticks=1.0 + t % 3, age=float(t % 5))
        policy.advance(one, 11.0)
    assert again.to_bytes() == state.to_bytes()


@LINKS
@pytest.mark.parametrize("how", ["one arm", "collinear", "exact", "silent"])
def test_all_stays_finite_for_20000_rounds(how, link):
    policy, rng = dw.make("Auto", dim=3, link=link), np.random.default_rng(7)
    state, clicks = policy.start(), link != "identity"
    arms = {"one arm": np.array([[0.3, -2.0, 1.0]]), "collinear": np.outer([1.0, -2.0, 0.5, 3.0], [1.0, 2.0, 3.0])}.get(
        how, rng.standard_normal((6, 3)))  # fmt: skip
    for t in range(20_000):
        arm = policy.choose(state, arms).arm
        value = 0.0 if how == "silent" else float(arms[arm] @ [0.5, 0.1, -0.4])
        value += 0.0 if how in ("silent", "exact") else 0.5 * rng.standard_normal()
        reward = float(value > 0.0) if how == "exact" else float(rng.random() < special.expit(value) - (value == 0.0))
        policy.learn(state, arms, arm, reward if clicks else value, ticks=1.0 + 400.0 * (t % 5000 == 4999))
    assert all(np.isfinite(one).all() for one in (state.spread, state.mean, policy.scores(state, arms).score))
    for C in covariances(state, [7 if row.sloped else 4 for row in policy.rows]):
        assert (np.diag(C) >= 0.0).all() and np.linalg.eigvalsh(C).min() >= -1e-9 * np.diag(C).max()
    assert policy.report(dw.State.from_bytes(state.to_bytes())) == policy.report(state)


@LINKS
def test_silences_of_any_length_leave_what_was_never_seen(link):
    # A feature that no arm had yet became NaN after a silence in which 1/γ^τ is infinite.
    fast, slow = pair(2, link)
    state = fast.start()
    for arms, silence in ((np.array([[1.0, 0.0]]), 1e5), (np.eye(2), 1e12), (np.eye(2), 1.0)):
        fast.advance(state, silence)
        slow.advance(silence)
        for _ in range(3):
            fast.learn(state, arms, len(arms) - 1, 1.0, age=min(silence, 1e6))
            slow.learn(arms, len(arms) - 1, 1.0, age=min(silence, 1e6))
        same_lanes(fast, slow, state)
        same_choice(fast, slow, state, np.eye(2))


SCRIPT = """
import math
import numpy as np
import driftwise as dw
for link in ("identity", "logistic", "probit"):
    policy = dw.make("Auto", dim=2, link=link)
    rng = np.random.default_rng(0)
    arms, state = rng.standard_normal((5, 2)), policy.start(5)
    for t in range(150):
        arm = policy.choose(state, arms).arm
        value = arms[arm, 0] + 4.0 * math.sin(t / 12.0)
        reward = value if link == "identity" else float(rng.random() < 1.0 / (1.0 + math.exp(-value)))
        policy.learn(state, arms, arm, reward, ticks=1.0 + 2.5 * (t % 9 == 0), age=0.5 * (t % 7 == 0))
    policy.advance(state, 40.0)
    print(policy.rows[policy.played(state)].leveled, policy.shares(state, arms, 0, 0), state.to_bytes().hex())
"""


def test_compiled_states_are_interpreted_ones_to_the_bit():
    compiled, interpreted = both_ways(SCRIPT)
    assert compiled == interpreted and "True" in compiled


@LINKS
def test_a_level_is_believed_where_it_moves_and_not_while_one_arm_is_played(link):
    policy = dw.make("Auto", dim=2, link=link)
    moves = policy.level(lived(policy, 500, swing=4.0)[0])
    assert moves[1] and moves.level <= 32.0 and policy.level(lived(policy, 500)[0])[0] < 3.0
    state, arms = policy.start(), np.eye(2)
    for t in range(60):
        policy.learn(state, arms, t % 2, float(t % 3 == 0))
    before = float(state.gauge[numbers.EVIDENCE])
    for t in range(400):
        policy.learn(state, arms, 0, float(t % 40 < 20))
    assert float(state.gauge[numbers.EVIDENCE]) < before + 3.0  # the first few rewards after the other arm


def test_the_default_is_auto_and_its_meter_tells_a_level_from_preferences():
    for swing in (4.0, 0.0):
        agent, rng = dw.Agent.for_values(3, -9, 9), np.random.default_rng(0)
        arms = np.column_stack([np.ones(10), rng.standard_normal((10, 2))])
        for t in range(400):
            one = agent.decide(arms)
            assert one.propensity == pytest.approx(agent.policy.shares(agent.state, arms, 0, 0)[one.arm])
            value = 0.5 * arms[one.arm, 1] + swing * math.sin(t / 10.0) + 0.1 * rng.standard_normal()
            agent.reward(one.id, float(value))
        found = agent.drift()
        assert isinstance(agent.policy, Auto) and found.level.moves == (swing > 0.0)
        assert ("a common level moves" in str(found)) == found.level.moves
