"""Eight memories side by side make the forecasts that each would make alone, bit for bit. A bank of such memories over
a posterior radius, and each alone, are their slow twins (docs/math.md#posterior-radius)."""

import math

import numpy as np
import pytest
from scipy import special

import driftwise as dw
from driftwise import research
from driftwise.kernels import kernel
from driftwise.kernels.adapt import book
from driftwise.kernels.algebra import factor_, forward_
from driftwise.kernels.foretell import fill_slots_, foretell_eight_, lane_scratch_of, lane_scratch_size
from driftwise.kernels.lanes import EIGHT
from naive_posterior import NaiveClicks, NaiveFadeBank, NaivePosterior
from refusing import refused
from replaying import in_the_ball

CLOSE = 1e-6


@kernel
def _together_(X, G, b, ridge, scratch, value, square):
    slots = lane_scratch_of(scratch, 0, X.shape[1])
    for slot in range(slots.who.size):
        slots.who[slot], slots.ridge[slot] = slot, ridge[slot]
    fill_slots_(X, 0, 1, G, b, slots)
    foretell_eight_(slots)
    for slot in range(slots.who.size):
        value[slot], square[slot] = slots.value[slot], slots.square[slot]


@kernel
def _alone_(X, G, b, ridge, low, pivot, z, y, value, square):
    for lane in range(value.size):
        factor_(G, lane, ridge[lane], low, pivot)
        forward_(low, pivot, b, lane, z)
        value[lane], square[lane] = 0.0, 0.0
        for i in range(y.size):
            v = X[0, i, 1]
            for j in range(i):
                v -= low[i, j] * y[j]
            y[i] = v * pivot[i]
            value[lane] += y[i] * z[i]
            square[lane] += y[i] * y[i]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 9])
def test_eight_memories_foretell_what_each_would_alone(d):
    rng = np.random.default_rng(d)
    x, r = rng.standard_normal((EIGHT, 3 * d, d)), rng.standard_normal((EIGHT, 3 * d, 1))
    G, b = np.ascontiguousarray(x.transpose(0, 2, 1) @ x), np.ascontiguousarray((r * x).sum(axis=1))
    X, ridge = rng.standard_normal((1, d, 2)), rng.random(EIGHT) + 0.1
    one, other = np.empty((2, EIGHT)), np.empty((2, EIGHT))
    _together_(X, G, b, ridge, np.zeros(lane_scratch_size(d)), *one)
    _alone_(X, G, b, ridge, np.zeros((d, d)), np.zeros(d), np.zeros(d), np.zeros(d), *other)
    assert one.tobytes() == other.tobytes()
    assert len(set(one[0])) == EIGHT


# ------------------------------------------------------------------------------------------------- posterior radii

MEMORIES = {
    "keep": (dw.Keep(), ("keep",)),
    "fade": (dw.Fade(0.06), ("fade", 0.06)),
    "window": (dw.Window(11.0, capacity=80), ("window", 11.0)),
    "restart": (dw.Restart(13.0), ("restart", 13.0)),
}
TOLD = {"R and S": {"R": 0.3, "S": 1.2}, "a ridge": {"R": 0.3, "S": 1.2, "lam": 0.7}}


def lessons(seed, rounds, *, dim=2, fresh=False, live=False, clicks=False, jump=None):
    """(arms, reward of an arm, ticks, age, ticks to advance by or None): θ turns, or rests and jumps.

    Live lessons have late rewards, several at a time or after a while, and time that passes without rewards. Sums of
    their ticks are exact, so an observation that is exactly as old as a window is so for both.
    """
    rng = np.random.default_rng([seed, dim, fresh, live])
    arms = in_the_ball(rng, 6, dim, 1.5)
    for t in range(rounds):
        arms = in_the_ball(rng, 6, dim, 1.5) if fresh else arms
        angle = 0.04 * t if jump is None else math.pi * (t >= jump)
        theta = np.zeros(dim)
        theta[:2] = (math.cos(angle), math.sin(angle))[:dim]
        values = 2.0 * arms @ theta if clicks else 1.1 * arms @ theta + 0.3 * rng.standard_normal()
        rewards = (rng.random() < special.expit(values)).astype(float) if clicks else values
        ticks, age, pause = 1.0, 0.0, None
        if live:
            ticks = float(rng.choice([0.0, 0.25, 1.0, 1.0, 1.0, 3.5]))
            age = float(rng.choice([0.0, 0.0, 0.0, 0.5, 2.0, 14.25]))
            pause = float(rng.choice([0.0, 1.0, 7.5])) if rng.random() < 0.15 else None
        yield arms, rewards, ticks, age, pause


def agree(fast, slow, state, arms):
    """The arm played is the twin's best, up to ties; mean and bonus of every arm agree. Returns the arm."""
    choice, scores = fast.choose(state, arms), fast.scores(state, arms)
    mean, bonus = slow.scores(arms)
    scale = CLOSE * np.abs(mean + bonus).max()
    assert np.abs(scores.mean - mean).max() <= scale
    assert np.abs(scores.bonus - bonus).max() <= scale
    assert (mean + bonus)[choice.arm] >= (mean + bonus).max() - 2 * scale
    return choice.arm


def replay(fast, slow, steps, every=1):
    """The twin replays the fast one's arms; a bank's weights agree too."""
    state = fast.start()
    for t, (arms, rewards, ticks, age, pause) in enumerate(steps):
        arm = agree(fast, slow, state, arms) if t % every == 0 else fast.choose(state, arms).arm
        for one in ((fast.learn, state), (slow.learn,)):
            one[0](*one[1:], arms, arm, float(rewards[arm]), ticks=ticks, age=age)
        if pause is not None:
            fast.advance(state, pause)
            slow.advance(pause)
        assert state.clock == slow.clock
        if isinstance(slow, NaiveFadeBank):
            assert state.scores / state.scores.sum() == pytest.approx(slow.weights / slow.weights.sum(), rel=CLOSE)
            assert state.marks[book.TAKEN_OVER] == len(slow.taken_over)
    agree(fast, slow, state, arms)
    return state


def linear(told, memory=None, **fields):
    """A posterior LinearUCB that takes arms of any length."""
    return dw.LinearUCB(memory=memory or dw.Keep(), radius="posterior", L=None, **told, **fields)


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", MEMORIES)
def test_every_choice_is_that_of_the_posterior_of_the_full_history(told, kind):
    ours, theirs = MEMORIES[kind]
    for dim, fresh, live in ((1, False, True), (2, True, True), (2, False, False), (3, False, True)):
        fast = linear(TOLD[told], ours, dim=dim, exploration=0.8)
        slow = NaivePosterior(dim=dim, memory=theirs, exploration=0.8, **TOLD[told])
        replay(fast, slow, lessons(1, 40, dim=dim, fresh=fresh, live=live))


@pytest.mark.parametrize("kind", MEMORIES)
def test_hundreds_of_rewards_later_it_is_still_the_full_history(kind):
    ours, theirs = MEMORIES[kind]
    slow = NaivePosterior(dim=2, memory=theirs, **TOLD["R and S"])
    replay(linear(TOLD["R and S"], ours, dim=2), slow, lessons(2, 400, live=True), every=40)


@pytest.mark.parametrize("told", TOLD)
def test_a_bank_of_fades_over_a_posterior_is_its_slow_twin(told):
    memories, taken_over = (4.0, 16.0, 64.0, math.inf), []
    for dim, live, fields in ((1, False, {}), (2, True, {"gap": 3.0, "back": 2.0}), (3, True, {"gap": 3.0})):
        fast = research.FadeBank(base=linear(TOLD[told], dim=dim), memories=memories, **fields)
        slow = NaiveFadeBank(dim=dim, memories=memories, **TOLD[told], **fields)
        state = replay(fast, slow, lessons(5, 110, dim=dim, live=live, jump=50), every=5)
        assert fast.memory(state) == slow.lanes[slow.played()].rounds
        taken_over += slow.taken_over
    assert taken_over


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize(("kind", "estimate"), [
    ("keep", "exact"), ("fade", "exact"), ("window", "exact"), ("restart", "exact"),
    ("keep", "one-pass"), ("fade", "one-pass"), ("restart", "one-pass"),
])  # fmt: skip
def test_every_choice_of_clicks_is_a_quantile_of_the_full_history(kind, estimate, link):
    ours, theirs = MEMORIES[kind]
    for dim, fresh, live, lam in ((1, False, False, None), (2, True, True, None), (3, False, True, 0.4)):
        fields = {"dim": dim, "link": link, "S": 2.0, "lam": lam, "exploration": 0.7, "estimate": estimate}
        fast = dw.PosteriorUCB(memory=ours, L=None, horizon=200, **fields)
        slow = NaiveClicks(memory=theirs, **fields)
        replay(fast, slow, lessons(6, 45, dim=dim, fresh=fresh, live=live, clicks=True), every=3)


# -------------------------------------------------------------------------------------------------------- refusals


def test_MASTER_and_BOB_refuse_a_base_without_a_length():
    policy = dw.LinearUCB(dim=2, memory=dw.Keep(), radius="posterior", L=None)
    with refused("base"):
        research.Master(base=policy, horizon=100)
    with refused("base"):
        research.BanditOverBandit(base=policy, horizon=100)


@pytest.mark.parametrize(("fields", "parameter"), [
    ({"lam": 1.0, "R": "learn"}, "R"),
    ({"lam": 1.0, "S": None}, "S"),
    ({"lam": 1.0, "L": None}, "L"),
    ({"lam": None}, "lam"),
    ({"radius": "posterior", "S": None}, "S"),
    ({"radius": "posterior", "R": "learn"}, "R"),
    ({"radius": "posterior", "R": 0.0}, "R"),
    ({"radius": "posterior", "R": -1.0}, "R"),
    ({"radius": "posterior", "two_matrix": "correct"}, "two_matrix"),
], ids=str)  # fmt: skip
def test_what_no_belief_can_be_is_refused(fields, parameter):
    with refused(parameter):
        dw.LinearUCB(**{"dim": 2, "memory": dw.Keep(), **fields})


def test_a_told_noise_that_rounding_would_lose_is_refused():
    with pytest.raises(dw.BadInput, match="lost in rounding"):
        dw.LinearUCB(dim=3, memory=dw.Keep(), radius="posterior", R=1e-7)
